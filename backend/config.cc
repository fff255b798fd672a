#include "backend/config.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/address.h"
#include "backend/resolve_quota.h"
#include "base/cpu.h"
#include "base/cpu_plan.h"
#include "base/text.h"
#include "store/store.h"
#include "tls/options.h"
#include "transport/address.h"
#include "wire/slot.h"

namespace egret::backend {

using base::Options;
using base::size_text;
using base::Status;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kLeastSessionMemory = 16 << 10;
// A program takes some microseconds for the results of many ops before it sends the next ones. A partition that sleeps
// meanwhile, and is woken, costs both more than that.
constexpr uint64_t kEmbeddedIdleNs = 50'000;
constexpr uint32_t kLeastDefaultSlot = 4 << 10;
constexpr uint32_t kUsualRequestSlot = 16 << 10;
constexpr const char* kMainSecret = "main";
constexpr uint64_t kMemoryPerPartition = 64 * kMiB;  // with less memory another partition is not worth its thread

uint32_t auto_partitions(uint64_t memory, uint32_t item_size_max, uint32_t cpus) {
  const uint64_t wanted = std::clamp<uint64_t>(memory / kMemoryPerPartition, 1, base::max_auto_partitions(cpus));
  const uint64_t roomy = std::max<uint64_t>(1, memory / store::least_memory(item_size_max));
  return static_cast<uint32_t>(std::min({wanted, roomy, uint64_t{wire::kMaxLanes}}));
}

Status parse_gids(const Options& options, std::vector<uint32_t>& gids) {
  for (const std::string& text : options.list("allowed_gids")) {
    uint32_t gid = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), gid);
    if (error != std::errc{} || end != text.data() + text.size()) {
      return options.error("allowed_gids", "expected numeric group ids, got \"" + text + "\"");
    }
    gids.push_back(gid);
  }
  return Status::ok();
}

Status read_secrets(const Options& options, std::vector<NamedSecret>& secrets) {
  const auto add = [&](const char* option, const std::string& name, const std::string& path) {
    auto secret = base::read_secret(path);
    if (!secret) return options.error(option, secret.message());
    if (std::ranges::find(secrets, name, &NamedSecret::name) != secrets.end()) {
      return options.error(option, "there are two secrets named " + name);
    }
    const auto same = std::ranges::find(secrets, secret.value().bytes(),
                                        [](const NamedSecret& known) { return known.secret.bytes(); });
    if (same != secrets.end()) return options.error(option, name + " and " + same->name + " are the same secret");
    secrets.push_back({name, std::move(secret.value())});
    return Status::ok();
  };
  if (const std::string& path = options.text("secret_file"); !path.empty()) {
    if (Status added = add("secret_file", kMainSecret, path); !added) return added;
  }
  for (const std::string& entry : options.list("secret_files")) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == entry.size()) {
      return options.error("secret_files", "expected NAME=FILE, got \"" + entry + "\"");
    }
    if (Status added = add("secret_files", entry.substr(0, equals), entry.substr(equals + 1)); !added) return added;
  }
  return Status::ok();
}

// Secrets must have been read.
Status parse_rights(const Options& options, Config& config) {
  auto table = access::RightsTable::parse(options.list("rights"));
  if (!table) return options.error("rights", table.message());
  config.rights = std::move(table.value());
  for (const std::string& name : config.rights.secrets()) {
    if (std::ranges::find(config.secrets, name, &NamedSecret::name) == config.secrets.end()) {
      return options.error("rights", "there is no secret named " + name + " (secret_file is main; see secret_files)");
    }
  }
  return Status::ok();
}

Status check_memory(const Options& options, const Config& config) {
  const uint64_t least = store::least_memory(config.item_size_max);
  const bool has_several = config.partitions > 1;
  if (config.memory / config.partitions < least) {
    return options.error("memory", "too small: with item_size_max=" + size_text(config.item_size_max) +
                                       (has_several ? " and partitions=" + std::to_string(config.partitions) : "") +
                                       " use at least " + size_text(least * config.partitions) +
                                       ", or lower item_size_max" + (has_several ? " or partitions" : ""));
  }
  const uint64_t most = store::kMaxMemory * config.partitions;
  if (config.memory <= most) return Status::ok();
  return options.error("memory", "too large: with partitions=" + std::to_string(config.partitions) + " use at most " +
                                     size_text(most) + ", or more partitions");
}

// Checks the path as far as possible now; open_stores() shows whether the files can be opened.
Status check_warm_restart(const Options& options) {
  const std::string& path = options.text("warm_restart");
  if (path.empty()) return Status::ok();
  const auto is_folder = [](const std::string& name) {
    struct stat status {};
    return ::stat(name.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  };
  const size_t slash = path.rfind('/');
  const std::string above = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const std::string& folder = is_folder(path) ? path : above;
  if (!is_folder(folder)) return options.error("warm_restart", "there is no directory " + folder);
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return options.error("warm_restart", Status::system_error("files cannot be made in " + folder, errno).message());
  }
  return Status::ok();
}

Status parse_slot_size(const Options& options, const char* name, uint32_t& size) {
  const uint64_t given = options.size(name);
  if (given == 0) return Status::ok();
  if (given < wire::kMinSlotSize) return options.error(name, "expected 0, or 1KiB and more");
  if (given % 64 != 0) return options.error(name, "expected a multiple of 64");
  size = static_cast<uint32_t>(given);
  return Status::ok();
}

