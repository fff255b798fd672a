#include "bench_paradigms/report/names.h"

#include <bit>

namespace egret::bench_paradigms {

std::string names_of(uint8_t marks) {
  std::string out;
  for (const MarkName& each : kMarkNames) {
    if ((marks & each.mark) != 0) out += (out.empty() ? "" : " ") + std::string(each.name);
  }
  return out;
}

unsigned count_of(uint8_t marks) {
  return static_cast<unsigned>(std::popcount(marks));
}

double reads_of_a_get(const Row& row) {
  const uint64_t reads = row.clients.of(Verb::kRead);
  return row.gets == 0 ? 0 : static_cast<double>(reads) / static_cast<double>(row.gets);
}

}  // namespace egret::bench_paradigms
