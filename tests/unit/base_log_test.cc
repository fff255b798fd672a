// Logging: the lines on stderr; a peer cannot forge lines.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log/journal.h"
#include "base/log/log.h"
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

// An event of that level; tests need no more of it.
LogEvent event_of(LogLevel level) {
  return {.name = "spoken", .id = "00000000000000000000000000000001", .level = level, .meaning = "Something was said."};
}
const LogEvent kDebugEvent = event_of(LogLevel::kDebug);
const LogEvent kInfoEvent = event_of(LogLevel::kInfo);
const LogEvent kWarningEvent = event_of(LogLevel::kWarning);
const LogEvent kErrorEvent = event_of(LogLevel::kError);

}  // namespace

TEST_CASE("a line carries time, program, level, the message and the name of its event") {
  const std::string text = captured([] {
    setup_logging("egret-test", LogLevel::kInfo);
    log(kWarningEvent, "{} of {}", 3, "four");
  });
  CHECK(std::regex_match(
      text, std::regex(R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} egret-test warning: 3 of four \[spoken\]\n)")));
}

TEST_CASE("messages below the level are left out, and the level may change") {
  const std::string text = captured([] {
    setup_logging("t", LogLevel::kWarning);
    log(kDebugEvent, "one");
    log(kInfoEvent, "two");
    log(kErrorEvent, "three");
    set_log_level(LogLevel::kDebug);
    log(kDebugEvent, "four");
  });
  CHECK(text.find("one") == std::string::npos);
  CHECK(text.find("two") == std::string::npos);
  CHECK(text.find("error: three [spoken]\n") != std::string::npos);
  CHECK(text.find("debug: four [spoken]\n") != std::string::npos);
}

TEST_CASE("a message stays one line whatever it holds, braces included") {
  const std::string text = captured([] {
    setup_logging("t", LogLevel::kInfo);
    log(kInfoEvent, "got {}", "a\nb\r\x1b[0m {} \xc3\xa9");
  });
  CHECK(text.find("got a\\nb\\r\\x1b[0m {} \xc3\xa9 [spoken]\n") != std::string::npos);
}

TEST_CASE("when stderr is the journal, which cannot be reached, lines carry its priority and no time") {
  if (::access("/run/systemd/journal/socket", F_OK) == 0) return;  // it can, and takes them
  const std::string text = captured([] {
    struct stat at {};
    REQUIRE(::fstat(STDERR_FILENO, &at) == 0);
    ::setenv("JOURNAL_STREAM", (std::to_string(at.st_dev) + ":" + std::to_string(at.st_ino)).c_str(), 1);
    setup_logging("egret-test", LogLevel::kInfo);
    log(kInfoEvent, "hello");
    log(kErrorEvent, "oh");
    ::unsetenv("JOURNAL_STREAM");
  });
  CHECK(text == "<6>hello [spoken]\n<3>oh [spoken]\n");
}

TEST_CASE("the journal gets an entry as a datagram of its fields, a line each") {
  const std::string path = "/tmp/egret-journal-" + std::to_string(::getpid());
  const UniqueFd journal(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  path.copy(at.sun_path, sizeof at.sun_path - 1);
  REQUIRE(::bind(journal.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  const JournalSocket sender(path);
  ::unlink(path.c_str());
  const std::vector<std::string> entry{"MESSAGE=hello", "EGRET_BACKEND=shm:/run/b"};
  REQUIRE(sender.send(entry));
  std::string got(100, '\0');
  got.resize(static_cast<size_t>(::recv(journal.get(), got.data(), got.size(), MSG_DONTWAIT)));
  CHECK(got == "MESSAGE=hello\nEGRET_BACKEND=shm:/run/b\n");
  CHECK_FALSE(sender.send(std::vector<std::string>{std::string(10 << 20, 'x')}));  // too large for a datagram
}

TEST_CASE("where there is no journal, nothing is taken") {
  CHECK_FALSE(JournalSocket("/tmp/egret-no-such-socket").send(std::vector<std::string>{"MESSAGE=hello"}));
}

TEST_CASE("a redirected stderr is not taken for the journal") {
  const std::string text = captured([] {
    ::setenv("JOURNAL_STREAM", "1:2", 1);
    setup_logging("egret-test", LogLevel::kInfo);
    log(kInfoEvent, "hello");
    ::unsetenv("JOURNAL_STREAM");
  });
  CHECK(text.find("egret-test info: hello [spoken]\n") != std::string::npos);
}

TEST_CASE("as JSON a line is an object: the message, and each argument that has a name as a field") {
  const std::string text = captured([] {
    setup_logging("egret-test", LogLevel::kInfo, LogFormat::kJson);
    log(kWarningEvent, "{} of {} said {}", field("part", 3), 4, field("what", "a\"\nb\xff"));
  });
  const std::string head = R"(","level":"warning","program":"egret-test","event":"spoken",)";
  CHECK(std::regex_search(text, std::regex(R"(^\{"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")")));
  const std::string tail = R"("message":"3 of 4 said a\"\\nb)"
                           "\ufffd"
                           R"(","part":"3","what":"a\"\nb)"
                           "\ufffd"
                           "\"}\n";
  CHECK(text.substr(text.find('Z') + 1) == head + tail);
}

TEST_CASE("format names are the option's; anything else is auto") {
  CHECK(log_format_of("json") == LogFormat::kJson);
  CHECK(log_format_of("text") == LogFormat::kText);
  CHECK(log_format_of("auto") == LogFormat::kAuto);
}

TEST_CASE("a table of events is the reference page's list and the journal's catalog") {
  const LogEvent odd{.name = "odd",
                     .id = "0123456789abcdef0123456789abcdef",
                     .level = LogLevel::kError,
                     .meaning = "Odd.",
                     .advice = "Look."};
  const LogEvent* events[] = {&kInfoEvent, &odd};
  CHECK(events_markdown(events) ==
        "| event | level | what it says | what to do |\n| --- | --- | --- | --- |\n"
        "| `spoken` | info | Something was said. | – |\n| `odd` | error | Odd. | Look. |\n");
  CHECK(events_catalog("egret-test", events)
            .find("-- 0123456789abcdef0123456789abcdef\nSubject: egret-test: odd\n"
                  "Defined-By: Egret\nDocumentation: man:egret-test(8)\n\nOdd.\n\nLook.\n\n") != std::string::npos);
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

TEST_CASE("a thread that read the clock before another one began the interval does not begin a new one") {
  LogLimit limit(1, 100);
  CHECK(limit.admit(10).passes);
  CHECK_FALSE(limit.admit(9).passes);
  CHECK_FALSE(limit.admit(109).passes);
  CHECK(limit.admit(110).passes);
}

TEST_CASE("a flood of one message from many threads comes to a few lines") {
  const std::string text = captured([] {
    setup_logging("t", LogLevel::kInfo);
    static LogLimit limit(3, 3'600'000'000'000);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int j = 0; j < 1000; ++j) log_limited(limit, kWarningEvent, "bad frame");
      });
    }
    for (auto& thread : threads) thread.join();
  });
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}
