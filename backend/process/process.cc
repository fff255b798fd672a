#include "backend/process/process.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <sys/mman.h>

#include "backend/doctor.h"
#include "backend/log_events.h"
#include "base/cpu.h"
#include "base/log/log.h"
#include "base/random.h"

namespace egret::backend {

using base::Status;

namespace {

// Advice for a program that was started by hand, without the folder that the package makes.
constexpr const char* kTryItElsewhere =
    "; or, to try it: egret-backend --set listen=shm:/tmp/egret.sock and egret-proxy --set "
    "backends=shm:/tmp/egret.sock";

std::vector<std::unique_ptr<transport::PollGroup>> make_groups(uint32_t partitions) {
  std::vector<std::unique_ptr<transport::PollGroup>> groups;
  for (uint32_t number = 0; number < partitions; ++number) {
    auto made = transport::make_poll_group();
    if (!made) throw std::system_error(errno, std::system_category(), made.message());
    groups.push_back(std::move(made.value()));
  }
  return groups;
}

std::vector<transport::PollGroup*> plain(const std::vector<std::unique_ptr<transport::PollGroup>>& groups) {
  std::vector<transport::PollGroup*> plain;
  plain.reserve(groups.size());
  for (const auto& group : groups) plain.push_back(group.get());
  return plain;
}

PartitionOptions options_of(const Config& config, uint32_t number, const std::vector<int>& cpus,
                            transport::PollGroup* group) {
  return {.number = number,
          .cpu = config.pin ? cpus[number % cpus.size()] : -1,
          .follows = config.follow,
          .polling = config.polling(),
          .group = group};
}

}  // namespace

Process::Process(const Config& config, base::Reloader& reloader, Control::Process kind)
    : config_(config),
      reloader_(reloader),
      kept_(find_kept_seed(config)),
      identity_{.epoch = base::random_u64(), .hash_seed = kept_.hash_seed.value_or(base::random_u64())},
      mailboxes_(config.partitions + 1),
      groups_(make_groups(config.partitions)),
      control_(config_, identity_, mailboxes_, reloader, kind, plain(groups_)) {
  base::log_problems(check_start(config));
}

// Partitions that run end by themselves: they have been told. Uploads and pins end with them, before the stores do.
Process::~Process() {
  for (const auto& partition : partitions_) partition->join();
}

Status Process::listen() {
  Status listening = control_.listen();
  if (listening) return listening;
  std::string advice = listen_advice(config_);
  if (!advice.empty() && !reloader_.in_force().is_given("listen")) advice += kTryItElsewhere;
  return Status::error(listening.message() + advice);
}

Status Process::open() {
  if (Status listening = listen(); !listening) return listening;
  auto executors = open_stores(config_, identity_.hash_seed, clock_);
  if (!executors) return executors.status();
  log_stores(config_, kept_, executors.value());
  if (config_.lock_memory && ::mlockall(MCL_CURRENT) != 0) {
    base::log(kMemoryNotLocked, "lock_memory: memory may be swapped out: {}",
              base::field("why", std::string(std::strerror(errno))));
  }
  const std::vector<int> cpus = base::allowed_cpus();
  for (uint32_t number = 0; number < config_.partitions; ++number) {
    partitions_.push_back(std::make_unique<Partition>(options_of(config_, number, cpus, groups_[number].get()), clock_,
                                                      mailboxes_, std::move(executors.value()[number])));
  }
  return Status::ok();
}

Status Process::start() {
  try {
    for (const auto& partition : partitions_) partition->start();
  } catch (const std::system_error& problem) {
    control_.stop_partitions();
    for (const auto& partition : partitions_) partition->join();
    return Status::error(std::string("cannot start a partition: ") + problem.what());
  }
  base::log(kServing, "serving: {} partition{} of {} bytes", base::field("partitions", config_.partitions),
            config_.partitions == 1 ? "" : "s", base::field("bytes", config_.memory / config_.partitions));
  return Status::ok();
}

}  // namespace egret::backend
