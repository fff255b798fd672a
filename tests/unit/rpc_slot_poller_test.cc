// The server's side of the slots: what it takes, what it executes, what it publishes, whom it wakes.
#include <atomic>
#include <deque>
#include <map>
#include <thread>

#include "base/clock.h"
#include "base/slot_copy.h"
#include "rpc/slot_poller.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::rpc;
using op::ResultCode;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 2, .window = 8, .request_slot_size = 1024, .response_slot_size = 1024};

// Answers every op with its key for a value, and writes down what it was asked.
class EchoHandler final : public OpHandler {
 public:
  void begin_round() override { ++rounds; }
  void foresee(std::span<op::Op> ops) override {
    for (const op::Op& op : ops) foreseen.emplace_back(op.key);
  }
  void prepare(std::span<op::Op> ops, std::span<const LaneId> lanes) override {
    batches.push_back(ops.size());
    for (const op::Op& op : ops) {
      REQUIRE_FALSE(foreseen.empty());
      CHECK(foreseen.front() == op.key);
      foreseen.pop_front();
    }
    ops_ = ops;
    CHECK(ops.size() == lanes.size());
  }
  void locate() override { ++locates; }
  op::Result execute(size_t index) override {
    keys.emplace_back(ops_[index].key);
    key_places.push_back(ops_[index].key.data());
    if (ops_[index].code == op::OpCode::kSet) {
      op::Result stored;
      stored.code = ResultCode::kStored;
      return stored;
    }
    const std::string_view key = ops_[index].key;
    const auto named = values.find(key);
    op::Result result = hit(named != values.end() ? named->second : value.empty() ? key : std::string_view(value));
    result.version = 5;
    if (const auto dear = works.find(key); dear != works.end()) result.work = dear->second;
    return result;
  }
  bool keep(size_t, const op::Result&) override {
    ++asked_to_keep;
    return keeps;
  }
  void lane_dropped(LaneId lane) override { dropped.push_back(lane); }

  bool keeps = true;
  int asked_to_keep = 0;
  std::vector<std::string> keys;
  std::vector<const char*> key_places;
  std::deque<std::string> foreseen;  // and not prepared yet
  std::vector<size_t> batches;
  std::vector<LaneId> dropped;
  std::string value;
  std::map<std::string, std::string, std::less<>> values;  // those of these keys
  std::map<std::string, uint16_t, std::less<>> works;      // beyond the unit of every op, of these keys
  int rounds = 0, locates = 0;

 private:
  std::span<op::Op> ops_;
};

struct Fixture : DeliveryRelay {
  explicit Fixture(bool local = false) : endpoint(kLayout, local), poller({.partition = 0}, clock, handler, *this) {}

  LaneId attach(uint64_t session = 1, uint32_t home = 0, transport::ServerEndpoint* at = nullptr) {
    return poller.attach({session, 0, home, at != nullptr ? at : &endpoint, kLayout, {kNonce, false}});
  }
  // Of a client that can ask with the request.
  LaneId attach_asking(uint32_t home = 0) {
    return poller.attach({.session_id = 1,
                          .home = home,
                          .endpoint = &endpoint,
                          .layout = kLayout,
                          .seal = {.nonce = kNonce},
                          .knows_deliver = true});
  }
  void relay(const LaneBinding& lane, size_t offset, size_t length, std::span<const transport::Piece> pieces) override {
    relayed.push_back(lane.session_id);
    relays.push_back({lane.lane, offset, length});
    relayed_pieces.emplace_back(pieces.begin(), pieces.end());
  }
  bool sends_pieces(const LaneBinding&) const override { return may_send_pieces; }
  void put(uint64_t seq, std::vector<op::Op> ops, int count = -1, int length = -1, uint16_t flags = 0) {
    put_request(endpoint.requests.data(), kLayout, 0, seq, ops, count, length, kNonce, flags);
  }
  // Asks with the request; the hints of the response to it.
  uint8_t ask(uint64_t seq, uint16_t flags = 0) {
    put(seq, {get_of("key")}, -1, -1, flags);
    REQUIRE(poller.poll() == 1);
    const std::byte* const slot = endpoint.responses.data() + kLayout.response_offset(0, seq);
    return std::to_integer<uint8_t>(slot[offsetof(wire::ResponseHeader, hints)]);
  }
  // What is published in the slot of `seq`; empty when it is not whole.
  std::vector<op::Result> results(uint64_t seq) {
    const std::byte* slot = endpoint.responses.data() + kLayout.response_offset(0, seq);
    wire::ResponseHeader header;
    std::memcpy(&header, slot, sizeof header);
    if (header.seq != seq) return {};
    CHECK(header.checksum == wire::message_checksum(slot + wire::kResponseChecked, 16 + header.length, kNonce, seq));
    std::vector<op::Result> all(header.result_count);
    wire::ResultReader reader(slot + sizeof header, header.length);
    for (op::Result& result : all) CHECK(reader.next(result));
    CHECK(reader.at_end());
    return all;
  }
  uint64_t asleep(uint64_t seq) {
    return base::observe_word(endpoint.responses.data() + kLayout.response_offset(0, seq) +
                              offsetof(wire::ResponseHeader, asleep));
  }

  base::ManualClock clock;
  EchoHandler handler;
  FakeServerEndpoint endpoint;
  SlotPoller poller;
  std::vector<uint64_t> relayed;
  std::vector<FakeServerEndpoint::Delivery> relays;
  std::vector<std::vector<transport::Piece>> relayed_pieces;  // one entry for each of relays
  bool may_send_pieces = false;
};

}  // namespace

// --- serving -------------------------------------------------------------------------------------------------------

