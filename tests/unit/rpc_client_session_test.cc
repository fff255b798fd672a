// A session's set-up, end and return, with the test as the server.
#include <array>

#include "base/clock.h"
#include "rpc/client_session.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::rpc;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 2, .window = 4, .request_slot_size = 1024, .response_slot_size = 1024};
// Offered in every hello.
constexpr uint64_t kAlways = wire::kRights | wire::kFailover | wire::kWarm | wire::kComeBack | wire::kLongSlots;

// Whom the next connect() gives; tests run one after the other.
FakeClientEndpoint* connected = nullptr;
bool refuse = false;
bool is_local = true;
bool is_ordered = false;
int connects = 0;
transport::ConnectOptions last_options;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string&,
                                                                   const transport::ConnectOptions& options) {
  ++connects;
  last_options = options;
  if (refuse) return base::Status::error("connection refused");
  auto endpoint = std::make_unique<FakeClientEndpoint>(kLayout, is_local, is_ordered);
  connected = endpoint.get();
  return std::unique_ptr<transport::ClientEndpoint>(std::move(endpoint));
}

SessionOptions session_options(const base::Secret& secret) {
  SessionOptions options;
  options.secret = secret;
  options.address = "fake";
  options.worker_id = 42;
  options.window = 4;
  return options;
}

const base::Secret kSecret("0123456789abcdef");

// A backend that holds `secret`, played by the test: what it would send for what the client has sent.
struct Backend {
  explicit Backend(base::Secret held = kSecret) : secret(std::move(held)) {}
  // The challenge to the connected client's hello.
  std::vector<std::byte> challenge() {
    const auto frame = encode(wire::Challenge{wire::fresh_nonce()});
    transcript.clear();
    transcript.add(connected->frames_out.at(0));
    transcript.add(frame);
    return frame;
  }
  std::vector<std::byte> grant() const {
    wire::Grant granted{.features = wire::kAuthenticate,
                        .session_id = 9,
                        .nonce = kNonce,
                        .epoch = 1,
                        .hash_seed = 3,
                        .item_size_max = 1,
                        .layout = kLayout};
    granted.proof = transcript.server_proof(secret, encode(granted));
    return encode(granted);
  }
  bool is_convinced() const {
    wire::ClientProof answer;
    return connected->frames_out.size() == 2 && decode(connected->frames_out[1], answer) &&
           wire::is_equal(answer.proof, transcript.client_proof(secret));
  }
  base::Secret secret;
  wire::Transcript transcript;
};

struct Fixture final : SessionObserver {
  explicit Fixture(const base::Secret& secret = {}) : options(session_options(secret)) {
    refuse = false;
    is_local = true;
    is_ordered = false;
    connects = 0;
    connected = nullptr;
  }
  egret::base::Status on_session_connecting(ClientSession&) override {
    events += "c";
    return cannot_watch_control ? egret::base::Status::error("no room") : egret::base::Status::ok();
  }
  egret::base::Status on_session_open(ClientSession&) override {
    events += "o";
    return cannot_watch_data ? egret::base::Status::error("no room") : egret::base::Status::ok();
  }
  void on_session_lost(ClientSession&, const std::string& why_lost, bool was_open) override {
    events += was_open ? "L" : "l";
    why = why_lost;
  }
  void on_session_timeout(ClientSession&) override { ++timeouts; }
  void send(std::vector<std::byte> frame) {
    connected->frames_in.push_back(std::move(frame));
    session.on_control_ready();
  }
  void grant(uint64_t features = 0) {
    send(encode(wire::Grant{.features = features,
                            .session_id = 9,
                            .nonce = kNonce,
                            .epoch = 1,
                            .hash_seed = 3,
                            .item_size_max = 1,
                            .layout = kLayout}));
  }
  void open() {
    session.start();
    grant();
    REQUIRE(session.is_open());
  }
  void lose() {
    connected->peer_gone = true;
    session.on_control_ready();
  }
  void tick_after(uint64_t ns) {
    clock.advance_ns(ns);
    session.tick();
  }
  void pass_time(uint64_t ns) {
    for (uint64_t step = 0; ns > 0; ns -= step) {
      step = std::min(ns, ClientSession::kTickNs);
      tick_after(step);
    }
  }

  base::ManualClock clock;
  SessionOptions options;
  std::string events, why;
  bool cannot_watch_control = false;
  bool cannot_watch_data = false;
  int timeouts = 0;
  uint64_t gets_sent = 0;
  ClientSession session{options, clock, *this, connect};
};

}  // namespace

TEST_CASE("a session that breaks before it was of use does not make the next attempt come sooner") {
  Fixture f;
  f.open();
  f.lose();
  CHECK(f.events == "coL");
  f.pass_time(f.options.backoff_min_ns);
  CHECK(connects == 2);
  f.grant();
  f.lose();
  f.pass_time(f.options.backoff_min_ns);
  CHECK(connects == 2);
  f.pass_time(f.options.backoff_min_ns);
  CHECK(connects == 3);
}

TEST_CASE("an idle session that is found dead on the way to sleep does not let the worker sleep") {
  Fixture f;
  is_local = false;
  f.open();
  CHECK(f.session.prepare_sleep());
  connected->events.push_back({.kind = transport::Event::Kind::kClosed});
  CHECK_FALSE(f.session.prepare_sleep());
  CHECK(f.events == "coL");
}

