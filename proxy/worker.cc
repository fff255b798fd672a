#include "proxy/worker.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/log/log.h"
#include "base/random.h"
#include "proxy/log_events.h"
#include "transport/address.h"
#include "wire/slot.h"

namespace egret::proxy {

using events::Event;
using rpc::ClientSession;

namespace {
constexpr uint32_t kMaxSessionLogLines = 200;  // lines about opened sessions, and as many about lost ones, in 10 s
constexpr std::chrono::microseconds kKeepAlive{transport::kKeepAliveNs / 1000};
constexpr std::chrono::microseconds kTick{ClientSession::kTickNs / 1000};
constexpr uint64_t kMostPassNs = 1'000'000;  // then sockets have their turn, however much there is to move

}  // namespace

Worker::Worker(uint32_t number, const base::Clock& clock, ProxyState& proxy, base::Watchdog& watchdog,
               LoopPoller* poller)
    : number_(number),
      watchdog_(watchdog),
      poller_(poller),
      context_(proxy, number, clock, loop_, [this](const auto& member) { return make_session(member); }),
      wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_fd_.is_open()) throw std::system_error(errno, std::system_category(), "eventfd");
  inbox_event_ =
      Event::on_fd<&Worker::read_inbox>(loop_, wake_fd_.get(), events::kRead | events::kPersist | events::kEdge, *this);
  if (!inbox_event_.add()) throw std::system_error(errno, std::system_category(), "a worker's inbox");
  tick_ = Event::timer<&Worker::on_tick>(loop_, *this, events::kPersist);
  if (context_.config->is_session_per_host) open_host_door();
  keep_alive_ = Event::timer<&Worker::on_keep_alive>(loop_, *this, events::kPersist);
}

Worker::~Worker() {
  join();
}

void Worker::open_host_door() {
  host_door_ =
      std::make_unique<HostDoor>(loop_, [this](NewSlotSession session) { take_in_worker(std::move(session)); });
  const base::Status listening = host_door_->listen(context_.proxy.host_door, number_);
  if (!listening) throw std::system_error(ECONNREFUSED, std::system_category(), listening.message());
}

std::unique_ptr<ClientSession> Worker::make_session(const pool::Membership::Entry& member) {
  rpc::SessionOptions options = context_.config->session;
  options.address = member.member.address;
  if (is_handed_over(*context_.config, member.member, number_)) {
    options = handed_over(options, *context_.config, member.member, context_.proxy.host_door);
  }
  options.worker_id = base::random_u64();
  options.connect.group = context_.group.get();
  if (poller_ != nullptr) options.connect.home = poller_->home();
  return std::make_unique<ClientSession>(options, context_.clock, *this, transport::connect,
                                         member.stats->sessions[number_]);
}

// Keys go to a new member when every worker has a session with it, or it has had time for one: PoolControl decides.
void Worker::take_membership() {
  const std::shared_ptr<const pool::Membership> joining = context_.proxy.joining.get();
  std::shared_ptr<const pool::Membership> now = context_.proxy.membership.get();
  if (now->version() != context_.pool.membership().version()) {
    prepared_.store(0, std::memory_order_release);
    const uint64_t leave_ns = std::max(pool::Pool::kLeaveNs, context_.proxy.warm.get()->lasts_ns);
    start(context_.pool.apply(std::move(now), context_.clock.now_ns(), leave_ns));
    take_warm_phase(true);
  } else {
    take_warm_phase(false);
  }
  if (joining->version() > context_.pool.membership().version()) start(context_.pool.prepare(*joining));
  if (context_.pool.take(context_.proxy.health.get())) note_health();
  applied_.store(context_.pool.membership().version(), std::memory_order_release);
  tell_if_prepared();
}

// A phase is set before its membership is, so whoever has applied that finds it.
void Worker::take_warm_phase(bool is_applied) {
  using State = pool::WarmPhase::State;
  const std::shared_ptr<const pool::WarmPhase> phase = context_.proxy.warm.get();
  const bool is_its = phase->version == context_.pool.membership().version();
  if (phase->state == State::kNone || (is_applied && !is_its)) {
    is_warm_fencing_ = false;
    return context_.pulls.close();
  }
  if (!is_its) return;  // the next one's
  if (is_applied) {
    context_.pulls.keep(phase->before);
    is_warm_fencing_ = true;
  }
  if (phase->state == State::kOpen && fenced_version() == phase->version) context_.pulls.open();
}

