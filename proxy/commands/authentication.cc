#include "proxy/commands/authentication.h"

#include <algorithm>
#include <chrono>

#include <openssl/crypto.h>
#include <strings.h>

#include "base/log/log.h"
#include "memcache/reply.h"
#include "proxy/commands/control.h"
#include "proxy/log_events.h"

namespace egret::proxy {

using memcache::CommandKind;
using memcache::binary::Status;

namespace {

constexpr std::string_view kSaslMechanism = "PLAIN";
constexpr size_t kMaxSaslMechanism = 32;  // bytes of a mechanism's name that memcached reads
constexpr std::string_view kAuthenticated = "Authenticated";
// A guess that waits asks again after this time at the latest: others of its user and address may have been right, and
// given back what they took, or a reload may have set another pace.
constexpr uint64_t kAskAgainNs = 200'000'000;

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

void log_failure(const std::string& user, const std::string& address) {
  static base::LogLimit limit;
  base::log_limited(limit, kAuthenticationFailed, "a client at {} gave a wrong password, or a wrong name: {}",
                    base::field("client", address), base::field("user", user));
}

}  // namespace

Authentication::~Authentication() {
  if (guesses_ == nullptr) return;
  forget_password();
  if (guesses_->verification == nullptr) return;
  guesses_->verification->waiter = nullptr;
  guesses_->verification->is_abandoned.store(true, std::memory_order_relaxed);
}

// --- the two ways of saying it

Outcome Authentication::ascii() {
  return guess({client_.command.key, client_.command.value});
}

// In one go, or (as some clients do) with an empty first message.
Outcome Authentication::sasl() {
  const memcache::Command& command = client_.command;
  const auto refused = [this](Status status) { return refuse(client_, status), Outcome::kDone; };
  const auto answered = [this](Status status, std::string_view body) {
    return answer_packet(client_, status, body), Outcome::kDone;
  };
  if (client_.config->credentials == nullptr && !client_.parser.must_authenticate()) {
    return refused(Status::kUnknownCommand);
  }
  if (command.kind == CommandKind::kSaslMechanisms) return answered(Status::kOk, kSaslMechanism);
  if (command.key.size() > kMaxSaslMechanism) return refused(Status::kInvalid);
  const bool starts = command.kind == CommandKind::kSaslStart;
  const bool is_plain = is_same_but_for_case(command.key, kSaslMechanism);
  if (starts) {
    sasl_started_ = is_plain && command.value.empty();
    if (sasl_started_) return answered(Status::kAuthContinue, {});
  }
  const bool may_go_on = is_plain && (starts || sasl_started_);
  // What is no message of PLAIN is a guess, too: of no user.
  return guess(may_go_on ? parse_plain(command.value).value_or(Login{}) : Login{});
}

// --- a guess

Outcome Authentication::guess(const Login& login) {
  client_.worker.stats.auth_cmds.add(1);
  if (guesses_ == nullptr) {
    guesses_ = std::make_unique<Guesses>();
    guesses_->address = client_.observer.client_address();
  }
  guesses_->user = login.user;
  guesses_->password = login.password;
  guesses_->has_waited = guesses_->has_own = false;
  is_running_ = true;
  make_guess();
  return is_running_ ? Outcome::kRunning : Outcome::kDone;
}

// Now, or when a timer goes off.
void Authentication::make_guess() {
  // A reload may have done away with the users that this client was to be one of.
  const std::shared_ptr<const Credentials> users = client_.config->credentials;
  if (users == nullptr) return finish(true);
  if (must_wait()) return;
  const Judgement judgement = users->judge({guesses_->user, guesses_->password});
  if (judgement.verdict != Judgement::Verdict::kToBeVerified) return conclude(judgement);
  if (begin_verification(users)) return;
  give_back();
  wait(kAskAgainNs);
}

// False: too many wait for it.
bool Authentication::begin_verification(const std::shared_ptr<const Credentials>& users) {
  auto verification = std::make_shared<Verification>();
  verification->users = users;
  verification->user = guesses_->user;
  verification->password = guesses_->password;
  verification->address = guesses_->address;
  verification->inbox = client_.worker.verified;
  verification->waiter = this;
  if (!client_.worker.proxy.verifier.submit(verification)) return false;
  guesses_->verification = std::move(verification);
  return true;
}

void Authentication::on_verified() {
  const std::shared_ptr<Verification> verification = std::move(guesses_->verification);
  guesses_->verification.reset();
  if (verification->users == client_.config->credentials) {
    conclude(verification->judgement);
  } else {  // the files have been read again meanwhile
    give_back();
    make_guess();
  }
  if (!is_running_) client_.observer.on_resumable();
}

void Authentication::conclude(const Judgement& judgement) {
  if (judgement.is_right()) {
    give_back();
    client_.user = judgement.user;
  } else {
    log_failure(guesses_->user, guesses_->address);
  }
  finish(judgement.is_right());
}

// To the bucket of (user, address).
void Authentication::give_back() {
  client_.worker.proxy.guesses.give_back(guesses_->user, guesses_->address, client_.config->guess_pace);
}

bool Authentication::must_wait() {
  const GuessPace& pace = client_.config->guess_pace;
  const uint64_t now_ns = client_.worker.clock.now_ns();
  if (!guesses_->has_own) {
    if (const uint64_t time_ns = guesses_->bucket.take(now_ns, pace); time_ns > 0) return wait(time_ns), true;
    guesses_->has_own = true;
  }
  const uint64_t time_ns = client_.worker.proxy.guesses.take(guesses_->user, guesses_->address, now_ns, pace);
  if (time_ns > 0) wait(time_ns);
  return time_ns > 0;
}

void Authentication::wait(uint64_t time_ns) {
  if (!guesses_->has_waited) client_.worker.stats.auth_waits.add(1);
  guesses_->has_waited = true;
  if (!guesses_->turn.is_set()) {
    guesses_->turn = events::Event::timer<&Authentication::on_turn>(client_.worker.events, *this);
  }
  guesses_->turn.add(std::chrono::microseconds(std::min(time_ns, kAskAgainNs) / 1000 + 1));
}

void Authentication::on_turn() {
  client_.worker.begin_pass();
  make_guess();
  if (!is_running_) client_.observer.on_resumable();
}

void Authentication::finish(bool is_right) {
  is_running_ = false;
  forget_password();
  if (is_right) {
    guesses_.reset();
    client_.parser.set_authenticated();
  } else {
    client_.worker.stats.auth_errors.add(1);
  }
  if (client_.command.kind == CommandKind::kAuthenticate) {
    client_.replies.push_text(is_right ? memcache::kStored : memcache::kAuthFailure);
  } else if (is_right) {
    answer_packet(client_, Status::kOk, kAuthenticated);
  } else {
    refuse(client_, Status::kAuthError);
  }
}

void Authentication::forget_password() {
  OPENSSL_cleanse(guesses_->password.data(), guesses_->password.size());
  guesses_->password.clear();
}

}  // namespace egret::proxy
