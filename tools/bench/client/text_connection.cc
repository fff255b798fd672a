#include "bench/client/text_connection.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace egret::bench {
namespace {

constexpr size_t kMaxLine = 2048;  // no answer line is longer
constexpr std::string_view kValue = "VALUE ";
constexpr std::string_view kEnd = "END\r\n";
constexpr std::string_view kStored = "STORED\r\n";
constexpr std::string_view kCrLf = "\r\n";

std::string set_suffix(uint32_t value_size) {
  return " 0 0 " + std::to_string(value_size) + "\r\n";
}
size_t set_size(uint32_t key_size, size_t suffix, uint32_t value_size) {
  return 4 + key_size + suffix + value_size + 2;
}
size_t get_size(uint32_t key_size, uint32_t keys) {
  return 3 + static_cast<size_t>(keys) * (key_size + 1) + 2;
}

// The parts of "VALUE <key> <flags> <length>".
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

TextConnection::TextConnection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally)
    : Connection(std::move(fd), keyspace, limits, tally,
                 std::max(set_size(keyspace.key_size(), set_suffix(limits.value_size).size(), limits.value_size),
                          get_size(keyspace.key_size(), limits.keys_per_get)),
                 size_t{limits.value_size} + kMaxLine),
      set_suffix_(set_suffix(limits.value_size)),
      value_suffix_(" 0 " + std::to_string(limits.value_size) + "\r\n") {}

void TextConnection::add_get(std::span<const uint32_t> keys, uint64_t intended_ns) {
  add_request(keys, /*is_set=*/false, intended_ns);
  append("get");
  for (const uint32_t key : keys) {
    append(" ");
    append(keyspace_.key(key));
  }
  append(kCrLf);
}

void TextConnection::add_set(uint32_t key, uint64_t version, uint64_t intended_ns) {
  add_request({&key, 1}, /*is_set=*/true, intended_ns);
  append("set ");
  append(keyspace_.key(key));
  append(set_suffix_);
  append_value(key, version);
  append(kCrLf);
}

Connection::Step TextConnection::judge(std::string_view input, uint64_t now_ns) {
  return current_request().is_set ? judge_set(input, now_ns) : judge_get(input, now_ns);
}

Connection::Step TextConnection::judge_set(std::string_view input, uint64_t now_ns) {
  if (!input.starts_with(kStored)) return judge_error_line(input, now_ns);
  consume(kStored.size());
  ++tally_.counters.stored;
  finish_request(now_ns);
  return Step::kAgain;
}

// Compares instead of parsing in the expected case: the header of the next key's value is known in advance.
Connection::Step TextConnection::judge_get(std::string_view input, uint64_t now_ns) {
  const Request& request = current_request();
  if (input.starts_with(kEnd)) {
    consume(kEnd.size());
    tally_.counters.misses += request.key_count - key_cursor_;
    finish_request(now_ns);
    return Step::kAgain;
  }
  if (!input.starts_with(kValue)) return judge_error_line(input, now_ns);
  if (key_cursor_ < request.key_count) {
    const std::string_view key = keyspace_.key(key_of(request, key_cursor_));
    const std::string_view rest = input.substr(kValue.size());
    if (rest.starts_with(key) && rest.substr(key.size()).starts_with(value_suffix_)) {
      return judge_value_of_next_key(input, kValue.size() + key.size() + value_suffix_.size());
    }
  }
  return judge_unexpected_value(input);
}

Connection::Step TextConnection::judge_value_of_next_key(std::string_view input, size_t header_size) {
  if (input.size() < header_size + value_size_ + kCrLf.size()) return Step::kNeedMore;
  const uint32_t key = key_of(current_request(), key_cursor_);
  count_value(input.data() + header_size, key);
  ++key_cursor_;
  consume(header_size + value_size_);
  if (!input.substr(header_size + value_size_).starts_with(kCrLf)) return lose("a value is not followed by CRLF");
  consume(kCrLf.size());
  return Step::kAgain;
}

// A VALUE line that is not the next key's: earlier keys were missed, or the line is incomplete or wrong.
Connection::Step TextConnection::judge_unexpected_value(std::string_view input) {
  const Request& request = current_request();
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
  while (cursor < request.key_count && keyspace_.key(key_of(request, cursor)) != parsed->key) ++cursor;
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
  consume(whole);
  return Step::kAgain;
}

Connection::Step TextConnection::judge_error_line(std::string_view input, uint64_t now_ns) {
  const size_t line_end = input.find(kCrLf);
  if (line_end == std::string_view::npos) {
    return input.size() < kMaxLine ? Step::kNeedMore : lose("an answer line without end");
  }
  const std::string_view line = input.substr(0, line_end);
  const bool is_answer = line.starts_with("SERVER_ERROR") || line.starts_with("CLIENT_ERROR") || line == "ERROR" ||
                         line == "NOT_STORED" || line == "EXISTS" || line == "NOT_FOUND";
  if (!is_answer) return lose("not an answer to what was asked: " + std::string(line.substr(0, 80)));
  tally_.failed(line);
  consume(line_end + kCrLf.size());
  finish_request(now_ns);
  return Step::kAgain;
}

}  // namespace egret::bench