TEST_CASE("on one host an endpoint is polled while a result is awaited, and no more") {
  Fixture f;
  f.open();
  connected->completes_reads = true;
  CHECK_FALSE(f.session.fetch());
  const int idle_polls = connected->polls;
  CHECK_FALSE(f.session.fetch());
  CHECK(connected->polls == idle_polls);
  Listener listener;
  REQUIRE(f.session.lanes().of(0).append(get_of("k"), &listener));
  f.session.flush();
  CHECK_FALSE(f.session.fetch());
  CHECK(connected->polls > idle_polls);
  const int polls = connected->polls;
  put_response(connected->responses.data(), kLayout, 0, 1, std::vector{hit("v")});
  CHECK(f.session.fetch());
  CHECK(listener.values == std::vector<std::string>{"v"});
  CHECK_MESSAGE(connected->polls == polls + 1, "nothing is awaited after it");
}

TEST_CASE("ops that were appended and not flushed are sent before the worker sleeps") {
  for (const bool local : {true, false}) {
    CAPTURE(local);
    Fixture f;
    is_local = local;
    f.open();
    Listener listener;
    REQUIRE(f.session.lanes().of(0).append(get_of("k"), &listener));
    CHECK(f.session.lanes().outstanding() == 0);
    f.session.prepare_sleep();
    CHECK(f.session.lanes().outstanding() == 1);
    f.lose();
  }
}

TEST_CASE("a session whose descriptors cannot be watched is lost, and tried again until they can") {
  Fixture f;
  f.cannot_watch_control = true;
  f.session.start();
  CHECK(f.events == "cl");
  CHECK(f.why == "no room");
  f.cannot_watch_control = false;
  f.cannot_watch_data = true;
  f.pass_time(f.options.backoff_min_ns);
  f.grant();
  CHECK(f.events == "clcoL");
  CHECK(!f.session.is_open());
  f.cannot_watch_data = false;
  f.pass_time(2 * f.options.backoff_min_ns);
  f.grant();
  CHECK(f.events == "clcoLco");
  CHECK(f.session.is_open());
}

TEST_CASE("a grant of more slots than were asked for is not accepted") {
  Fixture f;
  f.session.start();
  wire::RegionLayout layout = kLayout;
  layout.window = f.options.window + 1;
  f.send(encode(
      wire::Grant{.session_id = 9, .nonce = kNonce, .epoch = 1, .hash_seed = 3, .item_size_max = 1, .layout = layout}));
  CHECK(f.events == "cl");
  CHECK(f.why.find("more slots") != std::string::npos);
}

TEST_CASE("slot sizes are asked for; larger ones are not accepted, but from a backend that does not know of them") {
  const auto open = [](uint32_t granted, uint64_t features) {
    Fixture f;
    SessionOptions options = f.options;
    options.request_slot_size = 2048;
    options.response_slot_size = 4096;
    f.session.set_options(options);
    f.session.start();
    wire::Hello hello;
    REQUIRE(decode(connected->frames_out.at(0), hello));
    CHECK((hello.features & wire::kSlotSizes) != 0);
    CHECK(hello.request_slot_size == 2048);
    CHECK(hello.response_slot_size == 4096);
    wire::RegionLayout layout = kLayout;
    layout.window = wire::kMinWindow;
    layout.request_slot_size = 2048;
    layout.response_slot_size = granted;
    f.send(encode(wire::Grant{.features = features, .session_id = 9, .nonce = kNonce, .layout = layout}));
    return f.session.is_open() ? "" : f.why;
  };
  CHECK(open(4096, wire::kSlotSizes) == "");
  CHECK(open(1024, wire::kSlotSizes) == "");
  CHECK(open(4160, wire::kSlotSizes).find("larger slots") != std::string::npos);
  CHECK(open(16384, 0) == "");
}

TEST_CASE("a grant says what the session may do; one of 0.1.0 says nothing, and all may be tried") {
  Fixture f;
  f.open();
  CHECK(f.session.grant().rights == op::kAllRights);
  Fixture told;
  told.session.start();
  told.send(encode(wire::Grant{
      .features = wire::kRights, .session_id = 9, .nonce = kNonce, .layout = kLayout, .rights = op::kMayRead}));
  REQUIRE_MESSAGE(told.session.is_open(), told.why);
  CHECK(told.session.grant().rights == op::kMayRead);
}

TEST_CASE("failover and warm are offered; whether the backend knows them the grant says, and one of 0.1.0 does not") {
  Fixture f;
  f.session.start();
  wire::Hello hello;
  REQUIRE(decode(connected->frames_out.at(0), hello));
  CHECK((hello.features & (wire::kFailover | wire::kWarm)) == (wire::kFailover | wire::kWarm));
  f.send(encode(wire::Grant{.features = wire::kWarm, .session_id = 9, .nonce = kNonce, .layout = kLayout}));
  REQUIRE_MESSAGE(f.session.is_open(), f.why);
  CHECK((f.session.grant().features & wire::kWarm) != 0);
  CHECK((f.session.grant().features & wire::kFailover) == 0);
  Fixture old;
  old.open();
  CHECK((old.session.grant().features & wire::kWarm) == 0);
}

