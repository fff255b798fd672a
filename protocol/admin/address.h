// The address at which a daemon tells of itself over HTTP: the option `admin`, checked, and listened on.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
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

// The option, as a daemon was given it.
struct AdminOption {
  std::string address;       // empty: none
  bool is_required = false;  // somebody asked for it: if it cannot be listened on, the daemon does not start
};
base::Status check_option(const AdminOption& option);

// Non-blocking sockets that listen there: one, or one for each address of a name. A Unix socket that nobody listens on
// any more is replaced; who may connect to it is up to its folder's mode and the umask.
base::Expected<std::vector<base::UniqueFd>> listen_on(const Address& address);

// As bound: the kernel may have chosen the port. "127.0.0.1:11280", "[::1]:11280" or "unix:PATH".
std::string bound_address(int socket);
// Whether it is bound to a loopback address.
bool is_loopback(int socket);

}  // namespace egret::admin
