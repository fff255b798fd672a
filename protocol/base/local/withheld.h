// A descriptor that a forked child of this process must not hold: by its copy the child would keep sessions of its parent alive, and
// hide the parent's death from their peers. It is another library's, which may close it at the child's end: so the child is to put
// something else in its place, not to close it.
//
// Daemons fork nobody while they have sessions, and keep no list. libegret does, and sees to its children (client/process/fork.h).
//
// Thread: any; nobody may fork between the descriptor's making and this object's.
#pragma once

#include <utility>

namespace egret::base {

// Who keeps the list.
struct WithheldList {
  void (*add)(int fd);
  void (*remove)(int fd);
};
// To be set before there is anything for it; it is never destroyed.
void keep_withheld(const WithheldList& list);

class Withheld {
 public:
  Withheld() = default;
  explicit Withheld(int fd);
  Withheld(Withheld&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Withheld& operator=(Withheld&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Withheld();

 private:
  int fd_ = -1;
};

}  // namespace egret::base
