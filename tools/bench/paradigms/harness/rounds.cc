#include "bench_paradigms/harness/rounds.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

// A row that is being made.
struct Candidate {
  const Paradigm* paradigm;
  Case workload;
  std::string not_available;
  std::vector<RunOutcome> outcomes;
};

// Why this design cannot do this workload.
std::string why_not_this(const Paradigm& paradigm, const Setting& setting, const Case& one) {
  if (paradigm.has(OpKind::kNext) || !paradigm.has(OpKind::kPut)) return {};
  if (one.gets < 1 && setting.erases > 0 && !paradigm.has(OpKind::kErase)) return "the design has no erase";
  return {};
}

Candidate candidate_of(const Paradigm& paradigm, const Setting& setting, const Case& one, const Capabilities& can) {
  Candidate out{&paradigm, one, {}, {}};
  if (!paradigm.has(OpKind::kPut)) out.workload.gets = 1;  // a bound, or a sequencer
  out.not_available = why_not(paradigm, can, plan_of(setting, one));
  if (out.not_available.empty()) out.not_available = why_not_this(paradigm, setting, one);
  return out;
}

std::string label(const Candidate& one, uint32_t round, const Setting& setting) {
  return fmt::format("round {}/{}: {}, {} B, {:.3g} % gets", round + 1, setting.rounds, one.paradigm->id,
                     one.workload.value_bytes, one.workload.gets * 100);
}

Status run_one(Candidate& one, Runner& runner, const std::atomic<bool>& stop) {
  auto answer = runner.run(*one.paradigm, one.workload, stop);
  if (!answer) return answer.status();
  answer.value().outcome.judge_numbers();
  if (answer.value().not_available.empty()) {
    one.outcomes.push_back(answer.value().outcome);
  } else {
    one.not_available = answer.value().not_available;
  }
  return Status::ok();
}

}  // namespace

Expected<std::vector<const Paradigm*>> chosen(const Setting& setting) {
  for (const std::string& id : setting.ids) {
    if (find_paradigm(id) == nullptr) return Status::error("there is no paradigm " + id + "; --help lists them");
  }
  std::vector<const Paradigm*> out;
  for (const Paradigm& each : paradigms()) {
    const bool is_named = std::find(setting.ids.begin(), setting.ids.end(), each.id) != setting.ids.end();
    if (setting.ids.empty() || is_named) out.push_back(&each);
  }
  for (const std::string& id : setting.ids) {
    if (const Paradigm* const one = find_paradigm(id); one->gets_by != nullptr) out.push_back(one);
  }
  return out;
}

Expected<Report> run_rounds(const Setting& setting, Runner& runner, const std::function<void(const std::string&)>& say,
                            const std::atomic<bool>& stop) {
  auto ids = chosen(setting);
  if (!ids) return ids.status();
  Report report;
  report.setting = setting;
  report.device = runner.capabilities();
  const std::vector<Case> cases = cases_of(setting);
  std::vector<std::vector<Candidate>> candidates;
  for (const Case& each : cases) {
    auto& of_case = candidates.emplace_back();
    for (const Paradigm* id : ids.value()) of_case.push_back(candidate_of(*id, setting, each, report.device));
  }
  for (uint32_t round = 0; round < setting.rounds && !stop.load(); ++round) {
    for (auto& of_case : candidates) {
      for (Candidate& one : of_case) {
        if (!one.not_available.empty() || stop.load()) continue;
        say(label(one, round, setting));
        if (Status done = run_one(one, runner, stop); !done) return done;
      }
    }
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    CaseReport& of_case = report.cases.emplace_back();
    of_case.workload = cases[i];
    const Plan plan = plan_of(setting, cases[i]);
    for (const Candidate& one : candidates[i]) {
      of_case.rows.push_back(one.not_available.empty() ? row_of(*one.paradigm, plan, one.outcomes)
                                                       : row_not_available(*one.paradigm, plan, one.not_available));
    }
  }
  report.is_interrupted = stop.load();
  return report;
}

}  // namespace egret::bench_paradigms
