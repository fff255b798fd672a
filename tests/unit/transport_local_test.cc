// The contract of transport.h as the transport within one process keeps it, and lanes that are served at the flush.
#include <thread>

#include "transport/local/local.h"
#include "transport_pair.h"

using namespace egret::transport;
using egret::base::observe_word;
using egret::base::publish_word;

namespace {

struct Ends {
  explicit Ends(int home = -1) {
    auto made = make_local_pair(home);
    REQUIRE_MESSAGE(made.is_ok(), made.message());
    client = std::move(made.value().client);
    server = std::move(made.value().server);
  }
  void open(const RegionShape& shape = kShape) {
    const auto created = server->create_region(shape);
    REQUIRE_MESSAGE(created.is_ok(), created.message());
    REQUIRE(server->send_frame(bytes_of("grant"), true).is_ok());
    REQUIRE(next_frame(*client) == "grant");
    const auto mapped = client->map_region(shape);
    REQUIRE_MESSAGE(mapped.is_ok(), mapped.message());
  }
  SameProcess& same() const { return *server->limits().same_process; }
  std::unique_ptr<ClientEndpoint> client;
  std::unique_ptr<ServerEndpoint> server;
};

using Lanes = std::vector<uint32_t>;

Lanes rung_lanes(ServerEndpoint& server, size_t batch = 16) {
  std::vector<Event> events(batch);
  Lanes lanes;
  const size_t count = server.poll(events);
  for (size_t i = 0; i < count; ++i) {
    CHECK(events[i].kind == Event::Kind::kRing);
    lanes.push_back(events[i].lane);
  }
  return lanes;
}

// Answers a request by the word behind it, plus one.
struct AddsOne final : FlushServer {
  explicit AddsOne(ServerEndpoint& served) : endpoint(served) {}
  void on_flush() override {
    ++calls;
    publish_word(endpoint.response_memory(), observe_word(endpoint.request_memory()) + 1);
    endpoint.deliver(0, 0, 64);
  }
  void on_ring() override {
    for (const uint32_t lane : rung_lanes(endpoint)) rung.push_back(lane);
  }
  ServerEndpoint& endpoint;
  int calls = 0;
  Lanes rung;
};

}  // namespace

TEST_SUITE("names") {
  TEST_CASE("whoever connects to a name is accepted by who listens on it") {
    const std::string name = "local:" + fresh_name();
    auto listener = listen(name, {});
    REQUIRE(listener.is_ok());
    CHECK_FALSE(is_readable(listener.value()->fd()));
    CHECK(listener.value()->accept().value() == nullptr);
    auto one = connect(name);
    auto two = connect(name);
    REQUIRE(one.is_ok());
    REQUIRE(two.is_ok());
    for (const auto* client : {&one, &two}) {
      CHECK(is_readable(listener.value()->fd()));
      auto accepted = listener.value()->accept();
      REQUIRE(accepted.is_ok());
      REQUIRE(accepted.value() != nullptr);
      REQUIRE((*client).value()->send_frame(bytes_of("hello"), false).is_ok());
      CHECK(next_frame(*accepted.value()) == "hello");
    }
    CHECK_FALSE(is_readable(listener.value()->fd()));
  }

  TEST_CASE("a name is one listener's, for as long as it is there") {
    const std::string name = "local:" + fresh_name();
    CHECK_FALSE(connect(name).is_ok());
    {
      auto listener = listen(name, {});
      REQUIRE(listener.is_ok());
      CHECK(listen(name, {}).message() == name + " is in use by this process");
    }
    CHECK(connect(name).message() == "nobody in this process listens on " + name);
    CHECK(listen(name, {}).is_ok());
  }

  TEST_CASE("a client that nobody has accepted hears the end with the listener") {
    const std::string name = "local:" + fresh_name();
    auto listener = listen(name, {});
    auto client = connect(name);
    REQUIRE(client.is_ok());
    listener.value().reset();
    CHECK(is_readable(client.value()->control_fd()));
    CHECK(next_frame(*client.value()).starts_with("error: "));
  }
}

