#include "bench_paradigms/stores/cas/cas_writer.h"

#include <algorithm>
#include <cstring>

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr uint64_t kLeastBackOffNs = 1000;
constexpr uint32_t kMostDoublings = 10;
constexpr uint64_t kStuckNs = 1'000'000'000;
constexpr uint32_t kRemovedAPoll = 16;

}  // namespace

CasWriter::CasWriter(const Plan& plan, NodeId self, Fabric& fabric, CasProtocol& protocol)
    : plan_(plan),
      self_(self),
      protocol_(protocol),
      layout_(plan),
      mesh_(plan, self, fabric, layout_),
      cache_(plan.tuning.cache_entries, layout_.entry_bytes()),
      entries_(layout_.dealt_entries() + 1, plan.tuning.spare_entries, layout_.entries_of(self),
               plan.tuning.reuse_delay_ns),
      clock_(plan.clock != nullptr ? *plan.clock : host_clock_),
      rng_(plan.seed * 1000 + self),
      ops_(plan.window) {}

Status CasWriter::prepare() {
  for (uint32_t i = 0; i < ops_.size(); ++i) {
    ops_[i].number = i;
    ops_[i].content.resize(layout_.entry_bytes());
  }
  finished_.reserve(ops_.size());
  return mesh_.prepare();
}

CasOp* CasWriter::begin(const Op& wanted) {
  free_taken();
  const auto free = std::find_if(ops_.begin(), ops_.end(), [](const CasOp& op) { return op.phase == Phase::kIdle; });
  if (free == ops_.end()) return nullptr;
  CasOp& op = *free;
  op.kind = wanted.kind;
  op.ticket = wanted.ticket;
  layout_.write_entry(op.content.data(), wanted.key, wanted.value);
  op.key = layout_.key_of(op.content.data());
  op.hash = hash_of(op.key);
  op.slots = layout_.places(op.key);
  op.begun = op.started = now();
  op.attempts = 0;
  op.home = CasOp::kNoRank;
  op.has_erased = false;
  op.own_entry = 0;
  op.move = {};
  return &op;
}

