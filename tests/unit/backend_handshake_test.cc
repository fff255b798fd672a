// Who gets a session from a live egret-backend: those who prove that they hold its secret, and not more of them than
// the quota of their peer.
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
  SecretFile() {
    const int fd = ::mkstemp(path);
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, kSecret.bytes().data(), kSecret.bytes().size()) > 0);
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

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("proxy and backend that hold the same secret have a session") {
  Guarded guarded;
  GoodClient client(guarded.backend.address, kSecret);
  REQUIRE_MESSAGE(client.opens(), client.why_not());
  CHECK(client.trouble("good") == "");
  CHECK(client.session().grant().features == (wire::kAuthenticate | wire::kOrderedMemory | wire::kWakeTimers));
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
      ::_exit(client.opens() && client.trouble("newcomer").empty() ? 0 : 1);
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
