#include "bench/connection.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include <sys/socket.h>

#include "base/check.h"
#include "bench/monotonic.h"

namespace egret::bench {
namespace {

constexpr size_t kMinInput = size_t{64} << 10;
constexpr size_t kMaxLine = 2048;  // no answer line is longer
constexpr std::string_view kValue = "VALUE ";
constexpr std::string_view kEnd = "END\r\n";
constexpr std::string_view kStored = "STORED\r\n";
constexpr std::string_view kCrLf = "\r\n";

size_t set_size(uint32_t key_size, size_t suffix, uint32_t value_size) {
  return 4 + key_size + suffix + value_size + 2;
}
size_t get_size(uint32_t key_size, uint32_t keys) {
  return 3 + static_cast<size_t>(keys) * (key_size + 1) + 2;
}

// "VALUE <key> <flags> <length>" taken apart.
struct ValueLine {
  std::string_view key;
  std::string_view flags;
  size_t length = 0;
};
std::optional<ValueLine> parse_value_line(std::string_view line) {
  line.remove_prefix(kValue.size());
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  ValueLine parsed{line.substr(0, first), line.substr(first + 1, second - first - 1)};
  const char* const end = line.data() + line.size();
  const auto result = std::from_chars(line.data() + second + 1, end, parsed.length);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return parsed;
}

}  // namespace

Connection::Connection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally)
    : fd_(std::move(fd)),
      keyspace_(keyspace),
      tally_(tally),
      value_size_(limits.value_size),
      set_suffix_(" 0 0 " + std::to_string(limits.value_size) + "\r\n"),
      value_suffix_(" 0 " + std::to_string(limits.value_size) + "\r\n"),
      out_capacity_(limits.requests * std::max(set_size(keyspace.key_size(), set_suffix_.size(), limits.value_size),
                                               get_size(keyspace.key_size(), limits.keys_per_get))),
      out_(std::make_unique_for_overwrite<char[]>(out_capacity_)),
      in_capacity_(std::max(kMinInput, 2 * (size_t{limits.value_size} + kMaxLine))),
      in_(std::make_unique_for_overwrite<char[]>(in_capacity_)) {
  requests_.reserve(limits.requests);
  keys_.reserve(static_cast<size_t>(limits.requests) * limits.keys_per_get);
}

void Connection::begin_batch() {
  EGRET_DCHECK(is_idle());
  requests_.clear();
  keys_.clear();
  answered_ = 0;
  key_cursor_ = 0;
  out_size_ = 0;
  out_written_ = 0;
}

void Connection::append(std::string_view text) {
  EGRET_DCHECK(out_size_ + text.size() <= out_capacity_);
  std::memcpy(out_.get() + out_size_, text.data(), text.size());
  out_size_ += text.size();
}

void Connection::add_get(std::span<const uint32_t> keys, uint64_t intended_ns) {
  requests_.push_back(
      {intended_ns, static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(keys.size()), /*is_set=*/false});
  append("get");
  for (const uint32_t key : keys) {
    keys_.push_back(key);
    append(" ");
    append(keyspace_.key(key));
  }
  append(kCrLf);
  tally_.counters.asked_keys += keys.size();
}

