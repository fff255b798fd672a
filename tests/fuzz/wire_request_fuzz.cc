// Any bytes as a client's request memory. First as the body of one message: decoded views lie in the input, and
// encoding gives the same bytes. Then as a script that writes slots (raw, or with the right seq and checksum) which a
// SlotPoller polls: it executes every op of a message once and in order, writes only that message's response slot, and
// its response is well-formed; a client that violates the protocol loses its own session only.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "input.h"
#include "op/records.h"
#include "op/stats.h"
#include "rpc/slot_poller.h"
#include "wire/bytes.h"
#include "wire/codec.h"

namespace {

using namespace egret;
using fuzz::Input;
using op::Op;
using op::Result;
using wire::RegionLayout;
using wire::RequestHeader;
using wire::ResponseHeader;

constexpr uint64_t kNonce = 0x123456789abcdef;
constexpr size_t kMaxSteps = 64;

bool lies_in(std::string_view view, const std::byte* begin, size_t size) {
  const auto* at = reinterpret_cast<const std::byte*>(view.data());
  return view.empty() || (at >= begin && at + view.size() <= begin + size);
}

void decode_and_encode(std::span<const std::byte> body, size_t count) {
  std::vector<Op> ops(count);
  if (wire::decode_ops(body.data(), body.size(), ops) != wire::DecodeError::kNone) return;
  std::vector<std::byte> again;
  for (const Op& op : ops) {
    EGRET_CHECK(lies_in(op.key, body.data(), body.size()) && lies_in(op.value, body.data(), body.size()));
    const size_t begin = again.size();
    again.resize(begin + wire::encoded_op_size(op));
    EGRET_CHECK(wire::encode_op(again.data() + begin, op) == again.data() + again.size());
  }
  EGRET_CHECK(again.size() == body.size() && std::equal(again.begin(), again.end(), body.begin()));
}

// The server's end of a region, of exactly the layout's size. Which response bytes may change is checked from outside.
class FakeEndpoint final : public transport::ServerEndpoint {
 public:
  explicit FakeEndpoint(const RegionLayout& layout)
      : requests(new std::byte[layout.request_bytes()]()), responses(new std::byte[layout.response_bytes()]()) {
    limits_.deliver_is_wakeup = true;
  }
  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte>, size_t&) override { return base::Status::ok(); }
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  base::Status create_region(const transport::RegionShape&) override { return base::Status::ok(); }
  const transport::Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::byte* request_memory() const override { return requests.get(); }
  std::byte* response_memory() override { return responses.get(); }
  void deliver(uint32_t, size_t, size_t) override {}
  size_t poll(std::span<transport::Event>) override { return 0; }
  int data_fd() const override { return -1; }
  void arm() override {}
  void close() override {}

  std::unique_ptr<std::byte[]> requests;
  std::unique_ptr<std::byte[]> responses;

 private:
  transport::Limits limits_;
  const std::string peer_ = "the fuzzer";
};

// Reads every byte it is given, answers with as much as it likes, and holds the poller to the order of calls.
class FakeHandler final : public rpc::OpHandler {
 public:
  FakeHandler() : value_(8192, 'v') {}
  void begin_round() override { round_begun_ = true; }
  void foresee(std::span<Op> ops) override {
    EGRET_CHECK(!ops.empty() && ops.size() <= kMaxBatch);
    foreseen_ += ops.size();
  }
  void prepare(std::span<Op> ops, std::span<const rpc::LaneId> lanes) override {
    EGRET_CHECK(foreseen_ == ops.size());
    foreseen_ = 0;
    EGRET_CHECK(round_begun_ && next_ == batch_.size());
    EGRET_CHECK(!ops.empty() && ops.size() <= kMaxBatch && ops.size() == lanes.size());
    batch_ = ops;
    next_ = 0;
    located_ = false;
  }
  void locate() override { located_ = true; }
  Result execute(size_t index) override {
    EGRET_CHECK(located_ && index == next_++);
    const Op& op = batch_[index];
    size_t sum = op.key.size();
    for (const char c : op.key) sum += static_cast<unsigned char>(c);
    for (const char c : op.value) sum += static_cast<unsigned char>(c);
    ++executed;
    return answer(op, sum);
  }
  void lane_dropped(rpc::LaneId) override {}

  uint64_t executed = 0;

