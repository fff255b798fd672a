#include "backend/doctor.h"

#include <algorithm>
#include <string>

#include "base/text.h"
#include "transport/doctor.h"

namespace egret::backend {

using base::Findings;

namespace {

constexpr uint64_t kDescriptorsPerSession = 4;
constexpr uint64_t kOtherDescriptors = 256;

bool listens_on_rdma(const Config& config) {
  return std::ranges::any_of(config.listen, transport::is_rdma);
}

void check_files(const Config& config, Findings& findings) {
  const uint64_t needed = kDescriptorsPerSession * config.max_sessions + kOtherDescriptors;
  base::check_open_files(needed,
                         std::to_string(config.max_sessions) + " sessions (max_sessions) x " +
                             std::to_string(kDescriptorsPerSession) + " + " + std::to_string(kOtherDescriptors),
                         findings);
}

void check_secret(const Config& config, Findings& findings) {
  if (config.secret.is_set()) {
    findings.ok("secret_file",
                "proxies must prove that they hold its " + std::to_string(config.secret.bytes().size()) + " bytes");
  } else if (listens_on_rdma(config)) {
    findings.warn("secret_file", "none is set, and an rdma: address serves whoever can reach it",
                  "make one (umask 077; head -c 32 /dev/urandom | base64 > FILE), and name a copy of it on every host, "
                  "here and to the proxies");
  } else {
    findings.ok("secret_file", "none; only users of this host (allowed_uids) can connect");
  }
}

void check_rdma(const Config& config, Findings& findings) {
  transport::check_rdma({.is_configured = listens_on_rdma(config),
                         .sessions = config.max_sessions,
                         .session_bytes = config.session_memory,
                         .arithmetic = std::to_string(config.max_sessions) + " sessions (max_sessions) x " +
                                       base::size_text(config.session_memory) + " (session_memory)"},
                        findings);
}

}  // namespace

Findings check_start(const Config& config) {
  Findings findings;
  check_files(config, findings);
  check_secret(config, findings);
  if (listens_on_rdma(config)) check_rdma(config, findings);
  return findings;
}

Findings examine(const Config& config) {
  Findings findings;
  check_files(config, findings);
  check_secret(config, findings);
  check_rdma(config, findings);
  for (const std::string& address : config.listen) transport::check_listen(address, findings);
  return findings;
}

}  // namespace egret::backend
