// Uploads: values that arrive in parts. Until the commit, the upload owns their pages and chunks, and no item does.
#include <algorithm>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;

namespace {
// Uploads are promised more than they may take together: a client that says how much it will send, and does not send
// it, takes little. One that sends after all, and finds the rest taken, is refused then.
constexpr uint64_t kPromisedPerTaken = 4;

uint64_t rounded_to_chunks(uint64_t bytes) {
  return (bytes + kChunkSize - 1) / kChunkSize * kChunkSize;
}
}  // namespace

uint64_t Store::large_budget() const {
  return std::max(limit_.bytes() / 8, rounded_to_chunks(config_.item_size_max) + kPageSize);
}

uint64_t Store::upload_room() const {
  const uint64_t limit = limit_.bytes();
  const uint64_t pinned = items_.pins.charged(PinUse::kRead) + items_.pins.charged(PinUse::kLend);
  const uint64_t most = std::min(limit / 2, limit / 4 * 3 - std::min(limit / 2, pinned));
  return std::max(large_budget(), std::min(most, upload_rights_));
}

Store::Reservation Store::reserve(std::string_view key, uint32_t total_length) {
  EGRET_ASSERT_OWNER(owner_);
  if (key.empty() || key.size() > op::kMaxKeyLength) return {ResultCode::kInvalid, {}};
  if (is_too_large(key, 0, total_length)) return {ResultCode::kTooLarge, {}};
  const uint64_t bytes = std::max(rounded_to_chunks(total_length), kChunkSize);
  if (upload_bytes_ + bytes > kPromisedPerTaken * upload_room()) return {ResultCode::kOutOfMemory, {}};
  return {ResultCode::kOk, Upload(this, key, total_length, bytes)};
}

Store::Upload::Upload(Store* store, std::string_view key, uint32_t total_length, uint64_t promised)
    : store_(store), key_(key), total_length_(total_length), promised_(promised), pieces_(store->items_.pages) {
  pieces_.expect(total_length);
  store->upload_bytes_ += promised;
}

Store::Upload::Upload(Upload&& other) noexcept {
  *this = std::move(other);
}

Store::Upload& Store::Upload::operator=(Upload&& other) noexcept {
  if (this != &other) {
    release();
    store_ = std::exchange(other.store_, nullptr);
    key_ = std::move(other.key_);
    total_length_ = std::exchange(other.total_length_, 0);
    promised_ = other.promised_;
    pieces_ = std::move(other.pieces_);
  }
  return *this;
}

op::Result Store::Upload::commit(const op::Op& commit) {
  Upload taken = std::move(*this);
  if (!taken || !taken.is_complete()) return answer(ResultCode::kNoUpload);
  Store& store = *taken.store_;
  EGRET_ASSERT_OWNER(store.owner_);
  if (taken.key() != commit.key) return answer(ResultCode::kInvalid);
  if (store.reclaimer_.owes()) store.reclaimer_.pay_debt();
  const op::Result result = store.set(commit, Slot{}, &taken);
  store.items_.end_step();
  return result;
}

void Store::Upload::release() {
  if (store_ == nullptr) return;
  const Pieces dropped = take_pieces();
  store_->items_.work.extents(dropped.extents());
  store_->items_.end_step();
  store_ = nullptr;
}

Pieces Store::Upload::take_pieces() {
  store_->upload_bytes_ -= std::exchange(promised_, 0);
  store_->upload_chunks_ -= pieces_.chunks();
  return std::move(pieces_);
}

// Whether so many more bytes may come now; then there are pages for them.
ResultCode Store::Upload::admit(uint32_t offset, size_t length) {
  if (store_ == nullptr || offset != received() || length > total_length_ - received()) return ResultCode::kInvalid;
  const uint64_t taken = store_->upload_chunks_ * kChunkSize;
  const uint64_t own = rounded_to_chunks(received() + length) - rounded_to_chunks(received());
  if (taken + own > store_->upload_room()) return ResultCode::kOutOfMemory;
  if (store_->reclaimer_.owes()) store_->reclaimer_.pay_debt();
  const bool has_room = store_->reclaimer_.ensure_room(0, pieces_.pages_needed(static_cast<uint32_t>(length)));
  store_->items_.end_step();
  return has_room ? ResultCode::kOk : ResultCode::kOutOfMemory;
}

void Store::Upload::count_chunks(uint32_t before) {
  const uint32_t more = pieces_.chunks() - before;
  store_->upload_chunks_ += more;
  store_->reclaimer_.owe(more * static_cast<uint32_t>(kChunkSize / kUnit));
}

ResultCode Store::Upload::write(uint32_t offset, std::string_view bytes) {
  if (const ResultCode code = admit(offset, bytes.size()); code != ResultCode::kOk) return code;
  const uint32_t before = pieces_.chunks();
  pieces_.write(bytes);
  count_chunks(before);
  return ResultCode::kOk;
}

ResultCode Store::Upload::begin_part(uint32_t offset, uint32_t length, op::PartRoom& room) {
  if (const ResultCode code = admit(offset, length); code != ResultCode::kOk) return code;
  chunks_before_part_ = pieces_.chunks();
  before_part_ = received();
  pieces_.extend(length, room);
  return ResultCode::kOk;
}

void Store::Upload::end_part(uint32_t length) {
  pieces_.cut(before_part_ + length);
  count_chunks(chunks_before_part_);
}

}  // namespace egret::store
