#include "bench/rounds.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <optional>
#include <set>
#include <utility>

#include "bench/monotonic.h"
#include "bench/server/neighbours.h"
#include "bench/server/process_meter.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr uint64_t kQuietSampleNs = 200'000'000;
constexpr uint64_t kPatienceNs = 90 * kNsPerSecond;  // how long a case may wait for a quiet machine and repeat rounds

// Waits until other processes use no CPU. The servers are idle meanwhile.
void wait_for_quiet(double quiet_cpus, uint64_t give_up_ns, const std::atomic<bool>& stop) {
  while (monotonic_ns() < give_up_ns && !stop.load()) {
    const auto before = read_process_cost({});
    const timespec pause{0, kQuietSampleNs};
    ::nanosleep(&pause, nullptr);
    const auto after = read_process_cost({});
    if (!before || !after) return;
    const ProcessCost cost = after.value() - before.value();
    if (static_cast<double>(cost.machine_busy_ns) <= quiet_cpus * static_cast<double>(cost.wall_ns)) return;
  }
}

Expected<LoadResult> run_turn(const std::string& label, const LoadSpec& load, const Keyspace& keyspace,
                              const Turn& turn, const std::atomic<bool>& stop) {
  std::optional<Neighbours> neighbours;
  if (turn.neighbours != 0) {
    auto started = Neighbours::start(turn.neighbours);
    if (!started) return started.status();
    neighbours.emplace(std::move(started.value()));
  }
  auto result = run_load(load, keyspace, turn.server->address, turn.server->pids, stop);
  if (!result) return Status::error(turn.server->name + ": " + result.message());
  const LoadResult& figures = result.value();
  const char* const sending = turn.sending ? (*turn.sending == Sending::kAtOnce ? ", at once" : ", rounds") : "";
  std::fprintf(stderr,
               "%s, %s%s: %.0f ops/s, p50 %.0f us, p99 %.0f us, CPU %.2f us/op, others %.2f CPUs, %llu errors\n",
               label.c_str(), turn.server->name.c_str(), sending, figures.ops_per_s, figures.p50_us, figures.p99_us,
               figures.cpu_us_per_op, figures.foreign_cpu, static_cast<unsigned long long>(figures.total.errors));
  if (!figures.first_error.empty()) std::fprintf(stderr, "  first error: %s\n", figures.first_error.c_str());
  return result;
}

// The present round: the results by turn, and the load of other processes.
struct Round {
  std::vector<std::pair<size_t, LoadResult>> results;
  double foreign_cpu = 0;  // the maximum over the turns without neighbours
  uint64_t errors = 0;
};

class Course {
 public:
  Course(const std::string& label, const LoadSpec& load, const std::vector<Turn>& turns, const RoundsSpec& spec,
         const std::atomic<bool>& stop)
      : label_(label), load_(load), turns_(turns), spec_(spec), stop_(stop), keyspace_(load.keys, load.key_size) {
    rounds_.turns.resize(turns.size());
  }

  Expected<Rounds> run() {
    for (uint32_t done = 0; done < spec_.rounds && !stop_.load(); ++load_.seed) {
      if (spec_.quiet_cpus > 0) wait_for_quiet(spec_.quiet_cpus, impatient_ns_, stop_);
      auto round = run_round(done);
      if (!round) return round.status();
      if (keep(round.value())) ++done;
    }
    return std::move(rounds_);
  }

 private:
  Expected<Round> run_round(uint32_t number) {
    Round round;
    for (size_t i = 0; i < turns_.size() && !stop_.load(); ++i) {
      const size_t place = (i + number) % turns_.size();
      const Turn& turn = turns_[place];
      LoadSpec load = load_;
      load.sending = turn.sending.value_or(load.sending);
      load.preload = load_.preload && loaded_.insert(turn.server).second;
      auto result = run_turn(label_ + ", round " + std::to_string(number + 1), load, keyspace_, turn, stop_);
      if (!result) return result.status();
      round.errors += result.value().total.errors;
      if (turn.neighbours == 0) round.foreign_cpu = std::max(round.foreign_cpu, result.value().foreign_cpu);
      round.results.emplace_back(place, std::move(result.value()));
    }
    return round;
  }

  // Adds the round to the results; or discards it, except for its errors, if the machine was not quiet and there is
  // time to repeat it.
  bool keep(Round& round) {
    const bool is_noisy = spec_.quiet_cpus > 0 && round.foreign_cpu > spec_.quiet_cpus;
    if (is_noisy && monotonic_ns() < impatient_ns_ && round.errors == 0) {
      std::fprintf(stderr, "  not quiet: this round does not count\n");
      ++rounds_.discarded;
      return false;
    }
    for (auto& [turn, result] : round.results) rounds_.turns[turn].push_back(std::move(result));
    return true;
  }

  const std::string& label_;
  LoadSpec load_;  // its seed changes from round to round
  const std::vector<Turn>& turns_;
  const RoundsSpec& spec_;
  const std::atomic<bool>& stop_;
  const Keyspace keyspace_;
  const uint64_t impatient_ns_ = monotonic_ns() + kPatienceNs;  // from then on every round is kept
  std::set<const Server*> loaded_;
  Rounds rounds_;
};

}  // namespace

uint64_t Rounds::errors() const {
  uint64_t sum = 0;
  for (const auto& rounds : turns) {
    for (const LoadResult& each : rounds) sum += each.total.errors;
  }
  return sum;
}

Expected<Rounds> run_rounds(const std::string& label, const LoadSpec& load, const std::vector<Turn>& turns,
                            const RoundsSpec& spec, const std::atomic<bool>& stop) {
  return Course(label, load, turns, spec, stop).run();
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

namespace {

std::vector<double> figures_of(const std::vector<LoadResult>& rounds, Metric metric) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const LoadResult& each : rounds) values.push_back(each.*metric);
  return values;
}

}  // namespace

double median_of(const std::vector<LoadResult>& rounds, Metric metric) {
  return median_of(figures_of(rounds, metric));
}

Ratio ratio_of(const std::vector<double>& subject, const std::vector<double>& peer) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(subject.size(), peer.size()); ++i) {
    if (peer[i] > 0) ratios.push_back(subject[i] / peer[i]);
  }
  if (ratios.empty()) return {};
  const auto [min, max] = std::minmax_element(ratios.begin(), ratios.end());
  return {median_of(ratios), *min, *max};
}

Ratio ratio_of(const std::vector<LoadResult>& subject, const std::vector<LoadResult>& peer, Metric metric) {
  return ratio_of(figures_of(subject, metric), figures_of(peer, metric));
}

}  // namespace egret::bench
