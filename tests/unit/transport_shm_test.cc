// The contract of transport.h as the shm transport keeps it: both ends in one process, and a child for death.
#include <csignal>
#include <deque>
#include <thread>

#include <sys/resource.h>

#include "base/cpu.h"
#include "transport_pair.h"

using namespace egret::transport;
using egret::base::observe_word;
using egret::base::publish_word;

namespace {

size_t count_events(ClientEndpoint& client, std::span<Event> events) {
  return client.poll(events);
}

std::vector<uint32_t> rung_lanes(ServerEndpoint& server, size_t batch = 16) {
  std::vector<Event> events(batch);
  std::vector<uint32_t> lanes;
  const size_t count = server.poll(events);
  for (size_t i = 0; i < count; ++i) {
    CHECK(events[i].kind == Event::Kind::kRing);
    lanes.push_back(events[i].lane);
  }
  return lanes;
}

using Lanes = std::vector<uint32_t>;

}  // namespace

TEST_SUITE("control channel") {
  TEST_CASE("frames arrive whole, in order, both ways; none is no error") {
    Pair pair;
    CHECK(next_frame(*pair.server) == "");
    CHECK(next_frame(*pair.client) == "");
    REQUIRE(pair.client->send_frame(bytes_of("hello"), false).is_ok());
    REQUIRE(pair.client->send_frame(bytes_of("again"), false).is_ok());
    CHECK(is_readable(pair.server->control_fd()));
    CHECK(next_frame(*pair.server) == "hello");
    CHECK_MESSAGE(is_readable(pair.server->control_fd()), "level-triggered: the second frame is still there");
    CHECK(next_frame(*pair.server) == "again");
    CHECK(next_frame(*pair.server) == "");
    CHECK_FALSE(is_readable(pair.server->control_fd()));
    REQUIRE(pair.server->send_frame(bytes_of("refusal"), false).is_ok());
    CHECK(next_frame(*pair.client) == "refusal");
  }

  TEST_CASE("the server knows who it talks to") {
    Pair pair;
    CHECK(pair.server->peer() == "uid " + std::to_string(::geteuid()) + " pid " + std::to_string(::getpid()));
  }

  TEST_CASE("accepting when nobody is there yields nothing") {
    Pair pair;
    CHECK_FALSE(is_readable(pair.listener->fd()));
    auto accepted = pair.listener->accept();
    REQUIRE(accepted.is_ok());
    CHECK(accepted.value() == nullptr);
  }

  TEST_CASE("a peer that never reads makes sending fail, not block") {
    Pair pair;
    bool failed = false;
    for (int i = 0; i < 100'000 && !failed; ++i) failed = !pair.server->send_frame(bytes_of("frame"), false).is_ok();
    CHECK(failed);
  }

  TEST_CASE("sending to a peer that is gone is an error, not a signal") {
    Pair pair;
    pair.client.reset();
    const auto sent = pair.server->send_frame(bytes_of("frame"), false);
    CHECK_FALSE(sent.is_ok());
    CHECK(sent.message().find("cannot send a control frame") == 0);
  }
}

TEST_SUITE("region") {
  TEST_CASE("a new region is all zeroes on both sides") {
    Pair pair;
    pair.open();
    for (size_t i = 0; i < kShape.request_bytes; ++i) REQUIRE(pair.server->request_memory()[i] == std::byte{0});
    for (size_t i = 0; i < kShape.response_bytes; ++i) REQUIRE(pair.client->response_image()[i] == std::byte{0});
  }

  TEST_CASE("what the client stages is what the server sees, the first word when it was staged") {
    Pair pair;
    pair.open();
    const size_t offset = 3 * 64 + 1024;
    std::memcpy(pair.client->request_image() + offset + 8, "request", 7);
    CHECK(observe_word(pair.server->request_memory() + offset) == 0);
    pair.client->stage_write(0, offset, 15, 42);
    pair.client->flush();
    CHECK(observe_word(pair.server->request_memory() + offset) == 42);
    CHECK(std::memcmp(pair.server->request_memory() + offset + 8, "request", 7) == 0);
  }

  TEST_CASE("what the server publishes is what the client fetches") {
    Pair pair;
    pair.open();
    std::memcpy(pair.server->response_memory() + 2048 + 8, "response", 8);
    publish_word(pair.server->response_memory() + 2048, 7);
    pair.client->stage_read(0, 2048, 1024, 99);
    pair.client->flush();
    std::array<Event, 4> events;
    REQUIRE(count_events(*pair.client, events) == 1);
    CHECK(events[0].kind == Event::Kind::kFetched);
    CHECK(events[0].tag == 99);
    CHECK(observe_word(pair.client->response_image() + 2048) == 7);
    CHECK(std::memcmp(pair.client->response_image() + 2048 + 8, "response", 8) == 0);
    CHECK(count_events(*pair.client, events) == 0);
  }

  TEST_CASE("reads complete in the order staged, once each, however few are asked for") {
    Pair pair;
    pair.open();
    for (uint64_t tag = 0; tag < 10; ++tag) pair.client->stage_read(0, 0, 64, tag);
    pair.client->flush();
    std::array<Event, 3> events;
    std::vector<uint64_t> tags;
    for (size_t count = 0; (count = pair.client->poll(events)) > 0;) {
      for (size_t i = 0; i < count; ++i) tags.push_back(events[i].tag);
      if (tags.size() == 6) pair.client->stage_read(0, 0, 64, 10);  // more is staged before all is handed out
    }
    CHECK(tags == std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  }

  TEST_CASE("closing drops what is pending and leaves memory readable") {
    Pair pair;
    pair.open();
    publish_word(pair.server->response_memory(), 5);
    pair.client->stage_read(0, 0, 64, 1);
    pair.client->close();
    std::array<Event, 4> events;
    CHECK(pair.client->poll(events) == 0);
    CHECK(observe_word(pair.client->response_image()) == 5);
    std::memset(pair.client->request_image() + 256, 1, 64);
  }

  TEST_CASE("limits say that a fetch is local and a delivery only a wake-up") {
    Pair pair;
    pair.open();
    CHECK(pair.client->limits().fetch_is_local);
    CHECK(pair.client->limits().deliver_is_wakeup);
    CHECK(pair.client->limits().read_depth >= 1024);
    CHECK(pair.server->limits().deliver_is_wakeup);
  }

  TEST_CASE("a region that did not come, or is not of the size agreed, is refused") {
    Pair pair;
    CHECK_FALSE(pair.client->map_region(kShape).is_ok());
    REQUIRE(pair.server->create_region(kShape).is_ok());
    REQUIRE(pair.server->send_frame(bytes_of("grant"), false).is_ok());
    REQUIRE(next_frame(*pair.client) == "grant");
    CHECK_FALSE(pair.client->map_region(kShape).is_ok());
    REQUIRE(pair.server->send_frame(bytes_of("grant"), true).is_ok());
    REQUIRE(next_frame(*pair.client) == "grant");
    const auto refused = [&](auto field, auto change) {
      RegionShape other = kShape;
      other.*field += change;
      return !pair.client->map_region(other).is_ok();
    };
    CHECK(refused(&RegionShape::request_bytes, 64u));
    CHECK(refused(&RegionShape::request_bytes, -64));
    CHECK(refused(&RegionShape::response_bytes, 64u));
    CHECK(refused(&RegionShape::response_bytes, -64));
    CHECK(refused(&RegionShape::lanes, 1u));
    CHECK(pair.client->map_region(kShape).is_ok());
  }

  TEST_CASE("regions of two sessions are two memories") {
    Pair one;
    Pair two;
    one.open();
    two.open();
    one.client->stage_write(0, 0, 8, 1);
    CHECK(observe_word(one.server->request_memory()) == 1);
    CHECK(observe_word(two.server->request_memory()) == 0);
  }

  TEST_CASE("a region that cannot be had is an error with its size, not a crash") {
    Pair pair;
    RegionShape huge = kShape;
    huge.response_bytes = size_t{1} << 63;  // refused before a page is allocated
    const auto made = pair.server->create_region(huge);
    REQUIRE_FALSE(made.is_ok());
    CHECK(made.message().find("9223372036854775808") != std::string::npos);
  }
}

TEST_SUITE("ring and deliver") {
  TEST_CASE("a ring names its lane, once") {
    Pair pair;
    pair.open();
    CHECK(rung_lanes(*pair.server).empty());
    pair.client->ring(2);
    CHECK(rung_lanes(*pair.server) == Lanes{2});
    CHECK(rung_lanes(*pair.server).empty());
    pair.client->ring(0);
    pair.client->ring(2);
    CHECK(rung_lanes(*pair.server) == Lanes{0, 2});
  }

  TEST_CASE("rings of one lane that nobody heard yet are one") {
    Pair pair;
    pair.open();
    for (int i = 0; i < 1000; ++i) pair.client->ring(1);
    CHECK(rung_lanes(*pair.server) == Lanes{1});
    CHECK(rung_lanes(*pair.server).empty());
  }

  TEST_CASE("no ring is lost when more lanes ring than a poll takes") {
    Pair pair;
    pair.open();
    for (uint32_t lane = 0; lane < 3; ++lane) pair.client->ring(lane);
    CHECK(rung_lanes(*pair.server, 2) == Lanes{0, 1});
    pair.client->ring(0);
    CHECK(rung_lanes(*pair.server, 2) == Lanes{0, 2});
    CHECK(rung_lanes(*pair.server, 2).empty());
    pair.client->ring(1);
    CHECK(rung_lanes(*pair.server, 1) == Lanes{1});
    CHECK(rung_lanes(*pair.server, 1).empty());
  }

  TEST_CASE("a client says on which CPU it runs, by flushing a request or ringing, and no ring is lost by that") {
    Pair pair;
    pair.open();
    CHECK_MESSAGE(pair.server->client_cpu() == -1, "it has not said anything yet");
    std::thread([&] {
      for (const int cpu : egret::base::allowed_cpus()) {
        egret::base::pin_this_thread(cpu);
        pair.client->stage_write(0, 0, sizeof(uint64_t), 1);
        pair.client->flush();
        CHECK(pair.server->client_cpu() == cpu);
        CHECK(rung_lanes(*pair.server).empty());
      }
      for (const int cpu : egret::base::allowed_cpus()) {
        egret::base::pin_this_thread(cpu);
        pair.client->ring(1);
        CHECK(pair.server->client_cpu() == cpu);
        CHECK(rung_lanes(*pair.server) == Lanes{1});
      }
    }).join();
  }

  TEST_CASE("a ring between the server's last poll and its sleep wakes it") {
    Pair pair;
    pair.open();
    EdgeWaiter waiter(pair.server->data_fd());
    CHECK_FALSE(waiter.wakes());
    for (int round = 0; round < 100; ++round) {
      pair.client->ring(0);
      CHECK(waiter.wakes());
      CHECK_FALSE_MESSAGE(waiter.wakes(), "one ring, one edge");
      CHECK(rung_lanes(*pair.server) == Lanes{0});
    }
  }

  TEST_CASE("where each lane has a ring, it wakes who waits for that lane, and nobody else hears of it") {
    const size_t fds_before = open_fds();
    {
      RegionShape shape = kShape;
      shape.has_lane_rings = true;
      Pair pair;
      pair.open(shape);
      CHECK(pair.server->limits().has_lane_rings);
      CHECK(pair.server->facts() == "shared memory, a ring for each lane");
      CHECK(pair.client->facts() == pair.server->facts());
      std::deque<EdgeWaiter> waiters;
      for (uint32_t lane = 0; lane < shape.lanes; ++lane) waiters.emplace_back(pair.server->lane_fd(lane));
      const auto heard_of = [&](uint32_t lane) {
        std::array<Event, 4> events;
        const size_t count = pair.server->poll_lane(lane, events);
        if (count > 0) CHECK((count == 1 && events[0].kind == Event::Kind::kRing && events[0].lane == lane));
        return count;
      };
      for (int round = 0; round < 100; ++round) {
        for (uint32_t lane = 0; lane < shape.lanes; ++lane) {
          pair.client->ring(lane);
          pair.client->ring(lane);
          for (uint32_t each = 0; each < shape.lanes; ++each) {
            CHECK(waiters[each].wakes() == (each == lane));
            CHECK(heard_of(each) == (each == lane ? 1 : 0));
            CHECK(heard_of(each) == 0);
          }
          CHECK(rung_lanes(*pair.server).empty());
        }
      }
    }
    CHECK(open_fds() == fds_before);
  }

  TEST_CASE("more lanes than descriptors that travel with one message get no ring each, and as many as that do") {
    for (const uint32_t lanes : {kMostLaneRings, kMostLaneRings + 1}) {
      RegionShape shape{.lanes = lanes,
                        .request_bytes = lanes * size_t{64 + 2048},
                        .response_bytes = lanes * size_t{2048},
                        .reply_bytes = 1024,
                        .has_wake_timers = true,
                        .has_lane_rings = true};
      Pair pair;
      if (lanes > kMostLaneRings) {
        CHECK_FALSE(pair.server->create_region(shape).is_ok());
        continue;
      }
      pair.open(shape);
      EdgeWaiter waiter(pair.server->lane_fd(lanes - 1));
      pair.client->ring(lanes - 1);
      CHECK(waiter.wakes());
    }
  }

  TEST_CASE("a client with few descriptors left does not ask for rings of lanes") {
    CHECK(Pair().client->limits().offers_lane_rings);
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlimit low{.rlim_cur = 200, .rlim_max = limit.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &low) == 0);
    CHECK_FALSE(Pair().client->limits().offers_lane_rings);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }

  TEST_CASE("each delivery wakes a client that sleeps edge-triggered and never reads the descriptor") {
    Pair pair;
    pair.open();
    EdgeWaiter waiter(pair.client->data_fd());
    CHECK_FALSE(waiter.wakes());
    for (int round = 0; round < 100'000; ++round) {
      pair.client->arm();
      if (waiter.wakes()) FAIL("woken by nobody in round " << round);
      pair.server->deliver(0, 0, 64);
      if (!waiter.wakes()) FAIL("not woken in round " << round);
    }
    pair.server->deliver(0, 0, 64);
    pair.server->deliver(1, 0, 64);
    CHECK(waiter.wakes());
    CHECK_FALSE(waiter.wakes());
  }

  TEST_CASE("a delivery wakes a thread that is blocked already") {
    Pair pair;
    pair.open();
    EdgeWaiter waiter(pair.client->data_fd());
    std::thread server([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      pair.server->deliver(0, 0, 64);
    });
    CHECK(waiter.wakes(5000));
    server.join();
  }
}

TEST_SUITE("death") {
  TEST_CASE("whoever closes or goes is noticed by the other's control descriptor") {
    Pair pair;
    pair.open();
    SUBCASE("the client closes") {
      pair.client->close();
      CHECK(is_readable(pair.server->control_fd()));
      CHECK(next_frame(*pair.server).starts_with("error: "));
    }
    SUBCASE("the client is destroyed") {
      pair.client.reset();
      CHECK(is_readable(pair.server->control_fd()));
      CHECK(next_frame(*pair.server).starts_with("error: "));
    }
    SUBCASE("the server closes") {
      pair.server->close();
      CHECK(is_readable(pair.client->control_fd()));
      CHECK(next_frame(*pair.client).starts_with("error: "));
    }
    SUBCASE("the server is destroyed: what was sent before is still read") {
      REQUIRE(pair.server->send_frame(bytes_of("last words"), false).is_ok());
      pair.server.reset();
      CHECK(next_frame(*pair.client) == "last words");
      CHECK(next_frame(*pair.client).starts_with("error: "));
    }
  }

  TEST_CASE("memory outlives the peer") {
    Pair pair;
    pair.open();
    publish_word(pair.server->response_memory() + 64, 11);
    pair.client->stage_write(0, 192, 8, 22);
    SUBCASE("the server goes") {
      pair.server.reset();
      CHECK(observe_word(pair.client->response_image() + 64) == 11);
      pair.client->stage_write(0, 192, 8, 23);
      pair.client->ring(1);
    }
    SUBCASE("the client goes") {
      pair.client.reset();
      CHECK(observe_word(pair.server->request_memory() + 192) == 22);
      publish_word(pair.server->response_memory() + 64, 12);
      pair.server->deliver(0, 0, 64);
      CHECK(rung_lanes(*pair.server).empty());
    }
  }

  TEST_CASE("a client killed in the middle of writing is noticed; its half message stays where it was") {
    Pair pair;
    pair.client.reset();
    const pid_t child = ::fork();
    if (child == 0) {
      auto connected = connect("shm:" + pair.name);
      if (!connected) ::_exit(1);
      ClientEndpoint& client = *connected.value();
      while (!is_readable(client.control_fd(), 1000)) {
      }
      if (next_frame(client) != "grant" || !client.map_region(kShape)) ::_exit(2);
      client.stage_write(0, 192, 8, 33);
      client.ring(2);
      client.flush();
      ::raise(SIGKILL);
    }
    CHECK(next_frame(*pair.server).starts_with("error: "));
    REQUIRE(is_readable(pair.listener->fd(), 5000));
    auto accepted = pair.listener->accept();
    REQUIRE(accepted.is_ok());
    ServerEndpoint& server = *accepted.value();
    CHECK(server.peer() == "uid " + std::to_string(::geteuid()) + " pid " + std::to_string(child));
    REQUIRE(server.create_region(kShape).is_ok());
    REQUIRE(server.send_frame(bytes_of("grant"), true).is_ok());
    REQUIRE(is_readable(server.control_fd(), 5000));
    CHECK(next_frame(server).starts_with("error: "));
    CHECK(observe_word(server.request_memory() + 192) == 33);
    CHECK(rung_lanes(server) == Lanes{2});
    publish_word(server.response_memory(), 1);
    server.deliver(2, 0, 64);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status));
  }

  TEST_CASE("sessions that come and go leave no descriptor behind") {
    {
      Pair warm;
      warm.open();
    }
    const size_t before = open_fds();
    for (int i = 0; i < 50; ++i) {
      Pair pair;
      pair.open();
    }
    CHECK(open_fds() == before);
  }
}
