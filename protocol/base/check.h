// Checks that stay on in every build (EGRET_CHECK, for cold code and for what must never be passed over) and those that
// cost too much on the data path (EGRET_DCHECK: on in debug and sanitizer builds). A failed check is a bug of ours,
// never the doing of a peer: what a peer sends is validated and refused with an error.
#pragma once

#include <pthread.h>

namespace egret::base {

// Prints the place and the text to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* text);

// Asserts that the functions of an object are called by one thread alone: the one that calls first after `release()`.
class OwnerThread {
 public:
  void assert_owner(const char* file, int line) {
    const pthread_t self = pthread_self();
    if (!bound_) {
      owner_ = self;
      bound_ = true;
    } else if (!pthread_equal(owner_, self)) {
      check_failed(file, line, "called by a thread that does not own this object");
    }
  }
  // Lets another thread take over; the hand-over itself is the caller's synchronisation.
  void release() { bound_ = false; }

 private:
  pthread_t owner_{};
  bool bound_ = false;
};

}  // namespace egret::base

#define EGRET_CHECK(condition) \
  (__builtin_expect(!!(condition), 1) ? void(0) : ::egret::base::check_failed(__FILE__, __LINE__, #condition))

#ifdef EGRET_CHECKS
#define EGRET_DCHECK(condition) EGRET_CHECK(condition)
#define EGRET_ASSERT_OWNER(owner) (owner).assert_owner(__FILE__, __LINE__)
#else
#define EGRET_DCHECK(condition) void(0)
#define EGRET_ASSERT_OWNER(owner) void(0)
#endif
