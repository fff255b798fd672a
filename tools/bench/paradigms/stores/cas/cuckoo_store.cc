#include "bench_paradigms/stores/cas/cuckoo_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kMostMoves = 16;   // that one put makes
constexpr uint32_t kMostLooks = 512;  // at words, for room

}  // namespace

CuckooStore::CuckooStore(const Plan& plan, uint32_t items)
    : layout_(plan),
      key_bytes_(plan.key_bytes),
      value_bytes_(plan.value_bytes),
      ways_(std::clamp(plan.tuning.ways, 1u, kMostWays)),
      filter_bits_(std::min(plan.tuning.filter_bits, IndexWord::kTableBits)),
      words_(std::max<size_t>(2 * kMostWays, static_cast<size_t>(std::ceil(items / plan.tuning.index_load)))),
      // One more than items: a put writes its entry before it lets go of the one before.
      entries_(size_t{items + 1} * layout_.entry_bytes(), plan.tuning.has_huge_pages) {
  if (entries_.data() == nullptr) throw std::bad_alloc();
  for (uint32_t number = items + 1; number > 0; --number) free_.push_back(number);
}

uint32_t CuckooStore::rank_of(const Places& places, uint64_t hash, std::string_view key) {
  for (uint32_t rank = 0; rank < ways_; ++rank) {
    const IndexWord word = words_[places[rank]];
    if (!word.is_empty() && word.table() == field_of(hash) && key_in(places[rank]) == key) return rank;
  }
  return kNone;
}

uint32_t CuckooStore::free_rank(const Places& places) const {
  for (uint32_t rank = 0; rank < ways_; ++rank) {
    if (words_[places[rank]].is_empty()) return rank;
  }
  return kNone;
}

std::optional<uint32_t> CuckooStore::get(std::string_view key, std::span<std::byte> to) {
  const uint64_t hash = hash_of(key);
  const Places places = cas_places(hash, ways_, words_.size());
  const uint32_t rank = rank_of(places, hash, key);
  if (rank == kNone) return std::nullopt;
  const std::string_view value = layout_.value_of(entry(words_[places[rank]].entry()));
  std::memcpy(to.data(), value.data(), value.size());
  return static_cast<uint32_t>(value.size());
}

bool CuckooStore::put(std::string_view key, std::string_view value) {
  if (key.size() != key_bytes_ || value.size() != value_bytes_ || free_.empty()) return false;
  const uint64_t hash = hash_of(key);
  const Places places = cas_places(hash, ways_, words_.size());
  uint32_t rank = rank_of(places, hash, key);
  const bool is_there = rank != kNone;
  if (!is_there && free_.size() == 1) return false;  // the last one is for replacing
  if (!is_there) rank = free_rank(places);
  for (uint32_t full = 0, looks = 0; rank == kNone && full < ways_; ++full) {
    if (make_room(places[full], kMostMoves, looks)) rank = full;
  }
  if (rank == kNone) return false;
  const uint32_t fresh = free_.back();
  free_.pop_back();
  layout_.write_entry(entry(fresh), key, value);
  layout_.set_valid(entry(fresh));
  IndexWord& word = words_[places[rank]];
  if (is_there) free_.push_back(word.entry());
  word = IndexWord::after(word, field_of(hash), fresh);
  return true;
}

// The key in that word goes to another of its words, whose key may have to go first. What it has moved stays moved if
// that does not help: every key is in one of its words all the time.
bool CuckooStore::make_room(uint64_t slot, uint32_t depth, uint32_t& looks) {
  const IndexWord leaving = words_[slot];
  const Places places = cas_places(hash_of(key_in(slot)), ways_, words_.size());
  for (uint32_t rank = 0; rank < ways_; ++rank) {
    const uint64_t to = places[rank];
    if (to == slot || ++looks > kMostLooks) continue;
    if (!words_[to].is_empty() && (depth == 0 || !make_room(to, depth - 1, looks))) continue;
    if (words_[slot] != leaving) return words_[slot].is_empty();  // the path came by here
    words_[to] = IndexWord::after(words_[to], leaving.table(), leaving.entry());
    words_[slot] = IndexWord::empty_after(leaving);
    return true;
  }
  return false;
}

bool CuckooStore::erase(std::string_view key) {
  const uint64_t hash = hash_of(key);
  const Places places = cas_places(hash, ways_, words_.size());
  const uint32_t rank = rank_of(places, hash, key);
  if (rank == kNone) return false;
  IndexWord& word = words_[places[rank]];
  free_.push_back(word.entry());
  word = IndexWord::empty_after(word);
  return true;
}

void CuckooStore::prefetch(std::string_view key) {
  __builtin_prefetch(&words_[cas_places(hash_of(key), 1, words_.size())[0]]);
}

}  // namespace egret::bench_paradigms
