#include "backend/control.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "access/quota.h"
#include "backend/log_events.h"
#include "base/log/log.h"
#include "tls/mutual.h"
#include "transport/address.h"

namespace egret::backend {

using base::Status;
using events::Event;

namespace {
constexpr std::chrono::milliseconds kResendAfter{5};
constexpr std::chrono::milliseconds kAcceptPause{20};
// Between two looks at a listener while there are too many newcomers: hellos of those that were accepted are read meanwhile.
constexpr std::chrono::milliseconds kCrowdPause{1};
constexpr int kAcceptsAtOnce = 16;  // connections of one address, before others' turn
constexpr std::chrono::milliseconds kStopAgain{1};
constexpr std::chrono::milliseconds kLookAtKept{100};
}  // namespace

Control::Control(const Config& config, const Identity& identity, Mailboxes& mailboxes, base::Reloader& reloader,
                 Process process, std::vector<transport::PollGroup*> groups)
    : process_(process),
      stop_asked_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      config_(config),
      reloader_(reloader),
      mailboxes_(mailboxes),
      node_(mailboxes.nodes() - 1),
      partitions_(mailboxes.nodes() - 1),
      groups_(std::move(groups)),
      watchdog_(partitions_),
      sessions_(loop_, config_, identity, *this),
      admin_pages_(loop_, config_, *this) {}

Control::~Control() = default;

Status Control::listen() {
  for (const std::string& address : config_.listen) {
    auto place = open_place(address, config_);
    if (!place) return place.status();
    places_.push_back(std::move(place.value()));
  }
  return admin_pages_.listen();
}

base::Expected<std::unique_ptr<Control::Place>> Control::open_place(const std::string& address, const Config& config) {
  auto listener = transport::listen(address, {.allowed_uids = config.allowed_uids,
                                              .allowed_gids = config.allowed_gids,
                                              .fabric = config.fabric,
                                              .groups = groups_,
                                              .lanes = partitions_,
                                              .tls = config.tls});
  if (!listener) return listener.status();
  base::log(kListening, "listening on {}", base::field("address", address));
  listener.value()->set_doorkeeper(&sessions_);
  return std::make_unique<Place>(Place{this, address, std::move(listener.value()), {}, {}});
}

void Control::begin_accepting(Place& place) {
  place.acceptable =
      Event::on_fd<&Place::on_acceptable>(loop_, place.listener->fd(), events::kRead | events::kPersist, place);
  place.again = Event::timer<&Place::on_again>(loop_, place);
  if (!place.acceptable.add()) place.again.add(kAcceptPause);
}

void Control::accept_again(Place& place) {
  if (!place.acceptable.add()) return place.again.add(kAcceptPause);
  on_accept(place);
}

// --- SIGHUP

void Control::reload() {
  reloader_.reload([this](const base::Options& options) { return apply(options); }, reloads_);
}

// What may fail comes first. Sessions that are open keep what they were granted.
Status Control::apply(const base::Options& options) {
  auto resolved = resolve_config(options, partitions_);
  if (!resolved) return resolved.status();
  Config next = std::move(resolved.value());
  if (Status listening = listen_anew(next); !listening) return options.error("listen", listening.message());
  for (const auto& place : places_) {
    place->listener->allow(next.allowed_uids, next.allowed_gids);
    place->listener->offer(next.tls);
  }
  base::set_log_level(base::log_level_of(next.log_level));
  const bool has_other_memory = next.memory != config_.memory || std::exchange(memory_was_refused_, false);
  config_ = std::move(next);
  sessions_.reload();
  admin_pages_.reload(config_.admin);
  const PollingRules polling = config_.polling();
  for (uint32_t partition = 0; partition < partitions_; ++partition) {
    post(partition,
         {.kind = Message::Kind::kPolling, .lane = {}, .polling = polling, .share_of_user = config_.peer_share});
    // A limit that clients have set (cache_memlimit) stays, unless the file says another than before.
    if (has_other_memory) post(partition, {.kind = Message::Kind::kMemory, .lane = {}, .memory = config_.memory});
  }
  // All partitions have a share of the same limit, so one is enough to compare it.
  if (!has_other_memory) post(0, {.kind = Message::Kind::kCompare, .lane = {}, .memory = config_.memory});
  return Status::ok();
}

namespace {

bool is_listed(const std::vector<std::string>& list, const std::string& address) {
  return std::ranges::find(list, address) != list.end();
}

// Empty: it has none.
std::string_view port_of(std::string_view address) {
  return transport::is_of_network(address) ? address.substr(address.rfind(':') + 1) : std::string_view();
}

}  // namespace

// New addresses are listened on before old ones are given up: a failure leaves everything as it was. Where an old one stands in
// the way (tcp:A is to be rdma+tcp:A, or tcp:*:PORT), it is given up first, and taken again if the new one fails all the same.
Status Control::listen_anew(const Config& next) {
  std::vector<std::unique_ptr<Place>> added;
  std::vector<std::string> in_the_way;
  const auto give_up = [&](const Place& place) {
    base::log(kNotListening, "no longer listening on {}", base::field("address", place.address));
  };
  const auto open_instead = [&](const std::string& address) {
    std::erase_if(places_, [&](const auto& place) {
      const bool is_of_port = !port_of(address).empty() && port_of(place->address) == port_of(address);
      if (!is_of_port || is_listed(next.listen, place->address)) return false;
      give_up(*place);
      in_the_way.push_back(place->address);
      return true;
    });
    return open_place(address, next);
  };
  for (const std::string& address : next.listen) {
    const auto is_of = [&](const auto& place) { return place->address == address; };
    if (std::ranges::any_of(places_, is_of) || std::ranges::any_of(added, is_of)) continue;
    auto place = open_place(address, next);
    if (!place) place = open_instead(address);
    if (!place) {
      added.clear();
      take_again(in_the_way);
      return place.status();
    }
    added.push_back(std::move(place.value()));
  }
  std::erase_if(places_, [&](const auto& place) {
    if (is_listed(next.listen, place->address)) return false;
    give_up(*place);
    return true;
  });
  for (auto& place : added) {
    begin_accepting(*place);
    places_.push_back(std::move(place));
  }
  return Status::ok();
}

// Listens again where it did before a reload that is refused. If that fails, too, the log says so: the reload's error is another
// one.
void Control::take_again(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    auto place = open_place(address, config_);
    if (!place) {
      base::log(kAcceptFailed, "{}", base::field("why", place.message()));
      continue;
    }
    begin_accepting(*place.value());
    places_.push_back(std::move(place.value()));
  }
}

