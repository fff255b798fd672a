#include "proxy/slots/slot_sessions.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "base/random.h"
#include "proxy/log_events.h"
#include "proxy/slots/slot_rules.h"

namespace egret::proxy {

using base::Status;
using events::Event;
using rpc::ClientSession;
using wire::FrameType;

namespace {
constexpr std::chrono::seconds kTick{1};
constexpr uint32_t kMaxLogLines = 200;  // about sessions that open in 10 s; as many that end

// What only proxies use, and a backend confirms.
constexpr uint64_t kOfProxies = wire::kFailover | wire::kWarm;
constexpr uint32_t kWorkersSlotSize = 16 << 10;  // bytes, as over shm
constexpr uint32_t kSoonMs = 20;                 // as proxies look at their clocks
constexpr uint32_t kWorkersWindow = 8;           // slots of a lane

wire::RegionLayout layout_for_worker(const wire::Hello& hello, uint32_t lanes) {
  return {.lanes = lanes,
          .window = std::clamp(hello.window, wire::kMinWindow, kWorkersWindow),
          .request_slot_size = slot_size_within(kWorkersSlotSize, hello.request_slot_size),
          .response_slot_size = slot_size_within(kWorkersSlotSize, hello.response_slot_size)};
}

rpc::relay::RelayOptions options_of(const Config& config) {
  const uint64_t spin_ns = config.session.spin_ns;
  return {.polling = {.lane_idle_ns = spin_ns, .far_lane_idle_ns = spin_ns, .embedded_idle_ns = config.slots.idle_ns},
          .collected_memory = config.large_value_memory / config.workers / 2};
}
}  // namespace

SlotSessions::SlotSessions(WorkerContext& context)
    : context_(context),
      relay_(options_of(*context.config), context.clock, context.next_upload_id),
      tick_(Event::timer<&SlotSessions::tick>(context.events, *this)) {}

SlotSessions::~SlotSessions() {
  end_all();
}

// --- sessions

void SlotSessions::take(NewSlotSession asked) {
  std::vector<uint64_t> older;
  for (const auto& [number, session] : sessions_) {
    const bool is_same_user = session->asked.endpoint->peer_group() == asked.endpoint->peer_group();
    if (session->asked.client() == asked.client() && is_same_user) older.push_back(number);
  }
  for (const uint64_t number : older) end(number, "replaced by a new session of the same client");
  auto made = std::make_unique<Session>();
  made->sessions = this;
  made->asked = std::move(asked);
  Session& session = *sessions_.emplace(made->asked.number, std::move(made)).first->second;
  if (const std::string why = grant(session); !why.empty()) refuse(session, why);
  show();
}

// Empty, or why there is none.
std::string SlotSessions::grant(Session& session) {
  NewSlotSession& asked = session.asked;
  ClientSession* const backend = context_.pool.session_with(*asked.member.stats);
  const std::string name = asked.member.member.to_string();
  if (backend == nullptr || !backend->is_open()) return "no session with " + name + " now";
  session.of_backend = backend->grant();
  if (asked.is_of_worker()) asked.layout = layout_for_worker(asked.hello, session.of_backend.layout.lanes);
  if (session.of_backend.layout.lanes != asked.layout.lanes) return name + " has just become another one";
  auto rules = rules_of(session);
  if (!rules) return rules.message();
  session.rules = std::move(rules.value());
  const transport::Limits& limits = asked.endpoint->limits();
  const uint64_t offered = asked.hello.features;
  const uint64_t known = wire::kRelayed | wire::kRights | wire::kSlotSizes | wire::kWakeTimers |
                         (limits.is_ordered ? wire::kOrderedMemory : 0) |
                         (asked.is_of_worker() ? session.of_backend.features & kOfProxies : wire::kEmbedded);
  return serve(session, *backend,
               {.features = offered & known,
                .session_id = asked.number,
                .nonce = base::random_u64(),
                .epoch = session.of_backend.epoch,
                .hash_seed = session.of_backend.hash_seed,
                .item_size_max = session.of_backend.item_size_max,
                .layout = asked.layout,
                .rights = session.rules->rights});
}

// A worker of ours may do what this one may: its own clients are judged there.
base::Expected<std::shared_ptr<const rpc::relay::Rules>> SlotSessions::rules_of(const Session& session) const {
  if (!session.asked.is_of_worker()) return slot_rules(*context_.config, *session.asked.endpoint->user());
  const bool has_rights = (session.of_backend.features & wire::kRights) != 0;
  return std::make_shared<const rpc::relay::Rules>(rpc::relay::Rules{
      .rights = has_rights ? session.of_backend.rights : op::kAllRights, .prefixes = {}, .may_stand_in = true});
}

std::string SlotSessions::serve(Session& session, ClientSession& backend, const wire::Grant& granted) {
  transport::ServerEndpoint& endpoint = *session.asked.endpoint;
  const wire::RegionLayout& layout = granted.layout;
  const transport::RegionShape shape{.lanes = layout.lanes,
                                     .request_bytes = layout.request_bytes(),
                                     .response_bytes = layout.response_bytes(),
                                     .reply_bytes = layout.response_slot_size,
                                     .has_wake_timers = (granted.features & wire::kWakeTimers) != 0};
  if (Status made = endpoint.create_region(shape); !made) return made.message();
  if (Status watched = watch(session); !watched) return watched.message();
  if (Status sent = endpoint.send_frame(encode(granted), true); !sent) return sent.message();
  relay_.attach({.session_id = session.asked.number,
                 .endpoint = &endpoint,
                 .layout = layout,
                 .seal = {granted.nonce, (granted.features & wire::kOrderedMemory) != 0},
                 .rules = session.rules,
                 .knows_rights = (granted.features & wire::kRights) != 0,
                 .is_embedded = (granted.features & wire::kEmbedded) != 0,
                 .user = session.asked.user,
                 .is_of_worker = session.asked.is_of_worker(),
                 .outbound = &backend});
  session.is_attached = true;
  if (session.asked.is_of_worker()) return {};  // who logs it itself
  context_.stats.slots.opened.add();
  static base::LogLimit limit(kMaxLogLines);
  base::log_limited(limit, kSlotsOpen, "slot session {} open: {}, with {}, {}, rights {}",
                    base::field("session", session.asked.number), base::field("peer", endpoint.peer()),
                    base::field("backend", session.asked.member.member.address), layout.to_string(),
                    base::field("rights", op::to_string(session.rules->rights)));
  return {};
}

Status SlotSessions::watch(Session& session) {
  transport::ServerEndpoint& endpoint = *session.asked.endpoint;
  session.control = Event::on_fd<&Session::on_control>(context_.events, endpoint.control_fd(),
                                                       events::kRead | events::kPersist, session);
  session.data = Event::on_fd<&Session::on_data>(context_.events, endpoint.data_fd(),
                                                 events::kRead | events::kPersist | events::kEdge, session);
  if (Status added = session.control.add(); !added) return added;
  return session.data.add();
}

void SlotSessions::refuse(Session& session, const std::string& why) {
  if (!session.asked.is_of_worker()) context_.stats.slots.refusals.add();
  // The worker that has the session with the backend tells why there is none; the others try again soon.
  const ClientSession* const backend = context_.pool.session_with(*session.asked.member.stats);
  const bool is_for_later = session.asked.is_of_worker() && (backend == nullptr || !backend->is_open());
  const wire::Refusal refusal{.reason = why, .come_back_ms = is_for_later ? kSoonMs : 0};
  // Best effort: the peer may be gone.
  [[maybe_unused]] const Status sent = session.asked.endpoint->send_frame(encode(refusal), false);
  end(session.asked.number, why);
}

void SlotSessions::end(uint64_t number, const std::string& why) {
  const auto at = sessions_.find(number);
  if (at == sessions_.end()) return;
  const std::unique_ptr<Session> session = std::move(at->second);
  sessions_.erase(at);
  session->control.reset();
  session->data.reset();
  if (session->is_attached) relay_.detach(number);
  session->asked.endpoint->close();
  show();
  if (session->asked.is_of_worker()) return;
  static base::LogLimit limit(kMaxLogLines);
  base::log_limited(limit, kSlotsClosed, "slot session {} ({}) closed: {}", base::field("session", number),
                    base::field("peer", session->asked.endpoint->peer()), base::field("why", why));
  context_.proxy.slot_mail.ended(number);
}

void SlotSessions::end_all() {
  while (!sessions_.empty()) end(sessions_.begin()->first, "the proxy ends");
}

// Its ready frame, or its end.
void SlotSessions::on_control(Session& session) {
  context_.begin_pass();
  const uint64_t number = session.asked.number;
  std::array<std::byte, wire::kMaxFrame> bytes{};
  size_t length = 0;
  FrameType type{};
  std::string error;
  if (Status received = session.asked.endpoint->receive_frame(bytes, length); !received) {
    return end(number, received.message());
  }
  if (length == 0) return;
  const bool is_ready = decode_prefix(std::span(bytes).first(length), type, error) && type == FrameType::kReady;
  if (!is_ready || std::exchange(session.is_ready, true)) end(number, "an unexpected handshake frame");
}

void SlotSessions::on_ring(Session& session) {
  context_.begin_pass();
  std::array<transport::Event, 16> events{};
  const size_t count = session.asked.endpoint->poll(events);
  for (const transport::Event& event : std::span(events).first(count)) {
    if (event.kind == transport::Event::Kind::kClosed)
      return end(session.asked.number, session.asked.endpoint->failure());
  }
  if (count > 0) relay_.ring(session.asked.number);
}

void SlotSessions::on_backend_open(ClientSession& backend) {
  std::vector<uint64_t> over;
  for (const auto& [number, session] : sessions_) {
    if (context_.pool.session_with(*session->asked.member.stats) != &backend) continue;
    if (!rpc::relay::Relay::is_same(session->of_backend, backend.grant())) over.push_back(number);
  }
  for (const uint64_t number : over) end(number, "the backend was started anew");
}

void SlotSessions::on_backend_lost(ClientSession& backend) {
  std::vector<uint64_t> over;
  for (const auto& [number, session] : sessions_) {
    const bool is_its = context_.pool.session_with(*session->asked.member.stats) == &backend;
    if (is_its && session->asked.is_of_worker()) over.push_back(number);
  }
  for (const uint64_t number : over) end(number, "the session with the backend has ended");
}

bool SlotSessions::serves_workers() const {
  return !sessions_.empty() && sessions_.rbegin()->second->asked.is_of_worker();  // whose numbers are the highest
}

void SlotSessions::review() {
  const Config& config = *context_.config;
  relay_.set_options(config.session.spin_ns, config.slots.idle_ns, config.large_value_memory / config.workers / 2);
  std::vector<std::pair<uint64_t, std::string>> over;
  const std::shared_ptr<const pool::Membership> membership = context_.proxy.membership.get();
  for (const auto& [number, session] : sessions_) {
    if (session->asked.is_of_worker()) continue;  // it leaves with the worker's own session, when that has no work left
    const auto is_it = [&stats = session->asked.member.stats](const auto& entry) { return entry.stats == stats; };
    const auto rules = slot_rules(*context_.config, *session->asked.endpoint->user());
    if (std::ranges::none_of(membership->members(), is_it)) {
      over.emplace_back(number, "the backend has left the pool");
    } else if (!rules || !(*rules.value() == *session->rules)) {
      over.emplace_back(number, "the configuration has changed what its user may do");
    }
  }
  for (const auto& [number, why] : over) end(number, why);
}

// --- the passes

bool SlotSessions::poll() {
  if (sessions_.empty()) return false;
  const bool any = relay_.poll();
  if (relay_.has_broken_sessions()) [[unlikely]]
    end_broken();
  if (any) end_wait(true);
  return any;
}

// Clients have asked for something (`paid`), or their lanes have fallen asleep.
void SlotSessions::end_wait(bool paid) {
  if (std::exchange(wait_, Wait::kIdle) == Wait::kPolled) spin_judge_.ends(paid);
}

void SlotSessions::end_broken() {
  for (const rpc::BrokenSession& broken : relay_.take_broken_sessions()) {
    end(broken.session_id,
        "its client wrote a malformed message on lane " + std::to_string(broken.lane) + ": " + to_string(broken.why));
  }
}

// Lanes without a request fall asleep after a while; at once where polling rarely pays.
bool SlotSessions::should_spin() {
  if (!relay_.awaits_requests()) return false;
  if (wait_ == Wait::kIdle) wait_ = spin_judge_.begins() ? Wait::kPolled : Wait::kNotPolled;
  if (wait_ == Wait::kNotPolled) return false;
  relay_.park(false);
  return relay_.awaits_requests();
}

bool SlotSessions::prepare_sleep() {
  if (sessions_.empty()) return true;
  relay_.push();
  if (!relay_.park(true)) return false;
  end_wait(false);
  if (relay_.needs_tick() && !tick_.pending()) tick_.add(kTick);
  show();
  return true;
}

void SlotSessions::tick() {
  context_.begin_pass();
  relay_.tick();
  show();
  if (relay_.needs_tick()) tick_.add(kTick);
}

void SlotSessions::show() {
  SlotStats& shown = context_.stats.slots;
  const auto workers = static_cast<uint64_t>(
      std::ranges::count_if(sessions_, [](const auto& each) { return each.second->asked.is_of_worker(); }));
  shown.sessions.set(sessions_.size() - workers);
  shown.worker_sessions.set(workers);
  shown.messages.set(relay_.poller_counters().messages);
  shown.ops.set(relay_.poller_counters().ops);
  shown.malformed.set(relay_.poller_counters().malformed);
  shown.waits.set(relay_.counters().waits);
  shown.refused.set(relay_.counters().refused);
  shown.not_sent.set(relay_.counters().not_sent);
  shown.kept_bytes.set(relay_.kept_bytes());
  shown.collected_bytes.set(relay_.collected_bytes());
}

}  // namespace egret::proxy
