#include "bench_paradigms/report/pictures.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "bench_paradigms/model/modelled.h"
#include "bench_paradigms/report/lines.h"
#include "bench_paradigms/report/names.h"
#include "bench_plot/scale.h"
#include "bench_plot/svg.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr double kPercent = 100;

// --- verbs of an op, as bars

constexpr double kBarsLeft = 130;
constexpr double kBarsRight = 820;
constexpr double kBarsTop = 110;
constexpr double kRowHeight = 38;
constexpr double kBarHeight = 13;

double verbs_of(const Row& row, const VerbCounts& counts, size_t verb) {
  return row.per_op(counts.of(static_cast<Verb>(verb)));
}

double most_verbs(const CaseReport& one) {
  double most = 1;
  for (const Row& row : one.rows) {
    for (const VerbCounts* const side : {&row.clients, &row.servers}) {
      double sum = 0;
      for (size_t verb = 0; verb < kVerbs; ++verb) sum += verbs_of(row, *side, verb);
      most = std::max(most, sum);
    }
  }
  return most;
}

void draw_side(bench_plot::Svg& svg, const Row& row, const VerbCounts& counts, double y, const bench_plot::Scale& x) {
  double from = 0;
  for (size_t verb = 0; verb < kVerbs; ++verb) {
    const double count = verbs_of(row, counts, verb);
    if (count <= 0) continue;
    svg.begin_group("bar", fmt::format("{}: {} {} an op", row.id, bench_plot::number_text(count), kVerbNames[verb]));
    svg.rect(x.at(from), y, x.at(from + count) - x.at(from), kBarHeight, bench_plot::colour_of(verb));
    svg.end_group();
    from += count;
  }
}

std::string draw_verbs(const CaseReport& one) {
  std::vector<const Row*> rows;
  for (const Row& row : one.rows) {
    if (row.has_run() && row.ops > 0) rows.push_back(&row);
  }
  const std::string title = "Verbs of an op";
  const std::string subtitle =
      fmt::format("counted; values of {} B, {:.4g} % gets; above what clients post, below what the server posts",
                  one.workload.value_bytes, one.workload.gets * kPercent);
  const double bottom = kBarsTop + kRowHeight * static_cast<double>(rows.size());
  bench_plot::Svg svg(900, bottom + 50, title, subtitle);
  svg.text(24, 32, title, {.size = 18, .is_bold = true});
  svg.text(24, 54, subtitle, bench_plot::kFaintText);
  for (size_t verb = 0; verb < kVerbs; ++verb) {
    const double x = 24 + 100 * static_cast<double>(verb);
    svg.rect(x, 70, 12, 12, bench_plot::colour_of(verb));
    svg.text(x + 18, 81, kVerbNames[verb], {});
  }
  const auto scale = bench_plot::Scale::linear(most_verbs(one), kBarsLeft, kBarsRight);
  for (const double tick : scale.ticks()) {
    svg.line(scale.at(tick), kBarsTop - 6, scale.at(tick), bottom, bench_plot::kGridStroke);
    svg.text(scale.at(tick), bottom + 18, bench_plot::tick_text(tick), {.anchor = bench_plot::Anchor::kMiddle});
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const double y = kBarsTop + kRowHeight * static_cast<double>(i);
    svg.text(kBarsLeft - 10, y + kBarHeight + 4, rows[i]->id, {.anchor = bench_plot::Anchor::kEnd});
    draw_side(svg, *rows[i], rows[i]->clients, y, scale);
    draw_side(svg, *rows[i], rows[i]->servers, y + kBarHeight + 2, scale);
  }
  return svg.finish();
}

// --- lines over the cases

// Mops/s of each row: measured where times mean something, else modelled; 0: neither.
double rate_of(const Report& report, const CaseReport& one, const Row& row) {
  if (report.has_times()) return row.mops.median;
  if (!report.nic) return 0;
  for (const ModelledRow& each : model_rows(*report.nic, report, one)) {
    if (each.row == &row) return each.prediction.rate;
  }
  return 0;
}

