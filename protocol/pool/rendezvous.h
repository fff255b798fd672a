// Chooses the backend of a key by weighted rendezvous hashing: each member draws a number for the key, and the best
// draw owns it. A draw depends on the key and on that member's name and weight alone, so a change of one member moves
// only keys to it or from it.
//
//   key  ─ XXH3 ─▶ 32 bits ─┐
//                           ├─▶ one draw for each member ─ of equal weights the highest ─┐
//   name ─ XXH3 ─▶ 2 × 32 ──┘                                                           ├─▶ best score ─▶ member
//   weight ─────────────────────────────── score: -log2(draw) / weight, the least wins ─┘
//
// README.md has the rule in full. Only integers are used, and the logarithm is this file's own, so every machine and
// compiler gives the same answer. Owns its members' numbers; immutable after construction: any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "pool/member.h"

namespace egret::pool {

class Rendezvous {
 public:
  Rendezvous() = default;
  // At most kMaxMembers with distinct names (check_members). Their order does not matter.
  explicit Rendezvous(std::span<const Member> members);

  // The index of the member. There is at least one.
  size_t member_of(std::string_view key) const;
  // The members by their scores, the owner first: who owns the key if those before are taken out. Fills `out` as far as
  // there are members, and returns how many it wrote.
  size_t order_of(std::string_view key, std::span<uint32_t> out) const;

  // The key's hash and a member's draw for it.
  static uint32_t hash_of(std::string_view key);
  uint32_t draw_of(std::string_view key, size_t member) const;

 private:
  static constexpr size_t kLanes = 8;

  // Two numbers of each of eight members of equal weight. Lanes without a member repeat the block's first one, which
  // changes nothing: of equal draws the first wins.
  struct alignas(32) Block {
    std::array<uint32_t, kLanes> flip{};
    std::array<uint32_t, kLanes> factor{};
  };
  // The members of one weight, by name.
  struct Group {
    uint32_t weight = 0;
    uint32_t first_block = 0;
    uint32_t blocks = 0;
  };
  // The best draw of a group.
  struct Best {
    uint32_t draw = 0;
    uint32_t lane = 0;  // counted from the group's first
  };

  void add(const Member& member, uint32_t number);
  bool has_member(size_t lane) const;
  uint32_t draw(uint32_t hash, size_t lane) const;

  static Best scan(uint32_t hash, std::span<const Block> blocks);
  static Best scan_avx2(uint32_t hash, std::span<const Block> blocks);
  static Best best_of(uint32_t hash, std::span<const Block> blocks);

  std::vector<Block> blocks_;
  std::vector<Group> groups_;      // by weight
  std::vector<uint32_t> members_;  // of each lane of the blocks: the member's index
  size_t free_lanes_ = 0;          // of the last block, while members are added
};

}  // namespace egret::pool
