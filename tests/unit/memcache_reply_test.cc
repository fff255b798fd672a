// Text answers: the lines that are written, and the line of each result.
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "memcache/reply.h"

namespace {

using namespace egret;
using namespace egret::memcache;

constexpr uint64_t kMax64 = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kMax32 = std::numeric_limits<uint32_t>::max();

std::string value_header(std::string_view key, uint32_t flags, uint32_t length, const uint64_t* cas) {
  std::string out(max_value_header(key.size()), '?');
  out.resize(static_cast<size_t>(write_value_header(out.data(), key, flags, length, cas) - out.data()));
  return out;
}

std::string number(uint64_t value) {
  char out[kMaxNumberLine];
  return std::string(out, write_number(out, value));
}

}  // namespace

TEST_CASE("a VALUE line carries key, flags, length and, if wanted, the CAS") {
  const uint64_t cas = kMax64;
  CHECK(value_header("a", 0, 0, nullptr) == "VALUE a 0 0\r\n");
  CHECK(value_header("a", 7, 1024, nullptr) == "VALUE a 7 1024\r\n");
  CHECK(value_header("a", 7, 10, &cas) == "VALUE a 7 10 18446744073709551615\r\n");
}

TEST_CASE("the bounds are reached and never passed") {
  const std::string key(250, 'k');
  CHECK(value_header(key, kMax32, kMax32, &kMax64).size() == max_value_header(250));
  CHECK(number(kMax64).size() == kMaxNumberLine);
  std::string stat(max_stat(4), '?');
  CHECK(write_stat(stat.data(), "name", kMax64) == stat.data() + stat.size());
  CHECK(stat == "STAT name 18446744073709551615\r\n");
}

TEST_CASE("numbers and rows of statistics") {
  CHECK(number(0) == "0\r\n");
  CHECK(number(9) == "9\r\n");
  CHECK(number(10) == "10\r\n");
  char out[64];
  CHECK(std::string(out, write_stat(out, "pid", uint64_t{12})) == "STAT pid 12\r\n");
  CHECK(std::string(out, write_stat(out, "version", std::string_view("1.6.18"))) == "STAT version 1.6.18\r\n");
  CHECK(std::string(out, write_stat(out, "empty", std::string_view())) == "STAT empty \r\n");
}
