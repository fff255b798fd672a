#include "bench_paradigms/stores/chained_table.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "bench_paradigms/stores/step_writer.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kLine = 64;

}  // namespace

ChainedShape ChainedShape::of(const Plan& plan, uint32_t keys) {
  ChainedShape shape;
  shape.key_bytes = plan.key_bytes;
  shape.value_bytes = plan.value_bytes;
  const uint32_t lines = (shape.item_bytes() + kLine - 1) / kLine * kLine;
  shape.stride = std::max(lines, (plan.tuning.atomic_stride + 7) / 8 * 8);
  shape.items = keys + 1;
  const double places = std::max(keys, 1u) / plan.tuning.load;
  shape.buckets = static_cast<uint32_t>(std::ceil(places / kBucketPlaces));
  // Enough for every chain that so many keys can make: a bucket more is begun when one is full.
  shape.more_buckets = keys / kBucketPlaces + 1;
  return shape;
}

void ChainedShape::fill(std::byte* to, uint32_t version, uint64_t state, std::string_view value) const {
  const auto incarnation = static_cast<uint32_t>(state >> 32);
  std::memcpy(to, &version, sizeof version);
  std::memcpy(to + 4, &incarnation, sizeof incarnation);
  std::memcpy(to + 8, &state, sizeof state);
  std::memmove(to + 16, value.data(), value.size());  // it may lie there already
  const uint64_t tail = version;
  if (has_tail()) std::memcpy(to + (tail_at() - head_bytes()), &tail, sizeof tail);
}

ChainedTable::ChainedTable(const ChainedShape& shape, std::span<std::byte> buckets, std::span<std::byte> items,
                           const Pause* pause)
    : shape_(shape), buckets_(buckets), items_(items), writer_(pause), scratch_(shape.item_bytes()) {
  for (uint32_t number = shape.items; number > 0; --number) free_items_.push_back(number - 1);
}

void ChainedTable::store(uint64_t& word, uint64_t value) const {
  writer_.write(reinterpret_cast<std::byte*>(&word), &value, sizeof value, StepWriter::kWord);
}

std::optional<ChainedTable::Found> ChainedTable::find(std::string_view key) const {
  const uint64_t hash = hash_of(key);
  for (uint64_t at = uint64_t{shape_.bucket(hash)} + 1; at != 0; at = bucket(at - 1)->next) {
    const ChainedBucket& here = *bucket(at - 1);
    for (uint32_t place = 0; place < kBucketPlaces; ++place) {
      if (here.indexes[place] == 0 || here.keys[place] != hash) continue;
      const ItemPlace found = ItemPlace::from_index(here.indexes[place]);
      if (std::memcmp(item(found.number), key.data(), key.size()) == 0) {
        return Found{static_cast<uint32_t>(at - 1), place};
      }
    }
  }
  return std::nullopt;
}

std::optional<ChainedTable::Found> ChainedTable::empty_place(uint64_t hash) {
  uint64_t last = shape_.bucket(hash);
  for (uint64_t at = last + 1; at != 0; at = bucket(at - 1)->next) {
    last = at - 1;
    for (uint32_t place = 0; place < kBucketPlaces; ++place) {
      if (bucket(last)->indexes[place] == 0) return Found{static_cast<uint32_t>(last), place};
    }
  }
  if (used_more_buckets_ == shape_.more_buckets) return std::nullopt;
  const uint32_t fresh = shape_.buckets + used_more_buckets_++;
  store(bucket(last)->next, uint64_t{fresh} + 1);
  return Found{fresh, 0};
}

Outcome ChainedTable::insert(std::string_view key, std::string_view value) {
  if (key.size() != shape_.key_bytes || value.size() != shape_.value_bytes || free_items_.empty())
    return Outcome::kFull;
  if (find(key)) return Outcome::kHit;
  const uint64_t hash = hash_of(key);
  const auto found = empty_place(hash);
  if (!found) return Outcome::kFull;
  ItemPlace place{.number = free_items_.back(), .incarnation = 0};
  free_items_.pop_back();
  std::byte* const to = item(place.number);
  std::memcpy(&place.incarnation, to + shape_.head_bytes() + 4, sizeof place.incarnation);
  std::fill(scratch_.begin(), scratch_.end(), std::byte{0});
  std::memcpy(scratch_.data(), key.data(), key.size());
  shape_.fill(scratch_.data() + shape_.head_bytes(), 1, place.state(0), value);
  writer_.write(to, scratch_.data(), scratch_.size(), StepWriter::kLine);
  store(bucket(found->bucket)->keys[found->place], hash);
  store(bucket(found->bucket)->indexes[found->place], place.index());
  StepWriter::fence();
  return Outcome::kDone;
}

Outcome ChainedTable::erase(std::string_view key) {
  const auto found = find(key);
  if (!found) return Outcome::kMiss;
  uint64_t& index = bucket(found->bucket)->indexes[found->place];
  ItemPlace place = ItemPlace::from_index(index);
  std::byte* const at = item(place.number);
  // Against clients' atomics: holds if the device's are atomic for the CPU, too.
  std::atomic_ref state(*reinterpret_cast<uint64_t*>(at + shape_.state_at()));
  uint64_t expected = place.state(0);
  if (!state.compare_exchange_strong(expected, place.state(kServer))) return Outcome::kFull;
  store(index, 0);
  ++place.incarnation;
  writer_.write(at + shape_.head_bytes() + 4, &place.incarnation, sizeof place.incarnation, StepWriter::kWord);
  state.store(place.state(0));
  free_items_.push_back(place.number);
  StepWriter::fence();
  return Outcome::kDone;
}

std::optional<std::string_view> ChainedTable::get(std::string_view key) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  const ItemPlace place = ItemPlace::from_index(bucket(found->bucket)->indexes[found->place]);
  return std::string_view(reinterpret_cast<const char*>(item(place.number)) + shape_.value_at(), shape_.value_bytes);
}

uint32_t ChainedTable::walk(std::string_view key) const {
  const auto found = find(key);
  uint32_t buckets = 0;
  for (uint64_t at = uint64_t{shape_.bucket(hash_of(key))} + 1; at != 0; at = bucket(at - 1)->next) {
    ++buckets;
    if (found && found->bucket == at - 1) break;
  }
  return buckets;
}

}  // namespace egret::bench_paradigms
