#include "backend/partition.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/epoll.h>

#include "backend/log_events.h"
#include "backend/report/report.h"
#include "base/cpu.h"
#include "base/log/log.h"

namespace egret::backend {

using transport::Event;

namespace {
constexpr uint32_t kRoundsBetweenParks = 32;        // empty rounds between two calls of park()
constexpr uint32_t kBusyRoundsBetweenParks = 256;   // busy rounds between two calls of park_long_idle()
constexpr size_t kHomesPerRound = 16;               // endpoints polled for rings in a round, at most
constexpr uint32_t kBusyRoundsBetweenSignals = 16;  // with more endpoints: rounds between two epoll_wait()s
constexpr uint32_t kEmptyRoundsBetweenSignals = 128;
// How many rounds collect results before they are pushed to clients, so that those over TCP share a system call. A client asks for
// further parts of a large value when parts arrive: with ten rounds these came so late that large gets were slower again.
constexpr uint32_t kRoundsBeforeFlush = 4;
constexpr uint32_t kRoundsBetweenProbes = 1024;          // in a thread that never sleeps
constexpr uint64_t kLongestSleepNs = 1'000'000'000'000;  // a longer sleep has no time-out
constexpr std::chrono::milliseconds kPauseAtTheEnd{1};
constexpr uint32_t kQuietAtTheEnd = 3;      // the thread ends after so many pauses in a row without a request ...
constexpr uint32_t kMostAtTheEnd = 1000;    // ... or after so many rounds, if peers never pause
constexpr uint32_t kMessagesPerRound = 64;  // so that messages never keep requests waiting
// Instead of a session's number.
constexpr uint64_t kMessages = 0;
constexpr uint64_t kGroup = UINT64_MAX;
}  // namespace

Partition::Partition(const PartitionOptions& options, const base::Clock& clock, Mailboxes& mailboxes,
                     std::unique_ptr<Executor> executor)
    : options_(options),
      clock_(clock),
      mailboxes_(mailboxes),
      control_(mailboxes.nodes() - 1),
      executor_(std::move(executor)),
      poller_({.partition = options.number,
               .lane_idle_ns = options.polling.lane_idle_ns,
               .far_lane_idle_ns = options.polling.far_lane_idle_ns,
               .embedded_idle_ns = options.polling.embedded_idle_ns,
               .push = options.polling.push},
              clock, *executor_, *this),
      cpu_follower_(base::allowed_cpus()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.is_open()) throw std::system_error(errno, std::system_category(), "epoll_create1");
  const auto must_watch = [this](int fd, uint32_t events, uint64_t what) {
    if (!watch(fd, events, what)) throw std::system_error(errno, std::system_category(), "epoll_ctl");
  };
  must_watch(mailboxes_.wake_fd(options.number), EPOLLIN | EPOLLET, kMessages);
  if (options.group != nullptr) must_watch(options.group->fd(), EPOLLIN, kGroup);
}

bool Partition::watch(int fd, uint32_t events, uint64_t session_id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = session_id;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

Partition::~Partition() {
  join();
}

void Partition::start() {
  thread_ = std::thread([this] { run(); });
}

void Partition::join() {
  if (thread_.joinable()) thread_.join();
}

// The thread's loop. Every round polls everything it waits for; the thread blocks only when no lane is awake.
void Partition::run() {
  pthread_setname_np(pthread_self(), ("partition-" + std::to_string(options_.number)).c_str());
  if (options_.cpu >= 0) base::pin_this_thread(options_.cpu);
  while (!stopping_) {
    const bool has_messages = read_messages();
    const bool rings = poll_rings();
    const bool served = poller_.poll() > 0;
    // Results that are to be pushed: of a few busy rounds together, or at once when there is nothing more to serve.
    if (!served || ++unflushed_rounds_ == kRoundsBeforeFlush) {
      unflushed_rounds_ = 0;
      flush_unsent();
    }
    report_broken();
    if (silent_homes_ > 0 && ++rounds_ % kRoundsBetweenProbes == 0) keep_alive();
    if (has_messages || rings || served) {
      after_round(served);
    } else {
      rest();
    }
  }
  finish();
}

// Of a round that did something.
void Partition::after_round(bool served) {
  if (empty_rounds_ > 0) end_wait(served);
  if (++busy_rounds_ % kBusyRoundsBetweenParks != 0) return;
  poller_.park_long_idle();
  cpu_follower_.on_busy();
}

// --- driven: messages and signals show at message_fd() and wait_fd(), always, so that a round in which nothing of them is
// new looks at no more than the lanes that are awake.

void Partition::begin() {
  EGRET_ASSERT_OWNER(owner_);
  is_driven_ = true;
  is_signalled_ = has_messages_ = true;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, message_fd(), nullptr);
  mailboxes_.signal_always(options_.number);
}

