// One lane of the client: how it packs messages, which bytes it accepts as a response, and which waiters it calls.
#include "op/direct_store.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::rpc;
using op::ResultCode;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 3, .window = 4, .request_slot_size = 1024, .response_slot_size = 2048};

struct Fixture {
  explicit Fixture(bool local = false, const FetchOptions& fetch = {}, bool knows_deliver = false)
      : endpoint(kLayout, local),
        lane(kLane,
             {.layout = kLayout,
              .seal = {.nonce = kNonce, .heads_only = false},
              .fetch = fetch,
              .endpoint = endpoint,
              .times = {now_ns, taken_ns},
              .durations = durations,
              .active = active,
              .knows_deliver = knows_deliver},
             counters) {
    active.open(kLayout.lanes);
  }

  // Appends gets and sends them in one message.
  void send(int ops = 1) {
    for (int i = 0; i < ops; ++i) REQUIRE(lane.append(get_of("key"), &listener));
    lane.seal();
  }
  void answer(uint64_t seq, std::string_view value = "value", int results = 1) {
    const std::vector<op::Result> all(static_cast<size_t>(results), hit(value));
    put_response(endpoint.responses.data(), kLayout, kLane, seq, all);
  }
  // The backend pushes: the response to `seq`, or its first bytes only.
  std::span<const std::byte> pushed(uint64_t seq, std::string_view value = "value", uint8_t hints = 0,
                                    size_t most = SIZE_MAX) {
    const std::vector<op::Result> all{hit(value)};
    const size_t length = put_response(replies.data(), kLayout, kLane, seq, all, 0, kNonce, get_of("k"), hints);
    return {replies.data() + kLayout.response_offset(kLane, seq), std::min(length, most)};
  }
  // The backend pushes the head of the slot in which it would answer `seq`: the lane sleeps.
  std::span<const std::byte> told_asleep(uint64_t seq) {
    std::byte* const slot = replies.data() + kLayout.response_offset(kLane, seq);
    wire::FieldWriter(slot + offsetof(wire::ResponseHeader, asleep)).put(seq);
    return {slot, sizeof(wire::ResponseHeader)};
  }
  // The checksum is made to match what the slot holds by now.
  void reseal(uint64_t seq) {
    std::byte* slot = endpoint.responses.data() + kLayout.response_offset(kLane, seq);
    uint32_t length = 0;
    std::memcpy(&length, slot + offsetof(wire::ResponseHeader, length), 4);
    wire::FieldWriter(slot + 8).put(wire::message_checksum(slot + wire::kResponseChecked, 16 + length, kNonce, seq));
  }
  // Every staged read completes. So much later that what is to be fetched again is due.
  bool fetch() {
    now_ns += 2'000'000;
    lane.stage_fetches(16);
    bool good = true;
    for (const auto& read : std::exchange(endpoint.reads, {})) good &= lane.on_fetched(read.tag);
    return good;
  }

  static constexpr uint32_t kLane = 1;
  uint64_t now_ns = 1'000'000'000;
  uint64_t taken_ns = 0;
  FakeClientEndpoint endpoint;
  Words replies{kLayout.response_bytes()};
  LaneCounters counters;
  egret::base::Histogram durations;
  ActiveLanes active{nullptr};
  ClientLane lane;
  Listener listener;
};

wire::RequestHeader header_of(FakeClientEndpoint& endpoint, const FakeClientEndpoint::Write& write) {
  wire::RequestHeader header;
  std::memcpy(&header, endpoint.requests.data() + write.offset, sizeof header);
  return header;
}

}  // namespace

// --- packing -------------------------------------------------------------------------------------------------------

TEST_CASE("a message takes as many of the smallest ops as fit its slot, and a lane has room for no more waiters") {
  Fixture f;
  op::Op ping;
  ping.code = op::OpCode::kPing;
  REQUIRE(wire::max_ops(kLayout) == (1024 - sizeof(wire::RequestHeader)) / wire::encoded_op_size(ping));
  CHECK(wire::max_ops({.lanes = 1, .window = 2, .request_slot_size = 4096, .response_slot_size = 1024}) ==
        wire::kMaxOpsPerMessage);
  uint32_t appended = 0;
  for (; appended < wire::max_ops(kLayout); ++appended) REQUIRE(f.lane.append(ping, &f.listener));
  CHECK(f.endpoint.writes.empty());
  REQUIRE(f.lane.append(ping, &f.listener));
  REQUIRE(f.endpoint.writes.size() == 1);
  CHECK(header_of(f.endpoint, f.endpoint.writes[0]).op_count == appended);
  f.lane.fail_all();
  CHECK(f.listener.codes.size() == appended + 1);
}

namespace {
// A store in the client's thread, which has every key.
struct Having final : op::DirectStore {
  bool execute(const op::Op&, op::Result& result, op::LoanName&) override {
    if (is_enough) return false;
    result = hit("value");
    ++executed;
    return true;
  }
  bool has_share() const override { return !is_enough; }
  void execute_all(std::span<const op::Op> ops, op::ResultTaker& taker) override {
    ++calls;
    for (size_t i = 0; i < ops.size(); ++i) {
      keys.emplace_back(ops[i].key);
      values.emplace_back(ops[i].value);
      op::Result result = hit(ops[i].key);
      if (ops[i].code == op::OpCode::kSet) result.code = ResultCode::kStored;
      taker.on_result(i, result, {});
    }
  }
  bool begin_part(const op::Op&, uint32_t, op::PartRoom&) override { return false; }
  void end_part(const op::Op&, uint32_t) override {}
  int executed = 0, calls = 0;
  bool is_enough = false;
  std::vector<std::string> keys, values;  // that were executed together
};

op::Op set_of(std::string_view key, std::string_view value) {
  op::Op op;
  op.code = op::OpCode::kSet;
  op.key = key;
  op.value = value;
  return op;
}

// With each result, its client asks once more.
struct AskingMore final : Waiter {
  explicit AskingMore(ClientLane& its_lane) : lane(its_lane) {}
  void on_result(const op::Result& result) override {
    values.emplace_back(result.value);
    if (values.size() > 1) return;
    CHECK_FALSE(gather(lane, get_of("more"), this));
    CHECK(lane.append(get_of("more"), this));
  }
  ClientLane& lane;
  std::vector<std::string> values;
};
}  // namespace

