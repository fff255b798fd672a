// What a forked child must not share with its parent: the sockets of sessions (a copy of a control socket would hide the
// parent's death from the backend), what they are watched by, and their memory (mapped MADV_DONTFORK). The
// descriptors that wake a backend over shm stay open in the child: without the memory it cannot ask for anything by them.
// Where the process may have sessions over rdma, the child lets go of devices, too (devices.h).
//
//   fork() ─ prepare: no descriptor is half made ─▶ child: closes them, and has another generation
//
// A child that was made without the handlers of pthread_atfork (by a bare system call) has another generation, too: the
// page that holds it is wiped by the kernel.
//
// Thread: any. A lock is held only while descriptors are made or closed, never while a user's function runs.
#pragma once

#include <atomic>
#include <cstdint>

namespace egret::client {

class ForkGuard {
 public:
  // To be called before anything that is to be guarded is made.
  static void install();

  // Of this process. A client that was made in another generation is a parent's.
  static uint64_t generation() { return page_ != nullptr ? page_->load(std::memory_order_relaxed) : plain_; }
  // After a fork without handlers: does what they would have done.
  static void enter_child_if_new();

  // The child is to close it / not to touch it. The number is the process's own from the one call to the other.
  static void own(int fd);
  static void disown(int fd);

  // From now on the process may use RDMA devices. Before it does; any thread.
  static void expect_devices();

  // While it lives nobody forks: descriptors are made, and owned.
  class Section {
   public:
    Section() { lock(); }
    ~Section() { unlock(); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
  };

 private:
  static void lock();
  static void unlock();
  static void enter_child();

  static std::atomic<uint64_t>* page_;  // null: the kernel cannot wipe pages
  static uint64_t plain_;
};

}  // namespace egret::client
