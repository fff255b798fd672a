// The values that follow from the backend's options, and the checks that the table cannot express.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "backend/config.h"
#include "backend/open_stores.h"
#include "backend/option_table.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "store/store.h"

using namespace egret::backend;
using egret::base::Options;

namespace {

egret::base::Expected<Config> resolved(const std::vector<std::string>& settings) {
  auto options = Options::load(option_table(), std::nullopt, settings);
  REQUIRE_MESSAGE(options.is_ok(), options.status().message());
  return resolve_config(options.value());
}

Config config_of(const std::vector<std::string>& settings) {
  auto config = resolved(settings);
  REQUIRE_MESSAGE(config.is_ok(), config.status().message());
  return config.value();
}

std::string error_of(const std::vector<std::string>& settings) {
  auto config = resolved(settings);
  return config ? "" : config.message();
}

}  // namespace

TEST_CASE("the defaults serve a laptop") {
  const Config config = config_of({});
  CHECK(config.listen == std::vector<std::string>{"shm:/run/egret/backend.sock"});
  CHECK(config.memory == 64 << 20);
  CHECK(config.item_size_max == 1 << 20);
  CHECK(config.evict);
  CHECK(config.partitions == 1);
  CHECK(config.local_session.window == 32);
  CHECK(config.local_session.request_slot == 16 << 10);
  CHECK(config.local_session.response_slot == 52 << 10);
  CHECK(config.local_session.most_memory == 8 << 20);
  CHECK(config.tcp_session.window == 8);
  CHECK(config.tcp_session.request_slot == 38 << 10);
  CHECK(config.tcp_session.response_slot == 132 << 10);
  CHECK(config.tcp_session.most_memory == 8 << 20);
  CHECK(config.rdma_session.window == 32);
  CHECK(config.rdma_session.request_slot == 4 << 10);
  CHECK(config.rdma_session.response_slot == 4 << 10);
  CHECK(config.rdma_session.most_memory == 1 << 20);
  CHECK_FALSE(config.park_always);
}

TEST_CASE("partitions: one for each 64 MiB, at most half of the CPUs, each with room for two of the largest items") {
  const auto cpus = static_cast<uint32_t>(egret::base::allowed_cpus().size());
  const uint32_t most = std::max(1u, cpus / 2);
  CHECK(config_of({"memory=16MiB"}).partitions == 1);
  CHECK(config_of({"memory=100GiB"}).partitions == std::min(most, 256u));
  CHECK(config_of({"memory=128MiB", "item_size_max=64MiB"}).partitions == 1);
  CHECK(config_of({"partitions=3"}).partitions == 3);
  const std::string error = error_of({"memory=4MiB", "partitions=3"});
  CHECK(error ==
        "--set memory=4MiB: memory: too small: with item_size_max=1MiB and partitions=3 use at least 6MiB, or lower "
        "item_size_max or partitions");
  CHECK(error_of({"memory=1MiB"}) ==
        "--set memory=1MiB: memory: too small: with item_size_max=1MiB use at least 2MiB, or lower item_size_max");
}

