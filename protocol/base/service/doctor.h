// Start-up checks. A finding says what was checked, its state, and what to do about it. `--doctor` prints all findings;
// a daemon that starts logs the problems.
//
//   check_*(..., findings)  ─┬─▶ print_findings: "ok   ...", "warn ...", "FAIL ..." a line each   (--doctor)
//   (every layer has its own)└─▶ log_problems: one warning each                                   (at start)
//
// Checks change nothing: they may run beside a daemon that serves. Cold path; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace egret::base {

enum class Verdict : uint8_t {
  kOk,
  kWarning,  // works, but slower or less safely than possible
  kFailure,  // will not work
};

struct Finding {
  Verdict verdict = Verdict::kOk;
  std::string subject;  // "memlock", "rxe0 port 1"
  std::string what;     // its state
  std::string advice;   // what to do about it; empty if it is ok
};

// "FAIL memlock: 64KiB may be pinned, ... => systemd: LimitMEMLOCK=infinity". Always one line: control characters are
// escaped.
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

// Prints one line per finding to stdout. Returns the exit status: 1 if there is a failure.
int print_findings(const Findings& findings);

// Logs each warning and failure as a warning.
void log_problems(const Findings& findings);

// Checks that this process may open `needed` files, after raising its limit as far as it may. `arithmetic` explains the
// number.
void check_open_files(uint64_t needed, const std::string& arithmetic, Findings& findings);

// Checks that a Unix socket of `type` (SOCK_STREAM, SOCK_SEQPACKET) can be made at `path`; "@name" is an abstract one.
void check_socket_path(const std::string& subject, const std::string& path, int type, Findings& findings);

}  // namespace egret::base