void Worker::tell_if_fenced() {
  if (!context_.pulls.is_fenced()) return;
  is_warm_fencing_ = false;
  fenced_version_.store(context_.pool.membership().version(), std::memory_order_release);
}

// The control thread's verdict, once a pass.
void Worker::take_health() {
  if (is_fencing_ || is_listing_) [[unlikely]]
    note_answers();
  if (context_.proxy.health.version() == context_.pool.health().version()) return;
  if (!context_.pool.take(context_.proxy.health.get())) return;  // read_inbox() is about to apply its members
  note_health();
  tell_if_prepared();
}

// Who is about to return is purged when nothing is under way in its place any more.
void Worker::note_health() {
  const pool::Health& health = context_.pool.health();
  taken_health_.store(health.version(), std::memory_order_release);
  const bool anybody_waits =
      std::ranges::any_of(health.absent(), [](const auto& each) { return each.how == pool::Absence::kWaits; });
  if (anybody_waits) {
    std::vector<ClientSession*> sessions;
    for (const auto& session : context_.pool.gutter()) sessions.push_back(session.get());
    gutter_fence_.start(sessions);
  }
  is_fencing_ = true;
  note_fence();
  if (health.ejected() > 0) context_.proxy.health.ring();
}

void Worker::note_answers() {
  if (is_fencing_) note_fence();
  if (!is_listing_ || !lister_.is_over()) return;
  is_listing_ = false;
  context_.proxy.gutter_listing.set(lister_.take());
  context_.proxy.health.ring();
}

void Worker::ask_gutter() {
  wants_listing_.store(true, std::memory_order_release);
  wake();
}

void Worker::note_fence() {
  if (!gutter_fence_.is_over()) return;
  is_fencing_ = false;
  fenced_health_.store(context_.pool.health().version(), std::memory_order_release);
  if (context_.pool.health().ejected() > 0) context_.proxy.health.ring();
}

void Worker::start(const std::vector<ClientSession*>& sessions) {
  for (ClientSession* session : sessions) {
    session_events_[session];
    session->start();
  }
}

void Worker::tell_if_prepared() {
  const std::shared_ptr<const pool::Membership> joining = context_.proxy.joining.get();
  is_preparing_ = prepared_.load(std::memory_order_relaxed) != joining->version();
  if (!is_preparing_ || !context_.pool.is_ready_for(*joining)) return;
  is_preparing_ = false;
  prepared_.store(joining->version(), std::memory_order_release);
}

void Worker::tell_control() {
  if (is_preparing_) [[unlikely]]
    tell_if_prepared();
  if (is_warm_fencing_) [[unlikely]]
    tell_if_fenced();
}

