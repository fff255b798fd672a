// Which descriptors a process inherits, by its environment.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/service/inherited.h"

using namespace egret::base;

namespace {

constexpr pid_t kSelf = 4711;
using Names = std::vector<std::string>;

std::string fault(const char* pid, const char* fds, const char* names) {
  const auto found = inherited_names(pid, fds, names, kSelf);
  return found ? "" : found.message();
}

}  // namespace

TEST_CASE("descriptors are named in their order") {
  CHECK(inherited_names("4711", "3", "tls:unknown:a b", kSelf).value() == Names{"tls", "unknown", "a b"});
  CHECK(inherited_names("4711", "1", "one", kSelf).value() == Names{"one"});
  CHECK(inherited_names("4711", "2", ":", kSelf).value() == Names{"", ""});
}

TEST_CASE("descriptors without names are unknown") {
  CHECK(inherited_names("4711", "2", nullptr, kSelf).value() == Names{"unknown", "unknown"});
}

TEST_CASE("nothing is inherited without the variables, or when another process is meant") {
  CHECK(inherited_names(nullptr, "2", nullptr, kSelf).value().empty());
  CHECK(inherited_names("4711", nullptr, nullptr, kSelf).value().empty());
  CHECK(inherited_names("4712", "2", nullptr, kSelf).value().empty());
  CHECK(inherited_names("4711", "0", "", kSelf).value().empty());
}

TEST_CASE("variables that make no sense are refused") {
  CHECK(fault("me", "1", nullptr) == "LISTEN_PID is no process: \"me\"");
  for (const char* fds : {"", "x", "-1", "1 ", "99999999", "99999999999999999999"}) {
    CHECK(fault("4711", fds, nullptr).starts_with("LISTEN_FDS is no number of descriptors"));
  }
  CHECK(fault("4711", "2", "one").starts_with("LISTEN_FDNAMES names another number"));
  CHECK(fault("4711", "2", "one:two:three").starts_with("LISTEN_FDNAMES names another number"));
}

TEST_CASE("what is taken is taken once") {
  const std::string self = std::to_string(::getpid());
  ::setenv("LISTEN_PID", self.c_str(), 1);
  ::setenv("LISTEN_FDS", "0", 1);
  CHECK(take_inherited().value().empty());
  CHECK(std::getenv("LISTEN_PID") == nullptr);
  CHECK(std::getenv("LISTEN_FDS") == nullptr);
}
