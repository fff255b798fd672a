#include "proxy/explain.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "discovery/learn.h"
#include "op/op.h"
#include "pool/placement.h"
#include "proxy/config.h"

namespace egret::proxy {

namespace {

constexpr size_t kShownOrder = 4;                      // the owner and those that follow it
constexpr std::chrono::milliseconds kMostWait{5'000};  // for names to be resolved

discovery::Learned learn(const Config& config) {
  return discovery::learn_members(config.directory, kMostWait);
}

std::string lines_of(const std::vector<std::string>& problems) {
  std::string lines;
  for (const std::string& problem : problems) lines += "  " + problem + "\n";
  return lines;
}

}  // namespace

std::string explain_pool(const base::Options& options) {
  const Config config = resolve_config(options).value();
  const discovery::Learned pool = learn(config);
  const std::string problems = lines_of(pool.problems);
  if (pool.members.empty()) return "pool: no backend is known\n" + problems;
  const pool::Placement placement(config.placement, pool.members);
  std::string text = fmt::format("pool: {}, placed by {}\n", base::counted(pool.members.size(), "backend"),
                                 pool::to_string(config.placement));
  for (size_t number = 0; number < pool.members.size(); ++number) {
    const pool::Member& member = pool.members[number];
    text += fmt::format("  {}: weight {}, {:.2f} % of the keys\n", member.to_string(), member.weight,
                        100 * placement.share_of(number));
  }
  if (config.gutter.is_on) {
    text += fmt::format("gutter: {}, for at most {} s\n", base::counted(config.gutter.members.size(), "backend"),
                        config.gutter.ttl_s);
    for (const pool::Member& member : config.gutter.members) text += fmt::format("  {}\n", member.to_string());
  }
  return text + problems;
}

base::Expected<std::string> explain_key(const base::Options& options, const std::string& key) {
  if (key.empty() || key.size() > op::kMaxKeyLength) {
    return base::Status::error(fmt::format("expected a key of 1 to {} bytes", op::kMaxKeyLength));
  }
  const Config config = resolve_config(options).value();
  const discovery::Learned pool = learn(config);
  if (pool.members.empty())
    return base::Status::error("no backend is known: " + fmt::format("{}", fmt::join(pool.problems, "; ")));
  const pool::Placement placement(config.placement, pool.members);
  std::array<uint32_t, kShownOrder> order{};
  const size_t count = placement.order_of(key, order);
  std::string text = fmt::format("{}: backend {}\n  by {}: {}\n", base::quoted_if_odd(key),
                                 pool.members[placement.member_of(key)].to_string(), pool::to_string(config.placement),
                                 placement.why(key));
  if (count > 1) text += "  without it:";
  for (size_t i = 1; i < count; ++i) text += (i > 1 ? ", then " : " ") + pool.members[order[i]].to_string();
  if (count > 1) text += "\n";
  if (config.gutter.is_on) {
    const pool::Placement gutter(pool::PlacementRule::kRendezvous, config.gutter.members);
    text += "  while it is ejected: " + config.gutter.members[gutter.member_of(key)].to_string() + " of the gutter\n";
  }
  return text + lines_of(pool.problems);
}

}  // namespace egret::proxy
