#include "memcache/translate.h"

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

std::string_view out_of_memory_line(CommandKind kind) {
  if (is_storage(kind)) return kOutOfMemoryStoring;
  return is_retrieval(kind) ? kOutOfMemoryGet : kOutOfMemory;
}

}  // namespace

bool needs_store(CommandKind kind) {
  return kind <= CommandKind::kFlushAll;
}

op::Op to_op(const Command& command) {
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
    case CommandKind::kVersion:
    case CommandKind::kVerbosity:
    case CommandKind::kStats:
    case CommandKind::kQuit:
      break;
  }
  return {};
}

std::string_view reply_line(CommandKind kind, bool noreply, const op::Result& result, ReplyScratch& scratch) {
  if (noreply) return {};
  switch (result.code) {
    case op::ResultCode::kOk:
      return kOk;
    case op::ResultCode::kHit:
      return kTouched;
    case op::ResultCode::kMiss:
      return kNotFound;
    case op::ResultCode::kStored:
      return kStored;
    case op::ResultCode::kNotStored:
      return kNotStored;
    case op::ResultCode::kExists:
      return kExists;
    case op::ResultCode::kDeleted:
      return kDeleted;
    case op::ResultCode::kNumber:
      return {scratch.bytes, static_cast<size_t>(write_number(scratch.bytes, result.number) - scratch.bytes)};
    case op::ResultCode::kNonNumeric:
      return kNonNumeric;
    case op::ResultCode::kTooLarge:
      return kTooLarge;
    case op::ResultCode::kOutOfMemory:
      return out_of_memory_line(kind);
    case op::ResultCode::kSessionLost:
      return kBackendUnavailable;
    case op::ResultCode::kTimedOut:
      return kBackendTimedOut;
    case op::ResultCode::kChanged:
    case op::ResultCode::kNoUpload:
    case op::ResultCode::kUnsupported:
    case op::ResultCode::kInvalid:
    case op::ResultCode::kWrongPartition:
      break;
  }
  return kBackendRefused;
}

std::string_view retrieval_error(const op::Result& result) {
  switch (result.code) {
    case op::ResultCode::kHit:
    case op::ResultCode::kMiss:
      return {};
    case op::ResultCode::kOutOfMemory:
      return kOutOfMemoryGet;
    case op::ResultCode::kSessionLost:
      return kBackendUnavailable;
    case op::ResultCode::kTimedOut:
      return kBackendTimedOut;
    default:
      return kBackendRefused;
  }
}

StatsRequest stats_request(const Command& command) {
  if (command.argument_count == 0) return {StatsTopic::kGeneral, {}};
  const std::string_view topic = command.arguments[0];
  if (topic == "reset") return {StatsTopic::kReset, {}};
  if (topic == "settings") return {StatsTopic::kSettings, {}};
  if (topic == "egret" && command.argument_count > 1 && command.arguments[1] == "check")
    return {StatsTopic::kCheck, {}};
  if (topic == "egret") return {StatsTopic::kEgret, {}};
  if (topic == "items") return {StatsTopic::kItems, {}};
  if (topic == "slabs") return {StatsTopic::kSlabs, {}};
  if (topic == "sizes") return {StatsTopic::kSizes, {}};
  if (topic == "conns") return {StatsTopic::kConns, {}};
  if (topic == "detail") {
    const std::string_view what = command.arguments[1];
    if (command.argument_count >= 2 && (what == "on" || what == "off" || what == "dump"))
      return {StatsTopic::kDetail, {}};
    return {StatsTopic::kUnknown, kStatsDetailUsage};
  }
  if (topic == "cachedump") {
    if (command.argument_count < 3) return {StatsTopic::kUnknown, kBadCommandLine};
    return {StatsTopic::kCachedump, {}};
  }
  return {StatsTopic::kUnknown, kErrorLine};
}

}  // namespace egret::memcache
