// How marks, verbs and types of pairs are called in reports.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "bench_paradigms/harness/report_data.h"

namespace egret::bench_paradigms {

struct MarkName {
  Mark mark;
  std::string_view name;
  std::string_view meaning;
};
inline constexpr std::array<MarkName, 6> kMarkNames{{
    {kMarkRead, "R", "a READ samples in rising order"},
    {kMarkWrite, "W", "a WRITE is placed in rising order"},
    {kMarkLine, "line", "a cache line is read and written whole"},
    {kMarkLoss, "loss", "nothing is lost"},
    {kMarkTime, "time", "nothing is late by more than a bound"},
    {kMarkHca, "HCA", "atomics are atomic against this device's verbs, not against CPU stores"},
}};
inline constexpr std::array<std::string_view, kPairTypes> kPairNames{"RC", "UC", "UD"};
inline constexpr std::array<std::string_view, kVerbs> kVerbNames{"WRITE", "READ", "SEND", "CAS", "FAA", "RECV"};
inline constexpr std::array<std::string_view, 3> kClassNames{"store", "sequencer", "bound"};

// "R W"; empty: none.
std::string names_of(uint8_t marks);
unsigned count_of(uint8_t marks);

// READs that clients posted, for each get. A figure of gets where Row::expected_steps is told.
double reads_of_a_get(const Row& row);

// What a run was tuned to, by the names and units of the options.
struct TuningValue {
  std::string_view option;  // without its hyphens
  double value = 0;
  bool is_switch = false;  // 1: on
};
std::vector<TuningValue> values_of(const Tuning& tuning);
// "ways 4, no inline": what is not as by default; empty: nothing.
std::string changes_of(const Tuning& tuning);

}  // namespace egret::bench_paradigms