 private:
  size_t foreseen_ = 0;  // and not prepared yet
  Result answer(const Op& op, size_t sum) const {
    Result result;
    result.code = op::ResultCode::kUnsupported;
    result.client_flags = static_cast<uint32_t>(sum);
    result.cas = result.version = result.number = sum;
    result.marks = static_cast<uint8_t>(sum);
    result.last_access = static_cast<uint32_t>(sum);
    result.ttl = static_cast<int64_t>(sum);
    switch (op.code) {
      case op::OpCode::kGet:
      case op::OpCode::kChunk:
        result.code = op::ResultCode::kHit;
        result.value = std::string_view(value_).substr(0, op.options & op::kNoValue ? 0 : sum % value_.size());
        result.total_length = static_cast<uint32_t>(result.value.size() + sum % 3);
        break;
      case op::OpCode::kSet:
      case op::OpCode::kCommit:
        result.code = op::ResultCode::kStored;
        break;
      case op::OpCode::kArith:
        result.code = op::ResultCode::kNumber;
        break;
      case op::OpCode::kStats:
        result.code = op::ResultCode::kOk;
        result.value = std::string_view(value_).substr(0, 40 * sizeof(op::StatRow));
        result.total_length = static_cast<uint32_t>(result.value.size());
        break;
      case op::OpCode::kIterate:
        result.code = op::ResultCode::kOk;
        result.value = records_;
        result.total_length = static_cast<uint32_t>(records_.size());
        break;
      default:
        break;
    }
    return result;
  }

  static std::string some_records() {
    std::string records;
    for (size_t i = 1; i < 20; ++i) op::append_record(records, {}, std::string(i * 13, 'k'));
    return records;
  }

  const std::string value_;
  const std::string records_ = some_records();
  std::span<Op> batch_;
  size_t next_ = 0;
  bool round_begun_ = false;
  bool located_ = false;
};

class NoRelay final : public rpc::DeliveryRelay {
  void relay(const rpc::LaneBinding&, size_t, size_t, std::span<const transport::Piece>) override {
    base::check_failed(__FILE__, __LINE__, "this endpoint delivers from any thread");
  }
};

class Script {
 public:
  explicit Script(Input& input)
      : input_(input),
        layout_{2, 2 + input.take<uint8_t>() % 3u, 1024, input.take<uint8_t>() % 2 != 0 ? 1024u : 2048u},
        knows_deliver_(input.take<uint8_t>() % 2 != 0),
        poller_({.partition = 0, .lane_idle_ns = 100, .torn_limit_ns = 1000}, clock_, handler_, relay_) {
    open_session();
  }

  void run() {
    for (size_t step = 0; step < kMaxSteps && !input_.at_end(); ++step) act();
    poller_.detach(session_);
    EGRET_CHECK(poller_.awake_lanes() == 0);
  }

 private:
  uint16_t known_flags() const { return knows_deliver_ ? wire::kRequestFlags : 0; }

  void open_session() {
    endpoint_ = std::make_unique<FakeEndpoint>(layout_);
    ++session_;
    for (uint32_t lane = 0; lane < layout_.lanes; ++lane) {
      poller_.attach({.session_id = session_,
                      .lane = lane,
                      .home = 0,
                      .endpoint = endpoint_.get(),
                      .layout = layout_,
                      .seal = {.nonce = kNonce, .heads_only = false},
                      .knows_deliver = knows_deliver_});
      expected_[lane] = 1;
    }
  }

  void act() {
    const auto lane = input_.take<uint8_t>() % layout_.lanes;
    switch (input_.take<uint8_t>() % 8) {
      case 0:
        return write_raw();
      case 1:
      case 2:
        return write_message(lane);
      case 3:
        return clock_.advance_ns(input_.take<uint16_t>());
      case 4:
        return poller_.park(input_.take<uint8_t>() % 2 != 0);
      case 5:
        return poller_.ring(session_);
      case 6: {
        const auto want = input_.take<uint64_t>();
        std::memcpy(endpoint_->requests.get() + layout_.want_offset(lane), &want, sizeof want);
        return;
      }
      default:
        return poll();
    }
  }

  void write_raw() {
    const size_t offset = input_.take<uint16_t>() % layout_.request_bytes();
    const auto bytes = input_.bytes(std::min<size_t>(input_.take<uint8_t>(), layout_.request_bytes() - offset));
    std::copy(bytes.begin(), bytes.end(), endpoint_->requests.get() + offset);
  }

