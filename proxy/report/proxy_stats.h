// Counters of this proxy's client side. Each worker writes its own; any thread reads them and adds them up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/counter.h"
#include "base/histogram.h"
#include "pool/warm/pulls.h"
#include "proxy/client/connection_table.h"
#include "proxy/replies/connection_memory.h"

namespace egret::proxy {

using base::Counter;

// Counters of TLS clients.
struct TlsCounters {
  Counter new_sessions;      // handshakes that did not resume an earlier session
  Counter handshake_errors;  // clients whose handshake failed
  Counter protocol_errors;   // clients that violated the protocol afterwards
};

// Counters of accepting; the frontend writes them.
struct AcceptCounters {
  Counter rejected_connections;
  Counter disabled;     // pauses of accepting
  Counter disabled_us;  // microseconds of those pauses that are over
  base::Gauge is_disabled;
};

// The values of the label `command` in /metrics.
enum class RequestKind : uint8_t { kGet, kSet, kDelete, kArith, kTouch, kOther };
inline constexpr size_t kRequestKinds = 6;

// Counters of requests. Only /metrics shows them, so `stats reset` does not reset them.
struct RequestFigures {
  std::array<Counter, kRequestKinds> count;
  Counter get_hits;    // keys
  Counter get_misses;  // keys
  Counter errors;
  base::Histogram duration;  // from parsed to answered, measured by the pass's clock
};

// What a worker's relay shows of the sessions that it serves. All but `opened` and `refusals` are set, not added to.
struct SlotStats {
  base::Gauge sessions;         // of slot clients
  base::Gauge worker_sessions;  // of other workers of this process
  Counter opened, refusals;     // of slot clients
  base::Gauge messages, ops;    // of all sessions so far; so are those up to not_sent
  base::Gauge malformed;        // messages that ended their session
  base::Gauge waits;            // messages that waited for credit, or room
  base::Gauge refused;          // ops that the rules forbid
  base::Gauge not_sent;         // ops that came while there was no session with the backend
  base::Gauge kept_bytes;       // of values of which clients fetch the rest
  base::Gauge collected_bytes;  // of values that wait for room at a backend
};

struct alignas(64) WorkerStats {
  RequestFigures requests;
  MemoryCounters memory;
  pool::PullCounters pulls;
  Counter curr_connections;
  Counter resting_connections;  // of these, those without a Connection
  Counter total_connections;
  Counter bytes_read;
  Counter bytes_written;
  Counter idle_kicks;
  TlsCounters tls;
  ConnectionTable connections;
  Counter gutter_ops;  // sent in the place of an ejected backend
  Counter auth_cmds;
  Counter auth_errors;
  Counter auth_waits;
  SlotStats slots;
};

}  // namespace egret::proxy
