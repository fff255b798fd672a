#include "proxy/frontend.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <iterator>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/local/peer_socket.h"
#include "base/log/log.h"
#include "memcache/reply.h"
#include "proxy/descriptors.h"
#include "proxy/doctor.h"
#include "proxy/log_events.h"
#include "proxy/slots/slot_addresses.h"
#include "proxy/users/credentials.h"

namespace egret::proxy {

using base::Status;
using base::UniqueFd;
using events::Event;

namespace {
constexpr int kAcceptsPerEvent = 64;
constexpr std::chrono::milliseconds kAcceptPause{100};  // when no descriptor is free
constexpr uint64_t kMinuteNs = 60'000'000'000;
constexpr uint64_t kMostLearnNs = 5'000'000'000;  // the first clients wait at most this long for names of backends
constexpr uint64_t kMostOpenNs = 5'000'000'000;   // then at most this long until all workers have their sessions,
constexpr uint64_t kMostSettleNs = 500'000'000;   // and this long for each next worker
constexpr std::chrono::milliseconds kLookAgain{1};
}  // namespace

Frontend::Frontend(ProxyState& stats, std::vector<std::unique_ptr<Worker>>& workers, base::Watchdog& watchdog,
                   base::Reloader& reloader)
    : config_(stats.config.get()),
      stats_(stats),
      workers_(workers),
      watchdog_(watchdog),
      reloader_(reloader),
      slot_door_(loop_, stats, [this](NewSlotSession session) { give_to_worker(std::move(session)); }),
      pool_control_(loop_, stats, workers, [this] { slot_door_.on_pool(); }),
      admin_pages_(loop_, stats, workers, watchdog),
      rested_(Event::timer<&Frontend::accept_again>(loop_, *this)),
      has_room_(Event::on_fd<&Frontend::accept_again>(loop_, stats.gate.fd(), events::kRead, *this)),
      ping_(Event::timer<&Frontend::ping_watchdog>(loop_, *this, events::kPersist)) {}

Frontend::~Frontend() {
  for (const auto& listener : listeners_) listener->socket.close();
}

namespace {

// Holds back the signals that run() handles. Between listening and run() they would end the process at once, although clients
// may be connected.
void hold_signals(bool are_held) {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&handled, signal);
  ::pthread_sigmask(are_held ? SIG_BLOCK : SIG_UNBLOCK, &handled, nullptr);
}

}  // namespace

Status Frontend::listen(ListenSockets inherited) {
  hold_signals(true);
  Config config = *config_;
  if (Status listening = listen_on(config, inherited); !listening) return listening;
  put_in_force(std::move(config));
  if (Status listening = listen_for_slots(*config_); !listening) return listening;
  pool_control_.begin(*config_);
  return admin_pages_.listen();
}

// Listens on the addresses of `config` and on inherited sockets; writes the resulting addresses to `config`. On failure
// the sockets of `pool` are served as before.
Status Frontend::listen_on(Config& config, ListenSockets& pool) {
  const ListenRules rules{config.unix_mode, static_cast<int>(config.backlog)};
  auto opened = open_sockets(config.listen, rules, pool);
  ListenSockets sockets;
  if (opened) sockets = std::move(opened.value());
  for (ListenSocket& left : pool) {
    if (!opened || left.is_inherited) {
      sockets.push_back(std::move(left));
    } else {
      base::log(kNotListening, "no longer listening on {}", base::field("address", left.address.to_string()));
      left.close();
    }
  }
  config.listen.clear();
  for (ListenSocket& socket : sockets) {
    if (std::ranges::find(config.listen, socket.address) == config.listen.end())
      config.listen.push_back(socket.address);
    add(std::move(socket));
  }
  return opened.status();
}

void Frontend::add(ListenSocket socket) {
  auto listener = std::make_unique<Listener>();
  listener->frontend = this;
  listener->socket = std::move(socket);
  listener->acceptable = Event::on_fd<&Listener::on_acceptable>(loop_, listener->socket.fd.get(),
                                                                events::kRead | events::kPersist, *listener);
  listeners_.push_back(std::move(listener));
}

