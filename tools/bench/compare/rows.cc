#include "bench_compare/rows.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace egret::bench_compare {
namespace {

using bench::LoadSpec;
using bench::Sending;
using bench::SocketKind;

constexpr double kTwemproxyCpu = 0.6;  // in every row
constexpr std::array<int, 3> kReference{1, 6, 45};
constexpr double kOldFactor = 2;             // CPU of an older memcached at depth 16 over that of the reference
constexpr uint32_t kIdleConnections = 3000;  // for memory; below Egret's max_connections

const std::vector<Sending> kBothSendings{Sending::kAtOnce, Sending::kRounds};

// A workload of the first part of the table: over TCP and over Unix sockets. 0: no goal. twemproxy takes part in those
// that have a goal for the CPU.
struct Workload {
  const char* name;
  uint32_t value_size;
  uint32_t depth;
  uint32_t multiget;
  double rate;
  double cpu;
  double cpu_later;
  double throughput;
};
constexpr std::array<Workload, 10> kWorkloads{{
    {"32 B, depth 1", 32, 1, 1, 0, 1.0, 0, 1.2},
    {"32 B, depth 16", 32, 16, 1, 0, 0.4, 0, 1.5},
    {"32 B, multiget of 50", 32, 1, 50, 0, 0.6, 0, 1.3},
    {"1 KiB, depth 1", 1024, 1, 1, 0, 1.0, 0, 1.1},
    {"1 KiB, depth 16", 1024, 16, 1, 0, 0.6, 0, 1.1},
    {"1 KiB, multiget of 50", 1024, 1, 50, 0, 0, 0, 0},
    {"100 KiB, depth 1", 100 * 1024, 1, 1, 0, 1.2, 1.0, 1.0},
    {"100 KiB, depth 16", 100 * 1024, 16, 1, 0, 0, 0, 0},
    {"100 KiB, multiget of 50", 100 * 1024, 1, 50, 0, 0, 0, 0},
    {"32 B, 20,000 requests/s", 32, 1, 1, 20'000, 1.1, 0, 0},
}};

// CPU of the one process over memcached's, over TCP and over Unix sockets, where it is to be less than memcached's.
struct OneProcessCpu {
  std::string_view name;
  double over_tcp;
  double over_unix = 1.0;
};
constexpr std::array<OneProcessCpu, 10> kOneProcessCpu{{
    {"32 B, depth 1", 0.85, 0.80},
    {"32 B, depth 16", 0.40, 0.40},
    {"32 B, multiget of 50", 0.40, 0.40},
    {"32 B, 20,000 requests/s", 0.90, 0.90},
    {"1 KiB, depth 1", 0.90, 0.85},
    {"1 KiB, depth 16", 0.60},
    {"1 KiB, multiget of 50", 0.50},
    {"binary, 32 B, depth 1", 0.90},
    {"binary, 32 B, depth 16", 0.40},
    {"binary, 32 B, getkq of 50", 0.25},
}};

// About 20 MB of items at most, so that the smallest memory in use holds them.
uint32_t keys_for(uint32_t value_size) {
  if (value_size > 10'000) return 200;
  return value_size > 500 ? 20'000 : 100'000;
}

LoadSpec spec_of(const Workload& work, const LoadSpec& base) {
  LoadSpec load = base;
  load.connections = 50;
  load.value_size = work.value_size;
  load.depth = work.depth;
  load.multiget = work.multiget;
  load.rate = work.rate;
  load.keys = keys_for(work.value_size);
  load.read_share = work.multiget > 1 ? 1 : 0.9;  // a set among gets of 50 keys is one op in 50: the gets are measured
  return load;
}

Goal cpu_goal(double target, double later = 0) {
  return {kCpu, kMemcached, Bound::kAtMost, target, later};
}
Goal twemproxy_goal() {
  return {kCpu, kTwemproxy, Bound::kAtMost, kTwemproxyCpu};
}
Goal throughput_goal(double target) {
  return {kThroughput, kMemcached, Bound::kAtLeast, target};
}

std::string name_over(SocketKind socket_kind, std::string_view name) {
  return std::string(name) + (socket_kind == SocketKind::kTcp ? ", TCP" : ", Unix");
}

Row row_of(const Workload& work, const LoadSpec& base, SocketKind socket_kind) {
  Row row;
  row.name = name_over(socket_kind, work.name);
  row.socket_kind = socket_kind;
  row.load = spec_of(work, base);
  row.is_deep = work.depth == 16 && work.value_size <= 1024;  // every memcached sends longer answers one by one
  row.sendings = work.rate > 0 ? std::vector{Sending::kRounds} : kBothSendings;  // the schedule says when to send
  if (work.cpu > 0) row.goals = {cpu_goal(work.cpu, work.cpu_later), twemproxy_goal()};
  if (work.throughput > 0) row.goals.push_back(throughput_goal(work.throughput));
  if (work.rate > 0) row.goals.push_back({kP99, kMemcached, Bound::kAtMost, 1.0});
  return row;
}

// A multiget of the binary protocol: quiet gets (getkq) and a noop.
Row binary_row(const char* shape, const LoadSpec& base, uint32_t depth, uint32_t multiget, double cpu) {
  Row row = row_of({"", 32, depth, multiget, 0, cpu, 0, 0}, base, SocketKind::kTcp);
  row.name = std::string("binary, 32 B, ") + shape + ", TCP";
  row.load.protocol = bench::Protocol::kBinary;
  row.is_deep = false;  // an older memcached, too, sends these answers together
  return row;
}

Row many_connections_row(const LoadSpec& base) {
  Row row = row_of({"", 32, 1, 1, 0, 1.0, 0, 1.0}, base, SocketKind::kTcp);
  row.name = "1,000 connections, 100 active, TCP";
  row.load.connections = 100;
  row.load.idle_connections = 900;
  return row;
}

Row lone_request_row(const LoadSpec& base) {
  Row row = row_of(kWorkloads[0], base, SocketKind::kTcp);
  row.name = "one request on an idle host, TCP";
  row.load.connections = 1;
  row.sendings = {Sending::kRounds};  // there is one request at a time anyway
  row.goals = {{kP50, kMemcached, Bound::kAtMost, 1.3}, twemproxy_goal()};
  return row;
}

// Longer: a time slice is a greater part of a run, and the scheduler's luck with it most of a figure's spread.
Row crowded_row(const LoadSpec& base) {
  Row row = row_of(kWorkloads[0], base, SocketKind::kTcp);
  row.name = "32 B, depth 1, " + std::to_string(kNeighbours) + " spinning neighbours, TCP";
  row.sendings = {Sending::kRounds};
  row.kind = Kind::kCrowded;
  row.load.duration_s *= 5;
  row.goals = {{kKept, kMemcached, Bound::kAtLeast, 1.0}, twemproxy_goal()};
  return row;
}

struct LibraryWork {
  std::string name;
  bench_library::Kind kind;
  std::vector<Goal> over_tcp, over_unix;
};

Row memory_row(const LoadSpec& base) {
  Row row = row_of(kWorkloads[0], base, SocketKind::kTcp);
  row.name = "memory of an idle connection, TCP";
  row.kind = Kind::kIdleMemory;
  row.sendings = {Sending::kRounds};
  row.load.idle_connections = kIdleConnections;
  row.goals = {{kMemory, "", Bound::kAtMost, 20}};
  return row;
}

// kLibrary: by libegret, told by Egret's proxy, straight to the backend; beside libmemcached to memcached
// (library_rows.cc). kPreloaded: by libmemcached, to both.
Row library_row(const LoadSpec& base, Kind kind, const LibraryWork& work, SocketKind socket_kind) {
  Row row = row_of(kWorkloads[0], base, socket_kind);
  row.name = name_over(socket_kind, (kind == Kind::kLibrary ? "libegret, " : "preloaded libmemcached, ") + work.name);
  row.kind = kind;
  row.library_kind = work.kind;
  row.sendings = {Sending::kRounds};
  row.goals = socket_kind == SocketKind::kTcp ? work.over_tcp : work.over_unix;
  return row;
}

void add_library_rows(const LoadSpec& base, std::vector<Row>& rows) {
  const auto at_most = [](Figure figure, double target) { return Goal{figure, kMemcached, Bound::kAtMost, target}; };
  const auto at_least = [](Figure figure, double target) { return Goal{figure, kMemcached, Bound::kAtLeast, target}; };
  const LibraryWork works[] = {
      {"get", bench_library::Kind::kGet, {at_most(kP50, 0.10)}, {at_most(kP50, 0.15)}},
      {"get, one a ms",
       bench_library::Kind::kPaced,
       {at_most(kP50, 0.85), at_most(kCpu, 0.7)},
       {at_most(kP50, 0.9), at_most(kCpu, 0.8)}},
      {"multiget of 50",
       bench_library::Kind::kMultiget,
       {at_least(kThroughput, 6), at_most(kCpu, 0.2)},
       {at_least(kThroughput, 4), at_most(kCpu, 0.3)}},
      {"32 gets under way",
       bench_library::Kind::kPipelined,
       {{kThroughput, "", Bound::kAtLeast, 8e6}},
       {{kThroughput, "", Bound::kAtLeast, 8e6}}},
      {"50 processes", bench_library::Kind::kProcesses, {at_most(kCpu, 0.3)}, {at_most(kCpu, 0.5)}},
  };
  const LibraryWork preloaded_works[] = {
      {"get", bench_library::Kind::kGet, {at_most(kP50, 0.12)}, {at_most(kP50, 0.20)}},
      {"multiget of 50", bench_library::Kind::kMultiget, {at_least(kThroughput, 1.8)}, {at_least(kThroughput, 1.5)}},
  };
  for (const SocketKind socket_kind : {SocketKind::kTcp, SocketKind::kUnix}) {
    for (const LibraryWork& work : works) rows.push_back(library_row(base, Kind::kLibrary, work, socket_kind));
    for (const LibraryWork& work : preloaded_works)
      rows.push_back(library_row(base, Kind::kPreloaded, work, socket_kind));
  }
}

double one_process_cpu(const Row& row) {
  for (const OneProcessCpu& each : kOneProcessCpu) {
    if (row.name == name_over(row.socket_kind, each.name))
      return row.socket_kind == SocketKind::kTcp ? each.over_tcp : each.over_unix;
  }
  return 1.0;
}

// The one process is to be no worse than memcached in any row under load, and where kOneProcessCpu says so, to take less CPU.
void add_one_process_goals(Row& row) {
  if (row.kind != Kind::kLoad && row.kind != Kind::kCrowded) return;
  const auto add = [&row](Figure figure, Bound bound, double target) {
    row.goals.push_back({figure, kMemcached, bound, target, 0, kOneProcess});
  };
  add(kCpu, Bound::kAtMost, one_process_cpu(row));
  if (row.load.rate > 0) return add(kP99, Bound::kAtMost, 1.0);  // the schedule says what the throughput is
  add(kThroughput, Bound::kAtLeast, 1.0);
  if (row.kind == Kind::kCrowded) add(kKept, Bound::kAtLeast, 1.0);
  if (row.load.connections == 1) add(kP50, Bound::kAtMost, 1.0);
}

}  // namespace

std::vector<Row> all_rows(const LoadSpec& base) {
  std::vector<Row> rows;
  for (const SocketKind socket_kind : {SocketKind::kTcp, SocketKind::kUnix}) {
    for (const Workload& work : kWorkloads) rows.push_back(row_of(work, base, socket_kind));
  }
  rows.push_back(binary_row("depth 1", base, 1, 1, 1.0));
  rows.push_back(binary_row("depth 16", base, 16, 1, 0.4));
  rows.push_back(binary_row("getkq of 50", base, 1, 50, 0));
  rows.push_back(many_connections_row(base));
  rows.push_back(lone_request_row(base));
  rows.push_back(crowded_row(base));
  rows.push_back(memory_row(base));
  add_library_rows(base, rows);
  for (Row& row : rows) add_one_process_goals(row);
  return rows;
}

std::vector<Row> rows_between_hosts(const LoadSpec& base) {
  std::vector<Row> rows;
  for (Row& row : all_rows(base)) {
    if (row.socket_kind != SocketKind::kTcp || row.load.protocol == bench::Protocol::kBinary) continue;
    if (row.is_of_libraries()) continue;
    const auto no_more = [](Figure figure) { return Goal{figure, kTwemproxy, Bound::kAtMost, 1.0}; };
    const auto no_less = [](Figure figure) { return Goal{figure, kTwemproxy, Bound::kAtLeast, 1.0}; };
    if (row.kind == Kind::kIdleMemory) {
      row.goals = {no_more(kMemory)};
    } else {
      row.goals = {no_more(kCpu)};
      row.goals.push_back(row.load.rate > 0 ? no_more(kP99) : no_less(kThroughput));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

bool Row::has_goal_against(std::string_view peer) const {
  return std::any_of(goals.begin(), goals.end(), [peer](const Goal& each) { return each.peer == peer; });
}

std::string_view name_of(bench::Sending sending) {
  return sending == Sending::kAtOnce ? "at once" : "rounds";
}

bool is_older(const std::string& version) {
  std::array<int, 3> parts{};
  // NOLINTNEXTLINE(cert-err34-c): three numbers or it is not a version
  if (std::sscanf(version.c_str(), "%d.%d.%d", &parts[0], &parts[1], &parts[2]) != 3) return false;
  return parts < kReference;
}

std::vector<Goal> goals_against(const Row& row, const std::string& memcached_version) {
  std::vector<Goal> goals = row.goals;
  if (!row.is_deep || !is_older(memcached_version)) return goals;
  for (Goal& goal : goals) {
    if (goal.peer != kMemcached) continue;
    goal.target = goal.bound == Bound::kAtMost ? goal.target / kOldFactor : goal.target * kOldFactor;
  }
  return goals;
}

std::vector<Sweep> all_sweeps(const LoadSpec& base) {
  const LoadSpec shallow = spec_of(kWorkloads[0], base);
  const LoadSpec deep = spec_of(kWorkloads[1], base);
  return {{"32 B, depth 1, TCP", shallow, {1, 2, 4, 8, 16, 32, 64, 128, 256}},
          {"32 B, depth 16, TCP", deep, {1, 2, 4, 8, 16, 32, 64}}};
}

}  // namespace egret::bench_compare
