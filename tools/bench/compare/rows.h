// The table of comparisons: a row is a workload, TCP or Unix socket, and its goals. Reports, the JSON and the README's
// text come from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load_spec.h"
#include "bench/server/server.h"
#include "bench_library/measure.h"

namespace egret::bench_compare {

inline constexpr std::string_view kEgret = "Egret";
inline constexpr std::string_view kMemcached = "memcached";
inline constexpr std::string_view kTwemproxy = "twemproxy";
inline constexpr std::string_view kOneProcess = "one process";  // egret-memcached
inline constexpr std::string_view kBase = "base";               // Egret, built from another commit
inline constexpr std::string_view kBaseOneProcess = "base's one process";

// A figure of a run. Rounds lack figures that their kind of row does not have.
struct Figure {
  std::string_view key;  // in JSON
  std::string_view name;
  std::string_view unit;
};
inline constexpr Figure kCpu{"cpu_us_per_op", "CPU", "µs/op"};
inline constexpr Figure kThroughput{"ops_per_s", "throughput", "ops/s"};
inline constexpr Figure kP50{"p50_us", "p50", "µs"};
inline constexpr Figure kP99{"p99_us", "p99", "µs"};
inline constexpr Figure kKept{"throughput_kept", "throughput kept", ""};  // with neighbours / without them
inline constexpr Figure kAlone{"ops_per_s_alone", "throughput without them", "ops/s"};
inline constexpr Figure kMemory{"kib_per_connection", "resident", "KiB"};  // of the process that clients connect to
inline constexpr Figure kMemoryOfAll{"kib_per_connection_of_all", "resident, all its processes", "KiB"};
inline constexpr Figure kGenerator{"generator_us_per_op", "generator", "µs/op"};
inline constexpr Figure kForeign{"foreign_cpu", "other CPUs busy", ""};

enum class Bound : uint8_t { kAtMost, kAtLeast };

// A goal is judged by the worse of a row's ways of sending.
struct Goal {
  Figure figure;
  std::string_view peer;  // the subject's figure over this contender's, round by round; empty: its figure itself
  Bound bound = Bound::kAtMost;
  double target = 1;
  double later = 0;  // the target after that; 0: none
  std::string_view subject = kEgret;
};

enum class Kind : uint8_t {
  kLoad,
  kCrowded,     // each round with and without spinning neighbours
  kIdleMemory,  // no load: memory of idle connections
  kLibrary,     // libegret beside a socket to memcached: what egret-bench client measures
  kPreloaded,   // libmemcached preloaded beside libmemcached to memcached: the same
};

struct Row {
  std::string name;
  Kind kind = Kind::kLoad;
  bench::SocketKind socket_kind = bench::SocketKind::kTcp;
  bench::LoadSpec load;
  bench_library::Kind library_kind{};    // of kLibrary and kPreloaded
  std::vector<bench::Sending> sendings;  // in turn, in each round; at least one
  std::vector<Goal> goals;
  bool is_deep = false;  // its goals depend on the memcached: see goals_against

  // What it measures are calls of client libraries.
  bool is_of_libraries() const { return kind == Kind::kLibrary || kind == Kind::kPreloaded; }
  // twemproxy takes part only where there is a goal against it.
  bool has_goal_against(std::string_view peer) const;
};

// "at once", "rounds".
std::string_view name_of(bench::Sending sending);

// `base` gives duration, warm-up, seed and threads.
std::vector<Row> all_rows(const bench::LoadSpec& base);
// Those over TCP that twemproxy can take part in, with goals against twemproxy alone: to be no worse in anything. For
// servers on another host.
std::vector<Row> rows_between_hosts(const bench::LoadSpec& base);

inline constexpr uint32_t kNeighbours = 6;

// The goals against a memcached of this version. The table has the goals against 1.6.45. An older one sends every
// answer of a text pipeline separately and costs twice as much there, so the CPU goals are halved and the throughput
// goals are doubled.
std::vector<Goal> goals_against(const Row& row, const std::string& memcached_version);

// Whether `version`, "1.6.18" or "1.6.45-3", is older than 1.6.45. One that cannot be read is not.
bool is_older(const std::string& version);

// Closed loop in rounds with more and more connections: latency against throughput. (In the mode "at once" the
// generator would limit the throughput.)
struct Sweep {
  std::string name;
  bench::LoadSpec load;
  std::vector<uint32_t> connections;
};
std::vector<Sweep> all_sweeps(const bench::LoadSpec& base);

}  // namespace egret::bench_compare
