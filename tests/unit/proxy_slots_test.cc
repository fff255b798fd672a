// What a live egret-proxy gives to clients of this host by slots: news of its pool, sessions that it relays to a live
// egret-backend, within rights and limits; and what becomes of them when a client, the backend or the proxy misbehaves.
#include <fstream>

#include <sys/stat.h>

#include "backend_live.h"
#include "pool/gutter/stand_in.h"
#include "wire/pool_frames.h"

using namespace egret;
using namespace egret::backend;
using op::OpCode;
using op::ResultCode;

namespace {

std::string unique(const std::string& what) {
  static int count = 0;
  return what + "-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

class ProxyProcess {
 public:
  explicit ProxyProcess(const std::string& backends, const std::vector<std::string>& settings = {})
      : socket("/tmp/" + unique("egret-slots")), address("shm:" + socket + ".slots") {
    std::vector<std::string> arguments = {EGRET_PROXY,
                                          "--set",
                                          "listen=unix:" + socket,
                                          "--set",
                                          "backends=" + backends,
                                          "--set",
                                          "admin=",
                                          "--set",
                                          "workers=2",
                                          "--set",
                                          "pin=off"};
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::freopen((socket + ".log").c_str(), "w", stderr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    REQUIRE_MESSAGE(eventually([&] { return transport::connect(address).is_ok(); }, 20), log());
  }
  ~ProxyProcess() {
    kill();
    for (const char* ending : {"", ".slots", ".log"}) ::unlink((socket + ending).c_str());
  }
  void kill() {
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    pid = -1;
  }
  bool is_alive() const { return pid > 0 && ::waitpid(pid, nullptr, WNOHANG) == 0; }
  std::string log() const {
    std::ostringstream text;
    text << std::ifstream(socket + ".log").rdbuf();
    return text.str();
  }

  const std::string socket, address;
  pid_t pid = -1;
};

std::string name_of(const BackendProcess& backend) {
  return backend.address.substr(backend.address.find(':') + 1);
}

rpc::SessionOptions relayed_to(const BackendProcess& backend) {
  rpc::SessionOptions options;
  options.relayed_to = pool::tag_of(name_of(backend));
  options.window = 4;
  return options;
}

struct Slots {
  explicit Slots(const std::vector<std::string>& settings = {}) : proxy(backend.address, settings) {}
  std::unique_ptr<GoodClient> client() const {
    return std::make_unique<GoodClient>(proxy.address, base::Secret(), relayed_to(backend));
  }

  BackendProcess backend;
  ProxyProcess proxy;
};

op::Op op_of(OpCode code, std::string_view key, std::string_view value = {}) {
  op::Op op;
  op.code = code;
  op.key = key;
  op.value = value;
  return op;
}

// A connection of which every frame is in the test's hands.
struct Connection {
  explicit Connection(const std::string& address) {
    auto connected = transport::connect(address);
    REQUIRE_MESSAGE(connected.is_ok(), connected.message());
    endpoint = std::move(connected.value());
  }
  void say(std::span<const std::byte> frame) { REQUIRE(endpoint->send_frame(frame, false).is_ok()); }
  std::vector<std::byte> hear() {
    std::vector<std::byte> frame(wire::kMaxPoolFrame);
    size_t length = 0;
    if (!is_readable(endpoint->control_fd(), 5000) || !endpoint->receive_frame(frame, length)) length = 0;
    frame.resize(length);
    return frame;
  }
  std::string refusal() {
    wire::Refusal refused;
    return decode(hear(), refused) ? refused.reason : "(none)";
  }
  std::unique_ptr<transport::ClientEndpoint> endpoint;
};

// A session whose client writes messages and never looks at what comes of them.
struct RawClient : Connection {
  RawClient(const std::string& address, const BackendProcess& backend) : Connection(address) {
    wire::Hello hello{.features = wire::kRelayed, .worker_id = random_id(), .window = 4};
    hello.member = pool::tag_of(name_of(backend));
    say(encode(hello));
    REQUIRE(decode(hear(), grant));
    REQUIRE(endpoint
                ->map_region({.lanes = grant.layout.lanes,
                              .request_bytes = grant.layout.request_bytes(),
                              .response_bytes = grant.layout.response_bytes(),
                              .reply_bytes = grant.layout.response_slot_size})
                .is_ok());
    REQUIRE(endpoint->send_frame(encode(wire::Ready{}), true).is_ok());
  }
  void write(uint32_t lane, uint64_t seq, const std::vector<std::byte>& body, uint16_t count) const {
    std::byte* at = endpoint->request_image() + grant.layout.request_offset(lane, seq);
    std::copy(body.begin(), body.end(), at + sizeof(wire::RequestHeader));
    wire::FieldWriter out(at + wire::kRequestChecked);
    out.put(static_cast<uint32_t>(body.size()));
    out.put(count);
    out.put(uint16_t{0});
    wire::FieldWriter(at + 8).put(
        wire::message_checksum(at + wire::kRequestChecked, 8 + body.size(), grant.nonce, seq));
    endpoint->stage_write(lane, grant.layout.request_offset(lane, seq), sizeof(wire::RequestHeader) + body.size(), seq);
    endpoint->flush();
    endpoint->ring(lane);
  }
  wire::Grant grant;
};

}  // namespace

TEST_CASE("a client is told who the members of the pool are, and what it may do") {
  const Slots slots({"allow_flush=no"});
  Connection connection(slots.proxy.address);
  connection.say(encode(wire::Ask{}));
  wire::PoolHead pool;
  REQUIRE(decode(connection.hear(), pool));
  CHECK(pool.members == 1);
  CHECK(pool.rights == (op::kMayRead | op::kMayWrite | op::kMayDump));
  CHECK_FALSE(pool.is_restricted);
  wire::MemberFrame member;
  REQUIRE(decode(connection.hear(), member));
  CHECK(member.version == pool.version);
  CHECK(member.tag == pool::tag_of(name_of(slots.backend)));
  CHECK(member.address == slots.backend.address);
  CHECK(member.state == wire::MemberState::kServing);
  CHECK(member.ways == (wire::kStraight | wire::kByRelay));
}

TEST_CASE("news of a backend that is ejected, and returns, come by themselves") {
  Slots slots({"eject_after=3", "eject_share=100"});
  Connection connection(slots.proxy.address);
  connection.say(encode(wire::Ask{}));
  wire::PoolHead pool;
  wire::MemberFrame member;
  REQUIRE(decode(connection.hear(), pool));
  REQUIRE(decode(connection.hear(), member));
  ::kill(slots.backend.pid, SIGKILL);
  wire::MemberStateFrame news;
  REQUIRE(decode(connection.hear(), news));
  CHECK(news.version == pool.version);
  CHECK(news.state == wire::MemberState::kEjected);
}

TEST_CASE("ops of clients reach the backend through the proxy, and values of any size") {
  const Slots slots;
  const auto one = slots.client();
  const auto two = slots.client();
  CHECK(one->trouble("one") == "");
  CHECK(two->trouble("two") == "");
  CHECK(one->call(op_of(OpCode::kGet, "good:3")).code == ResultCode::kHit);
  CHECK(one->value() == "two:3");
  CHECK(one->session().grant().layout.window <= 4);
}

TEST_CASE("a program that waits for its results itself is known as such") {
  const Slots slots;
  for (const uint64_t features : {wire::kRelayed | wire::kEmbedded, wire::kRelayed}) {
    Connection client(slots.proxy.address);
    wire::Hello hello{.features = features, .worker_id = random_id(), .window = 4};
    hello.member = pool::tag_of(name_of(slots.backend));
    client.say(encode(hello));
    wire::Grant grant;
    REQUIRE(decode(client.hear(), grant));
    CHECK(grant.features == features);
  }
}

TEST_CASE("what the configuration forbids is forbidden here, too") {
  const Slots slots({"allow_flush=no"});
  const auto client = slots.client();
  REQUIRE(client->trouble("kept") == "");
  CHECK(client->call(op_of(OpCode::kFlush, ""), 0).code == ResultCode::kForbidden);
  op::Op of_a_proxy = op_of(OpCode::kSet, "good:1", "x");
  of_a_proxy.owner = 5;
  CHECK(client->call(of_a_proxy).code != ResultCode::kStored);
  CHECK(client->call(op_of(OpCode::kGet, "good:1")).code == ResultCode::kHit);
  CHECK(client->value() == "kept:1");
}

TEST_CASE("with users a client is who its uid says, with that user's keys; or nobody") {
  const std::string file = "/tmp/" + unique("egret-slots-users");
  const std::string hash =
      "$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/1GM/O6IND4WQhG.";
  const auto write = [&](uint32_t uid) {
    std::ofstream(file) << "app:\n  password: \"" << hash << "\"\n  rights: [read, write]\n  prefixes: [\"good:\"]\n"
                        << "  uids: [" << uid << "]\n";
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
  };
  write(::getuid());
  {
    const Slots slots({"users_file=" + file});
    const auto client = slots.client();
    CHECK(client->trouble("theirs") == "");
    CHECK(client->call(op_of(OpCode::kGet, "other:1")).code == ResultCode::kForbidden);
  }
  write(::getuid() + 1);
  const Slots slots({"users_file=" + file});
  const auto stranger = slots.client();
  CHECK(stranger->is_refused());
  CHECK(stranger->why_not().find("users_file") != std::string::npos);
  ::unlink(file.c_str());
}

TEST_CASE("sessions are limited by number, and an ended one makes room") {
  const Slots slots({"slots_sessions=2"});
  auto one = slots.client();
  const auto two = slots.client();
  REQUIRE(one->opens());
  REQUIRE(two->opens());
  const auto three = slots.client();
  CHECK(three->is_refused());
  CHECK(three->why_not().find("slots_sessions = 2") != std::string::npos);
  one.reset();
  CHECK(three->opens(10));
  CHECK(two->trouble("two") == "");
}

TEST_CASE("their slots are limited, too, all of them and one user's") {
  const Slots slots({"slots_memory=1MiB", "slots_share=50"});
  std::vector<std::unique_ptr<GoodClient>> clients;
  clients.push_back(slots.client());
  REQUIRE(clients.front()->opens());
  std::string why;
  for (int i = 0; i < 10 && why.empty(); ++i) {
    clients.push_back(slots.client());
    if (clients.back()->is_refused()) why = clients.back()->why_not();
  }
  CHECK(clients.size() > 1);
  CHECK(why.find("slots_share") != std::string::npos);
  CHECK(clients.front()->trouble("first") == "");
}

TEST_CASE("who asks for something else is told so") {
  const Slots slots;
  wire::Hello hello{.features = wire::kRelayed, .worker_id = 1, .window = 4};
  hello.member = 12345;
  Connection stranger(slots.proxy.address);
  stranger.say(encode(hello));
  CHECK(stranger.refusal().find("no such member") != std::string::npos);
  Connection plain(slots.proxy.address);
  plain.say(encode(wire::Hello{.features = 0, .worker_id = 1, .window = 4}));
  CHECK(plain.refusal().find("a proxy's slots") != std::string::npos);
  Connection odd(slots.proxy.address);
  odd.say(encode(wire::Ready{}));
  CHECK(odd.refusal().find("expected a hello") != std::string::npos);
}

TEST_CASE("a client that never looks at its answers holds up nobody") {
  const Slots slots;
  RawClient stalled(slots.proxy.address, slots.backend);
  const std::vector<op::Op> gets(20, op_of(OpCode::kGet, "good:1"));
  for (uint32_t lane = 0; lane < stalled.grant.layout.lanes; ++lane) {
    for (uint64_t seq = 1; seq <= stalled.grant.layout.window; ++seq) stalled.write(lane, seq, encode_ops(gets), 20);
  }
  const auto other = slots.client();
  CHECK(other->trouble("other") == "");
  CHECK(other->sessions_lost() == 0);
}

TEST_CASE("a client that writes garbage loses its session, and nobody else notices") {
  const Slots slots;
  const auto other = slots.client();
  REQUIRE(other->trouble("before") == "");
  RawClient hostile(slots.proxy.address, slots.backend);
  hostile.write(0, 1, std::vector<std::byte>(40, std::byte{0xEE}), 3);
  CHECK(eventually([&] { return is_readable(hostile.endpoint->control_fd(), 10); }));
  CHECK(hostile.hear().empty());
  CHECK(other->trouble("after") == "");
  CHECK(other->sessions_lost() == 0);
  CHECK(slots.proxy.is_alive());
}

TEST_CASE("when the backend dies ops say what became of them, and never that they were done") {
  Slots slots;
  const auto client = slots.client();
  REQUIRE(client->trouble("before") == "");
  ::kill(slots.backend.pid, SIGKILL);
  std::vector<ResultCode> codes;
  const auto is_told = [&] {
    codes.push_back(client->call(op_of(OpCode::kSet, "good:1", "x")).code);
    return codes.back() == ResultCode::kNotSent;
  };
  CHECK(eventually(is_told));
  CHECK(std::ranges::count(codes, ResultCode::kStored) == 0);
  CHECK(client->sessions_lost() == 0);
}

TEST_CASE("the proxy's end is the session's") {
  Slots slots;
  const auto client = slots.client();
  REQUIRE(client->trouble("before") == "");
  slots.proxy.kill();
  CHECK(eventually([&] {
    client->call(op_of(OpCode::kGet, "good:1"));
    return client->sessions_lost() == 1;
  }));
}
