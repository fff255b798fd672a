#include "memcached/flags.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace egret::memcached {

namespace {

using MaybeRefusal = std::optional<Refusal>;

constexpr double kAny = 1e15;  // memcached has no limit
constexpr double kNoFloor = -1e15;

// An absolute path, since -d changes the working directory to "/" before the daemons open the file.
std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
}

// "1048576", "512k", "1m". plan.cc checks it against the memory.
MaybeRefusal parse_item_size(const std::string& text, uint64_t& bytes) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const std::string_view unit = std::string_view(text).substr(static_cast<size_t>(end - text.data()));
  const bool is_kilo = unit == "k" || unit == "K";
  const bool is_mega = unit == "m" || unit == "M";
  if (error != std::errc{} || bytes >= (uint64_t{1} << 40) || !(unit.empty() || is_kilo || is_mega)) {
    return Refusal{"-I: expected a size such as 512k or 1m, got \"" + text + "\""};
  }
  bytes <<= is_mega ? 20 : is_kilo ? 10 : 0;
  return {};
}

// A flag for memcached's slabs, LRUs, hash table, crawlers or buffers, which Egret does not have.
constexpr Flag ignored(std::string_view name, std::string_view help, Value value = Value::kNone, double min = 0,
                       double max = 0, std::string_view settings_row = "", std::string_view setting = "{}") {
  return {.name = name,
          .is_extended = true,
          .value = value,
          .value_name = value == Value::kNone || value == Value::kOptionalText ? "" : "num",
          .min = min,
          .max = max,
          .fate = Fate::kIgnored,
          .option = settings_row,
          .setting = setting,
          .help = help};
}

constexpr Flag refused(std::string_view name, std::string_view why) {
  return {.name = name,
          .is_extended = true,
          .value = Value::kOptionalText,
          .fate = Fate::kRefused,
          .becomes = why,
          .is_hidden = true};
}

constexpr std::string_view kNoExtstore = "values are kept in memory only";
constexpr std::string_view kNoLuaProxy =
    "memcached's own proxy is not part of Egret; egret-proxy has a pool of backends";

