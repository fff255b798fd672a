#include "backend/control.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "access/newcomers.h"
#include "backend/log_events.h"
#include "base/check.h"
#include "base/cpu.h"
#include "base/log/log.h"
#include "base/random.h"
#include "tls/mutual.h"
#include "transport/address.h"

namespace egret::backend {

using base::Status;
using events::Event;
using wire::FrameType;

namespace {
// A connection whose handshake makes no progress for this long is closed.
constexpr std::chrono::seconds kHelloPatience{5};
constexpr std::chrono::milliseconds kResendAfter{5};
constexpr std::chrono::milliseconds kAcceptPause{20};
// The pause before a refused connection is closed: a queue pair that is closed at once drops what it has not sent.
constexpr std::chrono::milliseconds kRefusalTravels{100};
constexpr int kAcceptsAtOnce = 16;  // connections of one address, and frames of one connection, before others' turn
constexpr int kFramesAtOnce = 16;
constexpr uint64_t kUnderWayNs = 2'000'000'000;  // a newcomer that was accepted longer ago than this waits for its peer
constexpr std::chrono::milliseconds kRateLimitPause{50};
constexpr std::chrono::milliseconds kStopAgain{1};
constexpr std::chrono::milliseconds kLookAtKept{100};
constexpr size_t kMaxRefusalReasons = 32;  // that have a limit of log lines each
// Connections and sessions that may wait for a set-up thread; beyond that none is accepted for a while. More than those
// that are let in at once (access/admission.h), so only clients that cannot be asked to come back meet it.
constexpr size_t kMostInSetUp = 128;
constexpr uint32_t kMaxSessionLogLines =
    200;  // at most so many lines of sessions that open in 10 s; as many that close

// Why sweep() closes a connection.
constexpr const char* kSilent = "no hello, or no answer to the challenge";
constexpr const char* kIncomplete = "not all of its queue pairs have joined in time";

// The size that the client asks for, but at most the backend's own.
uint32_t slot_size(uint32_t own, uint32_t wanted) {
  return wanted == 0 ? own : std::clamp(wanted / 64 * 64, std::min(wire::kMinSlotSize, own), own);
}

// Why a session is closed whose partition has said kBroken, kGone or kUnwatched.
std::string why_it_ends(const Message& message, const transport::ServerEndpoint& endpoint) {
  if (message.kind == Message::Kind::kGone) return endpoint.failure();
  if (message.kind == Message::Kind::kUnwatched)
    return "this system has no room to wait for one more descriptor (fs.epoll.max_user_watches, memory)";
  return "the peer wrote a malformed message on lane " + std::to_string(message.lane.lane) + ": " +
         to_string(message.error);
}
}  // namespace

// [kPreparing (its queue pair is made)] → kSilent → [kChallenged (hello received, proof awaited)] → kWaiting (until an
// older session of the worker is gone and all queue pairs of this one have joined) → kMaking (its memory is made) → kOpen
// → kClosing (until all partitions have let go, then until its memory is freed) → gone; instead of kOpen: kRefused (until
// the peer has read why)
struct Control::Session {
  enum class State : uint8_t { kPreparing, kSilent, kChallenged, kWaiting, kMaking, kOpen, kRefused, kClosing };
  Control* control = nullptr;
  uint64_t id = 0;
  State state = State::kSilent;
  std::unique_ptr<transport::ServerEndpoint> endpoint;
  Event readable;         // after the endpoint: it is destroyed before the endpoint closes its descriptor
  Event read_on;          // pending: the endpoint is not read from until then
  Event refused;          // when the refusal has had its time
  bool is_ready = false;  // its ready frame has come
  // A set-up thread has the endpoint: this thread leaves it alone. What was to end the session meanwhile, ends it then.
  bool is_in_setup = false;
  bool takes_long = false;  // to be destroyed: there is something that was made by a set-up thread
  std::string ends_after_setup{};
  wire::Hello hello;
  wire::Grant granted;          // kMaking
  wire::Transcript transcript;  // of the handshake, where there is a secret
  NamedSecret secret;           // that the peer has proved to hold
  uint32_t detaching = 0;       // partitions that have not acknowledged yet
  uint64_t memory_bytes = 0;    // of its region
  uint32_t user = 0;            // LaneBinding::user, once it has a region
  uint64_t accepted_ns = 0;
  access::StepCost cost;  // since it was accepted or, once that is told, since then
  bool survived_sweep = false;
  std::unique_ptr<UnderWay> under_way;  // once it is open

