// A client that writes anything into its region ends at worst its own session; other clients do not notice.
#include <cstring>

#include <doctest/doctest.h>

#include "scenarios.h"
#include "seeds.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire/handshake.h"

namespace egret::sim {

namespace {

using wire::RequestHeader;

// Takes part in the handshake, then attacks; comes back when its session has been ended.
class HostileClient {
 public:
  HostileClient(World& world, uint64_t seed) : world_(world), rng_(seed ^ 0x0BAD) {}

  void step() {
    if (endpoint_ == nullptr) return connect();
    std::array<std::byte, wire::kMaxFrame> frame{};
    size_t length = 0;
    if (!endpoint_->receive_frame(frame, length)) {
      endpoint_.reset();
      return;
    }
    if (length > 0) on_grant(std::span(frame).first(length));
    if (open_ && rng_.percent(10)) attack();
    std::array<transport::Event, 8> events;
    endpoint_->poll(events);
  }
  uint64_t attacks = 0, sessions = 0;

 private:
  void connect() {
    auto connected = Network::connect("hostile", {});
    if (!connected) return;
    endpoint_ = std::move(connected.value());
    open_ = false;
    std::ranges::fill(seqs_, 1);
    static_cast<void>(
        endpoint_->send_frame(encode(wire::Hello{.features = 0, .worker_id = 999, .window = 8}), false).is_ok());
  }
  void on_grant(std::span<const std::byte> frame) {
    wire::FrameType type{};
    std::string error;
    if (!decode_prefix(frame, type, error) || type != wire::FrameType::kGrant || !decode(frame, grant_)) return;
    const wire::RegionLayout& layout = grant_.layout;
    open_ = endpoint_
                ->map_region({.lanes = layout.lanes,
                              .request_bytes = layout.request_bytes(),
                              .response_bytes = layout.response_bytes(),
                              .reply_bytes = layout.response_slot_size})
                .is_ok();
    world_.model.expect_nothing_of(grant_.session_id);
    ++sessions;
  }

