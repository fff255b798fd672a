// The RPC engine over the memory fabric: every pairing of a request half with a response half carries calls of several
// clients to several servers, and posts what it says.
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "bench_paradigms/fabric/memory_fabric.h"
#include "bench_paradigms/rpc/client.h"
#include "bench_paradigms/rpc/kv_message.h"
#include "bench_paradigms/rpc/server.h"

using namespace egret;                   // NOLINT(google-build-using-namespace)
using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

std::string text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Answers with what it was asked, reversed. Right-aligned requests are 16 bytes of text that serve as their key.
class Reverser final : public RpcHandler {
 public:
  explicit Reverser(bool is_right_aligned) : is_right_aligned_(is_right_aligned) {}
  uint32_t handle(NodeId /*from*/, Bytes request, std::span<std::byte> response) override {
    const Bytes said = is_right_aligned_ ? request.last(16) : request;
    ++executed[text(said)];
    if (is_later) {
      later.push_back(text(said));
      return kLater;
    }
    return reverse(text(said), response);
  }
  static uint32_t reverse(std::string said, std::span<std::byte> response) {
    std::memcpy(response.data(), std::string(said.rbegin(), said.rend()).data(), said.size());
    return static_cast<uint32_t>(said.size());
  }
  void prefetch(Bytes request) override {
    ++prefetched[text(is_right_aligned_ ? request.last(16) : request)];
    CHECK(!executed.contains(text(is_right_aligned_ ? request.last(16) : request)));
  }
  std::map<std::string, int> executed, prefetched;
  bool is_later = false;
  std::vector<std::string> later;

 private:
  bool is_right_aligned_;
};

struct Counted {
  int answered = 0;
  int wrong = 0;
  int lost = 0;
  int failed = 0;
};

// Servers and clients of one shape, driven by one thread.
class Exchange {
 public:
  Exchange(RpcShape shape, Plan plan, uint64_t seed = 1) : shape_(shape), plan_(plan), world_(seed), rng_(seed + 17) {
    plan_.clock = &clock;
    handler = std::make_unique<Reverser>(shape.is_right_aligned());
    for (NodeId id = 0; id < plan_.nodes(); ++id) {
      fabrics_.push_back(world_.make_fabric(id));
      if (plan_.is_server(id)) {
        servers.push_back(std::make_unique<RpcServer>(plan_, id, *fabrics_.back(), shape_));
        REQUIRE(servers.back()->prepare().message() == "");
      } else {
        clients.push_back(std::make_unique<RpcClient>(plan_, id, *fabrics_.back(), shape_));
        REQUIRE(clients.back()->prepare().message() == "");
      }
    }
    for (NodeId server = 0; server < plan_.servers; ++server) {
      for (NodeId client = plan_.servers; client < plan_.nodes(); ++client) {
        RpcClient& one = *clients[client - plan_.servers];
        REQUIRE(servers[server]->join(client, fabrics_[client]->address(), one.notice(server)).message() == "");
        REQUIRE(one.join(server, fabrics_[server]->address(), servers[server]->notice(client)).message() == "");
      }
    }
  }

  // So many calls in all. Each says its number; right-aligned ones in 16 characters.
  Counted run(int calls, uint64_t most_steps = 20'000'000) {
    Counted counted;
    int begun = 0;
    for (uint64_t step = 0; step < most_steps && ended(counted) < calls; ++step) {
      const auto client = rng_.below(plan_.clients);
      if (begun < calls && call(client, rng_.below(plan_.servers))) ++begun;
      if (rng_.below(3) == 0 && !is_stopped) servers[rng_.below(plan_.servers)]->serve(*handler);
      for (uint32_t i = rng_.below(3); i > 0; --i) world_.advance();
      take(client, counted);
      clock.advance_ns(1000);
    }
    return counted;
  }
  bool call(uint32_t client, NodeId server) {
    std::string said = std::to_string(next_);
    said += std::string(16 - said.size(), 'x');
    std::string request =
        shape_.is_right_aligned() ? std::string("ab") + std::string(1, 0) + std::string(1, 0) + said : said;
    if (!shape_.is_right_aligned()) request.resize(16 - next_ % 7);
    if (!clients[client]->call(server, std::as_bytes(std::span(request)), next_)) return false;
    waiting_[next_++] = shape_.is_right_aligned() ? said : request;
    return true;
  }
  void take(uint32_t client, Counted& counted) {
    std::array<Reply, 4> replies;
    const uint32_t found = clients[client]->poll(replies);
    for (const Reply& reply : std::span(replies).first(found)) {
      const auto at = waiting_.find(reply.ticket);
      if (at == waiting_.end()) {
        ++counted.wrong;
        continue;
      }
      const std::string expected(at->second.rbegin(), at->second.rend());
      waiting_.erase(at);
      if (reply.state == ReplyState::kLost) ++counted.lost;
      if (reply.state == ReplyState::kFailed) ++counted.failed;
      if (reply.state != ReplyState::kAnswered) continue;
      ++counted.answered;
      if (text(reply.response) != expected) ++counted.wrong;
    }
  }
  Trouble trouble() const {
    Trouble sum;
    for (const auto& client : clients) {
      sum.retries += client->trouble().retries;
      sum.vain += client->trouble().vain;
      sum.reads += client->trouble().reads;
    }
    return sum;
  }
  VerbCounts counts(bool is_server) const {
    VerbCounts sum;
    for (NodeId id = 0; id < plan_.nodes(); ++id)
      if (plan_.is_server(id) == is_server) sum += fabrics_[id]->counts();
    return sum;
  }
  MemoryWorld& world() { return world_; }

