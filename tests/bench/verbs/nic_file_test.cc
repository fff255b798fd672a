// The description of a card from measured rates.
#include "bench_verbs/report/nic_file.h"

#include <cstdlib>
#include <utility>

#include <doctest/doctest.h>
#include <unistd.h>

using namespace egret::bench_verbs;

namespace {

Figures at(double millions) {
  Figures figures;
  figures.ops = 1;
  figures.ops_per_s = millions * 1e6;
  return figures;
}

BySize sized(uint32_t size, double read, double write, double out) {
  BySize by_size{.size = size, .of = {}};
  by_size.of[0].pipelined = at(read);
  by_size.of[1].pipelined = at(write);
  by_size.of[2].pipelined = at(out);
  return by_size;
}

Results measured() {
  Results results;
  results.hosts = {"mlx5_0 port 1"};
  results.by_size = {sized(32, 80, 120, 60), sized(4096, 3, 3, 3)};
  results.fetch_latency.p50_us = 2.5;
  ByThreads four{.threads = 4, .of = {}, .by_clients = {}};
  four.of[2].pipelined = at(60);
  results.by_threads = {four};
  AtomicsByThreads atomics{.threads = 4, .one_by_one = {}, .pipelined = {}};
  atomics.pipelined[0].inbound = at(2.5);
  results.further.atomics = {atomics};
  for (const auto& [pairs, read] : {std::pair{32u, 80.0}, {512u, 40.0}, {4096u, 20.0}}) {
    ByPairs by_pairs{.pairs = pairs, .of = {}};
    by_pairs.of[0].inbound = at(read);
    results.further.sweep.push_back(by_pairs);
  }
  return results;
}

}  // namespace

TEST_CASE(
    "rates go into the description by size, by threads and by verb, and the round trip; the link is the most that came "
    "through") {
  const auto nic = nic_of(measured());
  CHECK(nic.read_in.microseconds(32) == doctest::Approx(1 / 80.0));
  CHECK(nic.write_in.microseconds(4096) == doctest::Approx(1 / 3.0));
  CHECK(nic.write_out.microseconds(4) == doctest::Approx(1 / 60.0));
  CHECK(nic.atomic == doctest::Approx(2.5));
  CHECK(nic.round_trip_us == 2.5);
  CHECK(nic.link_gbps == doctest::Approx(3e6 * 4096 * 8 / 1e9));
  CHECK(nic.source.find("mlx5_0") != std::string::npos);
}

TEST_CASE("the cache of queue pairs ends where READs begin to slow down") {
  const auto nic = nic_of(measured());
  CHECK(nic.pairs_cached == 32);
  CHECK(nic.pair_hit_ns == doctest::Approx(12.5));
  CHECK(nic.pair_miss_ns == doctest::Approx((12.5 / (1 - 32.0 / 512) + 37.5 / (1 - 32.0 / 4096)) / 2));
}

TEST_CASE("what was not measured is unknown, and an emulated device says what its rates are worth") {
  Results nothing;
  nothing.emulated = true;
  const auto nic = nic_of(nothing);
  CHECK_FALSE(nic.read_in.is_known());
  CHECK(nic.receive == 0);
  CHECK(nic.pairs_cached == 0);
  CHECK(nic.source.find("emulated") != std::string::npos);
}

TEST_CASE("a file is written whole, and is read as what it was; where none can be, that is said") {
  const std::string path = std::string(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") +
                           "/egret-nic-file-test-" + std::to_string(getpid()) + ".json";
  REQUIRE(write_nic_file(path, measured()).is_ok());
  auto read = egret::bench_nic::read_nic(path);
  REQUIRE(read.is_ok());
  CHECK(egret::bench_nic::to_json(read.value()) == egret::bench_nic::to_json(nic_of(measured())));
  unlink(path.c_str());
  CHECK_FALSE(write_nic_file("/nowhere/at/all.json", measured()).is_ok());
}