constexpr Flag kTable[] = {
    // --- where clients connect
    {.letter = 'p',
     .name = "port",
     .value = Value::kWhole,
     .value_name = "num",
     .min = -1,
     .max = 1e9,
     .becomes = "egret-proxy `listen`; 0: none, -1: any free one",
     .help = "TCP port to listen on (default: 11211)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.port = std::stoll(value);
       return {};
     }},
    {.letter = 'U',
     .name = "udp-port",
     .value = Value::kWhole,
     .value_name = "num",
     .min = -1,
     .max = 1e9,
     .becomes = "0 only: UDP is refused",
     .help = "UDP port; only 0, off, is possible",
     .apply = [](Request&, const std::string& value) -> MaybeRefusal {
       if (std::stoll(value) == 0) return {};
       return Refusal{"UDP is not served: only -U 0 is possible"};
     }},
    {.letter = 's',
     .name = "unix-socket",
     .value = Value::kText,
     .value_name = "file",
     .becomes = "egret-proxy `listen: unix:FILE`, instead of TCP",
     .help = "UNIX socket to listen on (disables network support)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.unix_socket = absolute(value);
       return {};
     }},
    {.letter = 'a',
     .name = "unix-mask",
     .value = Value::kText,
     .value_name = "mask",
     .fate = Fate::kOption,
     .option = "unix_mode",
     .help = "access mask for UNIX socket, in octal (default: 700)"},
    {.letter = 'l',
     .name = "listen",
     .value = Value::kText,
     .value_name = "addr",
     .becomes = "egret-proxy `listen`; every address without it. `notls:` before an address leaves TLS out there",
     .help = "interface to listen on (default: INADDR_ANY), HOST or HOST:PORT, with commas between several; "
             "if TLS/SSL is enabled, the prefix 'notls:' disables it there (-l notls:<ip>:<port>)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.interfaces.push_back(value);
       return {};
     }},
    {.letter = 'b',
     .name = "listen-backlog",
     .value = Value::kWhole,
     .value_name = "num",
     .min = 1,
     .max = 65535,
     .fate = Fate::kOption,
     .option = "backlog",
     .help = "set the backlog queue limit (default: 1024)"},
    {.letter = 'c',
     .name = "conn-limit",
     .value = Value::kWhole,
     .value_name = "num",
     .min = 1,
     .max = 1'000'000,
     .fate = Fate::kOption,
     .option = "max_connections",
     .help = "max simultaneous connections (default: 1024)"},
    // --- the process
    {.letter = 'd',
     .name = "daemon",
     .becomes = "returns once clients are served",
     .help = "run as a daemon",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.daemon = true;
       return {};
     }},
    {.letter = 'P',
     .name = "pidfile",
     .value = Value::kText,
     .value_name = "file",
     .becomes = "written once clients are served, removed at the end",
     .help = "save PID in <file>",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.pid_file = absolute(value);
       return {};
     }},
    {.letter = 'u',
     .name = "user",
     .value = Value::kOptionalText,
     .value_name = "user",
     .becomes = "all of it runs as that user",
     .help = "assume identity of <username> (only when run as root)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.user = value;
       return {};
     }},
    {.letter = 'r',
     .name = "enable-coredumps",
     .becomes = "the limit of core files",
     .help = "maximize core file limit",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.core_dumps = true;
       return {};
     }},
    {.letter = 'v',
     .name = "verbose",
     .becomes = "`log_level` of both: warning, with -v info, with -vv debug",
     .help = "verbose: say what happens (-vv, -vvv: more)",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.told["verbosity"] = std::to_string(++request.verbosity);
       return {};
     }},
    {.name = "two-processes",
     .becomes = "an egret-backend and an egret-proxy as processes of their own; not memcached's",
     .help = "run store and parser as two processes, each with memory of its own (default: one process)",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.two_processes = true;
       return {};
     }},
    {.name = "doctor",
     .becomes = "what `--doctor` of egret-backend and egret-proxy check, for one process; not memcached's",
     .help = "check this host against these flags, say what to do about what is wrong, and exit",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.doctor = true;
       return {};
     }},
    {.letter = 'h',
     .name = "help",
     .becomes = "printed",
     .help = "print this help and exit",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.action = Action::kHelp;
       return {};
     }},
    {.name = "help-markdown",
     .becomes = "prints this table",
     .help = "print the table of docs/reference/egret-memcached.md and exit",
     .is_hidden = true,
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.action = Action::kHelpMarkdown;
       return {};
     }},
    {.letter = 'i',
     .name = "license",
     .becomes = "printed",
     .help = "print license and exit",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.action = Action::kLicense;
       return {};
     }},
    {.letter = 'V',
     .name = "version",
     .becomes = "memcached's version, whose behaviour this is, then Egret's",
     .help = "print version and exit",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.action = Action::kVersion;
       return {};
     }},
    // --- memory and items
    {.letter = 'm',
     .name = "memory-limit",
     .value = Value::kWhole,
     .value_name = "num",
     .min = 0,
     .max = 16.0 * 1024 * 1024,
     .becomes = "egret-backend `memory`, index and all",
     .help = "item memory in megabytes (default: 64)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.memory = static_cast<uint64_t>(std::stoll(value)) << 20;
       return {};
     }},
    {.letter = 'I',
     .name = "max-item-size",
     .value = Value::kText,
     .value_name = "num",
     .becomes = "egret-backend `item_size_max`, up to 128m",
     .help = "adjusts max item size (default: 1m, min: 1k, max: 128m)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       return parse_item_size(value, request.item_size_max);
     }},
    {.letter = 'M',
     .name = "disable-evictions",
     .fate = Fate::kOption,
     .daemon = Daemon::kBackend,
     .option = "evict",
     .setting = "false",
     .help = "return error on memory exhausted instead of evicting"},
    {.letter = 'e',
     .name = "memory-file",
     .value = Value::kText,
     .value_name = "file",
     .becomes = "egret-backend `warm_restart`: any stop but a kill keeps the items",
     .help = "keep items over a stop and a start in files whose names begin so; use only in ram disks",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.backend["warm_restart"] = absolute(value);
       request.told["memory_file"] = value;
       return {};
     }},
    {.letter = 'k',
     .name = "lock-memory",
     .becomes = "egret-backend `lock_memory`, `populate`",
     .help = "lock down all paged memory",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.backend["lock_memory"] = "true";
       request.backend["populate"] = "true";
       return {};
     }},
    {.letter = 'L',
     .name = "enable-largepages",
     .fate = Fate::kOption,
     .daemon = Daemon::kBackend,
     .option = "populate",
     .setting = "true",
     .help = "make all memory resident at once, on large pages where there are any"},
    {.letter = 't',
     .name = "threads",
     .value = Value::kWhole,
     .value_name = "num",
     .min = 1,
     .max = 1e6,
     .becomes = "egret-proxy `workers`, 64 at most; by default as many as suit this machine",
     .help = "number of threads to use (default: by the number of CPUs)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       constexpr int64_t kMost = 64;
       const int64_t threads = std::stoll(value);
       request.proxy["workers"] = std::to_string(std::min(threads, kMost));
       if (threads > kMost) request.ignored.push_back("-t above 64");
       return {};
     }},
    // --- what clients may do
    {.letter = 'B',
     .name = "protocol",
     .value = Value::kText,
     .value_name = "name",
     .becomes = "egret-proxy `protocol`",
     .help = "protocol - one of ascii, binary, or auto (default: auto-negotiate)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       if (value != "auto" && value != "ascii" && value != "binary") {
         return Refusal{
             "Invalid value for binding protocol: " + value + "\n -- should be one of auto, binary, or ascii", kUsage};
       }
       request.protocol = value;
       return {};
     }},
    {.letter = 'S',
     .name = "enable-sasl",
     .becomes = "egret-proxy `protocol: binary` and `auth_file`: what -Y or the variable MEMCACHED_SASL_PWDB names",
     .help = "turn on Sasl authentication, for the users of -Y's file or of MEMCACHED_SASL_PWDB's",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.sasl = true;
       return {};
     }},
    {.letter = 'Y',
     .name = "auth-file",
     .value = Value::kText,
     .value_name = "file",
     .becomes = "egret-proxy `auth_file`, and `protocol: ascii` without -S",
     .help = "enable ASCII protocol authentication. format: user:pass\\nuser2:pass2\\n",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.auth_file = absolute(value);
       return {};
     }},
    {.letter = 'A',
     .name = "enable-shutdown",
     .fate = Fate::kOption,
     .option = "allow_shutdown",
     .setting = "on",
     .help = "enable ascii \"shutdown\" command"},
    {.letter = 'F',
     .name = "disable-flush-all",
     .fate = Fate::kOption,
     .option = "allow_flush",
     .setting = "off",
     .help = "disable flush_all command"},
    {.letter = 'X',
     .name = "disable-dumping",
     .fate = Fate::kOption,
     .option = "allow_dump",
     .setting = "off",
     .help = "disable stats cachedump and lru_crawler metadump"},
    {.letter = 'W',
     .name = "disable-watch",
     .fate = Fate::kOption,
     .option = "allow_watch",
     .setting = "off",
     .help = "disable watch commands (live logging)"},
    {.name = "idle_timeout",
     .is_extended = true,
     .value = Value::kWhole,
     .value_name = "num",
     .min = 0,
     .max = 31'622'400,
     .fate = Fate::kOption,
     .option = "idle_timeout",
     .setting = "{}s",
     .help = "timeout for idle connections. (default: 0, no timeout)"},
    {.name = "maxconns_fast",
     .is_extended = true,
     .fate = Fate::kOption,
     .option = "maxconns_fast",
     .setting = "on",
     .help = "immediately close new connections after limit (default: enabled)"},
    {.name = "no_maxconns_fast",
     .is_extended = true,
     .fate = Fate::kOption,
     .option = "maxconns_fast",
     .setting = "off",
     .help = "let new connections wait after limit"},
    {.name = "egret_listen",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "addr",
     .becomes = "egret-backend `listen`; not memcached's. Without it: none",
     .help = "where other programs' sessions with the store come in, such as shm:PATH (default: nowhere)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.listen.push_back(value);
       return {};
     }},
    {.name = "egret_admin",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "addr",
     .becomes = "egret-proxy `admin`; not memcached's. Without it: none",
     .help = "where the proxy's metrics, health and status page are served (HOST:PORT or unix:PATH; default: nowhere)",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.proxy["admin"] = value;
       return {};
     }},
    {.name = "egret_backend_admin",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "addr",
     .becomes = "egret-backend `admin`; not memcached's. Without it: none",
     .help = "likewise the backend's",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.backend["admin"] = value;
       return {};
     }},
    {.name = "egret_admin_hosts",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "names",
     .becomes = "`admin_hosts` of both; not memcached's. Without it: addresses and localhost",
     .help = "host names by which these two may be asked, parted by colons",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       std::string names = value;
       std::ranges::replace(names, ':', ',');
       request.proxy["admin_hosts"] = request.backend["admin_hosts"] = names;
       return {};
     }},
    // --- TLS
    {.letter = 'Z',
     .name = "enable-ssl",
     .becomes = "egret-proxy `listen: tls:HOST:PORT`",
     .help = "enable TLS/SSL",
     .apply = [](Request& request, const std::string&) -> MaybeRefusal {
       request.tls = true;
       return {};
     }},
    {.name = "ssl_chain_cert",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "file",
     .becomes = "egret-proxy `tls_certificate`",
     .help = "certificate chain file in PEM format",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.proxy["tls_certificate"] = absolute(value);
       return {};
     }},
    {.name = "ssl_key",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "file",
     .becomes = "egret-proxy `tls_key`",
     .help = "private key, if not part of the ssl_chain_cert",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.proxy["tls_key"] = absolute(value);
       return {};
     }},
    {.name = "ssl_ca_cert",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "file",
     .becomes = "egret-proxy `tls_ca_certificate`",
     .help = "PEM format file of acceptable client CA's",
     .apply = [](Request& request, const std::string& value) -> MaybeRefusal {
       request.proxy["tls_ca_certificate"] = absolute(value);
       return {};
     }},
    {.name = "ssl_verify_mode",
     .is_extended = true,
     .value = Value::kWhole,
     .value_name = "num",
     .min = 0,
     .max = 3,
     .fate = Fate::kOption,
     .option = "tls_verify",
     .setting = "none|request|require|once",
     .help = "peer certificate verification mode, default is 0(None). valid values are 0(None), 1(Request), "
             "2(Require) or 3(Once)"},
    {.name = "ssl_min_version",
     .is_extended = true,
     .value = Value::kWhole,
     .value_name = "num",
     .min = 0,
     .max = 3,
     .fate = Fate::kOption,
     .option = "tls_min_version",
     .setting = "1.0|1.1|1.2|1.3",
     .help = "minimum protocol version to accept (default: tlsv1.2) valid values are 0(tlsv1.0), 1(tlsv1.1), "
             "2(tlsv1.2), or 3(tlsv1.3)"},
    {.name = "ssl_ciphers",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "list",
     .fate = Fate::kOption,
     .option = "tls_ciphers",
     .help = "specify cipher list to be used"},
    {.name = "ssl_keyformat",
     .is_extended = true,
     .value = Value::kText,
     .value_name = "name",
     .becomes = "PEM only",
     .help = "private key format: PEM only (1)",
     .apply = [](Request&, const std::string& value) -> MaybeRefusal {
       if (value == "1" || value == "PEM" || value == "pem") return {};
       return Refusal{"ssl_keyformat: only PEM (1) is read"};
     }},
    ignored("ssl_wbuf_size", "size in kilobytes of per-connection SSL output buffer", Value::kWhole, 0, kAny,
            "ssl_wbuf_size", kKilobytes),
    {.name = "ssl_session_cache",
     .is_extended = true,
     .fate = Fate::kOption,
     .option = "tls_session_cache",
     .setting = "true",
     .help = "enable server-side SSL session cache, to support session resumption"},
    ignored("ssl_kernel_tls", "enable kernel TLS offload"),
    // --- flags without a meaning here
    {.letter = 'C',
     .name = "disable-cas",
     .fate = Fate::kIgnored,
     .option = "cas_enabled",
     .setting = "no",
     .help = "disable use of CAS (it costs nothing here, and stays)"},
    {.letter = 'R',
     .name = "max-reqs-per-event",
     .value = Value::kWhole,
     .value_name = "num",
     .min = 1,
     .max = kAny,
     .fate = Fate::kIgnored,
     .option = "reqs_per_event",
     .help = "maximum number of requests per event"},
    {.letter = 'f',
     .name = "slab-growth-factor",
     .value = Value::kReal,
     .value_name = "num",
     .min = 1,
     .max = kAny,
     .fate = Fate::kIgnored,
     .option = "growth_factor",
     .help = "chunk size growth factor"},
    {.letter = 'n',
     .name = "slab-min-size",
     .value = Value::kWhole,
     .value_name = "bytes",
     .min = 1,
     .max = kAny,
     .fate = Fate::kIgnored,
     .option = "chunk_size",
     .help = "min space used for key+value+flags"},
    {.letter = 'D',
     .value = Value::kText,
     .value_name = "char",
     .fate = Fate::kIgnored,
     .help = "delimiter between key prefixes and IDs, for per-prefix stats"},
    {.letter = 'N',
     .name = "napi-ids",
     .value = Value::kWhole,
     .value_name = "num",
     .min = 1,
     .max = kAny,
     .fate = Fate::kIgnored,
     .option = "num_napi_ids",
     .help = "number of napi ids"},
    ignored("hashpower", "size of the hash table", Value::kWhole, 12, 32, "hashpower_init"),
    ignored("no_hashexpand", "the hash table does not grow"),
    ignored("hash_algorithm", "the hash table algorithm", Value::kText),
    ignored("tail_repair_time", "seconds to wait before forcefully killing LRU tail item", Value::kWhole, 10, kAny,
            "tail_repair_time"),
    ignored("slab_reassign", "move memory between slab classes"),
    ignored("no_slab_reassign", "do not"),
    ignored("slab_automove", "move it by itself", Value::kOptionalText),
    ignored("no_slab_automove", "do not"),
    ignored("slab_automove_ratio", "when it is moved", Value::kReal, 0, 1),
    ignored("slab_automove_window", "how long is looked at before", Value::kWhole, 3, kAny, "slab_automove_window"),
    ignored("slab_automove_freeratio", "what is kept free", Value::kReal, 0, 1),
    ignored("slab_sizes", "sizes of the slab classes", Value::kText),
    ignored("slab_chunk_max", "maximum slab size in kilobytes", Value::kWhole, 1, kAny),
    ignored("no_chunked_items", "large items in one slab"),
    ignored("lru_crawler", "look for expired items"),
    ignored("no_lru_crawler", "disable LRU Crawler background thread"),
    ignored("lru_crawler_sleep", "microseconds to sleep between items", Value::kWhole, 0, 1'000'000,
            "lru_crawler_sleep"),
    ignored("lru_crawler_tocrawl", "max items to crawl per slab per run", Value::kWhole, 0, 4294967295,
            "lru_crawler_tocrawl"),
    ignored("lru_maintainer", "new LRU system + background thread"),
    ignored("no_lru_maintainer", "disable it"),
    ignored("hot_lru_pct", "pct of slab memory to reserve for hot lru", Value::kWhole, 1, 79, "hot_lru_pct"),
    ignored("warm_lru_pct", "pct of slab memory to reserve for warm lru", Value::kWhole, 1, 79, "warm_lru_pct"),
    ignored("hot_max_factor", "items idle > cold lru age * drop from hot lru", Value::kReal, 0, kAny),
    ignored("warm_max_factor", "items idle > cold lru age * this drop from warm", Value::kReal, 0, kAny),
    ignored("temporary_ttl", "TTL's below get separate LRU", Value::kWhole, kNoFloor, kAny),
    ignored("track_sizes", "enable 'stats sizes', which is always there"),
    ignored("watcher_logbuf_size", "size in kilobytes of per-watcher write buffer", Value::kWhole, 0, kAny,
            "watcher_logbuf_size", kKilobytes),
    ignored("worker_logbuf_size", "size in kilobytes of per-worker-thread buffer", Value::kWhole, 0, kAny,
            "worker_logbuf_size", kKilobytes),
    ignored("read_buf_mem_limit", "limit in megabytes for connection read buffers", Value::kWhole, 0, kAny),
    ignored("read_obj_mem_limit", "the same, as it was called once", Value::kOptionalText),
    ignored("resp_obj_mem_limit", "limit of response objects", Value::kOptionalText),
    ignored("sock_cookie_id", "attributes an ID to a socket", Value::kOptionalText),
    ignored("inline_ascii_resp", "nothing any more"),
    ignored("no_inline_ascii_resp", "nothing any more"),
    ignored("modern", "enables options which will be default in future"),
    ignored("no_modern", "uses defaults of previous major version (1.4.x)"),
    {.name = "no_drop_privileges",
     .is_extended = true,
     .fate = Fate::kIgnored,
     .help = "no system call filter",
     .is_hidden = true},
    {.name = "relaxed_privileges",
     .is_extended = true,
     .fate = Fate::kIgnored,
     .help = "a wider filter, in debug builds",
     .is_hidden = true},
    // --- features of memcached's debug build
    {.name = "egret_debugtime",
     .is_extended = true,
     .fate = Fate::kOption,
     .daemon = Daemon::kBackend,
     .option = "allow_debugtime",
     .setting = "true",
     .help = "for tests: 'debugtime N' moves the clock by which items expire N seconds on"},
    // --- flags that are refused, because users would miss their effect
    refused("drop_privileges", "Egret filters no system calls; systemd/ shows a unit that does"),
    refused("proxy_config", kNoLuaProxy),
    refused("proxy_arg", kNoLuaProxy),
    refused("proxy_uring", kNoLuaProxy),
    refused("proxy_memprofile", kNoLuaProxy),
    refused("ext_path", kNoExtstore),
    refused("ext_page_size", kNoExtstore),
    refused("ext_page_count", kNoExtstore),
    refused("ext_wbuf_size", kNoExtstore),
    refused("ext_threads", kNoExtstore),
    refused("ext_io_depth", kNoExtstore),
    refused("ext_item_size", kNoExtstore),
    refused("ext_item_age", kNoExtstore),
    refused("ext_low_ttl", kNoExtstore),
    refused("ext_drop_unread", kNoExtstore),
    refused("ext_recache_rate", kNoExtstore),
    refused("ext_compact_under", kNoExtstore),
    refused("ext_drop_under", kNoExtstore),
    refused("ext_max_frag", kNoExtstore),
    refused("ext_max_sleep", kNoExtstore),
};

