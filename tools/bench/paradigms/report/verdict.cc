#include "bench_paradigms/report/verdict.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "bench_paradigms/report/names.h"

namespace egret::bench_paradigms {

namespace {

constexpr double kClose = 0.05;

using Rows = std::vector<const Row*>;

uint8_t broken_by(const Report& report, const Row& row) {
  const unsigned lost = row.lost > 0 ? kMarkLoss : kNoMark;
  return static_cast<uint8_t>(row.marks & (report.setting.broken_marks | lost));
}

// Those that the device does not promise to keep: they count against a row.
uint8_t open_marks(const Report& report, const Row& row) {
  return static_cast<uint8_t>(row.marks & ~kept_marks(report));
}

bool is_in_the_running(const Report& report, const Row& row) {
  return row.has_run() && row.ops > 0 && row.wrong == 0 && row.failed == 0 && broken_by(report, row) == 0;
}

const Row* fastest(const Rows& rows) {
  const auto found = std::max_element(rows.begin(), rows.end(),
                                      [](const Row* a, const Row* b) { return a->mops.median < b->mops.median; });
  return found == rows.end() ? nullptr : *found;
}

// Those whose figure is the least, or within `slack` of it.
template <typename Figure>
Rows least_of(const Rows& rows, double slack, Figure figure) {
  double least = figure(*rows.front());
  for (const Row* each : rows) least = std::min(least, figure(*each));
  Rows out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out),
               [&](const Row* each) { return figure(*each) <= least * (1 + slack); });
  return out;
}

template <typename Figure>
std::string id_of_least(const Rows& rows, Figure figure) {
  return rows.empty() ? "" : least_of(rows, 0, figure).front()->id;
}

// Of those that are about as fast as the fastest, one; and what has decided.
std::string choose(const Report& report, const Row& first, const Rows& close, std::string& id) {
  Rows left =
      least_of(close, 0, [&](const Row& row) { return static_cast<double>(count_of(open_marks(report, row))); });
  std::string by = "fewest marks";
  if (left.size() > 1) {
    left = least_of(left, kClose, [](const Row& row) { return row.server_cpu_us.median; });
    by = "least server CPU";
  }
  if (left.size() > 1) {
    left = least_of(left, 0, [](const Row& row) { return row.p99_us.median; });
    by = "least p99";
  }
  id = left.front()->id;
  if (close.size() == 1) return fmt::format("most ops a second, {:.3g} M", first.mops.median);
  std::string others;
  for (const Row* each : close) {
    if (each->id != id) others += (others.empty() ? "" : ", ") + each->id;
  }
  return fmt::format("{:.3g} M ops a second, within 5 % of {}; of these it has the {}", left.front()->mops.median,
                     others, by);
}

std::string left_out(const Report& report, const CaseReport& one, Class rank) {
  std::string out;
  for (const Row& row : one.rows) {
    if (row.rank != rank || !row.has_run() || is_in_the_running(report, row)) continue;
    std::string why = "unanswered";
    if (row.ops > 0) why = "failed ops";
    if (const uint8_t broken = broken_by(report, row); broken != 0) {
      why = "relies on " + names_of(broken) + ", which this device breaks";
    }
    if (row.wrong > 0) why = "wrong answers";
    out += fmt::format("{}{} ({})", out.empty() ? " Out: " : ", ", row.id, why);
  }
  return out.empty() ? out : out + ".";
}

}  // namespace

Verdict judge(const Report& report, const CaseReport& one, Class rank) {
  Verdict out;
  if (!report.has_times()) {
    out.why = "no verdict: counted only";
    return out;
  }
  Rows rows;
  for (const Row& row : one.rows) {
    if (row.rank == rank && is_in_the_running(report, row)) rows.push_back(&row);
  }
  if (rows.empty()) {
    out.why = "no verdict: nothing ran without a fault." + left_out(report, one, rank);
    return out;
  }
  const Row& first = *fastest(rows);
  Rows close;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(close), [&first](const Row* each) {
    return each == &first || each->mops.most >= first.mops.least * (1 - kClose);
  });
  out.why = choose(report, first, close, out.best) + "." + left_out(report, one, rank);
  Rows unmarked;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(unmarked),
               [&](const Row* each) { return open_marks(report, *each) == 0; });
  if (!unmarked.empty()) out.without_marks = fastest(unmarked)->id;
  out.best_p50 = id_of_least(rows, [](const Row& row) { return row.p50_us.median; });
  out.least_server_cpu = id_of_least(rows, [](const Row& row) { return row.server_cpu_us.median; });
  return out;
}

}  // namespace egret::bench_paradigms
