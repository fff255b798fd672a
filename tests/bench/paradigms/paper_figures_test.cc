// The model against the papers. Every figure of the papers has its system run over the memory fabric; its verbs are
// counted, and from these counts alone and the card's description the model says a rate. Within 25 % is met.
//
// The table that people read (docs/benchmarks/paradigms/model.md) is what this test has found: it fails if the file says
// otherwise, and writes it where EGRET_UPDATE_TABLES is set.
#include "bench_paradigms/model/paper_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "in_memory.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)

namespace {

Counted count(const PaperRun& run) {
  InMemory laboratory(run.id, run.plan, run.keys);
  laboratory.serve_every(run.serve_every);
  const bool is_sequencer = find_paradigm(run.id)->has(OpKind::kNext);
  const Seen seen = laboratory.run({.gets = run.gets, .ops = run.ops, .next_only = is_sequencer});
  REQUIRE(seen.ops == run.ops);
  REQUIRE(seen.hits + seen.done == run.ops);
  REQUIRE(seen.wrong == 0);
  Counted counted;
  counted.clients = seen.clients;
  counted.servers = seen.servers;
  counted.ops = static_cast<double>(run.ops);
  return counted;
}

const std::vector<ModelledFigure>& figures() {
  static const std::vector<ModelledFigure> all = [] {
    std::vector<ModelledFigure> out;
    for (const PaperFigure& each : paper_figures()) out.push_back(model_figure(each, count));
    return out;
  }();
  return all;
}

Prediction on(const char* card, const Counted& counted, double posting_cores = 4) {
  auto nic = egret::bench_nic::read_nic(card);
  REQUIRE(nic.is_ok());
  Counted with = counted;
  with.server_cores = posting_cores;
  return predict(nic.value(), with);
}

PaperRun run_of(std::string_view id, uint32_t value_bytes, double gets) {
  PaperRun run{.id = id, .gets = gets};
  run.plan = {.clients = 4, .window = 4, .value_bytes = value_bytes, .tuning = {.as_paper = true}};
  run.ops = 2000;
  return run;
}

double rate_of(const char* card, std::string_view id, uint32_t value_bytes, double gets) {
  return on(card, count(run_of(id, value_bytes, gets))).rate;
}

// READs that clients posted, sizes and how many of each a get; those of a class have one size.
std::map<double, double> reads_of(const PaperRun& run) {
  const Counted counted = count(run);
  std::map<double, double> out;
  for (const SizeClass& size : counted.clients.by_size[0][static_cast<size_t>(Verb::kRead)]) {
    if (size.count == 0) continue;
    out[static_cast<double>(size.bytes) / static_cast<double>(size.count)] =
        static_cast<double>(size.count) / counted.ops;
  }
  return out;
}

std::string page() {
  std::string out =
      "# The model beside the papers\n\n"
      "*Written by the test that checks it, `tests/bench/paradigms/paper_figures_test.cc`: `EGRET_UPDATE_TABLES=1 "
      "ctest -R "
      "paper_figures`. How far to trust it: [paradigms.md](../paradigms.md#how-far-the-model-can-be-trusted).*\n\n"
      "Each system has run over memory, as its paper has it, with every answer checked; its verbs were counted. The "
      "model "
      "knows these counts and a description of the paper's\n"
      "card, and nothing else. A row that counts must be within 25 % of the paper. *Input*: the figure is part of the "
      "card's "
      "description. *Fitted*: a time was computed from the figure. *Not met*: the\n"
      "model does not tell this. None of these three counts.\n\n";
  size_t counts = 0;
  double most = 0;
  for (const ModelledFigure& each : figures()) {
    if (each.figure->standing != Standing::kCounts) continue;
    ++counts;
    most = std::max(most, std::abs(each.difference()));
  }
  out += std::to_string(counts) + " rows count; the farthest is " + std::to_string(std::lround(100 * most)) +
         " % from its paper.\n\n";
  return out + to_markdown(figures());
}

}  // namespace

