// Values too large for the log (over kMaxInline): their parts lie in pages and chunks; the record has the list of them.
//
//   inline bytes of a large item:  [ LargeHead 16 B | extents, 8 B each | tail: the value's last bytes, under 4 KiB ]
//   extent:                        [ first chunk 36 bits | end 28 bits ]  a whole page, or one chunk
//
// `end` is the offset in the value where the extent ends. An extent may be partly filled, so that append and prepend
// join lists instead of copying values. `Pieces` is such a list before a record has it: an upload in progress, or a
// value that is being built. Thread: the store's owner's.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "op/part_room.h"
#include "store/memory/item.h"
#include "store/memory/pages.h"

namespace egret::store {

struct LargeHead {
  uint32_t length;   // of the whole value
  uint32_t extents;  // entries that follow
  uint32_t chunks;   // that the extents take up; a page counts as 16
  uint32_t unused;
};
static_assert(sizeof(LargeHead) == 16);

using Extent = uint64_t;
inline constexpr uint32_t kEndBits = 28;
// Keeps the record within a page. Enough for 128 MiB, even if the value grew by small appends.
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

// The longest contiguous view of the value from `offset` (<= its length) on.
std::string_view piece_at(const Pages& pages, const Item& item, uint32_t offset);
void set_extent(Item& item, size_t number, Extent extent);
// Frees the pages and chunks of a large item that is removed.
void free_extents(Pages& pages, const Item& item);

// Move-only. The destructor frees the pages and chunks that it still owns.
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

  // Announces the final length, by which write() chooses pages or chunks.
  void expect(uint32_t length) { expected_ = length; }
  // How many pages must be free so that write() of so many more bytes succeeds.
  uint32_t pages_needed(uint32_t bytes) const;
  void write(std::string_view bytes);
  void write(const Pieces& other);
  // Appends up to so many bytes that are still to be filled in, and adds where they are to `room`, while that takes more.
  void extend(uint32_t bytes, op::PartRoom& room);
  // Ends the value there, and frees what is behind it.
  void cut(uint32_t length);
  // Takes over all of `other`.
  void join(Pieces&& other);
  // Takes over a large item's extents and copies its tail. The item no longer owns them.
  void take_over(const Item& item);

  uint32_t length() const { return length_; }
  uint32_t chunks() const { return chunks_; }
  // How many of these chunks came from an item, by take_over().
  uint32_t taken_over() const { return taken_over_; }
  size_t extents() const { return extents_.size(); }
  // The list as a record's inline bytes: their number; and writing them, after which the record owns the extents.
  uint64_t listed_size() const;
  void list(char* to);
  // Copies the bytes, for an inline value.
  void copy_out(char* to) const;

 private:
  void swap(Pieces& other) noexcept;
  bool is_page(Extent extent) const;
  uint32_t capacity(Extent extent) const { return static_cast<uint32_t>(is_page(extent) ? kPageSize : kChunkSize); }
  uint32_t start_of_last() const { return extents_.size() < 2 ? 0 : end_of(extents_[extents_.size() - 2]); }
  uint32_t filled_of_last() const { return length_ - start_of_last(); }
  uint32_t room_of_last() const { return extents_.empty() ? 0 : capacity(extents_.back()) - filled_of_last(); }
  char* end_of_last() const;
  void count_in_last(uint32_t bytes);
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
