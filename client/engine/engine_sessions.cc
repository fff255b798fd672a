// Sessions, waiting, and the descriptors that both need.
#include <algorithm>
#include <cerrno>
#include <utility>

#include <immintrin.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/file_id.h"
#include "base/random.h"
#include "client/engine/engine.h"
#include "client/engine/upload.h"
#include "client/process/fork.h"

namespace egret::client {

using base::FileId;
using base::Status;
using rpc::ClientSession;

namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr int kEvents = 16;
constexpr size_t kMostLines = 16;  // kept for the log's callback
constexpr int kMostArmPasses =
    1000;  // over a network it takes several passes until all that is under way will be pushed
constexpr int kInfo = 1, kWarning = 2;

// What an event's data says: a kind, and the number of the session's watch.
enum Kind : uint64_t { kTimer, kControl, kData, kNews };
constexpr uint64_t data_of(Kind kind, size_t watch) {
  return watch << 2 | kind;
}

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

constexpr time_t kYear = 365 * 86'400;  // in s
timespec make_mark() {
  return {.tv_sec = kYear, .tv_nsec = static_cast<long>(base::random_u64() % 1'000'000'000)};
}

}  // namespace

Engine::Engine(const Settings& settings, const base::Clock& clock, OnPool on_pool, ClientSession::Connect connect_to)
    : settings_(settings),
      clock_(clock),
      on_pool_(std::move(on_pool)),
      mark_(make_mark()),
      calls_(*this, settings.most_pending),
      router_(settings_, clock, *this, connect_to) {
  if (settings_.members.empty()) {
    news_ = std::make_unique<ProxyNews>(settings_.proxy, settings_.session, clock, connect_to);
  }
  status_ = make_descriptors();
}

Engine::~Engine() {
  calls_.for_each_in_use([](Call& call) { call.sink = nullptr; });
  router_.for_each_session([this](ClientSession& session) { end_session(session); });
  drop_news();
  const bool is_ours = owns_epoll();
  for (base::UniqueFd* fd : {&epoll_, &timer_}) {
    if (fd->is_open()) ForkGuard::disown(is_ours ? fd->get() : fd->release());
  }
}

// Both, or none.
Status Engine::make_descriptors() {
  const ForkGuard::Section section;
  base::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.is_open()) return Status::system_error("epoll_create1", errno);
  base::UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.is_open()) return Status::system_error("timerfd_create", errno);
  const itimerspec never{.it_interval = mark_, .it_value = {}};
  if (::timerfd_settime(timer.get(), 0, &never, nullptr) < 0) return Status::system_error("timerfd_settime", errno);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = data_of(kTimer, 0)}};
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, timer.get(), &event) < 0) return Status::system_error("epoll_ctl", errno);
  epoll_ = std::move(epoll);
  timer_ = std::move(timer);
  ForkGuard::own(epoll_.get());
  ForkGuard::own(timer_.get());
  return Status::ok();
}

// --- sessions

// The key's backend has no open session. Returns one that is open by now; else null, and what to say.
ClientSession* Engine::make_ready(std::string_view key, Taken& otherwise) {
  connect();
  ClientSession* const session = router_.session_of(key);  // by another way, of another pool
  if (session != nullptr && session->is_open()) return session;
  const bool is_connecting = session != nullptr ? session->state() == ClientSession::State::kHandshaking
                                                : news_ != nullptr && news_->is_asking();
  otherwise = is_connecting ? Taken::kConnecting : Taken::kUnavailable;
  return nullptr;
}

bool Engine::connect() {
  const ForkGuard::Section section;
  return connect_all();
}

// In a section, and not within a session's call.
bool Engine::connect_all() {
  ask_proxy();
  bool are_open = false;
  // A way that fails at once is followed by the other one.
  for (int pass = 0; pass < 2; ++pass) {
    if (std::exchange(must_turn_, false)) {
      must_turn_ = router_.turn([this](const ClientSession& session) { return !has_ops(session); });
    }
    are_open = !router_.sessions().empty();
    for (size_t i = 0; i < router_.sessions().size(); ++i) {
      ClientSession& session = *router_.sessions()[i];
      if (session.state() == ClientSession::State::kWaiting) session.tick();
      are_open &= session.is_open() || !router_.is_used(i);
    }
    if (!must_turn_) break;
  }
  return are_open;
}

