// nessie: clients do everything themselves (paper 003, sections 4.1 to 4.3, figures 3 to 6). Servers hold the index,
// which refers to entries in any node's memory; a put leaves its entry in the putter's own.
//
//   GET, by rank                            PUT
//     1 READ index word ─────▶ server         1 entry into own memory, not valid
//       empty, filter differs: next rank      2 READ words, and entries not excluded, to the key's or an empty one
//     2 entry local, cached: no verb          3 COMPARE_SWAP it to the entry, version + 1
//       else READ it ────────▶ any node       4 the lower ranks: READ; another one of the key: COMPARE_SWAP to empty
//     3 key equal? valid: hit                 5 READ the other words again backwards: changed? begin anew
//       not valid: begin anew                 6 set valid
//     4 none: READ all words again          DELETE: lowest rank first, COMPARE_SWAP to empty
//       backwards; changed? begin anew;     all words taken by other keys: MIGRATE one (stores/cas/cas_migrate.cc)
//       else miss
//
// Rank 0 is the paper's highest: looked at first, but by a DELETE last. Where the paper tells its user of another op on
// the same key, this begins anew after a while. Added to the paper (not with as_paper): a delete that has found nothing
// compares, as a get does; a cached copy is of one version of one word.
//
// Relies on: atomics that are atomic against READs of the same device, and words that are only ever touched through it
// (HCA); an entry that is not used again before T has passed, within which every get and put comes to its end or begins
// anew (time). With polls_watermark also on READs that bring their last byte last. Every client READs all items and may
// change the index; placed at servers, entries may be written by all. A client that is killed between 3 and 6 leaves
// its key unfinished for ever; who GETs it gives up after a second, or T: `stuck`.
#include <cstring>

#include "bench_paradigms/stores/cas/cas_writer.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

class Server final : public ServerNode {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric)
      : plan_(plan), layout_(plan), mesh_(plan, self, fabric, layout_) {}

  Status prepare() override { return mesh_.prepare(); }
  std::string notice(NodeId to) override { return mesh_.notice(to); }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return mesh_.join(from, address, notice);
  }
  Status load() override {
    auto placed = place_loaded(layout_, *plan_.keys);
    if (!placed) return placed.status();
    placed_ = std::move(placed.value());
    for (uint64_t slot = 0; slot < placed_.size(); ++slot) {
      std::byte* const word = mesh_.held_word(slot);
      if (word == nullptr || placed_[slot] == 0) continue;
      const uint64_t bits = loaded_word(placed_[slot] - 1).bits();
      std::memcpy(word, &bits, sizeof bits);
    }
    mesh_.load_entries();
    return Status::ok();
  }
  bool serve() override { return false; }
  // As loaded: READs of words, and of entries that the filter does not exclude.
  uint32_t walk(std::string_view key) const override { return walk_of(UINT32_MAX, key); }
  uint32_t walk_of(NodeId client, std::string_view key) const override {
    const auto places = layout_.places(key);
    uint32_t reads = 0;
    for (uint32_t rank = 0; rank < layout_.ways(); ++rank) {
      ++reads;
      const uint32_t number = placed_[places[rank]];
      if (number == 0 || !layout_.fits(loaded_word(number - 1), hash_of(key))) continue;
      if (layout_.holder_of(layout_.dealt_to(number - 1)) != client) ++reads;
      if (plan_.keys->key(number - 1) == key) return reads;
    }
    return reads + layout_.ways();
  }

 private:
  IndexWord loaded_word(uint32_t key) const {
    const uint32_t table = layout_.table_field(layout_.dealt_to(key), hash_of(plan_.keys->key(key)));
    return IndexWord::after(IndexWord(), table, layout_.dealt_entry(key));
  }
  const Plan& plan_;
  CasLayout layout_;
  CasMesh mesh_;
  std::vector<uint32_t> placed_;  // by slot: number of the loaded key + 1
};

class Client final : public ClientNode, private CasProtocol {
 public:
  Client(const Plan& plan, NodeId self, Fabric& fabric) : plan_(plan), writer_(plan, self, fabric, *this) {}

