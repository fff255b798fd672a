#include "world.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "wire/handshake.h"

namespace egret::sim {

using transport::Event;

namespace {
constexpr uint64_t kHashSeed = 77;
constexpr size_t kRingBatch = 4;
constexpr uint32_t kRoundsBetweenParks = 4;
}  // namespace

// --- SimClient -----------------------------------------------------------------------------------------------------

namespace {
rpc::SessionOptions options_of(const Scenario& scenario, const std::string& address, uint32_t number) {
  rpc::SessionOptions options = scenario.session;
  options.address = address;
  options.worker_id = number + 1;
  options.window = scenario.layout.window;
  if (scenario.clients_sleep_always) options.spin_ns = 0;
  return options;
}
}  // namespace

SimClient::SimClient(World& world, uint32_t number)
    : world_(world),
      address_("sim:" + std::to_string(number)),
      session_(options_of(world.scenario, address_, number), world.clock, *this, Network::connect),
      to_submit_(world.scenario.ops_per_client) {}

void SimClient::on_session_lost(rpc::ClientSession&, const std::string& why, bool was_open) {
  sessions_lost_ += was_open;
  why_lost_ = why;
}

bool SimClient::has_reason_to_wake() const {
  if (world_.network.has_client_wake(address_) || world_.network.is_client_control_ready(address_)) return true;
  return is_tick_due();
}

bool SimClient::is_tick_due() const {
  if (session_.is_open() && !world_.scenario.time_heals) return false;
  return session_.needs_tick() && world_.clock.manual.now_ns() >= next_tick_ns_;
}

bool SimClient::is_asleep() const {
  if (!blocked_ || has_reason_to_wake()) return false;
  return is_finished() || waiting_for_credit_ || !session_.is_open();
}

void SimClient::step() {
  const bool may_submit = !is_finished() && !waiting_for_credit_ && session_.is_open() && world_.rng.percent(15);
  if (blocked_ && !has_reason_to_wake() && !may_submit) return;
  blocked_ = false;
  session_.begin_pass();
  // An event loop reports what is ready in any order: ops may have been appended when the session's end is heard of.
  const bool submit_first = world_.rng.percent(50);
  if (may_submit && submit_first) submit();
  if (world_.network.take_client_wake(address_) && session_.is_open()) session_.on_data_ready();
  if (world_.network.is_client_control_ready(address_)) session_.on_control_ready();
  if (is_tick_due()) {
    next_tick_ns_ = world_.clock.manual.now_ns() + world_.scenario.tick_ns;
    session_.tick();
  }
  if (may_submit && !submit_first) submit();
  if (on_turn && session_.is_open()) on_turn();
  run_passes();
  blocked_ = may_block();
  sleeps_ += blocked_;
}

void SimClient::submit() {
  if (waiting_for_credit_ || !session_.is_open()) return;
  for (uint32_t burst = world_.rng.between(1, world_.scenario.burst); burst > 0 && !is_finished(); --burst) {
    if (draft_ == nullptr) draft_ = world_.model.draw_op();
    rpc::ClientLane& lane = session_.lanes().of(session_.lanes().hash(draft_->key));
    if (!world_.model.append(*draft_, lane, session_.grant().session_id)) {
      waiting_for_credit_ = true;
      session_.credit().wait(this);
      return;
    }
    draft_.reset();
    ++submitted_;
  }
}

void SimClient::on_credit() {
  waiting_for_credit_ = false;
  submit();
}

void SimClient::run_passes() {
  session_.flush();
  while (true) {
    const bool fetched = session_.fetch();
    const bool resumed = session_.credit().hand_out();
    if (!fetched && !resumed) return;
    session_.flush();
  }
}

bool SimClient::may_block() {
  if (session_.is_open() && session_.should_spin()) return false;
  const bool quiet = session_.prepare_sleep();
  if (!quiet) run_passes();
  return quiet;
}

// --- Partition -----------------------------------------------------------------------------------------------------

Partition::Partition(World& world, uint32_t number, std::unique_ptr<ModelHandler> handler)
    : world_(world),
      number_(number),
      handler_(std::move(handler)),
      poller_({.partition = number,
               .lane_idle_ns = world.scenario.lane_idle_ns,
               .torn_limit_ns = world.scenario.torn_limit_ns},
              world.clock, *handler_, *this) {}

bool Partition::is_asleep() const {
  if (frozen_) return true;
  if (!blocked_ || !mailbox_.empty()) return false;
  return std::ranges::none_of(homes_, [](const auto& home) { return Network::has_wake(*home.endpoint); });
}

void Partition::step() {
  if (is_asleep()) return;
  blocked_ = false;
  for (const auto& home : homes_) Network::take_wake(*home.endpoint);
  world_.network.acting_partition = number_;
  const bool has_messages = read_messages();
  const bool rings = poll_rings();
  const bool served = poller_.poll() > 0;
  for (const rpc::BrokenSession& broken : poller_.take_broken_sessions()) world_.control.on_broken(broken.session_id);
  if (has_messages || rings || served) {
    empty_rounds_ = 0;
  } else {
    rest();
  }
}

bool Partition::read_messages() {
  bool any = false;
  for (; !mailbox_.empty() && world_.rng.percent(80); any = true) {
    const Message message = mailbox_.front();
    mailbox_.pop_front();
    const uint64_t session_id = message.lane.session_id;
    const auto home = std::ranges::find(homes_, session_id, &rpc::LaneBinding::session_id);
    switch (message.kind) {
      case Message::Kind::kAttach:
        handler_->session_attached(poller_.attach(message.lane), session_id);
        if (message.lane.home == number_) homes_.push_back(message.lane);
        break;
      case Message::Kind::kDetach:
        poller_.detach(session_id);
        if (home != homes_.end()) homes_.erase(home);
        world_.control.on_detached(session_id);
        break;
      case Message::Kind::kRing:
        poller_.ring(session_id);
        break;
      case Message::Kind::kDeliver:
        if (home != homes_.end()) home->endpoint->deliver(message.lane.lane, message.offset, message.length);
        break;
    }
  }
  return any;
}

bool Partition::poll_rings() {
  bool any = false;
  for (const rpc::LaneBinding& home : homes_) {
    world_.network.acting_partition = number_;
    std::array<Event, kRingBatch> events;
    const size_t count = home.endpoint->poll(events);
    for (const Event& event : std::span(events).first(count)) {
      if (event.kind != Event::Kind::kRing || event.lane >= home.layout.lanes) continue;
      if (event.lane == number_) {
        poller_.ring(home.session_id);
      } else {
        ++world_.rings_relayed;
        world_.partitions[event.lane]->post({.kind = Message::Kind::kRing, .lane = home});
      }
    }
    any |= count > 0;
  }
  return any;
}

void Partition::rest() {
  if (world_.scenario.park_always) {
    poller_.park(true);
  } else if (++empty_rounds_ % kRoundsBetweenParks == 0) {
    poller_.park();
  }
  if (poller_.awake_lanes() > 0) return;
  for (const rpc::LaneBinding& home : homes_) home.endpoint->arm();
  if (poll_rings() || !mailbox_.empty()) return;
  blocked_ = true;
}

void Partition::relay(const rpc::LaneBinding& lane, size_t offset, size_t length) {
  ++world_.deliveries_relayed;
  world_.partitions[lane.home]->post({Message::Kind::kDeliver, lane, offset, length});
}

// --- Control -------------------------------------------------------------------------------------------------------

bool Control::step() {
  bool any = false;
  if (auto endpoint = world_.network.accept()) {
    sessions_.push_back(std::make_unique<Session>());
    sessions_.back()->id = next_id_++;
    sessions_.back()->endpoint = std::move(endpoint);
    any = true;
  }
  for (const uint64_t id : std::exchange(broken_, {})) {
    ++broken_total_;
    close(id);
    any = true;
  }
  std::vector<Session*> open;
  for (const auto& session : sessions_) {
    if (session->state != State::kClosing) open.push_back(session.get());
  }
  for (Session* session : open) any |= read_control(*session);
  std::erase_if(sessions_,
                [](const auto& session) { return session->state == State::kClosing && session->detaching == 0; });
  grant_waiting();
  return any;
}

bool Control::read_control(Session& session) {
  if (!Network::is_control_ready(*session.endpoint)) return false;
  std::array<std::byte, wire::kMaxFrame> bytes{};
  size_t length = 0;
  if (!session.endpoint->receive_frame(bytes, length)) {
    close(session.id);
    return true;
  }
  wire::FrameType type{};
  std::string error;
  wire::Hello hello;
  const auto frame = std::span(bytes).first(length);
  const bool readable = decode_prefix(frame, type, error);
  if (readable && type == wire::FrameType::kHello && session.state == State::kSilent && decode(frame, hello)) {
    session.worker_id = hello.worker_id;
    session.state = State::kWaiting;
    for (const auto& other : sessions_) {
      if (other->id < session.id && other->worker_id == hello.worker_id) close(other->id);
    }
  } else if (!readable || type != wire::FrameType::kReady) {
    close(session.id);
  }
  return true;
}

// A session is granted when no older one of its worker is left.
void Control::grant_waiting() {
  for (const auto& session : sessions_) {
    if (session->state != State::kWaiting) continue;
    const bool older = std::ranges::any_of(sessions_, [&](const auto& other) {
      return other->id < session->id && other->worker_id == session->worker_id;
    });
    if (!older) grant(*session);
  }
}

void Control::grant(Session& session) {
  const wire::RegionLayout& layout = world_.scenario.layout;
  const wire::Grant granted{.session_id = session.id,
                            .nonce = world_.rng.next(),
                            .epoch = 1,
                            .hash_seed = kHashSeed,
                            .item_size_max = 1 << 20,
                            .layout = layout};
  const transport::RegionShape shape{.lanes = layout.lanes,
                                     .request_bytes = layout.request_bytes(),
                                     .response_bytes = layout.response_bytes(),
                                     .reply_bytes = layout.response_slot_size};
  EGRET_CHECK(session.endpoint->create_region(shape).is_ok());
  const auto home = static_cast<uint32_t>(session.id % layout.lanes);
  Network::set_home(*session.endpoint, home);
  session.state = State::kOpen;
  session.nonce = granted.nonce;
  for (uint32_t lane = 0; lane < layout.lanes; ++lane) {
    world_.partitions[lane]->post(
        {.kind = Partition::Message::Kind::kAttach,
         .lane = {session.id, lane, home, session.endpoint.get(), layout, {granted.nonce, false}}});
  }
  if (!session.endpoint->send_frame(encode(granted), true)) close(session.id);
}

void Control::close(uint64_t session_id) {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  if (at == sessions_.end() || (*at)->state == State::kClosing) return;
  Session& session = **at;
  const bool was_open = session.state == State::kOpen;
  session.state = State::kClosing;
  session.endpoint->close();
  if (!was_open) return;
  session.detaching = world_.scenario.layout.lanes;
  for (const auto& partition : world_.partitions) {
    Partition::Message message{.kind = Partition::Message::Kind::kDetach, .lane = {}};
    message.lane.session_id = session_id;
    partition->post(message);
  }
}

void Control::on_detached(uint64_t session_id) {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  EGRET_CHECK(at != sessions_.end() && (*at)->detaching > 0);
  --(*at)->detaching;
}

size_t Control::open_sessions() const {
  return static_cast<size_t>(std::ranges::count(sessions_, State::kOpen, &Session::state));
}

transport::ServerEndpoint* Control::endpoint(uint64_t session_id) {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  return at == sessions_.end() ? nullptr : (*at)->endpoint.get();
}

uint64_t Control::nonce(uint64_t session_id) const {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  return at == sessions_.end() ? 0 : (*at)->nonce;
}

// --- World ---------------------------------------------------------------------------------------------------------

World::World(uint64_t world_seed, const Scenario& given, const MakeHandler& make_handler)
    : seed(world_seed),
      scenario(given),
      rng(world_seed),
      model(scenario.model, rng),
      network(scenario.network, clock.manual, rng),
      control(*this),
      tracing_(std::getenv("EGRET_SIM_TRACE") != nullptr) {
  for (uint32_t i = 0; i < scenario.layout.lanes; ++i) {
    auto handler = make_handler ? make_handler(*this, i) : std::make_unique<ModelHandler>(model, i, [this] {
      if (scenario.pause_max_ns > 0) pass_time(rng.below(static_cast<uint32_t>(scenario.pause_max_ns)));
      preempt();
    });
    partitions.push_back(std::make_unique<Partition>(*this, i, std::move(handler)));
  }
  for (uint32_t i = 0; i < scenario.clients; ++i) clients.push_back(std::make_unique<SimClient>(*this, i));
  network.set_preempt([this] { preempt(); });
  clock.on_read = [this] { preempt(); };
  for (const auto& client : clients) client->start();
}

World::~World() {
  tear_down();
}

void World::tear_down() {
  network.set_preempt({});
  clock.on_read = {};
  on_step = {};
  for (const auto& client : clients) client->session().close();
}

void World::step_actor(size_t actor) {
  if (!busy_.insert(actor).second) return;
  if (actor < partitions.size()) {
    partitions[actor]->step();
  } else {
    clients[actor - partitions.size()]->step();
  }
  busy_.erase(actor);
  if (tracing_)
    trace(actor < partitions.size() ? partitions[actor]->describe() : clients[actor - partitions.size()]->describe());
}

void World::step() {
  advance_ns(rng.below(static_cast<uint32_t>(scenario.step_max_ns)) + 1);
  if (on_step) on_step();
  const uint32_t what = rng.below(100);
  if (what < 5) {
    control.step();
  } else if (what < 60) {
    network.step();
  } else {
    step_actor(rng.below(static_cast<uint32_t>(partitions.size() + clients.size())));
  }
}

// Somebody is let in between two steps of whoever's turn it is: the network, or another actor (one level deep).
void World::preempt() {
  if (busy_.empty() || !rng.percent(scenario.preempt_percent)) return;
  // Mostly for a moment; now and then long enough for a whole exchange.
  for (uint32_t steps = rng.percent(10) ? rng.between(5, 50) : rng.between(1, 4); steps > 0; --steps) {
    advance_ns(rng.below(20));
    step_others();
  }
}

void World::pass_time(uint64_t ns) {
  const uint64_t end = clock.manual.now_ns() + ns;
  while (clock.manual.now_ns() < end) {
    advance_ns(rng.below(static_cast<uint32_t>(scenario.step_max_ns)) + 1);
    step_others();
  }
}

void World::step_others() {
  const uint32_t acting = network.acting_partition;
  if (busy_.size() > 1 || rng.percent(75)) {
    network.step();
  } else {
    step_actor(rng.below(static_cast<uint32_t>(partitions.size() + clients.size())));
  }
  network.acting_partition = acting;
}

bool World::seems_quiet() const {
  return network.is_idle() &&
         std::ranges::all_of(partitions, [](const auto& p) { return p->is_asleep() || p->is_idle(); }) &&
         std::ranges::all_of(clients, [](const auto& c) { return c->is_asleep(); });
}

bool World::is_quiet() {
  for (int looks = 0; looks < 3; ++looks) {
    if (!seems_quiet() || control.step()) return false;
    for (size_t i = 0; i < partitions.size(); ++i) step_actor(i);
  }
  return seems_quiet();
}

bool World::run_until(const std::function<bool()>& done, uint64_t max_steps) {
  for (uint64_t steps = 0; steps < max_steps && !model.has_failed(); ++steps) {
    if (done()) return true;
    step();
  }
  return false;
}

// False when no client would do anything at a later time either.
bool World::skip_to_tick() {
  uint64_t next = UINT64_MAX;
  for (const auto& client : clients) {
    if (client->session().needs_tick()) next = std::min(next, client->next_tick_ns());
  }
  const uint64_t now = clock.manual.now_ns();
  if (next == UINT64_MAX) return false;
  if (next > now) advance_ns(next - now);
  return true;
}

void World::run(uint64_t max_steps) {
  bool stuck = false;
  const auto is_settled = [&] {
    return model.is_settled() && std::ranges::all_of(clients, [](const auto& c) { return c->is_finished(); });
  };
  const auto is_done = [&] {
    if (is_settled()) return true;
    if (!is_quiet()) return false;
    if (is_settled()) return true;  // by the last looks
    return stuck = !scenario.time_heals || !skip_to_tick();
  };
  const bool ended = run_until(is_done, max_steps);
  if (model.has_failed()) return;
  if (stuck) model.fail("lost wake-up: nothing moves any more, but these wait:" + model.unanswered());
  if (!ended) model.fail("no end after " + std::to_string(max_steps) + " steps; these wait:" + model.unanswered());
}

rpc::LaneCounters World::client_counters() const {
  rpc::LaneCounters sum;
  for (const auto& client : clients) sum += client->session().counters().sum();
  return sum;
}

rpc::PollerCounters World::server_counters() const {
  rpc::PollerCounters sum;
  for (const auto& partition : partitions) {
    const rpc::PollerCounters& one = partition->counters();
    sum.messages += one.messages;
    sum.ops += one.ops;
    sum.torn += one.torn;
    sum.malformed += one.malformed;
    sum.deliveries += one.deliveries;
    sum.naps += one.naps;
    sum.rings += one.rings;
  }
  return sum;
}

void World::trace(const std::string& line) const {
  std::fprintf(stderr, "%9llu %s\n", static_cast<unsigned long long>(clock.manual.now_ns()), line.c_str());
}

std::string SimClient::describe() {
  std::string line =
      address_ + (blocked_ ? " blocked" : " awake") + (session_.is_open() ? "" : " no session: " + why_lost_);
  for (uint32_t i = 0; i < session_.lanes().count(); ++i) {
    const rpc::ClientLane& lane = session_.lanes()[i];
    line += " [" + std::to_string(lane.outstanding()) + " from " + std::to_string(lane.progress().answered);
    if (lane.outstanding() > 0) line += " sent at " + std::to_string(lane.progress().oldest_sent_ns);
    const rpc::LaneCounters& counters = session_.counters().at(i);
    line += ", rings " + std::to_string(counters.rings.get()) + ", wants " + std::to_string(counters.wants.get()) + "]";
  }
  return line;
}

std::string Partition::describe() const {
  return "partition " + std::to_string(number_) + (frozen_ ? " frozen" : "") + (blocked_ ? " blocked" : "") +
         ", awake lanes " + std::to_string(poller_.awake_lanes()) + ", messages " +
         std::to_string(poller_.counters().messages) + ", messages " + std::to_string(mailbox_.size());
}

std::string World::describe() const {
  return std::string(scenario.network.flavour == Flavour::kShm ? "shm" : "verbs") + ", " +
         std::to_string(scenario.clients) + " clients, " + scenario.layout.to_string() + ", read depth " +
         std::to_string(scenario.network.read_depth) + ", at " + std::to_string(clock.manual.now_ns()) + " ns, " +
         std::to_string(model.answered()) + " of " + std::to_string(model.appended()) + " ops answered";
}

}  // namespace egret::sim
