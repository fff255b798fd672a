#include "fail_plan.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "counter_file.h"

namespace egret::interposer {
namespace {

constexpr auto kCalls = static_cast<uint32_t>(Call::kEnd);
constexpr std::array<std::string_view, kCalls> kNames = {"open_device", "alloc_pd",  "create_cq", "resize_cq",
                                                         "create_qp",   "modify_qp", "reg_mr",    "post_send",
                                                         "post_recv",   "completion"};

struct Rule {
  uint64_t first = 0;  // 0: never
  bool and_later = false;
  std::atomic<uint64_t> calls{0};
};
using Plan = std::array<Rule, kCalls>;

[[noreturn]] void refuse(std::string_view entry) {
  std::fprintf(stderr, "libegret_count_verbs: EGRET_VERBS_FAIL: '%.*s' is not CALL:N or CALL:N+ with a known CALL\n",
               static_cast<int>(entry.size()), entry.data());
  _exit(70);
}

void read_entry(std::string_view entry, Plan& plan) {
  const size_t colon = entry.find(':');
  if (colon == std::string_view::npos) refuse(entry);
  for (uint32_t i = 0; i < kCalls; ++i) {
    if (entry.substr(0, colon) != kNames[i]) continue;
    std::string_view number = entry.substr(colon + 1);
    plan[i].and_later = number.ends_with('+');
    if (plan[i].and_later) number.remove_suffix(1);
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), plan[i].first);
    if (error != std::errc() || end != number.data() + number.size() || plan[i].first == 0) refuse(entry);
    return;
  }
  refuse(entry);
}

Plan* read_plan() {
  auto* const plan = new Plan;
  const char* const wanted = std::getenv("EGRET_VERBS_FAIL");
  std::string_view rest = wanted == nullptr ? "" : wanted;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    read_entry(rest.substr(0, comma), *plan);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return plan;
}

}  // namespace

bool must_fail(Call call) {
  static Plan* const plan = read_plan();
  Rule& rule = (*plan)[static_cast<uint32_t>(call)];
  if (rule.first == 0) return false;
  const uint64_t number = rule.calls.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool fails = number == rule.first || (rule.and_later && number > rule.first);
  if (fails) count(Counter::kFailedOnPurpose);
  return fails;
}

}  // namespace egret::interposer