  Status prepare() override { return writer_.prepare(); }
  std::string notice(NodeId to) override { return writer_.mesh().notice(to); }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    return writer_.mesh().join(from, address, notice);
  }
  Status load() override {
    writer_.mesh().load_entries();
    return Status::ok();
  }
  bool begin(const Op& op) override {
    if (op.kind == OpKind::kNext) return false;
    CasOp* const begun = writer_.begin(op);
    if (begun != nullptr) restart(*begun);
    return begun != nullptr;
  }
  uint32_t poll(std::span<Result> out) override {
    writer_.poll();
    uint32_t count = 0;
    while (count < out.size()) {
      const CasOp* const op = writer_.take_finished();
      if (op == nullptr) break;
      out[count++] = {op->ticket, op->outcome, op->value};
    }
    return count;
  }
  Trouble trouble() const override { return writer_.trouble(); }

 private:
  uint32_t lowest() const { return plan_.tuning.ways - 1; }

  void restart(CasOp& op) override {
    if (op.kind == OpKind::kPut) return writer_.store(op);  // 1
    writer_.examine(op, op.kind == OpKind::kGet ? 0 : lowest());
  }
  void stored(CasOp& op) override { writer_.examine(op, 0); }

  void found(CasOp& op, Found found) override {
    switch (op.kind) {
      case OpKind::kGet:
        return found_by_get(op, found);
      case OpKind::kPut:
        return found_by_put(op, found);
      default:
        return found == Found::kMine || found == Found::kUnfinished ? writer_.swap_for_empty(op) : next(op);
    }
  }
  void found_by_get(CasOp& op, Found found) {
    if (found == Found::kEmpty || found == Found::kOther) return next(op);
    if (found == Found::kMine && !writer_.is_too_old(op)) return writer_.finish(op, Outcome::kHit);
    if (found == Found::kMine || !writer_.is_stuck(op)) return writer_.back_off(op);
    writer_.count_stuck();
    writer_.finish(op, Outcome::kLost);
  }
  void found_by_put(CasOp& op, Found found) {
    const bool is_mine = found == Found::kMine || found == Found::kUnfinished;
    if (op.home != CasOp::kNoRank) return is_mine ? writer_.swap_for_empty(op) : next(op);  // 4
    if (is_mine || found == Found::kEmpty) return writer_.swap_for_own(op);                 // 3
    next(op);                                                                               // 2
  }
  void swapped(CasOp& op, bool is_done) override {
    if (!is_done) return writer_.back_off(op);
    if (op.kind == OpKind::kErase) op.has_erased = true;
    if (op.kind == OpKind::kPut && op.home == CasOp::kNoRank) op.home = op.rank;
    next(op);
  }

  // This rank is examined, and what had to be changed is.
  void next(CasOp& op) {
    if (op.kind == OpKind::kErase) {
      if (op.rank > 0) return writer_.examine(op, op.rank - 1);
      if (op.has_erased) return writer_.finish(op, Outcome::kDone);
      return plan_.tuning.as_paper ? writer_.finish(op, Outcome::kMiss) : writer_.compare(op, lowest());
    }
    if (op.rank < lowest()) return writer_.examine(op, op.rank + 1);
    if (op.kind == OpKind::kPut && op.home == CasOp::kNoRank) return writer_.migrate(op);
    compare_below(op, lowest() + 1);
  }
  void compare_below(CasOp& op, uint32_t rank) {
    if (rank > 0 && rank - 1 == op.home) --rank;
    if (rank > 0) return writer_.compare(op, rank - 1);
    if (op.kind != OpKind::kPut) return writer_.finish(op, Outcome::kMiss);
    // Its entry may be out of use by now, and used again.
    return writer_.is_too_old(op) ? writer_.back_off(op) : writer_.validate(op);  // 6
  }
  void compared(CasOp& op, bool is_same) override {
    return is_same ? compare_below(op, op.rank) : writer_.back_off(op);
  }
  void validated(CasOp& op) override { writer_.finish(op, Outcome::kDone); }

  const Plan& plan_;
  CasWriter writer_;
};

}  // namespace

std::unique_ptr<ServerNode> make_nessie_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric);
}

std::unique_ptr<ClientNode> make_nessie_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Client>(plan, self, fabric);
}

}  // namespace egret::bench_paradigms
