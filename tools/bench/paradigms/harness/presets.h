// The papers' own settings: a row for each. What a paper does not say stays as it is by default.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "bench_paradigms/harness/setting.h"

namespace egret::bench_paradigms {

struct Preset {
  std::string_view name;   // "pilaf-fig7"
  std::string_view about;  // where it is from, and what came out there
  void (*apply)(Setting& setting);
};

std::span<const Preset> presets();
// Fails on a name that is not in the table.
base::Status apply_preset(std::string_view name, Setting& setting);

}  // namespace egret::bench_paradigms
