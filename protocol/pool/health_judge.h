// Decides which members of a pool are ejected: pure logic over what workers saw of them, probes' results and a clock.
//
//            unreachable, or `eject_after` timeouts in a row
//   kServing ───────────────────────────────────────────────▶ kEjected ─ its pause is over ─▶ kProbing
//      ▲                                                          ▲ the pause grows ── no answer ─┤
//      └──────────────────────────── an answer ───────────────────────────────────────────────────┘
//
// * Unreachable: no worker has a session with it, and since one had, a session has ended or an attempt found nobody.
// * At most `eject_share` percent of the members are ejected at a time (rounded down: of one member none; but at least
//   one where there are spare members, as these stand in for it). Beyond that a member stays in service, and is tried
//   like any other: with so many gone the fault may be ours. Spare members do not count in this, and every one of them
//   may be ejected. When the pool or the share has become smaller, those that were ejected last are let in again, without
//   a probe, until the share is kept: so they are as if it had been so small all the time. Not one in whose place others
//   stand: it must be purged before.
// * The pauses between probes grow by half, up to `probe_most_ns`, each made up to a fifth longer or shorter by chance.
// * A member that is ejected for timeouts again within kCalmNs of its return flaps: its first probe waits for kFlapNs,
//   twice as long each further time, kMostFlapNs at most. Each kCalmNs in service takes one time back. One that dies and
//   comes back does not: nobody waits for it, and to keep it out would only fail its keys for longer.
//
// Thread: its owner's. Nothing here waits, and nothing fails.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/split_mix.h"
#include "pool/health.h"

namespace egret::pool {

struct HealthOptions {
  uint64_t eject_after = 3;
  uint32_t eject_share = 50;
  uint64_t probe_first_ns = 10'000'000;
  uint64_t probe_most_ns = 1'000'000'000;
};

// What all workers together have seen of a member.
struct MemberSigns {
  const MemberStats* member = nullptr;  // who it is; not looked at
  uint32_t open = 0;                    // sessions
  uint64_t failures = 0;                // so far: sessions that ended, attempts that found nobody
  uint64_t timeouts = 0;                // in a row, of the worker with the most
  bool is_spare = false;                // of the gutter: it owns no key
  bool may_be_let_in = false;           // of one that is ejected: without a probe, as nothing has to be done before
};
MemberSigns signs_of(const MemberStats& member);

class HealthJudge {
 public:
  static constexpr uint64_t kCalmNs = 60'000'000'000;
  static constexpr uint64_t kFlapNs = 1'000'000'000;
  static constexpr uint64_t kMostFlapNs = 60'000'000'000;
  static constexpr uint64_t kNever = UINT64_MAX;

  struct Verdict {
    // kWithheld: eject_share forbids it; told once. kLetIn: it was ejected, and eject_share forbids it now.
    enum class Kind : uint8_t { kEjected, kReturned, kWithheld, kLetIn };
    Kind kind = Kind::kEjected;
    const MemberStats* member = nullptr;
    EjectReason why = EjectReason::kNone;  // of the ejection that begins, is withheld or has ended
    uint64_t lasted_ns = 0;                // kReturned, kLetIn: how long it was ejected
  };

  // `seed`: of the chance in its pauses.
  HealthJudge(const HealthOptions& options, uint64_t seed) : options_(options), chance_(seed) {}

  // They count at once, also for probes that are waited for.
  void set_options(const HealthOptions& options, uint64_t now_ns);
  // Looks at all members of the pool; one that is not named any more is forgotten.
  std::vector<Verdict> judge(std::span<const MemberSigns> signs, uint64_t now_ns);

  // Members whose probe is to begin now, `most` of them.
  std::vector<const MemberStats*> due_probes(uint64_t now_ns, size_t most);
  // How a probe ended. Nothing if that member is unknown by now. `signs`: of now, if it answered: what was seen before
  // does not count.
  std::vector<Verdict> on_probe(const MemberStats* member, bool has_answered, const MemberSigns& signs,
                                uint64_t now_ns);
  // When the next probe is due; kNever: nobody waits for one.
  uint64_t next_probe_ns() const;

  std::vector<const MemberStats*> ejected() const;
  size_t most_ejected() const;

 private:
  enum class State : uint8_t { kServing, kEjected, kProbing };
  struct Record {
    const MemberStats* member = nullptr;
    State state = State::kServing;
    EjectReason why = EjectReason::kNone;
    bool is_withheld = false;
    bool is_spare = false;
    uint64_t seen_failures = 0;  // before these, a session was open, or it returned
    uint64_t since_ns = 0;       // when it was ejected, or returned; 0: neither
    uint64_t flaps = 0;
    uint64_t pause_ns = 0;  // between its probes
    uint64_t next_probe_ns = 0;
  };

  void take_members(std::span<const MemberSigns> signs);
  EjectReason reason_to_eject(Record& record, const MemberSigns& signs) const;
  std::vector<Verdict> let_in(std::span<const MemberSigns> signs, uint64_t now_ns);
  size_t owners_out() const;
  static uint64_t flap_pause(Record& record, EjectReason why, uint64_t now_ns);
  Verdict eject(Record& record, EjectReason why, uint64_t now_ns);
  uint64_t jittered(uint64_t ns);
  Record* find(const MemberStats* member);

  HealthOptions options_;
  base::SplitMix chance_;
  std::vector<Record> members_;  // in the order of judge()'s
};

}  // namespace egret::pool
