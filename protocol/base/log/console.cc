// The sink of daemons: stderr as text or JSON, or the journal. Only this file knows spdlog and nlohmann's JSON.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log/journal.h"
#include "base/log/log.h"
#include "base/text.h"

namespace egret::base {

namespace {

struct LevelInfo {
  std::string_view journal_prefix;  // sd-daemon(3)
  spdlog::level::level_enum spdlog_level;
};
constexpr std::array<LevelInfo, 4> kLevels{{{"<7>", spdlog::level::debug},
                                            {"<6>", spdlog::level::info},
                                            {"<4>", spdlog::level::warn},
                                            {"<3>", spdlog::level::err}}};

const LevelInfo& info_of(LogLevel level) {
  return kLevels[static_cast<size_t>(level) % kLevels.size()];
}

// JOURNAL_STREAM has the device and inode of the journal's socket; a redirected stderr does not match them.
bool stderr_is_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat at {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &at) != 0) return false;
  return fmt::format("{}:{}", at.st_dev, at.st_ino) == stream;
}

struct Output {
  std::shared_ptr<spdlog::logger> logger;
  std::string program;
  LogFormat format = LogFormat::kText;
  JournalSocket journal{kJournalSocket};  // for kJournal
};

// Never freed: other threads may still log through an older output, or while main() returns.
const Output* make_output(std::string_view program, LogFormat format) {
  static std::mutex mutex;
  static auto* all = new std::vector<std::unique_ptr<Output>>;
  auto output = std::make_unique<Output>();
  output->program = program;
  output->format = format;
  if (format == LogFormat::kAuto) output->format = stderr_is_journal() ? LogFormat::kJournal : LogFormat::kText;
  output->logger =
      std::make_shared<spdlog::logger>(std::string(program), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  output->logger->set_level(spdlog::level::trace);
  const std::string name = program.empty() ? "" : " %n";
  output->logger->set_pattern(output->format == LogFormat::kText ? "%Y-%m-%d %H:%M:%S.%e" + name + " %l: %v" : "%v");
  const std::lock_guard lock(mutex);
  all->push_back(std::move(output));
  return all->back().get();
}

std::atomic<const Output*> current{nullptr};

// Field names of the journal are in capitals; ours begin with EGRET_.
std::string journal_entry(std::string_view name, std::string_view value) {
  std::string entry = "EGRET_";
  for (const char c : name) entry += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return entry.append("=").append(value);
}

// False: the journal did not take the entry.
bool send_to_journal(const Output& out, const LogEvent& event, std::span<const LogField> fields,
                     std::string_view line) {
  std::vector<std::string> texts;
  texts.push_back("MESSAGE=" + std::string(line));
  texts.push_back("PRIORITY=" + std::string(1, info_of(event.level).journal_prefix[1]));
  texts.push_back("SYSLOG_IDENTIFIER=" + out.program);
  texts.push_back("MESSAGE_ID=" + std::string(event.id));
  texts.push_back(journal_entry("event", event.name));
  for (const LogField& field : fields) {
    if (!field.name.empty()) texts.push_back(journal_entry(field.name, one_line(field.value)));
  }
  return out.journal.send(texts);
}

// Times are UTC with milliseconds. Bytes that are not UTF-8 are replaced.
std::string json_line(const Output& out, const LogEvent& event, std::span<const LogField> fields,
                      std::string_view line) {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm broken_down{};
  ::gmtime_r(&seconds, &broken_down);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &broken_down);
  nlohmann::ordered_json json;
  json["time"] = fmt::format("{}.{:03}Z", text.data(), now.time_since_epoch().count() % 1000);
  json["level"] = to_string(event.level);
  json["program"] = out.program;
  json["event"] = event.name;
  json["message"] = line;
  for (const LogField& field : fields) {
    if (!field.name.empty()) json[std::string(field.name)] = field.value;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write(const LogEvent& event, std::span<const LogField> fields, const std::string& line) {
  const Output& out = *current.load(std::memory_order_acquire);  // there is one before this is the sink
  const LevelInfo& info = info_of(event.level);
  switch (out.format) {
    case LogFormat::kJson:
      return out.logger->log(info.spdlog_level, "{}", json_line(out, event, fields, line));
    case LogFormat::kJournal:
      if (!send_to_journal(out, event, fields, line)) {
        out.logger->log(info.spdlog_level, "{}{} [{}]", info.journal_prefix, line, event.name);
      }
      return;
    case LogFormat::kAuto:
    case LogFormat::kText:
      return out.logger->log(info.spdlog_level, "{} [{}]", line, event.name);
  }
}

}  // namespace

LogFormat log_format_of(std::string_view text) {
  if (text == "json") return LogFormat::kJson;
  return text == "text" ? LogFormat::kText : LogFormat::kAuto;
}

void setup_logging(std::string_view program, LogLevel level, LogFormat format) {
  set_log_level(level);
  current.store(make_output(program, format), std::memory_order_release);
  set_log_sink(write);
}

}  // namespace egret::base
