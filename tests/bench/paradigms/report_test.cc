// The verdict's rules, on made-up figures; and what the two forms of the report hold.
#include "bench_paradigms/report/report.h"

#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "bench_paradigms/report/verdict.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

constexpr size_t kRc = static_cast<size_t>(PairType::kRc);
constexpr size_t kRead = static_cast<size_t>(Verb::kRead);

Row row(const std::string& id, double mops, uint8_t marks = kNoMark) {
  Row out;
  out.id = id;
  out.marks = marks;
  out.mops = {mops, mops, mops};
  out.p50_us = {10, 10, 10};
  out.p99_us = {20, 20, 20};
  out.server_cpu_us = {1, 1, 1};
  out.ops = 1000;
  out.gets = 1000;
  out.hits = 1000;
  return out;
}

// On a real device.
Report report_of(std::vector<Row> rows) {
  Report report;
  report.device.device = "some card";
  report.cases.push_back({{}, std::move(rows)});
  return report;
}

Verdict verdict_of(const Report& report, Class rank = Class::kStore) {
  return judge(report, report.cases.front(), rank);
}

}  // namespace

TEST_CASE("most ops a second is best, and the sentence says how many") {
  const Verdict verdict = verdict_of(report_of({row("slow", 2), row("fast", 3), row("middle", 2.5)}));
  CHECK(verdict.best == "fast");
  CHECK(verdict.why.find("3 M") != std::string::npos);
}

TEST_CASE("a wrong answer, or a failed op, takes a row out of the running, and is named") {
  Report report = report_of({row("wrong", 9), row("failing", 8), row("right", 3)});
  report.cases[0].rows[0].wrong = 1;
  report.cases[0].rows[1].failed = 1;
  const Verdict verdict = verdict_of(report);
  CHECK(verdict.best == "right");
  CHECK(verdict.why.find("wrong (wrong answers)") != std::string::npos);
  CHECK(verdict.why.find("failing (failed ops)") != std::string::npos);
}

TEST_CASE("a row that relies on what the device breaks is out; what is lost shows that the device loses") {
  Report report = report_of({row("herd", 9, kMarkWrite | kMarkLoss), row("sure", 3)});
  CHECK(verdict_of(report).best == "herd");
  report.setting.broken_marks = kMarkWrite;
  CHECK(verdict_of(report).best == "sure");
  CHECK(verdict_of(report).why.find("herd (relies on W") != std::string::npos);
  report.setting.broken_marks = kMarkRead;
  CHECK(verdict_of(report).best == "herd");
  report.cases[0].rows[0].lost = 1;
  CHECK(verdict_of(report).best == "sure");
}

TEST_CASE("where rounds come within 5 %, fewest marks decide, then server CPU, then p99") {
  Report report = report_of({row("marked", 10, kMarkWrite), row("plain", 9.6), row("far", 9)});
  CHECK(verdict_of(report).best == "plain");
  CHECK(verdict_of(report).why.find("fewest marks") != std::string::npos);
  report.cases[0].rows[0].marks = kNoMark;
  report.cases[0].rows[0].server_cpu_us.median = 0.5;
  CHECK(verdict_of(report).best == "marked");
  CHECK(verdict_of(report).why.find("server CPU") != std::string::npos);
  report.cases[0].rows[0].server_cpu_us.median = 1;
  report.cases[0].rows[0].p99_us.median = 21;
  CHECK(verdict_of(report).best == "plain");
  CHECK(verdict_of(report).why.find("p99") != std::string::npos);
}

TEST_CASE(
    "a mark counts against a row unless the device promises it, and takes a row out only if the device breaks it") {
  Report report = report_of({row("marked", 10, kMarkWrite), row("plain", 9.8)});
  CHECK(verdict_of(report).best == "plain");  // rising WRITEs: neither promised nor broken
  CHECK(verdict_of(report).without_marks == "plain");
  report.device.is_in_order = true;
  report.cases[0].rows[1].p99_us.median = 21;
  CHECK(verdict_of(report).best == "marked");
  CHECK(verdict_of(report).without_marks == "marked");
  report.cases[0].rows[0].marks = kMarkWrite | kMarkRead;  // nothing promises rising READs
  CHECK(verdict_of(report).best == "plain");
  CHECK(verdict_of(report).without_marks == "plain");
  report.cases[0].rows[0].marks = kMarkWrite;
  report.setting.broken_marks = kMarkWrite;  // whatever the device says of itself
  CHECK(verdict_of(report).best == "plain");
  CHECK(verdict_of(report).why.find("marked (relies on W, which this device breaks)") != std::string::npos);
}

