// The papers' own figures, each with the run that counts its verbs and the card it was measured on; and what the model
// (predict.h) says of the same. Shows how far the model can be trusted: a figure counts as hit within 25 %. Figures that
// a card's description was fitted to are marked, and prove nothing.
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

// A run whose verbs are counted.
struct PaperRun {
  std::string_view id;
  Plan plan = {};
  uint32_t keys = 300;
  double gets = 1;
  uint64_t ops = 3000;
};

// What the figure is, and so what is made of predicted rates.
enum class Measure : uint8_t {
  kRate,         // M ops/s
  kRatio,        // of the run's rate to that of `over`
  kLatency,      // mean µs: clients / rate
  kClientCores,  // ratio of the cores that are left to clients, run to `over`: where processors are all busy
};

struct PaperFigure {
  std::string_view what;    // "pilaf, gets"
  std::string_view source;  // "000, figure 7"
  std::string_view setting;
  std::string_view nic;
  Measure measure = Measure::kRate;
  double paper = 0;
  PaperRun run;
  PaperRun over = {};       // kRatio, kClientCores
  double server_cores = 0;  // of the paper's machine, where they post WRITEs or are a limit
  double server_ns = 0;     // a core's time for an op, where the paper tells
  double clients = 0;       // kLatency
  double words = 0;         // that atomics fall on
  bool words_are_cold = false;
  double node_cores = 0;  // kClientCores
  bool is_fitted = false;
};

std::span<const PaperFigure> paper_figures();

// Runs it; verbs of both sides and ops.
using CountRun = std::function<Counted(const PaperRun& run)>;
struct ModelledFigure {
  const PaperFigure* figure = nullptr;
  double model = 0;
  std::string tightest;  // of the run's terms
};
ModelledFigure model_figure(const PaperFigure& figure, const CountRun& count);

// A table for people.
std::string to_markdown(std::span<const ModelledFigure> figures);

}  // namespace egret::bench_paradigms
