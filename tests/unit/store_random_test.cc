// Random lives of a store, with everything at once that store_differential_test leaves out: values of all lengths
// around the borders of records, chunks and pages; values that grow; uploads side by side; readers of a version, with
// and without a pin, while others overwrite it; time, upkeep and restarts through a warm file. Every value's bytes are
// its own (body()), so that mixed ones show. STORE_SEED=n replays a run, STORE_OPS=n sets the length of each.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <random>

#include <doctest/doctest.h>
#include <unistd.h>

#include "op/item_size.h"
#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::SetMode;

namespace {

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* given = std::getenv(name);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

// No two values, and no two places of one, look alike for long.
std::string body(uint64_t number, size_t length) {
  std::string made(length, ' ');
  uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
  for (char& c : made) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    c = static_cast<char>('!' + (state >> 33) % 90);
  }
  return made;
}

struct Life {
  const char* name;
  uint64_t memory;
  uint32_t item_size_max;
  bool evicts;
  bool is_roomy;  // nothing is ever evicted, refused for want of room or pinned beyond the budget
  uint64_t keys;
};

class RandomLife {
 public:
  RandomLife(uint64_t seed, const Life& life) : random_(seed), life_(life) {
    if (one_in(2)) {
      const bool has_shm = std::filesystem::exists("/dev/shm");
      path_ = (has_shm ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/egret-store-random-" +
              std::to_string(::getpid());
    }
    h_.config = small_store(life.memory, life.item_size_max, life.evicts);
    h_.config.clock = &h_.clock;
    h_.config.hash_seed = 12345;
    h_.config.warm_path = path_;
    h_.store.reset();
    create();
  }
  ~RandomLife() {
    end_reading();
    h_.check();
    if (path_.empty()) return;
    h_.store = std::move(Store::create(small_again()).value());  // for the harness to check
    std::filesystem::remove(path_);
  }

  void run(uint64_t ops) {
    for (uint64_t i = 0; i < ops; ++i) {
      step();
      if (i % (ops / 20 + 1) == 0) h_.check();
    }
    INFO(life_.name);
    if (life_.evicts)
      CHECK(refused_ * 20 <= ops);  // where a value is a good part of the memory, uploads can hold the rest
  }

 private:
  struct Entry {
    std::string value;
    uint32_t flags = 0;
    int64_t deadline = 0;
    uint64_t version = 0;
    uint64_t cas = 0;
  };
  // Reads a value piece by piece, by its version or by a pin.
  struct Reader {
    std::string key;
    Entry entry;
    uint32_t offset = 0;
    Store::Pin pin = {};
  };
  struct Sender {
    std::string key;
    std::string value;
    Store::Upload upload;
  };

  StoreConfig small_again() {
    StoreConfig plain = small_store();
    plain.clock = &h_.clock;
    return plain;
  }

  void create() {
    auto made = Store::create(h_.config);
    REQUIRE(made.is_ok());
    h_.store = std::move(made.value());
    h_.store->begin_pass();
  }

  bool one_in(uint64_t n) { return random_() % n == 0; }
  std::string random_key() {
    const uint64_t limit = one_in(2) ? life_.keys : life_.keys / 10;  // some are more popular
    std::string key = "k" + std::to_string(random_() % limit);
    if (key.back() == '7') key.append(200, 'k');
    return key;
  }
  size_t random_length() {
    const auto near = [this](size_t border) { return border - 3 + random_() % 7; };
    switch (random_() % 16) {
      case 0:
        return near(kMaxInline);
      case 1:
        return near(kChunkSize * (1 + random_() % 20));
      case 2:
        return near(kPageSize * (1 + random_() % 4));
      case 3:
        return near(kPageSize - kChunkSize);
      case 4:
        return random_() % life_.item_size_max;
      case 5:
      case 6:
        return random_() % 20'000;
      case 7:
        return 0;
      default:
        return random_() % (size_t{1} << (random_() % 13));
    }
  }
  std::string random_body() { return body(++bodies_, random_length()); }
  int64_t random_exptime() { return one_in(3) ? static_cast<int64_t>(random_() % 30) : 0; }
  int64_t now() const { return h_.clock.unix_seconds(); }
  int64_t deadline_of(int64_t exptime) const { return exptime == 0 ? 0 : now() + exptime; }

  // --- The model: what is there unless it was evicted.

  void tell_time() {
    if (flush_at_ == 0 || now() < flush_at_) return;
    entries_.clear();
    if (now() > flush_at_) flush_at_ = 0;
  }
  Entry* find(const std::string& key) {
    tell_time();
    const auto at = entries_.find(key);
    if (at == entries_.end()) return nullptr;
    if (at->second.deadline == 0 || at->second.deadline > now()) return &at->second;
    entries_.erase(at);
    return nullptr;
  }
  // The store says that the item is not there, and may only if it evicts.
  void forget(const std::string& key) {
    if (!life_.evicts || life_.is_roomy) REQUIRE(find(key) == nullptr);
    entries_.erase(key);
  }
  void is_out_of_memory() {
    REQUIRE(!life_.is_roomy);
    ++refused_;
  }

  // --- Ops

  void step() {
    const uint64_t kind = random_() % 1000;
    if (kind < 250) return store_one();
    if (kind < 500) return get_one();
    if (kind < 550) return erase_one();
    if (kind < 600) return touch_one();
    if (kind < 640) return begin_reading();
    if (kind < 750) return read_on();
    if (kind < 790) return begin_sending();
    if (kind < 930) return send_on();
    if (kind < 990) return upkeep();
    if (kind < 993) return flush_some();
    if (kind == 993 && !path_.empty() && one_in(4)) return restart();
    return fill();
  }

  // Many small ones, so that all sizes have to give way to each other.
  void fill() {
    for (int i = 0; i < 200; ++i) put(random_key(), body(++bodies_, random_() % 100), SetMode::kSet);
  }

  void store_one() {
    const auto mode = SetMode(one_in(2) ? 0 : random_() % op::kSetModes);
    const bool extends = mode == SetMode::kAppend || mode == SetMode::kPrepend;
    put(random_key(), extends && !one_in(8) ? body(++bodies_, 1 + random_() % 3000) : random_body(), mode);
  }

  void put(const std::string& key, const std::string& value, SetMode mode) {
    op::Op set = h_.make_set(key, value, random_exptime(), one_in(2) ? 0 : static_cast<uint32_t>(random_()), mode);
    const Entry* entry = find(key);
    if (entry != nullptr && one_in(4)) {
      set.options = op::kCompareCas;
      set.cas = entry->cas + (one_in(4) ? 1 : 0);
    }
    compare_stored(set, value, h_.run(set));
  }

  void compare_stored(const op::Op& set, const std::string& value, const op::Result& got) {
    const std::string key(set.key);
    const bool extends = set.mode == SetMode::kAppend || set.mode == SetMode::kPrepend;
    const bool compares = (set.options & op::kCompareCas) != 0;
    if (got.code == ResultCode::kOutOfMemory || got.code == ResultCode::kTooLarge) {
      if (got.code == ResultCode::kOutOfMemory) is_out_of_memory();
      if (got.code == ResultCode::kTooLarge) REQUIRE(is_too_large(set, value.size()));
      if (set.mode == SetMode::kSet && !compares) entries_.erase(key);
      return;
    }
    Entry* entry = find(key);
    if (got.code == ResultCode::kMiss) return forget(key);
    const bool adds = set.mode == SetMode::kAdd || set.mode == SetMode::kFill;
    if (entry != nullptr && compares && set.cas != entry->cas && !adds) {
      if (got.code == ResultCode::kNotStored) return forget(key);  // evicted, and so nothing to extend
      REQUIRE(got.code == ResultCode::kExists);
      return;
    }
    if (extends && got.code == ResultCode::kNotStored) return compare_not_extended(set, value.size());
    const bool expected = set.mode == SetMode::kSet || adds == (entry == nullptr);
    if (!expected && got.code == ResultCode::kStored) {
      forget(key);  // an add
      entry = nullptr;
    } else if (expected && got.code == ResultCode::kNotStored) {
      return forget(key);  // a replace
    } else {
      REQUIRE(got.code == (expected ? ResultCode::kStored : ResultCode::kNotStored));
    }
    if (got.code != ResultCode::kStored) return;
    REQUIRE(got.version > last_version_);
    last_version_ = got.version;
    if (extends) {
      entry->value.insert(set.mode == SetMode::kAppend ? entry->value.size() : 0, value);
    } else {
      entry = &(entries_[key] = {value, set.client_flags, deadline_of(set.exptime)});
    }
    entry->version = got.version;
    entry->cas = got.cas;
  }

  bool is_too_large(const op::Op& set, uint64_t length) const {
    return op::memcached_item_size(set.key.size(), set.client_flags, length) > life_.item_size_max;
  }

  void compare_not_extended(const op::Op& set, uint64_t added) {
    const std::string key(set.key);
    const Entry* entry = find(key);
    if (entry == nullptr || !life_.is_roomy) return;  // if it was evicted a get will tell
    const bool is_pinned = std::ranges::any_of(readers_, [&](const Reader& r) { return r.pin && r.key == key; });
    const uint64_t size = op::memcached_item_size(key.size(), entry->flags, entry->value.size() + added);
    REQUIRE((is_pinned || size > life_.item_size_max));
  }

  void get_one() {
    const std::string key = random_key();
    const op::Result got = h_.gets(key);
    const Entry* entry = find(key);
    if (got.code == ResultCode::kMiss) return forget(key);
    REQUIRE(got.code == ResultCode::kHit);
    REQUIRE(entry != nullptr);
    REQUIRE(got.client_flags == entry->flags);
    REQUIRE(got.version == entry->version);
    REQUIRE(got.cas == entry->cas);
    REQUIRE(got.total_length == entry->value.size());
    REQUIRE(bytes_of(got).size() == std::min<uint64_t>(Store::kMaxChunk, got.total_length));
    REQUIRE(h_.whole_value(key, got) == entry->value);
  }

  void erase_one() {
    const std::string key = random_key();
    const ResultCode got = h_.erase(key);
    if (got == ResultCode::kMiss) return forget(key);
    REQUIRE(got == ResultCode::kDeleted);
    REQUIRE(find(key) != nullptr);
    entries_.erase(key);
  }

  void touch_one() {
    const std::string key = random_key();
    const int64_t exptime = random_exptime();
    const ResultCode got = h_.touch(key, exptime);
    if (got == ResultCode::kOutOfMemory) return is_out_of_memory();
    if (got == ResultCode::kMiss) return forget(key);
    REQUIRE(got == ResultCode::kHit);
    REQUIRE(find(key) != nullptr);
    find(key)->deadline = deadline_of(exptime);
  }

  void flush_some() {
    if (!one_in(8)) return;
    const auto delay = static_cast<int64_t>(random_() % 4);
    h_.flush_all(delay);
    tell_time();
    flush_at_ = delay == 0 ? 0 : now() + delay - 1;
    if (delay == 0) entries_.clear();
  }

  void upkeep() {
    if (one_in(4)) h_.clock.advance_seconds(random_() % 25);
    h_.store->begin_pass();
    tell_time();
    for (int i = 0; i < 8 && h_.store->idle_step(); ++i) {
    }
  }

  // --- Readers of one version

  void begin_reading() {
    if (readers_.size() >= 8) return;
    const std::string key = random_key();
    const Entry* entry = find(key);
    if (entry == nullptr) return;
    Reader reader{.key = key, .entry = *entry};
    if (one_in(2)) {
      reader.pin = h_.store->pin(key, h_.make(op::OpCode::kGet, key).hash);
      if (!reader.pin) return;  // evicted, or beyond the budget
      REQUIRE(reader.pin.version() == entry->version);
      REQUIRE(reader.pin.length() == entry->value.size());
      REQUIRE(reader.pin.client_flags() == entry->flags);
    }
    readers_.push_back(std::move(reader));
  }

  void read_on() {
    if (readers_.empty()) return;
    const size_t which = random_() % readers_.size();
    Reader& reader = readers_[which];
    const auto length = static_cast<uint32_t>(random_() % (2 * kMaxInline));
    op::Op chunk = h_.make(op::OpCode::kChunk, reader.key);
    chunk.version = reader.entry.version;
    chunk.offset = reader.offset;
    chunk.length = length;
    const op::Result got = reader.pin ? reader.pin.chunk(reader.offset, length) : h_.run(chunk);
    if (got.code == ResultCode::kChanged) {
      const Entry* entry = find(reader.key);
      if (!life_.evicts || life_.is_roomy) REQUIRE((entry == nullptr || entry->version != reader.entry.version));
    } else {
      REQUIRE(got.code == ResultCode::kHit);
      REQUIRE(bytes_of(got) == std::string_view(reader.entry.value).substr(reader.offset, length));
      reader.offset += length;
      if (reader.offset <= reader.entry.value.size()) return;
      if (reader.pin && !one_in(4)) reader.offset = 0;  // and once more
      if (reader.offset == 0) return;
    }
    std::swap(reader, readers_.back());
    readers_.pop_back();
  }

  void end_reading() {
    readers_.clear();
    senders_.clear();
  }

  // --- Values in parts

  void begin_sending() {
    if (senders_.size() >= 4) return;
    Sender sender{.key = random_key(), .value = random_body(), .upload = {}};
    const auto length = static_cast<uint32_t>(sender.value.size());
    auto reserved = h_.store->reserve(sender.key, length);
    if (reserved.code != ResultCode::kOk) {
      if (reserved.code == ResultCode::kOutOfMemory) return is_out_of_memory();
      REQUIRE(reserved.code == ResultCode::kTooLarge);
      return;
    }
    sender.upload = std::move(reserved.upload);
    senders_.push_back(std::move(sender));
  }

  void send_on() {
    if (senders_.empty()) return;
    const size_t which = random_() % senders_.size();
    Sender& sender = senders_[which];
    const uint32_t at = sender.upload.received();
    if (at < sender.value.size() && !one_in(50)) {
      const std::string_view part = std::string_view(sender.value).substr(at, 1 + random_() % 30'000);
      const ResultCode got = sender.upload.write(at, part);
      if (got == ResultCode::kOk) return;
      REQUIRE(got == ResultCode::kOutOfMemory);
      is_out_of_memory();
    } else if (sender.upload.is_complete() && !one_in(10)) {
      commit(sender);
    }
    std::swap(sender, senders_.back());
    senders_.pop_back();
  }

  void commit(Sender& sender) {
    op::Op made = h_.make(op::OpCode::kCommit, sender.key);
    made.mode = SetMode(random_() % op::kSetModes);
    made.client_flags = one_in(2) ? 0 : 77;
    made.exptime = random_exptime();
    const Entry* entry = find(sender.key);
    if (entry != nullptr && one_in(3)) {
      made.options = op::kCompareCas;
      made.cas = entry->cas + (one_in(4) ? 1 : 0);
    }
    compare_stored(made, sender.value, sender.upload.commit(made));
  }

  // --- Restarts

  void restart() {
    end_reading();
    h_.check();
    const uint64_t items = h_.store->counts().items;
    h_.store.reset();
    if (one_in(2)) h_.clock.advance_seconds(random_() % 20);
    create();
    REQUIRE(h_.store->counts().items <= items);  // it sweeps at once
    REQUIRE(h_.store->opening().empty_because.empty());
    h_.check();
    tell_time();
  }

  std::mt19937_64 random_;
  const Life life_;
  std::string path_;
  Harness h_;
  std::map<std::string, Entry> entries_;
  int64_t flush_at_ = 0;
  uint64_t last_version_ = 0;
  uint64_t bodies_ = 0;
  uint64_t refused_ = 0;
  std::vector<Reader> readers_;
  std::vector<Sender> senders_;
};

void live(const Life& life) {
  const uint64_t seed = number_of("STORE_SEED", std::random_device{}());
  INFO("STORE_SEED=" << seed);
  RandomLife(seed, life).run(number_of("STORE_OPS", 30'000));
}

}  // namespace

TEST_CASE("a random life with room for all") {
  live({"roomy", 64u << 20, 256u << 10, true, true, 300});
}
TEST_CASE("a random life in the smallest store") {
  live({"smallest", kMinMemory, 256u << 10, true, false, 3000});
}
TEST_CASE("a random life in a small store") {
  live({"small", 4u << 20, 400u << 10, true, false, 5000});
}
TEST_CASE("a random life in the smallest store that evicts nothing") {
  live({"smallest, no evictions", kMinMemory, 256u << 10, false, false, 1000});
}
TEST_CASE("a random life in a small store that evicts nothing") {
  live({"small, no evictions", 4u << 20, 400u << 10, false, false, 3000});
}

}  // namespace egret::store
