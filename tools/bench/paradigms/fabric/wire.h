// The bytes that a verb puts on the wire, both directions together, packets' heads included (RoCE v2: 62 bytes a packet;
// spec of the heads: InfiniBand Architecture Specification, vol. 1, chapter 9).
#pragma once

#include <cstdint>

#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

inline constexpr uint32_t kPacketHead = 62;  // Ethernet 14 + 4, IPv4 20, UDP 8, BTH 12, ICRC 4
inline constexpr uint32_t kReth = 16;        // address, key and length of READ and WRITE
inline constexpr uint32_t kAeth = 4;         // acknowledgement
inline constexpr uint32_t kDeth = 8;         // of a datagram
inline constexpr uint32_t kImmediate = 4;
inline constexpr uint32_t kAtomicEth = 28;

uint64_t wire_bytes(PairType type, Verb verb, uint32_t payload, bool has_immediate, uint32_t mtu);

}  // namespace egret::bench_paradigms