Status Control::run() {
  Status begun = begin();
  if (begun) loop_.run();
  stop_partitions();
  return begun;
}

void Control::ask_to_stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_asked_.get(), &one, sizeof one);
}

Status Control::begin() {
  if (process_ == Process::kBackend) {
    for (const int signal : {SIGTERM, SIGINT}) {
      events_.push_back(Event::on_signal<&Control::stop>(loop_, signal, *this));
    }
    events_.push_back(Event::on_signal<&Control::reload>(loop_, SIGHUP, *this));
  }
  events_.push_back(Event::on_fd<&Control::stop>(loop_, stop_asked_.get(), events::kRead, *this));
  events_.push_back(Event::on_fd<&Control::on_messages>(loop_, mailboxes_.wake_fd(node_),
                                                        events::kRead | events::kPersist | events::kEdge, *this));
  for (Event& event : events_) {
    if (Status added = event.add(); !added) return added;
  }
  if (Status begun = sessions_.begin(); !begun) return begun;
  for (auto& place : places_) begin_accepting(*place);
  resend_ = Event::timer<&Control::on_resend>(loop_, *this);
  look_at_kept_ = Event::timer<&Control::look_at_kept>(loop_, *this);
  if (process_ == Process::kBackend && watchdog_.is_watched()) {
    ping_ = Event::timer<&Control::ping_watchdog>(loop_, *this, events::kPersist);
    ping_.add(watchdog_.interval());
  }
  on_messages();  // anything that came before we listened for it, and arms the wake-up
  return Status::ok();
}

