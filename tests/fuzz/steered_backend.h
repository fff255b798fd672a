// A backend for a client that is fuzzed: in its thread, without a system call for an op. Bytes of the fuzzer say what it answers.
//
//   client ─ stage_write, flush ─▶ messages, lane by lane ─ Mishap ─▶ Answers ─▶ response slots ─ poll ─▶ client
//
// What an op is answered follows from its code and key alone. So it is the same however ops share messages, and answer_of() says
// what the client must make of it. The first messages may meet with a mishap, the first attempts to connect may be refused: from
// then on (has_failed) ops may fail, and once it lied any answer may be wrong. The others are answered rightly.
//
// Its clock advances with each reading: by so little that no op is late; by much once an answer may not come, so that timeouts
// are reached soon.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/eventfd.h>

#include "base/check.h"
#include "base/clock.h"
#include "transport/transport.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire/handshake.h"
#include "wire/head.h"

namespace egret::fuzz {

// Each look costs a step.
class LookedAtClock final : public base::Clock {
 public:
  uint64_t now_ns() const override { return now_ns_ += step_ns; }
  int64_t unix_seconds() const override { return 1'700'000'000; }
  static constexpr uint64_t kSlowNs = 1'000, kFastNs = 5'000'000;
  uint64_t step_ns = kSlowNs;

 private:
  mutable uint64_t now_ns_ = 1;
};

// What ops are answered.
class Answers {
 public:
  static constexpr uint32_t kSlot = 1024;            // of responses, in bytes
  static constexpr uint32_t kVastLength = 64 << 20;  // of a value that no client here has memory for

  explicit Answers(std::string_view plan) : plan_(plan) {}

  uint8_t at(size_t place) const { return plan_.empty() ? 0 : static_cast<uint8_t>(plan_[place % plan_.size()]); }

  // As a backend answers it, with the whole value.
  op::Result result_of(const op::Op& op) const {
    if (op.code == op::OpCode::kChunk) return chunk_of(op);
    const size_t place = place_of(op.code, op.key);
    const uint8_t what = at(place), amount = at(place + 1);
    op::Result result;
    result.code = code_of(op.code, place);
    result.client_flags = what % 3 == 0 ? 0 : what * 0x01010101u;
    result.cas = 1000 + what;
    result.number = amount % 2 == 0 ? amount : UINT64_MAX - amount;
    result.marks = what & 31;
    result.last_access = amount;
    result.ttl = int64_t{amount} - 1;
    if (op.code != op::OpCode::kGet || result.code != op::ResultCode::kHit) return result;
    const std::string_view value = value_of(place);
    result.version = place + 1;
    result.total_length = is_vast(place) ? kVastLength : static_cast<uint32_t>(value.size());
    if ((op.options & op::kNoValue) == 0) result.value = value;
    return result;
  }

  // As the client's program learns of it. The result's value lies in `memory`.
  op::Result answer_of(const op::Op& op, std::vector<std::byte>& memory) const {
    const op::Result sent = result_of(op);
    memory.resize(wire::min_result_size(op) + sent.value.size());
    wire::ResultReader reader(
        memory.data(),
        static_cast<size_t>(wire::encode_result(memory.data(), memory.size(), op, sent) - memory.data()));
    op::Result result;
    EGRET_CHECK(reader.next(result) && reader.at_end());
    const bool reads = op.code == op::OpCode::kGet && (op.options & op::kNoValue) == 0;
    if (!reads || result.code != op::ResultCode::kHit) return result;
    const size_t place = place_of(op.code, op.key);
    op::Result failed;
    failed.code = is_vast(place) ? op::ResultCode::kOutOfMemory : failure_of_chunks(place);
    return failed.code == op::ResultCode::kHit ? result : failed;
  }

 private:
  static constexpr uint8_t kOther = 11, kAny = 13, kVast = 14, kBadChunks = 15;  // of at() % 16

  // A set in parts is a set.
  static size_t place_of(op::OpCode code, std::string_view key) {
    const auto number = static_cast<size_t>(code == op::OpCode::kCommit ? op::OpCode::kSet : code);
    return std::accumulate(key.begin(), key.end(), 4 * number,
                           [](size_t sum, char each) { return sum + static_cast<uint8_t>(each); });
  }
  bool is_vast(size_t place) const { return at(place) % 16 == kVast; }