// --- shown

std::string what_becomes(const Flag& flag) {
  switch (flag.fate) {
    case Fate::kOption: {
      std::string text = flag.daemon == Daemon::kProxy ? "egret-proxy `" : "egret-backend `";
      text.append(flag.option);
      if (flag.setting != "{}") text.append(": ").append(flag.setting == "{}s" ? "Ns" : flag.setting);
      text += '`';
      std::replace(text.begin(), text.end(), '|', '/');  // '|' separates a table's columns
      return text;
    }
    case Fate::kApplied:
      return std::string(flag.becomes);
    case Fate::kIgnored:
      return "nothing; named in the log";
    case Fate::kRefused:
      return "refused: " + std::string(flag.becomes);
  }
  return {};
}

// Wraps `text` to lines of at most `width`; all lines except the first are indented by `indent` spaces.
std::string wrapped(std::string_view text, size_t indent, size_t width) {
  std::string result;
  while (text.size() > width) {
    const size_t cut = text.rfind(' ', width);
    result.append(text.substr(0, cut)).append("\n").append(indent, ' ');
    text.remove_prefix(cut + 1);
  }
  return result.append(text) + "\n";
}

std::string help_line(const Flag& flag) {
  constexpr size_t kColumn = 26;
  constexpr size_t kWidth = 74;
  std::string head = flag.is_extended ? "   - " + std::string(flag.name) + ":" : shown(flag);
  std::string help(flag.help);
  if (flag.fate == Fate::kIgnored) help += " (accepted, no meaning here)";
  head.append(head.size() < kColumn ? kColumn - head.size() : 1, ' ');
  return head + wrapped(help, kColumn, kWidth);
}

}  // namespace

