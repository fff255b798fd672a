// /metrics of the proxy: the table and the page agree, figures are sums over the workers, a reset does not change them.
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "discovery/learn.h"
#include "metrics_text.h"
#include "proxy/option_table.h"
#include "proxy/report/metrics.h"

using namespace egret::proxy;
namespace admin = egret::admin;
using egret::told_of;

namespace {

struct Proxy {
  Proxy() {
    auto options = egret::base::Options::load(
        option_table(), std::nullopt,
        std::vector<std::string>{"workers=2", "backends=shm:/a name=one,rdma+tcp:[::1]:2 name=two", "failover=gutter",
                                 "gutter=shm:/spare name=spare"});
    REQUIRE(options.is_ok());
    source.config.set(resolve_config(options.value()).value());
    source.clock = &clock;
    source.membership.set(egret::pool::Membership(
        egret::pool::PlacementRule::kKetama,
        egret::discovery::learn_members(source.config.get()->directory, std::chrono::milliseconds(1)).members, 2, {},
        gutter_of(*source.config.get())));
    const auto membership = source.membership.get();
    for (size_t worker = 0; worker < 2; ++worker) {
      source.workers.push_back(std::make_unique<WorkerStats>());
      for (const auto& member : membership->members()) sessions[worker].push_back(member.stats->sessions[worker]);
    }
  }
  egret::base::ManualClock clock;
  std::vector<std::shared_ptr<egret::rpc::SessionCounters>> sessions[2];  // by worker and backend
  ProxyState source;
};

// Series to values, without comments.
std::map<std::string, std::string> series_of(const std::string& text) {
  std::map<std::string, std::string> series;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const size_t space = line.rfind(' ');
    CHECK_FALSE(series.contains(line.substr(0, space)));
    series[line.substr(0, space)] = line.substr(space + 1);
  }
  return series;
}

}  // namespace

TEST_CASE("every row of the table is on the page once there are a session and a source, and nothing else is") {
  Proxy proxy;
  proxy.sessions[0][0]->lane(0);
  proxy.source.sources.set({{"dns+rdma:pool.example:11311", 1, "", std::chrono::system_clock::now()}});
  std::set<std::string> rows;
  for (const admin::MetricRow& row : metric_table()) {
    CAPTURE(row.name);
    CHECK(rows.insert(row.name).second);
    CHECK(row.help.ends_with('.'));
    CHECK((row.type == admin::MetricType::kCounter) == row.name.ends_with("_total"));
  }
  CHECK(told_of(metrics_text(proxy.source)) == rows);
}

TEST_CASE("figures are those of all workers, by backend and lane") {
  Proxy proxy;
  for (int worker = 0; worker < 2; ++worker) {
    proxy.source.workers[worker]->curr_connections.add(3);
    proxy.source.workers[worker]->requests.get_hits.add(5);
    proxy.source.workers[worker]->requests.count[static_cast<size_t>(RequestKind::kSet)].add(7);
    proxy.source.workers[worker]->requests.duration.record(1'000'000);
  }
  proxy.sessions[0][0]->is_open.set(1);
  proxy.sessions[1][0]->is_open.set(1);
  proxy.sessions[0][1]->is_open.set(1);
  proxy.sessions[0][0]->transport.set(1);
  proxy.sessions[1][0]->transport.set(1);
  proxy.sessions[0][1]->transport.set(3);
  proxy.sessions[0][1]->fell_back.add(1);
  proxy.sessions[1][1]->fell_back.add(2);
  proxy.sessions[1][1]->returned.add(2);
  proxy.sessions[0][1]->lane(1).fetches.add(11);
  proxy.sessions[1][1]->lane(1).fetches.add(13);
  proxy.sessions[1][1]->duration.record(2'000);
  const auto series = series_of(metrics_text(proxy.source));
  CHECK(series.at("egret_proxy_connections") == "6");
  CHECK(series.at("egret_proxy_get_hits_total") == "10");
  CHECK(series.at("egret_proxy_requests_total{command=\"set\"}") == "14");
  CHECK(series.at("egret_proxy_request_seconds_count") == "2");
  CHECK(series.at("egret_proxy_request_seconds_sum") == "0.002");
  CHECK(series.at("egret_proxy_backend_up{backend=\"one\"}") == "1");
  CHECK(series.at("egret_proxy_backend_up{backend=\"two\"}") == "0");  // one worker has none
  CHECK(series.at("egret_proxy_backend_sessions{backend=\"two\"}") == "1");
  CHECK(series.at("egret_proxy_backend_info{backend=\"one\",transport=\"shm\",address=\"shm:/a\"}") == "1");
  CHECK(series.at("egret_proxy_backend_info{backend=\"two\",transport=\"rdma+tcp\",address=\"rdma+tcp:[::1]:2\"}") ==
        "1");
  CHECK(series.at("egret_proxy_backend_transport_sessions{backend=\"one\",transport=\"shm\"}") == "2");
  CHECK(series.at("egret_proxy_backend_transport_sessions{backend=\"two\",transport=\"rdma\"}") == "0");
  CHECK(series.at("egret_proxy_backend_transport_sessions{backend=\"two\",transport=\"tcp\"}") == "1");
  CHECK(series.at("egret_proxy_backend_fallbacks_total{backend=\"two\"}") == "3");
  CHECK(series.at("egret_proxy_backend_returns_total{backend=\"two\"}") == "2");
  CHECK(series.at("egret_proxy_lane_fetches_total{backend=\"two\",lane=\"1\"}") == "24");
  CHECK(series.at("egret_proxy_rpc_seconds_count{backend=\"two\"}") == "1");
  CHECK(series.at("egret_proxy_rpc_seconds_count{backend=\"one\"}") == "0");
}

TEST_CASE("no counter goes down at a reset of the statistics") {
  Proxy proxy;
  proxy.source.workers[0]->total_connections.add(4);
  proxy.source.workers[0]->bytes_read.add(100);
  proxy.source.accepts.rejected_connections.add(2);
  proxy.sessions[0][0]->lane(0).messages.add(9);
  proxy.sessions[0][0]->deliveries.add(8);
  const auto before = series_of(metrics_text(proxy.source));
  reset_stats(proxy.source);
  const auto after = series_of(metrics_text(proxy.source));
  for (const auto& figure : before) {
    CAPTURE(figure.first);
    if (figure.first.starts_with("egret_")) CHECK(after.at(figure.first) == figure.second);
  }
}
