// Pins: versions that somebody reads piece by piece. A pinned record does not move, and so its page stays; of the others
// in it those of large values may be evicted or moved. When a pinned record is taken out of the index, it stays (detached)
// until its last pin ends.
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
  PageInfo& page = items_.pages.info(ref.page());
  PinEntry* entry = items_.find_pin(ref);
  // The page is charged, too, since it stays from its first pin to its last; to kLend as soon as one of them is.
  const bool charges_page =
      page.pins == 0 || (use == PinUse::kLend && page.pin_use != static_cast<uint8_t>(PinUse::kLend));
  const auto fits = [&](uint64_t bytes) {
    return items_.pins.charged(use) + bytes + (charges_page ? kPageSize : 0) <= pin_budget(use);
  };
  if (entry == nullptr) {
    const uint64_t bytes = items_.item(ref).has(kLarge) ? large_head(items_.item(ref)).chunks * kChunkSize : 0;
    if (!fits(bytes)) return {};
    if (charges_page) items_.pins.charge_page(page, use);
    items_.log.pin(ref);
    items_.item(ref).set_bits(kPinned);
    entry = &items_.pins.add(ref, use, bytes);
  } else if (use == PinUse::kLend && entry->use != use) {
    // It stays for as long as its borrower takes, which readers need not.
    if (!fits(entry->bytes)) return {};
    if (charges_page) items_.pins.charge_page(page, use);
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
  if (const PageInfo& page = items_.pages.info(ref.page()); page.pins == 0) items_.pins.uncharge_page(page);
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
