// Messages between the backend's threads: a bounded queue for each pair of threads (one producer, one consumer), and an
// eventfd for each thread that wakes it if it sleeps. Not on the data path: sessions that are attached and detached,
// and rings and deliveries that must reach another partition.
//
// A message is never lost and never blocks its sender. If the queue is full, the message waits in the sender's outbox,
// which resend() empties. The outbox is bounded, since the messages in flight are: for a session, one message of each
// kind per lane, and one delivery per response slot (UnderWay).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/unique_fd.h"
#include "rpc/slot_poller.h"

namespace egret::backend {

// The messages of a session that are in flight between its home and its partitions: at most one per lane, however often
// the client rings, and at most one per response slot, however many deliveries it wants. Owned by the control thread's
// session; outlives every attachment.
struct UnderWay {
  explicit UnderWay(size_t response_slots = 0) : deliveries(response_slots) {}

  std::array<std::atomic<bool>, wire::kMaxLanes> rings{};
  // Indexed by response slot: how many bytes to push when the message in flight arrives; 0: none is in flight.
  std::vector<std::atomic<uint32_t>> deliveries;
};

// When a partition stops polling lanes that have no requests; when it says that pushing results is cheap.
struct PollingRules {
  uint64_t lane_idle_ns = 0;      // rpc::PollerOptions
  uint64_t far_lane_idle_ns = 0;  // rpc::PollerOptions
  uint64_t embedded_idle_ns = 0;  // rpc::PollerOptions
  bool park_always = false;
  rpc::PushRules push = {};
};

struct PartitionReport;

struct Message {
  enum class Kind : uint8_t {
    kAttach,     // control → partition: serve this lane
    kDetach,     // control → partition: forget this session; answered with kDetached
    kDetached,   // partition → control
    kBroken,     // partition → control: this session's peer wrote a malformed message; `error` says what is wrong
    kGone,       // partition → control: this session's endpoint broke
    kUnwatched,  // partition → control: this session's endpoint cannot be waited for; the system has no room
    kRing,       // home → partition: look at this session's lane
    kDeliver,    // partition → home: push that response slot; UnderWay says how many bytes
    kCheck,      // control → partition: answered with kAlive
    kAlive,      // partition → control: the thread of partition lane.lane still runs
    kPolling,    // control → partition: poll by these rules, and share by `share_of_user`, from now on
    kMemory,     // control → partition: set the store's limit to its share of `memory`
    kCompare,    // control → partition: a reload leaves the limit alone; log it if it is not `memory`
    kTooMuch,    // partition → control: the store cannot take that limit while it serves
    kInquire,    // control → partition: fill in `report`; answered with kReported
    kReported,   // partition → control: partition lane.lane has filled in its report
    kStop,       // control → partition
  };
  Kind kind = Kind::kStop;
  rpc::LaneBinding lane;
  UnderWay* under_way = nullptr;      // kAttach
  PartitionReport* report = nullptr;  // kInquire
  size_t offset = 0;                  // kDeliver
  PollingRules polling{};             // kPolling
  uint32_t share_of_user = 100;       // kPolling: ExecutorOptions
  uint64_t memory = 0;                // kMemory, kCompare: of the whole backend
  wire::DecodeError error{};          // kBroken
};

class Mailboxes {
 public:
  // Threads have numbers 0..nodes-1: the partitions, then the control thread.
  // Throws std::system_error if the system has no descriptors for them.
  explicit Mailboxes(uint32_t nodes);

  uint32_t nodes() const { return nodes_; }
  void send(uint32_t from, uint32_t to, const Message& message);
  // Tries to send what is in the outboxes of `from`. True: something is still waiting.
  bool resend(uint32_t from);
  bool has_outbox(uint32_t from, uint32_t to) const { return !queues_[size_t{from} * nodes_ + to]->outbox.empty(); }
  // Whether something of `from` is in an outbox.
  bool is_waiting(uint32_t from) const { return nodes_state_[from].waiting > 0; }
  // Whether `to` has read everything in the queue from `from`.
  bool is_empty(uint32_t from, uint32_t to) const { return queues_[size_t{from} * nodes_ + to]->empty(); }
  // The next message for `node`: the control thread's first, then the others' in turn, so that a sender of many
  // messages does not keep those of others waiting. False: none.
  bool receive(uint32_t node, Message& message);

  // Sleeping. prepare_sleep(): true: block on wake_fd(); false: a message has come, do not block.
  bool prepare_sleep(uint32_t node);
  void awake(uint32_t node);
  // For a thread that reads messages only when wake_fd() tells of some: whoever sends signals, from now on. Messages that
  // came before are to be read once by itself.
  void signal_always(uint32_t node);
  int wake_fd(uint32_t node) const { return nodes_state_[node].wake.get(); }
  void wake(uint32_t node);

 private:
  static constexpr size_t kCapacity = 256;  // messages between two threads; a power of two

  struct Queue {
    alignas(64) std::atomic<size_t> head{0};  // the consumer's
    alignas(64) std::atomic<size_t> tail{0};  // the producer's
    std::array<Message, kCapacity> messages;
    std::deque<Message> outbox;  // the producer's

    bool push(const Message& message);
    bool pop(Message& message);
    bool empty() const { return head.load(std::memory_order_acquire) == tail.load(std::memory_order_acquire); }
  };
  struct Node {
    base::UniqueFd wake;
    uint32_t next_sender = 0;  // the sender that receive() reads next; only the receiver uses it
    size_t waiting = 0;        // messages in its outboxes; only the node's thread uses it
    alignas(64) std::atomic<bool> sleeping{false};
  };

  Queue& queue(uint32_t from, uint32_t to) { return *queues_[size_t{from} * nodes_ + to]; }
  void notify(uint32_t to);

  const uint32_t nodes_;
  std::vector<Node> nodes_state_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace egret::backend
