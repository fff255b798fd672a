// Listening at rdma+tcp:HOST:PORT: both are listened at, and RDMA that cannot be had keeps nobody from TCP.
#include <map>
#include <utility>

#include <sys/eventfd.h>

#include "transport/mixed/mixed_listener.h"
#include "transport_pair.h"

using namespace egret::transport;
using egret::base::Expected;
using egret::base::Status;
using egret::base::UniqueFd;

namespace {

// What the test makes of an address.
struct Played {
  std::string cannot_listen;  // why; empty: it can
  std::string trouble{};      // of accept(), which needs a pause
  std::string turned_away{};  // of accept(), of one peer
  int waiting = 0;            // connections that are not accepted yet
  int accepts = 0;            // calls
  Doorkeeper* doorkeeper = nullptr;
  int fd = -1;

  void come() {
    ++waiting;
    const uint64_t one = 1;
    REQUIRE(::write(fd, &one, sizeof one) == sizeof one);
  }
};
std::map<std::string, Played> played;

// Made by connecting to itself: any endpoint will do.
std::unique_ptr<ServerEndpoint> any_endpoint() {
  static auto listening = listen("shm:@egret-mixed-" + std::to_string(::getpid()), {});
  REQUIRE(listening.is_ok());
  static std::vector<std::unique_ptr<ClientEndpoint>> clients;
  auto client = connect("shm:@egret-mixed-" + std::to_string(::getpid()));
  REQUIRE(client.is_ok());
  clients.push_back(std::move(client.value()));
  auto accepted = listening.value()->accept();
  REQUIRE(accepted.is_ok());
  return std::move(accepted.value());
}

class PlayedListener final : public Listener {
 public:
  explicit PlayedListener(Played& its) : its_(its), fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    its_.fd = fd_.get();
  }
  ~PlayedListener() override { its_.fd = -1; }
  void set_doorkeeper(Doorkeeper* doorkeeper) override { its_.doorkeeper = doorkeeper; }
  int fd() const override { return fd_.get(); }
  bool needs_pause() const override { return needs_pause_; }
  Expected<std::unique_ptr<ServerEndpoint>> accept() override {
    ++its_.accepts;
    needs_pause_ = !its_.trouble.empty();
    if (needs_pause_) return Status::error(its_.trouble);
    if (!its_.turned_away.empty()) return Status::error(std::exchange(its_.turned_away, {}));
    if (its_.waiting == 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);
      return std::unique_ptr<ServerEndpoint>();
    }
    --its_.waiting;
    return any_endpoint();
  }

 private:
  Played& its_;
  UniqueFd fd_;
  bool needs_pause_ = false;
};

Expected<std::unique_ptr<Listener>> listen_as_played(const std::string& address, const ListenOptions&) {
  Played& its = played[address];
  if (!its.cannot_listen.empty()) return Status::error(its.cannot_listen);
  return std::unique_ptr<Listener>(std::make_unique<PlayedListener>(its));
}

struct Both {
  Both(Played rdma, Played tcp) {
    played = {{"rdma:h:1", std::move(rdma)}, {"tcp:h:1", std::move(tcp)}};
    auto made = listen_at_both("rdma:h:1", "tcp:h:1", {}, listen_as_played);
    why = made ? "" : made.message();
    if (made) listener = std::move(made.value());
  }
  // What a control thread does for a while; what was told, and how many were accepted.
  void run(int ms) {
    for (int passed = 0; passed < ms; passed += 5) {
      if (!is_readable(listener->fd(), 5)) continue;
      ++turns;
      for (int calls = 0; calls < 16; ++calls) {
        auto got = listener->accept();
        CHECK_FALSE(listener->needs_pause());
        if (!got) {
          told.push_back(got.message());
        } else if (got.value() == nullptr) {
          break;
        } else {
          ++accepted;
        }
      }
    }
  }
  std::string why;
  std::unique_ptr<Listener> listener;
  std::vector<std::string> told;
  int accepted = 0, turns = 0;
};

class Nobody final : public Doorkeeper {
  bool lets_in(const std::string&) override { return true; }
  void charge(const std::string&) override {}
  bool asks_for_proof() const override { return false; }
};

}  // namespace

