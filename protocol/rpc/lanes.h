// The lanes of one session: the part of it that senders of ops use.
//
//   key ─ hash() ─▶ of(hash) ─▶ ClientLane::append
//                   uploads(hash), pin_turn(hash): what the senders of one lane share
//
// Owned by the session, which opens the lanes with each grant and closes them when it is lost; in between there are
// none. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "op/hash.h"
#include "rpc/active/active_lanes.h"
#include "rpc/client_lane.h"
#include "rpc/pin_turn.h"
#include "rpc/upload_room.h"
#include "wire/handshake.h"

namespace egret::rpc {

class Lanes {
 public:
  // `listener` may be null.
  explicit Lanes(const SessionTimes& times, WorkListener* listener = nullptr) : times_(times), active_(listener) {}

  auto begin() const { return lanes_.begin(); }
  auto end() const { return lanes_.end(); }
  // Those that a pass must look at.
  const ActiveLanes& active() const { return active_; }

  // --- open only, but for count(), generation() and the sums over all lanes
  uint32_t count() const { return static_cast<uint32_t>(lanes_.size()); }
  // Grows with every session that is opened: uploads, pins and holds of an earlier generation are gone.
  uint64_t generation() const { return generation_; }
  uint64_t hash(std::string_view key) const { return op::hash_key(key, hash_seed_); }
  ClientLane& of(uint64_t hash) {
    EGRET_ASSERT_OWNER(owner_);
    EGRET_DCHECK(!lanes_.empty());
    return *lanes_[op::partition_of(hash, count())];
  }
  ClientLane& operator[](size_t number) { return *lanes_[number]; }
  UploadRoom& uploads(uint64_t hash);  // makes the lane active
  // uploads(hash) says so, too, but makes the lane active: a direct part leaves nothing to do for a pass.
  bool has_parts_in_slots(uint64_t hash) const {
    return shared_[op::partition_of(hash, count())].uploads.has_parts_in_slots();
  }
  // Of the key's lane: see transport::ClientEndpoint.
  op::DirectStore* direct_store(uint64_t hash) const {
    return endpoint_->direct_store(op::partition_of(hash, count()));
  }
  PinTurn& pin_turn(uint64_t hash);

  // Ops were appended that the session has not sent yet.
  bool has_open() const;
  bool has_credit() const;
  // Whether results should be sent on before others are taken: a lane has few slots left, and those held are still in
  // the CPU's cache.
  bool holds_much() const;
  uint32_t outstanding() const;
  // Whether a result, or a read that was staged, has not come yet.
  bool awaits() const;
  bool is_upload_waiting() const;
  // A relay sends by them (rpc/relay): there a value that may not begin keeps what is behind it in its inbound lane waiting,
  // which may be parts of one that is under way.
  void set_relayed() { is_relayed_ = true; }
  void release_owner();  // as the session's

 private:
  friend class ClientSession;

  // --- the session's part
  // Opens as many as were granted. `endpoint` and `counters` outlive them.
  void open(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
            SessionCounters& counters);
  // True: no upload and no pin begins any more, and when there is none, no message. Returns whether all is empty, so
  // that replace() may follow; else to be called again. False: everything may begin again.
  bool withhold(bool withheld);
  // Whether no value in parts is under way, and no version pinned.
  bool are_uploads_over() const;
  // Whether a session that changes its size should wait for values in parts before it holds other ops back.
  bool should_wait_for_uploads() const { return !is_relayed_ && !are_uploads_over(); }
  // Others take the place of these, which are empty: nobody notices.
  void replace(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
               SessionCounters& counters);
  // Closes them and calls every waiter (ClientLane::fail_all). Waiters may use this object in the call: it has no lanes any
  // more.
  void close();
  // Executes the ops that were gathered, and those that waiters gather when they are called. Returns whether there were any.
  bool answer_gathered();
  // Begins a pass of each active lane. A lane that has nothing to do is not active any more.
  void begin_pass();
  // Gives the room of uploads that are slow at `now_ns` to uploads that wait.
  void make_room_for_uploads(uint64_t now_ns);

  void make(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
            SessionCounters& counters);

  struct Shared {
    UploadRoom uploads;
    PinTurn pin_turn = {};
  };

  base::OwnerThread owner_;
  const SessionTimes times_;
  ActiveLanes active_;
  transport::ClientEndpoint* endpoint_ = nullptr;
  std::vector<std::unique_ptr<ClientLane>> lanes_;
  std::vector<Shared> shared_;  // by lane
  bool is_relayed_ = false;
  uint64_t hash_seed_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace egret::rpc
