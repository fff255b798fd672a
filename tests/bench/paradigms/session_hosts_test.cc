// One listening and two connecting hosts over channels inside the process, with nodes that only tell and check what they are
// told: all-gather, phases, what is brought back, a node that cannot, a host that goes, one that sends nonsense.
#include <deque>
#include <mutex>
#include <thread>

#include <doctest/doctest.h>

#include "bench_paradigms/session/hosts.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)
using egret::base::Expected;
using egret::base::Status;

namespace {

// Two ends; what one sends the other polls. An end that goes takes the way with it.
struct Wire {
  std::mutex mutex;
  std::deque<Frame> frames[2];
  bool is_gone = false;
};
class FakeChannel final : public Channel {
 public:
  FakeChannel(std::shared_ptr<Wire> wire, size_t end) : wire_(std::move(wire)), end_(end) {}
  ~FakeChannel() override {
    const std::unique_lock held(wire_->mutex);
    wire_->is_gone = true;
  }
  Status send(FrameType type, std::string_view body) override {
    const std::unique_lock held(wire_->mutex);
    if (wire_->is_gone) return Status::error("gone");
    wire_->frames[1 - end_].push_back({type, std::string(body)});
    return Status::ok();
  }
  Expected<std::optional<Frame>> poll() override {
    const std::unique_lock held(wire_->mutex);
    auto& frames = wire_->frames[end_];
    if (frames.empty()) {
      if (wire_->is_gone) return Status::error("gone");
      return std::optional<Frame>();
    }
    Frame frame = std::move(frames.front());
    frames.pop_front();
    return std::optional<Frame>(std::move(frame));
  }
  void trust() override {}

 private:
  std::shared_ptr<Wire> wire_;
  size_t end_;
};

class FakeFabric final : public Fabric {
 public:
  FakeFabric(NodeId node, const Capabilities& all) : all_(all), node_(node) {}
  const Capabilities& capabilities() const override { return all_; }
  NodeAddress address() const override {
    NodeAddress own;
    own.node = node_;
    own.lid = static_cast<uint16_t>(100 + node_);
    return own;
  }
  Expected<std::unique_ptr<Memory>> make_memory(size_t /*bytes*/, uint8_t /*rights*/) override { return none(); }
  Expected<std::unique_ptr<Queue>> make_queue(uint32_t /*entries*/) override { return none(); }
  Expected<std::unique_ptr<Pair>> make_pair(const PairSpec& /*spec*/) override { return none(); }
  Expected<std::unique_ptr<Way>> make_way(const NodeAddress& /*peer*/) override { return none(); }

 private:
  static Status none() { return Status::error("none here"); }
  const Capabilities all_;
  NodeId node_;
};

std::atomic<int> g_nodes{0};       // that there are
std::atomic<NodeId> g_fails{~0u};  // which node's prepare fails
std::atomic<size_t> g_notice_bytes{10};

std::string told(NodeId from, NodeId to) {
  return std::to_string(from) + "->" + std::to_string(to) + std::string(g_notice_bytes.load(), '.');
}

// Tells every other node who tells whom, and wants to be told the same.
template <typename Base>
class Talker : public Base {
 public:
  Talker(const Plan& plan, NodeId self) : plan_(plan), self_(self) { ++g_nodes; }
  ~Talker() override { --g_nodes; }
  Status prepare() override { return g_fails == self_ ? Status::error("no room") : Status::ok(); }
  std::string notice(NodeId to) override { return told(self_, to); }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    const NodeId next = joined_ < self_ ? joined_ : joined_ + 1;  // all but itself, in their order
    ++joined_;
    if (from != next) return Status::error("out of turn");
    if (address.node != from || address.lid != 100 + from) return Status::error("another's address");
    return notice == told(from, self_) ? Status::ok() : Status::error("another's notice");
  }
  Status load() override {
    return joined_ + 1 == plan_.nodes() && plan_.keys->count() == 50 ? Status::ok() : Status::error("not ready");
  }

 private:
  const Plan& plan_;
  const NodeId self_;
  NodeId joined_ = 0;
};
class TalkingServer final : public Talker<ServerNode> {
 public:
  using Talker::Talker;
  bool serve() override { return false; }
};
class TalkingClient final : public Talker<ClientNode> {
 public:
  using Talker::Talker;
  bool begin(const Op& /*op*/) override { return false; }
  uint32_t poll(std::span<Result> /*out*/) override { return 0; }
  Trouble trouble() const override { return {}; }
};

