#include "bench_paradigms/harness/judge.h"

#include <cstring>

#include "bench/keyspace.h"

namespace egret::bench_paradigms {

std::string_view name_of(Fault fault) {
  constexpr std::array<std::string_view, kFaults> kNames{"none",
                                                         "a value of another size",
                                                         "another key's value",
                                                         "a torn value",
                                                         "an old value",
                                                         "a miss of a key that was there all the time",
                                                         "a number given twice",
                                                         "an answer that nobody waits for",
                                                         "an outcome that the op cannot have"};
  return kNames[static_cast<size_t>(fault)];
}

Knowledge::Knowledge(uint32_t keys, Writers writers, bool has_erases)
    : words_(std::make_unique<std::atomic<uint64_t>[]>(keys)),
      last_lap_(std::make_unique<std::atomic<uint64_t>[]>(kRing)),
      writers_(writers),
      has_erases_(has_erases) {
  for (uint32_t key = 0; key < keys; ++key) words_[key].store(kLoadedVersion, std::memory_order_relaxed);
}

bool Knowledge::begin_write(uint32_t key, bool is_erase) {
  if (!knows_writers()) return true;
  Word now = word(key);
  if (now.is_being_written()) return false;
  now.bits |= kWriting;
  if (is_erase) {
    const uint64_t erases = (now.erases() + 1) & kErasesMask;
    now.bits = (now.bits & ~(kErasesMask << kErasesAt)) | erases << kErasesAt | kAbsent;
  }
  words_[key].store(now.bits, std::memory_order_release);
  return true;
}

void Knowledge::end_write(uint32_t key, OpKind kind, Outcome outcome, uint64_t version) {
  if (!knows_writers()) return;
  Word now = word(key);
  now.bits &= ~kWriting;
  // What an erase leaves behind is older than the erase: a value that comes back is an old one.
  const bool is_acknowledged = outcome == Outcome::kDone || (kind == OpKind::kErase && outcome == Outcome::kMiss);
  if (is_acknowledged) now.bits = (now.bits & ~kVersion) | (version & kVersion);
  if (is_acknowledged && kind == OpKind::kPut) now.bits &= ~kAbsent;
  words_[key].store(now.bits, std::memory_order_release);
}

bool Knowledge::take_number(uint64_t number) {
  const uint64_t lap = number / kRing + 1;
  return last_lap_[number % kRing].exchange(lap, std::memory_order_relaxed) < lap;
}

bool Judge::begin(OpKind kind, uint32_t key, uint64_t version, Expectation& expectation) {
  expectation = {kind, key, version, {}};
  if (kind == OpKind::kNext) return true;
  expectation.before = knowledge_.word(key);
  return !is_write(kind) || knowledge_.begin_write(key, kind == OpKind::kErase);
}

Fault Judge::judge_hit(const Expectation& expectation, std::string_view value) const {
  if (expectation.kind == OpKind::kNext) {
    uint64_t number = 0;
    if (value.size() != sizeof number) return Fault::kSize;
    std::memcpy(&number, value.data(), sizeof number);
    return knowledge_.take_number(number) ? Fault::kNone : Fault::kDuplicate;
  }
  if (value.size() != value_bytes_) return Fault::kSize;
  switch (bench::judge_value(value.data(), value.size(), expectation.key)) {
    case bench::ValueVerdict::kOtherKey:
      return Fault::kOtherKey;
    case bench::ValueVerdict::kTorn:
      return Fault::kTorn;
    case bench::ValueVerdict::kGood:
      break;
  }
  uint64_t version = 0;
  if (!knowledge_.knows_writers() || value.size() < 2 * sizeof version) return Fault::kNone;
  std::memcpy(&version, value.data() + sizeof version, sizeof version);
  return version < expectation.before.version() ? Fault::kOld : Fault::kNone;
}

Fault Judge::judge(const Expectation& expectation, Outcome outcome, std::string_view value) {
  const bool is_of_write = is_write(expectation.kind);
  if (is_of_write) knowledge_.end_write(expectation.key, expectation.kind, outcome, expectation.version);
  switch (outcome) {
    case Outcome::kHit:
      return is_of_write ? Fault::kOddKind : judge_hit(expectation, value);
    case Outcome::kMiss: {
      if (expectation.kind == OpKind::kPut || expectation.kind == OpKind::kNext) return Fault::kOddKind;
      if (!knowledge_.misses_prove() || expectation.before.is_absent()) return Fault::kNone;
      if (is_of_write) return Fault::kMissed;  // an erase of a key that was there
      const bool was_erased = knowledge_.word(expectation.key).erases() != expectation.before.erases();
      return was_erased ? Fault::kNone : Fault::kMissed;
    }
    case Outcome::kDone:
      return is_of_write ? Fault::kNone : Fault::kOddKind;
    case Outcome::kFull:
      return expectation.kind == OpKind::kPut ? Fault::kNone : Fault::kOddKind;
    case Outcome::kLost:
    case Outcome::kFailed:
      return Fault::kNone;
  }
  return Fault::kOddKind;
}

}  // namespace egret::bench_paradigms
