// A pool of backends behind one worker: the backend of a key, which ops fail when a backend is down, and ops for all
// backends. The test plays every backend.
#include "pool/pool.h"

#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "pool/fan_out.h"
#include "rpc/session_ref.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;
using op::StatId;
using rpc::FakeClientEndpoint;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 2, .window = 2, .request_slot_size = 1024, .response_slot_size = 1024};

// By address, of the last connect; tests run one after the other.
std::map<std::string, FakeClientEndpoint*> connected;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                   const transport::ConnectOptions&) {
  auto endpoint = std::make_unique<FakeClientEndpoint>(kLayout, true);
  connected[address] = endpoint.get();
  return std::unique_ptr<transport::ClientEndpoint>(std::move(endpoint));
}

struct TestPool final : rpc::SessionObserver {
  explicit TestPool(const std::vector<Member>& members, const std::vector<Member>& gutter = {}) {
    apply(members, gutter);
  }
  void apply(const std::vector<Member>& members, const std::vector<Member>& gutter = {}) {
    names = members;
    names.insert(names.end(), gutter.begin(), gutter.end());
    router.apply(
        std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                           std::initializer_list<const Membership*>{&router.membership()}, gutter),
        clock.now_ns());
  }
  std::unique_ptr<rpc::ClientSession> make(const Membership::Entry& member) {
    rpc::SessionOptions options;
    options.address = member.member.address;
    return std::make_unique<rpc::ClientSession>(options, clock, *this, connect, member.stats->sessions[0]);
  }
  egret::base::Status on_session_connecting(rpc::ClientSession&) override { return egret::base::Status::ok(); }
  egret::base::Status on_session_open(rpc::ClientSession&) override { return egret::base::Status::ok(); }
  void on_session_lost(rpc::ClientSession&, const std::string&, bool) override {}

  rpc::ClientSession& session(size_t backend) { return *router.sessions()[backend]; }
  FakeClientEndpoint& endpoint(size_t backend) { return *connected.at(names[backend].address); }
  // Each backend hashes with a seed of its own.
  void open(size_t backend) {
    if (session(backend).lanes().generation() == 0) {
      session(backend).start();
    } else {
      clock.advance_ns(rpc::SessionOptions().backoff_max_ns);
      session(backend).tick();
    }
    grant(backend);
  }
  void grant(size_t backend) {
    endpoint(backend).frames_in.push_back(encode(wire::Grant{.session_id = 1,
                                                             .nonce = rpc::kNonce,
                                                             .epoch = 1,
                                                             .hash_seed = backend,
                                                             .item_size_max = 1,
                                                             .layout = kLayout}));
    session(backend).on_control_ready();
    REQUIRE(session(backend).is_open());
  }
  void open_all() {
    for (size_t i = 0; i < names.size(); ++i) open(i);
  }
  // These, and nobody else.
  void eject(const std::set<size_t>& backends) {
    std::vector<const MemberStats*> ejected;
    for (const size_t backend : backends) ejected.push_back(router.membership().members()[backend].stats.get());
    router.take(std::make_shared<const Health>(router.health().version() + 1, ejected));
  }
  // This one, and others stand in for it as `absent` says.
  void take(size_t backend, Absent absent) {
    absent.member = router.membership().members()[backend].stats.get();
    router.take(std::make_shared<const Health>(router.health().version() + 1, std::vector<Absent>{absent}));
  }
  // The backend is gone; those who waited for it are told.
  void lose(size_t backend) {
    endpoint(backend).peer_gone = true;
    session(backend).on_control_ready();
    REQUIRE(!session(backend).is_open());
    session(backend).credit().hand_out();
  }
  // Sends what is appended; says which lanes' messages number `seq` have gone out.
  std::set<uint32_t> sent(size_t backend, uint64_t seq = 1) {
    session(backend).flush();
    std::set<uint32_t> lanes;
    for (const auto& write : endpoint(backend).writes) {
      for (uint32_t lane = 0; lane < kLayout.lanes; ++lane) {
        if (write.first_word == seq && write.offset == kLayout.request_offset(lane, seq)) lanes.insert(lane);
      }
    }
    return lanes;
  }
  void answer(size_t backend, uint32_t lane, uint64_t seq, ResultCode code, std::string_view value = {}) {
    op::Result result;
    result.code = code;
    result.value = value;
    rpc::put_response(endpoint(backend).responses.data(), kLayout, lane, seq, std::vector<op::Result>{result});
  }
  // What is answered reaches those who asked, and so does the credit that came back.
  void fetch(size_t backend) {
    session(backend).fetch();
    for (const auto& read : std::exchange(endpoint(backend).reads, {})) {
      transport::Event fetched;
      fetched.kind = transport::Event::Kind::kFetched;
      fetched.tag = read.tag;
      endpoint(backend).events.push_back(fetched);
    }
    session(backend).fetch();
    session(backend).credit().hand_out();
  }
  // A page of statistics that are `rows_in_all` rows long from its beginning on.
  void answer_page(size_t backend, uint32_t lane, uint64_t seq, std::string_view page, size_t rows_in_all) {
    op::Result result;
    result.code = ResultCode::kOk;
    result.value = page;
    result.total_length = static_cast<uint32_t>(rows_in_all * sizeof(op::StatRow));
    op::Op stats;
    stats.code = op::OpCode::kStats;
    rpc::put_response(endpoint(backend).responses.data(), kLayout, lane, seq, std::vector<op::Result>{result}, 0,
                      rpc::kNonce, stats);
  }
  // The cursor of the stats op that is message `seq` of a lane.
  uint64_t cursor(size_t backend, uint32_t lane, uint64_t seq) {
    const std::byte* slot = endpoint(backend).requests.data() + kLayout.request_offset(lane, seq);
    wire::RequestHeader header;
    std::memcpy(&header, slot, sizeof header);
    op::Op op;
    REQUIRE(wire::decode_ops(slot + sizeof header, header.length, {&op, 1}) == wire::DecodeError::kNone);
    return op.version;
  }
  void answer_all(size_t backend, ResultCode code = ResultCode::kOk, std::string_view value = {}) {
    for (const uint32_t lane : sent(backend)) answer(backend, lane, 1, code, value);
    fetch(backend);
  }

  base::ManualClock clock;
  std::vector<Member> names;
  Pool router{[this](const Membership::Entry& member) { return make(member); }};
};

