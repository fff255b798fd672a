// The context of every command handler: one client's parser, present command and answers, and its worker.
//
// Owned by the client's Dispatcher. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "memcache/client_parser.h"
#include "memcache/command.h"
#include "proxy/client/output_queue.h"
#include "proxy/replies/reply_queue.h"
#include "proxy/users/rights.h"
#include "proxy/worker_context.h"
#include "rpc/client_session.h"

namespace egret::proxy {

// The result of a handler.
enum class Outcome : uint8_t {
  kDone,           // handled, except for its answer: read the next command
  kWaitForCredit,  // `credit_from`: a lane has no credit, no room for an upload, or no owner yet: call again when it has
  kWaitForAnswer,  // an earlier answer must come first (order of a key, a barrier): call again after the next answer
  kWaitForPull,    // the key's value is on its way from the owner before: call again when it is there
  kRunning,        // a fan-out or a dump is running: read nothing until it calls back
  kWatching,       // the client watches: drop its further input
  kClosing,        // close the connection
};

// Is called for events that are not the result of reading a command.
class CommandObserver {
 public:
  // A command that had to wait may be able to continue: feed the dispatcher again soon, but not within this call.
  virtual void on_resumable() = 0;
  // The client watches from now on (WatchStream bits). False: there are too many watchers.
  virtual bool on_watch(uint16_t streams) = 0;
  // Where the client comes from: users/client_address.h.
  virtual std::string client_address() const = 0;
  // The address that the client has connected to: "tcp:10.0.0.1:11211", "unix:/run/egret/proxy.sock".
  virtual std::string listen_address() const = 0;

 protected:
  ~CommandObserver() = default;
};

struct ClientContext {
  ClientContext(WorkerContext& its_worker, ReplyQueue& its_replies, OutputQueue& its_output,
                CommandObserver& its_observer, pool::PullWaiter& its_pull_waiter)
      : worker(its_worker),
        config(its_worker.config),
        parser(its_worker.limits, config->protocol, config->credentials != nullptr),
        replies(its_replies),
        output(its_output),
        observer(its_observer),
        pull_waiter(its_pull_waiter) {}

  Outcome wait_for_credit(rpc::ClientSession& session) {
    credit_from = &session.credit();
    return Outcome::kWaitForCredit;
  }
  // The key's backend is about to return: the command is routed again in a moment.
  Outcome wait_for_return() {
    credit_from = &worker.pool.returns();
    return Outcome::kWaitForCredit;
  }

  WorkerContext& worker;
  const std::shared_ptr<const Config>& config;  // the worker's; a reload replaces it
  memcache::ClientParser parser;
  ReplyQueue& replies;
  OutputQueue& output;
  CommandObserver& observer;
  pool::PullWaiter& pull_waiter;  // is told of pulls that the present command waits for
  memcache::Command command;
  uint32_t command_number = 1;              // of the present retrieval; never 0
  bool was_held = false;                    // the command had to wait
  bool is_alone = false;                    // few others are being read: its op gains nothing by sharing a message
  bool is_pulled = false;                   // with was_held: its key's value was waited for
  rpc::CreditQueue* credit_from = nullptr;  // with kWaitForCredit
  std::shared_ptr<const User> user;         // of the users file; null: everything is permitted
};

}  // namespace egret::proxy
