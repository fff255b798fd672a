#include "bench_paradigms/stores/hopscotch_table.h"

#include <algorithm>
#include <cstring>

#include <xxhash.h>

namespace egret::bench_paradigms {

namespace {

constexpr double kMostLoad = 0.5;
constexpr double kGrowth = 1.1;

std::string_view text_of(const std::byte* from, uint32_t bytes) {
  return {reinterpret_cast<const char*>(from), bytes};
}

uint64_t word_at(const std::byte* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

}  // namespace

HopscotchShape HopscotchShape::of(const Plan& plan, NodeId server, bool is_inline) {
  HopscotchShape shape;
  shape.key_bytes = plan.key_bytes;
  shape.value_bytes = plan.value_bytes;
  shape.hops = plan.tuning.hops;
  shape.has_checks = plan.tuning.checks && !plan.tuning.as_paper;
  std::vector<uint64_t> hashes;
  for (uint32_t number = 0; number < plan.keys->count(); ++number) {
    const std::string_view key = plan.keys->key(number);
    if (partition_of(plan, key) == server) hashes.push_back(hash_of(key));
  }
  shape.values = is_inline ? 0 : static_cast<uint32_t>(hashes.size()) + 1;  // a put writes before it frees the old one
  double homes =
      std::max<double>(shape.hops, static_cast<double>(hashes.size()) / std::min(plan.tuning.load, kMostLoad));
  for (;; homes *= kGrowth) {
    shape.homes = static_cast<uint32_t>(homes);
    HopscotchPlaces places(shape.homes, shape.hops);
    const auto fits = [&](uint64_t hash) { return places.take(shape.home(hash)) != HopscotchPlaces::kNone; };
    if (std::all_of(hashes.begin(), hashes.end(), fits)) return shape;
  }
}

uint32_t HopscotchPlaces::take(uint32_t home) {
  moves_ = 0;
  const uint32_t end = std::min(static_cast<uint32_t>(homes_.size()), home + kMostLook);
  uint32_t empty = home;
  while (empty < end && homes_[empty] != kNone) ++empty;
  if (empty >= end) return kNone;
  while (empty - home >= hops_) {
    uint32_t from = empty - (hops_ - 1);  // the first whose key may lie in `empty`, too
    while (from < empty && homes_[from] + hops_ <= empty) ++from;
    if (from == empty) return kNone;
    path_[moves_++] = {from, empty};
    empty = from;
  }
  for (const auto& [from, to] : moves()) homes_[to] = homes_[from];
  homes_[empty] = home;
  return empty;
}

uint32_t HopscotchShape::find(std::span<const std::byte> neighbourhood, std::string_view key) const {
  uint32_t at = 0;
  while (at < hops && std::memcmp(neighbourhood.data() + size_t{at} * slot_bytes(), key.data(), key_bytes) != 0) ++at;
  return at;
}

uint64_t HopscotchShape::offset_in(std::span<const std::byte> slot) const {
  return word_at(slot.data() + key_bytes);
}

uint64_t HopscotchShape::check_of(std::string_view key, std::span<const std::byte> value, uint64_t offset) const {
  const uint64_t of_value = XXH3_64bits_withSeed(value.data(), value.size(), offset);
  return XXH3_64bits_withSeed(key.data(), key.size(), of_value);
}

bool HopscotchShape::is_sound(std::span<const std::byte> slot, std::span<const std::byte> value) const {
  if (!has_checks) return true;
  const uint64_t offset = is_inline() ? 0 : offset_in(slot);
  return word_at(slot.data() + key_bytes + body_bytes()) == check_of(text_of(slot.data(), key_bytes), value, offset);
}

HopscotchTable::HopscotchTable(const HopscotchShape& shape, std::span<std::byte> slots, std::span<std::byte> values,
                               const Pause* pause)
    : shape_(shape),
      slots_(slots),
      values_(values),
      writer_(pause),
      places_(shape.homes, shape.hops),
      scratch_(shape.slot_bytes()) {
  for (uint32_t place = shape.values; place > 0; --place) free_values_.push_back(place - 1);
}

uint32_t HopscotchTable::find(std::string_view key) const {
  const uint32_t home = shape_.home(hash_of(key));
  for (uint32_t index = home; index < home + shape_.hops; ++index) {
    if (places_.home_at(index) == home && text_of(slot(index), shape_.key_bytes) == key) return index;
  }
  return kNone;
}

// An empty slot of the neighbourhood, after others have been copied out of it.
uint32_t HopscotchTable::make_room(uint32_t home) {
  const uint32_t index = places_.take(home);
  if (index == kNone) return kNone;
  for (const auto& [from, to] : places_.moves()) {
    writer_.write(slot(to), slot(from), shape_.slot_bytes(), StepWriter::kWord);
  }
  moves_ += places_.moves().size();
  return index;
}

void HopscotchTable::store(uint32_t index, std::string_view key, std::string_view value, uint64_t offset) {
  std::byte* at = scratch_.data();
  std::memcpy(at, key.data(), shape_.key_bytes);
  at += shape_.key_bytes;
  if (shape_.is_inline()) {
    std::memcpy(at, value.data(), shape_.value_bytes);
  } else {
    std::memcpy(at, &offset, sizeof offset);
  }
  at += shape_.body_bytes();
  const uint64_t check = shape_.check_of(key, std::as_bytes(std::span(value.data(), value.size())), offset);
  if (shape_.has_checks) std::memcpy(at, &check, sizeof check);
  writer_.write(slot(index), scratch_.data(), scratch_.size(), StepWriter::kWord);
}

Outcome HopscotchTable::put(std::string_view key, std::string_view value) {
  if (key.size() != shape_.key_bytes || value.size() != shape_.value_bytes) return Outcome::kFull;
  uint32_t index = find(key);
  const bool is_new = index == kNone;
  if (!shape_.is_inline() && free_values_.empty()) return Outcome::kFull;
  if (is_new) index = make_room(shape_.home(hash_of(key)));
  if (index == kNone) return Outcome::kFull;
  uint64_t offset = 0;
  if (!shape_.is_inline()) {
    offset = uint64_t{free_values_.back()} * shape_.value_bytes;
    free_values_.pop_back();
    writer_.write(values_.data() + offset, value.data(), value.size(), StepWriter::kLine);
  }
  const uint64_t old_offset = is_new || shape_.is_inline() ? 0 : shape_.offset_in({slot(index), shape_.slot_bytes()});
  store(index, key, value, offset);
  if (!is_new && !shape_.is_inline()) free_values_.push_back(static_cast<uint32_t>(old_offset / shape_.value_bytes));
  StepWriter::fence();
  return Outcome::kDone;
}

Outcome HopscotchTable::erase(std::string_view key) {
  const uint32_t index = find(key);
  if (index == kNone) return Outcome::kMiss;
  if (!shape_.is_inline()) {
    const uint64_t offset = shape_.offset_in({slot(index), shape_.slot_bytes()});
    free_values_.push_back(static_cast<uint32_t>(offset / shape_.value_bytes));
  }
  std::fill(scratch_.begin(), scratch_.end(), std::byte{0});
  writer_.write(slot(index), scratch_.data(), scratch_.size(), StepWriter::kWord);
  places_.give_back(index);
  StepWriter::fence();
  return Outcome::kDone;
}

std::optional<std::string_view> HopscotchTable::get(std::string_view key) const {
  const uint32_t index = find(key);
  if (index == kNone) return std::nullopt;
  const std::byte* const body = slot(index) + shape_.key_bytes;
  return text_of(shape_.is_inline() ? body : values_.data() + word_at(body), shape_.value_bytes);
}

}  // namespace egret::bench_paradigms
