// Memory of designs in which clients write an index by COMPARE_SWAP (paper 003, section 4.1): words of the index, entries
// of the tables that they refer to, and where a key's words are.
//
//   index word, 8 bytes   table 15 (its upper bits: filter bits) | entry 32, 0: empty | version 16 | watermark 1
//   entry                 key | value | 16 that the paper leaves unsaid | padding to 8 | last byte: valid 7, watermark 1
//
// The index lies in the servers' memory, its words dealt over them in equal parts; a table belongs to each client: its
// number is the client's. The watermark is the last bit in the order of addresses, and always set: who has cleared it
// before a READ knows by it that the READ's last byte has come.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

inline constexpr uint32_t kMostWays = 8;
inline constexpr uint64_t kWordBytes = 8;
inline constexpr uint8_t kEntryWatermark = 0x80;
inline constexpr uint8_t kEntryValid = 1;

class IndexWord {
 public:
  static constexpr uint32_t kTableBits = 15;
  static constexpr uint32_t kVersions = 1u << 16;  // they wrap

  // Empty, version 0.
  constexpr IndexWord() = default;
  constexpr explicit IndexWord(uint64_t bits) : bits_(bits) {}
  // What takes the place of `before`.
  static IndexWord after(IndexWord before, uint32_t table, uint32_t entry);
  static IndexWord empty_after(IndexWord before) { return after(before, 0, 0); }

  uint64_t bits() const { return bits_; }
  uint32_t table() const { return bits_ & ((1u << kTableBits) - 1); }  // with filter bits
  uint32_t entry() const { return static_cast<uint32_t>(bits_ >> kTableBits); }
  uint32_t version() const { return static_cast<uint32_t>(bits_ >> 47) & (kVersions - 1); }
  bool is_empty() const { return entry() == 0; }
  bool operator==(const IndexWord&) const = default;

 private:
  static constexpr uint64_t kWatermark = uint64_t{1} << 63;
  uint64_t bits_ = kWatermark;
};

// The words of a key, by rank, among so many: all different. The others are 0.
std::array<uint64_t, kMostWays> cas_places(uint64_t hash, uint32_t ways, uint64_t slots);

// The bytes of an entry.
class EntryLayout {
 public:
  explicit EntryLayout(const Plan& plan);
  uint32_t entry_bytes() const { return entry_bytes_; }
  uint64_t entry_offset(uint32_t entry) const { return uint64_t{entry - 1} * entry_bytes_; }
  std::string_view key_of(const std::byte* entry) const { return {text(entry), key_bytes_}; }
  std::string_view value_of(const std::byte* entry) const { return {text(entry) + key_bytes_, value_bytes_}; }
  bool is_valid(const std::byte* entry) const;
  void write_entry(std::byte* entry, std::string_view key, std::string_view value) const;  // not valid
  void set_valid(std::byte* entry) const;
  uint8_t& flag(std::byte* entry) const { return reinterpret_cast<uint8_t*>(entry)[entry_bytes_ - 1]; }

 private:
  static const char* text(const std::byte* entry) { return reinterpret_cast<const char*>(entry); }

  uint32_t key_bytes_;
  uint32_t value_bytes_;
  uint32_t entry_bytes_;
};

class CasLayout : public EntryLayout {
 public:
  explicit CasLayout(const Plan& plan);
  // Why the plan does not fit; empty if it does.
  std::string why_not() const;

  uint32_t ways() const { return ways_; }
  uint64_t slots_of_server() const { return slots_of_server_; }
  uint64_t slots() const { return slots_of_server_ * plan_.servers; }
  // The word of a rank; a key's are all different.
  std::array<uint64_t, kMostWays> places(std::string_view key) const {
    return cas_places(hash_of(key), ways_, slots());
  }
  NodeId server_of(uint64_t slot) const { return static_cast<NodeId>(slot / slots_of_server_); }
  uint64_t offset_of(uint64_t slot) const { return slot % slots_of_server_ * kWordBytes; }

  // The 15 bits of a word: number of the table, and what is kept of the key's hash.
  uint32_t table_field(NodeId table, uint64_t hash) const;
  NodeId table_of(IndexWord word) const { return word.table() & ((1u << node_bits_) - 1); }
  bool fits(IndexWord word, uint64_t hash) const { return word.table() >> node_bits_ == filter_of(hash); }

  // Loaded keys are dealt over the clients, in turn.
  NodeId dealt_to(uint32_t key_number) const { return plan_.servers + key_number % plan_.clients; }
  uint32_t dealt_entry(uint32_t key_number) const { return key_number / plan_.clients + 1; }
  uint32_t dealt_entries() const { return (plan_.keys->count() + plan_.clients - 1) / plan_.clients; }
  // Of a client's table: dealt ones, then those for puts. A server has none of its own.
  uint32_t entries_of(NodeId table) const { return plan_.is_server(table) ? 0 : dealt_entries() + spare_entries_; }
  // Whose memory a client's table is in.
  NodeId holder_of(NodeId table) const;

 private:
  uint64_t filter_of(uint64_t hash) const { return hash & ((uint64_t{1} << filter_bits_) - 1); }

  const Plan& plan_;
  uint32_t ways_;
  uint32_t node_bits_ = 0;
  uint32_t filter_bits_ = 0;
  uint32_t spare_entries_;
  uint64_t slots_of_server_;
};

// Where each loaded key is: for each word its key's number + 1, or 0. Computed by each server for itself, alike. By rank;
// when all is taken a key gives its place up for the new one and goes to its next word, and so on.
base::Expected<std::vector<uint32_t>> place_loaded(const CasLayout& layout, const bench::Keyspace& keys);

}  // namespace egret::bench_paradigms
