// A get whose value does not fit a response slot, or is too large to be copied: fetches the whole value before its
// owner gets any of it.
//
//   partial result ─▶ chunks of that version, as many at once as the window allows ─▶ whole
//                         │ changed: start again; from the third restart on the backend is asked to pin the version. It may
//                         │ have no memory for pins: if the value still changes kMostChangingNs later, kTimedOut
//
// When all remaining chunks are requested, further bytes stay in the slots that they were fetched to: the get needs no
// more slots then, and is complete soon. Earlier bytes are copied.
//
// A value that its store lends (op/loan.h) is whole at once, and stays there.
//
// One object per large get; it is the waiter of its ops. Thread: the worker's. It must stay alive until it has called
// its owner (on_large_get).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "op/loan.h"
#include "op/op.h"
#include "rpc/client_session.h"
#include "rpc/session_ref.h"
#include "rpc/slot_hold.h"

namespace egret::rpc {

class LargeGet;

class LargeGetOwner {
 public:
  // The get was asked again, and this is how long the value is now: memory is taken for so much. False: there is none
  // now; the owner has called rest(), and calls start_over() when there is, or has destroyed the object.
  virtual bool on_length(LargeGet& get, uint32_t length) = 0;
  // It is over: result() is a hit with the whole value, or whatever ended it. The value lies in slots and memory that
  // take_hold(), take_copied() and take_loan() hand over; what is not taken goes with the object, which may be destroyed in this
  // call.
  virtual void on_large_get(LargeGet& get) = 0;

 protected:
  ~LargeGetOwner() = default;
};

class LargeGet final : private Waiter, private CreditWaiter {
 public:
  static constexpr uint32_t kMaxInFlight = 8;                  // chunks, since other gets share the lane
  static constexpr uint32_t kMaxRestarts = 3;                  // then the version is pinned
  static constexpr uint64_t kMostChangingNs = 10'000'000'000;  // from the first get that asks for a pin
  static constexpr uint32_t kMostInVain = 1000;  // empty chunks in a row; an honest backend gives a byte long before

  // `get`: the op whose result was partial; copies its key.
  LargeGet(ClientSession& session, const op::Op& get, LargeGetOwner& owner);
  ~LargeGet();
  LargeGet(const LargeGet&) = delete;
  LargeGet& operator=(const LargeGet&) = delete;

  // Begins with the result of the get, as it is handed out; its bytes (if any) are the first of the value. Tells the
  // owner later, or at once if that is all of it or the session has been lost.
  void start(const op::Result& partial);
  // Begins by asking the get again.
  void start_over();
  // Within on_length() only: holds nothing until start_over().
  void rest();
  // Nobody wants the value any more: drops what is here, and asks for nothing more. The owner is told when no answer is
  // under way, perhaps at once.
  void stop();

  // The value lies in several pieces: `value` and `further`.
  const op::Result& result() const { return result_; }
  const std::string& key() const { return key_; }
  uint64_t hash() const { return get_.hash; }
  uint32_t restarts() const { return restarts_; }
  // Keeps the pieces of result() in their slots.
  SlotHold take_hold() { return std::move(held_); }
  std::unique_ptr<char[]> take_copied() { return std::move(copied_); }
  // All of it, if its store lends it.
  op::LoanRef take_loan() { return std::move(loan_); }

 private:
  // kChunks: chunks are asked for and arrive in order. kStale: waits for answers under way, which are of no use.
  // kAgain: the get is being asked again. kOver: the owner is told as soon as no answer is under way.
  enum class State : uint8_t { kChunks, kStale, kAgain, kOver };

  void on_result(const op::Result& result) override;
  void on_credit() override;
  void accept_version(const op::Result& first);
  void accept_loan(const op::Result& whole);
  void on_chunk(const op::Result& chunk);
  void on_changed();
  void on_answer(const op::Result& answer);
  void ask();
  void ask_chunks();
  void ask_in_turn();
  void ask_again();
  void wait_for_credit();
  void add(const op::Result& part, bool may_stay);
  void put_together();
  void drain_then(State next);
  void on_drained();
  void let_go();
  void finish_with(op::ResultCode code);
  void finish(const op::Result& result);
  void finish_whole();
  void tell_owner();

  // The chunks in flight when the last was asked for, and the one whose result is being handed out.
  static constexpr size_t kMaxHeld = kMaxInFlight + 1;
  static_assert(kMaxHeld <= SlotHold::kMaxSlots);

  const SessionRef session_;
  LargeGetOwner& owner_;
  std::string key_;
  op::Op get_;
  op::Result result_;
  std::unique_ptr<char[]> copied_;  // the front of the value, as much as is not held
  // The value from its beginning: the copied bytes, then the held ones.
  std::array<std::string_view, 1 + kMaxHeld> pieces_;
  uint32_t piece_count_ = 0;
  SlotHold held_;
  op::LoanRef loan_;
  State state_ = State::kChunks;
  State after_drain_ = State::kChunks;
  uint32_t received_ = 0;   // bytes at the front of the value
  uint32_t requested_ = 0;  // bytes asked for, from the front
  uint32_t in_flight_ = 0;  // ops of ours that are unanswered
  uint32_t restarts_ = 0;
  uint64_t pinning_since_ns_ = 0;  // when it had the lane's turn to pin; 0: it has not
  uint32_t in_vain_ = 0;           // chunks in a row that had no byte
  bool waiting_for_credit_ = false;
};

}  // namespace egret::rpc
