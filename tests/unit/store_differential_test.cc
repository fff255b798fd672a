// Random ops on the store and on a simple model of memcached, compared answer by answer. STORE_SEED=n replays a run.
#include <cstdlib>
#include <map>
#include <random>

#include <doctest/doctest.h>

#include "store/number.h"
#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::SetMode;

namespace {

// What memcached would answer, if it never ran out of memory. Written for plainness.
class Model {
 public:
  struct Entry {
    std::string value;
    uint32_t flags = 0;
    int64_t deadline = 0;
  };

  void set_now(int64_t now) {
    now_ = now;
    if (flush_at_ != 0 && now_ >= flush_at_) {
      entries_.clear();
      if (now_ > flush_at_) flush_at_ = 0;
    }
  }

  Entry* find(const std::string& key) {
    if (flush_at_ == now_) entries_.clear();
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    if (at->second.deadline != 0 && at->second.deadline <= now_) {
      entries_.erase(at);
      return nullptr;
    }
    return &at->second;
  }

  ResultCode set(const op::Op& op) {
    Entry* old = find(std::string(op.key));
    switch (op.mode) {
      case SetMode::kAdd:
        if (old != nullptr) return ResultCode::kNotStored;
        break;
      case SetMode::kReplace:
        if (old == nullptr) return ResultCode::kNotStored;
        break;
      case SetMode::kAppend:
      case SetMode::kPrepend:
        if (old == nullptr) return ResultCode::kNotStored;
        old->value.insert(op.mode == SetMode::kAppend ? old->value.size() : 0, op.value);
        return ResultCode::kStored;
      case SetMode::kSet:
        break;
    }
    entries_[std::string(op.key)] = {std::string(op.value), op.client_flags, deadline(op.exptime)};
    return ResultCode::kStored;
  }

  ResultCode arith(const op::Op& op, uint64_t* number) {
    Entry* entry = find(std::string(op.key));
    if (entry == nullptr) return ResultCode::kMiss;
    const auto before = parse_number(entry->value);
    if (!before) return ResultCode::kNonNumeric;
    *number = (op.options & op::kDecrement) != 0 ? (op.delta > *before ? 0 : *before - op.delta) : *before + op.delta;
    const std::string digits = std::to_string(*number);
    const size_t length = std::max(digits.size(), entry->value.size());
    entry->value = digits + std::string(length - digits.size(), ' ');
    return ResultCode::kNumber;
  }

  void erase(const std::string& key) { entries_.erase(key); }
  int64_t deadline(int64_t exptime) const { return exptime <= 0 ? -exptime : now_ + exptime; }
  void flush(int64_t delay) {
    if (flush_at_ == now_) entries_.clear();  // what is hidden stays so
    flush_at_ = 0;
    if (delay <= 0) {
      entries_.clear();
    } else {
      flush_at_ = now_ + delay - 1;
      set_now(now_);
    }
  }

 private:
  std::map<std::string, Entry> entries_;
  int64_t now_ = 0;
  int64_t flush_at_ = 0;
};

class Differential {
 public:
  Differential(uint64_t seed, StoreConfig config, bool may_evict) : random_(seed), h_(config), may_evict_(may_evict) {
    model_.set_now(h_.clock.unix_seconds());
  }

  void run(size_t batches) {
    for (size_t i = 0; i < batches; ++i) {
      if (random_() % 50 == 0) h_.clock.advance_seconds(random_() % 3);
      model_.set_now(h_.clock.unix_seconds());
      h_.store->begin_pass();
      batch();
      if (i % (batches / 8) == 0) h_.check();
    }
  }

 private:
  void batch() {
    const size_t count = 1 + random_() % kMaxBatch;
    keys_.assign(count, {});
    values_.assign(count, {});
    std::vector<op::Op> ops;
    for (size_t i = 0; i < count; ++i) ops.push_back(random_op(i));
    h_.store->prepare(ops);
    h_.store->locate();
    for (size_t i = 0; i < count; ++i) compare(ops[i], h_.store->execute(i));
  }