// Makes default slots smaller if a whole window of them would take too much memory, since a smaller window costs more.
// First request slots are cut to the size that they have with other transports: over tcp they are longer, to save messages of
// large sets. Then the larger of the two sizes is halved.
void shrink_defaults(const Options& options, const wire::RegionLayout& wanted, SessionSize& size) {
  wire::RegionLayout layout = wanted;
  const auto spare = [&](const char* name, uint32_t slot) {
    return options.size(name) == 0 && slot > kLeastDefaultSlot ? slot : 0;
  };
  while (layout.bytes() > size.most_memory) {
    const uint32_t request = spare("request_slot_size", size.request_slot);
    const uint32_t response = spare("response_slot_size", size.response_slot);
    if (request == 0 && response == 0) return;
    if (request > kUsualRequestSlot) {
      size.request_slot = std::max(request / 2, kUsualRequestSlot);
    } else {
      uint32_t& larger = response >= request ? size.response_slot : size.request_slot;
      larger = std::max(larger / 2, kLeastDefaultSlot);
    }
    layout.request_slot_size = size.request_slot;
    layout.response_slot_size = size.response_slot;
  }
}

// Options that are set replace the defaults of all kinds of sessions.
Status parse_session_size(const Options& options, const Config& config, SessionSize& size) {
  if (Status good = parse_slot_size(options, "request_slot_size", size.request_slot); !good) return good;
  if (Status good = parse_slot_size(options, "response_slot_size", size.response_slot); !good) return good;
  if (const auto given = static_cast<uint32_t>(options.integer("window")); given != 0) {
    if (given < wire::kMinWindow) return options.error("window", "expected 0, or 2 and more");
    size.window = given;
  }
  if (const uint64_t given = options.size("session_memory"); given != 0) {
    if (given < kLeastSessionMemory) return options.error("session_memory", "expected 0, or 16KiB and more");
    size.most_memory = given;
  }
  shrink_defaults(options, {config.partitions, size.window, size.request_slot, size.response_slot}, size);
  const wire::RegionLayout smallest{config.partitions, wire::kMinWindow, size.request_slot, size.response_slot};
  if (smallest.bytes() <= size.most_memory) return Status::ok();
  return options.error("session_memory", "too small: the smallest session is " + smallest.to_string() + ", more than " +
                                             std::to_string(size.most_memory));
}

}  // namespace

base::Expected<Config> resolve_config(const Options& options, uint32_t partitions) {
  Config config;
  config.listen = options.list("listen");
  for (const std::string& address : config.listen) {
    if (Status valid = transport::check_address(address); !valid) return options.error("listen", valid.message());
  }
  const uint32_t cpus = static_cast<uint32_t>(base::allowed_cpus().size());
  config.memory = options.size("memory");
  config.item_size_max = static_cast<uint32_t>(options.size("item_size_max"));
  config.evict = options.flag("evict");
  config.allow_debugtime = options.flag("allow_debugtime");
  config.partitions = static_cast<uint32_t>(options.integer("partitions"));
  if (partitions != 0) config.partitions = partitions;
  if (config.partitions == 0) config.partitions = auto_partitions(config.memory, config.item_size_max, cpus);
  if (Status good = check_memory(options, config); !good) return good;
  config.populate = options.flag("populate");
  config.lock_memory = options.flag("lock_memory");
  config.warm_restart = options.text("warm_restart");
  if (Status good = check_warm_restart(options); !good) return good;
  const std::string& pin = options.text("pin");
  const bool roomy = base::CpuPlan::of_backend(cpus, config.partitions).has_enough_cpus();
  config.pin = pin == "on" || (pin == "auto" && roomy);
  // With more CPUs or more threads the scheduler places the threads better than following would.
  config.follow = pin == "follow" || (pin == "auto" && cpus == 2 && config.partitions == 1);
  for (SessionSize* size : {&config.local_session, &config.tcp_session, &config.rdma_session}) {
    if (Status good = parse_session_size(options, config, *size); !good) return good;
  }
  resolve_quota(options, config);
  config.peer_share = static_cast<uint32_t>(options.integer("peer_share"));
  if (Status good = read_secrets(options, config.secrets); !good) return good;
  auto mutual = tls::read_options(options);
  if (!mutual) return mutual.status();
  config.tls = {.mutual = std::move(mutual.value()), .is_required = options.flag("session_tls_required")};
  if (Status good = options.user_ids("allowed_uids", config.allowed_uids); !good) return good;
  if (Status good = parse_gids(options, config.allowed_gids); !good) return good;
  if (Status good = parse_rights(options, config); !good) return good;
  config.fabric.ack_timeout = static_cast<uint8_t>(options.integer("ack_timeout"));
  config.lane_idle_ns = options.duration_ns("lane_idle");
  if (config.lane_idle_ns == 0) config.lane_idle_ns = config.pin || roomy ? 1'000'000 : 5'000;
  config.push = {.below_load = static_cast<uint32_t>(options.integer("push_below_load")),
                 .above_sessions = static_cast<uint32_t>(options.integer("push_above_sessions"))};
  config.far_lane_idle_ns = config.lane_idle_ns;
  if (options.duration_ns("lane_idle") == 0 && cpus > config.partitions) config.far_lane_idle_ns = 1'000'000;
  config.embedded_idle_ns = config.lane_idle_ns;
  if (options.duration_ns("lane_idle") == 0 && cpus > config.partitions)
    config.embedded_idle_ns = std::max(config.lane_idle_ns, kEmbeddedIdleNs);
  config.park_always = options.flag("park_always");
  auto admin = admin::read_options(options);
  if (!admin) return admin.status();
  config.admin = std::move(admin.value());
  config.log_level = options.text("log_level");
  config.log_format = options.text("log_format");
  return config;
}

}  // namespace egret::backend
