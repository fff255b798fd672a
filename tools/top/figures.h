// The figures of a daemon. Each is a row of a table, with its name, how to compute it from the metrics, and its unit.
// The table is protocol/page/figures.json; the status page computes the same figures from it, and a test compares the
// two.
//
//   Step ─ figures_of ─▶ Figures: of the daemon, of each backend and lane, of each partition
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "top/step.h"

namespace egret::top {

enum class How : uint8_t {
  kSum,       // sum of the present values of all series
  kLargest,   // largest present value
  kCount,     // number of series
  kRate,      // growth per second
  kRatio,     // growth of `metric` / growth of `other`
  kShare,     // growth of `metric` / growth of both together
  kShareNow,  // `metric` / sum of both, since the process started
  kQuantile,  // quantile of a histogram's growth
};

enum class Unit : uint8_t { kCount, kWhole, kBytes, kShare, kSeconds };

struct FigureRow {
  std::string_view name{};   // in JSON
  std::string_view title{};  // on the screen
  How how = How::kSum;
  Unit unit = Unit::kCount;
  std::string_view metric{};
  std::string_view other{};
  double q = 0;   // kQuantile
  Match match{};  // kSum, kLargest, kCount, kRate
};

struct Value {
  double number = 0;
  bool beyond = false;  // the quantile is more than this number
};
using Values = std::vector<std::optional<Value>>;  // in the order of a table's rows; nothing: not known

enum class Kind : uint8_t { kUnknown, kProxy, kBackend };

// The figures of one part of a daemon, such as a backend of a proxy.
struct PartFigures {
  std::string name;    // the backend, or the partition
  std::string lane{};  // lanes only
  Values values;
  std::string address{};  // backends only; empty: not known
};

struct Figures {
  Kind kind = Kind::kUnknown;
  bool has_restarted = false;
  bool has_rates = false;
  std::string version{};             // empty: not known
  std::optional<double> started{};   // seconds since 1970
  Values values{};                   // rows of table_of(kind)
  std::vector<PartFigures> parts{};  // backends or partitions: rows of part_table_of(kind)
  std::vector<PartFigures> lanes{};  // a proxy's lanes: rows of lane_table()
};

std::span<const FigureRow> table_of(Kind kind);
std::span<const FigureRow> part_table_of(Kind kind);
std::span<const FigureRow> lane_table();

// If the metrics are not those of an Egret daemon, the kind is unknown, and there are no figures.
Figures figures_of(const Step& step);

// The figure of a table by its name; nothing if its value is not known or there is no such row.
std::optional<Value> figure(std::span<const FigureRow> table, const Values& values, std::string_view name);

}  // namespace egret::top