TEST_CASE("hello, grant, ready: the session is open") {
  Fixture f;
  f.session.start();
  CHECK(f.session.state() == ClientSession::State::kHandshaking);
  wire::Hello hello;
  REQUIRE(connected->frames_out.size() == 1);
  REQUIRE(decode(connected->frames_out[0], hello));
  CHECK(hello.worker_id == 42);
  CHECK(hello.window == 4);
  f.grant();
  CHECK(f.events == "co");
  CHECK(f.session.lanes().count() == 2);
  CHECK(f.session.lanes().generation() == 1);
  wire::FrameType type{};
  std::string error;
  REQUIRE(decode_prefix(connected->frames_out.at(1), type, error));
  CHECK(type == wire::FrameType::kReady);
}

TEST_CASE("with a secret: hello, challenge, proof, proven grant, ready") {
  Fixture f(kSecret);
  Backend backend;
  f.session.start();
  wire::Hello hello;
  REQUIRE(decode(connected->frames_out.at(0), hello));
  CHECK(hello.features == (wire::kAuthenticate | kAlways));
  CHECK(hello.nonce != wire::HandshakeNonce{});
  f.send(backend.challenge());
  CHECK(f.session.state() == ClientSession::State::kHandshaking);
  CHECK(backend.is_convinced());
  f.send(backend.grant());
  CHECK_MESSAGE(f.session.is_open(), f.why);
  CHECK(f.events == "co");
}

TEST_CASE("options that change during a handshake count from the next one on") {
  const base::Secret next("the secret of next year");
  for (const int changes_after : {0, 1}) {
    Fixture f(kSecret);
    Backend backend;
    SessionOptions changed = f.options;
    changed.secret = next;
    changed.window = 2;  // fewer slots than the grant has
    f.session.start();
    if (changes_after == 0) f.session.set_options(changed);
    f.send(backend.challenge());
    CHECK(backend.is_convinced());
    if (changes_after == 1) f.session.set_options(changed);
    f.send(backend.grant());
    CHECK_MESSAGE(f.session.is_open(), f.why);
    f.lose();
    f.pass_time(f.options.backoff_max_ns);
    Backend of_next(next);
    f.send(of_next.challenge());
    CHECK(of_next.is_convinced());
  }
}

TEST_CASE("the secret itself is in no frame, and no two handshakes are alike") {
  Fixture f(kSecret);
  std::vector<std::vector<std::byte>> sent;
  for (int i = 0; i < 3; ++i) {
    i == 0 ? f.session.start() : f.pass_time(f.options.backoff_max_ns);
    Backend backend;
    f.send(backend.challenge());
    REQUIRE(connected->frames_out.size() == 2);
    for (const auto& frame : connected->frames_out) {
      const std::string_view bytes(reinterpret_cast<const char*>(frame.data()), frame.size());
      CHECK(bytes.find(kSecret.bytes()) == std::string_view::npos);
      CHECK(std::ranges::find(sent, frame) == sent.end());
      sent.push_back(frame);
    }
    f.send(encode(wire::Refusal{"again"}));
  }
}

TEST_CASE("a client with a secret takes no session from a backend that has not proved the same secret") {
  const auto check = [](const std::function<void(Fixture&, Backend&)>& happen, std::string_view why) {
    Fixture f(kSecret);
    Backend backend;
    f.session.start();
    happen(f, backend);
    CHECK(f.session.state() == ClientSession::State::kWaiting);
    CHECK_MESSAGE(f.why.find(why) != std::string::npos, f.why);
    CHECK(f.events == "cl");
  };
  check([](Fixture& f, Backend&) { f.grant(); }, "does not prove that it holds our secret: set its secret_file");
  check(
      [](Fixture& f, Backend& backend) {
        f.send(backend.challenge());
        f.grant();
      },
      "does not prove");
  check(
      [](Fixture& f, Backend& backend) {
        backend.transcript.add(connected->frames_out.at(0));
        f.send(backend.grant());  // proven, but the client was never asked
      },
      "does not prove");
  check(
      [](Fixture& f, Backend& backend) {
        backend.secret = base::Secret("another secret..");
        f.send(backend.challenge());
        f.send(backend.grant());
      },
      "the backend's proof is wrong");
  check(
      [](Fixture& f, Backend& backend) {
        f.send(backend.challenge());
        auto changed = backend.grant();
        changed[16 + 16] ^= std::byte{1};  // the session's nonce, on its way
        f.send(changed);
      },
      "the backend's proof is wrong");
  check(
      [](Fixture& f, Backend& backend) {
        f.send(backend.challenge());
        f.send(backend.challenge());
      },
      "unexpected");
  check(
      [](Fixture& f, Backend& backend) {
        auto cut = backend.challenge();
        cut.resize(40);
        wire::FieldWriter(cut.data() + 12).put(uint32_t{40});
        f.send(cut);
      },
      "malformed challenge");
  check(
      [](Fixture& f, Backend& backend) {
        f.send(backend.challenge());
        f.pass_time(f.options.connect_timeout_ns);
      },
      "no answer");
}

TEST_CASE("a grant that was good once is refused in another handshake") {
  Fixture f(kSecret);
  Backend backend;
  f.session.start();
  const auto challenge = backend.challenge();
  f.send(challenge);
  const auto grant = backend.grant();
  f.send(grant);
  REQUIRE(f.session.is_open());
  f.session.close();
  f.pass_time(f.options.backoff_max_ns);
  f.send(challenge);
  f.send(grant);
  CHECK(!f.session.is_open());
  CHECK_MESSAGE(f.why.find("the backend's proof is wrong") != std::string::npos, f.why);
}

