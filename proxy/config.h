// The values of the proxy's options (option_table.h): checked against each other, with `auto` resolved for this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "admin/address.h"
#include "base/options/options.h"
#include "base/status.h"
#include "discovery/directory.h"
#include "memcache/client_parser.h"
#include "pool/gutter/stand_in.h"
#include "pool/health_judge.h"
#include "pool/placement.h"
#include "proxy/client/tls.h"
#include "proxy/users/guess_limit.h"
#include "rpc/client_session.h"

namespace egret::proxy {

struct ListenAddress {
  enum class Kind : uint8_t { kTcp, kTls, kUnix };
  Kind kind = Kind::kTcp;
  std::string host;  // or the path of a Unix socket; "*": every address
  uint16_t port = 0;

  bool is_unix() const { return kind == Kind::kUnix; }
  bool is_tls() const { return kind == Kind::kTls; }
  // As in the configuration: "tls:[::1]:11211".
  std::string to_string() const;
  bool operator==(const ListenAddress&) const = default;
};

class Credentials;

// Slots for clients of this host: where they connect, who may, and how much they get.
struct SlotOptions {
  bool has_twins = true;               // beside the addresses of memcached clients
  std::vector<std::string> addresses;  // further ones, of shared memory, without "shm:"
  std::vector<uint32_t> uids, gids;    // besides root and our own user
  uint32_t most_sessions = 0;
  uint64_t memory = 0;         // bytes of slots, of all sessions
  uint32_t share = 0;          // percent of them that one user may have
  uint32_t window = 0;         // slots of a lane, at most
  uint64_t idle_ns = 0;        // resolved: how long a lane is polled before it falls asleep
  uint32_t request_slot = 0;   // bytes, at most
  uint32_t response_slot = 0;  // likewise

  bool is_on() const { return has_twins || !addresses.empty(); }
};

struct Config {
  std::vector<ListenAddress> listen;
  std::string unix_mode;
  SlotOptions slots;
  discovery::DirectoryOptions directory;  // where the members of the pool come from
  pool::PlacementRule placement = pool::PlacementRule::kKetama;
  pool::HealthOptions health;        // when members are ejected, and probed
  pool::GutterOptions gutter;        // who stands in for them
  bool purge_moved = true;           // whether members are told of changes, and remove what is not theirs
  uint32_t workers = 0;              // resolved, at least 1
  bool pin = false;                  // resolved
  bool is_session_per_host = false;  // one worker has the session with a backend of another host, for all
  uint32_t max_connections = 0;
  uint32_t backlog = 0;
  bool maxconns_fast = true;
  uint64_t idle_timeout_ns = 0;  // 0: none
  uint64_t drain_ns = 0;
  TlsOptions tls;  // for the tls: addresses
  memcache::Protocol protocol = memcache::Protocol::kAuto;
  std::shared_ptr<const Credentials> credentials;  // null: clients need not authenticate
  GuessPace guess_pace;                            // how fast passwords may be guessed
  bool allow_flush = true;
  bool allow_watch = true;
  bool allow_dump = true;
  bool allow_shutdown = false;
  uint64_t large_value_memory = 0;         // bytes, for all workers together
  uint64_t connection_memory = 0;          // bytes, for each connection
  uint64_t client_memory = 0;              // bytes, for all connections together
  rpc::SessionOptions session;             // address and worker_id are filled in per session
  int main_pid = 0;                        // 0: ours
  std::vector<std::string> told_settings;  // "NAME=VALUE"
  std::vector<std::string> cluster;        // that `config get cluster` names; empty: this proxy
  uint64_t cluster_version = 0;            // of the list: Unix seconds of when it came into force
  uint64_t warm_for_ns = 0;                // how long values move with their keys; 0: they do not
  uint32_t ready_share = 0;                // percent of the backends that /readyz/share wants up
  admin::AdminOption admin;
  std::string log_level;
  std::string log_format;

  bool has_tls() const;
};

// Does the checks that the table cannot express, and resolves `auto`.
base::Expected<Config> resolve_config(const base::Options& options);

// The members that stand in for ejected ones; none without failover.
std::span<const pool::Member> gutter_of(const Config& config);

// The backends that a proxy is prepared for: those of the lists, or more if names or a file say who they are.
uint64_t most_backends(const Config& config);

}  // namespace egret::proxy
