// The text of `stats`: well-formed, memcached's names, the sums of the workers, and what a reset leaves.
#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "discovery/learn.h"
#include "proxy/option_table.h"
#include "proxy/report/stats_report.h"
#include "proxy_paged.h"

using namespace egret::proxy;

namespace {

struct Proxy {
  Proxy() {
    auto options = egret::base::Options::load(
        option_table(), std::nullopt,
        std::vector<std::string>{"listen=unix:/x,tcp:1.2.3.4:5", "workers=2", "backends=shm:/a,rdma:[::1]:2 name=two"});
    REQUIRE(options.is_ok());
    config = resolve_config(options.value()).value();
    source.config.set(config);
    source.clock = &clock;
    source.start_ns = clock.now_ns();
    for (int i = 0; i < 2; ++i) source.workers.push_back(std::make_unique<WorkerStats>());
    source.membership.set(egret::pool::Membership(
        config.placement, egret::discovery::learn_members(config.directory, std::chrono::milliseconds(1)).members, 2,
        {}));
    const auto membership = source.membership.get();
    for (size_t worker = 0; worker < 2; ++worker) {
      for (const auto& member : membership->members()) sessions[worker].push_back(member.stats->sessions[worker]);
    }
  }
  Config config;
  egret::base::ManualClock clock{1'700'000'000};
  std::vector<std::shared_ptr<egret::rpc::SessionCounters>> sessions[2];  // by worker and backend
  ProxyState source;
};

// The two ends of a connection; `here` is the proxy's.
struct Ends {
  egret::base::UniqueFd here, there;
};

Ends unix_ends() {
  int fds[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
  return {egret::base::UniqueFd(fds[0]), egret::base::UniqueFd(fds[1])};
}

Ends tcp_ends() {
  const egret::base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  REQUIRE(::bind(listener.get(), at, length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  REQUIRE(::getsockname(listener.get(), at, &length) == 0);
  Ends ends{.here = {}, .there = egret::base::UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  REQUIRE(::connect(ends.there.get(), at, length) == 0);
  ends.here.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(ends.here.is_open());
  return ends;
}

// No backend at all: its counters are 0.
struct Nobody final : egret::pool::FanOutOwner {
  void on_fan_out(const egret::pool::FanOut& fan_out) override { text = general_report(*source, fan_out, 0); }
  ProxyState* source = nullptr;
  std::string text;
};

std::map<std::string, std::string> rows_of(const std::string& text) {
  std::map<std::string, std::string> rows;
  REQUIRE(text.ends_with("END\r\n"));
  std::istringstream lines(text.substr(0, text.size() - 5));
  for (std::string line; std::getline(lines, line);) {
    REQUIRE(line.starts_with("STAT "));
    REQUIRE(line.ends_with('\r'));
    const size_t space = line.find(' ', 5);
    REQUIRE(space != std::string::npos);
    const std::string name = line.substr(5, space - 5);
    CHECK_FALSE(rows.contains(name));
    rows[name] = line.substr(space + 1, line.size() - space - 2);
  }
  return rows;
}

std::map<std::string, std::string> general(ProxyState& source) {
  egret::pool::Pool router({});
  Nobody owner;
  owner.source = &source;
  (new egret::pool::FanOut(router, {}, owner))->start();  // deletes itself
  return rows_of(owner.text);
}

}  // namespace

TEST_CASE("the general report has a row for each counter, once, under memcached's names") {
  Proxy proxy;
  proxy.clock.advance_seconds(61);
  const auto rows = general(proxy.source);
  CHECK(rows.at("pid") == std::to_string(::getpid()));
  CHECK(rows.at("uptime") == "61");
  CHECK(rows.at("time") == "1700000061");
  CHECK(rows.at("version") == "1.6.45");
  CHECK(rows.at("pointer_size") == "64");
  CHECK(rows.at("threads") == "2");
  CHECK(rows.at("rusage_user").find('.') == rows.at("rusage_user").size() - 7);
  CHECK(rows.at("egret_backends") == "0");
  CHECK(rows.at("egret_backends_up") == "0");
  for (const char* name : {"cmd_get", "cmd_set", "get_hits", "curr_items", "bytes", "limit_maxbytes", "evictions"}) {
    CHECK(rows.at(name) == "0");
  }
}

TEST_CASE("the store's inner life is in the general report, as rows of our own") {
  Proxy proxy;
  const auto rows = general(proxy.source);
  for (const char* name : {"expired", "ghost_hits", "copied_bytes", "inserted_bytes", "segments", "segment_live_bytes",
                           "large_pages", "index_pages", "free_pages", "sweeps", "steps_1us", "steps_over_64us"}) {
    CAPTURE(name);
    CHECK(rows.contains("egret_" + std::string(name)));
    CHECK_FALSE(rows.contains(name));
  }
}

TEST_CASE("counters are added up over workers; a reset starts those anew that memcached starts anew") {
  Proxy proxy;
  for (const auto& worker : proxy.source.workers) {
    worker->curr_connections.add(5);
    worker->curr_connections.sub(1);
    worker->total_connections.add(10);
    worker->bytes_read.add(100);
  }
  for (auto& worker : proxy.sessions) {
    worker[0]->lane(1).fetches.add(3);
    worker[1]->lane(0).fetches.add(4);
  }
  proxy.source.accepts.rejected_connections.add(3);
  auto rows = general(proxy.source);
  CHECK(rows.at("curr_connections") == "8");
  CHECK(rows.at("total_connections") == "20");
  CHECK(rows.at("bytes_read") == "200");
  CHECK(rows.at("egret_fetches") == "14");
  CHECK(rows.at("rejected_connections") == "3");
  reset_stats(proxy.source);
  proxy.source.workers[1]->bytes_read.add(1);
  rows = general(proxy.source);
  CHECK(rows.at("curr_connections") == "8");
  CHECK(rows.at("total_connections") == "0");
  CHECK(rows.at("bytes_read") == "1");
  CHECK(rows.at("egret_fetches") == "0");
  CHECK(rows.at("rejected_connections") == "0");
}

TEST_CASE("rows of what is switched off are left out, as memcached's") {
  Proxy proxy;
  proxy.source.workers[0]->idle_kicks.add(2);
  proxy.source.accepts.disabled.add(7);
  proxy.source.accepts.disabled_us.add(70);
  auto rows = general(proxy.source);
  for (const char* name : {"idle_kicks", "ssl_new_sessions", "ssl_handshake_errors", "ssl_proto_errors"}) {
    CAPTURE(name);
    CHECK_FALSE(rows.contains(name));
  }
  CHECK(rows.contains("rejected_connections"));
  CHECK(rows.at("accepting_conns") == "1");
  CHECK(rows.at("listen_disabled_num") == "7");
  CHECK(rows.at("time_in_listen_disabled_us") == "70");
  proxy.config.maxconns_fast = false;
  proxy.config.idle_timeout_ns = 1;
  proxy.source.config.set(proxy.config);
  proxy.source.accepts.is_disabled.set(1);
  rows = general(proxy.source);
  CHECK(rows.at("idle_kicks") == "2");
  CHECK(rows.at("accepting_conns") == "0");
  CHECK_FALSE(rows.contains("rejected_connections"));
  reset_stats(proxy.source);
  rows = general(proxy.source);
  CHECK(rows.at("idle_kicks") == "0");
  CHECK(rows.at("listen_disabled_num") == "0");
  CHECK(rows.at("time_in_listen_disabled_us") == "0");
  CHECK(rows.at("accepting_conns") == "0");
}

TEST_CASE("stats conns: listeners and connections of all workers, by descriptor, under memcached's names") {
  Proxy proxy;
  proxy.source.listeners.set({{2, "tcp:1.2.3.4:5"}});
  const Ends unnamed = unix_ends(), gone = unix_ends(), tcp = tcp_ends();
  auto& gone_record = proxy.source.workers[0]->connections.add(gone.here.get(), 0);
  auto& one = proxy.source.workers[0]->connections.add(tcp.here.get(), proxy.clock.now_ns());
  one.state = ConnectionState::kValue;
  auto& two = proxy.source.workers[1]->connections.add(unnamed.here.get(), 0);
  proxy.source.workers[0]->connections.remove(gone_record);
  proxy.clock.advance_seconds(3);
  two.last_active_ns = proxy.clock.now_ns();
  const std::string of_unnamed = "STAT " + std::to_string(unnamed.here.get()) + ":";
  const std::string of_tcp = "STAT " + std::to_string(tcp.here.get()) + ":";
  CHECK(whole(connections_report(proxy.source)) ==
        "STAT 2:addr tcp:1.2.3.4:5\r\nSTAT 2:state conn_listening\r\nSTAT 2:secs_since_last_cmd 3\r\n" + of_unnamed +
            "addr unix:<AF 1>\r\n" + of_unnamed + "listen_addr unix:<AF 1>\r\n" +               //
            of_unnamed + "state conn_new_cmd\r\n" + of_unnamed + "secs_since_last_cmd 0\r\n" +  //
            of_tcp + "addr " + local_address_text(tcp.there.get()) + "\r\n" +                   //
            of_tcp + "listen_addr " + peer_address_text(tcp.there.get()) + "\r\n" +             //
            of_tcp + "state conn_nread\r\n" + of_tcp + "secs_since_last_cmd 3\r\nEND\r\n");
}

TEST_CASE("stats conns: the address of a client that has reset its connection is still told") {
  Proxy proxy;
  Ends tcp = tcp_ends();
  const std::string address = local_address_text(tcp.there.get());
  const auto& record = proxy.source.workers[0]->connections.add(tcp.here.get(), 0);
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  REQUIRE(::setsockopt(tcp.there.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
  tcp.there.reset();
  char byte = 0;
  REQUIRE(::recv(tcp.here.get(), &byte, 1, 0) < 0);
  CHECK(peer_address_text(tcp.here.get()) == "");  // the system does not know it any more
  CHECK(peer_text(record) == address);
}

TEST_CASE("stats conns of many connections comes in pages, each connection once and in order") {
  Proxy proxy;
  constexpr size_t kConnections = 300;
  std::vector<Ends> ends;
  for (size_t i = 0; i < kConnections; ++i) ends.push_back(unix_ends());
  std::vector<int> fds;
  for (size_t i = 0; i < kConnections; ++i) {
    fds.push_back(ends[(i * 7) % kConnections].here.get());
    proxy.source.workers[i % 2]->connections.add(fds.back(), 0);
  }
  std::ranges::sort(fds);
  const auto report = connections_report(proxy.source);
  std::string all;
  size_t largest = 0;
  for (bool more = true; more;) {
    std::string page;
    more = report->next(page);
    largest = std::max(largest, page.size());
    all += page;
  }
  CHECK(largest < 2 * PagedReport::kPageBytes);
  size_t at = 0;
  for (const int fd : fds) {
    const std::string row = "STAT " + std::to_string(fd) + ":addr unix:<AF 1>\r\n";
    REQUIRE(all.find(row, at) != all.npos);
    at = all.find(row, at) + row.size();
    CHECK(all.find(row, at) == all.npos);
  }
  CHECK(all.ends_with("\r\nEND\r\n"));
}

TEST_CASE("a client whose Unix socket has a name of several lines is told of on one") {
  const std::string path = "/tmp/egret-" + std::to_string(::getpid()) + "\r\nSTAT 1:state x";
  const egret::base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  ::unlink(path.c_str());
  CHECK(local_address_text(socket.get()) ==
        "unix:%2Ftmp%2Fegret-" + std::to_string(::getpid()) + "%0D%0ASTAT%201%3Astate%20x");
}

TEST_CASE("the lanes of many backends come in pages") {
  Proxy proxy;
  for (auto& worker : proxy.sessions) {
    for (auto& session : worker) session->lane(200);
  }
  const auto pages = pages_of(lanes_report(proxy.source));
  CHECK(pages.size() > 10);
  std::string all;
  for (const std::string& page : pages) {
    CHECK(page.size() < 2 * PagedReport::kPageBytes);
    all += page;
  }
  const auto rows = rows_of(all);
  CHECK(rows.size() == 2 * 9 + 2 * 201 * egret::rpc::lane_metrics().size());
  CHECK(rows.contains("backend:1:lane:200:fetches"));
}

TEST_CASE("the lanes' sums are in the general report, each once, and a reset starts them anew") {
  Proxy proxy;
  for (auto& worker : proxy.sessions) {
    for (auto& session : worker) {
      egret::rpc::LaneCounters& lane = session->lane(2);
      for (const auto& metric : egret::rpc::lane_metrics()) {
        if (metric.counter != nullptr) (lane.*metric.counter).add(10);
      }
      session->deliveries.add(1);
    }
  }
  auto rows = general(proxy.source);
  for (const char* name :
       {"messages", "ops", "fetches", "refetches", "torn", "second_reads", "replies", "wants", "rings", "timeouts"}) {
    CAPTURE(name);
    CHECK(rows.at("egret_" + std::string(name)) == "40");
  }
  CHECK(rows.at("egret_switches") == "80");  // either way
  CHECK(rows.at("egret_deliveries") == "4");
  reset_stats(proxy.source);
  rows = general(proxy.source);
  for (const auto& metric : egret::rpc::lane_metrics()) {
    if (!metric.total.empty()) CHECK(rows.at(std::string(metric.total)) == "0");
  }
  CHECK(rows.at("egret_deliveries") == "0");
}

TEST_CASE("every lane of every backend has its rows, added up over the workers that know it") {
  Proxy proxy;
  proxy.sessions[0][0]->lane(1).fetches.add(100);
  proxy.sessions[1][0]->lane(0).fetches.add(20);  // this worker has seen one lane only
  proxy.sessions[0][0]->lane(0).fetches.add(3);
  proxy.sessions[0][0]->lane(1).mode.set(2);
  proxy.sessions[0][0]->lane(1).fetch_size.set(320);
  egret::pool::MemberStats::Health& health = proxy.source.membership.get()->members()[0].stats->health;
  proxy.sessions[1][0]->transport.set(1);
  health.is_ejected.set(1);
  health.why.set(static_cast<uint64_t>(egret::pool::EjectReason::kTimeouts));
  health.ejections.add(3);
  proxy.source.membership.get()->members()[1].stats->failover.stands_in.set(1);
  health.is_held_back.set(1);
  auto rows = rows_of(whole(lanes_report(proxy.source)));
  CHECK(rows.at("backend:0:name") == "/a");
  CHECK(rows.at("backend:1:name") == "two");
  CHECK(rows.at("backend:0:address") == "shm:/a");
  CHECK(rows.at("backend:1:address") == "rdma:[::1]:2");
  CHECK(rows.at("backend:0:transport") == "shm");
  CHECK(rows.at("backend:1:transport") == "none");
  CHECK(rows.at("backend:0:ejected") == "1");
  CHECK(rows.at("backend:0:eject_reason") == "timeouts");
  CHECK(rows.at("backend:0:ejections") == "3");
  CHECK(rows.at("backend:1:ejected") == "0");
  CHECK(rows.at("backend:0:standing_in") == "0");
  CHECK(rows.at("backend:1:standing_in") == "1");
  CHECK(rows.at("backend:0:held_back") == "1");
  CHECK(rows.at("backend:1:held_back") == "0");
  CHECK(rows.at("backend:0:lane:0:fetches") == "23");
  CHECK(rows.at("backend:0:lane:1:fetches") == "100");
  CHECK(rows.at("backend:0:lane:0:mode") == "none");
  CHECK(rows.at("backend:0:lane:1:mode") == "reply");
  CHECK(rows.at("backend:0:lane:1:fetch_size") == "320");
  CHECK(rows.at("backend:0:lane:1:switches_to_reply") == "0");
  CHECK(rows.size() == 2 * 9 + 2 * egret::rpc::lane_metrics().size());  // nobody has reached the other backend yet
  reset_stats(proxy.source);
  rows = rows_of(whole(lanes_report(proxy.source)));
  CHECK(rows.at("backend:0:lane:1:fetches") == "0");
  CHECK(rows.at("backend:0:lane:1:mode") == "reply");
}

TEST_CASE("settings are those of this proxy and its backend") {
  Proxy proxy;
  const auto rows = rows_of(settings_report(proxy.source, 1 << 20, 64 << 20, true));
  CHECK(rows.at("maxbytes") == "67108864");
  CHECK(rows.at("item_size_max") == "1048576");
  CHECK(rows.at("tcpport") == "5");
  CHECK(rows.at("inter") == "1.2.3.4");
  CHECK(rows.at("domain_socket") == "/x");
  CHECK(rows.at("num_threads") == "2");
  CHECK(rows.at("umask") == "700");
  CHECK(rows.at("maxconns") == "4096");
  CHECK(rows.at("evictions") == "on");
  CHECK(rows_of(settings_report(proxy.source, 1 << 20, 64 << 20, false)).at("evictions") == "off");
}

TEST_CASE("settings that egret-memcached was told replace rows of the same name, and no others") {
  Proxy proxy;
  Config config = proxy.config;
  config.listen.at(0).host = "/run/STAT hash_algorithm x";
  config.told_settings = {"maxconns=77", "hash_algorithm=murmur3", "slab_reassign=yes", "no value"};
  proxy.source.config.set(config);
  const auto rows = rows_of(settings_report(proxy.source, 1 << 20, 64 << 20, true));
  CHECK(rows.at("domain_socket") == "/run/STAT hash_algorithm x");
  CHECK(rows.at("maxconns") == "77");
  CHECK(rows.at("hash_algorithm") == "murmur3");
  CHECK(rows.at("slab_reassign") == "yes");
  CHECK_FALSE(rows.contains("no value"));
}

TEST_CASE("stats egret check: a row for each partition, ok or its complaint, on one line") {
  CHECK(egret::proxy::check_report({"", "page 3: bad\r\nEND", ""}) ==
        "STAT partition_0 ok\r\nSTAT partition_1 page 3: bad\\r\\nEND\r\nSTAT partition_2 ok\r\nEND\r\n");
}
