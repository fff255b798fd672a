// What a client believes of what a proxy tells: a whole pool at a time, states of its members, and nothing that cannot be.
#include <functional>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "client/engine/proxy_news.h"
#include "transport/address.h"
#include "wire/handshake.h"
#include "wire/pool_frames.h"

using namespace egret;
using client::ProxyNews;
using Heard = ProxyNews::Heard;

namespace {

// A proxy of which every frame is in the test's hands, and a client that has asked it.
struct Asked {
  Asked() : address("shm:@egret-news-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count)) {
    auto listening = transport::listen(address, {});
    REQUIRE(listening.is_ok());
    listener = std::move(listening.value());
    options.connect_timeout_ns = 5'000'000'000;
    news = std::make_unique<ProxyNews>(std::vector<std::string>{"shm:@egret-news-test-nobody", address}, options, clock,
                                       transport::connect);
    accept();
  }
  void accept() {
    REQUIRE(news->begin());
    auto accepted = listener->accept();
    REQUIRE(accepted.is_ok());
    proxy = std::move(accepted.value());
    REQUIRE(proxy != nullptr);
  }
  void say(const std::vector<std::byte>& frame) const { REQUIRE(proxy->send_frame(frame, false).is_ok()); }
  void say_pool(uint64_t version, uint32_t members) const {
    say(encode(wire::PoolHead{.version = version, .members = members}));
  }
  void say_member(uint64_t version, uint32_t index, const std::string& name) const {
    say(encode(wire::MemberFrame{.version = version,
                                 .tag = 7 + index,
                                 .index = index,
                                 .ways = wire::kByRelay,
                                 .name = name,
                                 .address = "tcp:h:" + name}));
  }
  // Hears that the connection is of no use, and why.
  std::string refused() const {
    const bool has_ended = news->hear() == Heard::kEnd;
    const std::string why = has_ended ? news->why() : "(believed)";
    news->end(true);
    return why;
  }

  static inline int count = 0;
  const std::string address;
  std::unique_ptr<transport::Listener> listener;
  base::ManualClock clock;
  rpc::SessionOptions options;
  std::unique_ptr<ProxyNews> news;
  std::unique_ptr<transport::ServerEndpoint> proxy;
};

}  // namespace

TEST_CASE("a pool counts when its last member has come, and stays until another one has") {
  const Asked asked;
  CHECK(asked.news->is_asking());
  CHECK(asked.news->hear() == Heard::kNothing);
  asked.say_pool(3, 2);
  asked.say_member(3, 0, "1");
  CHECK(asked.news->hear() == Heard::kNothing);
  CHECK(asked.news->pool().head.version == 0);
  asked.say_member(3, 1, "2");
  CHECK(asked.news->hear() == Heard::kPool);
  CHECK_FALSE(asked.news->is_asking());
  CHECK(asked.news->address() == asked.address);
  REQUIRE(asked.news->pool().members.size() == 2);
  CHECK(asked.news->pool().members[1].name == "2");
  asked.say_pool(4, 1);
  CHECK(asked.news->hear() == Heard::kNothing);
  CHECK(asked.news->pool().head.version == 3);
  asked.say_member(4, 0, "2");
  CHECK(asked.news->hear() == Heard::kPool);
  CHECK(asked.news->pool().members.size() == 1);
}

TEST_CASE("a pool may be empty") {
  const Asked asked;
  asked.say_pool(1, 0);
  CHECK(asked.news->hear() == Heard::kPool);
  CHECK(asked.news->pool().members.empty());
  CHECK_FALSE(asked.news->is_asking());
}

TEST_CASE("states are those of the version that they name") {
  const Asked asked;
  asked.say_pool(3, 1);
  asked.say_member(3, 0, "1");
  REQUIRE(asked.news->hear() == Heard::kPool);
  asked.say(encode(wire::MemberStateFrame{2, 0, wire::MemberState::kEjected}));
  CHECK(asked.news->hear() == Heard::kNothing);
  CHECK(asked.news->pool().members[0].state == wire::MemberState::kServing);
  asked.say(encode(wire::MemberStateFrame{3, 0, wire::MemberState::kEjected}));
  CHECK(asked.news->hear() == Heard::kState);
  CHECK(asked.news->changed_member() == 0);
  CHECK(asked.news->pool().members[0].state == wire::MemberState::kEjected);
}