TEST_CASE("a message's ops are executed in order, once, and answered in one response") {
  Fixture f;
  f.attach();
  CHECK(f.poller.poll() == 0);
  f.put(1, {get_of("one"), get_of("two")});
  CHECK(f.poller.poll() == 1);
  CHECK(f.poller.poll() == 0);
  CHECK(f.handler.keys == std::vector<std::string>{"one", "two"});
  const auto results = f.results(1);
  REQUIRE(results.size() == 2);
  CHECK(results[0].value == "one");
  CHECK(results[1].value == "two");
}

TEST_CASE("ops come to the handler in batches that it can hold") {
  Fixture f;
  f.attach();
  f.put(1, std::vector<op::Op>(20, get_of("a")));
  f.put(2, std::vector<op::Op>(20, get_of("b")));
  CHECK(f.poller.poll() == 2);
  CHECK(f.handler.batches == std::vector<size_t>{32, 8});
  CHECK(f.handler.locates == 2);
  CHECK(f.handler.rounds == 1);
  CHECK(f.results(2).size() == 20);
}

TEST_CASE("only the expected seq is taken, and what follows it in order") {
  Fixture f;
  f.attach();
  f.put(2, {get_of("two")});
  f.put(3, {get_of("three")});
  CHECK(f.poller.poll() == 0);
  f.put(1, {get_of("one")});
  while (f.poller.poll() > 0) {
  }
  CHECK(f.handler.keys == std::vector<std::string>{"one", "two", "three"});
}

TEST_CASE("no lane keeps the others waiting, however much it sends") {
  Fixture f;
  FakeServerEndpoint other(kLayout, false);
  f.attach(1);
  f.attach(2, 0, &other);
  for (uint64_t seq = 1; seq <= 8; ++seq) f.put(seq, std::vector<op::Op>(20, get_of("much")));
  const std::vector<op::Op> little{get_of("little")};
  put_request(other.requests.data(), kLayout, 0, 1, little);
  f.poller.poll();
  CHECK(std::ranges::find(f.handler.keys, "little") != f.handler.keys.end());
}

TEST_CASE("between two messages of a lane, another's dear ops take no more work than one lane's share and one op") {
  Fixture f;
  FakeServerEndpoint other(kLayout, false);
  f.attach(1);
  f.attach(2, 0, &other);
  constexpr uint16_t kWork = 300;
  f.handler.works = {{"dear", kWork}};
  for (uint64_t seq = 1; seq <= 4; ++seq) f.put(seq, std::vector<op::Op>(20, get_of("dear")));
  const std::vector<op::Op> cheap{get_of("cheap")};
  uint64_t asked = 0;
  for (int round = 0; round < 100 && f.results(4).empty(); ++round) {
    put_request(other.requests.data(), kLayout, 0, ++asked, cheap);
    const size_t before = f.handler.keys.size();
    REQUIRE(f.poller.poll() > 0);
    // What was asked before the round is answered in it, whatever else there is.
    CHECK(base::observe_word(other.responses.data() + kLayout.response_offset(0, asked)) == asked);
    const auto done = std::span(f.handler.keys).subspan(before);
    const auto at = std::ranges::find(done, "cheap");
    REQUIRE(at != done.end());
    CHECK((at - done.begin()) * (kWork + 1) < SlotPoller::kLaneWork + kWork + 1);
    CHECK((done.end() - at - 1) * (kWork + 1) < SlotPoller::kLaneWork + kWork + 1);
  }
  CHECK(std::ranges::count(f.handler.keys, "dear") == 80);
  for (uint64_t seq = 1; seq <= 4; ++seq) {
    const auto results = f.results(seq);
    REQUIRE(results.size() == 20);
    for (const op::Result& result : results) CHECK(result.value == "dear");
  }
  CHECK(f.poller.counters().messages == 4 + asked);
  CHECK(f.poller.counters().ops == 80 + asked);
  CHECK(f.poller.counters().put_off > 0);
}

TEST_CASE("each KiB of a result is work, too, so large values have their turns like dear ops") {
  constexpr wire::RegionLayout kLarge{
      .lanes = 1, .window = 8, .request_slot_size = 1024, .response_slot_size = 512 << 10};
  constexpr size_t kKiB = 16;  // of each value
  constexpr size_t kOps = 16;  // of each message
  Fixture f;
  FakeServerEndpoint endpoint(kLarge, false);
  f.poller.attach({1, 0, 0, &endpoint, kLarge, {kNonce, false}});
  f.handler.values = {{"large", std::string(kKiB << 10, 'x')}};
  const std::vector<op::Op> ops(kOps, get_of("large"));
  for (uint64_t seq = 1; seq <= kLarge.window; ++seq) put_request(endpoint.requests.data(), kLarge, 0, seq, ops);
  const size_t all = kOps * kLarge.window;
  while (f.handler.keys.size() < all) {
    const size_t before = f.handler.keys.size();
    REQUIRE(f.poller.poll() > 0);
    CHECK((f.handler.keys.size() - before) * (kKiB + 1) < SlotPoller::kLaneWork + kKiB + 1);
  }
  CHECK(f.poller.counters().put_off > 0);
}

// --- values that are sent from where they are

