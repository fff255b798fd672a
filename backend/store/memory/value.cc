#include "store/memory/value.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace egret::store {

namespace {
// A value of this size or more grows by pages, however little is appended.
constexpr uint32_t kGrowsByPages = 1u << 20;

bool is_page_at(const Pages& pages, Extent extent) {
  return pages.info(static_cast<PageNumber>(first_chunk(extent) / kChunksPerPage)).use == PageUse::kLarge;
}

// The number of the extent that holds `offset`; extents() if the tail does.
size_t extent_at(const Item& item, uint32_t extents, uint32_t offset) {
  size_t low = 0;
  size_t high = extents;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (end_of(extent_of(item, middle)) <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}
}  // namespace

LargeHead large_head(const Item& item) {
  LargeHead head{};
  std::memcpy(&head, item.inline_bytes().data(), sizeof head);
  return head;
}

Extent extent_of(const Item& item, size_t number) {
  Extent extent = 0;
  std::memcpy(&extent, item.inline_bytes().data() + sizeof(LargeHead) + number * sizeof(Extent), sizeof extent);
  return extent;
}

void set_extent(Item& item, size_t number, Extent extent) {
  std::memcpy(item.inline_data() + sizeof(LargeHead) + number * sizeof(Extent), &extent, sizeof extent);
}

std::string_view piece_at(const Pages& pages, const Item& item, uint32_t offset) {
  if (!item.has(kLarge)) return item.inline_bytes().substr(offset);
  const uint32_t extents = large_head(item).extents;
  const size_t number = extent_at(item, extents, offset);
  const uint32_t start = number == 0 ? 0 : end_of(extent_of(item, number - 1));
  if (number == extents)
    return item.inline_bytes().substr(sizeof(LargeHead) + extents * sizeof(Extent) + (offset - start));
  const Extent extent = extent_of(item, number);
  const auto* data = reinterpret_cast<const char*>(pages.chunk_data(first_chunk(extent)));
  return {data + (offset - start), end_of(extent) - offset};
}

namespace {
void give_extent(Pages& pages, Extent extent) {
  if (is_page_at(pages, extent)) {
    pages.give(static_cast<PageNumber>(first_chunk(extent) / kChunksPerPage));
  } else {
    pages.give_chunk(first_chunk(extent));
  }
}
}  // namespace

void free_extents(Pages& pages, const Item& item) {
  const uint32_t extents = large_head(item).extents;
  for (uint32_t i = 0; i < extents; ++i) give_extent(pages, extent_of(item, i));
}

// --- Pieces

void Pieces::swap(Pieces& other) noexcept {
  std::swap(pages_, other.pages_);
  std::swap(extents_, other.extents_);
  std::swap(length_, other.length_);
  std::swap(chunks_, other.chunks_);
  std::swap(taken_over_, other.taken_over_);
  std::swap(expected_, other.expected_);
}

void Pieces::give_back(Extent extent) {
  chunks_ -= is_page(extent) ? kChunksPerPage : 1;
  give_extent(*pages_, extent);
}

void Pieces::clear() {
  for (const Extent extent : extents_) give_back(extent);
  extents_.clear();
  length_ = 0;
}

bool Pieces::is_page(Extent extent) const {
  return is_page_at(*pages_, extent);
}

bool Pieces::wants_page() const {
  const uint32_t rest = expected_ > length_ ? expected_ - length_ : 0;
  return rest > kPageSize - kChunkSize || length_ >= kGrowsByPages;
}

uint32_t Pieces::pages_needed(uint32_t bytes) const {
  const uint32_t room = room_of_last();
  if (bytes <= room) return 0;
  // Every chunk may need a new page, and both kinds (pages and chunks) may begin one.
  return static_cast<uint32_t>((bytes - room + kPageSize - 1) / kPageSize) + 1;
}

void Pieces::add_extent() {
  uint64_t chunk = 0;
  if (wants_page()) {
    const PageNumber page = pages_->take(PageUse::kLarge);
    chunk = uint64_t{page} * kChunksPerPage;
    chunks_ += kChunksPerPage;
  } else {
    chunk = pages_->take_chunk();
    ++chunks_;
  }
  EGRET_CHECK(chunk != 0);
  extents_.push_back(chunk << kEndBits | length_);
}

char* Pieces::end_of_last() const {
  return reinterpret_cast<char*>(pages_->chunk_data(first_chunk(extents_.back()))) + filled_of_last();
}

void Pieces::count_in_last(uint32_t bytes) {
  length_ += bytes;
  extents_.back() = first_chunk(extents_.back()) << kEndBits | length_;
}

void Pieces::write(std::string_view bytes) {
  expected_ = std::max<uint32_t>(expected_, length_ + static_cast<uint32_t>(bytes.size()));
  while (!bytes.empty()) {
    if (room_of_last() == 0) add_extent();
    const size_t part = std::min<size_t>(bytes.size(), room_of_last());
    std::memcpy(end_of_last(), bytes.data(), part);
    count_in_last(static_cast<uint32_t>(part));
    bytes.remove_prefix(part);
  }
}

void Pieces::extend(uint32_t bytes, op::PartRoom& room) {
  expected_ = std::max(expected_, length_ + bytes);
  while (bytes > 0 && !room.is_full()) {
    if (room_of_last() == 0) add_extent();
    const uint32_t part = std::min(bytes, room_of_last());
    room.add({end_of_last(), part});
    count_in_last(part);
    bytes -= part;
  }
}

void Pieces::cut(uint32_t length) {
  while (!extents_.empty() && start_of_last() >= length) {
    length_ = start_of_last();
    give_back(extents_.back());
    extents_.pop_back();
  }
  if (length_ <= length) return;
  length_ = length;
  extents_.back() = first_chunk(extents_.back()) << kEndBits | length_;
}

void Pieces::write(const Pieces& other) {
  uint32_t start = 0;
  for (const Extent extent : other.extents_) {
    write(std::string_view(reinterpret_cast<const char*>(pages_->chunk_data(first_chunk(extent))),
                           end_of(extent) - start));
    start = end_of(extent);
  }
}

// Copies the first chunk of `other` if it fits into the last one here, so that many small prepends share chunks.
void Pieces::join(Pieces&& other) {
  size_t from = 0;
  uint32_t shift = length_;
  if (!other.extents_.empty() && !is_page(other.extents_.front()) && end_of(other.extents_.front()) <= room_of_last()) {
    const Extent merged = other.extents_.front();
    write({reinterpret_cast<const char*>(pages_->chunk_data(first_chunk(merged))), end_of(merged)});
    other.give_back(merged);
    from = 1;
  }
  for (size_t i = from; i < other.extents_.size(); ++i) {
    const Extent extent = other.extents_[i];
    length_ = shift + end_of(extent);
    extents_.push_back(first_chunk(extent) << kEndBits | length_);
  }
  chunks_ += std::exchange(other.chunks_, 0);
  other.extents_.clear();
  other.length_ = 0;
}

void Pieces::take_over(const Item& item) {
  const LargeHead head = large_head(item);
  Pieces theirs(*pages_);
  for (uint32_t i = 0; i < head.extents; ++i) theirs.extents_.push_back(extent_of(item, i));
  theirs.length_ = head.extents == 0 ? 0 : end_of(theirs.extents_.back());
  theirs.chunks_ = head.chunks;
  taken_over_ = head.chunks;
  const std::string_view tail = item.inline_bytes().substr(sizeof head + head.extents * sizeof(Extent));
  join(std::move(theirs));
  write(tail);
}

uint64_t Pieces::listed_size() const {
  return sizeof(LargeHead) + (extents_.size() - (has_tail() ? 1 : 0)) * sizeof(Extent) +
         (has_tail() ? filled_of_last() : 0);
}

void Pieces::list(char* to) {
  const uint32_t tail = has_tail() ? filled_of_last() : 0;
  const Extent last = extents_.back();
  if (tail > 0) extents_.pop_back();
  LargeHead head{};
  head.length = length_;
  head.extents = static_cast<uint32_t>(extents_.size());
  head.chunks = chunks_ - (tail == 0 ? 0 : is_page(last) ? kChunksPerPage : 1);
  std::memcpy(to, &head, sizeof head);
  to += sizeof head;
  if (!extents_.empty()) std::memcpy(to, extents_.data(), extents_.size() * sizeof(Extent));
  to += extents_.size() * sizeof(Extent);
  if (tail > 0) {
    std::memcpy(to, pages_->chunk_data(first_chunk(last)), tail);
    give_back(last);
  }
  extents_.clear();
  length_ = 0;
  chunks_ = 0;
}

void Pieces::copy_out(char* to) const {
  uint32_t start = 0;
  for (const Extent extent : extents_) {
    std::memcpy(to + start, pages_->chunk_data(first_chunk(extent)), end_of(extent) - start);
    start = end_of(extent);
  }
}

}  // namespace egret::store
