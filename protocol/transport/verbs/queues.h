// The completion queues of one thread, which all sessions that it polls share, their channels, and which completion belongs
// to whom. So a thread polls one queue and sleeps on one descriptor, however many sessions it has.
//
//   a session ─ enter(inbox) ─▶ tag ─┐                      ┌─▶ inbox of a session ─▶ its listener
//             ─ room() ─▶ queue ─▶ queue pairs ─▶ completions: poll() ─▶ by the tag in their ids ─┤
//             ─ leave(), rooms go ─▶ the place is free     └─▶ dropped, if it has left
//
// *Room.* A queue pair gets as many entries of a queue as it has places for work requests, so no queue can overflow, whoever
// sends what; the entries are free for others only when the queue pair is destroyed and the queue was empty once. The first
// queue has room for a few queue pairs; when it is full there is another one, twice as large as all before, on the
// same channel (four queues for a hundred queue pairs). A queue is never resized: while the device resizes it, its lock is
// held, and whoever polls it waits for a millisecond; and some devices cannot.
//
// *Devices.* A thread has queues and a channel for each device that its sessions use. A queue whose device says that it has
// failed, or that cannot be polled, ends the sessions that use it, and no others; nobody gets room on it any more. Of a
// device that is taken away queues go as soon as no queue pair uses them.
//
// *Events.* Where all peers solicit and the device knows solicited events, only these wake; see want_any().
//
// Threads: poll(), arm(), ready() are the polling thread's; everything else is for any thread. What others have changed
// (inboxes, queues) the polling thread takes under a mutex when it is told so; otherwise it locks nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "transport/device/device.h"
#include "transport/transport.h"
#include "transport/verbs/inbox.h"
#include "transport/verbs/set_up.h"

namespace egret::transport::verbs {

class SharedQueues {
  struct Queue;

 public:
  // Nothing is made of any device before a session needs it.
  static base::Expected<std::shared_ptr<SharedQueues>> make();
  SharedQueues() = default;
  ~SharedQueues();
  SharedQueues(const SharedQueues&) = delete;
  SharedQueues& operator=(const SharedQueues&) = delete;

  // --- the polling thread: as of PollGroup
  int fd() const { return epoll_.get(); }
  void ready();
  bool poll() { return !has_nothing() && poll_all(); }
  void arm() {
    if (!polled_.empty() || !awaited_.empty()) arm_all();
  }

  // --- any thread
  // Entries of a queue, for one queue pair. To be destroyed after that.
  class Room {
   public:
    Room() = default;
    Room(Room&& other) noexcept { *this = std::move(other); }
    Room& operator=(Room&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(queue_, other.queue_);
      std::swap(entries_, other.entries_);
      std::swap(tag_, other.tag_);
      return *this;
    }
    ~Room();
    ibv_cq* queue() const;

   private:
    friend class SharedQueues;
    std::shared_ptr<SharedQueues> owner_;
    std::shared_ptr<Queue> queue_;
    uint32_t entries_ = 0;
    uint32_t tag_ = 0;
  };
  // `tag`: whose queue pair it is. It may make a queue, which takes a device its time.
  static base::Expected<Room> room(const std::shared_ptr<SharedQueues>& of,
                                   const std::shared_ptr<device::Device>& device, uint32_t entries, uint32_t tag);
  // The tag for the work ids of a session.
  base::Expected<uint32_t> enter(std::shared_ptr<Inbox> inbox);
  // After its queue pairs are destroyed.
  void leave(uint32_t tag);
  // One more that needs to be woken by any completion, or one less: a session whose peer does not solicit, or which waits
  // for room on a send queue. It counts from the next arm() on; on another thread than the polling one: then wake().
  void want_any(bool more) { wants_any_.fetch_add(more ? 1 : -1, std::memory_order_relaxed); }
  void wake() { changed_->notify(); }
  // Where its sessions are made, and ended; from the first call on for as long as this object exists.
  base::Expected<std::shared_ptr<SetUp>> set_up();
  // Returns when all has run there that was posted before. On another thread than that.
  void wait_for_set_up();
  // For the queue pairs to which the polling thread alone posts: they need no locks, and have a doorbell register that no
  // other thread uses. Null: the device has no such domains, or no more of them. Either keeps the channel.
  base::Expected<std::shared_ptr<ibv_td>> thread_domain(const std::shared_ptr<device::Device>& device);

