// The messages between partitions for one session are bounded, however often its client rings and wants.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backend/partition.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/slot_copy.h"
#include "base/unique_fd.h"
#include "rpc_fakes.h"

using namespace egret::backend;
using egret::rpc::FakeServerEndpoint;
using egret::transport::Event;
namespace base = egret::base;
namespace op = egret::op;
namespace rpc = egret::rpc;
namespace wire = egret::wire;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 2, .window = 8, .request_slot_size = 1024, .response_slot_size = 1024};
constexpr uint32_t kHome = 0, kOther = 1, kControl = 2;
constexpr uint64_t kSession = 7;
constexpr uint64_t kNever = uint64_t{1} << 60;

// Of a session's two partitions one runs. The other one and the control thread are the test, which reads its messages
// only when it likes.
struct Fixture {
  explicit Fixture(uint32_t number, uint64_t idle_ns = kNever, bool follows = false)
      : running(number), mailboxes(3), endpoint(kLayout, false), under_way(16) {
    wakeup.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    endpoint.fd = wakeup.get();
    auto executor =
        Executor::create({.partition = number, .partitions = 2, .memory = 8 << 20, .item_size_max = 1 << 20}, clock);
    REQUIRE(executor.is_ok());
    const PartitionOptions options{
        .number = number, .follows = follows, .polling = {.lane_idle_ns = idle_ns, .far_lane_idle_ns = idle_ns}};
    partition = std::make_unique<Partition>(options, clock, mailboxes, std::move(executor.value()));
  }
  void start() {
    attach();
    partition->start();
  }
  void attach() {
    const rpc::LaneBinding lane{kSession, running, kHome, &endpoint, kLayout, {rpc::kNonce, false}};
    mailboxes.send(kControl, running, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = &under_way});
  }
  // What it has done by now is all that it does.
  void stop() {
    mailboxes.send(kControl, running, {.kind = Message::Kind::kStop, .lane = {}});
    partition->join();
  }
  // As many messages of that kind as there are for the partition that does not run.
  size_t messages(Message::Kind kind) {
    size_t found = 0;
    for (Message message; mailboxes.receive(1 - running, message);) found += message.kind == kind;
    return found;
  }

  const uint32_t running;
  base::SystemClock clock;
  base::UniqueFd wakeup;
  Mailboxes mailboxes;
  FakeServerEndpoint endpoint;
  UnderWay under_way;
  std::unique_ptr<Partition> partition;
};

// Into memory that a partition is looking at: the first word last.
void publish_request(std::byte* requests, uint32_t lane, uint64_t seq, const op::Op& op) {
  rpc::Words written(kLayout.request_bytes());
  rpc::put_request(written.data(), kLayout, lane, seq, std::span(&op, 1));
  const size_t begin = kLayout.request_offset(lane, seq);
  for (size_t at = begin + kLayout.request_slot_size; at > begin;) {
    at -= sizeof(uint64_t);
    base::publish_word(requests + at, base::observe_word(written.data() + at));
  }
}