bool Partition::poll() {
  EGRET_ASSERT_OWNER(owner_);
  bool any = false;
  if (std::exchange(is_signalled_, false)) any = poll_signals(0);
  if (std::exchange(has_messages_, false) || mailboxes_.is_waiting(options_.number)) any |= read_messages();
  any |= poll_group();
  if (!polled_homes_.empty()) any |= poll_some(polled_homes_, kHomesPerRound);
  const bool served = poller_.awake_lanes() > 0 && poller_.poll() > 0;
  flush_unsent();
  report_broken();
  if (silent_homes_ > 0 && ++rounds_ % kRoundsBetweenProbes == 0) keep_alive();
  any |= served;
  if (any) after_round(served);
  return any;
}

bool Partition::prepare_sleep() {
  EGRET_ASSERT_OWNER(owner_);
  if (is_signalled_ || has_messages_ || stopping_ || !is_at_rest()) return false;
  if (mailboxes_.is_waiting(options_.number)) {
    has_messages_ = true;  // to send it again
    return false;
  }
  if (silent_homes_ > 0) keep_alive();
  for (const HomeEndpoint& home : polled_homes_) home.endpoint->arm();
  if (options_.group != nullptr) options_.group->arm();
  if (poll_group() || !ready_homes_.empty()) return false;
  return polled_homes_.empty() || !poll_some(polled_homes_, polled_homes_.size());
}

uint64_t Partition::sleeps_until_ns() const {
  const uint64_t upkeep_ns = executor_->upkeep_at_ns();
  return silent_homes_ > 0 ? std::min(upkeep_ns, next_probe_ns_) : upkeep_ns;
}

void Partition::FlushedLane::on_ring() {
  if (const HomeEndpoint* const home = partition.home_of(session_id)) partition.poll_rings_of(*home);
}

// ---

void Partition::finish() {
  for (uint32_t quiet = 0, rounds = 0; quiet < kQuietAtTheEnd && rounds < kMostAtTheEnd; ++rounds) {
    read_messages();
    poll_group();
    poll_some(lone_homes_, lone_homes_.size());
    if (pushed_homes_ > 0) poll_signals(0);
    quiet = poller_.poll() > 0 ? 0 : quiet + 1;
    flush_unsent();
    if (quiet > 0) std::this_thread::sleep_for(kPauseAtTheEnd);
  }
}

bool Partition::read_messages() {
  EGRET_ASSERT_OWNER(owner_);
  mailboxes_.resend(options_.number);
  Message message;
  bool any = false;
  for (uint32_t i = 0; mailboxes_.receive(options_.number, message); ++i) {
    any = true;
    has_messages_ = i + 1 == kMessagesPerRound;  // there may be more
    switch (message.kind) {
      case Message::Kind::kAttach:
        attach(message);
        break;
      case Message::Kind::kDetach:
        detach(message.lane.session_id);
        break;
      case Message::Kind::kRing:
        on_ring(message.lane.session_id);
        break;
      case Message::Kind::kDeliver:
        deliver(message);
        break;
      case Message::Kind::kCheck:
        answer_control(Message::Kind::kAlive);
        break;
      case Message::Kind::kInquire:
        report(*message.report);
        break;
      case Message::Kind::kPolling:
        options_.polling = message.polling;
        poller_.set_rules(message.polling.lane_idle_ns, message.polling.far_lane_idle_ns,
                          message.polling.embedded_idle_ns, message.polling.push);
        executor_->set_share_of_user(message.share_of_user);
        break;
      case Message::Kind::kMemory:
        if (!executor_->set_memory(message.memory)) tell_control(Message::Kind::kTooMuch, 0);
        break;
      case Message::Kind::kCompare:
        compare_memory(message.memory);
        break;
      case Message::Kind::kStop:
        stopping_ = true;
        break;
      case Message::Kind::kDetached:
      case Message::Kind::kBroken:
      case Message::Kind::kGone:
      case Message::Kind::kUnwatched:
      case Message::Kind::kAlive:
      case Message::Kind::kTooMuch:
      case Message::Kind::kReported:
        base::check_failed(__FILE__, __LINE__, "a message for the control thread");
    }
    if (has_messages_) break;
  }
  return any;
}

