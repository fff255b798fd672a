// How the backend's threads tell each other things: bounded single-producer single-consumer queues, one for each pair
// of threads, and an eventfd that wakes the receiver if it sleeps. Off the data path of a busy system: attaching and
// dropping sessions, rings and deliveries that must reach another partition.
//
// A letter is never lost and never blocks its sender: what does not fit the queue waits in the sender's outbox, which
// resend() empties. The outbox is bounded by what may be under way: of a session, one letter of each kind per lane, and
// one delivery per response slot (UnderWay).
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

// What of a session is under way between its home and its partitions: however often a client rings, there is at most
// one letter per lane; however much it wants delivered without waiting for any, one per response slot. Owned by the
// control thread's session, outlives every attachment.
struct UnderWay {
  explicit UnderWay(size_t response_slots = 0) : deliveries(response_slots) {}

  std::array<std::atomic<bool>, wire::kMaxLanes> rings{};
  // By response slot: how many bytes the letter under way is to push when it arrives; 0: none is under way.
  std::vector<std::atomic<uint32_t>> deliveries;
};

// When a partition stops polling lanes that have no requests.
struct PollingRules {
  uint64_t lane_idle_ns = 0;      // rpc::PollerOptions
  uint64_t far_lane_idle_ns = 0;  // likewise
  bool park_always = false;
};

struct PartitionReport;

struct Letter {
  enum class Kind : uint8_t {
    kAttach,    // control → partition: serve this lane
    kDetach,    // control → partition: forget this session; answered with kDetached
    kDetached,  // partition → control
    kBroken,    // partition → control: this session's peer wrote a malformed message; `error` says what is wrong
    kGone,      // partition → control: this session's endpoint broke
    kRing,      // home → partition: look at this session's lane
    kDeliver,   // partition → home: push that response slot, as many bytes as UnderWay says by then
    kCheck,     // control → partition: answered with kAlive
    kAlive,     // partition → control: that partition's thread goes on; lane.lane says which
    kPolling,   // control → partition: poll by these rules from now on
    kMemory,    // control → partition: the store's limit is to be its share of `memory`
    kTooMuch,   // partition → control: it cannot be while the store serves
    kInquire,   // control → partition: fill in `report`; answered with kReported
    kReported,  // partition → control: lane.lane says which
    kStop,      // control → partition
  };
  Kind kind = Kind::kStop;
  rpc::LaneBinding lane;
  UnderWay* under_way = nullptr;      // kAttach
  PartitionReport* report = nullptr;  // kInquire
  size_t offset = 0;                  // kDeliver
  PollingRules polling{};             // kPolling
  uint64_t memory = 0;                // kMemory: of the whole backend
  wire::DecodeError error{};          // kBroken
};

class PostOffice {
 public:
  // Nodes 0..nodes-1; by convention the partitions, then the control thread.
  explicit PostOffice(uint32_t nodes);

  uint32_t nodes() const { return nodes_; }
  void send(uint32_t from, uint32_t to, const Letter& letter);
  // Tries again what did not fit. Returns true when something is still waiting.
  bool resend(uint32_t from);
  bool has_outbox(uint32_t from, uint32_t to) const { return !queues_[size_t{from} * nodes_ + to]->outbox.empty(); }
  // Whether `to` has read all that `from` sent and that fitted.
  bool is_empty(uint32_t from, uint32_t to) const { return queues_[size_t{from} * nodes_ + to]->empty(); }
  // The next letter for `node`: the control thread's first, then the others' in turn, so that no sender, however much
  // it has to say, keeps another's waiting. False: none.
  bool receive(uint32_t node, Letter& letter);

  // Sleeping: prepare_sleep() says that it may block on wake_fd(); false: mail has come, do not.
  bool prepare_sleep(uint32_t node);
  void awake(uint32_t node);
  int wake_fd(uint32_t node) const { return nodes_state_[node].wake.get(); }
  void wake(uint32_t node);

 private:
  static constexpr size_t kCapacity = 256;  // letters between two threads; a power of two

  struct Queue {
    alignas(64) std::atomic<size_t> head{0};  // the consumer's
    alignas(64) std::atomic<size_t> tail{0};  // the producer's
    std::array<Letter, kCapacity> letters;
    std::deque<Letter> outbox;  // the producer's

    bool push(const Letter& letter);
    bool pop(Letter& letter);
    bool empty() const { return head.load(std::memory_order_acquire) == tail.load(std::memory_order_acquire); }
  };
  struct Node {
    base::UniqueFd wake;
    uint32_t next_sender = 0;  // whose turn it is to be received; the node's own
    alignas(64) std::atomic<bool> sleeping{false};
  };

  Queue& queue(uint32_t from, uint32_t to) { return *queues_[size_t{from} * nodes_ + to]; }
  void notify(uint32_t to);

  const uint32_t nodes_;
  std::vector<Node> nodes_state_;
  std::vector<std::unique_ptr<Queue>> queues_;
};

}  // namespace egret::backend
