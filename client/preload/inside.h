// Whether a thread is in this library: its calls are the library's own then, and go to libc.
#pragma once

namespace egret::preload {

inline thread_local bool is_inside = false;

class Inside {
 public:
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// Within a call of this library, where signal handlers may run: the calls that a handler makes are the program's, not the library's.
class InProgram {
 public:
  InProgram() { is_inside = false; }
  ~InProgram() { is_inside = true; }
  InProgram(const InProgram&) = delete;
  InProgram& operator=(const InProgram&) = delete;
};

}  // namespace egret::preload
