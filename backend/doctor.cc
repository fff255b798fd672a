#include "backend/doctor.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "backend/open_stores.h"
#include "base/text.h"
#include "tls/mutual.h"
#include "transport/doctor.h"

namespace egret::backend {

using base::Findings;

namespace {

constexpr uint64_t kHugePage = 2u << 20;
constexpr uint64_t kMiB = 1u << 20;
constexpr uint64_t kFewSessions = 64;  // that auto should not fall below

bool listens_on_rdma(const Config& config) {
  return std::ranges::any_of(config.listen, transport::is_rdma);
}

// Of those that use RDMA.
bool all_have_fallbacks(const Config& config) {
  return std::ranges::all_of(config.listen, [](const std::string& address) {
    return !transport::is_rdma(address) || transport::has_fallback(address);
  });
}

std::string number(uint64_t value) {
  return std::to_string(value);
}

void check_files(const Config& config, Findings& findings) {
  const uint64_t sessions = config.quota.sessions.value;
  const access::Needs& needs = config.needs;
  base::check_open_files(needs.descriptors * sessions + needs.other_descriptors,
                         number(sessions) + " sessions (max_sessions) x " + number(needs.descriptors) + " + " +
                             number(needs.other_descriptors),
                         findings);
}

// How many sessions there may be, and why.
void check_sessions(const Config& config, Findings& findings) {
  const access::Ceiling& sessions = config.quota.sessions;
  const std::string most = "at most " + number(sessions.value) + " (max_sessions";
  if (sessions.arithmetic.empty()) return findings.ok("sessions", most + ")");
  const std::string what = most + ", auto): " + sessions.arithmetic;
  if (sessions.value >= kFewSessions) return findings.ok("sessions", what);
  findings.warn("sessions", what, "systemd: LimitNOFILE=65536 and LimitMEMLOCK=infinity; or more memory");
}

// How much memory their slots may take, and for how many that is.
void check_slots(const Config& config, Findings& findings) {
  const access::Ceiling& slots = config.quota.memory;
  if (slots.value == access::kUnlimited)
    return findings.ok("slots", "no limit for all sessions (session_memory_total)");
  const access::Needs& needs = config.needs;
  const bool is_auto = !slots.arithmetic.empty();
  const std::string what = "at most " + base::size_text(slots.value) + " (session_memory_total" +
                           (is_auto ? ", auto): " + slots.arithmetic : ")") + "; room for " +
                           number(slots.value / needs.least_bytes) + " idle sessions of " +
                           base::size_text(needs.least_bytes) + " or " + number(slots.value / needs.most_bytes) +
                           " of " + base::size_text(needs.most_bytes) + " (session_memory)";
  const bool is_too_much =
      config.room.memory != access::kUnlimited && slots.value + needs.other_memory > config.room.memory;
  if (!is_too_much) return findings.ok("slots", what);
  findings.warn("slots",
                what + "; with `memory` that is more than " + config.room.memory_source + " " +
                    base::size_text(config.room.memory / kMiB * kMiB),
                "lower session_memory_total or memory");
}

void check_secret(const Config& config, Findings& findings) {
  if (config.secrets.size() == 1) {
    const size_t bytes = config.secrets[0].secret.bytes().size();
    findings.ok("secret_file", "proxies must prove that they hold its " + std::to_string(bytes) + " bytes");
  } else if (!config.secrets.empty()) {
    std::string names;
    for (const NamedSecret& secret : config.secrets) names.append(names.empty() ? "" : ", ").append(secret.name);
    findings.ok("secret_file", "proxies must prove that they hold one of these secrets: " + names);
  } else if (!listens_on_rdma(config) && config.tls.mutual != nullptr && config.tls.is_required) {
    findings.ok("secret_file", "none; proxies show certificates (session_tls_ca)");
  } else if (listens_on_rdma(config) || std::ranges::any_of(config.listen, transport::is_tcp)) {
    const std::string scheme = listens_on_rdma(config) ? "an rdma:" : "a tcp:";
    findings.warn("secret_file", "none is set, and " + scheme + " address serves whoever can reach it",
                  "make one (umask 077; head -c 32 /dev/urandom | base64 > FILE), and name a copy of it on every host, "
                  "here and to the proxies");
  } else if (config.listen.empty()) {
    findings.ok("secret_file", "none; nothing listens for sessions of other processes");
  } else {
    findings.ok("secret_file", "none; only users of this host (allowed_uids, allowed_gids) can connect");
  }
}

void check_tls(const Config& config, Findings& findings) {
  if (config.tls.mutual == nullptr) return;
  const tls::Description& own = config.tls.mutual->certificate();
  const std::string subject = "session_tls_certificate";
  if (!std::ranges::any_of(config.listen, transport::is_tcp)) {
    return findings.warn(subject, "no address that is listened at uses TCP: it has no effect",
                         "listen at tcp:HOST:PORT, or do without it");
  }
  const std::string rest = listens_on_rdma(config) ? "; sessions over RDMA are not encrypted" : "";
  if (!own.warning.empty()) {
    findings.warn(subject, own.warning, "renew it; SIGHUP has it read again");
  } else if (!config.tls.is_required) {
    findings.warn(subject, own.summary + rest + "; proxies without TLS are served, too",
                  "set session_tls_required: true when every proxy has a certificate");
  } else {
    findings.ok(subject, own.summary + rest);
  }
}

// What may be pinned is compared with what would be, if it were not limited.
void check_rdma(const Config& config, Findings& findings) {
  access::Room room = config.room;
  room.pinned = access::kUnlimited;
  const bool is_auto = !config.quota.sessions.arithmetic.empty();
  const access::Ceiling slots =
      config.quota.memory.arithmetic.empty() ? config.quota.memory : access::slot_memory_of(room, config.needs);
  const uint64_t sessions =
      is_auto ? access::most_sessions_of(room, config.needs, slots.value).value : config.quota.sessions.value;
  const uint64_t each = config.rdma_session.most_memory;
  const bool all_may_grow = slots.value == access::kUnlimited || sessions * each <= slots.value;
  transport::check_rdma(
      {.is_configured = listens_on_rdma(config),
       .has_fallback = all_have_fallbacks(config),
       .sessions = sessions,
       .session_bytes = each,
       .slots_bytes = all_may_grow ? sessions * each : slots.value,
       .queue_bytes = config.needs.queue_bytes,
       .arithmetic =
           all_may_grow ? number(sessions) + " sessions (max_sessions) x " + base::size_text(each) + " (session_memory)"
                        : "slots of " + base::size_text(slots.value) + " (session_memory_total) for " +
                              number(sessions) + " sessions (max_sessions)"},
      findings);
}

// The mount options of the file system with that device number, as /proc/self/mountinfo has them.
std::string mount_options(dev_t device) {
  const std::string number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string parent;
    std::string its_number;
    fields >> id >> parent >> its_number;
    if (its_number == number) return line.substr(line.rfind(' ') + 1);
  }
  return {};
}

// Bytes that files of a run before have taken there.
uint64_t bytes_of_warm_files(const Config& config) {
  uint64_t bytes = 0;
  for (uint32_t partition = 0; partition < config.partitions; ++partition) {
    struct stat status {};
    if (::stat(warm_file(config.warm_restart, partition).c_str(), &status) == 0)
      bytes += static_cast<uint64_t>(status.st_blocks) * 512;
  }
  return bytes;
}

void check_warm_restart(const Config& config, Findings& findings) {
  if (config.warm_restart.empty()) return;
  const std::string first = warm_file(config.warm_restart, 0);
  const std::string folder = first.find('/') == std::string::npos ? "." : first.substr(0, first.rfind('/') + 1);
  struct statfs system {};
  struct stat status {};
  if (::statfs(folder.c_str(), &system) != 0 || ::stat(folder.c_str(), &status) != 0) return;  // as config.cc has said
  const bool is_tmpfs = system.f_type == TMPFS_MAGIC;
  if (!is_tmpfs && system.f_type != HUGETLBFS_MAGIC) {
    findings.warn("warm_restart", folder + " is neither a tmpfs nor a hugetlbfs: all of memory will be written to disk",
                  "use one, such as /dev/shm");
    return;
  }
  const uint64_t room = static_cast<uint64_t>(system.f_bavail) * static_cast<uint64_t>(system.f_bsize);
  const uint64_t had = bytes_of_warm_files(config);
  if (system.f_blocks != 0 && room + had < config.memory) {
    findings.fail(
        "warm_restart",
        folder + " has room for " + base::size_text(room + had) + " of " + base::size_text(config.memory) + " (memory)",
        "mount -o remount,size=" + base::size_text(config.memory) + " or more, or give less memory");
  } else if (is_tmpfs && mount_options(status.st_dev).find("huge=") == std::string::npos) {
    findings.ok("warm_restart",
                folder + " is a tmpfs of small pages; mounted with huge=advise it would have huge ones");
  } else {
    findings.ok("warm_restart", folder + " has room and huge pages");
  }
}

}  // namespace

