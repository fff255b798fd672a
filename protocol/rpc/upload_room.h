// How many bytes of values in parts (LargeSet) one session may have open at one partition.
//
//   LargeSet ─ enter() ─▶ open ─ leave() ─▶
//                └ no room: waits its turn, first come, first served; the session's tick asks make_room()
//
// The limit is one item of the largest size: several smaller values go side by side, and the largest goes alone. The
// backend gives no session more than that (backend/executor.h), so an upload that is let in here is not refused there.
// While somebody waits, an upload whose client has sent nothing for kSlowNs loses its room: whoever is slow loses the
// own value, never others'.
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
  static constexpr size_t kMaxOpen = 32;  // the backend allows a lane twice as many

  explicit UploadRoom(uint64_t limit) : limit_(limit) {}

  // False: there is no room; `set` is in the queue now, and is to ask again as for credit.
  bool enter(LargeSet* set, uint64_t bytes);
  // `set` is over: it was let in, or waited.
  void leave(const LargeSet* set);
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
  uint64_t used_ = 0;
  std::vector<Open> open_;
  std::deque<LargeSet*> waiting_;
};

}  // namespace egret::rpc