template <typename Condition>
bool eventually(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

TEST_CASE("a client that wants thousands of results without waiting for any has one message per slot under way") {
  constexpr uint64_t kMessages = 2000;  // far more than a queue of messages holds
  Fixture f(kOther);
  base::publish_word(f.endpoint.requests.data() + kLayout.want_offset(kOther), UINT64_MAX);
  f.start();
  const op::Op get = rpc::get_of("key");
  for (uint64_t seq = 1; seq <= kMessages; ++seq) {
    publish_request(f.endpoint.requests.data(), kOther, seq, get);
    const std::byte* const response = f.endpoint.responses.data() + kLayout.response_offset(kOther, seq);
    REQUIRE(eventually([&] { return base::observe_word(response) == seq; }));
  }
  f.stop();
  CHECK_FALSE(f.mailboxes.has_outbox(kOther, kHome));
  CHECK(f.messages(Message::Kind::kDeliver) == kLayout.window);
}

TEST_CASE("a delivery that was asked for again while it was under way pushes what is in the slot by then, once") {
  Fixture f(kHome);
  const size_t slot = 11;  // lane 1's
  const rpc::LaneBinding lane{kSession, kOther, kHome, &f.endpoint, kLayout, {rpc::kNonce, false}};
  const Message deliver{.kind = Message::Kind::kDeliver, .lane = lane, .offset = slot * kLayout.response_slot_size};
  f.start();
  f.under_way.deliveries[slot] = 60;
  f.under_way.deliveries[slot] = 80;
  f.mailboxes.send(kOther, kHome, deliver);
  CHECK(eventually([&] { return f.under_way.deliveries[slot] == 0; }));
  f.stop();
  REQUIRE(f.endpoint.deliveries.size() == 1);
  CHECK(f.endpoint.deliveries[0].lane == kOther);
  CHECK(f.endpoint.deliveries[0].offset == deliver.offset);
  CHECK(f.endpoint.deliveries[0].length == 80);
}

TEST_CASE("that a lane sleeps is said by a delivery of its own, or with the one that is under way for the same slot") {
  Fixture f(kOther, 0);  // falls asleep at once
  const rpc::LaneBinding lane{.session_id = kSession,
                              .lane = kOther,
                              .home = kHome,
                              .endpoint = &f.endpoint,
                              .layout = kLayout,
                              .seal = {.nonce = rpc::kNonce},
                              .knows_deliver = true};
  f.mailboxes.send(kControl, kOther, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = &f.under_way});
  const auto slot = [](uint64_t seq) { return kLayout.response_offset(kOther, seq) / kLayout.response_slot_size; };
  f.under_way.deliveries[slot(2)] = 500;  // of an earlier message
  f.partition->start();
  const op::Op get = rpc::get_of("key");
  rpc::Words written(kLayout.request_bytes());
  rpc::put_request(written.data(), kLayout, kOther, 1, std::span(&get, 1), -1, -1, rpc::kNonce, wire::kTellAsleep);
  const size_t at = kLayout.request_offset(kOther, 1);
  for (size_t word = 256; word > 0; word -= 8) {
    base::publish_word(f.endpoint.requests.data() + at + word - 8, base::observe_word(written.data() + at + word - 8));
  }
  const auto ring = [&] {
    Message message{.kind = Message::Kind::kRing, .lane = {}};
    message.lane.session_id = kSession;
    f.mailboxes.send(kHome, kOther, message);
  };
  const std::byte* const response = f.endpoint.responses.data() + kLayout.response_offset(kOther, 1);
  ring();
  REQUIRE(eventually([&] { return base::observe_word(response) == 1; }));
  const std::byte* const asleep =
      f.endpoint.responses.data() + kLayout.response_offset(kOther, 2) + offsetof(wire::ResponseHeader, asleep);
  REQUIRE(eventually([&] { return base::observe_word(asleep) == 2; }));
  f.stop();
  CHECK(f.under_way.deliveries[slot(2)] == 500);  // no shorter, and no second message
  CHECK(f.messages(Message::Kind::kDeliver) == 0);
}

TEST_CASE("a delivery that overtakes its home's attachment is pushed when the home has the session") {
  Fixture f(kHome);
  const size_t slot = 9;
  const rpc::LaneBinding lane{kSession, kOther, kHome, &f.endpoint, kLayout, {rpc::kNonce, false}};
  f.under_way.deliveries[slot] = 60;
  f.mailboxes.send(kOther, kHome, {.kind = Message::Kind::kDeliver, .lane = lane, .offset = slot * 1024});
  f.partition->start();
  REQUIRE(eventually([&] { return f.mailboxes.is_empty(kOther, kHome); }));
  f.attach();
  CHECK(eventually([&] { return f.under_way.deliveries[slot] == 0; }));
  f.stop();
  REQUIRE(f.endpoint.deliveries.size() == 1);
  CHECK(f.endpoint.deliveries[0].length == 60);
}