void Worker::start() {
  thread_ = std::thread([this] { run(); });
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

// --- the loop
// ------------------------------------------------------------------------------------------------------------

void Worker::run() {
  pthread_setname_np(pthread_self(), ("worker-" + std::to_string(number_)).c_str());
  // Use CPUs from the last one downwards; a backend on the same host uses them from the first one upwards.
  if (context_.config->pin) base::pin_this_thread(cpus_[cpus_.size() - 1 - number_ % cpus_.size()]);
  if (poller_ != nullptr) poller_->begin(loop_);
  take_membership();
  keep_ticking();  // for sessions that could not connect at once
  while (!is_finished()) {
    wait_for_events();
    take_health();
    run_passes();
    // Nothing is gathered now, which would have to come before what the poller finds in slots: passes end behind a flush.
    if (poller_ != nullptr && poller_->poll()) run_passes();
    destroyed_ = clients_.destroy_dead();
    if (context_.pool.is_anybody_leaving()) let_leave();
    tell_control();
    keep_ticking();
  }
  clients_.clear();
  if (slots_ != nullptr) slots_->end_all();
  for (const auto& session : context_.pool.sessions()) session->close();
  for (const auto& session : context_.pool.sessions()) {  // whoever still waits for credit ends
    session->credit().announce();
    session->credit().hand_out();
  }
  context_.pulls.close();
  if (poller_ != nullptr) poller_->end();
}

// Handles socket events: reads clients' bytes, parses them and appends ops to messages.
void Worker::wait_for_events() {
  const bool block = may_block();
  context_.memory.show();  // last thing before it may sleep
  context_.pass_has_begun = false;
  loop_.run_once(block);
  context_.begin_pass();
}

// Moves requests and results until nothing more can be done without waiting; then sends each client its answers, once.
// Sending may let a client continue (its large value is sent, or slots are free again): then it repeats.
//
// It ends after kMostPassNs, too: slot clients that ask as fast as they are answered, a dump, or a large value, whose next
// part is there at once where the worker has the store itself, would keep it from its sockets. Then it does not sleep
// (is_cut_short_).
void Worker::run_passes() {
  const uint64_t until_ns = context_.pass_ns + kMostPassNs;
  bool is_all_moved = false;
  do {
    is_all_moved = move_requests(until_ns);
    clients_.send_answers();
  } while (!is_cut_short_ && (!is_all_moved || has_appended()));
}

// False: answers that hold many slots should be sent first.
bool Worker::move_requests(uint64_t until_ns) {
  poll_slots();
  // So that durations include the time of this pass, and only that.
  if (context_.active.awaits() || has_appended()) context_.pass_ns = context_.clock.now_ns();
  context_.active.flush();
  while (true) {
    const bool fetched = context_.active.fetch();
    const bool resumed = resume_connections();
    const bool relayed = poll_slots();
    if (!fetched && !resumed && !relayed) return true;
    const bool goes_on = relayed || context_.active.awaits() || has_appended();  // else all that was asked is answered
    if (goes_on) {
      context_.pass_ns = context_.clock.now_ns();
      context_.active.flush();
    }
    is_cut_short_ = context_.pass_ns >= until_ns;
    if (is_cut_short_ || !goes_on) return true;
    if (!context_.lists.with_output.empty() && context_.active.holds_much()) return false;
  }
}

// Passes results on to slot clients, and takes what they ask for.
bool Worker::poll_slots() {
  if (slots_ == nullptr) return false;
  slots_->push();
  return slots_->poll();
}

// Whether the worker may sleep now: polling again is not worth it, want is set, and the slots were read once more after
// that.
bool Worker::may_block() {
  if (std::exchange(destroyed_, false)) return false;  // what they held may let others continue
  if (std::exchange(is_cut_short_, false)) return false;
  if (context_.active.should_spin() || (slots_ != nullptr && slots_->should_spin())) return false;
  bool quiet = prepare_sleep();
  if (!quiet) {
    run_passes();
    quiet = prepare_sleep();  // that may have answered all that was outstanding
    if (!quiet) run_passes();
    tell_control();  // what control waits for may have been answered just now
  }
  const PassLists& lists = context_.lists;
  if (std::exchange(is_cut_short_, false)) return false;
  if (!quiet || !lists.with_output.empty() || !lists.resumable.empty() || !lists.dead.empty()) return false;
  return poller_ == nullptr || poller_->prepare_sleep();
}

// Lanes of slot clients first: what they have asked for meanwhile is sent by the sessions. A session that is asked for its
// last results may pass some on, and be given more to do.
bool Worker::prepare_sleep() {
  if (slots_ == nullptr) return context_.active.prepare_sleep();
  if (!slots_->prepare_sleep()) return false;
  const bool is_quiet = context_.active.prepare_sleep();
  slots_->push();
  return is_quiet;
}

// Whether ops were appended, or may have been, since the sessions were flushed.
bool Worker::has_appended() const {
  return !context_.lists.resumable.empty() || context_.pool.returns().is_due() || context_.active.has_appended();
}

bool Worker::resume_connections() {
  const bool has_credit = context_.active.hand_out_credit();
  const bool is_back = context_.pool.returns().hand_out();
  return clients_.resume() || has_credit || is_back;
}

// The timer runs only while something may time out or must be reconnected; an idle worker has none. It is started here
// and stops itself, so that a busy worker does not start and stop it in every pass.
void Worker::keep_ticking() {
  if (ticking_ || !needs_tick()) return;
  ticking_ = true;
  tick_.add(kTick);
}

void Worker::on_tick() {
  context_.begin_pass();
  must_tick_ = false;
  for (const auto& session : context_.pool.sessions()) {
    session->tick();
    must_tick_ |= session->needs_tick();
  }
  clients_.disconnect_stalled();
  if (stop_deadline_ns_ != 0) clients_.check_last_call(context_.pass_ns >= stop_reading_ns_);
  if (needs_tick()) return;
  ticking_ = false;
  tick_.del();
}

void Worker::on_keep_alive() {
  context_.begin_pass();
  bool needed = false;
  for (const auto& session : context_.pool.sessions()) {
    needed |= session->keep_alive();
  }
  if (!needed) keep_alive_.del();
}

bool Worker::needs_tick() const {
  return must_tick_ || stop_deadline_ns_ != 0 || context_.pool.is_anybody_leaving() ||
         context_.memory.large.is_anybody_waiting() || context_.memory.is_input_high() || context_.active.needs_tick();
}

// --- sessions
// ------------------------------------------------------------------------------------------------------------

void Worker::let_leave() {
  for (const ClientSession* gone : context_.pool.let_leave(context_.clock.now_ns())) {
    context_.active.forget(gone);
    session_events_.erase(gone);
  }
}

base::Status Worker::on_session_connecting(ClientSession& session) {
  must_tick_ = true;
  Event& control = session_events_[&session].control;
  control = Event::on_fd<&ClientSession::on_control_ready>(loop_, session.endpoint().control_fd(),
                                                           events::kRead | events::kPersist, session);
  return control.add();
}

namespace {
// Only of what is out of the ordinary: a session that may not do everything.
std::string rights_note(const ClientSession& session) {
  const op::Rights rights = session.grant().rights;
  return rights == op::kAllRights ? "" : ", rights " + op::to_string(rights);
}
}  // namespace

base::Status Worker::watch_data(ClientSession& session) {
  if (const int fd = session.endpoint().data_fd(); fd >= 0) {  // else it is in our group
    Event& data = session_events_[&session].data;
    // A socket that was full tells when there is room again.
    const short flags = session.endpoint().limits().results_are_pushed ? events::kRead | events::kWrite : events::kRead;
    data = Event::on_fd<&ClientSession::on_data_ready>(
        loop_, fd, static_cast<short>(flags | events::kPersist | events::kEdge), session);
    if (base::Status added = data.add(); !added) return added;
  }
  context_.fit_inline_values();
  // Sessions over a network are probed, and give slots back. Do not restart a pending timer: a backend that reconnects often would postpone it for the others each time.
  if (!session.endpoint().limits().fetch_is_local && !keep_alive_.pending()) keep_alive_.add(kKeepAlive);
  return base::Status::ok();
}

base::Status Worker::on_session_open(ClientSession& session) {
  if (base::Status watched = watch_data(session); !watched) return watched;
  static base::LogLimit limit(kMaxSessionLogLines);
  const pool::Member& backend = context_.pool.member_of(session).member;
  base::log_limited(limit, kSessionOpen, "worker {}: session with {}: {}, {}", base::field("worker", number_),
                    backend.to_string(), base::field("layout", session.grant().layout.to_string()),
                    base::field("facts", session.endpoint().facts() + rights_note(session)),
                    base::field("backend", backend.address), base::field("backend_name", backend.name));
  if (const std::string& why = session_events_[&session].why_fallback; !why.empty()) log_fallback(session, why);
  const bool is_settled =
      std::ranges::all_of(context_.pool.serving(), [](const auto& each) { return each->lanes().generation() > 0; });
  if (is_settled) settled_.store(true, std::memory_order_release);
  if (context_.pool.health().ejected() > 0) context_.proxy.health.ring();  // who is about to return has a session more
  tell_if_prepared();
  if (slots_ != nullptr) slots_->on_backend_open(session);
  return base::Status::ok();
}

// The session's memory is about to be freed: copies values in it that are still being sent to clients.
void Worker::forget_endpoint(ClientSession& session) {
  for (Connection* connection : context_.lists.with_output) connection->keep_lent();
  SessionEvents& events = session_events_[&session];
  events.control = {};
  events.data = {};
}

base::Status Worker::watch_next_endpoint(ClientSession& session) {
  forget_endpoint(session);
  if (base::Status watched = on_session_connecting(session); !watched) return watched;
  return watch_data(session);
}

base::Status Worker::on_session_resized(ClientSession& session) {
  if (base::Status watched = watch_next_endpoint(session); !watched) return watched;
  static base::LogLimit limit(kMaxSessionLogLines);
  const pool::Member& backend = context_.pool.member_of(session).member;
  base::log_limited(limit, kSessionResized, "worker {}: the session with {} goes on with {}",
                    base::field("worker", number_), backend.to_string(),
                    base::field("layout", session.grant().layout.to_string()), base::field("backend", backend.address),
                    base::field("backend_name", backend.name));
  return base::Status::ok();
}

void Worker::on_session_not_resized(ClientSession& session, const std::string& why) {
  if (stop_deadline_ns_ != 0 || context_.pool.is_leaving(session)) return;
  static base::LogLimit limit(kMaxSessionLogLines);
  const pool::Member& backend = context_.pool.member_of(session).member;
  base::log_limited(limit, kSessionNotResized, "worker {}: the session with {} keeps its size: {}",
                    base::field("worker", number_), backend.to_string(), base::field("why", why),
                    base::field("backend", backend.address), base::field("backend_name", backend.name));
}

// Before the fallback is tried: what comes of that decides whether this is worth a line.
void Worker::on_session_falls_back(ClientSession& session, const std::string& why) {
  must_tick_ = true;
  forget_endpoint(session);
  session_events_[&session].why_fallback = why;
}

base::Status Worker::on_session_returned(ClientSession& session) {
  if (base::Status watched = watch_next_endpoint(session); !watched) return watched;
  session_events_[&session].why_fallback.clear();
  static base::LogLimit limit(kMaxSessionLogLines);
  const pool::Member& backend = context_.pool.member_of(session).member;
  base::log_limited(limit, kSessionReturned, "worker {}: the session with {} goes on over {}",
                    base::field("worker", number_), backend.to_string(),
                    base::field("facts", session.endpoint().facts()), base::field("backend", backend.address),
                    base::field("backend_name", backend.name));
  return base::Status::ok();
}

// The preferred transport is tried for as long as it takes: a line only where there is something new.
void Worker::on_session_not_returned(ClientSession& session, const std::string& why) {
  std::string& known = session_events_[&session].why_fallback;
  if (why == known || stop_deadline_ns_ != 0 || context_.pool.is_leaving(session)) return;
  known = why;
  log_fallback(session, why);
}

void Worker::log_fallback(const ClientSession& session, const std::string& why) {
  static base::LogLimit limit(kMaxSessionLogLines);
  const pool::Member& backend = context_.pool.member_of(session).member;
  base::log_limited(
      limit, kSessionFellBack, "worker {}: the session with {} goes over {}, since RDMA cannot be had: {}",
      base::field("worker", number_), backend.to_string(), base::field("facts", session.endpoint().facts()),
      base::field("why", why), base::field("backend", backend.address), base::field("backend_name", backend.name));
}

void Worker::on_session_lost(ClientSession& session, const std::string& why, bool was_open) {
  must_tick_ = true;
  forget_endpoint(session);
  if (was_open) {
    std::string& known = session_events_[&session].why_fallback;
    if (!goes_by_fallback(session)) {
      known.clear();
    } else if (known.empty()) {
      known = why;  // RDMA worked only for a moment, so TCP is next without another attempt
    }
  }
  if (was_open && slots_ != nullptr) slots_->on_backend_lost(session);
  if (stop_deadline_ns_ != 0 || context_.pool.is_leaving(session)) return;  // expected
  const auto worker = base::field("worker", number_);
  const pool::Membership::Entry& entry = context_.pool.member_of(session);
  if (context_.pool.health().is_ejected(*entry.stats)) return;  // we closed it
  context_.proxy.health.ring();
  const pool::Member& lost = entry.member;
  const auto backend = base::field("backend", lost.address);
  const auto name = base::field("backend_name", lost.name);
  if (was_open) {
    static base::LogLimit limit(kMaxSessionLogLines);
    base::log_limited(limit, kSessionLost, "worker {}: session with {} lost: {}", worker, lost.to_string(),
                      base::field("why", why), backend, name);
  } else if (!is_asked_back(session)) {
    base::log_limited(entry.stats->failures, kNoSession, "worker {}: no session with {}: {}", worker, lost.to_string(),
                      base::field("why", why), backend, name);
  }
}

void Worker::on_session_timeout(ClientSession&) {
  context_.proxy.health.ring();
}

// --- inbox and end
// -------------------------------------------------------------------------------------------------------

void Worker::give(NewClient client) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_clients_.push_back(std::move(client));
  }
  wake();
}

