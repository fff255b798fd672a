// A worker between its clients and a backend that the test plays, over shared memory.
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/slot_copy.h"
#include "discovery/learn.h"
#include "proxy/option_table.h"
#include "proxy/worker.h"
#include "transport/address.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire/handshake.h"
#include "wire/head.h"

using namespace egret;
using namespace egret::proxy;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 1, .window = 2, .request_slot_size = 4096, .response_slot_size = 65536};
constexpr uint64_t kNonce = 77;

bool eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return condition();
}

// Serves one session, by hand.
class FakeBackend {
 public:
  FakeBackend() : address("shm:@egret-worker-" + std::to_string(::getpid())) {
    auto listening = transport::listen(address, {});
    REQUIRE_MESSAGE(listening.is_ok(), listening.message());
    listener_ = std::move(listening.value());
  }
  void open() {
    REQUIRE(eventually([&] { return accept(); }));
    wire::Hello hello;
    REQUIRE(decode(receive(), hello));
    REQUIRE(endpoint_
                ->create_region({.lanes = kLayout.lanes,
                                 .request_bytes = kLayout.request_bytes(),
                                 .response_bytes = kLayout.response_bytes(),
                                 .reply_bytes = kLayout.response_slot_size})
                .is_ok());
    const wire::Grant grant{
        .session_id = 1, .nonce = kNonce, .epoch = 1, .hash_seed = 3, .item_size_max = 1 << 20, .layout = kLayout};
    REQUIRE(endpoint_->send_frame(encode(grant), true).is_ok());
    receive();
  }
  // The worker has sent that message, and sleeps until something is delivered.
  bool is_awaited(uint64_t seq) {
    return eventually([&] {
      return base::observe_word(endpoint_->request_memory() + kLayout.request_offset(0, seq)) == seq &&
             base::observe_word(endpoint_->request_memory() + kLayout.want_offset(0)) >= seq;
    });
  }
  // The answer is there to be fetched; the worker is not woken.
  void publish(uint64_t seq, const op::Result& result) {
    op::Op get;
    get.code = op::OpCode::kGet;
    std::byte* const slot = endpoint_->response_memory() + kLayout.response_offset(0, seq);
    std::byte* const body = slot + sizeof(wire::ResponseHeader);
    const std::byte* const end =
        wire::encode_result(body, kLayout.response_slot_size - sizeof(wire::ResponseHeader), get, result);
    wire::write_response_head(slot, wire::Seal{.nonce = kNonce}, seq, static_cast<uint32_t>(end - body), 1, 0);
    base::publish_word(slot, seq);
  }
  void end() { endpoint_.reset(); }

  const std::string address;

 private:
  bool accept() {
    auto accepted = listener_->accept();
    if (accepted.is_ok()) endpoint_ = std::move(accepted.value());
    return endpoint_ != nullptr;
  }
  std::vector<std::byte> receive() {
    std::vector<std::byte> frame(wire::kMaxFrame);
    size_t length = 0;
    REQUIRE(eventually([&] { return !endpoint_->receive_frame(frame, length) || length > 0; }));
    frame.resize(length);
    return frame;
  }

  std::unique_ptr<transport::Listener> listener_;
  std::unique_ptr<transport::ServerEndpoint> endpoint_;
};

