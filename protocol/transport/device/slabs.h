// Memory for RDMA devices in parts of pages of 2 MiB, which the sessions of this process share.
//
//   take(bytes, node) ─ half a slab or less ─▶ free 4 KiB pages of a slab of that node, or of a new one ─▶ Part
//                     └ more ─▶ a mapping of its own (pages.h)                 Part gone ─▶ zeroed, free; an empty slab is unmapped
//
// A device keeps one translation for a slab instead of one for each 4 KiB. What a session may reach is another matter: its
// registration names its own pages and no others, in its own protection domain. Any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/status.h"
#include "transport/device/pages.h"

namespace egret::transport::device {

class Slabs {
 public:
  // The process has one, for ever; tests have their own, which outlive their parts.
  static Slabs& of_process();
  Slabs();
  ~Slabs();
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;

  // Zeroed memory, aligned to 4 KiB, of which no other part has a byte. By the time it is destroyed nobody may use it.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept { swap(other); }
    Part& operator=(Part&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Part();
    std::byte* data() const { return data_; }

   private:
    friend class Slabs;
    void swap(Part& other) {
      std::swap(slabs_, other.slabs_);
      std::swap(data_, other.data_);
      std::swap(pages_, other.pages_);
      std::swap(own_, other.own_);
    }

    Slabs* slabs_ = nullptr;  // null: the memory is own_
    std::byte* data_ = nullptr;
    size_t pages_ = 0;
    Pages own_;
  };
  // `node` as Pages::map() takes it.
  base::Expected<Part> take(size_t bytes, int node);
  // Of all slabs, however much of them is taken.
  size_t mapped_bytes() const;

 private:
  struct Slab;
  void give_back(std::byte* data, size_t pages);

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Slab>> slabs_;
};

}  // namespace egret::transport::device
