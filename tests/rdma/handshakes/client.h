// The client's end of one session: a thread that keeps several lanes busy, fetches results by READ, rings lanes that
// are asleep, and sleeps at every opportunity, after writing which results it wants pushed.
//
//   send: WRITE request ─> fetch: READ response ─┬─ whole ─> taken
//                               ^                ├─ torn ──> fetch again
//                               │                └─ not yet ─ asleep? ─> ring (WRITE_WITH_IMM, lane), once per seq
//                               └──────────────────── or: WRITE want ─> READ once more ─> arm ─> poll ─> block ─>
//                               delivered
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenario.h"
#include "session.h"

namespace egret::handshakes {

class Client {
 public:
  // `partitions_blocked` describes the server for the report of a loss. All clients add to `total_failures`, and stop
  // when there are as many as the scenario wants to see.
  Client(const Scenario& scenario, Session& session, std::function<std::string()> partitions_blocked,
         std::atomic<uint32_t>& total_failures);

  void run();  // the thread
  const Counters& counters() const { return counters_; }

 private:
  struct ClientLane {
    uint64_t next = 1;            // the seq of the next request
    uint64_t oldest = 1;          // the oldest not taken: what is fetched
    uint64_t rung_for = 0;        // the seq that the last ring was for
    uint64_t want = 0;            // the highest seq that is to be delivered
    uint64_t since_us = 0;        // when `oldest` became the oldest
    std::vector<uint64_t> taken;  // by window index: the seq last taken there
    bool outstanding() const { return oldest != next; }
  };
  struct Found {
    bool whole = false;
    bool torn = false;
  };

  void send_some();
  void send_one(uint32_t lane);
  Found fetch_once(bool last);
  void judge_fetched(uint32_t lane, uint64_t seq, bool last, Found& found);
  void ring(uint32_t lane, uint64_t seq);
  void write_wants();
  void sleep_until_delivered();
  bool block();
  bool poll();
  void take_delivered(uint32_t slot);
  void take(uint32_t lane, const Message& response);
  void advance(ClientLane& lane);

  bool outstanding() const;
  bool overdue() const;
  bool enough_failed() const { return total_failures_ >= scenario_.stop_after; }
  void report_lost(const char* how);
  void recover();

  const Scenario& scenario_;
  Session& session_;
  std::function<std::string()> partitions_blocked_;
  std::atomic<uint32_t>& total_failures_;
  Pauses pauses_;
  std::vector<ClientLane> lanes_;
  uint32_t reads_in_flight_ = 0;
  bool delivered_ = false;  // something was taken from a reply slot since this was cleared
  Message message_, expected_, request_;
  Counters counters_;
};

}  // namespace egret::handshakes
