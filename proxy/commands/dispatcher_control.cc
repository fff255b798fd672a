// The commands that are not about one key: those answered here, and the barriers flush_all and stats, which concern
// every backend.
#include <strings.h>

#include "memcache/reply.h"
#include "proxy/client/connection_table.h"
#include "proxy/commands/credentials.h"
#include "proxy/commands/dispatcher.h"
#include "proxy/report/class_report.h"

namespace egret::proxy {

using memcache::CommandKind;
using memcache::binary::Status;
using op::Op;
using op::OpCode;
using op::ResultCode;

namespace {

constexpr std::string_view kSaslMechanism = "PLAIN";
constexpr size_t kMaxSaslMechanism = 32;  // bytes of a mechanism's name that memcached reads
constexpr std::string_view kAuthenticated = "Authenticated";

bool is_same_but_for_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::string_view Dispatcher::failure_line(ResultCode code) {
  if (code == ResultCode::kOk) return {};
  return code == ResultCode::kTimedOut ? memcache::kBackendTimedOut : memcache::kBackendUnavailable;
}

bool Dispatcher::on_control() {
  switch (command_.kind) {
    case CommandKind::kVersion:
      answer_version();
      return true;
    case CommandKind::kVerbosity:
      answer(ResultCode::kOk);
      return true;
    case CommandKind::kNoop:
      if (parser_.is_binary()) {
        answer(ResultCode::kOk);
      } else {
        replies_.push_text(memcache::kMetaNoop);
      }
      return true;
    case CommandKind::kQuit:
      if (parser_.is_binary()) answer(ResultCode::kOk);
      closing_ = told_to_close_ = true;
      return true;
    case CommandKind::kAuthenticate:
      authenticate();
      return true;
    case CommandKind::kSaslMechanisms:
    case CommandKind::kSaslStart:
    case CommandKind::kSaslStep:
      on_sasl();
      return true;
    case CommandKind::kFlushAll:
      return on_flush();
    case CommandKind::kAdmin:
      return on_admin(memcache::parse_admin(command_.echo));
    default:
      return on_stats();
  }
}

void Dispatcher::answer_version() {
  static const std::string line = "VERSION " + std::string(kMemcachedVersion) + "\r\n";
  if (!parser_.is_binary()) return replies_.push_text(line);
  answer_packet(Status::kOk, kMemcachedVersion);
}

// Binary: a body that is no op's result, or the text of a status.
void Dispatcher::answer_packet(Status status, std::string_view body) {
  memcache::Question question;
  memcache::ask(command_, 0, question);
  std::string packet(memcache::max_packet(body), '\0');
  memcache::write_packet(packet.data(), question, status, body);
  replies_.push_bytes(packet);
}

void Dispatcher::refuse(Status status) {
  answer_packet(status, memcache::binary::text_of(status));
}

// --- who the client is

// memcached's ASCII authentication.
void Dispatcher::authenticate() {
  // A reload may have done away with the users that this client was to be one of.
  const Credentials* const users = config_->credentials.get();
  const bool known = judge(users == nullptr || users->know(command_.key, command_.value));
  replies_.push_text(known ? memcache::kStored : memcache::kAuthFailure);
}

// SASL, of which PLAIN is known: in one go, or (as some clients do) with an empty first message.
void Dispatcher::on_sasl() {
  const Credentials* const users = config_->credentials.get();
  if (users == nullptr && !parser_.must_authenticate()) return refuse(Status::kUnknownCommand);
  if (command_.kind == CommandKind::kSaslMechanisms) return answer_packet(Status::kOk, kSaslMechanism);
  if (command_.key.size() > kMaxSaslMechanism) return refuse(Status::kInvalid);
  const bool starts = command_.kind == CommandKind::kSaslStart;
  const bool is_plain = is_same_but_for_case(command_.key, kSaslMechanism);
  if (starts) {
    sasl_started_ = is_plain && command_.value.empty();
    if (sasl_started_) return answer_packet(Status::kAuthContinue, {});
  }
  const bool may_go_on = is_plain && (starts || sasl_started_);
  if (judge(may_go_on && (users == nullptr || users->know_plain(command_.value)))) {
    return answer_packet(Status::kOk, kAuthenticated);
  }
  refuse(Status::kAuthError);
}

bool Dispatcher::judge(bool known) {
  counters_.auth_cmds.add(1);
  if (known) {
    parser_.set_authenticated();
  } else {
    counters_.auth_errors.add(1);
  }
  return known;
}

// --- barriers

// Sent when everything before is answered; nothing after is read until they are.
bool Dispatcher::on_flush() {
  if (!config_->allow_flush) {
    if (parser_.is_binary()) {
      refuse(Status::kAuthError);
    } else if (!command_.noreply) {
      replies_.push_text(memcache::kFlushNotAllowed);
    }
    return true;
  }
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
      answer_report(lanes_report(stats_));
      return true;
    case memcache::StatsTopic::kExtstore:
      answer_report(memcache::kEnd);
      return true;
    case memcache::StatsTopic::kDetail:
      if (!config_->allow_dump) {
        answer_report(memcache::kStatsDetailNotAllowed);
        return true;
      }
      if (!parser_.is_binary()) return on_admin(memcache::parse_detail(command_.arguments[1]));
      if (command_.arguments[1] != "dump") stats_.admin.prefixes.turn(command_.arguments[1] == "on");
      answer_report(command_.arguments[1] == "dump" ? memcache::kEnd : memcache::kOk);
      return true;
    case memcache::StatsTopic::kConns:
      answer_report(connections_report(stats_));
      return true;
    case memcache::StatsTopic::kCachedump:
      if (!parser_.is_binary())
        return on_admin(memcache::parse_cachedump(command_.arguments[1], command_.arguments[2]));
      answer_report(memcache::kEnd);
      return true;
    case memcache::StatsTopic::kUnknown:
      answer_report(request.error);
      return true;
  }
  return true;
}

void Dispatcher::on_fan_out(const FanOut& fan_out) {
  fan_out_ = nullptr;
  observer_.on_resumable();
  if (command_.kind == CommandKind::kFlushAll) return answer(fan_out.failure());
  if (command_.kind == CommandKind::kAdmin) return on_admin_done(fan_out.failure());
  answer_report(report_on(fan_out));
}

// What `stats` says; another text than a report is an error.
void Dispatcher::answer_report(std::string_view text) {
  if (!parser_.is_binary()) return replies_.push_bytes(text);
  const bool is_report = text.starts_with("STAT ") || text == memcache::kEnd;
  if (!is_report && text != memcache::kResetLine && text != memcache::kOk) {
    return refuse(text.starts_with("SERVER_ERROR") ? Status::kTemporary : Status::kNotFound);
  }
  memcache::Question question;
  memcache::ask(command_, 0, question);
  replies_.push_bytes(memcache::stat_packets(question, text));
}

std::string Dispatcher::report_on(const FanOut& fan_out) {
  const std::string failure(failure_line(fan_out.failure()));
  if (stats_topic_ == memcache::StatsTopic::kCheck) {
    if (fan_out.failure() == ResultCode::kUnsupported) return std::string(memcache::kErrorLine);
    return failure.empty() ? check_report(fan_out.answers()) : failure;
  }
  // `stats` alone has something to say when no backend answers.
  const bool is_general = stats_topic_ == memcache::StatsTopic::kGeneral;
  const bool is_reset = stats_topic_ == memcache::StatsTopic::kReset;
  if (fan_out.backends_up() == 0 && !is_general && !is_reset) return failure;
  switch (stats_topic_) {
    case memcache::StatsTopic::kReset:
      reset_stats(stats_);
      return failure.empty() ? std::string(memcache::kResetLine) : failure;
    case memcache::StatsTopic::kSettings:
      return settings_report(stats_, fan_out.stat(op::StatId::kItemSizeMax), fan_out.stat(op::StatId::kLimitMaxbytes),
                             fan_out.stat(op::StatId::kEvicts) != 0);
    case memcache::StatsTopic::kItems:
      return items_report(fan_out.class_stats());
    case memcache::StatsTopic::kSlabs:
      return slabs_report(fan_out.class_stats());
    case memcache::StatsTopic::kSizes:
      return sizes_report(fan_out.class_stats());
    default:
      return general_report(stats_, fan_out);
  }
}

}  // namespace egret::proxy
