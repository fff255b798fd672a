// Keys as base64.
#include <string>

#include <doctest/doctest.h>

#include "memcache/text/base64.h"

namespace {

std::string decoded(std::string_view text) {
  std::string out(egret::memcache::max_decoded(text.size()), '?');
  out.resize(egret::memcache::decode_base64(text, out.data()));
  return out;
}

}  // namespace

TEST_CASE("the examples of RFC 4648") {
  CHECK(decoded("Zg==") == "f");
  CHECK(decoded("Zm8=") == "fo");
  CHECK(decoded("Zm9v") == "foo");
  CHECK(decoded("Zm9vYg==") == "foob");
  CHECK(decoded("Zm9vYmE=") == "fooba");
  CHECK(decoded("Zm9vYmFy") == "foobar");
}

TEST_CASE("any byte comes out") {
  using namespace std::string_literals;
  CHECK(decoded("AAEC/f7/") == "\x00\x01\x02\xfd\xfe\xff"s);
}

TEST_CASE("what is no base64 stands for nothing") {
  for (const char* text : {"", "Z", "Zm", "Zm9", "Zm9vY", "Z===", "===="}) CHECK_MESSAGE(decoded(text).empty(), text);
}

TEST_CASE(
    "as memcached does it, characters outside of the alphabet are passed over, and nothing is read after a padding") {
  CHECK(decoded("Zm-9v") == "foo");
  CHECK(decoded("Zg==Zm9v") == "f");
  CHECK(decoded("Zg==Z").empty());
  CHECK(decoded("Zg==Zm9").empty());
  CHECK(decoded("Zg=v").size() == 2);  // padding counts wherever it is
  CHECK(decoded("=Zgv").size() == 2);
}
