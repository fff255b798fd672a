#include "client/api/buffers.h"

#include <cstdlib>
#include <new>

#include "client/process/thread.h"

namespace egret::client {

Buffers::~Buffers() {
  for (View* view : free_) {
    while (view != nullptr) {
      View* const next = view->next;
      std::free(view);
      view = next;
    }
  }
}

void Buffers::orphan() {
  is_orphan_ = true;
  if (out_ == 0) delete this;
}

bool Buffers::is_callers() const {
  return is_orphan_ || owner_ == this_thread();
}

View* Buffers::take(size_t bytes) {
  uint32_t kind = 0;
  while (kind < kSizes.size() && kSizes[kind] < bytes) ++kind;
  View* view = nullptr;
  if (kind < kOwn && free_[kind] != nullptr) {
    view = free_[kind];
    free_[kind] = view->next;
    kept_bytes_ -= kSizes[kind];
  } else {
    view = static_cast<View*>(std::malloc(sizeof(View) + (kind < kOwn ? kSizes[kind] : bytes)));
    if (view == nullptr) throw std::bad_alloc();
    view->home = this;
    view->kind = kind;
  }
  ++out_;
  return view;
}

void Buffers::give(View* view) {
  --out_;
  if (view->kind == kOwn || kept_bytes_ >= kMostKept) {
    std::free(view);
  } else {
    kept_bytes_ += kSizes[view->kind];
    view->next = free_[view->kind];
    free_[view->kind] = view;
  }
  if (is_orphan_ && out_ == 0) delete this;
}

}  // namespace egret::client
