// Any bytes as the request memory of a client whose ops a relay passes on to a backend. An honest client uses the same relay,
// and the relay's session with the backend comes and goes. Whatever the hostile client writes, it can only end its own
// session; each op of the honest client is answered once, in order, rightly or with an error; and the backend never
// gets an op that the hostile client's rules forbid.
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "input.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"
#include "rpc/relay/relay.h"
#include "rpc/slot_poller.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire/handshake.h"

namespace {

using namespace egret;
using fuzz::Input;
using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;
using wire::RegionLayout;

constexpr uint64_t kNonce = 0x123456789abcdef;
constexpr uint64_t kHashSeed = 3;
constexpr size_t kMaxSteps = 96;
constexpr uint32_t kLanes = 2;
constexpr RegionLayout kOutbound{kLanes, 4, 2048, 2048};
constexpr RegionLayout kInbound{kLanes, 2, 1024, 1024};
constexpr uint64_t kHostile = 1, kHonest = 2;

// A region, and both ends of it: what one writes, the other sees.
struct Region {
  explicit Region(const RegionLayout& layout)
      : requests(new std::byte[layout.request_bytes()]()), responses(new std::byte[layout.response_bytes()]()) {}
  std::unique_ptr<std::byte[]> requests, responses;
};

class ServerEnd final : public transport::ServerEndpoint {
 public:
  explicit ServerEnd(std::shared_ptr<Region> region) : region_(std::move(region)) {
    limits_.deliver_is_wakeup = limits_.fetch_is_local = true;
  }
  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte>, size_t&) override { return base::Status::ok(); }
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  base::Status create_region(const transport::RegionShape&) override { return base::Status::ok(); }
  const transport::Limits& limits() const override { return limits_; }
  const std::string& peer() const override { return peer_; }
  const std::byte* request_memory() const override { return region_->requests.get(); }
  std::byte* response_memory() override { return region_->responses.get(); }
  void deliver(uint32_t, size_t, size_t) override {}
  size_t poll(std::span<transport::Event>) override { return 0; }
  int data_fd() const override { return -1; }
  void arm() override {}
  void close() override {}

 private:
  const std::shared_ptr<Region> region_;
  transport::Limits limits_;
  const std::string peer_ = "the fuzzer";
};

// Is granted what `grant` says, in the region that `region` makes.
struct Offer {
  wire::Grant grant;
  std::shared_ptr<Region> region;
  bool is_open = true;  // false: connecting fails
};

class ClientEnd final : public transport::ClientEndpoint {
 public:
  explicit ClientEnd(const Offer& offer) : region_(offer.region), grant_(encode(offer.grant)) {}
  int control_fd() const override { return -1; }
  base::Status receive_frame(std::span<std::byte> frame, size_t& length) override {
    length = std::exchange(was_granted_, true) ? 0 : grant_.size();
    std::copy_n(grant_.begin(), length, frame.begin());
    return base::Status::ok();
  }
  base::Status send_frame(std::span<const std::byte>, bool) override { return base::Status::ok(); }
  base::Status map_region(const transport::RegionShape&) override { return base::Status::ok(); }
  const transport::Limits& limits() const override { return limits_; }
  std::byte* request_image() override { return region_->requests.get(); }
  const std::byte* response_image() const override { return region_->responses.get(); }
  void stage_write(uint32_t, size_t offset, size_t, uint64_t first_word) override {
    std::memcpy(region_->requests.get() + offset, &first_word, sizeof first_word);
  }
  void stage_ringing_write(uint32_t lane, size_t offset, size_t length, uint64_t first_word) override {
    stage_write(lane, offset, length, first_word);
  }
  void stage_read(uint32_t, size_t, size_t, uint64_t tag) override { reads_.push_back(tag); }
  void flush() override {}
  size_t poll(std::span<transport::Event> events) override {
    size_t count = 0;
    for (; count < events.size() && !reads_.empty(); ++count, reads_.pop_front()) {
      events[count] = {.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = reads_.front(), .bytes = {}};
    }
    return count;
  }
  void ring(uint32_t) override {}
  int data_fd() const override { return -1; }
  void arm() override {}
  void close() override {}

 private:
  const std::shared_ptr<Region> region_;
  const std::vector<std::byte> grant_;
  bool was_granted_ = false;
  std::deque<uint64_t> reads_;
  transport::Limits limits_{.read_depth = 16, .deliver_is_wakeup = true, .fetch_is_local = true};
};

