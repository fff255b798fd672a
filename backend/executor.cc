#include "backend/executor.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include <sys/resource.h>
#include <unistd.h>

#include "backend/log_events.h"
#include "base/check.h"
#include "base/log/log.h"
#include "changes/effect.h"
#include "op/hash.h"

namespace egret::backend {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {

Result answer(ResultCode code) {
  Result result;
  result.code = code;
  return result;
}

// Units of work (rpc::SlotPoller::kLaneWork) that expensive ops count, besides the one unit of every op. A unit is about
// 0.1 us.
constexpr uint64_t kStatsWork = 256;
constexpr uint64_t kPageOfRecordsWork = 32;
constexpr uint64_t kAdminWork = 64;
constexpr uint64_t kFlushWork = 16;
// ns of long work in the store that count as one unit of op::Result::work (store/work.h).
constexpr uint64_t kNsPerWork = 100;
// A value may be lent many times at once, which takes heap each time: some hundred bytes, and 16 for each of its pieces, of
// 4 to 64 KiB. So there is one loan for so much memory, and all are of so many times the memory.
constexpr uint64_t kMemoryPerLoan = 16u << 10;
constexpr uint64_t kMostLentTimes = 16;
constexpr uint64_t kCommitWork = 64;  // a short upload that is appended is copied, up to 64 KiB

uint64_t work_of(OpCode code) {
  switch (code) {
    case OpCode::kStats:
      return kStatsWork;
    case OpCode::kIterate:
      return kPageOfRecordsWork;
    case OpCode::kAdmin:
      return kAdminWork;
    case OpCode::kFlush:
      return kFlushWork;
    case OpCode::kCommit:
      return kCommitWork;
    default:
      return 0;
  }
}

uint64_t microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

base::Expected<std::unique_ptr<Executor>> Executor::create(const ExecutorOptions& options, const base::Clock& clock) {
  auto made = store::Store::create({.memory_limit = options.memory,
                                    .item_size_max = options.item_size_max,
                                    .evict = options.evict,
                                    .hash_seed = options.hash_seed,
                                    .clock = &clock,
                                    .first_version = options.first_version,
                                    .cas_stride = options.partitions,
                                    .cas_offset = options.partition,
                                    .populate = options.populate,
                                    .warm_path = options.warm_file});
  if (!made) return base::Status::error("partition " + std::to_string(options.partition) + ": " + made.message());
  return std::make_unique<Executor>(options, clock, std::move(made.value()));
}

Executor::Executor(const ExecutorOptions& options, const base::Clock& clock, std::unique_ptr<store::Store> store)
    : options_(options),
      clock_(clock),
      store_(std::move(store)),
      memory_(options.whole_memory),
      shares_(options.share_of_user),
      uploads_(*store_, options.item_size_max, shares_),
      tombstones_(options.memory),
      member_change_(store_->purger(), tombstones_),
      changed_keys_(options.memory),
      start_ns_(clock.now_ns()) {
  kept_.reserve(kMaxKept);
}

// Handles into the store end before it does. Whoever has borrowed of it is gone.
Executor::~Executor() {
  end_round();
  loans_.take_back();
  EGRET_DCHECK(loans_.bytes() == 0);
}

// --- a batch

void Executor::begin_round() {
  now_ns_ = clock_.now_ns();
  store_->begin_pass(now_ns_);
  loans_.take_back();
  if (now_ns_ >= next_overdue_ns_) drop_overdue();
}

bool Executor::idle_step() {
  if (!std::exchange(is_round_fresh_, false)) begin_round();
  return store_->idle_step();
}

uint64_t Executor::upkeep_in_ns() const {
  uint64_t soonest = UINT64_MAX;
  if (const uint32_t seconds = store_->upkeep_in_seconds(); seconds != store::Store::kNever)
    soonest = uint64_t{seconds} * 1'000'000'000;
  if (next_overdue_ns_ != UINT64_MAX)
    soonest = std::min(soonest, next_overdue_ns_ - std::min(next_overdue_ns_, now_ns_));
  if (loans_.bytes() > 0) soonest = std::min(soonest, kLoanNs);
  return soonest;
}

void Executor::foresee(std::span<Op> ops) {
  for (Op& op : ops) op.hash = op::has_key(op.code) ? op::hash_key(op.key, options_.hash_seed) : 0;
  store_->foresee(ops);
}

void Executor::prepare(std::span<Op> ops, std::span<const rpc::LaneId> lanes) {
  static_assert(kMaxBatch <= store::kMaxBatch);
  EGRET_DCHECK(!is_handing_out_);
  ops_ = ops;
  op_lanes_ = lanes;
  store_->prepare(ops);
}

void Executor::locate() {
  store_->locate();
}

// Twice in the code, so that the way of most ops has no call more.
[[gnu::always_inline]] inline Result Executor::dispatch(size_t index) {
  const Op& op = ops_[index];
  if (op::has_key(op.code) && op::partition_of(op.hash, options_.partitions) != options_.partition) {
    return answer(ResultCode::kWrongPartition);
  }
  EGRET_DCHECK(op_lanes_[index] < access_.size());  // lanes are attached before they are served
  if (!may(op, op_lanes_[index])) return answer(access_[op_lanes_[index]].refusal);
  switch (op.code) {
    case OpCode::kGet:
      return get(op, index);
    case OpCode::kSet:
      if (op.mode == op::SetMode::kFill) [[unlikely]]
        return fill(op, index);
      return store_->execute(index);
    case OpCode::kDelete:
    case OpCode::kArith:
    case OpCode::kFlush:
      return store_->execute(index);
    case OpCode::kIterate:
      return op.group == static_cast<uint8_t>(op::RecordSource::kChanged) || op.owner != 0 ? changes(op)
                                                                                           : store_->execute(index);
    case OpCode::kChunk:
      return chunk(op, index);
    case OpCode::kUpload:
      return upload_part(op, op_lanes_[index]);
    case OpCode::kCommit:
      return commit(op, op_lanes_[index]);
    case OpCode::kAbort:
      uploads_.abort(op, op_lanes_[index]);
      return answer(ResultCode::kOk);
    case OpCode::kStats:
      return stats(op);
    case OpCode::kAdmin:
      return admin(op);
    case OpCode::kPing:
      return answer(ResultCode::kOk);
  }
  return answer(ResultCode::kUnsupported);
}

// While it matters which keys change: to those who fill, and to those who will purge them on an owner that is absent.
[[gnu::noinline, gnu::cold]] Result Executor::perform_noted(size_t index) {
  const Op& op = ops_[index];
  const bool is_for_owner = op.owner != 0 && op.code != OpCode::kIterate && is_accepted(op, op_lanes_[index]);
  if (is_for_owner) {
    const uint64_t floor = changed_keys_.floor_of(op.owner, store_->purger().next_version());
    if (op::has_key(op.code)) store_->purger().remove_older(op.key, op.hash, floor);
  }
  const Result result = dispatch(index);
  const bool is_of_all = changes_all(op, result);
  const bool is_of_key = may_change(op, result);
  if (tombstones_.is_recording()) {
    if (is_of_all) tombstones_.add_all();
    if (is_of_key) tombstones_.add(op.hash);
  }
  if (is_for_owner) {
    if (is_of_all) changed_keys_.note_all(op.owner);
    if (is_of_key) changed_keys_.note(op.owner, op.key, op.hash);
  }
  return result;
}

bool Executor::is_accepted(const Op& op, rpc::LaneId lane) const {
  const bool is_own = !op::has_key(op.code) || op::partition_of(op.hash, options_.partitions) == options_.partition;
  return is_own && may(op, lane);
}

// Part of execute(): a call more would cost every op.
[[gnu::always_inline]] inline Result Executor::perform(size_t index) {
  if (tombstones_.is_recording() || ops_[index].owner != 0) [[unlikely]]
    return perform_noted(index);
  return dispatch(index);
}

Result Executor::execute(size_t index) {
  const uint64_t before_ns = store_->counts().long_work_ns;
  Result result = perform(index);
  const uint64_t work = work_of(ops_[index].code) + (store_->counts().long_work_ns - before_ns) / kNsPerWork +
                        uploads_.take_search_work();
  if (work > 0) [[unlikely]]
    result.work = static_cast<uint16_t>(std::min<uint64_t>(work, UINT16_MAX));
  return result;
}

// --- what spans several ops of a lane

void Executor::lane_attached(rpc::LaneId lane, const rpc::LaneBinding& binding) {
  if (lane >= access_.size()) access_.resize(lane + 1);
  if (lane >= pins_.size()) pins_.resize(lane + 1);
  UserShares::User& user = shares_.attach(binding.user);
  uploads_.attach(lane, user, (binding.rights & op::kMayWrite) != 0);
  access_[lane] = {binding.rights, binding.knows_rights ? ResultCode::kForbidden : ResultCode::kUnsupported, &user};
}

void Executor::lane_dropped(rpc::LaneId lane) {
  loans_.revoke(lane);
  if (lane >= access_.size()) return;
  const Access gone = std::exchange(access_[lane], {});
  if (gone.user == nullptr) return;
  pins_[lane].clear();
  uploads_.drop(lane);
  shares_.detach(*gone.user);
}

// The item is pinned before it is read, because the get itself may make it expire.
Result Executor::get(const Op& op, size_t index) {
  if (!(op.options & op::kPin)) return store_->execute(index);
  auto pin = pin_for_reading(op);
  const Result result = store_->execute(index);
  if (pin && pin.length() > 0 && result.code == ResultCode::kHit && pin.version() == result.version) {
    UserShares::User& user = *access_[op_lanes_[index]].user;
    if (!shares_.is_within(user.pins, pin.length(), store_->memory().pin_room)) {
      // As if there were no memory for it: its chunks are of the present version, or start again.
      ++counters_.pins_over_share;
      return result;
    }
    std::vector<Pinned>& pins = pins_[op_lanes_[index]];
    if (pins.size() == kMaxPinsPerLane) pins.erase(pins.begin());
    const uint32_t length = pin.length();
    pins.push_back({std::move(pin), now_ns_, Charge(user.pins, length)});
    next_overdue_ns_ = std::min(next_overdue_ns_, now_ns_ + kPinNs);
  }
  return result;
}

Result Executor::chunk(const Op& op, size_t index) {
  if (!(op.options & op::kPin)) return store_->execute(index);
  Pinned* const pinned = find_pin(op_lanes_[index], op.version);
  // Not pinned (no memory for it, too late): perhaps it is still the present version.
  if (pinned == nullptr) return store_->execute(index);
  if (uint64_t{op.offset} + op.length >= pinned->pin.length()) has_read_pins_ = pinned->is_read = true;
  return pinned->pin.chunk(op.offset, op.length);
}

// Pins are kept for a while after their last byte was asked for, since it may be asked for again. Where they leave no room, they
// go: else a get that makes its item expire, and finds no room, could not read the rest.
store::Store::Pin Executor::pin_for_reading(const Op& op) {
  auto pin = store_->pin(op.key, op.hash);
  if (pin || !std::exchange(has_read_pins_, false)) return pin;
  for (std::vector<Pinned>& pins : pins_) std::erase_if(pins, &Pinned::is_read);
  return store_->pin(op.key, op.hash);
}

Executor::Pinned* Executor::find_pin(rpc::LaneId lane, uint64_t version) {
  std::vector<Pinned>& pins = pins_[lane];
  Pinned* found = nullptr;  // one of several gets of the same version that has not been read, if there is one
  for (Pinned& pinned : pins) {
    if (pinned.pin.version() == version && (found == nullptr || found->is_read)) found = &pinned;
  }
  return found;
}

// Pins the version that a get or a chunk has just been answered with. None: the store has no room for a pin, or no longer
// has that version.
store::Store::Pin Executor::pin_of(const Op& op, rpc::LaneId lane, uint64_t version) {
  if (op.code == OpCode::kChunk && (op.options & op::kPin) != 0) {
    if (const Pinned* const pinned = find_pin(lane, version); pinned != nullptr) return pinned->pin.share();
  }
  auto pin = store_->pin(op.key, op.hash);
  return pin && pin.version() == version ? std::move(pin) : store::Store::Pin();
}

bool Executor::keep(size_t index, const Result& result) {
  const Op& op = ops_[index];
  const bool is_value = op.code == OpCode::kGet || op.code == OpCode::kChunk;
  if (!is_value || result.code != ResultCode::kHit || kept_.size() == kMaxKept) return false;
  auto pin = pin_of(op, op_lanes_[index], result.version);
  if (!pin || !pin.keeps_bytes()) return false;
  kept_.push_back(std::move(pin));
  return true;
}

op::LoanName Executor::lend(size_t index, const Result& result) {
  const Op& op = ops_[index];
  if (op.code != OpCode::kGet || result.code != ResultCode::kHit || result.value.empty()) return {};
  if (result.total_length > store::Store::Pin::kMostCopied) return {};  // see Pin::keeps_bytes()
  const uint64_t memory = memory_ / options_.partitions;
  if (loans_.count() >= memory / kMemoryPerLoan) return {};
  if (loans_.bytes() + result.total_length > kMostLentTimes * memory) return {};
  auto pin = store_->pin(op.key, op.hash, store::PinUse::kLend);
  if (!pin || pin.version() != result.version || !pin.keeps_bytes()) return {};
  ++counters_.lent;
  return loans_.lend(std::move(pin), op_lanes_[index]);
}

Result Executor::upload_part(const Op& op, rpc::LaneId lane) {
  const ResultCode code = uploads_.part(op, lane, now_ns_);
  next_overdue_ns_ = std::min(next_overdue_ns_, uploads_.due_ns());
  return answer(code);
}

bool Executor::DirectLane::begin_part(const Op& part, uint32_t most, op::PartRoom& room) {
  EGRET_DCHECK(!executor_.is_handing_out_);
  executor_.begin_round();
  const ExecutorOptions& options = executor_.options_;
  const uint64_t hash = op::hash_key(part.key, options.hash_seed);
  if (op::partition_of(hash, options.partitions) != options.partition || !executor_.may(part, lane_)) return false;
  const bool has_begun = executor_.uploads_.begin_part(part, lane_, executor_.now_ns_, most, room);
  executor_.next_overdue_ns_ = std::min(executor_.next_overdue_ns_, executor_.uploads_.due_ns());
  return has_begun;
}

void Executor::DirectLane::end_part(const Op& part, uint32_t length) {
  executor_.uploads_.end_part(part, lane_, executor_.now_ns_, length);
  executor_.counters_.received_in_place += length;
}

bool Executor::DirectLane::execute(const Op& op, Result& result, op::LoanName& lent) {
  EGRET_DCHECK(op.hash == op::hash_key(op.key, executor_.options_.hash_seed));
  if (!has_share()) return false;
  begin({&op, 1});
  executor_.store_->prepare(executor_.ops_);
  result = perform(0, lent);
  return true;
}

void Executor::DirectLane::execute_all(std::span<const Op> ops, op::ResultTaker& taker) {
  static_assert(kMostTogether <= kMaxBatch);
  begin(ops);
  store::Store& store = *executor_.store_;
  store.foresee(ops);
  store.prepare(ops);
  store.locate();
  executor_.is_handing_out_ = true;
  for (size_t i = 0; i < ops.size(); ++i) {
    EGRET_DCHECK(ops[i].hash == op::hash_key(ops[i].key, executor_.options_.hash_seed));
    op::LoanName lent;
    Result result = perform(i, lent);
    taker.on_result(i, result, lent);
  }
  executor_.is_handing_out_ = false;
}

void Executor::DirectLane::begin(std::span<const Op> ops) {
  EGRET_DCHECK(!executor_.is_handing_out_);
  if (executor_.direct_work_ == 0) executor_.begin_round();
  executor_.is_round_fresh_ = true;
  executor_.ops_ = ops;
  executor_.op_lanes_ = std::span(lanes_).first(ops.size());
  executor_.counters_.direct_ops += ops.size();
  ++executor_.counters_.direct_messages;
}

// Inlined: a call more would cost every op.
[[gnu::always_inline]] inline Result Executor::DirectLane::perform(size_t index, op::LoanName& lent) {
  Result result = executor_.execute(index);
  if (result.total_length >= rpc::SlotPoller::kLeastKept || !result.further.empty()) [[unlikely]] {
    lent = executor_.lend(index, result);
    result.further = {};  // of a value that cannot be lent, its first piece
  }
  const size_t copied = lent.loan == nullptr ? result.value.size() : 0;
  executor_.direct_work_ += 1 + result.work + static_cast<uint32_t>(copied / rpc::SlotPoller::kBytesPerWork);
  return result;
}

Result Executor::commit(const Op& op, rpc::LaneId lane) {
  Uploads::Whole whole = uploads_.take(op, lane);
  if (whole.failure != ResultCode::kOk) return store_->refuse_set(op, whole.failure);
  if (whole.parts.key() != op.key) return answer(ResultCode::kInvalid);
  if (op.mode != op::SetMode::kFill) return whole.parts.commit(op);
  return allows_fill(op) ? counted_fill(whole.parts.commit(op)) : answer(ResultCode::kNotStored);
}

// --- in the place of an owner that is absent

Result Executor::changes(const Op& op) {
  if (op.group != static_cast<uint8_t>(op::RecordSource::kChanged)) return answer(ResultCode::kInvalid);
  constexpr size_t kPageBytes = 4096;
  changes_page_.clear();
  Result page = answer(ResultCode::kOk);
  if (op.owner == 0) {
    page.version = changed_keys_.list(op.version, now_ns_, changes_page_);
  } else {
    if (op.size_class == op::kPurgedBefore) changed_keys_.note_purged(op.owner, op.version);
    const ChangedKeys::Page read =
        changed_keys_.read(op.owner, op.version, store_->purger().next_version(), kPageBytes, changes_page_);
    page.version = read.cursor;
    page.number = read.is_incomplete ? 1 : 0;
  }
  page.value = changes_page_;
  page.total_length = static_cast<uint32_t>(changes_page_.size());
  return page;
}

// --- values that another backend of the pool still had

Result Executor::fill(const Op& op, size_t index) {
  return allows_fill(op) ? counted_fill(store_->execute(index)) : answer(ResultCode::kNotStored);
}

bool Executor::allows_fill(const Op& op) {
  const bool is_allowed = tombstones_.allows_fill(op.key, op.hash, now_ns_);
  if (!is_allowed) ++counters_.fills_refused;
  return is_allowed;
}

Result Executor::counted_fill(const Result& result) {
  ++(result.code == ResultCode::kStored ? counters_.fills : counters_.fills_refused);
  return result;
}

// Runs when the nearest deadline has passed; a lane that is gone has taken its uploads and pins along.
void Executor::drop_overdue() {
  uploads_.drop_overdue(now_ns_);
  tombstones_.forget_if_over(now_ns_);
  next_overdue_ns_ = std::min(uploads_.due_ns(), tombstones_.due_ns());
  for (std::vector<Pinned>& pins : pins_) {
    std::erase_if(pins, [&](const Pinned& pinned) { return now_ns_ - pinned.since_ns >= kPinNs; });
    if (!pins.empty()) next_overdue_ns_ = std::min(next_overdue_ns_, pins.front().since_ns + kPinNs);
  }
}

// --- statistics and admin

ExecutorCounters Executor::counters() const {
  ExecutorCounters all = counters_;
  all.uploads_over_share = uploads_.over_share();
  all.uploads_gave_way = uploads_.gave_way();
  all.purged = store_->purger().removed();
  all.changes_forgotten = changed_keys_.forgotten();
  return all;
}

ExecutorLevels Executor::levels() const {
  return {.tombstone_bytes = tombstones_.bytes(),
          .takes_fills = tombstones_.takes_fills(now_ns_) ? 1u : 0u,
          .purges = store_->purger().is_under_way() ? 1u : 0u,
          .lent_bytes = loans_.bytes(),
          .absent_owners = changed_keys_.owners(),
          .changed_bytes = changed_keys_.bytes()};
}

Result Executor::stats(const Op& op) {
  stat_rows_.clear();
  switch (static_cast<op::StatGroup>(op.group)) {
    case op::StatGroup::kGeneral:
      store_->append_stats(op::StatGroup::kGeneral, stat_rows_);
      append_process_stats();
      return stats_page(static_cast<size_t>(std::min<uint64_t>(op.version, stat_rows_.size())));
    case op::StatGroup::kSizeClasses: {
      store_->append_stats(op::StatGroup::kSizeClasses, stat_rows_);
      // A class may have appeared since the last page: pages of this group go on by id.
      std::ranges::sort(stat_rows_, {}, &op::StatRow::id);
      const auto first = std::ranges::lower_bound(stat_rows_, op.version, {}, &op::StatRow::id);
      return stats_page(static_cast<size_t>(first - stat_rows_.begin()));
    }
  }
  return answer(ResultCode::kUnsupported);
}

// The rows of the statistics, beginning with number `first`.
Result Executor::stats_page(size_t first) const {
  Result page = answer(ResultCode::kOk);
  page.value = std::string_view(reinterpret_cast<const char*>(stat_rows_.data() + first),
                                (stat_rows_.size() - first) * sizeof(op::StatRow));
  page.total_length = static_cast<uint32_t>(page.value.size());
  return page;
}

// Figures of the process, which the store does not know.
void Executor::append_process_stats() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto add = [&](op::StatId id, uint64_t value) { stat_rows_.push_back({static_cast<uint32_t>(id), 0, value}); };
  add(op::StatId::kUptime, (clock_.now_ns() - start_ns_) / 1'000'000'000);
  add(op::StatId::kPid, static_cast<uint64_t>(::getpid()));
  add(op::StatId::kUserUsec, microseconds(usage.ru_utime));
  add(op::StatId::kSystemUsec, microseconds(usage.ru_stime));
}

Result Executor::admin(const Op& op) {
  switch (static_cast<op::AdminVerb>(op.group)) {
    case op::AdminVerb::kResetStats:
      store_->reset_stats();
      return answer(ResultCode::kOk);
    case op::AdminVerb::kCheck:
      return check();
    case op::AdminVerb::kMemoryLimit:
      return answer(set_memory_limit(op.value));
    case op::AdminVerb::kMoveClock:
      return answer(move_clock(op.value));
    case op::AdminVerb::kWarm:
      return answer(warm(op.value));
    case op::AdminVerb::kMember:
      return answer(change_members(op.value));
  }
  return answer(ResultCode::kUnsupported);
}

bool Executor::set_memory(uint64_t whole) {
  if (store_->set_memory_limit(share_of(whole, options_.partition, options_.partitions)) != ResultCode::kOk)
    return false;
  memory_ = whole;
  return true;
}

ResultCode Executor::set_memory_limit(std::string_view bytes) {
  uint64_t whole = 0;
  if (bytes.size() != sizeof whole) return ResultCode::kInvalid;
  std::memcpy(&whole, bytes.data(), sizeof whole);
  const uint64_t before = memory_;
  const ResultCode code = store_->set_memory_limit(share_of(whole, options_.partition, options_.partitions));
  if (code != ResultCode::kOk) return code;
  memory_ = whole;
  if (options_.partition == 0) log_limit(before);  // every partition gets the op: one of them reports it
  return code;
}

void Executor::log_limit(uint64_t before) const {
  static base::LogLimit limit;  // a client can ask for it
  base::log_limited(limit, kMemoryLimitSet, "a client has set the memory limit to {} bytes (cache_memlimit); it was {}",
                    base::field("bytes", memory_), base::field("before", before));
}

ResultCode Executor::move_clock(std::string_view seconds) {
  if (!options_.allow_debugtime) return ResultCode::kUnsupported;
  uint64_t number = 0;
  if (seconds.size() != sizeof number) return ResultCode::kInvalid;
  std::memcpy(&number, seconds.data(), sizeof number);
  return store_->move_clock(number) ? ResultCode::kOk : ResultCode::kInvalid;
}

ResultCode Executor::change_members(std::string_view change) {
  const ResultCode code = member_change_.answer(change, now_ns_);
  next_overdue_ns_ = std::min(next_overdue_ns_, tombstones_.due_ns());
  return code;
}

ResultCode Executor::warm(std::string_view seconds) {
  uint64_t number = 0;
  if (seconds.size() != sizeof number) return ResultCode::kInvalid;
  std::memcpy(&number, seconds.data(), sizeof number);
  if (number > op::kMostWarmSeconds) return ResultCode::kInvalid;
  if (number == 0 && !tombstones_.is_recording()) return ResultCode::kOk;
  if (!tombstones_.open(now_ns_ + number * 1'000'000'000)) return ResultCode::kOutOfMemory;
  // What a flush will hide when it fires must not be filled in again after it.
  if (store_->counts().flush_is_pending) tombstones_.add_all();
  next_overdue_ns_ = std::min(next_overdue_ns_, tombstones_.due_ns());
  return ResultCode::kOk;
}

// It reads all of the store, so release builds refuse it.
Result Executor::check() {
#ifdef EGRET_CHECKS
  complaint_.clear();
  if (check_invariants(*store_, &complaint_)) complaint_.clear();
  complaint_.resize(std::min(complaint_.size(), kMaxComplaint));
  Result result = answer(ResultCode::kOk);
  result.value = complaint_;
  result.total_length = static_cast<uint32_t>(complaint_.size());
  return result;
#else
  return answer(ResultCode::kUnsupported);
#endif
}

}  // namespace egret::backend
