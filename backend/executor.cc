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
constexpr uint64_t kNsPerWork = 100;   // of what the store counts (store/work.h)
constexpr uint64_t kCommitWork = 64;   // a short upload that is appended is copied, up to 64 KiB
constexpr uint64_t kLanesPerWork = 8;  // that are looked at for uploads
constexpr uint32_t kNotedPart = 8192;  // bytes of direct parts that count as progress: a trickle must not keep room

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

// What a pin or an upload takes of its user's share, for as long as it lives.
class Executor::Charge {
 public:
  Charge() = default;
  Charge(uint64_t& held, uint64_t bytes) : held_(&held), bytes_(bytes) { held += bytes; }
  Charge(Charge&& other) noexcept : held_(std::exchange(other.held_, nullptr)), bytes_(other.bytes_) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this != &other) {
      release();
      held_ = std::exchange(other.held_, nullptr);
      bytes_ = other.bytes_;
    }
    return *this;
  }
  ~Charge() { release(); }
  void release() {
    if (held_ != nullptr) *held_ -= bytes_;
    held_ = nullptr;
  }

 private:
  uint64_t* held_ = nullptr;
  uint64_t bytes_ = 0;
};

// A value that a lane is sending in parts. `failure`: it could not be taken; the commit will say so.
struct Executor::Upload {
  uint32_t id = 0;
  store::Store::Upload parts;
  ResultCode failure = ResultCode::kOk;
  uint64_t last_part_ns = 0;
  Charge charge;
  uint32_t unnoted = 0;  // bytes that came as direct parts since last_part_ns

  uint64_t bytes() const { return parts ? parts.total_length() : 0; }
  bool is_of(const Op& part) const { return parts.key() == part.key && parts.total_length() == part.length; }
  void fail(ResultCode why) {
    failure = why;
    parts.release();
    charge.release();
  }
};

// What a lane has beyond a single op.
struct Executor::LaneState {
  struct Pinned {
    store::Store::Pin pin;
    uint64_t since_ns = 0;
    Charge charge;
  };
  std::vector<Upload> uploads;
  std::vector<Pinned> pins;  // oldest first

  uint64_t upload_bytes() const {
    uint64_t open = 0;
    for (const Upload& upload : uploads) open += upload.bytes();
    return open;
  }
  // The one that has waited longest for a part, of those that hold room; end(): none does.
  std::vector<Upload>::iterator slowest_upload() {
    auto slowest = uploads.end();
    for (auto at = uploads.begin(); at != uploads.end(); ++at) {
      if (at->bytes() > 0 && (slowest == uploads.end() || at->last_part_ns < slowest->last_part_ns)) slowest = at;
    }
    return slowest;
  }
};

// A lane that needs room for an upload, and what it and its user hold besides that one.
struct Executor::Asking {
  const LaneState& lane;
  UserUse& user;
  uint64_t length;          // of the upload
  uint64_t others_of_lane;  // bytes
  uint64_t others_of_user;  // bytes
};

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
      share_of_user_(options.share_of_user),
      tombstones_(options.memory),
      member_change_(store_->purger(), tombstones_),
      changed_keys_(options.memory),
      start_ns_(clock.now_ns()) {
  kept_.reserve(kMaxKept);
}

// Handles into the store end before it does. Whoever has borrowed of it is gone.
Executor::~Executor() {
  let_go();
  loans_.take_back();
  EGRET_DCHECK(loans_.bytes() == 0);
  lanes_.clear();
}

// --- a batch

void Executor::begin_round() {
  now_ns_ = clock_.now_ns();
  store_->begin_pass(now_ns_);
  loans_.take_back();
  if (now_ns_ >= next_overdue_ns_) drop_overdue();
}

bool Executor::idle_step() {
  begin_round();
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
      return abort(op, op_lanes_[index]);
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
                        std::exchange(search_work_, 0);
  if (work > 0) [[unlikely]]
    result.work = static_cast<uint16_t>(std::min<uint64_t>(work, UINT16_MAX));
  return result;
}

