// What egret-top makes of two looks at a daemon: rates, quotients and quantiles, or nothing where nothing is known.
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "top/daemon.h"
#include "top/figures.h"
#include "top/step.h"

namespace {

using namespace egret::top;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::string kProxy = "egret_proxy_build_info{version=\"1.2\"} 1\nprocess_start_time_seconds 50\n";
const std::string kBackend = "egret_backend_build_info{version=\"1.2\"} 1\nprocess_start_time_seconds 50\n";

// A daemon that was looked at twice, two seconds apart.
Daemon looked_at(const std::string& first, const std::string& second) {
  Daemon daemon("here");
  daemon.take(first, 100);
  daemon.take(second, 102);
  return daemon;
}

std::optional<double> number(const Figures& figures, std::string_view name) {
  const auto value = figure(table_of(figures.kind), figures.values, name);
  return value ? std::optional(value->number) : std::nullopt;
}

std::optional<double> part_number(const Figures& figures, size_t part, std::string_view name) {
  const auto value = figure(part_table_of(figures.kind), figures.parts.at(part).values, name);
  return value ? std::optional(value->number) : std::nullopt;
}

std::string requests(int gets) {
  return "egret_proxy_requests_total{command=\"get\"} " + std::to_string(gets) +
         "\negret_proxy_requests_total{command=\"set\"} 7\n";
}

}  // namespace

TEST_CASE("rates are growth by the second, and are not known before the second look") {
  Daemon daemon("here");
  daemon.take(kProxy + requests(10), 100);
  REQUIRE(daemon.is_up());
  CHECK(daemon.figures().kind == Kind::kProxy);
  CHECK(daemon.figures().version == "1.2");
  CHECK_FALSE(number(daemon.figures(), "requests"));
  daemon.take(kProxy + requests(30), 102);
  CHECK(number(daemon.figures(), "requests") == 10);
  CHECK(number(daemon.figures(), "set") == 0);
  CHECK_FALSE(number(daemon.figures(), "touch"));  // no such series: not known, which is not zero
}

TEST_CASE("a daemon started anew has no rates, whether its start time tells or a counter that went back") {
  const std::string later = "egret_proxy_build_info 1\nprocess_start_time_seconds 60\n";
  for (const auto& [first, second] : {std::pair(kProxy + requests(5), later + requests(500)),
                                      std::pair(kProxy + requests(500), kProxy + requests(5))}) {
    const Daemon daemon = looked_at(first, second);
    CHECK(daemon.figures().has_restarted);
    CHECK(daemon.restarted_s() == 102);
    CHECK_FALSE(number(daemon.figures(), "requests"));
  }
  CHECK_FALSE(looked_at(kProxy + requests(5), kProxy + requests(5)).restarted_s());
}

TEST_CASE("a daemon without an answer has no figures, and no rate over its silence") {
  Daemon daemon = looked_at(kProxy + requests(5), kProxy + requests(9));
  daemon.miss("refused", 103);
  CHECK_FALSE(daemon.is_up());
  CHECK(daemon.why_down() == "refused");
  CHECK(daemon.down_since_s() == 102);
  daemon.take(kProxy + requests(100), 110);
  CHECK(daemon.is_up());
  CHECK_FALSE(number(daemon.figures(), "requests"));
  CHECK_FALSE(daemon.restarted_s());
  daemon.miss("refused", 111);
  daemon.take("egret_proxy_build_info 1\nprocess_start_time_seconds 111\n", 112);
  CHECK(daemon.restarted_s() == 112);
}

TEST_CASE("a late answer hides the old figures, and still counts as the next look when it comes") {
  Daemon daemon = looked_at(kProxy + requests(5), kProxy + requests(9));
  daemon.note_late();
  CHECK_FALSE(daemon.is_up());
  daemon.take(kProxy + requests(29), 104);
  CHECK(number(daemon.figures(), "requests") == 10);
}

TEST_CASE("who answers without Egret's metrics is no daemon of Egret's") {
  for (const char* text : {"", "<!doctype html><p>hello</p>", "go_goroutines 7\nprocess_start_time_seconds 5\n"}) {
    Daemon daemon("here");
    daemon.take(text, 100);
    CHECK_FALSE(daemon.is_up());
    CHECK(daemon.why_down() == "answers, but not as Egret does");
  }
}

TEST_CASE("a series that was not there before counts for nothing yet") {
  const auto lane = [](const char* backend, int ops) {
    return "egret_proxy_lane_ops_total{backend=\"" + std::string(backend) + "\",lane=\"0\"} " + std::to_string(ops) +
           "\n";
  };
  const Daemon daemon = looked_at(kProxy + lane("a", 10), kProxy + lane("a", 12) + lane("b", 1'000'000));
  CHECK(number(daemon.figures(), "ops") == 1);
  REQUIRE(daemon.figures().parts.size() == 2);
  CHECK(part_number(daemon.figures(), 0, "ops") == 1);
  CHECK_FALSE(part_number(daemon.figures(), 1, "ops"));
}

