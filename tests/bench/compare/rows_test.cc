// The table of rows: its loads are valid, and its goals are the agreed ones.
#include "bench_compare/rows.h"

#include <algorithm>
#include <array>
#include <set>

#include <doctest/doctest.h>

#include "bench/load.h"

using namespace egret;
using namespace egret::bench_compare;

namespace {

Row row_named(const std::string& name) {
  const std::vector<Row> rows = all_rows(bench::LoadSpec{});
  const auto found = std::find_if(rows.begin(), rows.end(), [&name](const Row& each) { return each.name == name; });
  REQUIRE_MESSAGE(found != rows.end(), name);
  return *found;
}

// 0: there is none.
double target(const std::vector<Goal>& goals, Figure figure, std::string_view peer, std::string_view subject = kEgret) {
  for (const Goal& each : goals) {
    if (each.figure.key == figure.key && each.peer == peer && each.subject == subject) return each.target;
  }
  return 0;
}

}  // namespace

TEST_CASE("every row and sweep is a load that can be run, under a name of its own") {
  std::set<std::string> names;
  for (const Row& each : all_rows(bench::LoadSpec{})) {
    CHECK_MESSAGE(bench::check_spec(each.load).is_ok(), each.name);
    CHECK(names.insert(each.name).second);
  }
  for (const Sweep& each : all_sweeps(bench::LoadSpec{})) CHECK(bench::check_spec(each.load).is_ok());
}

TEST_CASE("each workload is there over TCP and over Unix sockets, with the same goals") {
  struct Expected {
    const char* name;
    double cpu;
    double throughput;
  };
  constexpr std::array<Expected, 7> kExpected{{{"32 B, depth 1", 1.0, 1.2},
                                               {"32 B, depth 16", 0.4, 1.5},
                                               {"32 B, multiget of 50", 0.6, 1.3},
                                               {"1 KiB, depth 1", 1.0, 1.1},
                                               {"1 KiB, depth 16", 0.6, 1.1},
                                               {"100 KiB, depth 1", 1.2, 1.0},
                                               {"32 B, 20,000 requests/s", 1.1, 0}}};
  for (const Expected& each : kExpected) {
    for (const char* socket_kind : {", TCP", ", Unix"}) {
      const Row row = row_named(each.name + std::string(socket_kind));
      CAPTURE(row.name);
      CHECK((row.socket_kind == bench::SocketKind::kTcp) == (std::string(socket_kind) == ", TCP"));
      CHECK(target(row.goals, kCpu, kMemcached) == each.cpu);
      CHECK(target(row.goals, kThroughput, kMemcached) == each.throughput);
      CHECK(target(row.goals, kCpu, kTwemproxy) == 0.6);
      CHECK(row.load.connections == 50);
    }
  }
  CHECK(target(row_named("32 B, 20,000 requests/s, TCP").goals, kP99, kMemcached) == 1.0);
  CHECK(row_named("100 KiB, depth 1, TCP").goals[0].later == 1.0);
}

TEST_CASE(
    "rows without goals of the two daemons: the shapes that public load generators show to differ; twemproxy is not "
    "started for them") {
  for (const char* name : {"1 KiB, multiget of 50", "100 KiB, depth 16", "100 KiB, multiget of 50"}) {
    for (const char* socket_kind : {", TCP", ", Unix"}) {
      const std::vector<Goal> goals = row_named(name + std::string(socket_kind)).goals;
      CHECK(std::none_of(goals.begin(), goals.end(), [](const Goal& each) { return each.subject == kEgret; }));
    }
  }
  const Row quiet = row_named("binary, 32 B, getkq of 50, TCP");
  CHECK(quiet.load.protocol == bench::Protocol::kBinary);
  CHECK(quiet.load.multiget == 50);
  CHECK_FALSE(quiet.has_goal_against(kTwemproxy));
  CHECK(row_named("32 B, depth 1, TCP").has_goal_against(kTwemproxy));
}

