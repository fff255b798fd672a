// The log: records appended to pages, in the two queues of S3-FIFO (Yang et al., SOSP 2023), and a count of the live
// bytes of each page.
//
//   small ─ head ◀ append        youngest ... oldest ─▶ drained: read twice → main; else evicted, and a ghost
//   main  ─ head ◀ append        youngest ... oldest ─▶ drained: read since  → main again; else evicted
//   sparse: pages of either whose records are mostly dead ─▶ drained into the head of their queue
//
// A page without live records is freed at once. reclaim.cc decides what happens to the records of a page that is
// drained. Thread: the store's owner's.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "store/memory/item.h"
#include "store/memory/pages.h"

namespace egret::store {

enum class Queue : uint8_t { kSmall, kMain };

class Log {
 public:
  struct QueueState {
    PageNumber head;  // being written; kNoPage before the first
    PageNumber oldest;
    PageNumber youngest;
    uint32_t sealed;  // pages from oldest to youngest
    uint64_t weight;  // live bytes, pages and chunks of large values included
  };
  struct State {
    std::array<QueueState, 2> queues;
    PageNumber sparse_first;
    PageNumber sparse_last;
    uint64_t live_units;
  };

  // A page is sparse when less than `sparse_percent` of its written bytes are live. `kept` as for Pages.
  Log(std::byte* arena, Pages& pages, uint32_t sparse_percent, const State* kept);
  const State& state() const { return state_; }

  bool has_room(Queue queue, uint32_t units) const;
  // Allocates a record at the queue's head; takes a page if the head is full. Its contents are undefined; it counts as
  // live. None: no page was free.
  ItemRef append(Queue queue, uint32_t units);
  // Marks the record as dead. Frees its page if it was the last live one.
  void kill(ItemRef ref);
  // Cuts the record down to `units`; the rest is dead.
  void shrink(ItemRef ref, uint32_t units);
  // Counts the large value of a live record: `bytes` of pages and chunks, outside the log. Negative: takes it out again.
  void count_large(ItemRef ref, int64_t bytes) {
    queue_state(ref).weight += static_cast<uint64_t>(bytes);
    uint16_t& larges = pages_.info(ref.page()).larges;
    if (bytes > 0) ++larges;
    if (bytes < 0 && larges > 0) --larges;  // 0.1.0 did not count those of its files
  }

  Queue queue_of(ItemRef ref) const {
    return pages_.info(ref.page()).use == PageUse::kMain ? Queue::kMain : Queue::kSmall;
  }
  const QueueState& queue(Queue queue) const { return state_.queues[static_cast<size_t>(queue)]; }
  // About when the oldest item was last read; 0: there is no item.
  uint32_t oldest_access() const;
  void pin(ItemRef ref);
  void unpin(ItemRef ref) { --pages_.info(ref.page()).pins; }

  // --- Draining, one page at a time. The page is in no queue meanwhile; its records may still be killed. If one is pinned,
  // draining stops. Pages with pins are skipped, since they stay. `with_pins`: those are not skipped that have more large
  // records than pins, since some of their values may go.
  PageNumber sparsest();
  PageNumber oldest(Queue queue, bool with_pins);
  // Closes the head page, so that it can be drained. False: it is empty.
  bool seal(Queue queue);
  void begin_drain(PageNumber page);
  // The page goes back into its queue, as the oldest.
  void stop_drain();
  // Frees the page, or, if it has live records, makes it its queue's youngest.
  void end_drain();
  PageNumber draining() const { return draining_; }

  Item& item(ItemRef ref) const { return *reinterpret_cast<Item*>(arena_ + ref.unit * kUnit); }
  // Whether records tile every page and the counts are right; `why` says what is wrong.
  bool check(std::string* why) const;

 private:
  QueueState& queue_state(PageNumber page) { return state_.queues[pages_.info(page).use == PageUse::kMain ? 1 : 0]; }
  QueueState& queue_state(ItemRef ref) { return queue_state(ref.page()); }
  bool is_head(PageNumber page) const { return state_.queues[0].head == page || state_.queues[1].head == page; }
  bool is_worth_compacting(const PageInfo& info) const {
    return uint64_t{info.live} * 100 < uint64_t{info.used} * sparse_percent_;
  }
  void after_death(PageNumber page);
  void attach_youngest(PageNumber page);
  void detach(PageNumber page);
  void unlink(PageNumber page);
  void link_sparse(PageNumber page);
  void unlink_sparse(PageNumber page);
  bool check_page(PageNumber page, std::string* why) const;

  std::byte* arena_;
  Pages& pages_;
  uint32_t sparse_percent_;
  State state_;
  PageNumber draining_ = kNoPage;
};

}  // namespace egret::store
