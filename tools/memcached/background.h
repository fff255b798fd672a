// -d: the process goes on in the background, and the one that was started ends when it serves.
#pragma once

#include <optional>

#include "base/unique_fd.h"

namespace egret::memcached {

class Background {
 public:
  struct Keep {
    bool keep_directory = false;  // else "/"
    bool keep_output = false;     // else standard output and error go nowhere once it serves
  };
  // Forks; both processes go on from here. None: it failed. No thread may run.
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