TEST_CASE("between hosts every row is over TCP and has goals against twemproxy alone: no worse in anything") {
  const std::vector<Row> rows = rows_between_hosts(bench::LoadSpec{});
  CHECK(rows.size() == 14);
  for (const Row& each : rows) {
    CAPTURE(each.name);
    CHECK(each.socket_kind == bench::SocketKind::kTcp);
    CHECK(each.load.protocol == bench::Protocol::kText);
    CHECK_FALSE(each.goals.empty());
    for (const Goal& goal : each.goals) {
      CHECK(goal.peer == kTwemproxy);
      CHECK(goal.target == 1.0);
    }
  }
}

TEST_CASE("a closed loop of many connections is measured at once and in rounds") {
  for (const Row& each : all_rows(bench::LoadSpec{})) {
    CAPTURE(each.name);
    const bool is_loop = each.kind == Kind::kLoad && each.load.rate == 0 && each.load.connections > 1;
    CHECK(each.sendings.size() == (is_loop ? 2 : 1));
  }
}

TEST_CASE("the other rows and their goals") {
  CHECK(target(row_named("binary, 32 B, depth 1, TCP").goals, kCpu, kMemcached) == 1.0);
  CHECK(target(row_named("binary, 32 B, depth 16, TCP").goals, kCpu, kMemcached) == 0.4);
  const Row many = row_named("1,000 connections, 100 active, TCP");
  CHECK(many.load.connections + many.load.idle_connections == 1000);
  CHECK(target(many.goals, kThroughput, kMemcached) == 1.0);
  const Row lone = row_named("one request on an idle host, TCP");
  CHECK(lone.load.connections * lone.load.depth == 1);
  CHECK(target(lone.goals, kP50, kMemcached) == 1.3);
  CHECK(target(row_named("32 B, depth 1, 6 spinning neighbours, TCP").goals, kKept, kMemcached) == 1.0);
  CHECK(target(row_named("memory of an idle connection, TCP").goals, kMemory, "") == 20);
}

TEST_CASE("the one process's goals for CPU, over TCP and over Unix sockets") {
  struct Expected {
    const char* name;
    double over_tcp, over_unix;
  };
  constexpr std::array<Expected, 10> kExpected{{{"32 B, depth 1", 0.85, 0.80},
                                                {"32 B, depth 16", 0.40, 0.40},
                                                {"32 B, multiget of 50", 0.40, 0.40},
                                                {"32 B, 20,000 requests/s", 0.90, 0.90},
                                                {"1 KiB, depth 1", 0.90, 0.85},
                                                {"1 KiB, depth 16", 0.60, 1.0},
                                                {"1 KiB, multiget of 50", 0.50, 1.0},
                                                {"100 KiB, depth 1", 1.0, 1.0},
                                                {"100 KiB, depth 16", 1.0, 1.0},
                                                {"100 KiB, multiget of 50", 1.0, 1.0}}};
  for (const Expected& each : kExpected) {
    CAPTURE(each.name);
    CHECK(target(row_named(std::string(each.name) + ", TCP").goals, kCpu, kMemcached, kOneProcess) == each.over_tcp);
    CHECK(target(row_named(std::string(each.name) + ", Unix").goals, kCpu, kMemcached, kOneProcess) == each.over_unix);
  }
  const auto cpu = [](const char* name) { return target(row_named(name).goals, kCpu, kMemcached, kOneProcess); };
  CHECK(cpu("binary, 32 B, depth 1, TCP") == 0.90);
  CHECK(cpu("binary, 32 B, depth 16, TCP") == 0.40);
  CHECK(cpu("binary, 32 B, getkq of 50, TCP") == 0.25);
}

TEST_CASE("the one process is to be no worse than memcached in any row that it takes part in") {
  for (const Row& each : all_rows(bench::LoadSpec{})) {
    CAPTURE(each.name);
    const bool takes_part = each.kind == Kind::kLoad || each.kind == Kind::kCrowded;
    const double cpu = target(each.goals, kCpu, kMemcached, kOneProcess);
    CHECK((cpu > 0) == takes_part);
    CHECK(cpu <= 1.0);
    if (!takes_part) continue;
    const Figure other = each.load.rate > 0 ? kP99 : kThroughput;  // paced, all have the schedule's throughput
    CHECK(target(each.goals, other, kMemcached, kOneProcess) == 1.0);
  }
  CHECK(target(row_named("32 B, depth 1, 6 spinning neighbours, TCP").goals, kKept, kMemcached, kOneProcess) == 1.0);
  CHECK(target(row_named("one request on an idle host, TCP").goals, kP50, kMemcached, kOneProcess) == 1.0);
}