const Paradigm kTalking{.id = "talking",
                        .title = "nodes that only talk",
                        .source = "",
                        .make_server = [](const Plan& plan, NodeId self, Fabric&) -> std::unique_ptr<ServerNode> {
                          return std::make_unique<TalkingServer>(plan, self);
                        },
                        .make_client = [](const Plan& plan, NodeId self, Fabric&) -> std::unique_ptr<ClientNode> {
                          return std::make_unique<TalkingClient>(plan, self);
                        }};

// Three phases; in each, every node adds one, and sees that all others have when it is open.
class Counting final : public NodeWork {
 public:
  std::string run(Seat& seat) override {
    for (int phase = 1; phase <= 3; ++phase) {
      ++count;
      seat.gate.arrive();
      while (!seat.gate.is_open() && !seat.gate.is_broken()) std::this_thread::yield();
      if (seat.gate.is_broken()) return "broken";
      if (count < phase * static_cast<int>(seat.plan.nodes())) ++too_early;
    }
    return seat.order.workload + std::to_string(seat.self) + (seat.server != nullptr ? "s" : "c");
  }
  std::atomic<int> count{0}, too_early{0};
};

struct Three {
  std::atomic<bool> stop{false};
  Counting work;
  std::unique_ptr<Leader> leader;
  std::vector<std::shared_ptr<Wire>> wires;
  std::vector<Expected<std::string>> reports{2, Expected<std::string>(std::string())};
  std::vector<std::thread> followers;

  Surroundings surroundings() {
    Surroundings own;
    own.make_fabric = [](NodeId node, const Capabilities& all) -> Expected<std::unique_ptr<Fabric>> {
      return std::unique_ptr<Fabric>(std::make_unique<FakeFabric>(node, all));
    };
    own.find = [](std::string_view id) { return id == "talking" ? &kTalking : nullptr; };
    own.stop = &stop;
    return own;
  }
  // The first `following` of the two follow; the others' ends stay with the test.
  explicit Three(size_t following = 2) {
    std::vector<Neighbour> others;
    for (size_t i = 0; i < 2; ++i) {
      const auto wire = wires.emplace_back(std::make_shared<Wire>());
      others.emplace_back(std::make_unique<FakeChannel>(wire, 0));
      if (i >= following) continue;
      // The thread has its wire by value: `wires` may grow, and so move, when it begins.
      followers.emplace_back([this, i, wire] {
        Follower follower(Neighbour(std::make_unique<FakeChannel>(wire, 1)), surroundings(), work);
        reports[i] = follower.run();
      });
    }
    auto made = Leader::make(std::move(others), {{"a", 1}, {"b", 1}, {"c", 1}}, {}, surroundings());
    REQUIRE(made);
    leader = std::move(made.value());
  }
  ~Three() {
    leader.reset();
    for (auto& each : followers) each.join();
    g_fails = ~0u;
    g_notice_bytes = 10;
  }
  static Order order(uint32_t servers = 2, uint32_t clients = 5) {
    Order one;
    one.paradigm = "talking";
    one.plan = {.servers = servers, .clients = clients};
    one.keys = 50;
    one.workload = "w";
    return one;
  }
};

}  // namespace

