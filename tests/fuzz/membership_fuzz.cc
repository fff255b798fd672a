// Any bytes as a membership that a peer tells of: what is taken can be a pool, and is written as bytes that read as the
// same owners; and as the verb `member` of two peers who disagree, which no partition falls over.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "changes/member_change.h"
#include "pool/membership_code.h"
#include "store/store.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

using namespace egret;

namespace {
void read(std::string_view bytes) {
  const auto seen = pool::decode_membership(bytes);
  if (!seen) return;
  const auto& [placement, mine] = seen.value();
  EGRET_CHECK(placement.size() >= 1 && placement.size() <= pool::kMaxMembers);
  EGRET_CHECK(mine == pool::kNoMember || mine < placement.size());
  EGRET_CHECK(placement.member_of("key") < placement.size());
}

// Each op: a byte of its length, and as many bytes.
void tell(std::string_view script) {
  const base::ManualClock clock;
  store::StoreConfig config;
  config.memory_limit = store::kMinMemory;
  config.item_size_max = 64u << 10;
  config.clock = &clock;
  const auto store = std::move(store::Store::create(config).value());
  backend::Tombstones tombstones(store::kMinMemory);
  backend::MemberChange change(store->purger(), tombstones);
  for (uint64_t now = 1; !script.empty(); ++now) {
    const size_t length = std::min<size_t>(static_cast<uint8_t>(script.front()), script.size() - 1);
    change.answer(script.substr(1, length), now * 1'000'000'000);
    script.remove_prefix(1 + length);
  }
  std::string why;
  EGRET_CHECK(check_invariants(*store, &why));
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  tell(bytes);
  return 0;
}
