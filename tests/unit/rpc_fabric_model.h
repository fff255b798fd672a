// A lane of the client and its partition, production code on both sides, over a modelled fabric on virtual time. The
// fabric is one of real cards: whatever crosses it takes 0.95 µs, so a READ 1.9 µs. What comes out is a model's, not a
// measurement.
//
//   ops, at a rate ─▶ ClientLane ─ WRITE, READ, ring ─▶ events by time ─▶ SlotPoller, whose handler takes its time
//                         ▲                                    ▲                │
//                         └───────────────────────────────────┴── results, pushes, when the round is over
//
// The client polls without end, the partition until its lane has been idle for a millisecond; then a ring wakes it.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "rpc/slot_poller.h"
#include "rpc_fakes.h"

namespace egret::rpc::model {

using Service = std::function<double(std::mt19937_64&)>;  // µs that a message takes the partition

inline Service constant(double us) {
  return [us](std::mt19937_64&) { return us; };
}
inline Service exponential(double least, double mean) {
  return [=](std::mt19937_64& chance) { return least + std::exponential_distribution<double>(1 / mean)(chance); };
}
inline Service seldom_long() {
  return [](std::mt19937_64& chance) { return chance() % 100 == 0 ? 50.0 : 0.4; };
}

struct Options {
  Service service;
  double rate = 0;  // ops a second, at random times; 0: each as soon as the last is answered
  FetchMode mode = FetchMode::kAuto;
  PushRules push = {};        // never cheap
  uint64_t post_ns = 100;     // what a push takes the partition, and as long the device
  bool knows_deliver = true;  // both sides
  size_t value_bytes = 10;
};

// Of the messages of one run.
struct Seen {
  double mean_ns = 0;       // from an op's arrival to its result
  double vain = 0;          // READs that found nothing, of a message
  double posts = 0;         // of the client, of a message
  double server_posts = 0;  // the same
  double asked = 0;         // share that asked for a push
  double rang = 0;          // share that rang themselves
};

class Model final : private OpHandler, private DeliveryRelay, private Waiter {
 public:
  static constexpr uint64_t kOneWay = 950, kSee = 25, kPass = 50, kWake = 5'000, kLaneIdle = 1'000'000;  // ns

  explicit Model(Options given)
      : options_(std::move(given)), fetch_{.mode = options_.mode}, value_(options_.value_bytes, 'v') {
    active_.open(kLayout.lanes);
    poller_.attach({.session_id = 1,
                    .endpoint = &server_,
                    .layout = kLayout,
                    .seal = {.nonce = kNonce},
                    .knows_deliver = options_.knows_deliver});
    next_op_ns_ = now_ns_ + pause();
    nap();
  }

  Seen run(uint32_t ops) {
    const LaneCounters& c = counters_;
    const uint64_t messages = c.messages.get(), vain = c.refetches.get(), asked = c.asked.get();
    const uint64_t rang = c.ringing_requests.get(), posts = posts_, pushes = pushes_;
    total_ns_ = answered_ = 0;
    while (answered_ < ops) step();
    const auto sent = static_cast<double>(c.messages.get() - messages);
    const auto of = [&](uint64_t now, uint64_t before) { return static_cast<double>(now - before) / sent; };
    return {.mean_ns = static_cast<double>(total_ns_) / static_cast<double>(answered_),
            .vain = of(c.refetches.get(), vain),
            .posts = of(posts_, posts),
            .server_posts = of(pushes_, pushes),
            .asked = of(c.asked.get(), asked),
            .rang = of(c.ringing_requests.get(), rang)};
  }
  const LaneCounters& counters() const { return counters_; }

 private:
  static constexpr wire::RegionLayout kLayout{
      .lanes = 1, .window = 8, .request_slot_size = 4096, .response_slot_size = 8192};

