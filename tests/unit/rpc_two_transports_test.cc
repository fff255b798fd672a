// Which of a backend's two transports a session goes by, when it tries the other one, and how fast, with the test as
// the backend.
#include <map>
#include <set>

#include "base/clock.h"
#include "rpc/client_session.h"
#include "rpc/resize/transport_choice.h"
#include "rpc_fakes.h"

using namespace egret;
using namespace egret::rpc;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kTick = ClientSession::kTickNs;
constexpr wire::RegionLayout kLayout{.lanes = 1, .window = 8, .request_slot_size = 4096, .response_slot_size = 4096};
const std::string kBoth = "rdma+tcp:10.0.0.2:11311";
const std::string kRdma = "rdma:10.0.0.2:11311";
const std::string kTcp = "tcp:10.0.0.2:11311";

std::set<std::string> absent;         // addresses at which connecting fails at once
std::vector<std::string> tried;       // in order
std::vector<FakeClientEndpoint*> of;  // of those that did not fail at once; some are gone

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                   const transport::ConnectOptions&) {
  tried.push_back(address);
  if (absent.contains(address)) return base::Status::error("no way by " + address);
  auto endpoint = std::make_unique<FakeClientEndpoint>(kLayout, false);
  endpoint->limits_to_change() = {.read_depth = 16};
  if (address == kTcp) endpoint->limits_to_change() = {.is_ordered = true, .results_are_pushed = true};
  of.push_back(endpoint.get());
  return std::unique_ptr<transport::ClientEndpoint>(std::move(endpoint));
}

SessionOptions options_of(const std::string& address) {
  SessionOptions options;
  options.address = address;
  options.worker_id = 42;
  return options;
}

struct Fixture final : SessionObserver {
  explicit Fixture(const std::string& address = kBoth) : session(options_of(address), clock, *this, connect) {
    absent.clear();
    tried.clear();
    of.clear();
  }
  base::Status on_session_connecting(ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(ClientSession&) override {
    note("o");
    return base::Status::ok();
  }
  base::Status on_session_returned(ClientSession&) override {
    note("R");
    return base::Status::ok();
  }
  void on_session_falls_back(ClientSession&, const std::string& reason) override { note("f", reason); }
  void on_session_not_returned(ClientSession&, const std::string& reason) override { note("n", reason); }
  void on_session_lost(ClientSession&, const std::string& reason, bool was_open) override {
    note(was_open ? "L" : "l", reason);
  }
  void note(const char* event, const std::string& reason = {}) {
    events += event;
    if (!reason.empty()) why = reason;
  }
  // The connection that was made last is granted.
  void grant(uint64_t epoch = 1) {
    wire::Hello hello;
    REQUIRE(decode(of.back()->frames_out.at(0), hello));
    ids.push_back(hello.worker_id);
    const wire::Grant granted{.features = hello.features & wire::kSlotSizes,
                              .session_id = 9 + of.size(),
                              .nonce = kNonce,
                              .epoch = epoch,
                              .hash_seed = 3,
                              .item_size_max = 1 << 20,
                              .layout = kLayout};
    of.back()->frames_in.push_back(encode(granted));
  }
  void open() {
    session.start();
    grant();
    session.on_control_ready();
    REQUIRE(session.is_open());
  }
  void break_session() {
    of.back()->peer_gone = true;
    session.on_control_ready();
  }
  void pass_time(uint64_t ns) {
    for (uint64_t passed = 0; passed < ns; passed += kTick) {
      clock.advance_ns(kTick);
      session.tick();
    }
  }
  std::string transport() {
    const uint64_t number = session.counters().transport.get();
    return number == 0 ? "none" : std::string(transport::transport_names()[number - 1]);
  }

  base::ManualClock clock;
  std::string events, why;
  std::vector<uint64_t> ids;
  ClientSession session;
};

}  // namespace

