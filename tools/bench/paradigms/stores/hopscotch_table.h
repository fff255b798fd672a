// FaRM-KV's table as paper 001 emulates it (section 5.1.2): clients READ it, one server core changes it. A key lies in one
// of the H slots that begin at its home, so one READ has it. H-1 slots lie behind the last home. With H = 6 some keys of
// many do not fit at a load of three quarters, and nothing is said of where else they could be; so there are as many
// homes as it takes until the keys of the run fit.
//
//   inline:  │ key │ value │ check 8 │ …        var:  │ key │ offset 8 │ check 8 │ …      values: │ value │ value │ …
//
// A slot whose key is all zeros is empty. The check is ours (001 has none): XXH3 over key and value, so a reader sees a
// slot or value that it has read half. A key is moved by a copy to its new slot, before its old one is written over: it is
// in one slot or in two.
//
// Memory is the caller's: zeroed, and registered for remote READ. Made once; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "bench_paradigms/node.h"
#include "bench_paradigms/stores/step_writer.h"

namespace egret::bench_paradigms {

// Which slots are taken, and by keys of which homes; without the slots' bytes.
class HopscotchPlaces {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Move {
    uint32_t from;
    uint32_t to;
  };

  HopscotchPlaces(uint32_t homes, uint32_t hops) : homes_(homes + hops - 1, kNone), hops_(hops) {}
  // A slot for a new key of that home, that is its own now. kNone: there is none, nothing was changed. moves(): what has
  // to be copied before, in that order.
  uint32_t take(uint32_t home);
  std::span<const Move> moves() const { return std::span(path_).first(moves_); }
  void give_back(uint32_t slot) { homes_[slot] = kNone; }
  uint32_t home_at(uint32_t slot) const { return homes_[slot]; }

 private:
  static constexpr uint32_t kMostLook = 4096;  // slots that are looked at for an empty one
  std::vector<uint32_t> homes_;                // by slot; kNone: empty
  uint32_t hops_;
  uint32_t moves_ = 0;
  std::array<Move, kMostLook> path_{};
};

// What readers must know, too.
struct HopscotchShape {
  uint32_t key_bytes = 16;
  uint32_t value_bytes = 32;
  uint32_t hops = 6;
  uint32_t homes = 1;
  uint32_t values = 0;  // places for values outside (var); 0: inline
  bool has_checks = true;

  // For the keys of a server.
  static HopscotchShape of(const Plan& plan, NodeId server, bool is_inline);
  bool is_inline() const { return values == 0; }
  uint32_t slots() const { return homes + hops - 1; }
  uint32_t body_bytes() const { return is_inline() ? value_bytes : 8; }
  uint32_t slot_bytes() const { return key_bytes + body_bytes() + (has_checks ? 8 : 0); }
  uint32_t neighbourhood_bytes() const { return hops * slot_bytes(); }
  size_t slots_bytes() const { return size_t{slots()} * slot_bytes(); }
  size_t values_bytes() const { return size_t{values} * value_bytes; }

  uint32_t home(uint64_t hash) const { return static_cast<uint32_t>((hash & 0xffffffffu) * homes >> 32); }
  // Of the key in a neighbourhood that was read; hops: it is not there.
  uint32_t find(std::span<const std::byte> neighbourhood, std::string_view key) const;
  uint64_t offset_in(std::span<const std::byte> slot) const;  // var
  // Whether the slot and the value (var: from outside) belong together. True where there are no checks.
  bool is_sound(std::span<const std::byte> slot, std::span<const std::byte> value) const;
  uint64_t check_of(std::string_view key, std::span<const std::byte> value, uint64_t offset) const;
};

class HopscotchTable {
 public:
  // slots_bytes() and values_bytes().
  HopscotchTable(const HopscotchShape& shape, std::span<std::byte> slots, std::span<std::byte> values,
                 const Pause* pause);

  Outcome put(std::string_view key, std::string_view value);  // kDone, kFull
  Outcome erase(std::string_view key);                        // kDone, kMiss
  std::optional<std::string_view> get(std::string_view key) const;
  uint64_t moves() const { return moves_; }

 private:
  static constexpr uint32_t kNone = HopscotchPlaces::kNone;
  std::byte* slot(uint32_t index) const { return slots_.data() + size_t{index} * shape_.slot_bytes(); }
  uint32_t find(std::string_view key) const;
  uint32_t make_room(uint32_t home);
  void store(uint32_t index, std::string_view key, std::string_view value, uint64_t offset);

  HopscotchShape shape_;
  std::span<std::byte> slots_;
  std::span<std::byte> values_;
  StepWriter writer_;
  HopscotchPlaces places_;
  std::vector<uint32_t> free_values_;
  std::vector<std::byte> scratch_;  // a slot, as it is to be
  uint64_t moves_ = 0;
};

}  // namespace egret::bench_paradigms
