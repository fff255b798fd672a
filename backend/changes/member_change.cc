#include "changes/member_change.h"

#include <cstring>
#include <memory>
#include <utility>

#include "pool/membership_code.h"

namespace egret::backend {

using op::ResultCode;

struct MemberChange::Told : op::MemberChangeHead {
  std::string_view part;

  // This backend was none of the members before.
  bool joins() const { return from != 0 && length == 0; }
};

ResultCode MemberChange::answer(std::string_view value, uint64_t now_ns) {
  Told told{};
  if (value.size() < sizeof(op::MemberChangeHead)) return ResultCode::kInvalid;
  std::memcpy(static_cast<op::MemberChangeHead*>(&told), value.data(), sizeof(op::MemberChangeHead));
  told.part = value.substr(sizeof(op::MemberChangeHead));
  if (told.to == 0 || told.length > op::kMostMembersLength || told.offset > told.length ||
      told.part.size() > told.length - told.offset)
    return ResultCode::kInvalid;
  purger_.step_alone();
  if (purger_.is_under_way()) return ResultCode::kNotStored;
  if (std::exchange(is_purging_, false)) {
    adopted_ns_ = now_ns;
    assumed_ = 0;
    const store::Purger::Keeps keeps = std::exchange(keeps_, nullptr);
    tombstones_.turn(
        keeps ? keeps : [](std::string_view) { return false; }, now_ns);
  }
  return begin(told, now_ns);
}

bool MemberChange::is_done(const Told& told, uint64_t now_ns) const {
  if (purger_.membership() != told.to) return false;
  return !told.joins() || (adopted_ns_ != 0 && now_ns - adopted_ns_ < kJoinsOnceNs);
}

ResultCode MemberChange::begin(const Told& told, uint64_t now_ns) {
  if (is_done(told, now_ns)) {
    if (told.joins()) adopted_ns_ = now_ns;
    return ResultCode::kOk;
  }
  if (told.from == 0) {
    assume(told.to);
    return ResultCode::kOk;
  }
  if (from_ != told.from || to_ != told.to) {
    from_ = told.from;
    to_ = told.to;
    collected_ = std::string();
  }
  if (told.joins()) return purge(nullptr);
  const bool is_ours = purger_.membership() == told.from || assumed_ == told.from;
  if (purger_.membership() != 0 && !is_ours) return ResultCode::kExists;
  return collect(told);
}

// A proxy has started with these members. Nothing has been removed for them, so they do not take the place of those that
// are known: another proxy may be about to tell of the change between the two.
void MemberChange::assume(uint64_t members) {
  if (purger_.membership() == 0) return purger_.set_membership(members);
  assumed_ = members;
  adopted_ns_ = 0;
}

ResultCode MemberChange::collect(const Told& told) {
  if (told.part.empty() || told.offset > collected_.size()) return ResultCode::kNoUpload;
  // What another proxy has sent already is not taken again.
  const size_t known = collected_.size() - told.offset;
  if (known < told.part.size()) collected_ += told.part.substr(known);
  if (collected_.size() < told.length) return ResultCode::kStored;
  const std::string members = std::exchange(collected_, {});
  if (pool::number_of_membership(members) != from_) return ResultCode::kInvalid;
  auto seen = pool::decode_membership(members);
  if (!seen || seen.value().mine == pool::kNoMember) return ResultCode::kInvalid;
  const auto before = std::make_shared<const pool::SeenMembership>(std::move(seen.value()));
  return purge([before](std::string_view key) { return before->placement.member_of(key) == before->mine; });
}

ResultCode MemberChange::purge(store::Purger::Keeps keeps) {
  keeps_ = keeps;
  purger_.start(std::move(keeps), to_);
  is_purging_ = true;
  from_ = to_ = 0;
  collected_ = std::string();
  return ResultCode::kNotStored;
}

}  // namespace egret::backend