TEST_CASE("an op is executed at once only where the store is the client's own, and nothing before it is under way") {
  Fixture f(true);
  op::Result result;
  op::LoanRef loan;
  CHECK_FALSE(execute(f.lane, get_of("key"), result, loan));
  Having store;
  f.endpoint.direct = &store;
  CHECK(execute(f.lane, get_of("key"), result, loan));
  CHECK(result.value == "value");
  CHECK(f.counters.direct_ops.get() == 1);
  CHECK(f.counters.messages.get() == 1);
  CHECK(f.endpoint.writes.empty());

  REQUIRE(f.lane.append(get_of("key"), &f.listener));
  CHECK_FALSE_MESSAGE(execute(f.lane, get_of("key"), result, loan), "one is being packed");
  f.lane.seal();
  CHECK_FALSE_MESSAGE(execute(f.lane, get_of("key"), result, loan), "one is not answered");
  f.answer(1);
  REQUIRE(f.fetch());
  CHECK(execute(f.lane, get_of("key"), result, loan));
  f.lane.withhold(true);
  CHECK_FALSE_MESSAGE(execute(f.lane, get_of("key"), result, loan), "no op begins");
  f.lane.withhold(false);
  store.is_enough = true;
  CHECK_FALSE(execute(f.lane, get_of("key"), result, loan));
  CHECK(store.executed == 2);
}

TEST_CASE("ops are gathered where they could be executed at once, and answered in order") {
  Fixture f(true);
  CHECK_FALSE_MESSAGE(gather(f.lane, get_of("one"), &f.listener), "the store is not the client's own");
  Having store;
  f.endpoint.direct = &store;
  std::string key = "one", value = "first";
  CHECK(gather(f.lane, get_of(key), &f.listener) > 0);
  CHECK(gather(f.lane, set_of(key, value), &f.listener) > 0);
  CHECK(gather(f.lane, get_of("three"), &f.listener) > 0);
  key = value = "~~~~~";  // the client's memory may be used again
  op::Result result;
  op::LoanRef loan;
  CHECK_FALSE_MESSAGE(execute(f.lane, get_of("four"), result, loan), "others come first");
  CHECK(f.lane.progress().has_open);
  CHECK_FALSE(f.lane.progress().is_idle);
  CHECK_FALSE(f.lane.progress().is_empty);
  CHECK(store.calls == 0);
  CHECK(answer_gathered(f.lane));
  CHECK(store.keys == std::vector<std::string>{"one", "one", "three"});
  CHECK(store.values == std::vector<std::string>{"", "first", ""});
  CHECK(f.listener.codes == std::vector<ResultCode>{ResultCode::kHit, ResultCode::kStored, ResultCode::kHit});
  CHECK(f.endpoint.writes.empty());
  CHECK(f.counters.ops.get() == 3);
  CHECK(f.counters.direct_ops.get() == 3);
  CHECK(f.counters.messages.get() == 1);
  CHECK(f.lane.progress().is_idle);
  CHECK_FALSE_MESSAGE(answer_gathered(f.lane), "there are none any more");
}

TEST_CASE("what goes by slots comes behind what was gathered before it, and is gathered behind by nothing") {
  Fixture f(true);
  Having store;
  f.endpoint.direct = &store;
  REQUIRE(gather(f.lane, get_of("gathered"), &f.listener) > 0);
  REQUIRE(f.lane.append(get_of("slot"), &f.listener));
  CHECK_FALSE_MESSAGE(gather(f.lane, get_of("behind"), &f.listener), "one is being packed");
  REQUIRE(f.lane.append(get_of("behind"), &f.listener));
  CHECK(f.endpoint.writes.empty());
  SUBCASE("that is not sealed") {}
  SUBCASE("that is sealed") {
    f.lane.seal();
    CHECK_FALSE_MESSAGE(gather(f.lane, get_of("behind"), &f.listener), "one is not answered");
  }
  CHECK(answer_gathered(f.lane));
  f.lane.seal();
  CHECK(store.keys == std::vector<std::string>{"gathered"});
  CHECK(f.listener.codes.size() == 1);
  CHECK(f.endpoint.writes.size() == 1);
  CHECK_FALSE_MESSAGE(gather(f.lane, get_of("key"), &f.listener), "one is not answered");
  f.answer(1, "value", 2);
  REQUIRE(f.fetch());
  CHECK(f.listener.codes.size() == 3);
  f.lane.withhold(true);
  CHECK_FALSE_MESSAGE(gather(f.lane, get_of("key"), &f.listener), "no op begins");
  f.lane.withhold(false);
  store.is_enough = true;
  CHECK_FALSE_MESSAGE(gather(f.lane, get_of("key"), &f.listener), "the client has had its share");
}

TEST_CASE("as many ops are gathered as a store executes at once") {
  Fixture f(true);
  Having store;
  f.endpoint.direct = &store;
  for (size_t i = 0; i < op::DirectStore::kMostTogether; ++i) REQUIRE(gather(f.lane, get_of("key"), &f.listener) > 0);
  CHECK_FALSE(gather(f.lane, get_of("key"), &f.listener));
  CHECK(answer_gathered(f.lane));
  CHECK(store.calls == 1);
  CHECK(f.listener.codes.size() == op::DirectStore::kMostTogether);
  CHECK(gather(f.lane, get_of("key"), &f.listener) > 0);
  f.lane.fail_all();
}

TEST_CASE("ops are gathered as long as their values have room, and the longest key is whole") {
  Fixture f(true);
  Having store;
  f.endpoint.direct = &store;
  const std::string key(op::kMaxKeyLength, 'k'), value(6000, 'v');
  size_t taken = 0;
  while (gather(f.lane, set_of(key, value), &f.listener) > 0) ++taken;
  CHECK(taken > 1);
  CHECK(taken < op::DirectStore::kMostTogether);
  CHECK_FALSE(gather(f.lane, set_of("key", std::string(1 << 20, 'v')), &f.listener));
  CHECK(answer_gathered(f.lane));
  CHECK(store.keys == std::vector<std::string>(taken, key));
  CHECK(store.values == std::vector<std::string>(taken, value));
  store.keys.clear();
  store.values.clear();
  CHECK_MESSAGE(gather(f.lane, get_of("bare"), &f.listener) > 0, "in the place of a set");
  CHECK(answer_gathered(f.lane));
  CHECK(store.keys == std::vector<std::string>{"bare"});
  CHECK(store.values == std::vector<std::string>{""});
}

