// The command line of `egret-bench paradigms`.
#pragma once

#include <string>

#include "base/status.h"
#include "bench_paradigms/harness/setting.h"

namespace egret::bench_paradigms {

struct Options {
  std::string listen, connect, loop;  // at most one
  std::string token;                  // with connect
  uint32_t hosts = 1;                 // connecting ones
  bool is_in_memory = false;
  Setting setting;
  bool json = false;
  std::string svg_folder;  // empty: no pictures
  std::string nic;         // a card's name or file, or "measured"; empty: nothing is modelled
};

// False: exit with `exit_status` (help or an error was printed).
bool parse_options(int argc, char** argv, Options& options, int& exit_status);

}  // namespace egret::bench_paradigms
