// One end of a session on verbs: its protection domain, completion queue and queue pairs, what is staged and posted on
// them, the receives that must always be there, and the frames of the handshake.
//
//   stage_*  ─▶ prebuilt work requests, per queue pair ─ flush: one doorbell each ─▶ send queue ─▶ network
//   poll     ◀─ completions: reads, immediates, frames; receives are posted again, freed room is used at once
//
// Work requests that a full send queue or the read depth has no room for stay staged, in order, and go out as soon as
// completions make room. Reads are signalled; of the rest every kSignalInterval-th (of a small queue: sooner), so that the send queue's places
// come back. Thread: one at a time (see verbs.h). Errors: a failed completion is told once, as kFailed; failure() says
// what it was.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transport/device/alarm.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

struct LinkSizes {
  uint32_t sends = 0;     // places of each send queue
  uint32_t receives = 0;  // posted on each queue pair at all times
};

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

  VerbsLink() = default;
  VerbsLink(const VerbsLink&) = delete;
  VerbsLink& operator=(const VerbsLink&) = delete;
  // Destroys the queue pairs, if shut() has not.
  ~VerbsLink();

  // --- set-up
  // With a completion queue for so many queue pairs. When it is open: enlarges that queue; an error then leaves all as it
  // was.
  base::Status open(ibv_context* device, uint32_t queue_pairs, const LinkSizes& sizes);
  // A queue pair on `id`, which stays the caller's and must outlive the link; its receives are posted.
  base::Status add_queue_pair(rdma_cm_id* id);
  // Once it is connected: how many READs the peer allows; the RNR timer is set. Returns how many may be under way on all
  // queue pairs.
  // `peer_solicits`: the peer marks what is to wake us as solicited, as both ends have agreed: our own completions need not.
  uint32_t set_connected(uint32_t index, uint32_t read_depth, bool peer_solicits);
  ibv_pd* domain() const { return domain_.get(); }  // null: not open
  // What it has, for a log line.
  std::string facts() const;
  int channel_fd() const { return channel_->fd; }
  // Open only. Of the device, the completion queue and the queue pairs, for the thread that sets up and ends.
  const device::Alarm& alarm() const { return alarm_; }

  // --- frames, on the first queue pair
  base::Status send_frame(std::span<const std::byte> frame, std::span<const std::byte> attachment);
  bool take_frame(Frame& frame);
  // For the handshake, before poll() is used: arms, and takes all completions there are, so that their frames can be
  // read.
  struct Drained {
    bool failed = false;         // the link is of no further use; told once
    bool has_immediate = false;  // the peer has written with immediate, which is no part of a handshake
  };
  Drained drain();

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
  // Polls until `out` is full or the completion queue is empty.
  size_t poll(std::span<Completion> out);
  // The next completion after this makes channel_fd() readable; where the peer solicits, the next that it has marked, or
  // that failed, unless something waits for room on a send queue. Then poll() once more, and block. Costs nothing while
  // it is armed and no such completion has come. `was_readable`: channel_fd() was, or may have been.
  void arm(bool was_readable);
  const std::string& failure() const { return failure_; }

  // --- end
  // Destroys the queue pairs, at once. Afterwards no memory is in use by the device.
  void shut();

 private:
  struct Work {
    ibv_send_wr request;
    ibv_sge piece;
  };
  struct Pair {
    rdma_cm_id* id = nullptr;
    std::vector<Work> staged;  // from `next` on not posted yet; linked when posted
    size_t next = 0;
    std::vector<uint64_t> tags;  // of reads, by position mod sends
    uint64_t posted = 0;         // positions given out
    uint64_t retired = 0;        // positions whose place is free again
    uint64_t signalled = 0;      // the position after the last signalled one
    uint64_t posted_at_probe = 0;
    uint32_t reads = 0;  // under way
  };

  static constexpr uint32_t kFrameReceives = 8;  // receives with memory; the first that are used
  static constexpr uint32_t kFrameSends = 8;     // frames that may be under way
  static constexpr size_t kMaxInbox = 8;

  Pair& pair_of(uint32_t lane) { return pairs_[lane % pairs_.size()]; }
  Work& stage(Pair& pair, ibv_wr_opcode opcode, const LocalBytes& local, const RemoteMemory& remote, size_t offset);
  void post_staged(Pair& pair, uint32_t index);
  void post_receive(uint32_t index, uint32_t buffer);
  bool take(const ibv_wc& wc, Completion& out);
  bool take_received(const ibv_wc& wc, uint32_t index, Completion& out);
  bool receive_frame(uint32_t buffer, size_t bytes);
  base::Status enlarge(uint32_t queue_pairs, const ibv_device_attr& limits);
  // -1: the device has no completion queues for so many.
  int entries_for(uint32_t queue_pairs, const ibv_device_attr& limits) const;
  void make_thread_domain(ibv_context* device);
  void fail(const std::string& why);
  void take_events();
  void ask_for_events(bool any);
  uint32_t depth_of_all() const { return read_depth_ * static_cast<uint32_t>(pairs_.size()); }  // of all queue pairs

  LinkSizes sizes_;
  ProtectionDomain domain_;  // of the memories
  ThreadDomain thread_domain_;
  ProtectionDomain thread_pairs_domain_;  // domain_, for queue pairs of that thread domain; null: the device has none
  CompletionChannel channel_;
  CompletionQueue queue_;
  device::Alarm alarm_;
  PinnedMemory frames_;  // kFrameReceives, then kFrameSends buffers
  std::vector<Pair> pairs_;
  uint32_t signal_interval_ = kSignalInterval;  // less where a send queue is small: its places must come back
  uint32_t inline_bytes_ = 0;
  uint32_t read_depth_ = 1;
  uint32_t frames_sent_ = 0;
  enum class Armed : uint8_t { kNot, kForSolicited, kForAny };
  Armed armed_ = Armed::kNot;
  bool may_have_fired_ = false;  // since it is armed
  bool peer_solicits_ = false;
  bool is_held_up_ = false;  // something that is staged waits for room: completions of our own are waited for
  bool failure_told_ = false;
  std::string failure_;
  std::deque<Frame> inbox_;
};

// Copies a frame of the layer above to `to`. Error: it is too large, or none.
base::Status copy_frame(const Frame& frame, std::span<std::byte> to, size_t& length);

}  // namespace egret::transport::verbs
