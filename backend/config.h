// The backend's options: the table rows, and what they amount to on this machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "admin/address.h"
#include "base/options.h"
#include "base/secret.h"
#include "base/status.h"

namespace egret::backend {

std::span<const base::OptionRow> option_table();

// Of the slots of a session, in bytes.
struct SessionSize {
  uint32_t request_slot = 0;
  uint32_t response_slot = 0;
  uint64_t most_memory = 0;  // a window that would take more is made smaller
};

struct Config {
  std::vector<std::string> listen;
  uint64_t memory = 0;  // of all partitions' stores together, bytes
  uint32_t item_size_max = 0;
  bool evict = true;
  bool populate = true;
  bool lock_memory = false;
  std::string warm_restart;  // a directory, or where to put files; empty: none
  uint32_t partitions = 0;   // resolved, at least 1
  bool pin = false;          // resolved
  bool follow = false;       // likewise; never with pin
  uint32_t window = 0;
  // Large slots carry large values in few messages. Over rdma they are pinned, there may be many more sessions, and a
  // response is fetched by its size anyway. Two local response slots hold 100 KiB; and since their size is no power of
  // two, they share the sets of the caches evenly.
  SessionSize local_session{.request_slot = 16 << 10, .response_slot = 52 << 10, .most_memory = 8 << 20};
  SessionSize remote_session{.request_slot = 4 << 10, .response_slot = 4 << 10, .most_memory = 1 << 20};
  uint32_t max_sessions = 0;
  uint32_t sessions_per_peer = 0;  // 0: no limit
  base::Secret secret;             // none: every peer is served
  std::vector<uint32_t> allowed_uids;
  uint64_t lane_idle_ns = 0;      // resolved: of proxies on this host
  uint64_t far_lane_idle_ns = 0;  // resolved: of proxies elsewhere
  bool park_always = false;
  bool allow_debugtime = false;
  admin::AdminOption admin;
  std::string log_level;
  std::string log_format;
};

// Checks what the table cannot (one option against another, addresses) and resolves `auto`.
// `partitions`: as many as are running, for a reload; 0: what the options say, or suits this machine.
base::Expected<Config> resolve_config(const base::Options& options, uint32_t partitions = 0);

}  // namespace egret::backend
