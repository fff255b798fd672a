#include "pool/change/telling.h"

#include <algorithm>

namespace egret::pool {

using op::ResultCode;

size_t index_of(const Membership& membership, const Member& member) {
  const auto members = membership.members();
  const auto at = std::ranges::find_if(
      members, [&](const Membership::Entry& entry) { return is_same_backend(entry.member, member); });
  return at == members.end() ? kNoMember : static_cast<size_t>(at - members.begin());
}

namespace {
std::string bytes_for(const Member& member, const Membership& membership) {
  std::vector<Member> members;
  members.reserve(membership.members().size());
  for (const Membership::Entry& entry : membership.members()) members.push_back(entry.member);
  return encode_membership(membership.placement().rule(), members, index_of(membership, member));
}
}  // namespace

MemberNews news_for(const Member& member, const Membership* before, const Membership& next) {
  MemberNews news;
  news.to = number_of_membership(bytes_for(member, next));
  if (before == nullptr) return news;
  std::string bytes = bytes_for(member, *before);
  news.from = number_of_membership(bytes);
  if (index_of(*before, member) != kNoMember) news.before = std::move(bytes);
  return news;
}

PartitionTelling::PartitionTelling(const std::vector<MemberNews>& news, size_t most_part)
    : news_(&news), most_part_(most_part) {}

std::string PartitionTelling::value() const {
  const MemberNews& news = (*news_)[change_];
  const op::MemberChangeHead head{news.from, news.to, static_cast<uint32_t>(news.before.size()),
                                  static_cast<uint32_t>(offset_)};
  std::string value(reinterpret_cast<const char*>(&head), sizeof head);
  if (has_part_) value.append(news.before, offset_, most_part_);
  return value;
}

PartitionTelling::Next PartitionTelling::on_answer(ResultCode code) {
  if (is_over()) return Next::kOver;
  const std::string& before = (*news_)[change_].before;
  switch (code) {
    case ResultCode::kNoUpload:
      offset_ = 0;
      has_part_ = true;
      return Next::kSend;
    case ResultCode::kStored:
      if (has_part_) offset_ = std::min(before.size(), offset_ + most_part_);
      has_part_ = true;
      return Next::kSend;
    case ResultCode::kNotStored:
      has_part_ = false;
      return Next::kSendLater;
    case ResultCode::kOk:
      // It may have been told of all of them before, and its answer was lost: then it belongs to the last members.
      belongs_to_others_ = false;
      return next_change();
    case ResultCode::kExists:
      belongs_to_others_ = true;
      return next_change();
    default:
      refusal_ = code;
      change_ = news_->size();
      return Next::kOver;
  }
}

PartitionTelling::Next PartitionTelling::next_change() {
  ++change_;
  offset_ = 0;
  has_part_ = false;
  return is_over() ? Next::kOver : Next::kSend;
}

}  // namespace egret::pool