// Values are their keys. Nothing but what the rules allow may come.
class Backend final : public rpc::OpHandler {
 public:
  void begin_round() override {}
  void foresee(std::span<Op>) override {}
  void prepare(std::span<Op> ops, std::span<const rpc::LaneId>) override { ops_ = ops; }
  void locate() override {}
  Result execute(size_t index) override {
    const Op& op = ops_[index];
    EGRET_CHECK(op.code != OpCode::kFlush && op.code != OpCode::kIterate && op.code != OpCode::kAdmin && op.owner == 0);
    EGRET_CHECK(!op::has_key(op.code) || op.key.starts_with("a") || op.key.starts_with("honest"));
    Result result;
    result.code = ResultCode::kUnsupported;
    result.cas = result.version = op.key.size();
    switch (op.code) {
      case OpCode::kGet:
        result.code = ResultCode::kHit;
        value_ = op.key;
        if (!op.key.starts_with("honest") && op.key.size() % 3 == 0) value_.resize(1500, 'v');
        result.value = (op.options & op::kNoValue) != 0 ? std::string_view() : std::string_view(value_);
        result.total_length = static_cast<uint32_t>(value_.size() + (op.key.size() % 5 == 4 ? 1000 : 0));
        break;
      case OpCode::kSet:
      case OpCode::kCommit:
        result.code = ResultCode::kStored;
        break;
      case OpCode::kUpload:
      case OpCode::kPing:
        result.code = ResultCode::kOk;
        break;
      case OpCode::kDelete:
        result.code = ResultCode::kDeleted;
        break;
      default:
        break;
    }
    return result;
  }
  void lane_dropped(rpc::LaneId) override {}

 private:
  std::span<Op> ops_;
  std::string value_;
};

class NoRelay final : public rpc::DeliveryRelay {
  void relay(const rpc::LaneBinding&, size_t, size_t, std::span<const transport::Piece>) override {
    base::check_failed(__FILE__, __LINE__, "this endpoint delivers from any thread");
  }
};

struct Observer final : rpc::SessionObserver {
  explicit Observer(rpc::ActiveSessions& sessions) : active(sessions) {}
  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession&) override { return base::Status::ok(); }
  void on_session_active(rpc::ClientSession& session) override { active.add(session); }
  void on_session_lost(rpc::ClientSession&, const std::string&, bool) override {}
  rpc::ActiveSessions& active;
};

// A get of the honest client.
struct Asked final : rpc::Waiter {
  explicit Asked(std::string name) : key(std::move(name)) {}
  void on_result(const Result& result) override {
    EGRET_CHECK(!is_answered);
    is_answered = true;
    const bool is_told = result.code == ResultCode::kSessionLost || result.code == ResultCode::kTimedOut ||
                         result.code == ResultCode::kNotSent;
    // A part is right, too: ops that wait together share a slot.
    const bool is_right = key.starts_with(result.value) && result.total_length == key.size();
    EGRET_CHECK(is_told || (result.code == ResultCode::kHit && is_right));
  }
  const std::string key;
  bool is_answered = false;
};

// What connect(), a plain function, gives: by address, set by the script that runs.
std::map<std::string, Offer*> offers;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                   const transport::ConnectOptions&) {
  using Endpoint = std::unique_ptr<transport::ClientEndpoint>;
  const Offer& offer = *offers.at(address);
  if (!offer.is_open) return base::Expected<Endpoint>(base::Status::error("gone"));
  return base::Expected<Endpoint>(Endpoint(std::make_unique<ClientEnd>(offer)));
}

rpc::SessionOptions options_for(uint64_t relayed_to) {
  rpc::SessionOptions options;
  options.address = relayed_to == 0 ? "backend" : "relay";
  options.worker_id = 1 + relayed_to;
  options.relayed_to = relayed_to;
  options.window = 4;
  return options;
}

class Script {
 public:
  explicit Script(Input& input)
      : input_(input),
        poller_({.partition = 0, .lane_idle_ns = 100, .torn_limit_ns = 1000}, clock_, backend_, no_relay_),
        relay_({.polling = {.partition = 0, .lane_idle_ns = 100, .torn_limit_ns = 1000},
                .kept_memory = 8192,
                .collected_memory = 8192},
               clock_, next_upload_),
        outbound_(options_for(0), clock_, out_observer_, connect),
        honest_(options_for(1), clock_, honest_observer_, connect) {
    offers = {{"backend", &to_backend_}, {"relay", &to_relay_}};
    begin();
  }

