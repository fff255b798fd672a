// The proxy's options: the table rows, and what they amount to on this machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/options.h"
#include "base/status.h"
#include "proxy/ketama.h"
#include "rpc/client_session.h"

namespace egret::proxy {

std::span<const base::OptionRow> option_table();

struct ListenAddress {
  bool is_unix = false;
  std::string host;  // or the path; "*": every address
  uint16_t port = 0;
};

inline constexpr size_t kMaxBackends = 64;
inline constexpr uint32_t kMaxWeight = 1000;
inline constexpr size_t kMaxBackendName = 255;

// One of the pool: "ADDRESS [weight=N] [name=NAME]".
struct Backend {
  std::string address;  // transport/address.h
  std::string name;     // what ketama hashes: unique in the pool
  uint32_t weight = 1;  // 1 to kMaxWeight
};

struct Config {
  std::vector<ListenAddress> listen;
  std::string unix_mode;
  std::vector<Backend> backends;
  uint32_t workers = 0;  // resolved, at least 1
  bool pin = false;      // resolved
  uint32_t max_connections = 0;
  uint32_t backlog = 0;
  uint64_t large_value_memory = 0;         // over all workers
  rpc::SessionOptions session;             // address and worker_id are filled in per session
  int main_pid = 0;                        // 0: ours
  std::vector<std::string> told_settings;  // "NAME=VALUE"
  std::string log_level;
};

// The keys' spread over them.
KetamaRing ring_of(std::span<const Backend> backends);

// Checks what the table cannot and resolves `auto`.
base::Expected<Config> resolve_config(const base::Options& options);

}  // namespace egret::proxy
