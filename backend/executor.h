// Executes the ops of one partition against its store: checks that each key is its own, keeps what spans several ops of
// a lane (uploads, pinned versions), and answers what the store does not know (statistics of the process, admin, ping).
//
//   ops of a batch ─ hash ─▶ Store::foresee … prepare, locate ─▶ partition check, execute one by one ─▶ Result
//
// Thread: the partition's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "changes/changed_keys.h"
#include "changes/member_change.h"
#include "changes/tombstones.h"
#include "op/direct_store.h"
#include "op/op.h"
#include "op/rights.h"
#include "op/stats.h"
#include "rpc/slot_poller.h"
#include "store/loans.h"
#include "store/store.h"
#include "uploads/uploads.h"
#include "uploads/user_shares.h"

namespace egret::backend {

struct ExecutorOptions {
  uint32_t partition = 0;
  uint32_t partitions = 1;
  uint64_t memory = 0;             // bytes: the limit of this partition's store
  uint64_t whole_memory = memory;  // bytes: the option `memory`, of which that is a share
  uint32_t item_size_max = 0;
  bool evict = true;
  uint64_t hash_seed = 0;
  bool populate = false;
  std::string warm_file = {};  // StoreConfig::warm_path
  bool allow_debugtime = false;
  // Of the room for uploads, and of that for pins, what one user's sessions may hold while other users have sessions, too.
  uint32_t share_of_user = 100;  // percent
  uint64_t first_version = 1;    // StoreConfig::first_version
};

// Counted from the start; the partition's thread alone.
struct ExecutorCounters {
  uint64_t uploads_over_share = 0;  // refused because their user held its share of the room
  uint64_t pins_over_share = 0;     // not kept for the same reason
  uint64_t uploads_gave_way = 0;    // dropped to make room for one of another session
  uint64_t lent = 0;                // values lent to clients of this process
  uint64_t received_in_place = 0;   // bytes of values that clients of this thread received into the store itself
  uint64_t direct_ops = 0;          // ops that clients of this thread had executed without a slot
  uint64_t direct_messages = 0;     // in how many calls
  uint64_t fills = 0;               // values of other backends that were stored
  uint64_t fills_refused = 0;       // not stored: the key was there, or had been changed or deleted
  uint64_t purged = 0;              // items removed because they were another member's
  uint64_t changes_forgotten = 0;   // times that changed keys of an absent owner were forgotten for want of room
};

// What the partition holds at present for changes of members, and in the place of absent owners.
struct ExecutorLevels {
  uint64_t tombstone_bytes = 0;  // memory in which changed and deleted keys are remembered
  uint64_t takes_fills = 0;      // 1: a warm phase is on
  uint64_t purges = 0;           // 1: items of another member are being removed
  uint64_t lent_bytes = 0;       // of values that clients of this process have not given back
  uint64_t absent_owners = 0;    // in whose place ops came
  uint64_t changed_bytes = 0;    // memory in which their changed keys are remembered
};

// A partition's part of what a whole backend has; the first few have a byte more.
inline uint64_t share_of(uint64_t whole, uint32_t partition, uint32_t partitions) {
  return whole / partitions + (partition < whole % partitions ? 1 : 0);
}

class Executor final : public rpc::OpHandler {
 public:
  // What a lane whose client is this thread may call between rounds.
  class DirectLane final : public op::DirectStore {
   public:
    DirectLane(Executor& executor, rpc::LaneId lane) : executor_(executor), lane_(lane) { lanes_.fill(lane); }
    bool execute(const op::Op& op, op::Result& result, op::LoanName& lent) override;
    bool has_share() const override { return executor_.direct_work_ < rpc::SlotPoller::kLaneWork; }
    void execute_all(std::span<const op::Op> ops, op::ResultTaker& taker) override;
    bool begin_part(const op::Op& part, uint32_t most, op::PartRoom& room) override;
    void end_part(const op::Op& part, uint32_t length) override;

   private:
    void begin(std::span<const op::Op> ops);
    op::Result perform(size_t index, op::LoanName& lent);

    Executor& executor_;
    const rpc::LaneId lane_;
    std::array<rpc::LaneId, kMostTogether> lanes_;  // all the same one
  };

  static base::Expected<std::unique_ptr<Executor>> create(const ExecutorOptions& options, const base::Clock& clock);
  Executor(const ExecutorOptions& options, const base::Clock& clock, std::unique_ptr<store::Store> store);
  [[gnu::noinline]] ~Executor() override;  // inlined, GCC 12 takes it for a free of what is not on the heap

  void begin_round() override;
  void foresee(std::span<op::Op> ops) override;
  void prepare(std::span<op::Op> ops, std::span<const rpc::LaneId> lanes) override;
  void locate() override;
  op::Result execute(size_t index) override;
  bool keep(size_t index, const op::Result& result) override;
  op::LoanName lend(size_t index, const op::Result& result) override;
  // The bytes of keep() are sent, or copied: their pins end. Ops may be executed directly again, as many as a lane may use
  // of a round.
  void end_round() {
    kept_.clear();
    direct_work_ = 0;
  }
  void lane_attached(rpc::LaneId lane, const rpc::LaneBinding& binding) override;
  void lane_dropped(rpc::LaneId lane) override;

