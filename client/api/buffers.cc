#include "client/api/buffers.h"

#include <cstdlib>
#include <new>

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

View* Buffers::make(uint32_t kind, size_t bytes) {
  View* const view = static_cast<View*>(std::malloc(sizeof(View) + (kind < kOwn ? kSizes[kind] : bytes)));
  if (view == nullptr) throw std::bad_alloc();
  view->home = this;
  view->kind = kind;
  ++out_;
  return view;
}

void Buffers::drop(View* view) {
  std::free(view);
  if (--out_ == 0 && is_orphan_) delete this;
}

}  // namespace egret::client