TEST_CASE("the least memory that is accepted is enough for a store, and a byte less is refused") {
  const egret::base::ManualClock clock;
  for (const uint64_t item_size_max : {uint64_t{1} << 10, uint64_t{100} << 10, uint64_t{512} << 10, uint64_t{700'000},
                                       uint64_t{1} << 20, uint64_t{3} << 20}) {
    CAPTURE(item_size_max);
    const std::string item = "item_size_max=" + std::to_string(item_size_max);
    const uint64_t least = egret::store::least_memory(static_cast<uint32_t>(item_size_max));
    for (const uint32_t partitions : {1u, 3u}) {
      const std::string memory = "memory=" + std::to_string(least * partitions);
      const Config config = config_of({item, memory, "partitions=" + std::to_string(partitions)});
      CHECK(open_stores(config, 1, clock).is_ok());
      CHECK_FALSE(error_of({item, memory, "partitions=" + std::to_string(partitions + 1)}).empty());
    }
    if (least > 1 << 20) CHECK_FALSE(error_of({item, "memory=" + std::to_string(least - 1)}).empty());
    CHECK(config_of({item, "memory=" + std::to_string(least)}).partitions == 1);
  }
  CHECK(error_of({"memory=300GiB", "partitions=1"}).find("memory: too large: with partitions=1 use at most 256GiB") !=
        std::string::npos);
  CHECK(config_of({"memory=256GiB", "partitions=1"}).partitions == 1);
}

TEST_CASE("warm_restart names an existing directory, or the beginning of the files' names") {
  CHECK(config_of({}).warm_restart.empty());
  CHECK(config_of({}).populate);
  CHECK_FALSE(config_of({"populate=no"}).populate);
  CHECK(config_of({"warm_restart=/tmp"}).warm_restart == "/tmp");
  CHECK(config_of({"warm_restart=/tmp/egret"}).warm_restart == "/tmp/egret");
  CHECK(warm_file("/tmp", 3) == "/tmp/partition-3");
  CHECK(warm_file("/tmp/egret-none", 0) == "/tmp/egret-none.0");
  CHECK(error_of({"warm_restart=/none/egret"}) ==
        "--set warm_restart=/none/egret: warm_restart: there is no directory /none");
  CHECK(error_of({"warm_restart=/none/"}).find("there is no directory /none") != std::string::npos);
}

TEST_CASE("slots that no region can be made of are refused with the arithmetic") {
  CHECK(error_of({"request_slot_size=4100"}).find("request_slot_size: expected a multiple of 64") != std::string::npos);
  CHECK(error_of({"response_slot_size=4100"}).find("response_slot_size: ") != std::string::npos);
  const std::string error = error_of({"partitions=16", "memory=64MiB", "session_memory=64KiB"});
  CHECK(error.find("session_memory: too small: the smallest session is 16 lanes x 2 slots of 4096 + 4096 bytes") !=
        std::string::npos);
  const Config small = config_of({"partitions=4", "session_memory=66KiB"});
  CHECK(small.rdma_session.most_memory == 66 << 10);
  CHECK(small.local_session.most_memory == 66 << 10);
  CHECK(small.tcp_session.most_memory == 66 << 10);
  CHECK(small.local_session.request_slot == 4 << 10);
  CHECK(small.local_session.response_slot == 4 << 10);
  struct Shrunk {
    const char* partitions;
    uint32_t request, response;  // KiB
  };
  for (const Shrunk& expected : std::initializer_list<Shrunk>{
           {"partitions=3", 16, 52}, {"partitions=4", 16, 26}, {"partitions=8", 16, 13}, {"partitions=9", 8, 13}}) {
    CAPTURE(expected.partitions);
    const Config config = config_of({expected.partitions, "memory=64MiB"});
    CHECK(config.local_session.request_slot == expected.request << 10);
    CHECK(config.local_session.response_slot == expected.response << 10);
  }
  const Config many = config_of({"partitions=16", "memory=64MiB"});
  CHECK(many.tcp_session.request_slot == 16 << 10);
  CHECK(many.tcp_session.response_slot == 33 << 10);
  const Config some = config_of({"partitions=7", "memory=64MiB"});
  CHECK(some.tcp_session.request_slot == 16 << 10);
  CHECK_MESSAGE(some.tcp_session.response_slot == 66 << 10, "seven windows of 16 + 132 KiB are more than 8 MiB");
  CHECK(config_of({"partitions=6", "memory=64MiB"}).tcp_session.request_slot == 38 << 10);
  CHECK(config_of({"partitions=6", "memory=64MiB"}).tcp_session.response_slot == 132 << 10);
  const Config half = config_of({"partitions=9", "memory=64MiB", "request_slot_size=16KiB"});
  CHECK(half.local_session.request_slot == 16 << 10);
  CHECK(half.local_session.response_slot == 6656);
  const Config given = config_of({"request_slot_size=1KiB", "response_slot_size=8KiB"});
  for (const SessionSize& size : {given.local_session, given.tcp_session, given.rdma_session}) {
    CHECK(size.request_slot == 1 << 10);
    CHECK(size.response_slot == 8 << 10);
  }
  const Config wide = config_of({"window=5"});
  for (const SessionSize& size : {wide.local_session, wide.tcp_session, wide.rdma_session}) CHECK(size.window == 5);
  CHECK(error_of({"window=1"}).find("window: expected 0, or 2 and more") != std::string::npos);
  CHECK(error_of({"response_slot_size=512"}).find("expected 0, or 1KiB and more") != std::string::npos);
  CHECK(error_of({"session_memory=1KiB"}).find("expected 0, or 16KiB and more") != std::string::npos);
}

TEST_CASE("addresses and user ids are looked at before anything starts") {
  CHECK(error_of({"listen=udp:1.2.3.4:5"}).find("listen: ") != std::string::npos);
  CHECK(config_of({"listen=shm:@a,shm:/b"}).listen.size() == 2);
  CHECK(config_of({"allowed_uids=33,1000"}).allowed_uids == std::vector<uint32_t>{33, 1000});
  for (const char* bad : {"allowed_uids=www-data", "allowed_uids=-1", "allowed_uids=4294967296", "allowed_uids=1x"}) {
    CHECK(error_of({bad}).find("allowed_uids: expected numeric user ids") != std::string::npos);
  }
}

TEST_CASE("pin and lane_idle follow the machine unless told") {
  CHECK(config_of({"pin=on"}).pin);
  CHECK_FALSE(config_of({"pin=on"}).follow);
  CHECK_FALSE(config_of({"pin=off"}).pin);
  CHECK_FALSE(config_of({"pin=off"}).follow);
  CHECK(config_of({"pin=follow", "partitions=3"}).follow);
  CHECK_FALSE(config_of({"pin=follow"}).pin);
  CHECK_FALSE_MESSAGE(config_of({"partitions=2"}).follow, "several would gather on one worker's CPU");
  CHECK(config_of({"lane_idle=7ms"}).lane_idle_ns == 7'000'000);
  CHECK(config_of({}).lane_idle_ns > 0);
}

TEST_CASE("the secret is read when the options are, and what is wrong with its file names the option") {
  CHECK(config_of({}).secrets.empty());
  CHECK(config_of({"secret_file="}).secrets.empty());
  CHECK(error_of({"secret_file=/none"}) ==
        "--set secret_file=/none: secret_file: cannot read /none: No such file or "
        "directory");
  CHECK(error_of({"secret_file=/dev/null"}).find("secret_file: /dev/null is not a regular file") != std::string::npos);
}

TEST_CASE("further secrets have names and files of their own") {
  CHECK(error_of({"secret_files=next"}).find("secret_files: expected NAME=FILE, got \"next\"") != std::string::npos);
  CHECK(error_of({"secret_files==/none"}).find("expected NAME=FILE") != std::string::npos);
  CHECK(error_of({"secret_files=next=/none"}).find("secret_files: cannot read /none") != std::string::npos);
}

TEST_CASE("groups are numbers, rights are words, and a secret that rights name exists") {
  CHECK(config_of({"allowed_gids=4,100"}).allowed_gids == std::vector<uint32_t>{4, 100});
  CHECK(error_of({"allowed_gids=staff"}).find("allowed_gids: expected numeric group ids") != std::string::npos);
  const auto peer = egret::access::Peer{.has_user = true, .uid = 33, .gids = {100}};
  CHECK(config_of({"rights=uid=33:flush"}).rights.of(peer, 1) == egret::op::kMayFlush);
  CHECK(error_of({"rights=uid=33:fly"}).find("rights: expected entries like uid=33:read+write") != std::string::npos);
  CHECK(error_of({"rights=secret=next:all"}).find("rights: there is no secret named next") != std::string::npos);
}

TEST_CASE("limits of sessions follow from this host unless told, and what is told holds") {
  using egret::access::kUnlimited;
  using egret::access::Quota;
  const Config own = config_of({"partitions=2"});
  CHECK(own.quota.sessions_of_peer == Quota::kShare);
  CHECK(own.quota.memory_of_peer == Quota::kShare);
  CHECK(own.quota.sessions.value >= 1);
  CHECK_FALSE(own.quota.sessions.arithmetic.empty());
  CHECK_FALSE(own.quota.memory.arithmetic.empty());
  CHECK(own.quota.least_bytes == 2 * (64 + 2 * (1216 + 1216)));
  CHECK(own.needs.descriptors * own.quota.sessions.value + own.needs.other_descriptors <= own.room.descriptors);

  const auto rings_of = [](const std::vector<std::string>& settings) { return config_of(settings).quota.lane_rings; };
  CHECK(rings_of({"partitions=2"}) == egret::access::lane_rings_of(own.room));
  CHECK_MESSAGE(rings_of({"partitions=1"}) == 0, "one lane has one ring anyhow");
  CHECK_MESSAGE(rings_of({"partitions=2", "listen=tcp:127.0.0.1:1"}) == 0, "a connection is rung by what it sends");
  CHECK(rings_of({"partitions=2", "listen=local:store"}) == 0);
  CHECK_MESSAGE(rings_of({"partitions=33", "memory=8GiB"}) == 0, "no session of so many lanes has them");
  const uint64_t left = own.room.descriptors - std::min<uint64_t>(own.room.descriptors, 65536 * own.needs.descriptors);
  CHECK_MESSAGE(rings_of({"partitions=2", "max_sessions=65536"}) <= left,
                "the sessions that the option says come first");

  const Config told = config_of(
      {"max_sessions=7", "sessions_per_peer=3", "session_memory_total=1GiB", "session_memory_per_peer=512MiB"});
  CHECK(told.quota.sessions.value == 7);
  CHECK(told.quota.sessions.arithmetic.empty());
  CHECK(told.quota.sessions_of_peer == 3);
  CHECK(told.quota.memory.value == uint64_t{1} << 30);
  CHECK(told.quota.memory_of_peer == uint64_t{512} << 20);
  const Config none = config_of({"sessions_per_peer=0", "session_memory_total=0", "session_memory_per_peer=0"});
  CHECK(none.quota.sessions_of_peer == kUnlimited);
  CHECK(none.quota.memory.value == kUnlimited);
  CHECK(none.quota.memory_of_peer == kUnlimited);
  const std::vector<std::string> zero{"max_sessions=0"};
  CHECK(
      Options::load(option_table(), std::nullopt, zero).message().find("expected auto or an integer from 1 to 65536") !=
      std::string::npos);
}

TEST_CASE("what a session takes is that of the dearest transport that is listened at") {
  CHECK(config_of({"listen=tcp:127.0.0.1:1"}).needs.descriptors == 2);
  CHECK(config_of({"listen=tcp:127.0.0.1:1,shm:@x"}).needs.descriptors == 4);
  CHECK_FALSE(config_of({"listen=tcp:127.0.0.1:1"}).needs.is_pinned);
  const Config rdma = config_of({"listen=rdma:*:1"});
  CHECK(rdma.needs.is_pinned);
  CHECK(rdma.needs.mappings == 0);
  CHECK(rdma.needs.queue_bytes > 0);
}

TEST_CASE("a thousand idle hosts pin at most 128 MB on a backend of 16 partitions, with the queues of their sessions") {
  const Config backend = config_of({"listen=rdma:*:1", "partitions=16", "memory=1GiB"});
  const uint64_t slots = (backend.needs.least_bytes + 2 * 4095) / 4096 * 4096;  // two memories, each of whole pages
  CHECK(1000 * (slots + backend.needs.queue_bytes) <= 128'000'000);
}

TEST_CASE("options stand by group, few are marked as usual, and those for experts say what measures them") {
  using egret::base::OptionGroup;
  size_t usual = 0;
  OptionGroup last = OptionGroup::kListening;
  for (const egret::base::OptionRow& row : option_table()) {
    CAPTURE(row.name);
    CHECK(row.group >= last);
    CHECK((row.group == OptionGroup::kExpert) == !row.measured_by.empty());
    CHECK_FALSE((row.group == OptionGroup::kExpert && row.is_usual));
    last = row.group;
    usual += row.is_usual ? 1 : 0;
  }
  CHECK(usual <= 6);
}