TEST_CASE("a waiter may append while gathered ops are answered: it is sent behind them") {
  Fixture f(true);
  Having store;
  f.endpoint.direct = &store;
  AskingMore asking(f.lane);
  REQUIRE(gather(f.lane, get_of("one"), &asking) > 0);
  REQUIRE(gather(f.lane, get_of("two"), &asking) > 0);
  CHECK(answer_gathered(f.lane));
  CHECK(asking.values == std::vector<std::string>{"one", "two"});
  f.lane.seal();
  CHECK(f.endpoint.writes.size() == 1);
  f.answer(1, "more");
  REQUIRE(f.fetch());
  CHECK(asking.values == std::vector<std::string>{"one", "two", "more"});
}

TEST_CASE("gathered ops of a session that ends were not done, and are answered before what is in slots") {
  Fixture f(true);
  Having store;
  f.endpoint.direct = &store;
  REQUIRE(gather(f.lane, get_of("one"), &f.listener) > 0);
  REQUIRE(f.lane.append(get_of("two"), &f.listener));
  SUBCASE("all at once") {}
  SUBCASE("first the store goes") {
    f.endpoint.direct = nullptr;
    CHECK_FALSE(answer_gathered(f.lane));
    f.lane.seal();
    CHECK(f.listener.codes == std::vector<ResultCode>{ResultCode::kNotSent});
  }
  const bool is_sent = f.lane.outstanding() > 0;
  f.lane.fail_all();
  CHECK(f.listener.codes ==
        std::vector<ResultCode>{ResultCode::kNotSent, is_sent ? ResultCode::kSessionLost : ResultCode::kNotSent});
  CHECK(store.calls == 0);
}

TEST_CASE("ops share a message, in order, under a checksum") {
  Fixture f;
  REQUIRE(f.lane.append(get_of("one"), &f.listener));
  REQUIRE(f.lane.append(get_of("two"), &f.listener));
  f.lane.seal();
  REQUIRE(f.endpoint.writes.size() == 1);
  const auto& write = f.endpoint.writes[0];
  CHECK(write.first_word == 1);
  CHECK(write.offset == kLayout.request_offset(Fixture::kLane, 1));
  const wire::RequestHeader header = header_of(f.endpoint, write);
  CHECK(header.op_count == 2);
  CHECK(sizeof header + header.length == write.length);
  const std::byte* checked = f.endpoint.requests.data() + write.offset + wire::kRequestChecked;
  CHECK(header.checksum == wire::message_checksum(checked, write.length - wire::kRequestChecked, kNonce, 1));
  op::Op ops[2];
  REQUIRE(wire::decode_ops(f.endpoint.requests.data() + write.offset + sizeof header, header.length, ops) ==
          wire::DecodeError::kNone);
  CHECK(ops[0].key == "one");
  CHECK(ops[1].key == "two");
}

TEST_CASE("how long a message took counts to when its result was taken in, later than the pass that sent it began") {
  Fixture f;
  f.send();
  f.answer(1);
  f.taken_ns = f.now_ns + 5'000'000;
  REQUIRE(f.fetch());
  CHECK(f.durations.sum_ns() == 5'000'000);
}

TEST_CASE("a message is sealed when the next op does not fit its slot") {
  Fixture f;
  op::Op set;
  set.code = op::OpCode::kSet;
  set.key = "key";
  const std::string value(400, 'v');
  set.value = value;
  for (int i = 0; i < 3; ++i) REQUIRE(f.lane.append(set, &f.listener));
  CHECK(f.endpoint.writes.size() == 1);
  CHECK(header_of(f.endpoint, f.endpoint.writes[0]).op_count == 2);
}

TEST_CASE("a message is sealed when the results expected do not fit the response slot") {
  Fixture f;
  f.send();
  f.answer(1, std::string(1500, 'v'));
  for (int i = 0; i < 20; ++i) {  // learns that values are large
    f.fetch();
    f.send();
    f.answer(static_cast<uint64_t>(i) + 2, std::string(1500, 'v'));
  }
  f.fetch();
  f.endpoint.writes.clear();
  REQUIRE(f.lane.append(get_of("a"), &f.listener));
  REQUIRE(f.lane.append(get_of("b"), &f.listener));
  CHECK(f.endpoint.writes.size() == 1);
}

TEST_CASE("however small ops are, every result's minimum fits the response slot") {
  Fixture f;
  op::Op stats;
  stats.code = op::OpCode::kStats;
  while (f.endpoint.writes.empty()) REQUIRE(f.lane.append(stats, &f.listener));
  const uint16_t count = header_of(f.endpoint, f.endpoint.writes[0]).op_count;
  CHECK(count * wire::min_result_size(stats) <= kLayout.response_slot_size - sizeof(wire::ResponseHeader));
  CHECK((count + 1u) * wire::min_result_size(stats) > kLayout.response_slot_size - sizeof(wire::ResponseHeader));
}

TEST_CASE("the window: append is refused when every slot is taken, and welcome when a response has been seen") {
  Fixture f;
  for (uint32_t i = 0; i < kLayout.window; ++i) f.send();
  CHECK(!f.lane.has_credit());
  CHECK(!f.lane.append(get_of("key"), &f.listener));
  f.answer(1);
  CHECK(f.fetch());
  CHECK(f.lane.has_credit());
  CHECK(f.lane.append(get_of("key"), &f.listener));
}

// --- answers -------------------------------------------------------------------------------------------------------

namespace {
// Wants the bytes of its result to stay.
struct Holder final : Waiter {
  explicit Holder(ClientLane& of) : lane(of) {}
  void on_result(const op::Result& result) override {
    held = lane.hold(result);
    value = result.value;
  }
  ClientLane& lane;
  uint32_t held = 0;
  std::string_view value;
};
}  // namespace

