#include "client/preload/served_socket.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "client/preload/inside.h"
#include "client/preload/real.h"
#include "memcache/binary/binary.h"

namespace egret::preload {

namespace {

constexpr uint64_t kLookNs = 50'000;  // a thread that waits for a result polls its slot this long before it sleeps
constexpr uint64_t kForEverNs = UINT64_MAX / 2;
constexpr int kPatienceMs = 5'000;  // with a proxy that takes or answers nothing
// Bytes held for one socket. With more, a send that may not block is told EAGAIN.
constexpr size_t kMostHeld = 64 << 20;
constexpr int kRareFlags = MSG_OOB | MSG_ERRQUEUE | MSG_TRUNC | MSG_WAITALL;  // of recv()
constexpr short kAlways = POLLERR | POLLHUP;

// What lasts as long as a wait, however that ends.
class Counted {
 public:
  explicit Counted(uint32_t& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  uint32_t& count_;
};

ssize_t fail(int error) {
  errno = error;
  return -1;
}

bool begins_with_any(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return line.starts_with(word); });
}

}  // namespace

ServedSocket::ServedSocket(int fd, std::shared_ptr<ThreadEngine> thread)
    : fd_(fd), thread_(std::move(thread)), engine_(std::make_unique<BytesEngine>(thread_->engine())) {
  note_flags();
}

void ServedSocket::note_flags() {
  is_nonblocking_.store((::fcntl(fd_, F_GETFL) & O_NONBLOCK) != 0, std::memory_order_relaxed);
}

// What is lost is not touched: it may be in any state.
ServedSocket::~ServedSocket() {
  if (is_lost()) {
    [[maybe_unused]] const BytesEngine* const left_alone = engine_.release();
  } else {
    const Section section(*thread_);
    engine_.reset();
  }
}

ssize_t ServedSocket::reset() {
  return fail(ECONNRESET);
}

bool ServedSocket::is_blocking(int flags) const {
  return (flags & MSG_DONTWAIT) == 0 && !is_nonblocking_.load(std::memory_order_relaxed);
}

// --- what the program sends

ssize_t ServedSocket::send(std::string_view bytes, int flags) {
  if (is_lost()) return reset();
  Section section(*thread_);
  if (state_ == State::kClosed) return fail(EBADF);
  if (is_shut_) return fail(EPIPE);
  // Whoever waits there would not hear of an answer.
  if (bare_waiters_ > 0 && state_ == State::kSlots) leave_to_connection();
  if (state_ == State::kDead) return reset();
  if (state_ == State::kConnection) return real().send(fd_, bytes.data(), bytes.size(), flags);
  if (engine_->held() > kMostHeld && !is_blocking(flags)) return fail(EAGAIN);
  engine_->put(bytes);
  go_on();
  if (engine_->is_holding() && is_blocking(flags)) wait_for_room(section);
  if (is_lost()) return reset();
  if (state_ == State::kDead) return reset();
  has_just_sent_ = true;
  return static_cast<ssize_t>(bytes.size());
}

// A command that goes aside, now that all before it are answered. What an end that was due has returned; 0: none was.
int ServedSocket::go_on() {
  while (state_ == State::kSlots && engine_->has_aside()) begin_aside();
  const bool is_done = state_ == State::kConnection || (state_ == State::kSlots && !engine_->is_awaited());
  if (is_to_be_shut_ == kNotShut || !is_done) return 0;
  return real().shutdown(fd_, std::exchange(is_to_be_shut_, kNotShut));
}

int ServedSocket::shutdown(int how) {
  const bool is_known = how == SHUT_RD || how == SHUT_WR || how == SHUT_RDWR;
  if (is_lost() || !is_known) return real().shutdown(fd_, how);
  const Section section(*thread_);
  const bool is_done = is_shut_ && is_to_be_shut_ == kNotShut;  // once more
  if (how != SHUT_WR) is_shut_to_read_ = true;
  if (is_done || state_ == State::kDead) return real().shutdown(fd_, how);
  if (how != SHUT_WR) {  // at once: a thread may wait for the connection
    const int shut = real().shutdown(fd_, SHUT_RD);
    if (shut != 0 || how == SHUT_RD) return shut;
  }
  is_shut_ = true;
  is_shut_by_program_.store(true, std::memory_order_relaxed);
  is_to_be_shut_ = std::max(is_to_be_shut_, how);
  return go_on();
}

