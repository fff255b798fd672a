#include "proxy/config.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "admin/address.h"
#include "base/cpu.h"
#include "base/cpu_plan.h"
#include "base/log/log.h"
#include "base/service/program.h"
#include "base/text.h"
#include "discovery/name_entry.h"
#include "discovery/resolver.h"
#include "proxy/commands/cluster.h"
#include "proxy/log_events.h"
#include "proxy/users/credentials.h"
#include "rpc/session_table.h"
#include "tls/options.h"
#include "transport/address.h"
#include "transport/doctor.h"
#include "wire/slot.h"

namespace egret::proxy {

using base::OptionGroup;
using base::OptionRow;
using base::Options;
using base::OptionType;
using base::Status;

namespace {

constexpr base::AppliedBy kReload = base::AppliedBy::kReload;
constexpr int64_t kMiB = 1 << 20;
constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kOtherDescriptors = 256;  // besides clients and sessions
// At most. Over shared memory: the connection, its wake-up, and a ring for each lane.
constexpr uint64_t kDescriptorsPerSession = 16;
constexpr uint64_t kDescriptorsPerLocalSession = 2 + transport::kMostLaneRings;
constexpr uint64_t kDescriptorsPerSlotSession = 4;
constexpr uint64_t kLeastSlotSessions = 16;  // however few descriptors there are
constexpr uint64_t kExpectedBackends = 64;   // of names and a file, whose number is not known
constexpr uint64_t kSlotsIdleNs = 50'000;    // a program that links libegret, or is preloaded, asks again within it

constexpr OptionRow kTable[] = {
    {.name = "listen",
     .type = OptionType::kList,
     .default_value = "tcp:127.0.0.1:11211",
     .help = "Where memcached clients connect: tcp:HOST:PORT (IPv6 in brackets; HOST *: every address), "
             "tls:HOST:PORT, unix:PATH. Sockets passed by systemd (egret-proxy.socket) keep their addresses "
             "and replace the default.",
     .min = 1,
     .max = 16,
     .applied_by = kReload,
     .group = OptionGroup::kListening,
     .is_usual = true},
    {.name = "unix_mode",
     .type = OptionType::kText,
     .default_value = "0700",
     .help = "Access mode of Unix sockets, octal, as memcached's -a.",
     .min = 1,
     .max = 5,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "backlog",
     .type = OptionType::kInteger,
     .default_value = "1024",
     .help = "Client connections that may wait to be accepted, as memcached's -b; the kernel may allow fewer.",
     .min = 1,
     .max = 65535,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "protocol",
     .type = OptionType::kChoice,
     .default_value = "auto",
     .help = "The protocol of clients, as memcached's -B: text (meta commands included), binary, or auto: the client's "
             "first "
             "byte decides.",
     .choices = "auto|ascii|binary",
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "slots",
     .type = OptionType::kList,
     .default_value = "auto",
     .help =
         "Where libegret and programs preloaded with it reach this proxy by shared memory. auto: beside each address "
         "of listen, tcp:HOST:PORT as the abstract socket @egret/tcp:HOST:PORT, unix:PATH as PATH.slots. Further "
         "ones: paths, or @NAME. Nowhere: none.",
     .min = 1,
     .max = 16,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "slots_uids",
     .type = OptionType::kList,
     .default_value = "",
     .help = "User ids that may connect there, besides root and the one this process runs as.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "slots_gids",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Group ids whose users may connect there, by their own or a supplementary group.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "auth_file",
     .type = OptionType::kText,
     .default_value = "",
     .help = "File of users, one USER:PASSWORD per line, as memcached's -Y: clients must authenticate, by memcached's "
             "ASCII "
             "authentication or by SASL PLAIN in the binary protocol. Mode 0640 or less: it holds passwords. Empty: no "
             "authentication.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "users_file",
     .type = OptionType::kText,
     .default_value = "",
     .help =
         "YAML file of users with a password's hash, rights (read, write, admin) and prefixes of the keys that they "
         "may use: clients must authenticate as with auth_file, which may be given, too; its users may do "
         "everything. See docs/operate/users.md. Mode 0640 or less. Empty: none.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "auth_guesses",
     .type = OptionType::kInteger,
     .default_value = "10",
     .help =
         "Wrong passwords that are answered at once: on one connection, and for one user from one address, over all "
         "connections. Further ones wait, each for auth_guess_interval. Others are not delayed: other users, other "
         "addresses, and whoever is right.",
     .min = 1,
     .max = 1'000'000,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "auth_guess_interval",
     .type = OptionType::kDuration,
     .default_value = "1s",
     .help = "After auth_guesses wrong passwords: how long until another one is answered. An address is an IPv4 "
             "address, a /64 network of IPv6, or the user at the other end of a Unix socket.",
     .min = kSecond / 1000,
     .max = 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "drain",
     .type = OptionType::kDuration,
     .default_value = "5s",
     .help = "After a request to stop: how long to go on answering clients, at most. The proxy ends as soon as all "
             "requests are answered. More than 25s needs a longer TimeoutStopSec in the unit.",
     .min = kSecond / 1000,
     .max = 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "cluster",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Proxies that `config get cluster` names to clients with auto discovery, each HOST:PORT or HOST|IP|PORT. "
             "Empty: this one, by the address that the client has connected to.",
     .max = 1024,
     .applied_by = kReload,
     .group = OptionGroup::kListening},
    {.name = "backends",
     .type = OptionType::kList,
     .default_value = "shm:/run/egret/backend.sock",
     .help =
         "The pool of backends over which keys are spread, each ADDRESS [weight=N] [name=NAME]. ADDRESS: where an "
         "egret-backend listens, rdma:HOST:PORT, tcp:HOST:PORT, rdma+tcp:HOST:PORT (by RDMA, and by TCP while RDMA "
         "cannot "
         "be had), shm:PATH or shm:@NAME. weight: 1 to 1000, default 1. "
         "name: what ketama hashes, by default the text after rdma:, tcp:, rdma+tcp: or shm:. Or names to be resolved "
         "again and again: dns+rdma:NAME:PORT (each A and AAAA record is a backend) and srv+rdma:NAME (each SRV record "
         "is "
         "one, named after its target), or with tcp or rdma+tcp in the place of rdma, each with [weight=N]. The "
         "default holds without backends_file.",
     .min = 1,
     .max = int64_t{pool::kMaxMembers},
     .applied_by = kReload,
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "backends_file",
     .type = OptionType::kText,
     .default_value = "",
     .help = "File with further backends, one a line as in backends; # begins a comment. It is watched: changes apply "
             "within some seconds, without a reload. Replace it by renaming another over it. Empty: none.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "backends_file_copy",
     .type = OptionType::kText,
     .default_value = "",
     .help =
         "Where the last good content of backends_file is kept, for a start while that file is missing or wrong. "
         "Empty: backends.good in systemd's state directory of the service, else backends_file with .good behind it.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "backends_most_removed",
     .type = OptionType::kInteger,
     .default_value = "50",
     .help = "Percent of its backends that a change of backends_file may remove; one that removes more is refused, "
             "unless a reload (SIGHUP) asks for it.",
     .min = 0,
     .max = 100,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "dns_servers",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Name servers for the names in backends, each ADDRESS[:PORT] (IPv6 with a port in brackets). Empty: those "
             "of /etc/resolv.conf.",
     .max = 16,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "placement",
     .type = OptionType::kChoice,
     .default_value = "ketama",
     .help = "How keys are spread over the backends, by their names and weights. ketama: as libmemcached's weighted "
             "ketama, so that clients of a pool of memcacheds find their keys. rendezvous: more evenly, and no more "
             "keys move than must. The same in all proxies.",
     .choices = "ketama|rendezvous",
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "secret_file",
     .type = OptionType::kText,
     .default_value = "",
     .help = "File with the secret that this proxy and the backends prove to each other: 16 to 4096 bytes, the same on "
             "both sides, mode 0400. Empty: none.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "session_tls_certificate",
     .type = OptionType::kText,
     .default_value = "",
     .help =
         "PEM file with this proxy's certificate, and its chain: with backends at tcp: addresses it and they prove by "
         "certificates who they are, and everything is encrypted (TLS 1.3). New sessions use what a reload reads. "
         "Empty: no TLS.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "session_tls_key",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with its private key, without a passphrase. Empty: the key is in session_tls_certificate.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "session_tls_ca",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with the authorities that sign the backends' certificates.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "session_tls_names",
     .type = OptionType::kList,
     .default_value = "",
     .help =
         "Names or addresses, one of which a backend's certificate must be for (subjectAltName). Empty: the host in "
         "the backend's address.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "backend_uids",
     .type = OptionType::kList,
     .default_value = "",
     .help = "User ids that may serve this proxy over shm, besides root and the one this process runs as.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "sessions",
     .type = OptionType::kChoice,
     .default_value = "worker",
     .help =
         "Who has sessions with backends that are reached by rdma or tcp. worker: every worker, one with each. host: "
         "one worker for each backend, to which the others hand over their ops by shared memory: fewer queue pairs "
         "and less pinned memory at the backend, for more CPU here.",
     .choices = "worker|host",
     .group = OptionGroup::kBackends},
    {.name = "session_memory",
     .type = OptionType::kSize,
     .default_value = "64MiB",
     .help = "Most memory that the slots of one session, of a worker with a backend, may take. A backend that grants "
             "more (its own session_memory) is refused.",
     .min = 1 << 20,
     .max = int64_t{1} << 30,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "op_timeout",
     .type = OptionType::kDuration,
     .default_value = "2s",
     .help = "The longest that an op waits for its result; then it is answered with an error. After twice as long the "
             "session is renewed.",
     .min = kSecond / 1000,
     .max = 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "reconnect_max",
     .type = OptionType::kDuration,
     .default_value = "1s",
     .help = "Longest pause between two attempts to reach a backend, and between two probes of an ejected one; the "
             "first is 10ms.",
     .min = kSecond / 100,
     .max = 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "eject_after",
     .type = OptionType::kInteger,
     .default_value = "3",
     .help = "A backend is ejected after so many messages in a row without an answer within op_timeout: requests for "
             "its keys then fail at once, until it answers a probe. One that nobody reaches is ejected at once.",
     .min = 1,
     .max = 1'000'000,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "eject_share",
     .type = OptionType::kInteger,
     .default_value = "50",
     .help =
         "Percent of the backends, rounded down, that may be ejected at the same time, at least one where there is a "
         "gutter; further ones are tried on. 0: none is ever ejected.",
     .min = 0,
     .max = 100,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "failover",
     .type = OptionType::kChoice,
     .default_value = "none",
     .help = "What happens to requests for the keys of an ejected backend. none: they fail. gutter: the backends of "
             "gutter take them until it returns; what they have changed is then purged on it. The same in all proxies.",
     .choices = "none|gutter",
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "gutter",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Spare backends for failover: gutter, each ADDRESS [weight=N] [name=NAME] as in backends. They own no "
             "keys. The same in all proxies.",
     .max = int64_t{pool::Membership::kMaxGutter},
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "gutter_ttl",
     .type = OptionType::kDuration,
     .default_value = "60s",
     .help = "What is stored in the gutter expires after so long at the latest, whatever its client has asked for.",
     .min = kSecond,
     .max = 24 * 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "warm_for",
     .type = OptionType::kDuration,
     .default_value = "60s",
     .help = "After a change of the pool's members, values of keys that moved are brought from their backend before to "
             "the present one when they are asked for, for so long. 0: they are missed.",
     .min = 0,
     .max = 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "purge_moved",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "When the backends of the pool change, each removes what it still holds of keys that were not its own "
             "before, so that it never serves an old value when they come back to it. Off where two pools share a "
             "backend.",
     .applied_by = kReload,
     .group = OptionGroup::kBackends},
    {.name = "large_value_memory",
     .type = OptionType::kSize,
     .default_value = "64MiB",
     .help = "Memory for large values, for all workers together: half for values that are fetched in several messages, "
             "until "
             "their clients have read them; half for values that are collected from clients because the backend has no "
             "room "
             "yet. A connection has at most one; further ones wait.",
     .min = kMiB,
     .max = int64_t{1} << 40,
     .applied_by = kReload,
     .group = OptionGroup::kMemory},
    {.name = "connection_memory",
     .type = OptionType::kSize,
     .default_value = "512KiB",
     .help =
         "Memory that one client connection may hold: unread answers and pending replies. At the limit its commands "
         "are not read until it has read answers.",
     .min = 64 * 1024,
     .max = int64_t{1} << 40,
     .applied_by = kReload,
     .group = OptionGroup::kMemory},
    {.name = "client_memory",
     .type = OptionType::kSize,
     .default_value = "256MiB",
     .help = "The same for all client connections together; each worker has an equal share. At the limit only "
             "connections that hold nothing are read.",
     .min = kMiB,
     .max = int64_t{1} << 40,
     .applied_by = kReload,
     .group = OptionGroup::kMemory},
    {.name = "slots_memory",
     .type = OptionType::kSize,
     .default_value = "256MiB",
     .help =
         "Memory for the slots of all clients that reach backends through this proxy by shared memory. A session of "
         "a thread with a backend takes partitions x slots_window x (slots_request_size + slots_response_size).",
     .min = kMiB,
     .max = int64_t{1} << 40,
     .applied_by = kReload,
     .group = OptionGroup::kMemory},
    {.name = "slots_share",
     .type = OptionType::kInteger,
     .default_value = "75",
     .help = "Percent of slots_memory that the sessions of one user may take.",
     .min = 1,
     .max = 100,
     .applied_by = kReload,
     .group = OptionGroup::kMemory},
    {.name = "slots_sessions",
     .type = OptionType::kInteger,
     .default_value = "1024",
     .help = "Most sessions of clients with backends through this proxy by shared memory: one for each thread and "
             "backend. Each takes four descriptors.",
     .min = 1,
     .max = 100'000,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "max_connections",
     .type = OptionType::kInteger,
     .default_value = "4096",
     .help = "Most client connections at the same time. A further one gets 'ERROR Too many open connections' and is "
             "closed, or waits: see maxconns_fast.",
     .min = 1,
     .max = 1'000'000,
     .applied_by = kReload,
     .group = OptionGroup::kLimits,
     .is_usual = true},
    {.name = "maxconns_fast",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "Whether connections above max_connections are refused at once. If not, none is accepted until one "
             "leaves.",
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "idle_timeout",
     .type = OptionType::kDuration,
     .default_value = "0",
     .help = "A client that has sent nothing (and read no output) for this long is disconnected; not on Unix "
             "sockets. 0: never.",
     .max = 366 * 24 * 3600 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "workers",
     .type = OptionType::kInteger,
     .default_value = "0",
     .help = "Worker threads. 0: a quarter of the CPUs that this process may use, 1 to 4.",
     .min = 0,
     .max = 64,
     .group = OptionGroup::kLimits,
     .is_usual = true},
    {.name = "allow_flush",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "Whether clients may flush_all; memcached's -F turns it off.",
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "allow_watch",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "Whether clients may watch what others do; memcached's -W turns it off.",
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "allow_dump",
     .type = OptionType::kFlag,
     .default_value = "true",
     .help = "Whether clients may list all keys (lru_crawler metadump, stats cachedump); memcached's -X turns it off.",
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "allow_shutdown",
     .type = OptionType::kFlag,
     .default_value = "false",
     .help = "Whether clients may stop this proxy by the command shutdown; memcached's -A turns it on.",
     .applied_by = kReload,
     .group = OptionGroup::kLimits},
    {.name = "tls_certificate",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with the certificate of the tls: addresses, and its chain.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "tls_key",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with its private key, without a passphrase. Empty: the key is in tls_certificate.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "tls_ca_certificate",
     .type = OptionType::kText,
     .default_value = "",
     .help = "PEM file with the authorities whose client certificates are accepted.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "tls_verify",
     .type = OptionType::kChoice,
     .default_value = "none",
     .help = "Client certificates. request: if a client presents one, it must be valid. require: a client must present "
             "one. once: as require. memcached's ssl_verify_mode 0 to 3.",
     .choices = "none|request|require|once",
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "tls_ciphers",
     .type = OptionType::kText,
     .default_value = "",
     .help = "Ciphers up to TLS 1.2, in the syntax of `openssl ciphers`. Empty: OpenSSL's default.",
     .max = base::kMaxTextBytes,
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "tls_min_version",
     .type = OptionType::kChoice,
     .default_value = "1.2",
     .help = "Lowest TLS version.",
     .choices = "1.0|1.1|1.2|1.3",
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "tls_session_cache",
     .type = OptionType::kFlag,
     .default_value = "false",
     .help = "Whether the proxy stores TLS sessions, too. Clients can resume sessions by tickets in any case.",
     .applied_by = kReload,
     .group = OptionGroup::kTls},
    {.name = "qps_per_session",
     .type = OptionType::kInteger,
     .default_value = "1",
     .help = "Queue pairs of a session over rdma; lanes are distributed over them.",
     .min = 1,
     .max = 16,
     .group = OptionGroup::kRdma},
    {.name = "ack_timeout",
     .type = OptionType::kInteger,
     .default_value = "16",
     .help = "Over rdma: how long the device waits for an acknowledgement, 4.096us x 2^N, before it sends again; after "
             "six times in vain the session is lost. 16: a dead host is noticed after 1.9s, and a failover of the "
             "network that takes less is survived. Sessions opened from now on.",
     .min = 8,
     .max = 24,
     .applied_by = kReload,
     .group = OptionGroup::kRdma},
    {.name = "tos",
     .type = OptionType::kInteger,
     .default_value = "-1",
     .help = "Over rdma: the traffic class of RoCE packets in both directions, as the byte in the IP header: 4 x DSCP, "
             "104 for DSCP 26. -1: what the host's rdma_cm gives (cma_roce_tos). Sessions opened from now on.",
     .min = -1,
     .max = 255,
     .applied_by = kReload,
     .group = OptionGroup::kRdma},
    {.name = "gid_index",
     .type = OptionType::kInteger,
     .default_value = "-1",
     .help = "Over rdma, where the address that the host would connect from is not the wanted one: the index in the "
             "GID table of the device by which the backend is reached. -1: as the host's routes say. Sessions opened "
             "from now on.",
     .min = -1,
     .max = 255,
     .applied_by = kReload,
     .group = OptionGroup::kRdma},
    {.name = "pkey",
     .type = OptionType::kText,
     .default_value = "",
     .help = "Over rdma on InfiniBand: the partition, like 0x8001, that sessions must be in; an IPoIB interface with "
             "an address has to be in it. Empty: that of the interface by which the host reaches the backend. Sessions "
             "opened from now on.",
     .max = 6,
     .applied_by = kReload,
     .group = OptionGroup::kRdma},
    {.name = "ready_share",
     .type = OptionType::kInteger,
     .default_value = "50",
     .help = "Percent of the backends that must be up for the admin address's /readyz/share to answer 200.",
     .min = 1,
     .max = 100,
     .applied_by = kReload,
     .group = OptionGroup::kObservability},
    admin::option_row("127.0.0.1:11280"),
    admin::kAdminHostsRow,
    base::kLogLevelRow,
    base::kLogFormatRow,
    {.name = "pin",
     .type = OptionType::kChoice,
     .default_value = "auto",
     .help = "Whether each worker stays on a CPU of its own. auto: if the CPUs are enough for the workers, the "
             "partitions of a backend on this host (assumed: half as many as CPUs) and one more.",
     .choices = "auto|on|off",
     .group = OptionGroup::kExpert,
     .measured_by = "requests a second and CPU of egret-bench beside the application"},
    {.name = "window",
     .type = OptionType::kInteger,
     .default_value = "32",
     .help = "Slots per lane to ask the backend for; it may grant fewer.",
     .min = wire::kMinWindow,
     .max = wire::kMaxWindow,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_ops / egret_messages in stats, and the p99 of egret_proxy_rpc_seconds"},
    {.name = "slots_window",
     .type = OptionType::kInteger,
     .default_value = "4",
     .help = "Slots per lane that a client gets at most who reaches a backend through this proxy by shared memory.",
     .min = wire::kMinWindow,
     .max = wire::kMaxWindow,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_proxy_slots_waits_total, and ops / messages of egret_proxy_slots"},
    {.name = "slots_idle",
     .type = OptionType::kDuration,
     .default_value = "0",
     .help =
         "How long a worker polls the lanes of such clients for a next request, before they fall asleep and the next "
         "one has to wake it. It does not poll where that rarely pays. 0: 50us if there are more CPUs than workers, "
         "else as spin.",
     .max = kSecond / 100,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "p50 and CPU of egret-bench client through a proxy"},
    {.name = "slots_request_size",
     .type = OptionType::kSize,
     .default_value = "4KiB",
     .help = "Most bytes of a request slot of such a client, 1KiB or more and a multiple of 64.",
     .min = wire::kMinSlotSize,
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_proxy_slots_ops_total by the size of values that are set"},
    {.name = "slots_response_size",
     .type = OptionType::kSize,
     .default_value = "16KiB",
     .help = "Most bytes of a response slot of such a client, 1KiB or more and a multiple of 64.",
     .min = wire::kMinSlotSize,
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_proxy_slots_ops_total by the size of values that are read"},
    {.name = "request_slot_size",
     .type = OptionType::kSize,
     .default_value = "0",
     .help = "Most bytes of a request slot to ask the backend for, 1KiB or more and a multiple of 64; it may grant "
             "fewer. 0: what the backend has. A longer value is sent in parts.",
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_ops / egret_messages in stats, and egret_backend_session_memory_bytes of the backend"},
    {.name = "response_slot_size",
     .type = OptionType::kSize,
     .default_value = "0",
     .help = "Most bytes of a response slot to ask the backend for, 1KiB or more and a multiple of 64; it may grant "
             "fewer. 0: what the backend has. A longer value is fetched in parts.",
     .max = wire::kMaxLongSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_ops / egret_messages in stats, and egret_backend_session_memory_bytes of the backend"},
    {.name = "idle_window",
     .type = OptionType::kInteger,
     .default_value = "2",
     .help = "Slots per lane that a session over a network begins with. It gets window of them when ops wait for slots "
             "or values do not fit one, and gives them back after give_back_after. 0, or window and more: all at once.",
     .max = wire::kMaxWindow,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_proxy_session_slot_bytes, egret_proxy_session_resizes_total and egret_stalls in stats"},
    {.name = "idle_slot_size",
     .type = OptionType::kSize,
     .default_value = "1536",
     .help = "Most bytes of a slot, for requests and for responses, in such a session, 1KiB or more and a multiple of "
             "64. 0: as large as the others.",
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_proxy_session_slot_bytes, and egret_backend_session_memory_bytes of the backend"},
    {.name = "give_back_after",
     .type = OptionType::kDuration,
     .default_value = "60s",
     .help = "A session over a network that has sent fewer than 50 messages a second for so long, and up to a quarter "
             "longer, returns to idle_window and idle_slot_size. 0: never.",
     .max = 86400 * kSecond,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_proxy_session_resizes_total"},
    {.name = "spin",
     .type = OptionType::kDuration,
     .default_value = "0",
     .help = "How long a worker polls for a result before it sleeps and has the result delivered. 0: 20us "
             "if the CPUs are enough (see pin), else 2us. With a local backend, the worker skips "
             "polling while it rarely pays.",
     .max = kSecond / 100,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "process_cpu_seconds_total of the proxy beside the p99 of egret_proxy_request_seconds"},
    {.name = "max_refetches",
     .type = OptionType::kInteger,
     .default_value = "5",
     .help =
         "After two responses in a row that each needed more than this many extra reads, the lane asks the backend to "
         "push results. Over shm each 2us of waiting counts as one extra read.",
     .min = 0,
     .max = 1000,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_refetches / egret_messages and egret_switches in stats"},
    {.name = "fetch_mode",
     .type = OptionType::kChoice,
     .default_value = "auto",
     .help =
         "How lanes wait for results. fetch: they fetch, and ask for delivery only before the worker sleeps. reply: "
         "they ask with every request. auto: they fetch until max_refetches says otherwise, and again when the "
         "backend answers quickly; over rdma they also ask while the backend says that pushing is cheap, where a "
         "push is much quicker, and of a partition that probably sleeps.",
     .choices = "auto|fetch|reply",
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_switches and egret_refetches / egret_messages in stats, and the CPU of both daemons"},
    {.name = "fetch_min",
     .type = OptionType::kSize,
     .default_value = "256",
     .help = "Fewest bytes that the first READ of a response takes over rdma (F, learned by lane), a multiple of 64.",
     .min = rpc::kFetchStep,
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "fetch_size of each lane in stats egret"},
    {.name = "fetch_max",
     .type = OptionType::kSize,
     .default_value = "64KiB",
     .help = "Most bytes of that READ, a multiple of 64; a longer response costs a second READ. Never more than the "
             "backend's response_slot_size, which is where it ends by default.",
     .min = rpc::kFetchStep,
     .max = wire::kMaxSlotSize,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "egret_second_reads / egret_messages in stats"},
    {.name = "main_pid",
     .type = OptionType::kInteger,
     .default_value = "0",
     .help = "The process id that `stats` shows as pid; egret-memcached sets its own, since its end ends both daemons. "
             "0: this process's.",
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "nothing, egret-memcached sets it"},
    {.name = "told_settings",
     .type = OptionType::kList,
     .default_value = "",
     .help = "Rows NAME=VALUE for `stats settings`: values of flags of egret-memcached that have no meaning here.",
     .max = 64,
     .applied_by = kReload,
     .group = OptionGroup::kExpert,
     .measured_by = "nothing, egret-memcached sets it"},
};

// "127.0.0.1:11211", "[::1]:11211", "localhost:11211"
bool parse_tcp(std::string_view text, ListenAddress& address) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  address.host = host;
  return error == std::errc{} && end == port.data() + port.size() && !host.empty();
}

Status parse_listen(const Options& options, std::vector<ListenAddress>& listen) {
  for (const std::string& text : options.list("listen")) {
    ListenAddress address;
    if (text.starts_with("unix:") && text.size() > 5) {
      address.kind = ListenAddress::Kind::kUnix;
      address.host = text.substr(5);
    } else {
      const bool is_tls = text.starts_with("tls:");
      if (is_tls) address.kind = ListenAddress::Kind::kTls;
      if ((!is_tls && !text.starts_with("tcp:")) || !parse_tcp(std::string_view(text).substr(4), address)) {
        return options.error("listen", "expected tcp:HOST:PORT, tls:HOST:PORT or unix:PATH, got \"" + text + "\"");
      }
      if (const std::string fault = base::host_fault(address.host); !fault.empty()) {
        return options.error("listen", fmt::format("{}: {}", text, fault));
      }
    }
    listen.push_back(address);
  }
  return Status::ok();
}

Status parse_slots(const Options& options, SlotOptions& slots) {
  slots.has_twins = false;
  const std::vector<std::string>& places = options.list("slots");
  for (const std::string& place : places) {
    if (place == "auto") {
      slots.has_twins = true;
    } else if (place == "none") {
      if (places.size() > 1) return options.error("slots", "none stands beside others");
    } else if (place.starts_with('/') || place.starts_with('@')) {
      if (Status good = transport::check_address("shm:" + place); !good) return options.error("slots", good.message());
      slots.addresses.push_back(place);
    } else {
      return options.error("slots", "expected auto, none, a path or @NAME, got \"" + place + "\"");
    }
  }
  if (Status good = options.user_ids("slots_uids", slots.uids); !good) return good;
  if (Status good = options.user_ids("slots_gids", slots.gids); !good) return good;
  slots.most_sessions = static_cast<uint32_t>(options.integer("slots_sessions"));
  slots.memory = options.size("slots_memory");
  slots.share = static_cast<uint32_t>(options.integer("slots_share"));
  slots.window = static_cast<uint32_t>(options.integer("slots_window"));
  slots.request_slot = static_cast<uint32_t>(options.size("slots_request_size"));
  slots.response_slot = static_cast<uint32_t>(options.size("slots_response_size"));
  for (const char* name : {"slots_request_size", "slots_response_size"}) {
    if (options.size(name) % 64 != 0) return options.error(name, "expected a multiple of 64");
  }
  return Status::ok();
}

// Checks the files only if there is a tls: address.
Status parse_tls(const Options& options, Config& config) {
  TlsOptions& tls = config.tls;
  tls.certificate = options.text("tls_certificate");
  tls.key = options.text("tls_key");
  tls.ca_certificate = options.text("tls_ca_certificate");
  tls.ciphers = options.text("tls_ciphers");
  tls.session_cache = options.flag("tls_session_cache");
  const std::string& verify = options.text("tls_verify");
  tls.verify = verify == "request"   ? TlsVerify::kRequest
               : verify == "require" ? TlsVerify::kRequire
               : verify == "once"    ? TlsVerify::kOnce
                                     : TlsVerify::kNone;
  tls.min_version = static_cast<uint8_t>(options.text("tls_min_version").back() - '0');
  if (!config.has_tls()) return Status::ok();
  const TlsContext loaded = load_tls(tls);
  return loaded.is_ok() ? Status::ok() : options.error(loaded.option, loaded.fault);
}

// Where the copy of backends_file is without the option backends_file_copy: /etc cannot be written under systemd.
std::string default_copy_path(const std::string& path) {
  const char* const state = std::getenv("STATE_DIRECTORY");
  return state != nullptr && *state != '\0' ? std::string(state) + "/backends.good" : path + ".good";
}

Status parse_directory(const Options& options, Config& config) {
  discovery::DirectoryOptions& directory = config.directory;
  directory.file.path = options.text("backends_file");
  if (directory.file.path.empty() || options.is_given("backends")) directory.entries = options.list("backends");
  if (Status good = discovery::Directory::check_entries(directory.entries); !good) {
    return options.error("backends", good.message());
  }
  directory.file.copy_path = options.text("backends_file_copy");
  if (directory.file.copy_path.empty()) directory.file.copy_path = default_copy_path(directory.file.path);
  directory.file.most_removed = static_cast<unsigned>(options.integer("backends_most_removed"));
  directory.names.resolver.servers = fmt::format("{}", fmt::join(options.list("dns_servers"), ","));
  if (const std::string& servers = directory.names.resolver.servers; !servers.empty()) {
    if (Status good = discovery::check_servers(servers); !good) {
      return options.error("dns_servers", good.message());
    }
  }
  config.placement =
      options.text("placement") == "rendezvous" ? pool::PlacementRule::kRendezvous : pool::PlacementRule::kKetama;
  return Status::ok();
}

Status parse_gutter(const Options& options, Config& config) {
  pool::GutterOptions& gutter = config.gutter;
  gutter.is_on = options.text("failover") == "gutter";
  gutter.ttl_s = static_cast<uint32_t>(options.duration_ns("gutter_ttl") / kSecond);
  for (const std::string& entry : options.list("gutter")) {
    auto member = pool::parse_member(entry);
    if (!member) return options.error("gutter", member.message());
    const auto is_it = [&](const std::string& text) {
      const auto backend = pool::parse_member(text);
      return backend && backend.value().address == member.value().address;
    };
    if (std::ranges::any_of(config.directory.entries, is_it)) {
      return options.error("gutter", member.value().to_string() + " is one of the backends");
    }
    gutter.members.push_back(std::move(member.value()));
  }
  if (gutter.members.empty()) {
    return gutter.is_on ? options.error("failover", "gutter needs backends in the option gutter") : Status::ok();
  }
  const Status good = pool::check_members(gutter.members);
  return good ? good : options.error("gutter", good.message());
}

Status parse_cluster(const Options& options, Config& config) {
  config.cluster = options.list("cluster");
  config.cluster_version = static_cast<uint64_t>(std::time(nullptr));
  const Status good = check_cluster(config.cluster);
  return good ? good : options.error("cluster", good.message());
}

Status read_users(const Options& options, Config& config) {
  const std::string& auth_file = options.text("auth_file");
  const std::string& users_file = options.text("users_file");
  if (auth_file.empty() && users_file.empty()) return Status::ok();
  auto users = std::make_shared<Credentials>();
  if (!auth_file.empty()) {
    if (Status read = users->load_auth_file(auth_file); !read) return options.error("auth_file", read.message());
  }
  if (!users_file.empty()) {
    if (Status read = users->load_users_file(users_file); !read) return options.error("users_file", read.message());
  }
  config.credentials = std::move(users);
  return Status::ok();
}

// What the sessions with backends have in common, and when a backend is ejected. `roomy`: there are CPUs enough to poll.
Status parse_session(const Options& options, Config& config, bool roomy) {
  if (Status good = rpc::read_session_options(options, roomy, config.session); !good) return good;
  auto mutual = tls::read_options(options);
  if (!mutual) return mutual.status();
  config.session.connect.tls = std::move(mutual.value());
  config.health = {.eject_after = static_cast<uint64_t>(options.integer("eject_after")),
                   .eject_share = static_cast<uint32_t>(options.integer("eject_share")),
                   .probe_first_ns = config.session.backoff_min_ns,
                   .probe_most_ns = config.session.backoff_max_ns};
  config.warm_for_ns = options.duration_ns("warm_for");
  config.purge_moved = options.flag("purge_moved");
  return Status::ok();
}

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

std::string ListenAddress::to_string() const {
  if (is_unix()) return "unix:" + host;
  const bool is_v6 = host.find(':') != std::string::npos;
  return std::string(is_tls() ? "tls:" : "tcp:") + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::span<const pool::Member> gutter_of(const Config& config) {
  return config.gutter.is_on ? std::span<const pool::Member>(config.gutter.members) : std::span<const pool::Member>();
}

uint64_t most_backends(const Config& config) {
  const discovery::DirectoryOptions& directory = config.directory;
  const bool is_fixed =
      directory.file.path.empty() && std::ranges::none_of(directory.entries, discovery::is_name_entry);
  return gutter_of(config).size() +
         (is_fixed ? directory.entries.size() : std::max<uint64_t>(directory.entries.size(), kExpectedBackends));
}

// Backends that are reached through shared memory, as far as they are listed by address.
uint64_t local_backends(const Config& config) {
  const auto is_local = [](const pool::Member& member) { return transport::is_shm(member.address); };
  const auto is_local_entry = [&](const std::string& entry) {
    const auto member = pool::parse_member(entry);
    return member.is_ok() && is_local(member.value());
  };
  return static_cast<uint64_t>(std::ranges::count_if(gutter_of(config), is_local) +
                               std::ranges::count_if(config.directory.entries, is_local_entry));
}

DescriptorNeed descriptor_need(const Config& config) {
  const uint64_t local = local_backends(config);
  const uint64_t others = most_backends(config) - local;
  DescriptorNeed need{
      .clients = config.max_connections,
      .sessions = config.workers * (kDescriptorsPerSession * others + kDescriptorsPerLocalSession * local),
      .slots = config.slots.is_on() ? kDescriptorsPerSlotSession * config.slots.most_sessions : 0,
      .others = kOtherDescriptors,
      .arithmetic = {}};
  need.arithmetic = std::to_string(need.clients) + " clients (max_connections) + ";
  const auto add = [&](uint64_t each, uint64_t backends, const char* which) {
    if (backends == 0) return;
    need.arithmetic += std::to_string(each) + " x " + base::counted(config.workers, "worker") + " x " +
                       base::counted(backends, "backend") + which + " + ";
  };
  add(kDescriptorsPerSession, others, "");
  add(kDescriptorsPerLocalSession, local, " over shm");
  need.arithmetic += std::to_string(need.others);
  return need;
}

uint64_t DescriptorNeed::connections_within(uint64_t limit) const {
  const uint64_t besides = sessions + others;
  return limit > besides ? std::min(clients, limit - besides) : 1;
}

void fit_connections(Config& config) {
  const DescriptorNeed need = descriptor_need(config);
  const uint64_t limit = base::raise_descriptor_limit(need.total() + need.slots);
  if (limit >= need.total() + need.slots) return;
  const uint64_t left = (limit - std::min(limit, need.total())) / kDescriptorsPerSlotSession;
  config.slots.most_sessions = static_cast<uint32_t>(std::max(left, kLeastSlotSessions));
  if (limit >= need.total()) return;
  const uint64_t possible = need.connections_within(limit);
  base::log(kFewDescriptors,
            "max_connections lowered from {} to {}: the limit of open files is {} (systemd: LimitNOFILE)",
            base::field("wanted", config.max_connections), base::field("max_connections", possible),
            base::field("limit", limit));
  config.max_connections = static_cast<uint32_t>(possible);
}

bool Config::has_tls() const {
  return std::ranges::any_of(listen, &ListenAddress::is_tls);
}

base::Expected<Config> resolve_config(const Options& options) {
  Config config;
  if (Status good = parse_listen(options, config.listen); !good) return good;
  config.unix_mode = options.text("unix_mode");
  if (config.unix_mode.find_first_not_of("01234567") != std::string::npos) {
    return options.error("unix_mode", "expected an octal mode, got \"" + config.unix_mode + "\"");
  }
  if (Status good = parse_slots(options, config.slots); !good) return good;
  if (Status good = parse_directory(options, config); !good) return good;
  if (Status good = parse_gutter(options, config); !good) return good;
  const uint32_t cpus = static_cast<uint32_t>(base::allowed_cpus().size());
  config.workers = static_cast<uint32_t>(options.integer("workers"));
  if (config.workers == 0) config.workers = base::auto_workers(cpus);
  const std::string& pin = options.text("pin");
  const bool roomy = base::CpuPlan::of_proxy(cpus, config.workers).has_enough_cpus();
  config.is_session_per_host = options.text("sessions") == "host";
  config.pin = pin == "on" || (pin == "auto" && roomy);
  config.max_connections = static_cast<uint32_t>(options.integer("max_connections"));
  config.backlog = static_cast<uint32_t>(options.integer("backlog"));
  config.maxconns_fast = options.flag("maxconns_fast");
  config.idle_timeout_ns = options.duration_ns("idle_timeout");
  config.drain_ns = options.duration_ns("drain");
  if (Status good = parse_tls(options, config); !good) return good;
  const std::string& protocol = options.text("protocol");
  config.protocol = protocol == "ascii"    ? memcache::Protocol::kText
                    : protocol == "binary" ? memcache::Protocol::kBinary
                                           : memcache::Protocol::kAuto;
  if (Status read = read_users(options, config); !read) return read;
  config.guess_pace = {.burst = static_cast<uint32_t>(options.integer("auth_guesses")),
                       .interval_ns = options.duration_ns("auth_guess_interval")};
  config.allow_flush = options.flag("allow_flush");
  config.allow_watch = options.flag("allow_watch");
  config.allow_dump = options.flag("allow_dump");
  config.allow_shutdown = options.flag("allow_shutdown");
  config.large_value_memory = options.size("large_value_memory");
  config.connection_memory = options.size("connection_memory");
  config.client_memory = options.size("client_memory");
  if (Status good = parse_session(options, config, roomy); !good) return good;
  config.slots.idle_ns = options.duration_ns("slots_idle");
  if (config.slots.idle_ns == 0) config.slots.idle_ns = cpus > config.workers ? kSlotsIdleNs : config.session.spin_ns;
  config.main_pid = static_cast<int>(options.integer("main_pid"));
  config.told_settings = options.list("told_settings");
  auto admin = admin::read_options(options);
  if (!admin) return admin.status();
  config.admin = std::move(admin.value());
  if (Status good = parse_cluster(options, config); !good) return good;
  config.ready_share = static_cast<uint32_t>(options.integer("ready_share"));
  config.log_level = options.text("log_level");
  config.log_format = options.text("log_format");
  return config;
}

}  // namespace egret::proxy
