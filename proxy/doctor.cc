#include "proxy/doctor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "admin/inquiry.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/service/program.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "discovery/learn.h"
#include "discovery/name_entry.h"
#include "proxy/descriptors.h"
#include "proxy/report/admin_pages.h"
#include "proxy/users/credentials.h"
#include "rpc/client_session.h"
#include "tls/mutual.h"
#include "transport/address.h"
#include "transport/doctor.h"
#include "wire/slot.h"
#include "wire/slot_twins.h"

namespace egret::proxy {

using base::Findings;
using rpc::ClientSession;

namespace {

// The backend decides the size of a session: this is its default of session_memory, and half as much again for results
// that are pushed to us.
constexpr uint64_t kSessionBytes = 3 << 19;

constexpr std::chrono::milliseconds kMostLearn{5'000};  // for names of backends to be resolved

// --- one session, opened and closed
// -----------------------------------------------------------------------------------------

// Runs a session by hand until it is open or lost.
class Attempt final : private rpc::SessionObserver {
 public:
  explicit Attempt(const rpc::SessionOptions& options) : session_(options, clock_, *this, transport::connect) {
    session_.start();
    while (!is_over_) {
      pollfd ready{session_.endpoint().control_fd(), POLLIN, 0};
      const int timeout_ms = static_cast<int>(ClientSession::kTickNs / 1'000'000);
      if (::poll(&ready, 1, timeout_ms) > 0) session_.on_control_ready();
      if (!is_over_) session_.tick();
    }
  }
  ~Attempt() { session_.close(); }
  bool has_opened() const { return has_opened_; }
  bool knows(uint64_t feature) const { return (features_ & feature) != 0; }
  bool may(op::Rights needed) const { return (rights_ & needed) == needed; }
  // A description of the session, or why there is none.
  const std::string& what() const { return what_; }

 private:
  base::Status on_session_connecting(ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(ClientSession& session) override {
    if (!is_over_) {
      is_over_ = has_opened_ = true;
      what_ = session.grant().layout.to_string() + ", " + session.endpoint().facts() + ", rights " +
              op::to_string(session.grant().rights);
      features_ = session.grant().features;
      rights_ = session.grant().rights;
    }
    return base::Status::ok();
  }
  void on_session_lost(ClientSession&, const std::string& why, bool) override {
    if (is_over_) return;
    is_over_ = true;
    what_ = why;
  }

  const base::SystemClock clock_;
  bool is_over_ = false;
  bool has_opened_ = false;
  uint64_t features_ = 0;
  op::Rights rights_ = 0;
  std::string what_;
  ClientSession session_;
};

// What a backend of the gutter has to do.
void check_stand_in(const Attempt& attempt, const std::string& subject, Findings& findings) {
  constexpr op::Rights kNeeded = op::kMayRead | op::kMayWrite | op::kMayFlush | op::kMayDump;
  if (!attempt.knows(wire::kFailover)) {
    findings.fail(subject, "cannot stand in for others, since it is of an earlier version: " + attempt.what(),
                  "update egret-backend there");
  } else if (!attempt.may(kNeeded)) {
    findings.fail(subject, "may not stand in for others: " + attempt.what(),
                  "give this proxy the rights read, write, flush and dump there (the backend's option rights)");
  } else {
    findings.ok(subject, "gives a session, and can stand in: " + attempt.what());
  }
}

// What a backend of the pool has to do when members change, and when it returns while others stand in for it.
void check_owner(const Config& config, const Attempt& attempt, const std::string& subject, Findings& findings) {
  constexpr op::Rights kToPurge = op::kMayWrite | op::kMayFlush;
  const char* const rights = "give this proxy the rights write and flush there (the backend's option rights)";
  if (config.gutter.is_on && !attempt.may(kToPurge)) {
    return findings.fail(
        subject, "would not return from an absence: what the gutter has changed may not be purged: " + attempt.what(),
        rights);
  }
  const bool is_told = config.purge_moved || config.warm_for_ns > 0;
  const bool is_able = attempt.knows(wire::kWarm) && attempt.may(op::kMayFlush);
  if (!is_told || is_able) return findings.ok(subject, "gives a session: " + attempt.what());
  findings.warn(
      subject,
      std::string("gives a session, but ") +
          (attempt.knows(wire::kWarm) ? "no right to be told of" : "is of an earlier version and knows nothing of") +
          " changes of the backends: keys that move to it are missed, and it may serve old values of keys "
          "that come back to it: " +
          attempt.what(),
      attempt.knows(wire::kWarm) ? rights : "update egret-backend there; or warm_for: 0s, purge_moved: false");
}

void check_at_one_address(const Config& config, const pool::Member& backend, bool is_gutter, Findings& findings) {
  rpc::SessionOptions options = config.session;
  options.address = backend.address;
  options.worker_id = base::random_u64();
  const Attempt attempt(options);
  const std::string subject = (is_gutter ? "gutter " : "backend ") + backend.to_string();
  if (attempt.has_opened() && is_gutter) return check_stand_in(attempt, subject, findings);
  if (attempt.has_opened()) return check_owner(config, attempt, subject, findings);
  if (attempt.what().starts_with("asked to come back")) {
    return findings.warn(subject, attempt.what(), "many proxies connect to it at once: run this again");
  }
  const bool is_refusal = attempt.what().starts_with("refused") || attempt.what().starts_with("the backend");
  findings.fail(subject, attempt.what(),
                is_refusal
                    ? "the backend is reachable but refused us (reason above); run egret-backend --doctor on its host"
                    : "see that egret-backend runs there, listens on this address, and that no firewall is "
                      "between (its host: egret-backend --doctor)");
}

bool is_of_this_process(const pool::Member& member) {
  return transport::transport_of(member.address) == "local";
}

// Of two transports one is enough.
void check_backend(const Config& config, const pool::Member& backend, bool is_gutter, Findings& findings) {
  if (is_of_this_process(backend)) return;  // which examines it itself
  std::vector<Findings> found;
  for (const std::string& address : transport::alternatives_of(backend.address)) {
    pool::Member at = backend;
    at.address = address;
    check_at_one_address(config, at, is_gutter, found.emplace_back());
  }
  const bool any_serves = std::ranges::any_of(found, [](const Findings& each) { return !each.has_failure(); });
  for (const Findings& each : found) {
    for (base::Finding finding : each.all()) {
      if (any_serves && finding.verdict == base::Verdict::kFailure) {
        finding.verdict = base::Verdict::kWarning;
        finding.what += " (the other transport serves: rdma+tcp)";
      }
      findings.add(std::move(finding));
    }
  }
}

// Whom the proxy that serves with this configuration holds back, if one does. Who holds back nobody, or is not there, is
// no finding.
void check_held_back(const Config& config, Findings& findings) {
  const auto address = admin::parse_address(config.admin.address);
  if (config.admin.address.empty() || !address) return;
  const auto page = admin::ask(address.value(), "/readyz");
  if (!page) return;
  std::istringstream lines(page.value());
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("backend ") || !line.ends_with(kHeldBack)) continue;
    findings.warn("running proxy", line,
                  "requests for its keys fail until it answers: see the finding about this backend below, and its log");
  }
}

// --- where clients connect
// ---------------------------------------------------------------------------------------------------

void check_tcp(const ListenAddress& address, Findings& findings) {
  const std::string subject = "listen " + address.to_string();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) return findings.fail(subject, ::gai_strerror(error), "name an address of this host");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const base::UniqueFd socket(::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0) continue;
    if (errno == EADDRINUSE) {
      return findings.warn(
          subject, "somebody listens there",
          "well if that is this daemon, already running; else stop the other (a memcached?), or choose "
          "another port");
    }
    return findings.fail(subject, std::strerror(errno),
                         errno == EACCES ? "ports below 1024 are root's: choose a higher one"
                                         : "name an address that an interface of this host has (ip addr)");
  }
  findings.ok(subject, "can be listened on");
}

