// Any bytes as a backend's response memory. First as the body of one response: reading its results ends, and values lie in
// the input. Then as a script around a ClientLane, with and without kDeliver and kRelayed: ops are appended, slots hold
// garbage, nearly right and right responses, reads complete late, pushes have any bytes, ops time out. The lane never reads
// outside its memory, and calls every waiter exactly once, in the order in which the ops were appended.
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "input.h"
#include "rpc/client_lane.h"
#include "wire/bytes.h"
#include "wire/codec.h"

namespace {

using namespace egret;
using fuzz::Input;
using op::Op;
using op::Result;
using wire::RegionLayout;
using wire::ResponseHeader;

constexpr uint64_t kNonce = 0xfedcba987654321;
constexpr size_t kMaxSteps = 128;

void read_results(std::span<const std::byte> body) {
  wire::ResultReader reader(body.data(), body.size());
  Result result;
  size_t count = 0;
  while (!reader.at_end() && reader.next(result)) {
    ++count;
    const auto* at = reinterpret_cast<const std::byte*>(result.value.data());
    EGRET_CHECK(result.value.empty() || (at >= body.data() && at + result.value.size() <= body.data() + body.size()));
    EGRET_CHECK(result.code <= op::ResultCode::kForbidden);
    EGRET_CHECK(result.total_length >= result.value.size() && result.total_length <= op::kMaxValueLength);
  }
  EGRET_CHECK(count <= body.size() / 8);
}

// The client's end of a region, of exactly the layout's size; what is staged is remembered until the script completes
// it.
class FakeEndpoint final : public transport::ClientEndpoint {
 public:
  FakeEndpoint(const RegionLayout& layout, bool local)
      : layout_(layout),
        requests(new std::byte[layout.request_bytes()]()),
        responses(new std::byte[layout.response_bytes()]()) {
    limits_ = {.read_depth = 16, .deliver_is_wakeup = local, .fetch_is_local = local};
  }
  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte>, size_t&) override { return base::Status::ok(); }
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  base::Status map_region(const transport::RegionShape&) override { return base::Status::ok(); }
  const transport::Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return requests.get(); }
  const std::byte* response_image() const override { return responses.get(); }
  void stage_write(uint32_t, size_t offset, size_t length, uint64_t first_word) override {
    EGRET_CHECK(offset % 8 == 0 && length >= 8 && offset + length <= layout_.request_bytes());
    std::memcpy(requests.get() + offset, &first_word, sizeof first_word);
  }
  void stage_read(uint32_t, size_t offset, size_t length, uint64_t tag) override {
    EGRET_CHECK(length > 0 && offset + length <= layout_.response_bytes());
    reads.push_back(tag);
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    EGRET_CHECK(lane < layout_.lanes);
    stage_write(lane, offset, length, first_word);
  }
  void flush() override {}
  size_t poll(std::span<transport::Event>) override { return 0; }
  void ring(uint32_t lane) override { EGRET_CHECK(lane < layout_.lanes); }
  int data_fd() const override { return -1; }
  void arm() override {}
  void close() override {}

 private:
  const RegionLayout layout_;
  transport::Limits limits_;

 public:
  std::unique_ptr<std::byte[]> requests;
  std::unique_ptr<std::byte[]> responses;
  std::deque<uint64_t> reads;
};

// Answers must come in the order of the waiters' numbers, except for those whose time ran out before.
struct CountingWaiter final : rpc::Waiter {
  void on_result(const Result& result) override {
    EGRET_CHECK(answers++ == 0);
    size_t sum = 0;
    for (const char c : result.value) sum += static_cast<unsigned char>(c);
    if (result.code != op::ResultCode::kTimedOut) {
      EGRET_CHECK(number >= *next);
      *next = number + 1;
    }
    bytes_read = sum;
  }
  size_t number = 0;
  size_t* next = nullptr;
  size_t answers = 0;
  size_t bytes_read = 0;
};