TEST_CASE("bytes that are held stay: their slot is used again when the last who holds it has released it") {
  Fixture f;
  Holder first(f.lane), second(f.lane);
  REQUIRE(f.lane.append(get_of("key"), &first));
  REQUIRE(f.lane.append(get_of("key"), &second));
  f.lane.seal();
  for (uint32_t i = 1; i < kLayout.window; ++i) f.send();
  f.answer(1, "stays", 2);
  for (uint64_t seq = 2; seq <= kLayout.window; ++seq) f.answer(seq);
  while (f.lane.outstanding() > 0) REQUIRE(f.fetch());
  REQUIRE(first.held != 0);
  REQUIRE(second.held != 0);
  CHECK(!f.lane.has_credit());
  CHECK(!f.lane.append(get_of("key"), &f.listener));
  f.lane.release(first.held);
  CHECK(!f.lane.append(get_of("key"), &f.listener));
  CHECK(second.value == "stays");
  f.lane.release(second.held);
  for (uint32_t i = 0; i < kLayout.window; ++i) f.send();
  CHECK(!f.lane.has_credit());
}

TEST_CASE("bytes that were pushed stay in their reply slot as long as they are held") {
  Fixture f;
  Holder holder(f.lane);
  REQUIRE(f.lane.append(get_of("key"), &holder));
  f.lane.seal();
  for (uint32_t i = 1; i < kLayout.window; ++i) f.send();
  REQUIRE(f.lane.on_delivered(f.pushed(1, "stays")));
  REQUIRE(holder.held != 0);
  for (uint64_t seq = 2; seq <= kLayout.window; ++seq) REQUIRE(f.lane.on_delivered(f.pushed(seq)));
  CHECK(!f.lane.append(get_of("key"), &f.listener));
  CHECK(holder.value == "stays");
  f.lane.release(holder.held);
  for (uint32_t i = 0; i < kLayout.window; ++i) f.send();
}

TEST_CASE("results reach their waiters in order, also when responses come in another order") {
  Fixture f;
  f.send(2);
  f.send(1);
  f.answer(2, "second");
  CHECK(f.fetch());
  CHECK(f.listener.values.empty());
  f.answer(1, "first", 2);
  CHECK(f.fetch());
  CHECK(f.listener.values == std::vector<std::string>{"first", "first", "second"});
  CHECK(f.lane.outstanding() == 0);
}

TEST_CASE("a response with another seq, session or body is not taken, and is fetched again") {
  Fixture f;
  f.send();
  const std::vector<op::Result> results{hit("value")};
  put_response(f.endpoint.responses.data(), kLayout, Fixture::kLane, 1, results, 0, kNonce + 1);
  CHECK(f.fetch());
  CHECK(f.counters.torn.get() == 1);
  put_response(f.endpoint.responses.data(), kLayout, Fixture::kLane, 1 + kLayout.window, results);
  CHECK(f.fetch());
  CHECK(f.counters.refetches.get() == 1);
  const size_t length = put_response(f.endpoint.responses.data(), kLayout, Fixture::kLane, 1, results);
  std::byte* last = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1) + length - 1;
  *last ^= std::byte{1};
  CHECK(f.fetch());
  CHECK(f.counters.torn.get() == 2);
  CHECK(f.listener.values.empty());
  *last ^= std::byte{1};
  CHECK(f.fetch());
  CHECK(f.listener.values == std::vector<std::string>{"value"});
}

TEST_CASE("a body longer than the first read is completed by one read of exactly the rest") {
  Fixture f;
  f.send();
  f.answer(1, std::string(1000, 'v'));
  f.lane.stage_fetches(16);
  REQUIRE(f.endpoint.reads.size() == 1);
  const auto first = f.endpoint.reads[0];
  CHECK(f.lane.on_fetched(first.tag));
  REQUIRE(f.endpoint.reads.size() == 2);
  const auto second = f.endpoint.reads[1];
  CHECK(second.offset == first.offset + first.length);
  CHECK(first.length + second.length == sizeof(wire::ResponseHeader) + 8 + 1000);
  CHECK(f.lane.progress().reads_in_flight == 1);
  CHECK(f.lane.on_fetched(second.tag));
  CHECK(f.listener.values.size() == 1);
  CHECK(f.lane.progress().reads_in_flight == 0);
}

TEST_CASE("no more reads are staged than allowed, oldest first, one for each message") {
  Fixture f;
  for (int i = 0; i < 4; ++i) f.send();
  CHECK(f.lane.stage_fetches(2) == 2);
  CHECK(f.endpoint.reads[0].offset == kLayout.response_offset(Fixture::kLane, 1));
  CHECK(f.endpoint.reads[1].offset == kLayout.response_offset(Fixture::kLane, 2));
  CHECK(f.lane.stage_fetches(8) == 2);
  CHECK(f.lane.stage_fetches(8) == 0);
}

TEST_CASE("the late read of a message that was pushed meanwhile is ignored, even when its slot is in use again") {
  Fixture f;
  f.send();
  f.lane.stage_fetches(1);
  const uint64_t old_tag = f.endpoint.reads[0].tag;
  const std::vector<op::Result> results{hit("pushed")};
  const size_t length = put_response(f.endpoint.responses.data(), kLayout, Fixture::kLane, 1, results);
  CHECK(f.lane.on_delivered({f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1), length}));
  for (uint32_t i = 0; i < kLayout.window; ++i) f.send();
  CHECK(f.lane.on_fetched(old_tag));
  CHECK(f.listener.values == std::vector<std::string>{"pushed"});
}

TEST_CASE("a push that is shorter than it says is not read past its end, and not taken") {
  Fixture f;
  f.send();
  const std::vector<op::Result> results{hit(std::string_view("value"))};
  const size_t length = put_response(f.endpoint.responses.data(), kLayout, Fixture::kLane, 1, results);
  for (size_t cut = 0; cut <= length; ++cut) {
    const std::unique_ptr<std::byte[]> exact(new std::byte[cut + 1]);  // + 1: an empty allocation has no address
    std::memcpy(exact.get(), f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1), cut);
    CHECK(f.lane.on_delivered({exact.get(), cut}));
    CHECK(f.listener.values.size() == (cut == length ? 1 : 0));
  }
}

