#include "backend/option_table.h"

#include "access/ceilings.h"
#include "admin/address.h"
#include "base/service/program.h"
#include "wire/slot.h"

namespace egret::backend {

using base::OptionGroup;
using base::OptionRow;
using base::OptionType;

namespace {

constexpr base::AppliedBy kReload = base::AppliedBy::kReload;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kMostSecrets = 16;

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
     .help = "Size of a request slot, 1KiB or more and a multiple of 64 bytes. 0: 16KiB, tcp 38KiB, rdma 4KiB.",
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

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

}  // namespace egret::backend
