// The command line of `egret-bench plot`.
#pragma once

namespace egret::bench_plot {

// argv[0] is "plot". Returns the exit status.
int run(int argc, char** argv);

}  // namespace egret::bench_plot
