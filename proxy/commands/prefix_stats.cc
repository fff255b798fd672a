#include "proxy/commands/prefix_stats.h"

#include "memcache/reply.h"
#include "memcache/uri.h"

namespace egret::proxy {

PrefixStats::Counts* PrefixStats::counts_of(std::string_view key) {
  const size_t length = key.find(':');
  if (length == key.npos) return nullptr;
  const std::string_view prefix = key.substr(0, length);
  const auto at = prefixes_.find(prefix);
  if (at != prefixes_.end()) return &at->second;
  return prefixes_.size() < kMostPrefixes ? &prefixes_[std::string(prefix)] : nullptr;
}

void PrefixStats::count_get(std::string_view key, bool is_hit) {
  const std::lock_guard lock(mutex_);
  Counts* const counts = counts_of(key);
  if (counts == nullptr) return;
  ++counts->gets;
  counts->hits += is_hit ? 1 : 0;
}

void PrefixStats::count_set(std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (Counts* const counts = counts_of(key); counts != nullptr) ++counts->sets;
}

void PrefixStats::count_delete(std::string_view key) {
  const std::lock_guard lock(mutex_);
  if (Counts* const counts = counts_of(key); counts != nullptr) ++counts->deletes;
}

void PrefixStats::clear() {
  const std::lock_guard lock(mutex_);
  prefixes_.clear();
}

bool PrefixStats::append_page(std::string& text, std::optional<std::string>& last) const {
  const std::lock_guard lock(mutex_);
  auto at = last ? prefixes_.upper_bound(*last) : prefixes_.begin();
  const size_t end = text.size() + PagedReport::kPageBytes;
  for (; at != prefixes_.end() && text.size() < end; ++at) {
    const auto& [prefix, counts] = *at;
    memcache::append_shown(text.append("PREFIX "), prefix);
    text.append(" get ").append(std::to_string(counts.gets));
    text.append(" hit ").append(std::to_string(counts.hits));
    text.append(" set ").append(std::to_string(counts.sets));
    text.append(" del ").append(std::to_string(counts.deletes)).append("\r\n");
    last = prefix;
  }
  return at != prefixes_.end();
}

class PrefixStats::Report final : public PagedReport {
 public:
  explicit Report(const PrefixStats& stats) : stats_(stats) {}
  bool next(std::string& text) override {
    if (stats_.append_page(text, last_)) return true;
    text.append(memcache::kEnd);
    return false;
  }

 private:
  const PrefixStats& stats_;
  std::optional<std::string> last_;
};

std::unique_ptr<PagedReport> PrefixStats::report() const {
  return std::make_unique<Report>(*this);
}

}  // namespace egret::proxy
