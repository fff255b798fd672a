// The address of a daemon's HTTP server: parses the option `admin`, and listens there.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/options/options.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace egret::admin {

struct Address {
  std::string host;  // "*": every address
  uint16_t port = 0;
  std::string path;  // of a Unix socket; empty: TCP

  bool is_unix() const { return !path.empty(); }
  std::string to_string() const;
};

// "HOST:PORT" (IPv6 in brackets, HOST *: every address) or "unix:PATH".
base::Expected<Address> parse_address(const std::string& text);

constexpr base::OptionRow option_row(std::string_view default_address) {
  return {.name = "admin",
          .type = base::OptionType::kText,
          .default_value = default_address,
          .help =
              "Where metrics (/metrics, for Prometheus), health (/healthz, /readyz; of a proxy also /readyz/all, which "
              "is 200 "
              "only while every backend is up) and a page to look at (/) are served over HTTP, to whoever can connect: "
              "HOST:PORT (IPv6 in brackets; HOST *: every address) or unix:PATH. Empty: nowhere.",
          .max = base::kMaxTextBytes,
          .group = base::OptionGroup::kObservability};
}

inline constexpr base::OptionRow kAdminHostsRow{
    .name = "admin_hosts",
    .type = base::OptionType::kList,
    .default_value = "",
    .help =
        "Names by which the admin address may be asked, besides IP addresses, localhost and the name in admin: a "
        "request whose Host header names another host is refused, so that no web page can read the answers by a "
        "name of its own (DNS rebinding). Without ports.",
    .max = 64,
    .applied_by = base::AppliedBy::kReload,
    .group = base::OptionGroup::kObservability};

// The values of both options.
struct AdminOption {
  std::string address;               // empty: no HTTP server
  bool is_required = false;          // the operator set it: if we cannot listen there, the daemon does not start
  std::vector<std::string> hosts{};  // host_check.h: the names by which it may be asked
};
// Reads and checks both options. Its failure names the option.
base::Expected<AdminOption> read_options(const base::Options& options);

// Opens non-blocking listening sockets: one, or one for each address of a name. Replaces a Unix socket that nobody
// listens on any more; its folder's mode and the umask decide who may connect.
base::Expected<std::vector<base::UniqueFd>> listen_on(const Address& address);

// The bound address, with the port that the kernel may have chosen: "127.0.0.1:11280", "[::1]:11280" or "unix:PATH".
std::string bound_address(int socket);

}  // namespace egret::admin
