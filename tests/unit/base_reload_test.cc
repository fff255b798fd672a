// SIGHUP: all options that are read again take effect together, or none does.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/options/reload.h"

using namespace egret::base;

namespace {

constexpr OptionRow kTable[] = {
    {.name = "threads", .type = OptionType::kInteger, .default_value = "1", .help = "How many.", .max = 64},
    {.name = "level",
     .type = OptionType::kInteger,
     .default_value = "1",
     .help = "How much.",
     .max = 9,
     .applied_by = AppliedBy::kReload},
};

// More than three levels for each thread is too much.
Status check(const Options& options) {
  return options.integer("level") > 3 * options.integer("threads") ? options.error("level", "too many for the threads")
                                                                   : Status::ok();
}

struct Daemon {
  Daemon() {
    set_log_level(LogLevel::kError);
    write("threads: 1\n");
  }
  ~Daemon() { std::remove(path.c_str()); }
  void write(const std::string& text) const { std::ofstream(path) << text; }
  bool reload() {
    return reloader.reload(
        [this](const Options& options) {
          if (!refusal.empty()) return options.error("level", refusal);
          applied.push_back(options.integer("level"));
          return Status::ok();
        },
        counters);
  }
  int64_t level() const { return reloader.in_force().integer("level"); }

  const std::string path = "/tmp/egret-reload-" + std::to_string(::getpid()) + ".yaml";
  std::string refusal;           // of whoever applies
  std::vector<int64_t> applied;  // levels
  ReloadCounters counters;
  Reloader reloader{{path, {}}, Options::parse(kTable, "threads: 1", "x", {}).value(), check};
};

}  // namespace

TEST_CASE("what is read again is applied and in force") {
  Daemon daemon;
  daemon.write("level: 2\n");
  CHECK(daemon.reload());
  CHECK(daemon.applied == std::vector<int64_t>{2});
  CHECK(daemon.level() == 2);
  CHECK(daemon.counters.succeeded.get() == 1);
  CHECK(daemon.counters.failed.get() == 0);
}

TEST_CASE("a reload without a change applies, too: files may have changed") {
  Daemon daemon;
  CHECK(daemon.reload());
  CHECK(daemon.applied == std::vector<int64_t>{1});
}

TEST_CASE("what is wrong changes nothing") {
  Daemon daemon;
  daemon.write("level: 2\n");
  REQUIRE(daemon.reload());
  SUBCASE("as YAML") {
    daemon.write("level: [\n");
  }
  SUBCASE("by the table") {
    daemon.write("level: 10\n");
  }
  SUBCASE("by the daemon's check") {
    daemon.write("level: 4\n");
  }
  SUBCASE("together with what needs a restart") {
    daemon.write("threads: 2\nlevel: 4\n");
  }
  SUBCASE("because there is no file") {
    std::remove(daemon.path.c_str());
  }
  SUBCASE("when it is applied") {
    daemon.write("level: 3\n");
    daemon.refusal = "not now";
  }
  CHECK(!daemon.reload());
  CHECK(daemon.level() == 2);
  CHECK(daemon.applied.size() == 1);
  CHECK(daemon.counters.failed.get() == 1);
  daemon.refusal.clear();
  daemon.write("level: 1\n");
  CHECK(daemon.reload());
  CHECK(daemon.level() == 1);
}

TEST_CASE("what needs a restart stays as it was, however often it is read") {
  Daemon daemon;
  daemon.write("threads: 2\nlevel: 3\n");
  for (int i = 0; i < 2; ++i) {
    CHECK(daemon.reload());
    CHECK(daemon.reloader.in_force().integer("threads") == 1);
    CHECK(daemon.level() == 3);
  }
}
