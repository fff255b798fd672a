// Keys that must not break a line.
#include <doctest/doctest.h>

#include "memcache/uri.h"

using namespace egret::memcache;

namespace {

std::string shown(std::string_view text) {
  std::string to = "<";
  append_shown(to, text);
  return to;
}

}  // namespace

TEST_CASE("a key that a text command carries is shown as it is") {
  for (const char* key : {"", "user", "a/b?c=%0A", "\xc3\xa9t\xc3\xa9", "!\"#$&'()*+,;<=>@[\\]^`{|}~"}) {
    CAPTURE(key);
    CHECK(!is_binary_key(key));
    CHECK(shown(key) == "<" + std::string(key));
  }
}

TEST_CASE("a key with any byte that ends a line or a word is encoded whole") {
  CHECK(shown("a\r\nEND") == "<a%0D%0AEND");
  CHECK(shown("a b") == "<a%20b");
  CHECK(shown(std::string_view("\0/", 2)) == "<%00%2F");
  CHECK(shown("\x7f") == "<%7F");
  CHECK(shown("\x1b[2J") == "<%1B%5B2J");
  for (int byte = 0; byte < 256; ++byte) {
    const std::string key{'k', static_cast<char>(byte)};
    CAPTURE(byte);
    CHECK(is_binary_key(key) == (byte <= ' ' || byte == 0x7f));
    CHECK(!is_binary_key(shown(key)));
  }
}
