#include "bench_paradigms/paradigm.h"

#include <algorithm>
#include <array>

#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint8_t bit(PairType type) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(type));
}
constexpr uint8_t bit(OpKind kind) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(kind));
}
constexpr uint8_t kRc = bit(PairType::kRc);
constexpr uint8_t kReads = bit(OpKind::kGet);

// A row for each id.
constexpr std::array kParadigms = {
    Paradigm{.id = "raw-read",
             .title = "one READ of a place that the client knows",
             .source = "paper 003 (CD); paper 002, section 4.3",
             .pairs = kRc,
             .kinds = kReads,
             .make_server = make_raw_read_server,
             .make_client = make_raw_read_client},
};

}  // namespace

std::span<const Paradigm> paradigms() {
  return kParadigms;
}

const Paradigm* find_paradigm(std::string_view id) {
  const auto* const found =
      std::find_if(kParadigms.begin(), kParadigms.end(), [id](const auto& each) { return each.id == id; });
  return found == kParadigms.end() ? nullptr : &*found;
}

std::string why_not(const Paradigm& paradigm, const Capabilities& capabilities, const Plan& /*plan*/) {
  if (paradigm.needs_atomics && !capabilities.has_atomics) return capabilities.device + " has no atomics";
  if ((paradigm.pairs & bit(PairType::kUc)) != 0 && !capabilities.has_uc) return capabilities.device + " has no UC";
  if ((paradigm.pairs & bit(PairType::kUd)) != 0 && !capabilities.has_ud) return capabilities.device + " has no UD";
  return {};
}

}  // namespace egret::bench_paradigms
