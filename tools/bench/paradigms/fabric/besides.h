// What this process posts besides the nodes' verbs: probes, and the session's control connections. For who counts all verbs of
// the process from outside, and compares. Any thread.
#pragma once

#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

void add_besides(const VerbCounts& counts);
VerbCounts besides();

}  // namespace egret::bench_paradigms