// A limit that clients have set stays until the file says another than before, or until a restart.
void Partition::compare_memory(uint64_t configured) const {
  if (executor_->memory() == configured) return;
  base::log(kMemoryLimitDiffers,
            "reload: the memory limit stays at {} bytes, which a client has set (cache_memlimit); the option says {}",
            base::field("bytes", executor_->memory()), base::field("memory", configured));
}

void Partition::attach(const Message& message) {
  EGRET_ASSERT_OWNER(owner_);
  const rpc::LaneBinding& lane = message.lane;
  EGRET_DCHECK(lane.lane == options_.number);
  attach_lane(message);
  message.under_way->rings[options_.number].store(false);  // a ring before this message is void: the lane starts awake

  const bool is_pushed = lane.endpoint->limits().results_are_pushed;
  const bool is_home = lane.home == options_.number;
  if (!is_home && !lane.endpoint->limits().has_lane_rings) return;
  HomeEndpoint home{lane.session_id, lane.endpoint, lane.layout.lanes, message.under_way};
  unsent_.reserve(homes_.size() + 1);
  const auto at = homes_.insert(std::ranges::lower_bound(homes_, lane.session_id, {}, &HomeEndpoint::session_id), home);
  if (lane.endpoint->limits().needs_keep_alive) ++silent_homes_;
  if (is_pushed) ++pushed_homes_;
  if (lane.endpoint->group() >= 0) {
    ready_homes_.reserve(homes_.size());
    lane.endpoint->set_listener(this, lane.session_id);
  } else {
    lone_homes_.push_back(home);
    if (!lane.endpoint->limits().ring_is_wakeup) polled_homes_.push_back(home);
    // Its rings could not wake us: the session ends.
    if (!watch(ring_fd(*lane.endpoint), is_pushed ? EPOLLIN : EPOLLIN | EPOLLET, lane.session_id)) {
      tell_control(Message::Kind::kUnwatched, lane.session_id);
    }
  }
  if (!is_home) return;
  // kDeliver messages that arrived before this one were ignored.
  for (size_t slot = 0; slot < message.under_way->deliveries.size(); ++slot) {
    deliver_pending(*at, lane.layout, slot);
  }
}

int Partition::ring_fd(const transport::ServerEndpoint& endpoint) const {
  return endpoint.limits().has_lane_rings ? endpoint.lane_fd(options_.number) : endpoint.data_fd();
}

void Partition::attach_lane(const Message& message) {
  rpc::LaneBinding lane = message.lane;
  transport::SameProcess* const same_process = lane.endpoint->limits().same_process;
  lane.is_served_at_flush = is_driven_ && same_process != nullptr && same_process->is_clients_thread();
  const rpc::LaneId id = poller_.attach(lane);
  // Sorted by number: sessions may finish their handshakes in another order than they connected in.
  const auto place = std::ranges::lower_bound(sessions_, lane.session_id, {}, &AttachedSession::session_id);
  const bool is_pushed = lane.endpoint->limits().results_are_pushed;
  const auto at = sessions_.insert(place, {lane.session_id, message.under_way, is_pushed});
  if (is_pushed) ++pushed_sessions_;
  if (!lane.is_served_at_flush) return;
  at->same_process = same_process;
  at->at_flush = std::make_unique<FlushedLane>(*this, id, lane.session_id);
  same_process->serve_at_flush(lane.lane, at->at_flush.get());
  poller_.serve(id);  // what was flushed before
}

void Partition::detach(uint64_t session_id) {
  EGRET_ASSERT_OWNER(owner_);
  poller_.detach(session_id);
  std::erase_if(sessions_, [&](const AttachedSession& session) {
    if (session.session_id != session_id) return false;
    if (session.same_process != nullptr) session.same_process->serve_at_flush(options_.number, nullptr);
    if (session.is_pushed) --pushed_sessions_;
    return true;
  });
  if (const HomeEndpoint* const home = home_of(session_id)) {
    if (home->endpoint->group() >= 0) {
      home->endpoint->set_listener(nullptr, 0);
    } else {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ring_fd(*home->endpoint), nullptr);
    }
    if (home->endpoint->limits().needs_keep_alive) --silent_homes_;
    if (home->endpoint->limits().results_are_pushed) --pushed_homes_;
    homes_.erase(homes_.begin() + (home - homes_.data()));
    const auto is_its = [&](const HomeEndpoint& each) { return each.session_id == session_id; };
    std::erase_if(lone_homes_, is_its);
    std::erase_if(polled_homes_, is_its);
  }
  tell_control(Message::Kind::kDetached, session_id);
}

