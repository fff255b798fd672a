#include "bench_cache/item_client.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include <sys/socket.h>
#include <sys/time.h>

#include "base/check.h"
#include "base/text.h"
#include "bench/keyspace.h"

namespace egret::bench_cache {
namespace {

using base::Expected;
using base::Status;

constexpr time_t kPatienceS = 30;  // without a byte of an answer the connection counts as lost
constexpr size_t kInput = size_t{256} << 10;
constexpr size_t kMaxLine = 2048;  // no answer line is longer
constexpr std::string_view kCrLf = "\r\n";
constexpr std::string_view kValue = "VALUE ";

struct ValueLine {
  std::string_view key;
  uint32_t flags = 0;
  size_t size = 0;
};

bool parse_number(std::string_view text, auto& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// "VALUE <key> <flags> <bytes>".
bool parse_value_line(std::string_view line, ValueLine& parsed) {
  if (!line.starts_with(kValue)) return false;
  line.remove_prefix(kValue.size());
  const size_t first = line.find(' ');
  const size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return false;
  parsed.key = line.substr(0, first);
  return parse_number(line.substr(first + 1, second - first - 1), parsed.flags) &&
         parse_number(line.substr(second + 1), parsed.size);
}

void append_number(std::string& out, uint32_t number) {
  char text[10];
  const auto result = std::to_chars(text, text + sizeof text, number);
  out.append(text, result.ptr);
}

void append_key(std::string& out, uint64_t number) {
  const size_t at = out.size();
  out.resize(at + kKeySize);
  write_key(out.data() + at, number);
}

}  // namespace

void write_key(char* out, uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out[0] = 'k';
  for (uint32_t i = kKeySize - 1; i > 0; --i, number >>= 4) out[i] = kDigits[number & 15];
}

ItemClient::ItemClient(base::UniqueFd fd) : fd_(std::move(fd)), in_(kInput) {}

Expected<ItemClient> ItemClient::connect(const bench::Address& address) {
  auto fd = bench::connect_to(address);
  if (!fd) return fd.status();
  const timeval patience{kPatienceS, 0};
  ::setsockopt(fd.value().get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(fd.value().get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  return ItemClient(std::move(fd.value()));
}

void ItemClient::add_set(const Item& item, uint32_t exptime) {
  EGRET_DCHECK(!is_under_way_ && sets_ < kMaxSets);
  ++sets_;
  out_ += "set ";
  append_key(out_, item.key);
  out_ += " 0 ";
  append_number(out_, exptime);
  out_ += ' ';
  append_number(out_, item.size);
  out_ += kCrLf;
  const size_t at = out_.size();
  out_.resize(at + item.size);
  bench::write_value(out_.data() + at, item.size, item.key, item.version);
  out_ += kCrLf;
}

void ItemClient::add_get(const Item& item) {
  EGRET_DCHECK(!is_under_way_ && gets_.size() < kMaxGets);
  gets_.push_back(item);
  get_line_ += ' ';
  append_key(get_line_, item.key);
}

Status ItemClient::send() {
  if (!gets_.empty()) {
    out_ += "get";
    out_ += get_line_;
    out_ += kCrLf;
  }
  is_under_way_ = has_batch();
  for (size_t sent = 0; sent < out_.size();) {
    const ssize_t bytes = ::send(fd_.get(), out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Status::system_error("send", errno);
    sent += static_cast<size_t>(bytes);
  }
  return Status::ok();
}

Status ItemClient::receive(Answers& answers) {
  answers.stored = answers.refused = answers.hits = answers.wrong = 0;
  answers.missed.clear();
  answers.first_wrong.clear();
  if (Status good = receive_sets(answers); !good) return good;
  if (Status good = receive_gets(answers); !good) return good;
  if (in_begin_ != in_end_) return Status::error("an answer that nobody asked for");
  in_begin_ = in_end_ = 0;
  sets_ = 0;
  gets_.clear();
  out_.clear();
  get_line_.clear();
  is_under_way_ = false;
  return Status::ok();
}

Status ItemClient::receive_sets(Answers& answers) {
  for (uint32_t i = 0; i < sets_; ++i) {
    auto line = read_line();
    if (!line) return line.status();
    if (line.value() == "STORED") {
      ++answers.stored;
    } else if (line.value().starts_with("SERVER_ERROR out of memory")) {
      ++answers.refused;
    } else {
      return Status::error("a set is answered with " + base::quoted(line.value()));
    }
  }
  return Status::ok();
}

Status ItemClient::receive_gets(Answers& answers) {
  if (gets_.empty()) return Status::ok();
  size_t cursor = 0;
  while (true) {
    auto line = read_line();
    if (!line) return line.status();
    if (line.value() == "END") break;
    if (Status good = receive_value(line.value(), cursor, answers); !good) return good;
  }
  for (; cursor < gets_.size(); ++cursor) answers.missed.push_back(static_cast<uint32_t>(cursor));
  return Status::ok();
}

Status ItemClient::receive_value(std::string_view line, size_t& cursor, Answers& answers) {
  ValueLine parsed;
  if (!parse_value_line(line, parsed)) return Status::error("a get is answered with " + base::quoted(line));
  // Values come in the order of the keys, so skipped keys are misses.
  char key[kKeySize];
  for (; cursor < gets_.size(); ++cursor) {
    write_key(key, gets_[cursor].key);
    if (parsed.key == std::string_view(key, kKeySize)) break;
    answers.missed.push_back(static_cast<uint32_t>(cursor));
  }
  if (cursor == gets_.size()) return Status::error("a value that was not asked for here: " + base::quoted(line));
  const Item& item = gets_[cursor++];
  if (parsed.size != item.size || parsed.flags != 0) {
    return Status::error("a value of " + std::to_string(item.size) + " bytes is answered with " + base::quoted(line));
  }
  auto value = read_bytes(item.size + kCrLf.size());
  if (!value) return value.status();
  if (std::memcmp(value.value() + item.size, kCrLf.data(), kCrLf.size()) != 0) {
    return Status::error("a value is not followed by CRLF");
  }
  judge(item, value.value(), answers);
  return Status::ok();
}

// Compares the whole value instead of calling judge_value(): the version is known, and the filler is checked, too.
void ItemClient::judge(const Item& item, const char* value, Answers& answers) {
  expected_.resize(item.size);
  bench::write_value(expected_.data(), item.size, item.key, item.version);
  ++answers.hits;
  if (std::memcmp(value, expected_.data(), item.size) == 0) return;
  if (answers.wrong++ == 0) {
    answers.first_wrong = "key " + std::to_string(item.key) + " has " + base::quoted({value, item.size}) + ", not " +
                          base::quoted(expected_) + " of version " + std::to_string(item.version);
  }
}

Expected<std::string_view> ItemClient::read_line() {
  for (size_t looked = 0;;) {
    const std::string_view input(in_.data() + in_begin_, in_end_ - in_begin_);
    const size_t end = input.find(kCrLf, looked);
    if (end != std::string_view::npos) {
      in_begin_ += end + kCrLf.size();
      return input.substr(0, end);
    }
    if (input.size() > kMaxLine) return Status::error("an answer line without end");
    looked = input.empty() ? 0 : input.size() - 1;
    if (Status good = read_more(); !good) return good;
  }
}

Expected<const char*> ItemClient::read_bytes(size_t size) {
  while (in_end_ - in_begin_ < size) {
    if (Status good = read_more(); !good) return good;
  }
  const char* const bytes = in_.data() + in_begin_;
  in_begin_ += size;
  return bytes;
}

Status ItemClient::read_more() {
  if (in_begin_ > 0 && in_end_ == in_.size()) {
    std::memmove(in_.data(), in_.data() + in_begin_, in_end_ - in_begin_);
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  if (in_end_ == in_.size()) in_.resize(2 * in_.size());  // one value fills it
  while (true) {
    const ssize_t bytes = ::recv(fd_.get(), in_.data() + in_end_, in_.size() - in_end_, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return Status::system_error("no answer", errno);
    if (bytes == 0) return Status::error("the server closed the connection");
    in_end_ += static_cast<size_t>(bytes);
    return Status::ok();
  }
}

}  // namespace egret::bench_cache