HugePages look_at_huge_pages() {
  HugePages offered;
  std::ifstream("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") >> offered.free;
  std::string choice;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(file, choice);
  offered.makes_transparent =
      choice.find("[always]") != std::string::npos || choice.find("[madvise]") != std::string::npos;
  return offered;
}

void check_huge_pages(const HugePages& offered, const Config& config, Findings& findings) {
  if (!config.warm_restart.empty()) return;  // a matter of where its files are
  const uint64_t each = (config.memory + config.partitions - 1) / config.partitions;
  const uint64_t needed = (each + kHugePage - 1) / kHugePage * config.partitions;
  const std::string explicit_ones =
      std::to_string(offered.free) + " explicit ones are free, memory is " + std::to_string(needed);
  if (offered.free >= needed) {
    findings.ok("huge pages", explicit_ones);
  } else if (offered.makes_transparent) {
    findings.ok("huge pages", "transparent ones (" + explicit_ones + ")");
  } else {
    findings.warn("huge pages", explicit_ones + ", and the kernel makes no transparent ones: gets will be slower",
                  "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or sysctl vm.nr_hugepages=" +
                      std::to_string(needed));
  }
}

std::string explain_limits(const Config& config) {
  const auto line = [](const char* name, uint64_t value, const std::string& text, const std::string& arithmetic) {
    if (value == access::kUnlimited) return std::string(name) + ": no limit\n";
    return std::string(name) + ": " + text + (arithmetic.empty() ? "" : " (auto: " + arithmetic + ")") + "\n";
  };
  const access::Quota& quota = config.quota;
  const auto of_peer = [](uint64_t value, const std::string& text) {
    return value == access::Quota::kShare ? std::string("as much as stays free for others (auto)") : text;
  };
  return line("max_sessions", quota.sessions.value, number(quota.sessions.value), quota.sessions.arithmetic) +
         line("sessions_per_peer", quota.sessions_of_peer,
              of_peer(quota.sessions_of_peer, number(quota.sessions_of_peer)), "") +
         line("session_memory_total", quota.memory.value, base::size_text(quota.memory.value),
              quota.memory.arithmetic) +
         line("session_memory_per_peer", quota.memory_of_peer,
              of_peer(quota.memory_of_peer, base::size_text(quota.memory_of_peer)), "");
}

Findings check_start(const Config& config) {
  Findings findings;
  check_files(config, findings);
  check_secret(config, findings);
  check_tls(config, findings);
  if (listens_on_rdma(config)) check_rdma(config, findings);
  check_warm_restart(config, findings);
  return findings;
}

Findings examine(const Config& config) {
  Findings findings;
  check_sessions(config, findings);
  check_slots(config, findings);
  check_files(config, findings);
  check_secret(config, findings);
  check_tls(config, findings);
  check_rdma(config, findings);
  check_huge_pages(look_at_huge_pages(), config, findings);
  check_warm_restart(config, findings);
  for (const std::string& address : config.listen) transport::check_listen(address, findings);
  return findings;
}

std::string listen_advice(const Config& config) {
  Findings findings;
  for (const std::string& address : config.listen) transport::check_listen(address, findings);
  std::string advice;
  for (const base::Finding& finding : findings.all()) {
    if (finding.verdict == base::Verdict::kFailure) advice += " => " + finding.advice;
  }
  return advice;
}

}  // namespace egret::backend