// Clear the flag first: a ring from now on sends a new message, and what its client wrote before is seen below.
void Partition::on_ring(uint64_t session_id) {
  EGRET_ASSERT_OWNER(owner_);
  UnderWay* const under_way = under_way_of(session_id);
  if (under_way == nullptr) return;
  under_way->rings[options_.number].exchange(false, std::memory_order_acq_rel);
  poller_.ring(session_id);
}

// The session may have been detached before this message arrived; its endpoint must not be touched then.
void Partition::deliver(const Message& message) {
  EGRET_ASSERT_OWNER(owner_);
  HomeEndpoint* const home = home_of(message.lane.session_id);
  if (home == nullptr) return;
  const size_t slot = message.offset / message.lane.layout.response_slot_size;
  deliver_pending(*home, message.lane.layout, slot);
}

// Pushes the slot's response if somebody has asked for it. The length is cleared first, so that the next request to
// push sends a new message.
void Partition::deliver_pending(HomeEndpoint& home, const wire::RegionLayout& layout, size_t slot) {
  const uint32_t length = home.under_way->deliveries[slot].exchange(0, std::memory_order_acq_rel);
  if (length == 0) return;
  push(home, static_cast<uint32_t>(slot / layout.window), slot * layout.response_slot_size, length, {});
}

// Where every result is pushed, those of a round are sent at its end.
void Partition::push(HomeEndpoint& home, uint32_t lane, size_t offset, size_t length,
                     std::span<const transport::Piece> pieces) {
  home.endpoint->deliver_pieces(lane, offset, length, pieces);
  if (!home.endpoint->limits().results_are_pushed || std::exchange(home.is_unsent, true)) return;
  unsent_.push_back(home.session_id);
}

void Partition::flush_unsent() {
  if (unsent_.empty()) return executor_->end_round();
  for (const uint64_t session_id : unsent_) {
    HomeEndpoint* const home = home_of(session_id);
    if (home == nullptr) continue;
    home->is_unsent = false;
    if (!home->is_blocked) flush(*home);
  }
  unsent_.clear();
  executor_->end_round();
}

// A peer that does not take its responses is waited for at its descriptor: it never blocks this thread.
void Partition::flush(HomeEndpoint& home) {
  const bool is_blocked = !home.endpoint->flush();
  if (is_blocked == home.is_blocked) return;
  home.is_blocked = is_blocked;
  epoll_event event{};
  event.events = is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN;
  event.data.u64 = home.session_id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, home.endpoint->data_fd(), &event);
}

// Null: the session is not attached.
UnderWay* Partition::under_way_of(uint64_t session_id) {
  const auto at = std::ranges::lower_bound(sessions_, session_id, {}, &AttachedSession::session_id);
  return at != sessions_.end() && at->session_id == session_id ? at->under_way : nullptr;
}

const Partition::HomeEndpoint* Partition::home_of(uint64_t session_id) const {
  const auto at = std::ranges::lower_bound(homes_, session_id, {}, &HomeEndpoint::session_id);
  return at != homes_.end() && at->session_id == session_id ? &*at : nullptr;
}

Partition::HomeEndpoint* Partition::home_of(uint64_t session_id) {
  return const_cast<HomeEndpoint*>(std::as_const(*this).home_of(session_id));
}

bool Partition::poll_rings() {
  const bool any = poll_group();
  return poll_alone() || any;
}

// One poll finds the endpoints of the group that have something; each has a share of the round.
bool Partition::poll_group() {
  if (options_.group == nullptr) return false;
  bool any = options_.group->poll();
  const size_t count = ready_homes_.size();
  for (size_t i = 0; i < count; ++i) {
    if (const HomeEndpoint* const home = home_of(ready_homes_[i])) any |= poll_rings_of(*home);
  }
  ready_homes_.erase(ready_homes_.begin(), ready_homes_.begin() + static_cast<ptrdiff_t>(count));
  return any;
}

