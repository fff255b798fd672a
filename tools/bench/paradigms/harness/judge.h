// Judges answers: of values that are torn, another key's, of another size or older than one already acknowledged; of
// misses of keys that were there all the time; of numbers that a sequencer gives twice.
//
//   before an op is begun: begin ─▶ Expectation ─▶ (the op) ─▶ judge(expectation, result) ─▶ a Fault, or none
//
// What is known of a key is one word, shared by all clients of this host without a lock: its writer alone changes it
// (Writers::kOne). Clients of other hosts see no word change, and judge only by what they have acknowledged themselves.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "bench_paradigms/harness/setting.h"

namespace egret::bench_paradigms {

enum class Fault : uint8_t {
  kNone,
  kSize,       // a value of another size
  kOtherKey,   // another key's value
  kTorn,       // put together from two
  kOld,        // older than what was acknowledged before the op was begun, or erased
  kMissed,     // a miss of a key that was there all the time
  kDuplicate,  // a number that was given before
  kUnasked,    // an answer that nobody waits for
  kOddKind,    // an outcome that this kind of op cannot have
};
inline constexpr size_t kFaults = 9;
std::string_view name_of(Fault fault);

// What is known of the keys and numbers of one run.
class Knowledge {
 public:
  // `has_erases`: with Writers::kAny a miss proves nothing then.
  Knowledge(uint32_t keys, Writers writers, bool has_erases);

  struct Word {
    uint64_t bits = 0;
    uint64_t version() const { return bits & kVersion; }
    bool is_absent() const { return (bits & kAbsent) != 0; }
    bool is_being_written() const { return (bits & kWriting) != 0; }
    uint64_t erases() const { return bits >> kErasesAt & kErasesMask; }
  };
  Word word(uint32_t key) const { return {words_[key].load(std::memory_order_acquire)}; }
  bool knows_writers() const { return writers_ == Writers::kOne; }
  bool misses_prove() const { return knows_writers() || !has_erases_; }

  // By the key's writer only. `begin_write`: false if one is under way; then nothing changes.
  bool begin_write(uint32_t key, bool is_erase);
  void end_write(uint32_t key, OpKind kind, Outcome outcome, uint64_t version);

  // False: that number was given before, or is older than any under way could be.
  bool take_number(uint64_t number);

 private:
  static constexpr uint64_t kVersion = (uint64_t{1} << 44) - 1;
  static constexpr unsigned kErasesAt = 44;
  static constexpr uint64_t kErasesMask = (uint64_t{1} << 18) - 1;
  static constexpr uint64_t kWriting = uint64_t{1} << 62;
  static constexpr uint64_t kAbsent = uint64_t{1} << 63;  // an erase was begun, and no put acknowledged since
  // Numbers come nearly in order: the ring is far longer than all that are under way.
  static constexpr uint64_t kRing = uint64_t{1} << 20;

  std::unique_ptr<std::atomic<uint64_t>[]> words_;     // by key
  std::unique_ptr<std::atomic<uint64_t>[]> last_lap_;  // by number modulo kRing: number / kRing + 1
  Writers writers_;
  bool has_erases_;
};

struct Expectation {
  OpKind kind = OpKind::kGet;
  uint32_t key = 0;
  uint64_t version = 0;  // put, erase: its own
  Knowledge::Word before;
};

// One client's.
class Judge {
 public:
  Judge(Knowledge& knowledge, uint32_t value_bytes) : knowledge_(knowledge), value_bytes_(value_bytes) {}

  // False: another write of this key is under way, and the op must be left out.
  bool begin(OpKind kind, uint32_t key, uint64_t version, Expectation& expectation);
  // Also ends the write.
  Fault judge(const Expectation& expectation, Outcome outcome, std::string_view value);
  // An op that begin has let go, and that the node did not take.
  void give_up(const Expectation& expectation) {
    if (is_write(expectation.kind)) judge(expectation, Outcome::kLost, {});
  }

 private:
  static bool is_write(OpKind kind) { return kind == OpKind::kPut || kind == OpKind::kErase; }
  Fault judge_hit(const Expectation& expectation, std::string_view value) const;

  Knowledge& knowledge_;
  uint32_t value_bytes_;
};

}  // namespace egret::bench_paradigms
