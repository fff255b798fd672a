// What a device says of itself beside completions: that it has failed, or that a completion queue or a queue pair has.
//
//   device ─▶ async_fd ─▶ one thread for all sessions of the device: who is concerned? ─▶ the session's Alarm: fd() readable
//
// A failure of the device concerns all of its sessions, one of a queue the session that has it: its completions may
// never come, so it is to end now. A port that is down concerns nobody: it may come back before anybody's retries end.
// The thread runs as long as a device has sessions. Cold path; an Alarm belongs to one thread at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include <infiniband/verbs.h>

#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::transport::device {

class DeviceEvents;

class Alarm {
 public:
  Alarm() = default;
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // `queue` is what all queue pairs of the session complete to. It outlives this object.
  base::Status begin(ibv_context* device, const ibv_cq* queue);
  // Readable (level-triggered) from the event on.
  int fd() const { return fd_.get(); }
  // Ok, or an error that says what the device has told.
  base::Status status() const;

 private:
  friend class DeviceEvents;

  std::shared_ptr<DeviceEvents> events_;
  const ibv_cq* queue_ = nullptr;
  base::UniqueFd fd_;
  std::atomic<int> event_{-1};  // ibv_event_type
};

}  // namespace egret::transport::device