TEST_CASE("a client without a secret answers no challenge, and takes no grant that claims what it did not ask for") {
  Backend backend;
  {
    Fixture f;
    f.session.start();
    f.send(backend.challenge());
    CHECK(f.events == "cl");
    CHECK(f.why.find("unexpected") != std::string::npos);
  }
  Fixture f;
  f.session.start();
  f.send(backend.grant());
  CHECK(f.events == "cl");
  CHECK(f.why.find("not asked for") != std::string::npos);
}

TEST_CASE("who sends our own frames back is no backend that refuses: the attempt counts as a failure") {
  Fixture f;
  f.session.start();
  f.send(encode(wire::Hello{}));
  CHECK(f.session.counters().signs.failures.get() == 1);
  Fixture refused;
  refused.session.start();
  refused.send(encode(wire::Refusal{"too many sessions"}));
  CHECK(refused.session.counters().signs.failures.get() == 0);
}

TEST_CASE("a failure while connecting is reported once, and retried with growing pauses") {
  const auto check = [](const std::function<void(Fixture&)>& happen, std::string_view why) {
    Fixture f;
    f.session.start();
    happen(f);
    CHECK(f.session.state() == ClientSession::State::kWaiting);
    CHECK_MESSAGE(f.why.find(why) != std::string::npos, f.why);
    CHECK(f.events == "cl");
    f.pass_time(f.options.backoff_min_ns / 2);
    CHECK(connects == 1);
    f.pass_time(f.options.backoff_min_ns);
    CHECK(connects == 2);
    f.grant();
    CHECK(f.session.is_open());
  };
  check([](Fixture& f) { f.send(encode(wire::Refusal{"too many sessions"})); }, "too many sessions");
  check([](Fixture& f) { f.send(std::vector<std::byte>(40)); }, "not an egret handshake");
  check([](Fixture& f) { f.send(encode(wire::Hello{})); }, "unexpected");
  check(
      [](Fixture& f) {
        auto cut = encode(wire::Grant{.layout = kLayout});
        cut.resize(30);
        wire::FieldWriter(cut.data() + 12).put(uint32_t{30});
        f.send(cut);
      },
      "malformed grant");
  check(
      [](Fixture& f) {
        connected->refuse_map = true;
        f.grant();
      },
      "wrong size");
  check(
      [](Fixture& f) {
        connected->peer_gone = true;
        f.session.on_control_ready();
      },
      "gone");
  check([](Fixture& f) { f.pass_time(f.options.connect_timeout_ns); }, "no answer");
}

TEST_CASE("back-off doubles up to its maximum, and begins anew after a session that stood for a while") {
  Fixture f;
  refuse = true;
  f.session.start();
  uint64_t wait = f.options.backoff_min_ns;
  for (int i = 0; i < 12; ++i) {
    const int before = connects;
    f.tick_after(wait / 2 - 1);
    CHECK(connects == before);
    f.tick_after(wait - (wait / 2 - 1));
    CHECK(connects == before + 1);
    wait = std::min(wait * 2, f.options.backoff_max_ns);
  }
  refuse = false;
  f.pass_time(wait);
  f.grant();
  REQUIRE(f.session.is_open());
  f.pass_time(f.options.backoff_max_ns);
  f.session.close();
  const int before = connects;
  f.pass_time(f.options.backoff_min_ns);
  CHECK(connects == before + 1);
}

TEST_CASE("workers whose sessions a backend's end has cost them at one moment do not come back at one moment") {
  constexpr uint64_t kTenths = 10;
  std::array<int, kTenths> in_tenth{};  // of the pause
  for (uint64_t worker = 1; worker <= 1000; ++worker) {
    Fixture f;
    f.options.worker_id = worker;
    ClientSession session(f.options, f.clock, f, connect);
    refuse = true;
    session.start();
    for (uint64_t tenth = 0; tenth < kTenths && connects == 1; ++tenth) {
      f.clock.advance_ns(f.options.backoff_min_ns / kTenths);
      session.tick();
      if (connects == 2) ++in_tenth[tenth];
    }
  }
  for (uint64_t tenth = 0; tenth < kTenths; ++tenth) {
    CAPTURE(tenth);
    if (tenth + 1 < kTenths / 2) CHECK(in_tenth[tenth] == 0);
    if (tenth >= kTenths / 2) CHECK(in_tenth[tenth] > 100);
  }
}

TEST_CASE("an open session whose peer goes answers everything in flight once, and is another one when it is back") {
  Fixture f;
  f.open();
  Listener listener;
  REQUIRE(f.session.lanes()[0].append(get_of("sent"), &listener));
  f.session.flush();
  REQUIRE(f.session.lanes()[1].append(get_of("open"), &listener));
  connected->peer_gone = true;
  f.session.on_control_ready();
  CHECK(f.events == "coL");
  CHECK(listener.codes == std::vector{op::ResultCode::kSessionLost, op::ResultCode::kNotSent});
  CHECK(f.session.lanes().outstanding() == 0);
  f.pass_time(f.options.backoff_min_ns);
  f.grant();
  CHECK(f.session.lanes().generation() == 2);
  CHECK(f.events == "coLco");
}

