#include "proxy/commands/dispatcher.h"

#include <algorithm>
#include <array>

#include "memcache/reply.h"
#include "memcache/translate.h"
#include "op/item_size.h"

namespace egret::proxy {

using memcache::Command;
using memcache::CommandKind;
using memcache::Event;
using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {
// A streamed value is not sent in parts smaller than this or a slot, but its last.
constexpr size_t kWorthSending = 8192;

constexpr RequestKind kind_of(CommandKind kind) {
  switch (kind) {
    case CommandKind::kGet:
    case CommandKind::kGets:
    case CommandKind::kMetaGet:
      return RequestKind::kGet;
    case CommandKind::kGat:
    case CommandKind::kGats:
    case CommandKind::kTouch:
      return RequestKind::kTouch;
    case CommandKind::kDelete:
    case CommandKind::kMetaDelete:
      return RequestKind::kDelete;
    case CommandKind::kIncr:
    case CommandKind::kDecr:
    case CommandKind::kMetaArith:
      return RequestKind::kArith;
    default:
      return memcache::is_storage(kind) ? RequestKind::kSet : RequestKind::kOther;
  }
}

constexpr auto kRequestKindOf = [] {
  std::array<uint8_t, static_cast<size_t>(CommandKind::kQuit) + 1> kinds{};
  for (size_t i = 0; i < kinds.size(); ++i) kinds[i] = static_cast<uint8_t>(kind_of(static_cast<CommandKind>(i)));
  return kinds;
}();

// Whether a get of the same key that came before must be over first.
bool changes_something(const Op& op) {
  constexpr uint16_t kHarmless = op::kWantCas | op::kWantMeta | op::kPeek | op::kNoBump | op::kCompareCas;
  return op.code != OpCode::kGet || (op.options & ~kHarmless) != 0;
}
}  // namespace

Dispatcher::Dispatcher(const std::shared_ptr<const Config>& config, const memcache::Limits& limits, pool::Pool& router,
                       ReplyQueue& replies, OutputQueue& output, const StatsSource& stats, WorkerStats& counters,
                       ByteBudget& collected_values, uint32_t& next_upload_id, DispatchObserver& observer)
    : config_(config),
      parser_(limits, config->protocol, config->credentials != nullptr),
      router_(router),
      replies_(replies),
      output_(output),
      stats_(stats),
      counters_(counters),
      collected_values_(collected_values),
      next_upload_id_(next_upload_id),
      observer_(observer) {}

Dispatcher::~Dispatcher() {
  if (credit_session_ != nullptr) credit_session_->stop_waiting(this);
  if (upload_ != nullptr) upload_->abandon();
  if (fan_out_ != nullptr) fan_out_->orphan();
  if (dump_ == nullptr) return;
  stats_.admin.is_dumping = false;
  dump_->abandon();
}

std::optional<memcache::Standing> Dispatcher::standing() const {
  const bool is_free = is_idle() && !is_blocked() && !closing_ && !watching_ && !sasl_started_ && upload_ == nullptr;
  return is_free && parser_.is_between_commands() ? std::optional(parser_.standing()) : std::nullopt;
}

// --- the loop over events
// ------------------------------------------------------------------------------------------------

size_t Dispatcher::feed(std::string_view input) {
  size_t used = 0;
  waiting_for_room_ = false;
  if (dump_ != nullptr) dump_->go_on();
  while (!closing_ && fan_out_ == nullptr && dump_ == nullptr && credit_session_ == nullptr) {
    if (watching_) return input.size();
    const std::string_view rest = input.substr(used);
    if (held_) {
      // Goes on whether there is room or not: it may have the upload turn of its lane, for which others wait.
      rebase(rest.data());
    } else {
      if (replies_.size() >= kMaxPlaces || output_.size() > kMaxOutput) {
        waiting_for_room_ = true;
        break;
      }
      if (upload_ != nullptr && !upload_->is_collecting() &&
          rest.size() < std::min<size_t>({upload_->left(), upload_->max_part(), kWorthSending}))
        break;
      step_ = parser_.next(rest, command_);
      if (step_.event == Event::kNeedMore) {
        used += step_.consumed;
        break;
      }
      held_base_ = rest.data();
    }
    held_ = !act();
    if (held_) {
      // What a value's part has sent already is done with, although its event is not.
      if (step_.event == Event::kValuePart) {
        const size_t sent = step_.consumed - command_.value.size();
        step_.consumed -= sent;
        held_base_ += sent;
        used += sent;
      }
      break;
    }
    used += step_.consumed;
  }
  return used;
}

// The input has moved: so have the command's views.
void Dispatcher::rebase(const char* base) {
  const ptrdiff_t moved = base - held_base_;
  held_base_ = base;
  if (moved == 0) return;
  const auto shift = [this, moved](std::string_view& view) {
    const bool is_own = view.data() >= command_.own && view.data() < command_.own + Command::kOwnBytes;
    if (!view.empty() && !is_own) view = std::string_view(view.data() + moved, view.size());
  };
  shift(command_.key);
  shift(command_.value);
  shift(command_.echo);
  for (uint8_t i = 0; i < command_.argument_count && i < Command::kMaxArguments; ++i) shift(command_.arguments[i]);
}

// A request is over and done with, but for its answer. Returns `done`: one that is asked again counts when it is acted
// on.
bool Dispatcher::counted(bool done) const {
  if (done) counters_.requests.count[kRequestKindOf[static_cast<size_t>(command_.kind)]].add();
  return done;
}

// Acts on step_ and command_. False: not now; ask again with the same.
bool Dispatcher::act() {
  switch (step_.event) {
    case Event::kKey:
      return on_key();
    case Event::kEndOfKeys:
      replies_.push_text(memcache::kEnd, command_number_);
      if (++command_number_ == 0) command_number_ = 1;
      return counted(true);
    case Event::kCommand:
      return counted(on_command());
    case Event::kValueBegin:
      return on_value_begin();
    case Event::kValuePart:
      return on_value_part();
    case Event::kValueEnd:
      return counted(on_value_end());
    case Event::kError:
      replies_.push_bytes(command_.error);
      if (++command_number_ == 0) command_number_ = 1;
      return true;
    case Event::kClose:
      if (!command_.error.empty()) replies_.push_bytes(command_.error);
      closing_ = true;
      return true;
    case Event::kNeedMore:
      return true;
  }
  return true;
}

// --- retrievals
// ----------------------------------------------------------------------------------------------------------

bool Dispatcher::on_key() {
  const pool::Route target = router_.route(command_.key);
  const bool is_classic = command_.dialect == memcache::Dialect::kClassic;
  if (target.session == nullptr) {
    if (is_classic) {
      replies_.push_failure(memcache::kBackendUnavailable, command_number_);
    } else {
      counted(true);
      answer(ResultCode::kSessionLost);
    }
    return true;
  }
  Op op = memcache::to_op(command_);
  op.hash = target.hash;
  if (replies_.must_wait(target.hash, changes_something(op))) return false;
  // A value that is being touched may be gone before its chunks are asked for.
  if (op.options & op::kTouch) op.options |= op::kPin;
  Reply* reply = new_reply(op.options);
  reply->is_key = true;
  reply->get_exptime = op.exptime;
  if (is_classic) {
    reply->command = command_number_;
    reply->asked_ns = 0;  // END's place tells
  }
  reply->hash = target.hash;
  reply->session = target.session;
  return is_classic ? append(target, op, reply) : counted(append(target, op, reply));
}

// --- commands
// ------------------------------------------------------------------------------------------------------------

bool Dispatcher::on_command() {
  if (memcache::needs_store(command_.kind) && command_.kind != CommandKind::kFlushAll) return on_store_command();
  return on_control();
}

bool Dispatcher::on_store_command() {
  if (upload_ != nullptr) return send_whole_value();
  const pool::Route target = router_.route(command_.key);
  if (target.session == nullptr) {
    answer(ResultCode::kSessionLost);
    return true;
  }
  Op op = memcache::to_op(command_);
  op.hash = target.hash;
  if (replies_.must_wait(target.hash, changes_something(op))) return false;
  want_to_know(op);
  if (target.session->lane_of(target.hash).fits(op)) return append(target, op, new_reply(op.options));
  start_upload(target, op);
  return send_whole_value();
}

// A value that came whole but does not fit a slot of this backend: as an upload, of which it is the only piece.
bool Dispatcher::send_whole_value() {
  command_.value.remove_prefix(upload_->send(command_.value));
  if (!command_.value.empty()) return hold_for_credit(upload_->session());
  return commit_upload();
}

void Dispatcher::start_upload(const pool::Route& target, const Op& op) {
  upload_ = new ValueUpload(*target.session, op, command_.value_length, next_upload_id_++);
  memcache::ask(command_, op.options, upload_question_);
  upload_observed_ = stats_.admin.observes_items() ? note(command_) : nullptr;
}

// What is said of a change to those who watch is more than its client asks for; what becomes of it is the same.
void Dispatcher::want_to_know(Op& op) const {
  if (!stats_.admin.observes_items()) [[likely]]
    return;
  if (op.code != OpCode::kSet && op.code != OpCode::kDelete) return;
  const bool is_classic_set = op.code == OpCode::kSet && (op.options & op::kWantMeta) == 0;
  op.options |= op::kWantMeta | (is_classic_set ? op::kAsClassic : 0);
}

Reply* Dispatcher::new_reply(uint16_t options) {
  Reply* reply = replies_.make();
  memcache::ask(command_, options, reply->question);
  if (stats_.admin.observes_items()) [[unlikely]]
    reply->observed = note(command_);
  return reply;
}

// Hands the op to its lane and its place to the queue; or neither.
bool Dispatcher::append(const pool::Route& target, const Op& op, Reply* reply) {
  if (!target.session->lane_of(target.hash).append(op, reply, &reply->key)) {
    replies_.discard(reply);
    return hold_for_credit(*target.session);
  }
  reply->is_read = op.code == OpCode::kGet && command_.kind != CommandKind::kTouch;
  replies_.push(reply);
  return true;
}

// The command is answered as if its op had this result.
void Dispatcher::answer(ResultCode code) {
  Op op = memcache::to_op(command_);
  Reply* reply = new_reply(op.options);
  reply->key = command_.key;
  Result result;
  result.code = code;
  replies_.push_answered(reply, result);
}

bool Dispatcher::hold_for_credit(rpc::ClientSession& session) {
  credit_session_ = &session;
  session.wait_for_credit(this);
  return false;
}

void Dispatcher::on_credit() {
  credit_session_ = nullptr;
  observer_.on_resumable();
}

// --- values that are streamed
// --------------------------------------------------------------------------------------------

bool Dispatcher::on_value_begin() {
  if (upload_ != nullptr) return refuse_too_large();
  const pool::Route target = router_.route(command_.key);
  if (target.session == nullptr) {
    answer(ResultCode::kSessionLost);
    parser_.swallow_value();
    return counted(true);
  }
  if (replies_.must_wait(target.hash, true)) return false;
  Op op = memcache::to_op(command_);
  op.hash = target.hash;
  op.value = {};
  want_to_know(op);
  const uint64_t size = op::memcached_item_size(command_.key.size(), command_.client_flags, command_.value_length);
  start_upload(target, op);
  if (size > target.session->grant().item_size_max) return refuse_too_large();
  upload_->collect(collected_values_);
  return true;
}

// The backend is told of the value without its bytes: it refuses, counts that, and (as memcached) drops the item that a
// plain set was to replace. The client's bytes are dropped here.
bool Dispatcher::refuse_too_large() {
  if (!upload_->announce()) return hold_for_credit(upload_->session());
  if (!commit_upload()) return false;
  parser_.swallow_value();
  return counted(true);
}

bool Dispatcher::on_value_part() {
  if (upload_->is_collecting()) {
    upload_->add(command_.value);
    return true;
  }
  const size_t sent = upload_->send(command_.value);
  command_.value.remove_prefix(sent);
  return command_.value.empty() || hold_for_credit(upload_->session());
}

bool Dispatcher::on_value_end() {
  if (!command_.terminator_ok) {
    upload_->abandon();
    upload_ = nullptr;
    if (!command_.noreply) replies_.push_text(memcache::kBadDataChunk);
    return true;
  }
  if (upload_->is_collecting() && !upload_->send_collected()) return hold_for_credit(upload_->session());
  return commit_upload();
}

bool Dispatcher::commit_upload() {
  if (upload_->failure() != ResultCode::kOk) {
    upload_->abandon();
    upload_ = nullptr;
    Result result;
    result.code = ResultCode::kSessionLost;
    Reply* reply = replies_.make();
    reply->question = upload_question_;
    replies_.push_answered(reply, result);
    return true;
  }
  Reply* reply = replies_.make();
  reply->question = upload_question_;
  if (!upload_->commit(reply)) {
    replies_.discard(reply);
    return hold_for_credit(upload_->session());
  }
  reply->observed = std::move(upload_observed_);
  replies_.push(reply);
  upload_->release();
  upload_ = nullptr;
  return true;
}

}  // namespace egret::proxy
