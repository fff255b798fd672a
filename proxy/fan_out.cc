#include "proxy/fan_out.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace egret::proxy {

using op::Result;
using op::ResultCode;

namespace {
constexpr uint32_t kMaxStatId = 4096;  // a backend that names larger ones is newer by far: passed over

// Rows of ids that only the backend knows are added up.
const op::StatInfo& info_of(uint32_t id) {
  static constexpr op::StatInfo kUnknown{};
  const auto table = op::stat_table();
  const auto row =
      std::ranges::find(table, id, [](const op::StatInfo& info) { return static_cast<uint32_t>(info.id); });
  return row != table.end() ? *row : kUnknown;
}

uint64_t merged(op::StatMerge how, uint64_t so_far, uint64_t value) {
  switch (how) {
    case op::StatMerge::kMax:
      return std::max(so_far, value);
    case op::StatMerge::kMin:
      return std::min(so_far, value);
    case op::StatMerge::kSum:
      break;
  }
  return so_far + value;
}
}  // namespace

FanOut::FanOut(const Router& router, const op::Op& op, FanOutOwner& owner)
    : owner_(&owner), op_(op), shares_(router.sessions().size()) {
  for (size_t i = 0; i < shares_.size(); ++i) {
    Share& share = shares_[i];
    share.whole = this;
    share.session = router.sessions()[i].get();
    share.generation = share.session->generation();
    if (!share.session->is_open()) {
      share.failure = ResultCode::kSessionLost;
      continue;
    }
    share.parts.resize(share.session->lane_count());
    for (uint32_t lane = 0; lane < share.parts.size(); ++lane) {
      share.parts[lane].share = &share;
      share.parts[lane].lane = lane;
    }
    unanswered_ += share.parts.size();
  }
}

void FanOut::start() {
  for (Share& share : shares_) {
    for (Part& part : share.parts) share.unsent.push_back(&part);
    send_waiting(share);
  }
  finish_if_done();
}

void FanOut::send_waiting(Share& share) {
  while (!share.unsent.empty()) {
    Part& part = *share.unsent.front();
    if (share.is_lost()) {
      give_up(part, ResultCode::kSessionLost);
    } else {
      op_.version = part.cursor;
      if (!share.session->lane(part.lane).append(op_, &part)) return share.session->wait_for_credit(&share);
    }
    share.unsent.pop_front();
  }
}

void FanOut::Share::on_credit() {
  FanOut& all = *whole;
  all.send_waiting(*this);
  all.finish_if_done();  // `this` may be gone
}

void FanOut::Part::on_result(const Result& result) {
  FanOut& all = *share->whole;
  all.on_part(*this, result);
  all.finish_if_done();
}

void FanOut::on_part(Part& part, const Result& result) {
  if (result.code != ResultCode::kOk) return give_up(part, result.code);
  Share& share = *part.share;
  add_rows(share, result.value);
  if (!result.is_partial() || result.value.empty()) {
    --unanswered_;
    return;
  }
  part.cursor += result.value.size() / sizeof(op::StatRow);
  share.unsent.push_back(&part);
  if (share.unsent.size() == 1) send_waiting(share);
}

void FanOut::give_up(Part& part, ResultCode why) {
  if (part.share->failure == ResultCode::kOk) part.share->failure = why;
  --unanswered_;
}

void FanOut::add_rows(Share& share, std::string_view rows) {
  for (; rows.size() >= sizeof(op::StatRow); rows.remove_prefix(sizeof(op::StatRow))) {
    op::StatRow row{};
    std::memcpy(&row, rows.data(), sizeof row);
    if (row.id > kMaxStatId) continue;
    if (row.id >= share.stats.size()) share.stats.resize(row.id + 1);
    uint64_t& value = share.stats[row.id];
    value = merged(info_of(row.id).merge, value, row.value);
  }
}

ResultCode FanOut::failure() const {
  const auto first = std::ranges::find_if(shares_, [](const Share& share) { return share.failure != ResultCode::kOk; });
  return first != shares_.end() ? first->failure : ResultCode::kOk;
}

size_t FanOut::backends_up() const {
  return static_cast<size_t>(std::ranges::count(shares_, ResultCode::kOk, &Share::failure));
}

uint64_t FanOut::stat(op::StatId id) const {
  const auto index = static_cast<size_t>(id);
  const op::StatMerge how = info_of(static_cast<uint32_t>(id)).over_backends;
  uint64_t all = 0;
  bool first = true;
  for (const Share& share : shares_) {
    // Half of a backend's partitions would look like a backend that lost half of its items.
    if (share.failure != ResultCode::kOk || index >= share.stats.size()) continue;
    all = std::exchange(first, false) ? share.stats[index] : merged(how, all, share.stats[index]);
  }
  return all;
}

void FanOut::finish_if_done() {
  if (unanswered_ > 0) return;
  if (owner_ != nullptr) owner_->on_fan_out(*this);
  delete this;
}

}  // namespace egret::proxy
