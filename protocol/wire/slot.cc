#include "wire/slot.h"

#include "base/text.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#undef XXH_INLINE_ALL

#if defined(__x86_64__)
// XXH3 with SSE2, AVX2 or AVX-512, chosen by the library at run time. Declared here: its header would replace the
// inline functions.
// NOLINTNEXTLINE(readability-identifier-naming)
extern "C" XXH64_hash_t XXH3_64bits_withSeed_dispatch(const void* input, size_t length, XXH64_hash_t seed);
#endif

namespace egret::wire {

bool RegionLayout::is_valid() const {
  const auto size_ok = [](uint32_t size, uint32_t most) {
    return size >= kMinSlotSize && size <= most && size % 64 == 0;
  };
  return lanes >= 1 && lanes <= kMaxLanes && window >= kMinWindow && window <= kMaxWindow &&
         size_ok(request_slot_size, kMaxSlotSize) && size_ok(response_slot_size, kMaxLongSlotSize);
}

std::string RegionLayout::to_string() const {
  return base::counted(lanes, "lane") + " x " + std::to_string(window) + " slots of " +
         std::to_string(request_slot_size) + " + " + std::to_string(response_slot_size) +
         " bytes = " + std::to_string(bytes()) + " bytes";
}

namespace {
constexpr size_t kWorthDispatch = 512;  // bytes: shorter messages are hashed faster inline than by a call
}

uint64_t message_checksum(const std::byte* checked, size_t length, uint64_t nonce, uint64_t seq) {
  const uint64_t seed = nonce + seq * 0x9E3779B97F4A7C15ULL;
#if defined(__x86_64__)
  if (length >= kWorthDispatch) return XXH3_64bits_withSeed_dispatch(checked, length, seed);
#endif
  return XXH3_64bits_withSeed(checked, length, seed);
}

std::string to_string(const RequestHeader& header) {
  return "request seq " + std::to_string(header.seq) + " length " + std::to_string(header.length) + " ops " +
         std::to_string(header.op_count) + " flags " + std::to_string(header.flags);
}

std::string to_string(const ResponseHeader& header) {
  return "response seq " + std::to_string(header.seq) + " length " + std::to_string(header.length) + " results " +
         std::to_string(header.result_count) + " status " + std::to_string(header.status) + " hints " +
         std::to_string(header.hints) + " processing " + std::to_string(header.processing_ns) + " ns asleep " +
         std::to_string(header.asleep);
}

}  // namespace egret::wire