  void attack() {
    ++attacks;
    lane_ = rng_.below(grant_.layout.lanes);
    switch (rng_.below(9)) {
      case 0:
        return message(rng_.next(), rng_.next(), rng_.next(), true);  // noise in every field
      case 1:
        return message(seqs_[lane_], 24 + rng_.below(600), rng_.below(300), false);  // right in form, wrong checksum
      case 2:
        return message(seqs_[lane_], rng_.below(600), rng_.below(300), true);  // noise for ops, any count
      case 3:
        return message(seqs_[lane_], 0, rng_.percent(50) ? 0 : 65535, true);
      case 4:
        return message(seqs_[lane_], grant_.layout.request_slot_size + rng_.below(100'000), 1,
                       true);  // longer than its slot
      case 5:
        return want(rng_.percent(50) ? rng_.next() : UINT64_MAX);
      case 6:
        return ring();
      case 7:
        return scribble();
      default:
        return pings();
    }
  }
  // Writes a message into the slot of the lane's next seq. `length` and `count` are what the header says.
  void message(uint64_t seq, uint64_t length, uint64_t count, bool right_checksum) {
    const size_t offset = grant_.layout.request_offset(lane_, seqs_[lane_]);
    std::byte* slot = endpoint_->request_image() + offset;
    for (size_t i = 0; i < grant_.layout.request_slot_size; i += 8) wire::FieldWriter(slot + i).put(rng_.next());
    send(offset, slot, seq, length, count, right_checksum);
  }
  void send(size_t offset, std::byte* slot, uint64_t seq, uint64_t length, uint64_t count, bool right_checksum,
            uint16_t flags = 0) {
    wire::FieldWriter header(slot + wire::kRequestChecked);
    header.put(static_cast<uint32_t>(length));
    header.put(static_cast<uint16_t>(count));
    header.put(flags);
    const size_t room = grant_.layout.request_slot_size - sizeof(RequestHeader);
    const size_t covered = sizeof(RequestHeader) - wire::kRequestChecked + std::min<size_t>(length, room);
    const uint64_t sum = wire::message_checksum(slot + wire::kRequestChecked, covered, grant_.nonce, seq);
    if (right_checksum) wire::FieldWriter(slot + offsetof(RequestHeader, checksum)).put(sum);
    endpoint_->stage_write(lane_, offset, sizeof(RequestHeader) + std::min<size_t>(length, room), seq);
    endpoint_->flush();
  }
  // Well-formed, so that the lane goes on and later attacks meet other slots. Now and then more than their results'
  // room.
  void pings() {
    const size_t offset = grant_.layout.request_offset(lane_, seqs_[lane_]);
    std::byte* slot = endpoint_->request_image() + offset;
    std::byte* end = slot + sizeof(RequestHeader);
    op::Op op;
    if (rng_.percent(20)) op.code = op::OpCode::kStats;
    const size_t room = grant_.layout.request_slot_size - sizeof(RequestHeader);
    const auto count = static_cast<uint32_t>(std::min<size_t>(rng_.between(1, 60), room / wire::encoded_op_size(op)));
    for (uint32_t i = 0; i < count; ++i) end = wire::encode_op(end, op);
    const auto flags = static_cast<uint16_t>(rng_.percent(90) ? 0 : rng_.next());
    send(offset, slot, seqs_[lane_], static_cast<uint64_t>(end - slot) - sizeof(RequestHeader), count, true, flags);
    ++seqs_[lane_];
  }
  void want(uint64_t value) {
    endpoint_->stage_write(lane_, grant_.layout.want_offset(lane_), 8, value);
    endpoint_->flush();
  }
  void ring() {
    for (uint32_t i = rng_.below(5); i > 0; --i)
      endpoint_->ring(rng_.percent(70) ? lane_ : static_cast<uint32_t>(rng_.next()));
  }
  // Straight into the region, at any moment, as a client on the same host can.
  void scribble() {
    transport::ServerEndpoint* server = world_.control.endpoint(grant_.session_id);
    if (server == nullptr) return;
    std::byte* at = Network::request_memory(*server);
    const size_t bytes = grant_.layout.request_bytes();
    for (uint32_t i = rng_.below(200); i > 0; --i) {
      at[rng_.below(static_cast<uint32_t>(bytes))] = static_cast<std::byte>(rng_.next());
    }
    if (rng_.percent(50)) wire::FieldWriter(at + grant_.layout.request_offset(lane_, seqs_[lane_])).put(seqs_[lane_]);
  }

  World& world_;
  Rng rng_;
  std::unique_ptr<transport::ClientEndpoint> endpoint_;
  wire::Grant grant_;
  bool open_ = false;
  uint32_t lane_ = 0;
  std::array<uint64_t, wire::kMaxLanes> seqs_{};
};

}  // namespace

TEST_CASE("a hostile client's garbage ends its own session at worst, and other sessions notice nothing") {
  uint64_t broken = 0, survived = 0;
  for_each_seed(500, [&](uint64_t seed) {
    Scenario scenario = any_scenario(seed);
    scenario.network.flavour = seed % 2 == 0 ? Flavour::kVerbs : Flavour::kShm;
    scenario.clients_sleep_always = seed % 3 == 0;
    scenario.park_always = seed % 5 == 0;
    scenario.torn_limit_ns = 500'000;
    World world(seed, scenario);
    HostileClient hostile(world, seed);
    world.on_step = [&] { hostile.step(); };
    world.run();
    broken += world.control.broken_sessions();
    survived += hostile.attacks - world.control.broken_sessions();
    for (const auto& client : world.clients) {
      if (client->sessions_lost() > 0) world.model.fail("an honest client lost its session: " + client->why_lost());
    }
    world.tear_down();
    return outcome(world);
  });
  CHECK(is_met(broken));
  CHECK(is_met(survived));
}

TEST_CASE("a request that stays torn ends its session after the limit, not before") {
  for (const Flavour flavour : {Flavour::kVerbs, Flavour::kShm}) {
    Scenario scenario;
    scenario.network.flavour = flavour;
    scenario.clients = 1;
    scenario.ops_per_client = 0;
    scenario.torn_limit_ns = 100'000;
    scenario.layout.lanes = 1;
    World world(1, scenario);
    REQUIRE(world.run_until([&] { return world.clients[0]->session().is_open(); }));
    const uint64_t id = world.clients[0]->session().grant().session_id;
    std::byte* slot = Network::request_memory(*world.control.endpoint(id)) + scenario.layout.request_offset(0, 1);
    wire::FieldWriter(slot).put(uint64_t{1});  // the seq, and nothing that matches it
    REQUIRE(world.run_until([&] { return world.server_counters().torn > 0; }));
    const uint64_t seen_ns = world.clock.manual.now_ns();
    REQUIRE(world.run_until([&] { return world.control.broken_sessions() > 0; }));
    CHECK(world.clock.manual.now_ns() - seen_ns >= 99'000);
    CHECK(world.server_counters().malformed == 1);
  }
}

}  // namespace egret::sim
