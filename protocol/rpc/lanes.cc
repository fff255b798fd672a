#include "rpc/lanes.h"

#include <algorithm>
#include <utility>

namespace egret::rpc {

void Lanes::make(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
                 SessionCounters& counters) {
  const LaneContext context{.layout = grant.layout,
                            .seal = {grant.nonce, (grant.features & wire::kOrderedMemory) != 0},
                            .fetch = fetch,
                            .endpoint = endpoint,
                            .times = times_,
                            .durations = counters.duration};
  lanes_.clear();
  for (uint32_t i = 0; i < grant.layout.lanes; ++i)
    lanes_.push_back(std::make_unique<ClientLane>(i, context, counters.lane(i)));
}

void Lanes::open(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
                 SessionCounters& counters) {
  make(grant, fetch, endpoint, counters);
  shared_.assign(grant.layout.lanes, {.uploads = UploadRoom(grant.item_size_max)});
  hash_seed_ = grant.hash_seed;
  ++generation_;
}

bool Lanes::withhold(bool withheld) {
  EGRET_ASSERT_OWNER(owner_);
  bool is_empty = true;
  for (Shared& each : shared_) {
    each.uploads.close(withheld);
    each.pin_turn.close(withheld);
    is_empty &= each.uploads.is_empty() && each.pin_turn.is_free();
  }
  if (withheld && !is_empty) return false;  // those under way need messages
  for (const auto& lane : lanes_) lane->withhold(withheld);
  return is_empty && std::ranges::all_of(lanes_, [](const auto& lane) { return lane->progress().is_empty; });
}

void Lanes::replace(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
                    SessionCounters& counters) {
  EGRET_DCHECK(std::ranges::all_of(lanes_, [](const auto& lane) { return lane->progress().is_empty; }));
  make(grant, fetch, endpoint, counters);
  withhold(false);
}

void Lanes::close() {
  const auto lost = std::exchange(lanes_, {});
  shared_.clear();
  for (const auto& lane : lost) lane->fail_all();
}

uint64_t Lanes::hash(std::string_view key) const {
  return op::hash_key(key, hash_seed_);
}

UploadRoom& Lanes::uploads(uint64_t hash) {
  return shared_[op::partition_of(hash, count())].uploads;
}

PinTurn& Lanes::pin_turn(uint64_t hash) {
  return shared_[op::partition_of(hash, count())].pin_turn;
}

bool Lanes::has_open() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->progress().open_ops > 0; });
}

bool Lanes::holds_much() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->progress().holds_much; });
}

bool Lanes::has_credit() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->has_credit(); });
}

uint32_t Lanes::outstanding() const {
  uint32_t count = 0;
  for (const auto& lane : lanes_) count += lane->outstanding();
  return count;
}

bool Lanes::is_upload_waiting() const {
  return std::ranges::any_of(shared_, [](const Shared& each) { return each.uploads.is_anybody_waiting(); });
}

void Lanes::make_room_for_uploads() {
  for (Shared& each : shared_) each.uploads.make_room(times_.now_ns);
}

}  // namespace egret::rpc
