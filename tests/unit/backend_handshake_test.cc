// Who gets a session from a live egret-backend: those who prove that they hold its secret, and not more of them than
// the quota of their peer.
#include <grp.h>
#include <sys/stat.h>

#include "backend_live.h"
#include "wire/proof.h"

using namespace egret::backend;
namespace base = egret::base;
namespace transport = egret::transport;
namespace wire = egret::wire;

namespace {

using Frame = std::vector<std::byte>;

const base::Secret kSecret("the secret of this test");

// The file that a backend reads its secret from.
struct SecretFile {
  explicit SecretFile(const base::Secret& secret = kSecret) {
    const int fd = ::mkstemp(path);
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, secret.bytes().data(), secret.bytes().size()) > 0);
    ::close(fd);
  }
  ~SecretFile() { ::unlink(path); }
  std::string option() const { return std::string("secret_file=") + path; }
  char path[32] = "/tmp/egret-secret-XXXXXX";
};

struct Guarded {
  explicit Guarded(std::vector<std::string> settings = {}) : backend(with_secret(std::move(settings))) {}
  std::vector<std::string> with_secret(std::vector<std::string> settings) const {
    settings.push_back(file.option());
    return settings;
  }
  // Memories of sessions that the backend has mapped.
  size_t regions() const {
    std::ifstream maps("/proc/" + std::to_string(backend.pid) + "/maps");
    size_t found = 0;
    for (std::string line; std::getline(maps, line);) found += line.find("memfd:egret-requests") != std::string::npos;
    return found;
  }
  SecretFile file;
  BackendProcess backend;
};

// A handshake of which every frame is in the test's hands.
struct Knock {
  explicit Knock(const std::string& address) {
    auto connected = transport::connect(address);
    REQUIRE(connected.is_ok());
    endpoint = std::move(connected.value());
  }
  void say(const Frame& frame) {
    said.push_back(frame);
    (void)endpoint->send_frame(frame, false);  // the backend may have hung up already
  }
  Frame hello(uint64_t worker_id = random_id(), uint64_t features = wire::kAuthenticate) {
    const Frame frame =
        encode(wire::Hello{.features = features, .worker_id = worker_id, .window = 8, .nonce = wire::fresh_nonce()});
    transcript.clear();
    transcript.add(frame);
    return frame;
  }
  // The next frame; empty when the backend hangs up, or says nothing.
  Frame hear() {
    Frame frame(wire::kMaxFrame);
    size_t length = 0;
    if (!is_readable(endpoint->control_fd(), 5000) || !endpoint->receive_frame(frame, length)) length = 0;
    frame.resize(length);
    return frame;
  }
  bool hear_challenge() {
    const Frame frame = hear();
    transcript.add(frame);
    wire::Challenge challenge;
    return type_of(frame) == wire::FrameType::kChallenge && decode(frame, challenge);
  }
  Frame proof(const base::Secret& secret = kSecret) const {
    return encode(wire::ClientProof{transcript.client_proof(secret)});
  }
  static wire::FrameType type_of(const Frame& frame) {
    wire::FrameType type{};
    std::string error;
    REQUIRE_MESSAGE(decode_prefix(frame, type, error), error);
    return type;
  }
  // The reason of the refusal that must come next, and after it the end.
  std::string refusal() {
    const Frame frame = hear();
    if (frame.empty()) return "(hung up)";
    wire::Refusal refused;
    if (type_of(frame) != wire::FrameType::kRefusal || !decode(frame, refused)) return "(no refusal)";
    if (!hear().empty()) return "(goes on)";
    return refused.reason;
  }
  bool is_hung_up(int timeout_ms) const {
    Frame frame(wire::kMaxFrame);
    size_t length = 0;
    return is_readable(endpoint->control_fd(), timeout_ms) && !endpoint->receive_frame(frame, length);
  }

  std::unique_ptr<transport::ClientEndpoint> endpoint;
  wire::Transcript transcript;
  std::vector<Frame> said;
};

