// egret-backend: a partitioned key-value store served through slots.
//
//   main: options → store per partition → partition threads → control loop (this thread) → stop
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <sys/mman.h>

#include "backend/config.h"
#include "backend/control.h"
#include "backend/doctor.h"
#include "backend/log_events.h"
#include "backend/mailbox.h"
#include "backend/metrics.h"
#include "backend/open_stores.h"
#include "backend/partition.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/log/log.h"
#include "base/options/reload.h"
#include "base/random.h"
#include "base/service/notify.h"
#include "base/service/program.h"

namespace egret::backend {
namespace {

// Advice for a program that was started by hand, without the folder that the package makes.
constexpr const char* kTryItElsewhere =
    "; or, to try it: egret-backend --set listen=shm:/tmp/egret.sock and egret-proxy --set "
    "backends=shm:/tmp/egret.sock";

base::Status check(const base::Options& options) {
  return resolve_config(options).status();
}

std::string explain(const base::Options& options) {
  return explain_limits(resolve_config(options).value());
}

base::Findings doctor(const base::Options& options) {
  return examine(resolve_config(options).value());
}

// An error: there was no thread for one of them. Those before it run.
base::Status start(const std::vector<std::unique_ptr<Partition>>& partitions) {
  try {
    for (const auto& partition : partitions) partition->start();
  } catch (const std::system_error& problem) {
    return base::Status::error(std::string("cannot start a partition: ") + problem.what());
  }
  return base::Status::ok();
}

// Throws std::system_error if the system has no descriptors for what a start takes.
int serve(const Config& config, base::Reloader& reloader) {
  base::log_problems(check_start(config));
  const base::SystemClock clock;
  const KeptSeed kept = find_kept_seed(config);
  const Identity identity{.epoch = base::random_u64(), .hash_seed = kept.hash_seed.value_or(base::random_u64())};
  Mailboxes mailboxes(config.partitions + 1);
  Control control(config, identity, mailboxes, reloader);
  if (base::Status listening = control.listen(); !listening) {
    std::string advice = listen_advice(config);
    if (!advice.empty() && !reloader.in_force().is_given("listen")) advice += kTryItElsewhere;
    return base::fail_start("egret-backend", listening.message() + advice);
  }
  auto executors = open_stores(config, identity.hash_seed, clock);
  if (!executors) {
    return base::fail_start("egret-backend", executors.message());
  }
  log_stores(config, kept, executors.value());
  if (config.lock_memory && ::mlockall(MCL_CURRENT) != 0) {
    base::log(kMemoryNotLocked, "lock_memory: memory may be swapped out: {}",
              base::field("why", std::string(std::strerror(errno))));
  }
  const std::vector<int> cpus = base::allowed_cpus();
  std::vector<std::unique_ptr<Partition>> partitions;
  for (uint32_t number = 0; number < config.partitions; ++number) {
    const PartitionOptions options{.number = number,
                                   .cpu = config.pin ? cpus[number % cpus.size()] : -1,
                                   .follows = config.follow,
                                   .polling = {.lane_idle_ns = config.lane_idle_ns,
                                               .far_lane_idle_ns = config.far_lane_idle_ns,
                                               .park_always = config.park_always}};
    partitions.push_back(std::make_unique<Partition>(options, clock, mailboxes, std::move(executors.value()[number])));
  }
  if (base::Status started = start(partitions); !started) {
    control.stop_partitions();
    return base::fail_start("egret-backend", started.message());
  }
  base::log(kServing, "serving: {} partition{} of {} bytes", base::field("partitions", config.partitions),
            config.partitions == 1 ? "" : "s", base::field("bytes", config.memory / config.partitions));
  base::notify_supervisor(std::string(base::kNotifyReady));
  const base::Status served = control.run();
  for (auto& partition : partitions) partition->join();
  partitions.clear();  // ends uploads and pins; then each store saves itself if it has a file
  if (!served) return base::fail_start("egret-backend", served.message());
  base::log(kStopped, "stopped");
  return 0;
}

}  // namespace
}  // namespace egret::backend

int main(int argc, char** argv) {
  using namespace egret;
  const base::ProgramStart start =
      base::start_program({.name = "egret-backend",
                           .summary = "The store of Egret: executes ops that arrive in slots.",
                           .table = backend::option_table(),
                           .check = backend::check,
                           .doctor = backend::doctor,
                           .explain = backend::explain,
                           .metrics_markdown = backend::metrics_markdown,
                           .events = backend::log_events()},
                          argc, argv);
  if (!start.options) return start.exit_status;
  const backend::Config config = backend::resolve_config(*start.options).value();
  base::setup_logging("egret-backend", base::log_level_of(config.log_level), base::log_format_of(config.log_format));
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the reloader exists
  base::Reloader reloader(start.sources, *start.options, backend::check);
  try {
    return backend::serve(config, reloader);
  } catch (const std::system_error& problem) {
    return base::fail_start("egret-backend", std::string("cannot start: ") + problem.what());
  }
}