void Control::stop_partitions() {
  for (uint32_t partition = 0; partition < partitions_; ++partition) {
    mailboxes_.send(node_, partition, {.kind = Message::Kind::kStop, .lane = {}});
  }
  // Nothing else runs on this thread any more that would post what did not fit a full queue.
  while (mailboxes_.resend(node_)) std::this_thread::sleep_for(kStopAgain);
}

void Control::on_accept(Place& place) {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    if (sessions_.is_full()) return place.acceptable.del();  // until on_room()
    if (sessions_.is_crowded()) {
      place.acceptable.del();
      return place.again.add(kCrowdPause);
    }
    if (!accept_one(place)) return;
  }
}

// False: no connection waits.
bool Control::accept_one(Place& place) {
  const uint64_t begun_ns = clock_.now_ns();
  auto accepted = place.listener->accept();
  if (!accepted) {
    static base::LogLimit limit;
    base::log_limited(limit, kAcceptFailed, "{}", base::field("why", accepted.message()));
    if (!place.listener->needs_pause()) return true;
    place.acceptable.del();
    place.again.add(kAcceptPause);
    return false;
  }
  if (accepted.value() == nullptr) return false;
  sessions_.arrive(std::move(accepted.value()), begun_ns);
  return true;
}

// If the queue was full, it is tried again after kResendAfter: a partition does not say when it has read its messages.
void Control::post(uint32_t partition, const Message& message) {
  mailboxes_.send(node_, partition, message);
  if (mailboxes_.has_outbox(node_, partition)) resend_.add(kResendAfter);
}

void Control::on_resend() {
  if (mailboxes_.resend(node_)) resend_.add(kResendAfter);
}

void Control::on_messages() {
  do {
    mailboxes_.awake(node_);
    mailboxes_.resend(node_);
    Message message;
    while (mailboxes_.receive(node_, message)) {
      if (message.kind == Message::Kind::kDetached) {
        sessions_.on_detached(message.lane.session_id);
      } else if (message.kind == Message::Kind::kAlive) {
        watchdog_.answer(message.lane.lane);
      } else if (message.kind == Message::Kind::kTooMuch) {
        memory_was_refused_ = true;
        base::log(kMemoryNotChanged,
                  "reload: memory of {} bytes takes effect at a restart: a partition cannot have its part of it now",
                  base::field("bytes", config_.memory));
      } else if (message.kind == Message::Kind::kReported) {
        admin_pages_.on_report(message.lane.lane);
      } else {
        sessions_.on_ended(message);
      }
    }
  } while (!mailboxes_.prepare_sleep(node_));
}

void Control::ping_watchdog() {
  if (!watchdog_.beat()) return;
  for (uint32_t partition = 0; partition < partitions_; ++partition) {
    post(partition, {.kind = Message::Kind::kCheck, .lane = {}});
  }
}

void Control::inquire(uint32_t partition, PartitionReport& report) {
  post(partition, {.kind = Message::Kind::kInquire, .lane = {}, .report = &report});
}

ControlFigures Control::figures() const {
  ControlFigures figures = sessions_.figures();
  figures.max_sessions = config_.quota.sessions.value;
  const uint64_t memory = config_.quota.memory.value;
  figures.memory_limit = memory == access::kUnlimited ? 0 : memory;
  figures.memory_bytes += kept_bytes();
  figures.tls_ends_at = config_.tls.mutual != nullptr ? config_.tls.mutual->certificate().ends_at : 0;
  figures.reloads = reloads_.succeeded.get();
  figures.reload_errors = reloads_.failed.get();
  return figures;
}

// The memory of sessions that have ended, which their peers still have mapped.
uint64_t Control::kept_bytes() const {
  uint64_t bytes = 0;
  for (const auto& place : places_) bytes += place->listener->kept_bytes();
  return bytes;
}

void Control::on_room() {
  for (const auto& place : places_) {
    if (!place->again.pending() && !place->acceptable.pending()) accept_again(*place);
  }
}

void Control::on_forgotten() {
  if (!look_at_kept_.pending()) look_at_kept_.add(kLookAtKept);
}

// The memory counts as free as soon as this sees that the peer has unmapped it.
void Control::look_at_kept() {
  if (kept_bytes() > 0) look_at_kept_.add(kLookAtKept);
}

}  // namespace egret::backend
