// When a session has more slots or fewer, and how it moves to them, with the test as the backend.
#include <array>
#include <map>

#include "base/clock.h"
#include "rpc/active/active_sessions.h"
#include "rpc/client_session.h"
#include "rpc/large/large_set.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::rpc;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kTick = ClientSession::kTickNs;
constexpr wire::RegionLayout kSmall{.lanes = 1, .window = 2, .request_slot_size = 1536, .response_slot_size = 1536};
constexpr wire::RegionLayout kLarge{.lanes = 1, .window = 8, .request_slot_size = 4096, .response_slot_size = 4096};

bool is_local = false;
bool refuses = false;
std::vector<FakeClientEndpoint*> connected;  // in the order of their connections; some are gone

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string&,
                                                                   const transport::ConnectOptions&) {
  if (refuses) return base::Status::error("connection refused");
  auto endpoint = std::make_unique<FakeClientEndpoint>(kLarge, is_local);
  endpoint->limits_to_change().needs_keep_alive = false;
  connected.push_back(endpoint.get());
  return std::unique_ptr<transport::ClientEndpoint>(std::move(endpoint));
}

SessionOptions growing_options() {
  SessionOptions options;
  options.address = "fake";
  options.worker_id = 42;
  options.window = 8;
  options.growth = {.window = 2, .slot_size = 1536, .idle_ns = 10 * kSecond};
  return options;
}

