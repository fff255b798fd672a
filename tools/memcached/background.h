// -d: forks into the background. The parent ends when the child serves.
#pragma once

#include <optional>

#include "base/unique_fd.h"

namespace egret::memcached {

class Background {
 public:
  struct Keep {
    bool keep_directory = false;  // else the working directory becomes "/"
    bool keep_output = false;     // else standard output and error go to /dev/null once the child serves
  };
  // Forks; both processes return from it. None: it failed. Call it before any thread is started.
  static std::optional<Background> enter(Keep keep);

  bool is_parent() const { return is_parent_; }

  // In the parent: the exit status to end with. 0 once the child has called report_ready(), else how the child ended.
  int wait_for_child();

  // In the child.
  void report_ready();
  void report_failure(int status);

 private:
  bool is_parent_ = false;
  Keep keep_;
  base::UniqueFd pipe_;  // carries one byte: the exit status
};

}  // namespace egret::memcached
