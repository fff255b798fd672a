#include "proxy/report/metrics.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "admin/process_metrics.h"
#include "proxy/config.h"
#include "rpc/lane_counters.h"
#include "tls/mutual.h"
#include "transport/address.h"

namespace egret::proxy {

using admin::MetricPage;
using admin::MetricRow;
using admin::MetricType;

namespace {

constexpr MetricType kCounter = MetricType::kCounter;
constexpr MetricType kGauge = MetricType::kGauge;

// Indexed by RequestKind.
constexpr std::array<std::string_view, kRequestKinds> kRequestNames = {"get",   "set",   "delete",
                                                                       "arith", "touch", "other"};

std::string lane_name(const rpc::LaneMetric& metric) {
  return "egret_proxy_lane_" + std::string(metric.name) + "_total";
}

double figure(uint64_t value) {
  return static_cast<double>(value);
}

double sum(const ProxyState& source, Counter WorkerStats::*counter) {
  uint64_t total = 0;
  for (const auto& worker : source.workers) total += ((*worker).*counter).get();
  return figure(total);
}

double request_sum(const ProxyState& source, Counter RequestFigures::*counter) {
  uint64_t total = 0;
  for (const auto& worker : source.workers) total += (worker->requests.*counter).get();
  return figure(total);
}

template <typename Number>
double memory_sum(const ProxyState& source, Number MemoryCounters::*number) {
  uint64_t total = 0;
  for (const auto& worker : source.workers) total += (worker->memory.*number).get();
  return figure(total);
}

double pull_sum(const ProxyState& source, Counter pool::PullCounters::*counter) {
  uint64_t total = 0;
  for (const auto& worker : source.workers) total += (worker->pulls.*counter).get();
  return figure(total);
}

double tls_sum(const ProxyState& source, Counter TlsCounters::*counter) {
  uint64_t total = 0;
  for (const auto& worker : source.workers) total += (worker->tls.*counter).get();
  return figure(total);
}

template <typename Number>
double slot_sum(const ProxyState& source, Number SlotStats::*number) {
  uint64_t total = 0;
  for (const auto& worker : source.workers) total += (worker->slots.*number).get();
  return figure(total);
}

// A metric without labels: this row is all that it needs.
struct ClientMetric {
  const char* name;
  MetricType type;
  const char* help;
  double (*value)(const ProxyState&);
};
using Source = const ProxyState&;
constexpr ClientMetric kClientMetrics[] = {
    {"egret_proxy_connections", kGauge, "Open client connections.",
     [](Source s) { return sum(s, &WorkerStats::curr_connections); }},
    {"egret_proxy_connections_at_rest", kGauge,
     "Open client connections that take a hundred bytes, since nothing is under way and nothing has come for a second "
     "or two; of TLS and of watchers there are none.",
     [](Source s) { return sum(s, &WorkerStats::resting_connections); }},
    {"egret_proxy_max_connections", kGauge, "The limit of client connections (`max_connections`).",
     [](Source s) { return figure(s.config.get()->max_connections); }},
    {"egret_proxy_connections_accepted_total", kCounter, "Client connections that were served.",
     [](Source s) { return sum(s, &WorkerStats::total_connections); }},
    {"egret_proxy_gutter_ops_total", kCounter, "Operations that went to the gutter in the place of an ejected backend.",
     [](Source s) { return sum(s, &WorkerStats::gutter_ops); }},
    {"egret_proxy_connections_rejected_total", kCounter,
     "Client connections refused because there were `max_connections`.",
     [](Source s) { return figure(s.accepts.rejected_connections.get()); }},
    {"egret_proxy_accepting", kGauge, "1 while connections are accepted; 0 while they wait for room or descriptors.",
     [](Source s) { return figure(1 - s.accepts.is_disabled.get()); }},
    {"egret_proxy_accepting_pauses_total", kCounter, "Times that accepting was paused.",
     [](Source s) { return figure(s.accepts.disabled.get()); }},
    {"egret_proxy_client_memory_bytes", kGauge,
     "Memory that client connections hold: unread answers, places for awaited ones and half commands (`client_memory` "
     "is the limit).",
     [](Source s) { return memory_sum(s, &MemoryCounters::used); }},
    {"egret_proxy_connection_memory_waits_total", kCounter,
     "Times that a connection was not read because it held `connection_memory`.",
     [](Source s) { return memory_sum(s, &MemoryCounters::connection_waits); }},
    {"egret_proxy_client_memory_waits_total", kCounter,
     "Times that a connection was not read because its worker's connections held their share of `client_memory`.",
     [](Source s) { return memory_sum(s, &MemoryCounters::client_waits); }},
    {"egret_proxy_stalled_readers_total", kCounter,
     "Clients disconnected because they read nothing of a large value for 5 s while others waited for its memory.",
     [](Source s) { return memory_sum(s, &MemoryCounters::stalled_readers); }},
    {"egret_proxy_stalled_senders_total", kCounter,
     "Clients disconnected because they had not sent a command whole for 5 s while such input held half of "
     "`client_memory`.",
     [](Source s) { return memory_sum(s, &MemoryCounters::stalled_senders); }},
    {"egret_proxy_idle_kicks_total", kCounter, "Clients disconnected after `idle_timeout`.",
     [](Source s) { return sum(s, &WorkerStats::idle_kicks); }},
    {"egret_proxy_received_bytes_total", kCounter, "Bytes from clients.",
     [](Source s) { return sum(s, &WorkerStats::bytes_read); }},
    {"egret_proxy_sent_bytes_total", kCounter, "Bytes to clients.",
     [](Source s) { return sum(s, &WorkerStats::bytes_written); }},
    {"egret_proxy_authentications_total", kCounter, "Times that a client tried to say who it is.",
     [](Source s) { return sum(s, &WorkerStats::auth_cmds); }},
    {"egret_proxy_authentication_errors_total", kCounter, "Those that failed.",
     [](Source s) { return sum(s, &WorkerStats::auth_errors); }},
    {"egret_proxy_authentication_waits_total", kCounter,
     "Those that had to wait, because too many before them had failed (`auth_guesses`).",
     [](Source s) { return sum(s, &WorkerStats::auth_waits); }},
    {"egret_proxy_tls_handshake_errors_total", kCounter, "Clients that did not get through their TLS handshake.",
     [](Source s) { return tls_sum(s, &TlsCounters::handshake_errors); }},
    {"egret_proxy_tls_protocol_errors_total", kCounter, "Clients that broke TLS afterwards.",
     [](Source s) { return tls_sum(s, &TlsCounters::protocol_errors); }},
    {"egret_proxy_session_tls_end_timestamp_seconds", kGauge,
     "When the certificate of `session_tls_certificate` ends, as Unix time; 0: there is none.",
     [](Source s) {
       const auto config = s.config.get();
       return config->session.connect.tls != nullptr ? figure(config->session.connect.tls->certificate().ends_at) : 0.0;
     }},
    {"egret_proxy_slots_sessions", kGauge, "Sessions of clients that reach a backend through this proxy by `slots`.",
     [](Source s) { return slot_sum(s, &SlotStats::sessions); }},
    {"egret_proxy_slots_session_bytes", kGauge, "Memory of the slots of those sessions (at most `slots_memory`).",
     [](Source s) { return figure(s.slot_bytes.get()); }},
    {"egret_proxy_slots_listeners", kGauge, "Clients by `slots` that hear news of the pool.",
     [](Source s) { return figure(s.slot_listeners.get()); }},
    {"egret_proxy_slots_sessions_opened_total", kCounter, "Sessions that clients by `slots` were given.",
     [](Source s) { return slot_sum(s, &SlotStats::opened); }},
    {"egret_proxy_slots_refusals_total", kCounter, "Clients by `slots` that were refused; the log says why.",
     [](Source s) { return figure(s.slot_refusals.get()) + slot_sum(s, &SlotStats::refusals); }},
    {"egret_proxy_handed_over_sessions", kGauge,
     "Sessions by which workers hand over to the one that has the session with a backend (`sessions: host`).",
     [](Source s) { return slot_sum(s, &SlotStats::worker_sessions); }},
    {"egret_proxy_slots_messages_total", kCounter, "Messages from clients by `slots`, and of workers that hand over.",
     [](Source s) { return slot_sum(s, &SlotStats::messages); }},
    {"egret_proxy_slots_ops_total", kCounter, "Operations in them.",
     [](Source s) { return slot_sum(s, &SlotStats::ops); }},
    {"egret_proxy_slots_malformed_total", kCounter, "Those messages that were malformed and ended their session.",
     [](Source s) { return slot_sum(s, &SlotStats::malformed); }},
    {"egret_proxy_slots_waits_total", kCounter,
     "Those messages that waited, because the backend's slots were full or there was no room for a large value.",
     [](Source s) { return slot_sum(s, &SlotStats::waits); }},
    {"egret_proxy_slots_forbidden_total", kCounter, "Operations that their client has no right to.",
     [](Source s) { return slot_sum(s, &SlotStats::refused); }},
    {"egret_proxy_slots_not_sent_total", kCounter,
     "Operations that failed at once, because there was no session with the backend.",
     [](Source s) { return slot_sum(s, &SlotStats::not_sent); }},
    {"egret_proxy_slots_kept_bytes", kGauge,
     "Memory of values that do not fit a client's slot and that it has not read whole.",
     [](Source s) { return slot_sum(s, &SlotStats::kept_bytes); }},
    {"egret_proxy_slots_collected_bytes", kGauge,
     "Memory of values from such clients that wait for room at their backend (part of `large_value_memory`).",
     [](Source s) { return slot_sum(s, &SlotStats::collected_bytes); }},
    {"egret_proxy_warming", kGauge,
     "1 while values of keys that moved with a change of members are brought to their backends (`warm_for`).",
     [](Source s) { return s.warm.get()->state == pool::WarmPhase::State::kOpen ? 1.0 : 0.0; }},
    {"egret_proxy_pulls_total", kCounter,
     "Keys that missed, or were to be changed, and were asked for at their backend before.",
     [](Source s) { return pull_sum(s, &pool::PullCounters::pulled); }},
    {"egret_proxy_pulls_filled_total", kCounter, "Those whose value was stored at their present backend.",
     [](Source s) { return pull_sum(s, &pool::PullCounters::filled); }},
    {"egret_proxy_pulls_refused_total", kCounter,
     "Those whose value was not stored: the key was there, or had been changed or deleted since the members changed.",
     [](Source s) { return pull_sum(s, &pool::PullCounters::refused); }},
    {"egret_proxy_pulls_absent_total", kCounter, "Those that their backend before did not have either.",
     [](Source s) { return pull_sum(s, &pool::PullCounters::absent); }},
    {"egret_proxy_pulls_skipped_total", kCounter,
     "Keys whose value was not brought: too many at once, no memory for a large one, a backend that cannot be reached "
     "or "
     "does not take it, a stale value.",
     [](Source s) { return pull_sum(s, &pool::PullCounters::skipped); }},
    {"egret_proxy_reloads_total", kCounter, "Times that SIGHUP put another configuration in force.",
     [](Source s) { return figure(s.reloads.succeeded.get()); }},
    {"egret_proxy_reload_errors_total", kCounter, "Reloads that were refused; the old configuration stayed.",
     [](Source s) { return figure(s.reloads.failed.get()); }},
    {"egret_proxy_get_hits_total", kCounter, "Keys that were found.",
     [](Source s) { return request_sum(s, &RequestFigures::get_hits); }},
    {"egret_proxy_get_misses_total", kCounter, "Keys that were not found.",
     [](Source s) { return request_sum(s, &RequestFigures::get_misses); }},
    {"egret_proxy_request_errors_total", kCounter,
     "Answers `SERVER_ERROR`; in a retrieval each key that failed counts.",
     [](Source s) { return request_sum(s, &RequestFigures::errors); }},
    {"egret_proxy_workers", kGauge, "Worker threads.", [](Source s) { return figure(s.workers.size()); }},
    {"egret_proxy_backends", kGauge, "Backends of the pool.",
     [](Source s) { return figure(s.membership.get()->members().size()); }},
    {"egret_proxy_members_told_total", kCounter, "Backends that were told that the backends of the pool change.",
     [](Source s) { return figure(s.changes.told.get()); }},
    {"egret_proxy_members_not_told_total", kCounter,
     "Those that belong to another pool, cannot be told, or did not finish: they have removed nothing.",
     [](Source s) { return figure(s.changes.not_told.get()); }},
    {"egret_proxy_members_owed", kGauge,
     "Backends that are yet to be told, also of those that have left. One in use is held back until then.",
     [](Source s) { return figure(s.changes.owed.get()); }},
};

void add_failover_rows(std::vector<MetricRow>& table) {
  table.push_back({"egret_proxy_backend_standing_in",
                   kGauge,
                   "1 while the backends of the gutter take requests for the keys of this one, which is ejected.",
                   {"backend"}});
  table.push_back({"egret_proxy_backend_purged_keys_total",
                   kCounter,
                   "Keys that were deleted on it before it returned, since the gutter had changed them.",
                   {"backend"}});
  table.push_back({"egret_proxy_backend_purged_whole_total",
                   kCounter,
                   "Times that it was flushed instead, since not all of those keys were known.",
                   {"backend"}});
  table.push_back({"egret_proxy_gutter_up",
                   kGauge,
                   "1 if every worker has a session with this backend of the gutter.",
                   {"backend"}});
}

void add_session_rows(std::vector<MetricRow>& table) {
  table.push_back({"egret_proxy_session_slot_bytes",
                   kGauge,
                   "Memory of the slots of its sessions now; the backend has as much for them.",
                   {"backend"}});
  table.push_back({"egret_proxy_session_resizes_total",
                   kCounter,
                   "Changes of a session's size: to more slots, to fewer, and those that failed (none).",
                   {"backend", "to"}});
  table.push_back({"egret_proxy_deliveries_total",
                   kCounter,
                   "Pushes received; on shm these are wake-ups, each for all results of a round.",
                   {"backend"}});
  for (const rpc::LaneMetric& metric : rpc::lane_metrics()) {
    if (metric.counter == nullptr) continue;
    table.push_back({lane_name(metric), kCounter, std::string(metric.help), {"backend", "lane"}});
  }
}

void add_transport_rows(std::vector<MetricRow>& table) {
  table.push_back(
      {"egret_proxy_backend_transport_sessions",
       kGauge,
       "Sessions that go by this transport now: of an rdma+tcp: address either one. With sessions: host the "
       "one that the workers share, of egret_proxy_backend_sessions, which counts workers.",
       {"backend", "transport"}});
  table.push_back({"egret_proxy_backend_fallbacks_total",
                   kCounter,
                   "Sessions of an rdma+tcp: address that were opened by TCP, since RDMA could not be had.",
                   {"backend"}});
  table.push_back({"egret_proxy_backend_returns_total",
                   kCounter,
                   "Those that went on by RDMA, when it could be had again.",
                   {"backend"}});
}

std::vector<MetricRow> make_table() {
  std::vector<MetricRow> table = admin::process_metric_rows("egret_proxy");
  for (const ClientMetric& metric : kClientMetrics) table.push_back({metric.name, metric.type, metric.help});
  table.push_back(
      {"egret_proxy_requests_total",
       kCounter,
       "Requests; a retrieval of many keys is one. `touch` includes gat; `other` are commands without a key.",
       {"command"}});
  table.push_back(
      {"egret_proxy_request_seconds", MetricType::kHistogram,
       "Time from parsing a request to passing its answer to the client's output. Requests that do not wait for a "
       "backend are in the first bucket."});
  table.push_back({"egret_proxy_rpc_seconds",
                   MetricType::kHistogram,
                   "Time from sending a message to handling its response, which answers all its ops.",
                   {"backend"}});
  table.push_back({"egret_proxy_pool_members", kGauge, "Backends that keys are spread over."});
  table.push_back({"egret_proxy_pool_changes_total", kCounter, "Changes of the pool's members, weights or placement."});
  table.push_back({"egret_proxy_source_ok",
                   kGauge,
                   "0 when a name of backends cannot be resolved, or backends_file cannot be used; the pool then keeps "
                   "the members that it has from there.",
                   {"source"}});
  table.push_back({"egret_proxy_source_members", kGauge, "Members that a name or the file gives.", {"source"}});
  table.push_back({"egret_proxy_source_learned_timestamp_seconds",
                   kGauge,
                   "When a name was last resolved in whole, or the file last read and accepted, as Unix time.",
                   {"source"}});
  table.push_back({"egret_proxy_backend_up", kGauge, "1 when every worker has an open session with it.", {"backend"}});
  table.push_back({"egret_proxy_backend_info",
                   kGauge,
                   "Always 1; `transport` is shm, rdma, tcp, rdma+tcp or, in one process, local, `address` the address "
                   "of the backend of that name.",
                   {"backend", "transport", "address"}});
  table.push_back({"egret_proxy_backend_sessions", kGauge, "Workers that have an open session with it.", {"backend"}});
  add_transport_rows(table);
  table.push_back({"egret_proxy_backend_ejected",
                   kGauge,
                   "1 while the backend is ejected: requests for its keys fail at once, and it is probed.",
                   {"backend"}});
  table.push_back(
      {"egret_proxy_backend_eject_reason",
       kGauge,
       "Why it was ejected last: 1: no worker had a session with it; 2: it did not answer in time; 0: it never was.",
       {"backend"}});
  table.push_back({"egret_proxy_backend_held_back",
                   kGauge,
                   "1 while requests for its keys fail because it has not been told of a change of the backends.",
                   {"backend"}});
  table.push_back({"egret_proxy_backend_ejections_total", kCounter, "Times that it was ejected.", {"backend"}});
  table.push_back({"egret_proxy_backend_probes_total", kCounter, "Probes of it while it was ejected.", {"backend"}});
  table.push_back({"egret_proxy_backend_failed_probes_total", kCounter, "Those that it did not answer.", {"backend"}});
  add_failover_rows(table);
  add_session_rows(table);
  table.push_back({"egret_proxy_lane_replies_mode",
                   kGauge,
                   "Workers whose lane is in server reply mode (results are pushed) now.",
                   {"backend", "lane"}});
  table.push_back({"egret_proxy_lane_fetch_size_bytes",
                   kGauge,
                   "F: bytes that the first READ of a response takes now; the maximum over the workers.",
                   {"backend", "lane"}});
  return table;
}

// A worker that has not connected yet knows fewer lanes than others.
uint32_t lanes_of(const pool::MemberStats& stats) {
  uint32_t lanes = 0;
  for (const auto& session : stats.sessions) lanes = std::max(lanes, session->lane_count());
  return lanes;
}

void add_lane(MetricPage& page, const pool::MemberStats& stats, const std::string& name, uint32_t lane) {
  const std::string number = std::to_string(lane);
  std::vector<const rpc::LaneCounters*> workers;
  for (const auto& session : stats.sessions) {
    if (lane < session->lane_count()) workers.push_back(&session->at(lane));
  }
  for (const rpc::LaneMetric& metric : rpc::lane_metrics()) {
    if (metric.counter == nullptr) continue;
    uint64_t total = 0;
    for (const rpc::LaneCounters* counters : workers) total += (counters->*metric.counter).get();
    page.add(lane_name(metric), figure(total), {name, number});
  }
  uint64_t in_reply_mode = 0;
  uint64_t fetch_size = 0;
  for (const rpc::LaneCounters* counters : workers) {
    if (counters->mode.get() == static_cast<uint64_t>(rpc::LaneMode::kReply)) ++in_reply_mode;
    fetch_size = std::max(fetch_size, counters->fetch_size.get());
  }
  page.add("egret_proxy_lane_replies_mode", figure(in_reply_mode), {name, number});
  page.add("egret_proxy_lane_fetch_size_bytes", figure(fetch_size), {name, number});
}

void add_requests(MetricPage& page, const ProxyState& source) {
  std::vector<const base::Histogram*> durations;
  for (const auto& worker : source.workers) durations.push_back(&worker->requests.duration);
  page.add("egret_proxy_request_seconds", admin::add_up(durations));
  for (size_t kind = 0; kind < kRequestKinds; ++kind) {
    uint64_t total = 0;
    for (const auto& worker : source.workers) total += worker->requests.count[kind].get();
    page.add("egret_proxy_requests_total", figure(total), {kRequestNames[kind]});
  }
}

void add_backend(MetricPage& page, const pool::Membership::Entry& entry) {
  const pool::Member& its = entry.member;
  const pool::MemberStats& stats = *entry.stats;
  const std::string& name = its.name;
  const size_t sessions = stats.open_sessions();
  uint64_t deliveries = 0, slot_bytes = 0, grown = 0, given_back = 0, not_resized = 0, fell_back = 0, returned = 0;
  std::vector<const base::Histogram*> durations;
  for (const auto& session : stats.sessions) {
    deliveries += session->deliveries.get();
    slot_bytes += session->slot_bytes.get();
    grown += session->grown.get();
    given_back += session->given_back.get();
    not_resized += session->not_resized.get();
    fell_back += session->fell_back.get();
    returned += session->returned.get();
    durations.push_back(&session->duration);
  }
  page.add("egret_proxy_rpc_seconds", admin::add_up(durations), {name});
  page.add("egret_proxy_backend_up", sessions == stats.sessions.size() ? 1 : 0, {name});
  page.add("egret_proxy_backend_info", 1, {name, std::string(transport::transport_of(its.address)), its.address});
  page.add("egret_proxy_backend_sessions", figure(sessions), {name});
  for (const std::string& address : transport::alternatives_of(its.address)) {
    const std::string transport(transport::transport_of(address));
    page.add("egret_proxy_backend_transport_sessions", figure(stats.open_sessions_by(transport)), {name, transport});
  }
  page.add("egret_proxy_backend_fallbacks_total", figure(fell_back), {name});
  page.add("egret_proxy_backend_returns_total", figure(returned), {name});
  page.add("egret_proxy_backend_ejected", figure(stats.health.is_ejected.get()), {name});
  page.add("egret_proxy_backend_eject_reason", figure(stats.health.why.get()), {name});
  page.add("egret_proxy_backend_held_back", figure(stats.health.is_held_back.get()), {name});
  page.add("egret_proxy_backend_ejections_total", figure(stats.health.ejections.get()), {name});
  page.add("egret_proxy_backend_probes_total", figure(stats.health.probes.get()), {name});
  page.add("egret_proxy_backend_failed_probes_total", figure(stats.health.failed_probes.get()), {name});
  page.add("egret_proxy_backend_standing_in", figure(stats.failover.stands_in.get()), {name});
  page.add("egret_proxy_backend_purged_keys_total", figure(stats.failover.purged_keys.get()), {name});
  page.add("egret_proxy_backend_purged_whole_total", figure(stats.failover.flushes.get()), {name});
  page.add("egret_proxy_session_slot_bytes", figure(slot_bytes), {name});
  page.add("egret_proxy_session_resizes_total", figure(grown), {name, "more"});
  page.add("egret_proxy_session_resizes_total", figure(given_back), {name, "fewer"});
  page.add("egret_proxy_session_resizes_total", figure(not_resized), {name, "none"});
  page.add("egret_proxy_deliveries_total", figure(deliveries), {name});
  for (uint32_t lane = 0; lane < lanes_of(stats); ++lane) add_lane(page, stats, name, lane);
}

}  // namespace

std::span<const MetricRow> metric_table() {
  static const std::vector<MetricRow> table = make_table();
  return table;
}

std::string metrics_markdown() {
  return admin::metrics_markdown(metric_table());
}

void add_pool(MetricPage& page, const ProxyState& source, const pool::Membership& membership) {
  page.add("egret_proxy_pool_members", figure(membership.members().size()));
  page.add("egret_proxy_pool_changes_total", figure(std::max<uint64_t>(membership.version(), 1) - 1));
  const auto sources = source.sources.get();
  for (const discovery::SourceStatus& each : *sources) {
    page.add("egret_proxy_source_ok", each.problem.empty() ? 1 : 0, {each.name});
    page.add("egret_proxy_source_members", figure(each.members), {each.name});
    if (!each.learned_at) continue;
    const std::chrono::duration<double> learned = each.learned_at->time_since_epoch();
    page.add("egret_proxy_source_learned_timestamp_seconds", learned.count(), {each.name});
  }
  for (const pool::Membership::Entry& member : membership.members()) add_backend(page, member);
  for (const pool::Membership::Entry& member : membership.gutter()) {
    const bool is_up = member.stats->open_sessions() == member.stats->sessions.size();
    page.add("egret_proxy_gutter_up", figure(is_up ? 1 : 0), {member.member.name});
  }
}

std::string metrics_text(const ProxyState& source) {
  MetricPage page(metric_table());
  admin::add_process_metrics(page, "egret_proxy");
  for (const ClientMetric& metric : kClientMetrics) page.add(metric.name, metric.value(source));
  add_requests(page, source);
  add_pool(page, source, *source.membership.get());
  return page.text();
}

}  // namespace egret::proxy
