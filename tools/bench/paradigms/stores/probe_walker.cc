#include "bench_paradigms/stores/probe_walker.h"

#include <algorithm>

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr uint32_t kLine = 64;
constexpr uint32_t kSlotBits = 24;  // of a Work's tag; the slot's life is above

uint32_t lines(uint32_t bytes) {
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

// --- works

Work* ProbeWorks::add(Verb verb, const RemoteMemory& memory, uint64_t offset, uint32_t bytes, std::byte* local) {
  if (count_ == kMost || bytes > memory.bytes || offset > memory.bytes - bytes) return nullptr;
  Work& work = works_[count_++];
  work = {};
  work.verb = verb;
  work.bytes = bytes;
  work.local = local;
  work.memory = landing_;
  work.remote_address = memory.address + offset;
  work.remote_key = memory.key;
  if (verb != Verb::kWrite) ++depth_;
  return &work;
}

bool ProbeWorks::read(const RemoteMemory& memory, uint64_t offset, uint32_t bytes, std::byte* to) {
  return add(Verb::kRead, memory, offset, bytes, to) != nullptr;
}

bool ProbeWorks::write(const RemoteMemory& memory, uint64_t offset, uint32_t bytes, std::byte* from) {
  Work* const work = add(Verb::kWrite, memory, offset, bytes, from);
  if (work != nullptr) work->is_inline = bytes <= inline_bytes_;
  return work != nullptr;
}

bool ProbeWorks::compare_swap(const RemoteMemory& memory, uint64_t offset, uint64_t expected, uint64_t swap,
                              std::byte* old_value) {
  Work* const work = add(Verb::kCompareSwap, memory, offset, sizeof(uint64_t), old_value);
  if (work == nullptr) return false;
  work->compare_or_add = expected;
  work->swap = swap;
  return true;
}

bool ProbeWorks::fetch_add(const RemoteMemory& memory, uint64_t offset, uint64_t add_to, std::byte* old_value) {
  Work* const work = add(Verb::kFetchAdd, memory, offset, sizeof(uint64_t), old_value);
  if (work != nullptr) work->compare_or_add = add_to;
  return work != nullptr;
}

Next ProbeRule::end_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHit:
      return Next::kHit;
    case Outcome::kMiss:
      return Next::kMiss;
    case Outcome::kDone:
      return Next::kDone;
    case Outcome::kFull:
      return Next::kFull;
    case Outcome::kLost:
    case Outcome::kFailed:
      break;
  }
  return Next::kLost;
}

// --- set-up

ProbeWalker::ProbeWalker(const Plan& plan, Fabric& fabric, ProbeRule& rule)
    : plan_(plan),
      fabric_(fabric),
      rule_(rule),
      window_(plan.tuning.is_synchronous ? 1 : plan.window),
      peers_(plan.servers) {}

Status ProbeWalker::prepare() {
  const Capabilities& can = fabric_.capabilities();
  const uint32_t bytes = lines(rule_.landing_bytes());
  auto landing = fabric_.make_memory(size_t{window_} * bytes, kNoRights);
  if (!landing) return landing.status();
  landing_ = std::move(landing.value());
  const uint32_t sends = window_ * ProbeWorks::kMost;
  auto queue = fabric_.make_queue(sends * plan_.servers);
  if (!queue) return queue.status();
  queue_ = std::move(queue.value());
  PairSpec spec{.send_queue = queue_.get(), .receive_queue = queue_.get(), .sends = sends};
  most_depth_ = std::max(1u, std::min(spec.read_depth, can.read_depth));
  for (Peer& peer : peers_) {
    auto pair = fabric_.make_pair(spec);
    if (!pair) return pair.status();
    peer.pair = std::move(pair.value());
  }
  const ProbeWorks works(*landing_, plan_.tuning.is_inline, can.inline_bytes);
  for (uint32_t slot = 0; slot < window_; ++slot) {
    slots_.push_back({.probe = {}, .works = works});
    slots_.back().probe.landing = landing_->data() + size_t{slot} * bytes;
    free_.push_back(slot);
  }
  for (auto* const list : {&ended_, &given_, &waiting_, &calls_}) list->reserve(window_);
  return Status::ok();
}

Status ProbeWalker::join(NodeId server, const NodeAddress& address, uint32_t pair) {
  return peers_[server].pair->join(address, pair);
}

// --- ops

uint32_t ProbeWalker::begin(const Op& op, NodeId server) {
  take_back();
  if (free_.empty()) return kNone;
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.state = State::kBegun;
  ++slot.life;
  std::byte* const landing = slot.probe.landing;
  slot.probe = {};
  slot.probe.ticket = op.ticket;
  slot.probe.kind = op.kind;
  slot.probe.server = server;
  slot.probe.key_number = op.key_number;
  slot.probe.key = plan_.keys->key(op.key_number);
  slot.probe.value = op.value;
  slot.probe.hash = hash_of(slot.probe.key);
  slot.probe.landing = landing;
  if (peers_[server].is_broken) {
    end(index, Outcome::kFailed);
  } else {
    slot.works.clear();
    go(index, rule_.follow(slot.probe, slot.works));
  }
  return index;
}