  // Seq and checksum are those of an honest client; the rest is the input's.
  void write_message(uint32_t lane) {
    const uint64_t seq = expected_[lane] + input_.take<uint8_t>() % layout_.window;
    std::byte* slot = endpoint_->requests.get() + layout_.request_offset(lane, seq);
    const size_t room = layout_.request_slot_size - sizeof(RequestHeader);
    const auto count = input_.take<uint16_t>();
    const auto flags = input_.take<uint16_t>();
    const auto body = input_.bytes(std::min<size_t>(input_.take<uint16_t>(), room));
    std::copy(body.begin(), body.end(), slot + sizeof(RequestHeader));
    wire::FieldWriter out(slot + wire::kRequestChecked);
    out.put(static_cast<uint32_t>(body.size()));
    out.put(static_cast<uint16_t>(count % (wire::kMaxOpsPerMessage + 2)));
    out.put(static_cast<uint16_t>(flags % 8 == 7 ? flags
                                                 : flags & known_flags()));  // one in eight: flags that were not agreed
    const uint64_t sum = wire::message_checksum(slot + wire::kRequestChecked, 8 + body.size(), kNonce, seq);
    wire::FieldWriter head(slot);
    head.put(seq);
    head.put(sum);
  }

  void poll() {
    const std::vector<std::byte> before(endpoint_->responses.get(),
                                        endpoint_->responses.get() + layout_.response_bytes());
    const uint64_t executed = handler_.executed;
    const uint64_t answered = poller_.counters().messages;
    const size_t messages = poller_.poll();
    EGRET_CHECK(poller_.counters().messages == answered + messages);
    uint64_t results = 0;
    size_t found = 0;
    for (uint32_t lane = 0; lane < layout_.lanes; ++lane) {
      const uint64_t first = expected_[lane];
      for (uint64_t seq = first; seq < first + layout_.window; ++seq) {
        const size_t offset = layout_.response_offset(lane, seq);
        const std::byte* slot = endpoint_->responses.get() + offset;
        uint64_t published = 0;
        std::memcpy(&published, slot, sizeof published);
        if (seq == expected_[lane] && published == seq) {
          check_taken(lane, seq);
          results += check_response(slot, seq);
          ++found;
          ++expected_[lane];
        } else {
          EGRET_CHECK(std::memcmp(slot, before.data() + offset, layout_.response_slot_size) == 0);
        }
      }
    }
    EGRET_CHECK(found == messages && results == handler_.executed - executed);
    if (!poller_.has_broken_sessions()) return;
    for (const rpc::BrokenSession& broken : poller_.take_broken_sessions()) {
      EGRET_CHECK(broken.session_id == session_ && broken.lane < layout_.lanes);
      EGRET_CHECK(broken.why > wire::DecodeError::kNone && broken.why <= wire::DecodeError::kTooMany);
    }
    poller_.detach(session_);
    open_session();
  }

  // The request that was answered, which nobody has touched since, had nothing in it that must not be.
  void check_taken(uint32_t lane, uint64_t seq) const {
    wire::RequestHeader header{};
    const std::byte* slot = endpoint_->requests.get() + layout_.request_offset(lane, seq);
    std::memcpy(&header, slot, sizeof header);
    EGRET_CHECK((header.flags & ~known_flags()) == 0 && header.op_count > 0 &&
                header.op_count <= wire::kMaxOpsPerMessage);
    std::vector<Op> ops(header.op_count);
    EGRET_CHECK(wire::decode_ops(slot + sizeof header, header.length, ops) == wire::DecodeError::kNone);
  }

  // The number of results in a response that must be well-formed.
  uint64_t check_response(const std::byte* slot, uint64_t seq) const {
    ResponseHeader header{};
    std::memcpy(&header, slot, sizeof header);
    EGRET_CHECK(header.length <= layout_.response_slot_size - sizeof header);
    const size_t covered = sizeof header - wire::kResponseChecked + header.length;
    EGRET_CHECK(header.checksum == wire::message_checksum(slot + wire::kResponseChecked, covered, kNonce, seq));
    const uint8_t known_hints = knows_deliver_ ? wire::kResponseHints : 0;
    EGRET_CHECK(header.status == 0 && header.reserved == 0 && (header.hints & ~known_hints) == 0);
    EGRET_CHECK(header.result_count > 0);
    wire::ResultReader reader(slot + sizeof header, header.length);
    Result result;
    for (uint32_t i = 0; i < header.result_count; ++i) EGRET_CHECK(reader.next(result));
    EGRET_CHECK(reader.at_end());
    return header.result_count;
  }

  Input& input_;
  const RegionLayout layout_;
  const bool knows_deliver_;
  base::ManualClock clock_;
  FakeHandler handler_;
  NoRelay relay_;
  std::unique_ptr<FakeEndpoint> endpoint_;
  rpc::SlotPoller poller_;
  uint64_t session_ = 0;
  uint64_t expected_[2] = {1, 1};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Input input(data, size);
  const size_t mode = input.take<uint8_t>();
  if (mode < 128) {
    decode_and_encode(input.bytes(size), mode);
  } else {
    Script(input).run();
  }
  return 0;
}
