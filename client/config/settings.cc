#include "client/config/settings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "client/config/file.h"
#include "client/config/proxy_address.h"
#include "client/process/libraries.h"
#include "rpc/session_table.h"
#include "wire/slot.h"

namespace egret::client {

using base::Expected;
using base::OptionEntry;
using base::OptionGroup;
using base::OptionRow;
using base::Options;
using base::OptionType;
using base::Status;

namespace {

constexpr const char* kConfigVariable = "EGRET_CONFIG";
constexpr const char* kConfigFile = "/etc/egret/client.yaml";
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMiB = 1 << 20;

constexpr OptionRow kTable[] = {
    {.name = "backends",
     .type = OptionType::kList,
     .default_value = "",
     .help =
         "The pool of backends over which keys are spread, each ADDRESS [weight=N] [name=NAME], as in egret-proxy's "
         "option. None: `proxy` tells them.",
     .max = int64_t{pool::kMaxMembers},
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "proxy",
     .type = OptionType::kText,
     .default_value = "tcp:127.0.0.1:11211",
     .help =
         "The egret-proxy of this host that tells who the backends are, and of changes: tcp:HOST:PORT or unix:PATH, "
         "where it serves memcached clients, or shm:PATH or shm:@NAME, of its option `slots`. Not used if `backends` "
         "are given.",
     .max = base::kMaxTextBytes,
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "straight",
     .type = OptionType::kChoice,
     .default_value = "host",
     .help =
         "Which backends that a proxy tells are reached without it. none; host: those on this host; all: those over "
         "a network, too, where each client has sessions of its own. All others, and those that refuse this "
         "process, are reached through the proxy.",
     .choices = "none|host|all",
     .group = OptionGroup::kBackends},
    {.name = "placement",
     .type = OptionType::kChoice,
     .default_value = "ketama",
     .help = "How keys are spread over `backends`: the same as in all proxies and clients of the pool.",
     .choices = "ketama|rendezvous",
     .group = OptionGroup::kBackends},
    {.name = "secret_file",
     .type = OptionType::kText,
     .default_value = "",
     .help = "File with the secret that this client and the backends prove to each other. Empty: none.",
     .max = base::kMaxTextBytes,
     .group = OptionGroup::kBackends},
    {.name = "backend_uids",
     .type = OptionType::kList,
     .default_value = "",
     .help = "User ids that may serve this process over shm, besides root and the one it runs as.",
     .max = 64,
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "session_memory",
     .type = OptionType::kSize,
     .default_value = "64MiB",
     .help = "Most memory that the slots of one session may take. A backend that grants more is refused.",
     .min = kMiB,
     .max = int64_t{1} << 30,
     .group = OptionGroup::kBackends},
    {.name = "op_timeout",
     .type = OptionType::kDuration,
     .default_value = "2s",
     .help = "The longest that an op waits for its result; then it fails. After twice as long the session is renewed.",
     .min = kSecond / 1000,
     .max = 3600 * kSecond,
     .group = OptionGroup::kBackends,
     .is_usual = true},
    {.name = "reconnect_max",
     .type = OptionType::kDuration,
     .default_value = "1s",
     .help =
         "Longest pause between two attempts to reach a backend; the first is 10ms. Ops in such a pause fail at once.",
     .min = kSecond / 100,
     .max = 3600 * kSecond,
     .group = OptionGroup::kBackends},
    {.name = "large_value_memory",
     .type = OptionType::kSize,
     .default_value = "256MiB",
     .help = "Most bytes of values that do not fit a slot which one client may receive or send at a time. A get or set "
             "beyond that fails.",
     .min = kMiB,
     .max = int64_t{1} << 40,
     .group = OptionGroup::kMemory},
    {.name = "max_pending",
     .type = OptionType::kInteger,
     .default_value = "4096",
     .help = "Most ops that one client may have under way. Further ones are not taken until results have come.",
     .min = 1,
     .max = 1'000'000,
     .group = OptionGroup::kLimits},
    {.name = "qps_per_session",
     .type = OptionType::kInteger,
     .default_value = "1",
     .help = "Queue pairs of a session over rdma.",
     .min = 1,
     .max = 16,
     .group = OptionGroup::kRdma},
    {.name = "ack_timeout",
     .type = OptionType::kInteger,
     .default_value = "16",
     .help = "The device waits 4.096us x 2^N for an acknowledgement before it sends again.",
     .min = 0,
     .max = 31,
     .group = OptionGroup::kRdma},
    {.name = "tos",
     .type = OptionType::kInteger,
     .default_value = "-1",
     .help = "Type of service of connections over rdma, 0 to 255; -1: the host's default.",
     .min = -1,
     .max = 255,
     .group = OptionGroup::kRdma},
    {.name = "gid_index",
     .type = OptionType::kInteger,
     .default_value = "-1",
     .help = "Index of the GID to use over rdma; -1: that of the address from which the route leads to the backend.",
     .min = -1,
     .max = 254,
     .group = OptionGroup::kRdma},
    {.name = "pkey",
     .type = OptionType::kText,
     .default_value = "",
     .help = "Partition of an InfiniBand fabric, as 0x8001. Empty: the default one.",
     .max = 6,
     .group = OptionGroup::kRdma},
    {.name = "window",
     .type = OptionType::kInteger,
     .default_value = "4",
     .help =
         "Slots per lane to ask a backend for; it may grant fewer. A client has one lane for each of its partitions.",
     .min = wire::kMinWindow,
     .max = wire::kMaxWindow,
     .measured_by = "stalls of egret_counters()"},
    {.name = "request_slot_size",
     .type = OptionType::kSize,
     .default_value = "4KiB",
     .help =
         "Most bytes of a request slot to ask for, 1KiB or more and a multiple of 64. A longer value is sent in parts.",
     .max = wire::kMaxSlotSize,
     .measured_by = "ops / messages of egret_counters()"},
    {.name = "response_slot_size",
     .type = OptionType::kSize,
     .default_value = "14KiB",
     .help = "Most bytes of a response slot to ask for, likewise. A longer value is fetched in parts.",
     .max = wire::kMaxSlotSize,
     .measured_by = "ops / messages of egret_counters()"},
    {.name = "idle_window",
     .type = OptionType::kInteger,
     .default_value = "2",
     .help = "Slots per lane that a session over a network begins with, and has while little is asked of it.",
     .max = wire::kMaxWindow,
     .measured_by = "slot_bytes of egret_counters()"},
    {.name = "idle_slot_size",
     .type = OptionType::kSize,
     .default_value = "1216",
     .help = "Most bytes of a slot in such a session.",
     .max = wire::kMaxSlotSize,
     .measured_by = "slot_bytes of egret_counters()"},
    {.name = "give_back_after",
     .type = OptionType::kDuration,
     .default_value = "60s",
     .help = "When a session over a network returns to that. 0: never.",
     .max = 86400 * kSecond,
     .measured_by = "slot_bytes of egret_counters()"},
    {.name = "spin",
     .type = OptionType::kDuration,
     .default_value = "0",
     .help =
         "How long a call polls for a result before it sleeps. It does not while that rarely pays. 0: 20us with two "
         "CPUs or more, else 2us.",
     .max = kSecond / 100,
     .measured_by = "CPU time and latency of egret-bench client"},
    {.name = "max_refetches",
     .type = OptionType::kInteger,
     .default_value = "5",
     .help = "After two responses in a row that each needed more than this many extra reads, the lane asks the backend "
             "to push results.",
     .min = 0,
     .max = 1000,
     .measured_by = "refetches / messages of egret_counters()"},
    {.name = "fetch_mode",
     .type = OptionType::kChoice,
     .default_value = "auto",
     .help = "How lanes wait for results: by fetching, by having them pushed, or as max_refetches says.",
     .choices = "auto|fetch|reply",
     .measured_by = "refetches / messages of egret_counters()"},
    {.name = "fetch_min",
     .type = OptionType::kSize,
     .default_value = "256",
     .help = "Fewest bytes that the first READ of a response takes over rdma, a multiple of 64.",
     .min = rpc::kFetchStep,
     .max = wire::kMaxSlotSize,
     .measured_by = "second_reads / messages of egret_counters()"},
    {.name = "fetch_max",
     .type = OptionType::kSize,
     .default_value = "64KiB",
     .help = "Most bytes of that READ, a multiple of 64.",
     .min = rpc::kFetchStep,
     .max = wire::kMaxSlotSize,
     .measured_by = "second_reads / messages of egret_counters()"},
};

Status parse_proxy(const Options& options, Settings& settings) {
  auto addresses = slot_addresses_of(options.text("proxy"));
  if (!addresses) return options.error("proxy", addresses.message());
  settings.proxy = std::move(addresses.value());
  return Status::ok();
}

Status parse_members(const Options& options, Settings& settings) {
  for (const std::string& text : options.list("backends")) {
    auto member = pool::parse_member(text);
    if (!member) return options.error("backends", member.message());
    settings.members.push_back(std::move(member.value()));
  }
  if (settings.members.empty()) return parse_proxy(options, settings);
  const Status good = pool::check_members(settings.members);
  return good ? good : options.error("backends", good.message());
}

Expected<Options> read(std::vector<OptionEntry> entries, const std::string& place) {
  return Options::of_entries(kTable, entries, place, {});
}

}  // namespace

std::span<const OptionRow> option_table() {
  return kTable;
}

Status GivenOptions::set(std::string name, std::string value) {
  OptionEntry entry{.key = std::move(name), .line = 0, .kind = OptionEntry::Kind::kScalar, .values = {}};
  entry.values.push_back(std::move(value));
  return take({std::move(entry)}, "option");
}

Status GivenOptions::load(const std::string& path) {
  auto content = base::read_trusted_file(path, base::kMaxConfigBytes, base::FileTrust::kGiven);
  if (!content) return content.status();
  std::vector<OptionEntry> entries;
  if (Status read = parse_file(content.value(), path, entries); !read) return read;
  return take(std::move(entries), path);
}

void GivenOptions::forget(std::string_view name) {
  std::erase_if(entries_, [&](const OptionEntry& entry) { return entry.key == name; });
}

Status GivenOptions::take(std::vector<OptionEntry> entries, const std::string& place) {
  if (const auto valid = read(entries, place); !valid) return valid.status();
  for (OptionEntry& entry : entries) {
    entry.line = 0;
    const auto at = std::ranges::find(entries_, entry.key, &OptionEntry::key);
    if (at == entries_.end()) {
      entries_.push_back(std::move(entry));
    } else {
      *at = std::move(entry);
    }
  }
  return Status::ok();
}

Expected<Settings> GivenOptions::resolve() const {
  auto options = read(entries_, "option");
  if (!options) return options.status();
  const Options& given = options.value();
  Settings settings;
  if (Status good = parse_members(given, settings); !good) return good;
  settings.placement =
      given.text("placement") == "rendezvous" ? pool::PlacementRule::kRendezvous : pool::PlacementRule::kKetama;
  const std::string& straight = given.text("straight");
  settings.straight = straight == "none"   ? Settings::Straight::kNone
                      : straight == "host" ? Settings::Straight::kHost
                                           : Settings::Straight::kAll;
  settings.most_pending = static_cast<uint32_t>(given.integer("max_pending"));
  settings.value_memory = given.size("large_value_memory");
  const bool roomy = base::allowed_cpus().size() > 1;
  if (Status good = rpc::read_session_options(given, roomy, settings.session); !good) return good;
  if (settings.session.secret.is_set()) {
    if (Status loaded = need(Library::kCrypto); !loaded) return given.error("secret_file", loaded.message());
  }
  return settings;
}

std::string named_file() {
  const char* const named = ::secure_getenv(kConfigVariable);
  return named != nullptr ? named : "";
}

Expected<GivenOptions> default_options(const std::string& named) {
  GivenOptions given;
  if (named.empty() && ::access(kConfigFile, F_OK) != 0) return given;
  if (Status loaded = given.load(named.empty() ? kConfigFile : named); !loaded) return loaded;
  return given;
}

}  // namespace egret::client
