#include "pool/gutter/stand_in.h"

#include <algorithm>
#include <ctime>

#include "op/hash.h"
#include "pool/ketama.h"

namespace egret::pool {

namespace {

constexpr uint64_t kTagSeed = 4;                        // rendezvous has 1 to 3
constexpr int64_t kLongestRelative = 30LL * 24 * 3600;  // seconds; a larger exptime is a Unix time, as in memcached

int64_t capped(int64_t exptime, int64_t ttl_s) {
  if (exptime < 0) return exptime;  // has expired already
  if (exptime == 0) return ttl_s;
  if (exptime <= kLongestRelative) return std::min(exptime, ttl_s);
  return exptime - static_cast<int64_t>(std::time(nullptr)) > ttl_s ? ttl_s : exptime;
}

}  // namespace

uint64_t tag_of(std::string_view name) {
  const uint64_t tag = op::hash_key(ketama_name(name), kTagSeed);
  return tag != 0 ? tag : 1;
}

void stand_in(op::Op& op, uint64_t tag, uint32_t ttl_s) {
  op.owner = tag;
  if (op.code == op::OpCode::kFlush) return;  // its exptime is a delay
  op.exptime = capped(op.exptime, ttl_s);
  op.vivify_exptime = capped(op.vivify_exptime, ttl_s);
}

}  // namespace egret::pool