// --- what spans several ops of a lane

Executor::LaneState& Executor::lane_state(rpc::LaneId lane) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  if (lanes_[lane] == nullptr) lanes_[lane] = std::make_unique<LaneState>();
  return *lanes_[lane];
}

void Executor::lane_attached(rpc::LaneId lane, const rpc::LaneBinding& binding) {
  if (lane >= access_.size()) access_.resize(lane + 1);
  if (binding.user >= users_.size()) users_.resize(binding.user + 1);
  std::unique_ptr<UserUse>& user = users_[binding.user];
  if (user == nullptr) user = std::make_unique<UserUse>();
  if (user->lanes++ == 0) ++users_attached_;
  count_lanes(+1);
  access_[lane] = {binding.rights, binding.knows_rights ? ResultCode::kForbidden : ResultCode::kUnsupported,
                   user.get()};
}

void Executor::lane_dropped(rpc::LaneId lane) {
  loans_.revoke(lane);
  if (lane < lanes_.size()) lanes_[lane].reset();
  if (lane >= access_.size()) return;
  const Access gone = std::exchange(access_[lane], {});
  if (gone.user == nullptr) return;
  if (--gone.user->lanes == 0) --users_attached_;
  count_lanes(-1);
}

// An honest client has values of item_size_max together open while their bytes come, and one more whose bytes it has
// collected (rpc/upload_room.h). So a lane has a right to twice item_size_max.
void Executor::count_lanes(int more) {
  lanes_attached_ += more;
  store_->set_upload_rights(uint64_t{2} * options_.item_size_max * lanes_attached_);
}

// The item is pinned before it is read, because the get itself may make it expire.
Result Executor::get(const Op& op, size_t index) {
  if (!(op.options & op::kPin)) return store_->execute(index);
  auto pin = store_->pin(op.key, op.hash);
  const Result result = store_->execute(index);
  if (pin && pin.length() > 0 && result.code == ResultCode::kHit && pin.version() == result.version) {
    UserUse& user = *access_[op_lanes_[index]].user;
    if (!is_within_share(user.pins, pin.length(), store_->memory().pin_room)) {
      // As if there were no memory for it: its chunks are of the present version, or start again.
      ++counters_.pins_over_share;
      return result;
    }
    LaneState& lane = lane_state(op_lanes_[index]);
    if (lane.pins.size() == kMaxPinsPerLane) lane.pins.erase(lane.pins.begin());
    const uint32_t length = pin.length();
    lane.pins.push_back({std::move(pin), now_ns_, Charge(user.pins, length)});
    next_overdue_ns_ = std::min(next_overdue_ns_, now_ns_ + kPinNs);
  }
  return result;
}

Result Executor::chunk(const Op& op, size_t index) {
  if (!(op.options & op::kPin)) return store_->execute(index);
  LaneState& lane = lane_state(op_lanes_[index]);
  const auto at = std::ranges::find(lane.pins, op.version, [](const auto& pinned) { return pinned.pin.version(); });
  // Not pinned (no memory for it, too late): perhaps it is still the present version.
  if (at == lane.pins.end()) return store_->execute(index);
  return at->pin.chunk(op.offset, op.length);
}