  // Not known to be anybody: it counts for nothing, and what its hello says is only a claim.
  bool is_silent() const {
    return state == State::kPreparing || state == State::kSilent || state == State::kChallenged ||
           state == State::kRefused;
  }
  bool is_incomplete() const { return state == State::kWaiting && !endpoint->is_whole(); }
  bool reads_frames() const { return !is_in_setup && state != State::kRefused && state != State::kClosing; }

  void on_readable() { control->on_control_ready(*this); }
  void on_read_on() { control->read_on(*this); }
  void on_refusal_over() { control->discard(*this); }
};

Control::Control(const Config& config, const Identity& identity, Mailboxes& mailboxes, base::Reloader& reloader,
                 Process process, std::vector<transport::PollGroup*> groups)
    : process_(process),
      stop_asked_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      config_(config),
      reloader_(reloader),
      identity_(identity),
      mailboxes_(mailboxes),
      node_(mailboxes.nodes() - 1),
      partitions_(mailboxes.nodes() - 1),
      groups_(std::move(groups)),
      watchdog_(partitions_),
      admin_pages_(loop_, config_, *this),
      setup_(setup_threads_for(base::allowed_cpus().size())) {
  handshake_rate_.allow(access::sessions_told_of_peer(config_.quota));
}

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
  listener.value()->set_doorkeeper(this);
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
  handshake_rate_.allow(access::sessions_told_of_peer(config_.quota));
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

// New addresses are listened on before old ones are given up: a failure leaves everything as it was.
Status Control::listen_anew(const Config& next) {
  const auto is_listed = [](const std::vector<std::string>& list, const std::string& address) {
    return std::ranges::find(list, address) != list.end();
  };
  std::vector<std::unique_ptr<Place>> added;
  for (const std::string& address : next.listen) {
    if (is_listed(config_.listen, address)) continue;
    auto place = open_place(address, next);
    if (!place) return place.status();
    added.push_back(std::move(place.value()));
  }
  std::erase_if(places_, [&](const auto& place) {
    if (is_listed(next.listen, place->address)) return false;
    base::log(kNotListening, "no longer listening on {}", base::field("address", place->address));
    return true;
  });
  for (auto& place : added) {
    begin_accepting(*place);
    places_.push_back(std::move(place));
  }
  return Status::ok();
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
  events_.push_back(Event::on_fd<&Control::on_setup_done>(loop_, setup_.fd(), events::kRead | events::kPersist, *this));
  for (Event& event : events_) {
    if (Status added = event.add(); !added) return added;
  }
  for (auto& place : places_) begin_accepting(*place);
  sweep_ = Event::timer<&Control::sweep_silent>(loop_, *this);
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
    if (in_setup() >= kMostInSetUp) return place.acceptable.del();  // until on_setup_done()
    if (!accept_one(place)) return;
  }
}

// 0, or after how many milliseconds a newcomer should come back. Connections that have said nothing for long take no time:
// they are not under way. Who has come back is let in whatever else is under way, but once for each peer: so nobody can
// keep it out. `own_id`: its connection; 0: it has none yet.
uint32_t Control::pause_for(const std::string& peer_group, bool came_back, uint64_t own_id) {
  const uint64_t now_ns = clock_.now_ns();
  size_t under_way = 0;
  bool is_alone = true;
  for (const uint64_t id : ledger_.arriving()) {
    const Session& session = *sessions_.at(id);
    const bool is_under_way = session.state != Session::State::kRefused && now_ns - session.accepted_ns <= kUnderWayNs;
    if (!is_under_way || id == own_id) continue;
    ++under_way;
    is_alone &= session.endpoint->peer_group() != peer_group;
  }
  if (came_back && is_alone) return 0;
  const uint32_t pause_ms = admission_.come_back_ms(now_ns, under_way, came_back, own_id != 0);
  if (pause_ms > 0) ++counted_.asked_back;
  return pause_ms;
}

