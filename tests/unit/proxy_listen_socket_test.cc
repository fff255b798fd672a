// Which socket serves which entry of `listen`: inherited sockets replace those that would be opened.
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proxy/client/listen_socket.h"

using namespace egret::proxy;
using egret::base::InheritedFd;
using egret::base::UniqueFd;

namespace {

const ListenRules kRules{"0700", 16};

UniqueFd bound(const char* host, int type = SOCK_STREAM) {
  UniqueFd fd(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  ::inet_pton(AF_INET, host, &at.sin_addr);
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  return fd;
}

UniqueFd listening(const char* host) {
  UniqueFd fd = bound(host);
  REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}

// [::], for IPv4's clients too.
UniqueFd listening_for_both() {
  UniqueFd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return fd;
  const int off = 0;
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}

struct TemporaryPath {
  std::string path = "/tmp/egret-listen-" + std::to_string(::getpid());
  ~TemporaryPath() { ::unlink(path.c_str()); }
  bool exists() const {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0;
  }
};

UniqueFd listening_at(const std::string& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  REQUIRE(::listen(fd.get(), 1) == 0);
  return fd;
}

ListenSockets inherit(UniqueFd fd, const char* name = "unknown") {
  std::vector<InheritedFd> fds;
  fds.push_back({std::move(fd), name});
  auto sockets = check_inherited(std::move(fds));
  REQUIRE(sockets.is_ok());
  return std::move(sockets.value());
}

std::string fault(UniqueFd fd) {
  std::vector<InheritedFd> fds;
  fds.push_back({std::move(fd), "x"});
  const auto sockets = check_inherited(std::move(fds));
  return sockets ? "" : sockets.message();
}

ListenAddress tcp(const std::string& host, uint16_t port) {
  return {ListenAddress::Kind::kTcp, host, port};
}

}  // namespace

TEST_CASE("an inherited socket takes the place of the entry with its address, as what the entry says") {
  ListenSockets pool = inherit(listening("127.0.0.1"));
  const int fd = pool[0].fd.get();
  ListenAddress entry = pool[0].address;
  CHECK(entry.to_string().starts_with("tcp:127.0.0.1:"));
  entry.kind = ListenAddress::Kind::kTls;
  const auto sockets = open_sockets(std::vector{entry}, kRules, pool);
  REQUIRE(sockets.is_ok());
  REQUIRE(sockets.value().size() == 1);
  CHECK(sockets.value()[0].fd.get() == fd);
  CHECK(sockets.value()[0].is_inherited);
  CHECK(sockets.value()[0].address.is_tls());
  CHECK(pool.empty());
}

TEST_CASE("an inherited socket that no entry names is left over, and does not block") {
  ListenSockets pool = inherit(listening("127.0.0.1"), "tls");
  CHECK(pool[0].address.is_tls());
  CHECK((::fcntl(pool[0].fd.get(), F_GETFL) & O_NONBLOCK) != 0);
  const auto sockets = open_sockets(std::vector{tcp("127.0.0.1", 0)}, kRules, pool);
  REQUIRE(sockets.is_ok());
  REQUIRE(sockets.value().size() == 1);
  CHECK(!sockets.value()[0].is_inherited);
  CHECK(pool.size() == 1);
}

TEST_CASE("another host with the same port is another address") {
  ListenSockets pool = inherit(listening("127.0.0.1"));
  const auto sockets = open_sockets(std::vector{tcp("127.0.0.2", pool[0].address.port)}, kRules, pool);
  REQUIRE(sockets.is_ok());
  CHECK(pool.size() == 1);
}

TEST_CASE("an inherited socket of both families serves every address") {
  UniqueFd both = listening_for_both();
  if (!both.is_open()) return;  // no IPv6 here
  ListenSockets pool = inherit(std::move(both));
  const auto sockets = open_sockets(std::vector{tcp("*", pool[0].address.port)}, kRules, pool);
  REQUIRE_MESSAGE(sockets.is_ok(), sockets.status().message());
  CHECK(sockets.value().size() == 1);
  CHECK(pool.empty());
}

TEST_CASE("after a failure the pool is what it was") {
  const UniqueFd taken = listening("127.0.0.1");
  ListenSockets others = inherit(UniqueFd(::dup(taken.get())));
  const ListenAddress in_use = others[0].address;
  ListenSockets pool = inherit(listening("127.0.0.1"));
  const ListenAddress ours = pool[0].address;
  ListenAddress as_tls = ours;
  as_tls.kind = ListenAddress::Kind::kTls;
  const auto sockets = open_sockets(std::vector{as_tls, in_use}, kRules, pool);
  CHECK(!sockets.is_ok());
  CHECK(sockets.status().message().find("Address already in use") != std::string::npos);
  REQUIRE(pool.size() == 1);
  CHECK(pool[0].address.to_string() == ours.to_string());
}

TEST_CASE("the path of an inherited Unix socket stays; our own is removed") {
  const TemporaryPath at;
  const ListenAddress entry{ListenAddress::Kind::kUnix, at.path, 0};
  SUBCASE("inherited") {
    ListenSockets pool = inherit(listening_at(at.path));
    auto sockets = open_sockets(std::vector{entry}, kRules, pool);
    REQUIRE(sockets.is_ok());
    CHECK(sockets.value()[0].is_inherited);
    sockets.value()[0].close();
    CHECK(at.exists());
  }
  SUBCASE("our own") {
    ListenSockets none;
    auto sockets = open_sockets(std::vector{entry}, kRules, none);
    REQUIRE(sockets.is_ok());
    CHECK(at.exists());
    sockets.value()[0].close();
    CHECK(!at.exists());
  }
}

TEST_CASE("what does not listen for streams is refused, and it says what is wrong") {
  CHECK(fault(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))).ends_with("is no socket"));
  CHECK(fault(bound("127.0.0.1", SOCK_DGRAM)).ends_with("is no stream socket"));
  CHECK(fault(bound("127.0.0.1")).ends_with("does not listen"));
  CHECK(fault(bound("127.0.0.1")).starts_with("descriptor "));
}
