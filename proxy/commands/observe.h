// Reports clients' ops to watchers and to `stats detail`. note() records an op when it is sent; tell() reports it when
// its result comes. While nobody watches, each costs one branch per op.
//
//   command ─ observes_items()? ─▶ note() ─ kept in its Reply ─ result ─▶ tell() ─▶ WatchHub, PrefixStats
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "memcache/command.h"
#include "op/op.h"
#include "proxy/client/connection_table.h"
#include "proxy/commands/admin_state.h"

namespace egret::proxy {

// A recorded command on one key.
struct Observed {
  std::string key;
  memcache::CommandKind kind;
  op::SetMode mode;  // kMetaSet
  int64_t exptime;
  uint32_t value_length;  // storage
  bool marks_stale;       // a delete that marks the item as stale instead
};

std::unique_ptr<Observed> note(const memcache::Command& command);
// `descriptor`: the client's socket.
void tell(AdminState& state, const Observed& observed, const op::Result& result, int descriptor);

// For `watch connevents`.
enum class GoneBecause : uint8_t { kError, kNormal, kIdle, kShutdown };
void tell_connected(AdminState& state, const ConnectionRecord& client);
void tell_gone(AdminState& state, const ConnectionRecord& client, GoneBecause why);

}  // namespace egret::proxy
