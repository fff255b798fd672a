#include "changes/changed_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "op/records.h"

namespace egret::backend {

namespace {

constexpr uint64_t kShare = 64;
constexpr uint64_t kLeastBudget = 256u << 10;  // bytes
constexpr uint64_t kMostBudget = 8u << 20;
constexpr size_t kFirstTable = 256;  // entries
constexpr size_t kProbes = 16;

// A record of a log: the low half of the key's hash, the key's length, the key.
constexpr size_t kHead = sizeof(uint32_t) + 1;

}  // namespace

struct ChangedKeys::Owner {
  explicit Owner(uint64_t its_tag, uint64_t version)
      : tag(its_tag),
        floor(version),
        begin((base::random_u64() >> 2) + 2),
        first(begin),
        told(begin),
        purged(begin),
        listed(begin) {}

  uint64_t end() const { return first + log.size(); }
  uint64_t bytes() const { return log.capacity() + table.size() * sizeof(uint32_t); }
  // The record at that offset; empty: it is none.
  std::string_view key_at(size_t offset) const {
    if (offset + kHead > log.size()) return {};
    const size_t length = static_cast<uint8_t>(log[offset + kHead - 1]);
    if (length > op::kMaxKeyLength || length > log.size() - offset - kHead) return {};
    return {log.data() + offset + kHead, length};
  }
  uint32_t hash_at(size_t offset) const {
    uint32_t hash = 0;
    std::memcpy(&hash, log.data() + offset, sizeof hash);
    return hash;
  }
  void enter_in_table(uint32_t hash, size_t offset);
  void grow_table();
  uint32_t* find_in_table(std::string_view key, uint32_t hash);

