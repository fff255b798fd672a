// The papers' own figures, each with the run that counts its verbs and the card it was measured on; and what the model
// (predict.h) says of the same. Shows how far the model can be trusted: a figure counts as met within 25 %. Figures that
// the description of a card was made from are shown, and marked: they prove nothing.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench_paradigms/model/predict.h"
#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

inline constexpr double kModelTolerance = .25;

// A run whose verbs are counted. Of a test's size: counts by op do not depend on how many keys or clients there are.
struct PaperRun {
  std::string_view id;
  Plan plan = {};
  double gets = 1;
  uint32_t keys = 300;
  uint64_t ops = 4000;
  uint32_t serve_every = 1;  // steps: 1: server cores answer in time; more: requests gather before they look
};

// What the figure is, and so what is made of predicted rates.
enum class Measure : uint8_t {
  kRate,         // M ops/s
  kRatio,        // of the run's rate to that of `over`
  kLatency,      // mean µs: clients / rate
  kClientCores,  // ratio of the cores that are left to clients, run to `over`: where processors are all busy
};

// What a row shows.
enum class Standing : uint8_t {
  kCounts,  // the model must be within kModelTolerance
  kInput,   // the figure is in the card's description
  kFitted,  // a core's time is computed from the figure
  kNotMet,  // the model does not tell this: see the note
};

// What the paper's hosts were. 0: not told, and no limit.
struct Machines {
  std::string_view nic = {};  // empty: no card is the limit
  double clients = 0;         // each with a queue pair to the server
  double client_hosts = 0;
  double posting_cores = 0;  // of the server
};

struct PaperFigure {
  std::string_view what;    // "pilaf, gets"
  std::string_view source;  // "000, figure 7"
  std::string_view setting;
  Machines machines;
  Measure measure = Measure::kRate;
  double paper = 0;
  PaperRun run;
  PaperRun over = {};           // kRatio, kClientCores
  double server_ns = 0;         // a core's time for an op
  bool words_are_cold = false;  // atomics fall on more words than the card's cache holds
  double node_cores = 0;        // kClientCores
  Standing standing = Standing::kCounts;
  std::string_view note = {};  // how the paper is read, or why the row does not count
};

std::span<const PaperFigure> paper_figures();

// Runs it; verbs of both sides and ops.
using CountRun = std::function<Counted(const PaperRun& run)>;
struct ModelledFigure {
  const PaperFigure* figure = nullptr;
  double model = 0;
  std::string tightest;  // of the run's terms
  std::string counted;   // verbs of an op: "1 RC READ of 288 B / 0"
  bool is_known = true;  // false: rates of some verbs are not known for this card

  double difference() const { return model / figure->paper - 1; }
};
ModelledFigure model_figure(const PaperFigure& figure, const CountRun& count);

// A table for people, and the notes.
std::string to_markdown(std::span<const ModelledFigure> figures);

}  // namespace egret::bench_paradigms
