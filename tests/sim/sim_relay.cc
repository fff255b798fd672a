#include "sim_relay.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "world.h"

namespace egret::sim {

namespace {
constexpr uint32_t kHome = 1000;  // no partition's number

rpc::SessionOptions options_of(const Scenario& scenario, const std::string& address) {
  rpc::SessionOptions options = scenario.session;
  options.address = address;
  options.worker_id = 1'000'000;
  options.window = scenario.layout.window;
  options.growth = scenario.relayed.growth;
  if (scenario.clients_sleep_always) options.spin_ns = 0;
  return options;
}
}  // namespace

SimRelay::SimRelay(World& world)
    : world_(world),
      address_(std::string(kBackend) + "@relay"),
      session_(options_of(world.scenario, address_), world.clock, *this, Network::connect),
      relay_({.polling = {.partition = kHome,
                          .lane_idle_ns = world.scenario.lane_idle_ns,
                          .torn_limit_ns = world.scenario.torn_limit_ns},
              .kept_memory = world.scenario.relayed.kept_memory,
              .collected_memory = world.scenario.relayed.collected_memory},
             world.clock, next_upload_id_) {}

SimRelay::~SimRelay() {
  session_.close();
  for (const auto& session : sessions_) relay_.detach(session->id);
}

bool SimRelay::is_tick_due() const {
  if (session_.is_open() && !world_.scenario.time_heals) return false;
  return session_.needs_tick() && world_.clock.manual.now_ns() >= next_tick_ns_;
}

bool SimRelay::is_control_ready() const {
  const auto state = session_.state();
  if (state != rpc::ClientSession::State::kHandshaking && state != rpc::ClientSession::State::kOpen) return false;
  return world_.network.is_ready(session_.endpoint().control_fd());
}

bool SimRelay::has_reason_to_wake() const {
  const Network& network = world_.network;
  if (session_.is_open() && network.is_ready(session_.endpoint().data_fd())) return true;
  if (is_control_ready() || is_tick_due()) return true;
  if (network.is_anybody_connecting(kAddress)) return true;
  return std::ranges::any_of(sessions_, [](const auto& each) {
    return Network::has_wake(*each->endpoint) || Network::is_control_ready(*each->endpoint);
  });
}

void SimRelay::step() {
  if (is_asleep()) return;
  blocked_ = false;
  world_.network.acting_partition = kHome;
  active_.begin_pass();
  look_at_clients();
  if (session_.is_open() && world_.network.take_ready(session_.endpoint().data_fd())) session_.on_data_ready();
  if (is_control_ready()) session_.on_control_ready();
  if (is_tick_due()) {
    next_tick_ns_ = world_.clock.manual.now_ns() + world_.scenario.tick_ns;
    session_.tick();
    relay_.tick();
  }
  grant_waiting();
  run_passes();
  for (const rpc::BrokenSession& broken : relay_.take_broken_sessions()) end(broken.session_id);
  blocked_ = may_block();
  sleeps_ += blocked_;
}

void SimRelay::look_at_clients() {
  if (auto endpoint = world_.network.accept(kAddress)) {
    Network::set_home(*endpoint, kHome);
    sessions_.push_back(std::make_unique<Session>());
    sessions_.back()->id = next_id_++;
    sessions_.back()->endpoint = std::move(endpoint);
  }
  std::vector<uint64_t> over;
  for (const auto& session : sessions_) {
    if (Network::is_control_ready(*session->endpoint) && !read_control(*session)) over.push_back(session->id);
    if (!session->is_open || !Network::take_wake(*session->endpoint)) continue;
    std::array<transport::Event, 4> events;
    world_.network.acting_partition = kHome;
    if (session->endpoint->poll(events) > 0) relay_.ring(session->id);
    if (Network::has_wake(*session->endpoint)) blocked_ = false;
  }
  for (const uint64_t id : over) end(id);
}

bool SimRelay::read_control(Session& session) {
  std::array<std::byte, wire::kMaxFrame> bytes{};
  size_t length = 0;
  if (!session.endpoint->receive_frame(bytes, length)) return false;
  wire::FrameType type{};
  std::string error;
  wire::Hello hello;
  const auto frame = std::span(bytes).first(length);
  if (!decode_prefix(frame, type, error)) return false;
  if (type == wire::FrameType::kReady) return session.is_open;
  if (type != wire::FrameType::kHello || !decode(frame, hello) || hello.member != kMember) return false;
  session.hello = hello;
  session.is_waiting = true;
  return true;
}

// Clients come back by themselves, but a world without timers needs that they wait.
void SimRelay::grant_waiting() {
  if (!session_.is_open()) return;
  std::vector<uint64_t> over;
  for (const auto& session : sessions_) {
    if (session->is_waiting && !grant(*session)) over.push_back(session->id);
  }
  for (const uint64_t id : over) end(id);
}

bool SimRelay::grant(Session& session) {
  session.is_waiting = false;
  session.granted = session_.grant();
  const Scenario::Relayed& sizes = world_.scenario.relayed;
  const wire::RegionLayout layout{.lanes = session.granted.layout.lanes,
                                  .window = std::min(sizes.window, std::max(session.hello.window, wire::kMinWindow)),
                                  .request_slot_size = sizes.request_slot_size,
                                  .response_slot_size = sizes.response_slot_size};
  const wire::Grant granted{.features = wire::kRelayed,
                            .session_id = session.id,
                            .nonce = world_.rng.next(),
                            .epoch = session.granted.epoch,
                            .hash_seed = session.granted.hash_seed,
                            .item_size_max = session.granted.item_size_max,
                            .layout = layout};
  EGRET_CHECK(session.endpoint
                  ->create_region({.lanes = layout.lanes,
                                   .request_bytes = layout.request_bytes(),
                                   .response_bytes = layout.response_bytes(),
                                   .reply_bytes = layout.response_slot_size})
                  .is_ok());
  relay_.attach({.session_id = session.id,
                 .endpoint = session.endpoint.get(),
                 .layout = layout,
                 .seal = {granted.nonce, false},
                 .rules = std::make_shared<const rpc::relay::Rules>(),
                 .outbound = &session_});
  session.is_open = true;
  return session.endpoint->send_frame(encode(granted), true).is_ok();
}

void SimRelay::end(uint64_t id) {
  const auto at = std::ranges::find(sessions_, id, [](const auto& each) { return each->id; });
  if (at == sessions_.end()) return;
  (*at)->endpoint->close();
  if ((*at)->is_open) relay_.detach(id);
  sessions_.erase(at);
}

void SimRelay::end_one(Rng& rng) {
  if (!sessions_.empty()) end(sessions_[rng.below(static_cast<uint32_t>(sessions_.size()))]->id);
}

base::Status SimRelay::on_session_open(rpc::ClientSession&) {
  std::vector<uint64_t> over;
  for (const auto& session : sessions_) {
    if (session->is_open && !rpc::relay::Relay::is_same(session->granted, session_.grant()))
      over.push_back(session->id);
  }
  for (const uint64_t id : over) end(id);
  return base::Status::ok();
}

void SimRelay::run_passes() {
  relay_.poll();
  active_.flush();
  while (true) {
    bool any = active_.fetch();
    any |= active_.hand_out_credit();
    any |= relay_.poll();
    relay_.push();
    if (!any) return;
    active_.flush();
  }
}

bool SimRelay::may_block() {
  if (active_.should_spin()) return false;
  if (!relay_.park(world_.scenario.park_always)) return false;
  const bool quiet = active_.prepare_sleep();
  if (!quiet) run_passes();
  relay_.push();
  return quiet && relay_.awake_lanes() == 0;
}

std::string SimRelay::describe() {
  return std::string("relay") + (blocked_ ? " blocked" : " awake") + (session_.is_open() ? "" : " no session") +
         ", inbound " + std::to_string(sessions_.size()) + ", awake lanes " + std::to_string(relay_.awake_lanes()) +
         ", outstanding " + std::to_string(session_.lanes().outstanding()) + ", put off " +
         std::to_string(relay_.counters().waits);
}

}  // namespace egret::sim
