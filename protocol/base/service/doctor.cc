#include "base/service/doctor.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log/log.h"
#include "base/service/listening.h"
#include "base/service/program.h"
#include "base/text.h"

namespace egret::base {

namespace {

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok  ";
    case Verdict::kWarning:
      return "warn";
    case Verdict::kFailure:
      return "FAIL";
  }
  return "FAIL";
}

std::string text_of(const Finding& finding) {
  std::string text = finding.subject + ": " + finding.what;
  if (!finding.advice.empty()) text += " => " + finding.advice;
  return one_line(text);
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// errno of connecting to it; 0: somebody listens there.
int connect_errno(const std::string& path, int type) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (path[0] == '@') address.sun_path[0] = '\0';
  const size_t length = offsetof(sockaddr_un, sun_path) + path.size() + (path[0] == '@' ? 0 : 1);
  return base::connect_errno(address, static_cast<socklen_t>(length), type);
}

bool check_folder(const std::string& subject, const std::string& folder, Findings& findings) {
  struct stat info {};
  const std::string user = std::to_string(::geteuid());
  if (::stat(folder.c_str(), &info) < 0) {
    findings.fail(subject, "folder " + folder + ": " + std::strerror(errno),
                  "make it, owned by uid " + user + " (systemd: RuntimeDirectory=egret; else: install -d -o " + user +
                      " " + folder + ")");
  } else if (!S_ISDIR(info.st_mode)) {
    findings.fail(subject, folder + " is no folder", "move it away, or choose another path");
  } else if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) < 0) {
    findings.fail(subject, "uid " + user + " may not make a socket in " + folder + ": " + std::strerror(errno),
                  "chown " + user + " " + folder + ", or run as its owner, uid " + std::to_string(info.st_uid));
  } else {
    return true;
  }
  return false;
}

}  // namespace

std::string to_line(const Finding& finding) {
  return std::string(name_of(finding.verdict)) + " " + text_of(finding);
}

bool Findings::has_failure() const {
  return std::ranges::any_of(all_, [](const Finding& finding) { return finding.verdict == Verdict::kFailure; });
}

int print_findings(const Findings& findings) {
  for (const Finding& finding : findings.all()) std::printf("%s\n", to_line(finding).c_str());
  return findings.has_failure() ? 1 : 0;
}

void log_problems(const Findings& findings) {
  for (const Finding& finding : findings.all()) {
    if (finding.verdict != Verdict::kOk) log(kHostProblem, "{}", text_of(finding));
  }
}

void check_open_files(uint64_t needed, const std::string& arithmetic, Findings& findings) {
  const uint64_t limit = raise_descriptor_limit(needed);
  const std::string what =
      "the limit is " + std::to_string(limit) + ", " + std::to_string(needed) + " may be needed: " + arithmetic;
  if (limit >= needed) return findings.ok("open files", what);
  findings.warn("open files", what,
                "raise it (systemd: LimitNOFILE=" + std::to_string(needed) +
                    "; docker: --ulimit nofile=" + std::to_string(needed) + "; shell: ulimit -n)");
}

void check_socket_path(const std::string& subject, const std::string& path, int type, Findings& findings) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return findings.fail(subject,
                         "a socket's path holds " + std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                             " bytes, this one has " + std::to_string(path.size()),
                         "choose a shorter one");
  }
  const bool is_abstract = path[0] == '@';
  if (!is_abstract && !check_folder(subject, folder_of(path), findings)) return;
  struct stat info {};
  if (!is_abstract && ::lstat(path.c_str(), &info) == 0 && !S_ISSOCK(info.st_mode)) {
    return findings.fail(subject, "there is a file, and it is no socket", "move it away, or choose another path");
  }
  const int error = connect_errno(path, type);
  if (error == ENOENT || error == ECONNREFUSED) return findings.ok(subject, "can be made");
  findings.warn(subject, error == 0 ? "somebody listens there" : std::string("in use: ") + std::strerror(error),
                "well if that is this daemon, already running; else stop the other, or choose another path");
}

}  // namespace egret::base
