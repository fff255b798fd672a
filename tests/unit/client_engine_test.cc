// A client between a program that calls when it likes, and a backend that the test plays.
#include <vector>

#include <doctest/doctest.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "client/engine/engine.h"
#include "client/engine/key_order.h"
#include "client/process/fork.h"
#include "rpc_fakes.h"
#include "wire/handshake.h"

using namespace egret;
using client::Engine;
using client::Taken;

namespace {

constexpr wire::RegionLayout kLayout{.lanes = 1, .window = 4, .request_slot_size = 1024, .response_slot_size = 1024};
constexpr uint64_t kOpTimeoutNs = 2'000'000'000;
constexpr uint64_t kHourNs = 3'600'000'000'000;

rpc::FakeClientEndpoint* connected = nullptr;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string&,
                                                                   const transport::ConnectOptions&) {
  auto endpoint = std::make_unique<rpc::FakeClientEndpoint>(kLayout, true);
  connected = endpoint.get();
  connected->control = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  connected->data = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return std::unique_ptr<transport::ClientEndpoint>(std::move(endpoint));
}

client::Settings settings() {
  client::Settings settings;
  settings.members = {{.address = "fake", .name = "backend"}};
  settings.session.window = kLayout.window;
  settings.session.op_timeout_ns = kOpTimeoutNs;
  settings.most_pending = 1024;
  settings.value_memory = 1 << 20;
  return settings;
}

struct Fixture final : client::AnswerSink {
  Fixture() {
    client::ForkGuard::install();
    engine = std::make_unique<Engine>(settings(), clock, Engine::OnPool{}, connect);
    engine->connect();
    REQUIRE(connected != nullptr);
    control.reset(connected->control);
    data.reset(connected->data);
    connected->frames_in.push_back(encode(wire::Grant{
        .session_id = 9, .nonce = rpc::kNonce, .epoch = 1, .hash_seed = 3, .item_size_max = 1024, .layout = kLayout}));
    ::eventfd_write(control.get(), 1);
    engine->on_ready();
    eventfd_t readable = 0;
    ::eventfd_read(control.get(), &readable);
    REQUIRE(engine->connect());
  }
  void on_answer(const client::Call&, const op::Result& result) override { codes.push_back(result.code); }
  void submit(size_t count) {
    op::Op op;
    op.key = "key";
    for (size_t i = 0; i < count; ++i) REQUIRE(engine->submit(op, *this, nullptr, 0, false) == Taken::kYes);
  }
  // As a program's event loop, whose descriptor has become readable.
  void progress() {
    engine->on_ready();
    while (engine->poll()) {
    }
  }

  base::ManualClock clock;
  base::UniqueFd control, data;  // the endpoint's
  std::unique_ptr<Engine> engine;
  std::vector<op::ResultCode> codes;
};

}  // namespace

TEST_CASE("what a program submits after an idle hour has op_timeout from then on, however it is sent") {
  Fixture f;
  f.clock.advance_ns(kHourNs);
  size_t count = 1;
  SUBCASE("flushed") {
    f.submit(count);
    f.engine->poll();
  }
  SUBCASE("armed at once") {
    f.submit(count);
  }
  SUBCASE("more than fits a message") {
    f.submit(count = 100);
  }
  SUBCASE("more than fits a message, and flushed early") {
    f.submit(count = 100);
    f.engine->begin_on_host();
  }
  (void)f.engine->arm();
  // The tick comes before any answer.
  f.clock.advance_ns(rpc::ClientSession::kTickNs);
  f.progress();
  CHECK(f.codes.empty());
  CHECK(f.engine->trouble().empty());
  for (const uint64_t ns : {kOpTimeoutNs, rpc::ClientSession::kTickNs}) {
    f.clock.advance_ns(ns);
    f.progress();
  }
  CHECK(f.codes == std::vector<op::ResultCode>(count, op::ResultCode::kTimedOut));
  CHECK(f.engine->trouble().empty());
}

TEST_CASE("a change waits for every get of its key, also where more than 65,535 are under way") {
  client::KeyOrder order;
  constexpr uint64_t kHash = 7;
  constexpr int kGets = 1 << 16;
  for (int i = 0; i < kGets; ++i) order.get_begins(kHash);
  CHECK(order.gets_like(kHash) == kGets);
  for (int i = 0; i < kGets; ++i) order.get_ends(kHash);
  CHECK(order.gets_like(kHash) == 0);
}
