// A set whose value does not fit a request slot: sends the value in parts, as its bytes arrive, and then a commit.
//
//   enter() ─▶ send(bytes) ─ Upload ops ─▶ … ─▶ commit() ─ Commit op ─▶ the result goes to the commit's waiter
//     │ no room: collect the value and enter_whole(), or wait_for_room()     └ abandon(): the backend forgets the parts
//     └ begin_part(), end_part(): bytes are received in the store (op/direct_store.h), or in the request slots
//
// The sets of a lane go side by side, told apart by their id; how much of them is open at once is UploadRoom's.
// Memory: no byte of the value; a part is encoded straight into the open message, or received or written where it is kept.
// Thread: the worker's.
// Lifetime: its owner makes it with new, and gives it up by commit() followed by release(), or by abandon(); it deletes
// itself when its last op is answered.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "op/direct_store.h"
#include "op/op.h"
#include "rpc/client_session.h"
#include "rpc/session_ref.h"

namespace egret::rpc {

class LargeSet final : private Waiter, private CreditWaiter {
 public:
  static constexpr uint32_t kMaxInFlight = 8;        // parts, since other ops share the lane
  static constexpr uint32_t kMostRoom = 128 * 1024;  // bytes to ask begin_part() for: then others are served soon

  // `store` is the op that the whole command amounts to (mode, flags, exptime, cas); its key is copied. `id` tells it
  // from the session's other uploads.
  LargeSet(ClientSession& session, const op::Op& store, uint32_t total, uint32_t id);

  // Takes room for the value, whose bytes are still to come; or for one whose bytes are all here. False: there is none
  // now. After a failure there is nothing to wait for: true.
  bool enter();
  bool enter_whole();
  // The waiter is called as for credit, and tries enter() again.
  void wait_for_room();
  // Sends as much of `bytes` as there is credit for; returns how much. After a failure everything is taken and dropped.
  size_t send(std::string_view bytes);
  // Room for the value's next bytes, which the caller fills from the front, and then how many it has filled: in the store, if this
  // thread has it, else in the request slots that they go by. False: send() them. Between the two calls nothing else of the
  // session may be called.
  bool begin_part(uint32_t most, op::PartRoom& room);
  void end_part(const op::PartRoom& room, uint32_t length);
  // Opens the upload without a byte, for a value that is known to be refused. False: no credit, ask again.
  bool announce();
  // Sends the commit, whose result goes to `waiter`. Not after kSessionLost. False: no credit, ask again.
  bool commit(Waiter* waiter) { return commit(store_, waiter); }
  // The same where the op was not known before: its mode, flags, exptime, CAS, options and owner count.
  bool commit(const op::Op& store, Waiter* waiter);
  // kOk, or what has become of it. kSessionLost: the parts went with the session, and a commit cannot be sent.
  // kOutOfMemory: it was too slow, and others needed its room; the backend will refuse the commit.
  op::ResultCode failure() const;

  // Whether to send() so many bytes now: they are all, or more would save little. If not, wait for more.
  bool is_worth_sending(size_t available) const;
  // Bytes of the value that are still to be sent.
  uint32_t left() const { return total_ - sent_; }
  uint32_t total() const { return total_; }
  const std::string& key() const { return key_; }
  ClientSession& session() { return *session_; }

  // The commit has been sent: nothing more to do here.
  void release();
  // The connection is gone or the value was bad.
  void abandon();

  // It does not wait for room any more, because its owner collects the value.
  void stop_waiting_for_room() { leave(); }

  // For UploadRoom: when bytes of the client were sent last, kNever while it is not the client that is waited for; and
  // the end of its room.
  static constexpr uint64_t kNever = UINT64_MAX;
  uint64_t moved_ns() const { return lost_room_ || backend_is_slow_ ? kNever : moved_ns_; }
  void lose_room();
  // Whether the lane that it is sent by has answered nothing for op_timeout.
  friend bool is_stuck(const LargeSet& set) { return set.same_session() && is_silent(*set.session_, set.store_.hash); }

 private:
  ~LargeSet() = default;
  void on_result(const op::Result& result) override;
  void on_credit() override;
  bool same_session() const { return session_->is_open() && session_->lanes().generation() == generation_; }
  bool goes_on() const { return same_session() && !lost_room_; }
  op::Op part(std::string_view bytes) const;
  uint32_t max_part() const;
  bool goes_directly() const;
  op::DirectStore* direct_store() const { return session_->lanes().direct_store(store_.hash); }
  size_t write_directly(std::string_view bytes);
  bool begin_in_slots(uint32_t most, op::PartRoom& room);
  void end_in_slots(const op::PartRoom& room, uint32_t length);
  bool append(const op::Op& op);
  void leave();
  void try_abort();
  void delete_if_done();

  const SessionRef session_;
  const uint64_t generation_;
  std::string key_;
  op::Op store_;
  const uint32_t total_;
  const uint32_t id_;
  uint32_t sent_ = 0;
  uint32_t in_flight_ = 0;
  uint64_t moved_ns_ = 0;
  bool entered_ = false;
  bool opened_ = false;           // the backend knows of it
  bool backend_is_slow_ = false;  // the last part found no credit
  uint32_t unnoted_ = 0;          // bytes that came as direct parts since moved_ns_
  bool lost_room_ = false;
  bool released_ = false;
  bool abort_pending_ = false;
};

}  // namespace egret::rpc
