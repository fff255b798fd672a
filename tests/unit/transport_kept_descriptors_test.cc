// A library may start no thread that closes what a peer has sent, so such descriptors stay open. A peer that nobody trusts must
// not be able to use up a program's descriptors so.
#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/local/closer.h"
#include "base/local/helper_threads.h"
#include "base/local/peer_socket.h"
#include "base/unique_fd.h"
#include "transport/address.h"

using namespace egret;
using base::UniqueFd;

namespace {

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

struct Pair {
  Pair() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
    ours = UniqueFd(ends[0]);
    peers = UniqueFd(ends[1]);
  }
  // The peer sends so many messages, each with a descriptor or without one.
  void send(int messages, bool with_descriptor) {
    const UniqueFd passed(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    for (int i = 0; i < messages; ++i) {
      char text = 'x';
      iovec piece{&text, 1};
      alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      if (with_descriptor) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        const int fd = passed.get();
        std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
      }
      REQUIRE(::sendmsg(peers.get(), &message, 0) == 1);
    }
  }
  UniqueFd ours, peers;
};

// A peer that sends eight descriptors and goes.
void meet_a_peer_that_sends_descriptors() {
  Pair pair;
  pair.send(8, true);
  pair.peers.reset();
  base::close_peer_socket(std::move(pair.ours));
}

}  // namespace

TEST_CASE(
    "without threads of its own a process keeps one descriptor for each peer that sent some, and soon meets no more") {
  base::allow_helper_threads(false);
  const size_t before = open_descriptors();
  for (const bool peer_goes : {false, true}) {
    Pair pair;
    pair.send(8, false);
    if (peer_goes) pair.peers.reset();
    base::close_peer_socket(std::move(pair.ours));
  }
  CHECK_MESSAGE(open_descriptors() == before, "of peers that sent none it keeps none");
  base::Closer& closer = base::Closer::of_process();
  for (size_t met = 1; met <= base::Closer::kMostKept; ++met) {
    CHECK_FALSE(closer.is_full());
    meet_a_peer_that_sends_descriptors();
    CHECK(open_descriptors() == before + met);
  }
  CHECK(closer.is_full());
  const auto connected = transport::connect("shm:/nowhere/egret.sock", {});
  REQUIRE_FALSE(connected);
  CHECK(connected.message().find("connects to no local peer any more") != std::string::npos);
}
