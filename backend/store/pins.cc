// Pins: versions that somebody reads piece by piece. A pinned record does not move, and its page is not drained. When
// it is taken out of the index, it stays (detached) until its last pin ends.
#include <algorithm>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

using op::ResultCode;

uint64_t Store::pin_budget(PinUse use) const {
  if (use == PinUse::kRead) return large_budget();
  const uint64_t limit = limit_.bytes();
  const uint64_t others = std::max(upload_chunks_ * kChunkSize, large_budget());
  return std::clamp(limit / 4 * 3 - std::min(limit / 4 * 3, others), limit / 4, limit / 2);
}

Store::Pin Store::pin(std::string_view key, uint64_t hash, PinUse use) {
  EGRET_ASSERT_OWNER(owner_);
  const Slot slot = peek(key, hash);
  if (!slot) return {};
  const ItemRef ref = slot.ref();
  PinEntry* entry = items_.find_pin(ref);
  if (entry == nullptr) {
    // The first pin in a page is charged the whole page, since it keeps the page from being drained.
    const uint64_t large = items_.item(ref).has(kLarge) ? large_head(items_.item(ref)).chunks * kChunkSize : 0;
    const uint64_t bytes = large + (items_.pages.info(ref.page()).pins == 0 ? kPageSize : 0);
    if (items_.pins.charged(use) + bytes > pin_budget(use)) return {};
    items_.log.pin(ref);
    items_.item(ref).set_bits(kPinned);
    entry = &items_.pins.add(ref, use, bytes);
  } else if (use == PinUse::kLend && entry->use != use) {
    // It stays for as long as its borrower takes, which readers need not.
    if (items_.pins.charged(use) + entry->bytes > pin_budget(use)) return {};
    items_.pins.recharge(*entry, use);
  }
  ++entry->count;
  return {this, ref, items_.item(ref).version(), value_length(items_.item(ref))};
}

Store::Pin Store::Pin::share() const {
  ++store_->items_.find_pin(ref_)->count;
  return {store_, ref_, version_, length_};
}

void Store::end_pin(ItemRef ref) {
  PinEntry* const entry = items_.find_pin(ref);
  if (--entry->count != 0) return;
  const bool is_detached = entry->is_detached;
  items_.pins.remove(ref);
  items_.item(ref).clear_bits(kPinned);
  items_.log.unpin(ref);
  if (is_detached) items_.free_record(ref);
  items_.end_step();
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
  return store_->items_.item(ref_).client_flags();
}

op::Result Store::Pin::chunk(uint32_t offset, uint32_t length) const {
  if (value_length(store_->items_.item(ref_)) != length_) return answer(ResultCode::kChanged);
  op::Result result = store_->chunk_of(store_->items_.item(ref_), offset, length);
  result.version = version_;
  return result;
}

}  // namespace egret::store
