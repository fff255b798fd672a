#include "client/api/boundary.h"

#include <cstdio>
#include <mutex>
#include <stdexcept>

#include "base/check.h"
#include "base/local/helper_threads.h"

namespace egret::client {

namespace {

struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void throw_check_failed(const char* file, int line, const char* text) {
  throw CheckFailed(std::string("check failed: ") + file + ":" + std::to_string(line) + ": " + text);
}

struct LogTarget {
  void (*call)(void* user, int level, const char* line) = nullptr;
  void* user = nullptr;
};

std::mutex log_mutex;  // of the target, not of the call
LogTarget log_target;

LogTarget target() {
  const std::lock_guard lock(log_mutex);
  return log_target;
}

}  // namespace

void set_up_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    base::set_check_handler(throw_check_failed);
    base::allow_helper_threads(false);
    ForkGuard::install();
  });
  ForkGuard::enter_child_if_new();
}

void write_line(int level, const std::string& line) {
  const LogTarget to = target();
  if (to.call != nullptr) to.call(to.user, level, line.c_str());
}

void write_lines(egret_client& client) {
  for (const Engine::Line& line : client.engine->take_log()) write_line(line.level, line.text);
}

// The engine and what it uses are left alone for ever, as they are.
int break_client(egret_client& client, const char* what) {
  client.is_broken = true;
  try {
    client.why = what;
    write_line(kErrorLevel, std::string("a client is broken: ") + what);
  } catch (...) {  // no memory for the words
  }
  return EGRET_E_BROKEN;
}

}  // namespace egret::client

extern "C" void egret_log(void (*call)(void* user, int level, const char* line), void* user) {
  const std::lock_guard lock(egret::client::log_mutex);
  egret::client::log_target = {call, user};
}
