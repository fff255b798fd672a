// nessie's cuckoo table behind a server core (paper 003, section 5: NessieSD): the same words, filter bits and entries, but
// one thread looks and writes, and a word refers to entries of this node only. Not reached by any verb.
//
//   words: a key has one of each rank, anywhere among all ─▶ entry: key, value; replaced by a put, never changed
//
// A put for which all words of its key are taken moves another key to another of that key's words.
#pragma once

#include <vector>

#include "bench_paradigms/fabric/pages.h"
#include "bench_paradigms/stores/cas/cas_layout.h"
#include "bench_paradigms/stores/kv_store.h"

namespace egret::bench_paradigms {

class CuckooStore final : public KvStore {
 public:
  // Tuning: ways, index_load, filter_bits. Keys and values are as long as the plan's.
  CuckooStore(const Plan& plan, uint32_t items);

  std::optional<uint32_t> get(std::string_view key, std::span<std::byte> to) override;
  bool put(std::string_view key, std::string_view value) override;
  bool erase(std::string_view key) override;
  void prefetch(std::string_view key) override;

 private:
  using Places = std::array<uint64_t, kMostWays>;
  static constexpr uint32_t kNone = ~0u;

  uint32_t field_of(uint64_t hash) const { return static_cast<uint32_t>(hash & ((uint64_t{1} << filter_bits_) - 1)); }
  std::byte* entry(uint32_t number) { return entries_.data() + layout_.entry_offset(number); }
  std::string_view key_in(uint64_t slot) { return layout_.key_of(entry(words_[slot].entry())); }
  uint32_t rank_of(const Places& places, uint64_t hash, std::string_view key);
  uint32_t free_rank(const Places& places) const;
  bool make_room(uint64_t slot, uint32_t depth, uint32_t& looks);

  EntryLayout layout_;
  uint32_t key_bytes_, value_bytes_;
  uint32_t ways_;
  uint32_t filter_bits_;
  std::vector<IndexWord> words_;
  Pages entries_;
  std::vector<uint32_t> free_;  // entries
};

}  // namespace egret::bench_paradigms
