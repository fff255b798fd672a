// Lanes in, lanes out: a slot server whose ops are executed elsewhere. Clients of this host have inbound sessions with
// it, and it sends their ops on by a session of its own with the backend; a lane in goes to the lane out of the same
// partition. So the messages of many clients share outbound slots, WRITEs and READs.
//
//   inbound slots ─ SlotPoller ─▶ ops ─ rules, uploads ─▶ ClientLane::append … backend … on_result ─▶ InboundLane ─▶ inbound slots
//                                      └ no credit: put off, in turn with the other lanes ─ on_credit ─▶ again
//
// Results are copied to the inbound slot when they come, so a client that stalls holds nothing that others need.
// When the outbound session is lost, what was under way is answered so (kSessionLost, kTimedOut, kNotSent), and ops are
// answered as not sent until it is open again. An inbound session ends only when the backend has become another one
// (is_same()): its owner detaches it.
//
// Order: ops of an inbound lane are appended, and answered, in their order. A client's new session through the same
// relay is behind its old one in the same outbound lane.
//
// Owned by a worker; thread: the worker's, for everything. Memory: allocated when lanes are attached, for values that do
// not fit a slot, and when more is under way than ever before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "rpc/client_session.h"
#include "rpc/relay/inbound_lane.h"
#include "rpc/relay/inbound_uploads.h"
#include "rpc/relay/pin_seats.h"
#include "rpc/relay/relay_memory.h"
#include "rpc/relay/remainders.h"
#include "rpc/relay/rules.h"
#include "rpc/session_ref.h"
#include "rpc/slot_poller.h"

namespace egret::rpc::relay {

struct RelayOptions {
  PollerOptions polling;
  uint64_t kept_memory = 16 << 20;       // bytes of values whose clients fetch the rest
  uint64_t collected_memory = 32 << 20;  // bytes of values that wait for room at the backend
};

// A session of a client of this host.
struct Inbound {
  uint64_t session_id = 0;
  transport::ServerEndpoint* endpoint = nullptr;  // outlives the attachment
  wire::RegionLayout layout{};
  wire::Seal seal{};
  std::shared_ptr<const Rules> rules;
  bool knows_rights = true;
  bool is_embedded = false;           // LaneBinding::is_embedded
  uint32_t user = 0;                  // LaneBinding::user
  bool is_of_worker = false;          // its client is another worker of this process
  ClientSession* outbound = nullptr;  // open
};

class Relay final : private OpTaker {
 public:
  // `next_upload_id`: numbers for uploads of the worker's sessions; nobody else of the worker uses one of them again.
  Relay(const RelayOptions& options, const base::Clock& clock, uint32_t& next_upload_id);
  ~Relay() override;

  // Serves a session from now on, and until detach(). What is granted to it must fit what was granted to `outbound`.
  void attach(const Inbound& inbound);
  // Afterwards nothing of the session's memory is touched any more.
  void detach(uint64_t session_id);
  // Whether an inbound session that was attached then may go on with the session that is open now: the backend is the
  // same one.
  static bool is_same(const wire::Grant& then, const wire::Grant& now);

  // --- the passes
  // Takes what clients have asked for, and appends it to outbound lanes, which are to be flushed then. Returns whether
  // there was anything: if so, to be called again before the worker sleeps. After credit was handed out, to be called in
  // any case.
  bool poll();
  // What has come from backends is in the clients' slots: wakes those that sleep. To be called after sessions were
  // fetched, and before the worker sleeps.
  void push() { poller_.push_completed(); }
  // A client has rung.
  void ring(uint64_t session_id) { poller_.ring(session_id); }
  // Puts lanes to sleep that have no request, all of them or those idle long enough. True: the worker may sleep.
  bool park(bool all);
  // To be called about every second while needs_tick(): drops what clients have begun and do not go on with.
  void tick();
  bool needs_tick() const { return has_open_; }

  // Changes RelayOptions.
  void set_options(uint64_t lane_idle_ns, uint64_t embedded_idle_ns, uint64_t collected_memory) {
    poller_.set_rules(lane_idle_ns, lane_idle_ns, embedded_idle_ns, {});
    collected_.set_limit(collected_memory);
  }
  size_t awake_lanes() const { return poller_.awake_lanes(); }
  // Whether a lane is polled whose client has all its answers.
  bool awaits_requests() const { return poller_.awaits_requests(); }
  bool has_broken_sessions() const { return poller_.has_broken_sessions(); }
  std::vector<BrokenSession> take_broken_sessions() { return poller_.take_broken_sessions(); }
  const PollerCounters& poller_counters() const { return poller_.counters(); }
  const RelayCounters& counters() const { return counters_; }
  uint64_t kept_bytes() const { return kept_.used(); }
  uint64_t collected_bytes() const { return collected_.used(); }

 private:
  class Outbound;
  struct Lane;

  size_t take(const TakenMessage& message, std::span<const op::Op> ops) override;
  bool may_go_on(LaneId id) override;
  void lane_attached(LaneId id, const LaneBinding& binding) override;
  void lane_dropped(LaneId id) override;

  Outbound& outbound_of(ClientSession& session);
  bool pass_on(Lane& lane, const op::Op& op);
  bool send_on(Lane& lane, const op::Op& op);
  bool pass_on_value(Lane& lane, const op::Op& op);
  bool append(Lane& lane, const op::Op& op);

  base::OwnerThread owner_;
  const base::Clock& clock_;
  uint32_t& next_upload_id_;
  Budget kept_;
  RelayMemory collected_;
  SlotPoller poller_;
  std::map<const ClientSession*, std::unique_ptr<Outbound>> outbounds_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by LaneId
  const Inbound* attaching_ = nullptr;        // during attach()
  bool is_going_on_ = false;                  // the message at hand had been put off
  bool has_open_ = false;                     // uploads, or values of which clients fetch the rest, perhaps
  RelayCounters counters_;
};

}  // namespace egret::rpc::relay