class Script {
 public:
  explicit Script(Input& input)
      : input_(input),
        layout_{2, 2 + input.take<uint8_t>() % 7u, 1024, 1024},
        agreed_(input.take<uint8_t>()),
        endpoint_(layout_, (agreed_ & 1) != 0),
        lane_(1,
              {.layout = layout_,
               .seal = {.nonce = kNonce, .heads_only = false},
               .fetch = rpc::FetchOptions{},
               .endpoint = endpoint_,
               .times = {now_ns_, now_ns_},
               .durations = durations_,
               .active = active_,
               .knows_deliver = knows_deliver(),
               .is_relayed = is_relayed()},
              counters_) {
    active_.open(layout_.lanes);
  }

  void run() {
    bool alive = true;
    for (size_t step = 0; step < kMaxSteps && alive && !input_.at_end(); ++step) alive = act();
    lane_.fail_all();
    for (const auto& waiter : waiters_) EGRET_CHECK(waiter->answers == 1);
    EGRET_CHECK(lane_.outstanding() == 0);
  }

 private:
  bool knows_deliver() const { return (agreed_ & 2) != 0; }
  bool is_relayed() const { return (agreed_ & 4) != 0; }

  // False: the lane called the backend malformed, the session would end.
  bool act() {
    switch (input_.take<uint8_t>() % 9) {
      case 0:
        append();
        return true;
      case 1:
        lane_.seal();
        return true;
      case 2:
        lane_.stage_fetches(16);
        return true;
      case 3:
        return complete_read();
      case 4:
        write_raw();
        return true;
      case 5:
        write_response(slot_of_some_seq(), some_seq_);
        return true;
      case 6:
        return deliver();
      case 7:
        now_ns_ += input_.take<uint16_t>();
        lane_.expire(now_ns_ > 30'000 ? now_ns_ - 30'000 : 0);
        return true;
      default:
        lane_.stage_want();
        return true;
    }
  }