TEST_CASE("a quotient of nothing is not known; zero of something is zero") {
  const auto gets = [](int hits, int misses) {
    return kProxy + "egret_proxy_get_hits_total " + std::to_string(hits) + "\negret_proxy_get_misses_total " +
           std::to_string(misses) + "\n";
  };
  CHECK_FALSE(number(looked_at(gets(5, 5), gets(5, 5)).figures(), "hit_ratio"));
  CHECK(number(looked_at(gets(5, 5), gets(5, 9)).figures(), "hit_ratio") == 0);
  CHECK(number(looked_at(gets(5, 5), gets(8, 6)).figures(), "hit_ratio") == 0.75);
}

TEST_CASE("a hit ratio since the start is known as long as there ever was a get") {
  const auto gets = [](int hits, int misses) {
    return kProxy + "egret_proxy_get_hits_total " + std::to_string(hits) + "\negret_proxy_get_misses_total " +
           std::to_string(misses) + "\n";
  };
  CHECK(number(looked_at(gets(9, 3), gets(9, 3)).figures(), "hit_ratio_since_start") == 0.75);
  CHECK(number(looked_at(gets(5, 5), gets(8, 8)).figures(), "hit_ratio_since_start") == 0.5);
  CHECK_FALSE(number(looked_at(gets(0, 0), gets(0, 0)).figures(), "hit_ratio_since_start"));
}

TEST_CASE("a backend's figures are sums over its partitions, and each partition's own") {
  const auto text = [](int n) {
    std::string all = kBackend;
    for (int partition = 0; partition < 12; ++partition) {
      const std::string label = "{partition=\"" + std::to_string(partition) + "\"} ";
      all += "egret_backend_ops_total" + label + std::to_string(n * (partition + 1)) +
             "\negret_backend_messages_total" + label + std::to_string(n) + "\negret_backend_bytes" + label + "100\n";
    }
    return all;
  };
  const Daemon daemon = looked_at(text(0), text(20));
  const Figures& figures = daemon.figures();
  CHECK(figures.kind == Kind::kBackend);
  CHECK(number(figures, "ops") == 780);
  CHECK(number(figures, "bytes") == 1200);
  CHECK(number(figures, "ops_per_message") == 6.5);
  REQUIRE(figures.parts.size() == 12);
  CHECK(figures.parts[11].name == "11");
  CHECK(part_number(figures, 11, "ops_per_message") == 12);
}

TEST_CASE("figures of lanes are by backend and lane, those of a backend are over all its lanes") {
  std::string text = kProxy;
  for (const char* backend : {"cache-10", "cache-2"}) {
    for (int lane = 0; lane < 3; ++lane) {
      const std::string labels = "{backend=\"" + std::string(backend) + "\",lane=\"" + std::to_string(lane) + "\"} ";
      text += "egret_proxy_lane_replies_mode" + labels + (lane == 1 ? "1\n" : "0\n");
      text += "egret_proxy_lane_fetch_size_bytes" + labels + std::to_string(256 * (lane + 1)) + "\n";
    }
  }
  Daemon daemon("here");
  daemon.take(text, 100);
  const Figures& figures = daemon.figures();
  REQUIRE(figures.parts.size() == 2);
  CHECK(figures.parts[0].name == "cache-2");
  CHECK(part_number(figures, 0, "lanes") == 3);
  CHECK(part_number(figures, 0, "reply_lanes") == 1);
  CHECK(part_number(figures, 0, "fetch_size") == 768);
  REQUIRE(figures.lanes.size() == 6);
  CHECK(figures.lanes[4].name == "cache-10");
  CHECK(figures.lanes[4].lane == "1");
}

TEST_CASE("quantiles lie within their bucket, and beyond the last bound where they do") {
  const std::vector<Bucket> buckets = {{0.001, 50}, {0.002, 100}, {kInfinity, 100}};
  CHECK(quantile(0.5, buckets)->seconds == doctest::Approx(0.001));
  CHECK(quantile(0.75, buckets)->seconds == doctest::Approx(0.0015));
  const auto beyond = quantile(0.99, {{1, 1}, {kInfinity, 100}});
  CHECK(beyond->beyond);
  CHECK(beyond->seconds == 1);
  CHECK_FALSE(quantile(0.5, {}));
  CHECK_FALSE(quantile(0.5, {{1, 0}, {kInfinity, 0}}));
}

TEST_CASE("latency is that of the interval, not of the whole life") {
  const auto text = [](int fast, int slow) {
    const std::string bucket = "egret_proxy_request_seconds_bucket{le=";
    return kProxy + bucket + "\"0.001\"} " + std::to_string(fast) + "\n" + bucket + "\"1\"} " +
           std::to_string(fast + slow) + "\n" + bucket + "\"+Inf\"} " + std::to_string(fast + slow) + "\n" + bucket +
           "\"rubbish\"} 5\n";
  };
  const auto p50 = number(looked_at(text(1'000'000, 0), text(1'000'000, 100)).figures(), "p50");
  REQUIRE(p50);
  CHECK(*p50 > 0.4);
  CHECK(*p50 < 0.6);
}
