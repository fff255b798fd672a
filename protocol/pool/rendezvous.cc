// Weighted rendezvous hashing as in C. Schindelhauer and G. Schomaker, "Weighted Distributed Hash Tables" (SPAA 2005),
// in the logarithmic form: the member with the least -log(draw) / weight owns the key, which is an exponential race, so
// each member wins its weight's share.
#include "pool/rendezvous.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <tuple>

#include "base/check.h"
#include "op/hash.h"
#include "pool/ketama.h"

namespace egret::pool {

namespace {

// Three hashes by XXH3 that have nothing to do with each other. To change one moves nearly all keys of all pools.
constexpr uint64_t kKeySeed = 1;
constexpr uint64_t kFlipSeed = 2;
constexpr uint64_t kFactorSeed = 3;
constexpr uint32_t kMultiplier = 0x9E3779B1;  // 2^32 / golden ratio, odd

// Makes a hash, flipped by a member's bits, the member's draw. A member maps hashes to draws one to one.
// T: a number, or a vector of them (by reference: how vectors are passed differs between CPUs).
template <class T>
[[gnu::always_inline]] inline void make_draw(T& number, const T& factor) {
  number *= factor;
  number ^= number >> 16;
  number *= kMultiplier;
}

// --- The logarithm: fixed point, 40 bits behind the point

constexpr int kFractionBits = 40;
constexpr int kIndexBits = 10;
constexpr int kRestBits = 32 - kIndexBits;  // of a mantissa's 32 bits behind the point

// log2 of 1 + index / 2^kIndexBits, bit by bit: squaring a number doubles its logarithm.
constexpr uint64_t log2_of(uint64_t index) {
  if (index == uint64_t{1} << kIndexBits) return uint64_t{1} << kFractionBits;
  uint64_t value = (uint64_t{1} << 31) + (index << (31 - kIndexBits));  // 31 bits behind the point
  uint64_t log = 0;
  for (int bit = 0; bit < kFractionBits; ++bit) {
    value = value * value >> 31;
    log <<= 1;
    if (value >= uint64_t{1} << 32) {
      log |= 1;
      value >>= 1;
    }
  }
  return log;
}

constexpr auto kLog2 = [] {
  std::array<uint64_t, (size_t{1} << kIndexBits) + 1> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = log2_of(i);
  return table;
}();

// -log2((draw + 1) / 2^32), straight lines between the table's points: less than 2^46, and less for each greater draw.
uint64_t cost_of(uint32_t draw) {
  const uint64_t value = uint64_t{draw} + 1;
  const int exponent = 63 - std::countl_zero(value);
  const uint64_t fraction = (value << (32 - exponent)) & 0xFFFFFFFF;
  const size_t index = fraction >> kRestBits;
  const uint64_t rest = fraction & ((uint64_t{1} << kRestBits) - 1);
  const uint64_t log = kLog2[index] + ((kLog2[index + 1] - kLog2[index]) * rest >> kRestBits);
  return (uint64_t{32} << kFractionBits) - (static_cast<uint64_t>(exponent) << kFractionBits) - log;
}

struct Score {
  uint64_t cost;
  uint32_t weight;
  uint32_t lane;  // among all; its order decides between equal scores
};

// Whether the score's cost / weight is less. The products are below 2^56.
bool is_better(const Score& a, const Score& b) {
  const uint64_t left = a.cost * b.weight;
  const uint64_t right = b.cost * a.weight;
  return left != right ? left < right : a.lane < b.lane;
}

// --- The best draw of many members, eight at a time

using Lanes [[gnu::vector_size(32)]] = uint32_t;
using SignedLanes [[gnu::vector_size(32)]] = int32_t;

#ifdef __x86_64__
const bool kHasAvx2 = __builtin_cpu_supports("avx2") != 0;
#endif

}  // namespace

// Vectors compare as signed numbers, so the draws' highest bit is inverted.
[[gnu::always_inline]] inline Rendezvous::Best Rendezvous::scan(uint32_t hash, std::span<const Block> blocks) {
  constexpr uint32_t kSign = uint32_t{1} << 31;
  SignedLanes best = SignedLanes{} + INT32_MIN;
  SignedLanes best_at{0, 1, 2, 3, 4, 5, 6, 7};
  SignedLanes at = best_at;
  for (const Block& block : blocks) {
    Lanes flip;
    Lanes factor;
    std::memcpy(&flip, block.flip.data(), sizeof flip);
    std::memcpy(&factor, block.factor.data(), sizeof factor);
    Lanes numbers = flip ^ hash;
    make_draw(numbers, factor);
    const auto draws = reinterpret_cast<SignedLanes>(numbers ^ kSign);
    const auto is_more = draws > best;
    best = is_more ? draws : best;
    best_at = is_more ? at : best_at;
    at += static_cast<int32_t>(kLanes);
  }
  int32_t draw = best[0];
  int32_t lane = best_at[0];
  for (size_t i = 1; i < kLanes; ++i) {
    if (best[i] < draw || (best[i] == draw && best_at[i] > lane)) continue;
    draw = best[i];
    lane = best_at[i];
  }
  return {static_cast<uint32_t>(draw) ^ kSign, static_cast<uint32_t>(lane)};
}

#ifdef __x86_64__
[[gnu::target("avx2")]] Rendezvous::Best Rendezvous::scan_avx2(uint32_t hash, std::span<const Block> blocks) {
  return scan(hash, blocks);
}
#endif

Rendezvous::Best Rendezvous::best_of(uint32_t hash, std::span<const Block> blocks) {
#ifdef __x86_64__
  if (kHasAvx2) return scan_avx2(hash, blocks);
#endif
  return scan(hash, blocks);
}

// --- The members

Rendezvous::Rendezvous(std::span<const Member> members) {
  EGRET_CHECK(members.size() <= kMaxMembers);
  std::vector<uint32_t> order(members.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t number) {
    return std::tuple(members[number].weight, ketama_name(members[number].name));
  });
  for (const uint32_t number : order) add(members[number], number);
}

