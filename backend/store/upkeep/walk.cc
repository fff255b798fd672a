// Walks over the items, a page of records at a time, and over those that were evicted.
//
// The walk goes by position (index.h). An item's position never changes, wherever the item moves and however the index
// grows; so the cursor is the position where the last page ended. A walk changes no last access, frequency or counter.
#include <algorithm>
#include <array>

#include "store/answer.h"
#include "store/upkeep/walker.h"

namespace egret::store {

namespace {
constexpr size_t kPageBytes = 4096;
constexpr uint32_t kBuckets = 32;  // to a page, at most
constexpr size_t kGroup = 16;      // buckets whose items are prefetched together
}  // namespace

op::Result Walker::next_page(const op::Op& op) {
  page_.clear();
  op::Result result = answer(op::ResultCode::kOk);
  switch (static_cast<op::RecordSource>(op.group)) {
    case op::RecordSource::kItems:
      result.version = walk_items(op.version, op.size_class);
      break;
    case op::RecordSource::kEvicted: {
      evictions_.watch(items_.now + op::kWatchSeconds);
      const Evictions::Page page = evictions_.read(op.version, kPageBytes, page_);
      result.version = page.cursor;
      result.number = page.lost;
      break;
    }
    default:
      return answer(op::ResultCode::kUnsupported);
  }
  result.value = page_;
  result.total_length = static_cast<uint32_t>(page_.size());
  return result;
}

// Appends a page from that position on; returns where the next one begins.
uint64_t Walker::walk_items(uint64_t position, uint8_t size_class) {
  bool is_over = position == op::kWalkOver;
  for (uint32_t done = 0; !is_over && done < kBuckets && page_.size() < kPageBytes; done += kGroup) {
    std::array<uint64_t, kGroup> starts;
    size_t count = 0;
    for (; !is_over && count < kGroup; ++count) {
      starts[count] = position;
      items_.index.prefetch_bucket(items_.index.bucket_at(position));
      position = items_.index.position_behind(position);
      is_over = position == 0;
    }
    for (size_t i = 0; i < count; ++i) items_.index.prefetch_items(items_.index.bucket_at(starts[i]));
    for (size_t i = 0; i < count; ++i) {
      if (page_.size() >= kPageBytes) return starts[i];
      if (const uint64_t rest = walk_bucket(starts[i], size_class); rest != 0) return rest;
    }
    items_.work.buckets(count);
  }
  return is_over ? op::kWalkOver : position;
}

// Appends the items of one bucket from that position on, in order. Returns the position to continue with when the page
// is full; 0: the bucket is done.
uint64_t Walker::walk_bucket(uint64_t position, uint8_t size_class) {
  found_.clear();
  items_.index.visit_bucket(items_.index.bucket_at(position), [&](Slot slot) {
    const Item& it = items_.item(slot);
    items_.work.records(1);
    if (items_.is_expired(it) || items_.is_flushed(it)) return false;
    if (size_class != op::kAnySizeClass && op::size_class_of(item_bytes(it)) != size_class) return false;
    const uint64_t at = Index::position_of(items_.index.hash_of(it));
    if (at >= position) found_.push_back({at, slot.ref()});
    return false;
  });
  std::ranges::sort(found_, {}, &Found::position);
  for (const Found& each : found_) {
    if (page_.size() >= kPageBytes) return each.position;
    const Item& it = items_.item(each.ref);
    op::RecordHead head = items_.record_of(it);
    head.cursor = each.position + 1;
    op::append_record(page_, head, it.key());
  }
  return 0;
}

}  // namespace egret::store
