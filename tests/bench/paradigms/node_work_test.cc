// What the threads of a run do from phase to phase: a server and clients that need no device, and a gate as a session's.
#include "bench_paradigms/harness/node_work.h"

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "bench/keyspace.h"
#include "bench_paradigms/fabric/memory_fabric.h"
#include "bench_paradigms/notice.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)
using egret::base::Status;

namespace {

constexpr uint32_t kNodes = 3;

// All nodes of this process.
class Meeting {
 public:
  std::atomic<uint32_t> arrived{0};
  std::atomic<bool> is_broken{false};
};
class TestGate final : public Gate {
 public:
  explicit TestGate(Meeting& meeting) : meeting_(meeting) {}
  void arrive() override {
    ++phases_;
    ++meeting_.arrived;
  }
  bool is_open() const override { return meeting_.arrived.load() >= phases_ * kNodes; }
  bool is_broken() const override { return meeting_.is_broken.load(); }

 private:
  Meeting& meeting_;
  uint32_t phases_ = 0;
};

class Server final : public ServerNode {
 public:
  Status prepare() override { return Status::ok(); }
  std::string notice(NodeId /*to*/) override { return ""; }
  Status join(NodeId /*from*/, const NodeAddress& /*address*/, std::string_view /*notice*/) override {
    return Status::ok();
  }
  bool serve() override {
    ++passes;
    return passes % 2 == 0;
  }
  uint32_t walk(std::string_view /*key*/) const override { return 3; }
  uint64_t passes = 0;
};

// Answers at once, or (silent) never.
class Client final : public ClientNode {
 public:
  Client(uint32_t value_bytes, bool is_silent) : value_bytes_(value_bytes), is_silent_(is_silent) {}
  Status prepare() override { return Status::ok(); }
  std::string notice(NodeId /*to*/) override { return ""; }
  Status join(NodeId /*from*/, const NodeAddress& /*address*/, std::string_view /*notice*/) override {
    return Status::ok();
  }
  bool begin(const Op& op) override {
    under_way_.push_back(op);
    return true;
  }
  uint32_t poll(std::span<Result> out) override {
    if (under_way_.empty() || is_silent_) return 0;
    const Op op = under_way_.front();
    under_way_.pop_front();
    value_.assign(value_bytes_, '\0');
    egret::bench::write_value(value_.data(), value_.size(), op.key_number, kLoadedVersion);
    out[0] = {op.ticket, op.kind == OpKind::kGet ? Outcome::kHit : Outcome::kDone, value_};
    return 1;
  }
  Trouble trouble() const override { return {.retries = 1}; }

 private:
  uint32_t value_bytes_;
  bool is_silent_;
  std::deque<Op> under_way_;
  std::string value_;
};

// A server core and two clients, to the end of their run.
RunOutcome run(const RunOrder& told, bool is_silent = false, bool breaks = false) {
  const egret::bench::Keyspace keys(100, 16);
  Plan plan{.servers = 1, .clients = 2, .window = 4};
  plan.keys = &keys;
  const Order order{"raw-read", plan, 100, to_notice(told)};
  MemoryWorld world(1);
  HarnessWork work;
  Meeting meeting;
  std::vector<std::string> figures(kNodes);
  std::vector<std::unique_ptr<Fabric>> fabrics;
  for (NodeId id = 0; id < kNodes; ++id) fabrics.push_back(world.make_fabric(id));
  std::vector<std::thread> threads;
  for (NodeId id = 0; id < kNodes; ++id) {
    threads.emplace_back([&, id] {
      TestGate gate(meeting);
      Server server;
      Client client(plan.value_bytes, is_silent);
      Seat seat{id, *find_paradigm("raw-read"), order, plan, *fabrics[id], nullptr, nullptr, gate};
      if (id == 0) seat.server = &server;
      if (id != 0) seat.client = &client;
      figures[id] = work.run(seat);
    });
  }
  if (breaks) meeting.is_broken.store(true);
  for (auto& thread : threads) thread.join();
  RunOutcome sum;
  for (const std::string& each : figures) {
    NodeOutcome node;
    REQUIRE(read_notice(each, node));
    sum.add(node);
  }
  return sum;
}

Setting setting_of(uint64_t ops) {
  Setting setting;
  setting.keys = 100;
  setting.clients = 2;
  setting.window = 4;
  setting.ops = ops;
  setting.warm_up_s = 0.01;
  setting.round_s = 0.02;
  return setting;
}

}  // namespace

TEST_CASE("by ops: every one is begun, answered and measured, and the walk goes over as many gets") {
  const RunOutcome found = run(order_of(setting_of(3000), {.gets = 1}, false));
  CHECK(found.tally.ops == 3000);
  CHECK(found.tally.hits == 3000);
  CHECK(found.tally.measured_ops == 3000);
  CHECK(found.tally.wrong() == 0);
  CHECK(found.tally.unanswered == 0);
  CHECK(found.walked.gets == 3000);
  CHECK(found.walked.steps == 9000);
  CHECK(found.trouble.retries == 2);
}

TEST_CASE("by time: the warm-up is not measured, the round is as long as was said, and CPU is no longer than it") {
  const RunOutcome found = run(order_of(setting_of(0), {.gets = 1}, false));
  CHECK(found.tally.measured_ops > 0);
  CHECK(found.tally.measured_ops < found.tally.ops);
  CHECK(found.round_ns >= 20'000'000);
  CHECK(found.server_spent.busy <= found.server_spent.cpu);
  CHECK(found.client_spent.cpu > 0);
  CHECK(found.tally.unanswered == 0);
}

TEST_CASE("a session that breaks ends the work, and what was not answered is said") {
  const RunOutcome found = run(order_of(setting_of(3000), {.gets = 1}, false), true, true);
  CHECK(found.tally.ops == 0);
}
