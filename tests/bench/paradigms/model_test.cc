// The model of rates: terms from counted verbs, and cards from files.
#include <bit>
#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "bench_paradigms/model/predict.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)
using egret::bench_nic::known_nics;
using egret::bench_nic::RateCurve;
using egret::bench_nic::read_nic;

namespace {

void add(VerbCounts& counts, PairType type, Verb verb, uint32_t bytes, uint64_t count) {
  counts.posted[static_cast<size_t>(type)][static_cast<size_t>(verb)] += count;
  SizeClass& of_size =
      counts.by_size[static_cast<size_t>(type)][static_cast<size_t>(verb)][static_cast<size_t>(std::bit_width(bytes))];
  of_size.count += count;
  of_size.bytes += count * bytes;
  counts.doorbells += count;
}

Nic nic_named(const std::string& name) {
  auto nic = read_nic(name);
  REQUIRE(nic.is_ok());
  return nic.value();
}

std::string file_with(const std::string& text) {
  static int number = 0;
  std::string path = std::string(std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp") +
                     "/egret-model-test-" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".json";
  std::ofstream(path) << text;
  return path;
}

}  // namespace

TEST_CASE("a rate between two sizes is that of the time between theirs; beyond the last it falls on") {
  const RateCurve curve{{{16, 2}, {1016, 1}}};
  CHECK(curve.microseconds(8) == doctest::Approx(.5));
  CHECK(curve.microseconds(516) == doctest::Approx(.75));
  CHECK(curve.microseconds(2016) == doctest::Approx(1.5));
}

TEST_CASE("in-bound and out-bound verbs have pools of their own, and the tightest is named") {
  Counted counted;
  counted.ops = 1000;
  counted.server_cores = 4;
  add(counted.clients, PairType::kRc, Verb::kWrite, 20, 1000);
  add(counted.clients, PairType::kRc, Verb::kRead, 36, 1000);
  const Prediction fetched = predict(nic_named("cx3-40"), counted);
  CHECK(fetched.terms.front().what == "the server's card, in-bound verbs");
  CHECK(fetched.rate == doctest::Approx(1 / (1 / 11.26 + 1 / 11.3)));

  add(counted.servers, PairType::kRc, Verb::kWrite, 36, 1000);
  const Prediction replied = predict(nic_named("cx3-40"), counted);
  CHECK(replied.terms.front().what == "the server's card, out-bound verbs");
  CHECK(replied.rate == doctest::Approx(2.11));
}

TEST_CASE("a link, PCIe, processors, contended words and round trips limit where they are known") {
  Counted counted;
  counted.ops = 100;
  add(counted.clients, PairType::kRc, Verb::kRead, 8192, 100);
  CHECK(predict(nic_named("cx6"), counted).terms.front().what == "the link");
  counted.server_cores = 2;
  counted.server_ns = 4000;
  CHECK(predict(nic_named("cx6"), counted).rate == doctest::Approx(.5));
  counted.server_ns = 0;
  add(counted.clients, PairType::kRc, Verb::kRead, 8192, 100);  // two, one after the other
  counted.under_way = 1;
  Nic far = nic_named("cx6");
  far.round_trip_us = 5;
  CHECK(predict(far, counted).rate == doctest::Approx(.1));
  CHECK(predict(far, counted).terms.front().what == "ops under way");

  Counted atomics;
  atomics.ops = 100;
  atomics.clients.atomic_places[0] = 1;
  add(atomics.clients, PairType::kRc, Verb::kFetchAdd, 8, 100);
  const Prediction contended = predict(nic_named("cib"), atomics);
  CHECK(contended.terms.front().what == "atomics on the same words");
  CHECK(contended.rate == doctest::Approx(2.24));
}

TEST_CASE("few clients' hosts limit, too: their cards post what the server's serves") {
  Counted counted;
  counted.ops = 1000;
  counted.client_hosts = 1;
  counted.client_threads = 4;
  add(counted.clients, PairType::kRc, Verb::kWrite, 20, 1000);
  add(counted.clients, PairType::kRc, Verb::kRead, 36, 1000);
  const Prediction alone = predict(nic_named("cx3-40"), counted);
  CHECK(alone.terms.front().what == "the clients' cards, out-bound verbs");
  CHECK(alone.rate == doctest::Approx(2.11 / 2));
  counted.client_hosts = 7;
  CHECK(predict(nic_named("cx3-40"), counted).terms.front().what == "the server's card, in-bound verbs");
}

TEST_CASE("a verb whose rate is not known for a card is named, and the rest is no expectation") {
  Counted counted;
  counted.ops = 1000;
  add(counted.clients, PairType::kUc, Verb::kWrite, 20, 1000);
  add(counted.servers, PairType::kUd, Verb::kSend, 36, 1000);
  CHECK(predict(nic_named("cx3-56"), counted).is_known());
  const Prediction unknown = predict(nic_named("cx3-40"), counted);
  CHECK_FALSE(unknown.is_known());
  CHECK(unknown.unknown == std::vector<std::string>{"out-bound SEND"});
  CHECK(predict(nic_named("cx2"), counted).unknown == std::vector<std::string>{"in-bound WRITE"});
}

TEST_CASE(
    "work requests of a batch are fetched by the card, others written by processors; without payload they are short") {
  const auto with_sends = [](uint32_t bytes, uint64_t doorbells) {
    Counted counted;
    counted.ops = 1000;
    add(counted.clients, PairType::kUc, Verb::kWrite, 20, 1000);
    add(counted.servers, PairType::kUd, Verb::kSend, bytes, 1000);
    counted.servers.inlined = bytes > 0 ? 1000 : 0;
    counted.servers.doorbells = doorbells;
    return predict(nic_named("cib"), counted);
  };
  const auto rate_by = [](const Prediction& prediction, std::string_view what) {
    for (const Term& each : prediction.terms) {
      if (each.what == what) return each.rate;
    }
    return 0.0;
  };
  CHECK(rate_by(with_sends(36, 1000), "PCIe, lines that the server's processors write") == doctest::Approx(175 / 2.0));
  CHECK(rate_by(with_sends(0, 1000), "PCIe, lines that the server's processors write") == doctest::Approx(175));
  CHECK(rate_by(with_sends(36, 100), "PCIe, bytes that the card moves") == doctest::Approx(13443 / 128.0));
}

TEST_CASE("connected pairs beyond the card's cache slow its verbs; datagrams do not") {
  Counted few;
  few.ops = 10;
  few.client_pairs = 32;
  add(few.clients, PairType::kUc, Verb::kWrite, 32, 10);
  Counted many = few;
  many.client_pairs = 1260;
  CHECK(predict(nic_named("cx3-56"), many).rate < predict(nic_named("cx3-56"), few).rate / 5);
  Counted datagrams;
  datagrams.ops = 10;
  datagrams.client_pairs = 1260;
  add(datagrams.clients, PairType::kUd, Verb::kSend, 32, 10);
  CHECK(predict(nic_named("cx3-56"), datagrams).rate == doctest::Approx(21.8));
}

TEST_CASE("a card written to a file is the card that is read from it") {
  for (const Nic& nic : known_nics()) {
    auto read = read_nic(file_with(to_json(nic)));
    REQUIRE(read.is_ok());
    CHECK(to_json(read.value()) == to_json(nic));
  }
}

TEST_CASE("a file that is no card is refused with what is wrong about it") {
  const auto refusal = [](const std::string& text) {
    const auto read = read_nic(file_with(text));
    return read ? std::string("taken") : read.message();
  };
  CHECK(refusal("[]").find("no JSON object") != std::string::npos);
  CHECK(refusal("{\"read_out\": 3}").find("read_out is not known") != std::string::npos);
  CHECK(refusal("{\"atomic\": -1}").find("atomic is no number") != std::string::npos);
  CHECK(refusal("{\"read_in\": [[32, 0]]}").find("cannot be") != std::string::npos);
  CHECK(refusal("{\"read_in\": [[64, 1], [32, 1]]}").find("do not rise") != std::string::npos);
  CHECK(read_nic("cx9").message().find("cx3-40") != std::string::npos);
}
