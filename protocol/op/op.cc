#include "op/op.h"

namespace egret::op {

const char* to_string(OpCode code) {
  switch (code) {
    case OpCode::kGet:
      return "get";
    case OpCode::kSet:
      return "set";
    case OpCode::kDelete:
      return "delete";
    case OpCode::kArith:
      return "arith";
    case OpCode::kChunk:
      return "chunk";
    case OpCode::kUpload:
      return "upload";
    case OpCode::kCommit:
      return "commit";
    case OpCode::kAbort:
      return "abort";
    case OpCode::kFlush:
      return "flush";
    case OpCode::kStats:
      return "stats";
    case OpCode::kIterate:
      return "iterate";
    case OpCode::kAdmin:
      return "admin";
    case OpCode::kPing:
      return "ping";
  }
  return "unknown";
}

const char* to_string(ResultCode code) {
  switch (code) {
    case ResultCode::kOk:
      return "ok";
    case ResultCode::kHit:
      return "hit";
    case ResultCode::kMiss:
      return "miss";
    case ResultCode::kStored:
      return "stored";
    case ResultCode::kNotStored:
      return "not stored";
    case ResultCode::kExists:
      return "exists";
    case ResultCode::kDeleted:
      return "deleted";
    case ResultCode::kNumber:
      return "number";
    case ResultCode::kNonNumeric:
      return "non-numeric";
    case ResultCode::kTooLarge:
      return "too large";
    case ResultCode::kOutOfMemory:
      return "out of memory";
    case ResultCode::kChanged:
      return "changed";
    case ResultCode::kNoUpload:
      return "no upload";
    case ResultCode::kUnsupported:
      return "unsupported";
    case ResultCode::kInvalid:
      return "invalid";
    case ResultCode::kWrongPartition:
      return "wrong partition";
    case ResultCode::kForbidden:
      return "forbidden";
    case ResultCode::kSessionLost:
      return "session lost";
    case ResultCode::kTimedOut:
      return "timed out";
    case ResultCode::kNotSent:
      return "not sent";
  }
  return "unknown";
}

}  // namespace egret::op
