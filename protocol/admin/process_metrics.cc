#include "admin/process_metrics.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include <sys/resource.h>
#include <unistd.h>

#include "base/service/program.h"

namespace egret::admin {

namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double seconds_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Field `number` of /proc/self/stat, numbered as in proc(5), from 3 on. Field 2, the name in parentheses, may contain
// anything, so counting starts after it.
double stat_field(int number) {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 3; i <= number; ++i) fields >> field;
  return field.empty() ? 0 : std::stod(field);
}

double resident_bytes() {
  return stat_field(24) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double open_descriptors() {
  std::error_code ignored;
  const std::filesystem::directory_iterator each("/proc/self/fd", ignored);
  const auto count = std::distance(begin(each), end(each));
  return static_cast<double>(count > 0 ? count - 1 : 0);  // without the descriptor of the directory itself
}

// Computed once, so that setting the wall clock does not change it.
double start_seconds() {
  static const double start = seconds_of(CLOCK_REALTIME) - seconds_of(CLOCK_BOOTTIME) +
                              stat_field(22) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return start;
}

}  // namespace

std::vector<MetricRow> process_metric_rows(const std::string& daemon) {
  return {{daemon + "_build_info", MetricType::kGauge, "Always 1; the version is a label.", {"version"}},
          {"process_cpu_seconds_total", MetricType::kCounter, "CPU time of all threads, user and system."},
          {"process_resident_memory_bytes", MetricType::kGauge, "Resident memory, slots and shared pages included."},
          {"process_open_fds", MetricType::kGauge, "Open descriptors."},
          {"process_start_time_seconds", MetricType::kGauge, "When the process started, in seconds since the epoch."}};
}

void add_process_metrics(MetricPage& page, const std::string& daemon) {
  page.add(daemon + "_build_info", 1, {base::version()});
  page.add("process_cpu_seconds_total", cpu_seconds());
  page.add("process_resident_memory_bytes", resident_bytes());
  page.add("process_open_fds", open_descriptors());
  page.add("process_start_time_seconds", start_seconds());
}

}  // namespace egret::admin