  const uint64_t tag;
  uint64_t floor;
  const uint64_t begin;         // the cursor with which it began
  uint64_t first;               // the cursor of the log's first byte
  uint64_t told;                // up to this cursor somebody has read
  uint64_t purged;              // up to this one, keys have been purged on the owner
  uint64_t listed;              // the end that list() tells
  uint64_t listed_ns = 0;       // when that was the end
  std::vector<char> log;        // records
  std::vector<uint32_t> table;  // by hash: offset in the log + 1; 0: none
  size_t entered = 0;           // entries of the table
};

// Where an entry of that key is, or may be made; null: too many others are in its way.
uint32_t* ChangedKeys::Owner::find_in_table(std::string_view key, uint32_t hash) {
  for (size_t i = 0; i < kProbes; ++i) {
    uint32_t& entry = table[(hash + i) & (table.size() - 1)];
    if (entry == 0 || (hash_at(entry - 1) == hash && key_at(entry - 1) == key)) return &entry;
  }
  return nullptr;
}

void ChangedKeys::Owner::enter_in_table(uint32_t hash, size_t offset) {
  uint32_t* const entry = find_in_table(key_at(offset), hash);
  if (entry == nullptr) return;
  entered += *entry == 0 ? 1 : 0;
  *entry = static_cast<uint32_t>(offset + 1);
}

void ChangedKeys::Owner::grow_table() {
  table.assign(std::max(kFirstTable, table.size() * 2), 0);
  entered = 0;
  for (size_t at = 0; at < log.size(); at += kHead + key_at(at).size()) enter_in_table(hash_at(at), at);
}

ChangedKeys::ChangedKeys(uint64_t memory) : budget_(std::clamp(memory / kShare, kLeastBudget, kMostBudget)) {}
ChangedKeys::~ChangedKeys() = default;

ChangedKeys::Owner* ChangedKeys::find(uint64_t tag) {
  const auto at = std::ranges::find(owners_, tag, [](const auto& owner) { return owner->tag; });
  if (at == owners_.end()) return nullptr;
  std::rotate(at, at + 1, owners_.end());
  return owners_.back().get();
}

ChangedKeys::Owner& ChangedKeys::find_or_enter(uint64_t tag, uint64_t version) {
  if (!owners_.empty() && owners_.back()->tag == tag) return *owners_.back();
  if (Owner* const known = find(tag); known != nullptr) return *known;
  if (owners_.size() == kMostOwners) {
    ++forgotten_;
    bytes_ -= owners_.front()->bytes();
    owners_.erase(owners_.begin());
  }
  return *owners_.emplace_back(std::make_unique<Owner>(tag, version));
}

uint64_t ChangedKeys::floor_of(uint64_t owner, uint64_t version) {
  return find_or_enter(owner, version).floor;
}

// The positions go on behind what is forgotten: who has not read it to its end finds it missing. With a gap everybody
// does.
void ChangedKeys::forget_log(Owner& owner, uint64_t gap) {
  bytes_ -= owner.bytes();
  owner.first = owner.end() + gap;
  owner.log = std::vector<char>();
  owner.table = std::vector<uint32_t>();
  owner.entered = 0;
}

// Before the log takes so many bytes more.
void ChangedKeys::make_room(Owner& for_whom, uint64_t bytes) {
  const auto forget = [this](Owner& owner) {
    ++forgotten_;
    forget_log(owner, 0);
  };
  if (for_whom.log.size() + bytes > kMostLog) forget(for_whom);
  const bool grows =
      for_whom.log.size() + bytes > for_whom.log.capacity() || for_whom.entered * 2 >= for_whom.table.size();
  // Log and table may double.
  while (grows && bytes_ + for_whom.bytes() + kFirstTable * sizeof(uint32_t) + bytes > budget_) {
    const auto largest = std::ranges::max_element(owners_, {}, [](const auto& owner) { return owner->bytes(); });
    if ((*largest)->bytes() == 0) return;
    forget(**largest);
  }
}

void ChangedKeys::note(uint64_t tag, std::string_view key, uint64_t hash) {
  Owner& owner = find_or_enter(tag, 0);
  const auto short_hash = static_cast<uint32_t>(hash);
  if (!owner.table.empty()) {
    const uint32_t* const entry = owner.find_in_table(key, short_hash);
    const bool is_known = entry != nullptr && *entry != 0;
    if (is_known && owner.first + *entry - 1 >= owner.told) return;  // everybody who reads on will see it
  }
  make_room(owner, kHead + key.size());
  const uint64_t before = owner.bytes();
  const size_t offset = owner.log.size();
  owner.log.insert(owner.log.end(), reinterpret_cast<const char*>(&short_hash),
                   reinterpret_cast<const char*>(&short_hash) + sizeof short_hash);
  owner.log.push_back(static_cast<char>(key.size()));
  owner.log.insert(owner.log.end(), key.begin(), key.end());
  if (owner.entered * 2 >= owner.table.size()) {
    owner.grow_table();
  } else {
    owner.enter_in_table(short_hash, offset);
  }
  bytes_ += owner.bytes() - before;
}

void ChangedKeys::note_all(uint64_t tag) {
  forget_log(find_or_enter(tag, 0), 1);
}

ChangedKeys::Page ChangedKeys::read(uint64_t tag, uint64_t cursor, uint64_t version, size_t bytes, std::string& to) {
  if (cursor == op::kEnterFailover) {
    Owner& owner = find_or_enter(tag, version);
    owner.floor = version;
    owner.told = owner.end();
    return {owner.end(), false};
  }
  Owner* const owner = find(tag);
  const bool is_place = cursor != op::kOldestChange && cursor != op::kChangesFromNow;
  if (owner == nullptr) return {op::kOldestChange, is_place};
  const uint64_t end = owner->end();
  Page page{end, false};
  if (cursor != op::kChangesFromNow) {
    page.cursor = is_place ? cursor : owner->begin;
    page.is_incomplete = page.cursor < owner->first || page.cursor > end;
    if (page.is_incomplete) page.cursor = is_place ? end : owner->first;
  }
  while (page.cursor < end && to.size() < bytes) {
    const std::string_view key = owner->key_at(page.cursor - owner->first);
    if (key.empty()) return {end, true};  // nobody was given this cursor
    op::RecordHead head{};
    head.cursor = page.cursor + kHead + key.size();
    op::append_record(to, head, key);
    page.cursor = head.cursor;
  }
  owner->told = std::max(owner->told, page.cursor);
  return page;
}

uint64_t ChangedKeys::list(uint64_t cursor, uint64_t now_ns, std::string& to) {
  for (uint64_t at = cursor; at < owners_.size(); ++at) {
    Owner& owner = *owners_[at];
    if (owner.listed_ns == 0 || now_ns - owner.listed_ns >= kRoundNs) {
      owner.listed = owner.end();
      owner.listed_ns = now_ns;
    }
    const op::ChangedOwner record{.tag = owner.tag, .end = owner.listed, .purged = owner.purged};
    op::RecordHead head{};
    head.cursor = at + 1;
    op::append_record(to, head, {reinterpret_cast<const char*>(&record), sizeof record});
  }
  return owners_.size();
}

void ChangedKeys::note_purged(uint64_t tag, uint64_t cursor) {
  Owner* const owner = find(tag);
  if (owner != nullptr && cursor <= owner->end()) owner->purged = std::max(owner->purged, cursor);
}

}  // namespace egret::backend