TEST_CASE("every node is told what every other node tells it, phase follows phase, and all that nodes return arrives") {
  for (const size_t bytes : {size_t{0}, size_t{10}, size_t{100'000}}) {
    CAPTURE(bytes);
    g_notice_bytes = bytes;
    Three hosts;
    auto result = hosts.leader->run(Three::order(), hosts.work);
    REQUIRE_MESSAGE(result, result.message());
    CHECK(result.value().not_available == "");
    CHECK(result.value().figures == std::vector<std::string>{"w0s", "w1s", "w2c", "w3c", "w4c", "w5c", "w6c"});
    CHECK(hosts.work.count == 21);
    CHECK(hosts.work.too_early == 0);
    CHECK(g_nodes == 0);
  }
}

TEST_CASE("one run follows another, and the report comes to all") {
  Three hosts;
  REQUIRE(hosts.leader->run(Three::order(), hosts.work));
  REQUIRE(hosts.leader->run(Three::order(1, 2), hosts.work));
  CHECK(hosts.leader->end("the report"));
  for (auto& each : hosts.followers) each.join();
  hosts.followers.clear();
  for (const auto& report : hosts.reports) {
    REQUIRE_MESSAGE(report, report.message());
    CHECK(report.value() == "the report");
  }
}

TEST_CASE("what a node of any host cannot is not available, and the next run is") {
  Three hosts;
  for (const NodeId fails : {0u, 3u, 6u}) {
    g_fails = fails;
    auto result = hosts.leader->run(Three::order(), hosts.work);
    REQUIRE_MESSAGE(result, result.message());
    CHECK(result.value().not_available == "no room");
    CHECK(result.value().figures.empty());
    CHECK(g_nodes == 0);
  }
  g_fails = ~0u;
  auto result = hosts.leader->run(Three::order(), hosts.work);
  REQUIRE(result);
  CHECK(result.value().not_available == "");
}

TEST_CASE("a listening host says what cannot be, without asking the others") {
  Three hosts;
  Order strange = Three::order();
  strange.paradigm = "no such";
  CHECK(hosts.leader->run(strange, hosts.work).message() == "there is no paradigm 'no such'");
  CHECK(hosts.leader->run(Three::order(1, 1), hosts.work).message() == "there are fewer clients than hosts for them");
}

TEST_CASE("an interruption ends the work on all hosts") {
  Three hosts;
  hosts.stop = true;
  CHECK(hosts.leader->run(Three::order(), hosts.work).message() == "interrupted");
}

TEST_CASE("a listening host whose other host goes, or sends something else, says so and ends the work of the rest") {
  const auto message_after = [](const auto& act) {
    Three hosts(1);
    {
      FakeChannel strange(hosts.wires[1], 1);
      act(strange);
    }
    const std::string message = hosts.leader->run(Three::order(), hosts.work).message();
    hosts.leader.reset();
    for (auto& each : hosts.followers) each.join();
    hosts.followers.clear();
    CHECK_FALSE(hosts.reports[0]);
    CHECK(g_nodes == 0);
    return message;
  };
  CHECK(message_after([](Channel&) {}) == "gone");
}

TEST_CASE("nonsense from a connecting host ends the run with one sentence") {
  const auto message_of = [](FrameType type, const std::string& body) {
    Three hosts(1);
    FakeChannel strange(hosts.wires[1], 1);
    REQUIRE(strange.send(type, body));
    return hosts.leader->run(Three::order(), hosts.work).message();
  };
  const std::string another = "the other side has done something else than was asked for";
  CHECK(message_of(FrameType::kArrived, "x") == "the other side sends nonsense");
  CHECK(message_of(FrameType::kDone, "x") == "the other side sends nonsense");
  CHECK(message_of(FrameType::kHello, "x") == "the other side sends something else than was asked for");
  CHECK(message_of(FrameType::kDone, to_body(StepDone{Step::kJoin, {}})) == another);
  CHECK(message_of(FrameType::kDone, to_body(StepDone{Step::kPrepare, {}})) == another);
  StepDone of_others{Step::kPrepare, std::vector<Brought>(2)};  // clients 1 and 3 are this host's: nodes 3 and 5
  of_others.nodes[0].node = 3;
  of_others.nodes[1].node = 1u << 31;
  CHECK(message_of(FrameType::kDone, to_body(of_others)) == another);
  of_others.nodes[1].node = 5;  // its own, but without notices
  CHECK(message_of(FrameType::kDone, to_body(of_others)) == "the other side tells of other nodes than there are");
}

TEST_CASE("nonsense from the listening host ends a connecting one with one sentence") {
  const auto message_after = [](const std::vector<Frame>& frames) {
    Three hosts(1);
    for (const Frame& each : frames) {
      const std::unique_lock held(hosts.wires[0]->mutex);
      hosts.wires[0]->frames[1].push_back(each);
    }
    hosts.followers[0].join();
    hosts.followers.clear();
    return hosts.reports[0].message();
  };
  const std::string impossible = "the listening side asks for the impossible";
  const Frame order{FrameType::kOrder, to_body(Three::order())};
  Order unknown = Three::order();
  unknown.paradigm = "no such";
  CHECK(message_after({{FrameType::kOrder, "x"}}) == "the other side sends nonsense");
  CHECK(message_after({{FrameType::kOrder, to_body(unknown)}}) == impossible);
  CHECK(message_after({order, order}) == impossible);
  CHECK(message_after({{FrameType::kStep, to_body(StepOrder{Step::kPrepare, {}})}}) == impossible);
  CHECK(message_after({order, {FrameType::kStep, to_body(StepOrder{Step::kLoad, {}})}}) == impossible);
  CHECK(message_after({order, {FrameType::kStep, to_body(StepOrder{Step::kJoin, {}})}}) == impossible);
  CHECK(message_after({order, {FrameType::kOpen, "x"}}) == impossible);
  CHECK(message_after({{FrameType::kOpen, FieldWriter().put<uint64_t>(1).take()}}) == impossible);
  CHECK(message_after({{FrameType::kGoodbye, ""}}) == impossible);
  CHECK(g_nodes == 0);
}
