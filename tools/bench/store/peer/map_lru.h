// The peer: a simple cache as a program might write it, a hash map of strings with a list for the LRU order. No limit,
// no expiry, no flags, no CAS.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace egret::bench_store {

class MapLru {
 public:
  explicit MapLru(size_t expected) { entries_.reserve(expected); }

  // nullptr: no such key. Valid until the next set() of the key.
  const std::string* get(std::string_view key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second.place);
    return &found->second.value;
  }

  void set(std::string_view key, std::string_view value) {
    const auto found = entries_.find(key);
    if (found != entries_.end()) {
      found->second.value.assign(value);
      order_.splice(order_.begin(), order_, found->second.place);
      return;
    }
    const auto added = entries_.emplace(key, Entry{std::string(value), {}}).first;
    order_.push_front(&added->first);
    added->second.place = order_.begin();
  }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };
  using Order = std::list<const std::string*>;
  struct Entry {
    std::string value;
    Order::iterator place;
  };
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  Order order_;
};

}  // namespace egret::bench_store