  // Does a bounded part of the work that waits for idle moments. False: there is none.
  bool idle_step();
  // How long, in ns, until idle_step() has work again if no op comes; UINT64_MAX: it will have none.
  uint64_t upkeep_in_ns() const;
  // The same by the clock.
  uint64_t upkeep_at_ns() const {
    const uint64_t in_ns = upkeep_in_ns();
    return in_ns == UINT64_MAX ? in_ns : now_ns_ + in_ns;
  }
  const store::Store& store() const { return *store_; }
  ExecutorCounters counters() const;
  ExecutorLevels levels() const;
  void set_share_of_user(uint32_t percent) { shares_.set_percent(percent); }
  // Sets the store's limit to this partition's share of so many bytes. False: the store cannot change it while it serves.
  bool set_memory(uint64_t whole);
  // The limit of the whole backend that this partition has a share of: the option `memory`, or what a client has set.
  uint64_t memory() const { return memory_; }

  static constexpr uint64_t kPinNs = 1'000'000'000;  // a pinned version is kept this long
  // An idle partition looks this often for what was lent and has come back.
  static constexpr uint64_t kLoanNs = 1'000'000'000;
  static constexpr size_t kMaxPinsPerLane = 64;  // the oldest makes room
  static constexpr size_t kMaxKept = 64;         // beyond that, values are copied into slots
  static constexpr size_t kMaxComplaint = 200;   // bytes: fits the smallest slot with room to spare

 private:
  struct Pinned {
    store::Store::Pin pin;
    uint64_t since_ns = 0;
    Charge charge;
    bool is_read = false;  // its last byte was asked for: it may go where there is no room for others
  };

  op::Result perform(size_t index);
  op::Result perform_noted(size_t index);
  op::Result dispatch(size_t index);
  bool may(const op::Op& op, rpc::LaneId lane) const {
    const op::Rights rights = access_[lane].rights;
    return rights == op::kAllRights || (op::rights_for(op) & ~rights) == 0;
  }
  op::Result get(const op::Op& op, size_t index);
  op::Result fill(const op::Op& op, size_t index);
  bool is_accepted(const op::Op& op, rpc::LaneId lane) const;
  op::Result changes(const op::Op& op);
  bool allows_fill(const op::Op& op);
  op::Result counted_fill(const op::Result& result);
  op::Result chunk(const op::Op& op, size_t index);
  store::Store::Pin pin_of(const op::Op& op, rpc::LaneId lane, uint64_t version);
  Pinned* find_pin(rpc::LaneId lane, uint64_t version);
  store::Store::Pin pin_for_reading(const op::Op& op);
  op::Result upload_part(const op::Op& op, rpc::LaneId lane);
  op::Result commit(const op::Op& op, rpc::LaneId lane);
  op::Result stats(const op::Op& op);
  op::Result stats_page(size_t first) const;
  void append_process_stats();
  op::Result admin(const op::Op& op);
  op::ResultCode set_memory_limit(std::string_view bytes);
  void log_limit(uint64_t before) const;
  op::ResultCode move_clock(std::string_view seconds);
  op::ResultCode change_members(std::string_view change);
  op::ResultCode warm(std::string_view seconds);
  op::Result check();
  void drop_overdue();

  const ExecutorOptions options_;
  const base::Clock& clock_;
  std::unique_ptr<store::Store> store_;
  uint64_t memory_ = 0;  // see memory()
  UserShares shares_;
  Uploads uploads_;
  std::vector<std::vector<Pinned>> pins_;  // by lane, oldest first
  bool has_read_pins_ = false;             // perhaps
  std::vector<store::Store::Pin> kept_;    // versions whose bytes are about to be sent
  store::Loans loans_;
  struct Access {
    op::Rights rights = 0;
    op::ResultCode refusal = op::ResultCode::kForbidden;
    UserShares::User* user = nullptr;  // null: the lane is not attached
  };
  std::vector<Access> access_;  // by lane
  ExecutorCounters counters_;
  Tombstones tombstones_;
  MemberChange member_change_;
  ChangedKeys changed_keys_;
  std::string changes_page_;  // of the last changes()
  uint64_t now_ns_ = 0;
  uint64_t start_ns_ = 0;
  uint32_t direct_work_ = 0;     // units that ops executed directly have used of this round
  bool is_handing_out_ = false;  // execute_all() is under way: nothing else is executed meanwhile
  bool is_round_fresh_ =
      false;  // the round of an op that was executed directly is the last one: the clock was just read
  uint64_t next_overdue_ns_ = UINT64_MAX;  // when an upload, a pin or the tombstones may be overdue

  std::span<const op::Op> ops_;
  std::span<const rpc::LaneId> op_lanes_;
  std::vector<op::StatRow> stat_rows_;
  std::string complaint_;  // of the last check
};

}  // namespace egret::backend