TEST_CASE("what cannot be ends the connection, and says what it was") {
  struct Wrong {
    std::function<void(const Asked&)> say;
    std::string why;
  };
  const Wrong all[] = {
      {[](const Asked& a) { a.say_pool(0, 1); }, "the proxy "},
      {[](const Asked& a) { a.say_pool(1, wire::kMaxPoolMembers + 1); }, "the proxy "},
      {[](const Asked& a) { a.say_member(1, 0, "1"); }, "impossible member"},
      {[](const Asked& a) { a.say_pool(1, 2), a.say_member(1, 1, "1"); }, "impossible member"},
      {[](const Asked& a) { a.say_pool(1, 1), a.say_member(2, 0, "1"); }, "impossible member"},
      {[](const Asked& a) { a.say_pool(1, 2), a.say_member(1, 0, "1"), a.say_member(1, 1, "1"); }, "are named"},
      {[](const Asked& a) {
         a.say_pool(1, 1);
         a.say(encode(wire::MemberFrame{.version = 1, .tag = 1, .name = "x", .address = "smtp:x"}));
       },
       "impossible member"},
      {[](const Asked& a) {
         a.say_pool(1, 0);
         REQUIRE(a.news->hear() == Heard::kPool);
         a.say(encode(wire::MemberStateFrame{1, 0, wire::MemberState::kEjected}));
       },
       "a member that there is not"},
      {[](const Asked& a) { a.say(encode(wire::Refusal{.reason = "not you"})); }, "refused by the proxy: not you"},
      {[](const Asked& a) { a.say(encode(wire::Ask{})); }, "no news"},
      {[](const Asked& a) { a.say(std::vector<std::byte>(40, std::byte{0x5a})); }, "the proxy: "},
      {[](const Asked& a) { a.proxy->close(); }, "without a word"},
      {[](const Asked& a) {
         a.say_pool(1, 0);
         REQUIRE(a.news->hear() == Heard::kPool);
         a.proxy->close();
       },
       "the proxy is gone"},
  };
  for (const Wrong& wrong : all) {
    CAPTURE(wrong.why);
    Asked asked;
    wrong.say(asked);
    if (wrong.why == "the proxy is gone" || wrong.why == "without a word") asked.proxy.reset();
    CHECK(asked.refused().find(wrong.why) != std::string::npos);
    CHECK(asked.news->fd() == -1);
  }
}

TEST_CASE("after an end it is asked again, later each time, and the pool of before counts meanwhile") {
  Asked asked;
  asked.say_pool(3, 1);
  asked.say_member(3, 0, "1");
  REQUIRE(asked.news->hear() == Heard::kPool);
  for (int i = 0; i < 3; ++i) {
    asked.proxy.reset();
    REQUIRE(asked.news->hear() == Heard::kEnd);
    asked.news->end(true);
    CHECK(asked.news->pool().members.size() == 1);
    asked.clock.advance_ns(asked.options.backoff_max_ns);
    asked.accept();
    CHECK_FALSE(asked.news->begin());  // one connection is enough
  }
  asked.proxy.reset();
  REQUIRE(asked.news->hear() == Heard::kEnd);
  asked.news->end(true);
  CHECK_FALSE(asked.news->begin());  // too soon
  asked.clock.advance_ns(asked.options.backoff_max_ns);
  CHECK(asked.news->begin());
}

TEST_CASE("a proxy that says nothing is not waited for without end") {
  Asked asked;
  CHECK(asked.news->is_asking());
  asked.clock.advance_ns(asked.options.connect_timeout_ns);
  CHECK_FALSE(asked.news->is_asking());
  asked.say_pool(1, 0);  // but heard, late as it is
  CHECK(asked.news->hear() == Heard::kPool);
}
