// The records of `stats conns`. A connection's worker adds, updates and removes its record while any thread may read
// it: the addresses do not change, the other fields are relaxed atomics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "proxy/report/paged_report.h"

struct sockaddr;

namespace egret::proxy {

// Named after the closest states of memcached.
enum class ConnectionState : uint8_t { kNew, kReading, kValue, kCommand, kWaiting, kWriting, kClosing };

struct ConnectionRecord {
  int fd = -1;
  std::string peer;    // as address_text()
  std::string listen;  // the address that it connected to
  std::atomic<ConnectionState> state{ConnectionState::kNew};
  std::atomic<uint64_t> last_active_ns{0};
};

class ConnectionTable {
 public:
  // No two records of a table have the same descriptor: a connection is removed before its descriptor is closed.
  void add(ConnectionRecord& record) {
    const std::lock_guard lock(mutex_);
    records_.emplace(record.fd, &record);
  }
  void remove(const ConnectionRecord& record) {
    const std::lock_guard lock(mutex_);
    records_.erase(record.fd);
  }
  // Any thread: at most `most` connections whose descriptors are above `fd`, in ascending order. Takes the lock that
  // adding and removing take.
  template <typename Visit>
  void visit_above(int fd, size_t most, const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (auto at = records_.upper_bound(fd); at != records_.end() && most-- > 0; ++at) visit(*at->second);
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, ConnectionRecord*> records_;  // by descriptor
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
std::string peer_address_text(int fd);

struct ProxyState;

// `stats conns`: listeners and connections by descriptor. One that comes or goes meanwhile is in it at most once.
std::unique_ptr<PagedReport> connections_report(const ProxyState& source);

}  // namespace egret::proxy
