#include "memcache/translate.h"

#include "memcache/admin.h"
#include "memcache/reply.h"

namespace egret::memcache {
namespace {

op::Op keyed(op::OpCode code, const Command& command, uint16_t options = 0) {
  op::Op result;
  result.code = code;
  result.options = options;
  result.key = command.key;
  return result;
}

op::Op read(const Command& command, uint16_t options) {
  op::Op result = keyed(op::OpCode::kGet, command, options);
  if ((options & op::kTouch) != 0) result.exptime = command.exptime;
  return result;
}

op::Op store(const Command& command, op::SetMode mode, uint16_t options = 0) {
  op::Op result = keyed(op::OpCode::kSet, command, options);
  result.mode = mode;
  result.client_flags = command.client_flags;
  result.exptime = command.exptime;
  if ((options & op::kCompareCas) != 0) result.cas = command.cas;
  result.value = command.value;
  return result;
}

op::Op arithmetic(const Command& command, uint16_t options) {
  op::Op result = keyed(op::OpCode::kArith, command, options);
  result.delta = command.delta;
  return result;
}

// Meta and binary commands: the parser has filled in all fields of the op.
op::Op spelled_out(const Command& command) {
  op::Op result = keyed(op::OpCode::kGet, command, command.options);
  result.exptime = command.exptime;
  result.vivify_exptime = command.vivify_exptime;
  result.recache_below = command.recache_below;
  result.cas = command.cas;
  result.new_cas = command.new_cas;
  switch (command.kind) {
    case CommandKind::kIncr:
    case CommandKind::kDecr:
    case CommandKind::kMetaArith:
      result.code = op::OpCode::kArith;
      result.delta = command.delta;
      result.initial = command.initial;
      break;
    case CommandKind::kDelete:
    case CommandKind::kMetaDelete:
      result.code = op::OpCode::kDelete;
      break;
    case CommandKind::kFlushAll:
      result.code = op::OpCode::kFlush;
      result.key = {};
      break;
    default:
      if (!is_storage(command.kind)) break;
      result.code = op::OpCode::kSet;
      result.mode = command.mode;
      result.client_flags = command.client_flags;
      result.value = command.value;
  }
  return result;
}

}  // namespace

bool needs_store(CommandKind kind) {
  return kind <= CommandKind::kFlushAll;
}

op::Op to_op(const Command& command) {
  if (command.dialect != Dialect::kClassic) return spelled_out(command);
  switch (command.kind) {
    case CommandKind::kGet:
      return read(command, 0);
    case CommandKind::kGets:
      return read(command, op::kWantCas);
    case CommandKind::kGat:
      return read(command, op::kTouch);
    case CommandKind::kGats:
      return read(command, op::kTouch | op::kWantCas);
    case CommandKind::kTouch:
      return read(command, op::kTouch | op::kNoValue);
    case CommandKind::kSet:
      return store(command, op::SetMode::kSet);
    case CommandKind::kAdd:
      return store(command, op::SetMode::kAdd);
    case CommandKind::kReplace:
      return store(command, op::SetMode::kReplace);
    case CommandKind::kAppend:
      return store(command, op::SetMode::kAppend);
    case CommandKind::kPrepend:
      return store(command, op::SetMode::kPrepend);
    case CommandKind::kCas:
      return store(command, op::SetMode::kSet, op::kCompareCas);
    case CommandKind::kIncr:
      return arithmetic(command, 0);
    case CommandKind::kDecr:
      return arithmetic(command, op::kDecrement);
    case CommandKind::kDelete:
      return keyed(op::OpCode::kDelete, command);
    case CommandKind::kFlushAll: {
      op::Op result;
      result.code = op::OpCode::kFlush;
      result.exptime = command.exptime;
      return result;
    }
    default:
      break;  // no op, or another dialect's
  }
  return {};
}

StatsRequest stats_request(const Command& command) {
  if (command.argument_count == 0) return {StatsTopic::kGeneral, {}};
  const std::string_view topic = command.arguments[0];
  // Some words may be abbreviated; this is memcached's order of comparing them.
  const auto is = [&](std::string_view name) {
    return command.dialect == Dialect::kBinary ? topic == name : name.starts_with(topic);
  };
  if (is("reset")) return {StatsTopic::kReset, {}};
  if (is("detail")) {
    const bool has_what =
        command.argument_count >= 2 && parse_detail(command.arguments[1]).action != AdminAction::kAnswer;
    return has_what ? StatsRequest{StatsTopic::kDetail, {}} : StatsRequest{StatsTopic::kUnknown, kStatsDetailUsage};
  }
  if (is("settings")) return {StatsTopic::kSettings, {}};
  if (is("cachedump")) {
    if (command.argument_count < 3) return {StatsTopic::kUnknown, kBadCommandLine};
    return {StatsTopic::kCachedump, {}};
  }
  if (is("conns")) return {StatsTopic::kConns, {}};
  if (is("extstore")) return {StatsTopic::kExtstore, {}};
  if (topic == "egret" && command.argument_count > 1 && command.arguments[1] == "check")
    return {StatsTopic::kCheck, {}};
  if (topic == "egret") return {StatsTopic::kEgret, {}};
  if (topic == "items") return {StatsTopic::kItems, {}};
  if (topic == "slabs") return {StatsTopic::kSlabs, {}};
  if (topic == "sizes") return {StatsTopic::kSizes, {}};
  return {StatsTopic::kUnknown, kErrorLine};
}

}  // namespace egret::memcache
