// A server that writes anything into responses: sessions end, every waiter is called exactly once, nothing crashes.
#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"
#include "wire/bytes.h"
#include "wire/codec.h"

namespace egret::sim {

namespace {

using wire::ResponseHeader;

// Overwrites responses of open sessions, beside the partitions that answer honestly.
class HostileServer {
 public:
  HostileServer(World& world, uint64_t seed) : world_(world), rng_(seed ^ 0x0BAD) {}

  void step() {
    if (!rng_.percent(3)) return;
    SimClient& client = *world_.clients[rng_.below(static_cast<uint32_t>(world_.clients.size()))];
    if (!client.session().is_open()) return;
    const uint64_t id = client.session().grant().session_id;
    transport::ServerEndpoint* endpoint = world_.control.endpoint(id);
    if (endpoint == nullptr) return;
    lane_ = rng_.below(world_.scenario.layout.lanes);
    seq_ = client.session().lanes()[lane_].progress().answered + rng_.below(world_.scenario.layout.window);
    nonce_ = world_.control.nonce(id);
    offset_ = world_.scenario.layout.response_offset(lane_, seq_);
    memory_ = endpoint->response_memory();
    ++attacks;
    switch (rng_.below(6)) {
      case 0:
        return scribble();
      case 1:
        return response(rng_.below(4000), rng_.below(300), static_cast<uint8_t>(rng_.below(3)));
      case 2:
        return response(static_cast<uint32_t>(rng_.next()), 1, 0);
      case 3:
        return response(rng_.below(400), 1, 0);
      case 4:
        return results();
      default:
        return push(*endpoint, id);
    }
  }
  uint64_t attacks = 0;

 private:
  void scribble() {
    for (uint32_t i = rng_.below(100); i > 0; --i) {
      memory_[rng_.below(static_cast<uint32_t>(world_.scenario.layout.response_bytes()))] =
          static_cast<std::byte>(rng_.next());
    }
    if (rng_.percent(50)) wire::FieldWriter(memory_ + offset_).put(seq_);
    if (rng_.percent(50)) wire::FieldWriter(memory_ + offset_ + offsetof(ResponseHeader, asleep)).put(seq_);
  }
  // Noise with a checksum that matches.
  void response(uint32_t length, uint32_t count, uint8_t status) {
    const size_t room = world_.scenario.layout.response_slot_size - sizeof(ResponseHeader);
    for (size_t i = 0; i + 8 <= room; i += 8)
      wire::FieldWriter(memory_ + offset_ + sizeof(ResponseHeader) + i).put(rng_.next());
    publish(length, count, status);
  }
  // As many results as were asked for, perhaps, and well-formed as far as they go.
  void results() {
    const size_t room = world_.scenario.layout.response_slot_size - sizeof(ResponseHeader);
    std::byte* const body = memory_ + offset_ + sizeof(ResponseHeader);
    std::byte* end = body;
    const uint32_t count = rng_.between(1, 8);
    for (uint32_t i = 0; i < count; ++i) {
      op::Op op;
      op.code = op::OpCode::kGet;
      op::Result result;
      result.code = static_cast<op::ResultCode>(rng_.below(16));
      result.total_length = static_cast<uint32_t>(rng_.next());
      result.version = rng_.next();
      const size_t left = room - static_cast<size_t>(end - body);
      if (left < 200) break;
      end = wire::encode_result(end, 200, op, result);
    }
    if (rng_.percent(30)) --end;
    if (rng_.percent(10)) *end++ = std::byte{0};
    publish(static_cast<uint32_t>(end - body), count, 0);
  }
  void publish(uint32_t length, uint32_t count, uint8_t status) {
    std::byte* const at = memory_ + offset_;
    wire::FieldWriter checked(at + wire::kResponseChecked);
    checked.put(length);
    checked.put(static_cast<uint16_t>(count));
    checked.put(status);
    checked.put(static_cast<uint8_t>(rng_.percent(90) ? 0 : rng_.next()));
    checked.put(rng_.percent(50) ? 0 : static_cast<uint32_t>(rng_.next()));
    checked.put(static_cast<uint32_t>(rng_.percent(90) ? 0 : rng_.next()));
    const size_t room = world_.scenario.layout.response_slot_size - sizeof(ResponseHeader);
    const size_t covered = sizeof(ResponseHeader) - wire::kResponseChecked + std::min<size_t>(length, room);
    wire::FieldWriter(at + offsetof(ResponseHeader, checksum))
        .put(wire::message_checksum(at + wire::kResponseChecked, covered, nonce_, seq_));
    wire::FieldWriter(at).put(seq_);
  }
  void push(transport::ServerEndpoint& endpoint, uint64_t session_id) {
    const uint32_t acting = world_.network.acting_partition;
    world_.network.acting_partition = static_cast<uint32_t>(session_id % world_.scenario.layout.lanes);
    const uint32_t lane = rng_.percent(80) ? lane_ : static_cast<uint32_t>(rng_.next());
    endpoint.deliver(lane, offset_, 1 + rng_.below(world_.scenario.layout.response_slot_size));
    world_.network.acting_partition = acting;
  }

  World& world_;
  Rng rng_;
  uint32_t lane_ = 0;
  uint64_t seq_ = 0, nonce_ = 0;
  size_t offset_ = 0;
  std::byte* memory_ = nullptr;
};

}  // namespace

TEST_CASE("a hostile server's garbage ends the session, and every waiter is told exactly once") {
  uint64_t lost = 0, attacks = 0;
  for_each_seed(500, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = seed % 2 == 0 ? Flavour::kVerbs : Flavour::kShm;
    scenario.clients_sleep_always = seed % 3 == 0;
    scenario.ops_per_client = 100;
    scenario.session.op_timeout_ns = 100'000;
    scenario.session.backoff_min_ns = 1'000;
    scenario.session.backoff_max_ns = 5'000;
    scenario.tick_ns = 10'000;
    scenario.time_heals = true;
    scenario.model = {.may_time_out = true, .may_be_lost = true, .check_results = false};
    World world(seed, scenario);
    HostileServer hostile(world, seed);
    world.on_step = [&] { hostile.step(); };
    world.run();
    attacks += hostile.attacks;
    for (const auto& client : world.clients) lost += client->sessions_lost();
    return outcome(world);
  });
  CHECK(is_met(attacks));
  CHECK(is_met(lost));
}

}  // namespace egret::sim
