#include "rpc/lanes.h"

#include <algorithm>
#include <utility>

namespace egret::rpc {

void Lanes::make(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
                 SessionCounters& counters) {
  endpoint_ = &endpoint;
  const LaneContext context{.layout = grant.layout,
                            .seal = {grant.nonce, (grant.features & wire::kOrderedMemory) != 0},
                            .fetch = fetch,
                            .endpoint = endpoint,
                            .times = times_,
                            .durations = counters.duration,
                            .active = active_,
                            .knows_deliver = (grant.features & wire::kDeliver) != 0,
                            .is_relayed = (grant.features & wire::kRelayed) != 0};
  lanes_.clear();
  active_.open(grant.layout.lanes);
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
  for (Shared& each : shared_) {
    each.uploads.close(withheld);
    each.pin_turn.close(withheld);
  }
  const bool is_empty = are_uploads_over();
  if (withheld && !is_empty) return false;  // those under way need messages
  for (const auto& lane : lanes_) lane->withhold(withheld);
  return is_empty && std::ranges::all_of(lanes_, [](const auto& lane) { return lane->progress().is_empty; });
}

bool Lanes::are_uploads_over() const {
  return std::ranges::all_of(shared_,
                             [](const Shared& each) { return each.uploads.is_empty() && each.pin_turn.is_free(); });
}

void Lanes::replace(const wire::Grant& grant, const FetchOptions& fetch, transport::ClientEndpoint& endpoint,
                    SessionCounters& counters) {
  EGRET_DCHECK(std::ranges::all_of(lanes_, [](const auto& lane) { return lane->progress().is_empty; }));
  make(grant, fetch, endpoint, counters);
  for (uint32_t lane = 0; lane < count(); ++lane) {
    if (shared_[lane].uploads.is_anybody_waiting()) active_.add(lane);
  }
  withhold(false);
}

void Lanes::close() {
  const auto lost = std::exchange(lanes_, {});
  shared_.clear();
  active_.open(0);
  for (const auto& lane : lost) lane->fail_all();
}

UploadRoom& Lanes::uploads(uint64_t hash) {
  const uint32_t lane = op::partition_of(hash, count());
  active_.add(lane);  // as long as somebody waits
  return shared_[lane].uploads;
}

PinTurn& Lanes::pin_turn(uint64_t hash) {
  return shared_[op::partition_of(hash, count())].pin_turn;
}

bool Lanes::answer_gathered() {
  bool any = false;
  for (bool again = true; again; any |= again) {
    again = false;
    for (size_t i = 0; i < active_.size(); ++i) again |= rpc::answer_gathered(*lanes_[active_[i]]);
  }
  return any;
}

// A lane whose want is taken back now is looked at in this pass, too: what was staged is flushed.
void Lanes::begin_pass() {
  active_.keep_if(
      [&](uint32_t lane) { return !lanes_[lane]->progress().is_idle || shared_[lane].uploads.is_anybody_waiting(); });
  for (const uint32_t lane : active_) lanes_[lane]->begin_pass();
}

void Lanes::release_owner() {
  owner_.release();
  for (const auto& lane : lanes_) lane->owner_.release();
}

bool Lanes::has_open() const {
  return std::ranges::any_of(active_, [&](uint32_t lane) { return lanes_[lane]->progress().has_open; });
}

bool Lanes::holds_much() const {
  return std::ranges::any_of(active_, [&](uint32_t lane) { return lanes_[lane]->progress().holds_much; });
}

bool Lanes::has_credit() const {
  return std::ranges::any_of(lanes_, [](const auto& lane) { return lane->has_credit(); });
}

uint32_t Lanes::outstanding() const {
  uint32_t count = 0;
  for (const uint32_t lane : active_) count += lanes_[lane]->outstanding();
  return count;
}

bool Lanes::awaits() const {
  return std::ranges::any_of(active_, [&](uint32_t lane) {
    return lanes_[lane]->outstanding() > 0 || lanes_[lane]->progress().reads_in_flight > 0;
  });
}

bool Lanes::is_upload_waiting() const {
  return std::ranges::any_of(active_, [&](uint32_t lane) { return shared_[lane].uploads.is_anybody_waiting(); });
}

void Lanes::make_room_for_uploads(uint64_t now_ns) {
  for (const uint32_t lane : active_) shared_[lane].uploads.make_room(now_ns);
}

}  // namespace egret::rpc
