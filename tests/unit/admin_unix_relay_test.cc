// What a relay carries between a client of a Unix socket and the HTTP library, and when it ends.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/unix_relay.h"

using egret::admin::UnixRelay;
using egret::base::UniqueFd;

namespace {

std::array<UniqueFd, 2> socket_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

struct Relayed {
  egret::events::EventLoop loop;
  UniqueFd client, server;
  std::unique_ptr<UnixRelay> relay;
  int ends = 0;

  Relayed() {
    auto pair = socket_pair();
    client = std::move(pair[0]);
    relay = UnixRelay::begin(loop, std::move(pair[1]), [this](UnixRelay&) {
      ++ends;
      relay.reset();
    });
    REQUIRE(relay != nullptr);
    server = relay->take_server_end();
  }
  void run() {
    for (int i = 0; i < 20; ++i) loop.run_once(false);
  }
  static bool send(const UniqueFd& to, const std::string& text) {
    return ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // What is there; "EOF" behind it if nothing more comes.
  static std::string heard(const UniqueFd& at) {
    std::string text(1 << 20, '\0');
    const ssize_t got = ::recv(at.get(), text.data(), text.size(), 0);
    if (got == 0) return "EOF";
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }
};

bool send_descriptor(const UniqueFd& to, int descriptor) {
  char byte = 'x';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
  return ::sendmsg(to.get(), &message, MSG_NOSIGNAL) == 1;
}

}  // namespace

TEST_CASE("bytes go both ways, also when one side has said all it has to say") {
  Relayed one;
  REQUIRE(Relayed::send(one.client, "GET"));
  one.run();
  CHECK(Relayed::heard(one.server) == "GET");
  REQUIRE(Relayed::send(one.client, " / HTTP/1.1"));
  REQUIRE(::shutdown(one.client.get(), SHUT_WR) == 0);
  one.run();
  CHECK(Relayed::heard(one.server) == " / HTTP/1.1");
  CHECK(Relayed::heard(one.server) == "EOF");
  REQUIRE(Relayed::send(one.server, "200 OK"));
  one.run();
  CHECK(Relayed::heard(one.client) == "200 OK");
  CHECK(one.ends == 0);
  one.server.reset();
  one.run();
  CHECK(one.ends == 1);
  CHECK(Relayed::heard(one.client) == "EOF");
}

TEST_CASE(
    "an answer larger than all buffers is whole for a client that reads late, though the server has closed its end") {
  Relayed one;
  std::string sent, got;
  for (int i = 0; i < 100; ++i) {  // until nothing more fits anywhere
    const std::string piece(10'000, static_cast<char>('a' + i % 26));
    if (!Relayed::send(one.server, piece)) break;
    sent += piece;
    one.run();
  }
  one.server.reset();
  one.run();
  CHECK(one.ends == 0);
  for (std::string piece; piece != "EOF"; piece = Relayed::heard(one.client)) {
    got += piece;
    one.run();
  }
  const bool is_whole = got.substr(0, sent.size()) == sent;
  CHECK(is_whole);
  CHECK(one.ends == 1);
}

TEST_CASE("a client that goes ends it when there is something to tell, or when the server goes, too") {
  Relayed one;
  one.client.reset();
  one.run();
  CHECK(Relayed::heard(one.server) == "EOF");
  REQUIRE(Relayed::send(one.server, "nobody reads this"));
  one.run();
  CHECK(one.ends == 1);
}

TEST_CASE("a client that sends a descriptor is disconnected, and none of it reaches the server") {
  Relayed one;
  const UniqueFd descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(send_descriptor(one.client, descriptor.get()));
  one.run();
  CHECK(one.ends == 1);
  CHECK(Relayed::heard(one.server) == "EOF");
  CHECK(Relayed::heard(one.client) == "EOF");
}

TEST_CASE("what the server has answered before it read all is delivered, and what it leaves at its end, too") {
  Relayed one;
  REQUIRE(Relayed::send(one.server, "431 too long"));
  one.server.reset();
  one.relay->deliver();
  CHECK(Relayed::heard(one.client) == "431 too long");
  Relayed two;
  REQUIRE(Relayed::send(two.server, "431 too long"));
  two.server.reset();
  REQUIRE(Relayed::send(two.client, "more headers"));
  two.run();
  CHECK(two.ends == 1);
  CHECK(Relayed::heard(two.client) == "431 too long");
}
