#include "bench/client/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

#include "base/check.h"
#include "bench/client/binary_connection.h"
#include "bench/client/text_connection.h"
#include "bench/monotonic.h"

namespace egret::bench {
namespace {

constexpr size_t kMinInput = size_t{64} << 10;

}  // namespace

Connection::Connection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally,
                       size_t largest_request, size_t largest_answer)
    : keyspace_(keyspace),
      tally_(tally),
      value_size_(limits.value_size),
      in_capacity_(std::max(kMinInput, 2 * largest_answer)),
      fd_(std::move(fd)),
      out_capacity_(limits.requests * largest_request),
      out_(std::make_unique_for_overwrite<char[]>(out_capacity_)),
      in_(std::make_unique_for_overwrite<char[]>(in_capacity_)) {
  requests_.reserve(limits.requests);
  keys_.reserve(static_cast<size_t>(limits.requests) * limits.keys_per_get);
}

// Drops what is answered and what is written, so that the buffers never hold more than the unanswered requests.
void Connection::begin_batch() {
  const uint32_t answered_keys = is_idle() ? static_cast<uint32_t>(keys_.size()) : current_request().first_key;
  requests_.erase(requests_.begin(), requests_.begin() + static_cast<std::ptrdiff_t>(answered_));
  keys_.erase(keys_.begin(), keys_.begin() + answered_keys);
  for (Request& each : requests_) each.first_key -= answered_keys;
  answered_ = 0;
  std::memmove(out_.get(), out_.get() + out_written_, out_size_ - out_written_);
  out_size_ -= out_written_;
  out_written_ = 0;
}

void Connection::add_request(std::span<const uint32_t> keys, bool is_set, uint64_t intended_ns) {
  requests_.push_back({intended_ns, static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(keys.size()), is_set});
  keys_.insert(keys_.end(), keys.begin(), keys.end());
  (is_set ? tally_.counters.asked_sets : tally_.counters.asked_keys) += keys.size();
}

void Connection::append(std::string_view text) {
  EGRET_DCHECK(out_size_ + text.size() <= out_capacity_);
  std::memcpy(out_.get() + out_size_, text.data(), text.size());
  out_size_ += text.size();
}

void Connection::append_value(uint32_t key, uint64_t version) {
  EGRET_DCHECK(out_size_ + value_size_ <= out_capacity_);
  write_value(out_.get() + out_size_, value_size_, key, version);
  out_size_ += value_size_;
}

Connection::Outcome Connection::flush() {
  while (out_written_ < out_size_) {
    const ssize_t sent =
        ::send(fd_.get(), out_.get() + out_written_, out_size_ - out_written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      out_written_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN) {
      return Outcome::kBlocked;
    } else if (errno != EINTR) {
      abandon(std::string("send: ") + std::strerror(errno));
      return Outcome::kLost;
    }
  }
  return Outcome::kDone;
}

// One recv(), and no second one to find the socket empty: epoll, level-triggered, says when there is more.
Connection::Outcome Connection::receive(size_t at_most) {
  const ssize_t got = ::recv(fd_.get(), in_.get() + in_end_, std::min(at_most, in_capacity_ - in_end_), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Outcome::kDone;
  if (got <= 0) {
    abandon(got == 0 ? std::string("the server closed the connection") : std::string("recv: ") + std::strerror(errno));
    return Outcome::kLost;
  }
  in_end_ += static_cast<size_t>(got);
  const uint64_t now_ns = monotonic_ns();
  Step step = Step::kAgain;
  while (step == Step::kAgain && in_begin_ < in_end_) step = judge_next(now_ns);
  if (step == Step::kLost) return Outcome::kLost;
  std::memmove(in_.get(), in_.get() + in_begin_, in_end_ - in_begin_);
  in_end_ -= in_begin_;
  in_begin_ = 0;
  return Outcome::kDone;
}

Connection::Step Connection::judge_next(uint64_t now_ns) {
  const std::string_view input(in_.get() + in_begin_, in_end_ - in_begin_);
  if (is_idle()) return lose("an answer that nobody asked for: " + std::string(input.substr(0, 40)));
  return judge(input, now_ns);
}

void Connection::count_value(const char* value, uint32_t key) {
  const ValueVerdict verdict = judge_value(value, value_size_, key);
  if (verdict == ValueVerdict::kGood) {
    ++tally_.counters.hits;
  } else {
    const char* const what = verdict == ValueVerdict::kOtherKey ? "another key's value for " : "a torn value for ";
    tally_.failed(what + std::string(keyspace_.key(key)));
  }
}

void Connection::finish_request(uint64_t now_ns) {
  tally_.answered(requests_[answered_].intended_ns, now_ns);
  ++answered_;
  key_cursor_ = 0;
}

void Connection::abandon(std::string_view why) {
  tally_.failed(why);
  if (unanswered() > 1) tally_.counters.errors += unanswered() - 1;
  answered_ = requests_.size();
  fd_.reset();
}

Connection::Step Connection::lose(std::string_view why) {
  abandon(why);
  return Step::kLost;
}

std::unique_ptr<Connection> make_connection(Protocol protocol, base::UniqueFd fd, const Keyspace& keyspace,
                                            const BatchLimits& limits, Tally& tally) {
  if (protocol == Protocol::kBinary) {
    return std::make_unique<BinaryConnection>(std::move(fd), keyspace, limits, tally);
  }
  return std::make_unique<TextConnection>(std::move(fd), keyspace, limits, tally);
}

}  // namespace egret::bench
