// Objects of one size, of which there may be many for a while: connections, their events. A heap would keep their memory,
// since small objects that stay lie between them; here it goes back to the system with the last object of a slab.
//
//   take() ─▶ a slab with room, or a new one      give() ─▶ its slab ─ empty, and another has room ─▶ the system
//
// Thread: one at a time. Memory: kSlabBytes a slab, of which only what was taken is resident. Under ASan each object is the
// heap's, which finds uses of freed ones.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

namespace egret::base {

class Slabs {
 public:
  static constexpr size_t kSlabBytes = 16 * 1024;

  // At most a quarter of a slab each.
  explicit Slabs(size_t object_bytes);
  ~Slabs();
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Aligned for any type. Throws std::bad_alloc.
  void* take();
  static void give(void* object);
  size_t slabs() const { return slabs_.size(); }

  struct Deleter {
    template <class T>
    void operator()(T* object) const {
      object->~T();
      give(object);
    }
  };
  template <class T>
  using Owned = std::unique_ptr<T, Deleter>;
  // `T` is no larger than object_bytes.
  template <class T, class... Arguments>
  Owned<T> make(Arguments&&... arguments) {
    static_assert(alignof(T) <= alignof(std::max_align_t));
    EGRET_DCHECK(sizeof(Place) + sizeof(T) <= place_bytes_);
    void* const room = take();
    try {
      return Owned<T>(new (room) T(std::forward<Arguments>(arguments)...));
    } catch (...) {
      give(room);
      throw;
    }
  }

 private:
  struct Slab;
  // Before each object.
  struct alignas(std::max_align_t) Place {
    Slab* slab;
    Place* next_free;

    void* object() { return this + 1; }
  };
  static void release(void* memory, bool is_mapped);
  Slab& slab_with_room();
  void drop_if_spare(Slab& slab);

  const size_t place_bytes_;
  std::vector<Slab*> slabs_;
  size_t full_ = 0;  // so many of the first have no room
};

}  // namespace egret::base
