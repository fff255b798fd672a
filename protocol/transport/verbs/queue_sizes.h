// How large the queues of a session over rdma are, at either end, and how much memory they pin.
#pragma once

#include <algorithm>
#include <cstdint>

namespace egret::transport {

inline constexpr uint32_t kClientSends = 512;  // places of each send queue
inline constexpr uint32_t kServerSends = 128;  // deliveries and a few frames
inline constexpr uint32_t kFrameReceives = 8;  // receives with memory; the first that are used
// What a session has at most, whatever a peer claims (wire/slot.h).
inline constexpr uint32_t kMostLanes = 256;
inline constexpr uint32_t kMostWindow = 64;

// Receives for frames, and one for each message that may be under way on a queue pair: none finds no receive, and no device
// has to send one again. `window` 0, a peer of release 0.1.0, which does not say it: 64 in all, as it had.
constexpr uint32_t receives_for(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  if (window == 0) return 64;
  const uint32_t pairs = std::max(queue_pairs, 1u);
  const uint32_t lanes_of_a_pair = (std::min(lanes, kMostLanes) + pairs - 1) / pairs;
  return kFrameReceives + std::max(lanes_of_a_pair, 1u) * std::min(window, kMostWindow);
}

// What the queues of one session pin, as a device of large entries needs it: sends of 320 bytes with their inline data,
// receives of 16, completions of 64, the buffers of frames; rounded up, as devices do.
constexpr uint64_t queue_bytes(uint64_t sends, uint64_t receives, uint64_t queue_pairs) {
  constexpr uint64_t kFrames = 12 << 10;
  constexpr uint64_t kUnit = 64 << 10;
  const uint64_t bytes = queue_pairs * (sends * 320 + receives * 16 + (sends + receives) * 64) + kFrames;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace egret::transport
