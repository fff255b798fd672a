// Start-up checks: what was looked at, how it is, and what to do about it. `--doctor` prints all of it, a daemon that
// starts logs what is not well.
//
//   check_*(..., findings)  ─┬─▶ print_findings: "ok   ...", "warn ...", "FAIL ..." a line each   (--doctor)
//   (every layer has its own)└─▶ log_problems: one warning each                                   (at start)
//
// Checks look and touch nothing: they may run beside a daemon that serves. Cold path; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace egret::base {

enum class Verdict : uint8_t {
  kOk,
  kWarning,  // it will work, but worse, or less safely, than it could
  kFailure,  // it will not work
};

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;  // "memlock", "rxe0 port 1"
  std::string what;     // how it is
  std::string advice;   // what to do about it; empty when all is well
};

// "FAIL memlock: 64KiB may be pinned, ... => systemd: LimitMEMLOCK=infinity", one line whatever the parts hold.
std::string to_line(const Finding& finding);

class Findings {
 public:
  void ok(std::string subject, std::string what) { add({Verdict::kOk, std::move(subject), std::move(what), {}}); }
  void warn(std::string subject, std::string what, std::string advice) {
    add({Verdict::kWarning, std::move(subject), std::move(what), std::move(advice)});
  }
  void fail(std::string subject, std::string what, std::string advice) {
    add({Verdict::kFailure, std::move(subject), std::move(what), std::move(advice)});
  }
  void add(Finding finding) { all_.push_back(std::move(finding)); }
  const std::vector<Finding>& all() const { return all_; }
  bool has_failure() const;

 private:
  std::vector<Finding> all_;
};

// On stdout, a line each. Returns the exit status: 1 when something fails.
int print_findings(const Findings& findings);

// What is not well, each as a warning in the log.
void log_problems(const Findings& findings);

// Whether a process may have `needed` files open; `arithmetic` says why so many. Raises the limit as far as it may.
void check_open_files(uint64_t needed, const std::string& arithmetic, Findings& findings);

// Whether a Unix socket of `type` (SOCK_STREAM, SOCK_SEQPACKET) can be made at `path`; "@name" is an abstract one.
void check_socket_path(const std::string& subject, const std::string& path, int type, Findings& findings);

}  // namespace egret::base
