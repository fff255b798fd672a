#include "proxy/report/stats_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "events/event.h"
#include "memcache/reply.h"
#include "proxy/users/credentials.h"
#include "transport/address.h"

namespace egret::proxy {

using op::StatId;

namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

// What a row's value is computed from.
struct Source {
  const ProxyState& proxy;
  const pool::FanOut& store;
  PoolTotals::Totals totals;
  rusage usage{};

  // A row that counts events, or a level.
  uint64_t stat(StatId id) const { return op::is_level(id) ? store.stat(id) : totals.of(id); }

  uint64_t sum(Counter WorkerStats::*counter) const {
    uint64_t total = 0;
    for (const auto& worker : proxy.workers) total += ((*worker).*counter).get();
    return total;
  }
  uint64_t tls_since_reset(Counter TlsCounters::*counter) const {
    uint64_t total = 0;
    for (const auto& worker : proxy.workers) total += (worker->tls.*counter).since_mark();
    return total;
  }
  uint64_t since_reset(Counter WorkerStats::*counter) const {
    uint64_t total = 0;
    for (const auto& worker : proxy.workers) total += ((*worker).*counter).since_mark();
    return total;
  }
  uint64_t pulls(Counter pool::PullCounters::*counter) const {
    uint64_t total = 0;
    for (const auto& worker : proxy.workers) total += (worker->pulls.*counter).since_mark();
    return total;
  }
  template <typename Condition>
  uint64_t count_members(const Condition& holds) const {
    const std::shared_ptr<const pool::Membership> membership = proxy.membership.get();
    return static_cast<uint64_t>(
        std::ranges::count_if(membership->members(), [&](const auto& member) { return holds(*member.stats); }));
  }
  uint64_t stood_in() const {
    return count_members([](const pool::MemberStats& stats) { return stats.failover.stands_in.get() != 0; });
  }
  uint64_t ejected() const {
    return count_members([](const pool::MemberStats& stats) { return stats.health.is_ejected.get() != 0; });
  }
  uint64_t held_back() const {
    return count_members([](const pool::MemberStats& stats) { return stats.health.is_held_back.get() != 0; });
  }
};

std::string seconds(const timeval& own, uint64_t backend_usec) {
  const uint64_t usec =
      static_cast<uint64_t>(own.tv_sec) * 1'000'000 + static_cast<uint64_t>(own.tv_usec) + backend_usec;
  char text[40];
  std::snprintf(text, sizeof text, "%lu.%06lu", usec / 1'000'000, usec % 1'000'000);
  return text;
}

std::string_view yes_or_no(bool value) {
  return value ? "yes" : "no";
}

std::string_view binding_protocol(memcache::Protocol protocol) {
  switch (protocol) {
    case memcache::Protocol::kText:
      return "ascii";
    case memcache::Protocol::kBinary:
      return "binary";
    case memcache::Protocol::kAuto:
      break;
  }
  return "auto-negotiate";
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

struct Row {
  std::string_view name;
  std::string (*value)(const Source&);
};

#define EGRET_STORE_ROW(name, id)                                    \
  Row {                                                              \
    name, [](const Source& s) { return number(s.stat(StatId::id)); } \
  }
#define EGRET_WORKER_ROW(name, counter)                                        \
  Row {                                                                        \
    name, [](const Source& s) { return number(s.sum(&WorkerStats::counter)); } \
  }
#define EGRET_WORKER_SINCE_RESET_ROW(name, counter)                                    \
  Row {                                                                                \
    name, [](const Source& s) { return number(s.since_reset(&WorkerStats::counter)); } \
  }

std::string zero(const Source&) {
  return "0";
}

// memcached's names in memcached's order, as of a memcached without LRU maintainer threads. Rows about things that
// Egret lacks (slabs, a logger thread, a hash table that is resized) are 0. Rows that begin with egret_ are ours.
constexpr Row kGeneral[] = {
    {"pid",
     [](const Source& s) {
       const int main = s.proxy.config.get()->main_pid;
       return number(static_cast<uint64_t>(main != 0 ? main : ::getpid()));
     }},
    {"uptime", [](const Source& s) { return number((s.proxy.clock->now_ns() - s.proxy.start_ns) / 1'000'000'000); }},
    {"time", [](const Source& s) { return number(static_cast<uint64_t>(s.proxy.clock->unix_seconds())); }},
    {"version", [](const Source&) { return std::string(kMemcachedVersion); }},
    {"libevent", [](const Source&) { return std::string(events::library_version()); }},
    {"pointer_size", [](const Source&) { return number(8 * sizeof(void*)); }},
    {"rusage_user", [](const Source& s) { return seconds(s.usage.ru_utime, s.stat(StatId::kUserUsec)); }},
    {"rusage_system", [](const Source& s) { return seconds(s.usage.ru_stime, s.stat(StatId::kSystemUsec)); }},
    {"max_connections", [](const Source& s) { return number(s.proxy.config.get()->max_connections); }},
    EGRET_WORKER_ROW("curr_connections", curr_connections),
    EGRET_WORKER_SINCE_RESET_ROW("total_connections", total_connections),
    {"rejected_connections", [](const Source& s) { return number(s.proxy.accepts.rejected_connections.since_mark()); }},
    EGRET_WORKER_ROW("connection_structures", curr_connections),
    {"response_obj_oom", zero},
    {"response_obj_count", zero},
    {"response_obj_bytes", zero},
    {"read_buf_count", zero},
    {"read_buf_bytes", zero},
    {"read_buf_bytes_free", zero},
    {"read_buf_oom", zero},
    {"reserved_fds", zero},
    EGRET_STORE_ROW("cmd_get", kCmdGet),
    EGRET_STORE_ROW("cmd_set", kCmdSet),
    EGRET_STORE_ROW("cmd_flush", kCmdFlush),
    EGRET_STORE_ROW("cmd_touch", kCmdTouch),
    EGRET_STORE_ROW("cmd_meta", kCmdMeta),
    EGRET_STORE_ROW("get_hits", kGetHits),
    EGRET_STORE_ROW("get_misses", kGetMisses),
    EGRET_STORE_ROW("get_expired", kGetExpired),
    EGRET_STORE_ROW("get_flushed", kGetFlushed),
    EGRET_STORE_ROW("delete_misses", kDeleteMisses),
    EGRET_STORE_ROW("delete_hits", kDeleteHits),
    EGRET_STORE_ROW("incr_misses", kIncrMisses),
    EGRET_STORE_ROW("incr_hits", kIncrHits),
    EGRET_STORE_ROW("decr_misses", kDecrMisses),
    EGRET_STORE_ROW("decr_hits", kDecrHits),
    EGRET_STORE_ROW("cas_misses", kCasMisses),
    EGRET_STORE_ROW("cas_hits", kCasHits),
    EGRET_STORE_ROW("cas_badval", kCasBadval),
    EGRET_STORE_ROW("touch_hits", kTouchHits),
    EGRET_STORE_ROW("touch_misses", kTouchMisses),
    EGRET_STORE_ROW("store_too_large", kStoreTooLarge),
    EGRET_STORE_ROW("store_no_memory", kStoreNoMemory),
    EGRET_WORKER_SINCE_RESET_ROW("auth_cmds", auth_cmds),
    EGRET_WORKER_SINCE_RESET_ROW("auth_errors", auth_errors),
    EGRET_WORKER_SINCE_RESET_ROW("idle_kicks", idle_kicks),
    EGRET_WORKER_SINCE_RESET_ROW("bytes_read", bytes_read),
    EGRET_WORKER_SINCE_RESET_ROW("bytes_written", bytes_written),
    EGRET_STORE_ROW("limit_maxbytes", kLimitMaxbytes),
    {"accepting_conns", [](const Source& s) { return number(1 - s.proxy.accepts.is_disabled.get()); }},
    {"listen_disabled_num", [](const Source& s) { return number(s.proxy.accepts.disabled.since_mark()); }},
    {"time_in_listen_disabled_us", [](const Source& s) { return number(s.proxy.accepts.disabled_us.since_mark()); }},
    {"threads", [](const Source& s) { return number(s.proxy.workers.size()); }},
    {"conn_yields", zero},
    {"hash_power_level", zero},
    {"hash_bytes", zero},
    {"hash_is_expanding", zero},
    {"slab_reassign_rescues", zero},
    {"slab_reassign_chunk_rescues", zero},
    {"slab_reassign_inline_reclaim", zero},
    {"slab_reassign_busy_items", zero},
    {"slab_reassign_busy_deletes", zero},
    {"slab_reassign_busy_nomem", zero},
    {"slab_reassign_last_busy_status", zero},
    {"slab_reassign_running", zero},
    {"slabs_moved", zero},
    {"malloc_fails", zero},
    {"log_worker_dropped", zero},
    {"log_worker_written", zero},
    {"log_watcher_skipped", zero},
    {"log_watcher_sent", zero},
    {"log_watchers", zero},
    {"unexpected_napi_ids", zero},
    {"round_robin_fallback", zero},
    EGRET_STORE_ROW("bytes", kBytes),
    EGRET_STORE_ROW("curr_items", kCurrItems),
    EGRET_STORE_ROW("total_items", kTotalItems),
    {"slab_global_page_pool", zero},
    EGRET_STORE_ROW("expired_unfetched", kExpiredUnfetched),
    EGRET_STORE_ROW("evicted_unfetched", kEvictedUnfetched),
    EGRET_STORE_ROW("evictions", kEvictions),
    EGRET_STORE_ROW("reclaimed", kReclaimed),
    {"crawler_reclaimed", zero},
    {"crawler_items_checked", zero},
    {"lrutail_reflocked", zero},
    {"ssl_new_sessions", [](const Source& s) { return number(s.tls_since_reset(&TlsCounters::new_sessions)); }},
    {"ssl_handshake_errors", [](const Source& s) { return number(s.tls_since_reset(&TlsCounters::handshake_errors)); }},
    {"ssl_proto_errors", [](const Source& s) { return number(s.tls_since_reset(&TlsCounters::protocol_errors)); }},
    {"time_since_server_cert_refresh", [](const Source& s) { return number(s.proxy.tls->seconds_since_refresh()); }},
    {"egret_backends", [](const Source& s) { return number(s.store.backends()); }},
    {"egret_backends_up", [](const Source& s) { return number(s.store.backends_up()); }},
    {"egret_backends_standing_in", [](const Source& s) { return number(s.stood_in()); }},
    {"egret_backends_ejected", [](const Source& s) { return number(s.ejected()); }},
    {"egret_backends_held_back", [](const Source& s) { return number(s.held_back()); }},
    {"egret_warming",
     [](const Source& s) { return number(s.proxy.warm.get()->state == pool::WarmPhase::State::kOpen ? 1 : 0); }},
    {"egret_pulls", [](const Source& s) { return number(s.pulls(&pool::PullCounters::pulled)); }},
    {"egret_pulls_filled", [](const Source& s) { return number(s.pulls(&pool::PullCounters::filled)); }},
    {"egret_pulls_refused", [](const Source& s) { return number(s.pulls(&pool::PullCounters::refused)); }},
    {"egret_pulls_absent", [](const Source& s) { return number(s.pulls(&pool::PullCounters::absent)); }},
    {"egret_pulls_skipped", [](const Source& s) { return number(s.pulls(&pool::PullCounters::skipped)); }},
    EGRET_STORE_ROW("egret_backend_pid", kPid),
    EGRET_STORE_ROW("egret_backend_uptime", kUptime),
    {"egret_deliveries", [](const Source& s) { return number(s.totals.deliveries.since_mark()); }},
};

bool speaks_tls(const ProxyState& source) {
  return source.tls != nullptr && source.tls->is_on();
}

// As in memcached, rows of features that are off are left out.
bool has_row(const ProxyState& source, std::string_view name) {
  const auto held = source.config.get();
  const Config& config = *held;
  if (name == "rejected_connections") return config.maxconns_fast;
  if (name == "idle_kicks") return config.idle_timeout_ns != 0;
  if (name == "ssl_new_sessions") return speaks_tls(source) && config.tls.session_cache;
  if (name.starts_with("ssl_") || name == "time_since_server_cert_refresh") return speaks_tls(source);
  return true;
}

// Rows of op::stat_table() from here on have no counterpart in memcached; they keep their names.
constexpr StatId kFirstInnerRow = StatId::kExpired;

#undef EGRET_STORE_ROW
#undef EGRET_WORKER_ROW
#undef EGRET_WORKER_SINCE_RESET_ROW

void add_row(std::string& text, std::string_view name, std::string_view value) {
  const size_t begin = text.size();
  text.resize(begin + memcache::max_stat(name.size(), value.size()));
  char* end = memcache::write_stat(text.data() + begin, name, value);
  text.resize(static_cast<size_t>(end - text.data()));
}

// The rows of `stats settings`, in the order in which they were first set.
class Settings {
 public:
  void set(std::string_view name, std::string_view value) {
    const auto at = std::ranges::find(rows_, name, &Row::name);
    if (at == rows_.end()) {
      rows_.push_back({std::string(name), std::string(value)});
    } else {
      at->value = value;
    }
  }
  std::string text() const {
    std::string text;
    for (const Row& row : rows_) add_row(text, row.name, row.value);
    return text.append(memcache::kEnd);
  }

 private:
  struct Row {
    std::string name;
    std::string value;
  };
  std::vector<Row> rows_;
};

// As in memcached; without TLS they have memcached's defaults.
void set_tls_settings(Settings& settings, const Config& config) {
  const TlsOptions& tls = config.tls;
  const auto or_else = [](const std::string& value, std::string_view unset) {
    return value.empty() ? std::string(unset) : value;
  };
  settings.set("ssl_enabled", config.has_tls() ? "yes" : "no");
  settings.set("ssl_chain_cert", or_else(tls.certificate, "(null)"));
  settings.set("ssl_key", or_else(tls.key, "(null)"));
  settings.set("ssl_verify_mode", number(static_cast<uint64_t>(tls.verify_flags())));
  settings.set("ssl_keyformat", "1");  // PEM
  settings.set("ssl_ciphers", or_else(tls.ciphers, "NULL"));
  settings.set("ssl_ca_cert", or_else(tls.ca_certificate, "NULL"));
  settings.set("ssl_wbuf_size", "16384");
  settings.set("ssl_session_cache", tls.session_cache ? "yes" : "no");
  settings.set("ssl_kernel_tls", "no");
  settings.set("ssl_min_version", "tlsv1." + number(tls.min_version));
}

// Rows with sums over all lanes. Consecutive metrics may share a row.
void add_lane_totals(std::string& text, const rpc::LaneCounters& all) {
  const auto metrics = rpc::lane_metrics();
  uint64_t total = 0;
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].total.empty()) continue;
    total += (all.*metrics[i].counter).since_mark();
    if (i + 1 < metrics.size() && metrics[i + 1].total == metrics[i].total) continue;
    add_row(text, metrics[i].total, number(std::exchange(total, 0)));
  }
}

// The lanes of all backends, over the workers, page by page. A worker may know fewer lanes than another: it has not
// connected yet.
class LanesReport final : public PagedReport {
 public:
  explicit LanesReport(const ProxyState& source) : membership_(source.membership.get()) {}

  bool next(std::string& text) override {
    const size_t end = text.size() + kPageBytes;
    while (backend_ < membership_->members().size()) {
      if (text.size() >= end) return true;
      if (lane_ == 0) add_backend(text);
      if (lane_ < lanes()) {
        add_lane(text, lane_++);
      } else {
        ++backend_;
        lane_ = 0;
      }
    }
    text.append(memcache::kEnd);
    return false;
  }

 private:
  std::string prefix() const { return "backend:" + number(backend_) + ":"; }
  const pool::Membership::Entry& at() const { return membership_->members()[backend_]; }
  uint32_t lanes() const {
    uint32_t lanes = 0;
    for (const auto& session : at().stats->sessions) lanes = std::max(lanes, session->lane_count());
    return lanes;
  }
  // What its sessions go by now.
  static std::string transport_of(const pool::Membership::Entry& entry) {
    std::string in_use;
    for (const std::string& address : transport::alternatives_of(entry.member.address)) {
      const std::string_view name = transport::transport_of(address);
      if (entry.stats->open_sessions_by(name) > 0) in_use.append(in_use.empty() ? "" : ", ").append(name);
    }
    return in_use.empty() ? "none" : in_use;
  }
  void add_backend(std::string& text) const {
    add_row(text, prefix() + "name", at().member.name);
    add_row(text, prefix() + "address", at().member.address);
    add_row(text, prefix() + "transport", transport_of(at()));
    const pool::MemberStats::Health& health = at().stats->health;
    add_row(text, prefix() + "ejected", number(health.is_ejected.get()));
    add_row(text, prefix() + "eject_reason", pool::word_of(static_cast<pool::EjectReason>(health.why.get())));
    add_row(text, prefix() + "held_back", number(health.is_held_back.get()));
    add_row(text, prefix() + "ejections", number(health.ejections.get()));
    add_row(text, prefix() + "probes", number(health.probes.get()));
    add_row(text, prefix() + "standing_in", number(at().stats->failover.stands_in.get()));
  }
  void add_lane(std::string& text, uint32_t lane) const {
    std::vector<const rpc::LaneCounters*> workers;
    for (const auto& session : at().stats->sessions) {
      if (lane < session->lane_count()) workers.push_back(&session->at(lane));
    }
    for (const rpc::LaneMetric& metric : rpc::lane_metrics()) {
      add_row(text, prefix() + "lane:" + number(lane) + ":" + std::string(metric.name), metric.value(workers));
    }
  }

  const std::shared_ptr<const pool::Membership> membership_;
  size_t backend_ = 0;
  uint32_t lane_ = 0;  // 0: the backend's own rows come first
};

}  // namespace

std::string general_report(ProxyState& source, const pool::FanOut& store, uint64_t asked_ns) {
  const auto membership = source.membership.get();
  Source from{source, store, source.totals.take(store, asked_ns, source.clock->now_ns(), *membership)};
  ::getrusage(RUSAGE_SELF, &from.usage);
  std::string text;
  for (const Row& row : kGeneral) {
    if (has_row(source, row.name)) add_row(text, row.name, row.value(from));
  }
  for (const op::StatInfo& info : op::stat_table()) {
    if (info.id >= kFirstInnerRow) add_row(text, "egret_" + std::string(info.name), number(from.stat(info.id)));
  }
  add_lane_totals(text, from.totals.lanes);
  return text.append(memcache::kEnd);
}

std::unique_ptr<PagedReport> lanes_report(const ProxyState& source) {
  return std::make_unique<LanesReport>(source);
}

std::string check_report(const std::vector<std::string>& complaints) {
  std::string text;
  for (size_t i = 0; i < complaints.size(); ++i) {
    const std::string said = complaints[i].empty() ? "ok" : base::one_line(complaints[i]);
    text += "STAT partition_" + std::to_string(i) + " " + said + "\r\n";
  }
  return text.append(memcache::kEnd);
}

std::string lane_metrics_markdown() {
  std::string text = "| `backend:B:lane:L:` | sum in `stats` | what it says |\n| --- | --- | --- |\n";
  for (const rpc::LaneMetric& metric : rpc::lane_metrics()) {
    const std::string total = metric.total.empty() ? "" : "`" + std::string(metric.total) + "`";
    text += "| `" + std::string(metric.name) + "` | " + total + " | " + std::string(metric.help) + " |\n";
  }
  return text;
}

std::string settings_report(const ProxyState& source, uint64_t item_size_max, uint64_t memory, bool evicts) {
  const auto held = source.config.get();
  const Config& config = *held;
  std::string port = "0";
  std::string inter = "NULL";
  std::string domain_socket = "NULL";
  for (const ListenAddress& address : config.listen) {
    if (address.is_unix()) {
      domain_socket = address.host;
    } else if (port == "0") {
      port = number(address.port);
      inter = address.host == "*" ? "NULL" : address.host;
    }
  }
  Settings settings;
  settings.set("maxbytes", number(memory));
  settings.set("maxconns", number(config.max_connections));
  settings.set("tcpport", port);
  settings.set("udpport", "0");
  settings.set("inter", inter);
  settings.set("verbosity", "0");
  settings.set("oldest", "0");
  settings.set("evictions", evicts ? "on" : "off");
  settings.set("domain_socket", domain_socket);
  settings.set("umask", config.unix_mode[0] == '0' ? config.unix_mode.substr(1) : config.unix_mode);
  settings.set("shutdown_command", yes_or_no(config.allow_shutdown));
  settings.set("num_threads", number(config.workers));
  settings.set("stat_key_prefix", ":");
  settings.set("detail_enabled", yes_or_no(source.admin.prefixes.is_on()));
  settings.set("cas_enabled", "yes");
  settings.set("tcp_backlog", number(config.backlog));
  settings.set("binding_protocol", binding_protocol(config.protocol));
  settings.set("auth_enabled_sasl", yes_or_no(config.credentials != nullptr));
  settings.set("auth_enabled_ascii", config.credentials != nullptr ? config.credentials->files().front().path : "no");
  settings.set("item_size_max", number(item_size_max));
  settings.set("maxconns_fast", yes_or_no(config.maxconns_fast));
  settings.set("flush_enabled", yes_or_no(config.allow_flush));
  settings.set("lru_crawler", yes_or_no(source.admin.crawler_is_enabled));
  settings.set("dump_enabled", yes_or_no(config.allow_dump));
  settings.set("hash_algorithm", "xxh3");
  settings.set("idle_timeout", number((config.idle_timeout_ns + kSecondNs - 1) / kSecondNs));
  settings.set("track_sizes", "yes");
  set_tls_settings(settings, config);
  settings.set("client_flags_size", "4");
  // The settings that egret-memcached got by memcached's flags.
  for (const std::string& told : config.told_settings) {
    const size_t equals = told.find('=');
    if (equals != std::string::npos) settings.set(told.substr(0, equals), told.substr(equals + 1));
  }
  return settings.text();
}

void reset_stats(ProxyState& source) {
  source.admin.prefixes.clear();
  AcceptCounters& accepts = source.accepts;
  for (Counter* counter : {&accepts.rejected_connections, &accepts.disabled, &accepts.disabled_us}) counter->mark();
  for (const auto& worker : source.workers) {
    for (Counter* counter :
         {&worker->total_connections, &worker->bytes_read, &worker->bytes_written, &worker->idle_kicks,
          &worker->auth_cmds, &worker->auth_errors, &worker->tls.new_sessions, &worker->tls.handshake_errors,
          &worker->tls.protocol_errors, &worker->pulls.pulled, &worker->pulls.filled, &worker->pulls.refused,
          &worker->pulls.absent, &worker->pulls.skipped}) {
      counter->mark();
    }
  }
  source.totals.reset(*source.membership.get());
}

}  // namespace egret::proxy
