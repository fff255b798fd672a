// Who the client is: memcached's ASCII authentication, and SASL, of which PLAIN is known.
//
//   command ─▶ guess ─▶ may it be made now? ─▶ judged ─▶ [verified by another thread] ─▶ answer
//                            └─ no: a timer asks again
//
// The connection is not read until it is answered. How often may be guessed is users/guess_limit.h's, who is right
// users/credentials.h's. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "events/event.h"
#include "proxy/commands/client_context.h"
#include "proxy/users/credentials.h"
#include "proxy/users/guess_limit.h"
#include "proxy/users/verifier.h"

namespace egret::proxy {

class Authentication final : private VerificationWaiter {
 public:
  explicit Authentication(ClientContext& client) : client_(client) {}
  ~Authentication();

  Outcome ascii();
  Outcome sasl();
  // An empty first message of SASL was answered; the next one is to have the password.
  bool is_under_way() const { return sasl_started_; }
  // The client has guessed and was not right yet: how often it may guess is known here.
  bool has_guessed() const { return guesses_ != nullptr; }
  // A guess waits; the observer's on_resumable() tells that it is over.
  bool is_running() const { return is_running_; }

 private:
  // Of a client that has not been right yet.
  struct Guesses {
    std::string address;  // of the client
    GuessBucket bucket;   // of the connection
    events::Event turn;   // pending while a guess waits
    // The guess that is being made.
    std::string user;
    std::string password;
    bool has_waited = false;
    bool has_own = false;                        // taken out of `bucket`
    std::shared_ptr<Verification> verification;  // null: it is not being verified
  };

  Outcome guess(const Login& login);
  void make_guess();
  bool begin_verification(const std::shared_ptr<const Credentials>& users);
  void on_verified() override;
  void conclude(const Judgement& judgement);
  void give_back();
  bool must_wait();
  void wait(uint64_t time_ns);
  void on_turn();
  void finish(bool is_right);
  void forget_password();

  ClientContext& client_;
  bool sasl_started_ = false;
  bool is_running_ = false;
  std::unique_ptr<Guesses> guesses_;  // null before the first one, and when the client is known
};

}  // namespace egret::proxy