// Pins the version that a get or a chunk has just been answered with. None: the store has no room for a pin, or no longer
// has that version.
store::Store::Pin Executor::pin_of(const Op& op, rpc::LaneId lane, uint64_t version) {
  if (op.code == OpCode::kChunk && (op.options & op::kPin) != 0) {
    const auto& pins = lane_state(lane).pins;
    const auto at = std::ranges::find(pins, version, [](const auto& pinned) { return pinned.pin.version(); });
    if (at != pins.end()) return at->pin.share();
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
  if (result.total_length > store::Store::Pin::kMostCopied) return {};                  // see Pin::keeps_bytes()
  if (loans_.bytes() + result.total_length > memory_ / options_.partitions) return {};  // values, many times each
  auto pin = store_->pin(op.key, op.hash, store::PinUse::kLend);
  if (!pin || pin.version() != result.version || !pin.keeps_bytes()) return {};
  ++counters_.lent;
  return loans_.lend(std::move(pin), op_lanes_[index]);
}

Executor::Upload* Executor::find_upload(LaneState& lane, const Op& op) {
  const auto at = std::ranges::find(lane.uploads, op.upload_id, &Upload::id);
  return at == lane.uploads.end() ? nullptr : &*at;
}

// What one session may hold of the room for uploads: a sixteenth of the memory, or two items of the largest size.
bool Executor::has_upload_room(const LaneState& lane, uint32_t length) const {
  const uint64_t open = lane.upload_bytes();
  return open == 0 ||
         open + length <= std::max<uint64_t>(uint64_t{2} * options_.item_size_max, store_->memory().limit / 16);
}

// A user that is alone may hold all of the room; beside others its share, or else one value, however large.
bool Executor::is_within_share(uint64_t held, uint64_t more, uint64_t room) const {
  if (users_attached_ <= 1 || held == 0) return true;
  return held + more <= room / 100 * share_of_user_;
}

Executor::Upload& Executor::open_upload(LaneState& lane, UserUse& user, const Op& op) {
  const bool is_in_share = is_within_share(user.uploads, op.length, store_->memory().upload_room);
  if (!is_in_share) ++counters_.uploads_over_share;
  const bool may_open = is_in_share && has_upload_room(lane, op.length);
  auto reserved = store_->reserve(op.key, op.length);
  const Asking asking{lane, user, op.length, lane.upload_bytes(), user.uploads};
  while (reserved.code == ResultCode::kOutOfMemory && may_open && make_upload_room(asking)) {
    reserved = store_->reserve(op.key, op.length);
  }
  if (reserved.code == ResultCode::kOk && !may_open) reserved = {ResultCode::kOutOfMemory, {}};
  next_overdue_ns_ = std::min(next_overdue_ns_, now_ns_ + kUploadIdleNs);
  const uint32_t charged = reserved.code == ResultCode::kOk ? op.length : 0;
  lane.uploads.push_back(
      {op.upload_id, std::move(reserved.upload), reserved.code, now_ns_, Charge(user.uploads, charged)});
  return lane.uploads.back();
}

// All room is taken: drops an upload of another lane, whose commit will be refused. False: none has to give way.
bool Executor::make_upload_room(const Asking& asking) {
  if (!drop_slowest_upload(asking) && !drop_excess_upload(asking)) return false;
  ++counters_.uploads_gave_way;
  return true;
}

// Of the lanes that hold more than the one that asks (not counting what it asks for), the upload whose client has sent
// nothing for longest loses its parts.
bool Executor::drop_slowest_upload(const Asking& asking) {
  constexpr uint64_t kLookAgainNs = 10'000'000;
  if (now_ns_ < no_slow_upload_until_ns_) return false;
  search_work_ += lanes_.size() / kLanesPerWork;
  LaneState* at = nullptr;
  uint64_t before_ns = now_ns_ - std::min(now_ns_, kUploadSlowNs);
  for (const auto& lane : lanes_) {
    if (lane == nullptr || lane.get() == &asking.lane || lane->upload_bytes() <= asking.others_of_lane) continue;
    const auto slowest = lane->slowest_upload();
    if (slowest == lane->uploads.end() || slowest->last_part_ns > before_ns) continue;
    at = lane.get();
    before_ns = slowest->last_part_ns;
  }
  if (at == nullptr) {
    no_slow_upload_until_ns_ = now_ns_ + kLookAgainNs;
    return false;
  }
  at->uploads.erase(at->slowest_upload());
  return true;
}

// Nobody is slow. Each lane has a right to item_size_max: what others hold beyond it gives way, and then what the user
// who holds most has beyond the user who asks. Nobody loses to a lane what that lane would lose to it in turn.
bool Executor::drop_excess_upload(const Asking& asking) {
  if (asking.others_of_lane + asking.length > options_.item_size_max) return false;
  search_work_ += lanes_.size() / kLanesPerWork;
  rpc::LaneId from = find_excess(asking, nullptr);
  if (from == lanes_.size()) {
    UserUse* const largest = largest_user(&asking.user);
    if (largest == nullptr) return false;
    from = find_excess(asking, largest);
    if (from == lanes_.size()) return false;
    const uint64_t taken = lanes_[from]->slowest_upload()->bytes();
    if (largest->uploads - taken < asking.others_of_user + asking.length) return false;
  }
  lanes_[from]->uploads.erase(lanes_[from]->slowest_upload());
  return true;
}

// The lane that holds most: of this user, or if it is null, of those that hold more than item_size_max. lanes_.size():
// there is none.
rpc::LaneId Executor::find_excess(const Asking& asking, UserUse* of_user) const {
  uint64_t most = of_user == nullptr ? options_.item_size_max : 0;
  auto found = static_cast<rpc::LaneId>(lanes_.size());
  for (rpc::LaneId id = 0; id < lanes_.size(); ++id) {
    const LaneState* const lane = lanes_[id].get();
    if (lane == nullptr || lane == &asking.lane || (of_user != nullptr && access_[id].user != of_user)) continue;
    const uint64_t held = lane->upload_bytes();
    if (held <= most) continue;
    most = held;
    found = id;
  }
  return found;
}

// Of the other users, the one whose uploads hold most; null: nobody else has any.
Executor::UserUse* Executor::largest_user(const UserUse* asking) const {
  UserUse* largest = nullptr;
  for (const auto& user : users_) {
    if (user == nullptr || user.get() == asking || user->uploads == 0) continue;
    if (largest == nullptr || user->uploads > largest->uploads) largest = user.get();
  }
  return largest;
}

// Opens an upload for a direct part, which is executed before commits that its lane has sent earlier. These will make
// room: so nobody gives way now, and nothing is refused for good. Null: nothing is free.
Executor::Upload* Executor::open_if_free(const Op& op, rpc::LaneId lane_id) {
  LaneState& lane = lane_state(lane_id);
  UserUse& user = *access_[lane_id].user;
  if (lane.uploads.size() >= kMaxUploadsPerLane || !has_upload_room(lane, op.length) ||
      !is_within_share(user.uploads, op.length, store_->memory().upload_room)) {
    return nullptr;
  }
  auto reserved = store_->reserve(op.key, op.length);
  if (reserved.code != ResultCode::kOk) return nullptr;
  next_overdue_ns_ = std::min(next_overdue_ns_, now_ns_ + kUploadIdleNs);
  lane.uploads.push_back(
      {op.upload_id, std::move(reserved.upload), ResultCode::kOk, now_ns_, Charge(user.uploads, op.length)});
  return &lane.uploads.back();
}

Result Executor::upload_part(const Op& op, rpc::LaneId lane_id) {
  LaneState& lane = lane_state(lane_id);
  Upload* upload = find_upload(lane, op);
  if (upload == nullptr) {
    // Only a first part may open one: the rest of an upload that was dropped is not a new one.
    if (op.offset != 0) return answer(ResultCode::kNoUpload);
    if (lane.uploads.size() >= kMaxUploadsPerLane) return answer(ResultCode::kOutOfMemory);
    upload = &open_upload(lane, *access_[lane_id].user, op);
  }
  upload->last_part_ns = now_ns_;
  if (upload->failure != ResultCode::kOk) return answer(upload->failure);
  upload->failure = upload->is_of(op) ? upload->parts.write(op.offset, op.value) : ResultCode::kInvalid;
  UserUse& user = *access_[lane_id].user;
  const uint64_t own = upload->bytes();
  const Asking asking{lane, user, own, lane.upload_bytes() - own, user.uploads - own};
  while (upload->failure == ResultCode::kOutOfMemory && make_upload_room(asking)) {
    upload->failure = upload->parts.write(op.offset, op.value);
  }
  if (upload->failure != ResultCode::kOk) upload->fail(upload->failure);
  return answer(upload->failure);
}

// A part that cannot be taken gets no room; the client sends it as an op, whose answer says why.
bool Executor::DirectLane::begin_part(const Op& part, uint32_t most, op::PartRoom& room) {
  executor_.begin_round();
  const ExecutorOptions& options = executor_.options_;
  const uint64_t hash = op::hash_key(part.key, options.hash_seed);
  if (op::partition_of(hash, options.partitions) != options.partition || !executor_.may(part, lane_)) return false;
  Upload* upload = executor_.find_upload(executor_.lane_state(lane_), part);
  if (upload == nullptr && part.offset == 0) upload = executor_.open_if_free(part, lane_);
  if (upload == nullptr || upload->failure != ResultCode::kOk || !upload->is_of(part)) return false;
  const uint32_t left = part.length - std::min(part.length, part.offset);
  return upload->parts.begin_part(part.offset, std::min(most, left), room) == ResultCode::kOk;
}

void Executor::DirectLane::end_part(const Op& part, uint32_t length) {
  Upload* const upload = executor_.find_upload(executor_.lane_state(lane_), part);
  EGRET_DCHECK(upload != nullptr);  // begin_part() has found it
  upload->parts.end_part(length);
  upload->unnoted += length;
  if (upload->unnoted >= kNotedPart || upload->parts.is_complete()) {
    upload->last_part_ns = executor_.now_ns_;
    upload->unnoted = 0;
  }
  executor_.counters_.received_in_place += length;
}

Result Executor::commit(const Op& op, rpc::LaneId lane_id) {
  LaneState& lane = lane_state(lane_id);
  Upload* upload = find_upload(lane, op);
  if (upload == nullptr) return store_->refuse_set(op, ResultCode::kOutOfMemory);
  Upload taken = std::move(*upload);
  lane.uploads.erase(lane.uploads.begin() + (upload - lane.uploads.data()));
  if (taken.failure != ResultCode::kOk) return store_->refuse_set(op, taken.failure);
  if (taken.parts.key() != op.key) return answer(ResultCode::kInvalid);
  if (op.mode != op::SetMode::kFill) return taken.parts.commit(op);
  return allows_fill(op) ? counted_fill(taken.parts.commit(op)) : answer(ResultCode::kNotStored);
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

Result Executor::abort(const Op& op, rpc::LaneId lane_id) {
  LaneState& lane = lane_state(lane_id);
  std::erase_if(lane.uploads, [&](const Upload& upload) { return upload.id == op.upload_id; });
  return answer(ResultCode::kOk);
}

// Runs when the nearest deadline has passed; a lane that is gone has taken its uploads and pins along.
void Executor::drop_overdue() {
  next_overdue_ns_ = UINT64_MAX;
  for (const auto& lane : lanes_) {
    if (lane == nullptr) continue;
    std::erase_if(lane->pins, [&](const auto& pinned) { return now_ns_ - pinned.since_ns >= kPinNs; });
    if (!lane->pins.empty()) next_overdue_ns_ = std::min(next_overdue_ns_, lane->pins.front().since_ns + kPinNs);
    std::erase_if(lane->uploads, [&](const Upload& upload) { return now_ns_ - upload.last_part_ns >= kUploadIdleNs; });
    for (const Upload& upload : lane->uploads) {
      next_overdue_ns_ = std::min(next_overdue_ns_, upload.last_part_ns + kUploadIdleNs);
    }
  }
  tombstones_.forget_if_over(now_ns_);
  next_overdue_ns_ = std::min(next_overdue_ns_, tombstones_.due_ns());
}

// --- statistics and admin

ExecutorCounters Executor::counters() const {
  ExecutorCounters all = counters_;
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