namespace {

constexpr wire::RegionLayout kLong{.lanes = 1, .window = 2, .request_slot_size = 1024, .response_slot_size = 200 << 10};

// A lane whose results are pushed, from where the handler has them.
struct Pushed : Fixture {
  explicit Pushed(bool checks_heads_only = true) : heads_only(checks_heads_only) {
    may_send_pieces = true;
    far.push_results();
    poller.attach(
        {.session_id = 1, .endpoint = &far, .layout = kLong, .seal = {.nonce = kNonce, .heads_only = heads_only}});
    std::memset(far.responses.data(), 0xee, kLong.response_bytes());
  }
  void ask(uint64_t seq, const std::vector<op::Op>& ops) {
    put_request(far.requests.data(), kLong, 0, seq, ops, -1, -1, kNonce, 0, heads_only);
    while (poller.poll() > 0) {
    }
  }
  // What a client gets of the last response: the slot with its pieces in place.
  std::vector<op::Result> received() {
    const std::byte* const slot = far.responses.data() + relays.back().offset;
    whole.assign(slot, slot + relays.back().length);
    transport::copy_pieces(whole.data(), relayed_pieces.back());
    wire::ResponseHeader header;
    std::memcpy(&header, whole.data(), sizeof header);
    std::vector<op::Result> all(header.result_count);
    wire::ResultReader reader(whole.data() + sizeof header, header.length);
    for (op::Result& result : all) REQUIRE(reader.next(result));
    CHECK(reader.at_end());
    return all;
  }
  bool slot_lacks_pieces() const {
    const std::byte* const slot = far.responses.data() + relays.back().offset;
    return std::ranges::all_of(relayed_pieces.back(), [&](const transport::Piece& piece) {
      return std::ranges::all_of(std::span(slot + piece.offset, piece.bytes.size()),
                                 [](std::byte each) { return each == std::byte{0xee}; });
    });
  }

  const bool heads_only;
  FakeServerEndpoint far{kLong, false};
  std::vector<std::byte> whole;
};

std::string long_value(char first) {
  std::string value(SlotPoller::kLeastKept + 1000, first);
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(first + i % 20);
  return value;
}

}  // namespace

TEST_CASE("a long value is sent from where the handler keeps it, between what is in the slot") {
  Pushed f;
  f.handler.values = {{"one", long_value('a')}, {"two", long_value('A')}};
  f.ask(1, {get_of("small"), get_of("one"), get_of("small"), get_of("two")});
  REQUIRE(f.relayed_pieces.size() == 1);
  REQUIRE(f.relayed_pieces[0].size() == 2);
  CHECK(f.relayed_pieces[0][0].bytes.data() == f.handler.values["one"].data());
  CHECK(f.slot_lacks_pieces());
  const auto results = f.received();
  REQUIRE(results.size() == 4);
  CHECK(results[0].value == "small");
  CHECK(results[1].value == f.handler.values["one"]);
  CHECK(results[3].value == f.handler.values["two"]);
}

TEST_CASE(
    "a lane whose results are pushed writes nothing into its slots when it falls asleep: they may be on their way") {
  Pushed f;
  f.ask(1, {get_of("small")});
  const std::span slots(f.far.responses.data(), kLong.response_bytes());
  const std::vector<std::byte> before(slots.begin(), slots.end());
  f.poller.park_pushed();
  CHECK(f.poller.awake_lanes() == 0);
  CHECK(f.poller.counters().naps == 1);
  CHECK(std::ranges::equal(slots, before));
}

TEST_CASE("a value is in the slot if it is short, may change, or is checked, or if the lane's results go another way") {
  std::string_view key = "long";
  bool heads_only = true, keeps = true, may_send_pieces = true;
  SUBCASE("short") {
    key = "short";
  }
  SUBCASE("may change") {
    keeps = false;
  }
  SUBCASE("checked") {
    heads_only = false;
  }
  SUBCASE("another way") {
    may_send_pieces = false;
  }
  Pushed f(heads_only);
  f.handler.values = {{"long", long_value('a')}, {"short", std::string(SlotPoller::kLeastKept - 1, 's')}};
  f.handler.keeps = keeps;
  f.may_send_pieces = may_send_pieces;
  f.ask(1, {get_of(key)});
  REQUIRE(f.relayed_pieces.size() == 1);
  CHECK(f.relayed_pieces[0].empty());
  CHECK(f.received()[0].value == f.handler.values.find(key)->second);
  CHECK_MESSAGE(f.handler.asked_to_keep == (keeps ? 0 : 1), "nothing is kept in vain");
}

TEST_CASE("of a value that does not fit, as much is sent as does") {
  Pushed f;
  std::string large;
  while (large.size() < kLong.response_slot_size + 1000) large += long_value('a');
  f.handler.values = {{"large", large}};
  f.ask(1, {get_of("large")});
  const auto results = f.received();
  CHECK_FALSE(f.relayed_pieces[0].empty());
  CHECK(f.relays[0].length <= kLong.response_slot_size);
  CHECK(f.relays[0].length > kLong.response_slot_size - 100);
  CHECK(results[0].total_length == large.size());
  CHECK(results[0].value == std::string_view(large).substr(0, results[0].value.size()));
}

TEST_CASE("what a message has when its rest is put off is in its slot") {
  Pushed f;
  f.handler.values = {{"long", long_value('a')}};
  f.handler.works = {{"long", SlotPoller::kLaneWork}};
  f.ask(1, {get_of("long"), get_of("small"), get_of("long")});
  CHECK(f.poller.counters().put_off > 0);
  REQUIRE(f.relayed_pieces.size() == 1);
  CHECK_MESSAGE(f.relayed_pieces[0].size() == 1, "the one of the last round");
  const auto results = f.received();
  REQUIRE(results.size() == 3);
  CHECK(results[0].value == f.handler.values["long"]);
  CHECK(results[2].value == f.handler.values["long"]);
}