void check_listen(const Config& config, Findings& findings) {
  for (const ListenAddress& address : config.listen) {
    if (address.is_unix()) {
      base::check_socket_path("listen unix:" + address.host, address.host, SOCK_STREAM, findings);
    } else {
      check_tcp(address, findings);
    }
  }
}

// --- clients by shared memory

// Where they come in. Abstract addresses need nothing of the host.
void check_slot_places(const Config& config, Findings& findings) {
  const auto check = [&](const std::string& path) {
    base::check_socket_path("slots " + path, path, SOCK_SEQPACKET, findings);
  };
  for (const ListenAddress& address : config.listen) {
    if (config.slots.has_twins && address.is_unix()) check(wire::twin_of_unix(address.host));
  }
  for (const std::string& address : config.slots.addresses) {
    if (!address.starts_with('@')) check(address);
  }
}

void check_slots(const Config& config, Findings& findings) {
  const SlotOptions& slots = config.slots;
  if (!slots.is_on()) return findings.ok("slots", "none: clients of this host come by sockets only");
  check_slot_places(config, findings);
  const uint64_t of_session =
      wire::RegionLayout{transport::kUsualLanes, slots.window, slots.request_slot, slots.response_slot}.bytes();
  const uint64_t room = std::min<uint64_t>(slots.most_sessions, slots.memory / of_session);
  const std::string what = "at most " + std::to_string(slots.most_sessions) + " sessions (slots_sessions) and " +
                           base::size_text(slots.memory) + " (slots_memory): room for " + std::to_string(room) +
                           " with backends of " + std::to_string(transport::kUsualLanes) + " partitions, " +
                           base::size_text(of_session) + " each";
  if (room == 0) return findings.warn("slots", what, "raise slots_memory, or lower slots_window");
  if (slots.share * slots.memory / 100 < of_session) {
    return findings.warn("slots", what + "; one user's " + std::to_string(slots.share) + " percent hold none",
                         "raise slots_memory or slots_share");
  }
  findings.ok("slots", what);
}