bool Engine::is_connecting() const {
  const auto is_handshaking = [](const auto& session) {
    return session->state() == ClientSession::State::kHandshaking;
  };
  return std::ranges::any_of(router_.sessions(), is_handshaking) || (news_ != nullptr && news_->is_asking());
}

// Whether an op is under way by it.
bool Engine::has_ops(const ClientSession& session) const {
  bool found = false;
  const_cast<CallPool&>(calls_).for_each_in_use([&](const Call& call) { found |= call.session_ == &session; });
  return found;
}

void Engine::on_session_made(ClientSession& session) {
  const auto free = std::ranges::find(watches_, nullptr, &Watch::session);
  (free != watches_.end() ? *free : watches_.emplace_back()) = {.session = &session};
}

void Engine::end_session(ClientSession& session) {
  close(session, ClientSession::State::kClosed);
  session.credit().announce();
  session.credit().hand_out();
  active_.forget(&session);
  watch_of(session) = {};
}

void Engine::close(ClientSession& session, ClientSession::State next) {
  closing_ = &session;
  session.close(next);
  closing_ = nullptr;
}

Engine::Watch& Engine::watch_of(const ClientSession& session) {
  const auto at = std::ranges::find(watches_, &session, &Watch::session);
  EGRET_CHECK(at != watches_.end());
  return *at;
}

Status Engine::watch(int fd, uint32_t events, uint64_t data) {
  if (!owns_epoll()) renew_descriptors();
  epoll_event event{.events = events, .data = {.u64 = data}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) return Status::system_error("epoll_ctl", errno);
  ForkGuard::own(fd);
  return Status::ok();
}

// `is_stale`: another session's descriptor may have this number by now.
void Engine::unwatch(int& fd, bool is_stale) {
  const int watched = std::exchange(fd, -1);
  if (watched < 0 || is_stale) return;
  ForkGuard::disown(watched);
  if (owns_epoll()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched, nullptr);
}

void Engine::unwatch(Watch& watched) {
  unwatch(watched.data_fd, watched.is_stale);
  unwatch(watched.control_fd, watched.is_stale);
  watched.is_stale = false;
}

Status Engine::on_session_connecting(ClientSession& session) {
  Watch& watched = watch_of(session);
  unwatch(watched);
  const int control_fd = session.endpoint().control_fd();
  const Status added = watch(control_fd, EPOLLIN, data_of(kControl, static_cast<size_t>(&watched - watches_.data())));
  watched.control_fd = control_fd;
  watched.control = FileId::of(control_fd);
  watched.data = {};
  return added;
}

Status Engine::on_session_open(ClientSession& session) {
  ++changes_;
  router_.note_open(session);
  // A socket that was full tells when there is room again.
  const uint32_t room = session.endpoint().limits().results_are_pushed ? EPOLLOUT : 0u;
  if (!session.endpoint().limits().fetch_is_local) has_network_ = true;
  note(kInfo, "session open: " + session.grant().layout.to_string() + ", " + session.endpoint().facts());
  Watch& watched = watch_of(session);
  const int data_fd = session.endpoint().data_fd();
  const Status added =
      watch(data_fd, EPOLLIN | EPOLLET | room, data_of(kData, static_cast<size_t>(&watched - watches_.data())));
  if (watched.is_stale) ForkGuard::disown(data_fd);  // watch() has renewed the epoll, so this session is made again
  watched.data_fd = data_fd;
  watched.data = FileId::of(data_fd);
  return added;
}

Status Engine::on_session_resized(ClientSession& session) {
  const ForkGuard::Section section;
  if (Status watched = on_session_connecting(session); !watched) return watched;
  return on_session_open(session);
}

