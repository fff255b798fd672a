// An egret-backend of the build: on this host, so over shared memory, or over a network, which is TCP on loopback. It begins with
// an empty store. Where a device is, EGRET_TEST_NETWORK=rdma:HOST takes that instead, and EGRET_TEST_HOST=rdma:HOST instead of shared memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "daemon_process.h"

class BackendProcess : public DaemonProcess {
 public:
  enum class Over : uint8_t { kHost, kNetwork };

  // `more`: options of egret-backend.
  explicit BackendProcess(const std::vector<std::string>& more = {}, Over over = Over::kHost)
      : DaemonProcess("egret-backend"), address_(address_over(over)) {
    std::vector<std::string> options{"listen=" + address_, "admin=", "memory=64MiB", "populate=false", "partitions=2"};
    options.insert(options.end(), more.begin(), more.end());
    use(std::move(options), {"backend"});
    start();
  }

  const std::string& address() const { return address_; }

  static uint16_t free_port() {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    ::close(fd);
    return ntohs(address.sin_port);
  }

 private:
  std::string address_over(Over over) const {
    const char* const given = std::getenv(over == Over::kHost ? "EGRET_TEST_HOST" : "EGRET_TEST_NETWORK");
    if (given == nullptr && over == Over::kHost) return "shm:" + folder() + "/backend";
    return (given != nullptr ? given : "tcp:127.0.0.1") + (":" + std::to_string(free_port()));
  }

  const std::string address_;
};
