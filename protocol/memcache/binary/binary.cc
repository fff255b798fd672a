#include "memcache/binary/binary.h"

#include <cstring>

#include "base/check.h"

namespace egret::memcache::binary {

std::string_view text_of(Status status) {
  switch (status) {
    case Status::kOk:
    case Status::kAuthContinue:
      return {};
    case Status::kNotFound:
      return "Not found";
    case Status::kExists:
      return "Data exists for key.";
    case Status::kTooLarge:
      return "Too large.";
    case Status::kInvalid:
      return "Invalid arguments";
    case Status::kNotStored:
      return "Not stored.";
    case Status::kNonNumeric:
      return "Non-numeric server-side value for incr or decr";
    case Status::kAuthError:
      return "Auth failure.";
    case Status::kUnknownCommand:
      return "Unknown command";
    case Status::kOutOfMemory:
      return "Out of memory";
    case Status::kInternal:
      return "Backend refused the request";
    case Status::kTemporary:
      return "Backend unavailable";
  }
  return {};
}

char* write_head(char* out, const Head& head) {
  *out++ = kResponseMagic;
  *out++ = static_cast<char>(head.opcode);
  out = write_big(out, head.key_length);
  *out++ = static_cast<char>(head.extras_length);
  *out++ = 0;
  out = write_big(out, static_cast<uint16_t>(head.status));
  out = write_big(out, head.body_length);
  std::memcpy(out, &head.opaque, sizeof head.opaque);
  return write_big(out + sizeof head.opaque, head.cas);
}

char* write_status(char* out, uint8_t opcode, uint32_t opaque, Status status) {
  const std::string_view text = text_of(status);
  EGRET_DCHECK(kHead + text.size() <= kMaxStatusPacket);
  out = write_head(
      out, {.opcode = opcode, .opaque = opaque, .status = status, .body_length = static_cast<uint32_t>(text.size())});
  if (!text.empty()) std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

}  // namespace egret::memcache::binary