void Engine::on_session_lost(ClientSession& session, const std::string& why, bool was_open) {
  unwatch(watch_of(session));
  ++changes_;
  if (&session == closing_) return;
  trouble_ = why;
  must_turn_ |= router_.note_loss(session, was_open, clock_.now_ns());
  note(kWarning, (was_open ? "session lost: " : "no session: ") + why);
}

// It goes on at once by the second of its addresses.
void Engine::on_session_falls_back(ClientSession& session, const std::string& why) {
  unwatch(watch_of(session));
  ++changes_;
  trouble_ = why;
  note(kWarning, "no session: " + why);
}

// Somebody may have closed our descriptors, and opened others, which have their numbers now.
bool Engine::may_close(const ClientSession& session) {
  const auto at = std::ranges::find(watches_, &session, &Watch::session);
  if (at == watches_.end()) return true;
  const transport::ClientEndpoint& endpoint = session.endpoint();
  return endpoint.owns_descriptors() && at->control == FileId::of(endpoint.control_fd()) &&
         (at->data == FileId{} || at->data == FileId::of(endpoint.data_fd()));
}

void Engine::note(int level, std::string text) {
  if (log_.size() < kMostLines) log_.push_back({level, std::move(text)});
}

// --- passes

void Engine::begin_on_host() {
  active_.begin_pass();  // ops count as sent when the pass began, and the last one may be long ago
  bool any = false;
  for (const auto& session : router_.sessions()) {
    const bool is_straight = session->is_open() && session->endpoint().limits().fetch_is_local &&
                             (session->grant().features & wire::kRelayed) == 0;
    if (!is_straight) continue;
    session->flush();
    any |= session->fetch();  // only who looks for an answer sees that its lane sleeps, and wakes it
  }
  any |= active_.hand_out_credit();
  if (any) ++changes_;
}

bool Engine::poll(Look look) {
  if (look == Look::kDescriptors) look_at_descriptors();
  active_.begin_pass();
  active_.flush();
  bool any = active_.fetch();
  any |= active_.hand_out_credit();
  if (any) {
    ++changes_;
    active_.flush();
  }
  tick_if_due();
  return any;
}

void Engine::look_at_descriptors() {
  const bool waits = std::ranges::any_of(router_.sessions(), [](const auto& session) {
    return session->is_open() && !session->endpoint().limits().fetch_is_local;
  });
  if (waits || is_connecting()) handle_events(0);
  polls_ = kPollsPerClock - 1;  // the clock may have moved
}

void Engine::tick_if_due() {
  if (++polls_ % kPollsPerClock != 0) return;
  const uint64_t now_ns = clock_.now_ns();
  if (now_ns >= next_tick_ns_) tick_all(now_ns);
}

void Engine::tick_all(uint64_t now_ns) {
  next_tick_ns_ = now_ns + ClientSession::kTickNs;
  const ForkGuard::Section section;
  look_after_descriptors();
  handle_events(0);  // a caller that only polls would not hear of a session's end
  for (const auto& session : router_.sessions()) {
    if (session->state() != ClientSession::State::kWaiting && session->needs_tick()) session->tick();
  }
  for (const auto& session : router_.leaving()) session->tick();
  ask_proxy();
  hear_news();
  router_.let_go([this](const ClientSession& session) { return !has_ops(session); });
  must_turn_ |= router_.look_for_straight(now_ns);
  if (must_turn_) connect_all();
  if (!has_network_ || now_ns < next_keep_alive_ns_) return;
  next_keep_alive_ns_ = now_ns + transport::kKeepAliveNs;
  has_network_ = false;
  for (const auto& session : router_.sessions()) has_network_ |= session->keep_alive();
}

bool Engine::needs_tick() const {
  return calls_.in_use() > 0 || is_connecting() || !router_.leaving().empty();
}

// Whether polling on is worth it.
bool Engine::should_spin() {
  if (!active_.should_spin()) return false;
  pause_briefly();
  return true;
}

