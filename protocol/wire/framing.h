// The prefix that all frames have in common: writing it, and finding what is behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "wire/bytes.h"
#include "wire/handshake.h"

namespace egret::wire {

// A frame with room for so many bytes behind the prefix.
inline std::vector<std::byte> framed(FrameType type, size_t body_length) {
  std::vector<std::byte> frame(sizeof(FramePrefix) + body_length);
  FieldWriter out(frame.data());
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<uint8_t>(type));
  out.put(uint8_t{0});
  out.put(static_cast<uint32_t>(frame.size()));
  return frame;
}

inline FieldReader body_of(std::span<const std::byte> frame) {
  if (frame.size() < sizeof(FramePrefix)) return FieldReader(nullptr, 0);
  return FieldReader(frame.data() + sizeof(FramePrefix), frame.size() - sizeof(FramePrefix));
}

}  // namespace egret::wire
