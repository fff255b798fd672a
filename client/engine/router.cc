#include "client/engine/router.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "client/process/fork.h"
#include "client/process/libraries.h"
#include "transport/address.h"

namespace egret::client {

using rpc::ClientSession;

namespace {

// What the address needs is loaded with the first session of its kind.
base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect_with_libraries(
    const std::string& address, const transport::ConnectOptions& options) {
  if (transport::transport_of(address) == "rdma") {
    if (base::Status loaded = need(Library::kVerbs); !loaded) return loaded;
    ForkGuard::expect_devices();
  }
  return transport::connect(address, options);
}

}  // namespace

ClientSession::Connect default_connect() {
  return connect_with_libraries;
}

void SessionTotals::add(const rpc::SessionCounters& session) {
  lanes += session.sum();
  failures += session.signs.failures.get();
  deliveries += session.deliveries.get();
  long_values += session.long_values.get();
}

Router::Router(const Settings& settings, const base::Clock& clock, SessionOwner& owner, ClientSession::Connect connect)
    : settings_(settings),
      clock_(clock),
      owner_(owner),
      connect_(connect),
      placement_(settings.placement, settings.members) {
  for (const pool::Member& member : settings.members) {
    rpc::SessionOptions options = settings.session;
    options.address = member.address;
    sessions_.push_back(make_session(std::move(options)));
  }
  set_used();
}

Router::Session Router::make_session(rpc::SessionOptions options) {
  if (options.worker_id == 0) options.worker_id = base::random_u64();
  options.is_embedded = true;
  // On this host a fetch is a load: whether to poll or to sleep is SpinJudge's to say, not whether a lane is slow.
  const bool is_auto = options.fetch.mode == rpc::FetchMode::kAuto;
  if (is_auto && transport::transport_of(options.address) == "shm") options.fetch.mode = rpc::FetchMode::kFetch;
  auto made = std::make_unique<ClientSession>(options, clock_, owner_, connect_);
  owner_.on_session_made(*made);
  return made;
}

Router::Session Router::make_session(const Member& member) {
  rpc::SessionOptions options = settings_.session;
  options.address = member.is_relayed ? proxy_ : member.frame.address;
  options.relayed_to = member.is_relayed ? member.frame.tag : 0;
  return make_session(std::move(options));
}

void Router::set_used() {
  used_.clear();
  for (size_t i = 0; i < sessions_.size(); ++i) {
    const bool serves = members_.empty() || members_[i].frame.state == wire::MemberState::kServing;
    used_.push_back(serves ? sessions_[i].get() : nullptr);
  }
  if (used_.empty()) used_.push_back(nullptr);
}

// --- with news of a proxy

bool Router::goes_straight(const wire::MemberFrame& member) const {
  uint8_t wanted = 0;
  if (settings_.straight >= Settings::Straight::kHost) wanted |= wire::kStraight;
  if (settings_.straight == Settings::Straight::kAll) wanted |= wire::kStraightOnRequest;
  return (member.ways & wanted) != 0;
}

void Router::take_over(const ProxyNews::Pool& pool, const std::string& proxy) {
  const bool is_same_proxy = std::exchange(proxy_, proxy) == proxy;
  std::vector<Member> members;
  Sessions sessions;
  std::vector<pool::Member> placed;
  for (const wire::MemberFrame& frame : pool.members) {
    placed.push_back({frame.address, frame.name, frame.weight});
    Member member{.frame = frame, .is_relayed = !goes_straight(frame)};
    const auto before = std::ranges::find_if(members_, [&](const Member& each) {
      return each.frame.tag == frame.tag && each.frame.address == frame.address;
    });
    const auto number = static_cast<size_t>(before - members_.begin());
    Session kept;
    if (before != members_.end() && sessions_[number] != nullptr) {
      const bool may_stay = before->is_relayed ? is_same_proxy : goes_straight(frame);
      if (may_stay) {
        member = *before;
        member.frame = frame;
        member.must_turn &= has_both_ways(member);
        kept = std::move(sessions_[number]);
      }
    }
    sessions.push_back(kept != nullptr ? std::move(kept) : make_session(member));
    members.push_back(std::move(member));
  }
  for (Session& left : sessions_) {
    if (left != nullptr) leaving_.push_back(std::move(left));
  }
  members_ = std::move(members);
  sessions_ = std::move(sessions);
  placement_ = pool::Placement(static_cast<pool::PlacementRule>(pool.head.placement), placed);
  set_used();
}

void Router::set_state(uint32_t member, wire::MemberState state) {
  members_[member].frame.state = state;
  set_used();
}

// Null: there is only one way, or it has left.
Router::Member* Router::member_of(const ClientSession& session) {
  const auto at = std::ranges::find(sessions_, &session, &Session::get);
  if (at == sessions_.end() || members_.empty()) return nullptr;
  return &members_[static_cast<size_t>(at - sessions_.begin())];
}

// Both ways may fail: then each has the pauses of its attempts.
bool Router::note_loss(const ClientSession& session, bool was_open, uint64_t now_ns) {
  Member* const found = member_of(session);
  if (found == nullptr) return false;
  Member& member = *found;
  if (!was_open) member.failed_ns[member.is_relayed ? 1 : 0] = now_ns;
  if (was_open && !member.is_relayed) return false;  // the backend has ended, or begins anew
  const uint64_t failed_ns = member.failed_ns[member.is_relayed ? 0 : 1];
  const bool has_failed = failed_ns != 0 && now_ns - failed_ns < settings_.session.backoff_max_ns;
  member.must_turn |= has_both_ways(member) && !has_failed;
  return member.must_turn;
}

void Router::note_open(const ClientSession& session) {
  Member* const member = member_of(session);
  if (member != nullptr && !member->is_relayed) member->return_pause_ns = kFirstReturnNs;
}

// On this host an attempt fails at once, if it fails; over a network it may take seconds, in which nothing is served.
bool Router::look_for_straight(uint64_t now_ns) {
  bool any = false;
  for (Member& member : members_) {
    const bool is_here = (member.frame.ways & wire::kStraight) != 0;
    if (!member.is_relayed || !is_here || !has_both_ways(member) || now_ns < member.return_ns) continue;
    member.must_turn = any = true;
  }
  return any;
}

bool Router::turn(const IsIdle& is_idle) {
  bool are_left = false;
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (!member.must_turn) continue;
    if (!is_idle(*sessions_[i])) {
      are_left = true;
      continue;
    }
    end(sessions_[i]);
    member.must_turn = false;
    member.is_relayed = !member.is_relayed;
    if (member.is_relayed) {
      member.return_ns = clock_.now_ns() + member.return_pause_ns;
      member.return_pause_ns = std::min(2 * member.return_pause_ns, kLongestReturnNs);
    }
    sessions_[i] = make_session(member);
  }
  set_used();
  return are_left;
}

void Router::let_go(const IsIdle& is_idle) {
  std::erase_if(leaving_, [&](Session& session) {
    if (!is_idle(*session)) return false;
    end(session);
    return true;
  });
}

void Router::end(Session& session) {
  owner_.end_session(*session);
  retired_.add(session->counters());
  session.reset();
}

}  // namespace egret::client
