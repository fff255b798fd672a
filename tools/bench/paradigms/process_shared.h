// What the server cores of one process share: a table, a counter. Made by the first that asks, gone with the last.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

// The same for all nodes that were made with this Plan object. Any thread; set-up only.
template <typename T, typename Make>
std::shared_ptr<T> shared_by_servers(const Plan& plan, Make make) {
  static std::mutex mutex;
  static std::unordered_map<const Plan*, std::weak_ptr<T>> all;
  const std::lock_guard lock(mutex);
  std::weak_ptr<T>& known = all[&plan];
  std::shared_ptr<T> shared = known.lock();
  if (shared == nullptr) known = shared = make();
  return shared;
}

}  // namespace egret::bench_paradigms
