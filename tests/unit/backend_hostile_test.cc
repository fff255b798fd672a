// A hostile shm peer against a live egret-backend. After each attack: an honest session that was open all the time
// works, a new one opens and works, descriptors and memory are back where they were, and SIGTERM ends the process
// cleanly.
#include <atomic>
#include <thread>

#include <sys/resource.h>
#include <sys/socket.h>

#include "backend_live.h"

using namespace egret::backend;
using egret::base::UniqueFd;
using egret::op::Op;
using egret::op::OpCode;
using egret::op::ResultCode;
namespace base = egret::base;
namespace op = egret::op;
namespace transport = egret::transport;
namespace wire = egret::wire;

namespace {

using egret::kSanitized;
constexpr size_t kMemorySlack = kSanitized ? size_t{48} << 20 : size_t{4} << 20;

struct Siege {
  explicit Siege(const std::vector<std::string>& settings = {}) : backend(settings), good(backend.address) {
    REQUIRE(good.opens());
    // What is allocated once and kept (a first hostile session included) is part of where things were.
    for (int i = 0; i < 3; ++i) REQUIRE(RawSession(backend.address).is_open);
    check_good("before");
    ::usleep(50'000);
    fds = backend.open_fds();
    memory = backend.resident();
  }
  ~Siege() {
    CHECK_MESSAGE(backend.is_alive(), backend.log());
    if (backend.pid > 0) CHECK_MESSAGE(backend.stop() == 0, backend.log());
    CHECK(backend.log().find("Sanitizer") == std::string::npos);
  }

  void check_good(const std::string& tag) {
    const std::string trouble = good.trouble(tag);
    CHECK_MESSAGE(trouble.empty(), trouble << "\n" << backend.log());
  }
  // The siege is over.
  void check_all_is_well() {
    REQUIRE_MESSAGE(backend.is_alive(), backend.log());
    check_good("after");
    CHECK(good.sessions_lost() == 0);
    {
      GoodClient newcomer(backend.address);
      REQUIRE(newcomer.opens());
      CHECK(newcomer.trouble("newcomer").empty());
    }
    CHECK_MESSAGE(eventually([&] { return backend.open_fds() <= fds; }), backend.open_fds()
                                                                             << " descriptors, before " << fds);
    CHECK_MESSAGE(eventually([&] { return backend.resident() <= memory + kMemorySlack; }, 2),
                  backend.resident() << " bytes resident, before " << memory);
    CHECK(backend.log().size() < 256 * 1024);
  }

  BackendProcess backend;
  GoodClient good;
  size_t fds = 0;
  size_t memory = 0;
};

Op make(OpCode code, std::string_view key = {}, const std::function<void(Op&)>& fill = {}) {
  Op made;
  made.code = code;
  made.key = key;
  if (fill) fill(made);
  return made;
}

UniqueFd knock(const std::string& address) {
  sockaddr_un name{};
  socklen_t length = 0;
  REQUIRE(transport::shm::to_socket_address(address.substr(4), name, length).is_ok());
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) socket.reset();
  return socket;
}

std::vector<std::byte> random_bytes(std::mt19937_64& random, size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace

TEST_CASE("a message of random bytes under a right checksum ends its session, and only that") {
  Siege siege;
  std::mt19937_64 random(1);
  int closed = 0;
  for (int i = 0; i < 100; ++i) {
    const RawSession raw(siege.backend.address);
    REQUIRE(raw.is_open);
    const auto lane = static_cast<uint32_t>(random() % raw.grant.layout.lanes);
    raw.write(lane, 1, random_bytes(random, random() % raw.body_room()), static_cast<uint16_t>(random() % 300));
    // Some look like ops nobody knows, and are answered.
    if (!eventually([&] { return raw.is_closed(0) || raw.is_answered(lane, 1, 0); }))
      FAIL("neither closed nor answered");
    closed += raw.is_closed(0);
    if (i % 20 == 0) siege.check_good("random");
  }
  CHECK(closed > 90);
  siege.check_all_is_well();
}

TEST_CASE("messages that contradict themselves are refused, each kind of them, and the log says why") {
  Siege siege;
  struct Malformed {
    const char* name;
    std::vector<std::byte> body;
    uint16_t count;
    wire::DecodeError why;
  };
  std::vector<std::byte> cut = encode_ops({make(OpCode::kGet, "key")});
  cut.pop_back();
  std::vector<std::byte> trailing = encode_ops({make(OpCode::kGet, "key")});
  trailing.push_back({});
  const std::vector<Op> many(250, make(OpCode::kStats));  // their results could not fit, even at their smallest
  const Malformed all[] = {
      {"no ops", {}, 0, wire::DecodeError::kBadCount},
      {"no ops, but bytes", std::vector<std::byte>(8), 0, wire::DecodeError::kBadCount},
      {"more ops than bytes", {}, 1, wire::DecodeError::kTruncated},
      {"more ops than a message may have", std::vector<std::byte>(257 * 8, std::byte{13}), 257,
       wire::DecodeError::kBadCount},
      {"cut", cut, 1, wire::DecodeError::kTruncated},
      {"trailing", trailing, 1, wire::DecodeError::kTrailing},
      {"results without room", encode_ops(many), 250, wire::DecodeError::kNoRoom},
      {"a key of 255 bytes",
       [] {
         auto bytes = encode_ops({make(OpCode::kGet, std::string(250, 'k'))});
         bytes[1] = std::byte{255};
         bytes.resize(bytes.size() + 5);
         return bytes;
       }(),
       1, wire::DecodeError::kBadKey},
  };
  for (const Malformed& malformed : all) {
    CAPTURE(malformed.name);
    const RawSession raw(siege.backend.address);
    REQUIRE(raw.is_open);
    raw.write(1, 1, malformed.body, malformed.count);
    CHECK(raw.is_closed());
    CHECK_FALSE(raw.is_answered(1, 1, 0));
    const std::string told = "the peer wrote a malformed message on lane 1: " + std::string(to_string(malformed.why));
    CHECK_MESSAGE(eventually([&] { return siege.backend.log().find(told) != std::string::npos; }), siege.backend.log());
  }
  siege.check_all_is_well();
}

TEST_CASE("lengths that point out of the slot, and a checksum that never matches, end the session within seconds") {
  Siege siege;
  for (const uint32_t length : {0u, 4073u, 0x7fff'ffffu, 0xffff'ffffu}) {
    const RawSession raw(siege.backend.address);
    REQUIRE(raw.is_open);
    wire::FieldWriter(raw.slot(0, 1) + 16).put(length);
    raw.endpoint->stage_write(0, raw.grant.layout.request_offset(0, 1), 24, 1);
    raw.endpoint->ring(0);
    CHECK(raw.is_closed(4000));
  }
  siege.check_all_is_well();
}

TEST_CASE("an op for another partition is refused and touches nothing") {
  Siege siege;
  RawSession raw(siege.backend.address);
  REQUIRE(raw.is_open);
  const std::string key = "good:3";
  const uint32_t wrong = (raw.lane_of(key) + 1) % raw.grant.layout.lanes;
  const Op ops[] = {
      make(OpCode::kGet, key),    make(OpCode::kSet, key, [](Op& o) { o.value = "evil"; }),
      make(OpCode::kDelete, key), make(OpCode::kArith, key),
      make(OpCode::kChunk, key),  make(OpCode::kUpload, key, [](Op& o) { o.length = 4, o.value = "evil"; }),
      make(OpCode::kCommit, key), make(OpCode::kAbort, key)};
  uint64_t seq = 0;
  for (const Op& each : ops) {
    CAPTURE(to_string(each.code));
    CHECK(raw.call(wrong, ++seq, each) == ResultCode::kWrongPartition);
  }
  CHECK(siege.good.call(make(OpCode::kGet, key)).code == ResultCode::kHit);
  CHECK(siege.good.value() == "before:3");
  raw.end();
  siege.check_all_is_well();
}

TEST_CASE("figures at the end of their range are answered, whatever they ask for") {
  Siege siege;
  RawSession raw(siege.backend.address);
  REQUIRE(raw.is_open);
  const uint32_t lane = raw.lane_of("k");
  uint64_t seq = 0;
  const auto call = [&](const Op& each) {
    const auto code = raw.call(lane, ++seq, each);
    CHECK_MESSAGE(code.has_value(), to_string(each.code));
    return code.value_or(ResultCode::kTimedOut);
  };
  CHECK(call(make(OpCode::kSet, "k", [](Op& o) { o.value = "5"; })) == ResultCode::kStored);
  constexpr uint32_t kAll = 0xffff'ffff;
  for (const uint64_t version : {uint64_t{0}, uint64_t{1}, UINT64_MAX}) {
    for (const uint32_t offset : {0u, 1u, 0x8000'0000u, kAll}) {
      for (const uint32_t length : {0u, 1u, kAll}) {
        for (const uint16_t options : {uint16_t{0}, uint16_t{op::kPin}}) {
          call(make(OpCode::kChunk, "k",
                    [&](Op& o) { o.options = options, o.version = version, o.offset = offset, o.length = length; }));
        }
      }
    }
    call(make(OpCode::kStats, "", [&](Op& o) { o.version = version; }));
  }
  for (const int64_t exptime : {INT64_MIN, int64_t{-1}, INT64_MAX}) {
    call(make(OpCode::kSet, "k", [&](Op& o) { o.exptime = exptime, o.value = "5"; }));
    call(make(OpCode::kGet, "k", [&](Op& o) { o.options = op::kTouch, o.exptime = exptime; }));
  }
  for (const uint64_t delta : {UINT64_MAX, uint64_t{0}}) {
    for (const uint16_t options : {uint16_t{op::kCreate}, uint16_t{op::kCreate | op::kDecrement}}) {
      call(make(OpCode::kArith, "k", [&](Op& o) { o.options = options, o.delta = delta, o.initial = UINT64_MAX; }));
    }
  }
  CHECK(call(make(OpCode::kStats, "", [](Op& o) { o.group = 255; })) == ResultCode::kUnsupported);
  CHECK(call(make(OpCode::kAdmin, "", [](Op& o) { o.group = 255; })) == ResultCode::kUnsupported);
  CHECK(call(make(OpCode::kIterate, "", [](Op& o) { o.group = 254; })) == ResultCode::kUnsupported);
  for (const uint8_t source : {uint8_t{0}, uint8_t{1}}) {
    for (const uint64_t cursor : {uint64_t{0}, uint64_t{1}, UINT64_MAX - 1, UINT64_MAX}) {
      for (const uint8_t size_class : {uint8_t{0}, uint8_t{95}, uint8_t{96}, uint8_t{255}}) {
        CHECK(call(make(OpCode::kIterate, "", [&](Op& o) {
                o.group = source, o.version = cursor, o.size_class = size_class;
              })) == ResultCode::kOk);
      }
    }
  }
  for (const std::string_view amount : {"", "1234567", "\xff\xff\xff\xff\xff\xff\xff\xff", "too long a number"}) {
    CHECK(call(make(OpCode::kAdmin, "", [&](Op& o) { o.group = 3, o.value = amount; })) != ResultCode::kOk);
  }
  CHECK(call(make(OpCode::kCommit, "k", [](Op& o) { o.upload_id = kAll; })) != ResultCode::kStored);
  CHECK(call(make(OpCode::kAbort, "k", [](Op& o) { o.upload_id = kAll; })) == ResultCode::kOk);
  for (const int code : {0, 14, 15, 255}) CHECK(call(make(static_cast<OpCode>(code), "k")) == ResultCode::kUnsupported);
  raw.end();
  siege.check_all_is_well();
}

TEST_CASE("a message seen again is not executed again; one ahead of its turn waits for it") {
  Siege siege;
  RawSession raw(siege.backend.address);
  REQUIRE(raw.is_open);
  const uint32_t lane = raw.lane_of("count");
  const Op incr = make(OpCode::kArith, "count", [](Op& o) { o.options = op::kCreate, o.delta = 1, o.initial = 1; });
  CHECK(raw.call(lane, 1, incr) == ResultCode::kNumber);
  for (int i = 0; i < 100; ++i) raw.write(lane, 1, {incr});
  raw.write(lane, 3, {incr});
  raw.write(lane, 1 + uint64_t{raw.grant.layout.window}, {incr});
  CHECK_FALSE(raw.is_answered(lane, 3, 0.05));
  CHECK(raw.call(lane, 2, incr) == ResultCode::kNumber);
  CHECK(raw.is_answered(lane, 3));
  const auto number = siege.good.call(make(OpCode::kArith, "count", [](Op& o) { o.delta = 0; }));
  CHECK(number.number == 3);
  raw.end();
  siege.check_all_is_well();
}

TEST_CASE("a slot rewritten while it is looked at is executed as one of its versions, or not at all") {
  Siege siege;
  uint64_t taken = 0;
  for (const double end = now_seconds() + 1; now_seconds() < end;) {
    const RawSession raw(siege.backend.address);
    REQUIRE(raw.is_open);
    const uint32_t lane = raw.lane_of("flip");
    // Two messages of the same seq, each with its own checksum: a value of a's only, and a longer one of b's only.
    static const std::string kAs(1000, 'a');
    static const std::string kBs(3000, 'b');
    const Op sets[2] = {make(OpCode::kSet, "flip", [](Op& o) { o.value = kAs; }),
                        make(OpCode::kSet, "flip", [](Op& o) { o.value = kBs; })};
    std::atomic<bool> stop{false};
    std::thread flipper([&] {
      for (uint64_t seq = 1, i = 0; !stop; ++i) {
        raw.write(lane, seq, {sets[i % 2]});
        if (base::observe_word(raw.response(lane, seq)) == seq) ++seq, ++taken;
      }
    });
    for (int i = 0; i < 50; ++i) {
      const auto got = siege.good.call(make(OpCode::kGet, "flip"));
      if (got.code != ResultCode::kHit) continue;
      const std::string& value = siege.good.value();
      CHECK((value == kAs || value == kBs));
    }
    stop = true;
    flipper.join();
  }
  CHECK(taken > 10);
  siege.check_all_is_well();
}

TEST_CASE("a client that writes garbage all over its memory, rings and wants included, delays nobody for long") {
  Siege siege;
  std::atomic<bool> stop{false};
  std::thread vandal([&] {
    std::mt19937_64 random(7);
    while (!stop) {
      const RawSession raw(siege.backend.address);
      if (!raw.is_open) continue;
      const transport::RegionShape shape{raw.grant.layout.lanes, raw.grant.layout.request_bytes(), 0, 0};
      const size_t words = transport::shm::request_file_bytes(shape) / 8;
      for (int i = 0; i < 200'000 && !stop; ++i) {
        // Mostly small numbers: they pass for seqs and lengths.
        const uint64_t value = random() % 4 == 0 ? random() : random() % 16;
        base::publish_word(raw.endpoint->request_image() + random() % words * 8, value);
        if (i % 1000 == 0) raw.endpoint->ring(static_cast<uint32_t>(random() % shape.lanes));
        if (i % 10'000 == 0 && raw.is_closed(0)) break;
      }
    }
  });
  double slowest = 0;
  for (const double end = now_seconds() + 2; now_seconds() < end;) {
    const double start = now_seconds();
    siege.check_good("vandal");
    slowest = std::max(slowest, (now_seconds() - start) / 32);
  }
  stop = true;
  vandal.join();
  CHECK(slowest < 0.25);
  siege.check_all_is_well();
}

TEST_CASE("a client that rings without end neither starves others nor fills a queue") {
  Siege siege;
  std::atomic<bool> stop{false};
  std::vector<std::thread> ringers;
  for (int thread = 0; thread < 2; ++thread) {
    ringers.emplace_back([&] {
      const RawSession raw(siege.backend.address);
      const RawSession other(siege.backend.address);  // of another home
      if (!raw.is_open || !other.is_open) return;
      const transport::RegionShape shape{raw.grant.layout.lanes, raw.grant.layout.request_bytes(), 0, 0};
      const size_t rings = transport::shm::ring_offset(shape);
      for (uint64_t count = 1; !stop; ++count) {
        for (const RawSession* each : {&raw, &other}) {
          for (uint32_t word = 0; word <= shape.lanes; ++word) {
            base::publish_word(each->endpoint->request_image() + rings + size_t{word} * 8, count);
          }
          if (count % 64 == 0) each->endpoint->ring(0);
        }
      }
    });
  }
  double slowest = 0;
  size_t largest = 0;
  for (const double end = now_seconds() + 2; now_seconds() < end;) {
    const double start = now_seconds();
    siege.check_good("ringers");
    slowest = std::max(slowest, (now_seconds() - start) / 32);
    largest = std::max(largest, siege.backend.resident());
  }
  stop = true;
  for (std::thread& ringer : ringers) ringer.join();
  CHECK(slowest < 0.25);
  CHECK(largest < siege.memory + 2 * kMemorySlack);
  siege.check_all_is_well();
}

TEST_CASE("a client that wants everything delivered, and fills what it sleeps on, blocks no thread") {
  Siege siege;
  RawSession raw(siege.backend.address);
  REQUIRE(raw.is_open);
  const int data = raw.endpoint->data_fd();
  ::fcntl(data, F_SETFL, 0);
  const uint64_t almost_full = UINT64_MAX - 1;
  ::fcntl(data, F_SETFL, O_NONBLOCK);
  [[maybe_unused]] const ssize_t written = ::write(data, &almost_full, sizeof almost_full);
  ::fcntl(data, F_SETFL, 0);
  for (uint32_t lane = 0; lane < raw.grant.layout.lanes; ++lane) {
    raw.endpoint->stage_write(lane, raw.grant.layout.want_offset(lane), 8, UINT64_MAX);
  }
  uint64_t seq = 0;
  for (int i = 0; i < 200; ++i) {
    ++seq;
    for (uint32_t lane = 0; lane < raw.grant.layout.lanes; ++lane) raw.write(lane, seq, {make(OpCode::kPing)});
    for (uint32_t lane = 0; lane < raw.grant.layout.lanes; ++lane) REQUIRE(raw.is_answered(lane, seq));
  }
  raw.end();
  siege.check_all_is_well();
}

TEST_CASE("absurd handshakes are refused with a reason, or hung up on") {
  Siege siege;
  std::mt19937_64 random(3);
  const auto hello = encode(wire::Hello{.features = ~uint64_t{0}, .worker_id = 1, .window = 0xffff'ffff});
  std::vector<std::vector<std::byte>> frames = {
      {},
      std::vector<std::byte>(1),
      std::vector<std::byte>(15),
      std::vector<std::byte>(512, std::byte{0xff}),
      std::vector<std::byte>(100'000),
      std::vector<std::byte>(hello.begin(), hello.end() - 1),
      encode(wire::Ready{}),
      encode(wire::Grant{.layout = {3, 8, 4096, 4096}}),
      encode(wire::Refusal{"I refuse you"}),
  };
  for (size_t i = 0; i < 12; ++i) {
    auto changed = hello;
    changed[i] ^= std::byte{0x40};
    frames.push_back(changed);
  }
  for (int i = 0; i < 100; ++i) {
    auto garbage = random_bytes(random, 16 + random() % 496);
    if (i % 2 == 0) std::copy_n(hello.begin(), 12, garbage.begin());
    const auto length = static_cast<uint32_t>(garbage.size());
    std::memcpy(garbage.data() + 12, &length, 4);
    // Those that are good hellos by chance open a session; the others are refused.
    frames.push_back(garbage);
  }
  for (const auto& frame : frames) {
    const UniqueFd socket = knock(siege.backend.address);
    REQUIRE(socket.is_open());
    if (::send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL) < 0) continue;
    CHECK(is_readable(socket.get(), 3000));
  }
  siege.check_all_is_well();
}

TEST_CASE("frames that come at the wrong time end the session") {
  Siege siege;
  for (int kind = 0; kind < 3; ++kind) {
    const RawSession raw(siege.backend.address);
    REQUIRE(raw.is_open);
    const std::vector<std::byte> frame = kind == 0   ? encode(wire::Hello{.worker_id = 99, .window = 8})
                                         : kind == 1 ? encode(wire::Grant{.layout = {3, 8, 4096, 4096}})
                                                     : std::vector<std::byte>(40);
    REQUIRE(raw.endpoint->send_frame(frame, false).is_ok());
    bool closed = false;
    for (int i = 0; i < 3 && !closed; ++i) closed = raw.is_closed(2000);  // a refusal may come first
    CHECK(closed);
  }
  siege.check_all_is_well();
}

TEST_CASE("a wish for any window is granted within what the operator allows") {
  Siege siege;
  for (const uint32_t window : {0u, 1u, 2u, 64u, 65u, 0x8000'0000u, 0xffff'ffffu}) {
    const RawSession raw(siege.backend.address, random_id(), window);
    REQUIRE(raw.is_open);
    CHECK(raw.grant.layout.window >= wire::kMinWindow);
    CHECK(raw.grant.layout.window <= wire::kMaxWindow);
    CHECK(raw.grant.layout.bytes() <= 8 << 20);  // session_memory's default
  }
  siege.check_all_is_well();
}

TEST_CASE("a thousand silent connections do not keep others out") {
  Siege siege;
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 1000; ++i) {
    UniqueFd socket = knock(siege.backend.address);
    if (socket.is_open()) silent.push_back(std::move(socket));
    if (i % 250 == 249) {
      siege.check_good("silent");
      GoodClient newcomer(siege.backend.address);
      CHECK(newcomer.opens());
      CHECK(newcomer.trouble("newcomer").empty());
    }
  }
  CHECK(silent.size() > 900);
  silent.clear();
  siege.check_all_is_well();
}

TEST_CASE("half-open handshakes: hello and away, hello and never a look at the answer") {
  Siege siege;
  std::vector<UniqueFd> staring;
  for (uint64_t i = 0; i < 200; ++i) {
    UniqueFd socket = knock(siege.backend.address);
    REQUIRE(socket.is_open());
    const auto hello = encode(wire::Hello{.worker_id = 1000 + i, .window = 8});
    REQUIRE(::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) > 0);
    if (i % 4 == 0) staring.push_back(std::move(socket));
  }
  siege.check_good("half-open");
  staring.clear();
  siege.check_all_is_well();
}

TEST_CASE("one worker that opens session after session has one") {
  Siege siege;
  std::vector<std::unique_ptr<RawSession>> sessions;
  for (int i = 0; i < 100; ++i) {
    sessions.push_back(std::make_unique<RawSession>(siege.backend.address, 4711));
    REQUIRE(sessions.back()->is_open);
    if (i == 0) continue;
    CHECK(sessions[sessions.size() - 2]->is_closed());
    sessions[sessions.size() - 2]->end();  // who keeps their memory gets no more
  }
  CHECK(eventually([&] { return siege.backend.open_fds() <= siege.fds + 8; }));
  CHECK(sessions.back()->call(0, 1, make(OpCode::kPing)) == ResultCode::kOk);
  sessions.clear();
  siege.check_all_is_well();
}

TEST_CASE("sessions beyond the limit are refused with the figure, and there is room again when some go") {
  Siege siege({"max_sessions=8"});
  std::vector<std::unique_ptr<RawSession>> sessions;
  for (int i = 0; i < 7; ++i) {
    sessions.push_back(std::make_unique<RawSession>(siege.backend.address));
    CHECK(sessions.back()->is_open);
  }
  const RawSession refused(siege.backend.address);
  CHECK_FALSE(refused.is_open);
  CHECK(refused.refusal.find("max_sessions = 8") != std::string::npos);
  sessions.clear();
  siege.check_all_is_well();
}

TEST_CASE("clients killed in the middle of what they do leave nothing behind") {
  Siege siege;
  const std::string part(3000, 'p');
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const RawSession raw(siege.backend.address, 5000 + static_cast<uint64_t>(i));
      if (!raw.is_open) ::_exit(1);
      const uint32_t lane = raw.lane_of("upload");
      // Uploads that take all the room there is for them, never committed; the last message torn.
      for (uint64_t seq = 1; seq <= 60; ++seq) {
        raw.write(lane, seq, {make(OpCode::kUpload, "upload", [&](Op& o) {
                    o.upload_id = static_cast<uint32_t>(seq), o.length = 500'000, o.value = part;
                  })});
        if (!raw.is_answered(lane, seq)) ::_exit(2);
      }
      std::memset(raw.slot(lane, 61), 0x55, 2000);
      raw.endpoint->stage_write(lane, raw.grant.layout.request_offset(lane, 61), 2000, 61);
      raw.endpoint->ring(lane);
      ::raise(SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
  }
  REQUIRE(eventually([&] { return siege.backend.open_fds() <= siege.fds; }));
  // The room for uploads is free again: a whole one goes through.
  RawSession raw(siege.backend.address);
  REQUIRE(raw.is_open);
  const uint32_t lane = raw.lane_of("upload");
  uint64_t seq = 0;
  for (uint32_t offset = 0; offset < 500'000;) {
    const std::string_view piece = std::string_view(part).substr(0, 500'000 - offset);
    CHECK(raw.call(lane, ++seq, make(OpCode::kUpload, "upload", [&](Op& o) {
                     o.upload_id = 1, o.offset = offset, o.length = 500'000, o.value = piece;
                   })) == ResultCode::kOk);
    offset += static_cast<uint32_t>(piece.size());
  }
  CHECK(raw.call(lane, ++seq, make(OpCode::kCommit, "upload", [](Op& o) { o.upload_id = 1; })) == ResultCode::kStored);
  raw.end();
  siege.check_all_is_well();
}

TEST_CASE("descriptors sent along are refused by the kernel, or end the connection, and are closed") {
  Siege siege;
  for (int round = 0; round < 20; ++round) {
    const UniqueFd socket = knock(siege.backend.address);
    const int fds[transport::shm::kRegionFds] = {0, 0, 0, 0};
    const auto hello = encode(wire::Hello{.worker_id = 6000, .window = 8});
    if (transport::shm::send(socket.get(), hello, fds).is_ok()) {
      CHECK(is_readable(socket.get(), 3000));
    } else {
      CHECK(errno == EPERM);
    }
  }
  siege.check_all_is_well();
}

// Not under sanitizers: they need descriptors of their own to look at memory.
TEST_CASE("with no descriptors left the backend waits, at no cost, and then goes on" * doctest::skip(kSanitized)) {
  Siege siege({"max_sessions=1000"});
  // Leaves it room for a handful.
  const rlimit low{siege.backend.open_fds() + 10, 4096};
  REQUIRE(::prlimit(siege.backend.pid, RLIMIT_NOFILE, &low, nullptr) == 0);
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 60; ++i) crowd.push_back(knock(siege.backend.address));
  ::usleep(100'000);
  const double before = siege.backend.cpu_seconds();
  ::usleep(700'000);
  CHECK(siege.backend.cpu_seconds() - before < 0.2);
  siege.check_good("crowded");
  crowd.clear();
  siege.check_all_is_well();
}

TEST_CASE("after all of it an idle backend is idle") {
  Siege siege;
  {
    std::vector<std::unique_ptr<RawSession>> sessions;
    for (int i = 0; i < 20; ++i) sessions.push_back(std::make_unique<RawSession>(siege.backend.address));
    for (const auto& each : sessions) CHECK(each->call(0, 1, make(OpCode::kPing)) == ResultCode::kOk);
    ::usleep(200'000);
    const double before = siege.backend.cpu_seconds();
    ::usleep(1'000'000);
    CHECK(siege.backend.cpu_seconds() - before <= 0.02);
  }
  siege.check_all_is_well();
}