int count_of(const std::string& text, std::string_view part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("proxy and backend that hold the same secret have a session") {
  Guarded guarded;
  GoodClient client(guarded.backend.address, kSecret);
  REQUIRE_MESSAGE(client.opens(), client.why_not());
  CHECK(client.trouble("good") == "");
  CHECK(client.session().grant().features ==
        (wire::kAuthenticate | wire::kOrderedMemory | wire::kWakeTimers | wire::kRights | wire::kFailover |
         wire::kWarm | wire::kComeBack | wire::kLongSlots | wire::kLaneRings));
}

namespace {

constexpr uint64_t kBoth = wire::kWakeTimers | wire::kLaneRings;

uint64_t features(Knock& knock, uint64_t offered) {
  knock.say(knock.hello(random_id(), offered));
  wire::Grant grant;
  REQUIRE(decode(knock.hear(), grant));
  return grant.features;
}

uint64_t features(const BackendProcess& backend, uint64_t offered) {
  Knock knock(backend.address);
  return features(knock, offered);
}

}  // namespace

TEST_CASE("lanes have a ring each where there are several and the client asks for them") {
  const BackendProcess several;
  CHECK(features(several, kBoth) == kBoth);
  CHECK(features(several, wire::kWakeTimers) == wire::kWakeTimers);
  CHECK_MESSAGE(features(several, wire::kLaneRings) == 0, "they are timers");
  CHECK(features(BackendProcess({"partitions=1"}), kBoth) == wire::kWakeTimers);
}

TEST_CASE("one peer's lanes take no more descriptors than its share, and its sessions go on without") {
  // A thirty-second part of 320 is for rings, and half of that for one peer: two of these sessions have them.
  const BackendProcess poor({}, {}, 320);
  std::vector<std::unique_ptr<Knock>> sessions;
  std::vector<uint64_t> granted;
  for (int i = 0; i < 4; ++i) {
    Knock& knock = *sessions.emplace_back(std::make_unique<Knock>(poor.address));
    granted.push_back(features(knock, kBoth));
  }
  CHECK(granted == std::vector<uint64_t>{kBoth, kBoth, wire::kWakeTimers, wire::kWakeTimers});
}

TEST_CASE("a wrong secret, or none, is refused with words that tell both sides what to do") {
  Guarded guarded;
  GoodClient wrong(guarded.backend.address, base::Secret("the secret of this tesT"));
  CHECK(wrong.is_refused());
  CHECK(has(wrong.why_not(), "refused: the proxy's secret is not this backend's: compare both sides' secret_file"));
  CHECK_MESSAGE(eventually([&] { return has(guarded.backend.log(), wrong.why_not()); }), guarded.backend.log());
  CHECK(guarded.regions() == 0);
  Guarded another;  // the log tells a few refusals of each ten seconds
  GoodClient none(another.backend.address);
  CHECK(none.is_refused());
  CHECK(has(none.why_not(), "refused: this backend serves only proxies that hold its secret: set the proxy's secret"));
  CHECK(eventually([&] { return has(another.backend.log(), none.why_not()); }));
  CHECK(another.regions() == 0);
}

TEST_CASE("a proxy with a secret and a backend without one refuse each other") {
  BackendProcess backend;
  GoodClient client(backend.address, kSecret);
  CHECK(client.is_refused());
  CHECK(has(client.why_not(), "refused: the proxy has a secret_file and this backend has none"));
  CHECK(eventually([&] { return has(backend.log(), client.why_not()); }));
}

TEST_CASE("without proof there is no region, and no session of anybody is touched") {
  Guarded guarded;
  GoodClient client(guarded.backend.address, kSecret);
  REQUIRE(client.opens());
  CHECK(guarded.regions() == 1);
  const uint64_t its_id = client.worker_id();
  const auto attempts = std::to_array<void (*)(Knock&, uint64_t)>({
      [](Knock& knock, uint64_t id) { knock.say(knock.hello(id, 0)); },
      [](Knock& knock, uint64_t id) {
        knock.say(knock.hello(id));
        REQUIRE(knock.hear_challenge());
        knock.say(knock.proof(base::Secret("some other secret")));
      },
      [](Knock& knock, uint64_t id) {
        knock.say(knock.hello(id));
        REQUIRE(knock.hear_challenge());
        knock.say(encode(wire::Ready{}));
      },
      [](Knock& knock, uint64_t id) {
        knock.say(knock.hello(id));
        REQUIRE(knock.hear_challenge());
        knock.say(knock.hello(id));
      },
      [](Knock& knock, uint64_t id) {
        knock.hello(id);
        knock.say(knock.proof());  // to no challenge
      },
      [](Knock& knock, uint64_t id) {
        knock.say(knock.hello(id));
        REQUIRE(knock.hear_challenge());
        Frame cut = knock.proof();
        cut.resize(cut.size() - 1);
        wire::FieldWriter(cut.data() + 12).put(static_cast<uint32_t>(cut.size()));
        knock.say(cut);
      },
  });
  for (const auto& attempt : attempts) {
    Knock knock(guarded.backend.address);
    attempt(knock, its_id);
    CHECK_FALSE(knock.refusal().starts_with("("));
    CHECK(guarded.regions() == 1);
  }
  // And one that waits with its proof: the backend has made nothing for it.
  Knock waiting(guarded.backend.address);
  waiting.say(waiting.hello(its_id));
  REQUIRE(waiting.hear_challenge());
  CHECK(guarded.regions() == 1);
  CHECK(client.trouble("after") == "");
  CHECK(client.sessions_lost() == 0);
}

TEST_CASE("frames of a good handshake are good for no other one") {
  Guarded guarded;
  Knock good(guarded.backend.address);
  good.say(good.hello());
  REQUIRE(good.hear_challenge());
  good.say(good.proof());
  REQUIRE(Knock::type_of(good.hear()) == wire::FrameType::kGrant);

  Knock replay(guarded.backend.address);
  replay.say(good.said[0]);
  REQUIRE(replay.hear_challenge());
  replay.say(good.said[1]);
  CHECK(has(replay.refusal(), "the proxy's secret is not this backend's"));
}

TEST_CASE("response slots of more than 64 KiB are granted only to a client that says it takes them") {
  BackendProcess backend({"response_slot_size=128KiB"});
  for (const auto& [features, size] : {std::pair{wire::kLongSlots, 128u << 10}, std::pair{uint64_t{0}, 64u << 10}}) {
    Knock knock(backend.address);
    knock.say(knock.hello(random_id(), features));
    wire::Grant grant;
    REQUIRE(decode(knock.hear(), grant));
    CHECK(grant.features == features);
    CHECK(grant.layout.response_slot_size == size);
  }
}

TEST_CASE("the backend's proof is the one that the format document says, over this grant") {
  Guarded guarded;
  Knock knock(guarded.backend.address);
  knock.say(knock.hello());
  REQUIRE(knock.hear_challenge());
  knock.say(knock.proof());
  const Frame frame = knock.hear();
  wire::Grant grant;
  REQUIRE(decode(frame, grant));
  CHECK(grant.features == wire::kAuthenticate);
  CHECK(wire::is_equal(grant.proof, knock.transcript.server_proof(kSecret, frame)));
}

TEST_CASE("handshakes that stop half-way are few for each peer, keep nobody out, and are ended after a while") {
  Guarded guarded;
  std::vector<std::unique_ptr<Knock>> half;
  for (int i = 0; i < 100; ++i) {
    half.push_back(std::make_unique<Knock>(guarded.backend.address));
    half.back()->say(half.back()->hello());
    REQUIRE(half.back()->hear_challenge());
  }
  const auto left = [&] {
    return std::ranges::count_if(half, [](const auto& knock) { return !knock->is_hung_up(0); });
  };
  CHECK(left() == 32);
  CHECK_FALSE(half.back()->is_hung_up(0));  // the oldest went
  GoodClient client(guarded.backend.address, kSecret);
  REQUIRE_MESSAGE(client.opens(), client.why_not());
  CHECK(client.trouble("among them") == "");
  CHECK(eventually([&] { return left() == 0; }, 30));
  CHECK(has(guarded.backend.log(), "no answer to the challenge"));
  CHECK(client.trouble("afterwards") == "");
}

TEST_CASE(
    "while many come at once one more is asked to come back, and let in when it does; one of 0.1.0 is not asked") {
  Guarded guarded;
  std::vector<std::unique_ptr<Knock>> others;
  const auto come_at_once = [&] {
    others.clear();
    for (size_t i = 0; i < 30; ++i) {
      others.push_back(std::make_unique<Knock>(guarded.backend.address));
      others.back()->say(others.back()->hello());
      REQUIRE(others.back()->hear_challenge());
    }
  };
  wire::Refusal refusal;
  // They count as newcomers for two seconds: a machine that stands still needs another try.
  for (int attempt = 0; attempt < 20 && refusal.come_back_ms == 0; ++attempt) {
    come_at_once();
    Knock asked(guarded.backend.address);
    asked.say(asked.hello(random_id(), wire::kAuthenticate | wire::kComeBack));
    (void)decode(asked.hear(), refusal);
    Knock of_older(guarded.backend.address);
    of_older.say(of_older.hello());
    CHECK(of_older.hear_challenge());
  }
  CHECK(refusal.come_back_ms > 0);
  CHECK(refusal.reason == "many sessions are being made");
  GoodClient client(guarded.backend.address, kSecret);
  REQUIRE_MESSAGE(client.opens(), client.why_not());
  CHECK(client.session().counters().signs.failures.get() == 0);
}

TEST_CASE("of two connections of one worker the newer one has the session, whichever hello is read first") {
  Guarded guarded;
  const uint64_t worker = random_id();
  const auto prove = [](Knock& knock, const Frame& hello) {
    knock.say(hello);
    REQUIRE(knock.hear_challenge());
    knock.say(knock.proof());
  };
  Knock older(guarded.backend.address), newer(guarded.backend.address);
  prove(newer, newer.hello(worker));
  REQUIRE(Knock::type_of(newer.hear()) == wire::FrameType::kGrant);
  prove(older, older.hello(worker));
  CHECK(older.is_hung_up(5000));
  CHECK(has(guarded.backend.log(), "its worker has connected again meanwhile"));
  CHECK_FALSE(newer.is_hung_up(0));

  Knock newest(guarded.backend.address);
  prove(newest, newest.hello(worker));
  CHECK(Knock::type_of(newest.hear()) == wire::FrameType::kGrant);
  CHECK(newer.is_hung_up(5000));
}

TEST_CASE("a peer has no more sessions than sessions_per_peer; one that replaces another of its worker is none more") {
  BackendProcess backend({"sessions_per_peer=3"});
  std::vector<std::unique_ptr<RawSession>> sessions;
  for (uint64_t id = 1; id <= 3; ++id) sessions.push_back(std::make_unique<RawSession>(backend.address, id));
  for (const auto& session : sessions) CHECK(session->is_open);
  const RawSession fourth(backend.address, 4);
  CHECK_FALSE(fourth.is_open);
  const std::string peer = "uid " + std::to_string(::geteuid());
  CHECK_MESSAGE(has(fourth.refusal, "sessions_per_peer = 3, and " + peer + " has 3 open already"), fourth.refusal);
  CHECK(eventually([&] { return has(backend.log(), fourth.refusal); }));

  const RawSession again(backend.address, 2);
  CHECK_MESSAGE(again.is_open, again.refusal);
  CHECK(sessions[1]->is_closed());
  CHECK_FALSE(RawSession(backend.address, 5).is_open);
  sessions[2]->end();
  CHECK(eventually([&] { return RawSession(backend.address, 6).is_open; }));
}

TEST_CASE("the slots of a peer's sessions take no more than session_memory_per_peer") {
  BackendProcess backend({"session_memory_per_peer=4MiB"});
  std::vector<std::unique_ptr<RawSession>> sessions;
  size_t granted = 0;
  for (uint64_t id = 1; id <= 2; ++id) {
    sessions.push_back(std::make_unique<RawSession>(backend.address, id));
    REQUIRE_MESSAGE(sessions.back()->is_open, sessions.back()->refusal);
    granted += sessions.back()->grant.layout.bytes();
  }
  CHECK(granted <= size_t{4} << 20);
  const RawSession third(backend.address, 3);
  CHECK_FALSE(third.is_open);
  CHECK_MESSAGE(has(third.refusal, "session_memory_per_peer = 4194304, and sessions of uid"), third.refusal);
  const RawSession again(backend.address, 2);
  CHECK_MESSAGE(again.is_open, again.refusal);
  sessions[0]->end();
  CHECK(eventually([&] { return RawSession(backend.address, 6).is_open; }));
}

TEST_CASE("sessions_per_peer=0 leaves max_sessions as the only limit") {
  BackendProcess backend({"sessions_per_peer=0", "max_sessions=100"});
  std::vector<std::unique_ptr<RawSession>> sessions;
  for (uint64_t id = 1; id <= 100; ++id) {
    sessions.push_back(std::make_unique<RawSession>(backend.address, id));
    REQUIRE(sessions.back()->is_open);
  }
  const RawSession refused(backend.address, 101);
  CHECK_MESSAGE(has(refused.refusal, "max_sessions = 100, and 100 sessions are open already"), refused.refusal);
}

TEST_CASE("a client that knows of failover and warm changes is told that this backend does; one of 0.1.0 is not") {
  BackendProcess backend;
  constexpr uint64_t kBoth = wire::kFailover | wire::kWarm;
  for (const uint64_t offered : {uint64_t{0}, wire::kFailover, wire::kWarm, kBoth | uint64_t{1} << 63}) {
    auto knock = Knock(backend.address);
    knock.say(encode(wire::Hello{.features = offered, .worker_id = random_id(), .window = 8}));
    wire::Grant grant;
    REQUIRE(decode(knock.hear(), grant));
    CHECK(grant.features == (offered & kBoth));
  }
}

// --- rights

namespace {

using egret::op::OpCode;
using egret::op::ResultCode;

egret::op::Op op_of(OpCode code, std::string_view key = "") {
  egret::op::Op op;
  op.code = code;
  op.key = key;
  if (code == OpCode::kSet) op.value = "value";
  if (code == OpCode::kAdmin) op.group = static_cast<uint8_t>(egret::op::AdminVerb::kResetStats);
  return op;
}

// "read+write+...": what is answered by something else than `refusal`.
std::string allowed(const std::function<ResultCode(const egret::op::Op&)>& call, ResultCode refusal) {
  egret::op::Rights rights = 0;
  const auto try_one = [&](OpCode code, std::string_view key, egret::op::Rights right) {
    if (call(op_of(code, key)) != refusal) rights |= right;
  };
  try_one(OpCode::kGet, "key", egret::op::kMayRead);
  try_one(OpCode::kSet, "key", egret::op::kMayWrite);
  try_one(OpCode::kFlush, "", egret::op::kMayFlush);
  try_one(OpCode::kIterate, "", egret::op::kMayDump);
  try_one(OpCode::kAdmin, "", egret::op::kMayLimits);
  CHECK(call(op_of(OpCode::kStats)) == ResultCode::kOk);
  CHECK(call(op_of(OpCode::kPing)) == ResultCode::kOk);
  return egret::op::to_string(rights);
}

std::string allowed(GoodClient& client) {
  return allowed(
      [&](const egret::op::Op& op) {
        return client.call(op, op.key.empty() ? std::optional<uint32_t>(0) : std::nullopt).code;
      },
      ResultCode::kForbidden);
}

// Of a client that knows no rights, as those of 0.1.0.
std::string allowed(const RawSession& session) {
  uint64_t seq[3] = {};
  return allowed(
      [&](const egret::op::Op& op) {
        const uint32_t lane = op.key.empty() ? 0 : session.lane_of(op.key);
        return session.call(lane, ++seq[lane], op).value_or(ResultCode::kTimedOut);
      },
      ResultCode::kUnsupported);
}

std::string of_own_user(const std::string& rights) {
  return "rights=uid=" + std::to_string(::geteuid()) + ":" + rights;
}

}  // namespace

TEST_CASE("a session may do what the backend's rights say, no more and no less, and the grant says it") {
  for (const std::string rights : {"read", "write", "flush", "dump", "limits", "read+write", "none", "all"}) {
    CAPTURE(rights);
    BackendProcess backend({of_own_user(rights)});
    GoodClient client(backend.address);
    REQUIRE_MESSAGE(client.opens(), client.why_not());
    CHECK(egret::op::to_string(client.session().grant().rights) == rights);
    CHECK(allowed(client) == rights);
    CHECK(client.sessions_lost() == 0);
  }
}

TEST_CASE("a client of 0.1.0, which knows no rights, is held to them by an answer that it knows") {
  for (const std::string rights : {"read+write", "all", "dump"}) {
    CAPTURE(rights);
    BackendProcess backend({of_own_user(rights)});
    const RawSession old(backend.address);
    REQUIRE_MESSAGE(old.is_open, old.refusal);
    CHECK(old.grant.features == 0);
    CHECK(allowed(old) == rights);
  }
}

TEST_CASE("to say that the pool's members change needs the right to flush, whatever else the session may do") {
  for (const std::string rights : {"flush", "read+write+dump+limits"}) {
    BackendProcess backend({of_own_user(rights)});
    GoodClient client(backend.address);
    REQUIRE(client.opens());
    for (const auto verb : {egret::op::AdminVerb::kWarm, egret::op::AdminVerb::kMember}) {
      egret::op::Op op = op_of(OpCode::kAdmin);
      op.group = static_cast<uint8_t>(verb);
      CHECK((client.call(op, 0).code == ResultCode::kForbidden) == (rights != "flush"));
    }
  }
}

TEST_CASE("what changes an item while it reads it needs the right to write") {
  BackendProcess backend({of_own_user("read")});
  GoodClient client(backend.address);
  REQUIRE(client.opens());
  egret::op::Op get = op_of(OpCode::kGet, "key");
  for (const auto option : {egret::op::kTouch, egret::op::kVivify, egret::op::kRecache}) {
    get.options = option;
    CHECK(client.call(get).code == ResultCode::kForbidden);
  }
  get.options = egret::op::kPeek;
  CHECK(client.call(get).code == ResultCode::kMiss);
  CHECK(client.call(op_of(OpCode::kArith, "key")).code == ResultCode::kForbidden);
}

TEST_CASE("without the option this process's user may do everything") {
  BackendProcess backend;
  GoodClient client(backend.address);
  REQUIRE(client.opens());
  CHECK(client.session().grant().rights == egret::op::kAllRights);
}

TEST_CASE("another user may read and write unless told; groups let in, too" * doctest::skip(::geteuid() != 0)) {
  constexpr uint32_t kUser = 65534;
  constexpr uint32_t kGroup = 4242;
  // What a client of that user, with that supplementary group, may do; "-": it gets no session.
  const auto rights_of_other = [&](const std::vector<std::string>& settings) {
    BackendProcess backend(settings);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      const gid_t group = kGroup;
      if (::setgroups(1, &group) != 0 || ::setgid(kUser) != 0 || ::setuid(kUser) != 0) ::_exit(1);
      GoodClient client(backend.address);
      const std::string told =
          client.is_refused(2) ? "-" : egret::op::to_string(client.session().grant().rights) + " " + allowed(client);
      ::_exit(::write(ends[1], told.data(), told.size()) > 0 ? 0 : 1);
    }
    ::close(ends[1]);
    char told[256];
    const ssize_t length = ::read(ends[0], told, sizeof told);
    ::close(ends[0]);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    return std::string(told, static_cast<size_t>(std::max<ssize_t>(length, 0)));
  };
  const std::string uid = "allowed_uids=65534";
  const std::string gid = "allowed_gids=4242";
  CHECK(rights_of_other({}) == "-");
  CHECK(rights_of_other({"allowed_gids=4243"}) == "-");
  CHECK(rights_of_other({uid}) == "read+write read+write");
  CHECK(rights_of_other({gid}) == "read+write read+write");
  CHECK(rights_of_other({"allowed_gids=65534"}) == "read+write read+write");
  CHECK(rights_of_other({uid, "rights=uid=65534:read+write+flush,gid=4242:all"}) ==
        "read+write+flush read+write+flush");
  CHECK(rights_of_other({uid, "rights=gid=4242:read,uid=65534:all"}) == "read read");
  CHECK(rights_of_other({uid, "rights=uid=1:all,other:none"}) == "none none");
}

