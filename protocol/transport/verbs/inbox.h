// Where the completions of one session wait, which a completion queue that several sessions share has given (queues.h).
//
//   handshake   the polling thread ─ put ─▶ under a mutex, told by a Notifier ─ take_early ─▶ the thread that sets up
//   data        the polling thread ─ put ─▶ a list ─ pop ─▶ the endpoint, on the same thread; its listener is told
//
// The polling thread has a reference of its own, so an endpoint may end on another thread at any moment: what comes then is
// dropped. There are never more completions than the session has work requests posted, so the session's own limits bound
// what waits here; what it has not taken it cannot receive again, and so a session that is sent much keeps no other waiting.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <infiniband/verbs.h>

#include "transport/device/notifier.h"
#include "transport/transport.h"

namespace egret::transport::verbs {

// Of a work completion, what is looked at.
struct Received {
  uint64_t id = 0;  // work_id.h
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  uint32_t immediate = 0;  // as it came
  uint32_t bytes = 0;
};

class Inbox {
 public:
  explicit Inbox(std::shared_ptr<const device::Notifier> told) : told_(std::move(told)) {}
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  // --- the polling thread
  // Whether its listener is to be told, after this poll.
  bool put(const Received& received);
  void tell();

  // --- the thread that sets up
  // What has come since the last time.
  std::vector<Received> take_early();
  // The same, for the last time: what comes from now on is the data thread's. `most`: completions that may wait.
  std::vector<Received> begin_data(size_t most);
  // Drops all that comes from now on. Any thread.
  void close() { is_closed_.store(true, std::memory_order_release); }

  // --- the data thread
  // False: nothing has come. Since begin_data().
  bool pop(Received& received) {
    if (next_ == waiting_.size()) return false;
    received = waiting_[next_++];
    if (next_ == waiting_.size()) {
      waiting_.clear();
      next_ = 0;
    }
    return true;
  }
  // Told of what waits, too. Null: nobody is.
  void set_listener(ReadyListener* listener, uint64_t token);

 private:
  const std::shared_ptr<const device::Notifier> told_;
  std::atomic<bool> is_closed_{false};
  std::atomic<bool> is_data_{false};
  std::mutex mutex_;
  std::vector<Received> early_;  // the mutex
  // The data thread's.
  std::vector<Received> waiting_;  // from next_ on
  size_t next_ = 0;
  ReadyListener* listener_ = nullptr;
  uint64_t token_ = 0;
  bool is_listed_ = false;  // tell() is to come
};

}  // namespace egret::transport::verbs
