// Both ends of a shm endpoint in one process, and what its tests look at.
#pragma once

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/slot_copy.h"
#include "base/unique_fd.h"
#include "transport/address.h"
#include "transport/shm_common.h"
#include "transport/transport.h"

namespace egret::transport {

inline constexpr RegionShape kShape{.lanes = 3,
                                    .request_bytes = 3 * 64 + 3 * 2048,
                                    .response_bytes = 3 * 2048,
                                    .reply_bytes = 1024,
                                    .has_wake_timers = true};

// A name that no other test uses at the same time.
inline std::string fresh_name() {
  static int count = 0;
  return "@egret-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

inline bool is_readable(int fd, int timeout_ms = 0) {
  pollfd wanted{fd, POLLIN, 0};
  return ::poll(&wanted, 1, timeout_ms) > 0;
}

inline std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// One frame as text; "" when there is none, "error: ..." when the peer is gone.
inline std::string next_frame(ControlChannel& channel, size_t room = 512) {
  std::vector<std::byte> frame(room);
  size_t length = 0;
  if (const base::Status received = channel.receive_frame(frame, length); !received)
    return "error: " + received.message();
  return std::string(reinterpret_cast<const char*>(frame.data()), length);
}

// Waits on a descriptor as an event loop does: edge-triggered, and nobody ever reads it.
class EdgeWaiter {
 public:
  explicit EdgeWaiter(int fd) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    REQUIRE(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0);
  }
  bool wakes(int timeout_ms = 0) {
    epoll_event event{};
    return ::epoll_wait(epoll_.get(), &event, 1, timeout_ms) == 1;
  }

 private:
  base::UniqueFd epoll_;
};

struct Pair {
  explicit Pair(const ListenOptions& options = {}) : name(fresh_name()) {
    auto listening = listen("shm:" + name, options);
    REQUIRE_MESSAGE(listening.is_ok(), listening.status().message());
    listener = std::move(listening.value());
    auto connected = connect("shm:" + name);
    REQUIRE_MESSAGE(connected.is_ok(), connected.status().message());
    client = std::move(connected.value());
    auto accepted = listener->accept();
    REQUIRE_MESSAGE(accepted.is_ok(), accepted.status().message());
    server = std::move(accepted.value());
    REQUIRE(server != nullptr);
  }

  // The server makes a region and sends it; the client maps it.
  void open(const RegionShape& shape = kShape) {
    base::Status made = server->create_region(shape);
    REQUIRE_MESSAGE(made.is_ok(), made.message());
    REQUIRE(server->send_frame(bytes_of("grant"), true).is_ok());
    REQUIRE(next_frame(*client) == "grant");
    base::Status mapped = client->map_region(shape);
    REQUIRE_MESSAGE(mapped.is_ok(), mapped.message());
  }

  std::string name;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<ServerEndpoint> server;
  std::unique_ptr<ClientEndpoint> client;
};

// A client that speaks to the socket by itself, and so has the descriptors in its hands.
struct RawClient {
  explicit RawClient(Listener& listener, const std::string& name) {
    sockaddr_un address{};
    socklen_t length = 0;
    REQUIRE(shm::to_socket_address(name, address, length).is_ok());
    socket.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
    auto accepted = listener.accept();
    REQUIRE(accepted.is_ok());
    server = std::move(accepted.value());
    REQUIRE(server != nullptr);
  }
  void take_region(const RegionShape& shape = kShape) {
    REQUIRE(server->create_region(shape).is_ok());
    REQUIRE(server->send_frame(bytes_of("grant"), true).is_ok());
    std::array<std::byte, 64> frame{};
    size_t size = 0;
    REQUIRE(shm::receive(socket.get(), frame, size, fds).is_ok());
    REQUIRE(size == 5);
    REQUIRE(fds.size() == shm::kRegionFds);
  }

  base::UniqueFd socket;
  std::unique_ptr<ServerEndpoint> server;
  std::vector<base::UniqueFd> fds;
};

// A folder that goes with the test; anybody may enter.
struct Folder {
  Folder() {
    char name[] = "/tmp/egret-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
    std::filesystem::permissions(path, std::filesystem::perms(0755));
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

inline size_t open_fds() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

// Runs `work` in a child; its exit status, or -1 when a signal ended it.
template <typename Work>
int in_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace egret::transport
