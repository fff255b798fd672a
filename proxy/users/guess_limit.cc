#include "proxy/users/guess_limit.h"

#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "proxy/users/keyed_hash.h"

namespace egret::proxy {

uint64_t GuessBucket::take(uint64_t now_ns, const GuessPace& pace) {
  const uint64_t most_ns = now_ns + pace.burst * pace.interval_ns;  // of an empty bucket
  // It may have been emptied at another pace, before a reload: then it is just empty.
  full_at_ns_ = std::clamp(full_at_ns_, now_ns, most_ns);
  const uint64_t full_at_ns = full_at_ns_ + pace.interval_ns;
  if (full_at_ns > most_ns) return full_at_ns - most_ns;
  full_at_ns_ = full_at_ns;
  return 0;
}

void GuessBucket::give_back(const GuessPace& pace) {
  full_at_ns_ -= std::min(full_at_ns_, pace.interval_ns);
}

GuessLimit::GuessLimit() {
  base::fill_random(key_);
}

uint64_t GuessLimit::take(std::string_view user, std::string_view address, uint64_t now_ns, const GuessPace& pace) {
  GuessBucket& bucket = bucket_of(user, address);
  const std::lock_guard lock(mutex_);
  return bucket.take(now_ns, pace);
}

void GuessLimit::give_back(std::string_view user, std::string_view address, const GuessPace& pace) {
  GuessBucket& bucket = bucket_of(user, address);
  const std::lock_guard lock(mutex_);
  bucket.give_back(pace);
}

GuessBucket& GuessLimit::bucket_of(std::string_view user, std::string_view address) {
  const KeyedHash hash = keyed_hash(key_, {user, address});
  uint64_t number = 0;
  std::memcpy(&number, hash.data(), sizeof number);
  return buckets_[number % kBuckets];
}

}  // namespace egret::proxy
