// Any bytes as a binary client's stream.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/binary/binary_parser.h"
#include "parser_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {  // NOLINT(readability-identifier-naming)
  using egret::memcache::BinaryParser;
  using Log = egret::memcache::BasicEventLog<BinaryParser>;
  return egret::memcache::fuzz_parser<BinaryParser>(data, size, [](const Log& whole, const Log& cut, std::string_view) {
    EGRET_CHECK(whole.events() == cut.events());
  });
}
