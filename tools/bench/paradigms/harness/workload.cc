#include "bench_paradigms/harness/workload.h"

namespace egret::bench_paradigms {

uint64_t share_of(uint64_t ops, uint32_t clients, uint32_t client) {
  return ops / clients + (client < ops % clients ? 1 : 0);
}

WorkloadSpec workload_of(const Setting& setting, const Case& one, bool next_only) {
  return {.keys = setting.keys,
          .clients = setting.clients,
          .gets = one.gets,
          .erases = setting.erases,
          .zipf = setting.zipf,
          .locality = setting.tuning.locality,
          .writers = setting.writers,
          .next_only = next_only,
          .seed = setting.seed};
}

}  // namespace egret::bench_paradigms