  void run() {
    for (size_t step = 0; step < kMaxSteps && !input_.at_end(); ++step) act();
    for (int round = 0; round < 400 && !is_all_answered(); ++round) {
      clock_.advance_ns(20'000'000);
      outbound_.tick();
      honest_.tick();
      relay_.tick();
      pass();
    }
    EGRET_CHECK(is_all_answered());
    honest_.close(rpc::ClientSession::State::kClosed);
    outbound_.close(rpc::ClientSession::State::kClosed);
    relay_.detach(kHostile);
    relay_.detach(kHonest);
    if (backend_session_ != 0) poller_.detach(backend_session_);
  }

 private:
  void begin() {
    open_outbound();
    attach_hostile();
    to_relay_.region = std::make_shared<Region>(kInbound);
    to_relay_.grant = {.features = wire::kRelayed,
                       .session_id = kHonest,
                       .nonce = kNonce,
                       .epoch = 1,
                       .hash_seed = kHashSeed,
                       .item_size_max = 1 << 20,
                       .layout = kInbound};
    honest_end_ = std::make_unique<ServerEnd>(to_relay_.region);
    attach(kHonest, *honest_end_, {});
    honest_.start();
    honest_.on_control_ready();
    EGRET_CHECK(honest_.is_open());
  }

  void open_outbound() {
    to_backend_.region = std::make_shared<Region>(kOutbound);
    to_backend_.grant = {.session_id = ++backend_session_,
                         .nonce = kNonce + backend_session_,
                         .epoch = 1,
                         .hash_seed = kHashSeed,
                         .item_size_max = 1 << 20,
                         .layout = kOutbound};
    backend_end_ = std::make_unique<ServerEnd>(to_backend_.region);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      poller_.attach({.session_id = backend_session_,
                      .lane = lane,
                      .home = 0,
                      .endpoint = backend_end_.get(),
                      .layout = kOutbound,
                      .seal = {.nonce = to_backend_.grant.nonce, .heads_only = false}});
    }
    outbound_.start();
    outbound_.on_control_ready();
    EGRET_CHECK(outbound_.is_open());
  }

  void attach(uint64_t session, ServerEnd& end, const rpc::relay::Rules& rules) {
    relay_.attach({.session_id = session,
                   .endpoint = &end,
                   .layout = kInbound,
                   .seal = {.nonce = kNonce, .heads_only = false},
                   .rules = std::make_shared<const rpc::relay::Rules>(rules),
                   .outbound = &outbound_});
  }

  void attach_hostile() {
    hostile_ = std::make_shared<Region>(kInbound);
    hostile_end_ = std::make_unique<ServerEnd>(hostile_);
    attach(kHostile, *hostile_end_, {.rights = op::kMayRead | op::kMayWrite, .prefixes = {"a"}});
    for (uint64_t& seq : next_) seq = 1;
  }

  void act() {
    const auto lane = input_.take<uint8_t>() % kLanes;
    switch (input_.take<uint8_t>() % 10) {
      case 0:
        return write_raw();
      case 1:
      case 2:
        return write_message(lane);
      case 3:
        return clock_.advance_ns(input_.take<uint32_t>() % 100'000'000);
      case 4:
        relay_.park(input_.take<uint8_t>() % 2 != 0);
        return relay_.ring(kHostile);
      case 5:
        return ask();
      case 6:
        return lose_or_open();
      case 7:
        relay_.tick();
        return outbound_.tick();
      default:
        return pass();
    }
  }

  void lose_or_open() {
    if (!outbound_.is_open()) return open_outbound();
    outbound_.close(rpc::ClientSession::State::kClosed);
    poller_.detach(backend_session_);
  }

  void write_raw() {
    const size_t offset = input_.take<uint16_t>() % kInbound.request_bytes();
    const auto bytes = input_.bytes(std::min<size_t>(input_.take<uint8_t>(), kInbound.request_bytes() - offset));
    std::copy(bytes.begin(), bytes.end(), hostile_->requests.get() + offset);
  }

  // Seq and checksum are those of a client that keeps to the format; the rest is the input's, or ops that decode.
  void write_message(uint32_t lane) {
    const uint64_t seq = next_[lane]++;
    std::byte* slot = hostile_->requests.get() + kInbound.request_offset(lane, seq);
    const size_t room = kInbound.request_slot_size - sizeof(wire::RequestHeader);
    uint16_t count = 0;
    std::vector<std::byte> body;
    if (input_.take<uint8_t>() % 4 == 0) {
      count = input_.take<uint8_t>();
      const auto raw = input_.bytes(std::min<size_t>(input_.take<uint16_t>(), room));
      body.assign(raw.begin(), raw.end());
    } else {
      while (count < 1 + input_.take<uint8_t>() % 8 && add_op(body, room)) ++count;
    }
    std::copy(body.begin(), body.end(), slot + sizeof(wire::RequestHeader));
    wire::FieldWriter out(slot + wire::kRequestChecked);
    out.put(static_cast<uint32_t>(body.size()));
    out.put(count);
    out.put(uint16_t{0});
    const uint64_t sum = wire::message_checksum(slot + wire::kRequestChecked, 8 + body.size(), kNonce, seq);
    wire::FieldWriter head(slot);
    head.put(seq);
    head.put(sum);
  }

  bool add_op(std::vector<std::byte>& body, size_t room) {
    Op op;
    op.code = static_cast<OpCode>(1 + input_.take<uint8_t>() % 13);
    op.options = input_.take<uint8_t>();
    op.version = input_.take<uint64_t>();
    op.offset = input_.take<uint16_t>();
    op.upload_id = input_.take<uint8_t>() % 4;
    std::string key = input_.take<uint8_t>() % 4 == 0 ? "b" : "a";
    key.append(input_.take<uint8_t>() % 40, 'k');
    if (op::has_key(op.code)) op.key = key;
    const std::string value(input_.take<uint8_t>() * 3u, 'v');
    if (op.code == OpCode::kSet || op.code == OpCode::kUpload) op.value = value;
    const size_t size = wire::encoded_op_size(op);
    if (body.size() + size > room) return false;
    body.resize(body.size() + size);
    wire::encode_op(body.data() + body.size() - size, op);
    return true;
  }

  void ask() {
    asked_.push_back(std::make_unique<Asked>("honest" + std::to_string(asked_.size())));
    Op get;
    get.code = OpCode::kGet;
    get.key = asked_.back()->key;
    get.hash = honest_.lanes().hash(get.key);
    honest_active_.begin_pass();
    if (!honest_.lanes().of(get.hash).append(get, asked_.back().get())) asked_.pop_back();
    honest_active_.flush();
  }

  void pass() {
    honest_active_.begin_pass();
    out_active_.begin_pass();
    honest_active_.flush();
    relay_.ring(kHonest);
    relay_.poll();
    out_active_.flush();
    poller_.ring(backend_session_);
    if (outbound_.is_open()) poller_.poll();
    out_active_.fetch();
    out_active_.hand_out_credit();
    relay_.poll();
    relay_.push();
    out_active_.flush();
    honest_active_.fetch();
    EGRET_CHECK(!poller_.has_broken_sessions());
    if (!relay_.has_broken_sessions()) return;
    for (const rpc::BrokenSession& broken : relay_.take_broken_sessions()) EGRET_CHECK(broken.session_id == kHostile);
    relay_.detach(kHostile);
    if (!outbound_.is_open()) open_outbound();  // sessions are given only while there is one
    attach_hostile();
  }

  bool is_all_answered() const {
    return std::ranges::all_of(asked_, [](const auto& each) { return each->is_answered; });
  }

  Input& input_;
  base::ManualClock clock_;
  Backend backend_;
  NoRelay no_relay_;
  Offer to_backend_, to_relay_;
  std::shared_ptr<Region> hostile_;
  std::unique_ptr<ServerEnd> backend_end_, hostile_end_, honest_end_;
  std::vector<std::unique_ptr<Asked>> asked_;
  rpc::ActiveSessions out_active_, honest_active_;
  Observer out_observer_{out_active_}, honest_observer_{honest_active_};
  rpc::SlotPoller poller_;
  uint32_t next_upload_ = 1;
  rpc::relay::Relay relay_;
  rpc::ClientSession outbound_, honest_;
  uint64_t backend_session_ = 0;
  uint64_t next_[kLanes] = {1, 1};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Input input(data, size);
  Script(input).run();
  return 0;
}
