#include "bench_verbs/report/nic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

namespace egret::bench_verbs {

using base::Status;
using bench_nic::Nic;
using bench_nic::RateCurve;

namespace {

constexpr double kMillion = 1e6;
constexpr double kNearlyBest = .95;  // of a rate: from here on more queue pairs cost something

double rate_of(const Figures& figures) {
  return figures.ops_per_s / kMillion;
}

void add_point(RateCurve& curve, double at, const Figures& figures) {
  if (figures.ops_per_s > 0) curve.points.push_back({at, rate_of(figures)});
}

void add_sizes(const Results& results, Nic& nic) {
  double most_bits = 0;
  for (const BySize& each : results.by_size) {
    const Both* const of = each.of;
    add_point(nic.read_in, each.size, of[static_cast<size_t>(Direction::kInboundRead)].pipelined);
    add_point(nic.write_in, each.size, of[static_cast<size_t>(Direction::kInboundWrite)].pipelined);
    for (const Both& direction : each.of)
      most_bits = std::max(most_bits, direction.pipelined.ops_per_s * each.size * 8);
  }
  for (const ByThreads& each : results.by_threads) {
    add_point(nic.write_out, each.threads, each.of[static_cast<size_t>(Direction::kOutboundWrite)].pipelined);
  }
  nic.link_share = 1;  // what came through is what can
  nic.link_gbps = most_bits / 1e9;
}

void add_further(const Further& further, Nic& nic) {
  for (const SendsByThreads& each : further.sends) {
    nic.receive = nic.receive_empty = std::max(nic.receive, rate_of(each.pipelined.inbound));
    nic.send_batched = nic.send_empty = std::max(nic.send_batched, rate_of(each.pipelined.outbound));
    nic.send_single = std::max(nic.send_single, rate_of(each.one_by_one.outbound));
  }
  for (const AtomicsByThreads& each : further.atomics) {
    for (const BothWays& pipelined : each.pipelined) nic.atomic = std::max(nic.atomic, rate_of(pipelined.inbound));
  }
}

// t = t0 + m * max(0, 1 - C / Q): t0 from the best rate, C the most pairs with almost that, m the mean of what the others say.
void add_cache(const Further& further, Nic& nic) {
  constexpr size_t kReads = 0;  // of kSwept
  double best = 0;
  for (const ByPairs& each : further.sweep) best = std::max(best, each.of[kReads].inbound.ops_per_s);
  if (best <= 0) return;
  for (const ByPairs& each : further.sweep) {
    if (each.of[kReads].inbound.ops_per_s >= kNearlyBest * best) nic.pairs_cached = each.pairs;
  }
  nic.pair_hit_ns = 1e9 / best;
  double sum = 0;
  uint32_t beyond = 0;
  for (const ByPairs& each : further.sweep) {
    const double rate = each.of[kReads].inbound.ops_per_s;
    if (each.pairs <= nic.pairs_cached || rate <= 0) continue;
    sum += (1e9 / rate - nic.pair_hit_ns) / (1 - nic.pairs_cached / each.pairs);
    ++beyond;
  }
  if (beyond > 0) nic.pair_miss_ns = sum / beyond;
}

}  // namespace

Nic nic_of(const Results& results) {
  Nic nic;
  nic.name = "measured";
  nic.source = "egret-bench verbs" + (results.hosts.empty() ? std::string() : ": " + results.hosts.front());
  if (results.emulated) nic.source += "; emulated: no rate of it means anything";
  add_sizes(results, nic);
  add_further(results.further, nic);
  add_cache(results.further, nic);
  nic.round_trip_us = results.fetch_latency.p50_us;
  return nic;
}

Status write_nic_file(const std::string& path, const Results& results) {
  const std::string part = path + ".new";
  std::ofstream file(part, std::ios::trunc);
  file << bench_nic::to_json(nic_of(results));
  file.close();
  if (!file) return Status::error("cannot write " + part);
  if (std::rename(part.c_str(), path.c_str()) != 0) return Status::system_error("cannot write " + path, errno);
  return Status::ok();
}

}  // namespace egret::bench_verbs
