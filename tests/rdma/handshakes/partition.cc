#include "partition.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace egret::handshakes {
namespace {

constexpr uint32_t kMaxPushesInFlight = kRecvs / 2;  // the client has that many RECVs posted, whatever it is doing
constexpr uint32_t kHeadFirst = 8;                   // one response in so many is written head first
constexpr uint64_t kEventfdTag = UINT64_MAX;

}  // namespace

void PushQueue::push(Push entry) {
  const uint64_t tail = tail_.load(std::memory_order_relaxed);
  if (tail - head_.load(std::memory_order_acquire) == entries_.size()) die("a slot was queued twice");
  entries_[tail % entries_.size()] = entry;
  tail_.store(tail + 1, std::memory_order_release);
}

bool PushQueue::pop(Push& entry) {
  const uint64_t head = head_.load(std::memory_order_relaxed);
  if (head == tail_.load(std::memory_order_acquire)) return false;
  entry = entries_[head % entries_.size()];
  head_.store(head + 1, std::memory_order_release);
  return true;
}

Partition::Partition(const Scenario& scenario, uint32_t id, std::span<const std::unique_ptr<Session>> sessions)
    : scenario_(scenario),
      id_(id),
      pauses_(scenario, 100 + id),
      lanes_(sessions.size()),
      pushes_in_flight_(sessions.size()),
      eventfd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kEventfdTag}};
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, eventfd_, &event) != 0) die("epoll_ctl: %s", std::strerror(errno));
  for (const auto& session : sessions) {
    ServerLane& lane = lanes_[session->id];
    lane.session = session.get();
    lane.push_queued = std::vector<std::atomic<bool>>(scenario.window);
    if (session->home != id) continue;
    homed_.push_back(session.get());
    event.data.u64 = session->id;
    const int channel = session->server.endpoint.channel_fd();
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, channel, &event) != 0) die("epoll_ctl: %s", std::strerror(errno));
  }
  for (uint32_t i = 0; i < scenario.partitions; ++i) {
    pushes_.push_back(std::make_unique<PushQueue>(sessions.size() * scenario.window));
  }
}

Partition::~Partition() {
  close(epoll_);
  close(eventfd_);
}

void Partition::stop() {
  stop_ = true;
  wake_up();
}

void Partition::run() {
  while (!stop_) {
    bool busy = poll_endpoints();
    busy |= take_rings();
    busy |= serve_lanes();
    busy |= take_pushes();
    if (scenario_.omit == Omit::kDrainFirst) {
      pauses_.here();
      empty_eventfd();
    }
    if (!busy && !any_lane_awake()) sleep();
  }
}

// --- Rings

// As home: takes rings off the completion queues of its endpoints, and passes on those for other partitions' lanes.
bool Partition::poll_endpoints() {
  bool found = false;
  for (Session* session : homed_) {
    ibv_wc completions[16];
    while (const size_t count = session->server.endpoint.poll(completions)) {
      found = true;
      for (const ibv_wc& wc : std::span(completions, count)) {
        if (wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
          --pushes_in_flight_[session->id];
          continue;
        }
        const uint32_t owner = ntohl(wc.imm_data);  // lane number = partition number; a peer can write anything there
        if (owner >= scenario_.partitions) die("a ring for lane %u", owner);
        ++counters_.rings_seen;
        pauses_.here();
        if (owner == id_) {
          lanes_[session->id].awake = true;
        } else {
          ++counters_.rings_passed_on;
          all_[owner]->ring_from_home(session->id);
        }
      }
    }
  }
  return found;
}

// A flag, not a queue: however often a client rings, one flag per lane holds it. Flag before eventfd, so that whoever
// wakes by the eventfd finds the flag.
void Partition::ring_from_home(uint32_t session) {
  lanes_[session].rung.store(true);
  wake_up();
}

// exchange(), not load and store: between the two a second ring could be wiped out.
bool Partition::take_rings() {
  bool found = false;
  for (ServerLane& lane : lanes_) {
    if (!lane.rung.exchange(false)) continue;
    lane.awake = true;
    found = true;
  }
  return found;
}