TEST_CASE("a client that rings for another partition's lane without end has one message under way") {
  Fixture f(kHome);
  std::atomic<int> polls{0};
  f.endpoint.on_poll = [&](std::span<Event> events) {
    for (Event& event : events) event = {.kind = Event::Kind::kRing, .lane = kOther, .tag = 0, .bytes = {}};
    ++polls;
    return events.size();
  };
  f.start();
  CHECK(eventually([&] { return polls > 1000; }));
  CHECK(f.messages(Message::Kind::kRing) == 1);
  // It has been heard: the next one sends a message again.
  f.under_way.rings[kOther] = false;
  const int before = polls;
  CHECK(eventually([&] { return polls > before + 1000; }));
  f.stop();
  CHECK(f.messages(Message::Kind::kRing) == 1);
  CHECK_FALSE(f.mailboxes.has_outbox(kHome, kOther));
}

// So many sessions of the home that runs. Each rings for the other partition's lane, which shows as a message.
struct Crowd {
  Crowd(Fixture& fixture, size_t sessions, bool signals) : f(fixture) {
    for (uint64_t id = 1; id <= sessions; ++id) {
      Member& member = *members.emplace_back(std::make_unique<Member>());
      member.endpoint.fd = member.wakeup.get();
      if (signals) member.endpoint.signal_rings();
      member.endpoint.on_poll = [&member](std::span<Event> events) -> size_t {
        ++member.polls;
        if (!member.rings.exchange(false)) return 0;
        events[0] = {.kind = Event::Kind::kRing, .lane = kOther, .tag = 0, .bytes = {}};
        return 1;
      };
      const rpc::LaneBinding lane{id, kHome, kHome, &member.endpoint, kLayout, {rpc::kNonce, false}};
      f.mailboxes.send(kControl, kHome, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = &member.under_way});
    }
  }
  // The session's ring is heard: its message comes.
  bool is_heard(uint64_t id) {
    Member& member = *members[id - 1];
    member.rings = true;
    const uint64_t one = 1;
    REQUIRE(::write(member.wakeup.get(), &one, sizeof one) == sizeof one);
    return eventually([&] {
      Message message;
      return f.mailboxes.receive(kOther, message) && message.kind == Message::Kind::kRing &&
             message.lane.session_id == id;
    });
  }

  struct Member {
    FakeServerEndpoint endpoint{kLayout, false};
    base::UniqueFd wakeup{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    UnderWay under_way{16};
    std::atomic<bool> rings{false};
    std::atomic<int> polls{0};
  };
  Fixture& f;
  std::vector<std::unique_ptr<Member>> members;
};

TEST_CASE("with many sessions every ring is noticed, awake or asleep, signalled or polled") {
  for (const bool signals : {true, false}) {
    for (const uint64_t idle_ns :
         {kNever, uint64_t{0}}) {  // lanes that stay awake, so that it never sleeps, or sleep at once
      CAPTURE(signals);
      CAPTURE(idle_ns);
      Fixture f(kHome, idle_ns);
      Crowd crowd(f, 100, signals);
      f.partition->start();
      REQUIRE(eventually([&] { return f.mailboxes.is_empty(kControl, kHome); }));
      for (const uint64_t id : {1, 50, 100, 50}) {
        crowd.members[id - 1]->under_way.rings[kOther] = false;  // the last one's message has been read
        CHECK(crowd.is_heard(id));
      }
      f.stop();
    }
  }
}

TEST_CASE("where rings are signalled, sessions that do not ring are not asked") {
  Fixture f(kHome);
  Crowd crowd(f, 100, true);
  f.partition->start();
  REQUIRE(crowd.is_heard(100));
  const int before = crowd.members[0]->polls;
  REQUIRE(crowd.is_heard(50));
  CHECK(crowd.members[0]->polls == before);
  f.stop();
}

