#include "proxy/client/connection.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "proxy/users/client_address.h"

namespace egret::proxy {

using events::Event;

namespace {
constexpr int kReadsPerPass = 4;             // reads of one connection, so that none starves the others
constexpr size_t kBeforeValue = 4096;        // bytes: read of a client that sends large values, where one may begin
constexpr uint64_t kLingerNs = 500'000'000;  // how long a client may take to close its side before we close the socket
}  // namespace

Connection::Connection(WorkerContext& worker, base::UniqueFd plain, std::unique_ptr<ClientSocket> tls,
                       ConnectionRecord& record)
    : worker_(worker),
      record_(record),
      tls_(std::move(tls)),
      socket_(tls_ ? *tls_ : plain_.emplace(std::move(plain))),
      memory_(worker.memory),
      output_(worker.output_blocks, memory_),
      replies_(worker.replies, output_, memory_, *this),
      dispatcher_(worker, replies_, output_, memory_, *this),
      readable_(Event::on_fd<&Connection::on_readable>(worker.events, socket_.fd(), events::kRead | events::kPersist,
                                                       *this)) {
  dispatcher_.resume_as(record_);
  wait_for_input();
}

Connection::~Connection() {
  drop_rest();
  if (state_ == State::kResting) return;
  tell_gone(worker_.proxy.admin, record_, goes_because_);
  worker_.stats.connections.remove(record_);
  worker_.stats.curr_connections.sub(1);
  worker_.proxy.gate.leave();
}

// --- in
// ------------------------------------------------------------------------------------------------------------------

void Connection::on_readable() {
  worker_.begin_pass();
  if (state_ == State::kLingering) {
    if (!socket_.drop_input()) die();
    return;
  }
  read();
  send_if_answered();
}

void Connection::read() {
  bool is_all = false;
  for (int i = 0; i < kReadsPerPass && may_read() && !dispatcher_.is_closing(); ++i) {
    if (dispatcher_.is_blocked() || rest_size_ == worker_.input_blocks.block_size()) {
      pause_reading();
      break;
    }
    if (read_once()) continue;
    is_all = !socket_.holds_input();
    break;
  }
  after_feed();
  look_for_held_input();
  if (is_all) leave();
}

// TLS may hold decrypted bytes for which the descriptor has no event: activate one for the next pass.
void Connection::look_for_held_input() {
  if (reading_ && may_read() && socket_.holds_input()) readable_.activate();
}

// Disconnects a client that the loop cannot watch: it would hang.
void Connection::wait_for_input() {
  if (!readable_.add()) die();
}

// True: the socket may have more.
bool Connection::read_once() {
  const bool is_in_value = dispatcher_.is_in_value();
  if (is_in_value && rest_ == nullptr) {
    op::PartRoom room;
    bool is_all = false;
    if (dispatcher_.begin_direct(room, is_all)) return read_value(room, is_all);
  }
  const bool is_short = expects_value_ && !is_in_value && rest_ == nullptr;
  const size_t capacity = is_short ? kBeforeValue : worker_.input_blocks.block_size();
  char* const buffer = rest_ != nullptr ? rest_.get() : worker_.scratch.get();
  const ClientSocket::Transfer got = socket_.receive(buffer + rest_size_, capacity - rest_size_);
  if (got.io != Io::kDone) {
    on_no_input(got.io);
    return false;
  }
  note_input(got.bytes);
  const size_t size = rest_size_ + got.bytes;
  feed(std::string_view(buffer, size));
  if (size == capacity && !dispatcher_.is_in_value()) expects_value_ = false;
  return size == capacity;
}

// Receives the client's large value in the store or in request slots, and what follows it in the scratch memory. If fewer bytes
// of it came than are worth a message, they are moved to the scratch memory, too.
bool Connection::read_value(const op::PartRoom& room, bool is_all) {
  std::array<iovec, op::PartRoom::kMostPieces + 1> pieces;
  size_t count = 0;
  for (; count < room.count; ++count) pieces[count] = {room.pieces[count].data(), room.pieces[count].size()};
  const size_t behind = is_all ? kBeforeValue : 0;
  if (is_all) pieces[count++] = {worker_.scratch.get(), behind};
  const ClientSocket::Transfer got = socket_.receive({pieces.data(), count});
  size_t of_value = std::min<size_t>(got.bytes, room.length);
  size_t elsewhere = got.bytes - of_value;
  if (of_value < room.least) {  // the first piece has room for so many
    std::memcpy(worker_.scratch.get(), room.pieces[0].data(), of_value);
    elsewhere = std::exchange(of_value, 0);
  }
  dispatcher_.end_direct(room, static_cast<uint32_t>(of_value));
  if (got.io != Io::kDone) {
    on_no_input(got.io);
    return false;
  }
  expects_value_ = true;
  note_input(got.bytes);
  feed(std::string_view(worker_.scratch.get(), elsewhere));
  return got.bytes == room.length + behind;
}

void Connection::note_input(size_t bytes) {
  worker_.stats.bytes_read.add(bytes);
  record_.last_active_ns.store(worker_.pass_ns, std::memory_order_relaxed);
}

void Connection::on_no_input(Io io) {
  if (io == Io::kFailed) die();
  if (io == Io::kEnd) {
    goes_because_ = GoneBecause::kNormal;
    drain();
  }
  if (io == Io::kWantWrite) {
    pause_reading();
    reading_waits_ = true;
    retry_when(io);
  }
}

void Connection::feed(std::string_view input) {
  record_.state.store(ConnectionState::kCommand, std::memory_order_relaxed);
  keep_rest(input.substr(dispatcher_.feed(input)));
}

// `rest` is a tail of the scratch memory, or of rest_ itself.
void Connection::keep_rest(std::string_view rest) {
  if (rest.empty()) return drop_rest();
  if (rest_ == nullptr) {
    rest_ = worker_.input_blocks.take();
    memory_.charge_input(worker_.input_blocks.block_size());
    rest_since_ns_ = worker_.pass_ns;
  }
  std::memmove(rest_.get(), rest.data(), rest.size());
  rest_size_ = rest.size();
}

void Connection::drop_rest() {
  rest_size_ = 0;
  if (rest_ == nullptr) return;
  worker_.input_blocks.give(std::move(rest_));
  memory_.refund_input(worker_.input_blocks.block_size());
}

void Connection::pause_reading() {
  if (!reading_) return;
  reading_ = false;
  readable_.del();
}

void Connection::resume_reading() {
  if (reading_ || !may_read()) return;
  reading_ = true;
  wait_for_input();
  look_for_held_input();
}

// The reason for which a command had to wait may be gone.
void Connection::resume() {
  if (state_ == State::kDead || state_ == State::kLingering) return;
  if (rest_size_ > 0) {
    feed(std::string_view(rest_.get(), rest_size_));
  } else {
    dispatcher_.feed({});
  }
  if (!dispatcher_.is_blocked()) {
    resume_reading();
    if (state_ == State::kLastCall) return read();  // there may be no more input, and no event would tell
  }
  after_feed();
}

void Connection::on_progress() {
  if (dispatcher_.is_blocked() || !reading_ || state_ != State::kOpen) on_resumable();
}

void Connection::on_observed(const Observed& observed, const op::Result& result) {
  tell(worker_.proxy.admin, observed, result, record_.fd);
}

bool Connection::on_watch(uint16_t streams) {
  watch_ = Watch::begin(worker_, worker_.proxy.admin.watch, streams, replies_, output_);
  return watch_ != nullptr;
}

std::string Connection::client_address() const {
  return proxy::client_address(socket_.fd());
}

void Connection::after_feed() {
  if (dispatcher_.is_closing()) {
    if (dispatcher_.was_told_to_close()) goes_because_ = GoneBecause::kNormal;
    drain();
  }
  die_if_drained();
  show_state();
}

// Whether rest_ begins with a command line whose value has not arrived completely.
bool Connection::holds_a_line() const {
  return rest_size_ > 0 && std::memchr(rest_.get(), '\n', rest_size_) != nullptr;
}

// For `stats conns`.
void Connection::show_state() {
  ConnectionState state = ConnectionState::kReading;
  if (!may_read()) {
    state = ConnectionState::kClosing;
  } else if (!output_.empty()) {
    state = ConnectionState::kWriting;
  } else if (!dispatcher_.is_idle()) {
    state = ConnectionState::kWaiting;
  } else if (dispatcher_.is_in_value() || holds_a_line()) {
    state = ConnectionState::kValue;
  }
  record_.state.store(state, std::memory_order_relaxed);
}

// --- out
// -----------------------------------------------------------------------------------------------------------------

// If every command that was read is answered already, the answers are sent before other clients are read, so that this client
// can go on meanwhile. Otherwise they are sent at the end of the pass, with those that still come, by one system call.
void Connection::send_if_answered() {
  std::vector<Connection*>& listed = worker_.lists.with_output;
  if (!replies_.empty() || listed.empty() || listed.back() != this) return;
  listed.pop_back();
  listed_for_output = false;
  send_output();
}

// Bytes in slots that the socket does not take are copied, so that a slow client holds no slot.
void Connection::send_output() {
  const bool may_go_on = may_send();
  if (may_go_on) send_some();
  output_.keep_lent();
  if (!may_go_on || state_ == State::kDead) return;
  replies_.on_sent();
  if (watch_ != nullptr) watch_->go_on();
  on_progress();
  die_if_drained();
  show_state();
}

void Connection::on_output() {
  if (!std::exchange(listed_for_output, true)) worker_.lists.with_output.push_back(this);
}

void Connection::on_resumable() {
  if (!std::exchange(listed_for_resume, true)) worker_.lists.resumable.push_back(this);
}

void Connection::send_some() {
  const size_t before = output_.size();
  const Io io = output_.send(socket_);
  const size_t sent = before - output_.size();
  worker_.stats.bytes_written.add(sent);
  is_last_answered_ |= sent > 0 && state_ != State::kOpen;
  if (sent > 0) record_.last_active_ns.store(worker_.pass_ns, std::memory_order_relaxed);
  if (io == Io::kFailed) return die();
  if (io != Io::kDone) {
    sending_waits_ = true;
    retry_when(io);
  }
}

void Connection::retry_when(Io io) {
  const short what = io == Io::kWantRead ? events::kRead : events::kWrite;
  if (!retry_.is_set() || retry_.flags() != what) {
    retry_ = Event::on_fd<&Connection::on_retry>(worker_.events, socket_.fd(), what, *this);
  }
  if (!retry_.add()) die();
}

void Connection::on_retry() {
  worker_.begin_pass();
  sending_waits_ = false;
  send_output();
  if (!std::exchange(reading_waits_, false)) return;
  resume_reading();
  read();
}

// --- the end
// -------------------------------------------------------------------------------------------------------------

void Connection::last_call() {
  if (state_ != State::kOpen) return;
  state_ = State::kLastCall;
  goes_because_ = GoneBecause::kShutdown;
  if (dispatcher_.is_authenticating()) return die();  // its guess may have to wait longer than this process lives
  // A blocked connection reads when it resumes.
  if (!dispatcher_.is_blocked()) read();
}

void Connection::drain() {
  if (!may_read()) return;
  state_ = State::kDraining;
  pause_reading();
  die_if_drained();
}

void Connection::die_if_drained() {
  if (state_ != State::kDraining) return;
  const bool more_to_do = dispatcher_.is_blocked() && !dispatcher_.is_closing();
  if (!dispatcher_.is_idle() || !output_.empty() || more_to_do) return;
  socket_.say_goodbye();
  const bool is_stop = goes_because_ == GoneBecause::kShutdown;
  if (is_stop && (is_last_answered_ || socket_.has_undelivered())) return linger();
  die();
}

// Whether, after last_call(), everything that was read is answered and sent.
bool Connection::is_at_rest() const {
  return dispatcher_.is_idle() && !dispatcher_.is_blocked() && output_.empty();
}

// Called when the socket had no more input.
void Connection::leave() {
  if (state_ != State::kLastCall || !is_at_rest() || hand_over()) return;
  // Wait for the rest of a half-read request if the next process can take the client over afterwards.
  const bool is_half = rest_size_ > 0 || !dispatcher_.resume_state();
  const bool may_go_on = dispatcher_.may_be_handed_over() && socket_.is_plain() && watch_ == nullptr;
  if (is_half && may_go_on && worker_.proxy.handover.is_possible()) return;
  drain();
}

bool Connection::hand_over() {
  const auto resume_state = dispatcher_.resume_state();
  if (!dispatcher_.may_be_handed_over()) return false;
  if (!resume_state || rest_size_ > 0 || !socket_.is_plain() || watch_ != nullptr) return false;
  Handover& handover = worker_.proxy.handover;
  if (!handover.take_place()) return false;
  die();  // remove its events while the descriptor is still ours
  handover.put({socket_.take_fd(), *resume_state, record_.last_active_ns.load(std::memory_order_relaxed)});
  return true;
}

Connection::Rest Connection::may_rest() const {
  if (state_ != State::kOpen || watch_ != nullptr || !socket_.is_plain()) return Rest::kNever;
  if (worker_.pass_ns < record_.last_active_ns.load(std::memory_order_relaxed) + kRestAfterNs) return Rest::kSoon;
  const bool is_listed = listed_for_output || listed_for_resume;
  const bool is_quiet = is_at_rest() && rest_size_ == 0 && reading_ && !sending_waits_ && !is_listed;
  return is_quiet && dispatcher_.may_rest() ? Rest::kNow : Rest::kLater;
}

bool Connection::rest(RestingClients& resting) {
  if (!resting.begin(record_)) return false;
  dispatcher_.rest(record_);
  readable_.reset();
  retry_.reset();
  socket_.take_fd().release();  // `resting` watches it now
  state_ = State::kResting;
  return true;
}

void Connection::linger() {
  state_ = State::kLingering;
  lingers_until_ns_ = worker_.pass_ns + kLingerNs;
  retry_.reset();
  socket_.end_output();
  wait_for_input();
  if (!socket_.drop_input()) die();
}

void Connection::check_last_call(bool is_late) {
  if (is_late) drain();
  if (state_ == State::kLingering && worker_.pass_ns >= lingers_until_ns_) die();
}

// A client that waits for an answer is not idle; a client that does not read its answers is.
uint64_t Connection::times_out_ns() const {
  const uint64_t last_ns = record_.last_active_ns.load(std::memory_order_relaxed);
  if (state_ == State::kDead || state_ == State::kLingering) return kNever;
  if (!socket_.is_ready()) return last_ns + worker_.timeouts.handshake_ns;
  if (record_.may_idle || watch_ != nullptr || worker_.timeouts.idle_ns == 0 ||
      (!dispatcher_.is_idle() && output_.empty()))
    return kNever;
  return last_ns + worker_.timeouts.idle_ns;
}

void Connection::time_out() {
  if (socket_.is_ready()) {
    worker_.stats.idle_kicks.add(1);
    goes_because_ = GoneBecause::kIdle;
    socket_.say_goodbye();
  } else {
    socket_.tell_too_late();
  }
  die();
}

uint64_t Connection::stalled_since_ns() const {
  return output_.has_large() && state_ != State::kDead ? record_.last_active_ns.load(std::memory_order_relaxed)
                                                       : kNever;
}

uint64_t Connection::half_a_command_since_ns() const {
  const bool is_half = rest_size_ > 0 && may_read() && !dispatcher_.is_blocked();
  return is_half ? rest_since_ns_ : kNever;
}

void Connection::disconnect_stalled(base::Counter& counter) {
  counter.add();
  goes_because_ = GoneBecause::kIdle;
  die();
}

void Connection::die() {
  if (state_ == State::kDead) return;
  state_ = State::kDead;
  reading_ = false;
  readable_.reset();
  retry_.reset();
  worker_.lists.dead.push_back(this);
}

}  // namespace egret::proxy
