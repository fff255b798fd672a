// Memory for the bytes of results: blocks in a few sizes, which come back by egret_release().
//
//   copy() ─▶ View, at the head of its bytes ─ egret_result.view ─ egret_release ─▶ give()
//
// A client has one; it outlives its client while views are out. Thread: the client's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client/process/thread.h"

namespace egret::client {

class Buffers;

// What egret_result.view points at; the bytes follow.
struct alignas(16) View {
  Buffers* home;
  View* next;     // of the free ones
  uint32_t kind;  // its size class; kOwn: of a size of its own
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

class Buffers {
 public:
  explicit Buffers(uintptr_t owner) : owner_(owner) {}
  // Destroys itself when the last view is back. Its client has gone.
  void orphan();

  // Room for so many bytes. Throws std::bad_alloc.
  View* take(size_t bytes) {
    uint32_t kind = 0;
    while (kind < kOwn && kSizes[kind] < bytes) ++kind;
    if (kind == kOwn || free_[kind] == nullptr) return make(kind, bytes);
    View* const view = free_[kind];
    free_[kind] = view->next;
    kept_bytes_ -= kSizes[kind];
    ++out_;
    return view;
  }
  void give(View* view) {
    if (view->kind == kOwn || kept_bytes_ >= kMostKept || is_orphan_) return drop(view);
    --out_;
    kept_bytes_ += kSizes[view->kind];
    view->next = free_[view->kind];
    free_[view->kind] = view;
  }
  void set_owner(uintptr_t owner) { owner_ = owner; }
  // Whether the calling thread may give views back.
  bool is_callers() const { return owner_ == this_thread() || is_orphan_; }

 private:
  View* make(uint32_t kind, size_t bytes);
  void drop(View* view);

  static constexpr std::array<size_t, 5> kSizes{112, 496, 2032, 8176, 32752};
  static constexpr uint32_t kOwn = kSizes.size();
  static constexpr size_t kMostKept = 256 << 10;  // bytes of free blocks

  ~Buffers();

  uintptr_t owner_;
  bool is_orphan_ = false;
  size_t out_ = 0;
  size_t kept_bytes_ = 0;
  std::array<View*, kSizes.size()> free_{};
};

}  // namespace egret::client