TEST_SUITE("control channel") {
  TEST_CASE("frames arrive whole, in order, both ways; none is no error") {
    Ends ends;
    CHECK(next_frame(*ends.server).empty());
    REQUIRE(ends.client->send_frame(bytes_of("hello"), false).is_ok());
    REQUIRE(ends.client->send_frame(bytes_of("again"), false).is_ok());
    CHECK(is_readable(ends.server->control_fd()));
    CHECK(next_frame(*ends.server) == "hello");
    CHECK(is_readable(ends.server->control_fd()));
    CHECK(next_frame(*ends.server) == "again");
    CHECK_FALSE(is_readable(ends.server->control_fd()));
    REQUIRE(ends.server->send_frame(bytes_of("refusal"), false).is_ok());
    CHECK(next_frame(*ends.client) == "refusal");
  }

  TEST_CASE("whoever closes or goes is noticed by the other's control descriptor; its memory stays") {
    Ends ends;
    ends.open();
    publish_word(ends.server->response_memory() + 64, 11);
    ends.client->stage_write(0, 192, 8, 22);
    SUBCASE("the client closes") {
      ends.client->close();
      CHECK(next_frame(*ends.server).starts_with("error: "));
      CHECK(observe_word(ends.client->response_image() + 64) == 11);
    }
    SUBCASE("the client goes") {
      ends.client.reset();
      CHECK(is_readable(ends.server->control_fd()));
      CHECK(next_frame(*ends.server).starts_with("error: "));
      CHECK(observe_word(ends.server->request_memory() + 192) == 22);
      ends.server->deliver(0, 0, 64);
    }
    SUBCASE("the server closes") {
      ends.server->close();
      CHECK(next_frame(*ends.client).starts_with("error: "));
    }
    SUBCASE("the server goes: what was sent before is still read") {
      REQUIRE(ends.server->send_frame(bytes_of("last words"), false).is_ok());
      ends.server.reset();
      CHECK(next_frame(*ends.client) == "last words");
      CHECK(next_frame(*ends.client).starts_with("error: "));
      CHECK(observe_word(ends.client->response_image() + 64) == 11);
      ends.client->ring(1);
    }
  }

  TEST_CASE("sessions that come and go leave no descriptor behind") {
    { Ends().open(); }
    const size_t before = open_fds();
    for (int i = 0; i < 50; ++i) Ends().open();
    CHECK(open_fds() == before);
  }
}

