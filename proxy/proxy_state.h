// What all threads of the proxy share: the configuration in force, the counters, and what operators switch on and off.
//
// Owned by main(), which outlives the control thread and the workers. A member is a base::Live (replaced as a whole,
// read by any thread), a counter, or an object that documents its own threads; `workers` and `tls` do not change while
// workers run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/options/live.h"
#include "base/options/reload.h"
#include "base/random.h"
#include "pool/change/teller.h"
#include "pool/gutter/lister.h"
#include "pool/health_watch.h"
#include "pool/membership.h"
#include "pool/warm/phase.h"
#include "proxy/client/connection_gate.h"
#include "proxy/client/connection_table.h"
#include "proxy/client/handover.h"
#include "proxy/client/tls.h"
#include "proxy/commands/admin_state.h"
#include "proxy/config.h"
#include "proxy/report/pool_totals.h"
#include "proxy/report/proxy_stats.h"
#include "proxy/slots/slot_mail.h"
#include "proxy/users/guess_limit.h"
#include "proxy/users/verifier.h"

namespace egret::proxy {

struct ProxyState {
  base::Live<Config> config;                 // the one in force
  base::Live<pool::Membership> membership;   // where keys go
  base::Live<pool::Membership> joining;      // the next one, for whose members the workers open sessions
  base::Live<pool::WarmPhase> warm;          // whether values of keys that moved are brought to their owners
  base::Live<pool::Listing> gutter_listing;  // what the gutter says of absent owners
  pool::HealthState health;                  // who of them is ejected
  pool::ChangeCounters changes;              // of members, and who was told of them
  base::Live<std::vector<discovery::SourceStatus>> sources;  // of members: names and a file; none for a plain list
  const base::Clock* clock = nullptr;
  uint64_t start_ns = 0;
  std::vector<std::unique_ptr<WorkerStats>> workers;
  base::Live<std::vector<ListenerRecord>> listeners;
  PoolTotals totals;  // what `stats` adds up over backends
  AcceptCounters accepts;
  ConnectionGate gate;
  TlsServer* tls = nullptr;
  base::ReloadCounters reloads;
  AdminState admin;
  Handover handover{places_in_store()};
  GuessLimit guesses;
  PasswordVerifier verifier;
  // Where workers reach one another (slots/host_door.h): the address's first part.
  const std::string host_door = "shm:@egret-workers/" + std::to_string(base::random_u64());
  SlotMail slot_mail;  // sessions of slot clients that have ended
  Counter slot_refusals;
  base::Gauge slot_listeners;  // clients that hear news of the pool
  base::Gauge slot_bytes;      // of the slots of slot clients' sessions: at most Config::slots.memory
};

}  // namespace egret::proxy