void add_point(std::vector<NamedLine>& lines, const std::string& name, double x, double y) {
  if (x <= 0 || y <= 0) return;
  auto at = std::find_if(lines.begin(), lines.end(), [&](const NamedLine& line) { return line.name == name; });
  if (at == lines.end()) at = lines.insert(lines.end(), {name, {}});
  at->points.emplace_back(x, y);
}

// Cases with this share of gets, as fast as answers come.
LineChart rates_by_size(const Report& report, double gets) {
  LineChart chart;
  chart.title = report.has_times() ? "Rate by value size" : "Rate by value size, modelled";
  chart.subtitle = fmt::format("{:.4g} % gets; {}", gets * kPercent,
                               report.has_times() || !report.nic ? report.device.device : report.nic->source);
  chart.x_name = "bytes of a value (logarithmic)";
  chart.y_name = "Mops/s";
  chart.is_x_logarithmic = true;
  for (const CaseReport& one : report.cases) {
    if (one.workload.gets != gets || one.workload.rate > 0) continue;
    for (const Row& row : one.rows) {
      if (row.rank != Class::kSequencer && row.has_run()) {
        add_point(chart.lines, row.id, one.workload.value_bytes, rate_of(report, one, row));
      }
    }
  }
  return chart;
}

LineChart latency_by_rate(const Report& report, const Case& like) {
  LineChart chart;
  chart.title = "Latency by rate";
  chart.subtitle = fmt::format("p50 from when an op was due; values of {} B, {:.4g} % gets; {}", like.value_bytes,
                               like.gets * kPercent, report.device.device);
  chart.x_name = "Mops/s";
  chart.y_name = "p50, µs (logarithmic)";
  chart.is_y_logarithmic = true;
  for (const CaseReport& one : report.cases) {
    if (one.workload.rate <= 0 || one.workload.value_bytes != like.value_bytes || one.workload.gets != like.gets)
      continue;
    for (const Row& row : one.rows) {
      if (row.has_run()) add_point(chart.lines, row.id, row.mops.median, row.p50_us.median);
    }
  }
  return chart;
}

bool has_two_points(const LineChart& chart) {
  return std::any_of(chart.lines.begin(), chart.lines.end(),
                     [](const NamedLine& line) { return line.points.size() > 1; });
}

}  // namespace

std::vector<Picture> draw_pictures(const Report& report) {
  std::vector<Picture> out;
  std::set<double> gets_drawn;
  std::set<std::pair<uint32_t, double>> latencies_drawn;
  for (const CaseReport& one : report.cases) {
    const Case& load = one.workload;
    const std::string suffix = fmt::format("-{}B-{:.4g}", load.value_bytes, load.gets * kPercent);
    if (load.rate == 0) out.push_back({"verbs" + suffix + ".svg", draw_verbs(one)});
    if (load.rate == 0 && gets_drawn.insert(load.gets).second) {
      const LineChart chart = rates_by_size(report, load.gets);
      if (has_two_points(chart)) {
        out.push_back({fmt::format("rate-by-size-{:.4g}.svg", load.gets * kPercent), draw_lines(chart)});
      }
    }
    if (load.rate > 0 && report.has_times() && latencies_drawn.insert({load.value_bytes, load.gets}).second) {
      const LineChart chart = latency_by_rate(report, load);
      if (has_two_points(chart)) out.push_back({"latency-by-rate" + suffix + ".svg", draw_lines(chart)});
    }
  }
  return out;
}

Status write_pictures(const Report& report, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Status::error("cannot make " + folder + ": " + error.message());
  for (const Picture& picture : draw_pictures(report)) {
    std::ofstream file(folder + "/" + picture.name, std::ios::trunc);
    file << picture.svg;
    file.close();
    if (!file) return Status::error("cannot write " + folder + "/" + picture.name);
  }
  return Status::ok();
}

}  // namespace egret::bench_paradigms