TEST_CASE("too few results, a status or noise where results should be: malformed, and every waiter is told once") {
  const auto check = [](const std::function<void(Fixture&)>& answer) {
    Fixture f;
    f.send(3);
    f.send(1);
    answer(f);
    CHECK(!f.fetch());
    f.lane.fail_all();
    CHECK(f.listener.codes.size() == 4);
    CHECK(f.listener.codes.back() == ResultCode::kSessionLost);
    CHECK(f.lane.outstanding() == 0);
  };
  check([](Fixture& f) { f.answer(1, "value", 2); });
  check([](Fixture& f) { f.answer(1, "value", 4); });
  check([](Fixture& f) {  // three results are announced, the second is none
    f.answer(1, "value", 3);
    std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1);
    wire::FieldWriter(slot + sizeof(wire::ResponseHeader) + 8 + 5).put(uint8_t{77});
    f.reseal(1);
  });
}

TEST_CASE(
    "what must be 0 in a response and is not, or a byte after the last result: malformed, each waiter told once") {
  // Told results are those before what is wrong; the others learn that the session is lost.
  const auto check = [](size_t told, const std::function<void(std::byte * slot)>& change) {
    for (const bool local : {false, true}) {
      for (const bool pushed : {false, true}) {
        if (local && pushed) continue;
        Fixture f(local);
        f.send(3);
        f.send(1);
        f.answer(1, "value", 3);
        std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1);
        change(slot);
        f.reseal(1);
        CHECK(!(pushed ? f.lane.on_delivered({slot, kLayout.response_slot_size}) : f.fetch()));
        f.lane.fail_all();
        REQUIRE(f.listener.codes.size() == 4);
        CHECK(static_cast<size_t>(std::ranges::count(f.listener.codes, ResultCode::kHit)) == told);
        CHECK(static_cast<size_t>(std::ranges::count(f.listener.codes, ResultCode::kSessionLost)) == 4 - told);
      }
    }
  };
  const size_t body = sizeof(wire::ResponseHeader);
  const size_t result = 8 + 5;
  check(0, [](std::byte* slot) { slot[offsetof(wire::ResponseHeader, hints)] = std::byte{1}; });
  for (size_t i = 0; i < 4; ++i) {
    check(0, [i](std::byte* slot) { slot[offsetof(wire::ResponseHeader, reserved) + i] = std::byte{0x80}; });
  }
  check(1, [&](std::byte* slot) { slot[body + result + 2] = std::byte{0x20}; });  // a mark that is none
  check(2, [&](std::byte* slot) { slot[body + 2 * result + 3] = std::byte{1}; });
  check(2, [&](std::byte* slot) {
    wire::FieldWriter(slot + offsetof(wire::ResponseHeader, length)).put(static_cast<uint32_t>(3 * result + 1));
  });
}

TEST_CASE("a late response with a byte too many ends the session, and no waiter is called twice") {
  Fixture f;
  f.send(2);
  f.now_ns += 100;
  f.lane.expire(f.now_ns);
  f.answer(1, "value", 2);
  std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1);
  wire::FieldWriter(slot + offsetof(wire::ResponseHeader, length)).put(uint32_t{2 * 13 + 1});
  f.reseal(1);
  CHECK(!f.fetch());
  f.lane.fail_all();
  CHECK(f.listener.codes == std::vector<ResultCode>(2, ResultCode::kTimedOut));
}

// --- want, asleep --------------------------------------------------------------------------------------------------

TEST_CASE("want covers everything outstanding and is written once") {
  Fixture f;
  CHECK(!f.lane.stage_want());
  f.send();
  f.send();
  f.endpoint.writes.clear();
  CHECK(f.lane.stage_want());
  CHECK(!f.lane.stage_want());
  REQUIRE(f.endpoint.writes.size() == 1);
  CHECK(f.endpoint.writes[0].offset == kLayout.want_offset(Fixture::kLane));
  CHECK(f.endpoint.writes[0].first_word == 2);
}

TEST_CASE("a lane will be pushed to only after a read staged after want has found nothing") {
  Fixture f;
  CHECK(f.lane.will_be_delivered());
  f.send();
  CHECK(f.lane.stage_fetches(1) == 1);
  f.lane.stage_want();
  CHECK(f.lane.on_fetched(std::exchange(f.endpoint.reads, {})[0].tag));
  CHECK(!f.lane.will_be_delivered());  // that read may have been there before want
  CHECK(f.fetch());
  CHECK(f.lane.will_be_delivered());
  f.send();
  CHECK(!f.lane.will_be_delivered());
}

TEST_CASE("a push before its turn waits in its reply slot; a read of it that is under way is not looked at") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.send();
  f.lane.stage_want();
  f.lane.stage_fetches(16);
  const auto reads = std::exchange(f.endpoint.reads, {});
  CHECK(f.lane.on_delivered(f.pushed(3, "third")));
  CHECK(f.lane.on_delivered(f.pushed(2, "second")));
  CHECK(f.lane.on_fetched(reads[1].tag));  // of the second: found nothing
  CHECK(f.listener.values.empty());
  CHECK(f.lane.on_delivered(f.pushed(2, "second")));
  f.answer(1, "first");
  CHECK(f.lane.on_fetched(reads[0].tag));
  CHECK(f.lane.on_fetched(reads[2].tag));
  CHECK(f.listener.values == std::vector<std::string>{"first", "second", "third"});
  CHECK(f.counters.replies.get() == 2);
}

TEST_CASE(
    "a push before its turn that cannot be used is fetched, and reads that were under way do not count as a last "
    "look") {
  Fixture f;
  f.send();
  f.send();
  f.lane.stage_want();
  f.lane.stage_fetches(16);  // both find nothing
  const auto reads = std::exchange(f.endpoint.reads, {});
  CHECK(f.lane.on_delivered(f.pushed(2, "second", 0, sizeof(wire::ResponseHeader) + 1)));
  CHECK(f.lane.on_fetched(reads[1].tag));
  f.answer(1, "first");
  CHECK(f.lane.on_fetched(reads[0].tag));
  CHECK(f.listener.values == std::vector<std::string>{"first"});
  CHECK(!f.lane.will_be_delivered());
  f.answer(2, "second");
  CHECK(f.fetch());
  CHECK(f.listener.values.size() == 2);
}

