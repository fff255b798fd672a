// Which ops a client does: shares, whose keys it puts, and that the seed alone decides.
#include "bench_paradigms/harness/workload.h"

#include <algorithm>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "bench_paradigms/harness/memory_run.h"
#include "bench_paradigms/harness/presets.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {
constexpr int kDraws = 20'000;
}

TEST_CASE("gets, puts and erases have their shares") {
  Workload workload({.keys = 100, .gets = 0.9, .erases = 0.5}, 0);
  int gets = 0;
  int erases = 0;
  for (int i = 0; i < kDraws; ++i) {
    const OpKind kind = workload.draw().kind;
    gets += kind == OpKind::kGet ? 1 : 0;
    erases += kind == OpKind::kErase ? 1 : 0;
  }
  CHECK(gets / double(kDraws) == doctest::Approx(0.9).epsilon(0.02));
  CHECK(erases / double(kDraws) == doctest::Approx(0.05).epsilon(0.2));
}

TEST_CASE("one writer: a client puts its own keys alone, and all clients' together are all keys") {
  std::set<uint32_t> put;
  for (uint32_t client = 0; client < 3; ++client) {
    Workload workload({.keys = 100, .clients = 3, .gets = 0}, client);
    for (int i = 0; i < kDraws; ++i) {
      const Draw draw = workload.draw();
      REQUIRE(draw.key < 100);
      REQUIRE(draw.key % 3 == client);
      put.insert(draw.key);
    }
  }
  CHECK(put.size() == 100);
}

TEST_CASE("any writer: every client puts every key") {
  Workload workload({.keys = 100, .clients = 3, .gets = 0, .writers = Writers::kAny}, 1);
  std::set<uint32_t> put;
  for (int i = 0; i < kDraws; ++i) put.insert(workload.draw().key);
  CHECK(put.size() == 100);
}

TEST_CASE("locality is the share of the gets for a client's own keys") {
  Workload workload({.keys = 1000, .clients = 10, .gets = 1, .locality = 0.8}, 4);
  int own = 0;
  for (int i = 0; i < kDraws; ++i) own += workload.draw().key % 10 == 4 ? 1 : 0;
  CHECK(own / double(kDraws) == doctest::Approx(0.8 + 0.2 / 10).epsilon(0.02));
}

TEST_CASE("a sequencer's ops are all for its next number; Zipf makes few keys popular; the seed decides") {
  CHECK(Workload({.keys = 9, .next_only = true}, 0).draw().kind == OpKind::kNext);
  const WorkloadSpec skewed{.keys = 1000, .gets = 1, .zipf = 0.99, .seed = 5};
  Workload first(skewed, 0);
  Workload again(skewed, 0);
  std::vector<int> counts(1000);
  for (int i = 0; i < kDraws; ++i) {
    const uint32_t key = first.draw().key;
    CHECK(key == again.draw().key);
    ++counts[key];
  }
  CHECK(*std::max_element(counts.begin(), counts.end()) > kDraws / 20);
}

TEST_CASE("every preset can be applied, says where it is from, and no two have one name") {
  std::set<std::string_view> names;
  for (const Preset& each : presets()) {
    Setting setting;
    REQUIRE(apply_preset(each.name, setting).is_ok());
    CHECK(names.insert(each.name).second);
    CHECK(setting.preset == each.name);
    CHECK(setting.tuning.as_paper);
    CHECK(!setting.ids.empty());
    CHECK(!cases_of(setting).empty());
    CHECK((each.about.starts_with("paper 00") || each.about.starts_with("the same")));
  }
  Setting setting;
  CHECK(!apply_preset("pilaf", setting).is_ok());
  REQUIRE(apply_preset("pilaf-fig7", setting).is_ok());
  CHECK(setting.clients == 40);
  CHECK(setting.key_bytes == 23);
  CHECK(setting.server_cores == 1);
}

namespace {

// Runs nothing, on devices that can do what is said.
class IdleRunner final : public Runner {
 public:
  explicit IdleRunner(const Capabilities& can) : can_(can) {}
  egret::base::Expected<RunAnswer> run(const Paradigm& paradigm, const Case&, const std::atomic<bool>&) override {
    ran.emplace_back(paradigm.id);
    return RunAnswer{};
  }
  Capabilities capabilities() const override { return can_; }
  std::vector<std::string> ran;

 private:
  Capabilities can_;
};

egret::base::Expected<Report> rounds_of(const Setting& setting, Runner& runner) {
  const std::atomic<bool> stop{false};
  return run_rounds(
      setting, runner, [](const std::string&) {}, stop);
}

}  // namespace

TEST_CASE("every preset names systems that there are, and its keys fit them") {
  for (const Preset& each : presets()) {
    CAPTURE(each.name);
    Setting setting;
    REQUIRE(apply_preset(each.name, setting).is_ok());
    const auto found = chosen(setting);
    REQUIRE_MESSAGE(found.is_ok(), found.message());
    CHECK(found.value().size() == setting.ids.size());
    CHECK(setting.key_bytes >= egret::bench::Keyspace::min_key_size(setting.keys));
  }
}

TEST_CASE("every preset runs over memory: nothing that it names is not available there, and no op fails") {
  for (const Preset& each : presets()) {
    CAPTURE(each.name);
    Setting setting;
    REQUIRE(apply_preset(each.name, setting).is_ok());
    setting.keys = 500;
    setting.clients = std::min(setting.clients, 6u);
    setting.server_cores = std::min(setting.server_cores, 2u);
    setting.ops = 120;
    setting.rounds = 1;
    setting.gets.resize(1);  // a table each
    setting.tuning.spare_entries = 256;
    MemoryRunner runner(setting);
    const auto report = rounds_of(setting, runner);
    REQUIRE_MESSAGE(report.is_ok(), report.message());
    for (const CaseReport& one : report.value().cases) {
      CHECK(one.rows.size() == setting.ids.size());
      for (const Row& row : one.rows) {
        CAPTURE(row.id);
        CHECK(row.not_available == "");
        CHECK(row.ops == 120);
        CHECK(row.failed + row.unanswered == 0);
      }
    }
  }
}

TEST_CASE("what a device lacks is a row that says so, and the rest of a preset runs") {
  Setting setting;
  REQUIRE(apply_preset("sequencers-t3", setting).is_ok());
  setting.rounds = 1;
  Capabilities can;
  can.device = "a card";
  can.has_atomics = can.has_uc = true;
  IdleRunner runner(can);
  const auto report = rounds_of(setting, runner);
  REQUIRE(report.is_ok());
  CHECK(runner.ran == std::vector<std::string>{"seq-faa"});
  for (const Row& row : report.value().cases.front().rows) {
    CHECK(row.not_available == (row.id == "seq-faa" ? "" : "a card has no UD"));
  }
}

TEST_CASE("a system that there is not is an error that names it, before anything runs") {
  Setting setting;
  setting.ids = {"herd", "nothing"};
  IdleRunner runner(Capabilities{});
  const auto report = rounds_of(setting, runner);
  REQUIRE_FALSE(report.is_ok());
  CHECK(report.message().find("no paradigm nothing") != std::string::npos);
  CHECK(runner.ran.empty());
}
