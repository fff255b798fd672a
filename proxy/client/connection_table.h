// The records of `stats conns`. A connection's worker adds, updates and removes its record while any thread may read
// it: the addresses do not change, the other fields are relaxed atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

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
  size_t index = 0;  // in the table
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
  // Any thread. Takes the lock that adding and removing take.
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

// As memcached writes it: "tcp:127.0.0.1:11211", "tcp6:[::1]:11211", "unix:/run/x"; "unix:<AF 1>" for an unnamed Unix
// socket, which is a client's end.
std::string address_text(const sockaddr& address);
// The text of the socket's own address; empty if it has none.
std::string local_address_text(int fd);
std::string peer_address_text(int fd);

struct ProxyState;

// The text of `stats conns`, which ends with END.
std::string connections_report(const ProxyState& source);

}  // namespace egret::proxy