// Up to kHomesPerRound endpoints are all polled for rings in every round. With more of them that would be most of the
// work: then one epoll_wait() every so many rounds finds those that signal their rings, and a few of the others are
// polled in turn.
bool Partition::poll_alone() {
  const bool are_few = lone_homes_.size() <= kHomesPerRound;
  const bool any = are_few ? poll_some(lone_homes_, lone_homes_.size()) : poll_some(polled_homes_, kHomesPerRound);
  if (are_few && pushed_homes_ == 0) return any;
  const uint32_t interval = empty_rounds_ == 0 ? kBusyRoundsBetweenSignals : kEmptyRoundsBetweenSignals;
  if (polled_homes_.size() == lone_homes_.size() || ++rounds_unpolled_ < interval) return any;
  return poll_signals(0) || any;
}

// Waits at most that long for a signal: a ring, a completion or a message.
bool Partition::poll_signals(int patience_ms) {
  const int found = ::epoll_wait(epoll_.get(), signals_.data(), static_cast<int>(signals_.size()), patience_ms);
  const auto count = static_cast<size_t>(std::max(found, 0));
  rounds_unpolled_ =
      count == signals_.size() ? kEmptyRoundsBetweenSignals : 0;  // poll again at once: there may be more
  bool any = false;
  for (const epoll_event& signal : std::span(signals_).first(count)) {
    if (signal.data.u64 == kGroup) options_.group->ready();  // the next round polls it
    HomeEndpoint* const home = home_of(signal.data.u64);
    if (home == nullptr) continue;
    home->endpoint->ready();
    any |= poll_rings_of(*home);
    if (home->is_blocked) flush(*home);
  }
  return any;
}

// Polls the next `most` of these endpoints for rings.
bool Partition::poll_some(const std::vector<HomeEndpoint>& homes, size_t most) {
  bool any = false;
  for (size_t asked = std::min(most, homes.size()); asked > 0; --asked) {
    if (next_home_ >= homes.size()) next_home_ = 0;
    any |= poll_rings_of(homes[next_home_++]);
  }
  return any;
}

// Probes silent peers: the endpoint of a dead one breaks.
void Partition::keep_alive() {
  const uint64_t now = clock_.now_ns();
  if (silent_homes_ == 0 || now < next_probe_ns_) return;
  next_probe_ns_ = now + transport::kKeepAliveNs;
  for (const HomeEndpoint& home : homes_) home.endpoint->keep_alive();
}

// Where rings are signalled, nobody asks again before the next one: all lanes that have been rung are to be found now, and a peer
// that goes on ringing is asked no longer than that takes.
bool Partition::poll_rings_of(const HomeEndpoint& home) {
  const transport::Limits& limits = home.endpoint->limits();
  size_t full_polls = limits.ring_is_wakeup ? home.lanes / events_.size() : 0;
  size_t count = 0;
  bool any = false;
  do {
    count = limits.has_lane_rings ? home.endpoint->poll_lane(options_.number, events_) : home.endpoint->poll(events_);
    any |= count > 0;
    take_events(home, std::span(events_).first(count));
  } while (count == events_.size() && (limits.results_are_pushed || full_polls-- > 0));
  if (count == events_.size() && home.endpoint->group() >= 0) ready_homes_.push_back(home.session_id);
  return any;
}

void Partition::take_events(const HomeEndpoint& home, std::span<const Event> events) {
  bool ours = false;
  for (const Event& event : events) {
    if (event.kind == Event::Kind::kClosed) tell_control(Message::Kind::kGone, home.session_id);
    if (event.kind != Event::Kind::kRing || event.lane >= home.lanes) continue;
    if (event.lane == options_.number) {
      ours = true;
      continue;
    }
    if (home.under_way->rings[event.lane].exchange(true, std::memory_order_acq_rel)) continue;
    Message ring{.kind = Message::Kind::kRing, .lane = {}};
    ring.lane.session_id = home.session_id;
    mailboxes_.send(options_.number, event.lane, ring);
  }
  if (ours) {
    poller_.ring(home.session_id);
    if (options_.follows) cpu_follower_.on_ring(poller_.clients_cpu());
  }
}

void Partition::report_broken() {
  if (!poller_.has_broken_sessions()) return;
  for (const rpc::BrokenSession& broken : poller_.take_broken_sessions()) {
    Message message{.kind = Message::Kind::kBroken, .lane = {}, .error = broken.why};
    message.lane.session_id = broken.session_id;
    message.lane.lane = broken.lane;
    mailboxes_.send(options_.number, control_, message);
  }
}

