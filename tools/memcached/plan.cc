#include "memcached/plan.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace egret::memcached {

namespace {

using MaybeRefusal = std::optional<Refusal>;

constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kLargestItem = 128 * kMiB;  // egret-backend's limit
constexpr uint64_t kLargestOfMemcached = 1024 * kMiB;
constexpr std::string_view kDefaultConnections = "1024";  // memcached's default

// --- memory

MaybeRefusal check_sizes(const Request& request) {
  if (request.item_size_max < 1024) return Refusal{"Item max size cannot be less than 1024 bytes.", kUsage};
  if (request.item_size_max > request.memory / 2) {
    return Refusal{"Cannot set item size limit higher than 1/2 of memory max.", kUsage};
  }
  if (request.item_size_max > kLargestOfMemcached) {
    return Refusal{"Cannot set item size limit higher than a gigabyte.", kUsage};
  }
  if (request.item_size_max > kLargestItem) return Refusal{"-I: Egret's items are at most 128m"};
  return {};
}

// The memory must hold two items of the largest size, which is egret-backend's minimum (a test checks it with the
// store).
void plan_memory(const Request& request, Plan& plan) {
  plan.backend["memory"] = std::to_string(request.memory);
  plan.backend["item_size_max"] = std::to_string(request.item_size_max);
}

// --- authentication and dialect

MaybeRefusal plan_protocol(const Request& request, const std::string& sasl_file, Plan& plan) {
  std::string protocol = request.protocol.value_or("auto");
  std::string auth_file = request.auth_file;
  if (request.sasl) {
    if (request.protocol && protocol != "binary") {
      return Refusal{"ERROR: You cannot allow the ASCII protocol while using SASL.", kUsage};
    }
    // With both, text clients authenticate by -Y and binary ones by SASL, from the same file.
    protocol = request.protocol || auth_file.empty() ? "binary" : "auto";
    if (auth_file.empty()) auth_file = sasl_file;
    if (auth_file.empty()) {
      return Refusal{"-S: whose passwords? Name a file of user:password lines by -Y or MEMCACHED_SASL_PWDB"};
    }
  } else if (!auth_file.empty()) {
    if (request.protocol && protocol != "ascii") {
      return Refusal{"ERROR: You cannot allow the BINARY protocol while using ascii authentication tokens.", kUsage};
    }
    protocol = "ascii";
  }
  if (!auth_file.empty()) plan.proxy["auth_file"] = auth_file;
  if (protocol != "auto") plan.proxy["protocol"] = protocol;
  return {};
}

// --- addresses

// Removes "name[...]:" or "name:" from the front of `text`.
bool take_prefix(std::string_view& text, std::string_view name, std::string_view* inside = nullptr) {
  if (!text.starts_with(name)) return false;
  std::string_view rest = text.substr(name.size());
  if (inside != nullptr) {
    const size_t end = rest.find(']');
    if (!rest.starts_with('[') || end == std::string_view::npos) return false;
    *inside = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  }
  if (!rest.starts_with(':')) return false;
  text = rest.substr(1);
  return true;
}

MaybeRefusal parse_port(std::string_view text, int64_t& port) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error == std::errc{} && end == text.data() + text.size() && port >= -1 && port <= 65535) return {};
  return Refusal{"Invalid port number: " + base::quoted(text), kSystem};
}

// Turns "10.0.0.1", "10.0.0.1:11212", "localhost", "*", "::1" or "[::1]:11212" into an address of egret-proxy.
MaybeRefusal parse_address(std::string_view text, int64_t port, std::string& address) {
  std::string_view host = text;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return Refusal{"Invalid IPV6 address: " + base::quoted(text), kSystem};
    host = text.substr(1, end - 1);
    std::string_view rest = text.substr(end + 1);
    if (rest.starts_with(':')) {
      if (MaybeRefusal wrong = parse_port(rest.substr(1), port); wrong) return wrong;
    } else if (!rest.empty()) {
      return Refusal{"Invalid IPV6 address: " + base::quoted(text), kSystem};
    }
  } else if (const size_t colon = text.find(':'); colon != std::string_view::npos && colon == text.rfind(':')) {
    host = text.substr(0, colon);
    if (MaybeRefusal wrong = parse_port(text.substr(colon + 1), port); wrong) return wrong;
  }
  if (host.empty()) return Refusal{"-l: expected an address, got " + base::quoted(text), kSystem};
  const bool is_ipv6 = host.find(':') != std::string_view::npos;
  address =
      (is_ipv6 ? "[" + std::string(host) + "]" : std::string(host)) + ":" + std::to_string(std::max<int64_t>(port, 0));
  return {};
}

