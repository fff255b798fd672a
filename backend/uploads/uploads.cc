#include "uploads/uploads.h"

#include <algorithm>

#include "base/check.h"

namespace egret::backend {

using op::Op;
using op::ResultCode;

namespace {
constexpr uint64_t kLanesPerWork = 8;  // that are looked at for uploads
constexpr uint32_t kNotedPart = 8192;  // bytes of direct parts that count as progress: a trickle must not keep room
}  // namespace

// `failure`: it could not be taken; the commit will say so.
struct Uploads::Upload {
  uint32_t id = 0;
  store::Store::Upload parts;
  ResultCode failure = ResultCode::kOk;
  uint64_t last_part_ns = 0;
  Charge charge;
  uint32_t unnoted = 0;  // bytes of direct parts that last_part_ns does not count yet: too few to be progress

  uint64_t bytes() const { return parts ? parts.total_length() : 0; }
  bool is_of(const Op& part) const { return parts.key() == part.key && parts.total_length() == part.length; }
  void fail(ResultCode why) {
    failure = why;
    parts.release();
    charge.release();
  }
};

struct Uploads::Lane {
  Lane(UserShares::User& its_user, bool writes) : user(its_user), may_write(writes) {}

  UserShares::User& user;
  const bool may_write;
  std::vector<Upload> uploads;