TEST_CASE("where each lane has a ring, its partition hears it by itself, whoever is the session's home") {
  for (const uint32_t running : {kHome, kOther}) {
    Fixture f(running, 0);  // lanes that sleep at once, so that each request needs its ring
    std::atomic<uint64_t> rings{0};
    f.endpoint.give_lane_rings([&](uint32_t lane, std::span<Event> events) -> size_t {
      CHECK(lane == running);
      if (rings.exchange(0) == 0) return 0;
      events[0] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
      return 1;
    });
    f.start();
    for (uint64_t seq = 1; seq <= 100; ++seq) {
      const std::byte* const asleep =
          f.endpoint.responses.data() + kLayout.response_offset(running, seq) + offsetof(wire::ResponseHeader, asleep);
      REQUIRE(eventually([&] { return base::observe_word(asleep) == seq; }));
      publish_request(f.endpoint.requests.data(), running, seq, rpc::get_of("key"));
      rings = 1;
      REQUIRE(::eventfd_write(f.wakeup.get(), 1) == 0);
      const std::byte* const response = f.endpoint.responses.data() + kLayout.response_offset(running, seq);
      REQUIRE(eventually([&] { return base::observe_word(response) == seq; }));
    }
    f.mailboxes.send(kControl, running, {.kind = Message::Kind::kDetach, .lane = {.session_id = kSession}});
    REQUIRE(eventually([&] { return f.mailboxes.is_empty(kControl, running); }));
    f.stop();
    CHECK(f.messages(Message::Kind::kRing) == 0);
  }
}

TEST_CASE("sessions may be attached in any order, and each gets its rings") {
  constexpr uint64_t kNewer = kSession + 1;
  Fixture f(kOther);
  FakeServerEndpoint endpoint(kLayout, false);
  UnderWay under_way(16);
  const rpc::LaneBinding lane{kNewer, kOther, kHome, &endpoint, kLayout, {rpc::kNonce, false}};
  f.mailboxes.send(kControl, kOther, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = &under_way});
  f.start();
  REQUIRE(eventually([&] { return f.mailboxes.is_empty(kControl, kOther); }));
  for (const auto& session : {std::pair{kSession, &f.under_way}, std::pair{kNewer, &under_way}}) {
    session.second->rings[kOther] = true;
    Message ring{.kind = Message::Kind::kRing, .lane = {}};
    ring.lane.session_id = session.first;
    f.mailboxes.send(kHome, kOther, ring);
    CHECK(eventually([&] { return !session.second->rings[kOther]; }));
  }
  f.stop();
}

// A driven partition that is home to a session of so many lanes that one poll of its endpoint does not tell of all.
struct DrivenHome {
  static constexpr wire::RegionLayout kWide{
      .lanes = 20, .window = 2, .request_slot_size = 1024, .response_slot_size = 1024};

  DrivenHome() {
    wakeup.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    endpoint.fd = wakeup.get();
    endpoint.signal_rings();
    endpoint.on_poll = [this](std::span<Event> events) {
      size_t found = 0;
      for (uint32_t lane = 0; lane < kWide.lanes && found < events.size(); ++lane) {
        if (rung[lane]) events[found++] = {.kind = Event::Kind::kRing, .lane = lane, .tag = 0, .bytes = {}};
        rung[lane] = rung[lane] && rings_on;
      }
      ++polls;
      return found;
    };
    auto executor = Executor::create(
        {.partition = kHome, .partitions = kWide.lanes, .memory = 8 << 20, .item_size_max = 1 << 20}, clock);
    REQUIRE(executor.is_ok());
    partition = std::make_unique<Partition>(PartitionOptions{}, clock, mailboxes, std::move(executor.value()));
    partition->begin();
    const rpc::LaneBinding lane{kSession, kHome, kHome, &endpoint, kWide, {rpc::kNonce, false}};
    mailboxes.send(kWide.lanes, kHome, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = &under_way});
    while (partition->poll()) {
    }
  }
  // All lanes, at one signal; and one round.
  void ring_all() {
    rung.assign(kWide.lanes, true);
    REQUIRE(::eventfd_write(wakeup.get(), 1) == 0);
    partition->on_signal();
    partition->poll();
  }
  // How many of the other partitions have been told.
  size_t told() {
    size_t found = 0;
    for (uint32_t number = 1; number < kWide.lanes; ++number) {
      for (Message message; mailboxes.receive(number, message);) found += message.kind == Message::Kind::kRing;
    }
    return found;
  }

  base::SystemClock clock;
  base::UniqueFd wakeup;
  Mailboxes mailboxes{kWide.lanes + 1};
  FakeServerEndpoint endpoint{kWide, true};
  UnderWay under_way{size_t{kWide.lanes} * kWide.window};
  std::vector<bool> rung = std::vector<bool>(kWide.lanes, false);
  bool rings_on = false;  // each poll finds the lanes rung again
  int polls = 0;
  std::unique_ptr<Partition> partition;
};