TEST_CASE("every figure of the papers that is no input and not fitted is met within 25 %, from counted verbs") {
  for (const ModelledFigure& each : figures()) {
    if (each.figure->standing != Standing::kCounts) continue;
    CAPTURE(each.figure->what);
    CAPTURE(each.figure->source);
    CAPTURE(each.figure->setting);
    CAPTURE(each.counted);
    CAPTURE(each.model);
    CHECK(each.is_known);
    CHECK(!each.tightest.empty());
    CHECK(std::abs(each.difference()) <= kModelTolerance);
  }
}

TEST_CASE("rows that do not count say why, and a row that is said not to be met is not") {
  for (const ModelledFigure& each : figures()) {
    CAPTURE(each.figure->what);
    if (each.figure->standing != Standing::kCounts) CHECK(!each.figure->note.empty());
    if (each.figure->standing == Standing::kNotMet) CHECK(std::abs(each.difference()) > kModelTolerance);
  }
}

TEST_CASE("every system that a paper gives a figure for has a row") {
  std::set<std::string_view> ids;
  for (const PaperFigure& each : paper_figures()) {
    ids.insert(each.run.id);
    if (!each.over.id.empty()) ids.insert(each.over.id);
  }
  for (const char* id : {"pilaf", "pilaf-vo", "pilaf-em", "farm-em", "farm-em-var", "herd", "seq-rpc", "seq-s0",
                         "seq-faa", "drtm-em", "rfp", "reply", "memc", "nessie", "nessie-sd"}) {
    CHECK_MESSAGE(ids.count(id) == 1, id);
  }
}

TEST_CASE("READs have the sizes of the papers") {
  using Reads = std::map<double, double>;
  CHECK(reads_of(run_of("farm-em", 32, 1)) == Reads{{288, 1}});               // 6 x (16 + 32)
  CHECK(reads_of(run_of("farm-em-var", 32, 1)) == Reads{{32, 1}, {144, 1}});  // 6 x (16 + 8), and the value
  CHECK(reads_of(run_of("drtm-em", 32, 1)) == Reads{{64, 1}});                // the item
  CHECK(reads_of(run_of("raw-read", 128, 1)) == Reads{{128, 1}});             // the value
  PaperRun rfp = run_of("rfp", 32, 1);
  for (const auto& [value_bytes, fetch_bytes] : {std::pair{32u, 36u}, {128u, 132u}, {508u, 512u}}) {
    rfp.plan.value_bytes = value_bytes;
    rfp.plan.tuning.fetch_bytes = fetch_bytes;
    CHECK(reads_of(rfp) == Reads{{fetch_bytes, 1}});
  }
  rfp.plan.value_bytes = 1024;
  rfp.plan.tuning.fetch_bytes = 36;
  CHECK(reads_of(rfp) == Reads{{36, 1}, {992, 1}});  // what is left of heads and value, by one more
  const Reads nessie = reads_of([] {
    PaperRun run = run_of("nessie", 879, 1);
    run.plan.key_bytes = 128;
    return run;
  }());
  CHECK(nessie.begin()->first == 8);
  CHECK(nessie.rbegin()->first == 1024);
}

TEST_CASE(
    "the batched rows are of batches: about the 16 answers a doorbell of paper 002, and one where nothing is batched") {
  for (const PaperFigure& each : paper_figures()) {
    if (each.run.id != "herd" && each.run.id != "seq-rpc" && each.run.id != "seq-s0") continue;
    CAPTURE(each.what);
    const Counted counted = count(each.run);
    const double batch =
        static_cast<double>(counted.servers.of(Verb::kSend)) / static_cast<double>(counted.servers.doorbells);
    if (each.run.plan.tuning.doorbell == 1) {
      CHECK(batch == 1);
    } else {
      CHECK(batch > 10);
      CHECK(batch <= 16);
    }
  }
}

TEST_CASE("pilaf READs 32 B of its table and all of an extent, pilaf-em one entry a probe and one extent") {
  PaperRun run = run_of("pilaf", 1000, 1);  // an extent in a size class of its own
  run.keys = 3000;
  const auto pilaf = reads_of(run);
  REQUIRE(pilaf.size() == 2);
  CHECK(pilaf.begin()->first == 32);
  CHECK(pilaf.rbegin()->first == 1016);
  CHECK(pilaf.begin()->second == pilaf.rbegin()->second);            // two a probe
  CHECK(pilaf.begin()->second == doctest::Approx(1.6).epsilon(.1));  // at a load of .75, paper 000's figure 6
  run.id = "pilaf-em";
  const auto em = reads_of(run);
  CHECK(em.rbegin()->second == doctest::Approx(1).epsilon(.02));  // a tag is another key's once in many
  CHECK(em.begin()->second == doctest::Approx(1.6).epsilon(.1));
}

