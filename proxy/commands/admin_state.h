// What operators switch on and off, and what they watch. One object for the proxy, shared by its workers.
#pragma once

#include <atomic>

#include "memcache/admin.h"
#include "proxy/client/watch_hub.h"
#include "proxy/commands/prefix_stats.h"

namespace egret::proxy {

// Aligned to a cache line of its own: every op reads it, and neighbouring memory is written often.
struct alignas(64) AdminState {
  std::atomic<bool> crawler_is_enabled{true};  // lru_crawler enable|disable: if disabled, dumps are refused
  std::atomic<bool> is_dumping{false};         // as in memcached, one dump at a time
  WatchHub watch;
  PrefixStats prefixes;

  // Whether ops must be reported.
  bool observes_items() const {
    constexpr uint32_t kOfItems = memcache::kFetchers | memcache::kMutations | memcache::kDeletions;
    return (watch.wanted() & kOfItems) != 0 || prefixes.is_on();
  }
};

}  // namespace egret::proxy