void Partition::report(PartitionReport& report) {
  report.store.clear();
  executor_->store().append_stats(op::StatGroup::kGeneral, report.store, store::Store::Since::kStart);
  report.poller = poller_.counters();
  report.executor = executor_->counters();
  // Their clients count them as messages, too.
  report.poller.messages += report.executor.direct_messages;
  report.poller.ops += report.executor.direct_ops;
  report.levels = executor_->levels();
  report.lanes = sessions_.size();
  report.lanes_awake = poller_.awake_lanes();
  report.pushing_is_cheap = poller_.pushing_is_cheap() ? 1 : 0;
  answer_control(Message::Kind::kReported);
}

void Partition::answer_control(Message::Kind kind) {
  Message message{.kind = kind, .lane = {}};
  message.lane.lane = options_.number;
  mailboxes_.send(options_.number, control_, message);
}

void Partition::tell_control(Message::Kind kind, uint64_t session_id) {
  Message message{.kind = kind, .lane = {}};
  message.lane.session_id = session_id;
  mailboxes_.send(options_.number, control_, message);
}

void Partition::rest() {
  EGRET_ASSERT_OWNER(owner_);
  if (is_at_rest()) sleep();
}

// This round found nothing to do. Lanes that have been idle long enough fall asleep (at once where polling rarely
// pays). When no lane is awake, the store does one step of upkeep a round; when it has nothing to do either, the thread
// may sleep.
bool Partition::is_at_rest() {
  if (pushed_sessions_ > 0) poller_.park_pushed();
  if (poller_.awake_lanes() == 0) return !executor_->idle_step();
  if (empty_rounds_++ == 0) polls_on_ = spin_judge_.begins() || !poller_.is_awake_for_local_only();
  const bool at_once = options_.polling.park_always || !polls_on_;
  if (at_once || empty_rounds_ % kRoundsBetweenParks == 0) poller_.park(at_once);
  if (poller_.awake_lanes() > 0) {
    base::cpu_relax();
  } else {
    end_wait(false);
  }
  return false;
}

// The empty rounds are over: `paid`: something came; else all lanes fell asleep.
void Partition::end_wait(bool paid) {
  if (polls_on_) spin_judge_.ends(paid);
  empty_rounds_ = 0;
}

// park() has published `asleep` and read the request slots again. Now: arm the endpoints, poll rings and messages
// again, block. Endpoints that need no arming signal by themselves.
void Partition::sleep() {
  EGRET_ASSERT_OWNER(owner_);
  keep_alive();
  for (const HomeEndpoint& home : polled_homes_) home.endpoint->arm();
  if (options_.group != nullptr) options_.group->arm();
  if (poll_group() || !ready_homes_.empty() || poll_some(polled_homes_, polled_homes_.size()) ||
      mailboxes_.resend(options_.number) || !mailboxes_.prepare_sleep(options_.number))
    return;
  poll_signals(patience_ms());
  mailboxes_.awake(options_.number);
}

// How long to sleep if nothing happens, in ms; -1: for ever. Rounded up, so that what was waited for is due on waking.
int Partition::patience_ms() const {
  uint64_t ns = executor_->upkeep_in_ns();
  if (silent_homes_ > 0) ns = std::min(ns, transport::kKeepAliveNs);
  return ns >= kLongestSleepNs ? -1 : static_cast<int>(ns / 1'000'000 + 1);
}

// Only the home's own thread knows when they are sent.
bool Partition::sends_pieces(const rpc::LaneBinding& lane) const {
  if (lane.home != options_.number || !lane.endpoint->limits().sends_pieces) return false;
  const HomeEndpoint* const home = home_of(lane.session_id);
  return home != nullptr && !home->is_blocked;
}

void Partition::relay(const rpc::LaneBinding& lane, size_t offset, size_t length,
                      std::span<const transport::Piece> pieces) {
  EGRET_ASSERT_OWNER(owner_);
  if (lane.home == options_.number) return push(*home_of(lane.session_id), lane.lane, offset, length, pieces);
  UnderWay* const under_way = under_way_of(lane.session_id);
  EGRET_DCHECK(under_way != nullptr);
  auto& pending = under_way->deliveries[offset / lane.layout.response_slot_size];
  // If a message for this slot has not been read yet, it will push what is in the slot now: a response, and with it that
  // the lane has fallen asleep.
  uint32_t before = pending.load(std::memory_order_relaxed);
  while (!pending.compare_exchange_weak(before, std::max(before, static_cast<uint32_t>(length)),
                                        std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  if (before != 0) return;
  mailboxes_.send(options_.number, lane.home, {.kind = Message::Kind::kDeliver, .lane = lane, .offset = offset});
}

}  // namespace egret::backend