TEST_CASE("in reply mode want goes out with the request") {
  Fixture f;
  while (f.lane.progress().mode == FetchPolicy::Mode::kFetch) {
    f.send();
    for (int i = 0; i < 6; ++i) CHECK(f.fetch());
    f.answer(f.lane.progress().answered);
    CHECK(f.fetch());
  }
  f.endpoint.writes.clear();
  f.send();
  REQUIRE(f.endpoint.writes.size() == 2);
  CHECK(f.endpoint.writes[1].offset == kLayout.want_offset(Fixture::kLane));
}

TEST_CASE("a lane set to server reply asks with its first request; one set to fetch never does, only to sleep") {
  Fixture reply(false, {.mode = FetchMode::kReply});
  reply.send();
  REQUIRE(reply.endpoint.writes.size() == 2);
  CHECK(reply.endpoint.writes[1].offset == kLayout.want_offset(Fixture::kLane));

  Fixture fetch(false, {.mode = FetchMode::kFetch});
  for (int message = 0; message < 5; ++message) {
    fetch.send();
    for (int i = 0; i < 20; ++i) CHECK(fetch.fetch());
    fetch.answer(fetch.lane.progress().answered);
    CHECK(fetch.fetch());
  }
  fetch.send();
  CHECK(fetch.counters.wants.get() == 0);
  CHECK(fetch.lane.stage_want());
  CHECK(fetch.counters.wants.get() == 1);
}

TEST_CASE("in reply mode a lane that will be pushed to is not read again, unless a push could not be used") {
  Fixture f;
  while (f.lane.progress().mode == FetchPolicy::Mode::kFetch) {
    f.send();
    for (int i = 0; i < 6; ++i) CHECK(f.fetch());
    f.answer(f.lane.progress().answered);
    CHECK(f.fetch());
  }
  f.send();
  CHECK(f.lane.stage_fetches(16) == 1);
  CHECK(f.lane.on_fetched(std::exchange(f.endpoint.reads, {})[0].tag));
  CHECK(f.lane.will_be_delivered());
  CHECK(f.lane.stage_fetches(16) == 0);
  const uint64_t seq = f.lane.progress().answered;
  f.answer(seq);
  const size_t answered = f.listener.values.size();
  const std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, seq);
  CHECK(f.lane.on_delivered({slot, sizeof(wire::ResponseHeader)}));  // its body is missing
  CHECK(f.listener.values.size() == answered);
  CHECK(f.fetch());
  CHECK(f.listener.values.size() == answered + 1);
}

TEST_CASE("a lane that shows itself asleep is rung once, and again when that has had no effect for long") {
  Fixture f;
  f.send();
  std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1);
  wire::FieldWriter(slot + offsetof(wire::ResponseHeader, asleep)).put(uint64_t{1 + kLayout.window});  // another seq's
  CHECK(f.fetch());
  CHECK(f.endpoint.rings.empty());
  wire::FieldWriter(slot + offsetof(wire::ResponseHeader, asleep)).put(uint64_t{1});
  for (int i = 0; i < 5; ++i) CHECK(f.fetch());
  CHECK(f.endpoint.rings == std::vector<uint32_t>{Fixture::kLane});
  f.now_ns += 20'000'000;
  CHECK(f.fetch());
  CHECK(f.endpoint.rings.size() == 2);
}

// --- a backend that can be asked with the request -------------------------------------------------------------------

namespace {
constexpr FetchOptions kReplies{.mode = FetchMode::kReply};

struct Asking : Fixture {
  explicit Asking(const FetchOptions& fetch = {}) : Fixture(false, fetch, true) {}
  // Sends one message; what was posted for it, and with which flags.
  FakeClientEndpoint::Write request() {
    endpoint.writes.clear();
    send();
    REQUIRE(endpoint.writes.size() == 1);
    flags = header_of(endpoint, endpoint.writes[0]).flags;
    return endpoint.writes[0];
  }
  // The oldest message is answered, as a backend would that was asked, or was not; which tells of its lane, perhaps.
  void answer_oldest(uint8_t hints = 0) {
    const uint64_t seq = lane.progress().answered;
    if (lane.progress().is_asked) {
      REQUIRE(lane.on_delivered(pushed(seq, "value", hints)));
      return;
    }
    const std::vector<op::Result> all{hit("value")};
    put_response(endpoint.responses.data(), kLayout, kLane, seq, all, 0, kNonce, get_of("k"), hints);
    REQUIRE(fetch());
  }
  bool asks() const { return (flags & wire::kPush) != 0; }
  bool is_told() const { return (flags & wire::kTellAsleep) != 0; }

  uint16_t flags = 0;
};
}  // namespace

TEST_CASE("asked with the request, a backend's results are neither wanted nor read: one write a message") {
  Asking f(kReplies);
  CHECK(f.request().rings);  // nobody has asked to be told whether the lane sleeps
  for (int i = 0; i < 3; ++i) {
    CHECK(f.asks());
    CHECK(f.is_told());
    CHECK(f.lane.stage_fetches(16) == 0);
    CHECK(!f.lane.stage_want());
    CHECK(f.lane.will_be_delivered());
    f.answer_oldest();
    CHECK(!f.request().rings);
  }
  CHECK(f.counters.asked.get() == 4);
  CHECK(f.counters.ringing_requests.get() == 1);
  CHECK(f.counters.wants.get() + f.counters.fetches.get() == 0);
}

TEST_CASE("a backend that cannot be asked sees no flag, and no request that rings, whatever it answers") {
  for (const FetchMode mode : {FetchMode::kAuto, FetchMode::kFetch, FetchMode::kReply}) {
    Fixture f(false, {.mode = mode});
    for (int i = 0; i < 3; ++i) {
      f.now_ns += 10'000'000'000;
      f.endpoint.writes.clear();
      f.send();
      CHECK(header_of(f.endpoint, f.endpoint.writes[0]).flags == 0);
      for (const auto& write : f.endpoint.writes) CHECK(!write.rings);
      const uint64_t seq = f.lane.progress().answered;
      std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, seq);
      wire::FieldWriter(slot + offsetof(wire::ResponseHeader, asleep)).put(seq);
      CHECK(f.fetch());
      CHECK(f.lane.on_delivered(f.pushed(seq)));
    }
    CHECK(f.endpoint.rings.size() == 3);
  }
}