void Frontend::put_in_force(Config config) {
  stats_.config.set(std::move(config));
  config_ = stats_.config.get();
  std::vector<ListenerRecord> records;
  for (const auto& listener : listeners_) {
    const int fd = listener->socket.fd.get();
    records.push_back({fd, local_address_text(fd)});
  }
  stats_.listeners.set(std::move(records));
}

Status Frontend::listen_for_slots(const Config& config) {
  std::vector<std::string> twins;
  for (const auto& listener : listeners_) {
    std::ranges::copy(slot_twins(listener->socket.fd.get(), listener->socket.address.is_tls()),
                      std::back_inserter(twins));
  }
  return slot_door_.listen(config, twins);
}

// Sessions of one client with one backend go to the same worker: so what is under way of an older one is done before.
void Frontend::give_to_worker(NewSlotSession session) {
  const size_t worker = (session.client() >> 1) % workers_.size();
  workers_[worker]->give_slots(std::move(session));
}

// The first clients should not get an error only because no session is open yet.
void Frontend::wait_for_backends() {
  Event look = Event::timer<&Frontend::wake_up>(loop_, *this, events::kPersist);
  look.add(kLookAgain);
  const uint64_t learn_ends_ns = stats_.clock->now_ns() + kMostLearnNs;
  while (!is_stopping_ && !pool_control_.is_settled()) {
    if (stats_.clock->now_ns() >= learn_ends_ns) return;
    loop_.run_once(true);
  }
  const uint64_t open_ends_ns = stats_.clock->now_ns() + kMostOpenNs;
  uint64_t ends_ns = stats_.clock->now_ns() + kMostSettleNs;
  ptrdiff_t settled = 0;
  while (!is_stopping_ && stats_.clock->now_ns() < ends_ns) {
    const ptrdiff_t now_settled =
        std::ranges::count_if(workers_, [](const auto& worker) { return worker->is_settled(); });
    if (now_settled == std::ssize(workers_)) return;
    if (now_settled > settled) ends_ns = std::min(stats_.clock->now_ns() + kMostSettleNs, open_ends_ns);
    settled = now_settled;
    loop_.run_once(true);
  }
}

Status Frontend::run() {
  for (const int signal : {SIGTERM, SIGINT}) {
    signals_.push_back(Event::on_signal<&Frontend::stop>(loop_, signal, *this));
  }
  signals_.push_back(Event::on_signal<&Frontend::reload>(loop_, SIGHUP, *this));
  for (Event& signal : signals_) {
    if (Status added = signal.add(); !added) return added;
  }
  hold_signals(false);
  wait_for_backends();
  take_over();
  for (const auto& listener : listeners_) begin_accepting(*listener);
  slot_door_.begin();
  on_ready_(ready_notice());
  if (watchdog_.is_watched()) ping_.add(watchdog_.interval());
  if (!is_stopping_) loop_.run();
  slot_door_.stop();
  close_listeners();
  return Status::ok();
}

// Clients that are already connected are served. Clients that wait in an inherited socket are left to the next process.
void Frontend::close_listeners() {
  for (const auto& listener : listeners_) {
    const uint32_t most = listener->socket.is_inherited ? 0 : config_->backlog;
    for (uint32_t accepted = 0; accepted < most; accepted += kAcceptsPerEvent) on_acceptable(*listener);
  }
  for (const auto& listener : listeners_) {
    listener->acceptable.reset();
    listener->socket.close();
  }
}

// Called before new clients are accepted.
void Frontend::take_over() {
  if (adopted_.empty()) return;
  base::log(kClientsTakenOver, "{} clients of the process before are taken over",
            base::field("clients", adopted_.size()));
  for (HandedClient& client : adopted_) {
    sockaddr_storage at{};
    socklen_t length = sizeof at;
    ::getsockname(client.socket.get(), reinterpret_cast<sockaddr*>(&at), &length);
    ListenAddress address;
    if (at.ss_family == AF_UNIX) address.kind = ListenAddress::Kind::kUnix;
    if (stats_.gate.has_room(config_->max_connections)) {
      UniqueFd socket = std::move(client.socket);
      give_to_worker(std::move(socket), address, &client);
    } else {
      refuse(std::move(client.socket), false);
    }
  }
  adopted_.clear();
}