  op::Op random_op(size_t i) {
    keys_[i] = "key" + std::to_string(random_() % 3000);
    const uint64_t kind = random_() % 100;
    if (kind < 40) return h_.make(op::OpCode::kGet, keys_[i]);
    if (kind < 45) {
      op::Op gat = h_.make(op::OpCode::kGet, keys_[i]);
      gat.options = op::kTouch;
      gat.exptime = static_cast<int64_t>(random_() % 6) - 1;
      return gat;
    }
    if (kind < 55) return h_.make(op::OpCode::kDelete, keys_[i]);
    if (kind < 65) {
      op::Op arith = h_.make(op::OpCode::kArith, keys_[i]);
      arith.delta = random_() >> (random_() % 64);
      arith.options = random_() % 2 == 0 ? op::kDecrement : 0;
      return arith;
    }
    if (kind == 65 && random_() % 30 == 0) {
      op::Op flush;
      flush.code = op::OpCode::kFlush;
      flush.exptime = static_cast<int64_t>(random_() % 5) - 1;
      return flush;
    }
    values_[i] = random_() % 3 == 0 ? std::to_string(random_() >> (random_() % 64))
                                    : std::string(random_length(), static_cast<char>('a' + random_() % 26));
    const bool extends = random_() % 4 == 0;
    const auto mode = extends ? SetMode(3 + random_() % 2) : SetMode(random_() % 3);
    if (extends) values_[i].resize(random_() % 40, 'x');
    return h_.make_set(keys_[i], values_[i], static_cast<int64_t>(random_() % 8) - 1,
                       random_() % 2 == 0 ? 0 : static_cast<uint32_t>(random_()), mode);
  }

  size_t random_length() { return random_() % (size_t{1} << (random_() % 13)); }

  // With eviction, an item may be gone at any time: the model forgets what the store no longer has.
  void forget_evicted(const std::string& key) {
    if (may_evict_ && model_.find(key) != nullptr && h_.get(key) == "-") model_.erase(key);
  }

  void compare(const op::Op& op, const op::Result& got) {
    const std::string key(op.key);
    switch (op.code) {
      case op::OpCode::kGet: {
        Model::Entry* entry = model_.find(key);
        if (may_evict_ && got.code == ResultCode::kMiss) return model_.erase(key);
        REQUIRE(got.code == (entry != nullptr ? ResultCode::kHit : ResultCode::kMiss));
        if (entry == nullptr) return;
        REQUIRE(h_.whole_value(key, got) == entry->value);
        REQUIRE(got.client_flags == entry->flags);
        if ((op.options & op::kTouch) != 0) entry->deadline = model_.deadline(op.exptime);
        return;
      }
      case op::OpCode::kDelete: {
        const bool had = model_.find(key) != nullptr;
        if (!may_evict_ || got.code == ResultCode::kDeleted)
          REQUIRE(got.code == (had ? ResultCode::kDeleted : ResultCode::kMiss));
        return model_.erase(key);
      }
      case op::OpCode::kArith: {
        if (may_evict_ && got.code == ResultCode::kMiss) return model_.erase(key);
        uint64_t number = 0;
        REQUIRE(got.code == model_.arith(op, &number));
        if (got.code == ResultCode::kNumber) REQUIRE(got.number == number);
        return;
      }
      case op::OpCode::kFlush:
        return model_.flush(op.exptime);
      default:
        return compare_set(op, got);
    }
  }

  void compare_set(const op::Op& op, const op::Result& got) {
    const std::string key(op.key);
    // The store judged before it evicted, so an item missing to it was missing then.
    const bool needs_old = op.mode == SetMode::kReplace || op.mode == SetMode::kAppend || op.mode == SetMode::kPrepend;
    if (may_evict_ && ((needs_old && got.code == ResultCode::kNotStored) ||
                       (op.mode == SetMode::kAdd && got.code == ResultCode::kStored))) {
      model_.erase(key);
    }
    REQUIRE(got.code == model_.set(op));
    if (got.code != ResultCode::kStored) return;
    REQUIRE(got.cas > last_cas_);
    last_cas_ = got.cas;
  }

  std::mt19937_64 random_;
  Harness h_;
  Model model_;
  bool may_evict_;
  uint64_t last_cas_ = 0;
  std::vector<std::string> keys_;
  std::vector<std::string> values_;
};

uint64_t seed_of_run() {
  if (const char* given = std::getenv("STORE_SEED")) return std::strtoull(given, nullptr, 10);
  return std::random_device{}();
}

}  // namespace

TEST_CASE("random ops answer as the model does, with room for all") {
  const uint64_t seed = seed_of_run();
  INFO("STORE_SEED=" << seed);
  Differential(seed, small_store(64u << 20), false).run(20'000);
}

TEST_CASE("random ops answer as the model does, but for what is evicted") {
  const uint64_t seed = seed_of_run();
  INFO("STORE_SEED=" << seed);
  Differential(seed, small_store(kMinMemory), true).run(20'000);
}

}  // namespace egret::store