TEST_CASE("a push that was asked for and cannot be used is fetched") {
  Asking f(kReplies);
  f.request();
  CHECK(f.lane.on_delivered(f.pushed(1, "value", 0, sizeof(wire::ResponseHeader) + 5)));
  CHECK(!f.lane.will_be_delivered());
  f.answer(1);
  CHECK(f.fetch());
  CHECK(f.listener.values.size() == 1);
}

TEST_CASE(
    "a push that was asked for and does not come is looked for after a long time, and the lane rung if it sleeps") {
  Asking f(kReplies);
  f.request();
  f.answer_oldest();
  f.request();
  f.now_ns += 49'000'000;
  CHECK(f.lane.stage_fetches(16) == 0);
  f.now_ns += 1'000'000;
  std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 2);
  wire::FieldWriter(slot + offsetof(wire::ResponseHeader, asleep)).put(uint64_t{2});
  CHECK(f.fetch());
  CHECK(f.endpoint.rings.size() == 1);
  CHECK(f.lane.will_be_delivered());
  CHECK(f.lane.stage_fetches(16) == 0);  // not at once again
  f.answer_oldest();
  CHECK(f.listener.values.size() == 2);
}

TEST_CASE("time is up for a message that asked: its slot comes back with the late push") {
  Asking f(kReplies);
  for (uint32_t i = 0; i < kLayout.window; ++i) f.send();
  CHECK(f.lane.expire(f.now_ns + 1) == kLayout.window);
  CHECK(!f.lane.has_credit());
  for (uint64_t seq = kLayout.window; seq >= 1; --seq) CHECK(f.lane.on_delivered(f.pushed(seq)));
  CHECK(f.listener.values.size() == kLayout.window);
  CHECK(f.lane.outstanding() == 0);
  CHECK(f.lane.has_credit());
}

TEST_CASE("told that the lane sleeps, a client rings for the message that is on its way, once") {
  Asking f(kReplies);
  f.request();
  f.answer_oldest();
  CHECK(!f.request().rings);
  CHECK(f.lane.on_delivered(f.told_asleep(2)));
  CHECK(f.endpoint.rings == std::vector<uint32_t>{Fixture::kLane});
  CHECK(f.lane.on_delivered(f.told_asleep(2)));
  CHECK(f.endpoint.rings.size() == 1);
  CHECK(f.lane.will_be_delivered());
  f.answer_oldest(wire::kLaneSlept);
  CHECK(f.listener.values.size() == 2);
}

TEST_CASE("told that the lane sleeps, a client has its next request ring") {
  Asking f(kReplies);
  f.request();
  f.answer_oldest();
  CHECK(f.lane.on_delivered(f.told_asleep(2)));
  CHECK(f.endpoint.rings.empty());
  CHECK(f.request().rings);
  CHECK(f.lane.on_delivered(f.told_asleep(2)));  // again, too late
  CHECK(f.endpoint.rings.empty());
}

TEST_CASE("that a lane slept before a message that is answered by now, or will sleep, is no reason to ring") {
  Asking f(kReplies);
  for (int i = 0; i < 2; ++i) {
    f.request();
    f.answer_oldest();
  }
  f.request();
  for (const uint64_t seq : {uint64_t{1}, uint64_t{2}, uint64_t{5}, UINT64_MAX})
    CHECK(f.lane.on_delivered(f.told_asleep(seq)));
  CHECK(f.endpoint.rings.empty());
}

TEST_CASE(
    "a lane that sleeps in pauses gets its requests as rings, each answered by a push, as long as pauses are long") {
  Asking f;
  CHECK(!f.request().rings);
  CHECK(!f.asks());
  f.answer_oldest();
  f.now_ns += 3'000'000;
  CHECK(!f.request().rings);  // nobody knows yet
  f.answer_oldest(wire::kLaneSlept);
  for (int i = 0; i < 10; ++i) {
    f.now_ns += 5'000'000;
    CHECK(f.request().rings);
    CHECK(f.asks());
    CHECK(!f.is_told());
    f.answer_oldest(wire::kLaneSlept);
  }
  CHECK(f.counters.wants.get() == 0);
  f.now_ns += 10'000;  // a short one
  CHECK(!f.request().rings);
  CHECK(!f.asks());
  f.answer_oldest();
  // It did not sleep: the pause that it takes is longer.
  f.now_ns += 20'000'000;
  CHECK(f.request().rings);
  f.answer_oldest();
  f.now_ns += 20'000'000;
  CHECK(!f.request().rings);
}

TEST_CASE("a lane set to fetch does not ask for a push, but rings with the request if the server's probably sleeps") {
  Asking f({.mode = FetchMode::kFetch});
  f.request();
  f.answer_oldest(wire::kLaneSlept);
  f.now_ns += 5'000'000'000;
  CHECK(f.request().rings);
  CHECK(!f.asks());
  CHECK(!f.is_told());
  f.answer_oldest(wire::kLaneSlept | wire::kPushingIsCheap);
  f.request();
  CHECK(!f.asks());
}

TEST_CASE("as long as the backend says that pushing is cheap, results are pushed") {
  Asking f;
  f.request();
  f.answer_oldest(wire::kPushingIsCheap);
  CHECK(f.lane.progress().mode == FetchPolicy::Mode::kReply);
  CHECK(f.counters.is_push_cheap.get() == 1);
  CHECK(f.request().rings);
  CHECK(f.asks());
  f.answer_oldest(0);
  CHECK(f.lane.progress().mode == FetchPolicy::Mode::kFetch);
  CHECK(f.counters.is_push_cheap.get() == 0);
  f.request();
  CHECK(!f.asks());
  CHECK(f.counters.switches_to_reply.get() == 1);
  CHECK(f.counters.switches_to_fetch.get() == 1);
}

TEST_CASE("a message behind one that is fetched asks for itself; each is answered once, in order") {
  Asking f;
  f.request();  // fetched
  f.answer_oldest(wire::kPushingIsCheap);
  f.request();  // asks
  f.answer_oldest(0);
  f.request();  // fetched: the last look is its own
  CHECK(f.lane.stage_want());
  CHECK(!f.lane.will_be_delivered());
  CHECK(f.fetch());
  CHECK(f.lane.will_be_delivered());
  f.answer_oldest();
  CHECK(f.listener.values.size() == 3);
}

