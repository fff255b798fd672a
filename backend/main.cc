// egret-backend: a partitioned key-value store served through slots.
//
//   main: options → store per partition → partition threads → control loop (this thread) → stop
#include <csignal>
#include <cstdio>
#include <memory>
#include <vector>

#include "backend/config.h"
#include "backend/control.h"
#include "backend/executor.h"
#include "backend/mail.h"
#include "backend/partition.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "base/log.h"
#include "base/program.h"

namespace egret::backend {
namespace {

constexpr uint64_t kDescriptorsPerSession = 4;
constexpr uint64_t kOtherDescriptors = 256;

base::Status check(const base::Options& options) {
  return resolve_config(options).status();
}

int serve(const Config& config) {
  const uint64_t needed = kDescriptorsPerSession * config.max_sessions + kOtherDescriptors;
  if (const uint64_t limit = base::raise_descriptor_limit(needed); limit < needed) {
    base::log_warning("the limit of open files is {}, {} sessions may need {} (systemd: LimitNOFILE)", limit,
                      config.max_sessions, needed);
  }
  const base::SystemClock clock;
  const Identity identity{.epoch = random_u64(), .hash_seed = random_u64()};
  PostOffice mail(config.partitions + 1);
  Control control(config, identity, mail);
  if (base::Status listening = control.listen(); !listening) {
    std::fprintf(stderr, "egret-backend: %s\n", listening.message().c_str());
    return 1;
  }
  const std::vector<int> cpus = base::allowed_cpus();
  std::vector<std::unique_ptr<Partition>> partitions;
  for (uint32_t number = 0; number < config.partitions; ++number) {
    auto executor = Executor::create(
        {.partition = number,
         .partitions = config.partitions,
         .memory = config.memory / config.partitions + (number < config.memory % config.partitions ? 1 : 0),
         .item_size_max = config.item_size_max,
         .evict = config.evict,
         .hash_seed = identity.hash_seed},
        clock);
    if (!executor) {
      std::fprintf(stderr, "egret-backend: %s\n", executor.message().c_str());
      return 1;
    }
    const PartitionOptions options{.number = number,
                                   .cpu = config.pin ? cpus[number % cpus.size()] : -1,
                                   .lane_idle_ns = config.lane_idle_ns,
                                   .far_lane_idle_ns = config.far_lane_idle_ns,
                                   .park_always = config.park_always};
    partitions.push_back(std::make_unique<Partition>(options, clock, mail, std::move(executor.value())));
  }
  for (auto& partition : partitions) partition->start();
  base::log_info("serving: {} partitions of {} bytes", config.partitions, config.memory / config.partitions);
  control.run();
  for (auto& partition : partitions) partition->join();
  base::log_info("stopped");
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
                           .check = backend::check},
                          argc, argv);
  if (!start.options) return start.exit_status;
  const backend::Config config = backend::resolve_config(*start.options).value();
  base::setup_logging("egret-backend", base::log_level_of(config.log_level));
  std::signal(SIGPIPE, SIG_IGN);
  return backend::serve(config);
}
