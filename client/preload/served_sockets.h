// The sockets of this process that are served by slots, by descriptor; and which are taken over.
//
// Of a socket that connects: its address has a twin (wire/slot_twins.h) where somebody listens whom this process trusts,
// and all backends that it tells of serve us. Everything else is left alone.
//
// Thread: any. Made with the first socket, and never ended: sockets are closed until the last moment of a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/socket.h>
#include <sys/types.h>

#include "base/status.h"
#include "client/config/settings.h"
#include "client/preload/served_socket.h"

namespace egret::preload {

class ServedSockets {
 public:
  static ServedSockets& instance();
  // EGRET_PRELOAD=off: nothing is taken over, nor is anything else changed.
  static bool is_switched_off();
  // So cheap that every call of the program can ask it.
  static bool has_any() { return count.load(std::memory_order_relaxed) != 0; }
  static bool has(int fd) {
    return fd >= 0 && fd < kMostFds && (marks[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
  }

  // Null: it is not served.
  std::shared_ptr<ServedSocket> find(int fd);
  // `fd` has connected to the address, or is about to.
  void take_over(int fd, const sockaddr* address, socklen_t length);
  // It is closed, or served by its connection from now on.
  void forget(int fd);
  void forget_range(unsigned first, unsigned last);
  // Whether the caller is a child of vfork(), which runs in its parent's memory: it must change nothing here.
  bool is_borrowed();
  // The process ends: what was sent is done before.
  void finish_all();

 private:
  static constexpr int kMostFds = 65536;
  static constexpr size_t kMostKept = 16;  // engines, also without a socket: for the next one

  struct LeftAlone {
    std::string place, why;
    uint64_t until_ns = 0;
  };

  ServedSockets();
  void enter_child();
  void forget(int fd, uint64_t until_ns);
  bool is_left_alone(const std::string& place, std::string& why);
  std::shared_ptr<ThreadEngine> engine_for(const std::string& place, std::string& why);
  static base::Expected<client::Settings> settings_for(const std::string& place);
  std::shared_ptr<ThreadEngine> known_engine(const std::string& place);
  void keep(const std::shared_ptr<ThreadEngine>& engine, const std::string& place);
  void log(const std::string& line) const;

  static inline std::atomic<uint32_t> count{0};
  static inline std::atomic<uint64_t> marks[kMostFds / 64]{};  // a bit for each descriptor that is served

  struct Kept {
    std::string place;
    uintptr_t thread;
    std::shared_ptr<ThreadEngine> engine;
  };
  bool is_off_ = false;
  int log_ = -1;
  std::atomic<uint64_t> generation_;
  std::atomic<pid_t> pid_;                                        // of that generation
  std::mutex mutex_;                                              // not held while anybody forks
  std::unordered_map<int, std::shared_ptr<ServedSocket>> by_fd_;  // these: the mutex
  std::vector<Kept> kept_;
  LeftAlone left_alone_;  // the last one
};

}  // namespace egret::preload