TEST_CASE("the report says which marks the device promises") {
  Report report = report_of({row("marked", 10, kMarkWrite)});
  CHECK(to_markdown(report).find("promises") == std::string::npos);
  CHECK(nlohmann::json::parse(to_json(report))["promised_by_the_device"].empty());
  report.device.is_in_order = true;
  CHECK(to_markdown(report).find("the device promises what is called W below") != std::string::npos);
  CHECK(nlohmann::json::parse(to_json(report))["promised_by_the_device"] == nlohmann::json::array({"W"}));
}

TEST_CASE("ranges count, not medians alone: rounds that spread reach one another") {
  Report report = report_of({row("marked", 10, kMarkWrite), row("plain", 8)});
  CHECK(verdict_of(report).best == "marked");
  report.cases[0].rows[0].mops.least = 8.3;
  CHECK(verdict_of(report).best == "plain");
}

TEST_CASE("best without marks, best p50 and least server CPU stand beside it") {
  Report report = report_of({row("marked", 10, kMarkTime), row("quick", 5), row("thrifty", 6)});
  report.cases[0].rows[1].p50_us.median = 2;
  report.cases[0].rows[2].server_cpu_us.median = 0;
  const Verdict verdict = verdict_of(report);
  CHECK(verdict.best == "marked");
  CHECK(verdict.without_marks == "thrifty");
  CHECK(verdict.best_p50 == "quick");
  CHECK(verdict.least_server_cpu == "thrifty");
}

TEST_CASE("sequencers are ranked apart, and a bound nowhere") {
  Report report = report_of({row("store", 3), row("numbers", 9), row("bound", 20)});
  report.cases[0].rows[1].rank = Class::kSequencer;
  report.cases[0].rows[2].rank = Class::kBound;
  CHECK(verdict_of(report).best == "store");
  CHECK(verdict_of(report, Class::kSequencer).best == "numbers");
}

TEST_CASE("a design that cannot put, or whose puts store nothing, is a bound") {
  const auto rank_of = [](const char* id) { return row_of(*find_paradigm(id), Plan{}, {}).rank; };
  CHECK(rank_of("raw-read") == Class::kBound);
  CHECK(rank_of("drtm-em") == Class::kBound);
  CHECK(rank_of("drtm") == Class::kStore);
  CHECK(rank_of("seq-faa") == Class::kSequencer);
}

TEST_CASE("an emulated device and the memory fabric get no verdict") {
  Report report = report_of({row("fast", 3)});
  report.device.is_emulated = true;
  CHECK(verdict_of(report).best.empty());
  CHECK(verdict_of(report).why == "no verdict: counted only");
  report.device.is_emulated = false;
  report.is_in_memory = true;
  CHECK(verdict_of(report).best.empty());
}

