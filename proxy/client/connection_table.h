// What `stats conns` tells of each connection: a plain record that the connection's worker writes while any thread may
// read it. The worker adds and removes; the addresses are fixed, the rest are relaxed stores.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace egret::proxy {

// Under the names of memcached's states that come closest.
enum class ConnectionState : uint8_t { kNew, kReading, kValue, kCommand, kWaiting, kWriting, kClosing };

struct ConnectionRecord {
  int fd = -1;
  std::string peer;    // as address_text()
  std::string listen;  // the address it came in by
  std::atomic<ConnectionState> state{ConnectionState::kNew};
  std::atomic<uint64_t> last_active_ns{0};
  size_t index = 0;  // in its table
};

class ConnectionTable {
 public:
  void add(ConnectionRecord& record) {
    const std::lock_guard lock(mutex_);
    record.index = records_.size();
    records_.push_back(&record);
  }
  void remove(const ConnectionRecord& record) {
    const std::lock_guard lock(mutex_);
    records_.back()->index = record.index;
    records_[record.index] = records_.back();
    records_.pop_back();
  }
  // Any thread. Adding and removing wait meanwhile.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const ConnectionRecord* record : records_) visit(*record);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ConnectionRecord*> records_;
};

struct ListenerRecord {
  int fd = -1;
  std::string address;
};

// As memcached writes it: "tcp:127.0.0.1:11211", "tcp6:[::1]:11211", "unix:/run/x"; a client's end of a Unix socket,
// which has no name, is "unix:<AF 1>".
std::string address_text(const sockaddr& address);
// Of that end of the socket; empty if there is none.
std::string local_address_text(int fd);
std::string peer_address_text(int fd);

struct ProxyState;

// The text of `stats conns`, which ends with END.
std::string connections_report(const ProxyState& source);

}  // namespace egret::proxy
