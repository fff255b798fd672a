// The command line of egret-top. Cold path.
#pragma once

#include <vector>

#include "top/fetch.h"

namespace egret::top {

struct Options {
  std::vector<Target> targets;
  bool are_defaults = false;  // default addresses: one that never answers is left out while another one answers
  double interval_s = 1;
  bool once = false;
  bool plain = false;
  bool json = false;
};

// True: go on. False: exit with `exit_status`; messages are printed already.
bool parse_options(int argc, char** argv, Options& options, int& exit_status);

}  // namespace egret::top
