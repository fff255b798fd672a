#include "bench_cache/density.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "bench_cache/crew.h"
#include "bench_cache/item_client.h"

namespace egret::bench_cache {
namespace {

using base::Status;

constexpr uint32_t kBatch = 100;
constexpr int64_t kPage = 64 << 10;  // bytes of a page in Egret's `stats`

struct Kept {
  uint64_t stored = 0;
  uint64_t refused = 0;
  uint64_t found = 0;
  uint64_t wrong = 0;
  std::string first_wrong;
  Stats stats;
  uint64_t resident_bytes = 0;
};

uint64_t batches_of(uint64_t items) {
  return (items + kBatch - 1) / kBatch;
}

Item item_of(uint64_t number, const DensityOptions& options) {
  return {.key = static_cast<uint32_t>(number), .size = options.value_size, .version = 1};
}

Status fill_and_count(const DensityOptions& options, const bench::Server& server, const std::atomic<bool>& stop,
                      Kept& kept) {
  auto crew = Crew::connect(server.address);
  if (!crew) return crew.status();
  const uint64_t items = items_to_store(options);
  const auto judged = [&kept](uint64_t, const Answers& answers) {
    kept.stored += answers.stored;
    kept.refused += answers.refused;
    kept.found += answers.hits - answers.wrong;
    kept.wrong += answers.wrong;
    if (kept.first_wrong.empty()) kept.first_wrong = answers.first_wrong;
  };
  const auto each_of = [items](uint64_t batch, auto&& act) {
    for (uint64_t i = batch * kBatch; i < std::min(items, (batch + 1) * kBatch); ++i) act(i);
  };
  Status good = crew.value().run(
      batches_of(items),
      [&](uint64_t batch, ItemClient& client) {
        each_of(batch, [&](uint64_t i) { client.add_set(item_of(i, options), 0); });
      },
      judged, stop);
  if (!good) return good;
  kept.stats = read_stats(server);
  kept.resident_bytes = resident_bytes(server);
  return crew.value().run(
      batches_of(items),
      [&](uint64_t batch, ItemClient& client) {
        each_of(batch, [&](uint64_t i) { client.add_get(item_of(i, options)); });
      },
      judged, stop);
}

std::string title_of(const DensityOptions& options) {
  return std::to_string(options.memory_mib) + " MiB, " + std::to_string(kKeySize) + " B keys, " +
         std::to_string(options.value_size) + " B values";
}

Cell per(double bytes, uint64_t items) {
  return Cell::number(bytes / static_cast<double>(items), 1);
}

std::vector<Cell> row_of(const std::string& name, const DensityOptions& options, const Kept& kept) {
  const auto limit = static_cast<double>(options.memory_mib << 20);
  const auto mib = [](uint64_t bytes) { return Cell::number(static_cast<double>(bytes) / (1 << 20), 1); };
  return {name,
          kept.stored,
          kept.refused,
          kept.found,
          stat(kept.stats, "curr_items"),
          per(limit, kept.found),
          mib(kept.resident_bytes),
          Cell::number(static_cast<double>(kept.resident_bytes) / limit, 3)};
}

// For Egret only: no other server reports its pages.
Table budget_table(const std::string& name, const DensityOptions& options, const Kept& kept) {
  Table table{.title = name + ": where the limit goes, " + title_of(options),
              .key = "budget",
              .columns = {{"part", "part"}, {"bytes", "bytes"}, {"per item", "per_item"}},
              .rows = {}};
  const Budget budget = budget_of(kept.stats, kKeySize + options.value_size);
  const auto add = [&](const char* part, int64_t bytes) {
    table.rows.push_back({part, Cell::number(static_cast<double>(bytes), 0),
                          per(static_cast<double>(bytes), stat(kept.stats, "curr_items"))});
  };
  add("keys and values", budget.keys_and_values);
  add("headers and rounding of items", budget.item_overhead);
  add("not live in pages of log and large values", budget.log_slack);
  add("pages of the index", budget.index);
  add("free pages", budget.free);
  add("other", budget.other);
  return table;
}

}  // namespace

uint64_t items_to_store(const DensityOptions& options) {
  const auto fit = static_cast<double>(options.memory_mib << 20) / (kKeySize + options.value_size + kLeanOverhead);
  return static_cast<uint64_t>(options.overfill * fit);
}

Budget budget_of(const Stats& stats, uint64_t item_bytes) {
  const auto number = [&stats](const char* name) { return static_cast<int64_t>(stat(stats, name)); };
  Budget budget;
  const int64_t live = number("bytes");
  const int64_t item_pages = (number("egret_segments") + number("egret_large_pages")) * kPage;
  budget.keys_and_values = number("curr_items") * static_cast<int64_t>(item_bytes);
  budget.item_overhead = live - budget.keys_and_values;
  // A store that has no log counts no pages for its items.
  budget.log_slack = item_pages == 0 ? 0 : item_pages - live;
  budget.index = number("egret_index_pages") * kPage;
  budget.free = number("egret_free_pages") * kPage;
  budget.other = number("limit_maxbytes") - live - budget.log_slack - budget.index - budget.free;
  return budget;
}

Status measure_density(const DensityOptions& options, const std::vector<Contender>& contenders,
                       const std::atomic<bool>& stop, std::vector<Table>& tables, uint64_t& errors) {
  tables.push_back({.title = "Items that are kept: " + title_of(options),
                    .key = "density",
                    .columns = {{"server", "server"},
                                {"stored", "stored"},
                                {"refused", "refused"},
                                {"found", "found"},
                                {"curr_items", "curr_items"},
                                {"limit per item, B", "bytes_per_item"},
                                {"resident, MiB", "resident_mib"},
                                {"of the limit", "resident_share"}},
                    .rows = {}});
  for (const Contender& contender : contenders) {
    auto server = contender.start();
    if (!server) return server.status();
    Kept kept;
    Status good = fill_and_count(options, server.value(), stop, kept);
    errors += kept.wrong;
    if (!kept.first_wrong.empty()) std::fprintf(stderr, "%s: %s\n", contender.name.c_str(), kept.first_wrong.c_str());
    if (!good) return Status::error(contender.name + ": " + good.message());
    if (stop.load()) break;
    tables.front().rows.push_back(row_of(contender.name, options, kept));
    if (kept.stats.contains("egret_backend_pid")) tables.push_back(budget_table(contender.name, options, kept));
  }
  return Status::ok();
}

}  // namespace egret::bench_cache