MaybeRefusal parse_interface(const Request& request, std::string_view text, Plan& plan, std::string& listen) {
  std::string_view inside;
  bool tls = request.tls;
  if (take_prefix(text, "notls")) {
    if (!request.tls) return Refusal{"'notls' option is valid only when SSL is enabled", kSystem};
    tls = false;
  }
  if (take_prefix(text, "mtls"))
    return Refusal{"-l: mtls: is not possible for one listener, only -o ssl_verify_mode=2"};
  if (take_prefix(text, "proto", &inside)) {
    const std::string common = request.protocol.value_or("auto") == "auto" ? "negotiating" : *request.protocol;
    if (inside != common) return Refusal{"-l: a listener's own protocol is not possible, only -B"};
  }
  if (take_prefix(text, "tag", &inside)) plan.notes.emplace_back("tags of listeners have no meaning here");
  std::string address;
  if (MaybeRefusal wrong = parse_address(text, request.port, address); wrong) return wrong;
  listen = (tls ? "tls:" : "tcp:") + address;
  return {};
}

MaybeRefusal plan_unix(const Request& request, Plan& plan) {
  if (request.unix_socket.find(',') != std::string::npos) return Refusal{"-s: the path holds a comma"};
  plan.proxy["listen"] = "unix:" + request.unix_socket;
  plan.where = "UNIX socket: " + request.unix_socket;
  return {};
}

MaybeRefusal plan_listen(const Request& request, Plan& plan) {
  if (request.port > 65535) return Refusal{"ERROR: Invalid port number " + std::to_string(request.port) + ".", kUsage};
  if (request.tls && request.port == 0) return Refusal{"ERROR: You cannot enable SSL without a TCP port.", kUsage};
  if (!request.unix_socket.empty()) return plan_unix(request, plan);
  if (request.port == 0) return Refusal{"-p 0 without -s: nobody could connect"};
  plan.has_tcp = true;
  plan.where = "TCP port " + std::to_string(request.port);
  std::vector<std::string> listens;
  std::string all;
  for (const std::string& list : request.interfaces) all.append(all.empty() ? "" : ",").append(list);
  std::replace(all.begin(), all.end(), ';', ',');
  if (all.empty())
    all = "*";
  else
    plan.where = "one of interface(s) " + all;
  for (const std::string& text : base::split(all, ',')) {
    if (text.empty()) continue;
    std::string listen;
    if (MaybeRefusal wrong = parse_interface(request, text, plan, listen); wrong) return wrong;
    if (std::ranges::find(listens, listen) == listens.end()) listens.push_back(listen);
  }
  std::string& joined = plan.proxy["listen"];
  for (const std::string& listen : listens) joined.append(joined.empty() ? "" : ",").append(listen);
  return {};
}

// --- the rest

void plan_log(const Request& request, Plan& plan) {
  const char* const level = request.verbosity == 0 ? "warning" : request.verbosity == 1 ? "info" : "debug";
  plan.proxy["log_level"] = level;
  plan.backend["log_level"] = level;
}

}  // namespace

std::variant<Plan, Refusal> make_plan(const Request& request, const std::string& sasl_file) {
  Plan plan{.backend = request.backend, .proxy = request.proxy, .notes = {}, .has_tcp = false, .where = {}};
  plan.proxy.try_emplace("max_connections", kDefaultConnections);
  plan.backend.try_emplace("populate", "false");  // start at once, as memcached
  plan.proxy.try_emplace("admin", "");            // open no port that was not asked for, as memcached
  plan.backend.try_emplace("admin", "");
  plan.backend["sessions_per_peer"] = "0";        // one proxy, with as many workers as -t says
  plan.backend["session_memory_per_peer"] = "0";  // likewise
  if (MaybeRefusal wrong = check_sizes(request); wrong) return *wrong;
  if (MaybeRefusal wrong = plan_protocol(request, sasl_file, plan); wrong) return *wrong;
  if (MaybeRefusal wrong = plan_listen(request, plan); wrong) return *wrong;
  if (request.tls && !plan.proxy.contains("tls_certificate")) {
    return Refusal{"-Z: no certificate; name it by -o ssl_chain_cert", kUsage};
  }
  plan_memory(request, plan);
  plan_log(request, plan);
  std::string told;
  for (const auto& [row, value] : request.told) {
    told.append(told.empty() ? "" : ",").append(row).append("=").append(value);
  }
  if (!told.empty()) plan.proxy["told_settings"] = told;
  std::string ignored;
  for (const std::string& flag : request.ignored) ignored.append(ignored.empty() ? "" : ", ").append(flag);
  if (!ignored.empty()) plan.notes.push_back("without a meaning here: " + ignored);
  return plan;
}

std::vector<std::string> assignments(const DaemonOptions& options) {
  std::vector<std::string> all;
  for (const auto& [name, value] : options) all.push_back(std::string(name).append("=").append(value));
  return all;
}

std::vector<std::string> set_arguments(const DaemonOptions& options) {
  std::vector<std::string> arguments;
  for (std::string& assignment : assignments(options)) {
    arguments.emplace_back("--set");
    arguments.push_back(std::move(assignment));
  }
  return arguments;
}

}  // namespace egret::memcached
