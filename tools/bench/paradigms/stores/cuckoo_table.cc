#include "bench_paradigms/stores/cuckoo_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bench/sampler.h"
#include "bench_paradigms/stores/crc64.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint64_t kWayStep = 0x9e3779b97f4a7c15ULL;

}  // namespace

uint64_t CuckooEntry::right_crc() const {
  return crc64(std::as_bytes(std::span(this, 1)).first(offsetof(CuckooEntry, crc)));
}

CuckooPlaces cuckoo_places(uint64_t hash, uint32_t entries) {
  CuckooPlaces places{};
  for (uint32_t way = 0; way < kCuckooWays; ++way) {
    const uint64_t draw = bench::mix64(hash + way * kWayStep) >> 32;
    places[way] = static_cast<uint32_t>((draw * entries) >> 32);
  }
  return places;
}

uint32_t CuckooTable::entries_for(uint32_t keys, double load) {
  return std::max(8u, static_cast<uint32_t>(std::ceil(std::max(keys, 1u) / load)));
}

uint32_t CuckooTable::extent_bytes_for(uint32_t keys, uint32_t item_bytes) {
  // One block more than keys: a put writes the new extent before it frees the old one.
  return (keys + 1) * BuddyAllocator::block_bytes(item_bytes);
}

CuckooTable::CuckooTable(std::span<std::byte> entries, std::span<std::byte> extents, const Pause* pause)
    : entries_(entries),
      extents_(extents),
      count_(static_cast<uint32_t>(entries.size() / sizeof(CuckooEntry))),
      writer_(pause),
      allocator_(static_cast<uint32_t>(extents.size())),
      seen_(count_) {
  CuckooEntry empty;
  empty.crc = empty.right_crc();
  for (uint32_t place = 0; place < count_; ++place) {
    std::memcpy(entries_.data() + size_t{place} * sizeof empty, &empty, sizeof empty);
  }
}

CuckooEntry CuckooTable::entry(uint32_t place) const {
  CuckooEntry entry;
  std::memcpy(&entry, entries_.data() + size_t{place} * sizeof entry, sizeof entry);
  return entry;
}

std::string_view CuckooTable::key_at(uint32_t place) const {
  const CuckooEntry at = entry(place);
  return {reinterpret_cast<const char*>(extents_.data()) + at.offset, at.key_size};
}

void CuckooTable::store(uint32_t place, CuckooEntry entry) {
  entry.crc = entry.right_crc();
  writer_.write(entries_.data() + size_t{place} * sizeof entry, &entry, sizeof entry, StepWriter::kWord);
}

uint32_t CuckooTable::find(std::string_view key, uint64_t hash) const {
  for (const uint32_t place : cuckoo_places(hash, count_)) {
    const CuckooEntry at = entry(place);
    if (at.is_used != 0 && at.tag == cuckoo_tag(hash) && key_at(place) == key) return place;
  }
  return kNone;
}

// By breadth: the shortest path from a place of the key to an empty entry. Its last node; kNone: there is no such path
// among so many nodes.
uint32_t CuckooTable::search_path(uint64_t hash) {
  if (++search_ == 0) {
    std::fill(seen_.begin(), seen_.end(), 0);
    search_ = 1;
  }
  uint32_t count = 0;
  const auto add = [&](uint32_t place, uint32_t parent) {
    if (seen_[place] == search_ || count == kMostNodes) return;
    seen_[place] = search_;
    nodes_[count++] = {place, parent};
  };
  for (const uint32_t place : cuckoo_places(hash, count_)) add(place, kNone);
  for (uint32_t node = 0; node < count; ++node) {
    const uint32_t place = nodes_[node].place;
    if (entry(place).is_used == 0) return node;
    for (const uint32_t other : cuckoo_places(hash_of(key_at(place)), count_)) add(other, node);
  }
  return kNone;
}

// Each key of the path goes one place on, the last one first.
void CuckooTable::move_path(uint32_t last_node) {
  uint32_t to = last_node;
  while (nodes_[to].parent != kNone) {
    const uint32_t from = nodes_[to].parent;
    store(nodes_[to].place, entry(nodes_[from].place));
    to = from;
  }
}

Outcome CuckooTable::put(std::string_view key, std::string_view value) {
  const uint64_t hash = hash_of(key);
  uint32_t place = find(key, hash);
  const uint32_t old_offset = place == kNone ? BuddyAllocator::kNone : entry(place).offset;
  CuckooEntry fresh;
  fresh.size = static_cast<uint32_t>(key.size() + value.size());
  fresh.offset = allocator_.allocate(fresh.size);
  if (fresh.offset == BuddyAllocator::kNone) return Outcome::kFull;
  if (place == kNone) {
    const uint32_t last_node = search_path(hash);
    if (last_node == kNone) {
      allocator_.free(fresh.offset);
      return Outcome::kFull;
    }
    move_path(last_node);
    uint32_t first = last_node;
    while (nodes_[first].parent != kNone) first = nodes_[first].parent;
    place = nodes_[first].place;
  }
  std::byte* const extent = extents_.data() + fresh.offset;
  writer_.write(extent, key.data(), key.size(), StepWriter::kLine);
  writer_.write(extent + key.size(), value.data(), value.size(), StepWriter::kLine);
  fresh.key_size = static_cast<uint16_t>(key.size());
  fresh.is_used = 1;
  fresh.tag = cuckoo_tag(hash);
  fresh.extent_crc = crc64({extent, fresh.size});
  store(place, fresh);
  if (old_offset != BuddyAllocator::kNone) allocator_.free(old_offset);
  StepWriter::fence();
  return Outcome::kDone;
}

Outcome CuckooTable::erase(std::string_view key) {
  const uint32_t place = find(key, hash_of(key));
  if (place == kNone) return Outcome::kMiss;
  const uint32_t offset = entry(place).offset;
  store(place, CuckooEntry{});
  allocator_.free(offset);
  StepWriter::fence();
  return Outcome::kDone;
}

std::optional<std::string_view> CuckooTable::get(std::string_view key) const {
  const uint32_t place = find(key, hash_of(key));
  if (place == kNone) return std::nullopt;
  const CuckooEntry at = entry(place);
  return std::string_view(reinterpret_cast<const char*>(extents_.data()) + at.offset + at.key_size,
                          at.size - at.key_size);
}

CuckooTable::Walk CuckooTable::walk(std::string_view key, bool by_tag) const {
  const uint64_t hash = hash_of(key);
  Walk walk;
  for (const uint32_t place : cuckoo_places(hash, count_)) {
    ++walk.entries;
    const CuckooEntry at = entry(place);
    if (at.is_used == 0 || (by_tag && at.tag != cuckoo_tag(hash))) continue;
    ++walk.extents;
    if (key_at(place) == key) break;
  }
  return walk;
}

}  // namespace egret::bench_paradigms
