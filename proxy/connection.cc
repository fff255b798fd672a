#include "proxy/connection.h"

#include <cerrno>
#include <cstring>

#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace egret::proxy {

namespace {
constexpr int kReadsPerPass = 4;  // of one connection, so that none starves the others
}  // namespace

void Connection::EventDeleter::operator()(event* e) const {
  event_free(e);
}

Connection::Connection(ConnectionHost& host, base::UniqueFd socket)
    : host_(host),
      socket_(std::move(socket)),
      output_(*host.output_blocks),
      replies_(*host.replies, output_, *host.large_values, *this),
      dispatcher_(host.limits, *host.router, replies_, output_, *host.stats_source, *host.collected_values,
                  host.next_upload_id, *this),
      readable_(event_new(host.events, socket_.get(), EV_READ | EV_PERSIST, on_readable, this)) {
  EGRET_CHECK(readable_ != nullptr && event_add(readable_.get(), nullptr) == 0);
  host_.stats->curr_connections.add(1);
  host_.stats->total_connections.add(1);
}

Connection::~Connection() {
  if (rest_ != nullptr) host_.input_blocks->give(std::move(rest_));
  host_.stats->curr_connections.sub(1);
  host_.stats_source->open_connections.fetch_sub(1, std::memory_order_relaxed);
}

// --- in
// ------------------------------------------------------------------------------------------------------------------

void Connection::on_readable(int, short, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  connection.host_.begin_pass();
  connection.read();
}

void Connection::read() {
  for (int i = 0; i < kReadsPerPass && may_read() && !dispatcher_.is_closing(); ++i) {
    if (dispatcher_.is_blocked() || rest_size_ == host_.input_blocks->block_size()) {
      pause_reading();
      break;
    }
    if (read_once()) continue;
    if (state_ == State::kLastCall && !dispatcher_.is_blocked()) drain();
    break;
  }
  after_feed();
}

// True when the socket may have more.
bool Connection::read_once() {
  const size_t capacity = host_.input_blocks->block_size();
  char* const buffer = rest_ != nullptr ? rest_.get() : host_.scratch;
  const ssize_t got = ::recv(socket_.get(), buffer + rest_size_, capacity - rest_size_, 0);
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) die();
    return false;
  }
  if (got == 0) {
    drain();
    return false;
  }
  host_.stats->bytes_read.add(static_cast<uint64_t>(got));
  const size_t size = rest_size_ + static_cast<size_t>(got);
  feed(std::string_view(buffer, size));
  return size == capacity;
}

void Connection::feed(std::string_view input) {
  keep_rest(input.substr(dispatcher_.feed(input)));
}

// `rest` is a tail of the scratch memory, or of rest_ itself.
void Connection::keep_rest(std::string_view rest) {
  if (rest.empty()) {
    if (rest_ != nullptr) host_.input_blocks->give(std::move(rest_));
  } else {
    if (rest_ == nullptr) rest_ = host_.input_blocks->take();
    std::memmove(rest_.get(), rest.data(), rest.size());
  }
  rest_size_ = rest.size();
}

void Connection::pause_reading() {
  if (!reading_) return;
  reading_ = false;
  event_del(readable_.get());
}

void Connection::resume_reading() {
  if (reading_ || !may_read()) return;
  reading_ = true;
  event_add(readable_.get(), nullptr);
}

// What held a command back may be over.
void Connection::resume() {
  if (state_ == State::kDead) return;
  if (rest_size_ > 0) {
    feed(std::string_view(rest_.get(), rest_size_));
  } else {
    dispatcher_.feed({});
  }
  if (!dispatcher_.is_blocked()) {
    resume_reading();
    if (state_ == State::kLastCall) return read();  // perhaps there is nothing more, and no event would say so
  }
  after_feed();
}

void Connection::on_progress() {
  if (dispatcher_.is_blocked() || !reading_ || state_ == State::kDraining) host_.may_resume(*this);
}

void Connection::after_feed() {
  if (dispatcher_.is_closing()) drain();
  die_if_drained();
}

// --- out
// -----------------------------------------------------------------------------------------------------------------

void Connection::send_output() {
  if (state_ == State::kDead || writable_awaited_) return;
  const size_t before = output_.size();
  const OutputQueue::Sent sent = output_.send(socket_.get());
  host_.stats->bytes_written.add(before - output_.size());
  if (sent == OutputQueue::Sent::kFailed) return die();
  if (sent == OutputQueue::Sent::kSome) {
    if (writable_ == nullptr) writable_.reset(event_new(host_.events, socket_.get(), EV_WRITE, on_writable, this));
    EGRET_CHECK(writable_ != nullptr && event_add(writable_.get(), nullptr) == 0);
    writable_awaited_ = true;
  }
  replies_.on_drained();
  on_progress();
  die_if_drained();
}

void Connection::on_writable(int, short, void* self) {
  auto& connection = *static_cast<Connection*>(self);
  connection.host_.begin_pass();
  connection.writable_awaited_ = false;
  connection.send_output();
}

// --- the end
// -------------------------------------------------------------------------------------------------------------

void Connection::last_call() {
  if (state_ != State::kOpen) return;
  state_ = State::kLastCall;
  // One that is blocked goes on reading when it resumes.
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
  if (dispatcher_.is_idle() && output_.empty() && !more_to_do) die();
}

void Connection::die() {
  if (state_ == State::kDead) return;
  state_ = State::kDead;
  readable_.reset();
  writable_.reset();
  host_.has_died(*this);
}

}  // namespace egret::proxy