std::span<const Flag> flag_table() {
  return kTable;
}

std::string shown(const Flag& flag) {
  const std::string value = flag.value_name.empty() ? "" : "<" + std::string(flag.value_name) + ">";
  if (flag.is_extended) return "-o " + std::string(flag.name) + (value.empty() ? "" : "=" + value);
  std::string text = flag.letter == '\0' ? "" : std::string("-") + flag.letter;
  if (flag.name.empty()) return text + " " + value;
  return text + (text.empty() ? "--" : ", --") + std::string(flag.name) + (value.empty() ? "" : "=" + value);
}

std::string help_text() {
  std::string text = "egret-memcached: runs Egret as memcached is run: a store and a proxy as one process.\n\n";
  for (const Flag& flag : kTable) {
    if (!flag.is_extended && !flag.is_hidden) text += help_line(flag);
  }
  text += "-o, --extended            comma separated list of extended options\n";
  for (const Flag& flag : kTable) {
    if (flag.is_extended && !flag.is_hidden) text += help_line(flag);
  }
  return text;
}

std::string help_markdown() {
  std::string text = "| flag | what becomes of it |\n| --- | --- |\n";
  for (const Flag& flag : kTable) text += "| `" + shown(flag) + "` | " + what_becomes(flag) + " |\n";
  return text;
}

}  // namespace egret::memcached
