// How many bytes of values in parts (LargeSet) one session may have open at one partition.
//
//   LargeSet ─ enter() ─▶ open: its parts go as its client's bytes come ─ leave() ─▶
//                └ no room: its owner collects the value, and then ─ enter_whole() ─▶ open: one at a time
//                         └ no memory for that either: wait(), first come, first served
//
// Values that are sent while they come have room for one item of the largest size together; a value that was collected
// has room of its own, and never waits for a client's bytes. So nobody waits for another client, except while the
// session moves to other slots (close()). Only where there is
// neither room nor memory a value waits; then an open one whose client has sent nothing for kSlowNs loses its room:
// whoever is slow loses the own value, never others'.
// It also counts the ops of uploads that are in slots. While there are any, no part of the lane is written into the store
// directly: it would take the room of parts that were sent before it (LargeSet::goes_directly).
// Thread: the worker's. Owned by the session; its uploads leave before the session's lanes go, or know that they went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace egret::rpc {

class LargeSet;

class UploadRoom {
 public:
  static constexpr uint64_t kSlowNs = 1'000'000'000;
  static constexpr size_t kMaxOpen =
      32;  // the backend allows a lane twice as many, those included whose commit is on its way

  explicit UploadRoom(uint64_t limit) : limit_(limit) {}

  // False: there is no room now.
  bool enter(LargeSet* set, uint64_t bytes);
  // All bytes of the value are here. False: another such value is being sent; wait as for credit.
  bool enter_whole(const LargeSet* set);
  // A value that the backend will refuse, and of which it gets no byte. False: wait as for credit.
  bool announce(const LargeSet* set);
  // `set` is in the queue now, and is to try enter() again as for credit.
  void wait(LargeSet* set);
  // `set` is over, or does not wait any more.
  void leave(const LargeSet* set);
  // An op of one of the lane's uploads was appended; its result has come.
  void sent() { ++in_slots_; }
  void answered() { --in_slots_; }
  bool has_parts_in_slots() const { return in_slots_ > 0; }
  // Nobody enters any more; who is in goes on.
  void close(bool closed) { is_closed_ = closed; }
  bool is_empty() const { return open_.empty() && whole_ == nullptr && announced_ == nullptr; }
  bool is_anybody_waiting() const { return !waiting_.empty(); }
  // While somebody waits: takes the room of the upload that has moved least lately, if it has not moved since kSlowNs.
  // Returns whether it did.
  bool make_room(uint64_t now_ns);

 private:
  struct Open {
    LargeSet* set;
    uint64_t bytes;
  };

  uint64_t limit_;
  bool is_closed_ = false;
  uint64_t used_ = 0;
  uint32_t in_slots_ = 0;
  std::vector<Open> open_;
  const LargeSet* whole_ = nullptr;
  const LargeSet* announced_ = nullptr;
  std::deque<LargeSet*> waiting_;
};

}  // namespace egret::rpc
