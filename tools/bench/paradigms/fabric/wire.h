// The bytes that a verb puts on the wire, both directions together, packets' heads included (by the device's link layer:
// Capabilities::packet_head; spec of the heads: InfiniBand Architecture Specification, vol. 1, chapters 7 to 9).
#pragma once

#include <cstdint>

#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

inline constexpr uint32_t kRocePacketHead = 62;        // Ethernet 14 + 4, IPv4 20, UDP 8, BTH 12, ICRC 4
inline constexpr uint32_t kInfinibandPacketHead = 26;  // LRH 8, BTH 12, ICRC 4, VCRC 2
inline constexpr uint32_t kGlobalHead = 40;            // GRH: in InfiniBand packets between global addresses
inline constexpr uint32_t kReth = 16;                  // address, key and length of READ and WRITE
inline constexpr uint32_t kAeth = 4;                   // acknowledgement
inline constexpr uint32_t kDeth = 8;                   // of a datagram
inline constexpr uint32_t kImmediate = 4;
inline constexpr uint32_t kAtomicEth = 28;

// Of packets with that head and so many bytes of payload at most.
struct Packets {
  uint32_t head = kRocePacketHead;
  uint32_t mtu = 1024;
};
uint64_t wire_bytes(PairType type, Verb verb, uint32_t payload, bool has_immediate, const Packets& packets);

}  // namespace egret::bench_paradigms