// Asked before a connection is accepted: sessions_ does not have it.
uint32_t Control::come_back_ms(const std::string& peer_group, bool came_back) {
  return pause_for(peer_group, came_back, 0);
}

// A peer without tokens (handshake_rate.h) is turned away before anything is allocated for it.
bool Control::lets_in(const std::string& peer_group) {
  const uint64_t now_ns = clock_.now_ns();
  const bool may = handshake_rate_.may_go_on(peer_group, now_ns);
  if (may) handshake_rate_.charge(peer_group, now_ns, 1);
  if (!may) ++counted_.slowed;
  return may;
}

void Control::charge(const std::string& peer_group) {
  handshake_rate_.charge(peer_group, clock_.now_ns(), 1);
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
  const uint64_t id = next_session_++;
  Session& session = *sessions_.emplace(id, std::make_unique<Session>()).first->second;
  session.control = this;
  session.accepted_ns = begun_ns;
  session.id = id;
  session.endpoint = std::move(accepted.value());
  session.read_on = Event::timer<&Session::on_read_on>(loop_, session);
  ledger_.arrive(id, session.endpoint->peer_group());
  if (!sweep_.pending()) sweep_.add(kHelloPatience);
  session.cost.control_ns = clock_.now_ns() - begun_ns;
  if (session.endpoint->needs_preparing()) {
    session.state = Session::State::kPreparing;
    give_to_setup(session, [endpoint = session.endpoint.get()] { return endpoint->prepare(); });
  } else {
    on_prepared(session, Status::ok());
  }
  limit_newcomers();
  return true;
}

// The peer can be heard from here on.
void Control::on_prepared(Session& session, const Status& prepared) {
  const uint64_t begun_ns = clock_.now_ns();
  session.state = Session::State::kSilent;
  Status listens = prepared;
  if (listens) {
    session.readable = Event::on_fd<&Session::on_readable>(loop_, session.endpoint->control_fd(),
                                                           events::kRead | events::kPersist, session);
    listens = session.readable.add();
  }
  if (!listens) {
    static base::LogLimit limit;
    base::log_limited(limit, kAcceptFailed, "{}", base::field("why", listens.message()));
    return discard(session);
  }
  session.cost.control_ns += clock_.now_ns() - begun_ns;
  admission_.accepted(std::exchange(session.cost, {}));
}

// --- what takes long, on other threads

// Until it is done this thread leaves the endpoint alone.
void Control::give_to_setup(Session& session, SetupThreads::Work work) {
  session.is_in_setup = session.takes_long = true;
  if (session.readable.pending()) session.readable.del();  // there is none before it is prepared
  session.read_on.del();
  setup_.submit(SetupThreads::Kind::kMake, session.id, std::move(work));
}

void Control::on_setup_done() {
  SetupThreads::Done done;
  while (setup_.take(done)) {
    Session& session = *sessions_.at(done.number);
    if (session.state == Session::State::kClosing) {
      forget(session.id);
      continue;
    }
    session.is_in_setup = false;
    session.cost.setup_ns += done.interval_ns;
    counted_.setup_ns += done.took_ns;
    if (!session.ends_after_setup.empty()) {
      const std::string why = std::move(session.ends_after_setup);
      close(session, why);
    } else if (session.state == Session::State::kPreparing) {
      on_prepared(session, done.status);
    } else {
      on_made(session, done.status);
    }
  }
  if (in_setup() >= kMostInSetUp) return;
  for (const auto& place : places_) {
    if (!place->again.pending() && !place->acceptable.pending()) accept_again(*place);
  }
}

void Control::limit_newcomers() {
  std::vector<access::Newcomer> newcomers;
  for (const uint64_t id : ledger_.arriving()) {
    const Session& session = *sessions_.at(id);
    const bool ends_anyway = !session.ends_after_setup.empty();
    const bool waits_for_us = session.state == Session::State::kPreparing;
    if (session.is_silent() && !ends_anyway) newcomers.push_back({id, session.endpoint->peer_group(), waits_for_us});
  }
  const auto one_too_many = access::connection_to_end(newcomers);
  if (one_too_many) close(*sessions_.at(*one_too_many), "too many connections of this peer that say nothing");
}

