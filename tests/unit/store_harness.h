// What the store's tests share: a store under a clock set by hand, and memcached's commands as one-line calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "base/clock.h"
#include "op/hash.h"
#include "store/store.h"

namespace egret::store {

// All that a result holds of a value, however many pieces it lies in.
inline std::string bytes_of(const op::Result& result) {
  std::string bytes(result.value);
  for (const std::string_view piece : result.further) bytes += piece;
  return bytes;
}

struct Harness {
  explicit Harness(StoreConfig wanted = {}) : config(wanted) {
    config.clock = &clock;
    config.hash_seed = 12345;
    auto made = Store::create(config);
    REQUIRE(made.is_ok());
    store = std::move(made.value());
  }
  ~Harness() { check(); }

  void check() {
    std::string why;
    const bool is_sound = check_invariants(*store, &why);
    CHECK_MESSAGE(is_sound, why);
  }
  void pass_seconds(uint64_t seconds) {
    clock.advance_seconds(seconds);
    store->begin_pass();
  }

  op::Op make(op::OpCode code, std::string_view key) const {
    op::Op made;
    made.code = code;
    made.key = key;
    made.hash = op::hash_key(key, config.hash_seed);
    return made;
  }
  op::Op make_set(std::string_view key, std::string_view value, int64_t exptime = 0, uint32_t flags = 0,
                  op::SetMode mode = op::SetMode::kSet) const {
    op::Op made = make(op::OpCode::kSet, key);
    made.value = value;
    made.exptime = exptime;
    made.client_flags = flags;
    made.mode = mode;
    return made;
  }

  op::Result run(const op::Op& op) { return execute_one(*store, op); }
  op::ResultCode set(std::string_view key, std::string_view value, int64_t exptime = 0, uint32_t flags = 0) {
    return run(make_set(key, value, exptime, flags)).code;
  }
  op::ResultCode store_as(op::SetMode mode, std::string_view key, std::string_view value, int64_t exptime = 0,
                          uint32_t flags = 0) {
    return run(make_set(key, value, exptime, flags, mode)).code;
  }
  op::ResultCode cas(std::string_view key, std::string_view value, uint64_t unique) {
    op::Op made = make_set(key, value);
    made.options = op::kCompareCas;
    made.cas = unique;
    return run(made).code;
  }
  op::Result gets(std::string_view key) {
    op::Op made = make(op::OpCode::kGet, key);
    made.options = op::kWantCas;
    return run(made);
  }
  // The value, or "-" for a miss.
  std::string get(std::string_view key) {
    const op::Result result = run(make(op::OpCode::kGet, key));
    return result.code == op::ResultCode::kHit ? whole_value(key, result) : "-";
  }
  // What a get has answered, and the rest of it, chunk by chunk.
  std::string whole_value(std::string_view key, const op::Result& got) {
    std::string value = bytes_of(got);
    while (value.size() < got.total_length) {
      op::Op chunk = make(op::OpCode::kChunk, key);
      chunk.version = got.version;
      chunk.offset = static_cast<uint32_t>(value.size());
      chunk.length = got.total_length;
      const op::Result part = run(chunk);
      REQUIRE(part.code == op::ResultCode::kHit);
      REQUIRE(!part.value.empty());
      value += bytes_of(part);
    }
    return value;
  }
  static std::string pinned_value(const Store::Pin& pin) {
    std::string value;
    while (value.size() < pin.length()) {
      const op::Result part = pin.chunk(static_cast<uint32_t>(value.size()), pin.length());
      REQUIRE(!part.value.empty());
      value += bytes_of(part);
    }
    return value;
  }
  op::Result gat(std::string_view key, int64_t exptime, uint16_t options = 0) {
    op::Op made = make(op::OpCode::kGet, key);
    made.options = static_cast<uint16_t>(op::kTouch | options);
    made.exptime = exptime;
    return run(made);
  }
  op::ResultCode touch(std::string_view key, int64_t exptime) { return gat(key, exptime, op::kNoValue).code; }
  op::ResultCode erase(std::string_view key) { return run(make(op::OpCode::kDelete, key)).code; }
  op::Result arith(std::string_view key, uint64_t delta, uint16_t options = 0) {
    op::Op made = make(op::OpCode::kArith, key);
    made.delta = delta;
    made.options = options;
    return run(made);
  }
  void flush_all(int64_t exptime = 0) {
    op::Op made;
    made.code = op::OpCode::kFlush;
    made.exptime = exptime;
    CHECK(run(made).code == op::ResultCode::kOk);
  }
  uint64_t stat(op::StatId id) const {
    std::vector<op::StatRow> rows;
    store->append_stats(op::StatGroup::kGeneral, rows);
    for (const op::StatRow& row : rows) {
      if (row.id == static_cast<uint32_t>(id)) return row.value;
    }
    FAIL("no such row");
    return 0;
  }

  base::ManualClock clock;
  StoreConfig config;
  std::unique_ptr<Store> store;
};

inline StoreConfig small_store(uint64_t memory = kMinMemory, uint32_t item_size_max = 64u << 10, bool evict = true) {
  StoreConfig config;
  config.memory_limit = memory;
  config.item_size_max = item_size_max;
  config.evict = evict;
  return config;
}

inline std::string key_of(uint64_t number) {
  return "key-" + std::to_string(number);
}

inline std::string pattern(size_t length) {
  std::string value(length, ' ');
  for (size_t i = 0; i < length; ++i) value[i] = static_cast<char>('a' + i % 23);
  return value;
}

// An upload with all its bytes.
inline Store::Upload upload(Harness& h, std::string_view key, std::string_view value) {
  auto reserved = h.store->reserve(key, static_cast<uint32_t>(value.size()));
  REQUIRE(reserved.code == op::ResultCode::kOk);
  for (size_t offset = 0; offset < value.size(); offset += 3000) {
    REQUIRE(reserved.upload.write(static_cast<uint32_t>(offset), value.substr(offset, 3000)) == op::ResultCode::kOk);
  }
  return std::move(reserved.upload);
}

}  // namespace egret::store

// For doctest's messages.
namespace egret::op {
inline doctest::String toString(ResultCode code) {
  return to_string(code);
}
}  // namespace egret::op
