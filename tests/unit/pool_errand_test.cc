// An errand to one member, which the test plays: what it sends, what its owner is told, and how it ends.
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "pool/errand.h"
#include "pool_played_member.h"

using namespace egret;
using namespace egret::pool;
using op::OpCode;
using op::ResultCode;

namespace {

constexpr uint64_t kMostSent = 5000;
PlayedMember by_rdma;  // where a member has two addresses: what is played at the first

class AdvancedClock final : public base::Clock {
 public:
  uint64_t now_ns() const override { return real_.now_ns() + ahead_ns_; }
  int64_t unix_seconds() const override { return real_.unix_seconds(); }
  void advance_ns(uint64_t ns) { ahead_ns_ += ns; }

 private:
  const base::SystemClock real_;
  uint64_t ahead_ns_ = 0;
};

struct Owner final : ErrandOwner {
  Owner() {
    played = &member;
    by_rdma = PlayedMember();
  }
  // Runs an errand until it is over.
  void run(const std::function<void(Errand&, uint32_t)>& opened, const std::string& address = "shm:member",
           rpc::ClientSession::Connect connect = connect_to_played) {
    on_open = opened;
    rpc::SessionOptions usual;
    usual.op_timeout_ns = usual.connect_timeout_ns = 50'000'000;
    errand = std::make_unique<Errand>(loop, clock, Errand::options(usual, address), *this, connect);
    errand->start();
    CHECK(over == 0);
    while (over == 0) loop.run_once(true);
  }
  void on_errand_open(Errand& its, uint32_t partitions) override {
    ++opens;
    on_open(its, partitions);
  }
  void on_errand_result(Errand& its, uint64_t tag, const op::Result& result) override {
    codes[tag] = result.code;
    order.push_back(tag);
    flags[tag] = result.client_flags;
    if (on_result) on_result(its, tag);
  }
  void on_errand_over(Errand&, const base::Status& its) override {
    ++over;
    status = its;
    errand.reset();  // allowed here
  }

  void send_next() { errand->send({}, 1, ++sent); }

  PlayedMember member;
  AdvancedClock clock;
  events::EventLoop loop;
  std::unique_ptr<Errand> errand;
  events::Event pause = events::Event::timer<&Owner::send_next>(loop, *this);  // before the next op is sent
  uint64_t sent = 0;
  std::function<void(Errand&, uint32_t)> on_open;
  std::function<void(Errand&, uint64_t)> on_result;
  int opens = 0, over = 0;
  base::Status status = base::Status::ok();
  std::map<uint64_t, ResultCode> codes;
  std::map<uint64_t, uint32_t> flags;
  std::vector<uint64_t> order;
};

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_by_transport(const std::string& address,
                                                                                const transport::ConnectOptions&) {
  return connect_to(address.starts_with("rdma:") ? by_rdma : *played);
}

void ping_each(Errand& errand, uint32_t partitions) {
  for (uint32_t partition = 0; partition < partitions; ++partition) errand.send({}, partition, partition);
}

}  // namespace

TEST_CASE("an op goes to each partition that is named, and its answer comes back by its tag") {
  Owner owner;
  owner.run(ping_each);
  CHECK(owner.status);
  CHECK(owner.opens == 1);
  CHECK(owner.codes ==
        std::map<uint64_t, ResultCode>{{0, ResultCode::kOk}, {1, ResultCode::kOk}, {2, ResultCode::kOk}});
  std::map<uint32_t, int> by_lane;
  for (const auto& [lane, op] : owner.member.got) {
    CHECK(op.code == OpCode::kPing);
    ++by_lane[lane];
  }
  CHECK(by_lane == std::map<uint32_t, int>{{0, 1}, {1, 1}, {2, 1}});
}

TEST_CASE("an op on a key goes to the partition of the key, and many more than the window holds are all answered") {
  Owner owner;
  owner.member.answer = [](const op::Op& op) {
    op::Result hit = rpc::hit("");
    hit.client_flags = static_cast<uint32_t>(std::stoul(std::string(op.key.substr(4))));
    return hit;
  };
  owner.run([&](Errand& errand, uint32_t) {
    for (uint64_t i = 0; i < 500; ++i) {
      op::Op get;
      get.code = OpCode::kGet;
      const std::string key = "key " + std::to_string(i);  // gone before it is sent
      get.key = key;
      errand.send(get, Errand::kOfKey, i);
    }
  });
  CHECK(owner.status);
  REQUIRE(owner.flags.size() == 500);
  for (const auto& [tag, flags] : owner.flags) CHECK(flags == tag);
  CHECK(owner.member.got.size() == 500);
}

