// The report as Markdown: tables for the README and for those who read them in a terminal.
#include <algorithm>
#include <array>
#include <thread>

#include <fmt/format.h>

#include "bench_compare/report.h"

namespace egret::bench_compare {
namespace {

using bench::Sending;

const char* mark(const Goal& goal, const bench::Ratio& ratio) {
  return judge(goal, ratio) == Verdict::kMet ? "✓" : "✗";
}

// "≤ 1.2 ✓, then 1 ✗"
std::string verdict_text(const Goal& goal, const bench::Ratio& ratio) {
  std::string out =
      fmt::format("{} {:.4g} {}", goal.bound == Bound::kAtMost ? "≤" : "≥", goal.target, mark(goal, ratio));
  if (goal.later != 0) out += fmt::format(", then {:.4g} {}", goal.later, mark(later_of(goal), ratio));
  return out;
}

std::string ratio_text(const bench::Ratio& ratio, bool is_bold) {
  const std::string median = is_bold ? fmt::format("**{:.2f}**", ratio.median) : fmt::format("{:.2f}", ratio.median);
  return fmt::format("{} ({:.2f}–{:.2f})", median, ratio.min, ratio.max);
}

// "**1.13** (1.10–1.15) / 0.80 (0.75–0.84) ≤ 1 ✗": at once / in rounds, as far as measured. The worse is bold, and is
// what the goal is judged by. Without a goal the ratios alone.
std::string goal_cell(const RowResult& result, const std::vector<Goal>& goals, Figure figure, std::string_view peer) {
  const auto found = std::find_if(goals.begin(), goals.end(),
                                  [&](const Goal& each) { return each.figure.key == figure.key && each.peer == peer; });
  const Bound bound = figure.key == kThroughput.key ? Bound::kAtLeast : Bound::kAtMost;
  const Goal goal = found == goals.end() ? Goal{figure, peer, bound} : *found;
  const Worse worse = worse_of(result, goal);
  if (worse.ratio.median == 0) return "–";
  std::string out;
  for (const Sending sending : result.row.sendings) {
    const bench::Ratio ratio = ratio_of(result, figure, peer, sending);
    if (ratio.median != 0) out += (out.empty() ? "" : " / ") + ratio_text(ratio, sending == worse.sending);
  }
  return found == goals.end() ? out : out + " " + verdict_text(goal, worse.ratio);
}

// The goals that have no column of their own.
std::string further_goals(const RowResult& result, const std::vector<Goal>& goals) {
  std::string out;
  for (const Goal& each : goals) {
    if (each.figure.key == kCpu.key || each.figure.key == kThroughput.key) continue;
    if (!out.empty()) out += "; ";
    out += each.peer.empty() ? fmt::format("{}, {}: ", each.figure.name, each.figure.unit)
                             : fmt::format("{} ÷ {}'s: ", each.figure.name, each.peer);
    out += goal_cell(result, goals, each.figure, each.peer);
  }
  return out.empty() ? "–" : out;
}

std::string goals_table(const Report& report) {
  std::string out =
      "| workload | CPU per op ÷ memcached's | throughput ÷ memcached's | CPU per op ÷ twemproxy + memcached | "
      "further |\n| --- | --- | --- | --- | --- |\n";
  for (const RowResult& each : report.rows) {
    const std::vector<Goal> goals = goals_against(each.row, report.version_of(kMemcached));
    out += fmt::format("| {} | {} | {} | {} | {} |\n", each.row.name, goal_cell(each, goals, kCpu, kMemcached),
                       goal_cell(each, goals, kThroughput, kMemcached), goal_cell(each, goals, kCpu, kTwemproxy),
                       further_goals(each, goals));
  }
  return out;
}

// The same between two hosts, where all goals are against twemproxy.
std::string between_hosts_table(const Report& report) {
  std::string out =
      "| workload | CPU per op ÷ twemproxy + memcached | throughput ÷ twemproxy + memcached | further |\n"
      "| --- | --- | --- | --- |\n";
  for (const RowResult& each : report.rows) {
    out += fmt::format("| {} | {} | {} | {} |\n", each.row.name, goal_cell(each, each.row.goals, kCpu, kTwemproxy),
                       goal_cell(each, each.row.goals, kThroughput, kTwemproxy), further_goals(each, each.row.goals));
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

std::string base_cell(const RowResult& result, Figure figure, Sending sending) {
  const bench::Ratio ratio = ratio_of(result, figure, kBase, sending);
  return ratio.median == 0 ? "–" : ratio_text(ratio, /*is_bold=*/true);
}

// Egret over the base commit's, a line for each row and way of sending, and how many are worse.
std::string base_table(const Report& report) {
  std::string out =
      "| workload | sent | CPU per op ÷ base's | throughput ÷ base's | p99 ÷ base's | resident ÷ base's | verdict |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n";
  size_t worse = 0;
  for (const RowResult& each : report.rows) {
    for (const Sending sending : each.row.sendings) {
      const Change change = change_of(each, sending);
      if (change == Change::kWorse) ++worse;
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", each.row.name, sending_text(each, sending),
                         base_cell(each, kCpu, sending), base_cell(each, kThroughput, sending),
                         base_cell(each, kP99, sending), base_cell(each, kMemory, sending), change_text(change));
    }
  }
  const std::string count = worse == 0 ? "no" : std::to_string(worse);
  return out + fmt::format("\nBeside {} {}: {} {} worse beyond the spread.\n", kBase, report.version_of(kBase), count,
                           worse == 1 ? "line is" : "lines are");
}

std::string between_cell(const RowResult& result, Figure figure, std::string_view peer, Sending sending) {
  const bench::Ratio ratio = ratio_between(result, figure, kOneProcess, peer, sending);
  return ratio.median == 0 ? "–" : ratio_text(ratio, /*is_bold=*/true);
}

// The one process over memcached and over the two daemons, a line for each row and way of sending.
std::string one_process_table(const Report& report) {
  std::string out =
      "| workload | sent | one process: CPU per op ÷ memcached's | throughput ÷ memcached's | p99 ÷ memcached's | CPU "
      "per op ÷ two daemons' | throughput ÷ two daemons' |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const RowResult& each : report.rows) {
    for (const Sending sending : each.row.sendings) {
      if (ratio_between(each, kCpu, kOneProcess, kEgret, sending).median == 0) continue;  // it takes no part
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", each.row.name, sending_text(each, sending),
                         between_cell(each, kCpu, kMemcached, sending),
                         between_cell(each, kThroughput, kMemcached, sending),
                         between_cell(each, kP99, kMemcached, sending), between_cell(each, kCpu, kEgret, sending),
                         between_cell(each, kThroughput, kEgret, sending));
    }
  }
  return out;
}

// With thousands apart, and about three digits of what is small.
std::string number_text(double value) {
  if (value < 10) return fmt::format("{:.2f}", value);
  if (value < 100) return fmt::format("{:.1f}", value);
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t place = digits.size(); place > 3; place -= 3) digits.insert(place - 3, 1, ',');
  return digits;
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
    out +=
        "Between two hosts, which are network namespaces of one machine with a veth pair between them: clients, "
        "egret-proxy and twemproxy on one, egret-backend (`tcp:`) and memcached on the other. CPU is that of all "
        "processes of a contender.\n";
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
  if (report.has(kOneProcess)) out += one_process_table(report) + "\n";
  const std::string goals = report.is_between_hosts ? between_hosts_table(report) : goals_table(report);
  return out + goals + "\n" + figures_table(report);
}

}  // namespace egret::bench_compare