void Connection::add_set(uint32_t key, uint64_t version, uint64_t intended_ns) {
  requests_.push_back({intended_ns, static_cast<uint32_t>(keys_.size()), 1, /*is_set=*/true});
  keys_.push_back(key);
  append("set ");
  append(keyspace_.key(key));
  append(set_suffix_);
  write_value(out_.get() + out_size_, value_size_, key, version);
  out_size_ += value_size_;
  append(kCrLf);
  ++tally_.counters.asked_sets;
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
Connection::Outcome Connection::receive() {
  const ssize_t got = ::recv(fd_.get(), in_.get() + in_end_, in_capacity_ - in_end_, MSG_DONTWAIT);
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

Connection::Step Connection::judge_next(uint64_t now_ns) {
  const std::string_view input(in_.get() + in_begin_, in_end_ - in_begin_);
  if (is_idle()) return lose("an answer that nobody asked for: " + std::string(input.substr(0, 40)));
  const Request& request = requests_[answered_];
  return request.is_set ? judge_set(request, input, now_ns) : judge_get(request, input, now_ns);
}

Connection::Step Connection::judge_set(const Request& /*request*/, std::string_view input, uint64_t now_ns) {
  if (!input.starts_with(kStored)) return judge_error_line(input, now_ns);
  in_begin_ += kStored.size();
  ++tally_.counters.stored;
  finish_request(now_ns);
  return Step::kAgain;
}

// The expected case is recognised by comparing, not by parsing: the header of the next key's value is known in advance.
Connection::Step Connection::judge_get(const Request& request, std::string_view input, uint64_t now_ns) {
  if (input.starts_with(kEnd)) {
    in_begin_ += kEnd.size();
    tally_.counters.misses += request.key_count - key_cursor_;
    finish_request(now_ns);
    return Step::kAgain;
  }
  if (!input.starts_with(kValue)) return judge_error_line(input, now_ns);
  if (key_cursor_ < request.key_count) {
    const std::string_view key = keyspace_.key(keys_[request.first_key + key_cursor_]);
    const std::string_view rest = input.substr(kValue.size());
    if (rest.starts_with(key) && rest.substr(key.size()).starts_with(value_suffix_)) {
      return judge_value_of_next_key(input, kValue.size() + key.size() + value_suffix_.size());
    }
  }
  return judge_unexpected_value(request, input);
}

Connection::Step Connection::judge_value_of_next_key(std::string_view input, size_t header_size) {
  if (input.size() < header_size + value_size_ + kCrLf.size()) return Step::kNeedMore;
  const uint32_t key = keys_[requests_[answered_].first_key + key_cursor_];
  const ValueVerdict verdict = judge_value(input.data() + header_size, value_size_, key);
  if (verdict == ValueVerdict::kGood) {
    ++tally_.counters.hits;
  } else {
    const char* const what = verdict == ValueVerdict::kOtherKey ? "another key's value for " : "a torn value for ";
    tally_.failed(what + std::string(keyspace_.key(key)));
  }
  ++key_cursor_;
  in_begin_ += header_size + value_size_;
  if (!input.substr(header_size + value_size_).starts_with(kCrLf)) return lose("a value is not followed by CRLF");
  in_begin_ += kCrLf.size();
  return Step::kAgain;
}

// A VALUE line that is not simply the next key's: earlier keys were missed, or the line is incomplete, or it is wrong.
Connection::Step Connection::judge_unexpected_value(const Request& request, std::string_view input) {
  const size_t line_end = input.find(kCrLf);
  if (line_end == std::string_view::npos) {
    return input.size() < kMaxLine ? Step::kNeedMore : lose("an answer line without end");
  }
  const std::string line(input.substr(0, line_end));
  const auto parsed = parse_value_line(input.substr(0, line_end));
  if (!parsed) return lose("malformed: " + line);
  const size_t whole = line_end + kCrLf.size() + parsed->length + kCrLf.size();
  if (whole > in_capacity_) return lose("a value of the wrong length: " + line);
  if (input.size() < whole) return Step::kNeedMore;
  uint32_t cursor = key_cursor_;
  while (cursor < request.key_count && keyspace_.key(keys_[request.first_key + cursor]) != parsed->key) ++cursor;
  const bool was_asked = cursor < request.key_count;
  if (was_asked) {
    tally_.counters.misses += cursor - key_cursor_;
    key_cursor_ = cursor;
    if (parsed->length == value_size_ && parsed->flags == "0") {
      return judge_value_of_next_key(input, line_end + kCrLf.size());
    }
    ++key_cursor_;
  }
  tally_.failed((was_asked ? "a value of the wrong length or flags: " : "a value that was not asked for here: ") +
                line);
  in_begin_ += whole;
  return Step::kAgain;
}

Connection::Step Connection::judge_error_line(std::string_view input, uint64_t now_ns) {
  const size_t line_end = input.find(kCrLf);
  if (line_end == std::string_view::npos) {
    return input.size() < kMaxLine ? Step::kNeedMore : lose("an answer line without end");
  }
  const std::string_view line = input.substr(0, line_end);
  const bool is_answer = line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR") || line == "ERROR" ||
                         line == "NOT_STORED" || line == "EXISTS" || line == "NOT_FOUND";
  if (!is_answer) return lose("not an answer to what was asked: " + std::string(line.substr(0, 80)));
  tally_.failed(line);
  in_begin_ += line_end + kCrLf.size();
  finish_request(now_ns);
  return Step::kAgain;
}

void Connection::finish_request(uint64_t now_ns) {
  tally_.answered(requests_[answered_].intended_ns, now_ns);
  ++answered_;
  key_cursor_ = 0;
}

}  // namespace egret::bench
