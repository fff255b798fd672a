// Reads a client's commands: takes the parser's events and gives each to its handler.
//
//   input ─▶ ClientParser ─ event ─▶ keys │ uploads │ barriers │ admin │ control │ authentication ─▶ Outcome
//                                       └ the command must wait: it is kept, and acted on again by a later feed()
//
// It holds no bytes: what feed() did not consume is the front of the input of the next call. Thread: the worker's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/commands/admin.h"
#include "proxy/commands/authentication.h"
#include "proxy/commands/barriers.h"
#include "proxy/commands/client_context.h"
#include "proxy/commands/uploads.h"

namespace egret::proxy {

class Dispatcher final : private rpc::CreditWaiter {
 public:
  Dispatcher(WorkerContext& worker, ReplyQueue& replies, OutputQueue& output, ConnectionMemory& memory,
             CommandObserver& observer)
      : client_(worker, replies, output, observer), memory_(memory) {}
  ~Dispatcher();

  // Acts on as much of the input as it can; returns how many bytes it is done with.
  size_t feed(std::string_view input);
  // Something must happen before more is read: input should not be read meanwhile.
  bool is_blocked() const { return state_ != State::kReading && state_ != State::kWatching && !is_closing(); }
  // The client said goodbye or must go: close when everything is answered and sent.
  bool is_closing() const { return state_ == State::kClosing; }
  bool was_told_to_close() const { return told_to_close_; }
  // A large value is being received.
  bool is_in_value() const { return uploads_.is_open(); }
  // What it comes to if the client stands between two commands, so that another process may go on with it.
  std::optional<memcache::Standing> standing() const;
  void resume_as(const memcache::Standing& standing) { client_.parser.resume(standing); }
  // Nothing is under way.
  bool is_idle() const { return client_.replies.empty() && state_ != State::kFanningOut && state_ != State::kDumping; }

  static constexpr size_t kMaxPlaces = 1024;        // unanswered places of one connection
  static constexpr size_t kMaxOutput = 256 * 1024;  // bytes that wait for the client to read them

 private:
  // What feed() may do with the input.
  enum class State : uint8_t {
    kReading,           // take the next event of the parser; of an upload's value, too
    kWaitingForCredit,  // act on the same event again when a lane of credit_from has credit
    kWaitingForAnswer,  // act on the same event again when an earlier answer has come
    kWaitingForRoom,    // take the next event when the client has read answers, or when places are free
    kFanningOut,        // nothing until barriers_ is over
    kDumping,           // nothing until admin_ is over
    kWatching,          // drop it: what a client says that watches is of no interest
    kClosing,           // nothing any more
  };
  bool holds_event() const { return state_ == State::kWaitingForCredit || state_ == State::kWaitingForAnswer; }

  bool may_act();
  bool next_event(std::string_view rest, size_t& used);
  void settle(Outcome outcome, size_t& used);
  Outcome act();
  Outcome on_error();
  Outcome on_command();
  Outcome on_store_command();
  void rebase(const char* base);
  void on_credit() override;

  ClientContext client_;
  ConnectionMemory& memory_;
  Uploads uploads_{client_};
  Barriers barriers_{client_};
  AdminCommands admin_{client_};
  Authentication authentication_{client_};
  State state_ = State::kReading;
  memcache::Step step_{};            // the event that is acted on; its command is client_.command
  const char* held_base_ = nullptr;  // where the input lay that the command views
  bool awaits_credit_ = false;       // on_credit() is to come
  bool told_to_close_ = false;       // by quit
};

}  // namespace egret::proxy