TEST_CASE("rdma+tcp stands for an rdma: and a tcp: address, others for themselves") {
  CHECK(transport::alternatives_of(kBoth) == std::vector{kRdma, kTcp});
  CHECK(transport::alternatives_of(kTcp) == std::vector{kTcp});
  CHECK(transport::alternatives_of("shm:/a") == std::vector<std::string>{"shm:/a"});
  CHECK(transport::number_of_transport(kRdma) == 2);
  CHECK(transport::number_of_transport("tcp") == 3);
  CHECK(transport::number_of_transport(kBoth) == 0);
}

TEST_CASE("with one transport nothing is tried in its place") {
  TransportChoice choice(kRdma);
  CHECK(choice.patience_ns(5 * kSecond) == 5 * kSecond);
  CHECK_FALSE(choice.falls_back());
  choice.open(0, 0);
  CHECK_FALSE(choice.should_return(3600 * kSecond));
  choice.lose(1);
  CHECK(choice.address() == kRdma);
}

TEST_CASE("where RDMA cannot be had a session is made over TCP within the same call") {
  Fixture f;
  absent = {kRdma};
  f.open();
  CHECK(tried == std::vector{kRdma, kTcp});
  CHECK(f.events == "fo");
  CHECK(f.why == "no way by " + kRdma);
  CHECK(f.transport() == "tcp");
  CHECK(f.session.counters().fell_back.get() == 1);
  CHECK(f.session.counters().signs.failures.get() == 0);
}

TEST_CASE("RDMA that says nothing is given up after the head start; a backend that has spoken is waited for") {
  Fixture f;
  f.session.start();
  f.pass_time(TransportChoice::kHeadStartNs - kTick);
  CHECK(tried == std::vector{kRdma});
  f.pass_time(2 * kTick);
  CHECK(tried == std::vector{kRdma, kTcp});
  CHECK(f.events == "f");
  f.grant();
  f.session.on_control_ready();
  CHECK(f.events == "fo");
  CHECK(f.transport() == "tcp");
}

TEST_CASE("when both fail it pauses, and RDMA has twice the time in the next round") {
  Fixture f;
  f.session.start();
  absent = {kTcp};
  for (int round = 0; round < 3; ++round) {
    const uint64_t patience = TransportChoice::kHeadStartNs << round;
    f.pass_time(patience - 2 * kTick);
    CHECK(tried.size() == static_cast<size_t>(2 * round + 1));
    f.pass_time(4 * kTick);  // and a pause
    CHECK(tried.size() >= static_cast<size_t>(2 * round + 2));
    while (tried.size() < static_cast<size_t>(2 * round + 3)) f.pass_time(kTick);
  }
  CHECK(f.events == "flflfl");
  CHECK(f.session.counters().signs.failures.get() == 3);  // one a round
}

TEST_CASE("a backend that asks to come back is not asked again over TCP") {
  Fixture f;
  f.session.start();
  of.back()->pause_ms = 700;
  f.break_session();
  CHECK(f.events == "l");
  f.pass_time(600'000'000);
  CHECK(tried == std::vector{kRdma});
  f.pass_time(200'000'000);
  CHECK(tried == std::vector{kRdma, kRdma});
}

TEST_CASE(
    "while it goes over TCP, RDMA is tried again after a second, and later each time, also when nothing is asked") {
  Fixture f;
  absent = {kRdma};
  f.open();
  tried.clear();
  std::vector<uint64_t> at;
  for (uint64_t now = 0; now < 600 * kSecond; now += transport::kKeepAliveNs) {
    f.clock.advance_ns(transport::kKeepAliveNs);
    const size_t before = tried.size();
    CHECK(f.session.keep_alive());
    if (tried.size() > before) at.push_back(now);
  }
  REQUIRE(at.size() > 10);
  CHECK(at[0] <= kSecond);
  for (size_t i = 1; i < at.size(); ++i) CHECK(at[i] - at[i - 1] <= TransportChoice::kLastReturnNs + kSecond);
  CHECK(at.back() - at[at.size() - 2] >= TransportChoice::kLastReturnNs / 2 - kSecond);
  CHECK(std::set(tried.begin(), tried.end()) == std::set{kRdma});
  CHECK(f.events == "fo" + std::string(at.size(), 'n'));
  CHECK(f.transport() == "tcp");
}

