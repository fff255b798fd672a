#include "bench_paradigms/fabric/besides.h"

#include <mutex>

namespace egret::bench_paradigms {

namespace {

struct Sum {
  std::mutex mutex;
  VerbCounts counts;
};
Sum& sum() {
  static Sum instance;
  return instance;
}

}  // namespace

void add_besides(const VerbCounts& counts) {
  const std::unique_lock held(sum().mutex);
  sum().counts += counts;
}

VerbCounts besides() {
  const std::unique_lock held(sum().mutex);
  return sum().counts;
}

}  // namespace egret::bench_paradigms
