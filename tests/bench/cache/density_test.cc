#include "bench_cache/density.h"

#include <doctest/doctest.h>

#include "bench_cache/growth.h"

using namespace egret::bench_cache;

TEST_CASE("more is stored than would fit with next to no overhead") {
  DensityOptions options;
  options.memory_mib = 72;
  options.value_size = 32;
  options.overfill = 1.5;
  CHECK(items_to_store(options) == (uint64_t{72} << 20) / (16 + 32 + 24) * 3 / 2);
}

TEST_CASE("the parts of the budget add up to the limit") {
  const Stats stats = {{"limit_maxbytes", 64 << 20}, {"curr_items", 100'000},  {"bytes", 6'400'000},
                       {"egret_segments", 110},      {"egret_large_pages", 5}, {"egret_index_pages", 20},
                       {"egret_free_pages", 30}};
  const Budget budget = budget_of(stats, 48);
  CHECK(budget.keys_and_values == 4'800'000);
  CHECK(budget.item_overhead == 1'600'000);
  CHECK(budget.log_slack == 115 * 65536 - 6'400'000);
  CHECK(budget.index == 20 * 65536);
  CHECK(budget.free == 30 * 65536);
  CHECK(budget.keys_and_values + budget.item_overhead + budget.log_slack + budget.index + budget.free + budget.other ==
        64 << 20);
  CHECK(budget.other == (1024 - 165) * 65536);
}

TEST_CASE("a store that counts no pages has the rest of its limit in 'other'") {
  const Budget budget = budget_of({{"limit_maxbytes", 1000}, {"curr_items", 10}, {"bytes", 720}}, 48);
  CHECK(budget.log_slack == 0);
  CHECK(budget.other == 280);
}

TEST_CASE("growth has room for every item, in memcached too") {
  GrowthOptions options;
  options.items = 50'000'000;
  CHECK((growth_memory_mib(options) << 20) >= options.items * 120);
  options.memory_mib = 100;
  CHECK(growth_memory_mib(options) == 100);
}
