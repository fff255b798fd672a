#include "base/log.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

namespace egret::base {

namespace {

struct LevelInfo {
  std::string_view name;
  std::string_view journal_prefix;  // sd-daemon(3)
  spdlog::level::level_enum spdlog_level;
};
constexpr std::array<LevelInfo, 4> kLevels{{{"debug", "<7>", spdlog::level::debug},
                                            {"info", "<6>", spdlog::level::info},
                                            {"warning", "<4>", spdlog::level::warn},
                                            {"error", "<3>", spdlog::level::err}}};

const LevelInfo& info_of(LogLevel level) {
  return kLevels[static_cast<size_t>(level) % kLevels.size()];
}

std::atomic<LogLevel> minimum{LogLevel::kInfo};

// systemd names the device and inode of the journal's socket; a redirected stderr no longer matches them.
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat at {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &at) != 0) return false;
  return fmt::format("{}:{}", at.st_dev, at.st_ino) == stream;
}

struct Output {
  std::shared_ptr<spdlog::logger> logger;
  bool is_journal = false;
};

// Kept to the process's end and past it: other threads may still log through an older one, or while main() returns.
const Output* make_output(std::string_view program) {
  static std::mutex mutex;
  static auto* all = new std::vector<std::unique_ptr<Output>>;
  auto output = std::make_unique<Output>();
  output->is_journal = stderr_is_journal();
  output->logger =
      std::make_shared<spdlog::logger>(std::string(program), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  output->logger->set_level(spdlog::level::trace);
  const std::string name = program.empty() ? "" : " %n";
  output->logger->set_pattern(output->is_journal ? "%v" : "%Y-%m-%d %H:%M:%S.%e" + name + " %l: %v");
  const std::lock_guard lock(mutex);
  all->push_back(std::move(output));
  return all->back().get();
}

std::atomic<const Output*> current{nullptr};

const Output& output() {
  if (current.load(std::memory_order_acquire) == nullptr) {
    static const Output* fallback = make_output("");
    const Output* none = nullptr;
    current.compare_exchange_strong(none, fallback);
  }
  return *current.load(std::memory_order_acquire);
}

}  // namespace

LogLevel log_level_of(std::string_view text) {
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i].name == text) return static_cast<LogLevel>(i);
  }
  return LogLevel::kInfo;
}

void setup_logging(std::string_view program, LogLevel level) {
  set_log_level(level);
  current.store(make_output(program), std::memory_order_release);
}

void set_log_level(LogLevel level) {
  minimum.store(level, std::memory_order_relaxed);
}

bool is_logged(LogLevel level) {
  return level >= minimum.load(std::memory_order_relaxed);
}

void write_log(LogLevel level, fmt::string_view format, fmt::format_args arguments) {
  const Output& out = output();
  const LevelInfo& info = info_of(level);
  const std::string line = one_line(fmt::vformat(format, arguments));
  out.logger->log(info.spdlog_level, "{}{}", out.is_journal ? info.journal_prefix : "", line);
}

LogLimit::Verdict LogLimit::admit(uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (passed_ == 0 || now_ns - interval_start_ >= interval_) {
    interval_start_ = now_ns;
    passed_ = 0;
  }
  if (passed_ >= burst_) {
    ++withheld_;
    return {.passes = false, .withheld = 0};
  }
  ++passed_;
  return {.passes = true, .withheld = std::exchange(withheld_, 0)};
}

bool admit_log(LogLimit& limit, LogLevel level) {
  static const SystemClock clock;
  const LogLimit::Verdict verdict = limit.admit(clock.now_ns());
  if (verdict.withheld > 0) log(level, "{} messages such as the next were withheld", verdict.withheld);
  return verdict.passes;
}

}  // namespace egret::base
