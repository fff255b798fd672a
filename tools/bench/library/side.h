// A way to do gets, which is measured. Keys are "client:0", "client:1", …; each value is told by its key (value_of).
//
// Thread: one. Every answer is checked; an error ends the measurement.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace egret::bench_library {

inline constexpr size_t kUnderWay = 32;
inline constexpr size_t kRefill = 8;  // so many answers make it worth to ask for more

inline std::string key_of(size_t number) {
  return "client:" + std::to_string(number);
}

// So that a wrong value is seen: it begins with its key.
inline std::string value_of(std::string_view key, size_t length) {
  std::string value(key);
  value.resize(length, '.');
  return value;
}

// What one call asks for, and what it is to bring. Made before anything is measured.
struct Batch {
  std::vector<std::string> keys, values;
};
// So many batches of so many keys, which walk all `keys` in steps, from `first` on.
std::vector<Batch> make_batches(size_t batches, size_t keys_each, size_t keys, size_t value_bytes, size_t first = 0);

class Side {
 public:
  virtual ~Side() = default;
  virtual const std::string& name() const = 0;
  // Another one, with connections of its own.
  virtual base::Expected<std::unique_ptr<Side>> another() const = 0;
  // Whether children that are forked now may have others. A device serves one process.
  virtual bool may_fork() const { return true; }
  virtual base::Status set(const std::string& key, const std::string& value) = 0;
  virtual base::Status get(const std::string& key, const std::string& value) = 0;
  // One call for all keys.
  virtual base::Status multiget(const std::vector<std::string>& keys, const std::vector<std::string>& values) = 0;
  // Each a get of its own. As far as there are so many, kUnderWay of them are under way: whenever kRefill or more have been
  // answered, as many are asked for again.
  virtual base::Status pipelined(const std::vector<std::string>& keys, const std::vector<std::string>& values) = 0;
};

// `options`: libegret's, by name; `name`: of the side.
using LibraryOptions = std::vector<std::pair<std::string, std::string>>;
base::Expected<std::unique_ptr<Side>> library_side(const std::string& name, const LibraryOptions& options);
// `address`: HOST:PORT or unix:PATH.
base::Expected<std::unique_ptr<Side>> socket_side(const std::string& address);
// By libmemcached over that socket; over slots, in a process that egret-run has started.
base::Expected<std::unique_ptr<Side>> libmemcached_side(const std::string& address);
// Why there is none of the latter, where libmemcached is not installed.
base::Status has_libmemcached();

}  // namespace egret::bench_library
