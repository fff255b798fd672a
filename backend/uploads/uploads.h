// The values that the lanes of one partition are sending in parts, and who gives way where there is no room for all.
//
//   first part ─ room? ─▶ open ─ parts, as ops or directly (op/direct_store.h) ─▶ take(): the commit's ─▶ executor: the set
//                  │ all room is taken: an upload of another lane gives way (its commit will be refused), or this one fails
//                  └ one that failed is kept without its bytes: the commit is answered with the reason
//
// Where there is no room, an upload gives way to one of another lane: one that has had no part for kSlowNs, of a lane that
// holds more than the other; what a lane holds beyond item_size_max, to one that holds no more than that; what the user who
// holds most has beyond the other's user, likewise. Nobody loses to a lane what that lane would lose to it in turn.
//
// Owned by the executor; ends before the store. Memory: the store's, charged to the lane's user. Thread: the partition's.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "op/direct_store.h"
#include "op/op.h"
#include "rpc/slot_poller.h"
#include "store/store.h"
#include "uploads/user_shares.h"

namespace egret::backend {

class Uploads {
 public:
  static constexpr uint64_t kIdleNs = 30'000'000'000;  // an upload without a new part for this long is dropped
  static constexpr uint64_t kSlowNs = 100'000'000;
  static constexpr size_t kMostPerLane = 64;

  Uploads(store::Store& store, uint32_t item_size_max, const UserShares& shares);
  ~Uploads();

  // A lane that may write has a right to room (store::Store::set_upload_rights()). `user` outlives the lane.
  void attach(rpc::LaneId lane, UserShares::User& user, bool may_write);
  void drop(rpc::LaneId lane);

  // --- the ops, of attached lanes. `now_ns`: the round's time.
  op::ResultCode part(const op::Op& op, rpc::LaneId lane, uint64_t now_ns);
  // What the commit is about: an upload no longer. Its parts, or why there are none.
  struct Whole {
    op::ResultCode failure = op::ResultCode::kOutOfMemory;
    store::Store::Upload parts = {};
  };
  Whole take(const op::Op& commit, rpc::LaneId lane);
  void abort(const op::Op& op, rpc::LaneId lane);

  // --- op::DirectStore. A part that cannot be taken gets no room: the client sends it as an op, whose answer says why.
  bool begin_part(const op::Op& part, rpc::LaneId lane, uint64_t now_ns, uint32_t most, op::PartRoom& room);
  void end_part(const op::Op& part, rpc::LaneId lane, uint64_t now_ns, uint32_t length);

  // When drop_overdue() may have something to do.
  uint64_t due_ns() const { return due_ns_; }
  void drop_overdue(uint64_t now_ns);
  // Units of work (rpc::SlotPoller::kLaneWork) that the search for room has taken since the last call.
  uint64_t take_search_work() { return std::exchange(search_work_, 0); }
  // Counts since the start: uploads that were refused because their user held its share, and those that gave way.
  uint64_t over_share() const { return over_share_; }
  uint64_t gave_way() const { return gave_way_; }

 private:
  struct Upload;
  struct Lane;
  struct Asking;

  Upload* open(Lane& lane, const op::Op& op, uint64_t now_ns);
  Upload* open_if_free(Lane& lane, const op::Op& op, uint64_t now_ns);
  bool has_room(const Lane& lane, uint32_t length) const;
  bool is_in_share(const Lane& lane, uint32_t length) const;
  bool make_room(const Asking& asking, uint64_t now_ns);
  bool drop_slowest(const Asking& asking, uint64_t now_ns);
  bool drop_excess(const Asking& asking);
  Lane* find_excess(const Asking& asking, const UserShares::User* of_user) const;
  void set_rights(int more);

  store::Store& store_;
  const uint32_t item_size_max_;
  const UserShares& shares_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // by LaneId; null: it is not attached
  uint32_t writers_ = 0;                      // lanes that may write
  uint64_t due_ns_ = UINT64_MAX;
  uint64_t no_slow_one_until_ns_ = 0;  // looked for one and found none
  uint64_t search_work_ = 0;
  uint64_t over_share_ = 0;
  uint64_t gave_way_ = 0;
};

}  // namespace egret::backend