struct Fixture final : SessionObserver {
  explicit Fixture(const SessionOptions& given = growing_options()) : session(given, clock, *this, connect) {
    is_local = refuses = false;
    connected.clear();
  }
  base::Status on_session_connecting(ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(ClientSession&) override {
    events += "o";
    return base::Status::ok();
  }
  void on_session_active(ClientSession& each) override { active.add(each); }
  base::Status on_session_resized(ClientSession&) override {
    events += "r";
    return base::Status::ok();
  }
  void on_session_not_resized(ClientSession&, const std::string& reason) override {
    events += "n";
    why = reason;
  }
  void on_session_lost(ClientSession&, const std::string& reason, bool was_open) override {
    events += was_open ? "L" : "l";
    why = reason;
  }
  static wire::Hello hello_of(size_t connection) {
    wire::Hello hello;
    REQUIRE(decode(connected.at(connection)->frames_out.at(0), hello));
    return hello;
  }
  static void grant(size_t connection, const wire::RegionLayout& layout, uint64_t epoch = 1) {
    const wire::Grant granted{.features = hello_of(connection).features & wire::kSlotSizes,
                              .session_id = 9 + connection,
                              .nonce = kNonce,
                              .epoch = epoch,
                              .hash_seed = 3,
                              .item_size_max = 1 << 20,
                              .layout = layout};
    connected.at(connection)->frames_in.push_back(encode(granted));
  }
  void open(const wire::RegionLayout& layout = kSmall) {
    session.start();
    grant(0, layout);
    session.on_control_ready();
    REQUIRE(session.is_open());
  }
  void pass_time(uint64_t ns) {
    for (uint64_t passed = 0; passed < ns; passed += kTick) {
      clock.advance_ns(kTick);
      session.tick();
    }
  }
  // Ops find all slots in use.
  void stall(uint64_t times = WindowPlan::kStalls) {
    Listener ignored;
    while (session.lanes()[0].append(get_of("k"), &listener)) session.flush();
    while (--times > 0) CHECK(!session.lanes()[0].append(get_of("k"), &ignored));
  }
  // The backend answers all that was sent on this connection.
  void answer(size_t connection, const wire::RegionLayout& layout) {
    for (const auto& write : std::exchange(connected.at(connection)->writes, {})) {
      const std::array results{hit("value")};
      put_response(connected[connection]->responses.data(), layout, 0, write.first_word, results);
    }
    connected[connection]->completes_reads = true;
    // A lane that has learned how long an answer takes does not fetch at once.
    for (int passes = 0; passes < 20 && session.lanes().outstanding() > 0; ++passes) {
      clock.advance_ns(1'000'000);
      active.begin_pass();
      active.fetch();
    }
  }
  // What its worker does, until nothing is left to do.
  void pass() {
    active.begin_pass();
    active.fetch();
    active.hand_out_credit();
    active.begin_pass();
  }
  // A successor is wished for, and its connection is made.
  void wish_for_more() {
    pass_time(kSecond);
    stall();
    pass_time(kTick);
    REQUIRE(connected.size() == 2);
  }

  base::ManualClock clock;
  ActiveSessions active;
  std::string events, why;
  Listener listener;
  ClientSession session;
};

LargeSet* upload(Fixture& f) {
  op::Op set;
  set.code = op::OpCode::kSet;
  set.key = "long";
  return new LargeSet(f.session, set, 100'000, 1);
}

}  // namespace

TEST_CASE("a plan wants more after many waits within a second, and not for a few that are far apart") {
  WindowPlan plan;
  plan.settle({.window = 2, .least_stay_ns = 1000}, false, 0, 0);
  uint64_t stalls = 5;  // of sessions before
  CHECK(plan.look(2000, stalls, 0) == WindowPlan::Wish::kNone);
  for (uint64_t second = 1; second < 100; ++second) {
    stalls += WindowPlan::kStalls - 1;
    CHECK(plan.look(second * kSecond, stalls, 0) == WindowPlan::Wish::kNone);
    CHECK(plan.look(second * kSecond + 5000, stalls, 0) == WindowPlan::Wish::kNone);
  }
  stalls += WindowPlan::kStalls;
  CHECK(plan.look(99 * kSecond + 9000, stalls, 0) == WindowPlan::Wish::kMore);
}

TEST_CASE("a plan that is refused wishes again later each time, and at least once a minute") {
  WindowPlan plan;
  plan.settle({.window = 2, .least_stay_ns = kSecond}, false, 0, 0);
  uint64_t now = 0, stalls = 0;
  std::vector<uint64_t> wishes;
  plan.look(now, stalls, 0);
  while (wishes.size() < 12) {
    now += kSecond / 10;
    stalls += WindowPlan::kStalls;
    if (plan.look(now, stalls, 0) != WindowPlan::Wish::kMore) continue;
    wishes.push_back(now);
    plan.refuse(now);
  }
  CHECK(wishes[0] == kSecond);
  for (size_t i = 2; i < wishes.size(); ++i) {
    CHECK(wishes[i] - wishes[i - 1] >= wishes[i - 1] - wishes[i - 2]);
    CHECK(wishes[i] - wishes[i - 1] <= WindowPlan::kMostPatienceNs + kSecond);
  }
}

TEST_CASE("a plan gives back after its idle time; messages and waits begin it anew, and not all give back together") {
  uint64_t first = UINT64_MAX, last = 0;
  for (uint64_t luck = 0; luck < 1024; luck += 100) {
    WindowPlan plan;
    plan.settle({.window = 2, .idle_ns = 10 * kSecond}, true, 0, luck);
    uint64_t messages = 0, at = 0;
    for (uint64_t now = 0; now < 20 * kSecond; now += kSecond / 2) {  // busy, but never short of slots
      messages += WindowPlan::kFewPerSecond;
      CHECK(plan.look(now, 0, messages) == WindowPlan::Wish::kNone);
    }
    for (at = 20 * kSecond; plan.look(at, 0, messages) == WindowPlan::Wish::kNone;) at += kSecond / 4;
    CHECK(at >= 29 * kSecond);
    CHECK(at <= 34 * kSecond);
    first = std::min(first, at);
    last = std::max(last, at);
  }
  CHECK(last - first >= kSecond);
  WindowPlan never;
  never.settle({.window = 2, .idle_ns = 0}, true, 0, 0);
  CHECK(never.look(3600 * kSecond, 0, 0) == WindowPlan::Wish::kNone);
}

TEST_CASE("a session over a network asks for few small slots; one on this host, or that may not grow, for all") {
  {
    Fixture f;
    f.session.start();
    CHECK(f.hello_of(0).window == 2);
    CHECK(f.hello_of(0).request_slot_size == 1536);
    CHECK(f.hello_of(0).response_slot_size == 1536);
    CHECK(f.hello_of(0).worker_id == 42);
  }
  const auto window_asked = [](bool on_this_host, uint32_t growth) {
    SessionOptions options = growing_options();
    options.growth.window = growth;
    Fixture f(options);
    is_local = on_this_host;
    f.session.start();
    CHECK((f.hello_of(0).features & wire::kSlotSizes) == 0);
    return f.hello_of(0).window;
  };
  CHECK(window_asked(true, 2) == 8);
  CHECK(window_asked(false, 0) == 8);
  CHECK(window_asked(false, 8) == 8);
}

TEST_CASE("smaller slots than those of a small session are asked for as they are") {
  SessionOptions options = growing_options();
  options.request_slot_size = 1024;
  Fixture f(options);
  f.session.start();
  CHECK(f.hello_of(0).request_slot_size == 1024);
  CHECK(f.hello_of(0).response_slot_size == 1536);
}

TEST_CASE("ops that wait for slots make a second session, which takes the first one's place when all is answered") {
  Fixture f;
  f.open();
  const uint64_t generation = f.session.lanes().generation();
  f.wish_for_more();
  CHECK(f.hello_of(1).window == 8);
  CHECK((f.hello_of(1).features & wire::kSlotSizes) == 0);
  CHECK(f.hello_of(1).worker_id != 42);  // else the backend would end the first one
  f.grant(1, kLarge);
  f.pass_time(kTick);
  CHECK(f.events == "o");  // two ops are not answered yet
  CHECK(f.session.grant().layout.window == kSmall.window);
  f.answer(0, kSmall);
  CHECK(f.events == "or");
  CHECK(f.listener.codes == std::vector(2, op::ResultCode::kHit));
  CHECK(f.session.grant().layout.window == kLarge.window);
  CHECK(f.session.lanes().generation() == generation);
  CHECK(f.session.counters().grown.get() == 1);
  CHECK(f.session.counters().slot_bytes.get() == kLarge.bytes());
  // The next op goes through the second one.
  REQUIRE(f.session.lanes()[0].append(get_of("k"), &f.listener));
  f.session.flush();
  CHECK(connected[1]->writes.size() == 1);
  f.answer(1, kLarge);
  CHECK(f.listener.codes.size() == 3);
}

TEST_CASE("while it waits for answers no op begins, and if they do not come clients go on in the first session") {
  Fixture f;
  f.open();
  f.wish_for_more();
  f.grant(1, kLarge);
  f.pass_time(kTick);
  CHECK(!f.session.lanes().has_credit());
  connected[0]->completes_reads = true;
  // One of two is answered: there is a slot, but nothing begins.
  const auto writes = std::exchange(connected[0]->writes, {});
  put_response(connected[0]->responses.data(), kSmall, 0, writes.at(0).first_word, std::array{hit("value")});
  f.clock.advance_ns(1'000'000);
  f.session.begin_pass();
  f.session.fetch();
  CHECK(f.listener.codes.size() == 1);
  CHECK(!f.session.lanes().has_credit());
  f.pass_time(10 * kTick);
  CHECK(f.session.lanes().has_credit());
  CHECK(f.events == "o");
}

TEST_CASE("values that are on their way in parts keep a session from being replaced") {
  for (const bool is_announced : {false, true}) {
    CAPTURE(is_announced);
    Fixture f;
    f.open();
    LargeSet* const set = upload(f);
    if (is_announced) {
      REQUIRE(set->announce());
    } else {
      REQUIRE(set->enter());
      CHECK(set->send(std::string(100, 'x')) == 100);
    }
    f.session.flush();
    f.answer(0, kSmall);
    f.wish_for_more();
    f.grant(1, kLarge);
    f.pass_time(kTick);
    f.answer(0, kSmall);
    CHECK(f.session.lanes().outstanding() == 0);
    f.pass_time(kTick);
    CHECK(f.events == "o");
    set->abandon();
    f.session.flush();
    f.answer(0, kSmall);
    f.pass_time(20 * kTick);
    CHECK(f.events == "or");
  }
}

TEST_CASE("values in parts that overlap all the time are waited for, longer each time, and none begins meanwhile") {
  Fixture f;
  f.open();
  std::vector<LargeSet*> open{upload(f)};
  REQUIRE(open[0]->enter());
  f.wish_for_more();
  f.grant(1, kLarge);
  f.answer(0, kSmall);
  // Each takes some 20 ticks, and before it is over the next one begins, if it may; else it tries again.
  uint32_t begun = 1, refused = 0;
  for (int tick = 1; tick < 400; ++tick) {
    f.pass_time(kTick);
    if (f.events != "o") break;  // replaced: the first connection is gone
    if (tick % 20 >= 10 && open.size() < 2) {
      LargeSet* const next = upload(f);
      if (next->enter()) {
        open.push_back(next);
        ++begun;
      } else {
        next->abandon();
        ++refused;
      }
    }
    if (tick % 20 == 0 && !open.empty()) {
      open.front()->abandon();
      open.erase(open.begin());
    }
    f.session.flush();
    f.answer(0, kSmall);
  }
  CHECK(f.events == "or");
  CHECK(begun > 2);
  CHECK(refused > 2);
  for (LargeSet* const set : open) set->abandon();
}

TEST_CASE("values that do not fit a slot count as waits for one") {
  Fixture f;
  f.open();
  f.pass_time(kSecond);
  for (int values = 0; values < 8; ++values) upload(f)->abandon();
  f.pass_time(kTick);
  CHECK(connected.size() == 2);
}

TEST_CASE("a backend that refuses the second session, or gives no larger one, keeps the first one and is asked later") {
  Fixture f;
  f.open();
  f.wish_for_more();
  connected[1]->frames_in.push_back(encode(wire::Refusal{"max_sessions = 1"}));
  f.pass_time(kTick);
  CHECK(f.events == "on");
  CHECK(f.why.find("max_sessions = 1") != std::string::npos);
  CHECK(f.session.counters().not_resized.get() == 1);
  f.answer(0, kSmall);
  f.stall();
  f.pass_time(kSecond);
  REQUIRE(connected.size() == 3);
  f.grant(2, kSmall);
  f.pass_time(kTick);
  CHECK(f.events == "onn");
  CHECK(f.why.find("no other size") != std::string::npos);
  refuses = true;
  for (int tries = 0; tries < 4; ++tries) {
    f.answer(0, kSmall);
    f.stall();
    f.pass_time(kSecond / 2);
  }
  CHECK(f.why == "connection refused");
  CHECK(f.session.is_open());
}

TEST_CASE("a backend that has been restarted meanwhile is another one: the first session stays until its end") {
  Fixture f;
  f.open();
  f.wish_for_more();
  f.grant(1, kLarge, 2);
  f.pass_time(kTick);
  CHECK(f.events == "on");
  CHECK(f.why.find("another one") != std::string::npos);
}

TEST_CASE("a second session that is never granted is given up") {
  Fixture f;
  f.open();
  f.wish_for_more();
  f.answer(0, kSmall);
  f.pass_time(growing_options().connect_timeout_ns + kTick);
  CHECK(f.events == "on");
  CHECK(f.why == "no answer to the handshake");
}

TEST_CASE("a session that ends gives up its successor, and comes back small and under its own name") {
  Fixture f;
  f.open();
  f.wish_for_more();
  connected[0]->peer_gone = true;
  f.session.on_control_ready();
  CHECK(f.events == "onL");
  CHECK(f.listener.codes == std::vector(2, op::ResultCode::kSessionLost));
  f.pass_time(kSecond);
  REQUIRE(connected.size() == 3);
  CHECK(f.hello_of(2).worker_id == 42);
  CHECK(f.hello_of(2).window == 2);
}

TEST_CASE("a session that has grown and ends comes back under the name that it had then") {
  Fixture f;
  f.open();
  f.wish_for_more();
  f.grant(1, kLarge);
  f.pass_time(kTick);
  f.answer(0, kSmall);
  REQUIRE(f.events == "or");
  const uint64_t name = f.hello_of(1).worker_id;
  connected[1]->peer_gone = true;
  f.session.on_control_ready();
  f.pass_time(kSecond);
  REQUIRE(connected.size() == 3);
  CHECK(f.hello_of(2).worker_id == name);
}

TEST_CASE("a session with little to do gives its slots back, looked at as seldom as keep-alives are sent") {
  Fixture f;
  f.open();
  f.wish_for_more();
  f.grant(1, kLarge);
  f.pass_time(kTick);
  f.answer(0, kSmall);
  REQUIRE(f.events == "or");
  f.pass();
  CHECK(f.active.count() == 0);
  CHECK(connected[1]->arms == 0);
  CHECK(f.active.prepare_sleep());
  CHECK(connected[1]->arms == 1);
  for (uint64_t passed = 0; passed < 13 * kSecond; passed += transport::kKeepAliveNs) {
    f.clock.advance_ns(transport::kKeepAliveNs);
    if (connected.size() == 2) CHECK(f.session.keep_alive());
  }
  REQUIRE(connected.size() == 3);
  CHECK(f.hello_of(2).window == 2);
  // It has nothing to do but to move: that needs ticks, and a worker looks only at active sessions for whether to tick.
  f.pass();
  CHECK(f.active.needs_tick());
  f.grant(2, kSmall);
  f.pass_time(kTick);
  CHECK(f.events == "orr");
  CHECK(f.session.grant().layout.window == kSmall.window);
  CHECK(f.session.counters().given_back.get() == 1);
  CHECK(!f.session.keep_alive());
  f.pass();
  CHECK(f.active.count() == 0);
  CHECK(f.active.prepare_sleep());
  CHECK(connected[2]->arms == 1);
}

TEST_CASE("values that wait for room while their session moves have ticks that look after them") {
  Fixture f;
  f.open();
  f.wish_for_more();
  LargeSet* const waits = upload(f);
  waits->wait_for_room();
  f.grant(1, kLarge);
  f.pass_time(kTick);
  f.answer(0, kSmall);
  REQUIRE(f.events == "or");
  f.pass();
  CHECK(f.active.count() == 1);
  CHECK(f.active.needs_tick());
  waits->abandon();
  f.pass();
  CHECK(f.active.count() == 0);
}
