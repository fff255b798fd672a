// What a client counts, for people and tests.
#include <array>
#include <iterator>

#include "client/api/boundary.h"
#include "client/egret.h"

using namespace egret::client;

namespace {

struct Figures {
  egret::rpc::LaneCounters lanes;
  uint64_t sessions = 0, relayed = 0, failures = 0, deliveries = 0, long_values = 0, slot_bytes = 0;
};

struct Row {
  const char* name;
  uint64_t (*value)(const Figures& figures);
};

constexpr Row kRows[] = {
    {"sessions", [](const Figures& f) { return f.sessions; }},
    {"relayed_sessions", [](const Figures& f) { return f.relayed; }},
    {"session_failures", [](const Figures& f) { return f.failures; }},
    {"slot_bytes", [](const Figures& f) { return f.slot_bytes; }},
    {"ops", [](const Figures& f) { return f.lanes.ops.get(); }},
    {"messages", [](const Figures& f) { return f.lanes.messages.get(); }},
    {"fetches", [](const Figures& f) { return f.lanes.fetches.get(); }},
    {"refetches", [](const Figures& f) { return f.lanes.refetches.get(); }},
    {"second_reads", [](const Figures& f) { return f.lanes.second_reads.get(); }},
    {"torn", [](const Figures& f) { return f.lanes.torn.get(); }},
    {"stalls", [](const Figures& f) { return f.lanes.stalls.get(); }},
    {"rings", [](const Figures& f) { return f.lanes.rings.get(); }},
    {"wants", [](const Figures& f) { return f.lanes.wants.get(); }},
    {"replies", [](const Figures& f) { return f.lanes.replies.get(); }},
    {"timeouts", [](const Figures& f) { return f.lanes.timeouts.get(); }},
    {"deliveries", [](const Figures& f) { return f.deliveries; }},
    {"long_values", [](const Figures& f) { return f.long_values; }},
};

void add(Figures& figures, egret::rpc::ClientSession& session) {
  const egret::rpc::SessionCounters& counted = session.counters();
  figures.lanes += counted.sum();
  figures.sessions += counted.is_open.get();
  figures.failures += counted.signs.failures.get();
  figures.deliveries += counted.deliveries.get();
  figures.long_values += counted.long_values.get();
  figures.slot_bytes += counted.slot_bytes.get();
}

// Of all sessions that there are and were.
Figures figures_of(const Router& router) {
  const RetiredCounters& retired = router.retired();
  Figures figures;
  figures.lanes += retired.lanes;
  figures.failures = retired.failures;
  figures.deliveries = retired.deliveries;
  figures.long_values = retired.long_values;
  for (size_t i = 0; i < router.sessions().size(); ++i) {
    add(figures, *router.sessions()[i]);
    if (router.is_relayed(i)) figures.relayed += router.sessions()[i]->counters().is_open.get();
  }
  for (const auto& session : router.leaving()) add(figures, *session);
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