TEST_CASE("of several lanes with dear ops one has its turn in each round, besides those that have none") {
  Fixture f;
  std::vector<std::unique_ptr<FakeServerEndpoint>> endpoints;
  f.handler.works = {{"dear", 300}};
  for (uint64_t session = 1; session <= 8; ++session) {
    endpoints.push_back(std::make_unique<FakeServerEndpoint>(kLayout, false));
    f.attach(session, 0, endpoints.back().get());
    put_request(endpoints.back()->requests.data(), kLayout, 0, 1, std::vector<op::Op>(20, get_of("dear")));
  }
  f.poller.poll();  // each shows what its ops take
  f.attach(9);
  for (uint64_t seq = 1; seq <= 8; ++seq) {
    f.put(seq, {get_of("cheap")});
    const size_t before = f.handler.keys.size();
    f.poller.poll();
    CHECK(f.results(seq).size() == 1);
    CHECK(f.handler.keys.size() - before <= 1 + SlotPoller::kLaneWork / 301 + 1);
  }
  while (f.poller.poll() > 0) {
  }
  for (const auto& endpoint : endpoints) {
    CHECK(base::observe_word(endpoint->responses.data() + kLayout.response_offset(0, 1)) == 1);
  }
}

TEST_CASE("a message that is executed in part keeps its lane awake, and is delivered when it is whole") {
  Fixture f;
  f.attach();
  f.handler.works = {{"dear", 600}};
  wire::FieldWriter(f.endpoint.requests.data() + kLayout.want_offset(0)).put(UINT64_MAX);
  f.put(1, std::vector<op::Op>(9, get_of("dear")));
  for (bool is_whole = false; !is_whole;) {
    CHECK(f.poller.poll() > 0);
    is_whole = !f.results(1).empty();
    CHECK(f.endpoint.deliveries.size() == (is_whole ? 1 : 0));
    f.clock.advance_ns(5'000'000);
    f.poller.park(true);
    CHECK(f.poller.awake_lanes() == (is_whole ? 0 : 1));
  }
  CHECK(f.handler.keys.size() == 9);
  CHECK(f.results(1).size() == 9);
}

TEST_CASE("who rewrites a message that is executed in part ends its own session; what was executed is so once") {
  using wire::DecodeError;
  const auto check = [](DecodeError why, const std::function<void(Fixture&)>& rewrite) {
    CAPTURE(to_string(why));
    Fixture f;
    FakeServerEndpoint other(kLayout, false);
    f.attach(1);
    f.attach(2, 0, &other);
    f.handler.works = {{"dear", 600}};
    f.put(1, std::vector<op::Op>(9, get_of("dear")));
    f.poller.poll();
    const size_t executed = f.handler.keys.size();
    CHECK(executed < 9);
    rewrite(f);
    put_request(other.requests.data(), kLayout, 0, 1, std::vector{get_of("good")});
    for (int round = 0; round < 10; ++round) {
      f.clock.advance_ns(PollerOptions{}.torn_limit_ns / 4);
      f.poller.poll();
    }
    CHECK(f.handler.keys.size() == executed + 1);
    CHECK(f.handler.keys.back() == "good");
    CHECK(f.results(1).empty());
    CHECK(f.poller.take_broken_sessions() == std::vector<BrokenSession>{{.session_id = 1, .lane = 0, .why = why}});
    CHECK(base::observe_word(other.responses.data() + kLayout.response_offset(0, 1)) == 1);
  };
  check(DecodeError::kBadCount, [](Fixture& f) { f.put(1, {get_of("dear")}); });
  check(DecodeError::kTruncated, [](Fixture& f) { f.put(1, {get_of("dear")}, 9); });
  check(DecodeError::kTorn, [](Fixture& f) {
    wire::FieldWriter(f.endpoint.requests.data() + kLayout.request_offset(0, 1)).put(uint64_t{77});
  });
  check(DecodeError::kNoRoom, [](Fixture& f) { f.put(1, std::vector<op::Op>(60, get_of("d"))); });
}

TEST_CASE("a session that ends while its message is executed in part leaves nothing behind") {
  Fixture f;
  f.attach();
  f.handler.works = {{"dear", 600}};
  f.put(1, std::vector<op::Op>(9, get_of("dear")));
  f.poller.poll();
  const size_t executed = f.handler.keys.size();
  f.poller.detach(1);
  CHECK(f.poller.poll() == 0);
  CHECK(f.handler.keys.size() == executed);
  CHECK(f.poller.awake_lanes() == 0);
}

TEST_CASE("a value is cut to what fits; the results after it keep their room") {
  Fixture f;
  f.handler.value = std::string(5000, 'v');
  f.attach();
  f.put(1, {get_of("one"), get_of("two"), get_of("three")});
  CHECK(f.poller.poll() == 1);
  const auto results = f.results(1);
  REQUIRE(results.size() == 3);
  CHECK(results[0].value.size() > 800);
  for (const op::Result& result : results) {
    CHECK(result.is_partial());
    CHECK(result.total_length == 5000);
    CHECK(result.version == 5);
  }
}

