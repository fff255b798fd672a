#include "backend/open_stores.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/stat.h>

#include "backend/log_events.h"
#include "base/cpu.h"
#include "base/log/log.h"
#include "base/random.h"
#include "base/text.h"

namespace egret::backend {

using base::Expected;

namespace {

// A client that has read an item of another backend, or of this one before a restart, must not change an item here by
// the CAS that it got there: numbers begin anywhere. An item has room for 56 bits.
constexpr uint64_t kMostFirstVersion = (uint64_t{1} << 40) - 1;

ExecutorOptions options_of(const Config& config, uint64_t hash_seed, uint32_t partition) {
  return {.partition = partition,
          .partitions = config.partitions,
          .memory = share_of(config.memory, partition, config.partitions),
          .whole_memory = config.memory,
          .item_size_max = config.item_size_max,
          .evict = config.evict,
          .hash_seed = hash_seed,
          .populate = config.populate,
          .warm_file = config.warm_restart.empty() ? "" : warm_file(config.warm_restart, partition),
          .allow_debugtime = config.allow_debugtime,
          .share_of_user = config.peer_share,
          .first_version = (base::random_u64() & kMostFirstVersion) + 1};
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

// "transparent huge pages (98 % of it)".
std::string pages_text(const Config& config, const Executors& executors) {
  const store::Backing backing = executors.front()->store().opening().arena.backing();
  std::string text = store::to_string(backing);
  if (!config.populate || backing != store::Backing::kTransparentHugePages) return text;
  uint64_t huge = 0;
  for (const auto& executor : executors) huge += executor->store().opening().arena.huge_bytes();
  return text + " (" + std::to_string(huge * 100 / config.memory) + " % of it)";
}

void log_warm_restart(const Config& config, const KeptSeed& kept, const Executors& executors) {
  uint64_t items = 0;
  std::string why_empty = kept.why_not;
  for (uint32_t partition = 0; partition < executors.size(); ++partition) {
    const store::Store& store = executors[partition]->store();
    items += store.counts().items;
    if (why_empty.empty() && !store.opening().empty_because.empty())
      why_empty = warm_file(config.warm_restart, partition) + ": " + store.opening().empty_because;
  }
  if (why_empty.empty()) {
    base::log(kWarmRestart, "warm restart: {} items kept", base::field("items", items));
  } else if (kept.is_first_run) {
    base::log(kWarmRestart, "warm restart: started empty: {}", base::field("why", why_empty));
  } else {
    base::log(kWarmRestartFailed, "warm restart: {}: {}", items == 0 ? "started empty" : "a partition started empty",
              base::field("why", why_empty));
  }
}

}  // namespace

std::string warm_file(const std::string& path, uint32_t partition) {
  struct stat status {};
  const bool is_folder = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return path + (is_folder ? "/partition-" : ".") + std::to_string(partition);
}

KeptSeed find_kept_seed(const Config& config) {
  if (config.warm_restart.empty()) return {};
  KeptSeed all;
  for (uint32_t partition = 0; partition < config.partitions; ++partition) {
    const std::string path = warm_file(config.warm_restart, partition);
    const auto seed = store::kept_hash_seed(path);
    if (!seed && all.hash_seed && !exists(path))
      return {.hash_seed = std::nullopt, .why_not = path + " is missing: partitions has changed"};
    if (!seed)
      return {.hash_seed = std::nullopt,
              .why_not = path + ": " + seed.message(),
              .is_first_run = partition == 0 && !exists(path)};
    if (all.hash_seed && seed.value() != *all.hash_seed)
      return {.hash_seed = std::nullopt, .why_not = path + ": the file is of another run than those before it"};
    all.hash_seed = seed.value();
  }
  return all;
}

Expected<Executors> open_stores(const Config& config, uint64_t hash_seed, const base::Clock& clock) {
  std::vector<std::optional<Expected<std::unique_ptr<Executor>>>> opened(config.partitions);
  std::atomic<uint32_t> next{0};
  const auto work = [&] {
    for (uint32_t number = next++; number < config.partitions; number = next++) {
      opened[number].emplace(Executor::create(options_of(config, hash_seed, number), clock));
    }
  };
  std::vector<std::thread> helpers(std::min<size_t>(config.partitions, base::allowed_cpus().size()) - 1);
  try {
    for (std::thread& helper : helpers) helper = std::thread(work);
  } catch (const std::system_error&) {
    // There are no more threads to be had: those that there are, and this one, do it all.
  }
  work();
  for (std::thread& helper : helpers) {
    if (helper.joinable()) helper.join();
  }

  Executors executors;
  for (auto& each : opened) {
    if (!*each) return each->status();
    executors.push_back(std::move(each->value()));
  }
  return executors;
}

void log_stores(const Config& config, const KeptSeed& kept, const Executors& executors) {
  base::log(kMemoryReady, "memory: {}, {}, in {}", base::field("memory", base::size_text(config.memory)),
            config.populate ? "all of it resident" : "resident as it is used",
            base::field("pages", pages_text(config, executors)));
  if (!config.warm_restart.empty()) log_warm_restart(config, kept, executors);
}

}  // namespace egret::backend
