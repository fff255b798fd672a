#include "bench/client/binary_connection.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace egret::bench {
namespace {

constexpr size_t kHeaderSize = 24;
constexpr size_t kSetExtras = 8;
constexpr size_t kGetExtras = 4;
constexpr size_t kMaxErrorText = 2048;
constexpr uint8_t kRequestMagic = 0x80;
constexpr uint8_t kAnswerMagic = 0x81;
constexpr uint16_t kSuccess = 0;
constexpr uint16_t kNotFound = 1;

enum Opcode : uint8_t { kGet = 0x00, kSet = 0x01, kNoop = 0x0a, kGetKq = 0x0d };

// A request up to its key, composed without the heap.
class Head {
 public:
  Head(Opcode opcode, size_t key, size_t extras, size_t value, uint32_t opaque) {
    put(kRequestMagic, 1);
    put(opcode, 1);
    put(key, 2);
    put(extras, 1);
    put(0, 3);  // data type, vbucket
    put(key + extras + value, 4);
    put(opaque, 4);
    put(0, 8 + extras);  // CAS; a set's flags and expiry
  }
  std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  void put(uint64_t number, size_t bytes) {  // big-endian
    for (size_t i = bytes; i-- > 0;) bytes_[size_++] = static_cast<char>(i < 8 ? number >> (8 * i) : 0);
  }

  std::array<char, kHeaderSize + kSetExtras> bytes_;
  size_t size_ = 0;
};

uint32_t number_at(std::string_view in, size_t offset, size_t bytes) {
  uint32_t number = 0;
  for (const char each : in.substr(offset, bytes)) number = number << 8 | static_cast<uint8_t>(each);
  return number;
}

}  // namespace

struct BinaryConnection::Answer {
  uint8_t opcode;
  uint16_t status;
  uint32_t opaque;
  std::string_view extras;
  std::string_view key;
  std::string_view value;

  std::string to_string() const {
    return "opcode " + std::to_string(opcode) + ", status " + std::to_string(status) + ", opaque " +
           std::to_string(opaque) + (status == kSuccess ? "" : ", " + std::string(value.substr(0, 80)));
  }
};

BinaryConnection::BinaryConnection(base::UniqueFd fd, const Keyspace& keyspace, const BatchLimits& limits, Tally& tally)
    : Connection(std::move(fd), keyspace, limits, tally,
                 std::max(kHeaderSize + kSetExtras + keyspace.key_size() + limits.value_size,
                          limits.keys_per_get * (kHeaderSize + keyspace.key_size()) + kHeaderSize),
                 kHeaderSize + kGetExtras + keyspace.key_size() + limits.value_size + kMaxErrorText) {}

void BinaryConnection::add_get(std::span<const uint32_t> keys, uint64_t intended_ns) {
  add_request(keys, /*is_set=*/false, intended_ns);
  const Opcode opcode = keys.size() == 1 ? kGet : kGetKq;
  for (const uint32_t key : keys) {
    append(Head(opcode, keyspace_.key_size(), 0, 0, next_opaque_++).text());
    append(keyspace_.key(key));
  }
  if (opcode == kGetKq) append(Head(kNoop, 0, 0, 0, next_opaque_++).text());
}

void BinaryConnection::add_set(uint32_t key, uint64_t version, uint64_t intended_ns) {
  add_request({&key, 1}, /*is_set=*/true, intended_ns);
  append(Head(kSet, keyspace_.key_size(), kSetExtras, value_size_, next_opaque_++).text());
  append(keyspace_.key(key));
  append_value(key, version);
}

Connection::Step BinaryConnection::judge(std::string_view input, uint64_t now_ns) {
  if (number_at(input, 0, 1) != kAnswerMagic)
    return lose("not an answer: it begins with " + std::to_string(number_at(input, 0, 1)));
  if (input.size() < kHeaderSize) return Step::kNeedMore;
  const size_t key_size = number_at(input, 2, 2);
  const size_t extras_size = number_at(input, 4, 1);
  const size_t body_size = number_at(input, 8, 4);
  const size_t whole = kHeaderSize + body_size;
  if (whole > in_capacity_ || key_size + extras_size > body_size) return lose("an answer of the wrong length");
  if (input.size() < whole) return Step::kNeedMore;
  const std::string_view body = input.substr(kHeaderSize, body_size);
  const Answer answer{static_cast<uint8_t>(number_at(input, 1, 1)),
                      static_cast<uint16_t>(number_at(input, 6, 2)),
                      number_at(input, 12, 4),
                      body.substr(0, extras_size),
                      body.substr(extras_size, key_size),
                      body.substr(extras_size + key_size)};
  consume(whole);
  if (current_request().is_set) return judge_set(answer, now_ns);
  return current_request().key_count == 1 ? judge_get(answer, now_ns) : judge_multiget(answer, now_ns);
}

Connection::Step BinaryConnection::judge_set(const Answer& answer, uint64_t now_ns) {
  if (answer.opcode != kSet || answer.opaque != expected_opaque_) return lose_step(answer);
  if (answer.status == kSuccess) {
    ++tally_.counters.stored;
  } else {
    tally_.failed("set: " + answer.to_string());
  }
  ++expected_opaque_;
  finish_request(now_ns);
  return Step::kAgain;
}

Connection::Step BinaryConnection::judge_get(const Answer& answer, uint64_t now_ns) {
  if (answer.opcode != kGet || answer.opaque != expected_opaque_) return lose_step(answer);
  if (answer.status == kNotFound) {
    ++tally_.counters.misses;
  } else {
    count_get(answer, key_of(current_request(), 0), {});
  }
  ++expected_opaque_;
  finish_request(now_ns);
  return Step::kAgain;
}

// Quiet gets are answered in their order, misses not at all; the NOOP's answer ends them.
Connection::Step BinaryConnection::judge_multiget(const Answer& answer, uint64_t now_ns) {
  const Request& request = current_request();
  const uint32_t position = answer.opaque - expected_opaque_;
  if (answer.opcode == kNoop && position == request.key_count) {
    tally_.counters.misses += request.key_count - key_cursor_;
    expected_opaque_ += request.key_count + 1;
    if (answer.status != kSuccess) tally_.failed("noop: " + answer.to_string());
    finish_request(now_ns);
    return Step::kAgain;
  }
  if (answer.opcode != kGetKq || position < key_cursor_ || position >= request.key_count) return lose_step(answer);
  tally_.counters.misses += position - key_cursor_;
  key_cursor_ = position + 1;
  const uint32_t key = key_of(request, position);
  count_get(answer, key, keyspace_.key(key));
  return Step::kAgain;
}

void BinaryConnection::count_get(const Answer& answer, uint32_t key, std::string_view expected_key) {
  if (answer.status != kSuccess) {
    tally_.failed("get: " + answer.to_string());
  } else if (answer.key != expected_key) {
    tally_.failed("the answer to a get names the key " + std::string(answer.key));
  } else if (answer.value.size() != value_size_ || answer.extras != std::string_view("\0\0\0\0", kGetExtras)) {
    tally_.failed("a value of the wrong length or flags: " + answer.to_string());
  } else {
    count_value(answer.value.data(), key);
  }
}

Connection::Step BinaryConnection::lose_step(const Answer& answer) {
  return lose("not the answer that is due (opaque " + std::to_string(expected_opaque_) + "): " + answer.to_string());
}

}  // namespace egret::bench