TEST_CASE("what a peer has answered before it went is answered, where its memory outlives it") {
  Fixture f;
  f.open();
  Listener listener;
  REQUIRE(f.session.lanes()[1].append(get_of("answered"), &listener));
  f.session.flush();
  const std::vector<op::Result> results{hit("value")};
  put_response(connected->responses.data(), kLayout, 1, 1, results);
  CHECK(f.session.lanes()[1].stage_fetches(1) == 1);
  connected->events.push_back(
      {.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = connected->reads[0].tag, .bytes = {}});
  f.lose();
  CHECK(f.events == "coL");
  CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kHit});
}

TEST_CASE("what a lane counted stays when its session is lost, and the next session's lane goes on counting") {
  Fixture f;
  f.open();
  const SessionCounters& counters = f.session.counters();
  REQUIRE(counters.lane_count() == 2);
  const LaneCounters* lane = &counters.at(1);
  Listener listener;
  REQUIRE(f.session.lanes()[1].append(get_of("sent"), &listener));
  f.session.flush();
  f.session.close();
  CHECK(counters.lane_count() == 2);
  CHECK(lane->messages.get() == 1);
  CHECK(static_cast<LaneMode>(lane->mode.get()) == LaneMode::kNone);
  f.pass_time(f.options.backoff_min_ns);
  f.grant();
  REQUIRE(f.session.is_open());
  CHECK(&counters.at(1) == lane);
  CHECK(static_cast<LaneMode>(lane->mode.get()) == LaneMode::kFetch);
  REQUIRE(f.session.lanes()[1].append(get_of("sent"), &listener));
  f.session.flush();
  CHECK(lane->messages.get() == 2);
  CHECK(counters.at(0).messages.get() == 0);
  CHECK(counters.sum().messages.get() == 2);
}

TEST_CASE("wake-ups are counted by the session, their results by the lane that was woken for them") {
  Fixture f;
  f.open();
  Listener listener;
  REQUIRE(f.session.lanes()[1].append(get_of("key"), &listener));
  f.session.flush();
  f.session.lanes()[1].stage_want();
  f.session.on_data_ready();
  const std::vector<op::Result> results{hit("value")};
  put_response(connected->responses.data(), kLayout, 1, 1, results);
  CHECK(f.session.lanes()[1].stage_fetches(1) == 1);
  connected->events.push_back(
      {.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = connected->reads[0].tag, .bytes = {}});
  CHECK(f.session.fetch());
  CHECK(f.session.counters().deliveries.get() == 1);
  CHECK(f.session.counters().at(1).replies.get() == 1);
  CHECK(f.session.counters().at(0).replies.get() == 0);
}

TEST_CASE("an unanswered op times out; a lane that stays stuck ends the session") {
  Fixture f;
  f.open();
  Listener listener;
  f.session.begin_pass();
  REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
  f.session.flush();
  CHECK(f.session.needs_tick());
  // Its last tick before op_timeout finds it overdue: no op waits for longer.
  f.pass_time(f.options.op_timeout_ns - ClientSession::kTickNs);
  CHECK(listener.codes.empty());
  f.pass_time(1);
  CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kTimedOut});
  CHECK(f.session.is_open());
  f.pass_time(f.options.op_timeout_ns + ClientSession::kTickNs);
  CHECK(!f.session.is_open());
  CHECK(listener.codes.size() == 1);
}

TEST_CASE("what comes while the thread stands still is found before anything is overdue") {
  constexpr uint64_t kStillNs = 3'600'000'000'000;
  Fixture f;
  Listener listener;
  const auto ask_and_stand_still = [&] {
    f.grant();
    f.session.begin_pass();
    REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
    f.session.flush();
    f.session.tick();
    f.tick_after(kStillNs);
    CHECK(listener.codes.empty());
  };
  f.session.start();
  SUBCASE("a grant") {
    f.tick_after(kStillNs);
    f.grant();
    CHECK(f.session.is_open());
  }
  SUBCASE("an answer") {
    ask_and_stand_still();
    put_response(connected->responses.data(), kLayout, 0, 1, std::vector<op::Result>{hit("value")});
    connected->completes_reads = true;
    f.session.begin_pass();
    f.session.fetch();
    CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kHit});
  }
  SUBCASE("no answer") {
    ask_and_stand_still();
    f.pass_time(ClientSession::kTickNs);
    CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kTimedOut});
    CHECK_FALSE(f.session.is_open());
  }
}

TEST_CASE("nor is it overdue at once where the limit is shorter than a tick") {
  Fixture f;
  f.open();
  f.options.op_timeout_ns = ClientSession::kTickNs / 4;
  f.session.set_options(f.options);
  Listener listener;
  f.session.begin_pass();
  f.session.tick();
  REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
  f.session.flush();
  f.tick_after(3'600'000'000'000);
  CHECK(listener.codes.empty());
  CHECK(f.session.is_open());
  f.tick_after(ClientSession::kTickNs);
  CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kTimedOut});
}

TEST_CASE("after an idle hour, messages that were full before the pass began are not overdue") {
  constexpr uint64_t kHourNs = 3'600'000'000'000;
  Fixture f;
  f.open();
  f.clock.advance_ns(kHourNs);
  Listener listener;
  for (int i = 0; i < 100; ++i) REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
  REQUIRE(f.session.lanes()[0].outstanding() > 0);
  f.session.begin_pass();
  f.session.flush();
  f.session.tick();
  CHECK(f.session.is_open());
  CHECK(listener.codes.empty());
  // Their time runs from that pass on.
  f.pass_time(f.options.op_timeout_ns - ClientSession::kTickNs);
  CHECK(listener.codes.empty());
  f.pass_time(1);
  CHECK(listener.codes.size() == 100);
  CHECK(f.session.is_open());
}

