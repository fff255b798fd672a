// EGRET_CHECK is on in every build: for cold code, and where going on would be worse than aborting. EGRET_DCHECK is on
// in debug and sanitizer builds only: for the data path. A failed check is a bug of ours; a peer cannot cause one,
// since what it sends is validated and refused with an error.
#pragma once

#include <pthread.h>

namespace egret::base {

// Prints the place and the text to stderr and aborts, unless the handler of this process throws.
[[noreturn]] void check_failed(const char* file, int line, const char* text);

// A library must not end the program that it is part of. What its handler throws leaves every object that is in use in an
// unknown state: none of them may be touched again, nor destroyed. Any thread; set before the first check.
using CheckHandler = void (*)(const char* file, int line, const char* text);
void set_check_handler(CheckHandler handler);

// Asserts that only one thread calls the functions of an object: the first caller after release().
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
  // Allows another thread to take over. The caller synchronises the two threads.
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
