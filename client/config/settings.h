// The options of a pool, and what follows from them on this machine.
//
//   egret_options_set, a file ─▶ GivenOptions ─ resolve() ─▶ Settings
//
// Names are those of egret-proxy's table where it has such an option, and mean the same.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options/option_entry.h"
#include "base/options/options.h"
#include "base/status.h"
#include "pool/member.h"
#include "pool/placement.h"
#include "rpc/session_options.h"

namespace egret::client {

std::span<const base::OptionRow> option_table();

struct Settings {
  // Which backends of a proxy's pool are reached without the proxy.
  enum class Straight : uint8_t { kNone, kHost, kAll };

  std::vector<pool::Member> members;  // none: a proxy tells them
  std::vector<std::string> proxy;     // where it serves slots, in the order to try: "shm:PATH", "shm:@NAME"
  Straight straight = Straight::kHost;
  pool::PlacementRule placement = pool::PlacementRule::kKetama;
  rpc::SessionOptions session;  // each session gets its own address, and a random worker_id where this one is 0
  uint32_t most_pending = 0;    // ops of one client
  uint64_t value_memory = 0;    // bytes of large values that one client assembles or sends at a time
};

// Options as they are given, one by one. Cold path; one thread at a time.
class GivenOptions {
 public:
  // Each checks what it is given at once; an error changes nothing.
  base::Status set(std::string name, std::string value);
  base::Status load(const std::string& path);
  // As if it had not been given.
  void forget(std::string_view name);

  // All of them together are checked.
  base::Expected<Settings> resolve() const;

 private:
  base::Status take(std::vector<base::OptionEntry> entries, const std::string& place);

  std::vector<base::OptionEntry> entries_;  // one for each name
};

// The file that $EGRET_CONFIG names; empty: it names none.
std::string named_file();
// What a pool without options uses: the file that is named, else /etc/egret/client.yaml if it is there, else nothing.
base::Expected<GivenOptions> default_options(const std::string& named = named_file());

}  // namespace egret::client