namespace {

// Two stores on ConnectX-3: one that READs, and one whose answers are SENDs, of which that card's description says nothing.
Report report_on_a_card() {
  Report report = report_of({row("reader", 4), row("sender", 5)});
  Row& reader = report.cases[0].rows[0];
  reader.clients.posted[kRc][kRead] = 2000;
  reader.clients.by_size[kRc][kRead][6] = {2000, 64'000};
  reader.clients.doorbells = 2000;
  reader.server_cpu_us = {0, 0, 0};
  Row& sender = report.cases[0].rows[1];
  constexpr size_t kSend = static_cast<size_t>(Verb::kSend);
  sender.servers.posted[kRc][kSend] = 1000;
  sender.servers.by_size[kRc][kSend][6] = {1000, 36'000};
  sender.servers.doorbells = 1000;
  report.nic = egret::bench_nic::read_nic("cx3-40").value();
  return report;
}

}  // namespace

TEST_CASE("the model stands beside the measurement, names what limits, and says what it does not know") {
  Report report = report_on_a_card();
  const std::string text = to_markdown(report);
  CHECK(text.find("| `reader` | 5.63 | 4 | the server's card, in-bound verbs |") != std::string::npos);
  CHECK(text.find("not known for this card: out-bound SEND") != std::string::npos);
  CHECK(text.find("**Best store by the model: `reader`**: 5.63 Mops/s; the server's card, in-bound verbs limits it. "
                  "Modelled, not measured.") != std::string::npos);
  const auto json = nlohmann::json::parse(to_json(report));
  const auto& rows = json["cases"][0]["model"]["rows"];
  CHECK(rows[0]["mops"] == 5.63);
  CHECK(rows[0]["limits"][0]["what"] == "the server's card, in-bound verbs");
  CHECK(rows[0]["not_known"].empty());
  CHECK(rows[1]["not_known"] == nlohmann::json::array({"out-bound SEND"}));
}

TEST_CASE("the verdict says what limits the winner on the card that was given, if that is known") {
  Report report = report_on_a_card();
  CHECK(to_markdown(report).find("limits it, at") == std::string::npos);  // the sender wins
  report.cases[0].rows[1].wrong = 1;
  CHECK(to_markdown(report).find(
            "On `cx3-40` the server's card, in-bound verbs limits it, at 5.63 Mops/s by the model.") !=
        std::string::npos);
}

TEST_CASE("on an emulated device the model says what the verbs would do on a card, and nothing stands beside it") {
  Report report = report_on_a_card();
  report.device.is_emulated = true;
  const std::string text = to_markdown(report);
  CHECK(text.find("| `reader` | 5.63 | the server's card, in-bound verbs |") != std::string::npos);
  CHECK(text.find("no verdict: counted only") != std::string::npos);
  CHECK(text.find("Modelled, not measured.") != std::string::npos);
  report.setting.broken_marks = kMarkLine;
  report.cases[0].rows[0].marks = kMarkLine;
  CHECK(to_markdown(report).find("Best store by the model") == std::string::npos);
}

TEST_CASE("wrong answers break a promise where a row relies on nothing but what the device keeps") {
  Report report = report_of({row("marked", 3, kMarkWrite), row("plain", 3)});
  report.cases[0].rows[0].wrong = 5;
  CHECK(broken_promises(report) == 0);
  report.device.is_in_order = true;
  CHECK(broken_promises(report) == 5);
  report.cases[0].rows[1].wrong = 2;
  CHECK(broken_promises(report) == 7);
  report.setting.broken_marks = kMarkWrite;
  CHECK(broken_promises(report) == 2);
}

TEST_CASE("medians and extremes are those of the rounds; counts are divided by all ops") {
  RunOutcome round;
  round.round_ns = 1'000'000'000;
  round.tally.ops = 3000;
  round.tally.gets = 3000;
  round.clients.posted[kRc][kRead] = 6000;
  round.server_spent = {.cpu = 900'000'000, .busy = 100'000'000};
  std::vector<RunOutcome> rounds(3, round);
  for (uint64_t i = 0; i < 3; ++i) rounds[i].tally.measured_ops = 1'000'000 * (i + 1);
  const Row found = row_of(*find_paradigm("raw-read"), Plan{}, rounds);
  CHECK(found.mops.median == doctest::Approx(2));
  CHECK(found.mops.least == doctest::Approx(1));
  CHECK(found.mops.most == doctest::Approx(3));
  CHECK(found.server_cpu_us.median == doctest::Approx(0.05));
  CHECK(found.server_spin_us.median == doctest::Approx(0.45));
  CHECK(found.ops == 9000);
  CHECK(found.client_verbs(PairType::kRc, Verb::kRead) == doctest::Approx(2));
  CHECK(spread_of({1, 2, 3, 10}).median == doctest::Approx(2.5));
}

TEST_CASE("the JSON holds settings, rows, verbs of each side, faults, and why something did not run") {
  Report report = report_of({row("fast", 3), row("absent", 0)});
  Row& fast = report.cases[0].rows[0];
  fast.clients.posted[kRc][kRead] = 1500;
  fast.clients.doorbells = 500;
  fast.wrong = 2;
  fast.faults[static_cast<size_t>(Fault::kTorn)] = 2;
  fast.expected_steps = 1.5;
  report.cases[0].rows[1].not_available = "the device has no UD";
  const auto json = nlohmann::json::parse(to_json(report));
  const auto& found = json["cases"][0]["rows"][0];
  CHECK(json["setting"]["keys"] == 1'000'000);
  CHECK(found["times"]["mops"]["median"] == 3);
  CHECK(found["client"]["verbs"]["RC"]["READ"] == 1.5);
  CHECK(found["client"]["doorbells"] == 0.5);
  CHECK(found["answers"]["faults"]["a torn value"] == 2);
  CHECK(found["steps_of_a_get"]["counted"] == 1.5);
  CHECK(json["cases"][0]["rows"][1]["not_available"] == "the device has no UD");
  CHECK(!json["cases"][0]["rows"][1].contains("answers"));
  CHECK(json["cases"][0]["verdict"]["best"] == "");
  CHECK(json["broken_promises"] == 2);
}

TEST_CASE("the table has what ran, then what did not and why, then the verdict; without a device it has no times") {
  Report report = report_of({row("fast", 3), row("absent", 0), row("numbers", 7)});
  report.cases[0].rows[1].not_available = "the device has no UD";
  report.cases[0].rows[2].rank = Class::kSequencer;
  const std::string text = to_markdown(report);
  CHECK(text.find("| `fast` | 3 |") != std::string::npos);
  CHECK(text.find("- `absent`: not available: the device has no UD") != std::string::npos);
  CHECK(text.find("**Best store: `fast`**") != std::string::npos);
  CHECK(text.find("**Best sequencer: `numbers`**") != std::string::npos);
  CHECK(text.find("| sequencer |") > text.find("| store |"));
  report.is_in_memory = true;
  const std::string counted = to_markdown(report);
  CHECK(counted.find("Mops/s") == std::string::npos);
  CHECK(counted.find("no verdict: counted only") != std::string::npos);
}