// Closes each connection that the last sweep saw too and that has still not finished its handshake. The timer runs only
// while there are such connections.
void Control::sweep_silent() {
  std::vector<uint64_t> late;
  bool again = false;
  for (const uint64_t id : ledger_.arriving()) {
    Session& session = *sessions_.at(id);
    if (!session.is_silent() && !session.is_incomplete()) continue;
    if (session.survived_sweep) late.push_back(id);
    session.survived_sweep = true;
    again = true;
  }
  for (const uint64_t id : late) {
    Session& session = *sessions_.at(id);
    close(session, session.is_silent() ? kSilent : kIncomplete);
  }
  if (again) sweep_.add(kHelloPatience);
}

void Control::on_control_ready(Session& session) {
  const uint64_t id = session.id;
  const bool was_open = session.state == Session::State::kOpen;
  const uint64_t begun_ns = clock_.now_ns();
  take_frames(session);
  const auto at = was_open ? sessions_.end() : sessions_.find(id);
  if (at != sessions_.end()) session.cost.control_ns += clock_.now_ns() - begun_ns;
}

// Takes every frame there is, because only a new frame makes the descriptor readable again. If a peer sends many, the rest
// is taken later. A frame may end the session.
void Control::take_frames(Session& session) {
  const uint64_t id = session.id;
  const std::string peer = session.endpoint->peer_group();
  for (int frames = 0; sessions_.contains(id) && session.reads_frames(); ++frames) {
    if (session.state != Session::State::kOpen && !handshake_rate_.may_go_on(peer, clock_.now_ns())) {
      ++counted_.slowed;
      return read_on_later(session, kRateLimitPause);
    }
    if (frames == kFramesAtOnce) return read_on_later(session, {});
    std::array<std::byte, wire::kMaxFrame> frame{};
    size_t length = 0;
    if (Status received = session.endpoint->receive_frame(frame, length); !received) {
      return close(session, received.message());
    }
    if (length == 0) return on_nothing_to_read(session);
    handshake_rate_.charge(peer, clock_.now_ns(), 1);
    on_frame(session, std::span(frame).first(length));
  }
}

// The descriptor may be readable because a queue pair has been connected.
void Control::on_nothing_to_read(Session& session) {
  if (session.endpoint->joins_too_early()) {
    return refuse(
        session,
        "this backend has a secret, and a proxy of release 0.1.0 connects several queue pairs before it proves "
        "that it has it, too: set the proxy's qps_per_session to 1, or update it");
  }
  grant_when_ready(session);
}

void Control::read_on(Session& session) {
  if (const Status added = session.readable.add(); !added) return close(session, added.message());
  on_control_ready(session);
}

void Control::read_on_later(Session& session, std::chrono::milliseconds pause) {
  session.readable.del();
  session.read_on.add(pause);
}

void Control::on_frame(Session& session, std::span<const std::byte> frame) {
  FrameType type{};
  std::string error;
  if (!decode_prefix(frame, type, error)) return refuse(session, error);
  if (type == FrameType::kHello && session.state == Session::State::kSilent) return on_hello(session, frame);
  if (type == FrameType::kProof && session.state == Session::State::kChallenged) return on_proof(session, frame);
  if (type == FrameType::kReady && session.state == Session::State::kOpen && !std::exchange(session.is_ready, true))
    return;
  refuse(session, "an unexpected handshake frame");
}

void Control::on_hello(Session& session, std::span<const std::byte> frame) {
  if (!decode(frame, session.hello)) return refuse(session, "a malformed hello");
  if ((session.hello.features & wire::kComeBack) != 0 && !session.endpoint->is_admitted()) {
    const uint32_t pause_ms = pause_for(session.endpoint->peer_group(), session.hello.asked_back > 0, session.id);
    if (pause_ms > 0) return ask_back(session, pause_ms);
  }
  const bool offers_proof = (session.hello.features & wire::kAuthenticate) != 0;
  if (config_.secrets.empty()) {
    if (!offers_proof) return admit(session);
    return refuse(session,
                  "the proxy has a secret_file and this backend has none: give both the same secret, or neither one");
  }
  if (!offers_proof) {
    return refuse(session,
                  "this backend serves only proxies that hold its secret: set the proxy's secret_file to a "
                  "copy of the backend's");
  }
  const std::vector<std::byte> challenge = encode(wire::Challenge{wire::fresh_nonce()});
  session.transcript.add(frame);
  session.transcript.add(challenge);
  session.state = Session::State::kChallenged;
  if (Status sent = session.endpoint->send_frame(challenge, false); !sent) close(session, sent.message());
}

