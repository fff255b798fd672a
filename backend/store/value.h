// Values too large for the log (over kMaxInline): their parts lie in pages and chunks, the list of them in the record.
//
//   inline bytes of a large item:  [ LargeHead 16 B | extents, 8 B each | tail: the value's last bytes, under 4 KiB ]
//   extent:                        [ first chunk 36 bits | end 28 bits ]  a whole page, or one chunk
//
// `end` is the offset in the value where the extent ends. An extent may be partly filled, so that append and prepend
// put lists together instead of copying values. `Pieces` is such a list before it is a record's: an upload under way,
// or a value being put together. Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "store/item.h"
#include "store/pages.h"

namespace egret::store {

struct LargeHead {
  uint32_t length;   // of the whole value
  uint32_t extents;  // entries that follow
  uint32_t chunks;   // that they take up; a page counts for 16
  uint32_t unused;
};
static_assert(sizeof(LargeHead) == 16);

using Extent = uint64_t;
inline constexpr uint32_t kEndBits = 28;
// Keeps the record within a page. Enough for 128 MiB, also of a value that grew by small appends.
inline constexpr size_t kMaxExtents = 4096;

inline uint64_t first_chunk(Extent extent) {
  return extent >> kEndBits;
}
inline uint32_t end_of(Extent extent) {
  return static_cast<uint32_t>(extent & ((uint64_t{1} << kEndBits) - 1));
}

LargeHead large_head(const Item& item);
Extent extent_of(const Item& item, size_t number);
inline uint32_t value_length(const Item& item) {
  return item.has(kLarge) ? large_head(item).length : item.inline_length();
}
// Bytes of the arena that the item takes up: its record, and its pages and chunks.
inline uint64_t item_bytes(const Item& item) {
  return item.units() * kUnit + (item.has(kLarge) ? large_head(item).chunks * kChunkSize : 0);
}

// The longest view of the value from `offset` on (<= its length) that lies in one piece.
std::string_view piece_at(const Pages& pages, const Item& item, uint32_t offset);
void set_extent(Item& item, size_t number, Extent extent);
// Gives back the pages and chunks of a large item that is going.
void free_extents(Pages& pages, const Item& item);

// Move-only; what it still owns when it ends is given back.
class Pieces {
 public:
  Pieces() = default;
  explicit Pieces(Pages& pages) : pages_(&pages) {}
  Pieces(Pieces&& other) noexcept { swap(other); }
  Pieces& operator=(Pieces&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Pieces() { clear(); }
  void clear();

  // How long it is going to be: pages or chunks are chosen by that.
  void expect(uint32_t length) { expected_ = length; }
  // The pages that must be free for write() of so many more bytes to succeed.
  uint32_t pages_needed(uint32_t bytes) const;
  void write(std::string_view bytes);
  void write(const Pieces& other);
  // Takes over all of `other`.
  void join(Pieces&& other);
  // Takes over a large item's extents, which it has no more, and copies its tail.
  void take_over(const Item& item);

  uint32_t length() const { return length_; }
  uint32_t chunks() const { return chunks_; }
  // How many of them were a large item's before.
  uint32_t taken_over() const { return taken_over_; }
  size_t extents() const { return extents_.size(); }
  // As inline bytes of a record: their number; and writing them, whereupon the record owns what they list.
  uint64_t listed_size() const;
  void list(char* to);
  // As an inline value.
  void copy_out(char* to) const;

 private:
  void swap(Pieces& other) noexcept;
  bool is_page(Extent extent) const;
  uint32_t capacity(Extent extent) const { return static_cast<uint32_t>(is_page(extent) ? kPageSize : kChunkSize); }
  uint32_t start_of_last() const { return extents_.size() < 2 ? 0 : end_of(extents_[extents_.size() - 2]); }
  uint32_t filled_of_last() const { return length_ - start_of_last(); }
  uint32_t room_of_last() const { return extents_.empty() ? 0 : capacity(extents_.back()) - filled_of_last(); }
  bool wants_page() const;
  bool has_tail() const { return !extents_.empty() && filled_of_last() < kChunkSize; }
  void add_extent();
  void give_back(Extent extent);

  Pages* pages_ = nullptr;
  std::vector<Extent> extents_;
  uint32_t length_ = 0;
  uint32_t chunks_ = 0;
  uint32_t taken_over_ = 0;
  uint32_t expected_ = 0;
};

}  // namespace egret::store