// Lets the other threads of this CPU run if that pays. Not if an answer may come over a network: none of those threads makes it
// then. Returns whether something came in.
bool Engine::yield() {
  if (has_network_ || !yield_judge_.begins()) return false;
  active_.end_spin();
  const uint64_t before_ns = clock_.now_ns();
  ::sched_yield();
  const uint64_t took_ns = clock_.now_ns() - before_ns;
  polls_ = kPollsPerClock - 1;  // the clock has moved
  const bool came = poll();
  yield_judge_.yielded(came, took_ns);
  return came;
}

void Engine::sleep(uint64_t deadline_ns) {
  const uint64_t now_ns = clock_.now_ns();
  uint64_t wait_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
  if (needs_tick()) wait_ns = std::min(wait_ns, ClientSession::kTickNs);
  if (has_network_) wait_ns = std::min(wait_ns, transport::kKeepAliveNs);
  handle_events(wait_ns);
  polls_ = kPollsPerClock - 1;  // the clock has moved
  if (!has_network_ && calls_.in_use() > 0) yield_judge_.slept(clock_.now_ns() - now_ns);
}

bool Engine::arm() {
  const uint64_t before = changes_;
  bool is_armed = false;
  active_.begin_pass();  // as in begin_on_host()
  for (int pass = 0; !is_armed && pass < kMostArmPasses; ++pass) {
    is_armed = active_.prepare_sleep();
    if (!is_armed && poll()) return false;
  }
  if (changes_ != before) return false;              // prepare_sleep() has answered ops; no event will tell of those
  const bool must_tick = needs_tick() || !is_armed;  // no event tells of what is not armed
  if (!(must_tick || has_network_)) return true;
  const uint64_t wait_ns = must_tick ? ClientSession::kTickNs : transport::kKeepAliveNs;
  if (timer_ns_ != 0 && timer_ns_ <= wait_ns) return true;
  timer_ns_ = wait_ns;
  const itimerspec once{.it_interval = mark_, .it_value = {.tv_sec = 0, .tv_nsec = static_cast<long>(wait_ns)}};
  ::timerfd_settime(timer_.get(), 0, &once, nullptr);
  return true;
}

void Engine::on_ready() {
  handle_events(0);
  polls_ = kPollsPerClock - 1;
}

