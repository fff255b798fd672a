// Results as text for people (Markdown tables) and for machines (JSON).
#pragma once

#include <string>
#include <vector>

#include "bench/duel.h"

namespace egret::bench {

// Two tables: the figures with their ratios, and the conditions of the runs. Figures are medians over the rounds; a
// ratio is the median of the ratios of all rounds, with their extremes.
std::string to_markdown(const std::vector<CaseResult>& results);

// {"cases": [{"name", "spec", "subject": {"name", "rounds": [...]}, "peer": {...}, "ratios": {...}}], "errors": n}
std::string to_json(const std::vector<CaseResult>& results);

}  // namespace egret::bench
