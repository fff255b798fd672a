// Values in parts, and versions that somebody still reads: blocks that are in use without being in the index.
#include <algorithm>
#include <cstring>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;

uint64_t Store::large_budget() const {
  const uint64_t one_item = Heap::rounded(item_units(op::kMaxKeyLength, true, config_.item_size_max)) * kUnit;
  return std::max(config_.memory_limit / 8, one_item);
}

// --- Uploads

Store::Reservation Store::reserve(std::string_view key, uint64_t hash, uint32_t total_length) {
  EGRET_ASSERT_OWNER(owner_);
  (void)hash;
  if (key.empty() || key.size() > op::kMaxKeyLength) return {ResultCode::kInvalid, {}};
  if (is_too_large(key, 0, total_length)) return {ResultCode::kTooLarge, {}};
  const uint64_t bytes = Heap::rounded(item_units(key.size(), true, total_length)) * kUnit;
  if (upload_bytes_ + bytes > large_budget()) return {ResultCode::kOutOfMemory, {}};
  const ItemRef ref = make_item(key, true, total_length, {});
  if (!ref) return {ResultCode::kOutOfMemory, {}};
  upload_bytes_ += item(ref).units * kUnit;
  return {ResultCode::kOk, Upload(this, ref)};
}

op::Result Store::commit(Upload&& upload, const op::Op& commit) {
  EGRET_ASSERT_OWNER(owner_);
  Upload taken = std::move(upload);
  if (!taken || !taken.is_complete()) return answer(ResultCode::kNoUpload);
  if (taken.key() != commit.key) return answer(ResultCode::kInvalid);
  return set(commit, &taken);
}

void Store::end_upload(ItemRef ref) {
  upload_bytes_ -= item(ref).units * kUnit;
  heap_.release(ref);
}

Store::Upload::Upload(Upload&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)), ref_(other.ref_), received_(other.received_) {}

Store::Upload& Store::Upload::operator=(Upload&& other) noexcept {
  if (this != &other) {
    release();
    store_ = std::exchange(other.store_, nullptr);
    ref_ = other.ref_;
    received_ = other.received_;
  }
  return *this;
}

void Store::Upload::release() {
  if (store_ != nullptr) std::exchange(store_, nullptr)->end_upload(ref_);
}

bool Store::Upload::write(uint32_t offset, std::string_view bytes) {
  if (store_ == nullptr || offset != received_ || bytes.size() > total_length() - received_) return false;
  if (!bytes.empty()) std::memcpy(store_->item(ref_).value_data() + received_, bytes.data(), bytes.size());
  received_ += static_cast<uint32_t>(bytes.size());
  return true;
}

uint32_t Store::Upload::total_length() const {
  return store_ != nullptr ? store_->item(ref_).value_length : 0;
}
std::string_view Store::Upload::key() const {
  return store_ != nullptr ? store_->item(ref_).key() : std::string_view{};
}

// --- Pins

Store::Pin Store::pin(std::string_view key, uint64_t hash) {
  EGRET_ASSERT_OWNER(owner_);
  const ItemRef ref = peek(key, hash);
  if (!ref || item(ref).pins == kMaxPins) return {};
  Item& it = item(ref);
  if (it.pins == 0) {
    if (pinned_bytes_ + it.units * kUnit > large_budget()) return {};
    pinned_bytes_ += it.units * kUnit;
  }
  ++it.pins;
  return {this, ref};
}

void Store::end_pin(ItemRef ref) {
  Item& it = item(ref);
  if (--it.pins != 0) return;
  pinned_bytes_ -= it.units * kUnit;
  if (!it.has(kLinked)) heap_.release(ref);
}

Store::Pin::Pin(Pin&& other) noexcept : store_(std::exchange(other.store_, nullptr)), ref_(other.ref_) {}

Store::Pin& Store::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    release();
    store_ = std::exchange(other.store_, nullptr);
    ref_ = other.ref_;
  }
  return *this;
}

void Store::Pin::release() {
  if (store_ != nullptr) std::exchange(store_, nullptr)->end_pin(ref_);
}

std::string_view Store::Pin::value() const {
  return store_->item(ref_).value();
}
uint64_t Store::Pin::version() const {
  return store_->item(ref_).version;
}
uint64_t Store::Pin::cas() const {
  return store_->cas_of(version());
}
uint32_t Store::Pin::client_flags() const {
  return store_->item(ref_).client_flags();
}

op::Result Store::Pin::chunk(uint32_t offset, uint32_t length) const {
  const Item& it = store_->item(ref_);
  if (offset > it.value_length) return answer(ResultCode::kInvalid);
  op::Result result = store_->hit(it, true);
  result.value = it.value().substr(offset, length);
  return result;
}

}  // namespace egret::store