// With the bound addresses, since the kernel may have chosen a port.
std::string Frontend::ready_notice() const {
  std::string notice(base::kNotifyReady);
  for (const auto& listener : listeners_) {
    notice.append("\n").append(base::kNotifyListening).append(local_address_text(listener->socket.fd.get()));
  }
  return notice;
}

// --- SIGHUP
// --------------------------------------------------------------------------------------------------------------

void Frontend::reload() {
  reloader_.reload([this](const base::Options& options) { return apply(options); }, stats_.reloads);
}

// Steps that may fail come first: the files, then the addresses.
Status Frontend::apply(const base::Options& options) {
  auto resolved = resolve_config(options);
  if (!resolved) return resolved.status();
  Config next = std::move(resolved.value());
  next.workers = static_cast<uint32_t>(workers_.size());  // unchanged, even if `auto` would give another number now
  // Clients take a list for new only if its version has grown.
  next.cluster_version = next.cluster == config_->cluster
                             ? config_->cluster_version
                             : std::max(next.cluster_version, config_->cluster_version + 1);
  fit_connections(next);
  const bool has_inherited = std::ranges::any_of(listeners_, [](const auto& at) { return at->socket.is_inherited; });
  const bool inherits_tls = std::ranges::any_of(
      listeners_, [](const auto& at) { return at->socket.is_inherited && at->socket.address.is_tls(); });
  if (has_inherited && !options.is_given("listen")) next.listen.clear();
  TlsContext tls;
  const bool speaks_tls = next.has_tls() || inherits_tls;
  if (speaks_tls) {
    tls = load_tls(next.tls);
    if (!tls.is_ok()) return options.error(tls.option, tls.fault);
  }
  if (Status listening = listen_anew(options, next); !listening) return options.error("listen", listening.message());
  if (speaks_tls) {
    log_anew(tls);
    stats_.tls->install(next.tls, std::move(tls));
  } else {
    stats_.tls->turn_off();
  }
  if (next.credentials != nullptr) {
    for (const CredentialsFile& file : next.credentials->files()) {
      base::log(kAuthFileRead, "read {} again", base::field("file", file.path));
    }
    base::Findings findings;
    check_users(next, findings);
    base::log_problems(findings);
  }
  base::set_log_level(base::log_level_of(next.log_level));
  put_in_force(std::move(next));
  if (Status listening = listen_for_slots(*config_); !listening) {
    base::log(kNoSlots, "{}", base::field("why", listening.message()));
  }
  slot_door_.reload();
  admin_pages_.reload(config_->admin);
  pool_control_.reload(*config_);
  for (const auto& worker : workers_) worker->reload();
  // The limit may be higher now: accept again. If there is still no room, accepting stops again.
  if (has_room_.pending()) {
    has_room_.del();
    accept_again();
  }
  return Status::ok();
}

// Sockets that stay in `listen` stay open, so that no connecting client is lost.
Status Frontend::listen_anew(const base::Options& options, Config& next) {
  if (options.list("listen") == reloader_.in_force().list("listen")) {  // keep a port that the kernel chose
    next.listen = config_->listen;
    for (const auto& listener : listeners_) listener->socket.renew({next.unix_mode, static_cast<int>(next.backlog)});
    return Status::ok();
  }
  ListenSockets pool;
  std::vector<int> known;
  for (const auto& listener : listeners_) {
    known.push_back(listener->socket.fd.get());
    listener->acceptable.reset();
    pool.push_back(std::move(listener->socket));
  }
  listeners_.clear();
  Status listening = listen_on(next, pool);
  for (const auto& listener : listeners_) {
    const bool is_known = std::ranges::find(known, listener->socket.fd.get()) != known.end();
    if (is_known && listening) listener->socket.renew({next.unix_mode, static_cast<int>(next.backlog)});
    begin_accepting(*listener, !is_known);
  }
  return listening;
}

