#include "backend/sessions/sessions.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "access/newcomers.h"
#include "access/quota.h"
#include "backend/log_events.h"
#include "base/cpu.h"

namespace egret::backend {

using base::Status;
using events::Event;
using wire::FrameType;

namespace {
// A connection whose handshake makes no progress for this long is closed.
constexpr std::chrono::seconds kHelloPatience{5};
// The pause before a refused connection is closed: a queue pair that is closed at once drops what it has not sent.
constexpr std::chrono::milliseconds kRefusalTravels{100};
constexpr int kFramesAtOnce = 16;                // of one connection, before others' turn
constexpr uint64_t kUnderWayNs = 2'000'000'000;  // a newcomer that was accepted longer ago than this waits for its peer
constexpr std::chrono::milliseconds kRateLimitPause{50};
// Connections and sessions that may wait for a set-up thread; beyond that none is accepted for a while. More than those
// that are let in at once (access/admission.h), so only clients that cannot be asked to come back meet it.
constexpr size_t kMostInSetUp = 128;
// At most so many lines of sessions that open in 10 s; as many that close.
constexpr uint32_t kMaxSessionLogLines = 200;

// Why sweep_silent() closes a connection.
constexpr const char* kSilent = "no hello, or no answer to the challenge";
constexpr const char* kIncomplete = "not all of its queue pairs have joined in time";

// Why a session is closed whose partition has said kBroken, kGone or kUnwatched.
std::string why_it_ends(const Message& message, const transport::ServerEndpoint& endpoint) {
  if (message.kind == Message::Kind::kGone) return endpoint.failure();
  if (message.kind == Message::Kind::kUnwatched)
    return "this system has no room to wait for one more descriptor (fs.epoll.max_user_watches, memory)";
  return "the peer wrote a malformed message on lane " + std::to_string(message.lane.lane) + ": " +
         to_string(message.error);
}
}  // namespace

void Session::on_readable() {
  sessions->on_control_ready(*this);
}

void Session::on_read_on() {
  sessions->read_on(*this);
}

void Session::on_refusal_over() {
  sessions->discard(*this);
}

Sessions::Sessions(events::EventLoop& loop, const Config& config, const Identity& identity, Host& host)
    : loop_(loop),
      config_(config),
      identity_(identity),
      host_(host),
      sweep_(Event::timer<&Sessions::sweep_silent>(loop, *this)),
      setup_(setup_threads_for(base::allowed_cpus().size())) {
  reload();
}

Sessions::~Sessions() = default;

Status Sessions::begin() {
  setup_done_ = Event::on_fd<&Sessions::on_setup_done>(loop_, setup_.fd(), events::kRead | events::kPersist, *this);
  return setup_done_.add();
}

void Sessions::reload() {
  handshake_rate_.allow(access::sessions_told_of_peer(config_.quota));
}

// --- newcomers

void Sessions::arrive(std::unique_ptr<transport::ServerEndpoint> endpoint, uint64_t begun_ns) {
  const uint64_t id = next_session_++;
  Session& session = *sessions_.emplace(id, std::make_unique<Session>()).first->second;
  session.sessions = this;
  session.accepted_ns = begun_ns;
  session.id = id;
  session.endpoint = std::move(endpoint);
  session.read_on = Event::timer<&Session::on_read_on>(loop_, session);
  ledger_.arrive(id, session.endpoint->peer_group());
  if (!sweep_.pending()) sweep_.add(kHelloPatience);
  session.cost.control_ns = clock_.now_ns() - begun_ns;
  if (session.endpoint->needs_preparing()) {
    session.state = Session::State::kPreparing;
    give_to_setup(session, [prepared = session.endpoint.get()] { return prepared->prepare(); });
  } else {
    on_prepared(session, Status::ok());
  }
  limit_newcomers();
}

bool Sessions::is_full() const {
  return in_setup() >= kMostInSetUp;
}

// 0, or after how many milliseconds a newcomer should come back. Connections that have said nothing for long take no time:
// they are not under way. Who has come back is let in whatever else is under way, but once for each peer: so nobody can
// keep it out. `own_id`: its connection; 0: it has none yet.
uint32_t Sessions::pause_for(const std::string& peer_group, bool came_back, uint64_t own_id) {
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
uint32_t Sessions::come_back_ms(const std::string& peer_group, bool came_back) {
  return pause_for(peer_group, came_back, 0);
}

// A peer without tokens (handshake_rate.h) is turned away before anything is allocated for it.
bool Sessions::lets_in(const std::string& peer_group) {
  const uint64_t now_ns = clock_.now_ns();
  const bool may = handshake_rate_.may_go_on(peer_group, now_ns);
  if (may) handshake_rate_.charge(peer_group, now_ns, 1);
  if (!may) ++counted_.slowed;
  return may;
}

void Sessions::charge(const std::string& peer_group) {
  handshake_rate_.charge(peer_group, clock_.now_ns(), 1);
}

// From here on frames of the peer are read.
void Sessions::on_prepared(Session& session, const Status& prepared) {
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

// Those that were refused are among them until they have read why.
std::vector<access::Newcomer> Sessions::silent_newcomers() const {
  const uint64_t now_ns = clock_.now_ns();
  std::vector<access::Newcomer> newcomers;
  for (const uint64_t id : ledger_.arriving()) {
    const Session& session = *sessions_.at(id);
    if (!session.is_silent() || !session.ends_after_setup.empty()) continue;
    const bool has_just_come = now_ns - session.accepted_ns <= access::kNewcomerIsYoungNs;
    newcomers.push_back({.connection = id,
                         .peer = session.endpoint->peer_group(),
                         .waits_for_us = session.state == Session::State::kPreparing,
                         .is_young = has_just_come && session.state != Session::State::kRefused});
  }
  return newcomers;
}

bool Sessions::is_crowded() const {
  return ledger_.arriving().size() >= access::kMostNewcomersOfOnePeer && access::should_wait(silent_newcomers());
}

void Sessions::limit_newcomers() {
  const auto one_too_many = access::connection_to_end(silent_newcomers());
  if (one_too_many) close(*sessions_.at(*one_too_many), "too many connections of this peer that say nothing");
}

// Closes each connection that the last sweep saw too and that has still not finished its handshake. The timer runs only
// while there are such connections.
void Sessions::sweep_silent() {
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

// --- what takes long, on other threads

// Until it is done this thread leaves the endpoint alone.
void Sessions::give_to_setup(Session& session, SetupThreads::Work work) {
  session.is_in_setup = session.takes_long = true;
  if (session.readable.pending()) session.readable.del();  // there is none before it is prepared
  session.read_on.del();
  setup_.submit(SetupThreads::Kind::kMake, session.id, std::move(work));
}

void Sessions::on_setup_done() {
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
  if (!is_full()) host_.on_room();
}

// --- the handshake

void Sessions::on_control_ready(Session& session) {
  const uint64_t id = session.id;
  const bool was_open = session.state == Session::State::kOpen;
  const uint64_t begun_ns = clock_.now_ns();
  take_frames(session);
  const auto at = was_open ? sessions_.end() : sessions_.find(id);
  if (at != sessions_.end()) session.cost.control_ns += clock_.now_ns() - begun_ns;
}

// Takes every frame there is, because only a new frame makes the descriptor readable again. If a peer sends many, the rest
// is taken later. A frame may end the session.
void Sessions::take_frames(Session& session) {
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
void Sessions::on_nothing_to_read(Session& session) {
  if (session.endpoint->joins_too_early()) {
    return refuse(
        session,
        "this backend has a secret, and a proxy of release 0.1.0 connects several queue pairs before it proves "
        "that it has it, too: set the proxy's qps_per_session to 1, or update it");
  }
  grant_when_ready(session);
}

void Sessions::read_on(Session& session) {
  if (const Status added = session.readable.add(); !added) return close(session, added.message());
  on_control_ready(session);
}

void Sessions::read_on_later(Session& session, std::chrono::milliseconds pause) {
  session.readable.del();
  session.read_on.add(pause);
}

void Sessions::on_frame(Session& session, std::span<const std::byte> frame) {
  FrameType type{};
  std::string error;
  if (!decode_prefix(frame, type, error)) return refuse(session, error);
  if (type == FrameType::kHello && session.state == Session::State::kSilent) return on_hello(session, frame);
  if (type == FrameType::kProof && session.state == Session::State::kChallenged) return on_proof(session, frame);
  if (type == FrameType::kReady && session.state == Session::State::kOpen && !std::exchange(session.is_ready, true))
    return;
  refuse(session, "an unexpected handshake frame");
}

void Sessions::on_hello(Session& session, std::span<const std::byte> frame) {
  if (!decode(frame, session.hello)) return refuse(session, "a malformed hello");
  if ((session.hello.features & wire::kComeBack) != 0 && !session.endpoint->is_admitted()) {
    const uint32_t pause_ms = pause_for(session.endpoint->peer_group(), session.hello.asked_back > 0, session.id);
    if (pause_ms > 0) return turn_away(session, {.reason = "many sessions are being made", .come_back_ms = pause_ms});
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

void Sessions::on_proof(Session& session, std::span<const std::byte> frame) {
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
// Of several connections of one worker the newest that has not ended counts: the worker has given up the others. Hellos may be
// read in another order than connections came.
void Sessions::admit(Session& session) {
  const std::vector<uint64_t> others = ledger_.of_worker(session.hello.worker_id);
  const auto is_newer = [&](uint64_t id) {
    return id > session.id && sessions_.at(id)->state != Session::State::kClosing;
  };
  if (std::ranges::any_of(others, is_newer)) return close(session, "its worker has connected again meanwhile");
  const std::string excess =
      access::place_excess(config_.quota, ledger_, session.hello.worker_id, session.endpoint->peer_group());
  if (!excess.empty()) return refuse(session, excess);
  for (const uint64_t id : others) close(*sessions_.at(id), "replaced by a new session of the same worker");
  session.state = Session::State::kWaiting;
  ledger_.admit(session.id, session.hello.worker_id);
  if (Status let = session.endpoint->let_join(); !let) return refuse(session, let.message());
  grant_when_ready(session);
}

// Grants a waiting session when all its queue pairs have joined and the older session of its worker is gone.
void Sessions::grant_when_ready(Session& session) {
  if (session.state != Session::State::kWaiting || session.is_incomplete()) return;
  if (ledger_.of_worker(session.hello.worker_id).size() == 1) make(session);
}

// Decides what the session is granted; its memory is made meanwhile.
void Sessions::make(Session& session) {
  auto layout = layout_for(session, config_, ledger_);
  if (!layout) return refuse(session, layout.message());
  session.granted = grant_for(session, config_, identity_, layout.value(), take_lane_rings(session));
  const transport::RegionShape shape = shape_of(session.granted);
  session.memory_bytes = shape.request_bytes + shape.response_bytes + shape.reply_bytes;
  session.user = ledger_.take_memory(session.id, session.memory_bytes);
  session.state = Session::State::kMaking;
  give_to_setup(session, [endpoint = session.endpoint.get(), shape] { return endpoint->create_region(shape); });
}

// Whether the session's lanes get a ring each. The quota has none where there is one lane, or too many.
bool Sessions::take_lane_rings(const Session& session) {
  if (!can_have_lane_rings(session) || config_.quota.lane_rings == 0) return false;
  const uint64_t further = config_.partitions - 1;  // one has its place among the session's own
  if (!access::has_room_for_rings(config_.quota, ledger_, session.endpoint->peer_group(), further)) return false;
  ledger_.take_rings(session.id, further);
  return true;
}

// Sent before the partitions are told of the session: then the endpoint's data functions belong to its home partition.
Status Sessions::send_grant(Session& session) {
  const base::Secret& secret = session.secret.secret;
  std::vector<std::byte> frame = encode(session.granted);
  if (secret.is_set()) {
    session.granted.proof = session.transcript.server_proof(secret, frame);
    frame = encode(session.granted);
  }
  return session.endpoint->send_frame(frame, true);
}

// --- an open session

uint32_t Sessions::home_of(const Session& session) const {
  if (const transport::SameProcess* const same = session.endpoint->limits().same_process; same != nullptr) {
    if (same->home() >= 0 && static_cast<uint32_t>(same->home()) < config_.partitions)
      return static_cast<uint32_t>(same->home());
  }
  const int group = session.endpoint->group();
  return group >= 0 ? static_cast<uint32_t>(group) : static_cast<uint32_t>(session.id % config_.partitions);
}

// Each partition serves its lane of the session from now on.
void Sessions::attach(const Session& session) {
  const wire::Grant& granted = session.granted;
  const bool is_ordered = (granted.features & wire::kOrderedMemory) != 0;
  const bool knows_rights = (granted.features & wire::kRights) != 0;
  const bool knows_deliver = (granted.features & wire::kDeliver) != 0;
  for (uint32_t partition = 0; partition < config_.partitions; ++partition) {
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
    host_.post(partition, {.kind = Message::Kind::kAttach, .lane = lane, .under_way = session.under_way.get()});
  }
}

void Sessions::held_sessions_changed(const Session& session) {
  const std::string& peer = session.endpoint->peer_group();
  handshake_rate_.holds(peer, clock_.now_ns(), ledger_.places_of(peer));
}

void Sessions::on_made(Session& session, const Status& made) {
  const uint64_t begun_ns = clock_.now_ns();
  if (!made) return refuse(session, made.message());
  if (const Status added = session.readable.add(); !added) return close(session, added.message());
  if (Status sent = send_grant(session); !sent) return close(session, sent.message());
  session.state = Session::State::kOpen;
  ledger_.open(session.id);
  held_sessions_changed(session);
  handshake_rate_.charge(session.endpoint->peer_group(), clock_.now_ns(),
                         access::HandshakeRate::cost_of_session(session.memory_bytes));
  const wire::RegionLayout& layout = session.granted.layout;
  session.under_way = std::make_unique<UnderWay>(size_t{layout.lanes} * layout.window);
  attach(session);
  ++counted_.opened;
  session.cost.control_ns += clock_.now_ns() - begun_ns;
  admission_.granted(session.cost);
  static base::LogLimit limit(kMaxSessionLogLines);
  const std::string of_secret = session.secret.secret.is_set() ? " by secret " + session.secret.name : "";
  base::log_limited(limit, kSessionOpen, "session {} open: {}, home partition {}, {}, {}, rights {}{}",
                    base::field("session", session.id), base::field("peer", session.endpoint->peer()), home_of(session),
                    base::field("layout", layout.to_string()), base::field("facts", session.endpoint->facts()),
                    base::field("rights", op::to_string(session.granted.rights)), of_secret);
}

// --- its end

void Sessions::refuse(Session& session, const std::string& reason) {
  if (session.state == Session::State::kOpen) {
    // Best effort, here and below: the peer may be gone.
    static_cast<void>(session.endpoint->send_frame(encode(wire::Refusal{.reason = reason}), false));
    return close(session, "refused: " + reason);
  }
  base::log_limited(refusals_logged_.of(reason), kSessionRefused, "connection {} ({}) refused: {}",
                    base::field("session", session.id), base::field("peer", session.endpoint->peer()),
                    base::field("why", reason));
  ++counted_.refused;
  turn_away(session, {.reason = reason});
}

void Sessions::turn_away(Session& session, const wire::Refusal& refusal) {
  static_cast<void>(session.endpoint->send_frame(encode(refusal), false));
  session.state = Session::State::kRefused;
  ledger_.turn_away(session.id);
  session.readable.del();  // whatever else it sends is not read
  session.read_on.del();
  session.refused = Event::timer<&Session::on_refusal_over>(loop_, session);
  session.refused.add(kRefusalTravels);
}

void Sessions::close(Session& session, const std::string& why) {
  if (session.state == Session::State::kClosing) return;
  if (session.is_in_setup && !setup_.withdraw(session.id)) {
    session.ends_after_setup = why;
    return;
  }
  session.is_in_setup = false;
  if (session.state == Session::State::kRefused) return discard(session);
  if (session.state != Session::State::kOpen) {
    base::log_limited(endings_logged_.of(why), kConnectionEnded,
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
  session.detaching = config_.partitions;
  Message detach{.kind = Message::Kind::kDetach, .lane = {}};
  detach.lane.session_id = session.id;
  for (uint32_t partition = 0; partition < config_.partitions; ++partition) host_.post(partition, detach);
}

// A connection that no partition has heard of.
void Sessions::discard(Session& session) {
  session.state = Session::State::kClosing;
  ledger_.close(session.id);
  session.readable.reset();
  session.read_on.reset();
  session.refused.reset();
  session.endpoint->close();
  destroy(session);
}

// A partition says that a session can go on no more.
void Sessions::on_ended(const Message& message) {
  const auto at = sessions_.find(message.lane.session_id);
  if (at == sessions_.end() || at->second->state == Session::State::kClosing) return;
  if (message.kind == Message::Kind::kBroken) ++counted_.broken;
  close(*at->second, why_it_ends(message, *at->second->endpoint));
}

void Sessions::on_detached(uint64_t session_id) {
  const auto at = sessions_.find(session_id);
  if (at == sessions_.end() || --at->second->detaching > 0) return;
  destroy(*at->second);
}

// Nobody uses the session's endpoint any more.
void Sessions::destroy(Session& session) {
  if (!session.takes_long) return forget(session.id);
  std::shared_ptr<transport::ServerEndpoint> last(std::move(session.endpoint));
  setup_.submit(SetupThreads::Kind::kEnd, session.id, [endpoint = std::move(last)]() mutable {
    endpoint.reset();
    return Status::ok();
  });
}

// Its memory is free. A worker that waited for this gets its new session now.
void Sessions::forget(uint64_t session_id) {
  const uint64_t worker_id = sessions_.at(session_id)->hello.worker_id;
  sessions_.erase(session_id);
  ledger_.forget(session_id);
  host_.on_forgotten();
  for (const uint64_t id : ledger_.of_worker(worker_id)) {
    Session& other = *sessions_.at(id);
    if (other.state == Session::State::kWaiting) return grant_when_ready(other);  // a worker has one that waits
  }
}

ControlFigures Sessions::figures() const {
  ControlFigures figures = counted_;
  figures.in_setup = in_setup();
  figures.session_ns = admission_.session_ns();
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
  return figures;
}

}  // namespace egret::backend
