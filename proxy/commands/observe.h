// What is said of the ops that clients send, to those who watch and for `stats detail`. An op is noted when it is sent,
// and told of when its result is there. While nobody wants to know, an op costs a branch here and a branch there.
//
//   command ─ observes_items()? ─▶ note() ─ kept by its Reply ─ result ─▶ tell() ─▶ WatchHub, PrefixStats
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "memcache/command.h"
#include "op/op.h"
#include "proxy/commands/admin_state.h"

namespace egret::proxy {

// Of a command on one key.
struct Observed {
  std::string key;
  memcache::CommandKind kind;
  op::SetMode mode;  // of a kMetaSet
  int64_t exptime;
  uint32_t value_length;  // storage
  bool marks_stale;       // a delete that leaves the item
};

std::unique_ptr<Observed> note(const memcache::Command& command);
// `descriptor`: the client's socket.
void tell(AdminState& state, const Observed& observed, const op::Result& result, int descriptor);

// A client that came, or went. `peer` as "tcp:HOST:PORT", "tls:HOST:PORT" or "unix:PATH".
enum class GoneBecause : uint8_t { kError, kNormal, kIdle, kShutdown };
void tell_connected(AdminState& state, std::string_view peer, int descriptor);
void tell_gone(AdminState& state, std::string_view peer, int descriptor, GoneBecause why);

}  // namespace egret::proxy