TEST_CASE("one signal brings the rings of all lanes, however many there are") {
  DrivenHome f;
  f.ring_all();
  CHECK(f.told() == DrivenHome::kWide.lanes - 1);
}

TEST_CASE("a peer that rings for all lanes without end does not keep its partition") {
  DrivenHome f;
  f.rings_on = true;
  const int before = f.polls;
  f.ring_all();
  CHECK(f.polls - before <= 4);
}

// Where the thread of that name may run, as the kernel lists it: "0-1"; empty when there is none.
std::string cpus_of(const std::string& thread) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name, line;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != thread) continue;
    std::ifstream status(task.path() / "status");
    while (std::getline(status, line)) {
      if (line.starts_with("Cpus_allowed_list:\t")) return line.substr(line.find('\t') + 1);
    }
  }
  return "";
}

TEST_CASE("a partition that follows sits where the worker is whose rings wake it, one that does not stays free") {
  for (const bool follows : {true, false}) {
    CAPTURE(follows);
    std::atomic<uint64_t> rings{0};
    Fixture f(kHome, kNever, follows);
    const int cpu = base::allowed_cpus().back();
    f.endpoint.cpu = cpu;
    f.endpoint.on_poll = [&](std::span<Event> events) -> size_t {
      if (rings == 0) return 0;
      --rings;
      events[0] = {.kind = Event::Kind::kRing, .lane = kHome, .tag = 0, .bytes = {}};
      return 1;
    };
    f.start();
    REQUIRE(eventually([&] { return !cpus_of("partition-0").empty(); }));
    const std::string anywhere = cpus_of("partition-0");
    const op::Op get = rpc::get_of("key");
    for (uint64_t seq = 1; seq <= 1000; ++seq) {
      if (seq == 900) CHECK_MESSAGE(cpus_of("partition-0") == anywhere, "requests that need no ring move nobody");
      if (seq >= 900) ++rings;
      publish_request(f.endpoint.requests.data(), kHome, seq, get);
      const std::byte* const response = f.endpoint.responses.data() + kLayout.response_offset(kHome, seq);
      REQUIRE(eventually([&] { return base::observe_word(response) == seq; }));
    }
    REQUIRE(eventually([&] { return rings == 0; }));
    CHECK(cpus_of("partition-0") == (follows ? std::to_string(cpu) : anywhere));
    f.stop();
  }
}

TEST_CASE("what was sent before the end is answered") {
  constexpr uint64_t kMessages = 6;  // a round takes one of a lane
  Fixture f(kHome);
  for (uint64_t seq = 1; seq <= kMessages; ++seq) {
    publish_request(f.endpoint.requests.data(), kHome, seq, rpc::get_of("key"));
  }
  f.attach();
  f.mailboxes.send(kControl, kHome, {.kind = Message::Kind::kStop, .lane = {}});
  f.partition->start();
  f.partition->join();
  for (uint64_t seq = 1; seq <= kMessages; ++seq) {
    CHECK(base::observe_word(f.endpoint.responses.data() + kLayout.response_offset(kHome, seq)) == seq);
  }
}
