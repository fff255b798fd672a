#include "backend/config.h"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "admin/address.h"
#include "base/cpu.h"
#include "base/cpu_plan.h"
#include "base/log/log.h"
#include "base/service/memory_room.h"
#include "base/service/program.h"
#include "base/text.h"
#include "store/store.h"
#include "tls/options.h"
#include "transport/address.h"
#include "transport/doctor.h"
#include "wire/slot.h"

namespace egret::backend {

using base::OptionGroup;
using base::OptionRow;
using base::Options;
using base::OptionType;
using base::size_text;
using base::Status;

namespace {

constexpr base::AppliedBy kReload = base::AppliedBy::kReload;
constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kLeastSessionMemory = 16 << 10;
// A program takes some microseconds for the results of many ops before it sends the next ones. A partition that sleeps
// meanwhile, and is woken, costs both more than that.
constexpr uint64_t kEmbeddedIdleNs = 50'000;
constexpr uint32_t kLeastDefaultSlot = 4 << 10;
constexpr int64_t kMostSecrets = 16;
constexpr const char* kMainSecret = "main";
constexpr uint64_t kMemoryPerPartition = 64 * kMiB;  // with less memory another partition is not worth its thread

constexpr OptionRow kTable[] = {
    {.name = "listen",
     .type = OptionType::kList,
     .default_value = "shm:/run/egret/backend.sock",
     .help =
         "Where proxies connect: rdma:ADDRESS:PORT (every device: rdma:*:PORT), tcp:ADDRESS:PORT, "
         "rdma+tcp:ADDRESS:PORT (both: proxies come by TCP while RDMA cannot be had), shm:PATH or shm:@NAME (a Unix "
         "socket on this host).",
     .min = 1,
     .max = 16,
     .applied_by = kReload,
     .group = OptionGroup::kListening,
     .is_usual = true},
    {.name = "secret_file",
     .type = OptionType::kText,
     .default_value = "",
     .help =
         "File with the secret that proxies and this backend prove to each other: 16 to 4096 bytes, the same on both "
         "sides, mode 0400. Empty: every peer that can connect is served.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kListening,
     .is_usual = true},
    {.name = "secret_files",
     .type = OptionType::kList,
     .default_value = "",
     .help =
         "Further secrets, NAME=FILE each: a proxy proves to hold one of them or that of secret_file (whose name is "
         "main), and is answered by the same. To change the secret without dropping a session: see "
         "docs/operate/security.md.",
     .max = kMostSecrets,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "session_tls_certificate",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with this backend's certificate, and its chain: over tcp proxies and this backend prove by "
             "certificates who they are, and everything is encrypted (TLS 1.3). New sessions use what a reload reads. "
             "Empty: no TLS.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "session_tls_key",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with its private key, without a passphrase. Empty: the key is in session_tls_certificate.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "session_tls_ca",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with the authorities that sign the proxies' certificates. They should sign nothing else.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "session_tls_names",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Names or addresses, one of which a proxy's certificate must be for (subjectAltName). Empty: every "
             "certificate of session_tls_ca is good.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "session_tls_required",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help =
         "Where there is a session_tls_certificate: whether proxies that come over tcp without TLS are turned away. "
         "false: for the time in which proxies get their certificates.",
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "allowed_uids",
     .type = OptionType::kList,
     .default_value = "",
     .help =
         "User ids that may connect over shm, besides root and this process's own user. They may read and write; see "
         "rights.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kListening,
     .is_usual = true},
    {.name = "allowed_gids",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Group ids whose members may connect over shm, as their own group or a supplementary one. They may read "
             "and write; see rights.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "rights",
     .type = OptionType::kList,
     .default_value = "",
     .help =
         "What sessions may do, by who opens them: entries like uid=33:read+write+flush. Who: uid=N, gid=N, "
         "secret=NAME or other; what: read, write, flush, dump (list keys), limits (cache_memlimit, stats reset), "
         "all, none. The first entry that fits counts. Without one: root, this process's user, and whoever proves a "
         "secret or comes over rdma or tcp: all; allowed_uids and allowed_gids: read+write.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "memory",
     .type = OptionType::kSize,
     .default_value = "64MiB",
     .help = "Memory for items and their index, for all partitions together. The sessions' slots are not included.",
     .min = 1 * kMiB,
     .max = int64_t{1} << 44,
     .applied_by = kReload,
     .group = OptionGroup::kMemory,
     .is_usual = true},
    {.name = "item_size_max",
     .type = OptionType::kSize,
     .default_value = "1MiB",
     .help = "Largest item, counted as in memcached: value, key and about 60 bytes.",
     .min = 1024,
     .max = 128 * kMiB,
     .group = OptionGroup::kMemory},
    {.name = "evict",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "Whether old items are evicted for new ones. If not, storing answers 'out of memory' when memory is full.",
     .group = OptionGroup::kMemory},
    {.name = "populate",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "Whether all of `memory` is made resident before clients are served, so that no request waits for it.",
     .group = OptionGroup::kMemory},
    {.name = "lock_memory",
     .type = OptionType::kFlag,
     .default_value = "false",
     .help = "Whether the memory that is resident at the start is locked, so that it is not swapped out (LimitMEMLOCK "
             "must allow it).",
     .group = OptionGroup::kMemory},
    {.name = "warm_restart",
     .type = OptionType::kText,
     .default_value = "",
     .help = "Where to keep the items over a stop and a start: a directory, or the beginning of the files' names, on a "
             "tmpfs or hugetlbfs with room for `memory` bytes. After a kill, or with another memory, item_size_max, "
             "evict or partitions, the backend starts empty. Empty: items end with the process.",
     .max = base::kMaxTextBytes,
     .group = OptionGroup::kMemory},
    {.name = "partitions",
     .type = OptionType::kInteger,
     .default_value = "0",
     .help = "Partition threads. 0: one per 64 MiB of memory, at most half of the CPUs that this process may use.",
     .min = 0,
     .max = wire::kMaxLanes,
     .group = OptionGroup::kLimits,
     .is_usual = true},
    {.name = "max_sessions",
     .type = OptionType::kInteger,
     .default_value = "auto",
     .help = "Most sessions at the same time; a proxy opens one for each of its workers. auto: as many as there are "
             "descriptors (LimitNOFILE) and session_memory_total for; --check-config and --doctor show how many.",
     .min = 1,
     .max = static_cast<int64_t>(access::kMostSessions),
     .has_auto = true,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "sessions_per_peer",
     .type = OptionType::kInteger,
     .default_value = "auto",
     .help = "Most sessions of one peer (an address over rdma and tcp, a user id over shm). auto: as many as then stay "
             "free for others, and 64 as long as there are any. 0: only max_sessions limits them.",
     .min = 0,
     .max = static_cast<int64_t>(access::kMostSessions),
     .has_auto = true,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "session_memory_total",
     .type = OptionType::kSize,
     .default_value = "auto",
     .help =
         "Most memory that the slots of all sessions together may take, outside `memory`. When it runs short, sessions "
         "get smaller windows, and the last quarter is for idle ones. auto: half of what this host, or its control "
         "group, has beside `memory`, and no more than may be pinned (LimitMEMLOCK) over rdma. 0: no limit.",
     .max = int64_t{1} << 44,
     .has_auto = true,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "session_memory_per_peer",
     .type = OptionType::kSize,
     .default_value = "auto",
     .help =
         "Most memory that the slots of all sessions of one peer may take, those that are being closed included. "
         "auto: as much as then stays free for others, and 64 idle sessions as long as there is any. 0: no limit but "
         "that of each session.",
     .max = int64_t{1} << 40,
     .has_auto = true,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "peer_share",
     .type = OptionType::kInteger,
     .default_value = "50",
     .help =
         "How much of the room for values that are being uploaded, and of that for versions kept for readers of large "
         "values, the sessions of one peer may hold while other peers have sessions, in percent.",
     .min = 1,
     .max = 100,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "session_memory",
     .type = OptionType::kSize,
     .default_value = "0",
     .help = "Most memory that the slots of one session may take, 16KiB or more. A session that would need more gets a "
             "smaller window. 0: 8MiB, over rdma, where it is pinned, 1MiB.",
     .max = 1024 * kMiB,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "ack_timeout",
     .type = OptionType::kInteger,
     .default_value = "16",
     .help = "Over rdma: how long the device waits for an acknowledgement, 4.096us x 2^N, before it sends again. A "
             "proxy's host that is dead is noticed after about 7 times as long: 16: 1.9s. As in egret-proxy.",
     .min = 8,
     .max = 24,
     .group = OptionGroup::kRdma},
    admin::option_row("127.0.0.1:11281"),
    admin::kAdminHostsRow,
    base::kLogLevelRow,
    base::kLogFormatRow,
    {.name = "pin",
     .type = OptionType::kChoice,
     .default_value = "auto",
     .help =
         "on: each partition thread stays on a CPU of its own. follow: share the local worker's CPU, the cheapest per "
         "request, but both are limited to one CPU. off: the scheduler decides. auto: on if the CPUs are enough for "
         "the partitions, the workers of a proxy on this host (assumed: a quarter of the CPUs, 1 to 4) and one more; "
         "follow "
         "on two CPUs with one partition; else off.",
     .choices = "auto|on|off|follow",
     .group = OptionGroup::kExpert,
     .measured_by = "requests a second and CPU of egret-bench beside the application"},
    {.name = "window",
     .type = OptionType::kInteger,
     .default_value = "0",
     .help = "Slots per lane: messages that one proxy worker may have in flight to one partition. 0: 32, over tcp 8.",
     .max = wire::kMaxWindow,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_ops / egret_messages in a proxy's stats, and egret-bench rpc"},
    {.name = "request_slot_size",
     .type = OptionType::kSize,
     .default_value = "0",
     .help = "Size of a request slot, 1KiB or more and a multiple of 64 bytes. 0: 16KiB, over rdma 4KiB.",
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "ops of a message (egret_ops / egret_messages in a proxy's stats), and egret-bench rpc"},
    {.name = "response_slot_size",
     .type = OptionType::kSize,
     .default_value = "0",
     .help = "Size of a response slot, 1KiB or more and a multiple of 64 bytes. 0: 52KiB, over tcp "
             "132KiB and over rdma 4KiB.",
     .max = wire::kMaxLongSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "ops of a message (egret_ops / egret_messages in a proxy's stats), and egret-bench rpc"},
    {.name = "lane_idle",
     .type = OptionType::kDuration,
     .default_value = "0",
     .help =
         "How long a lane is polled without a request before it falls asleep. 0: 1ms if the CPUs are enough (see pin; "
         "over rdma: for the partitions and one more), else 5us, and 50us for programs with libegret. Lanes of this "
         "host "
         "skip polling while it rarely finds a request.",
     .max = 1'000'000'000,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "process_cpu_seconds_total of the backend beside egret_rings in a proxy's stats"},
    {.name = "push_below_load",
     .type = OptionType::kInteger,
     .default_value = "30",
     .help =
         "Over rdma: while requests take less than this percent of a partition's time, it has time for pushing results "
         "and says so, and proxies of fetch_mode auto have them pushed instead of fetching them. 0: never.",
     .max = 100,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_backend_deliveries_total and process_cpu_seconds_total beside a proxy's latency"},
    {.name = "push_above_sessions",
     .type = OptionType::kInteger,
     .default_value = "0",
     .help =
         "Over rdma: with more sessions than this a partition has results pushed, too, since a device with very many "
         "queue pairs may serve READs more slowly than it sends WRITEs. 0: never.",
     .max = 65536,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret-bench verbs --advise on your two hosts"},
    {.name = "park_always",
     .type = OptionType::kFlag,
     .default_value = "false",
     .help = "For tests: fall asleep at every opportunity.",
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "nothing, it is for tests"},
    {.name = "allow_debugtime",
     .type = OptionType::kFlag,
     .default_value = "false",
     .help = "For tests: clients may move the clock by which items expire, by the command 'debugtime SECONDS'.",
     .group = OptionGroup::kExpert,
     .measured_by = "nothing, it is for tests"},
};

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
// Halves the larger one of the two first.
void shrink_defaults(const Options& options, const wire::RegionLayout& wanted, SessionSize& size) {
  wire::RegionLayout layout = wanted;
  const auto spare = [&](const char* name, uint32_t slot) {
    return options.size(name) == 0 && slot > kLeastDefaultSlot ? slot : 0;
  };
  while (layout.bytes() > size.most_memory) {
    const uint32_t request = spare("request_slot_size", size.request_slot);
    const uint32_t response = spare("response_slot_size", size.response_slot);
    if (request == 0 && response == 0) return;
    uint32_t& larger = response >= request ? size.response_slot : size.request_slot;
    larger = std::max(larger / 2, kLeastDefaultSlot);
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

// --- how many sessions

constexpr uint64_t kOtherMemory = 64 * kMiB;  // of the process, beside stores and slots
constexpr uint64_t kOtherDescriptors = 256;   // not of partitions, sessions or rings of lanes
constexpr uint64_t kDescriptorsOfPartition = 4;
constexpr uint64_t kOtherMappings = 2048;
// An idle session of a proxy over a network, as its options idle_window and idle_slot_size have it.
constexpr uint32_t kIdleWindow = 2;
constexpr uint32_t kIdleSlot = 1536;

// What sessions take, by the dearest of the transports that the backend listens at. `egret-bench fleet` counts it.
access::Needs needs_of(const Config& config) {
  const bool over_rdma = std::ranges::any_of(config.listen, transport::is_rdma);
  const bool only_rdma = std::ranges::all_of(config.listen, transport::is_rdma);
  const bool only_tcp = std::ranges::all_of(config.listen, transport::is_tcp);
  const bool here = std::ranges::any_of(
      config.listen, [](const auto& address) { return !transport::is_rdma(address) && !transport::is_tcp(address); });
  access::Needs needs{
      .other_descriptors = kOtherDescriptors + kDescriptorsOfPartition * config.partitions + config.quota.lane_rings,
      .other_mappings = kOtherMappings,
      .other_memory = config.memory + kOtherMemory,
      .descriptors = only_tcp ? 2u : 4u,
      .mappings = over_rdma && !here ? 0u : 2u,
      .is_pinned = over_rdma,
      .other_memory_text = "memory " + size_text(config.memory) + " - " + size_text(kOtherMemory)};
  needs.least_bytes = wire::RegionLayout{config.partitions, kIdleWindow, kIdleSlot, kIdleSlot}.bytes();
  needs.most_bytes = only_rdma ? config.rdma_session.most_memory : config.local_session.most_memory;
  if (over_rdma) needs.queue_bytes = transport::server_queue_bytes(config.partitions, 1, kIdleWindow);
  return needs;
}

access::Room room_of_host() {
  const base::MemoryRoom memory = base::memory_room();
  const auto known = [](uint64_t figure) { return figure == 0 ? access::kUnlimited : figure; };
  const transport::PinLimit pinned = transport::pin_limit({});
  return {.descriptors = known(base::most_descriptors()),
          .mappings = known(base::most_mappings()),
          .memory = known(memory.bytes),
          .memory_source = memory.source,
          .pinned = pinned.by_capability ? access::kUnlimited : pinned.bytes};
}

// Descriptors for rings of lanes. Where max_sessions is set, only those that so many sessions leave.
uint64_t lane_rings_of(const Options& options, const Config& config) {
  const bool may_have = std::ranges::any_of(config.listen, transport::is_shm) && config.partitions > 1 &&
                        config.partitions <= transport::kMostLaneRings;
  if (!may_have) return 0;
  const uint64_t rings = access::lane_rings_of(config.room);
  if (options.is_auto("max_sessions")) return rings;
  const access::Needs needs = needs_of(config);
  const auto sessions = static_cast<uint64_t>(options.integer("max_sessions"));
  const uint64_t others = needs.other_descriptors + needs.descriptors * sessions;
  return std::min(rings, config.room.descriptors - std::min(config.room.descriptors, others));
}

void resolve_quota(const Options& options, Config& config) {
  const auto size = [&](const char* name, uint64_t automatic) {
    if (options.is_auto(name)) return automatic;
    return options.size(name) == 0 ? access::kUnlimited : options.size(name);
  };
  access::Quota& quota = config.quota;
  config.room = room_of_host();
  quota.lane_rings = lane_rings_of(options, config);
  config.needs = needs_of(config);
  quota.least_bytes = config.needs.least_bytes;
  quota.memory = access::slot_memory_of(config.room, config.needs);
  if (!options.is_auto("session_memory_total")) quota.memory = {size("session_memory_total", 0), ""};
  quota.sessions = access::most_sessions_of(config.room, config.needs, quota.memory.value);
  if (!options.is_auto("max_sessions")) quota.sessions = {static_cast<uint64_t>(options.integer("max_sessions")), ""};
  quota.memory_of_peer = size("session_memory_per_peer", access::Quota::kShare);
  const auto of_peer = static_cast<uint64_t>(options.integer("sessions_per_peer"));
  quota.sessions_of_peer = options.is_auto("sessions_per_peer") ? access::Quota::kShare
                           : of_peer == 0                       ? access::kUnlimited
                                                                : of_peer;
}

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

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
