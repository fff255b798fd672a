// The head of the arena, from which a warm restart continues.
#pragma once

#include <array>
#include <cstdint>

#include "store/counters.h"
#include "store/index/index.h"
#include "store/memory/log.h"
#include "store/memory/pages.h"

namespace egret::store {

// Plain data, written when the store ends; valid only if `state` says so. Numbers are in this machine's byte order.
struct Superblock {
  static constexpr uint64_t kMagic = 0x31'45'52'4f'54'53'54'45;  // "ETSTORE1"
  static constexpr uint32_t kLayoutVersion = 3;
  enum class State : uint32_t { kNothing = 0, kInUse = 1, kClean = 2 };

  uint64_t magic;
  uint32_t layout_version;
  State state;
  uint64_t checksum;  // XXH3 of all that follows

  uint64_t memory;
  uint64_t hash_seed;
  uint64_t cas_stride;
  uint64_t cas_offset;
  uint32_t item_size_max;
  uint32_t evict;

  uint64_t version;
  uint64_t flushed_before;
  uint64_t expiring_items;
  uint32_t flush_second;
  Pages::State pages;
  Index::State index;
  Log::State log;
  uint64_t bytes;
  uint64_t items;
  struct Held {
    uint64_t number;
    uint64_t bytes;
  };
  std::array<Held, op::kSizeClasses> classes;

  // Whose keys the items are (upkeep/purger.h). Behind what the checksum covers, where files of 0.1.0 have zeroes.
  uint64_t membership;
  uint64_t membership_check;  // membership ^ checksum; else there is none
};

}  // namespace egret::store
