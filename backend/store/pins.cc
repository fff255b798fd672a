// Versions that somebody reads piece by piece. A pinned record stays where it is, and its page is not drained; taken
// out of the index it is kept, detached, until its last pin ends.
#include <algorithm>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;

Store::Pin Store::pin(std::string_view key, uint64_t hash) {
  EGRET_ASSERT_OWNER(owner_);
  const Slot slot = peek(key, hash);
  if (!slot) return {};
  const ItemRef ref = slot.ref();
  PinEntry* entry = find_pin(ref);
  if (entry == nullptr) {
    // The first pin of a page holds all of it.
    const uint64_t large = item(ref).has(kLarge) ? large_head(item(ref)).chunks * kChunkSize : 0;
    const uint64_t bytes = large + (pages_.info(ref.page()).pins == 0 ? kPageSize : 0);
    if (pinned_bytes_ + bytes > large_budget()) return {};
    log_.pin(ref);
    item(ref).set_bits(kPinned);
    pinned_bytes_ += bytes;
    pins_.push_back({.ref = ref, .bytes = bytes});
    entry = &pins_.back();
  }
  ++entry->count;
  return {this, ref, item(ref).version(), value_length(item(ref))};
}

Store::PinEntry* Store::find_pin(ItemRef ref) {
  if (!item(ref).has(kPinned)) return nullptr;
  const auto at = std::ranges::find(pins_, ref, &PinEntry::ref);
  return at != pins_.end() ? &*at : nullptr;
}

void Store::end_pin(ItemRef ref) {
  PinEntry* const entry = find_pin(ref);
  if (--entry->count != 0) return;
  const bool is_detached = entry->is_detached;
  pinned_bytes_ -= entry->bytes;
  *entry = pins_.back();
  pins_.pop_back();
  item(ref).clear_bits(kPinned);
  log_.unpin(ref);
  if (is_detached) free_record(ref);
  end_step();
}

Store::Pin::Pin(Pin&& other) noexcept
    : store_(std::exchange(other.store_, nullptr)),
      ref_(other.ref_),
      version_(other.version_),
      length_(other.length_) {}

Store::Pin& Store::Pin::operator=(Pin&& other) noexcept {
  if (this != &other) {
    release();
    store_ = std::exchange(other.store_, nullptr);
    ref_ = other.ref_;
    version_ = other.version_;
    length_ = other.length_;
  }
  return *this;
}

void Store::Pin::release() {
  if (store_ != nullptr) std::exchange(store_, nullptr)->end_pin(ref_);
}

uint32_t Store::Pin::client_flags() const {
  return store_->item(ref_).client_flags();
}

op::Result Store::Pin::chunk(uint32_t offset, uint32_t length) const {
  if (value_length(store_->item(ref_)) != length_) return answer(ResultCode::kChanged);
  op::Result result = store_->chunk_of(store_->item(ref_), offset, length);
  result.version = version_;
  return result;
}

}  // namespace egret::store
