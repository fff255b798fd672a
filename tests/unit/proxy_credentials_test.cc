// The file of users.
#include <cstdio>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/users/credentials.h"

namespace {

using egret::proxy::Credentials;

// A file that is gone with the test.
struct File {
  explicit File(const std::string& text) : path("/tmp/egret-credentials-" + std::to_string(::getpid())) { write(text); }
  ~File() { std::remove(path.c_str()); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  const std::string path;
};

std::string complaint(const std::string& text) {
  const File file(text);
  Credentials credentials(file.path);
  const std::string message = credentials.load().message();
  return message.substr(std::min(message.size(), file.path.size()));
}

}  // namespace

TEST_CASE("a user is known by name and password, both whole") {
  const File file("foo:bar\nme:pass:word\r\n\n");
  Credentials credentials(file.path);
  REQUIRE(credentials.load());
  CHECK(credentials.know("foo", "bar"));
  CHECK(credentials.know("me", "pass:word"));
  CHECK_FALSE(credentials.know("foo", "ba"));
  CHECK_FALSE(credentials.know("foo", "barr"));
  CHECK_FALSE(credentials.know("foo", "pass:word"));
  CHECK_FALSE(credentials.know("fo", "bar"));
  CHECK_FALSE(credentials.know("", ""));
}

TEST_CASE("SASL PLAIN: authorization id, user, password") {
  using namespace std::string_literals;
  const File file("foo:bar\n");
  Credentials credentials(file.path);
  REQUIRE(credentials.load());
  const auto knows = [&](const std::string& message) {
    const auto login = egret::proxy::parse_plain(message);
    return login && credentials.know(login->user, login->password);
  };
  CHECK(knows("\0foo\0bar"s));
  CHECK(knows("foo\0foo\0bar"s));
  for (const std::string& message :
       {""s, "foo"s, "\0foo"s, "\0foo\0"s, "foo\0bar"s, "\0foo\0bar\0"s, "\0\0"s, "whoever\0foo\0bar"s}) {
    CHECK_FALSE(knows(message));
  }
}

TEST_CASE("a file that others than its owner and group may use is detected") {
  const File file("foo:bar\n");
  Credentials credentials(file.path);
  for (const mode_t mode : {0400, 0640, 0660}) {
    REQUIRE(::chmod(file.path.c_str(), mode) == 0);
    REQUIRE(credentials.load());
    CHECK_FALSE(credentials.is_open_to_others());
  }
  for (const mode_t mode : {0644, 0602}) {
    REQUIRE(::chmod(file.path.c_str(), mode) == 0);
    REQUIRE(credentials.load());
    CHECK(credentials.is_open_to_others());
  }
  CHECK(credentials.user_count() == 1);
}

TEST_CASE("a file that is wrong is refused, and what was known stays known") {
  CHECK(complaint("foo\n") == ", line 1: expected USER:PASSWORD");
  CHECK(complaint("a:b\n:c\n") == ", line 2: expected USER:PASSWORD");
  CHECK(complaint("a:\n") == ", line 1: expected USER:PASSWORD");
  CHECK(complaint("") == ": no users");
  CHECK(complaint(std::string(70000, 'x') + ":y\n") == ": more than 65536 bytes");
  Credentials absent("/nonexistent/file");
  CHECK(absent.load().message() == "cannot read /nonexistent/file: No such file or directory");

  const File file("foo:bar\n");
  Credentials credentials(file.path);
  REQUIRE(credentials.load());
  file.write("nonsense\n");
  CHECK_FALSE(credentials.load());
  CHECK(credentials.know("foo", "bar"));
  file.write("new:one\n");
  CHECK(credentials.load());
  CHECK(credentials.know("new", "one"));
  CHECK_FALSE(credentials.know("foo", "bar"));
}