TEST_CASE("it returns by a second session of the same worker, when every op is answered; the size stays") {
  Fixture f;
  absent = {kRdma};
  f.open();
  FakeClientEndpoint* const by_tcp = of.back();
  absent.clear();
  Listener listener;
  REQUIRE(f.session.lanes()[0].append(get_of("k"), &listener));
  f.session.flush();
  REQUIRE(by_tcp->writes.size() == 1);
  f.pass_time(2 * kSecond - kTick);
  REQUIRE(of.size() == 2);
  CHECK(tried.back() == kRdma);
  f.grant();
  f.pass_time(2 * kTick);
  CHECK(f.ids[1] == (f.ids[0] ^ 1));
  CHECK(f.transport() == "tcp");  // an op is under way
  const uint64_t generation = f.session.lanes().generation();
  const std::array results{hit("value")};
  std::byte* const image = by_tcp->responses.data();
  put_response(image, kLayout, 0, 1, results);
  by_tcp->events.push_back({.kind = transport::Event::Kind::kDelivered,
                            .lane = 0,
                            .tag = 0,
                            .bytes = {image + kLayout.response_offset(0, 1), 4096}});
  f.session.on_data_ready();
  f.session.begin_pass();
  f.session.fetch();
  f.pass_time(30 * kTick);
  CHECK(f.events == "foR");
  CHECK(f.transport() == "rdma");
  CHECK(f.session.counters().returned.get() == 1);
  CHECK(f.session.counters().grown.get() == 0);
  CHECK(f.session.lanes().generation() == generation);
  CHECK(of.size() == 2);
}

TEST_CASE("a successor of another backend process is not gone on with") {
  Fixture f;
  absent = {kRdma};
  f.open();
  absent.clear();
  f.clock.advance_ns(2 * kSecond);
  f.session.keep_alive();
  REQUIRE(of.size() == 2);
  f.grant(/*epoch=*/2);
  f.pass_time(kTick);
  CHECK(f.events == "fon");
  CHECK(f.why == "the backend is another one than before");
  CHECK(f.transport() == "tcp");
}

TEST_CASE("RDMA that serves only for moments is left alone for longer each time") {
  TransportChoice choice(kBoth);
  uint64_t now = 0;
  uint64_t before = 0;
  for (int flaps = 0; flaps < 6; ++flaps) {
    choice.open(now, 0);
    if (flaps == 0) CHECK(choice.address() == kRdma);
    if (flaps > 0) {
      CHECK(choice.is_fallback());
      uint64_t waited = 0;
      while (!choice.should_return(now + waited)) waited += kSecond / 100;
      CHECK(waited > before);
      before = waited;
      choice.come_back(now += waited);
    }
    now += kSecond;  // it lasts no longer
    choice.lose(now);
    CHECK(choice.address() == kTcp);
  }
  choice.open(now, 0);
  choice.come_back(now);
  choice.lose(now + TransportChoice::kLastingNs);
  CHECK(choice.address() == kRdma);
}

TEST_CASE("sessions that were lost together do not return together") {
  std::set<uint64_t> at;
  for (uint64_t luck = 0; luck < 1024; luck += 64) {
    TransportChoice choice(kBoth);
    choice.falls_back();
    choice.open(0, luck);
    uint64_t waited = 0;
    while (!choice.should_return(waited)) waited += 1'000'000;
    CHECK(waited <= TransportChoice::kFirstReturnNs);
    CHECK(waited >= TransportChoice::kFirstReturnNs / 2);
    at.insert(waited);
  }
  CHECK(at.size() > 10);
}
