// The command line that both daemons share: --config FILE, --set KEY=VALUE, --check-config, --doctor, --version,
// --help.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log/log.h"
#include "base/options/options.h"
#include "base/options/reload.h"
#include "base/service/doctor.h"
#include "base/status.h"

namespace egret::base {

// Rows that every daemon's table has.
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
  // Checks that the table cannot express (one option against another); may be empty. Make its Status by Options::error.
  std::function<Status(const Options&)> check{};
  // The findings of --doctor for these options, which passed `check`; empty: there is no --doctor.
  std::function<Findings(const Options&)> doctor{};
  // A question about a configuration that `check` has accepted: "--where KEY". Its answer is printed, in lines; an error
  // is printed as one line, with exit status 1.
  struct Question {
    std::string_view flag;      // "--where"
    std::string_view argument;  // "KEY"
    std::string_view help;
    Expected<std::string> (*answer)(const Options& options, const std::string& argument);
  };
  std::span<const Question> questions{};
  // What --check-config says besides that the configuration is valid, in lines; null: nothing.
  std::string (*explain)(const Options&) = nullptr;
  // The tables of its metrics, and of the rows of its `stats`, as GitHub's Markdown, for docs/reference; null: it has
  // none.
  std::string (*metrics_markdown)() = nullptr;
  std::string (*stats_markdown)() = nullptr;
  // Its log events.
  LogEvents events{};
};

// What main() continues with. The sources are kept for reloading.
struct ProgramStart {
  std::optional<Options> options;  // none: exit with exit_status; everything was printed already
  int exit_status = 0;
  OptionSources sources;
};

// Reads the command line. Answers --help, --version, --check-config and --doctor on stdout itself. Prints an error as
// one line on stderr ("egret-proxy: conf/egret-proxy.yaml:12: workers: expected ..."), with exit status 1.
ProgramStart start_program(const ProgramInfo& info, int argc, const char* const* argv);

// The version as --version prints it after the name, such as "0.2.0".
std::string_view version();

// Reports why `program` cannot start, on stderr and, with that notice, to its supervisor (base/service/notify.h). Returns the
// exit status, 1.
int fail_start(std::string_view program, const std::string& message, std::string_view notice = {});

// Raises the limit of open files to `needed`, as far as this process may. Returns the resulting limit.
uint64_t raise_descriptor_limit(uint64_t needed);

}  // namespace egret::base
