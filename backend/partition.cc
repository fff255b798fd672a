#include "backend/partition.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include <pthread.h>
#include <sys/epoll.h>

#include "backend/report.h"
#include "base/check.h"
#include "base/cpu.h"

namespace egret::backend {

using transport::Event;

namespace {
constexpr uint32_t kRoundsBetweenParks = 32;        // empty rounds between two looks at who may sleep
constexpr uint32_t kBusyRoundsBetweenParks = 256;   // the same where rounds are never empty
constexpr size_t kHomesPerRound = 16;               // endpoints asked for rings in a round
constexpr uint32_t kBusyRoundsBetweenSignals = 16;  // where there are more of them
constexpr uint32_t kEmptyRoundsBetweenSignals = 128;
constexpr uint32_t kRoundsBetweenProbes = 1024;          // of a thread that never sleeps
constexpr uint64_t kLongestSleepNs = 1'000'000'000'000;  // of those that end by themselves
constexpr std::chrono::milliseconds kPauseAtTheEnd{1};
constexpr uint32_t kQuietAtTheEnd = 3;     // pauses in a row without a request
constexpr uint32_t kMostAtTheEnd = 1000;   // rounds, for peers that never pause
constexpr uint32_t kLettersPerRound = 64;  // so that mail never keeps requests waiting
}  // namespace

Partition::Partition(const PartitionOptions& options, const base::Clock& clock, PostOffice& mail,
                     std::unique_ptr<Executor> executor)
    : options_(options),
      clock_(clock),
      mail_(mail),
      control_(mail.nodes() - 1),
      executor_(std::move(executor)),
      poller_({.partition = options.number,
               .lane_idle_ns = options.polling.lane_idle_ns,
               .far_lane_idle_ns = options.polling.far_lane_idle_ns},
              clock, *executor_, *this),
      seat_(base::allowed_cpus()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  EGRET_CHECK(epoll_.is_open());
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  EGRET_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, mail_.wake_fd(options.number), &event) == 0);
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

// The partition's whole life. Everything it waits for is looked at in every round; it blocks only when no lane is
// awake.
void Partition::run() {
  pthread_setname_np(pthread_self(), ("partition-" + std::to_string(options_.number)).c_str());
  if (options_.cpu >= 0) base::pin_this_thread(options_.cpu);
  while (!stopping_) {
    const bool mail = read_mail();
    const bool rings = hear_rings();
    const bool served = poller_.poll() > 0;
    report_broken();
    if (silent_homes_ > 0 && ++rounds_ % kRoundsBetweenProbes == 0) keep_alive();
    if (mail || rings || served) {
      if (empty_rounds_ > 0) end_wait(served);
      if (++busy_rounds_ % kBusyRoundsBetweenParks == 0) {
        poller_.park_long_idle();
        seat_.does_not_sleep();
      }
    } else {
      rest();
    }
  }
  finish();
}

// What peers have sent is answered before they see the end, and results stay a while for them to be fetched.
void Partition::finish() {
  for (uint32_t quiet = 0, rounds = 0; quiet < kQuietAtTheEnd && rounds < kMostAtTheEnd; ++rounds) {
    read_mail();
    ask(homes_, homes_.size());
    quiet = poller_.poll() > 0 ? 0 : quiet + 1;
    if (quiet > 0) std::this_thread::sleep_for(kPauseAtTheEnd);
  }
}

bool Partition::read_mail() {
  mail_.resend(options_.number);
  Letter letter;
  bool any = false;
  for (uint32_t i = 0; i < kLettersPerRound && mail_.receive(options_.number, letter); ++i) {
    any = true;
    switch (letter.kind) {
      case Letter::Kind::kAttach:
        attach(letter);
        break;
      case Letter::Kind::kDetach:
        detach(letter.lane.session_id);
        break;
      case Letter::Kind::kRing:
        on_ring(letter.lane.session_id);
        break;
      case Letter::Kind::kDeliver:
        deliver(letter);
        break;
      case Letter::Kind::kCheck:
        answer_control(Letter::Kind::kAlive);
        break;
      case Letter::Kind::kInquire:
        report(*letter.report);
        break;
      case Letter::Kind::kPolling:
        options_.polling = letter.polling;
        poller_.set_idle(letter.polling.lane_idle_ns, letter.polling.far_lane_idle_ns);
        break;
      case Letter::Kind::kMemory:
        if (!executor_->set_memory(letter.memory)) tell_control(Letter::Kind::kTooMuch, 0);
        break;
      case Letter::Kind::kStop:
        stopping_ = true;
        break;
      case Letter::Kind::kDetached:
      case Letter::Kind::kBroken:
      case Letter::Kind::kGone:
      case Letter::Kind::kAlive:
      case Letter::Kind::kTooMuch:
      case Letter::Kind::kReported:
        base::check_failed(__FILE__, __LINE__, "a letter for the control thread");
    }
  }
  return any;
}

