// What operators switch on and off while a proxy runs, and what they watch. One for the proxy, shared by its workers.
#pragma once

#include <atomic>

#include "memcache/admin.h"
#include "proxy/commands/prefix_stats.h"
#include "proxy/commands/watch_hub.h"

namespace egret::proxy {

// By itself in memory: each op looks at it, and what lies beside it is written often.
struct alignas(64) AdminState {
  std::atomic<bool> crawler_is_enabled{true};  // lru_crawler enable|disable: dumps are refused without
  std::atomic<bool> is_dumping{false};         // one dump at a time, as memcached's
  WatchHub watch;
  PrefixStats prefixes;

  // Whether somebody wants to know of each op.
  bool observes_items() const {
    constexpr uint32_t kOfItems = memcache::kFetchers | memcache::kMutations | memcache::kDeletions;
    return (watch.wanted() & kOfItems) != 0 || prefixes.is_on();
  }
};

}  // namespace egret::proxy