const std::vector<Member> kThree{{"shm:a", "a"}, {"shm:b", "b"}, {"shm:c", "c"}};
const std::vector<Member> kOne{{"shm:only", "only"}};
const std::vector<KetamaServer> kRingOfThree{{"a"}, {"b"}, {"c"}};

// Keeps what it is told in place of the FanOut, which is gone afterwards.
struct Asker final : FanOutOwner {
  void on_fan_out(const FanOut& fan_out) override {
    ++told;
    failure = fan_out.failure();
    up = fan_out.backends_up();
    backends = fan_out.backends();
    for (const op::StatInfo& info : op::stat_table()) stats[info.id] = fan_out.stat(info.id);
    classes = fan_out.class_stats();
    answers = fan_out.answers();
  }
  FanOut* ask(TestPool& pool, op::OpCode code, op::StatGroup group = op::StatGroup::kGeneral) {
    op::Op op;
    op.code = code;
    op.group = static_cast<uint8_t>(group);
    auto* fan_out = new FanOut(pool.router, op, *this);
    fan_out->start();
    return fan_out;
  }
  int told = 0;
  size_t up = 0, backends = 0;
  ResultCode failure = ResultCode::kOk;
  uint64_t of_class(uint32_t size_class, op::ClassField field) const {
    return size_class < classes.size() ? classes[size_class][static_cast<size_t>(field)] : 0;
  }
  std::map<StatId, uint64_t> stats;
  ClassStats classes;
  std::vector<std::string> answers;
};

std::string rows(const std::vector<std::pair<StatId, uint64_t>>& stats) {
  std::string text;
  for (const auto& [id, value] : stats) {
    const op::StatRow row{.id = static_cast<uint32_t>(id), .reserved = 0, .value = value};
    text.append(reinterpret_cast<const char*>(&row), sizeof row);
  }
  return text;
}

struct ClassRow {
  uint32_t size_class;
  op::ClassField field;
  uint64_t value;
};
std::string class_rows(const std::vector<ClassRow>& stats) {
  std::string text;
  for (const ClassRow& given : stats) {
    const op::StatRow row{.id = op::class_row_id(given.size_class, given.field), .reserved = 0, .value = given.value};
    text.append(reinterpret_cast<const char*>(&row), sizeof row);
  }
  return text;
}

}  // namespace

// --- keys ----------------------------------------------------------------------------------------------------------

