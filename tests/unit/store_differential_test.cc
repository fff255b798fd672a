// Random ops, those of the meta commands included, on the store and on a simple model of memcached, compared answer by
// answer. STORE_SEED=n replays a run.
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

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
    bool stale = false;
    bool token_sent = false;
    // What the op before has left open is taken from the next answer that tells.
    std::optional<uint64_t> cas = std::nullopt;
    std::optional<bool> fetched = false;
    std::optional<int64_t> accessed = std::nullopt;
    bool marks_open = false;
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

  // What a meta get answers of marks, but for kFetched; afterwards the token counts as sent.
  uint8_t take_marks(Entry& entry, const op::Op& op) {
    uint8_t marks = entry.token_sent ? op::kTokenSent : 0;
    if (entry.stale) marks |= op::kStale;
    const int64_t end = (op.options & op::kTouchFirst) != 0 ? deadline(op.exptime) : entry.deadline;
    const bool runs_out = (op.options & op::kRecache) != 0 && end != 0 && end - now_ < op.recache_below;
    if (!entry.token_sent && (entry.stale || runs_out)) marks |= op::kWon;
    if ((op.options & op::kPeek) != 0) return marks & op::kStale;  // who only looks is not told to win
    if ((marks & op::kWon) != 0) entry.token_sent = true;
    return marks;
  }

  Entry& vivify(const op::Op& op) {
    Entry& made = entries_[std::string(op.key)] = {"", 0, deadline(op.vivify_exptime)};
    made.token_sent = true;
    return made;
  }

  ResultCode erase(const op::Op& op) {
    Entry* entry = find(std::string(op.key));
    if (entry == nullptr) return ResultCode::kMiss;
    if ((op.options & op::kCompareCas) != 0 && op.cas != entry->cas) return ResultCode::kExists;
    if ((op.options & (op::kInvalidate | op::kDropValue)) == 0) {
      entries_.erase(std::string(op.key));
      return ResultCode::kDeleted;
    }
    if ((op.options & op::kInvalidate) != 0) entry->cas.reset();
    if ((op.options & op::kExplicitCas) != 0) entry->cas = op.new_cas;
    if ((op.options & op::kDropValue) != 0) {
      entry->deadline = 0;
      entry->value.clear();
      entry->flags = 0;
      entry->fetched.reset();
      entry->accessed.reset();
      entry->marks_open = (op.options & op::kInvalidate) == 0;
    }
    if ((op.options & op::kInvalidate) != 0) {
      entry->stale = true;
      entry->token_sent = false;
      entry->marks_open = false;
      if ((op.options & op::kTouch) != 0) entry->deadline = deadline(op.exptime);
    }
    return ResultCode::kDeleted;
  }

  // A set with kCompareCas, of mode kSet.
  ResultCode compare_and_set(const op::Op& op) {
    Entry* old = find(std::string(op.key));
    if (old == nullptr) return ResultCode::kMiss;
    const bool may_be_stale = (op.options & op::kInvalidate) != 0;
    if (op.cas > old->cas || (op.cas < old->cas && !may_be_stale)) return ResultCode::kExists;
    Entry made{std::string(op.value), op.client_flags, deadline(op.exptime)};
    if (op.cas < old->cas) {
      made.deadline = old->deadline;
      made.stale = true;
      made.token_sent = old->token_sent;
      made.marks_open = old->marks_open;
    }
    made.accessed = now_;
    *old = std::move(made);
    return ResultCode::kStored;
  }

  ResultCode set(const op::Op& op) {
    if ((op.options & op::kCompareCas) != 0) return compare_and_set(op);
    Entry* old = find(std::string(op.key));
    switch (op.mode) {
      case SetMode::kAdd:
      case SetMode::kFill:
        if (old != nullptr) return ResultCode::kNotStored;
        break;
      case SetMode::kReplace:
        if (old == nullptr) return ResultCode::kNotStored;
        break;
      case SetMode::kAppend:
      case SetMode::kPrepend:
        if (old == nullptr && (op.options & op::kVivify) == 0) return ResultCode::kNotStored;
        if (old == nullptr) {
          put(op, op.vivify_exptime);
          return ResultCode::kStored;
        }
        old->value.insert(op.mode == SetMode::kAppend ? old->value.size() : 0, op.value);
        old->stale = old->token_sent = old->marks_open = false;
        old->fetched.reset();
        old->accessed.reset();
        return ResultCode::kStored;
      case SetMode::kSet:
        break;
    }
    put(op, op.exptime);
    return ResultCode::kStored;
  }

  ResultCode arith(const op::Op& op, uint64_t* number) {
    Entry* entry = find(std::string(op.key));
    if (entry == nullptr && (op.options & op::kCreate) != 0) {
      *number = op.initial;
      entries_[std::string(op.key)] = {std::to_string(op.initial), 0, deadline(op.vivify_exptime)};
      return ResultCode::kNumber;
    }
    if (entry == nullptr) return ResultCode::kMiss;
    const auto before = parse_number(entry->value);
    if (!before) return ResultCode::kNonNumeric;
    *number = (op.options & op::kDecrement) != 0 ? (op.delta > *before ? 0 : *before - op.delta) : *before + op.delta;
    const std::string digits = std::to_string(*number);
    const size_t length = std::max(digits.size(), entry->value.size());
    entry->value = digits + std::string(length - digits.size(), ' ');
    if ((op.options & op::kTouch) != 0) entry->deadline = deadline(op.exptime);
    // In memcached it depends on the number's length whether this is the old item or a new one.
    entry->marks_open = true;
    entry->fetched.reset();
    entry->accessed.reset();
    return ResultCode::kNumber;
  }

  void erase(const std::string& key) { entries_.erase(key); }
  int64_t now() const { return now_; }
  int64_t ttl(const Entry& entry) const { return entry.deadline == 0 ? -1 : entry.deadline - now_; }
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
  void put(const op::Op& op, int64_t exptime) {
    Entry& made = entries_[std::string(op.key)] = {std::string(op.value), op.client_flags, deadline(exptime)};
    made.accessed = now_;
  }

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
    touched_.clear();
    for (size_t i = 0; i < count; ++i) {
      ops.push_back(random_op(i));
      touched_.insert(keys_[i]);
    }
    h_.store->prepare(ops);
    h_.store->locate();
    for (size_t i = 0; i < count; ++i) compare(ops[i], h_.store->execute(i));
  }

  op::Op random_op(size_t i) {
    keys_[i] = "key" + std::to_string(random_() % 3000);
    const uint64_t kind = random_() % 100;
    if (kind < 25) return h_.make(op::OpCode::kGet, keys_[i]);
    if (kind < 40) return random_meta_get(i);
    if (kind < 45) {
      op::Op gat = h_.make(op::OpCode::kGet, keys_[i]);
      gat.options = op::kTouch;
      gat.exptime = random_exptime();
      return gat;
    }
    if (kind < 55) return random_delete(i);
    if (kind < 65) return random_arith(i);
    if (kind == 65 && random_() % 30 == 0) {
      op::Op flush;
      flush.code = op::OpCode::kFlush;
      flush.exptime = static_cast<int64_t>(random_() % 5) - 1;
      return flush;
    }
    return random_set(i);
  }

  int64_t random_exptime() { return static_cast<int64_t>(random_() % 6) - 1; }
  bool one_in(uint64_t n) { return random_() % n == 0; }

  // An item that was evicted cannot be told from one that never was when the op makes it anew: not where that happens.
  op::Op random_meta_get(size_t i) {
    op::Op get = h_.make(op::OpCode::kGet, keys_[i]);
    get.options = op::kWantMeta | op::kWantCas;
    if (one_in(8)) {
      get.options |= op::kPeek;
      return get;
    }
    if (one_in(8)) get.options |= op::kNoValue;
    if (one_in(4)) give_cas(get);
    if (one_in(3)) get.options |= op::kRecache, get.recache_below = static_cast<int64_t>(random_() % 8);
    if (one_in(4)) {
      get.options |= op::kTouch, get.exptime = random_exptime();
      if ((get.options & op::kRecache) != 0 && one_in(2)) get.options |= op::kTouchFirst;
    } else if (!may_evict_ && one_in(3)) {
      get.options |= op::kVivify, get.vivify_exptime = static_cast<int64_t>(random_() % 6);
    }
    return get;
  }

  op::Op random_delete(size_t i) {
    op::Op remove = h_.make(op::OpCode::kDelete, keys_[i]);
    if (one_in(2)) remove.options |= op::kInvalidate;
    if (one_in(4)) remove.options |= op::kDropValue;
    if (one_in(5)) give_cas(remove);
    if (remove.options & (op::kInvalidate | op::kDropValue)) maybe_new_cas(remove);
    if ((remove.options & op::kInvalidate) && one_in(3))
      remove.options |= op::kTouch, remove.exptime = random_exptime();
    return remove;
  }

  op::Op random_arith(size_t i) {
    op::Op arith = h_.make(op::OpCode::kArith, keys_[i]);
    arith.delta = random_() >> (random_() % 64);
    arith.options = one_in(2) ? op::kDecrement : 0;
    maybe_new_cas(arith);
    if (one_in(4)) arith.options |= op::kTouch, arith.exptime = random_exptime();
    if (!may_evict_ && one_in(4)) {
      arith.options |= op::kCreate, arith.initial = random_();
      arith.vivify_exptime = random_exptime();
    }
    return arith;
  }

  op::Op random_set(size_t i) {
    values_[i] = random_() % 3 == 0 ? std::to_string(random_() >> (random_() % 64))
                                    : std::string(random_length(), static_cast<char>('a' + random_() % 26));
    const bool extends = random_() % 4 == 0;
    const auto mode = extends ? SetMode(3 + random_() % 2) : SetMode(random_() % 3);
    if (extends) values_[i].resize(random_() % 40, 'x');
    op::Op set = h_.make_set(keys_[i], values_[i], static_cast<int64_t>(random_() % 8) - 1,
                             random_() % 2 == 0 ? 0 : static_cast<uint32_t>(random_()), mode);
    maybe_new_cas(set);
    if (mode == SetMode::kSet && one_in(3)) {
      give_cas(set);
      if (one_in(2)) set.options |= op::kInvalidate;
    }
    if (extends && !may_evict_ && one_in(2)) set.options |= op::kVivify, set.vivify_exptime = random_exptime();
    return set;
  }

  // The item's, or one before or after it, if it is known: no op of the batch has the same key.
  void give_cas(op::Op& op) {
    const Model::Entry* entry = model_.find(std::string(op.key));
    if (entry == nullptr || !entry->cas || touched_.contains(std::string(op.key))) return;
    op.options |= op::kCompareCas;
    op.cas = *entry->cas + random_() % 3 - 1;
  }

  void maybe_new_cas(op::Op& op) {
    if (!one_in(10)) return;
    op.options |= op::kExplicitCas;
    op.new_cas = random_() >> (random_() % 64);
  }

  size_t random_length() { return random_() % (size_t{1} << (random_() % 13)); }

  void compare(const op::Op& op, const op::Result& got) {
    const std::string key(op.key);
    switch (op.code) {
      case op::OpCode::kGet:
        return compare_get(op, got);
      case op::OpCode::kDelete:
        if (may_evict_ && got.code == ResultCode::kMiss) model_.erase(key);
        REQUIRE(got.code == model_.erase(op));
        return;
      case op::OpCode::kArith:
        return compare_arith(op, got);
      case op::OpCode::kFlush:
        return model_.flush(op.exptime);
      default:
        return compare_set(op, got);
    }
  }

  void compare_get(const op::Op& op, const op::Result& got) {
    const std::string key(op.key);
    Model::Entry* entry = model_.find(key);
    if (may_evict_ && got.code == ResultCode::kMiss) return model_.erase(key);
    const bool is_made = entry == nullptr && (op.options & op::kVivify) != 0;
    REQUIRE(got.code == (entry != nullptr || is_made ? ResultCode::kHit : ResultCode::kMiss));
    if (is_made) return compare_made(model_.vivify(op), got);
    if (entry == nullptr) return;
    const bool is_known = (op.options & op::kCompareCas) != 0 && entry->cas == op.cas;
    const bool is_left_out = is_known || (op.options & op::kNoValue) != 0;
    REQUIRE((is_left_out ? std::string(got.value) : h_.whole_value(key, got)) == (is_left_out ? "" : entry->value));
    REQUIRE(got.client_flags == entry->flags);
    if ((op.options & op::kWantMeta) != 0) {
      compare_meta(*entry, op, got);
    } else {
      REQUIRE((got.marks & op::kWon) == 0);  // by a classic get nobody wins
    }
    if ((op.options & op::kPeek) != 0) return;
    if ((op.options & op::kTouch) != 0) entry->deadline = model_.deadline(op.exptime);
    entry->fetched = true;
    entry->accessed = model_.now();
  }

  void compare_made(Model::Entry& made, const op::Result& got) const {
    REQUIRE(got.value.empty());
    REQUIRE(got.marks == (op::kWon | op::kCreated));
    REQUIRE(got.ttl == model_.ttl(made));
    made.cas = got.cas;
    made.fetched = true;
    made.accessed = model_.now();
  }

  void compare_meta(Model::Entry& entry, const op::Op& op, const op::Result& got) {
    REQUIRE(got.ttl == model_.ttl(entry));
    if (entry.accessed) REQUIRE(got.last_access == model_.now() - *entry.accessed);
    if (entry.fetched) REQUIRE(((got.marks & op::kFetched) != 0) == *entry.fetched);
    if (entry.cas) REQUIRE(got.cas == *entry.cas);
    entry.cas = got.cas;
    const bool peeks = (op.options & op::kPeek) != 0;
    if (!entry.marks_open) {
      const int told = peeks ? got.marks & op::kStale : got.marks & ~op::kFetched;
      REQUIRE(told == model_.take_marks(entry, op));
    } else if (!peeks) {
      entry.marks_open = false;
      entry.stale = (got.marks & op::kStale) != 0;
      entry.token_sent = (got.marks & (op::kTokenSent | op::kWon)) != 0;
    }
  }

  void compare_arith(const op::Op& op, const op::Result& got) {
    const std::string key(op.key);
    if (may_evict_ && got.code == ResultCode::kMiss) return model_.erase(key);
    uint64_t number = 0;
    REQUIRE(got.code == model_.arith(op, &number));
    if (got.code != ResultCode::kNumber) return;
    REQUIRE(got.number == number);
    if (Model::Entry* entry = model_.find(key)) note_cas(*entry, op, std::nullopt);
  }

  static void note_cas(Model::Entry& entry, const op::Op& op, std::optional<uint64_t> told) {
    entry.cas = (op.options & op::kExplicitCas) != 0 ? op.new_cas : told;
  }

  void compare_set(const op::Op& op, const op::Result& got) {
    const std::string key(op.key);
    if (may_evict_ && got.code == ResultCode::kMiss) model_.erase(key);
    // The store judged before it evicted, so an item missing to it was missing then.
    const bool needs_old = op.mode == SetMode::kReplace || op.mode == SetMode::kAppend || op.mode == SetMode::kPrepend;
    if (may_evict_ && ((needs_old && got.code == ResultCode::kNotStored) ||
                       (op.mode == SetMode::kAdd && got.code == ResultCode::kStored))) {
      model_.erase(key);
    }
    REQUIRE(got.code == model_.set(op));
    if (got.code != ResultCode::kStored) return;
    if (Model::Entry* entry = model_.find(key)) note_cas(*entry, op, got.cas);
    if ((op.options & op::kExplicitCas) != 0) {
      REQUIRE(got.cas == op.new_cas);
      return;
    }
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
  std::set<std::string> touched_;  // keys of the batch so far
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
