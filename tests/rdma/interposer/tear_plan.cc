#include "tear_plan.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "plan_text.h"

namespace egret::interposer {
namespace {

constexpr std::string_view kLater = "later";
constexpr uint32_t kLeastPiece = 8;
constexpr uint32_t kMostPiece = 4096;

struct TearRule {
  bool is_read = false;
  Tear tear;
  uint64_t every = 1;
  std::atomic<uint64_t> seen{0};
};
struct SwallowRule {
  bool is_any_type = true;
  ibv_qp_type type = IBV_QPT_RC;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint64_t first = 0, last = 0, every = 0;
  std::atomic<uint64_t> seen{0};
};
struct Plan {
  std::vector<std::unique_ptr<TearRule>> tears;
  std::vector<std::unique_ptr<SwallowRule>> swallows;
};

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};
constexpr std::array<Named<TearOrder>, 4> kOrders = {{{"up", TearOrder::kUp},
                                                      {"down", TearOrder::kDown},
                                                      {"ends", TearOrder::kEnds},
                                                      {"shuffled", TearOrder::kShuffled}}};
constexpr std::array<Named<ibv_qp_type>, 3> kTypes = {{{"rc_", IBV_QPT_RC}, {"uc_", IBV_QPT_UC}, {"ud_", IBV_QPT_UD}}};
constexpr std::array<Named<ibv_wr_opcode>, 4> kVerbs = {{{"write", IBV_WR_RDMA_WRITE},
                                                         {"write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM},
                                                         {"send", IBV_WR_SEND},
                                                         {"send_with_imm", IBV_WR_SEND_WITH_IMM}}};

// The text up to `separator`, which both go from `rest`.
std::string_view take_part(std::string_view& rest, char separator) {
  const size_t at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return part;
}

template <typename Table, typename Value>
bool find_named(const Table& table, std::string_view name, Value& value) {
  for (const auto& row : table) {
    if (row.name != name) continue;
    value = row.value;
    return true;
  }
  return false;
}

bool read_tear(std::string_view entry, Plan& plan) {
  auto rule = std::make_unique<TearRule>();
  const std::string_view verb = take_part(entry, ':');
  rule->is_read = verb == "read";
  if (!rule->is_read && verb != "write") return false;
  uint64_t bytes = 0;
  uint64_t pause = 0;
  if (!read_number(take_part(entry, ':'), bytes)) return false;
  if (bytes < kLeastPiece || bytes > kMostPiece || bytes % kLeastPiece != 0) return false;
  if (!find_named(kOrders, take_part(entry, ':'), rule->tear.order)) return false;
  if (!read_number(take_part(entry, ':'), pause) || pause > 1'000'000) return false;
  if (rule->is_read && (entry == kLater || entry.starts_with("later:"))) {
    rule->tear.is_later = true;
    take_part(entry, ':');
  }
  if (!entry.empty() && !read_every(entry, rule->every)) return false;
  rule->tear.bytes = static_cast<uint32_t>(bytes);
  rule->tear.pause_us = static_cast<uint32_t>(pause);
  plan.tears.push_back(std::move(rule));
  return true;
}

// N, N+, N-M, or every N.
bool read_which(std::string_view text, SwallowRule& rule) {
  if (read_every(text, rule.every)) return true;
  const size_t sign = text.find_first_of("+-");
  if (!read_number(text.substr(0, sign), rule.first) || rule.first == 0) return false;
  rule.last = rule.first;
  if (sign == std::string_view::npos) return true;
  if (text[sign] == '-') return read_number(text.substr(sign + 1), rule.last) && rule.last >= rule.first;
  rule.last = UINT64_MAX;
  return sign + 1 == text.size();
}

bool read_swallow(std::string_view entry, Plan& plan) {
  auto rule = std::make_unique<SwallowRule>();
  std::string_view verb = take_part(entry, ':');
  if (verb.size() > 3 && find_named(kTypes, verb.substr(0, 3), rule->type)) {
    rule->is_any_type = false;
    verb.remove_prefix(3);
  }
  if (!find_named(kVerbs, verb, rule->opcode) || !read_which(entry, *rule)) return false;
  plan.swallows.push_back(std::move(rule));
  return true;
}

void read_variable(const char* name, const char* form, bool (*read)(std::string_view, Plan&), Plan& plan) {
  const char* const wanted = std::getenv(name);
  std::string_view rest = wanted == nullptr ? "" : wanted;
  while (!rest.empty()) {
    const std::string_view entry = take_part(rest, ',');
    if (read(entry, plan)) continue;
    std::fprintf(stderr, "libegret_count_verbs: %s: '%.*s' is not %s\n", name, static_cast<int>(entry.size()),
                 entry.data(), form);
    _exit(70);
  }
}

const Plan& plan() {
  static const Plan* const instance = [] {
    auto* const read = new Plan;
    read_variable("EGRET_VERBS_TEAR", "read|write:BYTES:up|down|ends|shuffled:PAUSE_US[:later][:every N]", read_tear,
                  *read);
    read_variable("EGRET_VERBS_SWALLOW",
                  "[rc_|uc_|ud_]write|write_with_imm|send|send_with_imm:N, :N+, :N-M or :every N", read_swallow, *read);
    return read;
  }();
  return *instance;
}

}  // namespace

bool is_posting_planned() {
  return !plan().tears.empty() || !plan().swallows.empty();
}

const Tear* tear_of(ibv_wr_opcode opcode, uint64_t bytes) {
  const bool is_read = opcode == IBV_WR_RDMA_READ;
  if (!is_read && opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_RDMA_WRITE_WITH_IMM) return nullptr;
  for (const auto& rule : plan().tears) {
    if (rule->is_read != is_read || bytes <= rule->tear.bytes) continue;
    const uint64_t number = rule->seen.fetch_add(1, std::memory_order_relaxed) + 1;
    if (number % rule->every == 0) return &rule->tear;
  }
  return nullptr;
}

bool must_swallow(ibv_qp_type type, ibv_wr_opcode opcode) {
  bool is_swallowed = false;
  for (const auto& rule : plan().swallows) {
    if (rule->opcode != opcode || (!rule->is_any_type && rule->type != type)) continue;
    const uint64_t number = rule->seen.fetch_add(1, std::memory_order_relaxed) + 1;
    const bool is_meant = rule->every != 0 ? number % rule->every == 0 : number >= rule->first && number <= rule->last;
    is_swallowed = is_swallowed || is_meant;
  }
  return is_swallowed;
}

uint32_t works_of_a_verb() {
  return plan().tears.empty() ? 1 : kMostPieces;
}

}  // namespace egret::interposer
