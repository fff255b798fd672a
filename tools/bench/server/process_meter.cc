#include "bench/server/process_meter.h"

#include <charconv>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include <dirent.h>
#include <unistd.h>

#include "bench/monotonic.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

uint64_t tick_ns() {
  return kNsPerSecond / static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
}

std::string read_file(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

bool read_cpu_clock(clockid_t clock, uint64_t& ns) {
  timespec time{};
  if (::clock_gettime(clock, &time) != 0) return false;
  ns += static_cast<uint64_t>(time.tv_sec) * kNsPerSecond + static_cast<uint64_t>(time.tv_nsec);
  return true;
}

bool add_cpu(pid_t pid, ProcessCost& cost) {
  clockid_t clock{};
  return ::clock_getcpuclockid(pid, &clock) == 0 && read_cpu_clock(clock, cost.cpu_ns);
}

// utime and stime are the 12th and 13th field after the command name, which is in parentheses and may hold anything.
bool add_stat(const std::string& process, ProcessCost& cost) {
  const std::string stat = read_file(process + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  fields >> user >> system;
  cost.user_ns += user * tick_ns();
  cost.system_ns += system * tick_ns();
  return !fields.fail();
}

uint64_t field_of(std::string_view text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string_view::npos) return 0;
  const size_t digits = text.find_first_of("0123456789", at + name.size());
  uint64_t value = 0;
  if (digits != std::string_view::npos) std::from_chars(text.data() + digits, text.data() + text.size(), value);
  return value;
}

bool add_switches(const std::string& process, ProcessCost& cost) {
  const std::string tasks = process + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(tasks.c_str()), &::closedir);
  if (!folder) return false;
  while (const dirent* entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe): one thread per folder
    const std::string name = &entry->d_name[0];
    if (name.front() == '.') continue;
    std::string path = tasks;
    path.append("/").append(name).append("/status");
    const std::string status = read_file(path);
    cost.voluntary += field_of(status, "\nvoluntary_ctxt_switches");
    cost.involuntary += field_of(status, "nonvoluntary_ctxt_switches");
  }
  return true;
}

// The first line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks.
uint64_t machine_busy_ns() {
  std::istringstream line(read_file("/proc/stat"));
  std::string name;
  line >> name;
  uint64_t busy = 0;
  for (int i = 0; i < 7; ++i) {
    uint64_t ticks = 0;
    line >> ticks;
    if (i != 3 && i != 4) busy += ticks;
  }
  return busy * tick_ns();
}

}  // namespace

ProcessCost ProcessCost::operator-(const ProcessCost& before) const {
  return {wall_ns - before.wall_ns,       cpu_ns - before.cpu_ns,
          user_ns - before.user_ns,       system_ns - before.system_ns,
          voluntary - before.voluntary,   involuntary - before.involuntary,
          own_cpu_ns - before.own_cpu_ns, machine_busy_ns - before.machine_busy_ns};
}

Expected<ProcessCost> read_process_cost(const std::vector<pid_t>& pids) {
  ProcessCost cost;
  cost.wall_ns = monotonic_ns();
  for (const pid_t pid : pids) {
    const std::string process = "/proc/" + std::to_string(pid);
    if (!add_cpu(pid, cost) || !add_stat(process, cost) || !add_switches(process, cost)) {
      return Status::error("process " + std::to_string(pid) + " is gone or cannot be read");
    }
  }
  read_cpu_clock(CLOCK_PROCESS_CPUTIME_ID, cost.own_cpu_ns);
  cost.machine_busy_ns = machine_busy_ns();
  return cost;
}

uint64_t resident_bytes(pid_t pid) {
  return field_of(read_file("/proc/" + std::to_string(pid) + "/status"), "\nVmRSS:") << 10;
}

}  // namespace egret::bench