TEST_CASE("a key goes to the backend that ketama says, hashed with that backend's seed") {
  TestPool pool(kThree);
  pool.open_all();
  const KetamaRing ring(kRingOfThree);
  std::set<rpc::ClientSession*> seen;
  for (int i = 0; i < 100; ++i) {
    const std::string key = std::to_string(i);
    const Route target = pool.router.route(key);
    REQUIRE(target.session == &pool.session(ring.server_of(key)));
    CHECK(target.hash == target.session->lanes().hash(key));
    seen.insert(target.session);
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("a backend that is down keeps its keys, and only they fail; it has them again when it is back") {
  TestPool pool(kThree);
  pool.open_all();
  const KetamaRing ring(kRingOfThree);
  const auto check = [&](std::optional<size_t> down) {
    for (int i = 0; i < 100; ++i) {
      const std::string key = std::to_string(i);
      const size_t backend = ring.server_of(key);
      CHECK(pool.router.route(key).session == (backend == down ? nullptr : &pool.session(backend)));
    }
  };
  check(std::nullopt);
  pool.lose(1);
  check(1);
  pool.open(1);
  check(std::nullopt);
}

TEST_CASE("a pool of one has every key") {
  TestPool pool(kOne);
  CHECK(pool.router.route("key").session == nullptr);
  pool.open_all();
  for (int i = 0; i < 100; ++i) CHECK(pool.router.route(std::to_string(i)).session == &pool.session(0));
}

// --- members that come and go

namespace {
// Counts its results.
struct Counting final : rpc::Waiter {
  void on_result(const op::Result& result) override {
    ++results;
    code = result.code;
  }
  int results = 0;
  ResultCode code = ResultCode::kOk;
};

op::Op get_of(const Route& route, std::string_view key) {
  op::Op get;
  get.code = op::OpCode::kGet;
  get.key = key;
  get.hash = route.hash;
  return get;
}

// A key that belongs to member number `owner` of this pool.
std::string key_of(const TestPool& pool, size_t owner) {
  for (int i = 0;; ++i) {
    if (pool.router.membership().owner_of(std::to_string(i)) == owner) return std::to_string(i);
  }
}
}  // namespace

TEST_CASE("a member that stays keeps its session, and a new one gets its own") {
  TestPool pool(kThree);
  pool.open_all();
  const std::vector<rpc::ClientSession*> before{&pool.session(0), &pool.session(1), &pool.session(2)};
  pool.apply({kThree[2], {"shm:d", "d"}, kThree[0], kThree[1]});
  CHECK(&pool.session(0) == before[2]);
  CHECK(&pool.session(2) == before[0]);
  CHECK(&pool.session(3) == before[1]);
  CHECK(pool.session(2).is_open());
  CHECK_FALSE(pool.session(1).is_open());
  pool.open(1);
  CHECK(pool.router.route(key_of(pool, 1)).session == &pool.session(1));
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

namespace {
const std::vector<Member> kGutter{{"shm:g", "g"}, {"shm:h", "h"}};

// A key of member number `owner` that the gutter's number `stand_in` takes.
std::string key_of(const TestPool& pool, size_t owner, size_t stand_in) {
  for (int i = 0;; ++i) {
    const std::string key = std::to_string(i);
    if (pool.router.membership().owner_of(key) == owner && pool.router.membership().gutter_of(key) == stand_in)
      return key;
  }
}
}  // namespace

TEST_CASE("the gutter owns no key, and takes those of an absent member when it is entered") {
  TestPool pool(kThree, kGutter);
  pool.open_all();
  CHECK(pool.router.serving().size() == 3);
  REQUIRE(pool.router.gutter().size() == 2);
  const std::string first = key_of(pool, 1, 0);
  const std::string second = key_of(pool, 1, 1);
  CHECK(pool.router.route(first).session == &pool.session(1));
  CHECK(pool.router.route(first).tag == 0);
  pool.take(1, {});
  CHECK_FALSE(pool.session(1).is_open());
  CHECK(pool.router.route(first).session == nullptr);
  const MemberStats* const stand_in = pool.router.membership().gutter()[1].stats.get();
  pool.take(1, {.how = Absence::kStoodIn, .tag = 77, .entered = {stand_in}});
  CHECK(pool.router.route(first).session == nullptr);  // the other one has not been entered
  const Route route = pool.router.route(second);
  CHECK(route.session == &pool.session(4));
  CHECK(route.tag == 77);
  CHECK(route.hash == pool.session(4).lanes().hash(second));
  CHECK(pool.router.route(key_of(pool, 0)).session == &pool.session(0));
  pool.lose(4);
  CHECK(pool.router.route(second).session == nullptr);
}

TEST_CASE("a member opens before it returns; in the moment before, ops on its keys wait") {
  TestPool pool(kThree, kGutter);
  pool.open_all();
  const std::string key = key_of(pool, 1, 1);
  const MemberStats* const stand_in = pool.router.membership().gutter()[1].stats.get();
  pool.take(1, {.how = Absence::kStoodIn, .tag = 77, .entered = {stand_in}});
  CHECK(pool.session(1).state() == rpc::ClientSession::State::kClosed);
  pool.take(1, {.how = Absence::kStoodIn, .opens = true, .tag = 77, .entered = {stand_in}});
  pool.grant(1);
  CHECK(pool.router.route(key).session == &pool.session(4));
  pool.take(1, {.how = Absence::kWaits, .opens = true, .tag = 77});
  CHECK(pool.router.route(key).waits);
  CHECK(pool.router.route(key).session == nullptr);
  struct Waiting final : rpc::CreditWaiter {
    void on_credit() override { ++called; }
    int called = 0;
  } waiting;
  pool.router.returns().hand_out();
  pool.router.returns().wait(&waiting);
  pool.router.returns().hand_out();
  CHECK(waiting.called == 0);
  pool.eject({});
  pool.router.returns().hand_out();
  CHECK(waiting.called == 1);
  CHECK(pool.session(1).is_open());
  CHECK(pool.router.route(key).session == &pool.session(1));
  CHECK_FALSE(pool.router.route(key).waits);
}

TEST_CASE("a member of the same name at another address is another member") {
  TestPool pool(kThree);
  pool.open_all();
  pool.apply({kThree[0], {"shm:elsewhere", "b"}, kThree[2]});
  CHECK_FALSE(pool.session(1).is_open());
  CHECK(pool.router.is_anybody_leaving());
  pool.router.let_leave(pool.clock.now_ns());
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

TEST_CASE("its counters go on as long as it is a member, whatever the weight") {
  TestPool pool(kThree);
  pool.open_all();
  pool.session(1).counters().deliveries.add(5);
  pool.apply({kThree[0], {"shm:b", "b", 7}});
  CHECK(pool.router.membership().members()[1].stats->sessions[0]->deliveries.get() == 5);
  CHECK(pool.router.membership().members()[1].member.weight == 7);
  pool.apply({kThree[0]});
  pool.router.let_leave(pool.clock.now_ns());
  pool.apply(kThree);
  CHECK(pool.router.membership().members()[1].stats->sessions[0]->deliveries.get() == 0);
}

TEST_CASE("what is under way with a member that has left is answered, once, and then its session is closed") {
  TestPool pool(kThree);
  pool.open_all();
  const std::string key = key_of(pool, 1);
  const Route route = pool.router.route(key);
  Counting waiter;
  REQUIRE(route.session->lanes().of(route.hash).append(get_of(route, key), &waiter));
  const std::set<uint32_t> lanes = pool.sent(1);
  rpc::ClientSession& leaving = pool.session(1);
  pool.apply({kThree[0], kThree[2]});
  CHECK(pool.router.is_leaving(leaving));
  CHECK(pool.router.member_of(leaving).member.name == "b");
  CHECK(pool.router.route(key).session != &leaving);
  pool.router.let_leave(pool.clock.now_ns());
  REQUIRE(leaving.is_open());
  op::Result miss;
  miss.code = ResultCode::kMiss;
  FakeClientEndpoint& endpoint = *connected.at("shm:b");
  for (const uint32_t lane : lanes) {
    rpc::put_response(endpoint.responses.data(), kLayout, lane, 1, std::vector<op::Result>{miss});
  }
  leaving.fetch();
  for (const auto& read : std::exchange(endpoint.reads, {})) {
    transport::Event fetched;
    fetched.kind = transport::Event::Kind::kFetched;
    fetched.tag = read.tag;
    endpoint.events.push_back(fetched);
  }
  leaving.fetch();
  CHECK(waiter.results == 1);
  CHECK(waiter.code == ResultCode::kMiss);
  CHECK(pool.router.let_leave(pool.clock.now_ns()) == std::vector<const rpc::ClientSession*>{&leaving});
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

TEST_CASE("a session by which others reach a member that has left is closed when they have gone, or the time is over") {
  for (const bool they_go : {true, false}) {
    TestPool pool(kThree);
    pool.open_all();
    rpc::ClientSession& leaving = pool.session(1);
    pool.apply({kThree[0], kThree[2]});
    std::optional<rpc::SessionAnchor> others(leaving);
    CHECK(pool.router.let_leave(pool.clock.now_ns()).empty());
    REQUIRE(leaving.is_open());
    CHECK(pool.router.is_leaving(leaving));
    if (they_go) {
      others.reset();
    } else {
      CHECK(pool.router.let_leave(pool.clock.now_ns() + Pool::kLeaveNs).empty());  // closed; the object stays
      CHECK_FALSE(leaving.is_open());
      others.reset();
    }
    CHECK(pool.router.let_leave(pool.clock.now_ns()).size() == 1);
    CHECK_FALSE(pool.router.is_anybody_leaving());
  }
}

TEST_CASE("what does not end is failed, once, when the time is over") {
  TestPool pool(kThree);
  pool.open_all();
  const std::string key = key_of(pool, 1);
  const Route route = pool.router.route(key);
  Counting waiter;
  REQUIRE(route.session->lanes().of(route.hash).append(get_of(route, key), &waiter));
  pool.sent(1);
  pool.apply({kThree[0], kThree[2]});
  pool.clock.advance_ns(Pool::kLeaveNs - 1);
  pool.router.let_leave(pool.clock.now_ns());
  CHECK(waiter.results == 0);
  pool.clock.advance_ns(1);
  pool.router.let_leave(pool.clock.now_ns());
  CHECK(waiter.results == 1);
  CHECK(waiter.code == ResultCode::kSessionLost);
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

TEST_CASE("a session that somebody holds is destroyed after its holder has let go") {
  TestPool pool(kThree);
  pool.open_all();
  rpc::SessionRef held(pool.session(1));
  pool.apply({kThree[0], kThree[2]});
  pool.clock.advance_ns(Pool::kLeaveNs);
  CHECK(pool.router.let_leave(pool.clock.now_ns()).empty());
  CHECK_FALSE(held->is_open());
  CHECK(pool.router.is_anybody_leaving());
  held.reset();
  CHECK(pool.router.let_leave(pool.clock.now_ns()).size() == 1);
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

TEST_CASE("with an ejected member nothing is under way, and nothing is tried, until it returns") {
  TestPool pool(kThree);
  pool.open_all();
  const std::string key = key_of(pool, 1);
  const Route route = pool.router.route(key);
  Counting waiter;
  REQUIRE(route.session->lanes().of(route.hash).append(get_of(route, key), &waiter));
  pool.sent(1);
  pool.eject({1});
  CHECK(waiter.results == 1);
  CHECK(waiter.code == ResultCode::kSessionLost);
  CHECK(pool.router.route(key).session == nullptr);
  CHECK(pool.router.route(key_of(pool, 0)).session == &pool.session(0));
  CHECK_FALSE(pool.session(1).needs_tick());
  FakeClientEndpoint* const before = std::exchange(connected["shm:b"], nullptr);
  CHECK(before != nullptr);
  pool.clock.advance_ns(3'600'000'000'000);
  pool.session(1).tick();
  CHECK(connected["shm:b"] == nullptr);
  CHECK(pool.session(1).counters().signs.failures.get() == 0);
  pool.eject({});
  CHECK(connected["shm:b"] != nullptr);  // at once
  pool.grant(1);
  CHECK(pool.router.route(key).session == &pool.session(1));
}

TEST_CASE("a change of members waits for no session with an ejected one, and a verdict stays with its member") {
  TestPool pool(kThree);
  pool.open_all();
  pool.lose(1);
  const std::vector<Member> next{kThree[1], kThree[0]};
  const Membership after(PlacementRule::kKetama, next, 1, {&pool.router.membership()});
  CHECK_FALSE(pool.router.is_ready_for(after));
  pool.eject({1});
  CHECK(pool.router.is_ready_for(after));
  pool.apply(next);
  CHECK(pool.session(0).state() == rpc::ClientSession::State::kClosed);
  CHECK(pool.session(1).is_open());
}

TEST_CASE("an ejected member that leaves the pool is not tried again") {
  TestPool pool(kThree);
  pool.open_all();
  rpc::ClientSession& leaving = pool.session(1);
  pool.eject({1});
  pool.apply({kThree[0], kThree[2]});
  pool.eject({});
  CHECK_FALSE(leaving.is_open());
  CHECK(leaving.state() == rpc::ClientSession::State::kClosed);
  CHECK(pool.router.let_leave(pool.clock.now_ns()).size() == 1);
}

TEST_CASE("a verdict of later members waits for them: until then no key goes to an ejected one that leaves with them") {
  TestPool pool(kThree);
  pool.open_all();
  const std::string key = key_of(pool, 1);
  pool.eject({1});
  const auto of_two =
      std::make_shared<const Membership>(PlacementRule::kKetama, std::vector<Member>{kThree[0], kThree[2]}, 1,
                                         std::initializer_list<const Membership*>{&pool.router.membership()});
  const auto verdict = std::make_shared<const Health>(9, std::vector<Absent>{}, of_two->version());
  CHECK_FALSE(pool.router.take(verdict));
  CHECK(pool.router.health().ejected() == 1);
  CHECK(pool.router.route(key).session == nullptr);
  CHECK(pool.session(1).state() == rpc::ClientSession::State::kClosed);
  pool.router.apply(of_two, pool.clock.now_ns());
  CHECK(pool.router.take(verdict));
  CHECK(pool.router.health().version() == 9);
}

TEST_CASE("one that comes back while it is leaving gets another session, and the first goes on leaving") {
  TestPool pool(kThree);
  pool.open_all();
  rpc::ClientSession* const before = &pool.session(1);
  pool.apply({kThree[0], kThree[2]});
  pool.apply(kThree);
  CHECK(&pool.session(1) != before);
  CHECK(pool.router.is_leaving(*before));
  CHECK(pool.router.let_leave(pool.clock.now_ns()).size() == 1);
}

TEST_CASE("a member that joins gets a session before it gets keys") {
  TestPool pool(kThree);
  pool.open_all();
  std::vector<Member> four = kThree;
  four.push_back({"shm:d", "d"});
  const Membership next(PlacementRule::kKetama, four, 1, {&pool.router.membership()});
  const std::vector<rpc::ClientSession*> fresh = pool.router.prepare(next);
  REQUIRE(fresh.size() == 1);
  CHECK(pool.router.serving().size() == 3);
  CHECK_FALSE(pool.router.is_ready_for(next));
  CHECK(pool.router.prepare(next).empty());
  for (int i = 0; i < 100; ++i) CHECK(pool.router.route(std::to_string(i)).session != fresh[0]);
  pool.names = four;
  pool.open(3);
  CHECK(pool.router.is_ready_for(next));
  pool.router.let_leave(pool.clock.now_ns());
  CHECK(pool.router.apply(std::make_shared<const Membership>(next), pool.clock.now_ns()).empty());
  CHECK(pool.router.serving()[3].get() == fresh[0]);
  CHECK_FALSE(pool.router.is_anybody_leaving());
}

TEST_CASE("one that was to leave, and is to stay after all before it has gone, keeps its session") {
  TestPool pool(kThree);
  pool.open_all();
  rpc::ClientSession* const third = &pool.session(2);
  const Membership all(PlacementRule::kKetama, kThree, 1, {&pool.router.membership()});
  pool.apply({kThree[0], kThree[1]});
  CHECK(pool.router.is_leaving(*third));
  CHECK(pool.router.prepare(all).empty());
  CHECK_FALSE(pool.router.is_leaving(*third));
  CHECK(pool.router.let_leave(pool.clock.now_ns()).empty());
  CHECK(pool.router.is_ready_for(all));
  CHECK(pool.router.apply(std::make_shared<const Membership>(all), pool.clock.now_ns()).empty());
  CHECK(pool.router.serving()[2].get() == third);
  CHECK(third->is_open());
}

// Other workers reach the member by this one's session, and may have changed to the next members before this one.
TEST_CASE(
    "what comes for a member that joins, after what was sent before it left is answered, does not end its session") {
  TestPool pool(kThree);
  pool.open_all();
  const Membership all(PlacementRule::kKetama, kThree, 1, {&pool.router.membership()});
  bool is_new = false;
  SUBCASE("one that had left") {}
  SUBCASE("a new one") {
    is_new = true;
  }
  pool.apply({kThree[0], kThree[1]});
  if (is_new) pool.router.let_leave(pool.clock.now_ns());
  pool.router.prepare(all);
  rpc::ClientSession& third = *pool.router.sessions().back();
  if (is_new) {
    pool.names = kThree;
    pool.open(2);
  }
  REQUIRE(pool.router.is_ready_for(all));
  Counting waiter;
  op::Op get;
  get.code = op::OpCode::kGet;
  get.key = "key";
  get.hash = third.lanes().hash(get.key);
  REQUIRE(third.lanes().of(get.hash).append(get, &waiter));
  pool.router.apply(std::make_shared<const Membership>(all), pool.clock.now_ns());
  CHECK(third.is_open());
  CHECK(waiter.results == 0);
  pool.router.apply(std::make_shared<const Membership>(PlacementRule::kKetama, kThree, 1,
                                                       std::initializer_list<const Membership*>{&all}),
                    pool.clock.now_ns());
  CHECK(third.is_open());
}

TEST_CASE("one that was to join and does not is closed") {
  const std::vector<Member> fourth{{"shm:d", "d"}};
  TestPool pool(kThree);
  pool.open_all();
  const std::vector<rpc::ClientSession*> fresh =
      pool.router.prepare(Membership(PlacementRule::kKetama, fourth, 1, {&pool.router.membership()}));
  REQUIRE(fresh.size() == 1);
  pool.apply({kThree[0], kThree[1]});
  CHECK(pool.router.is_leaving(*fresh[0]));
  CHECK(pool.router.let_leave(pool.clock.now_ns()).size() == 2);
}

TEST_CASE("a pool without members has no way for a key") {
  TestPool pool(std::vector<Member>{});
  CHECK(pool.router.route("key").session == nullptr);
  pool.apply({kThree[0]});
  pool.open(0);
  CHECK(pool.router.route("key").session == &pool.session(0));
}

// --- ops that concern every backend

TEST_CASE("every lane of every backend is asked, and the last answer is the end") {
  TestPool pool(kThree);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kFlush);
  for (const size_t backend : {2, 0, 1}) {
    CHECK(asker.told == 0);
    CHECK(pool.sent(backend) == std::set<uint32_t>{0, 1});
    pool.answer_all(backend);
  }
  CHECK(asker.told == 1);
  CHECK(asker.failure == ResultCode::kOk);
  CHECK(asker.up == 3);
  CHECK(asker.backends == 3);
}

TEST_CASE("one that is down is a failure, and the others are asked all the same") {
  TestPool pool(kThree);
  pool.open(0);
  pool.open(2);
  Asker asker;
  asker.ask(pool, op::OpCode::kFlush);
  pool.answer_all(0);
  CHECK(asker.told == 0);
  pool.answer_all(2);
  CHECK(asker.told == 1);
  CHECK(asker.failure == ResultCode::kSessionLost);
  CHECK(asker.up == 2);
  CHECK(asker.backends == 3);
}

TEST_CASE("an op for every backend fails where there is none") {
  TestPool pool(std::vector<Member>{});
  Asker asker;
  asker.ask(pool, op::OpCode::kFlush);
  CHECK(asker.told == 1);
  CHECK(asker.failure == ResultCode::kSessionLost);
  CHECK(asker.backends == 0);
}

TEST_CASE("when all are down the answer comes at once") {
  TestPool pool(kThree);
  Asker asker;
  asker.ask(pool, op::OpCode::kStats);
  CHECK(asker.told == 1);
  CHECK(asker.failure == ResultCode::kSessionLost);
  CHECK(asker.up == 0);
}

TEST_CASE("a backend that dies before it has answered is a failure, reported once") {
  TestPool pool(kThree);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kFlush);
  pool.answer_all(0);
  pool.answer_all(1);
  pool.sent(2);
  pool.answer(2, 0, 1, ResultCode::kOk);
  pool.fetch(2);
  CHECK(asker.told == 0);
  pool.lose(2);
  CHECK(asker.told == 1);
  CHECK(asker.failure == ResultCode::kSessionLost);
  CHECK(asker.up == 2);
}

TEST_CASE("a backend without credit is waited for, and holds the others up for nothing") {
  for (const bool dies : {false, true}) {
    CAPTURE(dies);
    TestPool pool(kThree);
    pool.open_all();
    rpc::Listener listener;
    const std::string key(200, 'k');
    for (uint32_t lane = 0; lane < kLayout.lanes; ++lane) {
      while (pool.session(0).lanes()[lane].append(rpc::get_of(key), &listener)) continue;
    }
    Asker asker;
    asker.ask(pool, op::OpCode::kFlush);
    CHECK(pool.sent(1) == std::set<uint32_t>{0, 1});
    CHECK(pool.sent(2) == std::set<uint32_t>{0, 1});
    pool.answer_all(1);
    pool.answer_all(2);
    CHECK(asker.told == 0);
    if (dies) {
      pool.lose(0);
      CHECK(asker.failure == ResultCode::kSessionLost);
    } else {
      pool.sent(0);
      for (uint32_t lane = 0; lane < kLayout.lanes; ++lane) {
        wire::RequestHeader header;
        std::memcpy(&header, pool.endpoint(0).requests.data() + kLayout.request_offset(lane, 1), sizeof header);
        rpc::put_response(pool.endpoint(0).responses.data(), kLayout, lane, 1,
                          std::vector<op::Result>(header.op_count, rpc::hit("v")));
      }
      pool.fetch(0);
      CHECK(pool.sent(0, 3) == std::set<uint32_t>{0, 1});
      CHECK(asker.told == 0);
      pool.lose(0);
    }
    CHECK(asker.told == 1);
    CHECK(asker.up == 2);
  }
}

TEST_CASE("a session that was renewed before the op went out is not asked in the old one's place") {
  TestPool pool(kOne);
  pool.open_all();
  rpc::Listener listener;
  const std::string key(200, 'k');
  for (uint32_t lane = 0; lane < kLayout.lanes; ++lane) {
    while (pool.session(0).lanes()[lane].append(rpc::get_of(key), &listener)) continue;
  }
  Asker asker;
  asker.ask(pool, op::OpCode::kFlush);
  pool.endpoint(0).peer_gone = true;
  pool.session(0).on_control_ready();
  pool.open(0);
  pool.session(0).credit().hand_out();
  CHECK(asker.told == 1);
  CHECK(asker.failure == ResultCode::kSessionLost);
  CHECK(pool.sent(0).empty());
}

TEST_CASE("statistics: each kind is put together over partitions and over backends in its own way") {
  TestPool pool(kThree);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kStats);
  for (uint64_t backend = 0; backend < 3; ++backend) {
    for (const uint32_t lane : pool.sent(backend)) {
      pool.answer(backend, lane, 1, ResultCode::kOk,
                  rows({{StatId::kCurrItems, 10 * backend + lane},
                        {StatId::kCmdFlush, 7 + lane},
                        {StatId::kUserUsec, 100},
                        {StatId::kUptime, 50 + backend},
                        {StatId::kItemSizeMax, 1000 << backend}}));
    }
    pool.fetch(backend);
  }
  REQUIRE(asker.told == 1);
  CHECK(asker.stats[StatId::kCurrItems] == 0 + 1 + 10 + 11 + 20 + 21);
  CHECK(asker.stats[StatId::kCmdFlush] == 8);        // every partition counts the same flush_all
  CHECK(asker.stats[StatId::kUserUsec] == 300);      // one process each
  CHECK(asker.stats[StatId::kUptime] == 50);         // the youngest
  CHECK(asker.stats[StatId::kItemSizeMax] == 1000);  // what all of them take
  CHECK(asker.stats[StatId::kLimitMaxbytes] == 0);   // told by nobody
}

TEST_CASE("statistics are those of the backends that answered whole") {
  TestPool pool(kThree);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kStats);
  const std::string row = rows({{StatId::kCurrItems, 5}, {StatId::kItemSizeMax, 9}});
  pool.answer_all(0, ResultCode::kOk, row);
  pool.answer_all(2, ResultCode::kOk, row);
  pool.sent(1);
  pool.answer(1, 0, 1, ResultCode::kOk, rows({{StatId::kCurrItems, 1000}, {StatId::kItemSizeMax, 1}}));
  pool.fetch(1);
  pool.lose(1);
  REQUIRE(asker.told == 1);
  CHECK(asker.up == 2);
  CHECK(asker.stats[StatId::kCurrItems] == 20);
  CHECK(asker.stats[StatId::kItemSizeMax] == 9);
}

TEST_CASE("size classes: counts are added up, ages are the largest, over partitions and backends") {
  using op::ClassField;
  TestPool pool(kThree);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kStats, op::StatGroup::kSizeClasses);
  for (uint64_t backend = 0; backend < 3; ++backend) {
    for (const uint32_t lane : pool.sent(backend)) {
      pool.answer(backend, lane, 1, ResultCode::kOk,
                  class_rows({{7, ClassField::kNumber, 10 * backend + lane},
                              {7, ClassField::kEvictedTime, 100 + backend},
                              {7, ClassField::kAge, 5 - backend},
                              {7, ClassField(200), 1},  // a field, and below a class, of a newer backend
                              {30 + static_cast<uint32_t>(backend), ClassField::kBytes, 1000},
                              {op::kSizeClasses, ClassField::kNumber, 1}}));
    }
    pool.fetch(backend);
  }
  REQUIRE(asker.told == 1);
  CHECK(asker.of_class(7, ClassField::kNumber) == 0 + 1 + 10 + 11 + 20 + 21);
  CHECK(asker.of_class(7, ClassField::kEvictedTime) == 102);
  CHECK(asker.of_class(7, ClassField::kAge) == 5);
  for (const uint32_t size_class : {30u, 31u, 32u}) CHECK(asker.of_class(size_class, ClassField::kBytes) == 2000);
  CHECK(asker.classes.size() == 33);
  CHECK(asker.stats[StatId::kCmdGet] == 0);
}

TEST_CASE("pages of size classes continue behind the last id, and a repeated row counts once") {
  using op::ClassField;
  TestPool pool(kOne);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kStats, op::StatGroup::kSizeClasses);
  pool.sent(0);
  CHECK(pool.cursor(0, 0, 1) == 0);
  pool.answer(0, 1, 1, ResultCode::kOk);
  pool.answer_page(0, 0, 1, class_rows({{3, ClassField::kNumber, 1}, {5, ClassField::kNumber, 2}}), 4);
  pool.fetch(0);
  CHECK(asker.told == 0);
  REQUIRE(pool.sent(0, 2) == std::set<uint32_t>{0});
  CHECK(pool.cursor(0, 0, 2) == op::class_row_id(5, ClassField::kNumber) + 1);
  pool.answer_page(0, 0, 2, class_rows({{5, ClassField::kNumber, 2}, {5, ClassField::kBytes, 4}}), 2);
  pool.fetch(0);
  REQUIRE(asker.told == 1);
  CHECK(asker.of_class(3, ClassField::kNumber) == 1);
  CHECK(asker.of_class(5, ClassField::kNumber) == 2);
  CHECK(asker.of_class(5, ClassField::kBytes) == 4);
}

TEST_CASE("a backend that sends the same page for ever is asked no more") {
  for (const auto group : {op::StatGroup::kGeneral, op::StatGroup::kSizeClasses}) {
    TestPool pool(kOne);
    pool.open_all();
    Asker asker;
    asker.ask(pool, op::OpCode::kStats, group);
    pool.sent(0);
    for (const uint32_t lane : {0u, 1u}) pool.answer_page(0, lane, 1, {}, 100);
    pool.fetch(0);
    CHECK(asker.told == 1);
  }
}

TEST_CASE("a backend whose pages never end is asked for no more rows than there can be") {
  const std::string page = rows(std::vector<std::pair<StatId, uint64_t>>(50, {StatId::kEvictions, 1}));
  TestPool pool(kOne);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kStats);
  for (uint64_t seq = 1; asker.told == 0; ++seq) {
    REQUIRE(seq < 1000);
    pool.sent(0, seq);
    for (const uint32_t lane : {0u, 1u}) pool.answer_page(0, lane, seq, page, 5'000'000);
    pool.fetch(0);
  }
  CHECK(asker.up == 1);
}

TEST_CASE("of a partition's line no more is kept than a line") {
  TestPool pool(kOne);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kAdmin);
  pool.answer_all(0, ResultCode::kOk, std::string(900, 'x'));
  REQUIRE(asker.answers.size() == 2);
  for (const std::string& answer : asker.answers) {
    CHECK(answer.size() < 300);
    CHECK(answer.ends_with("x..."));
  }
}

TEST_CASE("an owner that is gone is not called") {
  TestPool pool(kThree);
  pool.open_all();
  Asker asker;
  asker.ask(pool, op::OpCode::kFlush)->orphan();
  for (size_t backend = 0; backend < 3; ++backend) pool.answer_all(backend);
  CHECK(asker.told == 0);
}