TEST_CASE("hints that nobody agreed on, or that nobody knows, are malformed") {
  Fixture f;
  f.send();
  CHECK_FALSE(f.lane.on_delivered(f.pushed(1, "value", wire::kPushingIsCheap)));
  for (const int hint : {4, 8, 16, 32, 64, 128}) {
    Asking asking(kReplies);
    asking.request();
    CHECK_FALSE(asking.lane.on_delivered(asking.pushed(1, "value", static_cast<uint8_t>(hint))));
  }
}

// --- what is counted -----------------------------------------------------------------------------------------------

TEST_CASE("each message, op, fetch, want, ring, second read and reply is counted as what it is") {
  Fixture f;
  f.send(3);
  CHECK(f.fetch());
  f.lane.stage_want();
  f.answer(1, std::string(500, 'v'), 3);
  const std::byte* slot = f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, 1);
  CHECK(f.lane.on_delivered({slot, kLayout.response_slot_size}));
  f.send(1);
  f.answer(2, std::string(1500, 'v'));
  f.now_ns += 2'000'000;
  CHECK(f.lane.stage_fetches(1) == 1);
  CHECK(f.lane.on_fetched(f.endpoint.reads[0].tag));
  CHECK(f.lane.on_fetched(f.endpoint.reads[1].tag));
  f.send(1);
  f.lane.expire(f.now_ns + 1);
  CHECK(f.lane.outstanding() == 1);
  const std::pair<const char*, uint64_t> expected[] = {
      {"messages", 3},     {"ops", 5},     {"fetches", 2}, {"refetches", 1}, {"torn", 0},
      {"second_reads", 1}, {"replies", 1}, {"wants", 1},   {"rings", 0},     {"timeouts", 1}};
  for (const auto& row : expected) {
    CAPTURE(row.first);
    const auto metric = std::ranges::find(lane_metrics(), row.first, &LaneMetric::name);
    CHECK(metric->value(std::vector<const LaneCounters*>{&f.counters}) == std::to_string(row.second));
  }
}

TEST_CASE("where a push is only a wake-up, what it brought is counted as replies, what came without it is not") {
  Fixture f(true);
  f.send();
  f.answer(1);
  CHECK(f.fetch());
  CHECK(f.counters.replies.get() == 0);
  f.send();
  f.send();
  CHECK(f.lane.stage_want());
  CHECK(f.fetch());
  f.answer(2);
  f.lane.begin_pass();  // the pass began before the wake-up was heard of
  f.lane.on_woken();
  CHECK(f.fetch());
  CHECK(f.fetch());  // the other one is not there yet
  CHECK(f.counters.replies.get() == 1);
  f.answer(3);
  CHECK(f.fetch());
  CHECK(f.counters.replies.get() == 1);
  f.send();
  CHECK(f.lane.stage_want());
  CHECK(f.fetch());
  f.answer(4);
  f.lane.on_woken();
  f.lane.begin_pass();
  CHECK(f.fetch());
  CHECK(f.counters.replies.get() == 2);
}

TEST_CASE("switches of the mode are counted each way, and the mode is what it is until the session's end") {
  Fixture f(false, {.max_refetches = 0});
  const auto mode = [&] { return static_cast<LaneMode>(f.counters.mode.get()); };
  CHECK(mode() == LaneMode::kFetch);
  CHECK(f.counters.fetch_size.get() == FetchOptions{}.min_fetch);
  const auto messages = [&](int count, bool in_vain) {
    for (; count > 0; --count) {
      f.send();
      if (in_vain) CHECK(f.fetch());
      f.answer(f.lane.progress().answered, std::string(700, 'v'));
      const std::byte* slot =
          f.endpoint.responses.data() + kLayout.response_offset(Fixture::kLane, f.lane.progress().answered);
      CHECK(f.lane.on_delivered({slot, kLayout.response_slot_size}));
    }
  };
  messages(2, true);
  CHECK(mode() == LaneMode::kReply);
  CHECK(f.counters.switches_to_reply.get() == 1);
  CHECK(f.counters.switches_to_fetch.get() == 0);
  CHECK(f.counters.fetch_size.get() > FetchOptions{}.min_fetch);
  messages(64, false);
  CHECK(mode() == LaneMode::kFetch);
  CHECK(f.counters.switches_to_reply.get() == 1);
  CHECK(f.counters.switches_to_fetch.get() == 1);
  f.lane.fail_all();
  CHECK(mode() == LaneMode::kNone);
  CHECK(f.counters.fetch_size.get() == 0);
  CHECK(f.counters.messages.get() == 66);
}

TEST_CASE("F never goes beyond the slot, whatever its bounds") {
  Fixture f(false, {.min_fetch = 64 * 1024, .max_fetch = 64 * 1024});
  CHECK(f.counters.fetch_size.get() == kLayout.response_slot_size);
  f.send();
  f.lane.stage_fetches(1);
  CHECK(f.endpoint.reads[0].length == kLayout.response_slot_size);
}

// --- endings -------------------------------------------------------------------------------------------------------

TEST_CASE("time is up for messages sent before, once; their slots come back with the late response") {
  Fixture f;
  f.send(2);
  f.now_ns += 100;
  f.send(1);
  f.lane.expire(f.now_ns);
  f.lane.expire(f.now_ns);
  CHECK(f.listener.codes == std::vector<ResultCode>(2, ResultCode::kTimedOut));
  CHECK(f.lane.outstanding() == 2);
  f.answer(1, "late", 2);
  f.answer(2, "in time");
  CHECK(f.fetch());
  CHECK(f.listener.codes.size() == 3);
  CHECK(f.listener.values.back() == "in time");
  CHECK(f.lane.outstanding() == 0);
}

TEST_CASE(
    "the end of a session is told to those who wait, not to those whose time was up; of the open message it is said "
    "that nothing was sent") {
  Fixture f;
  f.send(1);
  f.now_ns += 100;
  f.lane.expire(f.now_ns);
  f.send(2);
  REQUIRE(f.lane.append(get_of("open"), &f.listener));
  f.lane.fail_all();
  CHECK(f.listener.codes == std::vector<ResultCode>{ResultCode::kTimedOut, ResultCode::kSessionLost,
                                                    ResultCode::kSessionLost, ResultCode::kNotSent});
}
