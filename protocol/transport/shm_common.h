// What both ends of the shm transport share: the socket, the mapping, the ring counters' place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <sys/un.h>

#include "base/status.h"
#include "base/unique_fd.h"
#include "transport/transport.h"

namespace egret::transport::shm {

// Descriptors that travel with the region, in this order; the wake-ups' kinds: shm_wakeup.h. Behind them, where
// RegionShape::has_lane_rings: the to-server wake-ups of lanes 1, 2 and so on.
enum RegionFd : uint8_t { kRequestFd = 0, kResponseFd = 1, kToServerFd = 2, kToClientFd = 3, kRegionFds = 4 };
inline constexpr size_t kMostRegionFds = kRegionFds + kMostLaneRings - 1;
inline size_t region_fds(const RegionShape& shape) {
  return kRegionFds + (shape.has_lane_rings ? shape.lanes - 1 : 0);
}
inline size_t ring_fd(uint32_t lane) {  // where lanes have their own
  return lane == 0 ? size_t{kToServerFd} : kRegionFds + lane - 1;
}

// A mapping that is unmapped when its owner goes.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  // With all its pages, whose absence would cost a fault each later.
  base::Status map(int fd, size_t length, int protection);
  void reset();
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t length_ = 0;
};

// For the log line of a session.
inline std::string facts_of(const RegionShape& shape) {
  return shape.has_lane_rings ? "shared memory, a ring for each lane" : "shared memory";
}

// Ring counters, behind request memory:
//   without lane rings   word 0 counts all rings, word 1 + lane those of the lane
//   with lane rings      each lane's counter has a cache line of its own, as each partition polls its own; all rings are not
//                        counted
// The upper bits of word 0 are the number of the CPU on which the client runs, plus one; 0: it does not say.
inline constexpr unsigned kRingCountBits = 48;
inline size_t ring_offset(const RegionShape& shape) {
  return (shape.request_bytes + 63) / 64 * 64;
}
inline size_t ring_offset(const RegionShape& shape, uint32_t lane) {
  return ring_offset(shape) + (1 + size_t{lane}) * (shape.has_lane_rings ? 64 : sizeof(uint64_t));
}
inline size_t request_file_bytes(const RegionShape& shape) {
  return ring_offset(shape, shape.lanes);
}

// "@name" and paths; refuses what does not fit.
base::Status to_socket_address(const std::string& path, sockaddr_un& address, socklen_t& length);

// One frame in, and the descriptors that came with it, of any number and kind. What is not wanted of them must be closed
// by base::close_elsewhere().
base::Status receive(int socket, std::span<std::byte> frame, size_t& length, std::vector<base::UniqueFd>& fds);
base::Status send(int socket, std::span<const std::byte> frame, std::span<const int> fds);

}  // namespace egret::transport::shm
