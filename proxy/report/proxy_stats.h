// Counters of this proxy's client side. Each worker writes its own; any thread reads and adds up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/counter.h"
#include "base/histogram.h"
#include "proxy/client/connection_table.h"
#include "proxy/replies/connection_memory.h"
#include "rpc/lane_counters.h"

namespace egret::proxy {

using base::Counter;

// Of clients that speak TLS.
struct TlsCounters {
  Counter new_sessions;      // handshakes that did not resume an earlier session
  Counter handshake_errors;  // clients that did not get through it
  Counter protocol_errors;   // those that broke the protocol afterwards
};

// Of whoever accepts them.
struct AcceptCounters {
  Counter rejected_connections;
  Counter disabled;     // how often no more were accepted for a while
  Counter disabled_us;  // and for how long, those whiles that are over
  base::Gauge is_disabled;
};

// What /metrics tells requests apart by.
enum class RequestKind : uint8_t { kGet, kSet, kDelete, kArith, kTouch, kOther };
inline constexpr size_t kRequestKinds = 6;

// Of what clients asked for. Never reset: they are of /metrics alone.
struct RequestFigures {
  std::array<Counter, kRequestKinds> count;
  Counter get_hits;    // keys
  Counter get_misses;  // likewise
  Counter errors;
  base::Histogram duration;  // from parsed to answered, by the clock of the passes
};

struct alignas(64) WorkerStats {
  RequestFigures requests;
  MemoryCounters memory;
  Counter curr_connections;
  Counter total_connections;
  Counter bytes_read;
  Counter bytes_written;
  Counter idle_kicks;
  TlsCounters tls;
  ConnectionTable connections;
  Counter auth_cmds;
  Counter auth_errors;
  // Of this worker's sessions, by backend. The worker fills it in before it starts, and outlives all that read it.
  std::vector<rpc::SessionCounters*> sessions;
};

}  // namespace egret::proxy
