#include "proxy/dispatcher.h"

#include <algorithm>

#include "memcache/reply.h"
#include "memcache/translate.h"
#include "op/item_size.h"
#include "proxy/class_report.h"

namespace egret::proxy {

using memcache::Command;
using memcache::CommandKind;
using memcache::Event;
using op::Op;
using op::OpCode;
using op::ResultCode;

namespace {
constexpr size_t kWorthSending =
    8192;  // a streamed value is not sent in parts smaller than this or a slot, but its last

// Empty for kOk.
std::string_view failure_line(ResultCode code) {
  if (code == ResultCode::kOk) return {};
  return code == ResultCode::kTimedOut ? memcache::kBackendTimedOut : memcache::kBackendUnavailable;
}
}  // namespace

Dispatcher::Dispatcher(const memcache::Limits& limits, Router& router, ReplyQueue& replies, OutputQueue& output,
                       const StatsSource& stats, ByteBudget& collected_values, uint32_t& next_upload_id,
                       DispatchObserver& observer)
    : parser_(limits),
      router_(router),
      replies_(replies),
      output_(output),
      stats_(stats),
      collected_values_(collected_values),
      next_upload_id_(next_upload_id),
      observer_(observer) {}

Dispatcher::~Dispatcher() {
  if (credit_session_ != nullptr) credit_session_->stop_waiting(this);
  if (upload_ != nullptr) upload_->abandon();
  if (fan_out_ != nullptr) fan_out_->orphan();
}

// --- the loop over events
// ------------------------------------------------------------------------------------------------

size_t Dispatcher::feed(std::string_view input) {
  size_t used = 0;
  waiting_for_room_ = false;
  while (!closing_ && fan_out_ == nullptr && credit_session_ == nullptr) {
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
  const auto shift = [moved](std::string_view& view) {
    if (!view.empty()) view = std::string_view(view.data() + moved, view.size());
  };
  shift(command_.key);
  shift(command_.value);
  for (uint8_t i = 0; i < command_.argument_count && i < Command::kMaxArguments; ++i) shift(command_.arguments[i]);
}

// Acts on step_ and command_. False: not now; ask again with the same.
bool Dispatcher::act() {
  switch (step_.event) {
    case Event::kKey:
      return on_key();
    case Event::kEndOfKeys:
      replies_.push_text(memcache::kEnd, command_number_);
      if (++command_number_ == 0) command_number_ = 1;
      return true;
    case Event::kCommand:
      return on_command();
    case Event::kValueBegin:
      return on_value_begin();
    case Event::kValuePart:
      return on_value_part();
    case Event::kValueEnd:
      return on_value_end();
    case Event::kError:
      replies_.push_text(command_.error);
      if (++command_number_ == 0) command_number_ = 1;
      return true;
    case Event::kClose:
      if (!command_.error.empty()) replies_.push_text(command_.error);
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
  const Target target = router_.route(command_.key);
  if (target.session == nullptr) {
    replies_.push_failure(memcache::kBackendUnavailable, command_number_);
    return true;
  }
  Op op = memcache::to_op(command_);
  op.hash = target.hash;
  const bool may_expire_it = (op.options & op::kTouch) != 0;
  if (replies_.must_wait(target.hash, may_expire_it)) return false;
  Reply* reply = replies_.make();
  reply->kind = command_.kind;
  reply->is_key = true;
  // A value that is being touched may be gone before its chunks are asked for.
  if (op.options & op::kTouch) op.options |= op::kPin;
  reply->get_options = op.options;
  reply->get_exptime = op.exptime;
  reply->command = command_number_;
  reply->hash = target.hash;
  reply->session = target.session;
  return append(target, op, reply);
}

// --- commands
// ------------------------------------------------------------------------------------------------------------

bool Dispatcher::on_command() {
  switch (command_.kind) {
    case CommandKind::kVersion: {
      static const std::string version = "VERSION " + std::string(kMemcachedVersion) + "\r\n";
      replies_.push_text(version);
      return true;
    }
    case CommandKind::kVerbosity:
      answer(memcache::kOk);
      return true;
    case CommandKind::kQuit:
      closing_ = true;
      return true;
    case CommandKind::kFlushAll:
      return on_flush();
    case CommandKind::kStats:
      return on_stats();
    default:
      return on_store_command();
  }
}

bool Dispatcher::on_store_command() {
  if (upload_ != nullptr) return send_whole_value();
  const Target target = router_.route(command_.key);
  if (target.session == nullptr) {
    answer(memcache::kBackendUnavailable);
    return true;
  }
  if (replies_.must_wait(target.hash, true)) return false;
  Op op = memcache::to_op(command_);
  op.hash = target.hash;
  if (target.session->lane_of(target.hash).fits(op)) return append(target, op, line_reply());
  upload_ = new ValueUpload(*target.session, op, static_cast<uint32_t>(op.value.size()), next_upload_id_++);
  return send_whole_value();
}

// A value that came whole but does not fit a slot of this backend: as an upload, of which it is the only piece.
bool Dispatcher::send_whole_value() {
  command_.value.remove_prefix(upload_->send(command_.value));
  if (!command_.value.empty()) return hold_for_credit(upload_->session());
  return commit_upload();
}

Reply* Dispatcher::line_reply() {
  Reply* reply = replies_.make();
  reply->kind = command_.kind;
  reply->noreply = command_.noreply;
  return reply;
}

// Hands the op to its lane and its place to the queue; or neither.
bool Dispatcher::append(const Target& target, const Op& op, Reply* reply) {
  if (!target.session->lane_of(target.hash).append(op, reply, &reply->key)) {
    replies_.discard(reply);
    return hold_for_credit(*target.session);
  }
  replies_.push(reply);
  return true;
}

void Dispatcher::answer(std::string_view line) {
  if (!command_.noreply) replies_.push_text(line);
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
  const Target target = router_.route(command_.key);
  if (target.session == nullptr) {
    answer(memcache::kBackendUnavailable);
    parser_.swallow_value();
    return true;
  }
  if (replies_.must_wait(target.hash, true)) return false;
  Op op = memcache::to_op(command_);
  op.hash = target.hash;
  op.value = {};
  const uint64_t size = op::memcached_item_size(command_.key.size(), command_.client_flags, command_.value_length);
  upload_ = new ValueUpload(*target.session, op, command_.value_length, next_upload_id_++);
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
  return true;
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
    answer(memcache::kBadDataChunk);
    return true;
  }
  if (upload_->is_collecting() && !upload_->send_collected()) return hold_for_credit(upload_->session());
  return commit_upload();
}

bool Dispatcher::commit_upload() {
  if (upload_->failure() != ResultCode::kOk) {
    upload_->abandon();
    upload_ = nullptr;
    answer(memcache::kBackendUnavailable);
    return true;
  }
  Reply* reply = line_reply();
  if (!upload_->commit(reply)) {
    replies_.discard(reply);
    return hold_for_credit(upload_->session());
  }
  replies_.push(reply);
  upload_->release();
  upload_ = nullptr;
  return true;
}

// --- barriers
// ------------------------------------------------------------------------------------------------------------

// Sent when everything before is answered; nothing after is read until they are.
bool Dispatcher::on_flush() {
  if (!replies_.empty()) return false;
  return start_fan_out(memcache::to_op(command_));
}

bool Dispatcher::start_fan_out(const Op& op) {
  fan_out_ = new FanOut(router_, op, *this);
  fan_out_->start();
  return true;
}

bool Dispatcher::on_stats() {
  if (!replies_.empty()) return false;
  const memcache::StatsRequest request = memcache::stats_request(command_);
  stats_topic_ = request.topic;
  Op op;
  switch (request.topic) {
    case memcache::StatsTopic::kReset:
      op.code = OpCode::kAdmin;
      op.group = static_cast<uint8_t>(op::AdminVerb::kResetStats);
      return start_fan_out(op);
    case memcache::StatsTopic::kCheck:
      op.code = OpCode::kAdmin;
      op.group = static_cast<uint8_t>(op::AdminVerb::kCheck);
      return start_fan_out(op);
    case memcache::StatsTopic::kGeneral:
    case memcache::StatsTopic::kSettings:
      op.code = OpCode::kStats;
      op.group = static_cast<uint8_t>(op::StatGroup::kGeneral);
      return start_fan_out(op);
    case memcache::StatsTopic::kItems:
    case memcache::StatsTopic::kSlabs:
    case memcache::StatsTopic::kSizes:
      op.code = OpCode::kStats;
      op.group = static_cast<uint8_t>(op::StatGroup::kSizeClasses);
      return start_fan_out(op);
    case memcache::StatsTopic::kEgret:
      replies_.push_text(lanes_report(stats_));
      return true;
    case memcache::StatsTopic::kDetail:
      replies_.push_text(command_.argument_count > 1 && command_.arguments[1] == "dump" ? memcache::kEnd
                                                                                        : memcache::kOk);
      return true;
    case memcache::StatsTopic::kConns:
      replies_.push_text(connections_report(stats_));
      return true;
    case memcache::StatsTopic::kCachedump:
      replies_.push_text(memcache::kEnd);
      return true;
    case memcache::StatsTopic::kUnknown:
      replies_.push_text(request.error);
      return true;
  }
  return true;
}

void Dispatcher::on_fan_out(const FanOut& fan_out) {
  fan_out_ = nullptr;
  observer_.on_resumable();
  const std::string_view failure = failure_line(fan_out.failure());
  if (command_.kind == CommandKind::kFlushAll) return answer(failure.empty() ? memcache::kOk : failure);
  if (stats_topic_ == memcache::StatsTopic::kCheck) {
    if (fan_out.failure() == ResultCode::kUnsupported) return replies_.push_text(memcache::kErrorLine);
    return replies_.push_text(failure.empty() ? check_report(fan_out.answers()) : failure);
  }
  // `stats` alone has something to say when no backend answers.
  const bool is_general = stats_topic_ == memcache::StatsTopic::kGeneral;
  const bool is_reset = stats_topic_ == memcache::StatsTopic::kReset;
  if (fan_out.backends_up() == 0 && !is_general && !is_reset) return replies_.push_text(failure);
  switch (stats_topic_) {
    case memcache::StatsTopic::kReset:
      reset_stats(stats_);
      return answer(failure.empty() ? memcache::kResetLine : failure);
    case memcache::StatsTopic::kSettings:
      return replies_.push_text(settings_report(stats_, fan_out.stat(op::StatId::kItemSizeMax),
                                                fan_out.stat(op::StatId::kLimitMaxbytes),
                                                fan_out.stat(op::StatId::kEvicts) != 0));
    case memcache::StatsTopic::kItems:
      return replies_.push_text(items_report(fan_out.class_stats()));
    case memcache::StatsTopic::kSlabs:
      return replies_.push_text(slabs_report(fan_out.class_stats()));
    case memcache::StatsTopic::kSizes:
      return replies_.push_text(sizes_report(fan_out.class_stats()));
    default:
      return replies_.push_text(general_report(stats_, fan_out));
  }
}

}  // namespace egret::proxy