void CasWriter::free_taken() {
  for (size_t i = 0; i < taken_; ++i) ops_[finished_[i]].phase = Phase::kIdle;
  finished_.erase(finished_.begin(), finished_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
}

void CasWriter::poll() {
  free_taken();
  for (const CasMesh::Done& done : mesh_.poll()) {
    CasOp& op = ops_[done.op];
    if (done.is_ok) {
      step(op);
    } else {
      finish(op, Outcome::kFailed);
    }
  }
  take_removed();
  const uint64_t time = now();
  for (CasOp& op : ops_) wake(op, time);
}

const CasOp* CasWriter::take_finished() {
  return taken_ < finished_.size() ? &ops_[finished_[taken_++]] : nullptr;
}

void CasWriter::take_removed() {
  for (uint32_t i = 0; i < kRemovedAPoll; ++i) {
    const uint32_t entry = mesh_.take_removed();
    if (entry == 0) return;
    entries_.release(entry, now());
  }
}

void CasWriter::wake(CasOp& op, uint64_t time) {
  if (op.phase == Phase::kWithoutEntry) store(op);
  if (op.phase != Phase::kBackingOff || time < op.resumes) return;
  op.started = time;
  protocol_.restart(op);
}

// --- how an op ends, or does not yet

void CasWriter::back_off(CasOp& op) {
  ++trouble_.retries;
  const uint32_t doublings = std::min(op.attempts++, kMostDoublings);
  op.resumes = now() + kLeastBackOffNs + rng_.below(static_cast<uint32_t>(kLeastBackOffNs << doublings));
  op.phase = Phase::kBackingOff;
  // A word has referred to it: the next attempt takes another, and replaces this one as anybody's.
  if (op.home != CasOp::kNoRank) op.own_entry = 0;
  op.home = CasOp::kNoRank;
}

void CasWriter::finish(CasOp& op, Outcome outcome) {
  // After a failure nobody knows whether a word refers to it.
  if (outcome == Outcome::kFull && op.own_entry != 0) entries_.put_back(op.own_entry);
  op.outcome = outcome;
  op.value = {};
  if (outcome == Outcome::kHit) {
    // Other ops of this poll may take the place of a copy in the cache.
    if (op.entry != mesh_.landed(op.number)) std::memcpy(op.content.data(), op.entry, op.content.size());
    op.value = layout_.value_of(op.entry != mesh_.landed(op.number) ? op.content.data() : op.entry);
  }
  op.phase = Phase::kFinished;
  finished_.push_back(op.number);
}

bool CasWriter::is_too_old(const CasOp& op) const {
  return plan_.tuning.reuse_delay_ns != 0 && now() - op.started > plan_.tuning.reuse_delay_ns;
}

bool CasWriter::is_stuck(const CasOp& op) const {
  return now() - op.begun > std::max(plan_.tuning.reuse_delay_ns, kStuckNs);
}

// --- steps

void CasWriter::fail_unless(bool is_posted, CasOp& op, Phase phase) {
  if (!is_posted) return finish(op, Outcome::kFailed);
  op.phase = phase;
}

void CasWriter::step(CasOp& op) {
  switch (op.phase) {
    case Phase::kStoring:
      op.is_stored = true;
      return protocol_.stored(op);
    case Phase::kReadingWord:
      op.seen[op.rank] = mesh_.word(op.number);
      return judge_word(op);
    case Phase::kReadingEntry:
      entry_has_come(op, op.seen[op.rank], op.slots[op.rank]);
      return judge_entry(op);
    case Phase::kSwapping: {
      const bool is_done = mesh_.word(op.number) == op.seen[op.rank];
      if (is_done) release(op.seen[op.rank]);
      if (is_done) op.seen[op.rank] = op.wanted;
      return protocol_.swapped(op, is_done);
    }
    case Phase::kComparing:
      return protocol_.compared(op, mesh_.word(op.number) == op.seen[op.rank]);
    case Phase::kValidating:
      return protocol_.validated(op);
    default:
      return step_migrate(op);
  }
}

void CasWriter::store(CasOp& op) {
  if (op.own_entry == 0) {
    op.own_entry = entries_.take(now());
    op.is_stored = false;
  }
  if (op.own_entry == 0) {
    if (!entries_.is_any_waiting()) return finish(op, Outcome::kFull);
    op.phase = Phase::kWithoutEntry;
    return;
  }
  if (op.phase == Phase::kWithoutEntry) op.started = now();
  if (op.is_stored) return protocol_.stored(op);
  if (std::byte* const here = mesh_.held_entry(self_, op.own_entry); here != nullptr) {
    std::memcpy(here, op.content.data(), op.content.size());
    op.is_stored = true;
    return protocol_.stored(op);
  }
  std::memcpy(mesh_.image(op.number), op.content.data(), op.content.size());
  fail_unless(mesh_.write_entry(op.number, self_, op.own_entry), op, Phase::kStoring);
}

void CasWriter::examine(CasOp& op, uint32_t rank) {
  op.rank = rank;
  fail_unless(mesh_.read_word(op.number, op.slots[rank]), op, Phase::kReadingWord);
}

void CasWriter::judge_word(CasOp& op) {
  const IndexWord word = op.seen[op.rank];
  if (word.is_empty()) return protocol_.found(op, Found::kEmpty);
  if (!layout_.fits(word, op.hash)) return protocol_.found(op, Found::kOther);
  if (has_entry(op, word, op.slots[op.rank])) return judge_entry(op);
  read_entry(op, word, Phase::kReadingEntry);
}

void CasWriter::judge_entry(CasOp& op) {
  if (layout_.key_of(op.entry) != op.key) return protocol_.found(op, Found::kOther);
  protocol_.found(op, layout_.is_valid(op.entry) ? Found::kMine : Found::kUnfinished);
}

// In this node's memory, or a copy of it.
bool CasWriter::has_entry(CasOp& op, IndexWord word, uint64_t slot) {
  op.entry = mesh_.held_entry(layout_.table_of(word), word.entry());
  if (op.entry == nullptr) op.entry = cache_.find(tag_of(word, slot));
  return op.entry != nullptr;
}

void CasWriter::read_entry(CasOp& op, IndexWord word, Phase phase) {
  fail_unless(mesh_.read_entry(op.number, layout_.table_of(word), word.entry()), op, phase);
}

void CasWriter::entry_has_come(CasOp& op, IndexWord word, uint64_t slot) {
  op.entry = mesh_.landed(op.number);
  if (layout_.is_valid(op.entry)) cache_.add(tag_of(word, slot), op.entry);
}

// With the word's place and version: an entry that is used again is another one. The paper tells copies by entry only.
EntryCache::Tag CasWriter::tag_of(IndexWord word, uint64_t slot) const {
  if (plan_.tuning.as_paper) return {uint64_t{layout_.table_of(word)} << 32 | word.entry(), 0};
  return {word.bits(), slot};
}

void CasWriter::swap(CasOp& op, IndexWord wanted) {
  op.wanted = wanted;
  const IndexWord expected = op.seen[op.rank];
  fail_unless(mesh_.swap_word(op.number, op.slots[op.rank], expected, wanted), op, Phase::kSwapping);
}

// This node has taken the last reference of what the word refers to.
void CasWriter::release(IndexWord word) {
  if (word.is_empty()) return;
  const NodeId owner = layout_.table_of(word);
  if (owner == self_) {
    entries_.release(word.entry(), now());
  } else {
    mesh_.tell_removed(owner, word.entry());
  }
}

void CasWriter::compare(CasOp& op, uint32_t rank) {
  op.rank = rank;
  fail_unless(mesh_.read_word(op.number, op.slots[rank]), op, Phase::kComparing);
}

void CasWriter::validate(CasOp& op) {
  if (std::byte* const here = mesh_.held_entry(self_, op.own_entry); here != nullptr) {
    layout_.set_valid(here);
    return protocol_.validated(op);
  }
  fail_unless(mesh_.write_valid(op.number, self_, op.own_entry), op, Phase::kValidating);
}

}  // namespace egret::bench_paradigms
