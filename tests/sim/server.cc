#include "server.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "wire/handshake.h"

namespace egret::sim {

using transport::Event;

namespace {
constexpr size_t kRingBatch = 4;
constexpr uint32_t kRoundsBetweenParks = 4;

bool has_lane_rings(const rpc::LaneBinding& lane) {
  return lane.endpoint->limits().has_lane_rings;
}
}  // namespace

// --- Partition -----------------------------------------------------------------------------------------------------

Partition::Partition(Server& server, uint32_t number, rpc::OpHandler& handler)
    : server_(server),
      number_(number),
      handler_(handler),
      poller_({.partition = number,
               .lane_idle_ns = server.options.lane_idle_ns,
               .far_lane_idle_ns = server.options.lane_idle_ns,
               .torn_limit_ns = server.options.torn_limit_ns,
               .push = server.options.push},
              server.clock, handler, *this) {}

bool Partition::is_asleep() const {
  return frozen_ || (blocked_ && !is_signalled());
}

bool Partition::is_signalled() const {
  const auto has_wake = [&](const auto& home) { return Network::has_wake(*home.endpoint, number_); };
  return !mailbox_.empty() || std::ranges::any_of(homes_, has_wake);
}

void Partition::step() {
  if (is_asleep()) return;
  blocked_ = false;
  for (const auto& home : homes_) Network::take_wake(*home.endpoint, number_);
  server_.network.acting_partition = number_;
  const bool has_messages = read_messages();
  const bool rings = poll_rings();
  const bool served = poller_.poll() > 0;
  report_broken();
  if (has_messages || rings || served) {
    empty_rounds_ = 0;
  } else {
    rest();
  }
}

bool Partition::poll() {
  if (frozen_) return false;
  blocked_ = false;
  server_.network.acting_partition = number_;
  bool any = false;
  if (is_signalled()) {
    for (const auto& home : homes_) Network::take_wake(*home.endpoint, number_);
    any = read_messages();
    any |= poll_rings();
  }
  any |= poller_.awake_lanes() > 0 && poller_.poll() > 0;
  report_broken();
  if (any) empty_rounds_ = 0;
  return any;
}

bool Partition::prepare_sleep() {
  if (frozen_) return blocked_;  // as it was
  server_.network.acting_partition = number_;
  if (poller_.awake_lanes() > 0) {
    park();
    return false;
  }
  ++empty_rounds_;
  return blocked_ = !is_signalled();
}

void Partition::report_broken() {
  for (const rpc::BrokenSession& broken : poller_.take_broken_sessions()) server_.control.on_broken(broken.session_id);
}

void Partition::FlushedLane::on_flush() {
  EGRET_CHECK(!is_receiving);
  partition.server_.network.acting_partition = partition.number_;
  partition.poller_.serve(id);
}

// As backend::Executor::DirectLane. Every other op goes by a slot.
bool Partition::FlushedLane::execute(const op::Op& op, op::Result& result, op::LoanName& lent) {
  if (partition.server_.rng.percent(50)) return false;
  begin({&op, 1});
  result = perform(0, lent);
  return true;
}

op::Result Partition::FlushedLane::perform(size_t index, op::LoanName& lent) {
  const op::Result result = partition.handler_.execute(index);
  if (result.total_length >= rpc::SlotPoller::kLeastKept) lent = partition.handler_.lend(index, result);
  return result;
}

// Room for less than was asked for, in one to three pieces.
bool Partition::FlushedLane::begin_part(const op::Op& part, uint32_t most, op::PartRoom& place) {
  EGRET_CHECK(!is_receiving);
  Rng& rng = partition.server_.rng;
  const uint32_t left = std::min(most, part.length - part.offset);
  if (left == 0 || rng.percent(40)) return false;
  room.assign(rng.between(1, left), '\0');
  for (std::span<char> free = room; !free.empty();) {
    const size_t size = place.count == 2 ? free.size() : rng.between(1, static_cast<uint32_t>(free.size()));
    place.add(free.first(size));
    free = free.subspan(size);
  }
  return is_receiving = true;
}

void Partition::FlushedLane::end_part(const op::Op& part, uint32_t length) {
  EGRET_CHECK(std::exchange(is_receiving, false));
  if (length == 0) return;
  op::Op received = part;
  received.value = std::string_view(room).substr(0, length);
  begin({&received, 1});
  partition.handler_.execute(0);
  ++partition.server_.direct_parts;
}

bool Partition::FlushedLane::has_share() const {
  return partition.server_.rng.percent(50);
}

void Partition::FlushedLane::execute_all(std::span<const op::Op> ops, op::ResultTaker& taker) {
  begin(ops);
  if (ops.size() > 1) partition.server_.together += ops.size();
  for (size_t i = 0; i < ops.size(); ++i) {
    op::LoanName lent;
    op::Result result = perform(i, lent);
    taker.on_result(i, result, lent);
  }
}

void Partition::FlushedLane::begin(std::span<const op::Op> ops) {
  EGRET_CHECK(!is_receiving);
  partition.server_.network.acting_partition = partition.number_;
  together.assign(ops.begin(), ops.end());
  lanes.assign(ops.size(), id);
  partition.handler_.begin_round();
  partition.handler_.foresee(together);
  partition.handler_.prepare(together, lanes);
  partition.handler_.locate();
  partition.server_.direct_ops += ops.size();
}

void Partition::FlushedLane::on_ring() {
  partition.poll_rings_of(binding);
}

bool Partition::read_messages() {
  bool any = false;
  for (; !mailbox_.empty() && server_.rng.percent(80); any = true) {
    const Message message = mailbox_.front();
    mailbox_.pop_front();
    const uint64_t session_id = message.lane.session_id;
    const auto home = std::ranges::find(homes_, session_id, &rpc::LaneBinding::session_id);
    switch (message.kind) {
      case Message::Kind::kAttach:
        attach(message.lane);
        break;
      case Message::Kind::kDetach:
        detach(session_id);
        std::erase(attached_, session_id);
        if (home != homes_.end()) homes_.erase(home);
        server_.control.on_detached(session_id);
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

// As backend::Partition::attach_lane().
void Partition::attach(rpc::LaneBinding lane) {
  transport::SameProcess* const same_process = lane.endpoint->limits().same_process;
  lane.is_served_at_flush = same_process != nullptr && same_process->is_clients_thread();
  const rpc::LaneId id = poller_.attach(lane);
  attached_.push_back(lane.session_id);
  if (lane.home == number_ || has_lane_rings(lane)) homes_.push_back(lane);
  if (!lane.is_served_at_flush) return;
  FlushedLane& flushed = *(at_flush_[lane.session_id] = std::make_unique<FlushedLane>(*this, id, lane, *same_process));
  same_process->serve_at_flush(number_, &flushed);
  poller_.serve(id);  // what was flushed before
}

void Partition::detach(uint64_t session_id) {
  poller_.detach(session_id);
  const auto at = at_flush_.find(session_id);
  if (at == at_flush_.end()) return;
  server_.network.acting_partition = number_;
  at->second->same_process.serve_at_flush(number_, nullptr);
  at_flush_.erase(at);
}

bool Partition::poll_rings() {
  bool any = false;
  for (const rpc::LaneBinding& home : homes_) any |= poll_rings_of(home);
  return any;
}

bool Partition::poll_rings_of(const rpc::LaneBinding& home) {
  server_.network.acting_partition = number_;
  std::array<Event, kRingBatch> events;
  const size_t count = has_lane_rings(home) ? home.endpoint->poll_lane(number_, events) : home.endpoint->poll(events);
  for (const Event& event : std::span(events).first(count)) {
    if (event.kind != Event::Kind::kRing || event.lane >= home.layout.lanes) continue;
    if (event.lane == number_) {
      poller_.ring(home.session_id);
    } else {
      ++server_.rings_relayed;
      server_.partitions[event.lane]->post({.kind = Message::Kind::kRing, .lane = home});
    }
  }
  return count > 0;
}

void Partition::drop_all() {
  for (const uint64_t session_id : std::exchange(attached_, {})) detach(session_id);
  homes_.clear();
  mailbox_.clear();
  empty_rounds_ = 0;
  blocked_ = false;
}

// Whether no lane is awake any more.
bool Partition::park() {
  poller_.park_pushed();
  if (server_.options.park_always) {
    poller_.park(true);
  } else if (++empty_rounds_ % kRoundsBetweenParks == 0) {
    poller_.park();
  }
  return poller_.awake_lanes() == 0;
}

void Partition::rest() {
  if (!park()) return;
  for (const rpc::LaneBinding& home : homes_) home.endpoint->arm();
  if (poll_rings() || !mailbox_.empty()) return;
  blocked_ = true;
}

void Partition::relay(const rpc::LaneBinding& lane, size_t offset, size_t length, std::span<const transport::Piece>) {
  ++server_.deliveries_relayed;
  server_.partitions[lane.home]->deliver({Message::Kind::kDeliver, lane, offset, length});
}

void Partition::deliver(const Message& message) {
  const auto waits = std::ranges::find_if(mailbox_, [&](const Message& other) {
    return other.kind == Message::Kind::kDeliver && other.lane.session_id == message.lane.session_id &&
           other.offset == message.offset;
  });
  if (waits == mailbox_.end()) return post(message);
  waits->length = std::max(waits->length, message.length);
}

// --- Control -------------------------------------------------------------------------------------------------------

bool Control::step() {
  bool any = false;
  if (auto endpoint = server_.network.accept(server_.options.address)) {
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
    session.window = hello.window;
    session.features = hello.features;
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
  wire::RegionLayout layout = server_.options.layout;
  layout.window = std::min(layout.window, std::max(session.window, wire::kMinWindow));
  const wire::Grant granted{.features = server_.options.features & session.features,
                            .session_id = session.id,
                            .nonce = server_.rng.next(),
                            .epoch = server_.options.epoch + server_.processes,
                            .hash_seed = server_.options.hash_seed,
                            .item_size_max = server_.options.item_size_max,
                            .layout = layout};
  const transport::RegionShape shape{.lanes = layout.lanes,
                                     .request_bytes = layout.request_bytes(),
                                     .response_bytes = layout.response_bytes(),
                                     .reply_bytes = layout.response_slot_size,
                                     .has_lane_rings = (granted.features & wire::kLaneRings) != 0};
  EGRET_CHECK(session.endpoint->create_region(shape).is_ok());
  const transport::SameProcess* const same_process = session.endpoint->limits().same_process;
  const auto home = same_process != nullptr ? static_cast<uint32_t>(same_process->home())
                                            : static_cast<uint32_t>(session.id % layout.lanes);
  Network::set_home(*session.endpoint, home);
  session.state = State::kOpen;
  session.nonce = granted.nonce;
  for (uint32_t lane = 0; lane < layout.lanes; ++lane) {
    server_.partitions[lane]->post({.kind = Partition::Message::Kind::kAttach,
                                    .lane = {.session_id = session.id,
                                             .lane = lane,
                                             .home = home,
                                             .endpoint = session.endpoint.get(),
                                             .layout = layout,
                                             .seal = {granted.nonce, false},
                                             .knows_deliver = (granted.features & wire::kDeliver) != 0}});
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
  session.detaching = server_.options.layout.lanes;
  for (const auto& partition : server_.partitions) {
    Partition::Message message{.kind = Partition::Message::Kind::kDetach, .lane = {}};
    message.lane.session_id = session_id;
    partition->post(message);
  }
}

void Control::close_all() {
  for (const auto& session : sessions_) session->endpoint->close();
  sessions_.clear();
  broken_.clear();
}

void Control::on_detached(uint64_t session_id) {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  EGRET_CHECK(at != sessions_.end() && (*at)->detaching > 0);
  --(*at)->detaching;
}

size_t Control::open_sessions() const {
  return static_cast<size_t>(std::ranges::count(sessions_, State::kOpen, &Session::state));
}

uint64_t Control::any_session(Rng& rng) const {
  return sessions_.empty() ? 0 : sessions_[rng.below(static_cast<uint32_t>(sessions_.size()))]->id;
}

transport::ServerEndpoint* Control::endpoint(uint64_t session_id) {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  return at == sessions_.end() ? nullptr : (*at)->endpoint.get();
}

uint64_t Control::nonce(uint64_t session_id) const {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  return at == sessions_.end() ? 0 : (*at)->nonce;
}

uint64_t Control::worker(uint64_t session_id) const {
  const auto at = std::ranges::find(sessions_, session_id, &Session::id);
  EGRET_CHECK(at != sessions_.end());
  return (*at)->worker_id;
}

std::string Partition::describe() const {
  return "partition " + std::to_string(number_) + (frozen_ ? " frozen" : "") + (blocked_ ? " blocked" : "") +
         ", awake lanes " + std::to_string(poller_.awake_lanes()) + ", messages " +
         std::to_string(poller_.counters().messages) + ", messages " + std::to_string(mailbox_.size());
}

// --- Server --------------------------------------------------------------------------------------------------------

Server::~Server() {
  end();
}

void Server::add_partition(std::unique_ptr<rpc::OpHandler> handler) {
  handlers.push_back(std::move(handler));
  partitions.push_back(std::make_unique<Partition>(*this, static_cast<uint32_t>(partitions.size()), *handlers.back()));
}

std::vector<std::unique_ptr<rpc::OpHandler>> Server::end() {
  for (const auto& partition : partitions) partition->drop_all();
  partitions.clear();
  control.close_all();
  return std::exchange(handlers, {});
}

rpc::PollerCounters Server::counters() const {
  rpc::PollerCounters sum;
  for (const auto& partition : partitions) {
    const rpc::PollerCounters& one = partition->counters();
    sum.messages += one.messages;
    sum.ops += one.ops;
    sum.torn += one.torn;
    sum.malformed += one.malformed;
    sum.deliveries += one.deliveries;
    sum.asked += one.asked;
    sum.told += one.told;
    sum.naps += one.naps;
    sum.rings += one.rings;
  }
  return sum;
}

}  // namespace egret::sim
