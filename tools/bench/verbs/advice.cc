#include "bench_verbs/advice.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/text.h"

namespace egret::bench_verbs {
namespace {

constexpr double kGain = 1.1;  // in-bound over out-bound that is still worth anything

// Ascending: in even steps, and beyond these what each result takes, as far as READs of that size were measured.
std::set<uint32_t> fetch_sizes(const Measured& measured, const std::vector<ResultShare>& results) {
  std::set<uint32_t> sizes;
  for (uint32_t fetch = kMinFetch; fetch <= kMaxEvenFetch; fetch += kFetchStep) sizes.insert(fetch);
  const uint32_t largest = measured.inbound_read.empty() ? 0 : measured.inbound_read.back().size;
  for (const ResultShare& result : results) {
    if (result.value_bytes > kMaxFetch - kResultOverhead) continue;
    const uint32_t needed = (result.value_bytes + kResultOverhead + kFetchStep - 1) / kFetchStep * kFetchStep;
    if (needed > kMaxEvenFetch && needed <= std::min(kMaxFetch, largest)) sizes.insert(needed);
  }
  return sizes;
}

void choose_fetch(const Measured& measured, const std::vector<ResultShare>& results, Advice& advice) {
  double best = -1;
  for (const uint32_t fetch : fetch_sizes(measured, results)) {
    FetchCandidate each{.fetch = fetch, .read_rate = rate_at(measured.inbound_read, fetch)};
    for (const ResultShare& result : results) {
      const bool fits = result.value_bytes + kResultOverhead <= fetch;
      if (fits) each.covered += result.share;
      each.score += result.share * (fits ? each.read_rate : each.read_rate / 2);
    }
    advice.candidates.push_back(each);
    if (each.score <= best) continue;  // of equals the smallest
    best = each.score;
    advice.fetch = fetch;
  }
}

void choose_refetches(const Measured& measured, Advice& advice) {
  if (measured.peak_outbound_write <= 0 || measured.read_us <= 0) return;
  advice.refetch_budget_us = measured.server_threads * 1e6 / measured.peak_outbound_write;
  const double fit = std::round(advice.refetch_budget_us / measured.read_us);
  advice.refetches = static_cast<uint32_t>(std::clamp(fit, 1.0, double{kMaxRefetches}));
}

void choose_window(const Measured& measured, Advice& advice) {
  advice.under_way = measured.fetch_rate_of_thread * measured.fetch_us / 1e6;
  const double wanted = std::clamp(std::ceil(advice.under_way), double{kMinWindow}, double{kMaxWindow});
  advice.window = static_cast<uint32_t>(wanted);
  advice.depth_was_the_limit = advice.under_way > 0.9 * measured.measured_depth;
  advice.queue_pairs = (advice.window + measured.read_depth - 1) / std::max(measured.read_depth, 1u);
}

// READs must stay below WRITEs from there on: one row that does is chance.
void find_crossing(const Measured& measured, Advice& advice) {
  for (auto at = measured.by_pairs.rbegin(); at != measured.by_pairs.rend(); ++at) {
    advice.pairs_most = at->pairs;
    if (at->inbound_read >= at->outbound_write) break;
    advice.has_crossing = true;
  }
  advice.sessions_most = std::max(advice.pairs_most / std::max(advice.queue_pairs, 1u), 1u);
}

void choose_spin(const Measured& measured, Advice& advice) {
  if (measured.fetch_p99_us <= 0 || measured.wake_us <= 0) return;
  const double wanted = std::ceil(measured.fetch_p99_us + measured.wake_us);
  advice.spin_us = static_cast<uint32_t>(std::min(wanted, double{kMostSpinUs}));
}

void find_convergence(const Measured& measured, Advice& advice) {
  for (auto at = measured.inbound_read.rbegin(); at != measured.inbound_read.rend(); ++at) {
    if (at->ops_per_s > kGain * rate_at(measured.outbound_write, at->size)) break;
    advice.converge_at = at->size;
  }
}

}  // namespace

double rate_at(const std::vector<RateBySize>& rates, uint32_t size) {
  if (rates.empty()) return 0;
  const auto above = std::find_if(rates.begin(), rates.end(), [size](const auto& each) { return each.size >= size; });
  if (above == rates.end()) return rates.back().ops_per_s;
  if (above == rates.begin() || above->size == size) return above->ops_per_s;
  const auto below = above - 1;
  const double way = static_cast<double>(size - below->size) / (above->size - below->size);
  return below->ops_per_s + way * (above->ops_per_s - below->ops_per_s);
}

Advice advise(const Measured& measured, const std::vector<ResultShare>& results) {
  Advice advice;
  choose_fetch(measured, results, advice);
  choose_refetches(measured, advice);
  choose_window(measured, advice);
  find_crossing(measured, advice);
  choose_spin(measured, advice);
  find_convergence(measured, advice);
  return advice;
}

Fall falls_from(const std::vector<RateByPairs>& rates) {
  Fall fall;
  for (const RateByPairs& each : rates) {
    if (each.ops_per_s > fall.best) fall = {.pairs = 0, .share = 0, .best = each.ops_per_s, .best_pairs = each.pairs};
    const double share = fall.best > 0 ? each.ops_per_s / fall.best : 1;
    if (share >= kFallShare) {
      fall.pairs = 0;
    } else if (fall.pairs == 0) {
      fall.pairs = each.pairs;
      fall.share = share;
    }
  }
  return fall;
}

std::vector<ResultShare> parse_results(const std::string& text, std::string& complaint) {
  std::vector<ResultShare> results;
  double sum = 0;
  for (const std::string& part : base::split(text, ',')) {
    const size_t colon = part.find(':');
    ResultShare each{.value_bytes = 0, .share = 1};
    const char* const end = part.data() + std::min(colon, part.size());
    const auto read = std::from_chars(part.data(), end, each.value_bytes);
    char* rest = nullptr;
    if (colon != std::string::npos) each.share = std::strtod(part.c_str() + colon + 1, &rest);
    const bool share_is_read = colon == std::string::npos || (rest != part.c_str() + colon + 1 && *rest == '\0');
    if (read.ec != std::errc() || read.ptr != end || !share_is_read || !(each.share > 0) ||
        !std::isfinite(each.share)) {
      complaint = base::quoted(part) + " is not BYTES or BYTES:SHARE";
      return {};
    }
    sum += each.share;
    results.push_back(each);
  }
  if (results.empty()) complaint = "no sizes of results";
  for (ResultShare& each : results) each.share /= sum;
  return results;
}

}  // namespace egret::bench_verbs
