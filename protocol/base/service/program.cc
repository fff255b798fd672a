#include "base/service/program.h"

#include <cstdio>

#include <CLI/CLI.hpp>

#include "base/service/notify.h"
#include "base/text.h"

#ifndef EGRET_VERSION
#define EGRET_VERSION "0"
#endif

namespace egret::base {

namespace {

struct Arguments {
  std::string config_file;
  std::vector<std::string> set_arguments;
  bool check_config = false;
  bool doctor = false;
  bool version = false;
  bool help = false;
  bool help_markdown = false;
  bool help_yaml = false;
  bool help_metrics = false;
  bool help_stats = false;
  bool help_events = false;
  bool help_catalog = false;
  std::vector<std::optional<std::string>> asked;  // of each of ProgramInfo::questions
};

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

ProgramStart failed(const ProgramInfo& info, const std::string& message) {
  return {.options = std::nullopt, .exit_status = fail_start(info.name, one_line(message)), .sources = {}};
}

// A hint for an unknown argument: a flag with another spelling, or an option of the configuration, which is not a flag
// ("--workers=4"). Empty, or the end of the error line.
std::string hint(const ProgramInfo& info, std::string_view argument) {
  if (!argument.starts_with("--")) return "";
  const std::string_view word = argument.substr(2, argument.find('=') - 2);
  std::vector<std::string_view> names;
  for (const OptionRow& row : info.table) names.push_back(row.name);
  std::vector<std::string_view> flags = {"config", "set", "check-config", "doctor", "version", "help"};
  for (const ProgramInfo::Question& question : info.questions) flags.push_back(question.flag.substr(2));
  const std::string_view flag = likely_meant(word, flags);
  const std::string_view option = likely_meant(word, names);
  if (!flag.empty()) return "; did you mean --" + std::string(flag) + "?";
  return option.empty() ? "" : "; did you mean --set " + std::string(option) + "=VALUE?";
}

std::string help(const ProgramInfo& info) {
  const std::string name(info.name);
  std::string questions;
  for (const ProgramInfo::Question& question : info.questions) {
    const std::string flag = std::string(question.flag) + " " + std::string(question.argument);
    questions +=
        "  " + flag + std::string(18 - std::min<size_t>(17, flag.size()), ' ') + std::string(question.help) + "\n";
  }
  return name + ": " + std::string(info.summary) + "\n\nUsage: " + name +
         " [--config FILE] [--set KEY=VALUE]...\n\n"
         "  --config FILE     read options from a YAML file\n"
         "  --set KEY=VALUE   set one option, over the file; any number of times; commas part the values of a list\n"
         "  --check-config    check the options, say so and exit\n"
         "  --doctor          check this host against the options, say what to do about what is wrong, and exit\n" +
         questions +
         "  --version         print the version and exit\n"
         "  --help            print this and exit\n\n"
         "Options, as keys of the file or of --set. Most operators set only those marked with a *; the others are "
         "right as\n"
         "they are until a figure says otherwise.\n" +
         std::string(kUnitsOfValues) + "\n\n" + help_text(info.table);
}

void describe(CLI::App& app, const ProgramInfo& info, Arguments& arguments) {
  app.set_help_flag();  // --help is made from our table instead
  app.add_option("--config", arguments.config_file);
  app.add_option("--set", arguments.set_arguments)->allow_extra_args(false);
  app.add_flag("--check-config", arguments.check_config);
  if (info.doctor) app.add_flag("--doctor", arguments.doctor);
  arguments.asked.resize(info.questions.size());
  for (size_t i = 0; i < info.questions.size(); ++i) {
    app.add_option(std::string(info.questions[i].flag), arguments.asked[i]);
  }
  app.add_flag("--version", arguments.version);
  app.add_flag("-h,--help", arguments.help);
  app.add_flag("--help-markdown", arguments.help_markdown);  // for docs/reference
  app.add_flag("--help-yaml", arguments.help_yaml);          // for conf/
  app.add_flag("--help-metrics", arguments.help_metrics);    // for docs/reference
  app.add_flag("--help-stats", arguments.help_stats);        // for docs/reference
  app.add_flag("--help-events", arguments.help_events);      // for docs/reference
  app.add_flag("--help-catalog", arguments.help_catalog);    // for the journal
}

// Prints what --help, --version and the like ask for. Returns whether there was any.
bool answer(const ProgramInfo& info, const Arguments& arguments) {
  std::string text;
  if (arguments.help) text += help(info);
  if (arguments.version) text += std::string(info.name) + " " EGRET_VERSION "\n";
  if (arguments.help_markdown) text += help_markdown(info.table);
  if (arguments.help_yaml) text += help_yaml(info.name, info.table);
  if (arguments.help_metrics && info.metrics_markdown != nullptr) text += info.metrics_markdown();
  if (arguments.help_stats && info.stats_markdown != nullptr) text += info.stats_markdown();
  if (arguments.help_events) text += events_markdown(info.events);
  if (arguments.help_catalog) text += events_catalog(info.name, info.events);
  print(text);
  return arguments.help_metrics || !text.empty();
}

// The exit status, if a question was asked.
std::optional<int> answer_questions(const ProgramInfo& info, const Arguments& arguments, const Options& options) {
  for (size_t i = 0; i < info.questions.size(); ++i) {
    if (!arguments.asked[i]) continue;
    const Expected<std::string> found = info.questions[i].answer(options, *arguments.asked[i]);
    if (!found) return fail_start(info.name, std::string(info.questions[i].flag) + ": " + found.message());
    print(found.value());
    return 0;
  }
  return std::nullopt;
}

}  // namespace

std::string_view version() {
  return EGRET_VERSION;
}

int fail_start(std::string_view program, const std::string& message, std::string_view notice) {
  const std::string line = std::string(program) + ": " + message;
  std::fprintf(stderr, "%s\n", line.c_str());
  notify_supervisor(std::string(kNotifyStatus) + line + "\n" + std::string(notice));
  return 1;
}

ProgramStart start_program(const ProgramInfo& info, int argc, const char* const* argv) {
  CLI::App app;
  Arguments arguments;
  describe(app, info, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& problem) {
    const std::vector<std::string> unknown = app.remaining();
    return failed(info, problem.what() + (unknown.empty() ? "" : hint(info, unknown.front())));
  } catch (const CLI::ParseError& problem) {
    return failed(info, problem.what());
  }

  ProgramStart start;
  if (answer(info, arguments)) return start;

  if (app.count("--config") > 0) start.sources.config_file = arguments.config_file;
  start.sources.set_arguments = arguments.set_arguments;
  auto options = Options::load(info.table, start.sources.config_file, start.sources.set_arguments);
  if (!options) return failed(info, options.message());
  if (info.check) {
    if (Status status = info.check(options.value()); !status) return failed(info, status.message());
  }
  if (arguments.check_config) {
    for (const std::string& note : options.value().notes()) print("note: " + one_line(note) + "\n");
    if (info.explain != nullptr) print(info.explain(options.value()));
    print(std::string(info.name) + ": the configuration is ok\n");
    return start;
  }
  if (std::optional<int> status = answer_questions(info, arguments, options.value())) {
    start.exit_status = *status;
    return start;
  }
  if (arguments.doctor) {
    start.exit_status = print_findings(info.doctor(options.value()));
    return start;
  }
  start.options = std::move(options.value());
  return start;
}

}  // namespace egret::base
