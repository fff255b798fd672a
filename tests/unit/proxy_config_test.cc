// The values that follow from the proxy's options, and the checks that the table cannot express.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/cpu.h"
#include "discovery/learn.h"
#include "proxy/config.h"
#include "proxy/option_table.h"
#include "proxy/slots/host_door.h"

using namespace egret::proxy;
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

std::string error_of(const std::string& setting) {
  auto config = resolved({setting});
  return config ? "" : config.message();
}

std::vector<egret::pool::Member> members_of(const Config& config) {
  return egret::discovery::learn_members(config.directory, std::chrono::milliseconds(1)).members;
}

}  // namespace

TEST_CASE("the defaults are memcached's address and the backend of this host") {
  const Config config = config_of({});
  REQUIRE(config.listen.size() == 1);
  CHECK_FALSE(config.listen[0].is_unix());
  CHECK(config.listen[0].host == "127.0.0.1");
  CHECK(config.listen[0].port == 11211);
  const std::vector<egret::pool::Member> backends = members_of(config);
  REQUIRE(backends.size() == 1);
  CHECK(backends[0].address == "shm:/run/egret/backend.sock");
  CHECK(backends[0].name == "/run/egret/backend.sock");
  CHECK(backends[0].weight == 1);
  CHECK(config.workers >= 1);
  CHECK(config.workers <= 4);
  CHECK(config.session.spin_ns > 0);
  CHECK(config.session.op_timeout_ns == 2'000'000'000);
  CHECK(config.session.fetch.mode == egret::rpc::FetchMode::kAuto);
  CHECK(config.session.fetch.max_refetches == 5);
  CHECK(config.session.fetch.min_fetch == 256);
  CHECK(config.session.fetch.max_fetch == 65536);
}

TEST_CASE("how lanes wait: the mode, and F's bounds, which are multiples of a cache line in order") {
  using egret::rpc::FetchMode;
  CHECK(config_of({"fetch_mode=auto"}).session.fetch.mode == FetchMode::kAuto);
  CHECK(config_of({"fetch_mode=fetch"}).session.fetch.mode == FetchMode::kFetch);
  CHECK(config_of({"fetch_mode=reply"}).session.fetch.mode == FetchMode::kReply);
  const Config config = config_of({"fetch_min=64", "fetch_max=64KiB"});
  CHECK(config.session.fetch.min_fetch == 64);
  CHECK(config.session.fetch.max_fetch == 65536);
  CHECK(config_of({"fetch_min=512", "fetch_max=512"}).session.fetch.max_fetch == 512);
  for (const char* bad : {"fetch_min=100", "fetch_max=1000"}) {
    CHECK(error_of(bad).find("expected a multiple of 64") != std::string::npos);
  }
  CHECK(error_of("fetch_max=128") == "--set fetch_max=128: fetch_max: less than fetch_min, which is 256");
  for (const char* bad : {"fetch_min=0", "fetch_max=128KiB", "fetch_mode=push"}) {
    CAPTURE(bad);
    CHECK_FALSE(Options::load(option_table(), std::nullopt, std::vector<std::string>{bad}).is_ok());
  }
}

TEST_CASE("addresses of every form") {
  const Config config = config_of({"listen=tcp:0.0.0.0:1,tcp:[::1]:65535,tcp:localhost:0,unix:/run/a b"});
  REQUIRE(config.listen.size() == 4);
  CHECK(config.listen[0].host == "0.0.0.0");
  CHECK(config.listen[0].port == 1);
  CHECK(config.listen[1].host == "::1");
  CHECK(config.listen[1].port == 65535);
  CHECK(config.listen[2].host == "localhost");
  CHECK(config.listen[2].port == 0);
  CHECK(config.listen[3].is_unix());
  CHECK(config.listen[3].host == "/run/a b");
}

TEST_CASE("an address is written as it was given") {
  for (const char* text : {"tcp:0.0.0.0:1", "tcp:[::1]:65535", "tcp:localhost:0", "unix:/run/a b"}) {
    CHECK(config_of({"listen=" + std::string(text)}).listen[0].to_string() == text);
  }
}

TEST_CASE("limits on connections: none refused, none idle, unless it is said") {
  CHECK(config_of({}).maxconns_fast);
  CHECK(config_of({}).idle_timeout_ns == 0);
  const Config config = config_of({"maxconns_fast=off", "idle_timeout=5m"});
  CHECK_FALSE(config.maxconns_fast);
  CHECK(config.idle_timeout_ns == 300'000'000'000);
}

TEST_CASE("what is no address is refused, with what one looks like") {
  for (const char* bad : {"127.0.0.1:11211", "tcp:", "tcp:11211", "tcp::11211", "tcp:host", "tcp:host:", "tcp:host:x",
                          "tcp:host:65536", "tcp:host:-1", "tcp:host:1x", "tcp:host: 1", "unix:", "udp:host:1",
                          "tls:", "tls:host", "tls:host:65536", "tlstcp:host:1"}) {
    CAPTURE(bad);
    CHECK(error_of("listen=" + std::string(bad))
              .find("listen: expected tcp:HOST:PORT, tls:HOST:PORT or unix:PATH, got \"") != std::string::npos);
  }
  CHECK(error_of("backends=udp:host:1").find("backends: ") != std::string::npos);
  CHECK(error_of("unix_mode=0789").find("unix_mode: expected an octal mode") != std::string::npos);
  CHECK(error_of("unix_mode=0777") == "");
}

TEST_CASE("an address that is no address is refused before anybody looks it up") {
  for (const char* bad : {"300.0.0.1", "1.2.3.4.5", "1.2.3.256", "[::g]", "[1:2]"}) {
    CAPTURE(bad);
    const std::string host(bad);
    CHECK(error_of("listen=tcp:" + host + ":11211").find(" is no IPv") != std::string::npos);
    CHECK(error_of("backends=rdma:" + host + ":7000 name=x").find(" is no IPv") != std::string::npos);
    CHECK(error_of("admin=" + host + ":11280").find(" is no IPv") != std::string::npos);
  }
  CHECK(error_of("listen=tcp:300.0.0.1:1") ==
        "--set listen=tcp:300.0.0.1:1: listen: tcp:300.0.0.1:1: \"300.0.0.1\" is no IPv4 address");
  for (const char* good : {"127.1", "10.0.0.1", "[::1]", "[fe80::1%eth0]", "*", "host-1.example.org", "3com.example"}) {
    CAPTURE(good);
    CHECK(error_of("listen=tcp:" + std::string(good) + ":11211") == "");
    CHECK(error_of("admin=" + std::string(good) + ":11280") == "");
  }
}

TEST_CASE("the admin address may be asked by the listed names and by the one that it has itself") {
  using Names = std::vector<std::string>;
  CHECK(config_of({"admin=127.0.0.1:1", "admin_hosts=a.example,B"}).admin.hosts ==
        Names{"a.example", "B", "127.0.0.1"});
  CHECK(config_of({"admin=metrics.example:1"}).admin.hosts == Names{"metrics.example"});
  CHECK(config_of({"admin=*:1"}).admin.hosts.empty());
  CHECK(config_of({"admin=unix:/run/a"}).admin.hosts.empty());
}

TEST_CASE("a pool: weights and names, which are the addresses' own if not given") {
  const Config config = config_of(
      {"backends=shm:/run/a,  shm:@b weight=1000, shm:/run/c  name=10.0.0.1:11211  weight=2 , shm:d name=shm:/run/a"});
  const std::vector<egret::pool::Member> backends = members_of(config);
  REQUIRE(backends.size() == 4);
  const auto check = [&](size_t number, std::string_view address, std::string_view name, uint32_t weight) {
    CHECK(backends[number].address == address);
    CHECK(backends[number].name == name);
    CHECK(backends[number].weight == weight);
  };
  check(0, "shm:/run/a", "/run/a", 1);
  check(1, "shm:@b", "@b", 1000);
  check(2, "shm:/run/c", "10.0.0.1:11211", 2);
  check(3, "shm:d", "shm:/run/a", 1);
  CHECK(backends[0].to_string() == "shm:/run/a");
  CHECK(backends[2].to_string() == "10.0.0.1:11211 (shm:/run/c)");
}

TEST_CASE("a backend on another host is named as libmemcached names a server") {
  const Config config = config_of({"backends=rdma:10.0.0.1:11211,rdma:cache.example.org:7000,rdma:[::1]:7001"});
  const std::vector<egret::pool::Member> backends = members_of(config);
  REQUIRE(backends.size() == 3);
  CHECK(backends[0].name == "10.0.0.1:11211");
  CHECK(backends[1].name == "cache.example.org:7000");
  CHECK(backends[2].name == "::1:7001");
  CHECK(error_of("backends=rdma:10.0.0.1:11211,shm:/a name=10.0.0.1").find("two of them are named \"10.0.0.1\"") !=
        std::string::npos);
}

TEST_CASE("1,024 backends at most") {
  std::string list = "backends=shm:/0";
  for (int i = 1; i < 1024; ++i) list += ",shm:/" + std::to_string(i);
  CHECK(members_of(config_of({list})).size() == 1024);
  CHECK_FALSE(Options::load(option_table(), std::nullopt, std::vector<std::string>{list + ",shm:/1024"}).is_ok());
}

TEST_CASE("backends that are names or come from a file") {
  const Config named = config_of({"backends=dns+rdma:cache.example:11311 weight=2,srv+rdma:_egret._tcp.pool,shm:/a"});
  CHECK(named.directory.entries.size() == 3);
  CHECK(most_backends(named) == 64);
  CHECK(most_backends(config_of({"backends=shm:/a,shm:/b"})) == 2);
  CHECK(error_of("backends=dns+rdma:cache.example").find("backends: ") != std::string::npos);
  CHECK(error_of("backends=srv+rdma:a,srv+rdma:a").find("is there twice") != std::string::npos);
  CHECK(config_of({"backends_file=/m"}).directory.entries.empty());
  CHECK(config_of({"backends_file=/m"}).directory.file.copy_path == "/m.good");
  CHECK(config_of({"backends_file=/m", "backends=shm:/a"}).directory.entries.size() == 1);
  CHECK(config_of({"dns_servers=10.0.0.10,[::1]:5353"}).directory.names.resolver.servers == "10.0.0.10,[::1]:5353");
  CHECK(error_of("dns_servers=nobody").find("dns_servers: ") != std::string::npos);
}

TEST_CASE("what is wrong with a backend is one line that names it") {
  const auto check = [](const std::string& value, std::string_view what) {
    const std::string error = error_of("backends=" + value);
    CAPTURE(error);
    CHECK(error.find("backends: ") != std::string::npos);
    CHECK(error.find(what) != std::string::npos);
    CHECK(error.find('\n') == std::string::npos);
  };
  for (const char* weight : {"0", "1001", "-1", "", "x", "1x", "1.5", "99999999999"}) {
    check("shm:/a weight=" + std::string(weight), "expected weight=N with an N from 1 to 1000, got \"shm:/a weight=");
  }
  check("shm:/a name=", "expected name=NAME with a NAME of 1 to 255 bytes");
  check("shm:/a name=" + std::string(256, 'n'), "expected name=NAME with a NAME of 1 to 255 bytes");
  check("shm:/a wieght=2", "expected ADDRESS [weight=N] [name=NAME], got \"shm:/a wieght=2\"");
  check("weight=2 shm:/a", "weight=2");
  check("shm:/a shm:/b", "expected ADDRESS [weight=N] [name=NAME]");
  check("shm:/a,shm:/a", "two of them are named \"/a\"");
  check("shm:/a name=x,shm:/b name=x weight=2", "two of them are named \"x\"");
  check("shm:/a name=host,shm:/b name=host:11211", "two of them are named \"host\"");
}

TEST_CASE("two names of one address are two shares of it") {
  CHECK(config_of({"backends=shm:/a name=x,shm:/a name=y"}).directory.entries.size() == 2);
}

TEST_CASE("what the sessions need is handed on") {
  const Config config = config_of(
      {"window=16", "op_timeout=5s", "reconnect_max=3s", "spin=7us", "max_refetches=9", "workers=3", "pin=on"});
  CHECK(config.session.window == 16);
  CHECK(config.session.request_slot_size == 0);
  const Config small = config_of({"request_slot_size=1536", "response_slot_size=2KiB"});
  CHECK(small.session.request_slot_size == 1536);
  CHECK(small.session.response_slot_size == 2048);
  CHECK(config.session.op_timeout_ns == 5'000'000'000);
  CHECK(config.session.backoff_max_ns == 3'000'000'000);
  CHECK(config.session.spin_ns == 7'000);
  CHECK(config.session.fetch.max_refetches == 9);
  CHECK(config.workers == 3);
  CHECK(config.pin);
}

TEST_CASE("lanes of programs on this host are polled for longer where there is a CPU for them") {
  const auto cpus = static_cast<uint32_t>(egret::base::allowed_cpus().size());
  const auto idle_ns = [](uint32_t workers, const std::string& idle) {
    return config_of({"workers=" + std::to_string(workers), "spin=7us", "slots_idle=" + idle}).slots.idle_ns;
  };
  CHECK(idle_ns(cpus, "0") == 7'000);
  if (cpus > 1) CHECK(idle_ns(cpus - 1, "0") == 50'000);
  CHECK(idle_ns(cpus, "20us") == 20'000);
}

TEST_CASE("how sessions use the fabric: 1.9 s for a dead host and the host's own choice, unless it is said") {
  const auto fabric_of = [](const std::vector<std::string>& options) {
    return config_of(options).session.connect.fabric;
  };
  const auto plain = fabric_of({});
  CHECK(plain.ack_timeout == 16);
  CHECK_FALSE(plain.tos);
  CHECK_FALSE(plain.gid_index);
  CHECK_FALSE(plain.pkey);
  const auto set = fabric_of({"ack_timeout=20", "tos=104", "gid_index=0", "pkey=0x8001"});
  CHECK(set.ack_timeout == 20);
  CHECK(set.tos == 104);
  CHECK(set.gid_index == 0);
  CHECK(set.pkey == 0x8001);
  for (const char* pkey : {"8001", "0x", "0x8000", "0xg", "0x80 1"}) {
    CHECK(error_of(std::string("pkey=") + pkey).find("pkey: expected a partition like 0x8001, got ") !=
          std::string::npos);
  }
}

TEST_CASE("the secret is read when the options are, and what is wrong with its file names the option") {
  CHECK_FALSE(config_of({}).session.secret.is_set());
  CHECK(error_of("secret_file=/none") ==
        "--set secret_file=/none: secret_file: cannot read /none: No such file or directory");
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

TEST_CASE("slots are beside the addresses of clients, at others that are named, or nowhere") {
  CHECK(config_of({}).slots.has_twins);
  CHECK(config_of({}).slots.addresses.empty());
  const SlotOptions both = config_of({"slots=auto,/run/egret/slots,@egret"}).slots;
  CHECK(both.has_twins);
  CHECK(both.addresses == std::vector<std::string>{"/run/egret/slots", "@egret"});
  CHECK_FALSE(config_of({"slots=/run/egret/slots"}).slots.has_twins);
  CHECK_FALSE(config_of({"slots=none"}).slots.is_on());
  CHECK(error_of("slots=none,@egret").find("none stands beside others") != std::string::npos);
  CHECK(error_of("slots=egret").find("expected auto, none, a path or @NAME") != std::string::npos);
  CHECK(config_of({"slots_uids=33,34", "slots_gids=5"}).slots.uids == std::vector<uint32_t>{33, 34});
  CHECK(error_of("slots_uids=www-data").find("slots_uids") != std::string::npos);
  CHECK(error_of("slots_request_size=1100").find("expected a multiple of 64") != std::string::npos);
}

TEST_CASE("sessions are each worker's own unless one is wanted for each host") {
  CHECK_FALSE(config_of({}).is_session_per_host);
  CHECK_FALSE(config_of({"sessions=worker"}).is_session_per_host);
  CHECK(config_of({"sessions=host"}).is_session_per_host);
}

TEST_CASE("with sessions by host the backends of other hosts are shared out, each to one worker") {
  const Config config = config_of({"sessions=host", "workers=4", "backends=tcp:10.0.0.1:1 name=a,shm:/b name=b"});
  const std::vector<egret::pool::Member> members = members_of(config);
  const auto reached_by_others = [&](const egret::pool::Member& member) {
    int count = 0;
    for (uint32_t worker = 0; worker < 4; ++worker) count += is_handed_over(config, member, worker);
    return count;
  };
  CHECK(reached_by_others(members[0]) == 3);
  CHECK_FALSE(is_handed_over(config, members[0], host_worker(members[0], 4)));
  CHECK(reached_by_others(members[1]) == 0);
  CHECK_FALSE(is_handed_over(config_of({"workers=4"}), members[0], 0));
}
