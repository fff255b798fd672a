// The files of users.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include <crypt.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proxy/users/credentials.h"

namespace {
int hashes_computed = 0;
}

// In place of libcrypt's, which it calls: counts what takes the time of a guess.
extern "C" char* crypt_r(const char* phrase, const char* setting, crypt_data* data) noexcept {
  ++hashes_computed;
  static auto* const computes = reinterpret_cast<decltype(&::crypt_r)>(::dlsym(RTLD_NEXT, "crypt_r"));
  return computes(phrase, setting, data);
}

namespace {

using egret::proxy::Credentials;

// A file that is gone with the test.
struct File {
  explicit File(const std::string& text) : path("/tmp/egret-credentials-" + std::to_string(::getpid())) { write(text); }
  ~File() { std::remove(path.c_str()); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  const std::string path;
};

bool knows(const Credentials& credentials, std::string_view user, std::string_view password) {
  return credentials.judge({user, password}).is_right();
}

std::string complaint(const std::string& text) {
  const File file(text);
  Credentials credentials;
  const std::string message = credentials.load_auth_file(file.path).message();
  return message.substr(std::min(message.size(), file.path.size()));
}

}  // namespace

TEST_CASE("a user is known by name and password, both whole") {
  const File file("foo:bar\nme:pass:word\r\n\n");
  Credentials credentials;
  REQUIRE(credentials.load_auth_file(file.path));
  CHECK(knows(credentials, "foo", "bar"));
  CHECK(knows(credentials, "me", "pass:word"));
  CHECK_FALSE(knows(credentials, "foo", "ba"));
  CHECK_FALSE(knows(credentials, "foo", "barr"));
  CHECK_FALSE(knows(credentials, "foo", "pass:word"));
  CHECK_FALSE(knows(credentials, "fo", "bar"));
  CHECK_FALSE(knows(credentials, "", ""));
}

TEST_CASE("SASL PLAIN: authorization id, user, password") {
  using namespace std::string_literals;
  const File file("foo:bar\n");
  Credentials credentials;
  REQUIRE(credentials.load_auth_file(file.path));
  const auto is_known = [&](const std::string& message) {
    const auto login = egret::proxy::parse_plain(message);
    return login && credentials.judge(*login).is_right();
  };
  CHECK(is_known("\0foo\0bar"s));
  CHECK(is_known("foo\0foo\0bar"s));
  for (const std::string& message :
       {""s, "foo"s, "\0foo"s, "\0foo\0"s, "foo\0bar"s, "\0foo\0bar\0"s, "\0\0"s, "whoever\0foo\0bar"s}) {
    CHECK_FALSE(is_known(message));
  }
}

TEST_CASE("a file that others than its owner and group may use is detected") {
  const File file("foo:bar\n");
  const auto is_open = [&](mode_t mode) {
    REQUIRE(::chmod(file.path.c_str(), mode) == 0);
    Credentials credentials;
    REQUIRE(credentials.load_auth_file(file.path));
    CHECK(credentials.files().at(0).users == 1);
    return credentials.files().at(0).is_open_to_others;
  };
  for (const mode_t mode : {0400, 0640, 0660}) CHECK_FALSE(is_open(mode));
  for (const mode_t mode : {0644, 0602}) CHECK(is_open(mode));
}

TEST_CASE("a file that is wrong is refused, and what was known stays known") {
  CHECK(complaint("foo\n") == ", line 1: expected USER:PASSWORD");
  CHECK(complaint("a:b\n:c\n") == ", line 2: expected USER:PASSWORD");
  CHECK(complaint("a:\n") == ", line 1: expected USER:PASSWORD");
  CHECK(complaint("") == ": no users");
  CHECK(complaint(std::string(70000, 'x') + ":y\n") == ": more than 65536 bytes");
  CHECK(Credentials().load_auth_file("/nonexistent/file").message() ==
        "cannot read /nonexistent/file: No such file or directory");

  const File file("foo:bar\n");
  Credentials credentials;
  REQUIRE(credentials.load_auth_file(file.path));
  file.write("nonsense\n");
  CHECK_FALSE(credentials.load_auth_file(file.path));
  CHECK(knows(credentials, "foo", "bar"));
}

// --- the users file. The hashes are of "secret" and "other", by `openssl passwd -6`.

namespace {

constexpr const char* kSecretHash =
    "$6$egrettests$y6fF.8Cfy2oI7C954LC4aJeD6RZtEw5jXpOXWel3LDqKKRc9b4hERcZb3ici0sXPcEB6OFxH8cKIt0DSLni6e.";
constexpr const char* kOtherHash =
    "$6$egrettests$TI/UOnwQ5McQlrG0ChHDdkiOUv7agqdTx2BbifFd0IWAkee2MkLAN0IrllvptsH75VD.N1dOvYlVSKLrMH16O.";

std::string yaml(const std::string& name, const std::string& hash, const std::string& more) {
  return name + ":\n  password: \"" + hash + "\"\n  " + more + "\n";
}

std::string users_complaint(const std::string& text) {
  const File file(text);
  const std::string message = Credentials().load_users_file(file.path).message();
  return message.substr(std::min(message.size(), file.path.size()));
}

}  // namespace

TEST_CASE("a password of the users file is verified once, and then known") {
  const File file(yaml("anna", kSecretHash, "rights: [read]") +
                  yaml("bert", kOtherHash, "rights: [read, write, admin]"));
  Credentials credentials;
  REQUIRE(credentials.load_users_file(file.path));
  using Verdict = egret::proxy::Judgement::Verdict;
  for (const char* user : {"anna", "bert", "nobody"}) {
    CHECK(credentials.judge({user, "secret"}).verdict == Verdict::kToBeVerified);
  }
  const auto right = credentials.verify({"anna", "secret"});
  REQUIRE(right.is_right());
  CHECK(right.user->name == "anna");
  CHECK(right.user->rights == egret::proxy::kMayRead);
  CHECK(credentials.judge({"anna", "secret"}).user == right.user);
  for (const char* wrong : {"", "Secret", "secret ", "other"}) {
    CHECK_FALSE(credentials.verify({"anna", wrong}).is_right());
    CHECK(credentials.judge({"anna", wrong}).verdict == Verdict::kToBeVerified);
  }
  using namespace std::string_view_literals;
  CHECK_FALSE(credentials.verify({"anna", "secret\0x"sv}).is_right());
  CHECK_FALSE(credentials.verify({"nobody", "secret"}).is_right());  // whose hash is computed for it
  CHECK_FALSE(credentials.verify({"bert", "secret"}).is_right());
  CHECK(credentials.find("bert")->is_unrestricted());
  CHECK(credentials.find("nobody") == nullptr);
}

TEST_CASE("a guess takes one hash, whether there is such a user or not") {
  const File file(yaml("anna", kSecretHash, "rights: [read]") + yaml("bert", kOtherHash, "rights: [read]"));
  Credentials credentials;
  REQUIRE(credentials.load_users_file(file.path));
  for (const char* user : {"anna", "bert", "nobody", ""}) {
    CAPTURE(user);
    hashes_computed = 0;
    CHECK_FALSE(credentials.verify({user, "wrong"}).is_right());
    CHECK(hashes_computed == 1);
  }
}

TEST_CASE("both files at once; nobody stands in both") {
  const File passwords("foo:bar\n");
  Credentials credentials;
  REQUIRE(credentials.load_auth_file(passwords.path));
  passwords.write(yaml("anna", kSecretHash, "rights: read"));
  REQUIRE(credentials.load_users_file(passwords.path));
  CHECK(knows(credentials, "foo", "bar"));
  CHECK(credentials.judge({"foo", "bar"}).user == nullptr);  // everything is permitted
  CHECK_FALSE(credentials.verify({"foo", "secret"}).is_right());
  CHECK(credentials.verify({"anna", "secret"}).is_right());
  CHECK(credentials.files().size() == 2);
  passwords.write(yaml("foo", kSecretHash, "rights: read"));
  CHECK(credentials.load_users_file(passwords.path).message().ends_with(", line 1: foo is in auth_file, too"));
}

TEST_CASE("what is wrong with a users file is said with its line") {
  const std::string good = yaml("anna", kSecretHash, "rights: [read]");
  CHECK(users_complaint(good) == "");
  CHECK(users_complaint("") == ", line 1: expected users, each a name with password and rights");
  CHECK(users_complaint("- anna\n") == ", line 1: expected users, each a name with password and rights");
  CHECK(users_complaint("anna: x\n") == ", line 1: anna: expected password, rights and, if wanted, prefixes and uids");
  CHECK(users_complaint(good + good) == ", line 4: anna: a user of this name is in line 1");
  CHECK(users_complaint(yaml("anna", "plain", "rights: [read]")).starts_with(", line 2: password: expected a hash as"));
  CHECK(users_complaint(yaml("anna", "$1$x$y", "rights: [read]")).find("guessed too easily") != std::string::npos);
  CHECK(users_complaint(yaml("anna", kSecretHash, "rights: [read, fly]")) ==
        ", line 3: expected a list of read, write and admin, got \"fly\"");
  CHECK(users_complaint(yaml("anna", kSecretHash, "rights: []")) ==
        ", line 3: expected a list of read, write and admin");
  CHECK(users_complaint(yaml("anna", kSecretHash, "prefixes: [a]")) == ", line 1: anna: rights is missing");
  CHECK(users_complaint("anna:\n  rights: read\n") == ", line 1: anna: password is missing");
  CHECK(users_complaint(good + "  prefixes: []\n").starts_with(", line 4: expected a list of what keys begin with"));
  CHECK(
      users_complaint(good + "  prefixes: [\"\"]\n").starts_with(", line 4: expected a list of what keys begin with"));
  CHECK(users_complaint(good + "  rights: read\n") == ", line 4: rights: given twice");
  CHECK(users_complaint(good + "  right: read\n") ==
        ", line 4: expected password, rights, prefixes or uids, got \"right\"");
  CHECK(users_complaint("a b:\n  rights: read\n").starts_with(", line 1: expected a name"));
  CHECK(users_complaint("anna: [\n").starts_with(", line "));
  CHECK(Credentials().load_users_file("/nonexistent").message() ==
        "cannot read /nonexistent: No such file or directory");
}