void Partition::attach(const Letter& letter) {
  const rpc::LaneBinding& lane = letter.lane;
  poller_.attach(lane);
  // Sessions are numbered as they connect and attached as their handshakes end.
  const auto place = std::ranges::lower_bound(sessions_, lane.session_id, {}, &AttachedSession::session_id);
  sessions_.insert(place, {lane.session_id, letter.under_way});
  letter.under_way->rings[options_.number].store(false);  // a ring that overtook this letter: the lane starts awake

  if (lane.home != options_.number) return;
  const HomeEndpoint home{lane.session_id, lane.endpoint, lane.layout.lanes, letter.under_way};
  homes_.insert(std::ranges::lower_bound(homes_, lane.session_id, {}, &HomeEndpoint::session_id), home);
  if (!lane.endpoint->limits().ring_is_wakeup) asked_homes_.push_back(home);
  if (lane.endpoint->limits().needs_keep_alive) ++silent_homes_;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = lane.session_id;
  EGRET_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, lane.endpoint->data_fd(), &event) == 0);
  // Deliveries whose letters overtook this one were not for anybody yet.
  for (size_t slot = 0; slot < letter.under_way->deliveries.size(); ++slot) {
    deliver_pending(home, lane.layout, slot);
  }
}

void Partition::detach(uint64_t session_id) {
  poller_.detach(session_id);
  std::erase_if(sessions_, [&](const AttachedSession& session) { return session.session_id == session_id; });
  if (const HomeEndpoint* const home = home_of(session_id)) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, home->endpoint->data_fd(), nullptr);
    if (home->endpoint->limits().needs_keep_alive) --silent_homes_;
    homes_.erase(homes_.begin() + (home - homes_.data()));
    std::erase_if(asked_homes_, [&](const HomeEndpoint& asked) { return asked.session_id == session_id; });
  }
  tell_control(Letter::Kind::kDetached, session_id);
}

// From here on the next ring sends a new letter; what was written before this one is seen by the look that follows.
void Partition::on_ring(uint64_t session_id) {
  UnderWay* const under_way = under_way_of(session_id);
  if (under_way == nullptr) return;
  under_way->rings[options_.number].exchange(false, std::memory_order_acq_rel);
  poller_.ring(session_id);
}

// The letter may have been overtaken by the session's end: then its endpoint is no longer ours to touch.
void Partition::deliver(const Letter& letter) {
  const HomeEndpoint* const home = home_of(letter.lane.session_id);
  if (home == nullptr) return;
  // From here on the slot's next delivery sends a new letter; what was published before is what is pushed now.
  const size_t slot = letter.offset / letter.lane.layout.response_slot_size;
  deliver_pending(*home, letter.lane.layout, slot);
}

// What it has been asked to push of that slot and has not pushed yet, if anything.
void Partition::deliver_pending(const HomeEndpoint& home, const wire::RegionLayout& layout, size_t slot) {
  const uint32_t length = home.under_way->deliveries[slot].exchange(0, std::memory_order_acq_rel);
  if (length == 0) return;
  home.endpoint->deliver(static_cast<uint32_t>(slot / layout.window), slot * layout.response_slot_size, length);
}

// Null when the session is not attached (any more).
UnderWay* Partition::under_way_of(uint64_t session_id) {
  const auto at = std::ranges::lower_bound(sessions_, session_id, {}, &AttachedSession::session_id);
  return at != sessions_.end() && at->session_id == session_id ? at->under_way : nullptr;
}

const Partition::HomeEndpoint* Partition::home_of(uint64_t session_id) const {
  const auto at = std::ranges::lower_bound(homes_, session_id, {}, &HomeEndpoint::session_id);
  return at != homes_.end() && at->session_id == session_id ? &*at : nullptr;
}

// A few endpoints are all asked for rings in every round. Asking thousands would be most of the work: those whose rings
// are signalled are then heard all at once, by a system call every so many rounds, and of the others some are asked.
bool Partition::hear_rings() {
  if (homes_.size() <= kHomesPerRound) return ask(homes_, homes_.size());
  const bool any = ask(asked_homes_, kHomesPerRound);
  const uint32_t deaf = empty_rounds_ == 0 ? kBusyRoundsBetweenSignals : kEmptyRoundsBetweenSignals;
  if (asked_homes_.size() == homes_.size() || ++deaf_rounds_ < deaf) return any;
  return hear_signals(0) || any;
}

// Waits so long at most for something to be signalled: a ring, a completion, mail.
bool Partition::hear_signals(int patience_ms) {
  const int found = ::epoll_wait(epoll_.get(), signals_.data(), static_cast<int>(signals_.size()), patience_ms);
  const auto count = static_cast<size_t>(std::max(found, 0));
  deaf_rounds_ = count == signals_.size() ? kEmptyRoundsBetweenSignals : 0;  // there may be more: look again at once
  bool any = false;
  for (const epoll_event& signal : std::span(signals_).first(count)) {
    const HomeEndpoint* const home = home_of(signal.data.u64);
    if (home != nullptr) any |= hear_rings_of(*home);
  }
  return any;
}

// Asks the next so many of these for rings.
bool Partition::ask(const std::vector<HomeEndpoint>& homes, size_t most) {
  bool any = false;
  for (size_t asked = std::min(most, homes.size()); asked > 0; --asked) {
    if (next_home_ >= homes.size()) next_home_ = 0;
    any |= hear_rings_of(homes[next_home_++]);
  }
  return any;
}

