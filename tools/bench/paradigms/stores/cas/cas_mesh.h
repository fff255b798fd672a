// The memory and pairs of a node whose clients do everything themselves (cas_layout.h), and the verbs that an op posts.
// An op has one verb under way at a time.
//
//   memory                          where            who may
//   index                           every server     clients: READ, COMPARE_SWAP; nobody past the device, not even its host
//   tables                          holder_of(table) clients: READ; if a server holds a client's: WRITE, too
//   removed, one for each client    each client      that client: WRITE
//
// `removed`: entries of this node that the other client has taken the last reference from, one after the other, 4 bytes
// each; 0 where none has come yet. They are told lazily, 16 by one WRITE; an entry is removed once before it is used
// again, so that a ring of as many places as there are entries never overflows.
#pragma once

#include <vector>

#include "bench_paradigms/stores/cas/cas_layout.h"

namespace egret::bench_paradigms {

class CasMesh {
 public:
  CasMesh(const Plan& plan, NodeId self, Fabric& fabric, const CasLayout& layout);
  base::Status prepare();
  std::string notice(NodeId to) const;
  base::Status join(NodeId from, const NodeAddress& address, std::string_view notice);

  // Of the loaded keys, those whose entries this node holds.
  void load_entries();
  // What this node holds; null: another one does. Words only before a run.
  std::byte* held_entry(NodeId table, uint32_t entry) const;
  std::byte* held_word(uint64_t slot) const;

  // --- of a client. False: that node cannot be reached any more. What a READ brings and the old value of a swap are in
  // the op's own memory until its next verb.
  bool read_word(uint32_t op, uint64_t slot);
  bool read_entry(uint32_t op, NodeId table, uint32_t entry);
  bool swap_word(uint32_t op, uint64_t slot, IndexWord expected, IndexWord wanted);
  bool write_entry(uint32_t op, NodeId table, uint32_t entry);  // the op's `image`
  bool write_valid(uint32_t op, NodeId table, uint32_t entry);
  IndexWord word(uint32_t op) const;  // READ, or found by the swap
  const std::byte* landed(uint32_t op) const { return scratch(op) + kLanding; }
  std::byte* image(uint32_t op) const { return scratch(op) + kLanding + stride_of_entry_; }

  struct Done {
    uint32_t op;
    bool is_ok;
  };
  // Ops whose verb has come to its end since the last call.
  std::span<const Done> poll();

  void tell_removed(NodeId owner, uint32_t entry);
  // The next entry of this node's that another one has removed; 0: none yet.
  uint32_t take_removed();

 private:
  static constexpr uint32_t kLanding = 64;  // before it: a word, a byte
  static constexpr uint32_t kBatch = 16;
  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Peer {
    std::unique_ptr<Pair> pair;
    bool is_broken = false;
    RemoteMemory index;
    // Entries removed, of its table and of this node's.
    std::unique_ptr<Memory> removed_here;
    uint64_t taken = 0;
    RemoteMemory removed_there;
    std::vector<uint32_t> untold;  // a ring
    uint64_t told = 0, to_tell = 0;
    bool is_telling = false;
  };
  struct Going {
    uint64_t sequence = 0;
    NodeId waits_for = kNobody;
    bool is_swap = false;
    std::byte* watermark = nullptr;  // the last byte of a READ, if that is what is waited for
  };
  base::Status prepare_client();
  base::Status prepare_tables();
  base::Status join_client_side(NodeId from, std::string_view notice);
  uint32_t removed_words(NodeId owner) const { return (layout_.entries_of(owner) + kBatch - 1) / kBatch * kBatch; }
  std::byte* scratch(uint32_t op) const { return scratch_->data() + size_t{op} * stride_; }
  bool post(uint32_t op, NodeId to, Work& work);
  Work work_on_entry(uint32_t op, Verb verb, NodeId table, uint32_t entry) const;
  void take(const Completion& done);
  void give_up(NodeId node);
  void look_at_watermarks();
  void tell(NodeId owner);

  const Plan& plan_;
  NodeId self_;
  Fabric& fabric_;
  const CasLayout& layout_;
  uint32_t stride_of_entry_ = 0, stride_ = 0;
  std::unique_ptr<Memory> index_, scratch_, telling_;
  std::vector<std::unique_ptr<Memory>> held_;  // tables, by number; null: held elsewhere
  std::vector<RemoteMemory> tables_;           // those held elsewhere
  std::unique_ptr<Queue> queue_;
  std::vector<Peer> peers_;  // their pairs go before their queue
  std::vector<Going> going_;
  std::vector<Done> done_;
  NodeId next_removed_ = 0;
};

}  // namespace egret::bench_paradigms
