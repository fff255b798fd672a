#include "proxy/commands/dispatcher.h"

#include <utility>

#include "memcache/reply.h"
#include "memcache/translate.h"
#include "proxy/commands/control.h"
#include "proxy/commands/keys.h"
#include "wire/codec.h"

namespace egret::proxy {

using memcache::Command;
using memcache::CommandKind;
using memcache::Event;
using op::ResultCode;

namespace {
constexpr int kFew = 8;         // clients: with so many more to be read, ops wait for theirs in one message
constexpr size_t kLineEnd = 2;  // of a retrieval, behind its last key
}  // namespace

Dispatcher::~Dispatcher() {
  if (awaits_credit_) client_.credit_from->stop_waiting(this);
  if (awaits_pull_) client_.worker.pulls.stop_waiting(this);
}

std::optional<memcache::ResumeState> Dispatcher::resume_state() const {
  const bool is_free = is_idle() && state_ == State::kReading && !authentication_.is_under_way() && !uploads_.is_open();
  return is_free && client_.parser.is_between_commands() ? std::optional(client_.parser.resume_state()) : std::nullopt;
}

// A client that connected before passwords were asked for need not give one as long as it stays, and one that connected
// before they were not any more still must: only its parser knows.
bool Dispatcher::may_rest() const {
  const auto state = resume_state();
  if (!state || authentication_.has_guessed()) return false;
  const bool must = client_.parser.must_authenticate();
  const bool as_a_new_one = must == (client_.config->credentials != nullptr);
  return as_a_new_one || (!must && state->has_authenticated);
}

void Dispatcher::rest(ConnectionRecord& record) const {
  record.resume_state = client_.parser.resume_state();
  record.user = client_.user;
}

void Dispatcher::resume_as(ConnectionRecord& record) {
  client_.parser.resume(record.resume_state);
  client_.user = std::move(record.user);
}

// --- the loop over events

size_t Dispatcher::feed(std::string_view input) {
  size_t used = 0;
  const bool are_few = client_.worker.events.found() < kFew;
  while (state_ == State::kReading || may_act()) {
    if (state_ == State::kWatching) return input.size();
    const std::string_view rest = input.substr(used);
    client_.was_held = holds_event();
    if (client_.was_held) {
      rebase(rest.data());
    } else if (!next_event(rest, used)) {
      break;
    }
    client_.is_alone = are_few && rest.size() <= step_.consumed + kLineEnd;
    const Outcome outcome = act();
    if (outcome == Outcome::kDone) [[likely]] {
      state_ = State::kReading;
      used += step_.consumed;
    } else {
      settle(outcome, used);
      if (holds_event()) break;
    }
  }
  return used;
}

bool Dispatcher::begin_direct(op::PartRoom& room, bool& is_all) {
  if (state_ != State::kReading || !uploads_.is_open() || !uploads_.begin_direct(room)) return false;
  is_all = room.length == uploads_.left();
  return true;
}

void Dispatcher::end_direct(const op::PartRoom& room, uint32_t length) {
  uploads_.end_direct(room, length);
  client_.parser.skip_part(length);
}

// Whether the reason for waiting may be gone. An event that was held is handled even without room, since its answer may
// be what others wait for.
bool Dispatcher::may_act() {
  switch (state_) {
    case State::kFanningOut:
      if (!barriers_.is_running()) state_ = State::kReading;
      break;
    case State::kDumping:
      if (admin_.is_running()) admin_.go_on();
      if (!admin_.is_running()) state_ = State::kReading;
      break;
    case State::kAuthenticating:
      if (!authentication_.is_running()) state_ = State::kReading;
      break;
    case State::kWaitingForRoom:
      state_ = State::kReading;
      break;
    default:
      break;
  }
  return !awaits_credit_ && !awaits_pull_ && !is_running() && state_ != State::kClosing;
}

// Takes the parser's next event. False: there is none, or it must not be taken yet.
inline bool Dispatcher::next_event(std::string_view rest, size_t& used) {
  state_ = State::kReading;
  if (client_.replies.size() >= kMaxPlaces || client_.output.size() > kMaxOutput || !memory_.may_take_command()) {
    state_ = State::kWaitingForRoom;
    return false;
  }
  if (uploads_.is_open() && !uploads_.is_worth_sending(rest.size())) return false;
  step_ = client_.parser.next(rest, client_.command);
  if (step_.event == Event::kNeedMore) {
    used += step_.consumed;
    return false;
  }
  held_base_ = rest.data();
  return true;
}

// What follows from an outcome other than kDone.
void Dispatcher::settle(Outcome outcome, size_t& used) {
  if (!client_.was_held) client_.is_pulled = false;
  switch (outcome) {
    case Outcome::kDone:
      break;
    case Outcome::kWaitForPull:
      awaits_pull_ = true;
      state_ = State::kWaitingForAnswer;
      return;
    case Outcome::kWaitForCredit:
      // The bytes of a value's part that were sent already are consumed, although the event is not.
      if (step_.event == Event::kValuePart) {
        const size_t sent = step_.consumed - client_.command.value.size();
        step_.consumed -= sent;
        held_base_ += sent;
        used += sent;
      }
      client_.credit_from->wait(this);
      awaits_credit_ = true;
      state_ = State::kWaitingForCredit;
      return;
    case Outcome::kWaitForAnswer:
      state_ = State::kWaitingForAnswer;
      return;
    case Outcome::kRunning:
      state_ = admin_.is_running()            ? State::kDumping
               : authentication_.is_running() ? State::kAuthenticating
                                              : State::kFanningOut;
      break;
    case Outcome::kWatching:
      state_ = State::kWatching;
      break;
    case Outcome::kClosing:
      state_ = State::kClosing;
      break;
  }
  used += step_.consumed;
}

// The input has moved: adjust the command's views.
void Dispatcher::rebase(const char* base) {
  const ptrdiff_t moved = base - held_base_;
  held_base_ = base;
  if (moved == 0) return;
  Command& command = client_.command;
  const auto shift = [&command, moved](std::string_view& view) {
    const bool is_own = view.data() >= command.own && view.data() < command.own + Command::kOwnBytes;
    if (!view.empty() && !is_own) view = std::string_view(view.data() + moved, view.size());
  };
  shift(command.key);
  shift(command.value);
  shift(command.echo);
  for (uint8_t i = 0; i < command.argument_count && i < Command::kMaxArguments; ++i) shift(command.arguments[i]);
}

void Dispatcher::on_credit() {
  awaits_credit_ = false;
  client_.observer.on_resumable();
}

bool Dispatcher::on_pulled(bool) {
  awaits_pull_ = false;
  client_.is_pulled = true;
  client_.observer.on_resumable();
  return true;
}

// --- one event

// A command is asked about once: one that was held has begun.
bool Dispatcher::is_permitted() const {
  const bool is_request =
      step_.event == Event::kKey || step_.event == Event::kCommand || step_.event == Event::kValueBegin;
  return !is_request || client_.was_held || permits(*client_.user, client_.command);
}

// The same line whether the key exists or not. Of a classic retrieval it stands for END and all that is not sent yet.
Outcome Dispatcher::refuse_command() {
  const Command& command = client_.command;
  if (step_.event == Event::kValueBegin) client_.parser.swallow_value();
  if (client_.parser.is_binary()) {
    refuse(client_, memcache::binary::Status::kAuthError);
  } else if (step_.event == Event::kKey && command.dialect == memcache::Dialect::kClassic) {
    client_.replies.push_refusal(memcache::kNotAllowed, client_.command_number);
    return Outcome::kDone;  // its end counts it
  } else if (command.dialect == memcache::Dialect::kMeta || !command.noreply) {
    client_.replies.push_text(memcache::kNotAllowed);
  }
  count_request(client_);
  return Outcome::kDone;
}

void Dispatcher::renew_rights() {
  if (client_.user == nullptr) return;
  const std::shared_ptr<const Credentials> users = client_.config->credentials;
  if (users == nullptr) return client_.user.reset();
  std::shared_ptr<const User> renewed = users->find(client_.user->name);
  if (renewed == nullptr) renewed = std::make_shared<const User>(User{client_.user->name, 0, {}});  // it is gone
  client_.user = std::move(renewed);
}

inline Outcome Dispatcher::act() {
  if (client_.user != nullptr && !is_permitted()) [[unlikely]]
    return refuse_command();
  switch (step_.event) {
    case Event::kKey:
      return get_key(client_);
    case Event::kEndOfKeys:
      end_keys(client_);
      return Outcome::kDone;
    case Event::kCommand:
      return on_command();
    case Event::kValueBegin:
      return uploads_.begin();
    case Event::kValuePart:
      return uploads_.part();
    case Event::kValueEnd: {
      const Outcome outcome = uploads_.end();
      if (outcome == Outcome::kDone) count_request(client_);
      return outcome;
    }
    case Event::kError:
    case Event::kClose:
      return on_error();
    case Event::kNeedMore:
      break;
  }
  return Outcome::kDone;
}

Outcome Dispatcher::on_error() {
  if (!client_.command.error.empty()) client_.replies.push_error(client_.command.error, client_.command_number);
  if (step_.event == Event::kClose) return Outcome::kClosing;
  if (++client_.command_number == 0) client_.command_number = 1;
  return Outcome::kDone;
}

Outcome Dispatcher::on_command() {
  const CommandKind kind = client_.command.kind;
  const bool is_one_op = memcache::needs_store(kind) && kind != CommandKind::kFlushAll;
  const Outcome outcome = [&] {
    if (is_one_op) return on_store_command();
    switch (kind) {
      case CommandKind::kVersion:
        return answer_version(client_);
      case CommandKind::kVerbosity:
        answer(client_, ResultCode::kOk);
        return Outcome::kDone;
      case CommandKind::kNoop:
        return answer_noop(client_);
      case CommandKind::kQuit:
        if (client_.parser.is_binary()) answer(client_, ResultCode::kOk);
        told_to_close_ = true;
        return Outcome::kClosing;
      case CommandKind::kAuthenticate:
        return authentication_.ascii();
      case CommandKind::kSaslMechanisms:
      case CommandKind::kSaslStart:
      case CommandKind::kSaslStep:
        return authentication_.sasl();
      case CommandKind::kFlushAll:
        return barriers_.flush_all();
      case CommandKind::kAdmin:
        return admin_.act(memcache::parse_admin(client_.command.echo), barriers_);
      default:
        return barriers_.stats(admin_);
    }
  }();
  if (outcome < Outcome::kWaitForCredit || outcome > Outcome::kWaitForPull) count_request(client_);
  return outcome;
}

Outcome Dispatcher::on_store_command() {
  if (uploads_.is_open()) return uploads_.go_on_whole();
  Outcome outcome{};
  const std::optional<KeyOp> change = change_of(client_, outcome);
  if (!change) return outcome;
  if (!wire::fits_slot(change->route.session->grant().layout, change->op)) return uploads_.store_whole(*change);
  return append(client_, *change, new_reply(client_, change->op.options));
}

}  // namespace egret::proxy