void Worker::give_slots(NewSlotSession session) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_slots_.push_back(std::move(session));
  }
  wake();
}

void Worker::reload() {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_reload_ = true;
  }
  wake();
}

void Worker::stop(uint64_t drain_ns) {
  {
    const std::lock_guard lock(inbox_mutex_);
    inbox_stop_ns_ = drain_ns;
  }
  wake();
}

void Worker::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Worker::read_inbox() {
  context_.begin_pass();
  watchdog_.answer(number_);
  std::vector<NewClient> clients;
  std::vector<NewSlotSession> slots;
  uint64_t drain_ns = 0;
  bool is_reload = false;
  {
    const std::lock_guard lock(inbox_mutex_);
    clients.swap(inbox_clients_);
    slots.swap(inbox_slots_);
    is_reload = std::exchange(inbox_reload_, false);
    drain_ns = inbox_stop_ns_;
  }
  if (is_reload) {
    clients_.prepare(*context_.proxy.config.get());
    context_.take_config();
    take_membership();
    clients_.on_reload();
    if (slots_ != nullptr) slots_->review();
  }
  if (wants_listing_.exchange(false, std::memory_order_acq_rel)) {
    lister_.start(context_.pool);
    is_listing_ = true;
  }
  for (NewClient& client : clients) {
    if (stop_deadline_ns_ != 0)
      context_.proxy.gate.leave();
    else
      clients_.take_in(std::move(client));
  }
  for (NewSlotSession& session : slots) take_in(std::move(session));
  if (drain_ns != 0 && stop_deadline_ns_ == 0) {
    stop_reading_ns_ = context_.clock.now_ns() + drain_ns / 2;
    stop_deadline_ns_ = context_.clock.now_ns() + drain_ns;
    clients_.last_call();
  }
}