TEST_CASE("answers may lead to further ops") {
  Owner owner;
  owner.on_result = [](Errand& errand, uint64_t tag) {
    if (tag < 20) errand.send({}, 1, tag + 1);
  };
  owner.run([](Errand& errand, uint32_t) { errand.send({}, 1, 0); });
  CHECK(owner.status);
  CHECK(owner.order.size() == 21);
  CHECK(owner.order.back() == 20);
}

TEST_CASE("without an op it is over when it is open") {
  Owner owner;
  owner.run([](Errand&, uint32_t partitions) { CHECK(partitions == 3); });
  CHECK(owner.status);
}

TEST_CASE("the owner is told once why there was no answer") {
  Owner owner;
  std::string why;
  SUBCASE("nobody listens") {
    owner.member.behaviour = Behaviour::kRefusesConnection;
    why = "connection refused";
  }
  SUBCASE("no answer to the handshake") {
    owner.member.behaviour = Behaviour::kSaysNothing;
    why = "no answer to the handshake";
  }
  SUBCASE("no answer to an op") {
    owner.member.behaviour = Behaviour::kExecutesNothing;
    why = "the backend does not answer";
  }
  SUBCASE("it dies") {
    owner.member.behaviour = Behaviour::kDiesAtFirstOp;
    why = "the connection broke";
  }
  owner.run(ping_each);
  CHECK_FALSE(owner.status);
  CHECK(owner.status.message() == why);
  CHECK(owner.codes.empty());
  owner.loop.run_once(false);
  CHECK(owner.over == 1);
}

TEST_CASE("where the first of two addresses fails it goes by the second") {
  Owner owner;
  SUBCASE("at once") {
    by_rdma.behaviour = Behaviour::kRefusesConnection;
  }
  SUBCASE("by saying nothing") {
    by_rdma.behaviour = Behaviour::kSaysNothing;
  }
  owner.run(ping_each, "rdma+tcp:10.0.0.2:11311", connect_by_transport);
  CHECK(owner.status);
  CHECK(owner.opens == 1);
  CHECK(owner.codes.size() == 3);
  CHECK(by_rdma.got.empty());
  CHECK(owner.member.got.size() == 3);
}

TEST_CASE("where both addresses fail the owner is told once, why the second did") {
  Owner owner;
  by_rdma.behaviour = Behaviour::kSaysNothing;
  owner.member.behaviour = Behaviour::kRefusesConnection;
  owner.run(ping_each, "rdma+tcp:10.0.0.2:11311", connect_by_transport);
  CHECK(owner.status.message() == "connection refused");
  owner.loop.run_once(false);
  CHECK(owner.over == 1);
}

TEST_CASE("one that lasts until its first address serves again goes on by it, and does not begin anew") {
  Owner owner;
  by_rdma.behaviour = Behaviour::kRefusesConnection;
  owner.on_result = [&](Errand& errand, uint64_t tag) {
    if (tag == 1) {
      by_rdma.behaviour = Behaviour::kAnswers;
      owner.clock.advance_ns(2'000'000'000);  // so long that the first address is due
    }
    if (!by_rdma.got.empty() || tag == kMostSent) return errand.keep_open(false);
    owner.pause.add(std::chrono::milliseconds(1));
  };
  owner.run(
      [&](Errand& errand, uint32_t) {
        errand.keep_open(true);
        owner.send_next();
      },
      "rdma+tcp:10.0.0.2:11311", connect_by_transport);
  CHECK(owner.status);
  CHECK(owner.opens == 1);
  CHECK(by_rdma.got.size() == 1);
  CHECK(owner.order.size() == owner.sent);
  CHECK(owner.member.got.size() == owner.sent - 1);
}

TEST_CASE("a partition that there is not is an error, not a crash") {
  Owner owner;
  owner.run([](Errand& errand, uint32_t partitions) { errand.send({}, partitions); });
  CHECK(owner.status.message() == "it has no partition 3");
}

TEST_CASE("one that is destroyed on its way says nothing more") {
  Owner owner;
  owner.member.behaviour = Behaviour::kExecutesNothing;
  owner.on_open = ping_each;
  owner.errand =
      std::make_unique<Errand>(owner.loop, owner.clock, Errand::options({}, "shm:member"), owner, connect_to_played);
  owner.errand->start();
  while (owner.opens == 0) owner.loop.run_once(true);
  owner.loop.run_once(false);
  owner.errand.reset();
  owner.loop.run_once(false);
  CHECK(owner.over == 0);
}

TEST_CASE("it asks for the least slots, and for nothing that the usual sessions' options say of speed") {
  rpc::SessionOptions usual;
  usual.window = 64;
  usual.op_timeout_ns = 7;
  const rpc::SessionOptions options = Errand::options(usual, "shm:x");
  CHECK(options.window == wire::kMinWindow);
  CHECK(options.request_slot_size == wire::kMinSlotSize);
  CHECK(options.op_timeout_ns == 7);
  CHECK(options.address == "shm:x");
}