void Control::on_proof(Session& session, std::span<const std::byte> frame) {
  wire::ClientProof answer;
  if (!decode(frame, answer)) return refuse(session, "a malformed proof");
  // It was challenged before a reload.
  if (config_.secrets.empty()) {
    return refuse(session, "this backend's secret was taken away meanwhile: connect again");
  }
  for (const NamedSecret& known : config_.secrets) {
    if (wire::is_equal(answer.proof, session.transcript.client_proof(known.secret))) session.secret = known;
  }
  if (!session.secret.secret.is_set()) {
    return refuse(session, "the proxy's secret is not this backend's: compare both sides' secret_file");
  }
  admit(session);
}

// The peer has proved who it is, so its hello is acted on from here.
void Control::admit(Session& session) {
  const std::string excess =
      access::place_excess(config_.quota, ledger_, session.hello.worker_id, session.endpoint->peer_group());
  if (!excess.empty()) return refuse(session, excess);
  // Two waiting sessions of one worker: the worker has given up the older one.
  const std::vector<uint64_t> older = ledger_.of_worker(session.hello.worker_id);
  for (const uint64_t id : older) close(*sessions_.at(id), "replaced by a new session of the same worker");
  session.state = Session::State::kWaiting;
  ledger_.admit(session.id, session.hello.worker_id);
  if (Status let = session.endpoint->let_join(); !let) return refuse(session, let.message());
  grant_when_ready(session);
}

// Grants a waiting session when all its queue pairs have joined and the older session of its worker is gone.
void Control::grant_when_ready(Session& session) {
  if (session.state != Session::State::kWaiting || session.is_incomplete()) return;
  if (ledger_.of_worker(session.hello.worker_id).size() == 1) make(session);
}

const SessionSize& size_for(const transport::Limits& limits, const Config& config) {
  if (limits.fetch_is_local) return config.local_session;
  return limits.results_are_pushed ? config.tcp_session : config.rdma_session;
}

// The largest window that fits session_memory and what there is left for this peer, at least kMinWindow. False: not even
// that; `refusal` says why.
bool Control::carve(const Session& session, wire::RegionLayout& layout, std::string& refusal) const {
  const SessionSize& size = size_for(session.endpoint->limits(), config_);
  const std::string& peer = session.endpoint->peer_group();
  const uint64_t most = std::min(size.most_memory, access::room_for_slots(config_.quota, ledger_, peer));
  const bool takes_long = (session.hello.features & wire::kLongSlots) != 0;
  const uint32_t response_slot = takes_long ? size.response_slot : std::min(size.response_slot, wire::kMaxSlotSize);
  layout = {partitions_, std::min(size.window, std::max(session.hello.window, wire::kMinWindow)),
            slot_size(size.request_slot, session.hello.request_slot_size),
            slot_size(response_slot, session.hello.response_slot_size)};
  while (layout.window > wire::kMinWindow && layout.bytes() > most) --layout.window;
  if (layout.bytes() > size.most_memory) {
    refusal = "session_memory is " + std::to_string(size.most_memory) + " bytes, the smallest session takes " +
              layout.to_string();
  } else {
    refusal = access::memory_excess(config_.quota, ledger_, peer, layout.bytes());
  }
  return refusal.empty();
}

uint32_t Control::home_of(const Session& session) const {
  if (const transport::SameProcess* const same = session.endpoint->limits().same_process; same != nullptr) {
    if (same->home() >= 0 && static_cast<uint32_t>(same->home()) < partitions_)
      return static_cast<uint32_t>(same->home());
  }
  const int group = session.endpoint->group();
  return group >= 0 ? static_cast<uint32_t>(group) : static_cast<uint32_t>(session.id % partitions_);
}