  uint64_t pause() {
    if (options_.rate == 0) return 0;
    return static_cast<uint64_t>(std::exponential_distribution<double>(options_.rate / 1e9)(chance_)) + 1;
  }
  void at(uint64_t ns, std::function<void()> what) { events_.emplace(ns, std::move(what)); }

  // Time goes on to whatever is next: an event, an op, or the client's next look at what it waits for.
  void step() {
    uint64_t next = std::min(next_op_ns_, events_.empty() ? UINT64_MAX : events_.begin()->first);
    if (lane_.outstanding() > 0 && !lane_.progress().is_asked) next = std::min(next, now_ns_ + kPass);
    now_ns_ = std::max(now_ns_, next);
    while (!events_.empty() && events_.begin()->first <= now_ns_) {
      const auto what = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      what();
    }
    for (; next_op_ns_ <= now_ns_; next_op_ns_ = options_.rate == 0 ? UINT64_MAX : next_op_ns_ + pause()) {
      waiting_.push_back(next_op_ns_);
    }
    pass();
  }

  // A pass of the client's worker: what waits goes into one message, what is due is fetched.
  void pass() {
    for (bool is_first = true; !waiting_.empty(); is_first = false) {
      if (!lane_.append(get_of(is_first ? kFirst : "other"), this)) break;
      arrived_.push_back(waiting_.front());
      waiting_.pop_front();
    }
    lane_.seal();
    if (lane_.outstanding() > 0) lane_.stage_fetches(16 - lane_.progress().reads_in_flight);
    for (const auto& write : std::exchange(client_.writes, {})) post_write(write);
    for (const auto& read : std::exchange(client_.reads, {})) post_read(read);
    for (size_t rings = std::exchange(client_.rings, {}).size(); rings > 0; --rings) {
      ++posts_;
      at(now_ns_ + kOneWay, [this] { ring(); });
    }
  }

  void on_result(const op::Result&) override {
    total_ns_ += now_ns_ - arrived_.front();
    arrived_.pop_front();
    ++answered_;
    if (options_.rate == 0 && arrived_.empty()) next_op_ns_ = now_ns_;
  }

  void post_write(const FakeClientEndpoint::Write& write) {
    ++posts_;
    const std::byte* const from = client_.requests.data() + write.offset;
    std::vector<std::byte> bytes(from, from + write.length);
    std::memcpy(bytes.data(), &write.first_word, sizeof write.first_word);
    at(now_ns_ + kOneWay, [this, bytes = std::move(bytes), write] {
      std::ranges::copy(bytes, server_.requests.data() + write.offset);
      if (write.rings) ring();
      look();
    });
  }

  void post_read(const FakeClientEndpoint::Read& read) {
    ++posts_;
    at(now_ns_ + kOneWay, [this, read] {
      const std::byte* const from = visible_.data() + read.offset;
      std::vector<std::byte> sampled(from, from + read.length);
      at(now_ns_ + kOneWay, [this, read, sampled = std::move(sampled)] {
        std::ranges::copy(sampled, client_.responses.data() + read.offset);
        taken_ns_ = now_ns_;
        REQUIRE(lane_.on_fetched(read.tag));
      });
    });
  }

  // --- the partition

  void ring() {
    if (poller_.awake_lanes() > 0) return poller_.ring(1);
    at(now_ns_ + kWake, [this] {
      set_clock();
      poller_.ring(1);
      nap();
      look();
    });
  }

  void set_clock() { clock_.advance_ns(now_ns_ - std::min(now_ns_, clock_.now_ns())); }

  // Looks at the lane's next slot, soon, or when the round under way is over. What that round leaves is seen at its end.
  void look() {
    if (is_looking_) return;
    is_looking_ = true;
    at(std::max(now_ns_, busy_until_ns_) + kSee, [this] {
      is_looking_ = false;
      set_clock();
      if (poller_.poll() == 0) return;
      busy_until_ns_ = clock_.now_ns();
      publish();
      nap();
      look();
    });
  }

