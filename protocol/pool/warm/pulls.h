// The pulls of one worker while a change of members is warm: which keys have moved, and how many are pulled at once.
//
//   keep(members before) ─ fence: what was under way with them is answered ─▶ is_fenced ─ open() ─▶ pull(key) … ─ close()
//
// Until open() a miss is a miss: an op that was sent to a key's owner before might still change it there. At most
// kMostAtOnce keys are pulled to a member at once, so that one that is cold gets its clients' requests in between; others
// wait, at most kMostWaiting. Two pulls of one key are one.
// A member to which the session was made anew since keep() gets no fills: it may have been restarted, and have forgotten
// which keys were deleted since the phase began.
// A member before that has left and is about to join again is not asked: it joins when nothing is under way with it.
// Thread: the worker's. The sessions with members before that have left are anchored until close().
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/counter.h"
#include "pool/pool.h"
#include "pool/warm/fence.h"
#include "pool/warm/pull.h"

namespace egret::pool {

// What a worker counts of its pulls. Any thread reads.
struct PullCounters {
  base::Counter pulled;   // asked for at the owner before
  base::Counter filled;   // stored at the present owner
  base::Counter refused;  // not stored: the key was there, or had been changed or deleted since
  base::Counter absent;   // the owner before did not have it either
  base::Counter skipped;  // not asked for, or not answered: no room, no memory, no session, a stale value
};

// Memory for large values that are pulled.
class PullMemory {
 public:
  virtual bool take(uint64_t bytes) = 0;
  virtual void give(uint64_t bytes) = 0;

 protected:
  ~PullMemory() = default;
};

class Pulls {
 public:
  static constexpr size_t kMostAtOnce = 64;     // to one member
  static constexpr size_t kMostWaiting = 1024;  // likewise; beyond, a miss is a miss
  // A member before that did not answer is not asked again for so long.
  static constexpr uint64_t kRestNs = 1'000'000'000;

  // All outlive it. `next_upload_id`: of all uploads of the worker.
  Pulls(const Pool& pool, const base::Clock& clock, PullCounters& counters, PullMemory& memory,
        uint32_t& next_upload_id)
      : pool_(pool), clock_(clock), counters_(counters), memory_(memory), next_upload_id_(next_upload_id) {}
  ~Pulls();
  Pulls(const Pulls&) = delete;
  Pulls& operator=(const Pulls&) = delete;

  // Keys go by another membership from now on; `before` is the one until now. In the same pass as Pool::apply().
  void keep(std::shared_ptr<const Membership> before);
  // Whether everything that was under way at keep() is answered.
  bool is_fenced() const { return fence_.is_over(); }
  // Pulls are made from now on. Not before every worker of this process is fenced.
  void open() { is_open_ = before_ != nullptr; }
  // The phase is over. Pulls that wait find nothing; those under way end as they end.
  void close();
  bool is_open() const { return is_open_; }

  // Has the key's value brought to `to`, its present owner, and tells the waiter. False: there is nothing to bring, or it
  // cannot be done now; the waiter is not told. `patient`: waits for its turn, however many do.
  bool pull(std::string_view key, const Route& to, PullWaiter* waiter, bool patient);
  void stop_waiting(PullWaiter* waiter);
  // Of pulls that are under way or wait.
  size_t count() const { return pulls_.size(); }

 private:
  friend class Pull;

  struct Before {
    std::unique_ptr<rpc::SessionAnchor> session;  // with the member; null: there was none
    uint64_t rests_until_ns = 0;

    bool is_with(const rpc::ClientSession& other) const { return session != nullptr && &**session == &other; }
  };
  // The pulls to one member.
  struct Queue {
    size_t under_way = 0;
    std::deque<Pull*> waiting;
  };

  Before* source_of(std::string_view key, const Route& to);
  bool is_absent(const rpc::ClientSession& before) const;
  bool may_fill(const Route& to) const;
  void rest(const rpc::ClientSession& from);
  bool is_resting(const rpc::ClientSession& from) const;
  void on_over(Pull& pull);
  void start_waiting(const rpc::ClientSession* to);

  const Pool& pool_;
  const base::Clock& clock_;
  PullCounters& counters_;
  PullMemory& memory_;
  uint32_t& next_upload_id_;
  std::shared_ptr<const Membership> before_;                         // null: no phase
  std::vector<Before> members_before_;                               // in its order
  std::unordered_map<const rpc::ClientSession*, uint64_t> present_;  // with members now: the generation at keep()
  Fence fence_;
  bool is_open_ = false;
  bool is_starting_ = false;                                         // start_waiting() runs
  std::map<std::string, std::unique_ptr<Pull>, std::less<>> pulls_;  // by key
  std::unordered_map<const rpc::ClientSession*, Queue> queues_;      // by the present owner's session
};

}  // namespace egret::pool
