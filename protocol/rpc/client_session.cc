#include "rpc/client_session.h"

#include <algorithm>
#include <array>
#include <utility>

namespace egret::rpc {

using base::Status;
using transport::Event;

namespace {
constexpr uint64_t kUsualWaits = 4;
constexpr uint64_t kMostSpinNs = 2'000'000;
// A backend may ask for this pause at most, and so often in a row; beyond that it is one that cannot be reached.
constexpr uint32_t kLongestPauseMs = 20'000;
constexpr uint32_t kMostAsks = 4;
constexpr uint64_t kStallsOfLongValue = 4;
constexpr uint64_t kMostBetweenTicksNs = 2 * ClientSession::kTickNs;
}  // namespace

ClientSession::ClientSession(const SessionOptions& options, const base::Clock& clock, SessionObserver& observer,
                             Connect connect, std::shared_ptr<SessionCounters> counters)
    : options_(options),
      clock_(clock),
      observer_(observer),
      connect_(connect),
      backoff_ns_(options.backoff_min_ns),
      chance_(options.worker_id),
      worker_id_(options.worker_id),
      choice_(options.address),
      counters_(counters != nullptr ? std::move(counters) : std::make_shared<SessionCounters>()) {}

ClientSession::~ClientSession() {
  EGRET_DCHECK(holders_ == 0 && anchors_ == 0);
}

void ClientSession::set_options(SessionOptions options) {
  EGRET_ASSERT_OWNER(owner_);
  options.address = std::move(options_.address);
  options.worker_id = options_.worker_id;
  options.connect.group = options_.connect.group;
  options.relayed_to = options_.relayed_to;
  if (options.relayed_to != 0) options.secret = {};  // the proxy's own matter
  options_ = std::move(options);
  backoff_ns_ = std::min(backoff_ns_, options_.backoff_max_ns);
  if (state_ == State::kWaiting && asked_back_ == 0)
    deadline_ns_ = std::min(deadline_ns_, clock_.now_ns() + backoff_ns_);
  for (auto& lane : lanes_) lane->set_fetch(options_.fetch);
}

// --- set-up and death

void release_owner(ClientSession& session) {
  session.owner_.release();
  session.lanes_.release_owner();
  session.credit_.release_owner();
}

void ClientSession::start() {
  EGRET_ASSERT_OWNER(owner_);
  EGRET_DCHECK(state_ == State::kWaiting || state_ == State::kClosed);
  now_ns_ = clock_.now_ns();
  backoff_ns_ = options_.backoff_min_ns;
  asked_back_ = 0;
  state_ = State::kWaiting;
  connect_now();
}

void ClientSession::connect_now() {
  opening_ = {};
  transport::ConnectOptions place = options_.connect;
  place.came_back = asked_back_ > 0;
  // Whether it may grow depends on the transport; where this counts, it does.
  place.window = options_.growth.window > 0 ? std::min(options_.growth.window, options_.window) : options_.window;
  auto connected = connect_(choice_.address(), place);
  if (!connected) {
    lose(connected.message());
    if (state_ == State::kWaiting && choice_.is_fallback()) connect_now();
    return;
  }
  endpoint_ = std::move(connected.value());
  state_ = State::kHandshaking;
  deadline_ns_ = now_ns_ + options_.connect_timeout_ns;
  unheard_ns_ = now_ns_ + choice_.patience_ns(options_.connect_timeout_ns);
  if (Status watched = observer_.on_session_connecting(*this); !watched) return lose(watched.message());
  if (Status sent = opening_.send_hello(asked(!may_resize()), asked_back_, *endpoint_); !sent) lose(sent.message());
}

void ClientSession::on_control_ready() {
  EGRET_ASSERT_OWNER(owner_);
  now_ns_ = clock_.now_ns();
  while (endpoint_ != nullptr) {
    std::array<std::byte, wire::kMaxFrame> frame{};
    size_t length = 0;
    if (Status received = endpoint_->receive_frame(frame, length); !received) {
      // The memory of a peer that is gone is still mapped: take the responses that it has published.
      if (successor_ != nullptr) stay("the session has ended");
      if (state_ == State::kOpen && endpoint_->limits().fetch_is_local) fetch();
      if (endpoint_ != nullptr) lose(received.message());
      return;
    }
    on_frame(std::span(frame).first(length));
    if (length == 0) return;
  }
}

// `frame`: empty, there is none.
void ClientSession::on_frame(std::span<const std::byte> frame) {
  const auto granted = frame.empty() ? opening_.on_no_frame(*endpoint_) : opening_.on_frame(frame, *endpoint_);
  if (!granted) return lose(granted.message());
  if (granted.value()) open();
}

void ClientSession::open() {
  lanes_.open(grant(), options_.fetch, *endpoint_, *counters_);
  endpoint_->set_listener(this, 0);
  state_ = State::kOpen;
  asked_back_ = 0;
  counters_->is_open.set(1);
  must_poll_ = true;
  on_work();
  opened_ns_ = now_ns_;
  has_served_ = false;
  choice_.open(now_ns_, chance_.next());
  if (choice_.is_fallback()) counters_->fell_back.add();
  settle(!may_resize());
  if (Status watched = observer_.on_session_open(*this); !watched) lose(watched.message());
}

// The pause that the backend has asked for; 0: none, or too often.
uint64_t ClientSession::asked_pause_ns() const {
  if (endpoint_ == nullptr || state_ != State::kHandshaking || asked_back_ >= kMostAsks) return 0;
  const uint32_t asked_ms = std::max(opening_.come_back_ms(), endpoint_->come_back_ms());
  return uint64_t{std::min(asked_ms, kLongestPauseMs)} * 1'000'000;
}

void ClientSession::lose(const std::string& why) {
  const bool was_open = state_ == State::kOpen;
  if (const uint64_t pause_ns = asked_pause_ns(); pause_ns > 0) {
    ++asked_back_;
    deadline_ns_ = now_ns_ + pause_ns;
    is_asked_back_ = true;
    end(why, State::kWaiting);
    is_asked_back_ = false;
    return;
  }
  if (was_open) {
    choice_.lose(now_ns_);
  } else if (choice_.falls_back()) {
    return fall_back(why);
  }
  if (was_open || !opening_.is_heard()) counters_->signs.failures.add();  // before the observer is told
  // Reset the back-off only if the session has served an op, or lasted.
  if (was_open && (has_served_ || now_ns_ - opened_ns_ >= options_.backoff_max_ns))
    backoff_ns_ = options_.backoff_min_ns;
  // Sessions that were lost at one moment, a backend's, come back at many.
  deadline_ns_ = now_ns_ + chance_.between(backoff_ns_ / 2, backoff_ns_);
  backoff_ns_ = std::min(backoff_ns_ * 2, options_.backoff_max_ns);
  end(why, State::kWaiting);
}

void ClientSession::end(const std::string& why, State next) {
  counters_->is_open.set(0);
  counters_->slot_bytes.set(0);
  counters_->transport.set(0);
  if (successor_ != nullptr) stay(why);
  observer_.on_session_lost(*this, why, endpoint_ != nullptr && state_ == State::kOpen);
  drop_endpoint(next);
}

void ClientSession::fall_back(const std::string& why) {
  deadline_ns_ = now_ns_;
  observer_.on_session_falls_back(*this, why);
  drop_endpoint(State::kWaiting);
}

void ClientSession::drop_endpoint(State next) {
  if (endpoint_ != nullptr) {
    if (observer_.may_close(*this)) {
      endpoint_->close();
    } else {
      [[maybe_unused]] const transport::ClientEndpoint* const left_alone = endpoint_.release();
    }
  }
  state_ = next;
  wait_ = Wait::kIdle;
  must_poll_ = false;
  lanes_.close();
  credit_.announce();
  endpoint_.reset();
}

void ClientSession::count_answer() {
  has_served_ = true;
  answered_ns_ = now_ns_;
  if (counters_->signs.timeouts.get() == 0) return;
  timeouts_ = 0;
  counters_->signs.timeouts.set(0);
}

void ClientSession::close(State next) {
  EGRET_ASSERT_OWNER(owner_);
  if (next == State::kWaiting) {
    if (endpoint_ != nullptr) lose("closed");
    return;
  }
  if (endpoint_ != nullptr) end("closed", State::kClosed);
  state_ = State::kClosed;
  timeouts_ = 0;
  counters_->signs.timeouts.set(0);
}

bool ClientSession::keep_alive() {
  if (!is_open()) return false;
  now_ns_ = clock_.now_ns();
  const bool is_probed = endpoint_->limits().needs_keep_alive;
  if (is_probed) {
    endpoint_->keep_alive();
    must_poll_ = true;  // an earlier one may have failed
    on_work();
  }
  look_for_better();
  return is_probed || (may_resize() && plan_.is_large()) || choice_.is_fallback();
}

void ClientSession::tick() {
  EGRET_ASSERT_OWNER(owner_);
  now_ns_ = clock_.now_ns();
  // After a long time without a tick (the process was stopped, or its program was busy) nobody may have looked for answers.
  // Nothing becomes overdue by that time now: passes find what has come, and the next tick judges.
  const uint64_t before_ns = std::exchange(ticked_ns_, now_ns_);
  const uint64_t judged_ns = now_ns_ - before_ns <= kMostBetweenTicksNs ? now_ns_ : before_ns;
  if (state_ == State::kWaiting && now_ns_ >= deadline_ns_) return connect_now();
  if (state_ == State::kHandshaking && judged_ns >= (opening_.is_heard() ? deadline_ns_ : unheard_ns_))
    return lose("no answer to the handshake");
  if (state_ != State::kOpen) return;
  lanes_.make_room_for_uploads(judged_ns);
  // op_timeout is the longest that an op waits: what would be overdue before the next tick is overdue now.
  const uint64_t overdue_ns = options_.op_timeout_ns - std::min(kTickNs, options_.op_timeout_ns / 16);
  uint64_t expired = 0, unanswered = 0;
  for (size_t i = 0; i < lanes_.active().size(); ++i) {
    ClientLane& lane = lanes_[lanes_.active()[i]];
    if (lane.outstanding() == 0 || judged_ns < overdue_ns) continue;
    expired += lane.expire(judged_ns - overdue_ns);
    unanswered += lane.unanswered();
    // The late response had time to come; a lane that stays stuck needs a new session.
    if (lane.progress().oldest_sent_ns + 2 * options_.op_timeout_ns < judged_ns) {
      counters_->signs.timeouts.set(SessionSigns::kStuck);
      return lose("the backend does not answer");
    }
  }
  if (expired > 0) {
    const bool is_all_silent = judged_ns >= answered_ns_ + overdue_ns;
    count_timeouts(expired, is_all_silent ? unanswered + credit_.size() : 0);
    credit_.announce_to_all();  // whoever waits for a lane that is silent now has waited long enough
  }
  if (successor_ != nullptr) return go_on_resizing();
  look_for_better();
}

// `unanswered`: messages that are not overdue yet, and ops that wait for room, of a backend that has answered nothing for
// op_timeout. They count as timeouts now: else the ejection would wait until eject_after of them are overdue one after the other.
void ClientSession::count_timeouts(uint64_t expired, uint64_t unanswered) {
  base::Gauge& sign = counters_->signs.timeouts;
  timeouts_ += expired;
  sign.set(std::max(sign.get(), timeouts_ + unanswered));  // kStuck stays
  observer_.on_session_timeout(*this);
}

// --- another size or transport

// On this host slots are not pinned: a session has all of them from the beginning.
bool ClientSession::may_resize() const {
  return options_.growth.window != 0 && options_.growth.window < options_.window && !endpoint_->limits().fetch_is_local;
}

// A backend ends the older of two sessions of one worker. A session and its successor are open at once, so they are
// those of twins. Both stay the worker's own: whichever ends unexpectedly, the next session takes its twin's name, and
// waits until the backend executes nothing of it any more.
SessionOptions ClientSession::asked(bool is_large) const {
  SessionOptions asked = options_;
  asked.address = choice_.address();
  asked.worker_id = worker_id_;
  asked.connect.window = asked.window;
  if (is_large) return asked;
  const Growth& small = options_.growth;
  const auto least = [&](uint32_t size) { return size == 0 ? small.slot_size : std::min(size, small.slot_size); };
  asked.connect.window = asked.window = small.window;
  if (small.slot_size == 0) return asked;
  asked.request_slot_size = least(options_.request_slot_size);
  asked.response_slot_size = least(options_.response_slot_size);
  return asked;
}

void ClientSession::settle(bool is_large) {
  plan_.settle(options_.growth, is_large, now_ns_, options_.worker_id ^ grant().session_id);
  options_.connect.lanes = grant().layout.lanes;
  counters_->slot_bytes.set(grant().layout.bytes());
  counters_->transport.set(transport::number_of_transport(choice_.address()));
}

void ClientSession::look_for_better() {
  if (successor_ != nullptr) return;
  if (choice_.should_return(now_ns_)) return begin_resize(Successor::Aim::kPreferred);
  look_at_size();
}

void ClientSession::look_at_size() {
  if (!may_resize()) return;
  uint64_t stalls = counters_->long_values.get() * kStallsOfLongValue, messages = 0;
  for (uint32_t lane = 0; lane < lanes_.count(); ++lane) {
    stalls += counters_->at(lane).stalls.get();
    messages += counters_->at(lane).messages.get();
  }
  const WindowPlan::Wish wish = plan_.look(now_ns_, stalls, messages);
  if (wish == WindowPlan::Wish::kNone) return;
  begin_resize(wish == WindowPlan::Wish::kMore ? Successor::Aim::kMore : Successor::Aim::kFewer);
}

void ClientSession::begin_resize(Successor::Aim aim) {
  const bool is_preferred = aim == Successor::Aim::kPreferred;
  successor_ = std::make_unique<Successor>();
  SessionOptions wanted = asked(is_preferred ? plan_.is_large() : aim == Successor::Aim::kMore);
  if (is_preferred) wanted.address = choice_.preferred();
  wanted.worker_id ^= 1;
  on_work();
  if (Status begun = successor_->begin(wanted, grant(), aim, connect_, now_ns_); !begun) stay(begun.message());
}

void ClientSession::go_on_resizing() {
  const auto state = successor_->look(now_ns_, lanes_.should_wait_for_uploads());
  if (!state) return stay(state.message());
  const bool was_emptying = std::exchange(is_emptying_, state.value() == Successor::State::kEmptying);
  if (is_emptying_) {
    resize_if_empty();
  } else if (was_emptying) {
    let_in();
  }
}

// Between two passes, or at a pass's end: within none of the lanes' calls. Whether the session is the successor now.
bool ClientSession::resize_if_empty() {
  if (!lanes_.withhold(true)) return false;
  is_emptying_ = false;
  const std::unique_ptr<Successor> first = std::move(successor_);
  first->swap(endpoint_, opening_);
  worker_id_ = first->worker_id();
  lanes_.replace(grant(), options_.fetch, *endpoint_, *counters_);
  endpoint_->set_listener(this, 0);
  must_poll_ = true;
  wait_ = Wait::kIdle;
  credit_.announce();
  Status watched = Status::ok();
  if (first->aim() == Successor::Aim::kPreferred) {
    choice_.come_back(now_ns_);
    counters_->returned.add();
    settle(plan_.is_large());
    watched = observer_.on_session_returned(*this);
  } else {
    const bool is_large = first->aim() == Successor::Aim::kMore;
    (is_large ? counters_->grown : counters_->given_back).add();
    settle(is_large);
    watched = observer_.on_session_resized(*this);
  }
  if (!watched) lose(watched.message());
  return true;
}

void ClientSession::stay(const std::string& why) {
  const Successor::Aim aim = successor_->aim();
  successor_.reset();
  if (std::exchange(is_emptying_, false)) let_in();
  if (aim == Successor::Aim::kPreferred) {
    choice_.stay(now_ns_, chance_.next());
    return observer_.on_session_not_returned(*this, why);
  }
  counters_->not_resized.add();
  plan_.refuse(now_ns_);
  observer_.on_session_not_resized(*this, why);
}

// Ops may begin again.
void ClientSession::let_in() {
  lanes_.withhold(false);
  credit_.announce();
}

// --- the data path

ClientSession::Rest ClientSession::begin_pass() {
  EGRET_ASSERT_OWNER(owner_);
  now_ns_ = clock_.now_ns();
  lanes_.begin_pass();
  return rest();
}

// Its group has taken something for it.
void ClientSession::on_ready(uint64_t /*token*/) {
  must_poll_ = true;
  on_work();
}

void ClientSession::on_data_ready() {
  EGRET_ASSERT_OWNER(owner_);
  endpoint_->ready();
  if (!endpoint_->limits().deliver_is_wakeup) {  // each push is an event
    must_poll_ = true;
    return on_work();
  }
  counters_->deliveries.add();
  for (const uint32_t lane : lanes_.active()) lanes_[lane].on_woken();
}

void ClientSession::flush() {
  EGRET_ASSERT_OWNER(owner_);
  if (state_ != State::kOpen) return;
  answer_gathered();
  for (const uint32_t lane : lanes_.active()) lanes_[lane].seal();
  endpoint_->flush();
}

// What was gathered comes before what lies in slots: so it is executed before every flush of the endpoint.
void ClientSession::answer_gathered() {
  if (endpoint_->limits().is_one_process && lanes_.answer_gathered()) count_answer();
}

bool ClientSession::fetch() {
  EGRET_ASSERT_OWNER(owner_);
  if (state_ != State::kOpen) return false;
  const bool is_local = endpoint_->limits().fetch_is_local;
  // On this host a poll finds only results that were asked for; the session's end shows on its control channel.
  if (is_local && !must_poll_ && !is_emptying_ && !lanes_.awaits()) return false;
  must_poll_ = false;
  bool progress_at_all = false;
  for (bool progress = true; progress && state_ == State::kOpen;) {
    stage_fetches();
    answer_gathered();
    endpoint_->flush();
    progress = false;
    if (const char* why = poll_events(progress)) {
      lose(why);
      return true;
    }
    progress_at_all |= progress;
    if (!is_local || !lanes_.awaits() || lanes_.holds_much()) break;
  }
  if (is_emptying_ && state_ == State::kOpen) [[unlikely]]
    progress_at_all |= resize_if_empty();
  return progress_at_all;
}

void ClientSession::stage_fetches() {
  const ActiveLanes& active = lanes_.active();
  if (active.empty()) return;
  uint32_t room = endpoint_->limits().read_depth;
  for (const uint32_t lane : active) room -= lanes_[lane].progress().reads_in_flight;
  next_fetch_ = next_fetch_ + 1 < active.size() ? next_fetch_ + 1 : 0;
  size_t at = next_fetch_;
  for (size_t i = 0; i < active.size() && room > 0; ++i) {
    ClientLane& lane = lanes_[active[at]];
    if (lane.outstanding() > 0) room -= lane.stage_fetches(room);
    at = at + 1 < active.size() ? at + 1 : 0;
  }
}

// Handles the endpoint's events. Returns why the session must end; null: it need not.
const char* ClientSession::poll_events(bool& progress) {
  for (size_t count = events_.size(); count == events_.size();) {
    count = endpoint_->poll(events_);
    if (count > 0) taken_ns_ = clock_.now_ns();
    for (const Event& event : std::span(events_).first(count)) {
      if (event.kind == Event::Kind::kClosed) {
        failure_ = endpoint_->failure();
        return failure_.c_str();
      }
      const uint32_t number = event.kind == Event::Kind::kFetched ? lane_of_tag(event.tag) : event.lane;
      if (number >= lanes_.count()) continue;
      ClientLane& lane = lanes_[number];
      if (event.kind == Event::Kind::kDelivered) counters_->deliveries.add();
      const uint64_t before = lane.progress().answered;
      const bool well_formed =
          event.kind == Event::Kind::kFetched ? lane.on_fetched(event.tag) : lane.on_delivered(event.bytes);
      if (!well_formed) return "a malformed response";
      if (lane.progress().answered == before) continue;
      progress = true;
      count_answer();
      credit_.announce();
      end_wait(true);
    }
  }
  return nullptr;
}

bool ClientSession::should_spin() {
  EGRET_ASSERT_OWNER(owner_);
  EGRET_DCHECK(state_ == State::kOpen);
  const bool local = endpoint_->limits().fetch_is_local;
  for (const uint32_t number : lanes_.active()) {
    const ClientLane& lane = lanes_[number];
    const LaneProgress progress = lane.progress();
    if (lane.outstanding() == 0) continue;
    // One that sleeps pays for the wake-up: it polls if the push usually comes before that time is over.
    const bool is_quick = progress.is_asked && progress.usual_wait_ns <= options_.spin_ns;
    if (progress.awaits_push && !is_quick) continue;
    if (local && wait_ == Wait::kIdle) wait_ = spin_judge_.begins() ? Wait::kPolled : Wait::kNotPolled;
    if (wait_ == Wait::kNotPolled) return false;
    // Over a network a response takes at least a round trip: sleeping costs more than polling for a few usual waits.
    const bool is_cheap = local || progress.is_asked;
    const uint64_t usual = is_cheap ? 0 : std::min(progress.usual_wait_ns * kUsualWaits, kMostSpinNs);
    if (now_ns_ - progress.oldest_sent_ns < std::max(options_.spin_ns, usual)) return true;
  }
  return false;
}

// The wait is over: the response came (`paid`), or it was polled for long enough.
void ClientSession::end_wait(bool paid) {
  if (wait_ == Wait::kPolled) spin_judge_.ends(paid);
  wait_ = Wait::kIdle;
}

void end_spin(ClientSession& session) {
  if (session.wait_ != ClientSession::Wait::kPolled) return;
  session.spin_judge_.ends(false);
  session.wait_ = ClientSession::Wait::kNotPolled;
}

bool ClientSession::prepare_sleep() {
  EGRET_ASSERT_OWNER(owner_);
  if (state_ != State::kOpen) return true;
  flush();  // ops that were appended while replies were sent
  if (is_emptying_ && resize_if_empty()) return false;
  if (lanes_.outstanding() == 0) {
    // Nothing to wait for but the end of the session, which a local endpoint shows on its control channel.
    if (endpoint_->limits().fetch_is_local) return true;
    endpoint_->arm();
    fetch();
    return is_open();  // a session that has just been lost needs its next attempt timed
  }
  for (const uint32_t lane : lanes_.active()) lanes_[lane].stage_want();
  endpoint_->arm();
  if (fetch()) return false;
  end_wait(false);
  return std::ranges::all_of(lanes_.active(), [&](uint32_t lane) { return lanes_[lane].will_be_delivered(); });
}

// --- being active

void ClientSession::on_work() {
  if (is_active_) return;
  is_active_ = true;
  now_ns_ = clock_.now_ns();  // it has had no passes
  observer_.on_session_active(*this);
}

ClientSession::Rest ClientSession::rest() {
  if (!lanes_.active().empty() || must_poll_ || credit_.is_announced() || successor_ != nullptr) return Rest::kActive;
  is_active_ = false;
  if (!is_open() || endpoint_->limits().fetch_is_local || is_unarmed_) return Rest::kAtRest;
  is_unarmed_ = true;
  return Rest::kUnarmed;
}

// Before sleeping, of those that were kUnarmed. An active one is prepared with the others.
bool ClientSession::arm_at_rest() {
  is_unarmed_ = false;
  return is_active_ || prepare_sleep();
}

}  // namespace egret::rpc