void Frontend::ping_watchdog() {
  if (!watchdog_.beat()) return;
  for (const auto& worker : workers_) worker->wake();
}

// --- accepting
// -----------------------------------------------------------------------------------------------------------

void Frontend::begin_accepting(Listener& listener, bool is_news) {
  if (stats_.accepts.is_disabled.get() == 0 && !listener.acceptable.add()) rest_from_accepting();
  if (!is_news) return;
  base::log(kListening, "listening on {}{}", base::field("address", listener.socket.address.to_string()),
            listener.socket.is_inherited ? " (inherited)" : "");
}

void Frontend::on_acceptable(Listener& listener) {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    const bool has_room = stats_.gate.has_room(config_->max_connections);
    if (!has_room && !config_->maxconns_fast) return wait_for_room();
    UniqueFd client(::accept4(listener.socket.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!client.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) rest_from_accepting();
      return;
    }
    if (has_room) {
      give_to_worker(std::move(client), listener.socket.address);
    } else {
      refuse(std::move(client), listener.socket.address.is_tls());
    }
  }
}

void Frontend::give_to_worker(UniqueFd socket, const ListenAddress& address, const HandedClient* handed) {
  const bool is_unix = address.is_unix();
  if (!is_unix) {
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
  const size_t worker = next_worker_++ % workers_.size();
  NewClient client;
  client.may_idle = is_unix;
  if (handed != nullptr) {
    client.resume_state = handed->resume_state;
    client.last_active_ns = handed->last_active_ns;
  }
  if (address.is_tls()) {
    const std::string peer = peer_address_text(socket.get());
    client.tls = stats_.tls->accept(std::move(socket), peer, stats_.workers[worker]->tls);
  } else {
    client.plain = std::move(socket);
  }
  stats_.gate.enter();
  workers_[worker]->give(std::move(client));
}

void Frontend::stop_accepting() {
  for (const auto& listener : listeners_) listener->acceptable.del();
  stats_.accepts.is_disabled.set(1);
  stats_.accepts.disabled.add(1);
  disabled_since_ns_ = stats_.clock->now_ns();
}

void Frontend::accept_again() {
  stats_.gate.take_notice();
  stats_.accepts.is_disabled.set(0);
  stats_.accepts.disabled_us.add((stats_.clock->now_ns() - disabled_since_ns_) / 1000);
  for (const auto& listener : listeners_) {
    if (!listener->acceptable.add()) return rest_from_accepting();
  }
}

void Frontend::rest_from_accepting() {
  static base::LogLimit limit;
  base::log_limited(limit, kNoDescriptors, "no descriptors left for new clients: raise the limit of open files");
  rest();
}

void Frontend::rest() {
  stop_accepting();
  rested_.add(kAcceptPause);
}

void Frontend::wait_for_room() {
  if (!stats_.gate.wait_for_room(config_->max_connections)) return;  // the listener is still readable
  log_limit_reached("wait until one leaves (maxconns_fast is off)");
  if (!has_room_.add()) return rest();
  stop_accepting();
}

// At most once a minute, since clients may come again and again.
void Frontend::log_limit_reached(std::string_view what_clients_do) const {
  static base::LogLimit limit(1, kMinuteNs);
  base::log_limited(limit, kConnectionLimit, "{} clients are connected, which is max_connections: further clients {}",
                    base::field("max_connections", config_->max_connections), what_clients_do);
}

void Frontend::refuse(UniqueFd socket, bool is_tls) {
  stats_.accepts.rejected_connections.add(1);
  log_limit_reached("are refused");
  if (is_tls) return;  // the client could not read it
  const std::string_view line = memcache::kTooManyConnections;
  // Best effort, as in memcached.
  [[maybe_unused]] const ssize_t sent = ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  base::close_peer_socket(std::move(socket));
}

}  // namespace egret::proxy