struct Proxy {
  explicit Proxy(const FakeBackend& backend) {
    auto options = base::Options::load(
        option_table(), std::nullopt,
        std::vector<std::string>{"listen=unix:/unused", "workers=1", "pin=off", "backends=" + backend.address});
    REQUIRE_MESSAGE(options.is_ok(), options.message());
    state.config.set(resolve_config(options.value()).value());
    const std::shared_ptr<const Config> config = state.config.get();
    const pool::Membership members(
        config->placement, discovery::learn_members(config->directory, std::chrono::milliseconds(1)).members, 1, {});
    state.joining.set(members);
    state.membership.set(members);
    state.clock = &clock;
    state.workers.push_back(std::make_unique<WorkerStats>());
    worker = std::make_unique<Worker>(0, clock, state, watchdog);
    worker->start();
  }
  ~Proxy() {
    worker->stop(1'000'000);
    worker->join();
  }
  // The client's end of a new connection.
  base::UniqueFd connect() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
    state.gate.enter();
    NewClient client;
    client.plain.reset(fds[0]);
    worker->give(std::move(client));
    return base::UniqueFd(fds[1]);
  }

  base::SystemClock clock;
  ProxyState state;
  base::Watchdog watchdog{1};
  std::unique_ptr<Worker> worker;
};

// What comes until so many bytes are there or the other side closes.
std::string read(const base::UniqueFd& client, size_t most) {
  std::string all(most, '\0');
  size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < most;) {
    got = ::read(client.get(), all.data() + length, most - length);
    length += got > 0 ? static_cast<size_t>(got) : 0;
  }
  all.resize(length);
  return all;
}

}  // namespace

// The hit is found in the same moment as the end of its session: its bytes lie in memory that goes with the session,
// and are sent later.
TEST_CASE("a value that is sent from its slot reaches the client although the session ends before it is sent") {
  FakeBackend backend;
  Proxy proxy(backend);
  backend.open();
  REQUIRE(eventually([&] { return proxy.worker->is_settled(); }));
  const base::UniqueFd client = proxy.connect();
  const std::string asked = "get key\r\n";
  REQUIRE(::write(client.get(), asked.data(), asked.size()) == static_cast<ssize_t>(asked.size()));
  REQUIRE(backend.is_awaited(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it has looked for the last time, and sleeps
  const std::string value(20'000, 'v');
  op::Result hit;
  hit.code = op::ResultCode::kHit;
  hit.total_length = static_cast<uint32_t>(value.size());
  hit.value = value;
  backend.publish(1, hit);
  backend.end();
  const std::string expected = "VALUE key 0 20000\r\n" + value + "\r\nEND\r\n";
  CHECK((read(client, expected.size()) == expected));
}

TEST_CASE("a client from which nothing comes for a while is at rest, and goes on as what it was when it asks again") {
  FakeBackend backend;
  Proxy proxy(backend);
  const base::UniqueFd text = proxy.connect(), binary = proxy.connect(), half = proxy.connect();
  const auto ask = [](const base::UniqueFd& client, const std::string& asked, const std::string& expected) {
    REQUIRE(::write(client.get(), asked.data(), asked.size()) == static_cast<ssize_t>(asked.size()));
    CHECK(read(client, expected.size()) == expected);
  };
  const std::string noop = "\x80\x0a" + std::string(22, '\0'), answer = "\x81\x0a" + std::string(22, '\0');
  WorkerStats& stats = *proxy.state.workers[0];
  for (int round = 1; round <= 2; ++round) {
    ask(text, "mn\r\n", "MN\r\n");
    ask(binary, noop, answer);
    if (round == 1) ask(half, "mn\r\nm", "MN\r\n");  // it is not at rest
    CHECK(eventually([&] { return stats.resting_connections.get() == 2; }));
    CHECK(stats.curr_connections.get() == 3);
    CHECK(stats.total_connections.get() == 3);
  }
  proxy.worker->reload();  // of members: the configuration is the same
  for (int i = 0; i < 2; ++i) ask(text, "mn\r\n", "MN\r\n");
  CHECK_MESSAGE(stats.resting_connections.get() == 1, "nobody was woken by that");
  ask(half, "n\r\n", "MN\r\n");
  CHECK(eventually([&] { return stats.resting_connections.get() == 3; }));
  ::shutdown(text.get(), SHUT_RDWR);
  CHECK(eventually([&] { return stats.curr_connections.get() == 2; }));
  CHECK(stats.resting_connections.get() == 2);
}