// Says something to peers that have been silent: if one is dead, its endpoint breaks.
void Partition::keep_alive() {
  const uint64_t now = clock_.now_ns();
  if (silent_homes_ == 0 || now < next_probe_ns_) return;
  next_probe_ns_ = now + transport::kKeepAliveNs;
  for (const HomeEndpoint& home : homes_) home.endpoint->keep_alive();
}

bool Partition::hear_rings_of(const HomeEndpoint& home) {
  const size_t count = home.endpoint->poll(events_);
  bool ours = false;
  for (const Event& event : std::span(events_).first(count)) {
    if (event.kind == Event::Kind::kClosed) tell_control(Letter::Kind::kGone, home.session_id);
    if (event.kind != Event::Kind::kRing || event.lane >= home.lanes) continue;
    if (event.lane == options_.number) {
      ours = true;
      continue;
    }
    if (home.under_way->rings[event.lane].exchange(true, std::memory_order_acq_rel)) continue;
    Letter ring{.kind = Letter::Kind::kRing, .lane = {}};
    ring.lane.session_id = home.session_id;
    mail_.send(options_.number, event.lane, ring);
  }
  if (ours) {
    poller_.ring(home.session_id);
    if (options_.follows) seat_.heard(poller_.clients_cpu());
  }
  return count > 0;
}

void Partition::report_broken() {
  if (!poller_.has_broken_sessions()) return;
  for (const rpc::BrokenSession& broken : poller_.take_broken_sessions()) {
    Letter letter{.kind = Letter::Kind::kBroken, .lane = {}, .error = broken.why};
    letter.lane.session_id = broken.session_id;
    letter.lane.lane = broken.lane;
    mail_.send(options_.number, control_, letter);
  }
}

void Partition::report(PartitionReport& report) {
  report.store.clear();
  executor_->store().append_stats(report.store, store::Store::Since::kStart);
  report.poller = poller_.counters();
  report.lanes = sessions_.size();
  report.lanes_awake = poller_.awake_lanes();
  answer_control(Letter::Kind::kReported);
}

void Partition::answer_control(Letter::Kind kind) {
  Letter letter{.kind = kind, .lane = {}};
  letter.lane.lane = options_.number;
  mail_.send(options_.number, control_, letter);
}

void Partition::tell_control(Letter::Kind kind, uint64_t session_id) {
  Letter letter{.kind = kind, .lane = {}};
  letter.lane.session_id = session_id;
  mail_.send(options_.number, control_, letter);
}

// Nothing to do in this round. Lanes that have been idle long enough fall asleep, or at once where polling on has been
// in vain too often; without an awake lane the store's upkeep has its turn, a step a round, and when that has nothing
// to do the thread sleeps, too.
void Partition::rest() {
  if (poller_.awake_lanes() == 0) {
    if (!executor_->idle_step()) sleep();
    return;
  }
  if (empty_rounds_++ == 0) polls_on_ = spin_judge_.begins() || !poller_.is_awake_for_local_only();
  const bool at_once = options_.polling.park_always || !polls_on_;
  if (at_once || empty_rounds_ % kRoundsBetweenParks == 0) poller_.park(at_once);
  if (poller_.awake_lanes() > 0) {
    base::cpu_relax();
  } else {
    end_wait(false);
  }
}

// The empty rounds are over: there is something to do (`paid`), or all lanes are asleep.
void Partition::end_wait(bool paid) {
  if (polls_on_) spin_judge_.ends(paid);
  empty_rounds_ = 0;
}

// Asleep is published and the slots were looked at once more (park). Now: arm → rings and mail once more → block. What
// is signalled without being armed keeps us from blocking by itself.
void Partition::sleep() {
  keep_alive();
  for (const HomeEndpoint& home : asked_homes_) home.endpoint->arm();
  if (ask(asked_homes_, asked_homes_.size()) || mail_.resend(options_.number) || !mail_.prepare_sleep(options_.number))
    return;
  hear_signals(patience_ms());
  mail_.awake(options_.number);
}

// How long to sleep if nothing happens; -1: for ever. Rounded up: what is due must be so on waking.
int Partition::patience_ms() const {
  uint64_t ns = executor_->upkeep_in_ns();
  if (silent_homes_ > 0) ns = std::min(ns, transport::kKeepAliveNs);
  return ns >= kLongestSleepNs ? -1 : static_cast<int>(ns / 1'000'000 + 1);
}

void Partition::relay(const rpc::LaneBinding& lane, size_t offset, size_t length) {
  UnderWay* const under_way = under_way_of(lane.session_id);
  EGRET_DCHECK(under_way != nullptr);
  auto& pending = under_way->deliveries[offset / lane.layout.response_slot_size];
  // A letter of this slot that has not been read yet pushes what is in the slot now.
  if (pending.exchange(static_cast<uint32_t>(length), std::memory_order_acq_rel) != 0) return;
  mail_.send(options_.number, lane.home, {.kind = Letter::Kind::kDeliver, .lane = lane, .offset = offset});
}

}  // namespace egret::backend
