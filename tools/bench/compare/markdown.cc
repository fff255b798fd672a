// The report as Markdown: tables for the README and for those who read them in a terminal.
#include <algorithm>
#include <array>
#include <thread>

#include <fmt/format.h>

#include "bench_compare/report.h"

namespace egret::bench_compare {
namespace {

using bench::Sending;

// With thousands apart, and about three digits of what is small.
std::string number_text(double value) {
  if (value < 10) return fmt::format("{:.2f}", value);
  if (value < 100) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
}

// Of a ratio, or of a figure that has a goal of its own.
std::string value_text(double value) {
  return value < 1000 ? fmt::format("{:.2f}", value) : number_text(value);
}
std::string target_text(double target) {
  return target < 1000 ? fmt::format("{:.4g}", target) : number_text(target);
}

const char* mark(const Goal& goal, const bench::Ratio& ratio) {
  return judge(goal, ratio) == Verdict::kMet ? "✓" : "✗";
}

// "≤ 1.2 ✓, then 1 ✗"
std::string verdict_text(const Goal& goal, const bench::Ratio& ratio) {
  std::string out =
      fmt::format("{} {} {}", goal.bound == Bound::kAtMost ? "≤" : "≥", target_text(goal.target), mark(goal, ratio));
  if (goal.later != 0) out += fmt::format(", then {} {}", target_text(goal.later), mark(later_of(goal), ratio));
  return out;
}

std::string ratio_text(const bench::Ratio& ratio, bool is_bold) {
  const std::string_view bold = is_bold ? "**" : "";
  return fmt::format("{0}{1}{0} ({2}–{3})", bold, value_text(ratio.median), value_text(ratio.min),
                     value_text(ratio.max));
}

// A figure of a table's subject beside a peer's.
struct Column {
  Figure figure;
  std::string_view peer;
  std::string_view title;
};
struct RatiosTable {
  std::string_view subject;
  std::vector<Column> columns;
};
const RatiosTable kEgretTable{kEgret,
                              {{kCpu, kMemcached, "CPU per op ÷ memcached's"},
                               {kThroughput, kMemcached, "throughput ÷ memcached's"},
                               {kCpu, kTwemproxy, "CPU per op ÷ twemproxy + memcached"}}};
const RatiosTable kBetweenHostsTable{kEgret,
                                     {{kCpu, kTwemproxy, "CPU per op ÷ twemproxy + memcached"},
                                      {kThroughput, kTwemproxy, "throughput ÷ twemproxy + memcached"}}};
const RatiosTable kOneProcessTable{kOneProcess,
                                   {{kCpu, kMemcached, "one process: CPU per op ÷ memcached's"},
                                    {kThroughput, kMemcached, "throughput ÷ memcached's"},
                                    {kP99, kMemcached, "p99 ÷ memcached's"},
                                    {kCpu, kEgret, "CPU per op ÷ two daemons'"},
                                    {kThroughput, kEgret, "throughput ÷ two daemons'"}}};

// "**1.13** (1.10–1.15) / 0.80 (0.75–0.84) ≤ 1 ✗": at once / in rounds, as far as measured. The worse is bold, and is
// what the goal is judged by. Without a target the ratios alone.
std::string goal_cell(const RowResult& result, const Goal& goal, bool has_target) {
  const Worse worse = worse_of(result, goal);
  if (worse.ratio.median == 0) return "–";
  std::string out;
  for (const Sending sending : result.row.sendings) {
    const bench::Ratio ratio = ratio_between(result, goal.figure, goal.subject, goal.peer, sending);
    if (ratio.median != 0) out += (out.empty() ? "" : " / ") + ratio_text(ratio, sending == worse.sending);
  }
  return has_target ? out + " " + verdict_text(goal, worse.ratio) : out;
}

std::string column_cell(const RowResult& result, const std::vector<Goal>& goals, std::string_view subject,
                        const Column& column) {
  for (const Goal& each : goals) {
    if (each.subject == subject && each.figure.key == column.figure.key && each.peer == column.peer)
      return goal_cell(result, each, /*has_target=*/true);
  }
  const Bound bound = column.figure.key == kThroughput.key ? Bound::kAtLeast : Bound::kAtMost;
  return goal_cell(result, {column.figure, column.peer, bound, 0, 0, subject}, /*has_target=*/false);
}

// The subject's goals that have no column of their own.
std::string further_goals(const RowResult& result, const std::vector<Goal>& goals, const RatiosTable& table) {
  std::string out;
  for (const Goal& each : goals) {
    const bool has_column = std::any_of(table.columns.begin(), table.columns.end(), [&each](const Column& column) {
      return column.figure.key == each.figure.key && column.peer == each.peer;
    });
    if (has_column || each.subject != table.subject) continue;
    if (!out.empty()) out += "; ";
    out += each.peer.empty() ? fmt::format("{}, {}: ", each.figure.name, each.figure.unit)
                             : fmt::format("{} ÷ {}'s: ", each.figure.name, each.peer);
    out += goal_cell(result, each, /*has_target=*/true);
  }
  return out.empty() ? "–" : out;
}

bool has_ops_of(const RowResult& result, std::string_view contender) {
  return std::any_of(result.series.begin(), result.series.end(), [contender](const Series& each) {
    return each.contender == contender && !each.values(kCpu).empty();
  });
}

// All rows of Egret, or those in which another subject has answered.
std::string ratios_table(const Report& report, const RatiosTable& table) {
  std::string head = "| workload |";
  std::string line = "\n| --- |";
  for (const Column& column : table.columns) {
    head += fmt::format(" {} |", column.title);
    line += " --- |";
  }
  std::string out = head + " further |" + line + " --- |\n";
  for (const RowResult& each : report.rows) {
    if (table.subject != kEgret && !has_ops_of(each, table.subject)) continue;
    const std::vector<Goal> goals = goals_against(each.row, report.version_of(kMemcached));
    out += fmt::format("| {} |", each.row.name);
    for (const Column& column : table.columns)
      out += fmt::format(" {} |", column_cell(each, goals, table.subject, column));
    out += fmt::format(" {} |\n", further_goals(each, goals, table));
  }
  return out;
}

// How the requests of a row are sent; "–" where none are.
std::string_view sending_text(const RowResult& result, Sending sending) {
  if (result.row.kind == Kind::kIdleMemory) return "–";
  return result.row.load.rate > 0 ? "paced" : name_of(sending);
}

std::string_view change_text(Change change) {
  constexpr std::array<std::string_view, 4> kTexts{"not measured", "within the spread", "better beyond the spread",
                                                   "**worse beyond the spread**"};
  return kTexts[static_cast<size_t>(change)];
}

std::string base_line(const RowResult& result, const BesideBase& beside, Sending sending, Change change) {
  const std::string_view who = beside.subject == kEgret ? "" : ", one process";
  std::string out = fmt::format("| {}{} | {} |", result.row.name, who, sending_text(result, sending));
  for (const Figure& figure : {kCpu, kThroughput, kP99, kMemory}) {
    const bench::Ratio ratio = ratio_between(result, figure, beside.subject, beside.base, sending);
    out += fmt::format(" {} |", ratio.median == 0 ? "–" : ratio_text(ratio, /*is_bold=*/true));
  }
  return out + fmt::format(" {} |\n", change_text(change));
}

// Today's build over the base commit's: Egret, then the one process. A line for each row and way of sending; below them, how many are
// worse.
std::string base_table(const Report& report) {
  std::string out =
      "| workload | sent | CPU per op ÷ base's | throughput ÷ base's | p99 ÷ base's | resident ÷ base's | verdict |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  size_t worse = 0;
  for (const RowResult& each : report.rows) {
    for (const BesideBase& beside : kBesideBase) {
      for (const Sending sending : each.row.sendings) {
        if (each.find(beside.base, sending) == nullptr) continue;  // it takes no part
        const Change change = change_of(each, beside, sending);
        if (change == Change::kWorse) ++worse;
        out += base_line(each, beside, sending, change);
      }
    }
  }
  const std::string count = worse == 0 ? "no" : std::to_string(worse);
  return out + fmt::format("\nBeside {} {}: {} {} worse beyond the spread.\n", kBase, report.version_of(kBase), count,
                           worse == 1 ? "line is" : "lines are");
}

// "7.20 / 9.42 / 20.1", in the order of the contenders.
std::string figure_cell(const Report& report, const RowResult& result, Figure figure, Sending sending) {
  std::string out;
  bool has_any = false;
  for (const Contender& each : report.contenders.present) {
    const Series* const series = result.find(each.name, sending);
    const bool has = series != nullptr && !series->values(figure).empty();
    has_any |= has;
    out += (out.empty() ? "" : " / ") + (has ? number_text(series->median(figure)) : std::string("–"));
  }
  return has_any ? out : "–";
}

std::string further_figures(const Report& report, const RowResult& result, Sending sending) {
  std::string out;
  for (const Figure& figure : {kKept, kMemory}) {
    const std::string cell = figure_cell(report, result, figure, sending);
    const std::string_view gap = figure.unit.empty() ? "" : " ";
    if (cell != "–") out += fmt::format("{}{}{}: {}", figure.name, gap, figure.unit, cell);
  }
  return out.empty() ? "–" : out;
}

std::string figures_table(const Report& report) {
  std::string names;
  for (const Contender& each : report.contenders.present) names += (names.empty() ? "" : " / ") + each.name;
  std::string out = fmt::format("| {} | sent | CPU µs/op | ops/s | p50 µs | p99 µs | further |\n", names) +
                    "| --- | --- | ---: | ---: | ---: | ---: | --- |\n";
  for (const RowResult& each : report.rows) {
    for (const Sending sending : each.row.sendings) {
      out += fmt::format("| {} | {} |", each.row.name, sending_text(each, sending));
      for (const Figure& figure : {kCpu, kThroughput, kP50, kP99}) {
        out += fmt::format(" {} |", figure_cell(report, each, figure, sending));
      }
      out += fmt::format(" {} |\n", further_figures(report, each, sending));
    }
  }
  return out;
}

// "Egret 0.2.0, memcached 1.6.45 (`memcached -t 1`)"
std::string who_took_part(const Report& report) {
  std::string who;
  for (const Contender& each : report.contenders.present) {
    who += fmt::format("{}{} {}", who.empty() ? "" : ", ", each.name, each.version);
    if (!each.command.empty()) who += fmt::format(" (`{}`)", each.command);
  }
  return who;
}

std::string preface(const Report& report) {
  std::string out = fmt::format(
      "{}: {} rounds of {:g} s each, all in turn, on {} CPUs that the load generator shares. Median (least–greatest) "
      "of the rounds' ratios. Where there are two, the first is of clients that go on **at once**, the second of "
      "clients in **rounds**; the worse is bold, and the goal is judged by it.\n",
      who_took_part(report), report.rounds.rounds, report.duration_s, std::thread::hardware_concurrency());
  if (report.is_between_hosts) {
    out += fmt::format(
        "Between two hosts, which are network namespaces of one machine with a veth pair between them: clients, "
        "egret-proxy and twemproxy on one, egret-backend (`tcp:`) and memcached on the other. TCP's congestion control "
        "is `{}` in both. CPU is that of all processes of a contender.\n",
        report.congestion);
  }
  for (const std::string& each : report.contenders.left_out) out += each + ".\n";
  if (!report.is_between_hosts && is_older(report.version_of(kMemcached))) {
    out +=
        "The goals are against memcached 1.6.45. 1.6.18 sends every answer of a text pipeline by itself and costs "
        "twice as much there or more, so beside a memcached older than 1.6.45 the CPU goals at depth 16 are halved, "
        "and the throughput goals doubled (not those of the binary protocol, whose answers it collects).\n";
  }
  return out;
}

}  // namespace

std::string to_markdown(const Report& report) {
  std::string out = preface(report) + "\n";
  if (report.has(kBase)) out += base_table(report) + "\n";
  if (report.has(kOneProcess)) out += ratios_table(report, kOneProcessTable) + "\n";
  out += ratios_table(report, report.is_between_hosts ? kBetweenHostsTable : kEgretTable);
  return out + "\n" + figures_table(report);
}

}  // namespace egret::bench_compare
