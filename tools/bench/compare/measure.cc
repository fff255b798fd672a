#include "bench_compare/measure.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "bench/client/idle_connections.h"
#include "bench/server/process_meter.h"
#include "bench_compare/library_rows.h"

namespace egret::bench_compare {
namespace {

using base::Expected;
using base::Status;
using bench::LoadResult;
using bench::Server;

constexpr uint32_t kMemoryRounds = 3;  // it hardly varies
constexpr uint64_t kSpareFiles = 300;  // of egret-bench itself, and of a server beside its connections

// The servers of a row, by contender; those that do not take part are not there. Of `result.series`, those of the first
// way of sending come first, in the order of the servers.
struct Field {
  std::vector<Server> servers;
  RowResult result;
};

bool takes_part(const Contender& contender, const Row& row) {
  if (row.load.protocol == bench::Protocol::kBinary && !contender.speaks_binary) return false;
  if (row.is_of_libraries() && contender.name != kEgret && contender.name != kMemcached) return false;
  return contender.name != kTwemproxy || row.has_goal_against(kTwemproxy);
}

Expected<Field> start_field(const Row& row, const std::vector<Contender>& contenders) {
  Field field;
  field.result.row = row;
  for (const Contender& each : contenders) {
    if (!takes_part(each, row)) continue;
    auto server = each.start(row.socket_kind);
    if (!server) return server.status();
    server.value().name = each.name;
    field.servers.push_back(std::move(server.value()));
  }
  for (const bench::Sending sending : row.sendings) {
    for (const Server& each : field.servers) field.result.series.push_back({each.name, sending, {}});
  }
  return field;
}

Figures figures_of(const LoadResult& result) {
  return {{kCpu.key, result.cpu_us_per_op},
          {kThroughput.key, result.ops_per_s},
          {kP50.key, result.p50_us},
          {kP99.key, result.p99_us},
          {kGenerator.key, result.generator_us_per_op},
          {kForeign.key, result.foreign_cpu}};
}

void add_errors(const bench::Rounds& rounds, RowResult& result) {
  result.errors += rounds.errors();
  result.discarded += rounds.discarded;
  for (const auto& turn : rounds.turns) {
    for (const LoadResult& each : turn) {
      if (result.first_error.empty()) result.first_error = each.first_error;
    }
  }
}

Status measure_load(Field& field, const bench::RoundsSpec& spec, const std::atomic<bool>& stop) {
  std::vector<bench::Turn> turns;
  for (const bench::Sending sending : field.result.row.sendings) {
    for (const Server& each : field.servers) turns.push_back({&each, sending});
  }
  const auto rounds = bench::run_rounds(field.result.row.name, field.result.row.load, turns, spec, stop);
  if (!rounds) return rounds.status();
  add_errors(rounds.value(), field.result);
  for (size_t i = 0; i < turns.size(); ++i) {
    for (const LoadResult& each : rounds.value().turns[i]) field.result.series[i].rounds.push_back(figures_of(each));
  }
  return Status::ok();
}

// Turns 2i and 2i + 1 are those of server i, without and with neighbours.
Status measure_crowded(Field& field, const bench::RoundsSpec& spec, const std::atomic<bool>& stop) {
  std::vector<bench::Turn> turns;
  for (const Server& each : field.servers) {
    turns.push_back({&each, field.result.row.sendings.front(), 0});
    turns.push_back({&each, field.result.row.sendings.front(), kNeighbours});
  }
  const auto rounds = bench::run_rounds(field.result.row.name, field.result.row.load, turns, spec, stop);
  if (!rounds) return rounds.status();
  add_errors(rounds.value(), field.result);
  for (size_t i = 0; i < field.servers.size(); ++i) {
    const auto& alone = rounds.value().turns[2 * i];
    const auto& crowded = rounds.value().turns[2 * i + 1];
    for (size_t round = 0; round < std::min(alone.size(), crowded.size()); ++round) {
      Figures figures = figures_of(crowded[round]);
      figures.erase(kForeign.key);  // the neighbours
      figures[kAlone.key] = alone[round].ops_per_s;
      if (alone[round].ops_per_s > 0) figures[kKept.key] = crowded[round].ops_per_s / alone[round].ops_per_s;
      field.result.series[i].rounds.push_back(std::move(figures));
    }
  }
  return Status::ok();
}

double resident_kib(const std::vector<pid_t>& pids) {
  double sum = 0;
  for (const pid_t pid : pids) sum += static_cast<double>(bench::resident_bytes(pid)) / 1024;
  return sum;
}

// A server may need less for a connection that has been idle for a while.
constexpr std::chrono::seconds kIdleFor{4};

// What so many connections add to a server that was started a moment ago, when they have been idle for kIdleFor.
Status measure_memory_of(const Server& server, uint32_t connections, Series& series) {
  const double front = resident_kib({server.front()});
  const double all = resident_kib(server.pids);
  const auto idle = bench::IdleConnections::open(server.address, connections);
  if (!idle) return Status::error(server.name + ": " + idle.message());
  std::this_thread::sleep_for(kIdleFor);
  if (Status status = idle.value().check(); !status) return Status::error(server.name + ": " + status.message());
  const double count = connections;
  const Figures figures{{kMemory.key, (resident_kib({server.front()}) - front) / count},
                        {kMemoryOfAll.key, (resident_kib(server.pids) - all) / count}};
  std::fprintf(stderr, "%s: %.1f KiB for each of %u idle connections\n", server.name.c_str(), figures.at(kMemory.key),
               connections);
  series.rounds.push_back(figures);
  return Status::ok();
}

Expected<RowResult> measure_memory(const Row& row, const std::vector<Contender>& contenders, uint32_t rounds,
                                   const std::atomic<bool>& stop) {
  const uint64_t files = bench::raise_file_limit();
  RowResult result;
  Row possible = row;
  const uint64_t room = files > kSpareFiles ? files - kSpareFiles : 1;
  possible.load.idle_connections = static_cast<uint32_t>(std::min<uint64_t>(row.load.idle_connections, room));
  for (uint32_t round = 0; round < std::min(rounds, kMemoryRounds) && !stop.load(); ++round) {
    auto field = start_field(possible, contenders);
    if (!field) return field.status();
    if (round == 0) result = field.value().result;
    for (size_t i = 0; i < field.value().servers.size() && !stop.load(); ++i) {
      Status status = measure_memory_of(field.value().servers[i], possible.load.idle_connections, result.series[i]);
      if (!status) return status;
    }
  }
  return result;
}

}  // namespace

std::vector<double> Series::values(Figure figure) const {
  std::vector<double> values;
  for (const Figures& each : rounds) {
    const auto found = each.find(figure.key);
    if (found != each.end()) values.push_back(found->second);
  }
  return values;
}

double Series::median(Figure figure) const {
  return bench::median_of(values(figure));
}

const Series* RowResult::find(std::string_view contender, bench::Sending sending) const {
  const auto found = std::find_if(series.begin(), series.end(), [contender, sending](const Series& each) {
    return each.contender == contender && each.sending == sending;
  });
  return found == series.end() ? nullptr : &*found;
}

bench::Ratio ratio_between(const RowResult& result, Figure figure, std::string_view subject, std::string_view peer,
                           bench::Sending sending) {
  const Series* const one = result.find(subject, sending);
  if (one == nullptr) return {};
  const std::vector<double> figures = one->values(figure);
  if (peer.empty()) return bench::ratio_of(figures, std::vector<double>(figures.size(), 1.0));
  const Series* const other = result.find(peer, sending);
  return other == nullptr ? bench::Ratio{} : bench::ratio_of(figures, other->values(figure));
}

bench::Ratio ratio_of(const RowResult& result, Figure figure, std::string_view peer, bench::Sending sending) {
  return ratio_between(result, figure, kEgret, peer, sending);
}

Expected<RowResult> measure_row(const Row& row, const std::vector<Contender>& contenders,
                                const bench::RoundsSpec& rounds, const std::atomic<bool>& stop) {
  if (row.kind == Kind::kIdleMemory) return measure_memory(row, contenders, rounds.rounds, stop);
  auto field = start_field(row, contenders);
  if (!field) return field.status();
  Status status = Status::ok();
  if (row.is_of_libraries()) {
    status = measure_library(field.value().servers, rounds, stop, field.value().result);
  } else {
    status = row.kind == Kind::kCrowded ? measure_crowded(field.value(), rounds, stop)
                                        : measure_load(field.value(), rounds, stop);
  }
  if (!status) return status;
  return std::move(field.value().result);
}

uint64_t SweepResult::errors() const {
  uint64_t sum = 0;
  for (const SweepPoint& each : points) sum += each.result.errors;
  return sum;
}

Expected<SweepResult> measure_sweep(const Sweep& sweep, const std::vector<Contender>& contenders,
                                    const bench::RoundsSpec& rounds, const std::atomic<bool>& stop) {
  Row row;
  row.load = sweep.load;
  row.sendings = {bench::Sending::kRounds};
  row.goals = {{kCpu, kTwemproxy}};  // it takes part
  auto field = start_field(row, contenders);
  if (!field) return field.status();
  SweepResult result{sweep, {}};
  const RowResult empty = field.value().result;
  for (const uint32_t connections : sweep.connections) {
    if (stop.load()) break;
    RowResult& point = field.value().result = empty;
    point.row.name = "sweep, " + sweep.name + ", " + std::to_string(connections) + " connections";
    point.row.load.connections = connections;
    point.row.load.preload = result.points.empty();
    if (Status status = measure_load(field.value(), rounds, stop); !status) return status;
    result.points.push_back({connections, point});
  }
  return result;
}

}  // namespace egret::bench_compare