namespace {
int wait_for_events(int epoll, epoll_event* events, uint64_t wait_ns) {
#ifdef SYS_epoll_pwait2
  static bool has_ns = true;
  if (wait_ns % kNsPerMs != 0 && has_ns) {
    timespec wait{.tv_sec = static_cast<time_t>(wait_ns / 1'000'000'000),
                  .tv_nsec = static_cast<long>(wait_ns % 1'000'000'000)};
    const long count = ::syscall(SYS_epoll_pwait2, epoll, events, kEvents, &wait, nullptr, 0);
    if (count >= 0 || errno != ENOSYS) return static_cast<int>(count);
    has_ns = false;
  }
#endif
  const uint64_t ms = std::min<uint64_t>((wait_ns + kNsPerMs - 1) / kNsPerMs, 3'600'000);
  return ::epoll_wait(epoll, events, kEvents, static_cast<int>(ms));
}
}  // namespace

void Engine::handle_events(uint64_t wait_ns) {
  epoll_event events[kEvents];
  const int count = wait_for_events(epoll_.get(), events, wait_ns);
  if (count < 0 && errno != EINTR) return look_after_descriptors();
  bool has_news = false;
  for (int i = 0; i < count; ++i) {
    const bool is_news = (events[i].data.u64 & 3) == kNews;
    has_news |= is_news;
    if (!is_news) handle(events[i].data.u64);
  }
  if (!has_news) return;
  const ForkGuard::Section section;
  hear_news();
}

void Engine::handle(uint64_t event) {
  const size_t number = event >> 2;
  if ((event & 3) == kTimer) {
    timer_ns_ = 0;
    return;
  }
  if (number >= watches_.size()) return;  // not an event of ours
  const Watch& watched = watches_[number];
  if (watched.is_stale) return;
  if ((event & 3) == kControl && watched.control_fd >= 0) {
    const ForkGuard::Section section;
    watched.session->on_control_ready();
  } else if ((event & 3) == kData && watched.data_fd >= 0) {
    watched.session->on_data_ready();
  }
}

// --- news of a proxy's pool

// In a section of ForkGuard.
void Engine::ask_proxy() {
  if (news_ == nullptr || news_fd_ >= 0) return;
  if (!news_->begin()) {
    if (news_->pool().head.version == 0) trouble_ = news_->why();
    return;
  }
  news_fd_ = news_->fd();
  news_file_ = FileId::of(news_fd_);
  if (Status watched = watch(news_fd_, EPOLLIN, data_of(kNews, 0)); !watched) {
    trouble_ = watched.message();
    drop_news();
  }
}

void Engine::drop_news() {
  if (news_ == nullptr || news_fd_ < 0) return;
  const bool is_ours = FileId::of(news_fd_) == news_file_;
  unwatch(news_fd_, std::exchange(is_news_stale_, false));
  news_->end(is_ours);
}

// In a section of ForkGuard, and not within a session's call: sessions are made and ended.
void Engine::hear_news() {
  if (news_ == nullptr || news_fd_ < 0) return;
  while (true) {
    const ProxyNews::Heard heard = news_->hear();
    if (heard == ProxyNews::Heard::kNothing) return;
    ++changes_;
    if (heard == ProxyNews::Heard::kPool) take_over_pool();
    if (heard == ProxyNews::Heard::kState) {
      const uint32_t member = news_->changed_member();
      router_.set_state(member, news_->pool().members[member].state);
    }
    if (heard != ProxyNews::Heard::kEnd) continue;
    trouble_ = news_->why();
    note(kWarning, trouble_);
    drop_news();
    ask_proxy();  // one that has been reloaded is there
    if (news_fd_ < 0) return;
  }
}

void Engine::take_over_pool() {
  router_.take_over(news_->pool(), news_->address());
  if (on_pool_) on_pool_(router_.placement());
  note(kInfo, "the proxy at " + news_->address() + " has told of " + std::to_string(news_->pool().members.size()) +
                  " backends");
}

// For the first op after a while: news may have come since.
void Engine::catch_up() {
  const uint64_t now_ns = clock_.now_ns();
  if (now_ns >= next_tick_ns_) tick_all(now_ns);
}

// --- descriptors that somebody else has closed

bool Engine::is_intact(const Watch& watched) const {
  return !watched.is_stale && (watched.control_fd < 0 || FileId::of(watched.control_fd) == watched.control) &&
         (watched.data_fd < 0 || FileId::of(watched.data_fd) == watched.data);
}

// Our timer is known by its mark, and an epoll that knows it is ours.
bool Engine::owns_epoll() const {
  itimerspec set{};
  if (::timerfd_gettime(timer_.get(), &set) < 0) return false;
  if (set.it_interval.tv_sec != mark_.tv_sec || set.it_interval.tv_nsec != mark_.tv_nsec) return false;
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.u64 = data_of(kTimer, 0)}};
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, timer_.get(), &event) == 0;
}

// They are another's by now, so nothing tells of what they watched.
void Engine::renew_descriptors() {
  for (base::UniqueFd* fd : {&epoll_, &timer_}) ForkGuard::disown(fd->release());
  for (Watch& watched : watches_) {
    for (const int fd : {watched.data_fd, watched.control_fd}) {
      if (fd < 0) continue;
      ForkGuard::disown(fd);
      watched.is_stale = true;
    }
  }
  if (news_fd_ >= 0) ForkGuard::disown(news_fd_);
  is_news_stale_ = news_fd_ >= 0;
  if (Status made = make_descriptors(); !made) note(kWarning, made.message());
  timer_ns_ = 0;
}

// Ends what is not ours, or not watched, any more; it is made again.
void Engine::look_after_descriptors() {
  if (!owns_epoll()) renew_descriptors();
  if (news_fd_ >= 0 && (is_news_stale_ || FileId::of(news_fd_) != news_file_)) drop_news();
  for (Watch& watched : watches_) {
    if (watched.session == nullptr || is_intact(watched)) continue;
    note(kWarning, "somebody closed descriptors of libegret");
    close(*watched.session, ClientSession::State::kWaiting);
  }
}

}  // namespace egret::client
