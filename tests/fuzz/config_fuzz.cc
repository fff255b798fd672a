// Any bytes as a configuration file, and as a --set argument: the result is options or an error of one line, never a
// crash.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/options/options.h"

namespace {

using egret::base::OptionRow;
using egret::base::Options;
using egret::base::OptionType;

// Short names, so that the fuzzer finds them soon. One row of each type.
constexpr OptionRow kTable[] = {
    {.name = "i", .type = OptionType::kInteger, .default_value = "0", .min = -5, .max = 64},
    {.name = "s", .type = OptionType::kSize, .default_value = "1m", .min = 1, .max = 1 << 30},
    {.name = "d", .type = OptionType::kDuration, .default_value = "1s", .max = 60'000'000'000},
    {.name = "f", .type = OptionType::kFlag, .default_value = "no"},
    {.name = "c", .type = OptionType::kChoice, .default_value = "on", .choices = "on|off"},
    {.name = "l", .type = OptionType::kList, .default_value = "a", .min = 1, .max = 4},
    {.name = "t", .type = OptionType::kText, .default_value = "", .max = 16},
};

// Whatever was read keeps the table's limits.
void check_values(const Options& options) {
  EGRET_CHECK(options.integer("i") >= -5 && options.integer("i") <= 64);
  EGRET_CHECK(options.size("s") >= 1 && options.size("s") <= 1u << 30);
  EGRET_CHECK(options.duration_ns("d") <= 60'000'000'000);
  options.flag("f");
  EGRET_CHECK(options.text("c") == "on" || options.text("c") == "off");
  EGRET_CHECK(!options.list("l").empty() && options.list("l").size() <= 4);
  EGRET_CHECK(options.text("t").size() <= 16);
}

void check_outcome(const egret::base::Expected<Options>& outcome) {
  if (outcome) {
    check_values(outcome.value());
    return;
  }
  for (const char c : outcome.message()) EGRET_CHECK(c != '\n' && c != '\r' && c != '\0');
  EGRET_CHECK(outcome.message().size() < 2048);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  check_outcome(Options::parse(kTable, input, "f.yaml", {}));
  check_outcome(Options::parse(kTable, "", "", std::span(&input, 1)));
  return 0;
}
