// The answers of one inbound lane: results come from the backend in the order of the ops, and are written to the
// client's response slots, whose messages are completed in turn. Ops that are answered here wait until it is theirs.
//
//   begin(message) ─▶ expect(op), … the backend's result: on_result() ─┐
//                  └▶ answer(op, code) … its turn ─────────────────────┴▶ response slot ─ the last of its message ─▶ complete()
//
// It is the waiter of its ops, and so lives until the last of them is answered: a lane whose client is gone writes
// nothing any more, and deletes itself. Thread: the worker's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rpc/client_lane.h"
#include "rpc/relay/notes.h"
#include "rpc/relay/remainders.h"
#include "rpc/relay/rules.h"
#include "rpc/slot_poller.h"

namespace egret::rpc::relay {

// Counted by the worker's thread, from the start; besides what its SlotPoller counts.
struct RelayCounters {
  uint64_t waits = 0;     // messages that were put off for want of credit or room
  uint64_t refused = 0;   // ops that the rules forbid
  uint64_t not_sent = 0;  // ops that came while there was no outbound session
  uint64_t cut = 0;       // values that did not fit the inbound slot
};

// What all inbound lanes of a relay use. They outlive the lanes, but for those whose client is gone.
struct LaneHost {
  SlotPoller& poller;
  const base::Clock& clock;
  Budget& kept;
  RelayCounters& counters;
};

class InboundLane final : public Waiter {
 public:
  // `outbound`: counts values that do not fit its slots.
  InboundLane(const LaneHost& host, LaneId id, const LaneBinding& binding, std::shared_ptr<const Rules> rules,
              SessionCounters& outbound);

  // The message's ops from `message.first` on are taken now. False: they are not those that were put off.
  bool begin(const TakenMessage& message, std::span<const op::Op> ops);
  // An op was sent on: its result comes.
  void expect(const op::Op& op);
  // It is answered here.
  void answer(const op::Op& op, op::ResultCode code);
  // It asks for a part of a value that is kept here.
  void answer_piece(const op::Op& chunk);
  void on_result(const op::Result& result) override;

  // Its client is gone: deletes itself now, or when the last answer has come.
  void drop();

  const LaneBinding& binding() const { return binding_; }
  const Rules& rules() const { return *rules_; }
  uint32_t number() const { return binding_.lane; }
  LaneId id() const { return id_; }
  Remainders& remainders() { return remainders_; }

 private:
  // A message that was begun and is not complete.
  struct Message {
    uint64_t seq = 0;
    uint64_t begun_ns = 0;
    uint16_t op_count = 0;
    uint16_t answered = 0;
    uint32_t end = 0;   // offset in the slot, of the results so far
    uint32_t owed = 0;  // bytes, of the smallest results of ops that were taken and are not answered
    uint32_t rest = 0;  // the same of those that were not taken
  };

  ~InboundLane() = default;
  Message& message(uint64_t seq) { return messages_[seq % messages_.size()]; }
  bool is_over() const { return is_dropped_ && notes_.empty(); }
  void note(const op::Op& op, const Note& note);
  void answer_due();
  size_t write(const Note& note, op::Result& result);
  op::Result piece(const Note& note) const;
  void keep_what_is_cut(op::Result& result, size_t room);

  const LaneHost host_;
  const LaneId id_;
  const LaneBinding binding_;
  const std::shared_ptr<const Rules> rules_;
  SessionCounters& outbound_;
  std::vector<Message> messages_;  // by seq
  uint64_t oldest_ = 1;            // not complete
  uint64_t begun_ = 0;             // the last one that was
  Notes notes_;
  Remainders remainders_;
  op::Op asked_;  // for the encoder: the op of the result at hand
  bool is_dropped_ = false;
};

}  // namespace egret::rpc::relay