// Each partition serves its lane of the session from now on.
void Control::attach(const Session& session, const wire::Grant& granted) {
  const bool is_ordered = (granted.features & wire::kOrderedMemory) != 0;
  const bool knows_rights = (granted.features & wire::kRights) != 0;
  const bool knows_deliver = (granted.features & wire::kDeliver) != 0;
  for (uint32_t partition = 0; partition < partitions_; ++partition) {
    const rpc::LaneBinding lane{.session_id = session.id,
                                .lane = partition,
                                .home = home_of(session),
                                .endpoint = session.endpoint.get(),
                                .layout = granted.layout,
                                .seal = {granted.nonce, is_ordered},
                                .rights = granted.rights,
                                .knows_rights = knows_rights,
                                .is_embedded = (granted.features & wire::kEmbedded) != 0,
                                .user = session.user,
                                .knows_deliver = knows_deliver};
    post(partition, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = session.under_way.get()});
  }
}

// Decides what the session is granted; its memory is made meanwhile.
void Control::make(Session& session) {
  const transport::Limits& limits = session.endpoint->limits();
  const bool is_ordered = limits.is_ordered && (session.hello.features & wire::kOrderedMemory) != 0;
  const bool is_fetched = !limits.fetch_is_local && !limits.results_are_pushed;
  const bool has_timers = limits.fetch_is_local && (session.hello.features & wire::kWakeTimers) != 0;
  const bool has_lane_rings = has_timers && take_lane_rings(session);
  session.granted = {
      .features = (session.secret.secret.is_set() ? wire::kAuthenticate : 0) | (is_ordered ? wire::kOrderedMemory : 0) |
                  (has_timers ? wire::kWakeTimers : 0) | (has_lane_rings ? wire::kLaneRings : 0) |
                  (is_fetched ? session.hello.features & wire::kDeliver : 0) |
                  (session.hello.features & (wire::kRights | wire::kSlotSizes | wire::kFailover | wire::kWarm |
                                             wire::kComeBack | wire::kEmbedded | wire::kLongSlots)),
      .session_id = session.id,
      .nonce = base::random_u64(),
      .epoch = identity_.epoch,
      .hash_seed = identity_.hash_seed,
      .item_size_max = config_.item_size_max,
      .layout = {},
      .rights = rights_of(session)};
  wire::RegionLayout& layout = session.granted.layout;
  std::string refusal;
  if (!carve(session, layout, refusal)) return refuse(session, refusal);
  const transport::RegionShape shape{.lanes = partitions_,
                                     .request_bytes = layout.request_bytes(),
                                     .response_bytes = layout.response_bytes(),
                                     .reply_bytes = layout.response_slot_size,
                                     .has_wake_timers = has_timers,
                                     .has_lane_rings = has_lane_rings};
  session.memory_bytes = shape.request_bytes + shape.response_bytes + shape.reply_bytes;
  session.user = ledger_.take_memory(session.id, session.memory_bytes);
  session.state = Session::State::kMaking;
  give_to_setup(session, [endpoint = session.endpoint.get(), shape] { return endpoint->create_region(shape); });
}

// Whether the session's lanes get a ring each. The quota has none where there is one lane, or too many.
bool Control::take_lane_rings(const Session& session) {
  if ((session.hello.features & wire::kLaneRings) == 0 || config_.quota.lane_rings == 0) return false;
  const uint64_t further = partitions_ - 1;  // one has its place among the session's own
  if (!access::has_room_for_rings(config_.quota, ledger_, session.endpoint->peer_group(), further)) return false;
  ledger_.take_rings(session.id, further);
  return true;
}

void Control::held_sessions_changed(const Session& session) {
  const std::string& peer = session.endpoint->peer_group();
  handshake_rate_.holds(peer, clock_.now_ns(), ledger_.places_of(peer));
}

