// What egret-top shows, without a terminal: figures as text, lines of a width, what keys change; and its JSON.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "top/daemon.h"
#include "top/fetch.h"
#include "top/json.h"
#include "top/screen.h"
#include "top/text.h"

namespace {

using namespace egret::top;

const std::string kHead = "egret_proxy_build_info{version=\"1.2\"} 1\nprocess_start_time_seconds 50\n";

std::string backends(int count, int ops) {
  std::string text;
  for (int backend = 0; backend < count; ++backend) {
    const std::string label = "{backend=\"cache-" + std::to_string(backend) + "\"";
    text += "egret_proxy_backend_up" + label + "} " + (backend == 1 ? "0" : "1") + "\n";
    text += "egret_proxy_backend_sessions" + label + "} " + (backend == 1 ? "0" : "4") + "\n";
    text += "egret_proxy_lane_ops_total" + label + ",lane=\"0\"} " + std::to_string(ops * (backend + 1)) + "\n";
  }
  return text;
}

std::vector<std::string> picture(const Daemon& daemon, const Choices& choices = {}, size_t width = 200) {
  const Daemon* daemons[] = {&daemon};
  std::vector<std::string> lines;
  for (const Line& line : body_lines(
           daemons, {.now_s = 110, .unix_time_s = 3675, .clock = "12:00:00", .interval = "1s"}, choices, width)) {
    CHECK(width_of(line) <= width);
    lines.push_back(text_of(line));
  }
  return lines;
}

// The first word of each line that begins with `prefix`.
std::vector<std::string> order_of(const std::vector<std::string>& lines, const std::string& prefix) {
  std::vector<std::string> found;
  for (const std::string& line : lines) {
    if (line.starts_with("  " + prefix)) found.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return found;
}

bool any_has(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

Daemon busy(int count) {
  Daemon daemon("10.0.0.2:11280");
  daemon.take(kHead + backends(count, 0), 100);
  daemon.take(kHead + backends(count, 1000), 101);
  return daemon;
}

}  // namespace

TEST_CASE("figures have three digits and a unit") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(0.0001) == "<0.001");
  CHECK(count_text(0.25) == "0.25");
  CHECK(count_text(9.999) == "10");
  CHECK(count_text(999.9) == "1k");
  CHECK(count_text(812'345) == "812k");
  CHECK(count_text(1.5e18) == "1.5E");
  CHECK(count_text(1e300) == "1.0e+282E");
  CHECK(bytes_text(1u << 30) == "1G");
  CHECK(bytes_text(1023) == "1023");
  CHECK(whole_text(1'234'567) == "1,234,567");
  CHECK(whole_text(999) == "999");
  CHECK(share_text(1) == "100%");
  CHECK(share_text(0.99999) == ">99.9%");
  CHECK(share_text(0.00001) == "<0.1%");
  CHECK(share_text(0) == "0%");
  CHECK(seconds_text(0.00099999) == "1ms");
  CHECK(seconds_text(0.000123) == "123us");
  CHECK(age_text(0) == "0s");
  CHECK(age_text(3725) == "1h 2min");
  CHECK(age_text(-5) == "0s");
}

TEST_CASE("a daemon that is up is shown with its backends") {
  const auto lines = picture(busy(3));
  CHECK(any_has(lines, "egret-proxy 10.0.0.2:11280  up 1h, version 1.2"));
  CHECK(any_has(lines, "hit ratio -"));  // no gets: not 0%
  CHECK(order_of(lines, "cache") == std::vector<std::string>{"cache-0", "cache-1", "cache-2"});
  CHECK(any_has(lines, "DOWN"));
}

TEST_CASE("a backend that the proxy has ejected says so, whatever sessions there are") {
  Daemon daemon("10.0.0.2:11280");
  daemon.take(kHead + backends(3, 0) + "egret_proxy_backend_ejected{backend=\"cache-2\"} 1\n", 100);
  const auto lines = picture(daemon);
  CHECK(any_has(lines, "EJECTED"));
  CHECK(any_has(lines, "DOWN"));
}

TEST_CASE("a backend whose keys the gutter takes says so") {
  Daemon daemon("10.0.0.2:11280");
  daemon.take(kHead + backends(3, 0) +
                  "egret_proxy_backend_ejected{backend=\"cache-2\"} 1\n"
                  "egret_proxy_backend_standing_in{backend=\"cache-2\"} 1\n",
              100);
  const auto lines = picture(daemon);
  CHECK(any_has(lines, "GUTTER"));
  CHECK_FALSE(any_has(lines, "EJECTED"));
}

TEST_CASE("a backend that is held back says so") {
  Daemon daemon("10.0.0.2:11280");
  daemon.take(kHead + backends(3, 0) + "egret_proxy_backend_held_back{backend=\"cache-2\"} 1\n", 100);
  CHECK(any_has(picture(daemon), "HELD BACK"));
}

TEST_CASE("what a backend's sessions go by is shown") {
  Daemon daemon("10.0.0.2:11280");
  daemon.take(kHead + backends(3, 0) +
                  "egret_proxy_backend_transport_sessions{backend=\"cache-0\",transport=\"shm\"} 4\n"
                  "egret_proxy_backend_transport_sessions{backend=\"cache-2\",transport=\"rdma\"} 1\n"
                  "egret_proxy_backend_transport_sessions{backend=\"cache-2\",transport=\"tcp\"} 3\n",
              100);
  const auto lines = picture(daemon);
  CHECK(any_has(lines, " BY "));
  CHECK(any_has(lines, " shm "));
  CHECK(any_has(lines, " rdma+tcp "));
}

TEST_CASE("a daemon that is down is shown with the reason and since when, and without figures") {
  Daemon daemon = busy(3);
  daemon.miss("Couldn't connect to server", 105);
  const auto lines = picture(daemon);
  CHECK(lines == std::vector<std::string>{"", "10.0.0.2:11280  DOWN for 9s: Couldn't connect to server"});
  CHECK(plain_line(daemon, {.clock = "12:00:00"}) == "12:00:00 10.0.0.2:11280 DOWN Couldn't connect to server");
}

TEST_CASE("keys choose the column that tables are sorted by, and the direction") {
  const Daemon daemon = busy(12);
  Choices choices;
  for (int column = 0; column < 3; ++column) press(Key::kRight, choices, 0, 0);  // state, sessions, ops
  press(Key::kReverse, choices, 0, 0);
  auto lines = picture(daemon, choices);
  CHECK(any_has(lines, "OPS/S-"));
  CHECK(order_of(lines, "cache").front() == "cache-11");
  press(Key::kReverse, choices, 0, 0);
  CHECK(order_of(picture(daemon, choices), "cache").front() == "cache-0");
  for (int column = 0; column < 100; ++column) press(Key::kRight, choices, 0, 0);
  CHECK(order_of(picture(daemon, choices), "cache").size() == 12);
  for (int column = 0; column < 100; ++column) press(Key::kLeft, choices, 0, 0);
  CHECK(choices.sort_column == 0);
}

TEST_CASE("keys show lanes and help, pause, and end") {
  Choices choices;
  press(Key::kLanes, choices, 0, 0);
  CHECK(any_has(picture(busy(2), choices), "cache-0 0"));
  press(Key::kHelp, choices, 0, 0);
  CHECK(any_has(picture(busy(2), choices), "refetch/msg: looks at a response that came too early"));
  press(Key::kHelp, choices, 0, 0);
  CHECK_FALSE(choices.quits);
  press(Key::kPause, choices, 0, 0);
  CHECK(text_of(head_line({.clock = "12:00:00", .interval = "1s"}, choices, 80)).find("PAUSED") != std::string::npos);
  press(Key::kQuit, choices, 0, 0);
  CHECK(choices.quits);
  Choices reading{.shows_help = true};
  press(Key::kQuit, reading, 0, 0);
  CHECK(reading.quits);  // as the help page says
}

TEST_CASE("scrolling ends where the body does, also when it becomes shorter") {
  Choices choices;
  for (int page = 0; page < 9; ++page) press(Key::kPageDown, choices, 50, 20);
  CHECK(choices.scroll == 30);
  press(Key::kOther, choices, 25, 20);
  CHECK(choices.scroll == 5);
  for (int page = 0; page < 9; ++page) press(Key::kPageUp, choices, 25, 20);
  CHECK(choices.scroll == 0);
}

TEST_CASE("no width is too small") {
  for (const size_t width : {0u, 1u, 10u, 79u}) {
    picture(busy(3), {}, width);
    CHECK(width_of(head_line({.clock = "12:00:00", .interval = "1s"}, {}, width)) <= width);
  }
}

TEST_CASE("what a daemon calls itself and its backends can do nothing to the terminal") {
  Daemon daemon("here");
  daemon.take(
      "egret_proxy_build_info{version=\"\x1b[31m\\n\"} 1\negret_proxy_backend_up{backend=\"\x1b]0;x\x07\x9b\"} 1\n",
      100);
  for (const std::string& line : picture(daemon)) {
    for (const char c : line) CHECK((c >= ' ' && c <= '~'));
  }
}

TEST_CASE("JSON has every figure, null for what is not known, on one line") {
  const Daemon up = busy(1);
  Daemon down("there");
  down.miss("refused", 100);
  const Daemon* daemons[] = {&up, &down};
  const std::string text = to_json(daemons, 5.0625);
  CHECK(text.find('\n') == std::string::npos);
  const auto json = nlohmann::json::parse(text);
  CHECK(json["time"] == 5.063);
  const auto& proxy = json["daemons"][0];
  CHECK(proxy["address"] == "10.0.0.2:11280");
  CHECK(proxy["up"] == true);
  CHECK(proxy["kind"] == "proxy");
  CHECK(proxy["hit_ratio"].is_null());
  for (const FigureRow& row : table_of(Kind::kProxy)) CHECK(proxy.contains(std::string(row.name)));
  CHECK(proxy["backends"][0]["ops"] == 1000);
  CHECK(json["daemons"][1] == nlohmann::json({{"address", "there"}, {"up", false}, {"error", "refused"}}));
}

TEST_CASE("JSON is ASCII and read back as it was, whatever a daemon calls itself") {
  Daemon daemon("a\"\\\n\x01\x7f\xc3\xa9\xc2\x9b");
  daemon.miss("\xff\xed\xa0\x80", 100);  // no UTF-8
  const Daemon* daemons[] = {&daemon};
  const std::string text = to_json(daemons, 5);
  for (const char c : text) CHECK((c >= ' ' && c <= '~'));
  const auto json = nlohmann::json::parse(text)["daemons"][0];
  CHECK(json["address"] == "a\"\\\n\x01\x7f\xc3\xa9\xc2\x9b");
  CHECK(json["error"].get<std::string>().starts_with("\xef\xbf\xbd"));
}

TEST_CASE("an address is HOST:PORT, a URL or a Unix socket") {
  CHECK(parse_target("127.0.0.1:11280").value().url == "http://127.0.0.1:11280/metrics");
  CHECK(parse_target("[::1]:11280").value().url == "http://[::1]:11280/metrics");
  CHECK(parse_target("http://host:1").value().url == "http://host:1/metrics");
  CHECK(parse_target("http://host:1/").value().url == "http://host:1/metrics");
  CHECK(parse_target("https://host/egret/metrics").value().url == "https://host/egret/metrics");
  CHECK(parse_target("unix:/run/a b").value().unix_path == "/run/a b");
  for (const char* wrong : {"", "host", "host:", ":1", "host:0", "host:65536", "host:x", "ftp://host:1", "http://",
                            "http:///x", "unix:", "a b:1", "u@h:1", "file:///etc/passwd:1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_target(wrong).is_ok());
  }
}
