// What the model says of the rows of a report: the same verbs on another card, or on this one as `egret-bench verbs` has
// measured it. Beside what was measured, where times mean something.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench_paradigms/harness/report_data.h"
#include "bench_paradigms/model/predict.h"

namespace egret::bench_paradigms {

struct ModelledRow {
  const Row* row = nullptr;
  Prediction prediction;
};

// Of every row that has run, in their order. Server time is a limit only where it was measured.
std::vector<ModelledRow> model_rows(const Nic& nic, const Report& report, const CaseReport& one);
// Of that class, without a wrong answer or one of these marks, and with all its verbs' rates known: the one with the highest
// rate; null: none.
const ModelledRow* best_of(const std::vector<ModelledRow>& rows, Class rank, uint8_t broken_marks = kNoMark);

// A table for people, and who is best by the model.
std::string modelled_markdown(const Nic& nic, const Report& report, const CaseReport& one);
// What limits the row of that id: a sentence; empty where the model cannot tell.
std::string limit_of(const Nic& nic, const Report& report, const CaseReport& one, std::string_view id);

}  // namespace egret::bench_paradigms
