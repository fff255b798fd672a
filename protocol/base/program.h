// The command line that both daemons share: --config FILE, --set KEY=VALUE, --check-config, --doctor, --version,
// --help.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/doctor.h"
#include "base/log.h"
#include "base/options.h"
#include "base/reload.h"
#include "base/status.h"

namespace egret::base {

// Rows that the table of every daemon has.
inline constexpr OptionRow kLogLevelRow{.name = "log_level",
                                        .type = OptionType::kChoice,
                                        .default_value = "info",
                                        .help = "What is logged to stderr.",
                                        .choices = kLogLevelChoices,
                                        .applied_by = AppliedBy::kReload,
                                        .group = OptionGroup::kObservability};
inline constexpr OptionRow kLogFormatRow{
    .name = "log_format",
    .type = OptionType::kChoice,
    .default_value = "auto",
    .help =
        "auto: entries with fields where stderr is systemd's journal, else text. json: a JSON object a line, for "
        "collectors of containers' logs.",
    .choices = kLogFormatChoices,
    .group = OptionGroup::kObservability};

struct ProgramInfo {
  std::string_view name;     // "egret-proxy"
  std::string_view summary;  // one sentence for --help
  std::span<const OptionRow> table;
  // What the table cannot express (one option against another); may be empty. Its Status should come from
  // Options::error.
  std::function<Status(const Options&)> check{};
  // What --doctor finds, under these options, which have passed `check`; empty: there is no --doctor.
  std::function<Findings(const Options&)> doctor{};
  // What its metrics, and rows of its `stats`, are called and mean, as GitHub's Markdown, for docs/reference; null: it
  // has none to tell of.
  std::string (*metrics_markdown)() = nullptr;
  std::string (*stats_markdown)() = nullptr;
  // What it may say in its log.
  LogEvents events{};
};

// What main() goes on with. The sources are kept so that a daemon can load its options again.
struct ProgramStart {
  std::optional<Options> options;  // none: exit with exit_status, everything is said already
  int exit_status = 0;
  OptionSources sources;
};

// Reads the command line; answers --help, --version, --check-config and --doctor on stdout itself, prints an error as
// one line on stderr ("egret-proxy: conf/egret-proxy.yaml:12: workers: expected ..."), status 1.
ProgramStart start_program(const ProgramInfo& info, int argc, const char* const* argv);

// What --version says after the name, such as "0.2.0".
std::string_view version();

// Says why `program` cannot start, on stderr and to whoever started it (base/notify.h), with that notice. Returns the
// exit status, 1.
int fail_start(std::string_view program, const std::string& message, std::string_view notice = {});

// Raises the limit of open files to `needed`, as far as this process may. Returns the limit that then holds.
uint64_t raise_descriptor_limit(uint64_t needed);

}  // namespace egret::base