// --- several secrets

TEST_CASE("a backend with two secrets gives sessions to holders of either, and proves the same one") {
  const base::Secret kNext("the secret of next year");
  const SecretFile next(kNext);
  Guarded guarded({std::string("secret_files=next=") + next.path, "rights=secret=next:read"});
  GoodClient of_main(guarded.backend.address, kSecret);
  GoodClient of_next(guarded.backend.address, kNext);
  GoodClient of_none(guarded.backend.address, base::Secret("the secret of nobody"));
  REQUIRE_MESSAGE(of_main.opens(), of_main.why_not());
  REQUIRE_MESSAGE(of_next.opens(), of_next.why_not());
  CHECK(of_none.is_refused());
  CHECK(of_main.session().grant().rights == egret::op::kAllRights);
  CHECK(of_next.session().grant().rights == egret::op::kMayRead);
  CHECK(allowed(of_next) == "read");
}

TEST_CASE("a secret is changed while sessions are open and others come: nobody is dropped or refused") {
  const base::Secret kNext("the secret of next year");
  const SecretFile next(kNext);
  const SecretFile main;
  char path[] = "/tmp/egret-rotation-XXXXXX";
  ::close(::mkstemp(path));
  const auto write_config = [&](const std::string& lines) { std::ofstream(path) << lines; };
  const std::string old_line = std::string("secret_file: ") + main.path + "\n";
  write_config(old_line);
  BackendProcess backend({}, path);
  const auto reload = [&](const std::string& lines) {
    static int reloads = 0;
    write_config(lines);
    ::kill(backend.pid, SIGHUP);
    ++reloads;
    REQUIRE_MESSAGE(eventually([&] { return count_of(backend.log(), "[reload") >= reloads; }), backend.log());
  };
  GoodClient before(backend.address, kSecret);
  REQUIRE_MESSAGE(before.opens(), before.why_not());
  const auto good_for = [&](const base::Secret& secret) {
    GoodClient newcomer(backend.address, secret);
    CHECK(before.trouble("under load") == "");
    return newcomer.opens(2) && newcomer.trouble("newcomer").empty();
  };
  CHECK(good_for(kSecret));
  CHECK_FALSE(good_for(kNext));
  reload(old_line + "secret_files: [next=" + next.path + "]\n");
  CHECK(good_for(kSecret));
  CHECK(good_for(kNext));
  GoodClient during(backend.address, kNext);
  REQUIRE(during.opens());
  reload(std::string("secret_file: ") + next.path + "\n");
  CHECK(good_for(kNext));
  CHECK_FALSE(good_for(kSecret));
  CHECK(during.trouble("afterwards") == "");
  CHECK(before.trouble("afterwards") == "");
  CHECK(before.sessions_lost() + during.sessions_lost() == 0);
  ::unlink(path);
}

