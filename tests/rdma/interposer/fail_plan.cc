#include "fail_plan.h"

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include <unistd.h>

#include "counter_file.h"

namespace egret::interposer {
namespace {

constexpr auto kCalls = static_cast<uint32_t>(Call::kEnd);
constexpr std::array<std::string_view, kCalls> kNames = {"open_device",
                                                         "query_device",
                                                         "alloc_pd",
                                                         "create_comp_channel",
                                                         "create_cq",
                                                         "resize_cq",
                                                         "create_qp",
                                                         "modify_qp",
                                                         "query_qp",
                                                         "reg_mr",
                                                         "post_send",
                                                         "post_recv",
                                                         "poll_cq",
                                                         "req_notify_cq",
                                                         "get_cq_event",
                                                         "completion",
                                                         "change_atomic",
                                                         "change_send",
                                                         "cm_create_event_channel",
                                                         "cm_create_id",
                                                         "cm_set_option",
                                                         "cm_bind_addr",
                                                         "cm_listen",
                                                         "cm_resolve_addr",
                                                         "cm_resolve_route",
                                                         "cm_connect",
                                                         "cm_accept",
                                                         "cm_reject",
                                                         "cm_migrate_id",
                                                         "cm_create_qp",
                                                         "cm_get_event",
                                                         "cm_disconnect",
                                                         "destroy_qp",
                                                         "destroy_cq",
                                                         "dereg_mr"};
constexpr auto kCannotFail = static_cast<uint32_t>(Call::kDestroyQp);  // from here on

struct Rule {
  uint64_t first = 0;  // 0: never
  uint64_t last = 0;
  uint64_t milliseconds = 0;  // of EGRET_VERBS_SLOW
  std::atomic<uint64_t> calls{0};

  bool is_next() {
    if (first == 0) return false;
    const uint64_t number = calls.fetch_add(1, std::memory_order_relaxed) + 1;
    return number >= first && number <= last;
  }
};
using Plan = std::array<Rule, kCalls>;
constexpr const char* kFail = "EGRET_VERBS_FAIL";
constexpr const char* kSlow = "EGRET_VERBS_SLOW";

[[noreturn]] void refuse(const char* variable, std::string_view entry) {
  std::fprintf(stderr, "libegret_count_verbs: %s: '%.*s' is not CALL:N, CALL:N+ or CALL:N-M with a known CALL%s\n",
               variable, static_cast<int>(entry.size()), entry.data(), variable == kSlow ? ", and :MILLISECONDS" : "");
  _exit(70);
}

bool read_number(std::string_view text, uint64_t& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end && number > 0;
}

// N, N+ or N-M.
bool read_numbers(std::string_view text, Rule& rule) {
  const size_t sign = text.find_first_of("+-");
  if (!read_number(text.substr(0, sign), rule.first)) return false;
  rule.last = rule.first;
  if (sign == std::string_view::npos) return true;
  if (text[sign] == '-') return read_number(text.substr(sign + 1), rule.last) && rule.last >= rule.first;
  rule.last = UINT64_MAX;
  return sign + 1 == text.size();
}

void read_entry(const char* variable, std::string_view entry, Plan& plan) {
  const size_t colon = entry.find(':');
  if (colon == std::string_view::npos) refuse(variable, entry);
  for (uint32_t i = 0; i < (variable == kSlow ? kCalls : kCannotFail); ++i) {
    if (entry.substr(0, colon) != kNames[i]) continue;
    std::string_view numbers = entry.substr(colon + 1);
    if (variable == kSlow) {
      const size_t second = numbers.find(':');
      if (second == std::string_view::npos || !read_number(numbers.substr(second + 1), plan[i].milliseconds)) {
        refuse(variable, entry);
      }
      numbers = numbers.substr(0, second);
    }
    if (!read_numbers(numbers, plan[i])) refuse(variable, entry);
    return;
  }
  refuse(variable, entry);
}

Plan* read_plan(const char* variable) {
  auto* const plan = new Plan;
  const char* const wanted = std::getenv(variable);
  std::string_view rest = wanted == nullptr ? "" : wanted;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    read_entry(variable, rest.substr(0, comma), *plan);
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return plan;
}

}  // namespace

void be_slow(Call call) {
  static Plan* const plan = read_plan(kSlow);
  Rule& rule = (*plan)[static_cast<uint32_t>(call)];
  if (!rule.is_next()) return;
  count(Counter::kSlowBegun);
  std::this_thread::sleep_for(std::chrono::milliseconds(rule.milliseconds));
  count(Counter::kSlowEnded);
}

bool must_fail(Call call) {
  static Plan* const plan = read_plan(kFail);
  be_slow(call);
  const bool fails = (*plan)[static_cast<uint32_t>(call)].is_next();
  if (fails) count(Counter::kFailedOnPurpose);
  return fails;
}

bool is_hidden(const char* capability) {
  const char* const hidden = std::getenv("EGRET_VERBS_HIDE");
  if (hidden == nullptr) return false;
  return ("," + std::string(hidden) + ",").find("," + std::string(capability) + ",") != std::string::npos;
}

}  // namespace egret::interposer
