// What egret-top knows of a daemon: figures, each a row of a table that says what it is called, how it comes out of the
// metrics and in which unit it is shown. The table is protocol/page/figures.json, from which the status page computes the
// same figures; a test compares what the two make of it.
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
  kSum,       // of what is so now
  kLargest,   // the same, the largest
  kCount,     // how many series there are
  kRate,      // growth by the second
  kRatio,     // growth of `metric` for each of `other`
  kShare,     // growth of `metric` among that of both
  kShareNow,  // what `metric` is among the sum of both: since the start
  kQuantile,  // of the growth of a histogram
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
  bool beyond = false;  // a quantile that is more than that
};
using Values = std::vector<std::optional<Value>>;  // a table's rows, in its order; nothing: not known

enum class Kind : uint8_t { kUnknown, kProxy, kBackend };

// What a table of rows is about, such as the backends of a proxy.
struct PartFigures {
  std::string name;    // the backend, or the partition
  std::string lane{};  // of a lane
  Values values;
  std::string address{};  // of a backend; empty: not told
};

struct Figures {
  Kind kind = Kind::kUnknown;
  bool has_restarted = false;
  bool has_rates = false;
  std::string version{};             // empty: not told
  std::optional<double> started{};   // seconds since 1970
  Values values{};                   // of table_of(kind)
  std::vector<PartFigures> parts{};  // backends or partitions: of part_table_of(kind)
  std::vector<PartFigures> lanes{};  // a proxy's: of lane_table()
};

std::span<const FigureRow> table_of(Kind kind);
std::span<const FigureRow> part_table_of(Kind kind);
std::span<const FigureRow> lane_table();

// `metrics` may be of anybody: the kind is then unknown, and nothing else is told.
Figures figures_of(const Step& step);

// A table's figure by its name; nothing if it is not known or there is no such row.
std::optional<Value> figure(std::span<const FigureRow> table, const Values& values, std::string_view name);

}  // namespace egret::top
