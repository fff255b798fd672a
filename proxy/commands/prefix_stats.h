// `stats detail`: counts ops by the key's prefix, up to the first ':'. Counts only while it is on; while it is off it
// costs one load of a word that rarely changes. Any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/report/paged_report.h"

namespace egret::proxy {

class PrefixStats {
 public:
  static constexpr size_t kMostPrefixes = 65'536;  // further prefixes are not counted

  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  void turn(bool on) { is_on_.store(on, std::memory_order_relaxed); }

  void count_get(std::string_view key, bool is_hit);
  void count_set(std::string_view key);
  void count_delete(std::string_view key);
  void clear();
  // A line for each prefix, in their order. The object outlives the report.
  std::unique_ptr<PagedReport> report() const;

 private:
  class Report;
  struct Counts {
    uint64_t gets = 0;
    uint64_t hits = 0;
    uint64_t sets = 0;
    uint64_t deletes = 0;
  };
  // Appends lines of the prefixes after `last` (if it is not set: from the first on) and updates it. False: there are no
  // more.
  bool append_page(std::string& text, std::optional<std::string>& last) const;
  // Null: the key has no prefix, or there are too many.
  Counts* counts_of(std::string_view key);

  std::atomic<bool> is_on_{false};
  mutable std::mutex mutex_;
  std::map<std::string, Counts, std::less<>> prefixes_;
};

}  // namespace egret::proxy
