// How large the queues of a session over rdma are, at either end, and how much memory they pin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace egret::transport {

inline constexpr uint32_t kClientSends = 512;  // most places of each send queue
inline constexpr uint32_t kServerSends = 128;  // likewise
inline constexpr uint32_t kFrameReceives = 8;  // receives with memory; the first that are used
// What a session has at most, whatever a peer claims, and at least, since it is granted no less (wire/slot.h).
inline constexpr uint32_t kMostLanes = 256;
inline constexpr uint32_t kMostWindow = 64;
inline constexpr uint32_t kLeastWindow = 2;

// Most messages that may be under way on one queue pair.
constexpr uint32_t messages_of_a_pair(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  const uint32_t pairs = std::max(queue_pairs, 1u);
  const uint32_t lanes_of_a_pair = (std::min(lanes, kMostLanes) + pairs - 1) / pairs;
  return std::max(lanes_of_a_pair, 1u) * std::clamp(window, kLeastWindow, kMostWindow);
}

// Receives for frames, and one for each message, so that each message finds a receive and no device has to send it again.
// `window` 0: a peer of release 0.1.0, which does not say its window; it gets 64 in all, as before.
constexpr uint32_t receives_for(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  return window == 0 ? 64 : kFrameReceives + messages_of_a_pair(lanes, queue_pairs, window);
}

// A work request that finds no place in the send queue waits in VerbsLink, so a queue need not have room for the worst case.
// The server's: one delivery for each message, and frames. Deliveries that are over, but not signalled, still hold places, so
// a burst may wait for them: for a round trip at most, since every half queue has a signalled one, whose completion frees
// places. Places for them would make the queue of an idle session the next power of two: 20 KiB more.
constexpr uint32_t server_sends_for(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  if (window == 0) return kServerSends;
  return std::min(kServerSends, kFrameReceives + messages_of_a_pair(lanes, queue_pairs, window));
}

// The client's: the request of each message and its READ, and as many again that are over, but not signalled.
constexpr uint32_t client_sends_for(uint32_t lanes, uint32_t queue_pairs, uint32_t window) {
  return std::min(kClientSends, kFrameReceives + 4 * messages_of_a_pair(lanes, queue_pairs, window));
}

// What the queues of one session pin, as a device of large entries needs it: sends of 320 bytes with their inline data,
// receives of 16, each queue a power of two; its part of a thread's completions, of 64, and as many spare ones, since the
// thread's queues of completions are made for sessions to come; and the buffers of frames.
constexpr uint64_t queue_bytes(uint64_t sends, uint64_t receives, uint64_t queue_pairs) {
  constexpr uint64_t kFrames = 12 << 10;
  constexpr uint64_t kPage = 4 << 10;
  const uint64_t queues = std::bit_ceil(sends * 320) + std::bit_ceil(receives * 16);
  const uint64_t completions = (sends + receives) * 2 * 64;
  const uint64_t of_a_pair = (queues + completions + kPage - 1) / kPage * kPage;
  return queue_pairs * of_a_pair + kFrames;
}

}  // namespace egret::transport
