// MIGRATE (paper 003, section 4.3.1, figures 5 and 6): all words of a put's key refer to other keys. One of these moves:
//
//   source, the word that it leaves   READ its entry; another of that key's words is the target
//   target   READ; taken? it is the next source, and so on, up to a depth
//   1 copy the source's entry, not valid   2 COMPARE_SWAP target to the copy   3 COMPARE_SWAP source to empty   4 validate
//   if 3 fails, the source has changed meanwhile: COMPARE_SWAP target back to empty
//
// Then the put begins anew, and migrates again if nothing is free yet. An entry that is not valid does not move: whose put
// it is would not know of its copy.
#include <algorithm>
#include <cstring>

#include "bench_paradigms/stores/cas/cas_writer.h"

namespace egret::bench_paradigms {

void CasWriter::migrate(CasOp& op) {
  const uint32_t rank = rng_.below(layout_.ways());
  op.move.depth = 0;
  op.move.source = op.slots[rank];
  op.move.source_word = op.seen[rank];
  look_at_source(op);
}

void CasWriter::step_migrate(CasOp& op) {
  CasOp::Move& move = op.move;
  switch (op.phase) {
    case Phase::kReadingSource:
      entry_has_come(op, move.source_word, move.source);
      return aim(op);
    case Phase::kReadingTarget:
      move.target_word = mesh_.word(op.number);
      return look_at_target(op);
    case Phase::kStoringCopy:
      return swap_for_move(op, move.target, move.target_word,
                           IndexWord::after(move.target_word, own_field(move.hash), move.copy), Phase::kMovingIn);
    case Phase::kMovingIn:
      return moved_in(op);
    case Phase::kMovingOut:
      return moved_out(op);
    case Phase::kMovingBack:
      // Either way nothing refers to the copy: whoever has replaced it has told.
      if (mesh_.word(op.number) == op.wanted) release(op.wanted);
      return back_off(op);
    case Phase::kValidatingCopy:
      return moved(op);
    default:
      return;
  }
}

void CasWriter::look_at_source(CasOp& op) {
  if (has_entry(op, op.move.source_word, op.move.source)) return aim(op);
  read_entry(op, op.move.source_word, Phase::kReadingSource);
}

// At the next of the words of the key that is to move.
void CasWriter::aim(CasOp& op) {
  CasOp::Move& move = op.move;
  const std::string_view key = layout_.key_of(op.entry);
  const auto places = layout_.places(key);
  const auto end = places.begin() + layout_.ways();
  const auto at = std::find(places.begin(), end, move.source);
  if (at == end || !layout_.is_valid(op.entry)) return back_off(op);
  move.hash = hash_of(key);
  move.target = at + 1 == end ? places[0] : *(at + 1);
  std::memcpy(mesh_.image(op.number), op.entry, layout_.entry_bytes());
  layout_.flag(mesh_.image(op.number)) = kEntryWatermark;
  fail_unless(mesh_.read_word(op.number, move.target), op, Phase::kReadingTarget);
}

void CasWriter::look_at_target(CasOp& op) {
  CasOp::Move& move = op.move;
  if (move.target_word.is_empty()) return store_copy(op);
  if (++move.depth == kMostMoves) return finish(op, Outcome::kFull);
  move.source = move.target;
  move.source_word = move.target_word;
  look_at_source(op);
}

void CasWriter::store_copy(CasOp& op) {
  op.move.copy = entries_.take(now());
  if (op.move.copy == 0) return entries_.is_any_waiting() ? back_off(op) : finish(op, Outcome::kFull);
  std::byte* const here = mesh_.held_entry(self_, op.move.copy);
  if (here == nullptr) return fail_unless(mesh_.write_entry(op.number, self_, op.move.copy), op, Phase::kStoringCopy);
  std::memcpy(here, mesh_.image(op.number), layout_.entry_bytes());
  op.phase = Phase::kStoringCopy;
  step_migrate(op);
}

void CasWriter::swap_for_move(CasOp& op, uint64_t slot, IndexWord expected, IndexWord wanted, Phase phase) {
  op.wanted = phase == Phase::kMovingBack ? expected : wanted;
  fail_unless(mesh_.swap_word(op.number, slot, expected, wanted), op, phase);
}

void CasWriter::moved_in(CasOp& op) {
  CasOp::Move& move = op.move;
  if (mesh_.word(op.number) != move.target_word) {
    entries_.put_back(move.copy);
    return back_off(op);
  }
  move.target_word = op.wanted;
  swap_for_move(op, move.source, move.source_word, IndexWord::empty_after(move.source_word), Phase::kMovingOut);
}

void CasWriter::moved_out(CasOp& op) {
  CasOp::Move& move = op.move;
  if (mesh_.word(op.number) != move.source_word) {
    return swap_for_move(op, move.target, move.target_word, IndexWord::empty_after(move.target_word),
                         Phase::kMovingBack);
  }
  release(move.source_word);
  // A copy that nothing refers to any more may have been used again by now.
  if (is_too_old(op)) return back_off(op);
  if (std::byte* const here = mesh_.held_entry(self_, move.copy); here != nullptr) {
    layout_.set_valid(here);
    return moved(op);
  }
  fail_unless(mesh_.write_valid(op.number, self_, move.copy), op, Phase::kValidatingCopy);
}

void CasWriter::moved(CasOp& op) {
  op.started = now();
  protocol_.restart(op);
}

}  // namespace egret::bench_paradigms
