// What a backend is told when the members of its pool change, and the dialogue with one of its partitions
// (op::AdminVerb::kMember): it is asked, sent the members before in parts, and asked until it has removed what was not its
// own among those.
//
//   Membership before, next ─ news_for() ─▶ MemberNews ─▶ PartitionTelling ─ value() ─▶ the partition
//                                                               ▲────────── on_answer() ───┘
//
// Pure: no clock, no session. Thread: its owner's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "op/op.h"
#include "pool/membership.h"
#include "pool/membership_code.h"

namespace egret::pool {

// One change, as one member is told of it.
struct MemberNews {
  uint64_t from = 0;   // number of the members before; 0: unknown, and nothing is removed
  uint64_t to = 0;     // number of the members now
  std::string before;  // their bytes; empty: it was none of them
};

// The index of a member, by name and address; kNoMember: it is none.
size_t index_of(const Membership& membership, const Member& member);

// `before`: null if it is not known what the keys that the member holds were stored for.
MemberNews news_for(const Member& member, const Membership* before, const Membership& next);

// Tells one partition of changes, one after the other.
class PartitionTelling {
 public:
  enum class Next : uint8_t {
    kSend,       // value() is to be sent
    kSendLater,  // the same: the partition is at work, and should not be asked without a pause
    kOver,
  };
  static constexpr size_t kMostPart = 512;  // bytes of a membership in one op

  // `news` outlives it. `most_part`: less, for tests.
  explicit PartitionTelling(const std::vector<MemberNews>& news, size_t most_part = kMostPart);

  // Of the op that comes next; one is under way at a time.
  std::string value() const;
  Next on_answer(op::ResultCode code);

  bool is_over() const { return change_ == news_->size(); }
  // The partition belongs to other members than those before the last change: it has removed nothing for that.
  bool belongs_to_others() const { return belongs_to_others_; }
  // Why it cannot be told at all; kOk: it could.
  op::ResultCode refusal() const { return refusal_; }

 private:
  Next next_change();

  const std::vector<MemberNews>* news_;
  const size_t most_part_;
  size_t change_ = 0;  // which of `news` is told
  size_t offset_ = 0;  // of the part that comes next
  bool has_part_ = false;
  bool belongs_to_others_ = false;
  op::ResultCode refusal_ = op::ResultCode::kOk;
};

}  // namespace egret::pool
