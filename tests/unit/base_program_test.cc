// The command line of the daemons, as a user sees it: what is printed where, and the exit status.
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/service/program.h"
#include "base/unique_fd.h"

using namespace egret::base;

namespace {

constexpr OptionRow kTable[] = {
    {.name = "workers", .type = OptionType::kInteger, .default_value = "0", .help = "Threads.", .max = 64},
    {.name = "listen", .type = OptionType::kList, .default_value = "tcp:1", .help = "Where."},
};

const ProgramInfo kProgram{.name = "egret-test",
                           .summary = "tests.",
                           .table = kTable,
                           .check =
                               [](const Options& options) {
                                 return options.integer("workers") == 13 ? options.error("workers", "brings bad luck")
                                                                         : Status::ok();
                               },
                           .doctor =
                               [](const Options& options) {
                                 Findings findings;
                                 findings.ok("workers", "threads are to be had");
                                 if (options.integer("workers") > 8) findings.warn("workers", "many", "take fewer");
                                 if (options.integer("workers") > 32)
                                   findings.fail("workers", "too many", "take fewer");
                                 return findings;
                               }};

std::string capture(std::FILE* stream, int fd, const std::function<void()>& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::fflush(stream);
  const UniqueFd saved(::dup(fd));
  ::dup2(::fileno(file), fd);
  work();
  std::fflush(stream);
  ::dup2(saved.get(), fd);
  std::string text(1 << 16, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

struct Outcome {
  ProgramStart start;
  std::string output;
  std::string errors;
};

Outcome run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "egret-test");
  Outcome outcome;
  outcome.errors = capture(stderr, STDERR_FILENO, [&] {
    outcome.output = capture(stdout, STDOUT_FILENO, [&] {
      outcome.start = start_program(kProgram, static_cast<int>(arguments.size()), arguments.data());
    });
  });
  return outcome;
}

void check_refused(std::vector<const char*> arguments, const std::string& line) {
  const Outcome outcome = run(std::move(arguments));
  CHECK_FALSE(outcome.start.options);
  CHECK(outcome.start.exit_status == 1);
  CHECK(outcome.output.empty());
  CHECK(outcome.errors == line + "\n");
}

}  // namespace

TEST_CASE("options come from repeated --set, in either spelling") {
  const Outcome outcome = run({"--set", "workers=3", "--set=listen=a,b"});
  REQUIRE(outcome.start.options);
  CHECK(outcome.start.options->integer("workers") == 3);
  CHECK(outcome.start.options->list("listen").size() == 2);
  CHECK(outcome.start.sources.set_arguments == std::vector<std::string>{"workers=3", "listen=a,b"});
  CHECK(outcome.output.empty());
  CHECK(outcome.errors.empty());
}

TEST_CASE("no arguments at all mean the defaults") {
  REQUIRE(run({}).start.options);
}

TEST_CASE("--check-config, --version and --help print and end with status 0") {
  const std::pair<const char*, const char*> cases[] = {{"--check-config", "egret-test: the configuration is ok\n"},
                                                       {"--version", "egret-test 0."},
                                                       {"--help", "egret-test: tests.\n\nUsage: egret-test [--config"},
                                                       {"--help-markdown", "| option | group | type |"}};
  for (const auto& each : cases) {
    const char* argument = each.first;
    const char* beginning = each.second;
    CAPTURE(argument);
    const Outcome outcome = run({argument});
    CHECK_FALSE(outcome.start.options);
    CHECK(outcome.start.exit_status == 0);
    CHECK(outcome.output.find(beginning) == 0);
    CHECK(outcome.errors.empty());
  }
  CHECK(run({"--help"}).output.find("  workers (integer, 0 to 64; default 0; applied by a restart)\n") !=
        std::string::npos);
}

TEST_CASE("what is wrong is one line on stderr and status 1") {
  check_refused({"--set", "workers=many"},
                "egret-test: --set workers=many: workers: expected an integer from 0 to 64, got \"many\"");
  check_refused({"--config", "/nonexistent.yaml"}, "egret-test: /nonexistent.yaml: No such file or directory");
  check_refused({"--frobnicate"}, "egret-test: The following argument was not expected: --frobnicate");
  check_refused({"--chek-config"},
                "egret-test: The following argument was not expected: --chek-config; did you mean --check-config?");
  check_refused({"--workers=3"},
                "egret-test: The following argument was not expected: --workers=3; did you mean --set workers=VALUE?");
  check_refused({"--worker", "3"},
                "egret-test: The following arguments were not expected: 3 --worker; did you mean --set workers=VALUE?");
  check_refused({"stray"}, "egret-test: The following argument was not expected: stray");
  check_refused({"a\nb"}, "egret-test: The following argument was not expected: a\\nb");
  check_refused({"--set"}, "egret-test: --set: 1 required TEXT missing");
}

TEST_CASE("the program's own check names the option's place, under --check-config too") {
  check_refused({"--set", "workers=13"}, "egret-test: --set workers=13: workers: brings bad luck");
  check_refused({"--check-config", "--set", "workers=13"}, "egret-test: --set workers=13: workers: brings bad luck");
}

TEST_CASE("--doctor prints what it finds under these options, and fails when something does") {
  const Outcome good = run({"--doctor"});
  CHECK_FALSE(good.start.options);
  CHECK(good.start.exit_status == 0);
  CHECK(good.output == "ok   workers: threads are to be had\n");
  CHECK(good.errors.empty());
  const Outcome warned = run({"--doctor", "--set", "workers=9"});
  CHECK(warned.start.exit_status == 0);
  CHECK(warned.output == "ok   workers: threads are to be had\nwarn workers: many => take fewer\n");
  const Outcome failed = run({"--set", "workers=33", "--doctor"});
  CHECK(failed.start.exit_status == 1);
  CHECK(failed.output.find("FAIL workers: too many => take fewer\n") != std::string::npos);
  check_refused({"--doctor", "--set", "workers=13"}, "egret-test: --set workers=13: workers: brings bad luck");
}