void ProbeWalker::go(uint32_t index, Next next) {
  Slot& slot = slots_[index];
  switch (next) {
    case Next::kPost:
      return post(index);
    case Next::kCall:
      slot.state = State::kCalling;
      calls_.push_back(index);
      return;
    case Next::kHit:
      return end(index, Outcome::kHit);
    case Next::kMiss:
      return end(index, Outcome::kMiss);
    case Next::kDone:
      return end(index, Outcome::kDone);
    case Next::kFull:
      return end(index, Outcome::kFull);
    case Next::kLost:
      return end(index, Outcome::kLost);
  }
}

void ProbeWalker::post(uint32_t index) {
  Slot& slot = slots_[index];
  Peer& peer = peers_[slot.probe.server];
  const auto works = slot.works.works();
  slot.depth = slot.works.depth();
  if (peer.depth > 0 && peer.depth + slot.depth > most_depth_) {
    slot.state = State::kWaiting;
    waiting_.push_back(index);
    return;
  }
  for (Work& work : works) {
    work.is_signalled = false;
    work.tag = uint64_t{slot.life} << kSlotBits | index;
  }
  if (!works.empty()) works.back().is_signalled = true;
  if (works.empty() || !peer.pair->post(works)) return break_down(slot.probe.server);
  peer.depth += slot.depth;
  slot.state = State::kPosted;
}

void ProbeWalker::end(uint32_t index, Outcome outcome) {
  slots_[index].state = State::kEnded;
  slots_[index].outcome = outcome;
  ended_.push_back(index);
}

bool ProbeWalker::take_call(uint32_t& slot) {
  if (calls_.empty()) return false;
  slot = calls_.back();
  calls_.pop_back();
  return true;
}

void ProbeWalker::answered(uint32_t index, Outcome outcome) {
  Slot& slot = slots_[index];
  slot.works.clear();
  go(index, rule_.answered(slot.probe, outcome, slot.works));
}

void ProbeWalker::forget(uint32_t index) {
  slots_[index].state = State::kFree;
  free_.push_back(index);
}

// --- completions

// What the last poll has given out may be written over from now on.
void ProbeWalker::take_back() {
  for (const uint32_t index : given_) slots_[index].state = State::kFree;
  free_.insert(free_.end(), given_.begin(), given_.end());
  given_.clear();
}

void ProbeWalker::break_down(NodeId server) {
  peers_[server].is_broken = true;
  std::erase_if(waiting_, [&](uint32_t index) { return slots_[index].probe.server == server; });
  for (uint32_t index = 0; index < slots_.size(); ++index) {
    const State state = slots_[index].state;
    const bool is_posted = state == State::kBegun || state == State::kPosted || state == State::kWaiting;
    if (is_posted && slots_[index].probe.server == server) end(index, Outcome::kFailed);
  }
}

void ProbeWalker::completed(const Completion& completion) {
  const auto index = static_cast<uint32_t>(completion.tag & ((uint64_t{1} << kSlotBits) - 1));
  Slot& slot = slots_[index];
  if (slot.state != State::kPosted || slot.life != completion.tag >> kSlotBits) return;
  if (!completion.is_ok) return break_down(slot.probe.server);
  peers_[slot.probe.server].depth -= slot.depth;
  slot.state = State::kBegun;
  for (const Work& work : slot.works.works()) {
    const bool is_atomic = work.verb == Verb::kCompareSwap || work.verb == Verb::kFetchAdd;
    if (is_atomic) turn_answer(fabric_.capabilities(), work.local);
  }
  slot.works.clear();
  go(index, rule_.follow(slot.probe, slot.works));
}

uint32_t ProbeWalker::poll(std::span<Result> out) {
  take_back();
  Completion done[16];
  const uint32_t count = queue_->poll(done);
  for (uint32_t i = 0; i < count; ++i) completed(done[i]);
  // In the order in which they began to wait. Those that wait again are behind them.
  for (size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    const uint32_t index = waiting_.front();
    waiting_.erase(waiting_.begin());
    slots_[index].state = State::kBegun;
    post(index);
  }
  uint32_t found = 0;
  while (found < out.size() && !ended_.empty()) {
    const Slot& slot = slots_[ended_.back()];
    given_.push_back(ended_.back());
    ended_.pop_back();
    const bool has_value = slot.outcome == Outcome::kHit;
    out[found++] = {slot.probe.ticket, slot.outcome, has_value ? slot.probe.found : std::string_view()};
  }
  return found;
}

}  // namespace egret::bench_paradigms