TEST_CASE("against a memcached older than 1.6.45 more is asked for at depth 16, and only in text") {
  for (const char* old : {"1.6.18", "1.5.99", "1.6.44_beta"}) CHECK(is_older(old));
  for (const char* good : {"1.6.45", "1.6.46", "1.7.0", "2.0.0", "", "unknown"}) CHECK_FALSE(is_older(good));
  const Row deep = row_named("1 KiB, depth 16, Unix");
  CHECK(target(goals_against(deep, "1.6.18"), kCpu, kMemcached) == 0.3);
  CHECK(target(goals_against(deep, "1.6.18"), kThroughput, kMemcached) == 2.2);
  CHECK(target(goals_against(deep, "1.6.18"), kCpu, kTwemproxy) == 0.6);
  CHECK(target(goals_against(deep, "1.6.18"), kThroughput, kMemcached, kOneProcess) == 2.0);
  CHECK(target(goals_against(deep, "1.6.45"), kCpu, kMemcached) == 0.6);
  CHECK(target(goals_against(row_named("binary, 32 B, depth 16, TCP"), "1.6.18"), kCpu, kMemcached) == 0.4);
  CHECK(target(goals_against(row_named("100 KiB, depth 16, TCP"), "1.6.18"), kCpu, kMemcached, kOneProcess) == 1.0);
  const Row shallow = row_named("1 KiB, depth 1, Unix");
  CHECK(target(goals_against(shallow, "1.6.18"), kCpu, kMemcached) == 1.0);
}

TEST_CASE("libegret's rows have the goals of its clients, and one peer") {
  struct Expected {
    const char* name;
    double p50, cpu, throughput;
  };
  constexpr std::array<Expected, 8> kExpected{{{"get, TCP", 0.10, 0, 0},
                                               {"get, Unix", 0.15, 0, 0},
                                               {"get, one a ms, TCP", 0.85, 0.7, 0},
                                               {"get, one a ms, Unix", 0.9, 0.8, 0},
                                               {"multiget of 50, TCP", 0, 0.2, 6},
                                               {"multiget of 50, Unix", 0, 0.3, 4},
                                               {"50 processes, TCP", 0, 0.3, 0},
                                               {"50 processes, Unix", 0, 0.5, 0}}};
  for (const Expected& each : kExpected) {
    const Row row = row_named(std::string("libegret, ") + each.name);
    CAPTURE(row.name);
    CHECK(row.kind == Kind::kLibrary);
    CHECK(target(row.goals, kP50, kMemcached) == each.p50);
    CHECK(target(row.goals, kCpu, kMemcached) == each.cpu);
    CHECK(target(row.goals, kThroughput, kMemcached) == each.throughput);
    CHECK_FALSE(row.has_goal_against(kTwemproxy));
  }
  CHECK(target(row_named("libegret, 32 gets under way, TCP").goals, kThroughput, "") == 8e6);
}

TEST_CASE("preloaded libmemcached has its goals beside libmemcached") {
  const auto goal = [](const char* name, Figure figure) {
    const Row row = row_named(std::string("preloaded libmemcached, ") + name);
    CHECK(row.kind == Kind::kPreloaded);
    CHECK_FALSE(row.has_goal_against(kTwemproxy));
    return target(row.goals, figure, kMemcached);
  };
  CHECK(goal("get, TCP", kP50) == 0.12);
  CHECK(goal("get, Unix", kP50) == 0.20);
  CHECK(goal("multiget of 50, TCP", kThroughput) == 1.8);
  CHECK(goal("multiget of 50, Unix", kThroughput) == 1.5);
}