  op::ResultCode code_of(op::OpCode code, size_t place) const {
    using enum op::ResultCode;
    using Codes = std::array<op::ResultCode, 4>;  // the first is the usual one
    const uint8_t what = at(place), which = at(place + 3);
    if (what % 16 == kAny) return static_cast<op::ResultCode>(which % 17);
    const bool is_usual = what % 16 < kOther || what % 16 > kAny;
    const auto choose = [&](const Codes& codes) { return is_usual ? codes[0] : codes[which % codes.size()]; };
    switch (code) {
      case op::OpCode::kGet:
        return choose({kHit, kMiss, kMiss, kOutOfMemory});
      case op::OpCode::kSet:
      case op::OpCode::kCommit:
        return choose({kStored, kNotStored, kExists, kTooLarge});
      case op::OpCode::kDelete:
        return choose({kDeleted, kMiss, kExists, kForbidden});
      case op::OpCode::kArith:
        return choose({kNumber, kMiss, kNonNumeric, kExists});
      default:
        return kOk;
    }
  }

  // Its bytes look like lines of answers: if a value is cut at the wrong place, what follows is taken for an answer, and found.
  std::string_view value_of(size_t place) const {
    static const std::string text = [] {
      std::string made;
      while (made.size() < kMostText) made.append(std::to_string(made.size())).append("\r\nEND\r\nVA 9\r\n\x81");
      return made;
    }();
    const size_t amount = at(place + 1);
    return std::string_view(text).substr(place % 256, amount < 128 ? amount : (amount - 127) * 48);
  }

  // kHit: none. Only of values that always have some.
  op::ResultCode failure_of_chunks(size_t place) const {
    using enum op::ResultCode;
    if (at(place) % 16 != kBadChunks || value_of(place).size() <= kSlot) return kHit;
    return std::array{kHit, kHit, kMiss, kOutOfMemory, kInvalid, kForbidden}[at(place + 3) % 6];
  }

  op::Result chunk_of(const op::Op& op) const {
    using enum op::ResultCode;
    const size_t place = place_of(op::OpCode::kGet, op.key);
    const std::string_view value = value_of(place);
    op::Result result;
    result.code = failure_of_chunks(place);
    if (result.code != kHit) return result;
    // A version that is never found again, until it is pinned.
    const bool is_changed = at(place) % 16 == kBadChunks && value.size() > kSlot && at(place + 3) % 6 == 1;
    if (is_changed && (op.options & op::kPin) == 0) result.code = kChanged;
    if (op.version != place + 1 || op.offset >= value.size()) result.code = kMiss;  // after a lie
    if (result.code != kHit) return result;
    result.value = value.substr(op.offset, op.length);
    result.total_length = static_cast<uint32_t>(result.value.size());
    return result;
  }

  static constexpr size_t kMostText = 256 + 128 * 48;
  const std::string plan_;
};

// The ops that changed something: of each key, in their order, as bytes.
class Changes {
 public:
  void add(const op::Op& op) {
    if (op.code == op::OpCode::kGet) return;
    std::vector<std::byte> bytes(wire::encoded_op_size(op));
    wire::encode_op(bytes.data(), op);
    of_key_[std::string(op.key)].append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  bool operator==(const Changes&) const = default;

 private:
  std::map<std::string, std::string, std::less<>> of_key_;
};

class SteeredBackend {
 public:
  static constexpr uint32_t kLanes = 2, kWindow = 4;
  static constexpr wire::RegionLayout kLayout{kLanes, kWindow, 1024, Answers::kSlot};

  // `mishaps`: of messages, in the order in which they are sent. `refusals`: a bit for each of the first attempts to connect.
  SteeredBackend(std::string_view plan, std::string_view mishaps, uint64_t refusals)
      : answers(plan), mishaps_(mishaps), refusals_(refusals) {
    current() = this;
  }
  ~SteeredBackend() { current() = nullptr; }
  SteeredBackend(const SteeredBackend&) = delete;
  SteeredBackend& operator=(const SteeredBackend&) = delete;

  // For ClientSession, to the one that there is.
  static base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string&,
                                                                            const transport::ConnectOptions&) {
    SteeredBackend& backend = *current();
    const uint32_t attempt = backend.attempts_++;
    if (attempt < 64 && (backend.refusals_ >> attempt & 1) != 0) {
      backend.fail();
      return base::Status::error("nobody is there");
    }
    return std::unique_ptr<transport::ClientEndpoint>(std::make_unique<End>(backend));
  }

  const Answers answers;
  LookedAtClock clock;
  Changes changes;
  bool has_failed = false;
  bool has_lied = false;

