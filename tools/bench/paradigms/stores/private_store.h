// A core's own store (MICA's EREW, paper 004, section IV): only its thread reads and writes it. It never evicts: a put for
// which there is no room is refused.
#pragma once

#include "bench_paradigms/stores/item_table.h"
#include "bench_paradigms/stores/kv_store.h"

namespace egret::bench_paradigms {

class PrivateStore final : public KvStore {
 public:
  PrivateStore(uint32_t items, uint32_t key_bytes, uint32_t value_bytes, bool wants_huge_pages)
      : table_(items, key_bytes, value_bytes, wants_huge_pages) {}

  std::optional<uint32_t> get(std::string_view key, std::span<std::byte> to) override;
  bool put(std::string_view key, std::string_view value) override;
  bool erase(std::string_view key) override;
  void prefetch(std::string_view key) override { table_.prefetch(key); }

 private:
  ItemTable table_;
};

}  // namespace egret::bench_paradigms
