#include "transport/verbs_common.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>

#include "base/text.h"

namespace egret::transport::verbs {

using base::Expected;
using base::Status;

namespace {

std::string address_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  }
  return text;
}

}  // namespace

Status verbs_error(const std::string& what, int error_number) {
  Status plain = Status::system_error(what, error_number);
  switch (error_number) {
    case ENOMEM:
      return Status::error(
          plain.message() +
          " (memory that may be pinned is limited: raise RLIMIT_MEMLOCK, systemd LimitMEMLOCK=infinity)");
    case ENODEV:
    case ENOENT:
      return Status::error(plain.message() + " (is there an RDMA device, and /dev/infiniband/rdma_cm? see --doctor)");
    case EPERM:
    case EACCES:
      return Status::error(plain.message() + " (may this user open /dev/infiniband/*? see --doctor)");
    default:
      return plain;
  }
}

Status unblock(int fd) {
  if (::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) return Status::system_error("fcntl", errno);
  return Status::ok();
}

Expected<EventChannel> make_event_channel() {
  EventChannel channel(::rdma_create_event_channel());
  if (channel == nullptr) return verbs_error("cannot open an rdma_cm event channel", errno);
  if (Status done = unblock(channel->fd); !done) return done;
  return channel;
}

Status PinnedMemory::create(ibv_pd* domain, size_t bytes, int access) {
  auto pages = device::Slabs::of_process().take(bytes, device::numa_node_of(domain->context->device->ibdev_path));
  if (!pages) return pages.status();
  pages_ = std::move(pages.value());
  size_ = bytes;
  registration_.reset(::ibv_reg_mr(domain, pages_.data(), size_, access));
  if (registration_ == nullptr) return verbs_error("cannot register " + std::to_string(bytes) + " bytes", errno);
  return Status::ok();
}

Expected<HostPort> parse_host_port(const std::string& text, const std::string& scheme) {
  auto parsed = base::parse_host_port(text);
  if (!parsed || parsed->port == 0) {
    return Status::error("expected " + scheme + ":HOST:PORT, got \"" + scheme + ":" + text + "\"");
  }
  if (const std::string fault = base::host_fault(parsed->host); !fault.empty()) {
    return Status::error(scheme + ":" + text + ": " + fault);
  }
  return HostPort{std::move(parsed->host), std::to_string(parsed->port)};
}

Expected<AddressInfo> resolve(const HostPort& at, Resolve how) {
  const bool passive = how == Resolve::kListen;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : how == Resolve::kAddress ? AI_NUMERICHOST : 0);
  const bool any = passive && at.host == "*";
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(any ? nullptr : at.host.c_str(), at.port.c_str(), &hints, &found);
  if (error != 0) return Status::error("cannot resolve " + at.host + ": " + ::gai_strerror(error));
  return AddressInfo(found);
}

std::string peer_host(const rdma_cm_id* id) {
  return address_text(&id->route.addr.dst_addr);
}

std::string peer_name(const rdma_cm_id* id) {
  const sockaddr* peer = &id->route.addr.dst_addr;
  const in_port_t port = peer->sa_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(peer)->sin6_port
                                                     : reinterpret_cast<const sockaddr_in*>(peer)->sin_port;
  return address_text(peer) + " port " + std::to_string(ntohs(port));
}

void make_fork_safe() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::setenv("RDMAV_HUGEPAGES_SAFE", "1", 0);
    if (::ibv_is_fork_initialized() != IBV_FORK_UNNEEDED) ::ibv_fork_init();
  });
}

}  // namespace egret::transport::verbs
