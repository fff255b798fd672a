// A table and an LRU list behind one lock, shared by all server cores of a process: as memcached's (paper 004, section
// V-B: its threads coordinate for shared structures). When it is full, the item used longest ago goes.
#pragma once

#include <mutex>
#include <vector>

#include "bench_paradigms/stores/item_table.h"
#include "bench_paradigms/stores/kv_store.h"

namespace egret::bench_paradigms {

// Any thread.
class SharedStore final : public KvStore {
 public:
  SharedStore(uint32_t items, uint32_t key_bytes, uint32_t value_bytes, bool wants_huge_pages);

  std::optional<uint32_t> get(std::string_view key, std::span<std::byte> to) override;
  bool put(std::string_view key, std::string_view value) override;
  bool erase(std::string_view key) override;

 private:
  struct Link {
    uint32_t newer = ItemTable::kNone;
    uint32_t older = ItemTable::kNone;
  };
  void unlink(uint32_t item);
  void link_newest(uint32_t item);

  std::mutex mutex_;
  ItemTable table_;
  std::vector<Link> links_;
  uint32_t newest_ = ItemTable::kNone;
  uint32_t oldest_ = ItemTable::kNone;
};

}  // namespace egret::bench_paradigms
