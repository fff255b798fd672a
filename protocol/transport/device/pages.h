// Memory for an RDMA device: zeroed, resident, close to the device, in pages as large as its size allows.
//
// A device translates every address that it reads or writes, by a table with an entry for each page; it keeps some of
// them. So memory that nearly fills pages of 2 MiB gets such: explicit ones where the host has them free, else it is
// aligned so that the kernel can give transparent ones. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/status.h"

namespace egret::transport::device {

inline constexpr size_t kHugePage = 2 << 20;
inline constexpr int kAnyNode = -1;

// Whether so much memory is put into pages of 2 MiB: at most a fifth of them stays empty.
bool fills_huge_pages(size_t bytes);

// The NUMA node of the device whose folder in sysfs this is (ibv_device::ibdev_path); kAnyNode if it is not known.
int numa_node_of(const std::string& sysfs_folder);

// Owns one mapping.
class Pages {
 public:
  // `node`: whose memory is taken as long as there is some; then another's. What cannot be had (a node, large pages) is
  // not an error.
  static base::Expected<Pages> map(size_t bytes, int node);
  Pages() = default;
  Pages(Pages&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), mapped_(std::exchange(other.mapped_, 0)) {}
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Pages();

  std::byte* data() const { return data_; }
  size_t mapped() const { return mapped_; }  // bytes asked for, rounded up to whole pages

 private:
  Pages(std::byte* data, size_t mapped) : data_(data), mapped_(mapped) {}

  std::byte* data_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace egret::transport::device
