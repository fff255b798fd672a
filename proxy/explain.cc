#include "proxy/explain.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "op/op.h"
#include "pool/placement.h"
#include "proxy/config.h"

namespace egret::proxy {

namespace {
constexpr size_t kShownOrder = 4;  // the owner and those that follow it
}  // namespace

std::string explain_pool(const base::Options& options) {
  const Config config = resolve_config(options).value();
  const pool::Placement placement(config.placement, config.backends);
  std::string text = fmt::format("pool: {}, placed by {}\n", base::counted(config.backends.size(), "backend"),
                                 pool::to_string(config.placement));
  for (size_t number = 0; number < config.backends.size(); ++number) {
    const pool::Member& member = config.backends[number];
    text += fmt::format("  {}: weight {}, {:.2f} % of the keys\n", member.to_string(), member.weight,
                        100 * placement.share_of(number));
  }
  return text;
}

base::Expected<std::string> explain_key(const base::Options& options, const std::string& key) {
  if (key.empty() || key.size() > op::kMaxKeyLength) {
    return base::Status::error(fmt::format("expected a key of 1 to {} bytes", op::kMaxKeyLength));
  }
  const Config config = resolve_config(options).value();
  const pool::Placement placement(config.placement, config.backends);
  std::array<uint32_t, kShownOrder> order{};
  const size_t count = placement.order_of(key, order);
  std::string text = fmt::format("{}: backend {}\n  by {}: {}\n", base::quoted_if_odd(key),
                                 config.backends[placement.member_of(key)].to_string(),
                                 pool::to_string(config.placement), placement.why(key));
  if (count > 1) text += "  without it:";
  for (size_t i = 1; i < count; ++i) text += (i > 1 ? ", then " : " ") + config.backends[order[i]].to_string();
  if (count > 1) text += "\n";
  return text;
}

}  // namespace egret::proxy