// --- who has sessions

bool is_of_other_host(const pool::Member& member) {
  return transport::transport_of(member.address) != "shm" && !is_of_this_process(member);
}

// Workers that have a session with each backend that is reached by a network.
uint64_t workers_with_sessions(const Config& config) {
  return config.is_session_per_host ? 1 : config.workers;
}

void check_sessions(const Config& config, std::span<const pool::Member> members, Findings& findings) {
  const auto others = static_cast<uint64_t>(std::ranges::count_if(members, is_of_other_host));
  if (others == 0) return findings.ok("sessions", "each worker has one with each backend: all are on this host");
  const uint64_t count = workers_with_sessions(config) * others;
  const std::string backends = base::counted(others, "backend") + " by rdma or tcp";
  if (!config.is_session_per_host) {
    return findings.ok("sessions", "worker: " + base::counted(count, "session") + ", " +
                                       base::counted(config.workers, "worker") + " x " + backends);
  }
  findings.ok("sessions", "host: " + base::counted(count, "session") + ", one with each of " + backends + "; of " +
                              base::counted(config.workers, "worker") +
                              " all but one hand over, which costs CPU here (docs/operate/sizing.md)");
}

// --- what both need
// ----------------------------------------------------------------------------------------------------------

// If the limit is too low, the proxy lowers max_connections at its start: report the resulting number.
void check_open_files(const Config& config, Findings& findings) {
  const DescriptorNeed need = descriptor_need(config);
  const uint64_t possible = need.connections_within(base::raise_descriptor_limit(need.total()));
  const std::string effect =
      possible < need.clients ? "; max_connections would be lowered to " + std::to_string(possible) : "";
  base::check_open_files(need.total(), need.arithmetic + effect, findings);
}

uint64_t rdma_members(std::span<const pool::Member> members) {
  return static_cast<uint64_t>(
      std::ranges::count_if(members, [](const pool::Member& each) { return transport::is_rdma(each.address); }));
}

// An address of the transport that an entry's members are reached by.
std::string scheme_of(const std::string& entry) {
  const auto name = discovery::parse_name_entry(entry);
  return name ? name.value().transport + ":" : entry;
}

// As far as it is known before names are resolved and the file is read.
uint64_t rdma_entries(const Config& config) {
  return static_cast<uint64_t>(std::ranges::count_if(
      config.directory.entries, [](const std::string& entry) { return transport::is_rdma(scheme_of(entry)); }));
}

bool has_tcp_entry(const Config& config) {
  return std::ranges::any_of(config.directory.entries,
                             [](const std::string& entry) { return transport::is_tcp(scheme_of(entry)); });
}

// Of the entries that use RDMA.
bool all_have_fallbacks(const Config& config) {
  return std::ranges::all_of(config.directory.entries, [](const std::string& entry) {
    return !transport::is_rdma(scheme_of(entry)) || transport::has_fallback(scheme_of(entry));
  });
}

void check_secret(const Config& config, uint64_t rdma_backends, Findings& findings) {
  if (config.session.secret.is_set()) {
    findings.ok("secret_file", "backends must prove that they hold its " +
                                   std::to_string(config.session.secret.bytes().size()) + " bytes");
  } else if (rdma_backends > 0) {
    findings.warn("secret_file", "none is set: whoever answers at a backend's rdma: address is taken for it",
                  "name a copy of the backends' secret_file");
  } else if (has_tcp_entry(config) && config.session.connect.tls != nullptr) {
    findings.ok("secret_file", "none; backends at tcp: addresses show certificates (session_tls_ca)");
  } else if (has_tcp_entry(config)) {
    findings.warn("secret_file", "none is set: whoever answers at a backend's tcp: address is taken for it",
                  "name a copy of the backends' secret_file");
  } else {
    findings.ok("secret_file", "none; backends are on this host");
  }
}