TEST_CASE("connections of both kinds are accepted, and neither kind keeps out the other") {
  Both both({}, {});
  REQUIRE(both.listener != nullptr);
  Nobody doorkeeper;
  both.listener->set_doorkeeper(&doorkeeper);
  CHECK(played["rdma:h:1"].doorkeeper == &doorkeeper);
  CHECK(played["tcp:h:1"].doorkeeper == &doorkeeper);
  for (int i = 0; i < 8; ++i) played["rdma:h:1"].come();
  played["tcp:h:1"].come();
  for (int calls = 0; calls < 2; ++calls) {
    auto got = both.listener->accept();
    CHECK((got.is_ok() && got.value() != nullptr));
  }
  CHECK(played["tcp:h:1"].waiting == 0);
  both.run(20);
  CHECK(both.accepted == 7);
  CHECK(both.told.empty());
}

TEST_CASE("without RDMA it serves by TCP, says so once, and listens by RDMA when it can be had") {
  Both both({.cannot_listen = "no device"}, {});
  REQUIRE(both.listener != nullptr);
  Nobody doorkeeper;
  both.listener->set_doorkeeper(&doorkeeper);
  played["tcp:h:1"].come();
  both.run(200);
  CHECK(both.accepted == 1);
  CHECK(both.told == std::vector<std::string>{"no device; meanwhile proxies are served at tcp:h:1"});
  CHECK(both.turns < 20);  // ever longer pauses
  played["rdma:h:1"].cannot_listen.clear();
  for (int waited = 0; waited < 3000 && both.told.size() < 2; waited += 50) both.run(50);
  CHECK(both.told.back() == "rdma:h:1 accepts connections again");
  CHECK(played["rdma:h:1"].doorkeeper == &doorkeeper);
  played["rdma:h:1"].come();
  both.run(20);
  CHECK(both.accepted == 2);
}

TEST_CASE("a device that goes while it is listened at, and comes back") {
  Both both({}, {});
  REQUIRE(both.listener != nullptr);
  played["rdma:h:1"].trouble = "the device is gone";
  played["rdma:h:1"].come();
  both.run(10);
  played["rdma:h:1"].trouble = "cannot listen";
  both.run(300);
  CHECK(both.told == std::vector<std::string>{"the device is gone; meanwhile proxies are served at tcp:h:1",
                                              "cannot listen; meanwhile proxies are served at tcp:h:1"});
  CHECK(played["rdma:h:1"].accepts < 10);
  played["tcp:h:1"].come();
  both.run(20);
  CHECK(both.accepted == 1);
  played["rdma:h:1"].trouble.clear();
  for (int waited = 0; waited < 3000 && both.accepted < 2; waited += 50) both.run(50);
  CHECK(both.accepted == 2);
  CHECK(both.told.back() == "rdma:h:1 accepts connections again");
}

TEST_CASE("TCP that lacks a resource pauses by itself, and a peer that is turned away is told of") {
  Both both({}, {});
  REQUIRE(both.listener != nullptr);
  played["tcp:h:1"].trouble = "too many open files";
  played["tcp:h:1"].come();
  played["rdma:h:1"].turned_away = "it connects too often";
  played["rdma:h:1"].come();
  both.run(20);
  CHECK(both.accepted == 1);
  CHECK(both.told.size() == 2);
  played["tcp:h:1"].trouble.clear();
  for (int waited = 0; waited < 1000 && both.accepted < 2; waited += 20) both.run(20);
  CHECK(both.accepted == 2);
}

TEST_CASE("where TCP cannot be listened at, nothing is") {
  Both both({}, {.cannot_listen = "in use"});
  CHECK(both.listener == nullptr);
  CHECK(both.why == "in use");
  CHECK(played["rdma:h:1"].fd == -1);
}

TEST_CASE("on a host without RDMA rdma+tcp serves and connects by TCP") {
  int port = 20000 + ::getpid() % 20000;
  auto listening = listen("rdma+tcp:127.0.0.1:" + std::to_string(port), {});
  while (!listening) listening = listen("rdma+tcp:127.0.0.1:" + std::to_string(++port), {});
  auto client = connect("rdma+tcp:127.0.0.1:" + std::to_string(port));
  REQUIRE(client.is_ok());
  std::unique_ptr<ServerEndpoint> accepted;
  for (int waited = 0; waited < 200 && accepted == nullptr; ++waited) {
    is_readable(listening.value()->fd(), 10);
    auto got = listening.value()->accept();
    if (got) accepted = std::move(got.value());
  }
  REQUIRE(accepted != nullptr);
  CHECK((accepted->limits().transport == "tcp" || accepted->limits().transport == "rdma"));
}