// --- what it tells of its backend

TEST_CASE("messages without an answer are counted in a row, and an answer ends the row") {
  Fixture f;
  f.open();
  const SessionSigns& signs = f.session.counters().signs;
  Listener listener;
  f.session.begin_pass();
  for (int i = 0; i < 2; ++i) {
    REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
    f.session.flush();
  }
  REQUIRE(f.session.lanes()[1].append(get_of("key"), &listener));
  f.session.flush();
  CHECK(signs.timeouts.get() == 0);
  f.pass_time(f.options.op_timeout_ns + 1);
  CHECK(signs.timeouts.get() == 3);
  CHECK(f.timeouts == 1);  // told of once
  f.pass_time(1);
  CHECK(f.timeouts == 1);
  put_response(connected->responses.data(), kLayout, 1, 1, std::vector<op::Result>{hit("late")});
  connected->completes_reads = true;
  f.session.fetch();
  CHECK(signs.timeouts.get() == 0);
}

TEST_CASE("of a backend that has answered nothing at all, what was sent since counts with the first that is overdue") {
  Fixture f;
  f.open();
  const SessionSigns& signs = f.session.counters().signs;
  Listener listener;
  const auto send = [&](uint32_t lane) {
    f.session.begin_pass();
    REQUIRE(f.session.lanes()[lane].append(get_of("key"), &listener));
    f.session.flush();
  };
  send(0);
  f.pass_time(f.options.op_timeout_ns / 2);
  send(0);
  send(1);
  SUBCASE("nothing") {
    f.pass_time(f.options.op_timeout_ns / 2);
    CHECK(signs.timeouts.get() == 3);
    CHECK(listener.codes.size() == 1);
    f.pass_time(f.options.op_timeout_ns / 2);
    CHECK(signs.timeouts.get() == 3);  // none is counted twice
  }
  SUBCASE("another lane's were answered: only what is overdue counts") {
    put_response(connected->responses.data(), kLayout, 1, 1, std::vector<op::Result>{hit("value")});
    connected->completes_reads = true;
    f.session.fetch();
    f.pass_time(f.options.op_timeout_ns / 2);
    CHECK(signs.timeouts.get() == 1);
  }
}

TEST_CASE("a session that is given up says more than any number of timeouts, until the backend answers") {
  Fixture f;
  f.open();
  const SessionSigns& signs = f.session.counters().signs;
  Listener listener;
  f.session.begin_pass();
  REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
  f.session.flush();
  f.pass_time(2 * f.options.op_timeout_ns + 1);
  REQUIRE_FALSE(f.session.is_open());
  CHECK(signs.timeouts.get() == SessionSigns::kStuck);
  CHECK(signs.failures.get() == 1);
  f.session.close(ClientSession::State::kClosed);
  CHECK(signs.timeouts.get() == 0);
}

TEST_CASE("attempts that nobody answered are failures; a refusal is an answer") {
  Fixture f;
  const SessionSigns& signs = f.session.counters().signs;
  SUBCASE("nobody listens") {
    refuse = true;
    f.session.start();
    CHECK(signs.failures.get() == 1);
  }
  SUBCASE("nobody says anything") {
    f.session.start();
    f.pass_time(f.options.connect_timeout_ns);
    CHECK(signs.failures.get() == 1);
  }
  SUBCASE("the peer goes") {
    f.session.start();
    f.lose();
    CHECK(signs.failures.get() == 1);
  }
  SUBCASE("it refuses") {
    f.session.start();
    f.send(encode(wire::Refusal{"too many"}));
    CHECK(signs.failures.get() == 0);
  }
  SUBCASE("an open session ends") {
    f.open();
    CHECK(signs.failures.get() == 0);
    f.lose();
    CHECK(signs.failures.get() == 1);
  }
  SUBCASE("we end it") {
    f.open();
    f.session.close(ClientSession::State::kClosed);
    CHECK(signs.failures.get() == 0);
  }
  CHECK_FALSE(f.session.is_open());
}

TEST_CASE("a session that is closed tries nothing; started again, it tries at once") {
  Fixture f;
  f.open();
  Listener listener;
  f.session.begin_pass();
  REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
  f.session.flush();
  f.session.close(ClientSession::State::kClosed);
  CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kSessionLost});
  CHECK(f.session.state() == ClientSession::State::kClosed);
  CHECK_FALSE(f.session.needs_tick());
  f.pass_time(3'600'000'000'000);
  CHECK(connects == 1);
  f.session.start();
  CHECK(connects == 2);
  f.grant();
  CHECK(f.session.is_open());
}