void check_session_tls(const Config& config, Findings& findings) {
  if (config.session.connect.tls == nullptr) return;
  const tls::Description& own = config.session.connect.tls->certificate();
  if (own.warning.empty()) {
    return findings.ok("session_tls_certificate",
                       own.summary + (rdma_entries(config) > 0 ? "; sessions over RDMA are not encrypted" : ""));
  }
  findings.warn("session_tls_certificate", own.warning, "renew it; SIGHUP has it read again");
}

// The configuration's check has verified the files already.
void check_tls(const Config& config, Findings& findings) {
  check_session_tls(config, findings);
  if (!config.has_tls()) return;
  const TlsContext loaded = load_tls(config.tls);
  if (!loaded.is_ok()) return findings.fail(std::string(loaded.option), loaded.fault, "name files that are good");
  if (loaded.warning.empty()) return findings.ok("tls_certificate", loaded.summary);
  findings.warn("tls_certificate", loaded.warning, "renew it; SIGHUP has it read again");
}

void check_rdma(const Config& config, uint64_t backends, Findings& findings) {
  transport::check_rdma(
      {.is_configured = backends > 0,
       .has_fallback = all_have_fallbacks(config),
       .sessions = workers_with_sessions(config) * backends,
       .session_bytes = kSessionBytes,
       .queue_bytes = transport::client_queue_bytes(transport::kUsualLanes, config.session.connect.queue_pairs,
                                                    config.session.window),
       .arithmetic = base::counted(workers_with_sessions(config), "worker") + " x " +
                     base::counted(backends, "rdma: backend") + " x " +
                     "1536KiB (1MiB, a backend's default session_memory, and half as much for pushed results)",
       .connects = true,
       .tos = config.session.connect.fabric.tos},
      findings);
}

}  // namespace

namespace {

// Nothing to say of a list of addresses.
void check_members(const Config& config, const discovery::Learned& pool, Findings& findings) {
  const std::string subject = "backends";
  for (const std::string& problem : pool.problems) {
    findings.fail(subject, problem, "see that the names resolve (dig) and that the file of backends can be read");
  }
  const bool has_sources =
      !config.directory.file.path.empty() || std::ranges::any_of(config.directory.entries, discovery::is_name_entry);
  if (has_sources && pool.problems.empty()) {
    findings.ok(subject, base::counted(pool.members.size(), "backend") + " learned from names and files");
  }
}

}  // namespace

void check_users(const Config& config, Findings& findings) {
  if (config.credentials == nullptr) return;
  for (const CredentialsFile& file : config.credentials->files()) {
    const std::string option = file.is_users_file ? "users_file" : "auth_file";
    if (file.is_open_to_others) {
      findings.warn(option, "every user of this host may use " + file.path + ", which holds passwords",
                    "chmod 0640 it, with a group that egret-proxy runs in, or 0400 if egret-proxy's user owns it");
    } else {
      findings.ok(option, base::counted(file.users, "user") + " in " + file.path);
    }
  }
}

Findings check_start(const Config& config) {
  Findings findings;
  const uint64_t rdma_backends = rdma_entries(config);
  check_secret(config, rdma_backends, findings);
  check_users(config, findings);
  check_tls(config, findings);
  if (rdma_backends > 0) check_rdma(config, rdma_backends, findings);
  return findings;
}

Findings examine(const Config& config) {
  Findings findings;
  const discovery::Learned pool = discovery::learn_members(config.directory, kMostLearn);
  const uint64_t rdma_backends = rdma_members(pool.members);
  check_open_files(config, findings);
  check_secret(config, rdma_backends, findings);
  check_users(config, findings);
  check_tls(config, findings);
  check_rdma(config, rdma_backends, findings);
  check_listen(config, findings);
  check_slots(config, findings);
  check_members(config, pool, findings);
  check_sessions(config, pool.members, findings);
  check_held_back(config, findings);
  for (const pool::Member& backend : pool.members) check_backend(config, backend, false, findings);
  for (const pool::Member& backend : gutter_of(config)) check_backend(config, backend, true, findings);
  return findings;
}

}  // namespace egret::proxy
