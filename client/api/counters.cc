// What a client counts, for people and tests.
#include <array>
#include <iterator>

#include "client/api/boundary.h"
#include "client/egret.h"

using namespace egret::client;

namespace {

struct Figures {
  SessionTotals totals;                                // of all sessions that there are and were
  uint64_t sessions = 0, relayed = 0, slot_bytes = 0;  // now
};

struct Row {
  const char* name;
  uint64_t (*value)(const Figures& figures);
};

constexpr Row kRows[] = {
    {"sessions", [](const Figures& f) { return f.sessions; }},
    {"relayed_sessions", [](const Figures& f) { return f.relayed; }},
    {"session_failures", [](const Figures& f) { return f.totals.failures; }},
    {"slot_bytes", [](const Figures& f) { return f.slot_bytes; }},
    {"ops", [](const Figures& f) { return f.totals.lanes.ops.get(); }},
    {"messages", [](const Figures& f) { return f.totals.lanes.messages.get(); }},
    {"fetches", [](const Figures& f) { return f.totals.lanes.fetches.get(); }},
    {"refetches", [](const Figures& f) { return f.totals.lanes.refetches.get(); }},
    {"second_reads", [](const Figures& f) { return f.totals.lanes.second_reads.get(); }},
    {"torn", [](const Figures& f) { return f.totals.lanes.torn.get(); }},
    {"stalls", [](const Figures& f) { return f.totals.lanes.stalls.get(); }},
    {"rings", [](const Figures& f) { return f.totals.lanes.rings.get(); }},
    {"wants", [](const Figures& f) { return f.totals.lanes.wants.get(); }},
    {"replies", [](const Figures& f) { return f.totals.lanes.replies.get(); }},
    {"timeouts", [](const Figures& f) { return f.totals.lanes.timeouts.get(); }},
    {"deliveries", [](const Figures& f) { return f.totals.deliveries; }},
    {"long_values", [](const Figures& f) { return f.totals.long_values; }},
};

Figures figures_of(const Router& router) {
  Figures figures{.totals = router.retired()};
  router.for_each_session([&](egret::rpc::ClientSession& session) {
    const egret::rpc::SessionCounters& counted = session.counters();
    figures.totals.add(counted);
    figures.sessions += counted.is_open.get();
    figures.slot_bytes += counted.slot_bytes.get();
  });
  for (size_t i = 0; i < router.sessions().size(); ++i) {
    if (router.is_relayed(i)) figures.relayed += router.sessions()[i]->counters().is_open.get();
  }
  return figures;
}

}  // namespace

extern "C" int egret_counters(const egret_client* client, const char** names, uint64_t* values, size_t room) {
  if (const int refused = refusal(client); refused != EGRET_OK) return refused;
  return enter_without_client([&] {
    const Figures figures = figures_of(client->engine->router());
    for (size_t i = 0; i < std::size(kRows) && i < room; ++i) {
      if (names != nullptr) names[i] = kRows[i].name;
      if (values != nullptr) values[i] = kRows[i].value(figures);
    }
    return static_cast<int>(std::size(kRows));
  });
}
