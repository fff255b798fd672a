// The counters of one worker's session with one backend, by lane, and their names in `stats egret`.
//
//   ClientLane ─ adds ─▶ LaneCounters ─┐
//   ClientLane ─ adds ─▶ LaneCounters ─┴ SessionCounters ◀─ reads, marks ─ any thread (`stats`, `stats reset`)
//
// Counters outlive their lanes: when a session is lost, the next session's lane of the same number continues to count.
// Writer: the session's worker only. Readers: any thread, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/counter.h"
#include "base/histogram.h"
#include "wire/slot.h"

namespace egret::rpc {

// How a lane waits, as LaneCounters::mode has it.
enum class LaneMode : uint8_t { kNone, kFetch, kReply };  // kNone: there is no session

struct alignas(64) LaneCounters {
  base::Counter messages, ops, fetches, refetches, torn, second_reads, replies, wants, rings, timeouts;
  base::Counter asked, ringing_requests;
  base::Counter direct_ops;  // of these, ops that took no slot
  base::Counter stalls;
  base::Counter switches_to_reply, switches_to_fetch;
  base::Gauge mode;           // LaneMode
  base::Gauge reason;         // FetchPolicy::Reason, of a lane that has a session
  base::Gauge is_push_cheap;  // 1: the backend says so
  base::Gauge fetch_size;     // F, bytes; 0: there is no session

  // Adds all counters of the same lane of another worker, or of another lane.
  LaneCounters& operator+=(const LaneCounters& other);
  void mark();
};

// One row of `stats egret`: the last part of its name, and what it means.
struct LaneMetric {
  std::string_view name;
  std::string_view total;  // the row of plain `stats` that has the sum over all lanes; empty: none
  std::string_view help;   // one sentence, no line breaks
  base::Counter LaneCounters::*counter = nullptr;
  // If the row is not a counter: its text, for the same lane of all workers.
  std::string (*shown)(std::span<const LaneCounters* const> workers) = nullptr;

  std::string value(std::span<const LaneCounters* const> workers) const;
};
std::span<const LaneMetric> lane_metrics();

// What a worker's session tells of its backend to whoever decides whether it is there.
struct alignas(64) SessionSigns {
  // A session was given up because the backend answered nothing for too long: more than any number of timeouts.
  static constexpr uint64_t kStuck = UINT64_MAX;

  base::Counter failures;  // sessions that ended, and attempts that nobody answered; not: answered by a refusal
  // Messages in a row that were not answered in time, or kStuck. While the backend answers nothing at all, messages that
  // still wait for their answer count, too.
  base::Gauge timeouts;
};

// Shared by a worker's sessions with one backend, one after another, and by those who read it.
class SessionCounters {
 public:
  SessionCounters() = default;
  SessionCounters(const SessionCounters&) = delete;
  SessionCounters& operator=(const SessionCounters&) = delete;

  // For the writer: creates missing counters of lanes up to `number`. They never move.
  LaneCounters& lane(uint32_t number);

  // Any thread. The most lanes that a session has had.
  uint32_t lane_count() const { return count_.load(std::memory_order_acquire); }
  const LaneCounters& at(uint32_t number) const { return *lanes_[number]; }  // number < lane_count()
  LaneCounters sum() const;
  void mark();

  base::Gauge is_open;  // 1 while there is a session
  SessionSigns signs;
  base::Histogram duration;   // from sending a message to handling its response, by the clock of the passes
  base::Counter deliveries;   // pushes that came: on shm wake-ups, each for all results of a round
  base::Counter long_values;  // that did not fit a slot
  base::Counter grown, given_back, not_resized;  // changes of the session's size
  base::Gauge slot_bytes;                        // of the session's region; 0: there is no session
  base::Gauge transport;                         // transport::number_of_transport(); 0: there is no session
  base::Counter fell_back, returned;  // sessions that began by the fallback; that went on by the preferred transport

 private:
  // Only the first count_ entries are set, and they never change: so readers need no lock.
  std::array<std::unique_ptr<LaneCounters>, wire::kMaxLanes> lanes_;
  std::atomic<uint32_t> count_{0};
};

}  // namespace egret::rpc