// --- Lanes

bool Partition::serve_lanes() {
  bool found = false;
  for (ServerLane& lane : lanes_) {
    if (!lane.awake) continue;
    pauses_.here();
    while (serve_one(lane)) found = true;
    park(lane);  // at every opportunity: one look that found nothing is enough
  }
  return found;
}

// Looks at the next expected slot; executes and publishes what stands there.
bool Partition::serve_one(ServerLane& lane) {
  if (!request_is_there(lane)) return false;
  pauses_.here();
  make_response(lane.session->nonce, id_, request_, response_);
  publish(lane, response_);
  ++counters_.executed;
  ++lane.expected;
  return true;
}

// Everything but the seq, then the seq; which, some times, comes first: what a READ may see on hardware that samples
// memory in any order, the head of this response with the body of another. The word `asleep` is not part of the
// response and stays.
void Partition::write_response(std::byte* to, const Message& response) {
  constexpr size_t kAfterAsleep = offsetof(Header, length);
  const auto* head = reinterpret_cast<const std::byte*>(&response.header);
  const auto write_head = [&] {
    std::memcpy(to + offsetof(Header, checksum), head + offsetof(Header, checksum), sizeof(uint64_t));
    std::memcpy(to + kAfterAsleep, head + kAfterAsleep, sizeof(Header) - kAfterAsleep);
    publish_word(to, response.header.seq);
  };
  const bool head_first = pauses_.random().one_in(kHeadFirst);
  if (head_first) write_head();
  pauses_.here();
  std::memcpy(to + sizeof(Header), response.body, response.header.length);
  pauses_.here();
  if (!head_first) write_head();
}

// publish → full fence → read want → deliver. (Rule b, the server's half.)
void Partition::publish(ServerLane& lane, const Message& response) {
  const Session& session = *lane.session;
  const uint32_t slot = session.layout.slot(id_, response.header.seq);
  std::byte* to = session.server.responses.at(session.layout.response_offset(slot));
  const std::byte* want_at = session.server.requests.at(session.layout.want_offset(id_));
  uint64_t want = observe_word(want_at);
  if (scenario_.omit == Omit::kWantFence) pauses_.in_window();  // a processor may read want this early

  write_response(to, response);
  if (scenario_.omit != Omit::kWantFence) {
    full_fence();
    pauses_.here();
    want = observe_word(want_at);
  }
  pauses_.here();
  if (response.header.seq > want) return;
  // A slot already in the queue goes out with the bytes it has by then: these. exchange() orders them for the home.
  if (lane.push_queued[slot % session.layout.window].exchange(true)) {
    ++counters_.delivers_merged;
  } else {
    all_[session.home]->push_through(id_, {session.id, slot});
  }
}

// A torn request is not there: the READ that follows its WRITE comes after the whole of it, and sees asleep. (If it
// kept the lane awake, a client that dies half-way through a WRITE would keep the partition from sleeping for ever.)
bool Partition::request_is_there(const ServerLane& lane) {
  const Session& session = *lane.session;
  const std::byte* slot =
      session.server.requests.at(session.layout.request_offset(session.layout.slot(id_, lane.expected)));
  const Seen seen = look(slot, lane.expected, session.nonce, scenario_.omit != Omit::kChecksum, request_);
  if (seen == Seen::kTorn) ++counters_.torn_requests;
  return seen == Seen::kWhole;
}

// publish asleep → full fence → look once more. (Rule a, the server's half.)
void Partition::park(ServerLane& lane) {
  const Session& session = *lane.session;
  std::byte* slot =
      session.server.responses.at(session.layout.response_offset(session.layout.slot(id_, lane.expected)));
  ++counters_.lanes_parked;
  lane.awake = scenario_.omit == Omit::kAsleepFence && request_is_there(lane);
  pauses_.in_window();
  publish_word(slot + offsetof(Header, asleep), lane.expected);
  full_fence();
  pauses_.here();
  if (scenario_.omit != Omit::kRecheck && scenario_.omit != Omit::kAsleepFence) lane.awake = request_is_there(lane);
  if (lane.awake) ++counters_.parks_undone;
}

