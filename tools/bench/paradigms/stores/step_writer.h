// Stores into memory that READs may overtake: in pieces, in the order of the calls, with a pause after each piece. A test
// lets READs come in during a pause; without one (Plan::pause is null) nothing happens there.
//
// No piece is kept back or taken before by the compiler; x86 and the fence at the end of a change (fence) do the rest.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>

namespace egret::bench_paradigms {

using Pause = std::function<void()>;

class StepWriter {
 public:
  static constexpr size_t kWord = 8;
  static constexpr size_t kLine = 64;

  explicit StepWriter(const Pause* pause) : pause_(pause) {}

  void write(std::byte* to, const void* from, size_t bytes, size_t piece) const {
    const auto* const source = static_cast<const std::byte*>(from);
    for (size_t at = 0; at < bytes; at += piece) {
      std::memcpy(to + at, source + at, std::min(piece, bytes - at));
      std::atomic_thread_fence(std::memory_order_release);
      if (pause_ != nullptr && *pause_) (*pause_)();
    }
  }
  // All that was stored is in memory before what follows: an answer.
  static void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

 private:
  const Pause* pause_;  // the Plan's
};

}  // namespace egret::bench_paradigms
