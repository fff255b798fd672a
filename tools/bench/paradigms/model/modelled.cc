#include "bench_paradigms/model/modelled.h"

#include <fmt/format.h>

namespace egret::bench_paradigms {

namespace {

constexpr double kWordsCached = 4096;  // an assumption: a card's cache holds so many words of atomics
constexpr double kNsPerUs = 1000;

Counted counted_of(const Report& report, const Row& row) {
  const Setting& setting = report.setting;
  Counted counted;
  counted.clients = row.clients;
  counted.servers = row.servers;
  counted.ops = static_cast<double>(row.ops);
  counted.server_cores = setting.server_cores;
  if (report.has_times()) counted.server_ns = row.server_cpu_us.median * kNsPerUs;
  counted.client_pairs = setting.clients * setting.server_cores;
  if (report.hosts.size() > 1) {  // the first stores
    counted.client_hosts = static_cast<double>(report.hosts.size() - 1);
    counted.client_threads = setting.clients / counted.client_hosts;
  }
  counted.words_are_cold = row.rank != Class::kSequencer && setting.keys > kWordsCached;
  counted.under_way = static_cast<double>(setting.clients) * setting.window;
  return counted;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& each : names) out += (out.empty() ? "" : ", ") + each;
  return out;
}

std::string line_of(const Report& report, const ModelledRow& modelled) {
  const auto& terms = modelled.prediction.terms;
  const std::string measured = report.has_times() ? fmt::format(" {:.3g} |", modelled.row->mops.median) : "";
  if (terms.empty()) return fmt::format("| `{}` | not known |{} – | – |\n", modelled.row->id, measured);
  if (!modelled.prediction.is_known()) {
    return fmt::format("| `{}` | at most {:.3g} |{} {}; not known for this card: {} | – |\n", modelled.row->id,
                       modelled.prediction.rate, measured, terms[0].what, list_of(modelled.prediction.unknown));
  }
  const std::string next = terms.size() > 1 ? fmt::format("{:.3g}, {}", terms[1].rate, terms[1].what) : "–";
  return fmt::format("| `{}` | {:.3g} |{} {} | {} |\n", modelled.row->id, modelled.prediction.rate, measured,
                     terms[0].what, next);
}

}  // namespace

std::vector<ModelledRow> model_rows(const Nic& nic, const Report& report, const CaseReport& one) {
  std::vector<ModelledRow> out;
  for (const Row& row : one.rows) {
    if (row.has_run() && row.ops > 0) out.push_back({&row, predict(nic, counted_of(report, row))});
  }
  return out;
}

const ModelledRow* best_of(const std::vector<ModelledRow>& rows, Class rank, uint8_t broken_marks) {
  const ModelledRow* best = nullptr;
  for (const ModelledRow& each : rows) {
    if (each.row->rank != rank || each.row->wrong > 0 || !each.prediction.is_known()) continue;
    if ((each.row->marks & broken_marks) != 0) continue;
    if (best == nullptr || each.prediction.rate > best->prediction.rate) best = &each;
  }
  return best;
}

std::string modelled_markdown(const Nic& nic, const Report& report, const CaseReport& one) {
  const std::vector<ModelledRow> rows = model_rows(nic, report, one);
  std::string out = fmt::format("Modelled on `{}` ({}), from the verbs above:\n\n", nic.name, nic.source);
  out += report.has_times()
             ? "| | modelled Mops/s | measured Mops/s | limited by | then by |\n| --- | ---: | ---: | --- | --- |\n"
             : "| | modelled Mops/s | limited by | then by |\n| --- | ---: | --- | --- |\n";
  for (const ModelledRow& each : rows) out += line_of(report, each);
  out += "\n";
  if (const ModelledRow* const best = best_of(rows, Class::kStore, report.setting.broken_marks); best != nullptr) {
    out += fmt::format("**Best store by the model: `{}`**: {:.3g} Mops/s; {} limits it. Modelled, not measured.\n",
                       best->row->id, best->prediction.rate, best->prediction.terms.front().what);
  }
  return out + "\n";
}

std::string limit_of(const Nic& nic, const Report& report, const CaseReport& one, std::string_view id) {
  for (const ModelledRow& each : model_rows(nic, report, one)) {
    if (each.row->id != id || !each.prediction.is_known()) continue;
    const Term& tightest = each.prediction.terms.front();
    return fmt::format("On `{}` {} limits it, at {:.3g} Mops/s by the model.", nic.name, tightest.what, tightest.rate);
  }
  return {};
}

}  // namespace egret::bench_paradigms
