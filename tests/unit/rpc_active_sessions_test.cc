// What a worker's passes touch: the sessions and lanes that have something to do, and no others. The test is the
// backends, and counts the calls of each session's endpoint.
#include <memory>
#include <vector>

#include "base/clock.h"
#include "rpc/active/active_sessions.h"
#include "rpc_played_backend.h"

using namespace egret;
using namespace egret::rpc;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 16, .window = 4, .request_slot_size = 1024, .response_slot_size = 1024};
constexpr size_t kSessions = 64;

// Whom connect() has made, in order; tests run one after the other.
std::vector<FakeClientEndpoint*> endpoints;
bool is_local = false;
bool is_pushed = false;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string&,
                                                                   const transport::ConnectOptions&) {
  auto made = std::make_unique<FakeClientEndpoint>(kLayout, is_local);
  made->completes_reads = true;
  made->limits_to_change().results_are_pushed = is_pushed;
  endpoints.push_back(made.get());
  return std::unique_ptr<transport::ClientEndpoint>(std::move(made));
}

struct OneWaiter final : CreditWaiter {
  void on_credit() override { ++calls; }
  int calls = 0;
};

// A worker's loop, without its clients.
struct Worker final : SessionObserver {
  explicit Worker(bool local, bool pushed = false) {
    is_local = local;
    is_pushed = pushed;
    endpoints.clear();
    for (size_t i = 0; i < kSessions; ++i) {
      SessionOptions options;
      options.address = "played";
      sessions.push_back(std::make_unique<ClientSession>(options, clock, *this, connect));
      sessions.back()->start();
      endpoints[i]->frames_in.push_back(
          encode(wire::Grant{.nonce = kNonce, .epoch = 1, .hash_seed = 3, .item_size_max = 1, .layout = kLayout}));
      sessions.back()->on_control_ready();
      REQUIRE(sessions.back()->is_open());
    }
    pass();
    pass();
    REQUIRE(active.count() == 0);
  }
  base::Status on_session_connecting(ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(ClientSession&) override { return base::Status::ok(); }
  void on_session_lost(ClientSession&, const std::string&, bool) override { ++lost; }
  void on_session_active(ClientSession& session) override { active.add(session); }

  void pass() {
    clock.advance_ns(1'000'000);
    active.begin_pass();
    active.flush();
    while (active.fetch() || active.hand_out_credit()) active.flush();
  }
  // A get that goes by this lane is sent, answered and taken.
  void get(size_t session, uint32_t lane) {
    REQUIRE(sessions[session]->lanes()[lane].append(get_of("key"), &listener));
    pass();
    play(*endpoints[session], kLayout, lane, ++seqs[session * kLayout.lanes + lane],
         [](const op::Op&) { return result_of(op::ResultCode::kMiss); });
    pass();
    REQUIRE(sessions[session]->lanes().outstanding() == 0);
  }
  struct Calls {
    int flushes, polls, arms;
    bool operator==(const Calls&) const = default;
  };
  static Calls calls_of(size_t session) {
    const FakeClientEndpoint& endpoint = *endpoints[session];
    return {endpoint.flushes, endpoint.polls, endpoint.arms};
  }
  static std::vector<Calls> calls() {
    std::vector<Calls> all;
    for (size_t i = 0; i < kSessions; ++i) all.push_back(calls_of(i));
    return all;
  }

  base::ManualClock clock;
  ActiveSessions active;
  std::vector<std::unique_ptr<ClientSession>> sessions;
  std::vector<uint64_t> seqs = std::vector<uint64_t>(kSessions * kLayout.lanes);
  Listener listener;
  int lost = 0;
};

}  // namespace

TEST_CASE("passes touch no session but those with something to do, and of these no lane but such") {
  for (const bool local : {false, true}) {
    CAPTURE(local);
    Worker worker(local);
    worker.active.prepare_sleep();
    const auto before = Worker::calls();
    for (int i = 0; i < 100; ++i) {
      REQUIRE(worker.sessions[7]->lanes()[5].append(get_of("key"), &worker.listener));
      CHECK(worker.active.count() == 1);
      CHECK(worker.sessions[7]->lanes().active().size() == 1);
      worker.pass();
      play(*endpoints[7], kLayout, 5, static_cast<uint64_t>(i) + 1,
           [](const op::Op&) { return result_of(op::ResultCode::kMiss); });
      worker.pass();
      worker.pass();
      CHECK(worker.active.count() == 0);
    }
    CHECK(worker.listener.codes.size() == 100);
    for (size_t i = 0; i < kSessions; ++i) CHECK((Worker::calls_of(i) == before[i]) == (i != 7));
  }
}

TEST_CASE("before it sleeps a worker arms, once, each session over a network that came to rest since it last slept") {
  Worker worker(false);
  CHECK(worker.active.prepare_sleep());
  for (size_t i = 0; i < kSessions; ++i) CHECK(endpoints[i]->arms == 1);
  CHECK(worker.active.prepare_sleep());
  worker.get(3, 0);
  worker.get(3, 1);
  worker.pass();
  CHECK(endpoints[3]->arms == 1);
  CHECK(worker.active.prepare_sleep());
  for (size_t i = 0; i < kSessions; ++i) CHECK(endpoints[i]->arms == (i == 3 ? 2 : 1));
}

