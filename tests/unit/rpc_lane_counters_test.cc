// What is counted by lane: the names, sums, resets, and that it outlives a session and can be read from anywhere.
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "rpc/lane_counters.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::rpc;

namespace {

std::string value_of(std::string_view name, const std::vector<const LaneCounters*>& workers) {
  for (const LaneMetric& metric : lane_metrics()) {
    if (metric.name == name) return metric.value(workers);
  }
  return "no such metric";
}

}  // namespace

TEST_CASE("every metric has a name of its own, a sentence, and something to show") {
  std::set<std::string_view> names;
  for (const LaneMetric& metric : lane_metrics()) {
    CHECK(names.insert(metric.name).second);
    CHECK(metric.help.ends_with('.'));
    CHECK(metric.help.find('|') == std::string_view::npos);
    CHECK((metric.counter != nullptr) != (metric.shown != nullptr));
    CHECK(metric.total.empty() == (metric.counter == nullptr));
  }
  const std::set<std::string_view> expected{"messages",
                                            "direct_ops",
                                            "ops",
                                            "fetches",
                                            "refetches",
                                            "torn",
                                            "replies",
                                            "wants",
                                            "rings",
                                            "timeouts",
                                            "stalls",
                                            "asked",
                                            "second_reads",
                                            "ringing_requests",
                                            "switches_to_reply",
                                            "switches_to_fetch",
                                            "mode",
                                            "reply_reason",
                                            "push_is_cheap",
                                            "fetch_size"};
  CHECK(names == expected);
}

TEST_CASE("each counter is shown under its own name, added up over workers, and no other is") {
  for (const LaneMetric& metric : lane_metrics()) {
    if (metric.counter == nullptr) continue;
    LaneCounters one, two;
    (one.*metric.counter).add(3);
    (two.*metric.counter).add(4);
    for (const LaneMetric& shown : lane_metrics()) {
      if (shown.counter == nullptr) continue;
      CHECK(shown.value(std::vector<const LaneCounters*>{&one, &two}) == (shown.name == metric.name ? "7" : "0"));
    }
  }
}

TEST_CASE("a reset starts every counter anew, and leaves alone what is") {
  SessionCounters counters;
  LaneCounters& lane = counters.lane(1);
  for (const LaneMetric& metric : lane_metrics()) {
    if (metric.counter != nullptr) (lane.*metric.counter).add(9);
  }
  lane.mode.set(static_cast<uint64_t>(LaneMode::kReply));
  lane.fetch_size.set(512);
  counters.deliveries.add(2);
  counters.mark();
  const LaneCounters sum = counters.sum();
  for (const LaneMetric& metric : lane_metrics()) {
    if (metric.counter == nullptr) continue;
    CHECK(metric.value(std::vector<const LaneCounters*>{&lane}) == "0");
    CHECK((sum.*metric.counter).get() == 9);
    CHECK((sum.*metric.counter).since_mark() == 0);
  }
  CHECK(counters.deliveries.since_mark() == 0);
  CHECK(value_of("mode", {&lane}) == "reply");
  CHECK(value_of("fetch_size", {&lane}) == "512");
}

TEST_CASE("the mode of several workers' lanes: one, both, or none; the fetch size is the largest") {
  LaneCounters none, fetch, reply;
  fetch.mode.set(static_cast<uint64_t>(LaneMode::kFetch));
  reply.mode.set(static_cast<uint64_t>(LaneMode::kReply));
  fetch.fetch_size.set(256);
  reply.fetch_size.set(1000);
  CHECK(value_of("mode", {}) == "none");
  CHECK(value_of("mode", {&none, &none}) == "none");
  CHECK(value_of("mode", {&none, &fetch}) == "fetch");
  CHECK(value_of("mode", {&reply, &none}) == "reply");
  CHECK(value_of("mode", {&fetch, &reply}) == "mixed");
  CHECK(value_of("fetch_size", {}) == "0");
  CHECK(value_of("fetch_size", {&fetch, &reply, &none}) == "1000");
}

TEST_CASE("why results are pushed is shown for lanes whose results are, and mixed where workers have several reasons") {
  using Reason = FetchPolicy::Reason;
  const auto lane_with = [](LaneMode mode, Reason reason) {
    auto lane = std::make_unique<LaneCounters>();
    lane->mode.set(static_cast<uint64_t>(mode));
    lane->reason.set(static_cast<uint64_t>(reason));
    return lane;
  };
  const auto lost = lane_with(LaneMode::kNone, Reason::kCheap), fetching = lane_with(LaneMode::kFetch, Reason::kNone);
  const auto set = lane_with(LaneMode::kReply, Reason::kSet), slow = lane_with(LaneMode::kReply, Reason::kSlow);
  const auto cheap = lane_with(LaneMode::kReply, Reason::kCheap), quick = lane_with(LaneMode::kReply, Reason::kQuicker);
  CHECK(value_of("reply_reason", {}) == "none");
  CHECK(value_of("reply_reason", {lost.get(), fetching.get()}) == "none");
  CHECK(value_of("reply_reason", {set.get(), fetching.get()}) == "set");
  CHECK(value_of("reply_reason", {slow.get()}) == "slow");
  CHECK(value_of("reply_reason", {cheap.get(), cheap.get()}) == "cheap");
  CHECK(value_of("reply_reason", {quick.get()}) == "quicker");
  CHECK(value_of("reply_reason", {cheap.get(), quick.get()}) == "mixed");
  CHECK(value_of("push_is_cheap", {set.get(), slow.get()}) == "0");
  slow->is_push_cheap.set(1);
  CHECK(value_of("push_is_cheap", {set.get(), slow.get()}) == "1");
}

TEST_CASE("lanes stay where they are when there come to be more") {
  SessionCounters counters;
  LaneCounters* first = &counters.lane(0);
  CHECK(counters.lane_count() == 1);
  counters.lane(wire::kMaxLanes - 1).ops.add(2);
  first->ops.add(1);
  CHECK(counters.lane_count() == wire::kMaxLanes);
  CHECK(&counters.at(0) == first);
  CHECK(&counters.lane(0) == first);
  CHECK(counters.sum().ops.get() == 3);
}

TEST_CASE("any thread may read and reset while the worker's lanes come and count") {
  SessionCounters counters;
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      CHECK(counters.sum().messages.since_mark() <= 100 * wire::kMaxLanes);
      counters.mark();
    }
  });
  for (uint32_t lane = 0; lane < wire::kMaxLanes; ++lane) {
    for (int i = 0; i < 100; ++i) counters.lane(lane).messages.add();
  }
  stop = true;
  reader.join();
  CHECK(counters.sum().messages.get() == 100 * wire::kMaxLanes);
}
