// A store behind a server core: what the handlers of calls execute ops on. Not reached by any verb.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace egret::bench_paradigms {

class KvStore {
 public:
  virtual ~KvStore() = default;
  // The value's size, copied to `to`, which has room for the largest. None: there is no such key.
  virtual std::optional<uint32_t> get(std::string_view key, std::span<std::byte> to) = 0;
  // False: no room, nothing changed.
  virtual bool put(std::string_view key, std::string_view value) = 0;
  virtual bool erase(std::string_view key) = 0;
  // Brings the key's place into the cache.
  virtual void prefetch(std::string_view /*key*/) {}
};

}  // namespace egret::bench_paradigms
