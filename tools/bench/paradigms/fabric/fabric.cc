#include "bench_paradigms/fabric/fabric.h"

#include <algorithm>
#include <bit>

#include "bench_paradigms/fabric/wire.h"

namespace egret::bench_paradigms {

namespace {
constexpr uint64_t kPlacesOfCard = 4096;  // bytes: twelve bits of an address
}

uint64_t VerbCounts::of(Verb verb) const {
  uint64_t sum = 0;
  for (const auto& of_type : posted) sum += of_type[static_cast<size_t>(verb)];
  return sum;
}

uint32_t VerbCounts::places_of_atomics() const {
  uint32_t sum = 0;
  for (const uint64_t each : atomic_places) sum += static_cast<uint32_t>(std::popcount(each));
  return sum;
}

VerbCounts VerbCounts::operator-(const VerbCounts& earlier) const {
  VerbCounts out = *this;
  for (size_t type = 0; type < kPairTypes; ++type) {
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      out.posted[type][verb] -= earlier.posted[type][verb];
      for (size_t i = 0; i < kSizeClasses; ++i) {
        out.by_size[type][verb][i].count -= earlier.by_size[type][verb][i].count;
        out.by_size[type][verb][i].bytes -= earlier.by_size[type][verb][i].bytes;
      }
    }
  }
  out.doorbells -= earlier.doorbells;
  out.receive_doorbells -= earlier.receive_doorbells;
  out.signalled -= earlier.signalled;
  out.inlined -= earlier.inlined;
  out.payload_bytes -= earlier.payload_bytes;
  out.wire_bytes -= earlier.wire_bytes;
  return out;
}

VerbCounts& VerbCounts::operator+=(const VerbCounts& other) {
  for (size_t type = 0; type < kPairTypes; ++type) {
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      posted[type][verb] += other.posted[type][verb];
      for (size_t i = 0; i < kSizeClasses; ++i) {
        by_size[type][verb][i].count += other.by_size[type][verb][i].count;
        by_size[type][verb][i].bytes += other.by_size[type][verb][i].bytes;
      }
    }
  }
  doorbells += other.doorbells;
  receive_doorbells += other.receive_doorbells;
  signalled += other.signalled;
  inlined += other.inlined;
  payload_bytes += other.payload_bytes;
  wire_bytes += other.wire_bytes;
  for (size_t i = 0; i < atomic_places.size(); ++i) atomic_places[i] |= other.atomic_places[i];
  return *this;
}

bool Pair::post(std::span<const Work> works) {
  for (const Work& work : works) {
    if (work.tag > kMostTag) return false;
  }
  if (!do_post(works)) return false;
  ++counts_.doorbells;
  for (const Work& work : works) {
    ++counts_.posted[static_cast<size_t>(type_)][static_cast<size_t>(work.verb)];
    SizeClass& of_size = counts_.by_size[static_cast<size_t>(type_)][static_cast<size_t>(work.verb)]
                                        [std::min<size_t>(std::bit_width(work.bytes), kSizeClasses - 1)];
    ++of_size.count;
    of_size.bytes += work.bytes;
    counts_.signalled += work.is_signalled ? 1 : 0;
    counts_.inlined += work.is_inline ? 1 : 0;
    counts_.payload_bytes += work.bytes;
    counts_.wire_bytes += wire_bytes(type_, work.verb, work.bytes, work.has_immediate, {packet_head_, mtu_});
    if (work.verb == Verb::kCompareSwap || work.verb == Verb::kFetchAdd) {
      const uint64_t word = work.remote_address % kPlacesOfCard / sizeof(uint64_t);
      counts_.atomic_places[word / 64] |= uint64_t{1} << word % 64;
    }
  }
  return true;
}

bool Pair::post_receives(std::span<const Receive> receives) {
  for (const Receive& receive : receives) {
    if (receive.tag > kMostTag) return false;
  }
  if (!do_post_receives(receives)) return false;
  ++counts_.receive_doorbells;
  counts_.posted[static_cast<size_t>(type_)][static_cast<size_t>(Verb::kReceive)] += receives.size();
  return true;
}

void turn_answer(const Capabilities& can, std::byte* answer) {
  if (can.has_backward_answers) std::reverse(answer, answer + sizeof(uint64_t));
}

uint64_t wire_bytes(PairType type, Verb verb, uint32_t payload, bool has_immediate, const Packets& on_wire) {
  const uint64_t head = on_wire.head;
  const uint64_t packets = payload == 0 ? 1 : (payload + on_wire.mtu - 1) / on_wire.mtu;
  const uint64_t acknowledged = type == PairType::kRc ? head + kAeth : 0;
  const uint64_t immediate = has_immediate ? kImmediate : 0;
  switch (verb) {
    case Verb::kWrite:
      return packets * head + kReth + immediate + payload + acknowledged;
    case Verb::kSend:
      return packets * head + (type == PairType::kUd ? kDeth : 0) + immediate + payload + acknowledged;
    case Verb::kRead:  // the request, then the answer: an AETH in its first and its last packet
      return head + kReth + packets * head + (packets > 1 ? 2 : 1) * kAeth + payload;
    case Verb::kCompareSwap:
    case Verb::kFetchAdd:
      return head + kAtomicEth + head + kAeth + 8;
    case Verb::kReceive:
      return 0;
  }
  return 0;
}

}  // namespace egret::bench_paradigms
