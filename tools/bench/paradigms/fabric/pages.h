// Memory that begins on a page, zeroed: slots and stores. Of huge pages where that is wanted and the kernel has them (a card and a
// processor then keep fewer translations); else of small ones, and the process knows how much was refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace egret::bench_paradigms {

inline constexpr size_t kHugePage = size_t{2} << 20;

class Pages {
 public:
  Pages() = default;
  // No memory: data() is null, and errno says why. Less than half a huge page is not asked for.
  Pages(size_t bytes, bool wants_huge);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  bool is_huge() const { return mapped_ > 0; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t mapped_ = 0;  // in huge pages; 0: they are small
};

// What this process has asked for, in bytes. Any thread.
struct HugePages {
  uint64_t wanted = 0;
  uint64_t given = 0;
};
HugePages huge_pages();
// A line for people; empty: none were wanted.
std::string to_line(const HugePages& pages);

}  // namespace egret::bench_paradigms