TEST_CASE("farm-em leads the designs that look up by READ at 32 B on ConnectX-3; small READs lead on Connect-IB") {
  const double on_cx3 = rate_of("cx3-56", "farm-em", 32, 1);
  CHECK(on_cx3 > rate_of("cx3-56", "farm-em-var", 32, 1));
  CHECK(on_cx3 > rate_of("cx3-56", "pilaf-em", 32, 1));
  const double on_cib = rate_of("cib", "farm-em", 32, 1);
  CHECK(on_cib < rate_of("cib", "farm-em-var", 32, 1));
  CHECK(on_cib < rate_of("cib", "pilaf-em", 32, 1));
  CHECK(on_cib < rate_of("cib", "drtm-em", 32, 1));
}

TEST_CASE("pointers instead of values cost farm-em a third of its rate: 66 % are left") {
  const double share = rate_of("cx3-56", "farm-em-var", 32, 1) / rate_of("cx3-56", "farm-em", 32, 1);
  CHECK(std::abs(share / .66 - 1) < kModelTolerance);
}

TEST_CASE("herd is as fast whatever the share of puts, and up to 60 B") {
  for (const char* card : {"cx3-56", "cib"}) {
    const double all_gets = rate_of(card, "herd", 32, 1);
    for (const double gets : {.95, .5, 0.}) CHECK(rate_of(card, "herd", 32, gets) == doctest::Approx(all_gets));
  }
  CHECK(rate_of("cx3-56", "herd", 60, .95) == doctest::Approx(rate_of("cx3-56", "herd", 4, .95)));
  // Not for ever: what does not fit two lines of a work request takes more.
  CHECK(rate_of("cib", "herd", 200, 1) < .7 * rate_of("cib", "herd", 32, 1));
}

TEST_CASE("reply is as fast as the card posts WRITEs") {
  const Prediction prediction = on("cx3-40", count(run_of("reply", 32, .95)));
  CHECK(prediction.rate == doctest::Approx(2.11));
  CHECK(prediction.terms.front().what == "the server's card, out-bound verbs");
}

TEST_CASE("on ConnectX-2 pilaf is no slower with half puts than with a tenth: the pools are independent") {
  CHECK(rate_of("cx2", "pilaf", 256, .5) >= rate_of("cx2", "pilaf", 256, .9));
}

TEST_CASE("ConnectX-3 does atomics one by one, on however many words; Connect-IB is the faster the more there are") {
  PaperRun run = run_of("drtm-em", 32, 0);
  const auto with_words = [&run](const char* card, uint32_t words) {
    run.keys = words;
    return on(card, count(run)).rate;
  };
  CHECK(with_words("cx3-56", 1) == doctest::Approx(with_words("cx3-56", 256)));
  CHECK(with_words("cib", 4) < with_words("cib", 16));
  CHECK(with_words("cib", 16) < with_words("cib", 64));
  CHECK(with_words("cib", 64) ==
        doctest::Approx(with_words("cib", 300)));  // 64 B apart: twelve bits tell 64 words apart
  run.plan.tuning.atomic_stride = 72;
  CHECK(with_words("cib", 300) > 1.5 * with_words("cib", 64));
}

TEST_CASE("the page of the model says what this test has found") {
  const std::string path = EGRET_MODEL_TABLE;
  const std::string wanted = page();
  if (std::getenv("EGRET_UPDATE_TABLES") != nullptr) {
    std::ofstream(path, std::ios::trunc) << wanted;
  }
  std::ifstream file(path);
  REQUIRE_MESSAGE(file.is_open(), path);
  std::ostringstream found;
  found << file.rdbuf();
  CHECK_MESSAGE(found.str() == wanted,
                "run EGRET_UPDATE_TABLES=1 ctest -R paper_figures, and look at what has changed");
}
