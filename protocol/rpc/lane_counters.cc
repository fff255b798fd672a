#include "rpc/lane_counters.h"

#include <algorithm>

#include "rpc/fetch_policy.h"

namespace egret::rpc {

namespace {

using Workers = std::span<const LaneCounters* const>;

std::string shown_mode(Workers workers) {
  bool fetch = false;
  bool reply = false;
  for (const LaneCounters* lane : workers) {
    fetch |= lane->mode.get() == static_cast<uint64_t>(LaneMode::kFetch);
    reply |= lane->mode.get() == static_cast<uint64_t>(LaneMode::kReply);
  }
  if (fetch && reply) return "mixed";
  if (!fetch && !reply) return "none";
  return fetch ? "fetch" : "reply";
}

// Of the lanes that have a session and are in reply mode.
std::string shown_reason(Workers workers) {
  constexpr const char* kNames[] = {"none", "set", "slow", "cheap", "quicker"};
  uint64_t shown = 0;
  for (const LaneCounters* lane : workers) {
    const uint64_t reason = lane->mode.get() == static_cast<uint64_t>(LaneMode::kReply) ? lane->reason.get() : 0;
    if (reason == 0) continue;
    if (shown != 0 && shown != reason) return "mixed";
    shown = reason;
  }
  return shown < std::size(kNames) ? kNames[shown] : kNames[0];
}

std::string shown_cheap(Workers workers) {
  const bool any =
      std::ranges::any_of(workers, [](const LaneCounters* lane) { return lane->is_push_cheap.get() != 0; });
  return any ? "1" : "0";
}

std::string shown_fetch_size(Workers workers) {
  uint64_t largest = 0;
  for (const LaneCounters* lane : workers) largest = std::max(largest, lane->fetch_size.get());
  return std::to_string(largest);
}

constexpr LaneMetric kMetrics[] = {
    {"messages", "egret_messages", "Messages sent.", &LaneCounters::messages},
    {"ops", "egret_ops", "Ops in them.", &LaneCounters::ops},
    {"direct_ops", "egret_direct_ops",
     "Of these, ops that took no slot: their worker has the partition itself, and executed them there.",
     &LaneCounters::direct_ops},
    {"fetches", "egret_fetches", "Fetches of a response: over rdma READs, without second reads.",
     &LaneCounters::fetches},
    {"refetches", "egret_refetches", "Fetches that came too early: the response was not there yet.",
     &LaneCounters::refetches},
    {"torn", "egret_torn", "Fetches whose checksum did not match: they saw half a response, and were repeated.",
     &LaneCounters::torn},
    {"second_reads", "egret_second_reads", "READs of the bytes of a response after the first F.",
     &LaneCounters::second_reads},
    {"replies", "egret_replies", "Responses that were delivered: pushed, or on shm found by a worker that was woken.",
     &LaneCounters::replies},
    {"wants", "egret_wants", "Times that the lane asked for delivery of its outstanding results.",
     &LaneCounters::wants},
    {"asked", "egret_asked", "Messages that asked for the push of their result themselves.", &LaneCounters::asked},
    {"rings", "egret_rings", "Times that the lane was found asleep and rung.", &LaneCounters::rings},
    {"ringing_requests", "egret_ringing_requests",
     "Messages that rang themselves, since the lane was asleep or might have fallen asleep unnoticed.",
     &LaneCounters::ringing_requests},
    {"timeouts", "egret_timeouts", "Messages without a response for `op_timeout`.", &LaneCounters::timeouts},
    {"stalls", "egret_stalls", "Times that an op had to wait, since all slots of the lane were in use.",
     &LaneCounters::stalls},
    {"switches_to_reply", "egret_switches", "Times that the lane changed to server reply.",
     &LaneCounters::switches_to_reply},
    {"switches_to_fetch", "egret_switches", "Times that the lane returned to fetching.",
     &LaneCounters::switches_to_fetch},
    {"mode", "",
     "How the lane waits now: `fetch`, `reply`, `mixed` if workers differ, `none` if no worker has a session.", nullptr,
     shown_mode},
    {"reply_reason", "",
     "Why results are pushed: `set` (`fetch_mode`), `slow` (more than R fetches in vain), `cheap` (the backend says "
     "so), "
     "`quicker` (than fetching, as this lane has learned), `mixed`, or `none`.",
     nullptr, shown_reason},
    {"push_is_cheap", "", "1 if the backend said last that pushing results is cheap for it, of any worker.", nullptr,
     shown_cheap},
    {"fetch_size", "", "F: bytes that the first READ of a response takes now; the maximum over the workers.", nullptr,
     shown_fetch_size},
};

// Every counter has a row; else a sum or a reset would leave it out.
constexpr size_t kCounters = std::ranges::count_if(kMetrics, [](const auto& row) { return row.counter != nullptr; });
constexpr size_t kGauges = std::size(kMetrics) - kCounters;
static_assert((kCounters * sizeof(base::Counter) + kGauges * sizeof(base::Gauge) + 63) / 64 * 64 ==
              sizeof(LaneCounters));

}  // namespace

std::span<const LaneMetric> lane_metrics() {
  return kMetrics;
}

std::string LaneMetric::value(Workers workers) const {
  if (counter == nullptr) return shown(workers);
  uint64_t sum = 0;
  for (const LaneCounters* lane : workers) sum += (lane->*counter).since_mark();
  return std::to_string(sum);
}

LaneCounters& LaneCounters::operator+=(const LaneCounters& other) {
  for (const LaneMetric& metric : kMetrics) {
    if (metric.counter != nullptr) (this->*metric.counter).add(other.*metric.counter);
  }
  return *this;
}

void LaneCounters::mark() {
  for (const LaneMetric& metric : kMetrics) {
    if (metric.counter != nullptr) (this->*metric.counter).mark();
  }
}

LaneCounters& SessionCounters::lane(uint32_t number) {
  for (uint32_t next = lane_count(); next <= number; ++next) {
    lanes_[next] = std::make_unique<LaneCounters>();
    count_.store(next + 1, std::memory_order_release);
  }
  return *lanes_[number];
}

LaneCounters SessionCounters::sum() const {
  LaneCounters sum;
  for (uint32_t number = 0; number < lane_count(); ++number) sum += at(number);
  return sum;
}

void SessionCounters::mark() {
  deliveries.mark();
  for (uint32_t number = 0; number < lane_count(); ++number) lanes_[number]->mark();
}

}  // namespace egret::rpc
