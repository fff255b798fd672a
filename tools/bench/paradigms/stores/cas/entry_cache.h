// Copies of entries that a node has READ, the least recently used making room (paper 003, section 4.1). An entry does not
// change while a word refers to it, so that a copy is right as long as the word is the one that it was READ for. Allocates
// nothing after it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace egret::bench_paradigms {

class EntryCache {
 public:
  struct Tag {
    uint64_t word = 0;
    uint64_t slot = 0;
    bool operator==(const Tag&) const = default;
  };
  EntryCache(uint32_t copies, uint32_t entry_bytes);

  // Null: there is none. Valid until the next `add`.
  const std::byte* find(const Tag& tag);
  void add(const Tag& tag, const std::byte* entry);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Copy {
    Tag tag;
    uint32_t next_in_bucket = kNone;
    uint32_t newer = kNone, older = kNone;
  };
  uint32_t& bucket_of(const Tag& tag);
  void unlink(uint32_t copy);
  void make_newest(uint32_t copy);
  uint32_t make_room();

  uint32_t entry_bytes_;
  std::vector<Copy> copies_;
  std::vector<std::byte> bytes_;
  std::vector<uint32_t> buckets_;
  uint32_t used_ = 0;
  uint32_t newest_ = kNone, oldest_ = kNone;
};

}  // namespace egret::bench_paradigms