  base::ManualClock clock;
  std::unique_ptr<Reverser> handler;
  bool is_stopped = false;

 private:
  static int ended(const Counted& counted) { return counted.answered + counted.lost + counted.failed; }
  RpcShape shape_;
  Plan plan_;
  MemoryWorld world_;
  bench::Rng rng_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;

 public:
  std::vector<std::unique_ptr<RpcServer>> servers;
  std::vector<std::unique_ptr<RpcClient>> clients;

 private:
  std::map<uint64_t, std::string> waiting_;
  uint64_t next_ = 1;
};

RpcShape shape_of(RequestHalf request, ResponseHalf response, PairType pairs = PairType::kRc) {
  RpcShape shape;
  shape.request = request;
  shape.response = response;
  shape.request_pairs = pairs;
  shape.request_bytes = 32;
  shape.response_bytes = 32;
  shape.slots = 4;
  shape.fetch_bytes = 20;
  return shape;
}

constexpr std::array kRequests = {RequestHalf::kWriteSlot, RequestHalf::kWriteRing, RequestHalf::kSend,
                                  RequestHalf::kDatagram};
constexpr std::array kResponses = {ResponseHalf::kWrite, ResponseHalf::kSend, ResponseHalf::kDatagram,
                                   ResponseHalf::kLeave, ResponseHalf::kAdaptive};

}  // namespace

TEST_CASE("every request half works with every response half, with several clients, servers and calls under way") {
  for (const RequestHalf request : kRequests) {
    for (const ResponseHalf response : kResponses) {
      for (const uint32_t slots : {1u, 3u, 8u}) {
        CAPTURE(static_cast<int>(request));
        CAPTURE(static_cast<int>(response));
        CAPTURE(slots);
        RpcShape shape = shape_of(request, response);
        shape.slots = slots;
        Exchange exchange(shape, {.servers = 2, .clients = 3});
        exchange.world().set_tearing({.read_piece = 8, .write_piece = 8, .order = TearOrder::kUp});
        const Counted counted = exchange.run(1000);
        CHECK(counted.answered == 1000);
        CHECK(counted.wrong == 0);
        CHECK(exchange.handler->executed.size() == 1000);
      }
    }
  }
}

TEST_CASE(
    "a call that was sent twice keeps its place until its second answer has come, and takes no other call's RECV") {
  for (const ResponseHalf response : {ResponseHalf::kDatagram, ResponseHalf::kSend}) {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(seed);
      RpcShape shape = shape_of(RequestHalf::kDatagram, response);
      shape.slots = 1;
      Exchange exchange(shape, {.servers = 1, .clients = 1}, seed);
      exchange.is_stopped = true;
      CHECK(exchange.run(1, 150'000).answered == 0);  // 150 ms: it is sent again
      CHECK(exchange.trouble().retries == 1);
      exchange.is_stopped = false;
      const Counted counted = exchange.run(20);
      CHECK(counted.answered >= 20);
      CHECK(counted.wrong + counted.lost + counted.failed == 0);
      CHECK(exchange.trouble().retries == 1);
      for (const auto& [said, times] : exchange.handler->executed) CHECK(times == 1);
    }
  }
}

TEST_CASE("prefetch: each request of a pass is looked at once before it is executed; else none is") {
  for (const bool prefetches : {true, false}) {
    for (const RequestHalf request : kRequests) {
      Exchange exchange(shape_of(request, ResponseHalf::kSend),
                        {.servers = 2, .clients = 3, .tuning = {.prefetches = prefetches}});
      CHECK(exchange.run(500).answered == 500);
      CHECK(exchange.handler->prefetched.size() == (prefetches ? 500 : 0));
      for (const auto& [said, times] : exchange.handler->prefetched) CHECK(times == 1);
    }
  }
}

TEST_CASE("UC carries requests into right-aligned slots and into rings") {
  for (const RequestHalf request : {RequestHalf::kWriteSlot, RequestHalf::kWriteRing}) {
    for (const ResponseHalf response : {ResponseHalf::kWrite, ResponseHalf::kDatagram}) {
      Exchange exchange(shape_of(request, response, PairType::kUc), {.servers = 2, .clients = 3});
      const Counted counted = exchange.run(1000);
      CHECK(counted.answered == 1000);
      CHECK(counted.wrong == 0);
      CHECK(exchange.trouble().retries == 0);
    }
  }
}
