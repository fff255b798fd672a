#include "rpc/large/large_set.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "wire/codec.h"

namespace egret::rpc {

using op::Op;
using op::OpCode;
using op::ResultCode;

namespace {
constexpr uint32_t kWorthSending = 8192;  // bytes: such a part is sent although it does not fill a slot
constexpr size_t kMostDirect = 1 << 20;   // bytes that one send() copies into the store; the rest goes by slots, whose
                                          // credit bounds how long other clients wait
}  // namespace

LargeSet::LargeSet(ClientSession& session, const Op& store, uint32_t total, uint32_t id)
    : session_(session),
      generation_(session.lanes().generation()),
      key_(store.key),
      store_(store),
      total_(total),
      id_(id) {
  store_.key = key_;
  store_.value = {};
  session.counters().long_values.add();
}

bool LargeSet::enter() {
  if (entered_ || !goes_on()) return true;
  UploadRoom& room = session_->lanes().uploads(store_.hash);
  if (!room.enter(this, total_)) return false;
  if (room.is_anybody_waiting()) session_->credit().announce();  // there may be room for the next one, too
  moved_ns_ = now_ns(*session_);
  return entered_ = true;
}

bool LargeSet::enter_whole() {
  return !goes_on() || session_->lanes().uploads(store_.hash).enter_whole(this);
}

void LargeSet::wait_for_room() {
  if (goes_on()) session_->lanes().uploads(store_.hash).wait(this);
}

void LargeSet::leave() {
  if (!same_session()) return;
  session_->lanes().uploads(store_.hash).leave(this);
  session_->credit().announce();
}

// The parts are forgotten at the backend, and what the client still sends is dropped.
// Its room is free when the abort is on its way, so that parts of others do not overtake it.
void LargeSet::lose_room() {
  lost_room_ = true;
  abort_pending_ = opened_;
  try_abort();
  if (!abort_pending_) leave();
}

bool LargeSet::is_worth_sending(size_t available) const {
  return goes_directly() || available >= std::min<size_t>({left(), max_part(), kWorthSending});
}

uint32_t LargeSet::max_part() const {
  return same_session() ? wire::max_upload_part(session_->grant().layout, key_.size()) : total_;
}

ResultCode LargeSet::failure() const {
  if (!same_session()) return ResultCode::kSessionLost;
  return lost_room_ ? ResultCode::kOutOfMemory : ResultCode::kOk;
}

Op LargeSet::part(std::string_view bytes) const {
  Op part;
  part.code = OpCode::kUpload;
  part.key = key_;
  part.upload_id = id_;
  part.offset = sent_;
  part.length = std::min(total_, op::kMaxValueLength);
  part.value = bytes;
  return part;
}

bool LargeSet::announce() {
  if (opened_ || !same_session()) return true;
  if (!session_->lanes().uploads(store_.hash).announce(this)) return false;
  Op opening = part({});
  opening.length = op::kMaxValueLength;  // more than fits any item: refused, however close to its limit the value is
  return opened_ = append(opening);
}

// Appends an op of this upload to the lane's open message; on_result() gets its result. False: there is no credit.
bool LargeSet::append(const Op& op) {
  if (!session_->lanes().of(store_.hash).append(op, this)) return false;
  session_->lanes().uploads(store_.hash).sent();
  ++in_flight_;
  return true;
}

// Not while parts of the lane are in slots, whosever they are: the backend has not executed them yet, and what is written now would
// take the store's room before them.
bool LargeSet::goes_directly() const {
  return goes_on() && direct_store() != nullptr && !session_->lanes().has_parts_in_slots(store_.hash);
}

size_t LargeSet::send(std::string_view bytes) {
  size_t taken = 0;
  while (taken < bytes.size()) {
    if (!goes_on()) {
      sent_ += static_cast<uint32_t>(bytes.size() - taken);
      return bytes.size();
    }
    const size_t written = taken < kMostDirect ? write_directly(bytes.substr(taken, kMostRoom)) : 0;
    if (written > 0) {
      taken += written;
      continue;
    }
    const Op next = part(bytes.substr(taken, max_part()));
    backend_is_slow_ = in_flight_ >= kMaxInFlight || !append(next);
    if (backend_is_slow_) return taken;
    opened_ = true;
    taken += next.value.size();
    sent_ += static_cast<uint32_t>(next.value.size());
    moved_ns_ = now_ns(*session_);
  }
  return taken;
}

bool LargeSet::begin_part(uint32_t most, op::PartRoom& room) {
  if (!goes_on()) return false;
  if (direct_store() == nullptr) return begin_in_slots(most, room);
  if (!goes_directly()) return false;
  opened_ = true;
  return direct_store()->begin_part(part({}), most, room);
}

bool LargeSet::begin_in_slots(uint32_t most, op::PartRoom& room) {
  room.least = std::min({left(), max_part(), kWorthSending});
  ClientLane& lane = session_->lanes().of(store_.hash);
  value_room(lane, part({}), std::min(most, left()), room.least, kMaxInFlight - in_flight_, room);
  return room.length >= room.least;
}

void LargeSet::end_in_slots(const op::PartRoom& room, uint32_t length) {
  for (size_t i = 0; length > 0; ++i) {
    const std::string_view bytes(room.pieces[i].data(), std::min<size_t>(length, room.pieces[i].size()));
    const bool is_taken = append(part(bytes));
    EGRET_DCHECK(is_taken);  // value_room() has looked for credit
    if (!is_taken) return lose_room();
    opened_ = true;
    sent_ += static_cast<uint32_t>(bytes.size());
    length -= static_cast<uint32_t>(bytes.size());
    backend_is_slow_ = false;
    moved_ns_ = now_ns(*session_);
  }
}

void LargeSet::end_part(const op::PartRoom& room, uint32_t length) {
  if (direct_store() == nullptr) return end_in_slots(room, length);  // as when it began
  direct_store()->end_part(part({}), length);
  sent_ += length;
  unnoted_ += length;
  backend_is_slow_ = false;
  if (unnoted_ < kWorthSending && left() > 0) return;  // a byte now and then is not progress
  unnoted_ = 0;
  moved_ns_ = now_ns(*session_);
}

size_t LargeSet::write_directly(std::string_view bytes) {
  op::PartRoom room;
  if (!goes_directly() || !begin_part(static_cast<uint32_t>(bytes.size()), room)) return 0;
  const std::span<const std::span<char>> pieces(room.pieces.data(), room.count);
  for (const std::span<char> piece : pieces) {
    std::memcpy(piece.data(), bytes.data(), piece.size());
    bytes.remove_prefix(piece.size());
  }
  end_part(room, room.length);
  return room.length;
}

bool LargeSet::commit(const Op& store, Waiter* waiter) {
  if (abort_pending_) return false;  // it would overtake the abort
  Op commit = store;
  commit.key = key_;
  commit.value = {};
  commit.code = OpCode::kCommit;
  commit.upload_id = id_;
  return session_->lanes().of(store_.hash).append(commit, waiter);
}

// Later uploads of the lane are executed after this one's commit, so its room is free at once. Direct parts come before
// it, but take only what is free meanwhile.
void LargeSet::release() {
  leave();
  released_ = true;
  delete_if_done();
}

void LargeSet::abandon() {
  released_ = true;
  if (!lost_room_) {  // else its abort is on its way, or waits for credit
    leave();
    abort_pending_ = opened_;
    try_abort();
  }
  delete_if_done();
}

void LargeSet::try_abort() {
  if (!abort_pending_) return;
  if (!same_session()) {
    abort_pending_ = false;  // the parts went with the session
    return;
  }
  Op abort;
  abort.code = OpCode::kAbort;
  abort.key = key_;
  abort.upload_id = id_;
  if (append(abort)) {
    abort_pending_ = false;
  } else {
    session_->credit().wait(this);
  }
}

void LargeSet::on_credit() {
  try_abort();
  if (lost_room_ && !abort_pending_) leave();
  delete_if_done();
}

// A part that was refused (too large, no memory) makes the commit fail with that reason: nothing to keep here.
void LargeSet::on_result(const op::Result&) {
  if (same_session()) session_->lanes().uploads(store_.hash).answered();
  --in_flight_;
  delete_if_done();
}

void LargeSet::delete_if_done() {
  if (released_ && in_flight_ == 0 && !abort_pending_) delete this;
}

}  // namespace egret::rpc
