#include "proxy/commands/barriers.h"

#include "memcache/reply.h"
#include "proxy/client/connection_table.h"
#include "proxy/commands/admin.h"
#include "proxy/commands/control.h"
#include "proxy/commands/keys.h"
#include "proxy/report/class_report.h"
#include "proxy/report/stats_report.h"

namespace egret::proxy {

using memcache::CommandKind;
using memcache::StatsTopic;
using memcache::binary::Status;
using op::Op;
using op::OpCode;
using op::ResultCode;

namespace {

Op admin_op(op::AdminVerb verb) {
  Op op;
  op.code = OpCode::kAdmin;
  op.group = static_cast<uint8_t>(verb);
  return op;
}

Op stats_op(op::StatGroup group) {
  Op op;
  op.code = OpCode::kStats;
  op.group = static_cast<uint8_t>(group);
  return op;
}

}  // namespace

Barriers::~Barriers() {
  if (fan_out_ != nullptr) fan_out_->orphan();
}

Outcome Barriers::flush_all() {
  if (!client_.config->allow_flush) {
    if (client_.parser.is_binary()) {
      refuse(client_, Status::kAuthError);
    } else if (!client_.command.noreply) {
      client_.replies.push_text(memcache::kFlushNotAllowed);
    }
    return Outcome::kDone;
  }
  if (!client_.replies.empty()) return Outcome::kWaitForAnswer;
  if (client_.worker.pool.is_anybody_returning()) return client_.wait_for_return();
  return start(memcache::to_op(client_.command));
}

Outcome Barriers::tell_all(op::AdminVerb verb, uint64_t number) {
  verb_ = verb;
  Op op = admin_op(verb);
  op.value = {reinterpret_cast<const char*>(&number), sizeof number};
  return start(op);
}

// The fan-out may end before this returns.
Outcome Barriers::start(const Op& op) {
  asked_ns_ = client_.worker.proxy.clock->now_ns();
  fan_out_ = new pool::FanOut(client_.worker.pool, op, *this);
  fan_out_->start();
  return Outcome::kRunning;
}

Outcome Barriers::report(std::string_view text) {
  answer_report(client_, text);
  return Outcome::kDone;
}

Outcome Barriers::stats(AdminCommands& admin) {
  if (!client_.replies.empty()) return Outcome::kWaitForAnswer;
  const memcache::StatsRequest request = memcache::stats_request(client_.command);
  topic_ = request.topic;
  switch (request.topic) {
    case StatsTopic::kReset:
      return start(admin_op(op::AdminVerb::kResetStats));
    case StatsTopic::kCheck:
      return start(admin_op(op::AdminVerb::kCheck));
    case StatsTopic::kGeneral:
    case StatsTopic::kSettings:
      return start(stats_op(op::StatGroup::kGeneral));
    case StatsTopic::kItems:
    case StatsTopic::kSlabs:
    case StatsTopic::kSizes:
      return start(stats_op(op::StatGroup::kSizeClasses));
    case StatsTopic::kEgret:
      return admin.begin_report(lanes_report(client_.worker.proxy));
    case StatsTopic::kExtstore:
      return report(memcache::kEnd);
    case StatsTopic::kDetail:
      return detail(admin);
    case StatsTopic::kConns:
      return admin.begin_report(connections_report(client_.worker.proxy));
    case StatsTopic::kCachedump:
      return cachedump(admin);
    case StatsTopic::kUnknown:
      return report(request.error);
  }
  return Outcome::kDone;
}

Outcome Barriers::detail(AdminCommands& admin) {
  if (!client_.config->allow_dump) return report(memcache::kStatsDetailNotAllowed);
  const std::string_view word = client_.command.arguments[1];
  if (!client_.parser.is_binary()) return admin.act(memcache::parse_detail(word), *this);
  if (word != "dump") client_.worker.proxy.admin.prefixes.turn(word == "on");
  return report(word == "dump" ? memcache::kEnd : memcache::kOk);
}

// Class 1 lists small items that are listed in Egret's own size classes, too (Dump). A client that asks for all classes
// in turn, as libmemcached's memcached_dump() does, must not get an item twice.
Outcome Barriers::cachedump(AdminCommands& admin) {
  if (client_.parser.is_binary()) return report(memcache::kEnd);
  auto request = memcache::parse_cachedump(client_.command.arguments[1], client_.command.arguments[2]);
  size_t listed = 0;
  while (listed < request.classes.size() && !request.classes[listed]) ++listed;
  request.without_smallest = listed > 1 && listed == last_listed_ + 1;
  last_listed_ = listed == 1 || request.without_smallest ? listed : 0;
  return admin.act(request, *this);
}

void Barriers::on_fan_out(const pool::FanOut& fan_out) {
  fan_out_ = nullptr;
  client_.observer.on_resumable();
  if (client_.command.kind == CommandKind::kFlushAll) return answer(client_, fan_out.failure());
  if (client_.command.kind == CommandKind::kAdmin) return on_all_told(fan_out.failure());
  answer_report(client_, report_on(fan_out));
}

void Barriers::on_all_told(ResultCode failure) {
  if (failure == ResultCode::kOk) return answer_line(client_, memcache::kOk);
  // If the backend does not allow it, answer as a memcached that was built without debugtime.
  const bool is_refused = failure == ResultCode::kUnsupported || failure == ResultCode::kInvalid;
  if (verb_ == op::AdminVerb::kMoveClock && is_refused) return answer_line(client_, memcache::kErrorLine);
  if (failure == ResultCode::kOutOfMemory) return answer_line(client_, memcache::kLimitImpossible);
  answer_line(client_, failure_line(failure));
}

std::string Barriers::report_on(const pool::FanOut& fan_out) {
  ProxyState& proxy = client_.worker.proxy;
  std::string failure(failure_line(fan_out.failure()));
  if (topic_ == StatsTopic::kCheck) {
    if (fan_out.failure() == ResultCode::kUnsupported) return std::string(memcache::kErrorLine);
    return failure.empty() ? check_report(fan_out.answers()) : failure;
  }
  // Only plain `stats` has rows of its own when no backend answers.
  const bool is_general = topic_ == StatsTopic::kGeneral;
  const bool is_reset = topic_ == StatsTopic::kReset;
  if (fan_out.backends_up() == 0 && !is_general && !is_reset) return failure;
  switch (topic_) {
    case StatsTopic::kReset:
      reset_stats(proxy);
      return failure.empty() ? std::string(memcache::kResetLine) : failure;
    case StatsTopic::kSettings:
      return settings_report(proxy, fan_out.stat(op::StatId::kItemSizeMax), fan_out.stat(op::StatId::kLimitMaxbytes),
                             fan_out.stat(op::StatId::kEvicts) != 0);
    case StatsTopic::kItems:
      return items_report(fan_out.class_stats());
    case StatsTopic::kSlabs:
      return slabs_report(fan_out.class_stats());
    case StatsTopic::kSizes:
      return sizes_report(fan_out.class_stats());
    default:
      return general_report(proxy, fan_out, asked_ns_);
  }
}

}  // namespace egret::proxy
