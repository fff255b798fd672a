#include "proxy/fan_out.h"

#include <algorithm>
#include <cstring>

namespace egret::proxy {

using op::Result;
using op::ResultCode;

namespace {
constexpr uint32_t kMaxStatId = 4096;  // a backend that names larger ones is newer by far: passed over

op::StatMerge merge_of(uint32_t id) {
  for (const op::StatInfo& info : op::stat_table()) {
    if (static_cast<uint32_t>(info.id) == id) return info.merge;
  }
  return op::StatMerge::kSum;
}
}  // namespace

FanOut::FanOut(const Router& router, const op::Op& op, FanOutOwner& owner) : owner_(&owner), op_(op) {
  for (const auto& session : router.sessions()) {
    if (!session->is_open()) {
      failure_ = ResultCode::kSessionLost;
      continue;
    }
    for (uint32_t lane = 0; lane < session->lane_count(); ++lane) {
      parts_.emplace_back();
      parts_.back().whole = this;
      parts_.back().session = session.get();
      parts_.back().lane = lane;
    }
  }
}

void FanOut::start() {
  unanswered_ = parts_.size();
  for (Part& part : parts_) unsent_.push_back(&part);
  send_waiting();
}

void FanOut::send_waiting() {
  while (!unsent_.empty()) {
    Part& part = *unsent_.front();
    if (!part.session->is_open() || part.lane >= part.session->lane_count()) {
      failure_ = ResultCode::kSessionLost;
      --unanswered_;
    } else {
      op_.version = part.cursor;
      if (!part.session->lane(part.lane).append(op_, &part)) return part.session->wait_for_credit(this);
    }
    unsent_.pop_front();
  }
  finish_if_done();
}

void FanOut::Part::on_result(const Result& result) {
  whole->on_part(*this, result);
}

void FanOut::on_part(Part& part, const Result& result) {
  if (result.code != ResultCode::kOk) {
    if (failure_ == ResultCode::kOk) failure_ = result.code;
  } else {
    add_rows(result.value);
    if (result.is_partial() && !result.value.empty()) {
      part.cursor += result.value.size() / sizeof(op::StatRow);
      unsent_.push_back(&part);
      if (unsent_.size() == 1) send_waiting();
      return;
    }
  }
  --unanswered_;
  finish_if_done();
}

void FanOut::add_rows(std::string_view rows) {
  for (; rows.size() >= sizeof(op::StatRow); rows.remove_prefix(sizeof(op::StatRow))) {
    op::StatRow row{};
    std::memcpy(&row, rows.data(), sizeof row);
    if (row.id > kMaxStatId) continue;
    if (row.id >= stats_.size()) stats_.resize(row.id + 1);
    uint64_t& sum = stats_[row.id];
    sum = merge_of(row.id) == op::StatMerge::kSum ? sum + row.value : std::max(sum, row.value);
  }
}

uint64_t FanOut::stat(op::StatId id) const {
  const auto index = static_cast<size_t>(id);
  return index < stats_.size() ? stats_[index] : 0;
}

void FanOut::finish_if_done() {
  if (unanswered_ > 0 || !unsent_.empty()) return;
  if (owner_ != nullptr) owner_->on_fan_out(*this);
  delete this;
}

}  // namespace egret::proxy
