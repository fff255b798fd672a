// One end of a session's queue pair: what is staged goes out by one doorbell, and completions become those of READs and
// pushes. The same verbs as transport/verbs_link.h posts, where that has rdma_cm and this has the laboratory's fabric.
//
//   stage ─▶ Works ─ flush: one doorbell ─▶ Pair ─▶ poll: READs by their tag; WRITEs with immediate; RECVs posted again
//
// The local and the remote memory of a verb have the same offsets: one is the other's image. READs are signalled; of the
// rest every kSignalEvery-th. What finds no room stays staged. Thread: the node's.
#pragma once

#include <memory>
#include <vector>

#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

class LaneLink {
 public:
  static constexpr uint32_t kSignalEvery = 32;
  static constexpr uint32_t kSends = 256;   // Works under way, at most
  static constexpr uint32_t kInline = 256;  // bytes of a WRITE that go with the work request, at most

  // `receives`: RECVs that are always there. The fabric outlives this.
  LaneLink(Fabric& fabric, uint32_t receives, bool is_inline);

  base::Status prepare();
  uint32_t pair() const { return pair_->number(); }
  base::Status join(const NodeAddress& peer, uint32_t pair);

  // A WRITE's bytes may be taken as late as its completion. To be changed until the flush: tag, immediate.
  Work& stage(Verb verb, const Memory& local, const RemoteMemory& remote, size_t offset, size_t bytes);
  // A WRITE of nothing, unless something was posted since the last one: it fails if the peer is gone.
  void stage_probe(const RemoteMemory& remote);
  void flush();
  // READs, with the tags that they were staged with, and the peer's immediates (kReceive). How many of `out`.
  size_t poll(std::span<Completion> out);
  bool has_under_way() const { return posted_ != retired_; }
  // The pair is of no use any more.
  bool is_broken() const { return is_broken_; }

 private:
  bool post_receives(uint32_t count);

  Fabric& fabric_;
  uint32_t receives_;
  uint32_t inline_bytes_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Pair> pair_;
  std::vector<Work> staged_;
  std::vector<Receive> empty_receives_;
  std::vector<uint64_t> tags_;  // of Works under way, by position modulo kSends
  uint64_t posted_ = 0;         // positions given out
  uint64_t retired_ = 0;        // of them, those whose place is free again
  uint64_t posted_at_probe_ = 0;
  uint32_t unsignalled_ = 0;
  bool is_broken_ = false;
};

}  // namespace egret::bench_paradigms
