// What a session's owner says of it: where the backend is, how large the slots should be, how long to wait for what.
#pragma once

#include <cstdint>
#include <string>

#include "base/options/secret.h"
#include "rpc/fetch_policy.h"
#include "rpc/resize/window_plan.h"
#include "transport/address.h"

namespace egret::rpc {

struct SessionOptions {
  std::string address;  // transport/address.h
  transport::ConnectOptions connect;
  uint64_t worker_id = 0;    // random; see wire::Hello
  bool is_embedded = false;  // the session's thread waits for its results itself: see wire::kEmbedded
  // Not 0: the address is one of a proxy's for slot clients, and this is the tag of the member that the session is with.
  uint64_t relayed_to = 0;
  uint32_t window = 8;
  // Wanted sizes of a slot, in bytes; 0: what the backend likes. For clients with many sessions, or little memory: a
  // session takes lanes x window x (request slot + response slot).
  uint32_t request_slot_size = 0;
  uint32_t response_slot_size = 0;
  uint64_t most_memory = 64 << 20;  // of a session's slots: a grant of more is refused
  base::Secret secret;              // none: this client proves nothing, and asks for no proof
  uint64_t op_timeout_ns = 2'000'000'000;
  // Of an attempt, all in all. Longer than the connection manager's pause before it asks again, 4.3 s: an attempt that a
  // busy backend did not hear the first time succeeds.
  uint64_t connect_timeout_ns = 5'000'000'000;
  // The pause before another attempt: doubled with each, and drawn from its second half.
  uint64_t backoff_min_ns = 10'000'000;
  uint64_t backoff_max_ns = 1'000'000'000;
  uint64_t spin_ns = 20'000;  // in fetch mode a message is waited for this long before the worker sleeps
  FetchOptions fetch;
  Growth growth;
};

}  // namespace egret::rpc