TEST_CASE("local sessions at rest are not armed") {
  Worker worker(true);
  worker.get(3, 0);
  CHECK(worker.active.prepare_sleep());
  for (size_t i = 0; i < kSessions; ++i) CHECK(endpoints[i]->arms == 0);
}

TEST_CASE("a session at rest whose peer breaks is lost in the pass after its descriptor was readable") {
  Worker worker(false);
  worker.active.prepare_sleep();
  endpoints[9]->events.push_back({.kind = transport::Event::Kind::kClosed});
  worker.pass();
  CHECK(worker.lost == 0);
  worker.sessions[9]->on_data_ready();
  worker.pass();
  CHECK(worker.lost == 1);
  CHECK_FALSE(worker.sessions[9]->is_open());
  worker.pass();
  worker.pass();
  CHECK(worker.active.count() == 0);
}

TEST_CASE("a session at rest that nobody has armed is looked at when it is kept alive") {
  Worker worker(false);
  endpoints[9]->events.push_back({.kind = transport::Event::Kind::kClosed});
  worker.pass();
  CHECK(worker.lost == 0);
  for (const auto& session : worker.sessions) CHECK(session->keep_alive());
  worker.pass();
  CHECK(worker.lost == 1);
  worker.pass();
  CHECK(worker.active.count() == 0);
}

TEST_CASE(
    "those who wait for credit are called when something is announced to a session at rest, and when it is lost") {
  Worker worker(true);
  OneWaiter told, lost;
  worker.sessions[2]->credit().wait(&told);
  worker.pass();
  CHECK(told.calls == 0);
  worker.sessions[2]->credit().announce();
  worker.pass();
  CHECK(told.calls == 1);
  worker.sessions[2]->credit().wait(&lost);
  worker.pass();
  endpoints[2]->peer_gone = true;
  worker.sessions[2]->on_control_ready();
  worker.pass();
  CHECK(lost.calls == 1);
}

TEST_CASE("a lane is touched until its late response has come") {
  Worker worker(true);
  ClientSession& session = *worker.sessions[4];
  REQUIRE(session.lanes()[1].append(get_of("key"), &worker.listener));
  worker.pass();
  for (const uint64_t ns : {SessionOptions().op_timeout_ns, ClientSession::kTickNs}) {
    worker.clock.advance_ns(ns);
    session.tick();
  }
  REQUIRE(worker.listener.codes.size() == 1);
  CHECK(worker.listener.codes[0] == op::ResultCode::kTimedOut);
  worker.pass();
  CHECK(worker.active.count() == 1);
  CHECK(worker.active.needs_tick());
  play(*endpoints[4], kLayout, 1, 1, [](const op::Op&) { return result_of(op::ResultCode::kMiss); });
  worker.pass();
  worker.pass();
  CHECK(worker.active.count() == 0);
  CHECK_FALSE(worker.active.needs_tick());
}

TEST_CASE("want is taken back in the first pass after a sleep, and then the lane is left alone") {
  Worker worker(true);
  REQUIRE(worker.sessions[6]->lanes()[2].append(get_of("key"), &worker.listener));
  worker.pass();
  while (!worker.active.prepare_sleep()) {
  }
  play(*endpoints[6], kLayout, 2, 1, [](const op::Op&) { return result_of(op::ResultCode::kMiss); });
  endpoints[6]->writes.clear();
  const int flushes = endpoints[6]->flushes;
  worker.pass();
  REQUIRE(endpoints[6]->writes.size() == 1);
  CHECK(endpoints[6]->writes[0].offset == kLayout.want_offset(2));
  CHECK(endpoints[6]->writes[0].first_word == 0);
  CHECK(endpoints[6]->flushes > flushes);
  worker.pass();
  CHECK(worker.active.count() == 0);
}

TEST_CASE("a lane whose results are pushed is active until the last of them has come, whatever its descriptor tells") {
  Worker worker(false, true);
  REQUIRE(worker.sessions[8]->lanes()[3].append(get_of("key"), &worker.listener));
  worker.pass();
  worker.sessions[8]->on_data_ready();  // it has become writable
  for (int i = 0; i < 3; ++i) {
    worker.pass();
    CHECK(worker.active.prepare_sleep());
    CHECK(worker.active.count() == 1);
    CHECK(worker.active.needs_tick());
  }
  FakeClientEndpoint& endpoint = *endpoints[8];
  play(endpoint, kLayout, 3, 1, [](const op::Op&) { return result_of(op::ResultCode::kMiss); });
  endpoint.events.push_back(
      {.kind = transport::Event::Kind::kDelivered,
       .lane = 3,
       .bytes = {endpoint.response_image() + kLayout.response_offset(3, 1), kLayout.response_slot_size}});
  worker.sessions[8]->on_data_ready();
  worker.pass();
  CHECK(worker.listener.codes == std::vector{op::ResultCode::kMiss});
  worker.pass();
  CHECK(worker.active.count() == 0);
}

TEST_CASE("a session that is destroyed is forgotten") {
  Worker worker(false);
  worker.get(0, 0);
  worker.pass();  // not armed yet
  REQUIRE(worker.sessions[1]->lanes()[0].append(get_of("key"), &worker.listener));
  for (const size_t gone : {1, 0}) {
    const ClientSession* const session = worker.sessions[gone].get();
    worker.sessions[gone]->close();
    worker.sessions[gone].reset();
    worker.active.forget(session);
  }
  worker.pass();
  worker.active.prepare_sleep();
  CHECK(worker.active.count() == 0);
}
