// Endpoints without a network, for tests that look at rpc from both sides at once: the test is the other side.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "rpc/client_lane.h"
#include "transport/transport.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire/slot.h"

namespace egret::rpc {

inline constexpr uint64_t kNonce = 0x1234;

// Memory whose words are aligned.
class Words {
 public:
  explicit Words(size_t bytes) : words_(bytes / 8 + 1) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(words_.data()); }
  const std::byte* data() const { return reinterpret_cast<const std::byte*>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

class FakeClientEndpoint final : public transport::ClientEndpoint {
 public:
  struct Write {
    size_t offset, length;
    uint64_t first_word;
    bool rings = false;
  };
  struct Read {
    size_t offset, length;
    uint64_t tag;
  };
  FakeClientEndpoint(const wire::RegionLayout& layout, bool local, bool ordered = false)
      : requests(layout.request_bytes()), responses(layout.response_bytes()) {
    limits_ = {.read_depth = 16,
               .deliver_is_wakeup = local,
               .is_ordered = ordered,
               .fetch_is_local = local,
               .needs_keep_alive = !local};
  }

  transport::Limits& limits_to_change() { return limits_; }
  int control_fd() const override { return control; }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    length = 0;
    if (frames_in.empty()) return peer_gone ? base::Status::error("the peer is gone") : base::Status::ok();
    length = frames_in.front().size();
    std::ranges::copy(frames_in.front(), frame.begin());
    frames_in.erase(frames_in.begin());
    return base::Status::ok();
  }
  base::Status send_frame(std::span<const std::byte> frame, bool) override {
    if (peer_gone) return base::Status::error("cannot send");
    frames_out.emplace_back(frame.begin(), frame.end());
    return base::Status::ok();
  }
  base::Status map_region(const transport::RegionShape&) override {
    return refuse_map ? base::Status::error("wrong size") : base::Status::ok();
  }
  const transport::Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests.data(); }
  const std::byte* response_image() const override { return responses.data(); }
  void stage_write(uint32_t, size_t offset, size_t length, uint64_t first_word) override {
    writes.push_back({offset, length, first_word});
  }
  void stage_ringing_write(uint32_t, size_t offset, size_t length, uint64_t first_word) override {
    writes.push_back({offset, length, first_word, true});
  }
  void stage_read(uint32_t, size_t offset, size_t length, uint64_t tag) override {
    reads.push_back({offset, length, tag});
  }
  void flush() override {
    ++flushes;
    if (on_flush) on_flush();
  }
  size_t poll(std::span<transport::Event> found) override {
    ++polls;
    for (const Read& read : completes_reads ? std::exchange(reads, {}) : std::vector<Read>()) {
      events.push_back({.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = read.tag, .bytes = {}});
    }
    const size_t count = std::min(found.size(), events.size());
    std::copy_n(events.begin(), count, found.begin());
    events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(count));
    return count;
  }
  void ring(uint32_t lane) override { rings.push_back(lane); }
  op::DirectStore* direct_store(uint32_t) override { return direct; }
  int data_fd() const override { return data; }
  uint32_t come_back_ms() const override { return pause_ms; }
  void arm() override { ++arms; }
  void keep_alive() override { ++keep_alives; }
  void close() override { closed = true; }

  Words requests, responses;
  std::vector<Write> writes;
  std::vector<Read> reads;
  std::vector<uint32_t> rings;
  std::vector<transport::Event> events;
  std::vector<std::vector<std::byte>> frames_in, frames_out;
  int flushes = 0, polls = 0, arms = 0, keep_alives = 0;
  std::function<void()> on_flush;  // by default nothing
  int control = -1, data = -1;     // control_fd(), data_fd()
  op::DirectStore* direct = nullptr;
  bool completes_reads = false;  // in the next poll(), as shared memory does; else the test does
  uint32_t pause_ms = 0;         // come_back_ms()
  bool peer_gone = false, refuse_map = false, closed = false;

 private:
  transport::Limits limits_;
};