 private:
  enum class Mishap : uint8_t {
    kNone,  // and the values up to 7, so that half of all messages are answered
    kSilence = 8,
    kTorn,
    kTrailingByte,
    kWrongCount,
    kBadStatus,
    kGoneBefore,
    kGoneAfter,
    kLies,
  };
  struct Message {
    uint64_t seq;
    Mishap mishap;
    uint8_t delay;  // in flushes
  };
  struct Upload {
    uint32_t length = 0;
    std::string bytes;
  };

  class End final : public transport::ClientEndpoint {
   public:
    explicit End(SteeredBackend& backend)
        : backend_(backend), requests_(words(kLayout.request_bytes())), responses_(words(kLayout.response_bytes())) {}

    int control_fd() const override { return always_readable(); }
    base::Status receive_frame(std::span<std::byte> frame, size_t& length) override {
      length = 0;
      if (is_gone_) return base::Status::error("the peer is gone");
      if (std::exchange(is_granted_, true)) return base::Status::ok();
      const auto grant = encode(wire::Grant{
          .session_id = 1, .nonce = kNonce, .epoch = 1, .hash_seed = 3, .item_size_max = 1 << 20, .layout = kLayout});
      length = grant.size();
      std::ranges::copy(grant, frame.begin());
      return base::Status::ok();
    }
    base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
    base::Status map_region(const transport::RegionShape&) override { return base::Status::ok(); }
    const transport::Limits& limits() const override { return limits_; }
    std::byte* request_image() override { return reinterpret_cast<std::byte*>(requests_.get()); }
    const std::byte* response_image() const override { return reinterpret_cast<const std::byte*>(responses_.get()); }
    void stage_write(uint32_t lane, size_t offset, size_t, uint64_t first_word) override {
      if (offset != kLayout.request_offset(lane, first_word)) return;  // what is wanted
      asked_[lane].push_back(backend_.next_message(first_word));
    }
    void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
      stage_write(lane, offset, length, first_word);
    }
    void stage_read(uint32_t, size_t, size_t, uint64_t tag) override { reads_.push_back(tag); }
    void flush() override {
      for (uint32_t lane = 0; lane < kLanes; ++lane) serve(lane);
    }
    size_t poll(std::span<transport::Event> events) override {
      size_t count = 0;
      for (; count < events.size() && !reads_.empty(); ++count, reads_.pop_front()) {
        events[count] = {.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = reads_.front(), .bytes = {}};
      }
      return count;
    }
    void ring(uint32_t) override {}
    int data_fd() const override { return never_readable(); }
    void arm() override {}
    void close() override {}

   private:
    static constexpr uint64_t kNonce = 0x123456789abcdef;
    static constexpr wire::Seal kSeal{.nonce = kNonce, .heads_only = false};

    // Shared by all connections. The control descriptor is always readable, so that a client that waits never sleeps.
    static int always_readable() {
      static const int fd = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
      return fd;
    }
    static int never_readable() {
      static const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
      return fd;
    }
    static std::unique_ptr<uint64_t[]> words(size_t bytes) { return std::make_unique<uint64_t[]>(bytes / 8); }

    void serve(uint32_t lane) {
      std::deque<Message>& asked = asked_[lane];
      while (!asked.empty() && !is_gone_) {
        Message& message = asked.front();
        if (message.delay > 0) {
          --message.delay;
          return;
        }
        if (message.mishap != Mishap::kNone) backend_.fail();
        is_gone_ |= message.mishap == Mishap::kGoneBefore;
        if (message.mishap == Mishap::kSilence || is_gone_) return;
        answer(lane, message);
        is_gone_ |= message.mishap == Mishap::kGoneAfter;
        if (message.mishap == Mishap::kTorn) message.mishap = Mishap::kSilence;
        if (message.mishap == Mishap::kSilence) return;
        asked.pop_front();
      }
    }

    void answer(uint32_t lane, const Message& message) {
      wire::Request request;
      const std::byte* const asked = request_image() + kLayout.request_offset(lane, message.seq);
      EGRET_CHECK(wire::view_request(asked, kLayout.request_slot_size, kSeal, message.seq, request));
      EGRET_CHECK(request.flags == 0 && request.op_count > 0);
      std::vector<op::Op> ops(request.op_count);
      EGRET_CHECK(wire::decode_ops(request.body, request.length, ops) == wire::DecodeError::kNone);
      std::byte* const slot =
          reinterpret_cast<std::byte*>(responses_.get()) + kLayout.response_offset(lane, message.seq);
      std::byte* end = slot + sizeof(wire::ResponseHeader);
      for (size_t i = 0; i < ops.size(); ++i) {
        size_t room = static_cast<size_t>(slot + kLayout.response_slot_size - end);
        for (const op::Op& later : std::span(ops).subspan(i + 1)) room -= wire::min_result_size(later);
        EGRET_CHECK(room >= wire::min_result_size(ops[i]));
        take(lane, ops[i]);
        const bool lies = message.mishap == Mishap::kLies;
        const op::Result result = lies ? backend_.lie() : backend_.answers.result_of(ops[i]);
        end = wire::encode_result(end, room, ops[i], result);
      }
      publish(slot, end, message, request.op_count);
    }

