// The descriptors by which both ends of the shm transport wake each other. An end sleeps on one edge-triggered and never
// reads it; the other end signals it. Both hold the same open file, so whatever the peer does to that file, flags and
// contents included, must neither block nor end who signals:
//
//   timer      a timerfd, made by the server. Signalling sets its ticks (TFD_IOC_SET_TICKS), which waits for nothing and
//              ignores O_NONBLOCK. Epolls that wait for it are charged to the user of whoever made them.
//   eventfd    from client to server where one of them is of version 0.1.0. The server only sleeps on it. A write to it
//              could block: the client signals it by an AIO request instead, whose completion never waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <linux/aio_abi.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::transport::shm {

base::UniqueFd make_timer();  // not open: errno says why
bool is_timer(int fd);
void signal_timer(int fd);

// Signals an eventfd that the peer made.
class EventSignaller {
 public:
  EventSignaller() = default;
  EventSignaller(const EventSignaller&) = delete;
  EventSignaller& operator=(const EventSignaller&) = delete;
  ~EventSignaller();

  // An error if `event` is no eventfd, or this system has no AIO. `event` must stay open for as long as this exists.
  base::Status open(int event);
  void signal();

 private:
  static constexpr long kMostCompletions = 32;
  bool submit();
  void drop_completions();

  aio_context_t context_ = 0;
  base::UniqueFd read_;  // what the requests read: an empty file
  int event_ = -1;
  char byte_ = 0;
  long completions_ = 0;  // not taken out of the context yet
};

}  // namespace egret::transport::shm