void Control::on_made(Session& session, const Status& made) {
  const uint64_t begun_ns = clock_.now_ns();
  if (!made) return refuse(session, made.message());
  if (const Status added = session.readable.add(); !added) return close(session, added.message());
  const base::Secret& secret = session.secret.secret;
  std::vector<std::byte> frame = encode(session.granted);
  if (secret.is_set()) {
    session.granted.proof = session.transcript.server_proof(secret, frame);
    frame = encode(session.granted);
  }
  // The grant goes out first: from then on the endpoint's data functions are its home's.
  if (Status sent = session.endpoint->send_frame(frame, true); !sent) return close(session, sent.message());
  session.state = Session::State::kOpen;
  ledger_.open(session.id);
  held_sessions_changed(session);
  handshake_rate_.charge(session.endpoint->peer_group(), clock_.now_ns(),
                         access::HandshakeRate::cost_of_session(session.memory_bytes));
  const wire::RegionLayout& layout = session.granted.layout;
  session.under_way = std::make_unique<UnderWay>(size_t{layout.lanes} * layout.window);
  attach(session, session.granted);
  ++counted_.opened;
  session.cost.control_ns += clock_.now_ns() - begun_ns;
  admission_.granted(session.cost);
  static base::LogLimit limit(kMaxSessionLogLines);
  const std::string of_secret = secret.is_set() ? " by secret " + session.secret.name : "";
  base::log_limited(limit, kSessionOpen, "session {} open: {}, home partition {}, {}, {}, rights {}{}",
                    base::field("session", session.id), base::field("peer", session.endpoint->peer()), home_of(session),
                    base::field("layout", layout.to_string()), base::field("facts", session.endpoint->facts()),
                    base::field("rights", op::to_string(session.granted.rights)), of_secret);
}

op::Rights Control::rights_of(const Session& session) const {
  access::Peer peer{.secret = session.secret.name};
  if (const transport::PeerUser* const user = session.endpoint->user()) {
    peer.has_user = true;
    peer.uid = user->uid;
    peer.gids = user->gids;
  }
  return config_.rights.of(peer, ::geteuid());
}

void Control::ask_back(Session& session, uint32_t pause_ms) {
  turn_away(session, {.reason = "many sessions are being made", .come_back_ms = pause_ms});
}

void Control::refuse(Session& session, const std::string& reason) {
  if (session.state == Session::State::kOpen) {
    // Best effort, here and below: the peer may be gone.
    static_cast<void>(session.endpoint->send_frame(encode(wire::Refusal{.reason = reason}), false));
    return close(session, "refused: " + reason);
  }
  base::log_limited(limit_of_refusal(reason), kSessionRefused, "connection {} ({}) refused: {}",
                    base::field("session", session.id), base::field("peer", session.endpoint->peer()),
                    base::field("why", reason));
  ++counted_.refused;
  turn_away(session, {.reason = reason});
}

void Control::turn_away(Session& session, const wire::Refusal& refusal) {
  static_cast<void>(session.endpoint->send_frame(encode(refusal), false));
  session.state = Session::State::kRefused;
  ledger_.turn_away(session.id);
  session.readable.del();  // whatever else it sends is not read
  session.read_on.del();
  session.refused = Event::timer<&Session::on_refusal_over>(loop_, session);
  session.refused.add(kRefusalTravels);
}

// A proxy tries again and again, so each reason is logged once in ten seconds; but no reason hides another. A reason
// may hold what a peer has sent: there is a bound on how many are told apart.
base::LogLimit& Control::limit_of_refusal(const std::string& reason) {
  if (const auto known = refusal_limits_.find(reason); known != refusal_limits_.end()) return known->second;
  if (refusal_limits_.size() >= kMaxRefusalReasons) return other_refusals_;
  return refusal_limits_.try_emplace(reason, 1).first->second;
}

void Control::close(Session& session, const std::string& why) {
  if (session.state == Session::State::kClosing) return;
  if (session.is_in_setup && !setup_.withdraw(session.id)) {
    session.ends_after_setup = why;
    return;
  }
  session.is_in_setup = false;
  if (session.state == Session::State::kRefused) return discard(session);
  if (session.state != Session::State::kOpen) {
    // A limit of its own for peers that were silent: connections that make room for newer ones do not hide them.
    static base::LogLimit limit;
    static base::LogLimit limit_of_silent;
    base::log_limited(why == kSilent ? limit_of_silent : limit, kConnectionEnded,
                      "connection {} ({}) ended before it became a session: {}", base::field("session", session.id),
                      base::field("peer", session.endpoint->peer()), base::field("why", why));
    return discard(session);
  }
  session.state = Session::State::kClosing;
  ledger_.close(session.id);
  held_sessions_changed(session);
  session.readable.reset();
  session.read_on.reset();
  session.endpoint->close();
  static base::LogLimit limit(kMaxSessionLogLines);
  base::log_limited(limit, kSessionClosed, "session {} closed ({}): {}", base::field("session", session.id),
                    base::field("peer", session.endpoint->peer()), base::field("why", why));
  session.detaching = partitions_;
  Message detach{.kind = Message::Kind::kDetach, .lane = {}};
  detach.lane.session_id = session.id;
  for (uint32_t partition = 0; partition < partitions_; ++partition) post(partition, detach);
}

