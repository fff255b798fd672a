// Logging: what ends up on stderr, and what a peer cannot do to it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"

using namespace egret::base;

namespace {

// What `work` writes to stderr, which is a file meanwhile.
std::string captured(const std::function<void()>& work) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  const UniqueFd saved(::dup(STDERR_FILENO));
  ::dup2(::fileno(file), STDERR_FILENO);
  work();
  std::fflush(stderr);
  ::dup2(saved.get(), STDERR_FILENO);
  std::string text(1 << 16, '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("a line carries time, program, level and the message") {
  const std::string text = captured([] {
    setup_logging("egret-test", LogLevel::kInfo);
    log_warning("{} of {}", 3, "four");
  });
  CHECK(std::regex_match(text, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} egret-test warning: 3 of four\n)")));
}

TEST_CASE("messages below the level are left out, and the level may change") {
  const std::string text = captured([] {
    setup_logging("t", LogLevel::kWarning);
    log_debug("one");
    log_info("two");
    log_error("three");
    set_log_level(LogLevel::kDebug);
    log_debug("four");
  });
  CHECK(text.find("one") == std::string::npos);
  CHECK(text.find("two") == std::string::npos);
  CHECK(text.find("error: three\n") != std::string::npos);
  CHECK(text.find("debug: four\n") != std::string::npos);
}

TEST_CASE("a message stays one line whatever it holds, braces included") {
  const std::string text = captured([] {
    setup_logging("t", LogLevel::kInfo);
    log_info("got {}", "a\nb\r\x1b[0m {} \xc3\xa9");
  });
  CHECK(text.find("got a\\nb\\r\\x1b[0m {} \xc3\xa9\n") != std::string::npos);
}

TEST_CASE("when stderr is the journal, lines carry its priority and no time") {
  const std::string text = captured([] {
    struct stat at {};
    REQUIRE(::fstat(STDERR_FILENO, &at) == 0);
    ::setenv("JOURNAL_STREAM", (std::to_string(at.st_dev) + ":" + std::to_string(at.st_ino)).c_str(), 1);
    setup_logging("egret-test", LogLevel::kInfo);
    log_info("hello");
    log_error("oh");
    ::unsetenv("JOURNAL_STREAM");
  });
  CHECK(text == "<6>hello\n<3>oh\n");
}

TEST_CASE("a redirected stderr is not taken for the journal") {
  const std::string text = captured([] {
    ::setenv("JOURNAL_STREAM", "1:2", 1);
    setup_logging("egret-test", LogLevel::kInfo);
    log_info("hello");
    ::unsetenv("JOURNAL_STREAM");
  });
  CHECK(text.find("egret-test info: hello\n") != std::string::npos);
}

TEST_CASE("level names go both ways") {
  CHECK(log_level_of("debug") == LogLevel::kDebug);
  CHECK(log_level_of("info") == LogLevel::kInfo);
  CHECK(log_level_of("warning") == LogLevel::kWarning);
  CHECK(log_level_of("error") == LogLevel::kError);
  CHECK(log_level_of("loud") == LogLevel::kInfo);
}

TEST_CASE("a limit passes its burst, withholds the rest of the interval, and says how many") {
  LogLimit limit(2, 100);
  CHECK(limit.admit(10).passes);
  CHECK(limit.admit(11).passes);
  CHECK_FALSE(limit.admit(12).passes);
  CHECK_FALSE(limit.admit(109).passes);
  const auto next = limit.admit(110);
  CHECK(next.passes);
  CHECK(next.withheld == 2);
  CHECK(limit.admit(111).withheld == 0);
  CHECK_FALSE(limit.admit(112).passes);
}

TEST_CASE("a flood of one message from many threads comes to a few lines") {
  const std::string text = captured([] {
    setup_logging("t", LogLevel::kInfo);
    static LogLimit limit(3, 3'600'000'000'000);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int j = 0; j < 1000; ++j) log_limited(limit, LogLevel::kWarning, "bad frame");
      });
    }
    for (auto& thread : threads) thread.join();
  });
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