// --- slot sizes

TEST_CASE("two hundred sessions that ask for small slots take at most 32 MiB") {
  constexpr int kSessions = 200;
  BackendProcess backend({"sessions_per_peer=256"});
  egret::rpc::SessionOptions small;
  small.window = 4;
  small.request_slot_size = 4096;
  small.response_slot_size = 8192;
  std::vector<std::unique_ptr<GoodClient>> clients;
  size_t granted = 0;
  for (int i = 0; i < kSessions; ++i) {
    clients.push_back(std::make_unique<GoodClient>(backend.address, base::Secret(), small));
    REQUIRE_MESSAGE(clients.back()->opens(), clients.back()->why_not());
    const wire::RegionLayout& layout = clients.back()->session().grant().layout;
    CHECK(layout.request_slot_size == 4096);
    CHECK(layout.response_slot_size == 8192);
    granted += layout.bytes();
  }
  CHECK(granted <= size_t{32} << 20);
  CHECK(clients.front()->trouble("first") == "");
  CHECK(clients.back()->trouble("last") == "");
}

TEST_CASE("a wish for any slot sizes is granted within what the operator allows") {
  BackendProcess backend({"request_slot_size=4KiB", "response_slot_size=16KiB"});
  for (const uint32_t wish : {1u, 63u, 1024u, 1500u, 16384u, 65536u, 0xffff'ffffu}) {
    auto knock = Knock(backend.address);
    knock.say(encode(wire::Hello{.features = wire::kSlotSizes,
                                 .worker_id = random_id(),
                                 .window = 8,
                                 .request_slot_size = wish,
                                 .response_slot_size = wish}));
    wire::Grant grant;
    REQUIRE(decode(knock.hear(), grant));
    CHECK(grant.features == wire::kSlotSizes);
    CHECK(grant.layout.request_slot_size <= std::clamp(wish, 1024u, 4096u));
    CHECK(grant.layout.response_slot_size <= std::clamp(wish, 1024u, 16384u));
    CHECK(grant.layout.response_slot_size >= 1024);
  }
}

TEST_CASE("a session takes one ready frame") {
  BackendProcess backend;
  RawSession session(backend.address);
  REQUIRE(session.is_open);
  CHECK(session.call(0, 1, egret::op::Op{}) == egret::op::ResultCode::kOk);
  (void)session.endpoint->send_frame(encode(wire::Ready{}), true);
  CHECK(eventually([&] { return session.is_closed(100); }));
}

TEST_CASE("a flood of handshakes is slowed; sessions that are open and other peers' newcomers go on") {
  constexpr uint32_t kOther = 65534;
  constexpr int kFlood = 4000;
  const bool has_other = ::geteuid() == 0;
  Guarded guarded({"allowed_uids=" + std::to_string(kOther)});
  GoodClient bystander(guarded.backend.address, kSecret);
  REQUIRE_MESSAGE(bystander.opens(), bystander.why_not());
  const double begun = now_seconds();
  int challenged = 0;
  for (int i = 0; i < kFlood; ++i) {
    Knock knock(guarded.backend.address);
    knock.say(knock.hello());
    if (i % 1000 == 999) CHECK(bystander.trouble("in the flood") == "");
    if (!knock.hear().empty()) ++challenged;
    if (i % 1000 != 999 || !has_other) continue;
    const pid_t newcomer = ::fork();
    REQUIRE(newcomer >= 0);
    if (newcomer == 0) {
      if (::setuid(kOther) != 0) ::_exit(2);
      GoodClient client(guarded.backend.address, kSecret);
      const std::string why = client.opens() ? client.trouble("newcomer") : client.why_not();
      if (!why.empty()) std::fprintf(stderr, "newcomer: %s\n", why.c_str());
      ::_exit(why.empty() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(newcomer, &status, 0) == newcomer);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  // Each took two tokens at least; there were as many as in the bucket and those of the time since.
  const auto tokens = 1024 + 512 * (now_seconds() - begun + 1);
  CHECK(challenged < kFlood);
  CHECK(challenged * 2 <= tokens);
  CHECK(has(guarded.backend.log(), "connects too often, and was turned away"));
  CHECK(bystander.sessions_lost() == 0);
  GoodClient afterwards(guarded.backend.address, kSecret);
  CHECK_MESSAGE(afterwards.opens(10), afterwards.why_not());
}
