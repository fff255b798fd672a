#include "access/ceilings.h"

#include <algorithm>

#include "base/text.h"

namespace egret::access {

namespace {

using base::size_text;

constexpr uint64_t kMiB = 1 << 20;

uint64_t less(uint64_t from, uint64_t what) {
  return from - std::min(from, what);
}

uint64_t whole_mib(uint64_t bytes) {
  return bytes / kMiB * kMiB;
}

}  // namespace

Ceiling slot_memory_of(const Room& room, const Needs& needs) {
  Ceiling least{kLeastSlotMemory, size_text(kLeastSlotMemory) + ", the least"};
  Ceiling found{kUnlimited, "no limit is known"};
  if (room.memory != kUnlimited) {
    const uint64_t memory = whole_mib(room.memory);
    found = {whole_mib(less(memory, needs.other_memory) / 2),
             "(" + room.memory_source + " " + size_text(memory) + " - " + needs.other_memory_text + ") / 2"};
    if (found.value < kLeastSlotMemory) found = least;
  }
  if (needs.is_pinned && room.pinned != kUnlimited) {
    const uint64_t each = needs.least_bytes + needs.queue_bytes;
    const uint64_t slots = room.pinned / each * needs.least_bytes;
    if (slots < found.value) {
      found = {std::max(slots, needs.least_bytes), size_text(room.pinned) + " that may be pinned, less " +
                                                       size_text(needs.queue_bytes) + " of queues for each session"};
    }
  }
  return found;
}

Ceiling most_sessions_of(const Room& room, const Needs& needs, uint64_t slot_memory) {
  Ceiling found{kMostSessions, "no more than " + std::to_string(kMostSessions)};
  const auto consider = [&](uint64_t value, const std::string& arithmetic) {
    if (value < found.value) found = {std::max<uint64_t>(value, 1), arithmetic};
  };
  const auto divided = [&](uint64_t all, const char* what, uint64_t others, uint64_t each) {
    if (all == kUnlimited || each == 0) return;
    consider(less(all, others) / each,
             "(" + std::to_string(all) + " " + what + " - " + std::to_string(others) + ") / " + std::to_string(each));
  };
  divided(room.descriptors, "descriptors", needs.other_descriptors, needs.descriptors);
  divided(room.mappings, "mappings of memory", needs.other_mappings, needs.mappings);
  if (slot_memory != kUnlimited) {
    consider(slot_memory / needs.least_bytes,
             size_text(slot_memory) + " of slots (session_memory_total) / " + size_text(needs.least_bytes));
  }
  return found;
}

uint64_t lane_rings_of(const Room& room) {
  constexpr uint64_t kPart = 32;
  constexpr uint64_t kMost = 4096;
  return std::min(room.descriptors / kPart, kMost);
}

uint64_t share_of_peer(uint64_t total, uint64_t taken, uint64_t own, uint64_t floor) {
  if (total == kUnlimited) return kUnlimited;
  const uint64_t free = less(total, taken);
  return std::min(std::max(own + less(free, own) / 2, floor), own + free);
}

uint64_t room_of_session(uint64_t total, uint64_t taken, uint64_t least) {
  if (total == kUnlimited) return kUnlimited;
  return std::max(less(total / 4 * 3, taken), std::min(least, less(total, taken)));
}

}  // namespace egret::access