// A connection that no partition has heard of.
void Control::discard(Session& session) {
  session.state = Session::State::kClosing;
  ledger_.close(session.id);
  session.readable.reset();
  session.read_on.reset();
  session.refused.reset();
  session.endpoint->close();
  destroy(session);
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
        on_detached(message.lane.session_id);
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
        on_ended(message);
      }
    }
  } while (!mailboxes_.prepare_sleep(node_));
}

// A partition says that a session can go on no more.
void Control::on_ended(const Message& message) {
  const auto at = sessions_.find(message.lane.session_id);
  if (at == sessions_.end() || at->second->state == Session::State::kClosing) return;
  if (message.kind == Message::Kind::kBroken) ++counted_.broken;
  close(*at->second, why_it_ends(message, *at->second->endpoint));
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
  ControlFigures figures = counted_;
  figures.max_sessions = config_.quota.sessions.value;
  const uint64_t memory = config_.quota.memory.value;
  figures.memory_limit = memory == access::kUnlimited ? 0 : memory;
  figures.in_setup = in_setup();
  figures.session_ns = admission_.session_ns();
  figures.tls_ends_at = config_.tls.mutual != nullptr ? config_.tls.mutual->certificate().ends_at : 0;
  figures.reloads = reloads_.succeeded.get();
  figures.reload_errors = reloads_.failed.get();
  for (const auto& [id, session] : sessions_) {
    if (session->state == Session::State::kOpen) {
      ++figures.open;
      ++figures.open_by_transport[std::string(session->endpoint->limits().transport)];
    }
    if (session->state == Session::State::kClosing) ++figures.closing;
    const bool is_waiting = session->state == Session::State::kWaiting || session->state == Session::State::kMaking;
    if (session->is_silent() || is_waiting) ++figures.handshaking;
    figures.memory_bytes += session->memory_bytes;
  }
  figures.memory_bytes += kept_bytes();
  return figures;
}

// The memory of sessions that have ended, which their peers still have mapped.
uint64_t Control::kept_bytes() const {
  uint64_t bytes = 0;
  for (const auto& place : places_) bytes += place->listener->kept_bytes();
  return bytes;
}

// The memory counts as free as soon as this sees that the peer has unmapped it.
void Control::look_at_kept() {
  if (kept_bytes() > 0) look_at_kept_.add(kLookAtKept);
}

void Control::on_detached(uint64_t session_id) {
  const auto at = sessions_.find(session_id);
  if (at == sessions_.end() || --at->second->detaching > 0) return;
  destroy(*at->second);
}

// Nobody uses the session's endpoint any more.
void Control::destroy(Session& session) {
  if (!session.takes_long) return forget(session.id);
  std::shared_ptr<transport::ServerEndpoint> last(std::move(session.endpoint));
  setup_.submit(SetupThreads::Kind::kEnd, session.id, [endpoint = std::move(last)]() mutable {
    endpoint.reset();
    return Status::ok();
  });
}

// Its memory is free. A worker that waited for this gets its new session now.
void Control::forget(uint64_t session_id) {
  const uint64_t worker_id = sessions_.at(session_id)->hello.worker_id;
  sessions_.erase(session_id);
  ledger_.forget(session_id);
  if (!look_at_kept_.pending()) look_at_kept_.add(kLookAtKept);
  for (const uint64_t id : ledger_.of_worker(worker_id)) {
    Session& other = *sessions_.at(id);
    if (other.state == Session::State::kWaiting) return grant_when_ready(other);  // a worker has one that waits
  }
}

}  // namespace egret::backend
