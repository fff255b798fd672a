#include "rpc/relay/remainders.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace egret::rpc::relay {

Remainders::~Remainders() {
  clear();
}

void Remainders::clear() {
  for (Kept& kept : kept_) {
    if (kept.version != 0) drop(kept);
  }
}

uint64_t Remainders::keep(std::string_view value, uint64_t now_ns) {
  expire(now_ns);
  if (used_ + value.size() > kMostOfLane || !budget_.take(value.size())) return kGone;
  used_ += value.size();
  auto free = std::ranges::find(kept_, uint64_t{0}, &Kept::version);
  if (free == kept_.end()) free = kept_.emplace(free);
  free->version = ++next_version_;
  free->bytes = std::make_unique_for_overwrite<char[]>(value.size());
  std::memcpy(free->bytes.get(), value.data(), value.size());
  free->length = static_cast<uint32_t>(value.size());
  free->users = 0;
  free->is_over = false;
  free->since_ns = now_ns;
  return free->version;
}

uint32_t Remainders::find(uint64_t version) {
  const auto at = std::ranges::find(kept_, version, &Kept::version);
  if (at == kept_.end() || at->is_over) return kNone;
  ++at->users;
  return static_cast<uint32_t>(at - kept_.begin());
}

void Remainders::let_go(uint32_t number, bool is_last) {
  Kept& kept = kept_[number];
  EGRET_DCHECK(kept.users > 0);
  kept.is_over |= is_last;
  if (--kept.users == 0 && kept.is_over) drop(kept);
}

void Remainders::expire(uint64_t now_ns) {
  if (used_ == 0) return;
  for (Kept& kept : kept_) {
    if (kept.version == 0 || now_ns - kept.since_ns < kKeptNs) continue;
    kept.is_over = true;
    if (kept.users == 0) drop(kept);
  }
}

void Remainders::drop(Kept& kept) {
  used_ -= kept.length;
  budget_.give(kept.length);
  kept = {};
}

}  // namespace egret::rpc::relay