  uint64_t bytes() const {
    uint64_t open = 0;
    for (const Upload& upload : uploads) open += upload.bytes();
    return open;
  }
  Upload* find(const Op& op) {
    const auto at = std::ranges::find(uploads, op.upload_id, &Upload::id);
    return at == uploads.end() ? nullptr : &*at;
  }
  void erase(const Upload& upload) { uploads.erase(uploads.begin() + (&upload - uploads.data())); }
  // The one that has waited longest for a part, of those that hold room; null: none does.
  const Upload* slowest() const {
    const Upload* slowest = nullptr;
    for (const Upload& upload : uploads) {
      if (upload.bytes() > 0 && (slowest == nullptr || upload.last_part_ns < slowest->last_part_ns)) slowest = &upload;
    }
    return slowest;
  }
};

// A lane that needs room for an upload, and what it and its user hold besides that one.
struct Uploads::Asking {
  const Lane& lane;
  uint64_t length;          // of the upload
  uint64_t others_of_lane;  // bytes
  uint64_t others_of_user;  // bytes
};

Uploads::Uploads(store::Store& store, uint32_t item_size_max, const UserShares& shares)
    : store_(store), item_size_max_(item_size_max), shares_(shares) {}

Uploads::~Uploads() = default;

void Uploads::attach(rpc::LaneId lane, UserShares::User& user, bool may_write) {
  if (lane >= lanes_.size()) lanes_.resize(lane + 1);
  lanes_[lane] = std::make_unique<Lane>(user, may_write);
  if (may_write) set_rights(+1);
}

void Uploads::drop(rpc::LaneId lane) {
  if (lanes_[lane]->may_write) set_rights(-1);
  lanes_[lane].reset();
}

// An honest client has values of item_size_max together open while their bytes come, and one more whose bytes it has
// collected (rpc/upload_room.h). So a lane has a right to twice item_size_max.
void Uploads::set_rights(int more) {
  writers_ += more;
  store_.set_upload_rights(uint64_t{2} * item_size_max_ * writers_);
}

// --- the ops

ResultCode Uploads::part(const Op& op, rpc::LaneId id, uint64_t now_ns) {
  Lane& lane = *lanes_[id];
  Upload* upload = lane.find(op);
  if (upload == nullptr) {
    // Only a first part may open one: the rest of an upload that was dropped is not a new one.
    if (op.offset != 0) return ResultCode::kNoUpload;
    if (lane.uploads.size() >= kMostPerLane) return ResultCode::kOutOfMemory;
    upload = open(lane, op, now_ns);
  }
  upload->last_part_ns = now_ns;
  if (upload->failure != ResultCode::kOk) return upload->failure;
  upload->failure = upload->is_of(op) ? upload->parts.write(op.offset, op.value) : ResultCode::kInvalid;
  const uint64_t own = upload->bytes();
  const Asking asking{lane, own, lane.bytes() - own, lane.user.uploads - own};
  while (upload->failure == ResultCode::kOutOfMemory && make_room(asking, now_ns)) {
    upload->failure = upload->parts.write(op.offset, op.value);
  }
  if (upload->failure != ResultCode::kOk) upload->fail(upload->failure);
  return upload->failure;
}

Uploads::Whole Uploads::take(const Op& commit, rpc::LaneId id) {
  Lane& lane = *lanes_[id];
  Upload* const upload = lane.find(commit);
  if (upload == nullptr) return {};
  Whole whole{upload->failure, std::move(upload->parts)};
  lane.erase(*upload);
  return whole;
}

void Uploads::abort(const Op& op, rpc::LaneId id) {
  if (const Upload* const upload = lanes_[id]->find(op); upload != nullptr) lanes_[id]->erase(*upload);
}

bool Uploads::begin_part(const Op& part, rpc::LaneId id, uint64_t now_ns, uint32_t most, op::PartRoom& room) {
  Lane& lane = *lanes_[id];
  Upload* upload = lane.find(part);
  if (upload == nullptr && part.offset == 0) upload = open_if_free(lane, part, now_ns);
  if (upload == nullptr || upload->failure != ResultCode::kOk || !upload->is_of(part)) return false;
  const uint32_t left = part.length - std::min(part.length, part.offset);
  return upload->parts.begin_part(part.offset, std::min(most, left), room) == ResultCode::kOk;
}

void Uploads::end_part(const Op& part, rpc::LaneId id, uint64_t now_ns, uint32_t length) {
  Upload* const upload = lanes_[id]->find(part);
  EGRET_DCHECK(upload != nullptr);  // begin_part() has found it
  upload->parts.end_part(length);
  upload->unnoted += length;
  if (upload->unnoted < kNotedPart && !upload->parts.is_complete()) return;
  upload->last_part_ns = now_ns;
  upload->unnoted = 0;
}

void Uploads::drop_overdue(uint64_t now_ns) {
  due_ns_ = UINT64_MAX;
  for (const auto& lane : lanes_) {
    if (lane == nullptr) continue;
    std::erase_if(lane->uploads, [&](const Upload& upload) { return now_ns - upload.last_part_ns >= kIdleNs; });
    for (const Upload& upload : lane->uploads) due_ns_ = std::min(due_ns_, upload.last_part_ns + kIdleNs);
  }
}

// --- room

// One lane may hold a sixteenth of the memory, or two items of the largest size if that is more: one lane must not take all.
bool Uploads::has_room(const Lane& lane, uint32_t length) const {
  const uint64_t open = lane.bytes();
  return open == 0 || open + length <= std::max<uint64_t>(uint64_t{2} * item_size_max_, store_.memory().limit / 16);
}

bool Uploads::is_in_share(const Lane& lane, uint32_t length) const {
  return shares_.is_within(lane.user.uploads, length, store_.memory().upload_room);
}

Uploads::Upload* Uploads::open(Lane& lane, const Op& op, uint64_t now_ns) {
  const bool is_allowed = is_in_share(lane, op.length);
  if (!is_allowed) ++over_share_;
  const bool may_open = is_allowed && has_room(lane, op.length);
  auto reserved = store_.reserve(op.key, op.length);
  const Asking asking{lane, op.length, lane.bytes(), lane.user.uploads};
  while (reserved.code == ResultCode::kOutOfMemory && may_open && make_room(asking, now_ns)) {
    reserved = store_.reserve(op.key, op.length);
  }
  if (reserved.code == ResultCode::kOk && !may_open) reserved = {ResultCode::kOutOfMemory, {}};
  due_ns_ = std::min(due_ns_, now_ns + kIdleNs);
  const uint32_t charged = reserved.code == ResultCode::kOk ? op.length : 0;
  lane.uploads.push_back(
      {op.upload_id, std::move(reserved.upload), reserved.code, now_ns, Charge(lane.user.uploads, charged)});
  return &lane.uploads.back();
}

// Opens an upload for a direct part, which is executed before commits that its lane has sent earlier. These will make
// room: so nobody gives way now, and nothing is refused for good. Null: nothing is free.
Uploads::Upload* Uploads::open_if_free(Lane& lane, const Op& op, uint64_t now_ns) {
  if (lane.uploads.size() >= kMostPerLane || !has_room(lane, op.length) || !is_in_share(lane, op.length))
    return nullptr;
  auto reserved = store_.reserve(op.key, op.length);
  if (reserved.code != ResultCode::kOk) return nullptr;
  due_ns_ = std::min(due_ns_, now_ns + kIdleNs);
  lane.uploads.push_back(
      {op.upload_id, std::move(reserved.upload), ResultCode::kOk, now_ns, Charge(lane.user.uploads, op.length)});
  return &lane.uploads.back();
}

// All room is taken: drops an upload of another lane, whose commit will be refused. False: none has to give way.
bool Uploads::make_room(const Asking& asking, uint64_t now_ns) {
  if (!drop_slowest(asking, now_ns) && !drop_excess(asking)) return false;
  ++gave_way_;
  return true;
}

// Of the lanes that hold more than the one that asks (not counting what it asks for), the upload whose client has sent
// nothing for longest loses its parts.
bool Uploads::drop_slowest(const Asking& asking, uint64_t now_ns) {
  constexpr uint64_t kLookAgainNs = 10'000'000;
  if (now_ns < no_slow_one_until_ns_) return false;
  search_work_ += lanes_.size() / kLanesPerWork;
  Lane* at = nullptr;
  uint64_t before_ns = now_ns - std::min(now_ns, kSlowNs);
  for (const auto& lane : lanes_) {
    if (lane == nullptr || lane.get() == &asking.lane || lane->bytes() <= asking.others_of_lane) continue;
    const Upload* const slowest = lane->slowest();
    if (slowest == nullptr || slowest->last_part_ns > before_ns) continue;
    at = lane.get();
    before_ns = slowest->last_part_ns;
  }
  if (at == nullptr) {
    no_slow_one_until_ns_ = now_ns + kLookAgainNs;
    return false;
  }
  at->erase(*at->slowest());
  return true;
}

// Nobody is slow. Each lane has a right to item_size_max: what others hold beyond it gives way, and then what the user
// who holds most has beyond the user who asks.
bool Uploads::drop_excess(const Asking& asking) {
  if (asking.others_of_lane + asking.length > item_size_max_) return false;
  search_work_ += lanes_.size() / kLanesPerWork;
  Lane* from = find_excess(asking, nullptr);
  if (from == nullptr) {
    const UserShares::User* const largest = shares_.largest_but(asking.lane.user);
    if (largest == nullptr) return false;
    from = find_excess(asking, largest);
    if (from == nullptr) return false;
    if (largest->uploads - from->slowest()->bytes() < asking.others_of_user + asking.length) return false;
  }
  from->erase(*from->slowest());
  return true;
}

// The lane that holds most: of this user, or if it is null, of those that hold more than item_size_max. Null: there is
// none.
Uploads::Lane* Uploads::find_excess(const Asking& asking, const UserShares::User* of_user) const {
  uint64_t most = of_user == nullptr ? item_size_max_ : 0;
  Lane* found = nullptr;
  for (const auto& lane : lanes_) {
    if (lane == nullptr || lane.get() == &asking.lane || (of_user != nullptr && &lane->user != of_user)) continue;
    const uint64_t held = lane->bytes();
    if (held <= most) continue;
    most = held;
    found = lane.get();
  }
  return found;
}

}  // namespace egret::backend
