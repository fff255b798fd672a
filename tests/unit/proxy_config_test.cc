// What the proxy's options amount to, and what is refused where the table cannot.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "proxy/config.h"

using namespace egret::proxy;
using egret::base::Options;

namespace {

egret::base::Expected<Config> resolved(const std::vector<std::string>& settings) {
  auto options = Options::load(option_table(), std::nullopt, settings);
  REQUIRE_MESSAGE(options.is_ok(), options.status().message());
  return resolve_config(options.value());
}

Config config_of(const std::vector<std::string>& settings) {
  auto config = resolved(settings);
  REQUIRE_MESSAGE(config.is_ok(), config.status().message());
  return config.value();
}

std::string error_of(const std::string& setting) {
  auto config = resolved({setting});
  return config ? "" : config.message();
}

}  // namespace

TEST_CASE("the defaults are memcached's address and the backend of this host") {
  const Config config = config_of({});
  REQUIRE(config.listen.size() == 1);
  CHECK_FALSE(config.listen[0].is_unix);
  CHECK(config.listen[0].host == "127.0.0.1");
  CHECK(config.listen[0].port == 11211);
  CHECK(config.backends == std::vector<std::string>{"shm:/run/egret/backend.sock"});
  CHECK(config.workers >= 1);
  CHECK(config.workers <= 4);
  CHECK(config.session.spin_ns > 0);
  CHECK(config.session.op_timeout_ns == 2'000'000'000);
}

TEST_CASE("addresses of every form") {
  const Config config = config_of({"listen=tcp:0.0.0.0:1,tcp:[::1]:65535,tcp:localhost:0,unix:/run/a b"});
  REQUIRE(config.listen.size() == 4);
  CHECK(config.listen[0].host == "0.0.0.0");
  CHECK(config.listen[0].port == 1);
  CHECK(config.listen[1].host == "::1");
  CHECK(config.listen[1].port == 65535);
  CHECK(config.listen[2].host == "localhost");
  CHECK(config.listen[2].port == 0);
  CHECK(config.listen[3].is_unix);
  CHECK(config.listen[3].host == "/run/a b");
}

TEST_CASE("what is no address is refused, with what one looks like") {
  for (const char* bad : {"127.0.0.1:11211", "tcp:", "tcp:11211", "tcp::11211", "tcp:host", "tcp:host:", "tcp:host:x",
                          "tcp:host:65536", "tcp:host:-1", "tcp:host:1x", "tcp:host: 1", "unix:", "udp:host:1"}) {
    CAPTURE(bad);
    CHECK(error_of("listen=" + std::string(bad)).find("listen: expected tcp:HOST:PORT or unix:PATH, got \"") !=
          std::string::npos);
  }
  CHECK(error_of("backends=tcp:host:1").find("backends: ") != std::string::npos);
  CHECK(error_of("unix_mode=0789").find("unix_mode: expected an octal mode") != std::string::npos);
  CHECK(error_of("unix_mode=0777") == "");
}

TEST_CASE("what the sessions need is handed on") {
  const Config config = config_of(
      {"window=16", "op_timeout=5s", "reconnect_max=3s", "spin=7us", "max_refetches=9", "workers=3", "pin=on"});
  CHECK(config.session.window == 16);
  CHECK(config.session.op_timeout_ns == 5'000'000'000);
  CHECK(config.session.backoff_max_ns == 3'000'000'000);
  CHECK(config.session.spin_ns == 7'000);
  CHECK(config.session.fetch.max_refetches == 9);
  CHECK(config.workers == 3);
  CHECK(config.pin);
}
