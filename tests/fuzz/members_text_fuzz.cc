// Any bytes as a file of members: what is taken can be a pool, is written as text that reads as the same members, and what
// is refused is refused in one line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "discovery/members_text.h"
#include "pool/member.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto members = egret::discovery::parse_members(text, "file");
  if (!members) {
    const std::string& why = members.message();
    EGRET_CHECK(why.starts_with("file:") && why.find_first_of("\r\n") == std::string::npos && why.size() < 1500);
    return 0;
  }
  EGRET_CHECK(egret::pool::check_members(members.value()).is_ok());
  const std::string written = egret::discovery::members_text(text.substr(0, 20), members.value());
  const auto again = egret::discovery::parse_members(written, "copy");
  EGRET_CHECK(again && again.value() == members.value());
  return 0;
}
