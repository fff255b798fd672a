// Numbers of the text protocol: C's own strtoull and strtol are the judges, with memcached's rules about what may
// follow.
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
  return well_ended(word, end) && !(static_cast<int64_t>(out) < 0 && word.find('-') != word.npos);
}

bool c_i32(const std::string& word, int32_t& out) {
  char* end = nullptr;
  errno = 0;
  out = static_cast<int32_t>(std::strtol(word.c_str(), &end, 10));
  return well_ended(word, end);
}

void compare(const std::string& word) {
  uint64_t ours = 0;
  uint64_t theirs = 0;
  const bool valid = c_u64(word, theirs);
  CHECK_MESSAGE(parse_u64(word, ours) == valid, word);
  if (valid) CHECK_MESSAGE(ours == theirs, word);
  uint32_t low = 0;
  CHECK_MESSAGE(parse_u32(word, low) == valid, word);
  if (valid) CHECK_MESSAGE(low == static_cast<uint32_t>(theirs), word);
  int32_t our_int = 0;
  int32_t their_int = 0;
  const bool valid_int = c_i32(word, their_int);
  CHECK_MESSAGE(parse_i32(word, our_int) == valid_int, word);
  if (valid_int) CHECK_MESSAGE(our_int == their_int, word);
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

TEST_CASE("any word of these characters is what C says it is") {
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