TEST_CASE(
    "whoever waits for credit is called when some came back, first come, first served, and when the session is lost") {
  struct Waiting final : CreditWaiter {
    explicit Waiting(std::string& order, char name) : order_(order), name_(name) {}
    void on_credit() override { order_ += name_; }
    std::string& order_;
    const char name_;
  };
  Fixture f;
  f.open();
  std::string order;
  Waiting a(order, 'a'), b(order, 'b'), c(order, 'c');
  Listener listener;
  for (uint32_t i = 0; i < kLayout.window; ++i) {
    for (uint32_t lane = 0; lane < kLayout.lanes; ++lane)
      REQUIRE(f.session.lanes()[lane].append(get_of("key"), &listener));
    f.session.flush();
  }
  f.session.credit().wait(&a);
  f.session.credit().wait(&b);
  f.session.credit().stop_waiting(&a);
  f.session.credit().wait(&c);
  CHECK(!f.session.credit().hand_out());
  const std::vector<op::Result> results{hit("value")};
  put_response(connected->responses.data(), kLayout, 0, 1, results);
  CHECK(f.session.lanes()[0].stage_fetches(1) == 1);
  connected->events.push_back(
      {.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = connected->reads[0].tag, .bytes = {}});
  CHECK(f.session.fetch());
  CHECK(f.session.credit().hand_out());
  CHECK(order == "bc");
  f.session.credit().wait(&a);
  f.session.close();
  CHECK(f.session.credit().hand_out());
  CHECK(order == "bca");
}

TEST_CASE(
    "while a backend answers nothing for op_timeout the session is silent, and whoever waits for room is told, and "
    "counts") {
  struct Waiting final : CreditWaiter {
    void on_credit() override { ++calls; }
    int calls = 0;
  };
  Fixture f;
  f.open();
  const SessionSigns& signs = f.session.counters().signs;
  Listener listener;
  f.session.begin_pass();
  for (uint32_t i = 0; i < kLayout.window; ++i) {
    for (uint32_t lane = 0; lane < kLayout.lanes; ++lane)
      REQUIRE(f.session.lanes()[lane].append(get_of("key"), &listener));
    f.session.flush();
  }
  std::array<Waiting, 20> waiting;
  for (Waiting& each : waiting) f.session.credit().wait(&each);
  const auto is_silent = [&](uint32_t lane) { return f.session.lanes()[lane].progress().is_silent; };
  CHECK_FALSE(is_silent(0));
  f.pass_time(f.options.op_timeout_ns + 1);
  CHECK(f.session.is_open());
  CHECK((is_silent(0) && is_silent(1)));
  CHECK(signs.timeouts.get() == kLayout.window * kLayout.lanes + waiting.size());
  CHECK(f.session.credit().hand_out());  // although no slot is free
  for (const Waiting& each : waiting) CHECK(each.calls == 1);
  SUBCASE("until it answers") {
    connected->completes_reads = true;
    for (uint32_t message = 1; message <= kLayout.window; ++message) {
      CHECK(is_silent(0));
      put_response(connected->responses.data(), kLayout, 0, message, std::vector<op::Result>{hit("late")});
      f.session.begin_pass();
      for (int pass = 0; pass < 3; ++pass) f.session.fetch();
    }
    CHECK_FALSE(is_silent(0));
    CHECK(is_silent(1));
    CHECK(f.session.is_open());
  }
  SUBCASE("until it is lost, and another one is open") {
    f.pass_time(f.options.op_timeout_ns + 2 * ClientSession::kTickNs);
    CHECK_FALSE(f.session.is_open());
    f.pass_time(f.options.backoff_max_ns);
    f.grant();
    REQUIRE(f.session.is_open());
    CHECK_FALSE(is_silent(0));
  }
}

TEST_CASE("the log says whether the connection broke or the peer sent nonsense") {
  const auto check = [](const std::function<void(Fixture&)>& happen, std::string_view why) {
    Fixture f;
    f.open();
    Listener listener;
    REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
    f.session.flush();
    happen(f);
    CHECK(f.session.fetch());
    CHECK(f.why == why);
    CHECK(listener.codes == std::vector<op::ResultCode>{op::ResultCode::kSessionLost});
  };
  check([](Fixture&) { connected->events.push_back({}); }, "the connection broke");
  check(
      [](Fixture& f) {
        const std::vector<op::Result> results{hit("one"), hit("too many")};
        put_response(connected->responses.data(), kLayout, 0, 1, results);
        CHECK(f.session.lanes()[0].stage_fetches(1) == 1);
        connected->events.push_back(
            {.kind = transport::Event::Kind::kFetched, .lane = 0, .tag = connected->reads[0].tag, .bytes = {}});
      },
      "a malformed response");
}

TEST_CASE("a frame after the handshake ends the session: a server has nothing to say there but why it goes") {
  Fixture f;
  f.open();
  f.send(encode(wire::Refusal{"shutting down"}));
  CHECK(f.why.find("shutting down") != std::string::npos);
  CHECK(f.events == "coL");
}

TEST_CASE("over ordered memory heads are sealed, where the backend agrees; elsewhere that cannot be agreed") {
  for (const bool agrees : {true, false}) {
    Fixture f;
    f.session.start();
    wire::Hello hello;
    REQUIRE(decode(connected->frames_out.at(0), hello));
    CHECK(hello.features == kAlways);
    f.grant(agrees ? wire::kOrderedMemory : 0);
    CHECK(f.session.is_open() == !agrees);  // it was not offered
  }
  for (const bool agrees : {true, false}) {
    Fixture f;
    is_ordered = true;
    f.session.start();
    wire::Hello hello;
    REQUIRE(decode(connected->frames_out.at(0), hello));
    CHECK(hello.features == (wire::kOrderedMemory | kAlways));
    f.grant(agrees ? wire::kOrderedMemory : 0);
    REQUIRE(f.session.is_open());
    Listener listener;
    f.session.begin_pass();
    REQUIRE(f.session.lanes()[0].append(get_of("key"), &listener));
    f.session.flush();
    const auto& write = connected->writes.at(0);
    const std::byte* const slot = connected->requests.data() + write.offset;
    const wire::Seal seal{.nonce = kNonce, .heads_only = agrees};
    uint64_t sum = 0;
    std::memcpy(&sum, slot + offsetof(wire::RequestHeader, checksum), sizeof sum);
    CHECK(sum == seal.checksum(slot + wire::kRequestChecked, wire::kRequestHeadChecked,
                               write.length - sizeof(wire::RequestHeader), 1));
  }
}

