#include "pool/fan_out.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace egret::pool {

using op::Result;
using op::ResultCode;

namespace {
constexpr uint32_t kMaxStatId = 4096;  // larger ids are ignored: they can only come from a much newer backend
// Pages whose cursor is beyond all rows that there can be are not asked for.
constexpr uint64_t kMostRows = std::max<uint64_t>(kMaxStatId, uint64_t{op::kSizeClasses} << 8);
constexpr size_t kMostAnswer = 256;  // bytes that are kept of a partition's line

// Rows with an unknown id are merged by adding.
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

// How a field is merged, over partitions and over backends.
op::StatMerge merge_of(op::ClassField field) {
  const bool is_latest = field == op::ClassField::kEvictedTime || field == op::ClassField::kAge;
  return is_latest ? op::StatMerge::kMax : op::StatMerge::kSum;
}

op::StatRow take_row(std::string_view& rows) {
  op::StatRow row{};
  std::memcpy(&row, rows.data(), sizeof row);
  rows.remove_prefix(sizeof row);
  return row;
}
}  // namespace

FanOut::FanOut(const Pool& pool, const op::Op& op, FanOutOwner& owner) : owner_(&owner), op_(op), value_(op.value) {
  op_.value = value_;
  if (op.code == op::OpCode::kFlush) {
    add_flush_shares(pool);
  } else {
    for (size_t i = 0; i < pool.serving().size(); ++i) {
      add_share(pool.serving()[i].get(), 0);
      shares_.back().member = pool.membership().members()[i].member;
    }
  }
}

// Null: it cannot be reached.
void FanOut::add_share(rpc::ClientSession* session, uint64_t tag) {
  Share& share = shares_.emplace_back();
  share.whole = this;
  share.tag = tag;
  if (session == nullptr || !session->is_open()) {
    share.failure = ResultCode::kSessionLost;
    return;
  }
  share.session = rpc::SessionRef(*session);
  share.generation = share.session->lanes().generation();
  share.parts.resize(share.session->lanes().count());
  for (uint32_t lane = 0; lane < share.parts.size(); ++lane) {
    share.parts[lane].share = &share;
    share.parts[lane].lane = lane;
  }
  unanswered_ += share.parts.size();
}

// With a delay nobody can flush in the place of an owner, which may return before that is over.
void FanOut::add_flush_shares(const Pool& pool) {
  for (size_t member = 0; member < pool.serving().size(); ++member) {
    const Pool::Aside* const aside = pool.aside_of(member);
    if (!pool.is_absent(member)) {
      add_share(pool.serving()[member].get(), 0);
    } else if (aside == nullptr || aside->stand_ins.empty() || op_.exptime != 0) {
      add_share(nullptr, 0);
    } else {
      for (rpc::ClientSession* const stand_in : aside->stand_ins) add_share(stand_in, aside->tag);
    }
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
    if (share.is_lost() || share.session->lanes()[part.lane].progress().is_silent) {
      give_up(part, ResultCode::kSessionLost);
    } else {
      op_.version = part.cursor;
      op_.owner = share.tag;
      if (!share.session->lanes()[part.lane].append(op_, &part)) return share.session->credit().wait(&share);
    }
    share.unsent.pop_front();
  }
}

void FanOut::Share::on_credit() {
  FanOut& all = *whole;
  all.send_waiting(*this);
  all.finish_if_done();  // `this` may be destroyed
}

void FanOut::Part::on_result(const Result& result) {
  FanOut& all = *share->whole;
  all.on_part(*this, result);
  all.finish_if_done();
}

void FanOut::on_part(Part& part, const Result& result) {
  if (result.code != ResultCode::kOk) return give_up(part, result.code);
  if (op_.code == op::OpCode::kAdmin) {
    part.answer = result.value.substr(0, kMostAnswer);
    if (result.is_partial() || result.value.size() > kMostAnswer) part.answer += "...";
    --unanswered_;
    return;
  }
  Share& share = *part.share;
  const bool of_classes = op_.group == static_cast<uint8_t>(op::StatGroup::kSizeClasses);
  const uint64_t next = of_classes ? add_class_rows(part, result.value) : add_rows(part, result.value);
  // A page whose cursor does not advance is the last.
  if (!result.is_partial() || next <= part.cursor || next > kMostRows) {
    --unanswered_;
    return;
  }
  part.cursor = next;
  share.unsent.push_back(&part);
  if (share.unsent.size() == 1) send_waiting(share);
}

void FanOut::give_up(Part& part, ResultCode why) {
  if (part.share->failure == ResultCode::kOk) part.share->failure = why;
  --unanswered_;
}

uint64_t FanOut::add_rows(const Part& part, std::string_view rows) {
  std::vector<uint64_t>& stats = part.share->stats;
  const uint64_t next = part.cursor + rows.size() / sizeof(op::StatRow);
  while (rows.size() >= sizeof(op::StatRow)) {
    const op::StatRow row = take_row(rows);
    if (row.id > kMaxStatId) continue;
    if (row.id >= stats.size()) stats.resize(row.id + 1);
    stats[row.id] = merged(info_of(row.id).merge, stats[row.id], row.value);
  }
  return next;
}

// Rows come in the order of their ids; a repeated row would be counted twice, so it is an error.
uint64_t FanOut::add_class_rows(const Part& part, std::string_view rows) {
  auto& classes = part.share->classes;
  uint64_t next = part.cursor;
  while (rows.size() >= sizeof(op::StatRow)) {
    const op::StatRow row = take_row(rows);
    const uint32_t size_class = row.id >> 8;
    const uint32_t field = row.id & 0xff;
    if (row.id < next) continue;
    next = uint64_t{row.id} + 1;
    if (size_class >= op::kSizeClasses || field >= op::kClassFields) continue;
    if (size_class >= classes.size()) classes.resize(size_class + 1);
    uint64_t& value = classes[size_class][field];
    value = merged(merge_of(static_cast<op::ClassField>(field)), value, row.value);
  }
  return next;
}

ResultCode FanOut::failure() const {
  if (shares_.empty()) return ResultCode::kSessionLost;
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
    // Leave out a backend that answered in part: half of its partitions would look like half of its items lost.
    if (share.failure != ResultCode::kOk || index >= share.stats.size()) continue;
    all = std::exchange(first, false) ? share.stats[index] : merged(how, all, share.stats[index]);
  }
  return all;
}

std::vector<FanOut::Answered> FanOut::each() const {
  std::vector<Answered> all;
  for (const Share& share : shares_) {
    if (share.failure == ResultCode::kOk) all.push_back({share.member, share.stats});
  }
  return all;
}

ClassStats FanOut::class_stats() const {
  ClassStats all;
  for (const Share& share : shares_) {
    if (share.failure != ResultCode::kOk) continue;
    if (all.size() < share.classes.size()) all.resize(share.classes.size());
    for (size_t size_class = 0; size_class < share.classes.size(); ++size_class) {
      for (uint32_t field = 0; field < op::kClassFields; ++field) {
        uint64_t& value = all[size_class][field];
        value = merged(merge_of(static_cast<op::ClassField>(field)), value, share.classes[size_class][field]);
      }
    }
  }
  return all;
}

std::vector<std::string> FanOut::answers() const {
  std::vector<std::string> all;
  for (const Share& share : shares_) {
    for (const Part& part : share.parts) all.push_back(part.answer);
  }
  return all;
}

void FanOut::finish_if_done() {
  if (unanswered_ > 0) return;
  if (owner_ != nullptr) owner_->on_fan_out(*this);
  delete this;
}

}  // namespace egret::pool
