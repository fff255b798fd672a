#include "bench_cache/hits.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <thread>
#include <utility>

#include "bench_cache/replay.h"
#include "bench_cache/trace.h"

namespace egret::bench_cache {
namespace {

using base::Status;

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

// The results of one mix with one server.
struct Played {
  Status status = Status::ok();
  ReplayCounts counts;  // without the warm-up
  uint64_t wrong = 0;   // wrong answers, including the warm-up
  std::string first_wrong;
  Stats before;  // at the end of the warm-up
  Stats after;
};

struct Plan {
  Mix mix;
  uint32_t keys = 0;
  uint64_t warmup = 0;
  uint64_t requests = 0;
  double rate = 0;  // requests/s; 0: as fast as answers come
};

Plan plan_of(const Mix& mix, const HitsOptions& options) {
  Plan plan{.mix = mix};
  const double footprint = static_cast<double>(options.memory_mib << 20) / options.fraction;
  plan.keys = keys_for_footprint(mix, options.footprint, static_cast<uint64_t>(footprint), options.seed);
  plan.warmup = static_cast<uint64_t>(options.warmup * plan.keys);
  plan.requests = static_cast<uint64_t>(options.requests * plan.keys);
  if (mix.expires) plan.rate = static_cast<double>(plan.warmup + plan.requests) / options.ttl_duration_s;
  return plan;
}

void play(const Plan& plan, const HitsOptions& options, const bench::Server& server, const std::atomic<bool>& stop,
          Played& played) {
  Trace trace(plan.mix, plan.keys, options.seed, options.ttl_scale);
  Replay replay(trace, server.address);
  ReplayCounts warmup;
  played.status = replay.connect();
  if (played.status) played.status = replay.run(plan.warmup, plan.rate, stop, warmup);
  played.before = read_stats(server);
  if (played.status) played.status = replay.run(plan.requests, plan.rate, stop, played.counts);
  played.after = read_stats(server);
  played.wrong = warmup.wrong + played.counts.wrong;
  played.first_wrong = replay.first_wrong();
}

// Paced mixes leave CPUs idle, so they are replayed to all servers at once; others one after the other, each to a newly
// started server. Servers are started on the main thread, since they end with the thread that started them.
std::vector<Played> play_all(const Plan& plan, const HitsOptions& options, const std::vector<Contender>& contenders,
                             const std::atomic<bool>& stop) {
  std::vector<Played> played(contenders.size());
  std::vector<bench::Server> servers(contenders.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < contenders.size(); ++i) {
    auto server = contenders[i].start();
    played[i].status = server.status();
    if (!server) break;
    servers[i] = std::move(server.value());
    if (plan.rate > 0) {
      threads.emplace_back([&, i] { play(plan, options, servers[i], stop, played[i]); });
    } else {
      play(plan, options, servers[i], stop, played[i]);
      servers[i] = bench::Server();
    }
  }
  for (std::thread& thread : threads) thread.join();
  return played;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? kNothing : static_cast<double>(part) / static_cast<double>(whole);
}

double grown(const Played& played, const char* name) {
  return static_cast<double>(stat(played.after, name) - stat(played.before, name));
}

// Bytes copied by eviction and compaction per byte stored. Only Egret counts them.
double copied_share(const Played& played) {
  const double inserted = grown(played, "egret_inserted_bytes");
  return inserted == 0 ? kNothing : grown(played, "egret_copied_bytes") / inserted;
}

Table empty_table(const HitsOptions& options, const std::vector<Contender>& contenders) {
  char title[200];
  std::snprintf(title, sizeof title, "Miss ratio with %llu MiB, %.3g %% of %s",
                static_cast<unsigned long long>(options.memory_mib), options.fraction * 100,
                options.footprint == Footprint::kChunks ? "what memcached needs for all keys" : "all keys and values");
  Table table{.title = title,
              .key = "hits",
              .columns = {{"mix", "mix"}, {"M keys", "keys_m"}, {"M gets", "gets_m"}},
              .rows = {}};
  const auto add = [&](const std::string& what, const std::string& key) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      table.columns.push_back({contenders[i].name + " " + what, (i == 0 ? "first_" : "second_") + key});
    }
  };
  add("misses", "miss_ratio");
  if (contenders.size() > 1) table.columns.push_back({"fewer, %", "fewer_percent"});
  add("misses without scans", "miss_ratio_without_scans");
  add("refused sets", "refused");
  add("seconds", "seconds");
  table.columns.push_back({"copied / inserted", "first_copied_share"});
  return table;
}

std::vector<Cell> row_of(const Plan& plan, const std::vector<Played>& played) {
  const auto in_millions = [](uint64_t count) { return Cell::number(static_cast<double>(count) / 1e6, 2); };
  std::vector<Cell> row = {plan.mix.name, in_millions(plan.keys), in_millions(played[0].counts.gets)};
  std::vector<double> ratios;
  ratios.reserve(played.size());
  for (const Played& each : played) ratios.push_back(share(each.counts.misses, each.counts.gets));
  for (const double ratio : ratios) row.push_back(Cell::number(ratio, 4));
  if (ratios.size() > 1) row.push_back(Cell::number((1 - ratios[0] / ratios[1]) * 100, 1));
  for (const Played& each : played) {
    const ReplayCounts& counts = each.counts;
    row.push_back(Cell::number(share(counts.misses - counts.scan_misses, counts.gets - counts.scan_gets), 4));
  }
  for (const Played& each : played) row.push_back(each.counts.refused);
  for (const Played& each : played) row.push_back(Cell::number(each.counts.seconds, 1));
  row.push_back(Cell::number(copied_share(played[0]), 3));
  return row;
}

// A complete name selects only that mix; any other text selects all mixes whose names contain it.
bool is_wanted(const Mix& mix, const HitsOptions& options) {
  const std::vector<Mix> all = all_mixes();
  return options.mixes.empty() || std::any_of(options.mixes.begin(), options.mixes.end(), [&](const std::string& name) {
           const bool is_full = std::any_of(all.begin(), all.end(), [&](const Mix& each) { return each.name == name; });
           return is_full ? mix.name == name : mix.name.find(name) != std::string::npos;
         });
}

}  // namespace

Status measure_hits(const HitsOptions& options, const std::vector<Contender>& contenders, const std::atomic<bool>& stop,
                    std::vector<Table>& tables, uint64_t& errors) {
  tables.push_back(empty_table(options, contenders));
  for (const Mix& mix : all_mixes()) {
    if (!is_wanted(mix, options)) continue;
    const Plan plan = plan_of(mix, options);
    const std::vector<Played> played = play_all(plan, options, contenders, stop);
    if (stop.load()) break;
    for (size_t i = 0; i < played.size(); ++i) {
      const std::string who = mix.name + ": " + contenders[i].name + ": ";
      errors += played[i].wrong;
      if (!played[i].first_wrong.empty()) std::fprintf(stderr, "%s%s\n", who.c_str(), played[i].first_wrong.c_str());
      if (!played[i].status) return Status::error(who + played[i].status.message());
      std::fprintf(stderr, "%smiss ratio %.4f, %.1f s\n", who.c_str(),
                   share(played[i].counts.misses, played[i].counts.gets), played[i].counts.seconds);
    }
    tables.back().rows.push_back(row_of(plan, played));
  }
  return Status::ok();
}

}  // namespace egret::bench_cache
