// The steps from which clients make ops on an index that they write by COMPARE_SWAP (paper 003, sections 4.2 and 4.3): one
// op has one step under way, and a step ends in the call of CasProtocol that stands beside it, now or in a later poll.
//
//   store    ─▶ stored      1 the op's entry in this node's table, not valid
//   examine  ─▶ found       2 READ a word; READ its entry, unless it is empty, fits not, is local or cached
//   swap     ─▶ swapped     3 COMPARE_SWAP of a word that was examined; who succeeds tells the old entry's owner
//   compare  ─▶ compared    5 READ the word again: is it what was examined?
//   validate ─▶ validated   6
//   migrate  ─▶ restart     the key in that word moves to another of its words (cas_migrate.cc)
//   back_off ─▶ restart     after a while, longer each time
//   finish   ─▶ take_finished
//
// An op that a node fails, because it is gone, is finished as kFailed. Allocates nothing after prepare.
#pragma once

#include "base/clock.h"
#include "bench/sampler.h"
#include "bench_paradigms/stores/cas/cas_mesh.h"
#include "bench_paradigms/stores/cas/entry_cache.h"
#include "bench_paradigms/stores/cas/entry_table.h"

namespace egret::bench_paradigms {

enum class Found : uint8_t {
  kEmpty,
  kOther,       // another key
  kMine,        // the op's key
  kUnfinished,  // the op's key, not valid: its put has not come to its end
};

struct CasOp {
  static constexpr uint32_t kNoRank = UINT32_MAX;
  enum class Phase : uint8_t {
    kIdle,
    kFinished,
    kBackingOff,
    kWithoutEntry,  // none is free
    kStoring,
    kReadingWord,
    kReadingEntry,
    kSwapping,
    kComparing,
    kValidating,
    // migrate
    kReadingSource,
    kReadingTarget,
    kStoringCopy,
    kMovingIn,
    kMovingOut,
    kMovingBack,
    kValidatingCopy,
  };

  uint32_t number = 0;
  Phase phase = Phase::kIdle;
  OpKind kind = OpKind::kGet;
  uint64_t ticket = 0;
  Outcome outcome = Outcome::kFailed;
  std::string_view value;          // of a hit
  std::vector<std::byte> content;  // the key; of a put the whole entry
  std::string_view key;            // in `content`
  uint64_t hash = 0;
  uint64_t begun = 0;    // time
  uint64_t started = 0;  // time of this attempt
  uint64_t resumes = 0;  // time
  uint32_t attempts = 0;

  std::array<uint64_t, kMostWays> slots{};
  std::array<IndexWord, kMostWays> seen{};  // by rank
  uint32_t rank = 0;
  uint32_t home = kNoRank;  // put: the rank that refers to its entry
  bool has_erased = false;
  uint32_t own_entry = 0;  // put: in this node's table
  bool is_stored = false;
  const std::byte* entry = nullptr;  // that the word at `rank` refers to
  IndexWord wanted;                  // by the swap under way

  struct Move {
    uint64_t source = 0, target = 0;  // slots
    IndexWord source_word, target_word;
    uint64_t hash = 0;  // of the key that moves
    uint32_t copy = 0;  // entry of its copy
    uint32_t depth = 0;
  };
  Move move;
};

class CasProtocol {
 public:
  virtual ~CasProtocol() = default;
  virtual void restart(CasOp& op) = 0;
  virtual void stored(CasOp& op) = 0;
  virtual void found(CasOp& op, Found found) = 0;
  virtual void swapped(CasOp& op, bool is_done) = 0;
  virtual void compared(CasOp& op, bool is_same) = 0;
  virtual void validated(CasOp& op) = 0;
};

class CasWriter {
 public:
  CasWriter(const Plan& plan, NodeId self, Fabric& fabric, CasProtocol& protocol);
  base::Status prepare();
  CasMesh& mesh() { return mesh_; }
  const CasLayout& layout() const { return layout_; }

  // Null: the window is full.
  CasOp* begin(const Op& op);
  void poll();
  // A finished op, free again at the next call of begin or poll; null: no more.
  const CasOp* take_finished();
  const Trouble& trouble() const { return trouble_; }

  void store(CasOp& op);
  void examine(CasOp& op, uint32_t rank);
  void swap_for_own(CasOp& op) { swap(op, IndexWord::after(op.seen[op.rank], own_field(op.hash), op.own_entry)); }
  void swap_for_empty(CasOp& op) { swap(op, IndexWord::empty_after(op.seen[op.rank])); }
  void compare(CasOp& op, uint32_t rank);
  void validate(CasOp& op);
  void migrate(CasOp& op);
  void back_off(CasOp& op);
  void finish(CasOp& op, Outcome outcome);
  // Longer under way than entries stay as they are: what it has read may not be so any more.
  bool is_too_old(const CasOp& op) const;
  bool is_stuck(const CasOp& op) const;
  void count_stuck() { ++trouble_.stuck; }

 private:
  using Phase = CasOp::Phase;
  static constexpr uint32_t kMostMoves = 32;

  uint64_t now() const { return clock_.now_ns(); }
  void free_taken();
  void swap(CasOp& op, IndexWord wanted);
  void step(CasOp& op);
  void step_migrate(CasOp& op);
  void fail_unless(bool is_posted, CasOp& op, Phase phase);
  void wake(CasOp& op, uint64_t time);
  bool has_entry(CasOp& op, IndexWord word, uint64_t slot);
  void read_entry(CasOp& op, IndexWord word, Phase phase);
  void entry_has_come(CasOp& op, IndexWord word, uint64_t slot);
  void judge_word(CasOp& op);
  void judge_entry(CasOp& op);
  uint32_t own_field(uint64_t hash) const { return layout_.table_field(self_, hash); }
  void release(IndexWord word);
  EntryCache::Tag tag_of(IndexWord word, uint64_t slot) const;
  void take_removed();
  // migrate
  void look_at_source(CasOp& op);
  void aim(CasOp& op);
  void look_at_target(CasOp& op);
  void store_copy(CasOp& op);
  void swap_for_move(CasOp& op, uint64_t slot, IndexWord expected, IndexWord wanted, Phase phase);
  void moved_in(CasOp& op);
  void moved_out(CasOp& op);
  void moved(CasOp& op);

  const Plan& plan_;
  NodeId self_;
  CasProtocol& protocol_;
  CasLayout layout_;
  CasMesh mesh_;
  EntryCache cache_;
  EntryTable entries_;
  base::SystemClock host_clock_;
  const base::Clock& clock_;
  bench::Rng rng_;
  std::vector<CasOp> ops_;
  std::vector<uint32_t> finished_;
  size_t taken_ = 0;  // of `finished_`
  Trouble trouble_;
};

}  // namespace egret::bench_paradigms
