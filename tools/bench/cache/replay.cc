#include "bench_cache/replay.h"

#include <ctime>
#include <limits>
#include <utility>

#include "bench/monotonic.h"
#include "bench/sampler.h"

namespace egret::bench_cache {
namespace {

using base::Status;

constexpr uint32_t kMaxOverwrites =
    400;  // of a batch; with a fill for each get of the one before, within ItemClient's limit
static_assert(kMaxOverwrites + Replay::kBatchGets <= ItemClient::kMaxSets);
static_assert(Replay::kBatchGets <= ItemClient::kMaxGets);
constexpr uint32_t kPaceEvery = 200;      // requests between two reads of the clock
constexpr uint32_t kStopEvery = 1 << 14;  // requests between two checks of `stop`
// Servers count whole seconds, and a busy server reads the clock late.
constexpr uint32_t kExpirySlackS = 5;

void sleep_until(uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / bench::kNsPerSecond), static_cast<long>(ns % bench::kNsPerSecond)};
  ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace

Replay::Replay(Trace& trace, const bench::Address& address)
    : trace_(trace),
      address_(address),
      start_ns_(bench::monotonic_ns()),
      lanes_(kLanes),
      versions_(trace.keys()),
      until_s_(trace.ttl_s(0) == 0 ? 0 : trace.keys(), std::numeric_limits<uint32_t>::max()) {}

Status Replay::connect() {
  for (Lane& lane : lanes_) {
    auto client = ItemClient::connect(address_);
    if (!client) return client.status();
    lane.client.push_back(std::move(client.value()));
  }
  return Status::ok();
}

Status Replay::run(uint64_t requests, double rate, const std::atomic<bool>& stop, ReplayCounts& counts) {
  const uint64_t from_ns = bench::monotonic_ns();
  for (uint64_t i = 0; i < requests; ++i) {
    if (i % kStopEvery == 0 && stop.load()) break;
    if (rate > 0 && i % kPaceEvery == 0) sleep_until(from_ns + bench::seconds_to_ns(static_cast<double>(i) / rate));
    if (Status good = add(trace_.next(), counts); !good) return good;
  }
  Status good = finish_all(counts);
  counts.seconds += static_cast<double>(bench::monotonic_ns() - from_ns) / bench::kNsPerSecond;
  return good;
}

Status Replay::add(const Request& request, ReplayCounts& counts) {
  // By the mixed key, so that consecutive keys of a scan, and the most popular ones, go to different lanes.
  Lane& lane = lanes_[bench::mix64(request.key) % kLanes];
  if (request.is_overwrite) {
    lane.overwrites.push_back(request.key);
  } else {
    lane.gets.push_back({.key = request.key, .version = 0, .is_scan = request.is_scan, .must_miss = false});
  }
  if (lane.gets.size() < kBatchGets && lane.overwrites.size() < kMaxOverwrites) return Status::ok();
  return send_batch(lane, counts);
}

// Receives the answers of the batch before first: this batch sets its misses.
Status Replay::send_batch(Lane& lane, ReplayCounts& counts) {
  if (Status good = finish_batch(lane, counts); !good) return good;
  ItemClient& client = lane.client.front();
  const uint64_t now_s = (bench::monotonic_ns() - start_ns_) / bench::kNsPerSecond;
  for (const Get& fill : lane.fills) {
    if (versions_[fill.key] == fill.version) set(client, fill.key, now_s);
  }
  lane.fills.clear();
  for (const uint32_t key : lane.overwrites) set(client, key, now_s);
  lane.overwrites.clear();
  for (Get& get : lane.gets) {
    get.version = versions_[get.key];
    get.must_miss = !until_s_.empty() && now_s > until_s_[get.key];
    client.add_get({.key = get.key, .size = trace_.value_size(get.key), .version = get.version});
  }
  lane.under_way.swap(lane.gets);
  lane.gets.clear();
  return client.has_batch() ? client.send() : Status::ok();
}

void Replay::set(ItemClient& client, uint32_t key, uint64_t now_s) {
  const uint32_t ttl_s = trace_.ttl_s(key);
  client.add_set({.key = key, .size = trace_.value_size(key), .version = ++versions_[key]}, ttl_s);
  if (!until_s_.empty()) until_s_[key] = static_cast<uint32_t>(now_s + ttl_s + kExpirySlackS);
}

Status Replay::finish_batch(Lane& lane, ReplayCounts& counts) {
  ItemClient& client = lane.client.front();
  if (!client.is_under_way()) return Status::ok();
  if (Status good = client.receive(answers_); !good) return good;
  counts.sets += answers_.stored + answers_.refused;
  counts.refused += answers_.refused;
  counts.gets += lane.under_way.size();
  counts.misses += answers_.missed.size();
  counts.wrong += answers_.wrong;
  if (first_wrong_.empty()) first_wrong_ = answers_.first_wrong;
  for (const Get& get : lane.under_way) counts.scan_gets += get.is_scan;
  for (const uint32_t missed : answers_.missed) {
    const Get& get = lane.under_way[missed];
    counts.scan_misses += get.is_scan;
    lane.fills.push_back(get);
  }
  judge_times(lane, counts);
  lane.under_way.clear();
  return Status::ok();
}

void Replay::judge_times(const Lane& lane, ReplayCounts& counts) {
  auto missed = answers_.missed.begin();
  for (uint32_t i = 0; i < lane.under_way.size(); ++i) {
    if (missed != answers_.missed.end() && *missed == i) {
      ++missed;
    } else if (lane.under_way[i].must_miss) {
      ++counts.wrong;
      if (first_wrong_.empty()) {
        first_wrong_ = "key " + std::to_string(lane.under_way[i].key) + " is there more than " +
                       std::to_string(kExpirySlackS) + " s after its time";
      }
    }
  }
}

// Two batches: the collected gets, then the sets of their misses.
Status Replay::finish_all(ReplayCounts& counts) {
  for (int turn = 0; turn < 2; ++turn) {
    for (Lane& lane : lanes_) {
      if (Status good = send_batch(lane, counts); !good) return good;
    }
  }
  for (Lane& lane : lanes_) {
    if (Status good = finish_batch(lane, counts); !good) return good;
  }
  return Status::ok();
}

}  // namespace egret::bench_cache
