// Tells one partition of a backend that the members of its pool change, as a proxy does (op::AdminVerb::kMember): asks,
// sends the members before in parts, and asks until the partition has removed what was not its own.
// Lives as long as its session may answer, and is told when that is gone. Single-threaded.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "pool/membership_code.h"
#include "rpc/client_session.h"

namespace egret::sim {

struct MemberChange {
  pool::PlacementRule rule = pool::PlacementRule::kKetama;
  std::vector<pool::Member> before, next;

  static size_t index(const std::vector<pool::Member>& members, const std::string& name) {
    const auto at = std::ranges::find(members, name, &pool::Member::name);
    return at == members.end() ? pool::kNoMember : static_cast<size_t>(at - members.begin());
  }
  bool has_next(const std::string& name) const { return index(next, name) != pool::kNoMember; }
};

class MemberTelling final : private rpc::Waiter {
 public:
  MemberTelling(const MemberChange& change, const std::string& name, rpc::ClientSession& session, uint32_t lane)
      : session_(session), lane_(lane) {
    const size_t was = MemberChange::index(change.before, name);
    const size_t is = MemberChange::index(change.next, name);
    const std::string before = encode_membership(change.rule, change.before, was);
    if (!change.before.empty()) from_ = pool::number_of_membership(before);
    to_ = pool::number_of_membership(encode_membership(change.rule, change.next, is));
    if (was != pool::kNoMember) before_ = before;
  }

  // The session is destroyed.
  void on_gone(const rpc::ClientSession& gone) { is_over_ |= &session_ == &gone; }

  // Sends what comes next, if nothing is under way. Returns whether it is over.
  bool go_on() {
    if (is_over_ || is_asking_) return is_over_;
    const op::MemberChangeHead head{from_, to_, static_cast<uint32_t>(before_.size()), offset_};
    value_.assign(reinterpret_cast<const char*>(&head), sizeof head).append(part_);
    op::Op op;
    op.code = op::OpCode::kAdmin;
    op.group = static_cast<uint8_t>(op::AdminVerb::kMember);
    op.value = value_;
    if (!session_.is_open()) return is_over_ = true;
    is_asking_ = session_.lanes()[lane_].append(op, this);
    return false;
  }

 private:
  static constexpr size_t kPart = 40;

  void on_result(const op::Result& result) override {
    is_asking_ = false;
    offset_ += static_cast<uint32_t>(part_.size());
    part_.clear();
    if (result.code == op::ResultCode::kNoUpload) offset_ = 0;
    const bool wants_part = result.code == op::ResultCode::kNoUpload || result.code == op::ResultCode::kStored;
    if (wants_part) part_ = before_.substr(offset_, kPart);
    is_over_ = !wants_part && result.code != op::ResultCode::kNotStored;
  }

  rpc::ClientSession& session_;
  const uint32_t lane_;
  uint64_t from_ = 0, to_ = 0;
  std::string before_, value_, part_;
  uint32_t offset_ = 0;
  bool is_asking_ = false, is_over_ = false;
};

}  // namespace egret::sim