class FakeServerEndpoint final : public transport::ServerEndpoint {
 public:
  struct Delivery {
    uint32_t lane;
    size_t offset, length;
  };
  FakeServerEndpoint(const wire::RegionLayout& layout, bool local)
      : requests(layout.request_bytes()), responses(layout.response_bytes()) {
    limits_ = {.read_depth = 0, .deliver_is_wakeup = local, .fetch_is_local = local};
  }

  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte>, size_t& length) override {
    length = 0;
    return base::Status::ok();
  }
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  base::Status create_region(const transport::RegionShape&) override { return base::Status::ok(); }
  const transport::Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::byte* request_memory() const override { return requests.data(); }
  std::byte* response_memory() override { return responses.data(); }
  void deliver(uint32_t lane, size_t offset, size_t length) override { deliveries.push_back({lane, offset, length}); }
  size_t poll(std::span<transport::Event> events) override { return on_poll ? on_poll(events) : 0; }
  int data_fd() const override { return fd; }
  int client_cpu() const override { return cpu; }
  void arm() override {}
  void close() override {}
  void signal_rings() { limits_.ring_is_wakeup = true; }  // from now on each shows at `fd`
  void push_results() { limits_.results_are_pushed = true; }
  void receive_by_poll() { limits_.is_received_by_poll = true; }
  // As an endpoint with lane rings from now on: poll_lane() calls `find`.
  void give_lane_rings(std::function<size_t(uint32_t lane, std::span<transport::Event>)> find) {
    limits_.has_lane_rings = limits_.ring_is_wakeup = true;
    on_poll_lane_ = std::move(find);
  }
  int lane_fd(uint32_t) const override { return fd; }
  size_t poll_lane(uint32_t lane, std::span<transport::Event> events) override { return on_poll_lane_(lane, events); }

  Words requests, responses;
  std::vector<Delivery> deliveries;
  std::function<size_t(std::span<transport::Event>)> on_poll;  // what poll() finds; by default nothing
  int fd = -1;                                                 // data_fd(), lane_fd()
  std::atomic<int> cpu{-1};                                    // client_cpu()

 private:
  transport::Limits limits_;
  std::function<size_t(uint32_t, std::span<transport::Event>)> on_poll_lane_;
  const std::string peer_ = "fake";
};

// --- messages, made and read by hand -------------------------------------------------------------------------------

inline op::Op get_of(std::string_view key) {
  op::Op op;
  op.code = op::OpCode::kGet;
  op.key = key;
  return op;
}

// Puts a whole request with these ops into the slot of `seq`; `count`, `length` and `flags` may lie.
inline void put_request(std::byte* memory, const wire::RegionLayout& layout, uint32_t lane, uint64_t seq,
                        std::span<const op::Op> ops, int count = -1, int length = -1, uint64_t nonce = kNonce,
                        uint16_t flags = 0, bool heads_only = false) {
  std::byte* const slot = memory + layout.request_offset(lane, seq);
  std::byte* end = slot + sizeof(wire::RequestHeader);
  for (const op::Op& op : ops) end = wire::encode_op(end, op);
  const auto bytes = length >= 0 ? static_cast<uint32_t>(length)
                                 : static_cast<uint32_t>(end - slot - ptrdiff_t{sizeof(wire::RequestHeader)});
  wire::FieldWriter checked(slot + wire::kRequestChecked);
  checked.put(bytes);
  checked.put(static_cast<uint16_t>(count >= 0 ? count : static_cast<int>(ops.size())));
  checked.put(flags);
  const size_t room = layout.request_slot_size - wire::kRequestChecked;
  const size_t covered =
      std::min<size_t>(sizeof(wire::RequestHeader) - wire::kRequestChecked + (heads_only ? 0 : bytes), room);
  wire::FieldWriter(slot + offsetof(wire::RequestHeader, checksum))
      .put(wire::message_checksum(slot + wire::kRequestChecked, covered, nonce, seq));
  wire::FieldWriter(slot).put(seq);
}

// Puts a whole response with these results (each to `asked`) into the slot of `seq`.
inline size_t put_response(std::byte* memory, const wire::RegionLayout& layout, uint32_t lane, uint64_t seq,
                           std::span<const op::Result> results, uint32_t processing_ns = 0, uint64_t nonce = kNonce,
                           const op::Op& asked = get_of("k"), uint8_t hints = 0) {
  std::byte* const slot = memory + layout.response_offset(lane, seq);
  std::byte* end = slot + sizeof(wire::ResponseHeader);
  for (const op::Result& result : results) {
    end = wire::encode_result(end, layout.response_slot_size - static_cast<size_t>(end - slot), asked, result);
  }
  const auto length = static_cast<uint32_t>(end - slot - ptrdiff_t{sizeof(wire::ResponseHeader)});
  wire::FieldWriter checked(slot + wire::kResponseChecked);
  checked.put(length);
  checked.put(static_cast<uint16_t>(results.size()));
  checked.put(uint8_t{0});
  checked.put(hints);
  checked.put(processing_ns);
  checked.put(uint32_t{0});
  const size_t covered = sizeof(wire::ResponseHeader) - wire::kResponseChecked + length;
  wire::FieldWriter(slot + offsetof(wire::ResponseHeader, checksum))
      .put(wire::message_checksum(slot + wire::kResponseChecked, covered, nonce, seq));
  wire::FieldWriter(slot).put(seq);
  return static_cast<size_t>(end - slot);
}

inline op::Result hit(std::string_view value) {
  op::Result result;
  result.code = op::ResultCode::kHit;
  result.value = value;
  result.total_length = static_cast<uint32_t>(value.size());
  return result;
}

// Remembers what it was told.
struct Listener final : Waiter {
  void on_result(const op::Result& result) override {
    codes.push_back(result.code);
    values.emplace_back(result.value);
  }
  std::vector<op::ResultCode> codes;
  std::vector<std::string> values;
};

}  // namespace egret::rpc