 private:
  enum class Armed : uint8_t { kNot, kForSolicited, kForAny };
  struct Channel {
    std::shared_ptr<device::Device> device;
    CompletionChannel handle;
    ThreadDomain thread_domain;
    bool solicits = true;  // the device knows solicited events; the polling thread's
  };
  struct Place {
    std::shared_ptr<Inbox> inbox;
    uint32_t generation = 0;
  };

  static constexpr uint32_t kGenerationBits = 12;

  void give_back(Queue& queue, uint32_t entries, uint32_t tag);
  void changed();
  void take_changes();
  void take_entering();
  void take_leaving();
  std::vector<std::shared_ptr<Queue>> take_unused();
  bool is_unused(const Queue& queue) const;
  Inbox* inbox_of(uint32_t tag);
  // In a process whose sessions go another way: asked several times in a pass.
  bool has_nothing() const {
    return polled_.empty() && !must_look_ && !has_changed_.load(std::memory_order_acquire) && !changed_->is_pending();
  }
  bool poll_all();
  bool poll(Queue& queue);
  void dispatch(const ibv_wc& completion);
  void set_free(Queue& queue);
  void end_sessions(Queue& queue);
  void arm_all();
  void arm(Queue& queue, bool any);
  bool has_fired(const Channel& channel) const;
  bool take_event(const Channel& channel);
  void ask_for_events(Queue& queue, bool any);
  std::shared_ptr<Queue> take_room(const device::Device& device, uint32_t entries, uint32_t tag);
  base::Expected<std::shared_ptr<Channel>> channel_of(const std::shared_ptr<device::Device>& device);
  base::Expected<std::shared_ptr<Queue>> make_queue(const std::shared_ptr<device::Device>& device, uint32_t entries);

  std::shared_ptr<SetUp> set_up_;              // the mutex; kept
  base::UniqueFd epoll_;                       // of the channels, and of changed_
  std::shared_ptr<device::Notifier> changed_;  // wakes the polling thread
  std::atomic<bool> has_changed_{false};
  std::atomic<int> wants_any_{0};

  // Held while a channel or a queue is made, so that two sessions that begin at once share it. Taken before mutex_.
  std::mutex making_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Channel>> channels_;  // these: the mutex
  std::vector<std::shared_ptr<Queue>> all_;
  std::vector<uint32_t> free_slots_;
  std::vector<std::pair<uint32_t, std::shared_ptr<Inbox>>> entering_;  // by tag; not taken yet
  std::vector<uint32_t> leaving_;
  std::vector<uint32_t> generations_;  // by slot: that of its next tag

  // The polling thread's.
  std::vector<std::shared_ptr<Queue>> polled_;
  std::vector<std::shared_ptr<Channel>> awaited_;  // theirs
  std::vector<Place> places_;                      // by slot
  std::vector<Inbox*> listed_;                     // to be told when this poll is over
  bool must_look_ = false;                         // the next poll has changes to take
};

// The polling thread's.
class QueueGroup final : public PollGroup {
 public:
  explicit QueueGroup(std::shared_ptr<SharedQueues> queues) : queues_(std::move(queues)) {}
  // Its sessions, which have been destroyed, are ended by now.
  ~QueueGroup() override { queues_->wait_for_set_up(); }

  const std::shared_ptr<SharedQueues>& queues() const { return queues_; }
  int fd() const override { return queues_->fd(); }
  void ready() override { queues_->ready(); }
  bool poll() override { return queues_->poll(); }
  void arm() override { queues_->arm(); }

 private:
  const std::shared_ptr<SharedQueues> queues_;
};

}  // namespace egret::transport::verbs
