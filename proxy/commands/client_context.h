// What every command handler works with: one client's parser, its present command and its answers, and its worker.
//
// Owned by the client's Dispatcher. Thread: the worker's.
#pragma once

#include <cstdint>

#include "memcache/client_parser.h"
#include "memcache/command.h"
#include "proxy/client/output_queue.h"
#include "proxy/replies/reply_queue.h"
#include "proxy/worker_context.h"
#include "rpc/client_session.h"

namespace egret::proxy {

// What became of a command.
enum class Outcome : uint8_t {
  kDone,           // it is over but for its answer: the next one may be read
  kWaitForCredit,  // a lane of `credit_from` has no credit, or no room for an upload: act again when it has
  kWaitForAnswer,  // an earlier answer must come first (a key's order, a barrier): act again when one has come
  kRunning,        // a fan-out or a dump has taken it over: nothing is read until it tells that it is over
  kWatching,       // the client watches: what it still says is dropped
  kClosing,        // the client is told the end
};

// Told of what does not come of reading a command.
class CommandObserver {
 public:
  // What held a command back may be over: feed the dispatcher again, soon, but not from within this call.
  virtual void on_resumable() = 0;
  // The client watches from now on (WatchStream bits). False: there are too many that do.
  virtual bool on_watch(uint16_t streams) = 0;

 protected:
  ~CommandObserver() = default;
};

struct ClientContext {
  ClientContext(WorkerContext& its_worker, ReplyQueue& its_replies, OutputQueue& its_output,
                CommandObserver& its_observer)
      : worker(its_worker),
        config(its_worker.config),
        parser(its_worker.limits, config->protocol, config->credentials != nullptr),
        replies(its_replies),
        output(its_output),
        observer(its_observer) {}

  Outcome wait_for_credit(rpc::ClientSession& session) {
    credit_from = &session;
    return Outcome::kWaitForCredit;
  }

  WorkerContext& worker;
  const std::shared_ptr<const Config>& config;  // the worker's, which replaces it at a reload
  memcache::ClientParser parser;
  ReplyQueue& replies;
  OutputQueue& output;
  CommandObserver& observer;
  memcache::Command command;
  uint32_t command_number = 1;                // of the retrieval being read; never 0
  bool was_held = false;                      // the command has waited
  rpc::ClientSession* credit_from = nullptr;  // with kWaitForCredit
};

}  // namespace egret::proxy