TEST_CASE(
    "a value too large for its message begins with little if others are behind it, with all there is room for if not") {
  constexpr wire::RegionLayout kRoomy{.lanes = 1, .window = 2, .request_slot_size = 1024, .response_slot_size = 16384};
  Fixture f;
  FakeServerEndpoint endpoint(kRoomy, true);
  f.poller.attach({1, 0, 0, &endpoint, kRoomy, {kNonce, false}});
  f.handler.values = {{"large", std::string(20'000, 'l')}, {"medium", std::string(6000, 'm')}};
  f.handler.value = std::string(500, 's');
  const std::vector<op::Op> ops{get_of("medium"), get_of("large"), get_of("one"), get_of("two"), get_of("large")};
  put_request(endpoint.requests.data(), kRoomy, 0, 1, ops);
  REQUIRE(f.poller.poll() == 1);
  const std::byte* const slot = endpoint.responses.data() + kRoomy.response_offset(0, 1);
  wire::ResponseHeader header;
  std::memcpy(&header, slot, sizeof header);
  wire::ResultReader reader(slot + sizeof header, header.length);
  std::vector<op::Result> results(5);
  for (op::Result& result : results) REQUIRE(reader.next(result));
  CHECK_MESSAGE(results[0].value.size() == 6000, "it fits, and leaves as much to the others");
  CHECK(results[1].value.size() == 4096);
  CHECK_FALSE(results[2].is_partial());
  CHECK_FALSE(results[3].is_partial());
  CHECK(results[4].is_partial());
  CHECK_MESSAGE(header.length > 16384 - 100, "the last one takes what is left");
}

TEST_CASE("a value takes most of a response if no value is behind it") {
  constexpr wire::RegionLayout kRoomy{.lanes = 1, .window = 2, .request_slot_size = 1024, .response_slot_size = 16384};
  Fixture f;
  FakeServerEndpoint endpoint(kRoomy, true);
  f.poller.attach({1, 0, 0, &endpoint, kRoomy, {kNonce, false}});
  f.handler.value = std::string(12'000, 'l');
  op::Op set = get_of("other");
  set.code = op::OpCode::kSet;
  const auto first_of = [&](uint64_t seq, const std::vector<op::Op>& ops) {
    put_request(endpoint.requests.data(), kRoomy, 0, seq, ops);
    REQUIRE(f.poller.poll() == 1);
    const std::byte* const slot = endpoint.responses.data() + kRoomy.response_offset(0, seq);
    wire::ResponseHeader header;
    std::memcpy(&header, slot, sizeof header);
    wire::ResultReader reader(slot + sizeof header, header.length);
    op::Result first;
    REQUIRE(reader.next(first));
    return first.value.size();
  };
  CHECK(first_of(1, {get_of("large"), set, set}) == 12'000);
  CHECK_MESSAGE(first_of(2, {get_of("large"), set, get_of("large")}) == 4096, "the second one wants room, too");
}

TEST_CASE("a request that only the home's poll() can change is read in its slot by the home") {
  Fixture f;
  const auto is_read_in_place = [&](uint64_t session, uint32_t home) {
    FakeServerEndpoint endpoint(kLayout, false);
    endpoint.receive_by_poll();
    f.attach(session, home, &endpoint);
    put_request(endpoint.requests.data(), kLayout, 0, 1, std::vector<op::Op>{get_of("key")});
    REQUIRE(f.poller.poll() == 1);
    f.poller.detach(session);
    const char* const begin = reinterpret_cast<const char*>(endpoint.requests.data());
    const char* const place = f.handler.key_places.back();
    return place >= begin && place < begin + kLayout.request_bytes();
  };
  CHECK(is_read_in_place(1, 0));
  CHECK_FALSE_MESSAGE(is_read_in_place(2, 1), "its home may receive meanwhile");
}

TEST_CASE("the response says how long the server took") {
  Fixture f;
  f.attach();
  f.put(1, {get_of("one")});
  struct Slow final : OpHandler {
    explicit Slow(base::ManualClock& clock) : clock_(clock) {}
    void begin_round() override {}
    void foresee(std::span<op::Op>) override {}
    void prepare(std::span<op::Op>, std::span<const LaneId>) override { clock_.advance_ns(1234); }
    void locate() override {}
    op::Result execute(size_t) override { return {}; }
    void lane_dropped(LaneId) override {}
    base::ManualClock& clock_;
  } slow(f.clock);
  SlotPoller poller({.partition = 0}, f.clock, slow, f);
  poller.attach({1, 0, 0, &f.endpoint, kLayout, {kNonce, false}});
  CHECK(poller.poll() == 1);
  uint32_t processing = 0;
  std::memcpy(
      &processing,
      f.endpoint.responses.data() + kLayout.response_offset(0, 1) + offsetof(wire::ResponseHeader, processing_ns), 4);
  CHECK(processing == 1234);
}

// --- what is not taken ---------------------------------------------------------------------------------------------

TEST_CASE("a request that is torn, of another session or longer than its slot is looked at again, never executed") {
  Fixture f;
  f.attach();
  const std::vector<op::Op> ops{get_of("one")};
  put_request(f.endpoint.requests.data(), kLayout, 0, 1, ops, -1, -1, kNonce + 1);
  CHECK(f.poller.poll() == 0);
  f.put(1, ops, -1, 1025 - 24);
  CHECK(f.poller.poll() == 0);
  f.put(1, ops, -1, 1 << 30);
  CHECK(f.poller.poll() == 0);
  f.put(1, ops);
  std::byte* body = f.endpoint.requests.data() + kLayout.request_offset(0, 1) + 30;
  *body ^= std::byte{1};
  CHECK(f.poller.poll() == 0);
  CHECK(f.poller.counters().torn == 4);
  *body ^= std::byte{1};
  CHECK(f.poller.poll() == 1);
  CHECK(!f.poller.has_broken_sessions());
}

TEST_CASE("a whole message that makes no sense ends its session, unexecuted, and it is said why; others are served") {
  using wire::DecodeError;
  op::Op stats;
  stats.code = op::OpCode::kStats;
  op::Op strange = get_of("one");
  strange.options = op::kDecrement;
  strange.code = op::OpCode::kDelete;
  op::Op part = get_of("one");
  part.code = op::OpCode::kUpload;
  part.length = 2;
  part.value = "abc";
  const auto check = [](DecodeError why, const std::function<void(Fixture&)>& put) {
    CAPTURE(to_string(why));
    Fixture f;
    FakeServerEndpoint other(kLayout, false);
    f.attach(1);
    f.attach(2, 0, &other);
    put(f);
    const std::vector<op::Op> good{get_of("good")};
    put_request(other.requests.data(), kLayout, 0, 1, good);
    CHECK(f.poller.poll() == 1);
    CHECK(f.handler.keys == std::vector<std::string>{"good"});
    CHECK(f.poller.take_broken_sessions() == std::vector<BrokenSession>{{.session_id = 1, .lane = 0, .why = why}});
    CHECK(!f.poller.has_broken_sessions());
    f.put(1, {get_of("later")});
    CHECK(f.poller.poll() == 0);  // never looked at again
    f.poller.detach(1);
    CHECK(f.handler.dropped == std::vector<LaneId>{0});
  };
  for (const int count : {0, 257, 65535}) {
    check(DecodeError::kBadCount, [count](Fixture& f) { f.put(1, {get_of("one")}, count); });
  }
  check(DecodeError::kTruncated, [](Fixture& f) { f.put(1, {get_of("one")}, 2); });
  check(DecodeError::kTrailing, [](Fixture& f) { f.put(1, {get_of("one"), get_of("two")}, 1); });
  check(DecodeError::kTrailing, [](Fixture& f) { f.put(1, {get_of("one")}, -1, 8 + 3 + 1); });
  check(DecodeError::kBadKey, [](Fixture& f) { f.put(1, {get_of("")}); });
  check(DecodeError::kBadEnum, [&](Fixture& f) { f.put(1, {strange}); });
  check(DecodeError::kBadLength, [&](Fixture& f) { f.put(1, {part}); });
  for (const uint16_t flags : {uint16_t{0x1}, uint16_t{0x2}, uint16_t{0x100}, uint16_t{0x8000}}) {
    check(DecodeError::kReserved, [flags](Fixture& f) { f.put(1, {get_of("one")}, -1, -1, flags); });
  }
  check(DecodeError::kNoRoom, [&](Fixture& f) { f.put(1, std::vector<op::Op>(4, stats)); });
}

TEST_CASE("a request whose checksum stays wrong for longer than the limit ends its session, and it is said why") {
  Fixture f;
  f.attach();
  const std::vector<op::Op> ops{get_of("one")};
  put_request(f.endpoint.requests.data(), kLayout, 0, 1, ops, -1, -1, kNonce + 1);
  f.clock.advance_ns(1);
  CHECK(f.poller.poll() == 0);
  f.clock.advance_ns(PollerOptions{}.torn_limit_ns);
  CHECK(f.poller.poll() == 0);
  CHECK_FALSE(f.poller.has_broken_sessions());
  f.clock.advance_ns(1);
  CHECK(f.poller.poll() == 0);
  CHECK(f.poller.take_broken_sessions() ==
        std::vector<BrokenSession>{{.session_id = 1, .lane = 0, .why = wire::DecodeError::kTorn}});
}

TEST_CASE("a slot that is rewritten all the time is taken whole or not at all") {
  Fixture f;
  f.attach();
  // Two valid messages for the same seq, of different lengths; a thread puts one over the other without end.
  std::vector<std::byte> versions[2];
  const std::vector<op::Op> ops[2] = {{get_of("short")},
                                      std::vector<op::Op>(15, get_of(std::string_view("quite a long key")))};
  const size_t offset = kLayout.request_offset(0, 1);
  for (int i = 0; i < 2; ++i) {
    put_request(f.endpoint.requests.data(), kLayout, 0, 1, ops[i]);
    versions[i].assign(f.endpoint.requests.data() + offset, f.endpoint.requests.data() + offset + 1024);
  }
  std::memset(f.endpoint.requests.data() + offset, 0, 1024);
  std::atomic<bool> stop = false;
  std::thread hostile([&] {
    for (size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      const auto& from = versions[i % 2];
      auto* to = reinterpret_cast<unsigned char*>(f.endpoint.requests.data() + offset);
      for (size_t at = 0; at < from.size(); ++at) {
        __atomic_store_n(to + at, static_cast<unsigned char>(from[at]), __ATOMIC_RELAXED);
      }
    }
  });
  while (f.poller.poll() == 0 && !f.poller.has_broken_sessions()) f.clock.advance_ns(1);
  stop = true;
  hostile.join();
  CHECK(!f.poller.has_broken_sessions());
  const bool is_short = f.handler.keys.size() == 1;
  REQUIRE((is_short || f.handler.keys.size() == 15));
  for (const std::string& key : f.handler.keys) CHECK(key == (is_short ? "short" : "quite a long key"));
}

// --- pushes --------------------------------------------------------------------------------------------------------

TEST_CASE("what is wanted is pushed, by the home or through it; what is not is not") {
  for (const uint32_t home : {0u, 1u}) {
    Fixture f;
    f.attach(1, home);
    wire::FieldWriter(f.endpoint.requests.data() + kLayout.want_offset(0)).put(uint64_t{2});
    for (uint64_t seq = 1; seq <= 3; ++seq) f.put(seq, {get_of("key")});
    while (f.poller.poll() > 0) {
    }
    CHECK(f.poller.counters().deliveries == 2);
    CHECK(f.relayed.size() == (home == 0 ? 0 : 2));
    REQUIRE(f.endpoint.deliveries.size() == (home == 0 ? 2 : 0));
    if (home != 0) continue;
    CHECK(f.endpoint.deliveries[1].offset == kLayout.response_offset(0, 2));
    CHECK(f.endpoint.deliveries[1].length > sizeof(wire::ResponseHeader));
  }
}

TEST_CASE("where a push is only a wake-up, one a round is enough, from any partition") {
  Fixture f(true);
  f.attach(1, 1);
  wire::FieldWriter(f.endpoint.requests.data() + kLayout.want_offset(0)).put(UINT64_MAX);
  f.put(1, {get_of("key")});
  f.put(2, {get_of("key")});
  CHECK(f.poller.poll() == 2);
  CHECK(f.endpoint.deliveries.size() == 1);
  CHECK(f.relayed.empty());
}

TEST_CASE("a request that asks has its result pushed, whatever is wanted, by the home or through it") {
  for (const uint32_t home : {0u, 1u}) {
    Fixture f;
    f.attach_asking(home);
    for (uint64_t seq = 1; seq <= 4; ++seq) f.ask(seq, seq % 2 == 0 ? wire::kPush : 0);
    const auto& pushes = home == 0 ? f.endpoint.deliveries : f.relays;
    REQUIRE(pushes.size() == 2);
    CHECK(pushes[0].offset == kLayout.response_offset(0, 2));
    CHECK(pushes[1].offset == kLayout.response_offset(0, 4));
    CHECK(pushes[1].length > sizeof(wire::ResponseHeader));
    CHECK(f.poller.counters().deliveries == 2);
    CHECK(f.poller.counters().asked == 2);
    CHECK(f.endpoint.deliveries.size() + f.relays.size() == 2);
  }
}

TEST_CASE("what is asked for and wanted, too, is pushed once") {
  Fixture f;
  f.attach_asking();
  wire::FieldWriter(f.endpoint.requests.data() + kLayout.want_offset(0)).put(UINT64_MAX);
  f.ask(1, wire::kPush);
  CHECK(f.endpoint.deliveries.size() == 1);
}

TEST_CASE("a message that asks and is executed in part is pushed when it is whole, as it says then") {
  Fixture f;
  f.attach_asking();
  f.handler.works = {{"dear", 600}};
  f.put(1, std::vector<op::Op>(9, get_of("dear")), -1, -1, wire::kPush);
  while (f.poller.poll() > 0) CHECK(f.endpoint.deliveries.size() == (f.results(1).empty() ? 0 : 1));
  CHECK(f.endpoint.deliveries.size() == 1);
}

TEST_CASE("flags that nobody knows, or nobody agreed on, end the session") {
  for (const int bits : {4, 8, 0x100, 0x8000, 5}) {
    Fixture f;
    f.attach_asking();
    f.put(1, {get_of("key")}, -1, -1, static_cast<uint16_t>(bits));
    CHECK(f.poller.poll() == 0);
    CHECK(f.poller.take_broken_sessions() ==
          std::vector<BrokenSession>{{.session_id = 1, .lane = 0, .why = wire::DecodeError::kReserved}});
  }
  for (const uint16_t flags : {wire::kPush, wire::kTellAsleep}) {
    Fixture f;
    f.attach();
    f.put(1, {get_of("key")}, -1, -1, flags);
    CHECK(f.poller.poll() == 0);
    CHECK(f.poller.has_broken_sessions());
  }
}

TEST_CASE("a client that has asked is told when its lane falls asleep, once: the head of the next response is pushed") {
  for (const uint32_t home : {0u, 1u}) {
    Fixture f;
    f.attach_asking(home);
    f.ask(1, wire::kTellAsleep);
    f.clock.advance_ns(2'000'000);
    f.poller.park();
    CHECK(f.poller.awake_lanes() == 0);
    const auto& pushes = home == 0 ? f.endpoint.deliveries : f.relays;
    REQUIRE(pushes.size() == 1);
    CHECK(pushes[0].offset == kLayout.response_offset(0, 2));
    CHECK(pushes[0].length == sizeof(wire::ResponseHeader));
    CHECK(f.asleep(2) == 2);
    CHECK(f.poller.counters().told == 1);
    f.poller.ring(1);  // of another lane of the session, say
    f.poller.park(true);
    CHECK(pushes.size() == 1);
  }
}

TEST_CASE(
    "only the last request counts for who is to be told, and a request that comes at the last moment is no sleep") {
  Fixture f;
  f.attach_asking();
  f.ask(1, wire::kTellAsleep);
  f.ask(2);
  f.poller.park(true);
  CHECK(f.poller.awake_lanes() == 0);
  CHECK(f.endpoint.deliveries.empty());
  f.poller.ring(1);
  f.ask(3, wire::kTellAsleep);
  f.put(4, {get_of("key")});
  f.poller.park(true);
  CHECK(f.poller.awake_lanes() == 1);
  CHECK(f.endpoint.deliveries.empty());
}

TEST_CASE("a response says whether its request has found the lane asleep") {
  Fixture f;
  f.attach_asking();
  CHECK(f.ask(1) == 0);
  f.poller.park(true);
  f.poller.ring(1);
  f.put(2, std::vector<op::Op>(20, get_of("key")));
  CHECK(f.poller.poll() == 1);
  CHECK(f.ask(3) == 0);
  CHECK(std::to_integer<int>(
            f.endpoint.responses.data()[kLayout.response_offset(0, 2) + offsetof(wire::ResponseHeader, hints)]) ==
        wire::kLaneSlept);
  f.poller.ring(1);  // it is awake
  CHECK(f.ask(4) == 0);
  f.poller.park(true);
  f.poller.ring(1);
  f.poller.park(true);  // nothing came
  f.poller.ring(1);
  CHECK(f.ask(5) == wire::kLaneSlept);
}

TEST_CASE(
    "a partition with little work, or very many sessions, says that pushing is cheap; to those who agreed on it") {
  for (const bool are_many : {false, true}) {
    Fixture f;
    FakeServerEndpoint other(kLayout, false), third(kLayout, true);
    f.poller.set_rules(0, 0, 0, {.below_load = are_many ? 0u : 30u, .above_sessions = are_many ? 1u : 0u});
    f.attach_asking();
    f.clock.advance_ns(100'000'000);
    f.ask(1);  // the load is known from here on
    CHECK(f.ask(2) == (are_many ? 0 : wire::kPushingIsCheap));
    f.attach(2, 0, &other);
    f.attach(3, 0, &third);  // of this host
    f.clock.advance_ns(100'000'000);
    f.ask(3);
    CHECK(f.ask(4) == wire::kPushingIsCheap);
    CHECK(f.poller.pushing_is_cheap());
    const std::vector<op::Op> ops{get_of("key")};
    put_request(other.requests.data(), kLayout, 0, 1, ops);
    CHECK(f.poller.poll() == 1);
    CHECK(other.responses.data()[kLayout.response_offset(0, 1) + offsetof(wire::ResponseHeader, hints)] ==
          std::byte{0});
    if (!are_many) continue;
    f.poller.detach(2);
    f.clock.advance_ns(100'000'000);
    f.ask(5);
    CHECK(f.ask(6) == 0);
  }
}

// --- sleep ---------------------------------------------------------------------------------------------------------

TEST_CASE("a lane sleeps when it has been idle for long enough, says so, and wakes by a ring") {
  Fixture f;
  f.attach();
  f.put(1, {get_of("one")});
  f.poller.poll();
  f.poller.park();
  CHECK(f.poller.awake_lanes() == 1);
  f.clock.advance_ns(2'000'000);
  f.poller.park();
  CHECK(f.poller.awake_lanes() == 0);
  CHECK(f.asleep(2) == 2);
  f.put(2, {get_of("two")});
  CHECK(f.poller.poll() == 0);
  f.poller.ring(1);
  CHECK(f.poller.poll() == 1);
  f.poller.park();
  CHECK(f.poller.awake_lanes() == 1);
}

TEST_CASE("while there is always something to do a lane sleeps only when it has been idle for a millisecond") {
  Fixture f;
  f.poller.set_rules(5'000, 5'000, 5'000, {});
  f.attach();
  f.clock.advance_ns(900'000);
  f.poller.park_long_idle();
  CHECK(f.poller.awake_lanes() == 1);
  f.clock.advance_ns(100'000);
  f.poller.park_long_idle();
  CHECK(f.poller.awake_lanes() == 0);
  f.poller.ring(1);
  f.poller.set_rules(3'000'000, 3'000'000, 3'000'000, {});
  f.clock.advance_ns(2'000'000);
  f.poller.park_long_idle();
  CHECK(f.poller.awake_lanes() == 1);
}

TEST_CASE("a ring wakes its own session's lane, whatever order sessions came and went in") {
  Fixture f;
  std::vector<std::unique_ptr<FakeServerEndpoint>> endpoints;
  for (const uint64_t session : {5, 9, 2, 7, 1}) {
    endpoints.push_back(std::make_unique<FakeServerEndpoint>(kLayout, false));
    f.attach(session, 0, endpoints.back().get());
  }
  f.poller.detach(9);
  f.poller.park(true);
  put_request(endpoints[3]->requests.data(), kLayout, 0, 1, std::vector{get_of("seven")});
  for (const uint64_t other : {9, 5}) f.poller.ring(other);
  CHECK(f.poller.awake_lanes() == 1);
  CHECK(f.poller.poll() == 0);
  f.poller.ring(7);
  CHECK(f.poller.poll() == 1);
  CHECK(f.handler.keys == std::vector<std::string>{"seven"});
}

TEST_CASE("the clients are on one CPU when those of all awake lanes say so") {
  Fixture f;
  FakeServerEndpoint other(kLayout, true);
  CHECK_MESSAGE(f.poller.clients_cpu() == -1, "there are none");
  f.attach(1);
  f.attach(2, 0, &other);
  CHECK_MESSAGE(f.poller.clients_cpu() == -1, "neither says anything");
  f.endpoint.cpu = 3;
  CHECK_MESSAGE(f.poller.clients_cpu() == -1, "the other does not say anything");
  other.cpu = 4;
  CHECK_MESSAGE(f.poller.clients_cpu() == -1, "they are on two");
  other.cpu = 3;
  CHECK(f.poller.clients_cpu() == 3);
  f.poller.park(true);
  CHECK_MESSAGE(f.poller.clients_cpu() == -1, "who sleeps does not count");
  other.cpu = 4;
  f.poller.ring(2);
  CHECK(f.poller.clients_cpu() == 4);
}

TEST_CASE("a request that came before its lane fell asleep keeps it awake") {
  Fixture f;
  f.attach();
  f.put(1, {get_of("one")});
  f.poller.park(true);
  CHECK(f.poller.awake_lanes() == 1);
  CHECK(f.poller.poll() == 1);
}

TEST_CASE("rings for sessions that are not there, or are awake, do nothing") {
  Fixture f;
  f.attach();
  f.poller.ring(1);
  f.poller.ring(77);
  CHECK(f.poller.awake_lanes() == 1);
}

TEST_CASE("a lane that is dropped is touched no more, and its number is used again") {
  Fixture f;
  auto endpoint = std::make_unique<FakeServerEndpoint>(kLayout, false);
  CHECK(f.attach(1, 0, endpoint.get()) == 0);
  CHECK(f.attach(2) == 1);
  f.poller.park(true);
  f.poller.ring(1);
  f.poller.detach(1);
  endpoint.reset();
  CHECK(f.handler.dropped == std::vector<LaneId>{0});
  f.poller.ring(1);
  f.poller.ring(2);
  f.put(1, {get_of("one")});
  CHECK(f.poller.poll() == 1);
  CHECK(f.attach(3) == 0);
}
