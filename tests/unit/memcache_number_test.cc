// Numbers of the text protocol. Those that memcached reads as C does are compared with C's strtoull and strtol, with
// memcached's rules about what may follow.
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include <doctest/doctest.h>

#include "memcache/number.h"

namespace {

using namespace egret::memcache;

bool well_ended(const std::string& word, const char* end) {
  return errno != ERANGE && end != word.c_str() &&
         (*end == '\0' || std::isspace(static_cast<unsigned char>(*end)) != 0);
}

bool c_u64(const std::string& word, uint64_t& out) {
  char* end = nullptr;
  errno = 0;
  out = std::strtoull(word.c_str(), &end, 10);
  return well_ended(word, end) &&
         !(static_cast<int64_t>(out) < 0 &&
           std::string_view(word.c_str(), static_cast<size_t>(end - word.c_str())).find('-') != word.npos);
}

bool c_i32(const std::string& word, int32_t& out) {
  char* end = nullptr;
  errno = 0;
  out = static_cast<int32_t>(std::strtol(word.c_str(), &end, 10));
  return well_ended(word, end);
}

void compare(const std::string& word) {
  uint64_t theirs = 0;
  const bool valid = c_u64(word, theirs);
  uint32_t low = 0;
  CHECK_MESSAGE(parse_c_u32(word, low) == valid, word);
  if (valid) CHECK_MESSAGE(low == static_cast<uint32_t>(theirs), word);
  int32_t our_int = 0;
  int32_t their_int = 0;
  const bool valid_int = c_i32(word, their_int);
  CHECK_MESSAGE(parse_c_i32(word, our_int) == valid_int, word);
  if (valid_int) CHECK_MESSAGE(our_int == their_int, word);
}

template <typename Number>
bool reads(bool (*parse)(std::string_view, Number&), std::string_view word, Number expected) {
  Number number = 0;
  return parse(word, number) && number == expected;
}

template <typename Number>
bool refuses(bool (*parse)(std::string_view, Number&), std::string_view word) {
  Number number = 77;
  return !parse(word, number) && number == 77;
}

}  // namespace

TEST_CASE("numbers at the edges") {
  for (const char* word : {"0",
                           "1",
                           "00",
                           "-0",
                           "+0",
                           "-1",
                           "+1",
                           "--1",
                           "+-1",
                           "",
                           "-",
                           "+",
                           "a",
                           "1a",
                           "1\t",
                           "\t1",
                           "1\va",
                           "\f\r-5",
                           "999999999999999999",
                           "1000000000000000000",
                           "9223372036854775807",
                           "9223372036854775808",
                           "-9223372036854775808",
                           "-9223372036854775809",
                           "18446744073709551615",
                           "18446744073709551616",
                           "-18446744073709551615",
                           "-18446744073709551616",
                           "2147483647",
                           "2147483648",
                           "4294967295",
                           "4294967296",
                           "00000000000000000000000000000000000007",
                           "18446744073709551615\t-"}) {
    compare(word);
  }
}

TEST_CASE("any word of these characters is the number that C reads") {
  std::mt19937 random(1);
  const std::string characters = "0123456789999-+\t\r a";
  for (int i = 0; i < 20000; ++i) {
    std::string word(random() % 24, '?');
    for (char& c : word) {
      do c = characters[random() % characters.size()];
      while (c == ' ');
    }
    compare(word);
  }
}

TEST_CASE("elsewhere a number is digits, which fit") {
  CHECK(reads<uint64_t>(parse_u64, "18446744073709551615", UINT64_MAX));
  CHECK(reads<uint64_t>(parse_u64, "0000000000000000000007", 7));
  CHECK(reads<uint32_t>(parse_u32, "4294967295", UINT32_MAX));
  CHECK(reads<uint32_t>(parse_u32, "00000000007", 7));
  CHECK(reads<int32_t>(parse_i32, "2147483647", INT32_MAX));
  CHECK(reads<int32_t>(parse_i32, "-2147483648", INT32_MIN));
  CHECK(reads<int32_t>(parse_i32, "-0", 0));
  CHECK(reads<int32_t>(parse_i32, "-", 0));
  for (const char* word :
       {"", "-", "-1", "+1", "1x", "x", "1\t", "\t1", "1.0", "18446744073709551616", "00000000000000000000007"}) {
    CHECK_MESSAGE(refuses<uint64_t>(parse_u64, word), word);
    CHECK_MESSAGE(refuses<uint32_t>(parse_u32, word), word);
  }
  for (const char* word : {"4294967296", "000000000007"}) CHECK_MESSAGE(refuses<uint32_t>(parse_u32, word), word);
  for (const char* word : {"", "+1", "--1", "1x", "1\t", "2147483648", "-2147483649", "000000000007"})
    CHECK_MESSAGE(refuses<int32_t>(parse_i32, word), word);
}
