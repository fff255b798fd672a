// The values of the backend's options (option_table.h): checked against each other, with `auto` resolved for this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "access/quota.h"
#include "access/rights.h"
#include "admin/address.h"
#include "backend/mailbox.h"
#include "base/options/options.h"
#include "base/options/secret.h"
#include "base/status.h"
#include "rpc/waiting/push_load.h"
#include "transport/address.h"

namespace egret::backend {

// The sizes of a session's slots, in bytes.
struct SessionSize {
  uint32_t window = 0;  // slots per lane
  uint32_t request_slot = 0;
  uint32_t response_slot = 0;
  uint64_t most_memory = 0;  // the window is reduced so that a session takes no more than this
};

// A secret that proxies may prove to hold. That of secret_file is called "main".
struct NamedSecret {
  std::string name;
  base::Secret secret;
};

struct Config {
  std::vector<std::string> listen;
  uint64_t memory = 0;  // bytes, for the stores of all partitions together
  uint32_t item_size_max = 0;
  bool evict = true;
  bool populate = true;
  bool lock_memory = false;
  std::string warm_restart;  // a directory, or where to put files; empty: none
  uint32_t partitions = 0;   // resolved, at least 1
  bool pin = false;          // resolved
  bool follow = false;       // resolved; never with pin
  // With large slots a large value takes few messages. Over rdma slots are pinned memory, there may be many more
  // sessions, and a large response slot saves no READ; so slots are small. Two local response slots hold 100 KiB. Over
  // tcp a slot's memory is touched only as far as its messages reach, so one holds 128 KiB, and there are few, since each
  // round of them goes through the cache. A request slot takes half of what a proxy reads of a client at once, and a set of
  // 100 KiB three of the eight: with seven smaller ones gets wait for it, and a round of eight larger ones leaves the cache.
  // Sizes are no powers of two, so that slots spread evenly over the sets of the caches.
  SessionSize local_session{.window = 32, .request_slot = 16 << 10, .response_slot = 52 << 10, .most_memory = 8 << 20};
  SessionSize tcp_session{.window = 8, .request_slot = 38 << 10, .response_slot = 132 << 10, .most_memory = 8 << 20};
  SessionSize rdma_session{.window = 32, .request_slot = 4 << 10, .response_slot = 4 << 10, .most_memory = 1 << 20};
  access::Room room;                 // what this process may have
  access::Needs needs;               // and what sessions take of it
  access::Quota quota;               // what follows from both, or what the options say
  uint32_t peer_share = 100;         // ExecutorOptions::share_of_user
  std::vector<NamedSecret> secrets;  // a proxy proves one of them; none: every peer is served
  std::vector<uint32_t> allowed_uids;
  std::vector<uint32_t> allowed_gids;
  access::RightsTable rights;
  transport::FabricOptions fabric;
  transport::TlsOffer tls;
  uint64_t lane_idle_ns = 0;      // resolved: for lanes of proxies on this host
  uint64_t far_lane_idle_ns = 0;  // resolved: for lanes of other proxies
  rpc::PushRules push;            // when pushing results is cheap
  uint64_t embedded_idle_ns = 0;  // resolved: for lanes of programs on this host
  bool park_always = false;
  bool allow_debugtime = false;
  admin::AdminOption admin;
  std::string log_level;
  std::string log_format;

  PollingRules polling() const { return {lane_idle_ns, far_lane_idle_ns, embedded_idle_ns, park_always, push}; }
};

// Does the checks that the table cannot express (one option against another, addresses), and resolves `auto`.
// `partitions`: the running number, for a reload; 0: what the options say, or suits this machine.
base::Expected<Config> resolve_config(const base::Options& options, uint32_t partitions = 0);

}  // namespace egret::backend