TEST_SUITE("region") {
  TEST_CASE("a new region is all zeroes on both sides, also where an earlier session was") {
    for (int round = 0; round < 2; ++round) {
      Ends ends;
      ends.open();
      for (size_t i = 0; i < kShape.request_bytes; ++i) REQUIRE(ends.server->request_memory()[i] == std::byte{0});
      for (size_t i = 0; i < kShape.response_bytes; ++i) REQUIRE(ends.client->response_image()[i] == std::byte{0});
      std::memset(ends.client->request_image(), 1, kShape.request_bytes);
      std::memset(ends.server->response_memory(), 1, kShape.response_bytes);
    }
  }

  TEST_CASE("what one side writes the other reads: requests with their first word last, responses, reads in order") {
    Ends ends;
    ends.open();
    const size_t offset = 3 * 64 + 1024;
    std::memcpy(ends.client->request_image() + offset + 8, "request", 7);
    CHECK(observe_word(ends.server->request_memory() + offset) == 0);
    ends.client->stage_write(0, offset, 15, 42);
    ends.client->flush();
    CHECK(observe_word(ends.server->request_memory() + offset) == 42);
    CHECK(std::memcmp(ends.server->request_memory() + offset + 8, "request", 7) == 0);
    publish_word(ends.server->response_memory() + 2048, 7);
    for (uint64_t tag = 0; tag < 10; ++tag) ends.client->stage_read(0, 2048, 1024, tag);
    ends.client->flush();
    std::array<Event, 3> events;
    std::vector<uint64_t> tags;
    for (size_t count = 0; (count = ends.client->poll(events)) > 0;) {
      for (size_t i = 0; i < count; ++i) tags.push_back(events[i].tag);
    }
    CHECK(tags == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    CHECK(observe_word(ends.client->response_image() + 2048) == 7);
  }

  TEST_CASE(
      "a region that did not come, or is not of the size agreed, is refused; one that cannot be had is an error") {
    Ends ends;
    CHECK_FALSE(ends.client->map_region(kShape).is_ok());
    RegionShape huge = kShape;
    huge.response_bytes = size_t{1} << 62;
    CHECK_FALSE(ends.server->create_region(huge).is_ok());
    REQUIRE(ends.server->create_region(kShape).is_ok());
    REQUIRE(ends.server->send_frame(bytes_of("grant"), false).is_ok());
    CHECK_FALSE(ends.client->map_region(kShape).is_ok());
    REQUIRE(ends.server->send_frame(bytes_of("grant"), true).is_ok());
    RegionShape other = kShape;
    other.lanes = 2;
    CHECK_FALSE(ends.client->map_region(other).is_ok());
    CHECK(ends.client->map_region(kShape).is_ok());
  }
}

TEST_SUITE("ring and deliver") {
  TEST_CASE("a ring names its lane, once; several that nobody heard are one, and none is lost") {
    Ends ends;
    ends.open();
    CHECK(rung_lanes(*ends.server).empty());
    for (int i = 0; i < 1000; ++i) ends.client->ring(1);
    CHECK(rung_lanes(*ends.server) == Lanes{1});
    CHECK(rung_lanes(*ends.server).empty());
    for (uint32_t lane = 0; lane < 3; ++lane) ends.client->ring(lane);
    CHECK(rung_lanes(*ends.server, 2) == Lanes{0, 1});
    ends.client->ring(0);
    CHECK(rung_lanes(*ends.server, 2) == Lanes{0, 2});
    CHECK(rung_lanes(*ends.server, 2).empty());
  }

  TEST_CASE("rings and deliveries wake a thread that sleeps edge-triggered and never reads the descriptor") {
    Ends ends;
    ends.open();
    EdgeWaiter server(ends.server->data_fd()), client(ends.client->data_fd());
    for (int round = 0; round < 1000; ++round) {
      ends.client->ring(0);
      CHECK(server.wakes());
      CHECK_FALSE(server.wakes());
      ends.server->deliver(0, 0, 64);
      ends.server->deliver(1, 0, 64);
      CHECK(client.wakes());
      CHECK_FALSE(client.wakes());
    }
    std::thread late([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ends.server->deliver(0, 0, 64);
    });
    CHECK(client.wakes(5000));
    late.join();
  }
}

TEST_SUITE("served at the flush") {
  TEST_CASE(
      "a lane of the client's own thread is served before flush returns, once for all its writes, and wakes nobody") {
    Ends ends;
    ends.open();
    CHECK(ends.same().is_clients_thread());
    AddsOne server(*ends.server);
    ends.same().serve_at_flush(0, &server);
    EdgeWaiter waiter(ends.client->data_fd());
    ends.client->stage_write(0, 0, 8, 41);
    ends.client->stage_write(0, 64, 8, 1);
    CHECK(server.calls == 0);
    ends.client->flush();
    CHECK(server.calls == 1);
    CHECK(observe_word(ends.client->response_image()) == 42);
    CHECK_FALSE(waiter.wakes());
    ends.client->flush();
    CHECK_MESSAGE(server.calls == 1, "nothing was written since");
  }

  TEST_CASE("lanes of other threads are not; nor is one whose server has let go") {
    Ends ends;
    ends.open();
    AddsOne server(*ends.server);
    ends.same().serve_at_flush(0, &server);
    ends.client->stage_write(1, 64, 8, 1);
    ends.client->flush();
    CHECK(server.calls == 0);
    ends.same().serve_at_flush(0, nullptr);
    ends.client->stage_write(0, 0, 8, 1);
    ends.client->flush();
    CHECK(server.calls == 0);
    EdgeWaiter waiter(ends.client->data_fd());
    ends.server->deliver(0, 0, 64);
    CHECK(waiter.wakes());
  }

  TEST_CASE("a home in the client's own thread hears of rings for other threads' lanes by a call, and wakes nobody") {
    Ends ends(0);
    ends.open();
    CHECK(ends.same().home() == 0);
    EdgeWaiter waiter(ends.server->data_fd());
    ends.client->ring(1);
    CHECK_MESSAGE(waiter.wakes(), "not attached yet");
    AddsOne server(*ends.server);
    ends.same().serve_at_flush(0, &server);
    ends.client->ring(2);
    CHECK(server.rung == Lanes{1, 2});
    CHECK_FALSE(waiter.wakes());
  }

  TEST_CASE("a server in another thread knows that it is not the client's") {
    Ends ends;
    ends.open();
    std::thread([&] { CHECK_FALSE(ends.same().is_clients_thread()); }).join();
  }
}
