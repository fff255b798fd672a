// What a client in the store's own thread may do without a slot between.
//
//   an op ─▶ execute() ─▶ its result, at once
//   ops ─▶ execute_all() ─▶ their results, one after the other
//   a kUpload without bytes ─▶ begin_part(): room in the store ─▶ the client receives into it ─▶ end_part(): how much it was
//
// The client may send other ops by the slots of its lane. Ops of a lane are executed in order, so call execute() and execute_all()
// only when all that went by slots is answered. Parts of a value must come in order; each may go either way.
// Thread: the store's, which is the client's. Between begin_part() and end_part() nothing else of the store may be called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "op/loan.h"
#include "op/op.h"
#include "op/part_room.h"

namespace egret::op {

// Takes what execute_all() finds.
class ResultTaker {
 public:
  // Of the op with that index. `result.value` and `lent`, which names the value if that is lent, are valid during the call, which
  // calls nothing of the store.
  virtual void on_result(size_t index, Result& result, const LoanName& lent) = 0;

 protected:
  ~ResultTaker() = default;
};

class DirectStore {
 public:
  static constexpr size_t kMostTogether = 32;
  // `op`: of one key, with its hash; not of a value in parts. `result.value` and `lent`, which names the value if that is lent,
  // are valid until the next call of the store. False: the client has had its share of this round; the op is to be sent.
  virtual bool execute(const Op& op, Result& result, LoanName& lent) = 0;
  // False: the client has had as much executed in this round as it may; send its further ops by slots.
  virtual bool has_share() const = 0;
  // `ops`: at most kMostTogether, as for execute(). They stay as they are until the last result was taken. All are executed,
  // whatever is left of the share.
  virtual void execute_all(std::span<const Op> ops, ResultTaker& taker) = 0;
  // Room for the next bytes of the upload that `part` names, from part.offset on: at most `most`, perhaps fewer. An
  // offset of 0 opens the upload. False: send them as ops, which will also learn why; end_part() is not called then.
  virtual bool begin_part(const Op& part, uint32_t most, PartRoom& room) = 0;
  // `length` bytes of the room are filled, perhaps none. `part`: as before.
  virtual void end_part(const Op& part, uint32_t length) = 0;

 protected:
  ~DirectStore() = default;
};

}  // namespace egret::op
