// The report as Markdown: a table for each workload, sequencers apart, what did not run and why, and the verdict.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench_paradigms/model/modelled.h"
#include "bench_paradigms/report/names.h"
#include "bench_paradigms/report/report.h"
#include "bench_paradigms/report/verdict.h"

namespace egret::bench_paradigms {
namespace {

constexpr double kPercent = 100;

// Three digits, and no exponent for large ones.
std::string number(double value) {
  return value < 999.5 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

std::string with_range(const Spread& spread) {
  if (spread.least == spread.most) return number(spread.median);
  return fmt::format("{} ({}–{})", number(spread.median), number(spread.least), number(spread.most));
}

// "1 RC WRITE, 2.01 RC READ"
std::string verbs(const Row& row, const VerbCounts& counts) {
  std::string out;
  for (size_t type = 0; type < kPairTypes; ++type) {
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      const uint64_t count = counts.posted[type][verb];
      if (count == 0) continue;
      out += fmt::format("{}{} {} {}", out.empty() ? "" : ", ", number(row.per_op(count)), kPairNames[type],
                         kVerbNames[verb]);
    }
  }
  return out.empty() ? "0" : out;
}

std::string both(const Row& row, uint64_t VerbCounts::*field) {
  return number(row.per_op(row.clients.*field)) + " / " + number(row.per_op(row.servers.*field));
}

uint64_t sum(const Row& row, uint64_t VerbCounts::*field) {
  return row.clients.*field + row.servers.*field;
}

std::string steps(const Row& row) {
  if (row.expected_steps == 0) return "–";
  return number(reads_of_a_get(row)) + " / " + number(row.expected_steps);
}

std::string count(uint64_t value) {
  return value == 0 ? "0" : fmt::format("**{}**", value);
}

// A column: its head, and what a row has there.
struct Column {
  std::string_view head;
  bool is_of_times;
  std::string (*cell)(const Row& row);
};
constexpr std::array kColumns = {
    Column{"Mops/s", true, [](const Row& row) { return with_range(row.mops); }},
    Column{"p50 µs", true, [](const Row& row) { return number(row.p50_us.median); }},
    Column{"p99 µs", true, [](const Row& row) { return number(row.p99_us.median); }},
    Column{"client CPU µs/op", true, [](const Row& row) { return number(row.client_cpu_us.median); }},
    Column{"server CPU µs/op", true, [](const Row& row) { return number(row.server_cpu_us.median); }},
    Column{"client's verbs/op", false, [](const Row& row) { return verbs(row, row.clients); }},
    Column{"server's verbs/op", false, [](const Row& row) { return verbs(row, row.servers); }},
    Column{"READs/get counted / expected", false, steps},
    Column{"doorbells/op", false, [](const Row& row) { return both(row, &VerbCounts::doorbells); }},
    Column{"payload B/op", false,
           [](const Row& row) { return number(row.per_op(sum(row, &VerbCounts::payload_bytes))); }},
    Column{"wire B/op", false, [](const Row& row) { return number(row.per_op(sum(row, &VerbCounts::wire_bytes))); }},
    Column{"retries", false, [](const Row& row) { return fmt::format("{}", row.trouble.retries); }},
    Column{"vain", false, [](const Row& row) { return fmt::format("{}", row.trouble.vain); }},
    Column{"wrong", false, [](const Row& row) { return count(row.wrong); }},
    Column{"lost", false, [](const Row& row) { return count(row.lost); }},
    Column{"failed", false, [](const Row& row) { return count(row.failed + row.unanswered); }},
    Column{"stuck", false, [](const Row& row) { return count(row.trouble.stuck); }},
    Column{"relies on", false, [](const Row& row) { return row.marks == 0 ? "–" : names_of(row.marks); }},
};

std::string table(const Report& report, const CaseReport& one, Class rank) {
  std::string rows;
  for (const Row& row : one.rows) {
    if (row.rank != rank || !row.has_run()) continue;
    rows += "| `" + row.id + "` |";
    for (const Column& column : kColumns) {
      if (!column.is_of_times || !report.is_in_memory) rows += " " + column.cell(row) + " |";
    }
    rows += "\n";
  }
  if (rows.empty()) return "";
  std::string head = fmt::format("| {} |", kClassNames[static_cast<size_t>(rank)]);
  std::string line = "| --- |";
  for (const Column& column : kColumns) {
    if (column.is_of_times && report.is_in_memory) continue;
    head += fmt::format(" {} |", column.head);
    line += " ---: |";
  }
  return head + "\n" + line + "\n" + rows + "\n";
}

std::string verdict_lines(const Report& report, const CaseReport& one, Class rank, std::string_view of) {
  const Verdict verdict = judge(report, one, rank);
  if (verdict.best.empty()) return fmt::format("**{}**: {}\n", of, verdict.why);
  std::string out = fmt::format("**{}: `{}`**: {}\n", of, verdict.best, verdict.why);
  const std::string unmarked = verdict.without_marks.empty() ? "none" : "`" + verdict.without_marks + "`";
  out += fmt::format("Best that relies on nothing: {}; best p50: `{}`; least server CPU: `{}`.\n", unmarked,
                     verdict.best_p50, verdict.least_server_cpu);
  const std::string limit = report.nic ? limit_of(*report.nic, report, one, verdict.best) : "";
  return limit.empty() ? out : out + limit + "\n";
}

bool has_class(const CaseReport& one, Class rank) {
  for (const Row& row : one.rows) {
    if (row.rank == rank && row.has_run()) return true;
  }
  return false;
}

std::string title(const CaseReport& one) {
  std::string out =
      fmt::format("## Values of {} B, {:.4g} % gets", one.workload.value_bytes, one.workload.gets * kPercent);
  if (one.workload.rate > 0) out += fmt::format(", {:.4g} ops/s on schedule", one.workload.rate);
  return out + "\n\n";
}

std::string case_text(const Report& report, const CaseReport& one) {
  std::string out = title(one);
  for (const Class rank : {Class::kStore, Class::kBound, Class::kSequencer}) out += table(report, one, rank);
  std::string wrong;
  for (const Row& row : one.rows) {
    if (!row.has_run()) out += fmt::format("- `{}`: not available: {}\n", row.id, row.not_available);
    if (row.trouble.messages > 0) {
      const double each = static_cast<double>(row.ops) / static_cast<double>(row.trouble.messages);
      out += fmt::format("- `{}`: {:.3g} ops a message; its verbs are those of messages\n", row.id, each);
    }
    if (row.wrong > 0) wrong += fmt::format("- `{}`: {} wrong, first {}\n", row.id, row.wrong, row.first_wrong);
  }
  out += wrong + "\n" + verdict_lines(report, one, Class::kStore, "Best store");
  if (has_class(one, Class::kSequencer)) out += verdict_lines(report, one, Class::kSequencer, "Best sequencer");
  if (report.nic) out += "\n" + modelled_markdown(*report.nic, report, one);
  return out + "\n";
}

std::string setting_text(const Report& report) {
  const Setting& setting = report.setting;
  std::string out = "# Paradigms of remote memory\n\n";
  for (const std::string& host : report.hosts) out += "- " + host + "\n";
  out += fmt::format(
      "- {} keys of {} B, {}; {} of no gets erase; {} server core(s), {} client(s), window {}\n", setting.keys,
      setting.key_bytes, setting.zipf > 0 ? fmt::format("Zipf {:.3g}", setting.zipf) : "uniform",
      fmt::format("{:.3g} %", setting.erases * kPercent), setting.server_cores, setting.clients, setting.window);
  out += fmt::format("- {}; {}; seed {}{}\n", setting.tuning.as_paper ? "as the papers" : "the safe variants",
                     setting.tuning.is_synchronous ? "every post waited for" : "pipelined", setting.seed,
                     setting.preset.empty() ? "" : "; preset " + setting.preset);
  const std::string changes = changes_of(setting.tuning);
  out += fmt::format("- {:.3g} % of an exposed table's entries hold a key, and {:.3g} % of nessie's words{}\n",
                     setting.tuning.load * kPercent, setting.tuning.index_load * kPercent,
                     changes.empty() ? "; all options of variants as by default" : "; changed: " + changes);
  if (const uint8_t kept = kept_marks(report); kept != 0 && !report.is_in_memory) {
    out +=
        fmt::format("- the device promises what is called {} below: it does not count against a row\n", names_of(kept));
  }
  out += setting.ops > 0 ? fmt::format("- {} round(s) of {} ops\n\n", setting.rounds, setting.ops)
                         : fmt::format("- {} round(s) of {:.3g} s, all in turn, each after {:.3g} s; medians\n\n",
                                       setting.rounds, setting.round_s, setting.warm_up_s);
  if (report.is_in_memory) {
    out +=
        "**All nodes in one thread of this process, no device: verbs and answers are counted, nothing is timed.**\n\n";
  } else if (report.device.is_emulated) {
    out +=
        "**An emulated RDMA device (Soft-RoCE or Soft-iWARP): counts are right; no time or rate below says anything\n"
        "about RDMA.**\n\n";
  }
  return out;
}

constexpr std::string_view kLegend =
    "Verbs and bytes are those that were posted; doorbells are the client's / the server's; wire bytes count packets'\n"
    "heads (RoCE v2). Vain: fetches before their result.";
constexpr std::string_view kLegendOfTimes = " Server CPU is that of passes that found something to do.";
constexpr std::string_view kLegendOfMarks = "\nWhat a row relies on, and the verbs do not promise: ";

std::string legend(const Report& report) {
  std::string out(kLegend);
  if (!report.is_in_memory) out += kLegendOfTimes;
  out += kLegendOfMarks;
  for (const MarkName& each : kMarkNames) {
    out += fmt::format("{}{} ({})", &each == kMarkNames.data() ? "" : "; ", each.name, each.meaning);
  }
  return out + ".\n";
}

}  // namespace

std::string to_markdown(const Report& report) {
  std::string out = setting_text(report);
  for (const CaseReport& each : report.cases) out += case_text(report, each);
  return out + legend(report);
}

}  // namespace egret::bench_paradigms
