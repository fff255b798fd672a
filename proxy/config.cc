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
#include "base/text.h"
#include "discovery/name_entry.h"
#include "discovery/resolver.h"
#include "proxy/commands/cluster.h"
#include "proxy/users/credentials.h"
#include "rpc/session_table.h"
#include "tls/options.h"
#include "transport/address.h"

namespace egret::proxy {

using base::Options;
using base::Status;

namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr uint64_t kExpectedBackends = 64;  // of names and a file, whose number is not known
constexpr uint64_t kSlotsIdleNs = 50'000;   // a program that links libegret, or is preloaded, asks again within it

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