  // When no round has come for so long, the lane sleeps.
  void nap() {
    at(std::max(now_ns_, busy_until_ns_) + kLaneIdle + kSee, [this, round = ++rounds_] {
      if (round != rounds_ || poller_.awake_lanes() == 0) return;
      set_clock();
      poller_.park();
      busy_until_ns_ = std::max(busy_until_ns_, now_ns_);
      publish();
    });
  }

  // Slots that have changed become visible, then deliveries go out, one after the other.
  void publish() {
    for (uint64_t slot = 0; slot < kLayout.window; ++slot) {
      const size_t offset = kLayout.response_offset(0, slot), head = sizeof(wire::ResponseHeader);
      const std::byte* const from = server_.responses.data() + offset;
      if (std::memcmp(from, shadow_.data() + offset, head) == 0) continue;
      std::memcpy(shadow_.data() + offset, from, head);
      std::vector<std::byte> bytes(from, from + wire::response_size(from, kLayout.response_slot_size));
      at(busy_until_ns_, [this, offset, bytes] { std::ranges::copy(bytes, visible_.data() + offset); });
    }
    for (const auto& push : std::exchange(server_.deliveries, {})) {
      ++pushes_;
      const std::byte* const from = server_.responses.data() + push.offset;
      std::vector<std::byte> bytes(from, from + push.length);
      busy_until_ns_ += options_.post_ns;
      at(busy_until_ns_ + options_.post_ns + kOneWay, [this, push, bytes = std::move(bytes)] {
        std::ranges::copy(bytes, replies_.data() + push.offset);
        taken_ns_ = now_ns_;
        REQUIRE(lane_.on_delivered({replies_.data() + push.offset, push.length}));
      });
    }
  }

  // --- OpHandler. A message takes its time with its first op.
  void begin_round() override {}
  void foresee(std::span<op::Op>) override {}
  void prepare(std::span<op::Op> ops, std::span<const LaneId>) override { ops_ = ops; }
  void locate() override {}
  op::Result execute(size_t index) override {
    if (ops_[index].key == kFirst) clock_.advance_ns(static_cast<uint64_t>(options_.service(chance_) * 1000));
    return hit(value_);
  }
  void lane_dropped(LaneId) override {}
  void relay(const LaneBinding&, size_t, size_t, std::span<const transport::Piece>) override {}

  static constexpr const char* kFirst = "first";

  const Options options_;
  const FetchOptions fetch_;
  const std::string value_;
  std::mt19937_64 chance_{1};
  std::multimap<uint64_t, std::function<void()>> events_;
  uint64_t now_ns_ = 1'000'000'000, taken_ns_ = 0;

  uint64_t next_op_ns_ = 0;
  std::deque<uint64_t> waiting_, arrived_;  // when ops that wait, and those under way, have arrived
  uint64_t total_ns_ = 0, answered_ = 0, posts_ = 0, pushes_ = 0;

  Words visible_{kLayout.response_bytes()}, shadow_{kLayout.response_bytes()}, replies_{kLayout.response_bytes()};
  base::ManualClock clock_;  // of the partition
  FakeServerEndpoint server_{kLayout, false};
  SlotPoller poller_{
      {.lane_idle_ns = kLaneIdle, .far_lane_idle_ns = kLaneIdle, .push = options_.push}, clock_, *this, *this};
  std::span<op::Op> ops_;
  uint64_t busy_until_ns_ = 0, rounds_ = 0;
  bool is_looking_ = false;

  FakeClientEndpoint client_{kLayout, false};
  LaneCounters counters_;
  egret::base::Histogram durations_;
  ActiveLanes active_{nullptr};
  ClientLane lane_{0,
                   {.layout = kLayout,
                    .seal = {.nonce = kNonce},
                    .fetch = fetch_,
                    .endpoint = client_,
                    .times = {now_ns_, taken_ns_},
                    .durations = durations_,
                    .active = active_,
                    .knows_deliver = options_.knows_deliver},
                   counters_};
};

}  // namespace egret::rpc::model
