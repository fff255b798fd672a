// One end of a session on verbs: what is staged and posted on its queue pairs, the receives that must always be there, and
// the frames of the handshake. Queue pairs and memory are verbs/parts.h's.
//
//   stage_*  ─▶ prebuilt work requests, per queue pair ─ flush: one doorbell each ─▶ send queue ─▶ network
//   poll     ◀─ completions, from the session's inbox: reads, immediates, frames; receives are posted again, freed room is
//               used at once
//
// Work requests that a full send queue or the read depth has no room for stay staged, in order, and go out as soon as
// completions make room. Reads are signalled; of the rest every kSignalInterval-th (of a small queue: sooner), so that the send
// queue's places come back. Thread: one at a time (see verbs.h). Errors: a failed completion is told once, as kFailed; failure()
// says what it was.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/verbs/inbox.h"
#include "transport/verbs/parts.h"
#include "transport/verbs/queues.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

struct Completion {
  enum class Kind : uint8_t {
    kRead,       // `tag`
    kImmediate,  // the peer's WRITE_WITH_IMM: `immediate`, `bytes` written
    kFrame,      // take_frame() has one
    kFailed,     // the link is of no further use
  };
  Kind kind = Kind::kFailed;
  uint64_t tag = 0;
  uint32_t immediate = 0;
  uint32_t bytes = 0;
};

struct Frame {
  std::vector<std::byte> bytes;  // none: an Invitation is attached
  std::vector<std::byte> attachment;
};

// Local bytes to send from or read into.
struct LocalBytes {
  std::byte* at = nullptr;
  uint32_t length = 0;
  uint32_t key = 0;
};

class VerbsLink {
 public:
  static constexpr uint32_t kSignalInterval = 32;

  // `inbox`: where `queues` put what comes for this session.
  VerbsLink(std::shared_ptr<SharedQueues> queues, std::shared_ptr<Inbox> inbox);
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;
  ~VerbsLink();

  // --- set-up
  struct Basis {
    LinkSizes sizes;
    uint32_t tag = 0;                      // of work ids
    const PinnedMemory* frames = nullptr;  // outlives this
  };
  void open(const Basis& basis);
  bool is_open() const { return basis_.frames != nullptr; }
  // The next queue pair, whose receives are posted. It outlives the use of this.
  void add(ibv_qp* pair, uint32_t inline_bytes);
  // It is connected: how many READs the peer allows. Returns how many may be under way on all queue pairs. `peer_solicits`:
  // the peer marks what is to wake us as solicited, as both ends have agreed: our own completions need not.
  uint32_t set_connected(uint32_t index, uint32_t read_depth, bool peer_solicits);
  // What it has, for a log line.
  std::string facts() const;

  // --- frames, on the first queue pair
  base::Status send_frame(std::span<const std::byte> frame, std::span<const std::byte> attachment);
  bool take_frame(Frame& frame);
  // For the handshake, before begin_data(): takes all completions that have come, so that their frames can be read.
  struct Drained {
    bool failed = false;         // the link is of no further use; told once
    bool has_immediate = false;  // the peer has written with immediate, which is no part of a handshake
  };
  Drained drain();
  // As drain(), for the last time: the polling thread calls poll() from now on.
  Drained begin_data();

  // --- data. `lane` chooses the queue pair.
  void stage_write(uint32_t lane, const LocalBytes& from, const RemoteMemory& to, size_t offset);
  void stage_read(uint32_t lane, const LocalBytes& into, const RemoteMemory& from, size_t offset, uint64_t tag);
  // Takes a receive of the peer's and wakes it, if it has armed. `from` may be empty.
  void stage_write_with_immediate(uint32_t lane, const LocalBytes& from, const RemoteMemory& to, size_t offset,
                                  uint32_t immediate);
  // A write of nothing on each queue pair on which nothing was posted since the last time. It fails if the peer is
  // gone, which completes it; a success is not signalled and wakes nobody.
  void stage_probes();
  void flush();
  // Whether anything may still be posted by flush() for want of room.
  bool has_staged() const;
  // Takes what SharedQueues::poll() has brought, until `out` is full or there is no more.
  size_t poll(std::span<Completion> out);
  const std::string& failure() const { return failure_; }

 private:
  struct Work {
    ibv_send_wr request;
    ibv_sge piece;
  };
  struct Pair {
    ibv_qp* handle = nullptr;
    std::vector<Work> staged;  // from `next` on not posted yet; linked when posted
    size_t next = 0;
    std::vector<uint64_t> tags;  // of reads, by position mod sends
    uint64_t posted = 0;         // positions given out
    uint64_t retired = 0;        // positions whose place is free again
    uint64_t signalled = 0;      // the position after the last signalled one
    uint64_t posted_at_probe = 0;
    uint32_t reads = 0;  // under way
  };

  static constexpr size_t kMaxInbox = 8;

  Pair& pair_of(uint32_t lane) { return pairs_[lane % pairs_.size()]; }
  Work& stage(Pair& pair, ibv_wr_opcode opcode, const LocalBytes& local, const RemoteMemory& remote, size_t offset);
  void post_staged(Pair& pair, uint32_t index);
  Drained drain(std::span<const Received> early);
  bool take(const Received& received, Completion& out);
  bool take_received(const Received& received, uint32_t index, Completion& out);
  bool receive_frame(uint32_t buffer, size_t bytes);
  void hold_up(bool is_held_up);
  void fail(const std::string& why);
  uint32_t depth_of_all() const { return read_depth_ * static_cast<uint32_t>(pairs_.size()); }  // of all queue pairs

  const std::shared_ptr<SharedQueues> queues_;
  const std::shared_ptr<Inbox> inbox_;
  Basis basis_;
  std::vector<Pair> pairs_;
  uint32_t signal_interval_ = kSignalInterval;  // less where a send queue is small: its places must come back
  uint32_t inline_bytes_ = 0;
  uint32_t read_depth_ = 1;
  uint32_t frames_sent_ = 0;
  bool is_data_ = false;          // begin_data()
  bool needs_any_event_ = false;  // the peer does not solicit
  bool is_held_up_ = false;       // something that is staged waits for room: completions of our own are waited for
  bool failure_told_ = false;
  std::string failure_;
  std::deque<Frame> frames_;  // received
};

// Copies a frame of the layer above to `to`. Error: it is too large, or none.
base::Status copy_frame(const Frame& frame, std::span<std::byte> to, size_t& length);

}  // namespace egret::transport::verbs