void Worker::take_in(NewSlotSession session) {
  if (slots_ == nullptr) slots_ = std::make_unique<SlotSessions>(context_);
  slots_->take(std::move(session));
}

// Another worker wants a session with a backend. Dropped if this worker does not know the backend yet: the other one tries
// again. A backend that left and is back has two sessions here; the leaving one would soon be closed, so the other is taken.
void Worker::take_in_worker(NewSlotSession session) {
  context_.begin_pass();
  const pool::Membership::Entry* found = nullptr;
  for (const auto& each : context_.pool.sessions()) {
    const pool::Membership::Entry& member = context_.pool.member_of(*each);
    if (host_tag(member.member) != session.hello.member) continue;
    found = &member;
    if (!context_.pool.is_leaving(*each)) break;
  }
  if (found == nullptr) return;
  session.member = *found;
  take_in(std::move(session));
}

bool Worker::is_finished() {
  if (stop_deadline_ns_ == 0) return false;
  if (context_.clock.now_ns() >= stop_deadline_ns_) return true;
  if (!clients_.are_gone()) return false;
  leave_other_workers();
  return slots_ == nullptr || !slots_->serves_workers();
}

// Those whose sessions this one uses need not stay for it any more.
void Worker::leave_other_workers() {
  for (const auto& session : context_.pool.sessions()) {
    if (!is_handed_over(*context_.config, context_.pool.member_of(*session).member, number_)) continue;
    if (!session->is_open() || session->lanes().outstanding() == 0) session->close(ClientSession::State::kClosed);
  }
}

}  // namespace egret::proxy
