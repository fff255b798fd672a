// What one session has of its device: a protection domain, queue pairs with their ids, the buffers of its frames and its
// memories. To make and to end any of it commands the device, so it is done by the thread that sets up (the client's: set_up.h;
// the server's: the control thread); a VerbsLink posts to the queue pairs and uses the memories on another one.
//
//   open ─▶ add … ─▶ connected … ─▶ register ─▶ shut, or destroyed: queue pairs first, then the memory that they used
//
// A queue pair that is destroyed has let go of all memory (ibv_destroy_qp; the kernel waits for the device). Waiting for its
// work requests to be flushed first would only hold up the thread, and on a device that has been taken away they are never
// flushed. Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/verbs/queue_sizes.h"
#include "transport/verbs/queues.h"
#include "transport/verbs_common.h"

namespace egret::transport::verbs {

inline constexpr uint32_t kFrameSends = 8;  // frames that may be under way

struct LinkSizes {
  uint32_t sends = 0;     // places of each send queue
  uint32_t receives = 0;  // posted on each queue pair at all times
};

// Who posts to the queue pairs.
enum class Poster : uint8_t {
  kPollingThread,  // alone: they are in its thread domain
  kSeveral,        // one after the other
};

class SessionParts {
 public:
  // Completions go to `inbox`; `told` is notified when the device has failed, or something that the session has of it.
  SessionParts(std::shared_ptr<SharedQueues> queues, std::shared_ptr<Inbox> inbox,
               std::shared_ptr<const device::Notifier> told);
  ~SessionParts() { shut(); }
  SessionParts(const SessionParts&) = delete;
  SessionParts& operator=(const SessionParts&) = delete;

  // On the device of `id`, which is known. It has fewer places than are wanted if the device has no more.
  base::Status open(const rdma_cm_id& id, const LinkSizes& wanted, Poster poster);
  bool is_open() const { return domain_ != nullptr; }
  // A queue pair on `id`, which it takes over, also if that fails. Receives are posted before anything can come: those with
  // memory, on the first one; with `all` the others, too.
  base::Status add(CmId id, bool all);
  // The others of the first one.
  base::Status post_all();
  // Once it is connected: sets the RNR timer.
  void connected(uint32_t pair);
  // Registers memory; see PinnedMemory.
  base::Status make(PinnedMemory& memory, size_t bytes, int access) const;

  // Destroys the queue pairs. From then on nothing uses the memory.
  void shut();
  void disconnect();

  const LinkSizes& sizes() const { return sizes_; }
  uint32_t tag() const { return tag_; }  // of work ids
  uint32_t inline_bytes() const { return inline_bytes_; }
  uint32_t count() const { return static_cast<uint32_t>(ids_.size()); }  // queue pairs
  ibv_qp* pair(uint32_t index) const { return ids_[index]->qp; }
  rdma_cm_id& id(uint32_t index) const { return *ids_[index]; }
  const PinnedMemory& frames() const { return frames_; }  // kFrameReceives, then kFrameSends buffers
  const device::Device& device() const { return *device_; }
  bool has_thread_domain() const { return pairs_domain_ != nullptr; }
  // Ok, or what the device has said. Any thread, once it is open.
  base::Status alarm() const { return alarm_.status(); }

 private:
  void join_thread_domain(Poster poster);
  base::Status create(rdma_cm_id& id, ibv_cq* queue);
  base::Status post_receives(uint32_t pair, uint32_t from, uint32_t to);

  const std::shared_ptr<SharedQueues> queues_;
  const std::shared_ptr<Inbox> inbox_;
  const std::shared_ptr<const device::Notifier> told_;
  std::shared_ptr<device::Device> device_;
  std::vector<CmId> ids_;    // keep librdmacm's context open
  ProtectionDomain domain_;  // of the memories
  std::shared_ptr<ibv_td> thread_domain_;
  ProtectionDomain pairs_domain_;  // domain_, for queue pairs of that thread domain; null: there is none
  PinnedMemory frames_;
  std::vector<SharedQueues::Room> rooms_;  // of the queue pairs
  device::Alarm alarm_;
  LinkSizes sizes_;
  uint32_t inline_bytes_ = 0;
  uint32_t tag_ = 0;
  bool has_tag_ = false;
};

// Posts a receive for work_id(kReceive, tag, pair, buffer); kNoBuffer: without memory, where only immediates come.
inline constexpr uint32_t kNoBuffer = 0xffff;
int post_receive(ibv_qp* pair, uint64_t id, const PinnedMemory& frames);

}  // namespace egret::transport::verbs
