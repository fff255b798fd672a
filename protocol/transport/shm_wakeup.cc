#include "transport/shm_wakeup.h"

#include <cerrno>
#include <utility>

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

namespace egret::transport::shm {

using base::Status;
using base::UniqueFd;

UniqueFd make_timer() {
  return UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
}

bool is_timer(int fd) {
  itimerspec unused{};
  return ::timerfd_gettime(fd, &unused) == 0;  // EINVAL for every other kind of file
}

void signal_timer(int fd) {
  const uint64_t ticks = 1;
  if (::ioctl(fd, TFD_IOC_SET_TICKS, &ticks) == 0) return;
  // A kernel without CONFIG_CHECKPOINT_RESTORE, or a timer that the peer has made useless: one that expires at once,
  // which is dearer.
  const itimerspec at_once{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_nsec = 1}};
  ::timerfd_settime(fd, 0, &at_once, nullptr);
}

EventSignaller::~EventSignaller() {
  if (context_ != 0) ::syscall(SYS_io_destroy, context_);
}

Status EventSignaller::open(int event) {
  if (context_ != 0) ::syscall(SYS_io_destroy, std::exchange(context_, 0));
  completions_ = 0;
  event_ = event;
  read_.reset(::memfd_create("egret-signaller", MFD_CLOEXEC));
  if (!read_.is_open()) return Status::system_error("memfd_create", errno);
  if (::syscall(SYS_io_setup, kMostCompletions, &context_) != 0) return Status::system_error("io_setup", errno);
  if (!submit()) return Status::error("what the backend gave to ring it by is no eventfd");
  return Status::ok();
}

void EventSignaller::signal() {
  submit();
}

// Reads from an empty file, which is done at once; that signals the eventfd.
bool EventSignaller::submit() {
  if (completions_ == kMostCompletions) drop_completions();
  iocb request{};
  request.aio_lio_opcode = IOCB_CMD_PREAD;
  request.aio_fildes = static_cast<uint32_t>(read_.get());
  request.aio_buf = reinterpret_cast<uintptr_t>(&byte_);
  request.aio_nbytes = sizeof byte_;
  request.aio_flags = IOCB_FLAG_RESFD;
  request.aio_resfd = static_cast<uint32_t>(event_);
  iocb* const requests[] = {&request};
  if (::syscall(SYS_io_submit, context_, 1, requests) != 1) return false;
  ++completions_;
  return true;
}

void EventSignaller::drop_completions() {
  std::array<io_event, kMostCompletions> events;
  timespec no_wait{};
  ::syscall(SYS_io_getevents, context_, 0, kMostCompletions, events.data(), &no_wait);
  completions_ = 0;
}

}  // namespace egret::transport::shm