void Rendezvous::add(const Member& member, uint32_t number) {
  EGRET_CHECK(member.weight >= 1);
  const std::string_view name = ketama_name(member.name);
  const auto flip = static_cast<uint32_t>(op::hash_key(name, kFlipSeed));
  const auto factor = static_cast<uint32_t>(op::hash_key(name, kFactorSeed)) | 1;
  const bool is_new_weight = groups_.empty() || groups_.back().weight != member.weight;
  if (is_new_weight) groups_.push_back({member.weight, static_cast<uint32_t>(blocks_.size()), 0});
  if (is_new_weight || free_lanes_ == 0) {
    blocks_.emplace_back();
    blocks_.back().flip.fill(flip);
    blocks_.back().factor.fill(factor);
    members_.insert(members_.end(), kLanes, number);
    ++groups_.back().blocks;
    free_lanes_ = kLanes - 1;
    return;
  }
  const size_t lane = kLanes - free_lanes_--;
  blocks_.back().flip[lane] = flip;
  blocks_.back().factor[lane] = factor;
  members_[members_.size() - kLanes + lane] = number;
}

bool Rendezvous::has_member(size_t lane) const {
  return lane % kLanes == 0 || members_[lane] != members_[lane - lane % kLanes];
}

// --- Keys

uint32_t Rendezvous::hash_of(std::string_view key) {
  return static_cast<uint32_t>(op::hash_key(key, kKeySeed));
}

uint32_t Rendezvous::draw(uint32_t hash, size_t lane) const {
  const Block& block = blocks_[lane / kLanes];
  uint32_t number = block.flip[lane % kLanes] ^ hash;
  make_draw(number, block.factor[lane % kLanes]);
  return number;
}

uint32_t Rendezvous::draw_of(std::string_view key, size_t member) const {
  const auto lane = static_cast<size_t>(std::ranges::find(members_, member) - members_.begin());
  EGRET_CHECK(lane < members_.size());
  return draw(hash_of(key), lane);
}

size_t Rendezvous::member_of(std::string_view key) const {
  EGRET_DCHECK(!groups_.empty());
  const uint32_t hash = hash_of(key);
  const std::span<const Block> blocks(blocks_);
  if (groups_.size() == 1) return members_[best_of(hash, blocks).lane];
  Score winner{};
  for (const Group& group : groups_) {
    const Best best = best_of(hash, blocks.subspan(group.first_block, group.blocks));
    const auto lane = static_cast<uint32_t>(group.first_block * kLanes + best.lane);
    const Score score{cost_of(best.draw), group.weight, lane};
    if (winner.weight == 0 || is_better(score, winner)) winner = score;
  }
  return members_[winner.lane];
}

size_t Rendezvous::order_of(std::string_view key, std::span<uint32_t> out) const {
  std::array<Score, kMaxMembers> scores;
  size_t count = 0;
  const uint32_t hash = hash_of(key);
  for (const Group& group : groups_) {
    const size_t end = (group.first_block + group.blocks) * kLanes;
    for (size_t lane = group.first_block * kLanes; lane < end; ++lane) {
      if (!has_member(lane)) continue;
      scores[count++] = {cost_of(draw(hash, lane)), group.weight, static_cast<uint32_t>(lane)};
    }
  }
  const size_t wanted = std::min(count, out.size());
  const auto sorted_end = scores.begin() + static_cast<ptrdiff_t>(wanted);
  std::partial_sort(scores.begin(), sorted_end, scores.begin() + static_cast<ptrdiff_t>(count), is_better);
  for (size_t i = 0; i < wanted; ++i) out[i] = members_[scores[i].lane];
  return wanted;
}

}  // namespace egret::pool