namespace {

// One get whose answer takes so long, waited for as a worker does. Whether the worker was ever told to go on polling.
bool polls_for_answer(Fixture& f, uint64_t takes_ns) {
  ClientLane& lane = f.session.lanes()[0];
  Listener listener;
  f.session.begin_pass();
  const uint64_t seq = ++f.gets_sent;
  REQUIRE(lane.append(get_of("k"), &listener));
  f.session.flush();
  const uint64_t answered_ns = f.clock.now_ns() + takes_ns;
  bool polled = false;
  while (listener.codes.empty()) {
    f.session.fetch();
    f.session.begin_pass();
    if (f.session.should_spin()) {
      polled = true;
      f.clock.advance_ns(f.options.spin_ns / 4);
    } else if (f.session.prepare_sleep()) {
      f.clock.advance_ns(answered_ns - f.clock.now_ns());  // until it is woken
    }
    if (f.clock.now_ns() < answered_ns) continue;
    const std::vector<op::Result> results{hit("value")};
    put_response(connected->responses.data(), kLayout, 0, seq, results);
  }
  return polled;
}

}  // namespace

TEST_CASE("a worker that has polled in vain too often sleeps at once, and polls again when answers come soon") {
  Fixture f;
  SessionOptions options = f.options;
  options.fetch.mode = FetchMode::kFetch;  // whatever the policy thinks of it
  f.session.set_options(options);
  f.open();
  connected->completes_reads = true;
  const uint64_t soon_ns = f.options.spin_ns / 2;
  const uint64_t late_ns = 3 * f.options.spin_ns;
  for (int i = 0; i < 10; ++i) CHECK(polls_for_answer(f, soon_ns));
  for (int i = 0; i < 10; ++i) polls_for_answer(f, late_ns);
  int polled = 0;
  for (int i = 0; i < 320; ++i) polled += polls_for_answer(f, late_ns) ? 1 : 0;
  CHECK(polled == 10);
  for (int i = 0; i < 320; ++i) polls_for_answer(f, soon_ns);
  for (int i = 0; i < 10; ++i) CHECK(polls_for_answer(f, soon_ns));
}

// --- asked to come back

TEST_CASE("a client that is asked to come back does so then, not earlier, and that is no sign against the backend") {
  Fixture f;
  f.session.start();
  f.send(encode(wire::Refusal{.reason = "busy", .come_back_ms = 1500}));
  CHECK(f.events == "cl");
  CHECK(f.session.counters().signs.failures.get() == 0);
  f.pass_time(1'499'000'000);
  CHECK(connects == 1);
  f.pass_time(1'000'000);
  CHECK(connects == 2);
  wire::Hello hello;
  REQUIRE(decode(connected->frames_out.at(0), hello));
  CHECK(hello.asked_back == 1);
  f.grant();
  CHECK(f.session.is_open());
  f.lose();
  f.pass_time(f.options.backoff_max_ns);
  REQUIRE(decode(connected->frames_out.at(0), hello));
  CHECK(hello.asked_back == 0);
}

TEST_CASE("a transport that was asked to come back is obeyed as well, and tells the next attempt so") {
  Fixture f;
  f.session.start();
  CHECK_FALSE(last_options.came_back);
  connected->pause_ms = 40;
  f.lose();
  CHECK(f.session.counters().signs.failures.get() == 0);
  f.pass_time(39'000'000);
  CHECK(connects == 1);
  f.pass_time(1'000'000);
  CHECK(connects == 2);
  CHECK(last_options.came_back);
}

TEST_CASE("a backend cannot keep a client away for longer than 20 s at once") {
  Fixture f;
  f.session.start();
  f.send(encode(wire::Refusal{.reason = "busy", .come_back_ms = UINT32_MAX}));
  f.pass_time(20'000'000'000);
  CHECK(connects == 2);
}

TEST_CASE("a backend that asks a client to come back a fifth time in a row is one that cannot be reached") {
  Fixture f;
  f.session.start();
  for (int asked = 1; asked <= 4; ++asked) {
    connected->pause_ms = 10;
    f.lose();
    CHECK(f.session.counters().signs.failures.get() == 0);
    f.pass_time(10'000'000);
    CHECK(connects == 1 + asked);
  }
  connected->pause_ms = 10;
  f.lose();
  CHECK(f.session.counters().signs.failures.get() == 1);
}

TEST_CASE("what a backend said before it granted a session does not count when the session is lost") {
  Fixture f;
  f.session.start();
  f.send(encode(wire::Refusal{.reason = "busy", .come_back_ms = 1500}));
  f.pass_time(1'500'000'000);
  f.grant();
  REQUIRE(f.session.is_open());
  connected->pause_ms = 5000;
  f.lose();
  CHECK(f.session.counters().signs.failures.get() == 1);
  f.pass_time(f.options.backoff_max_ns);
  CHECK(connects == 3);
}
