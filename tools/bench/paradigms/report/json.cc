// The report as JSON: every workload, every row, every count.
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_paradigms/model/modelled.h"
#include "bench_paradigms/report/names.h"
#include "bench_paradigms/report/report.h"
#include "bench_paradigms/report/verdict.h"

namespace egret::bench_paradigms {
namespace {

using Json = nlohmann::ordered_json;

// More digits than a measurement has make a long file.
double rounded(double value) {
  return std::stod(fmt::format("{:.6g}", value));
}

Json spread_json(const Spread& spread) {
  return {{"median", rounded(spread.median)}, {"least", rounded(spread.least)}, {"most", rounded(spread.most)}};
}

Json marks_json(uint8_t marks) {
  Json out = Json::array();
  for (const MarkName& each : kMarkNames) {
    if ((marks & each.mark) != 0) out.push_back(each.name);
  }
  return out;
}

// Of one side: an op's.
Json verbs_json(const Row& row, const VerbCounts& counts) {
  Json by_type = Json::object();
  for (size_t type = 0; type < kPairTypes; ++type) {
    Json of_type = Json::object();
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      const uint64_t count = counts.posted[type][verb];
      if (count > 0) of_type[std::string(kVerbNames[verb])] = rounded(row.per_op(count));
    }
    if (!of_type.empty()) by_type[std::string(kPairNames[type])] = std::move(of_type);
  }
  return {{"verbs", std::move(by_type)},
          {"doorbells", rounded(row.per_op(counts.doorbells))},
          {"receive_doorbells", rounded(row.per_op(counts.receive_doorbells))},
          {"signalled", rounded(row.per_op(counts.signalled))},
          {"inlined", rounded(row.per_op(counts.inlined))},
          {"payload_bytes", rounded(row.per_op(counts.payload_bytes))},
          {"wire_bytes", rounded(row.per_op(counts.wire_bytes))}};
}

Json faults_json(const Row& row) {
  Json out = Json::object();
  for (size_t i = 1; i < kFaults; ++i) {
    if (row.faults[i] > 0) out[std::string(name_of(static_cast<Fault>(i)))] = row.faults[i];
  }
  return out;
}

Json answers_json(const Row& row) {
  return {{"ops", row.ops},
          {"gets", row.gets},
          {"hits", row.hits},
          {"misses", row.misses},
          {"done", row.done},
          {"full", row.full},
          {"lost", row.lost},
          {"failed", row.failed},
          {"wrong", row.wrong},
          {"unanswered", row.unanswered},
          {"faults", faults_json(row)},
          {"first_wrong", row.first_wrong}};
}

Json times_json(const Row& row) {
  return {{"mops", spread_json(row.mops)},
          {"p50_us", spread_json(row.p50_us)},
          {"p99_us", spread_json(row.p99_us)},
          {"client_cpu_us", spread_json(row.client_cpu_us)},
          {"server_cpu_us", spread_json(row.server_cpu_us)},
          {"server_cpu_with_polling_us", spread_json(row.server_spin_us)}};
}

Json row_json(const Report& report, const Row& row) {
  Json out = {{"id", row.id},
              {"title", row.title},
              {"source", row.source},
              {"class", kClassNames[static_cast<size_t>(row.rank)]},
              {"relies_on", marks_json(row.marks)}};
  if (!row.has_run()) {
    out["not_available"] = row.not_available;
    return out;
  }
  out["answers"] = answers_json(row);
  if (!report.is_in_memory) out["times"] = times_json(row);
  out["client"] = verbs_json(row, row.clients);
  out["server"] = verbs_json(row, row.servers);
  out["retries"] = row.trouble.retries;
  out["vain"] = row.trouble.vain;
  out["stuck"] = row.trouble.stuck;
  out["answered_by_read"] = row.trouble.reads;
  if (row.trouble.messages > 0) {
    out["messages"] = row.trouble.messages;
    out["asked_for_replies"] = row.trouble.wants;
  }
  if (row.expected_steps > 0) {
    out["steps_of_a_get"] = {{"expected", rounded(row.expected_steps)}, {"counted", rounded(reads_of_a_get(row))}};
  }
  return out;
}

Json verdict_json(const Report& report, const CaseReport& one, Class rank) {
  const Verdict verdict = judge(report, one, rank);
  Json out = {{"best", verdict.best},
              {"why", verdict.why},
              {"best_without_marks", verdict.without_marks},
              {"best_p50", verdict.best_p50},
              {"least_server_cpu", verdict.least_server_cpu}};
  return out;
}

// Of each row: M/s, and what limits it, the tightest first.
Json model_json(const Report& report, const CaseReport& one) {
  Json rows = Json::array();
  for (const ModelledRow& each : model_rows(*report.nic, report, one)) {
    Json terms = Json::array();
    for (const Term& term : each.prediction.terms) terms.push_back({{"what", term.what}, {"mops", rounded(term.rate)}});
    rows.push_back({{"id", each.row->id},
                    {"mops", rounded(each.prediction.rate)},
                    {"limits", std::move(terms)},
                    {"not_known", each.prediction.unknown}});
  }
  return {{"nic", report.nic->name}, {"source", report.nic->source}, {"rows", std::move(rows)}};
}

Json tuning_json(const Tuning& tuning) {
  Json out = Json::object();
  for (const TuningValue& each : values_of(tuning)) {
    out[std::string(each.option)] = each.is_switch ? Json(each.value > 0) : Json(each.value);
  }
  return out;
}

Json setting_json(const Setting& setting) {
  return {{"preset", setting.preset},
          {"keys", setting.keys},
          {"key_bytes", setting.key_bytes},
          {"erases", setting.erases},
          {"zipf", setting.zipf},
          {"writers", setting.writers == Writers::kOne ? "one" : "any"},
          {"seed", setting.seed},
          {"server_cores", setting.server_cores},
          {"clients", setting.clients},
          {"window", setting.window},
          {"busy", setting.busy},
          {"as_paper", setting.tuning.as_paper},
          {"posting", setting.tuning.is_synchronous ? "sync" : "pipelined"},
          {"variants", tuning_json(setting.tuning)},
          {"rounds", setting.rounds},
          {"round_s", setting.round_s},
          {"warm_up_s", setting.warm_up_s},
          {"ops", setting.ops}};
}

}  // namespace

std::string to_json(const Report& report) {
  Json out = {{"tool", "egret-bench paradigms"},         {"hosts", report.hosts},
              {"device", report.device.device},          {"is_emulated", report.device.is_emulated},
              {"is_in_memory", report.is_in_memory},     {"is_interrupted", report.is_interrupted},
              {"setting", setting_json(report.setting)}, {"cases", Json::array()}};
  for (const CaseReport& each : report.cases) {
    Json rows = Json::array();
    for (const Row& row : each.rows) rows.push_back(row_json(report, row));
    out["cases"].push_back({{"value_bytes", each.workload.value_bytes},
                            {"gets", each.workload.gets},
                            {"rate", each.workload.rate},
                            {"rows", std::move(rows)},
                            {"verdict", verdict_json(report, each, Class::kStore)},
                            {"verdict_of_sequencers", verdict_json(report, each, Class::kSequencer)}});
    if (report.nic) out["cases"].back()["model"] = model_json(report, each);
  }
  out["promised_by_the_device"] = marks_json(kept_marks(report));
  out["broken_promises"] = broken_promises(report);
  return out.dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace egret::bench_paradigms