  void append() {
    Op op;
    static constexpr op::OpCode kCodes[] = {op::OpCode::kGet,    op::OpCode::kSet,   op::OpCode::kArith,
                                            op::OpCode::kChunk,  op::OpCode::kStats, op::OpCode::kPing,
                                            op::OpCode::kIterate};
    op.code = kCodes[input_.take<uint8_t>() % std::size(kCodes)];
    const bool has_key = op.code < op::OpCode::kFlush;
    const auto bytes = input_.bytes(input_.take<uint8_t>() % 250 + 1u);
    const std::string key = "k" + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size() % 249);
    if (has_key) op.key = key;
    if (!wire::fits_slot(layout_, op)) return;
    auto waiter = std::make_unique<CountingWaiter>();
    waiter->number = waiters_.size();
    waiter->next = &next_;
    if (!lane_.append(op, waiter.get())) return;
    waiters_.push_back(std::move(waiter));
  }

  bool complete_read() {
    if (endpoint_.reads.empty()) return true;
    const size_t which = input_.take<uint8_t>() % endpoint_.reads.size();
    const uint64_t tag = endpoint_.reads[which];
    endpoint_.reads.erase(endpoint_.reads.begin() + static_cast<ptrdiff_t>(which));
    const uint64_t first = lane_.progress().answered;
    const bool well_formed = lane_.on_fetched(tag);
    check_taken(first);
    return well_formed;
  }

  // Responses in the image that were taken for answers, from seq `first` on, had nothing in them that must not be.
  void check_taken(uint64_t first) const {
    for (uint64_t seq = first; seq < lane_.progress().answered; ++seq) {
      check_strict(endpoint_.responses.get() + layout_.response_offset(1, seq));
    }
  }

  void check_strict(const std::byte* slot) const {
    ResponseHeader header{};
    std::memcpy(&header, slot, sizeof header);
    const uint8_t known_hints = knows_deliver() ? wire::kResponseHints : 0;
    EGRET_CHECK(header.status == 0 && header.reserved == 0 && (header.hints & ~known_hints) == 0);
    wire::ResultReader reader(slot + sizeof header, header.length, {.is_relayed = is_relayed()});
    Result result;
    for (uint32_t i = 0; i < header.result_count; ++i) EGRET_CHECK(reader.next(result));
    EGRET_CHECK(reader.at_end());
  }

  void write_raw() {
    const size_t offset = input_.take<uint16_t>() % layout_.response_bytes();
    const auto bytes = input_.bytes(std::min<size_t>(input_.take<uint8_t>(), layout_.response_bytes() - offset));
    std::copy(bytes.begin(), bytes.end(), endpoint_.responses.get() + offset);
  }

  std::byte* slot_of_some_seq() {
    some_seq_ = lane_.progress().answered + input_.take<uint8_t>() % (layout_.window + 1);
    return endpoint_.responses.get() + layout_.response_offset(1, some_seq_);
  }

  // Seq and checksum are right, the rest is the input's: as many results as it likes, of which some are well-formed.
  size_t write_response(std::byte* slot, uint64_t seq) {
    const size_t room = layout_.response_slot_size - sizeof(ResponseHeader);
    const auto count = input_.take<uint8_t>();
    const auto status = input_.take<uint8_t>();
    std::byte* const body = slot + sizeof(ResponseHeader);
    size_t length = 0;
    if (input_.take<uint8_t>() % 4 == 0) {
      const auto bytes = input_.bytes(std::min<size_t>(input_.take<uint16_t>(), room));
      std::copy(bytes.begin(), bytes.end(), body);
      length = bytes.size();
    } else {
      Op get;
      get.code = op::OpCode::kGet;
      get.options = count % 2 == 0 ? 0 : op::kWantMeta;
      for (uint32_t i = 0; i < count && length + wire::min_result_size(get) <= room; ++i) {
        Result hit;
        hit.code = static_cast<op::ResultCode>(input_.take<uint8_t>() % 20);
        const auto value = input_.bytes(input_.take<uint8_t>());
        hit.value = std::string_view(reinterpret_cast<const char*>(value.data()), value.size());
        hit.total_length = static_cast<uint32_t>(value.size() + input_.take<uint8_t>() % 2);
        hit.marks = static_cast<uint8_t>(value.size());
        hit.ttl = static_cast<int64_t>(i) - 1;
        length = static_cast<size_t>(wire::encode_result(body + length, room - length, get, hit) - body);
      }
    }
    // Mostly as it must be; else a status, hints, something reserved that is not 0, or a byte after the last result.
    const uint8_t wrong = status % 8;
    if (wrong == 1 && length < room) body[length++] = std::byte{status};
    wire::FieldWriter out(slot + wire::kResponseChecked);
    out.put(static_cast<uint32_t>(length));
    out.put(uint16_t{count});
    out.put(static_cast<uint8_t>(wrong == 0 ? status : 0));
    out.put(static_cast<uint8_t>(wrong == 2 ? status : 0));
    out.put(input_.take<uint32_t>());
    out.put(uint32_t{wrong == 3 ? uint32_t{1} << status / 8 : 0});
    const size_t covered = sizeof(ResponseHeader) - wire::kResponseChecked + length;
    wire::FieldWriter head(slot);
    head.put(seq);
    head.put(wire::message_checksum(slot + wire::kResponseChecked, covered, kNonce, seq));
    head.put(input_.take<uint64_t>());  // asleep
    return sizeof(ResponseHeader) + length;
  }

  bool deliver() {
    std::vector<std::byte> whole(layout_.response_slot_size);
    size_t length = write_response(whole.data(), lane_.progress().answered);
    if (input_.take<uint8_t>() % 4 == 0) length = std::min<size_t>(length, input_.take<uint16_t>());
    const auto* exact = new std::byte[length];  // aligned, and a sanitizer sees its end
    const std::unique_ptr<const std::byte[]> owned(exact);
    std::memcpy(const_cast<std::byte*>(exact), whole.data(), length);
    const uint64_t first = lane_.progress().answered;
    const bool well_formed = lane_.on_delivered({exact, length});
    if (lane_.progress().answered > first) check_strict(exact);
    check_taken(first + 1);
    return well_formed;
  }

  Input& input_;
  const RegionLayout layout_;
  const uint8_t agreed_;  // bits: the endpoint is local, kDeliver, kRelayed
  FakeEndpoint endpoint_;
  uint64_t now_ns_ = 1;
  std::vector<std::unique_ptr<CountingWaiter>> waiters_;
  size_t next_ = 0;
  uint64_t some_seq_ = 1;
  rpc::LaneCounters counters_;
  base::Histogram durations_;
  rpc::ActiveLanes active_{nullptr};
  rpc::ClientLane lane_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Input input(data, size);
  if (input.take<uint8_t>() % 4 == 0) {
    read_results(input.bytes(size));
  } else {
    Script(input).run();
  }
  return 0;
}
