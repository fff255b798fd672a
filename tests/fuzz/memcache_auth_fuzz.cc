// Any bytes from a text client that has not authenticated.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "memcache/text/auth_parser.h"
#include "parser_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {  // NOLINT(readability-identifier-naming)
  using egret::memcache::AuthParser;
  using Log = egret::memcache::BasicEventLog<AuthParser>;
  return egret::memcache::fuzz_parser<AuthParser>(data, size, [](const Log& whole, const Log& cut, std::string_view) {
    // A line that never ends closes the connection, as soon as so much of it has come.
    if (whole.events() != cut.events()) EGRET_CHECK(whole.closed() || cut.closed());
  });
}
