// Walking over the items, a page of records at a time, and over those that were evicted.
//
// The walk goes by position (index.h): an item has the same one wherever it lies and however the index grows, so that
// the cursor is simply where the last page ended. It leaves no trace: neither last access nor frequency, no counter.
#include <algorithm>
#include <array>

#include "store/answer.h"
#include "store/store.h"

namespace egret::store {

namespace {
constexpr size_t kPageBytes = 4096;
constexpr uint32_t kBuckets = 32;  // to a page, at most
constexpr size_t kGroup = 16;      // buckets whose items are prefetched together
}  // namespace

op::Result Store::iterate(const op::Op& op) {
  EGRET_ASSERT_OWNER(owner_);
  page_.clear();
  op::Result result = answer(op::ResultCode::kOk);
  switch (static_cast<op::RecordSource>(op.group)) {
    case op::RecordSource::kItems:
      result.version = walk_items(op.version, op.size_class);
      break;
    case op::RecordSource::kEvicted: {
      evictions_.watch(now_ + op::kWatchSeconds);
      const Evictions::Page page = evictions_.read(op.version, kPageBytes, page_);
      result.version = page.cursor;
      result.number = page.lost;
      break;
    }
    default:
      return answer(op::ResultCode::kUnsupported);
  }
  end_step();
  result.value = page_;
  result.total_length = static_cast<uint32_t>(page_.size());
  return result;
}

// Appends a page from that position on; says where the next begins.
uint64_t Store::walk_items(uint64_t position, uint8_t size_class) {
  bool is_over = position == op::kWalkOver;
  for (uint32_t done = 0; !is_over && done < kBuckets && page_.size() < kPageBytes; done += kGroup) {
    std::array<uint64_t, kGroup> starts;
    size_t count = 0;
    for (; !is_over && count < kGroup; ++count) {
      starts[count] = position;
      index_.prefetch_bucket(index_.bucket_at(position));
      position = index_.position_behind(position);
      is_over = position == 0;
    }
    for (size_t i = 0; i < count; ++i) index_.prefetch_items(index_.bucket_at(starts[i]));
    for (size_t i = 0; i < count; ++i) {
      if (page_.size() >= kPageBytes) return starts[i];
      if (const uint64_t rest = walk_bucket(starts[i], size_class); rest != 0) return rest;
    }
    work_.buckets(count);
  }
  return is_over ? op::kWalkOver : position;
}

// The items of one bucket from that position on, in order. Where the page is full, says with which to go on; 0: all
// are told of.
uint64_t Store::walk_bucket(uint64_t position, uint8_t size_class) {
  found_.clear();
  index_.visit_bucket(index_.bucket_at(position), [&](Slot slot) {
    const Item& it = item(slot);
    work_.records(1);
    if (is_expired(it) || is_flushed(it)) return false;
    if (size_class != op::kAnySizeClass && op::size_class_of(item_bytes(it)) != size_class) return false;
    const uint64_t at = Index::position_of(index_.hash_of(it));
    if (at >= position) found_.push_back({at, slot.ref()});
    return false;
  });
  std::ranges::sort(found_, {}, &Found::position);
  for (const Found& each : found_) {
    if (page_.size() >= kPageBytes) return each.position;
    const Item& it = item(each.ref);
    op::RecordHead head = record_of(it);
    head.cursor = each.position + 1;
    op::append_record(page_, head, it.key());
  }
  return 0;
}

op::RecordHead Store::record_of(const Item& item) const {
  op::RecordHead head{};
  head.cas = cas_of(item);
  head.exptime = item.exptime();
  head.last_access = item.last_access();
  head.seen = now_;
  head.client_flags = item.client_flags();
  head.value_length = value_length(item);
  head.size_class = static_cast<uint8_t>(op::size_class_of(item_bytes(item)));
  if (item.has(kFetched)) head.marks |= op::kFetched;
  if (item.has(kStale)) head.marks |= op::kStale;
  if (item.has(kTokenSent)) head.marks |= op::kTokenSent;
  return head;
}

}  // namespace egret::store
