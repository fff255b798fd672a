// The memory of a session over shm, on the server's side, and how long it counts.
//
//   SharedMemory::make ─▶ mapped here, given to the peer ─▶ released:
//       request memory    its pages are given back at once (holes are punched), whatever the peer keeps open
//       response memory   is sealed against that: it counts as its peer's until the peer has let go of it
//
// Thread: any; a KeptRegions is shared by the endpoints of a listener.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/shm_common.h"

namespace egret::transport::shm {

// A memory file of zeroes, allocated in full, whose size never changes. Its mapping keeps it: of descriptors it keeps none,
// or one where the peer may only read it.
class SharedMemory {
 public:
  // `for_reading`: the peer may only read it.
  base::Status make(const char* name, size_t bytes, bool for_reading);
  std::byte* data() const { return mapping_.data(); }
  size_t bytes() const { return bytes_; }
  // What travels to the peer: an open file of its own, so that it shows when the peer has let go.
  const base::UniqueFd& for_peer() const { return for_peer_; }
  void sent() { for_peer_.reset(); }

  // Gives its pages back.
  void punch();
  // Gives up everything but what shows whether the peer has let go: see is_ours_alone(). Not open: that cannot be known.
  base::UniqueFd let_go();
  // Whether nobody else has the file open or mapped.
  static bool is_ours_alone(const base::UniqueFd& witness);

 private:
  Mapping mapping_;
  base::UniqueFd for_peer_;
  base::UniqueFd witness_;
  size_t bytes_ = 0;
};

// Memory of sessions that have ended, which their peers still have open. A peer that keeps too much gets no more.
class KeptRegions {
 public:
  void keep(const std::string& peer_group, SharedMemory& memory);
  // An error: what that peer keeps leaves no room for another session of it.
  base::Status has_room(const std::string& peer_group);
  size_t bytes();

 private:
  struct Kept {
    base::UniqueFd witness;
    size_t bytes;
  };
  void forget_released();

  std::mutex mutex_;
  std::map<std::string, std::vector<Kept>> by_peer_;
};

}  // namespace egret::transport::shm