void ServedSocket::finish(uint64_t until_ns) {
  if (is_lost()) return;
  Section section(*thread_);
  if (waiters_ == 0) wait_for_answers(section, until_ns);
  if (is_lost() || state_ != State::kAside) return;
  const size_t sent = engine_->aside().size();
  const std::string behind = engine_->leave().substr(sent);  // as far as the connection takes it at once
  real().send(fd_, behind.data(), behind.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void ServedSocket::close(uint64_t until_ns) {
  finish(until_ns);
  if (is_lost()) return;
  const Section section(*thread_);
  is_closed_ = true;
  if (state_ == State::kSlots) state_ = State::kClosed;
}

void ServedSocket::wait_for_answers(Section& section, uint64_t until_ns) {
  const auto are_there = [&] {
    has_come();
    return state_ != State::kSlots || !engine_->is_awaited();
  };
  while (wait(section, are_there, until_ns, true) == Waited::kInterrupted) {
  }
}

// All was taken, so a signal changes nothing of what the program is told.
void ServedSocket::wait_for_room(Section& section) {
  const auto is_all_sent = [&] {
    has_come();
    return state_ != State::kSlots || !engine_->is_holding();
  };
  wait(section, is_all_sent, kForEverNs, true);
}

void ServedSocket::begin_aside() {
  ++went_aside_;
  seen_.clear();
  body_left_ = 0;
  is_last_packet_ = false;
  const AsideEnd end = engine_->aside_end();
  if (end == AsideEnd::kNever) {
    state_ = send_over_connection(engine_->leave()) ? State::kConnection : State::kDead;
  } else if (!send_over_connection(engine_->aside())) {
    state_ = State::kDead;
  } else if (end == AsideEnd::kNoAnswer) {
    if (pass_barrier()) engine_->resume();
  } else {
    state_ = State::kAside;
  }
}

// A command without an answer is done when one behind it is answered: what follows by slots must not overtake it.
bool ServedSocket::pass_barrier() {
  const bool is_binary = engine_->is_binary();
  std::string noop(memcache::binary::kHead, '\0');
  noop[0] = memcache::binary::kRequestMagic;
  noop[1] = static_cast<char>(memcache::binary::Opcode::kNoop);
  const size_t awaited = is_binary ? memcache::binary::kHead : std::string_view("MN\r\n").size();
  if (!send_over_connection(is_binary ? std::string_view(noop) : std::string_view("mn\r\n"))) state_ = State::kDead;
  char bytes[memcache::binary::kHead];
  for (size_t got = 0; got < awaited && state_ != State::kDead;) {
    pollfd readable{fd_, POLLIN, 0};
    if (real().poll(&readable, 1, kPatienceMs) == 0) state_ = State::kDead;
    const ssize_t more = real().recv(fd_, bytes, awaited - got, MSG_DONTWAIT);
    if (more > 0) got += static_cast<size_t>(more);
    if (more == 0 || (more < 0 && errno != EAGAIN && errno != EINTR)) state_ = State::kDead;
  }
  return state_ != State::kDead;
}

bool ServedSocket::send_over_connection(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = real().send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    if (sent > 0 || (sent < 0 && errno == EINTR)) continue;
    if (sent == 0 || (errno != EAGAIN && errno != ENOTCONN)) return false;
    pollfd room{fd_, POLLOUT, 0};
    const int ready = real().poll(&room, 1, kPatienceMs);
    if (ready == 0 || (ready < 0 && errno != EINTR) || (room.revents & kAlways) != 0) return false;
  }
  return true;
}

// --- what the program receives

ssize_t ServedSocket::recv(char* to, size_t room, int flags) {
  if ((flags & kRareFlags) == 0) [[likely]]
    return receive(to, room, flags);
  if ((flags & (MSG_OOB | MSG_ERRQUEUE)) != 0) {  // there is never anything of these
    errno = (flags & MSG_OOB) != 0 ? EINVAL : EAGAIN;
    return -1;
  }
  // Over TCP, MSG_TRUNC drops what is received, and `to` may be null. A Unix socket copies it.
  int domain = AF_UNIX;
  socklen_t size = sizeof domain;
  ::getsockopt(fd_, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  if (domain == AF_UNIX) flags &= ~MSG_TRUNC;
  const bool waits_for_all = (flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL;
  flags &= ~MSG_WAITALL;
  size_t sum = 0;
  while (true) {
    const bool is_dropped = (flags & MSG_TRUNC) != 0;
    const ssize_t got = receive(is_dropped ? nullptr : to + sum, room - sum, flags);
    if (got <= 0) return sum > 0 ? static_cast<ssize_t>(sum) : got;
    sum += static_cast<size_t>(got);
    if (!waits_for_all || sum >= room) return static_cast<ssize_t>(sum);
  }
}

ssize_t ServedSocket::receive(char* to, size_t room, int flags) {
  if (is_lost()) return reset();
  if (room == 0) return 0;
  Section section(*thread_);
  // As over a network, no answer is there yet when the request has just been sent: a program that waits for none (libmemcached
  // with a poll timeout of 0) gets none.
  const bool has_just_sent = std::exchange(has_just_sent_, false);
  if (has_just_sent && state_ == State::kSlots && engine_->output().empty() && engine_->is_awaited() &&
      !is_shut_to_read_ && !is_blocking(flags)) {
    return fail(EAGAIN);
  }
  if (state_ == State::kSlots) engine_->poll();
  go_on();
  while (true) {
    if (is_lost()) return reset();
    if (!engine_->output().empty()) return hand_out(to, room, flags);
    if (state_ == State::kDead) return reset();
    if (is_shut_to_read_) return 0;
    if (state_ == State::kAside) {
      const ssize_t got = recv_aside(to, room, flags);
      if (got >= 0 || errno != EAGAIN || !is_blocking(flags)) return got;
      if (!wait_for_connection(section)) return -1;
      if (is_closed_) return fail(EBADF);  // the number may be another file's by now
      continue;
    }
    if (state_ == State::kSlots && engine_->is_over()) return 0;
    if (state_ == State::kClosed && !engine_->is_awaited()) return fail(EBADF);
    if (!is_by_slots() || !(engine_->is_awaited() || (is_amid_value() && is_blocking(flags)))) {
      return recv_bare(section, to, room, flags);
    }
    if (!is_blocking(flags)) return fail(EAGAIN);  // poll() is where such a program waits
    const Waited waited = wait_for_progress(section);
    if (waited == Waited::kInterrupted) return fail(EINTR);
    if (waited != Waited::kHasCome) flags |= MSG_DONTWAIT;
  }
}

// Nothing is awaited, so it is the connection's end that the program waits for. Others may use the engine meanwhile.
ssize_t ServedSocket::recv_bare(Section& section, char* to, size_t room, int flags) {
  const Counted waiter(bare_waiters_);
  ssize_t got = 0;
  int error = 0;
  {
    const Outside outside(section);
    const InProgram handlers;
    got = real().recv(fd_, to, room, flags);
    error = errno;
  }
  errno = error;
  return got;
}

// Until it has something, or its end, as a blocking recv() would. Others may use the engine meanwhile, and receive what there is.
// False: errno.
bool ServedSocket::wait_for_connection(Section& section) {
  char byte = 0;
  return recv_bare(section, &byte, 1, MSG_PEEK) >= 0;
}

ssize_t ServedSocket::hand_out(char* to, size_t room, int flags) {
  const std::string_view output = engine_->output();
  const size_t length = std::min(room, output.size());
  if ((flags & MSG_TRUNC) == 0) std::memcpy(to, output.data(), length);
  if ((flags & MSG_PEEK) == 0) engine_->take(length);
  if (engine_->has_failed()) {
    engine_->clear_failure();
    if (state_ == State::kSlots && is_closed_by_proxy()) state_ = State::kDead;  // what is answered is still received
  }
  return static_cast<ssize_t>(length);
}

// Something to hand out, or to do, or nothing to wait for.
bool ServedSocket::has_come() {
  engine_->collect();
  go_on();
  return !engine_->output().empty() || is_shut_to_read_ || !is_by_slots() ||
         !(engine_->is_awaited() || is_amid_value());
}

// As far as another thread may tell: this one looks itself when it is woken.
bool ServedSocket::is_there() const {
  return !engine_->output().empty() || is_shut_to_read_ || !is_by_slots() || !engine_->is_awaited() ||
         engine_->is_holding();
}

ServedSocket::Waited ServedSocket::wait_for_progress(Section& section) {
  if (look_for_a_while()) return Waited::kHasCome;
  const uint64_t until_ns = receive_until_ns();
  return wait(
      section, [&] { return has_come(); }, until_ns, until_ns == kForEverNs);
}

// Sleeps until done(). Handlers of signals run outside of the section; one that ends the call (Signals) ends the wait.
template <typename Done>
ServedSocket::Waited ServedSocket::wait(Section& section, Done done, uint64_t until_ns, bool is_restarted) {
  if (done()) return Waited::kHasCome;
  Signals signals;
  // However the wait is left, by an exception or a cancelled thread, too.
  const struct EndOutside {
    Section& section;
    Signals& signals;
    ~EndOutside() {
      const Outside outside(section);
      signals.end();
    }
  } end{section, signals};
  while (true) {
    const Waited waited = sleep_until(section, done, until_ns, signals);
    if (waited != Waited::kInterrupted) return waited;
    const Outside outside(section);
    if (signals.let_through(is_restarted)) return waited;
  }
}

template <typename Done>
ServedSocket::Waited ServedSocket::sleep_until(Section& section, Done done, uint64_t until_ns, Signals& signals) {
  client::Engine& engine = thread_->engine();
  const Counted waiter(waiters_);
  ThreadEngine::Sleeper sleeper(*thread_, [this] { return is_there(); });
  while (true) {
    if (is_lost() || done()) return Waited::kHasCome;
    const uint64_t now_ns = engine.clock().now_ns();
    if (now_ns >= until_ns) return Waited::kTimeIsOver;
    if (!engine.arm()) {
      engine.poll();
      continue;
    }
    const uint64_t most_ms = ThreadEngine::kMostUnlookedMs, left_ms = (until_ns - now_ns + 999'999) / 1'000'000;
    std::array<pollfd, 4> waits{};
    auto& [connection, events, bell, come] = waits;
    connection = {is_amid_value() ? fd_ : -1, POLLIN, 0};
    come = {signals.fd(), POLLIN, 0};
    sleeper.arm(events, bell);
    {
      const Outside outside(section);
      real().poll(waits.data(), waits.size(), static_cast<int>(std::min(most_ms, left_ms)));
    }
    if (is_lost()) return Waited::kHasCome;
    sleeper.look(events);
    engine.poll();
    if (done()) return Waited::kHasCome;
    if (come.revents != 0) return Waited::kInterrupted;
    if (connection.revents != 0) return Waited::kConnectionHas;
  }
}

// As SO_RCVTIMEO has it, from now on.
uint64_t ServedSocket::receive_until_ns() const {
  timeval limit{};
  socklen_t size = sizeof limit;
  ::getsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, &size);
  const auto limit_ns =
      static_cast<uint64_t>(limit.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(limit.tv_usec) * 1'000;
  return limit_ns == 0 ? kForEverNs : thread_->engine().clock().now_ns() + limit_ns;
}

bool ServedSocket::is_closed_by_proxy() const {
  char byte = 0;
  const ssize_t seen = real().recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return seen == 0 || (seen < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN);
}

// --- the answer to a command that went aside

ssize_t ServedSocket::recv_aside(char* to, size_t room, int flags) {
  char dropped[4096];
  if ((flags & MSG_TRUNC) != 0) {  // where the answer ends must be seen nevertheless
    to = dropped;
    room = std::min(room, sizeof dropped);
  }
  const ssize_t got = real().recv(fd_, to, room, (flags & ~MSG_TRUNC) | MSG_DONTWAIT);
  if (got == 0) state_ = State::kDead;
  if (got <= 0 || (flags & MSG_PEEK) != 0) return got;
  note_aside({to, static_cast<size_t>(got)});
  return got;
}

void ServedSocket::note_aside(std::string_view bytes) {
  const AsideEnd end = engine_->aside_end();
  const bool is_binary = end == AsideEnd::kPacket || end == AsideEnd::kPackets;
  bool has_ended = false;
  while (!bytes.empty() && !has_ended) {
    if (body_left_ > 0) {
      const auto step = static_cast<size_t>(std::min<uint64_t>(body_left_, bytes.size()));
      body_left_ -= step;
      bytes.remove_prefix(step);
    } else {
      seen_.push_back(bytes.front());
      bytes.remove_prefix(1);
      if (is_binary && seen_.size() == memcache::binary::kHead) {
        const auto at = [&](size_t i) { return static_cast<uint64_t>(static_cast<unsigned char>(seen_[i])); };
        body_left_ = at(8) << 24 | at(9) << 16 | at(10) << 8 | at(11);
        is_last_packet_ = end == AsideEnd::kPacket || body_left_ == 0 || (at(6) << 8 | at(7)) != 0;
        seen_.clear();
      } else if (!is_binary && seen_.back() == '\n') {
        has_ended = end == AsideEnd::kOneLine ||
                    begins_with_any(seen_, {"END\r", "RESET\r", "OK\r", "ERROR", "CLIENT_ERROR", "SERVER_ERROR"});
        seen_.clear();
      }
    }
    if (is_binary) has_ended = is_last_packet_ && body_left_ == 0 && seen_.empty();
  }
  if (!has_ended) return;
  if (bare_waiters_ > 0) {  // for the answer that has just been received: they would not hear of one by slots
    leave_to_connection();
    return;
  }
  state_ = State::kSlots;
  engine_->resume();
  go_on();
}

// --- waiting for it, with others

short ServedSocket::look(short events) {
  if (!is_lost()) {
    const Section section(*thread_);
    if (state_ == State::kSlots) engine_->poll();
  }
  return ready(events);
}

short ServedSocket::ready(short events) {
  const auto dead = static_cast<short>((events & (kReadable | kWritable)) | kAlways);
  if (is_lost()) return dead;
  const Section section(*thread_);
  engine_->collect();
  go_on();
  if (state_ == State::kDead) return dead;
  const bool has_output =
      !engine_->output().empty() || is_shut_to_read_ || (state_ == State::kSlots && engine_->is_over());
  return static_cast<short>((has_output ? kReadable : 0) & events);
}

ssize_t ServedSocket::unread() {
  if (is_lost()) return -1;
  const Section section(*thread_);
  if (state_ == State::kSlots) engine_->poll();
  go_on();
  if (!engine_->output().empty()) return static_cast<ssize_t>(engine_->output().size());
  return is_by_slots() && engine_->is_awaited() ? 0 : -1;
}

bool ServedSocket::arm(short events, Wait& wait, Sleeper& sleeper) {
  auto& [connection, engine_events, bell] = wait;
  connection = {fd_, events, 0};
  engine_events = bell = {-1, 0, 0};
  if (is_lost()) return true;
  const Section section(*thread_);
  if (engine_->held() > kMostHeld) connection.events = static_cast<short>(connection.events & ~kWritable);
  if ((events & kReadable) == 0) return true;
  ++bare_waiters_;
  if (state_ == State::kSlots) engine_->poll();
  go_on();
  if (!engine_->output().empty() || engine_->is_over() || state_ == State::kDead || is_shut_to_read_) return false;
  const bool is_awaited = engine_->is_awaited();
  if (!is_by_slots() || !(is_awaited || is_amid_value())) return true;
  if (is_awaited) connection.events = static_cast<short>(connection.events & ~kReadable);
  if ((is_awaited && look_for_a_while()) || !thread_->engine().arm()) return false;
  sleeper = std::make_unique<ThreadEngine::Sleeper>(*thread_, [this] { return is_there(); });
  sleeper->arm(engine_events, bell);
  return true;
}

void ServedSocket::disarm(short events, const Wait& wait, Sleeper& sleeper) {
  const Sleeper ended = std::move(sleeper);
  if (is_lost()) return;
  const Section section(*thread_);
  if ((events & kReadable) != 0) --bare_waiters_;
  if (ended != nullptr) ended->look(wait[1]);
}

bool ServedSocket::look_for_a_while() {
  client::Engine& engine = thread_->engine();
  return engine.wait([&] { return has_come(); }, engine.clock().now_ns() + kLookNs);
}

bool ServedSocket::comes_soon() {
  if (is_lost()) return false;
  const Section section(*thread_);
  if (state_ != State::kSlots || !engine_->is_awaited()) return false;
  return look_for_a_while() && !engine_->output().empty();
}

// --- its end

bool ServedSocket::let_go() {
  if (is_lost()) return false;
  Section section(*thread_);
  wait_for_answers(section, thread_->engine().clock().now_ns() + thread_->engine().op_timeout_ns());
  if (is_lost()) return false;
  if (leave_to_connection()) return true;
  // Nobody may wait for what does not come by the connection.
  real().shutdown(fd_, SHUT_RDWR);
  is_shut_ = true;
  if (state_ != State::kDead) state_ = State::kConnection;
  return engine_->output().empty();
}

// What the proxy has not seen yet is sent to it: half a command, or what is behind one that went aside. False: it is not all that
// there is.
bool ServedSocket::leave_to_connection() {
  if (state_ == State::kDead || !engine_->output().empty()) return false;
  if (state_ == State::kConnection) return true;
  if (!engine_->can_leave()) return false;
  const size_t sent = state_ == State::kAside ? engine_->aside().size() : 0;
  state_ = send_over_connection(engine_->leave().substr(sent)) ? State::kConnection : State::kDead;
  go_on();
  return state_ == State::kConnection;
}

std::string ServedSocket::counts() {
  if (is_lost()) return "lost";
  const Section section(*thread_);
  return std::to_string(engine_->ops()) + " ops by slots, " + std::to_string(went_aside_) +
         " commands over the connection";
}

}  // namespace egret::preload