bool Partition::any_lane_awake() const {
  for (const ServerLane& lane : lanes_) {
    if (lane.awake) return true;
  }
  return false;
}

// --- Delivers

void Partition::push_through(uint32_t from_partition, Push push) {
  pushes_[from_partition]->push(push);
  if (from_partition != id_) wake_up();
}

// As home: posts what partitions want pushed. What finds no room stays queued; the completion that makes room wakes us.
bool Partition::take_pushes() {
  bool found = false;
  for (uint32_t from = 0; from < scenario_.partitions; ++from) {
    for (Push push;;) {
      bool room = true;
      for (const Session* session : homed_) room &= pushes_in_flight_[session->id] < kMaxPushesInFlight;
      if (!room || !pushes_[from]->pop(push)) break;
      found = true;
      pauses_.here();
      Session& session = *lanes_[push.session].session;
      // Not queued any more from here on: a result published later is queued again. exchange() shows us the bytes of
      // the result that last found it queued.
      all_[from]->lanes_[push.session].push_queued[push.slot % session.layout.window].exchange(false);
      pauses_.here();
      const std::byte* slot = session.server.responses.at(session.layout.response_offset(push.slot));
      Header head;
      std::memcpy(&head, slot, sizeof(head));
      // The partition may be publishing the slot's next result by now; then this push is late and not waited for.
      const size_t length = sizeof(Header) + (head.length <= kMaxBody ? head.length : kMaxBody);
      const bool one_per_lane = scenario_.omit == Omit::kReplySlots;
      const uint32_t reply = one_per_lane ? from * session.layout.window : push.slot;
      session.server.endpoint.write_with_imm(slot, session.server.response_mr, length, session.reply_at(reply), reply,
                                             true);
      ++pushes_in_flight_[push.session];
      ++counters_.delivers;
      if (from != id_) ++counters_.delivers_for_others;
    }
  }
  return found;
}

// --- Sleeping

// All lanes have published asleep and looked once more; so: arm → look once more → block.
void Partition::sleep() {
  pauses_.in_window();
  for (Session* session : homed_) session->server.endpoint.arm();
  pauses_.here();
  if (look_again_after_arming()) return;
  pauses_.here();
  block();
}

// A ring that came before the queue was armed raises no event. It is for this partition's lanes or, invisible in its
// own slots, for another's: only the completion queue tells.
bool Partition::look_again_after_arming() {
  switch (scenario_.omit) {
    case Omit::kRearmPoll:
      return false;
    case Omit::kRearmSlotsOnly:
      for (ServerLane& lane : lanes_) lane.awake = request_is_there(lane);
      return any_lane_awake();
    default: {
      const uint64_t before = counters_.rings_seen;
      const bool found = poll_endpoints();
      counters_.rings_in_rearm_window += counters_.rings_seen - before;
      return found;
    }
  }
}

void Partition::block() {
  epoll_event events[8];
  ++counters_.partition_sleeps;
  blocked_ = true;
  const int count = epoll_wait(epoll_, events, 8, -1);  // no timer
  blocked_ = false;
  for (const epoll_event& event : std::span(events, static_cast<size_t>(count < 0 ? 0 : count))) {
    if (event.data.u64 != kEventfdTag) {
      lanes_[event.data.u64].session->server.endpoint.take_events();
    } else if (scenario_.omit != Omit::kDrainFirst) {
      empty_eventfd();  // before looking at what it announces: what is announced from here on shows in it again
    }
  }
  pauses_.here();
}

void Partition::wake_up() {
  const uint64_t one = 1;
  if (write(eventfd_, &one, sizeof(one)) != sizeof(one)) die("eventfd: %s", std::strerror(errno));
}

void Partition::empty_eventfd() {
  uint64_t count = 0;
  if (read(eventfd_, &count, sizeof(count)) < 0 && errno != EAGAIN) die("eventfd: %s", std::strerror(errno));
}

}  // namespace egret::handshakes
