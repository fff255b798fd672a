// Reads a client's commands: takes the parser's events and passes each to its handler.
//
//   input ─▶ ClientParser ─ event ─▶ keys │ uploads │ barriers │ admin │ control │ authentication ─▶ Outcome
//                                       └ the command must wait: kept, and handled again by a later feed()
//
// It keeps no bytes: the input of the next feed() must begin with the bytes that this one did not consume. Thread: the
// worker's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "proxy/client/connection_table.h"
#include "proxy/commands/admin.h"
#include "proxy/commands/authentication.h"
#include "proxy/commands/barriers.h"
#include "proxy/commands/client_context.h"
#include "proxy/commands/uploads.h"

namespace egret::proxy {

class Dispatcher final : private rpc::CreditWaiter, private pool::PullWaiter {
 public:
  Dispatcher(WorkerContext& worker, ReplyQueue& replies, OutputQueue& output, ConnectionMemory& memory,
             CommandObserver& observer)
      : client_(worker, replies, output, observer, *this), memory_(memory) {}
  ~Dispatcher();

  // Handles as much of the input as it can; returns how many bytes it consumed.
  size_t feed(std::string_view input);
  // Room in the store, or in request slots, for the next bytes of a large value, to be received there instead of being fed; then
  // how many were. False: there is none. `is_all`: the room takes the rest of the value, so what follows it may be fed.
  bool begin_direct(op::PartRoom& room, bool& is_all);
  void end_direct(const op::PartRoom& room, uint32_t length);
  // Whether a command waits: do not read more input meanwhile.
  bool is_blocked() const { return state_ != State::kReading && state_ != State::kWatching && !is_closing(); }
  // The client quit, or must be disconnected: close when everything is answered and sent.
  bool is_closing() const { return state_ == State::kClosing; }
  bool was_told_to_close() const { return told_to_close_; }
  // Whether a large value is being received.
  bool is_in_value() const { return uploads_.is_open(); }
  // The state with which another process can take the client over; nothing unless the client is between two commands.
  std::optional<memcache::ResumeState> resume_state() const;
  // Whether another Dispatcher of this process can go on with the client, if the configuration stays; what it needs for it.
  bool may_rest() const;
  void rest(ConnectionRecord& record) const;
  void resume_as(ConnectionRecord& record);
  // Whether that state is all there is to know of the client: its user has every right.
  bool may_be_handed_over() const { return client_.user == nullptr || client_.user->is_unrestricted(); }
  // The files of users may have been read again: takes the user's rights from the present ones.
  void renew_rights();
  // Whether no command is outstanding.
  bool is_idle() const { return client_.replies.empty() && !is_running(); }
  // Whether a password of the client waits to be checked, or is being checked.
  bool is_authenticating() const { return state_ == State::kAuthenticating; }

  static constexpr size_t kMaxPlaces = 1024;        // most pending replies of one connection
  static constexpr size_t kMaxOutput = 256 * 1024;  // with more unsent bytes no further command is read

 private:
  // What feed() may do with the input.
  enum class State : uint8_t {
    kReading,           // take the parser's next event, also within an upload's value
    kWaitingForCredit,  // handle the same event again when a lane of credit_from has credit
    kWaitingForAnswer,  // handle the same event again after the next answer, or when a pull is over
    kWaitingForRoom,    // take the next event when the client has read answers, or pending replies are answered
    kFanningOut,        // nothing until the fan-out of barriers_ is over
    kDumping,           // nothing until the dump of admin_ is over
    kAuthenticating,    // nothing until authentication_ has answered
    kWatching,          // drop it: the client watches
    kClosing,           // nothing any more
  };
  // Something has taken the command over; nothing is read until it is done.
  bool is_running() const {
    return state_ == State::kFanningOut || state_ == State::kDumping || state_ == State::kAuthenticating;
  }
  bool holds_event() const { return state_ == State::kWaitingForCredit || state_ == State::kWaitingForAnswer; }

  bool may_act();
  bool next_event(std::string_view rest, size_t& used);
  void settle(Outcome outcome, size_t& used);
  Outcome act();
  bool is_permitted() const;
  Outcome refuse_command();
  Outcome on_error();
  Outcome on_command();
  Outcome on_store_command();
  void rebase(const char* base);
  void on_credit() override;
  bool on_pulled(bool may_be_there) override;

  ClientContext client_;
  ConnectionMemory& memory_;
  Uploads uploads_{client_};
  Barriers barriers_{client_};
  AdminCommands admin_{client_};
  Authentication authentication_{client_};
  State state_ = State::kReading;
  memcache::Step step_{};            // the present event; its command is client_.command
  const char* held_base_ = nullptr;  // address of the input that the command's views point into
  bool awaits_credit_ = false;       // on_credit() will be called
  bool awaits_pull_ = false;         // on_pulled() will be called
  bool told_to_close_ = false;       // the client sent quit
};

}  // namespace egret::proxy