    // What the op does here.
    void take(uint32_t lane, op::Op op) {
      auto& uploads = uploads_[lane];
      if (op.code == op::OpCode::kUpload) {
        Upload& upload = uploads[op.upload_id];
        EGRET_CHECK(op.offset == upload.bytes.size());
        upload.length = op.length;
        upload.bytes.append(op.value);
      }
      if (op.code == op::OpCode::kAbort) uploads.erase(op.upload_id);
      std::string value;
      if (op.code == op::OpCode::kCommit) {
        const auto found = uploads.extract(op.upload_id);
        EGRET_CHECK(!found.empty() && found.mapped().bytes.size() == found.mapped().length);
        value = found.mapped().bytes;
        op.code = op::OpCode::kSet;
        op.value = value;
      }
      const bool is_change =
          op.code == op::OpCode::kSet || op.code == op::OpCode::kDelete || op.code == op::OpCode::kArith;
      if (is_change) backend_.changes.add(op);
    }

    // All the checksum covers is as the mishap wants it, so only a torn one has the wrong checksum.
    static void publish(std::byte* slot, std::byte* end, const Message& message, uint16_t count) {
      const bool is_full = end == slot + kLayout.response_slot_size;
      if (message.mishap == Mishap::kTrailingByte && !is_full) *end++ = std::byte{1};
      if (message.mishap == Mishap::kWrongCount || (message.mishap == Mishap::kTrailingByte && is_full)) ++count;
      const auto length = static_cast<uint32_t>(end - slot - ptrdiff_t{sizeof(wire::ResponseHeader)});
      wire::write_response_head(slot, kSeal, message.seq, length, count, 0);
      if (message.mishap == Mishap::kBadStatus) slot[offsetof(wire::ResponseHeader, status)] = std::byte{1};
      uint64_t sum = kSeal.checksum(slot + wire::kResponseChecked, wire::kResponseHeadChecked, length, message.seq);
      if (message.mishap == Mishap::kTorn) ++sum;
      wire::FieldWriter(slot + offsetof(wire::ResponseHeader, checksum)).put(sum);
      wire::FieldWriter(slot).put(message.seq);
    }

    SteeredBackend& backend_;
    const std::unique_ptr<uint64_t[]> requests_, responses_;
    bool is_granted_ = false, is_gone_ = false;
    std::array<std::deque<Message>, kLanes> asked_;
    std::array<std::map<uint32_t, Upload>, kLanes> uploads_;
    std::deque<uint64_t> reads_;
    transport::Limits limits_{.read_depth = 16, .deliver_is_wakeup = true, .fetch_is_local = true};
  };

  static SteeredBackend*& current() {
    static SteeredBackend* backend = nullptr;
    return backend;
  }

  void fail() {
    has_failed = true;
    clock.step_ns = LookedAtClock::kFastNs;
  }

  Message next_message(uint64_t seq) {
    const uint8_t byte = messages_ < mishaps_.size() ? static_cast<uint8_t>(mishaps_[messages_]) : 0;
    ++messages_;
    const uint8_t kind = byte % 16;
    const auto mishap = static_cast<Mishap>(kind);
    return {seq, kind < 8 ? Mishap::kNone : mishap, static_cast<uint8_t>(byte / 16)};
  }

  // Well-formed, and that is all.
  op::Result lie() {
    const auto next = [&] { return answers.at(lies_++); };
    has_lied = true;
    op::Result result;
    const uint8_t code = next();
    result.code = code % 2 == 0 ? op::ResultCode::kHit : static_cast<op::ResultCode>(code / 2 % 17);
    static const std::string text(4 * 256, 'l');
    result.value = std::string_view(text).substr(0, next() * (next() % 4u));
    result.total_length = static_cast<uint32_t>(result.value.size()) + (next() % 3u) * next() * 8u;
    result.version = next();
    result.client_flags = next();
    result.number = result.cas = next();
    result.marks = next() & 31;
    return result;
  }

  const std::string mishaps_;
  const uint64_t refusals_;
  uint32_t attempts_ = 0;
  size_t messages_ = 0, lies_ = 0;
};

}  // namespace egret::fuzz
