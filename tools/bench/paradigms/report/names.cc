#include "bench_paradigms/report/names.h"

#include <bit>

#include <fmt/format.h>

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

std::vector<TuningValue> values_of(const Tuning& tuning) {
  constexpr double kPercent = 100;
  constexpr double kNsPerSecond = 1e9;
  const auto is = [](std::string_view option, bool value) { return TuningValue{option, value ? 1.0 : 0.0, true}; };
  const auto number = [](std::string_view option, uint32_t value) {
    return TuningValue{option, static_cast<double>(value)};
  };
  return {is("as-paper", tuning.as_paper),
          is("posting sync", tuning.is_synchronous),
          number("doorbell", tuning.doorbell),
          number("ud-qps", tuning.ud_pairs),
          number("signal-every", tuning.signal_every),
          is("inline", tuning.is_inline),
          is("header-only", tuning.is_header_only),
          number("pad", tuning.pad),
          is("huge", tuning.has_huge_pages),
          number("queue-pairs", tuning.queue_pairs),
          is("prefetch", tuning.prefetches),
          number("batch-add", tuning.batch_add),
          number("atomic-stride", tuning.atomic_stride),
          number("fetch-bytes", tuning.fetch_bytes),
          number("hybrid-vain", tuning.hybrid_vain),
          number("raw-reads", tuning.raw_reads),
          is("cached-places", tuning.caches_places),
          number("hops", tuning.hops),
          is("checks", tuning.checks),
          {"load", tuning.load},
          {"index-load", tuning.index_load},
          number("ways", tuning.ways),
          number("filter-bits", tuning.filter_bits),
          number("spare-entries", tuning.spare_entries),
          is("place server", tuning.places_at_server),
          number("cache", tuning.cache_entries),
          {"locality", tuning.locality * kPercent},
          {"reuse-delay", static_cast<double>(tuning.reuse_delay_ns) / kNsPerSecond},
          is("own-node", tuning.has_own_node),
          is("watermark", tuning.polls_watermark)};
}

std::string changes_of(const Tuning& tuning) {
  const std::vector<TuningValue> now = values_of(tuning);
  const std::vector<TuningValue> before = values_of(Tuning());
  std::string out;
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].value == before[i].value) continue;
    if (!out.empty()) out += ", ";
    if (now[i].is_switch) {
      out += fmt::format("{}{}", now[i].value > 0 ? "" : "no ", now[i].option);
    } else {
      out += fmt::format("{} {:.6g}", now[i].option, now[i].value);
    }
  }
  return out;
}

}  // namespace egret::bench_paradigms
