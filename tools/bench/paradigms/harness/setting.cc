#include "bench_paradigms/harness/setting.h"

namespace egret::bench_paradigms {

std::vector<Case> cases_of(const Setting& setting) {
  std::vector<Case> out;
  for (const uint32_t value_bytes : setting.value_bytes) {
    for (const double gets : setting.gets) {
      for (const double rate : setting.rates) out.push_back({value_bytes, gets, rate});
    }
  }
  return out;
}

Plan plan_of(const Setting& setting, const Case& one) {
  return {.servers = setting.server_cores,
          .clients = setting.clients,
          .window = setting.window,
          .key_bytes = setting.key_bytes,
          .value_bytes = one.value_bytes,
          .seed = setting.seed,
          .tuning = setting.tuning};
}

}  // namespace egret::bench_paradigms
