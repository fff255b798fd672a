// What is kept of each client for as long as it is connected, also while it is at rest (resting_clients.h). For
// `stats conns` any thread reads it, while the client's worker adds, updates and removes it: the addresses do not change,
// the state and the time are relaxed atomics, and the rest is the worker's alone.
//
// Memory: a hundred bytes a client. Records lie in blocks of their own, so that they do not keep the pages of larger objects
// that have gone (base/slabs.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include <netinet/in.h>

#include "memcache/client_parser.h"
#include "proxy/report/paged_report.h"

namespace egret::proxy {

struct User;

// Named after the closest states of memcached.
enum class ConnectionState : uint8_t { kNew, kReading, kValue, kCommand, kWaiting, kWriting, kClosing };

struct ConnectionRecord {
  ConnectionRecord(int descriptor, uint64_t active_ns);

  const int fd;
  const sockaddr_in6 peer;  // of TCP; of Unix only the family
  std::atomic<ConnectionState> state{ConnectionState::kNew};
  bool may_idle = false;  // idle_timeout does not apply
  bool is_resting = false;
  memcache::ResumeState resume_state{};  // of one at rest: how it goes on; so is `user`
  std::atomic<uint64_t> last_active_ns;
  std::shared_ptr<const User> user{};  // as ClientContext's
};
static_assert(sizeof(ConnectionRecord) == 64);

class ConnectionTable {
 public:
  // No two clients of a table have the same descriptor: one is removed before its descriptor is closed.
  ConnectionRecord& add(int fd, uint64_t active_ns) {
    const std::lock_guard lock(mutex_);
    return const_cast<ConnectionRecord&>(
        *records_.emplace(fd, active_ns).first);  // the order goes by `fd`, which does not change
  }
  void remove(const ConnectionRecord& record) {
    const std::lock_guard lock(mutex_);
    records_.erase(records_.find(record.fd));
  }
  // Any thread: at most `most` connections whose descriptors are above `fd`, in ascending order. Takes the lock that
  // adding and removing take.
  template <typename Visit>
  void visit_above(int fd, size_t most, const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (auto at = records_.upper_bound(fd); at != records_.end() && most-- > 0; ++at) visit(*at);
  }
  // The worker: each client. None is added or removed meanwhile.
  template <typename Visit>
  void visit_all(const Visit& visit) {
    for (const ConnectionRecord& record : records_) visit(const_cast<ConnectionRecord&>(record));
  }

 private:
  struct ByDescriptor {
    using is_transparent = void;
    static int fd(int fd) { return fd; }
    static int fd(const ConnectionRecord& record) { return record.fd; }
    bool operator()(const auto& one, const auto& other) const { return fd(one) < fd(other); }
  };
  static constexpr std::pmr::pool_options kBlocks{.max_blocks_per_chunk = 64, .largest_required_pool_block = 0};

  mutable std::mutex mutex_;
  std::pmr::unsynchronized_pool_resource blocks_{kBlocks};
  std::pmr::set<ConnectionRecord, ByDescriptor> records_{&blocks_};
};

struct ListenerRecord {
  int fd = -1;
  std::string address;
};

// As memcached writes it: "tcp:127.0.0.1:11211", "tcp6:[::1]:11211", "unix:/run/x"; "unix:<AF 1>" for an unnamed Unix
// socket, which is a client's end. A client may bind its end to any path: one that would break a line is encoded.
std::string address_text(const sockaddr& address);
// The text of the socket's own address; empty if it has none.
std::string local_address_text(int fd);
// The text of the other end's.
std::string peer_address_text(int fd);
std::string peer_text(const ConnectionRecord& record);

struct ProxyState;

// `stats conns`: listeners and connections by descriptor. One that comes or goes meanwhile is in it at most once.
std::unique_ptr<PagedReport> connections_report(const ProxyState& source);

}  // namespace egret::proxy
