#include "bench_paradigms/stores/cas/cas_layout.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>

#include "bench/sampler.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kUnsaidBytes = 16;
constexpr uint32_t kMostKicks = 500;
constexpr uint64_t kMostSpareBytes = uint64_t{1} << 30;  // of a client: memory is pinned, on every client host
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;           // odd: ranks draw different numbers

}  // namespace

IndexWord IndexWord::after(IndexWord before, uint32_t table, uint32_t entry) {
  const uint64_t version = (before.version() + 1) & (kVersions - 1);
  return IndexWord(table | uint64_t{entry} << kTableBits | version << 47 | kWatermark);
}

std::array<uint64_t, kMostWays> cas_places(uint64_t hash, uint32_t ways, uint64_t slots) {
  std::array<uint64_t, kMostWays> out{};
  for (uint32_t rank = 0; rank < ways; ++rank) {
    const uint64_t drawn = bench::mix64(hash + (rank + 1) * kStep);
    auto slot = static_cast<uint64_t>(static_cast<__uint128_t>(drawn) * slots >> 64);
    while (std::find(out.begin(), out.begin() + rank, slot) != out.begin() + rank) slot = (slot + 1) % slots;
    out[rank] = slot;
  }
  return out;
}

EntryLayout::EntryLayout(const Plan& plan)
    : key_bytes_(plan.key_bytes),
      value_bytes_(plan.value_bytes),
      entry_bytes_((plan.key_bytes + plan.value_bytes + kUnsaidBytes + 1 + 7) / 8 * 8) {}

CasLayout::CasLayout(const Plan& plan)
    : EntryLayout(plan), plan_(plan), ways_(plan.tuning.ways), spare_entries_(plan.tuning.spare_entries) {
  node_bits_ = static_cast<uint32_t>(std::bit_width(plan.nodes() - 1));
  if (node_bits_ < IndexWord::kTableBits) {
    filter_bits_ = std::min(plan.tuning.filter_bits, IndexWord::kTableBits - node_bits_);
  }
  const double wanted = plan.keys->count() / std::max(plan.tuning.index_load, 0.001) / plan.servers;
  slots_of_server_ = std::max<uint64_t>(2 * kMostWays, static_cast<uint64_t>(std::ceil(wanted)));
}

std::string CasLayout::why_not() const {
  if (ways_ < 2 || ways_ > kMostWays) return "2 to 8 ways, not " + std::to_string(ways_);
  if (node_bits_ > IndexWord::kTableBits) return "more nodes than an index word can tell apart";
  if (uint64_t{spare_entries_} * entry_bytes() > kMostSpareBytes) {
    return "a client's " + std::to_string(spare_entries_) +
           " entries for puts would take more than 1 GiB: " + std::to_string(kMostSpareBytes / entry_bytes()) +
           " at most (--spare-entries)";
  }
  return {};
}

uint32_t CasLayout::table_field(NodeId table, uint64_t hash) const {
  return table | static_cast<uint32_t>(filter_of(hash) << node_bits_);
}

NodeId CasLayout::holder_of(NodeId table) const {
  return plan_.tuning.places_at_server ? (table - plan_.servers) % plan_.servers : table;
}

bool EntryLayout::is_valid(const std::byte* entry) const {
  return (static_cast<uint8_t>(entry[entry_bytes_ - 1]) & kEntryValid) != 0;
}

void EntryLayout::write_entry(std::byte* entry, std::string_view key, std::string_view value) const {
  std::memset(entry, 0, entry_bytes_);
  flag(entry) = kEntryWatermark;
  std::memcpy(entry, key.data(), key.size());
  if (!value.empty()) std::memcpy(entry + key_bytes_, value.data(), value.size());  // a get has none
}

// One byte, after all others: who READs it has the rest, if the READ takes them in order or begins later.
void EntryLayout::set_valid(std::byte* entry) const {
  std::atomic_ref(flag(entry)).store(kEntryWatermark | kEntryValid, std::memory_order_release);
}

base::Expected<std::vector<uint32_t>> place_loaded(const CasLayout& layout, const bench::Keyspace& keys) {
  std::vector<uint32_t> placed(layout.slots());
  for (uint32_t number = 0; number < keys.count(); ++number) {
    uint32_t homeless = number + 1;
    uint64_t left = layout.slots();  // the word that it has just had to leave
    uint32_t kicks = 0;
    while (homeless != 0) {
      const auto places = layout.places(keys.key(homeless - 1));
      const auto end = places.begin() + layout.ways();
      const auto free = std::find_if(places.begin(), end, [&](uint64_t slot) { return placed[slot] == 0; });
      if (free == end && ++kicks > kMostKicks) return base::Status::error("the index is too small for these keys");
      // Not back to where it comes from.
      const auto at =
          free != end ? *free : places[(std::find(places.begin(), end, left) - places.begin() + 1) % layout.ways()];
      std::swap(placed[at], homeless);
      left = at;
    }
  }
  return placed;
}

}  // namespace egret::bench_paradigms
