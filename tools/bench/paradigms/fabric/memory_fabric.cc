#include "bench_paradigms/fabric/memory_fabric.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "bench_paradigms/fabric/memory_pair.h"
#include "bench_paradigms/fabric/pages.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

class MemoryRegion final : public Memory {
 public:
  MemoryRegion(MemoryWorld& world, uint32_t node, std::unique_ptr<Pages> pages, uint8_t rights)
      : world_(world), pages_(std::move(pages)) {
    size_ = pages_->size();
    data_ = pages_->data();
    local_key_ = remote_key_ = world.next_key_++;
    world.memories_[remote_key_] = {data_, size_, rights, node};
  }
  ~MemoryRegion() override { world_.memories_.erase(remote_key_); }

 private:
  MemoryWorld& world_;
  std::unique_ptr<Pages> pages_;
};

namespace {

class MemoryWay final : public Way {};

}  // namespace

class MemoryFabric final : public Fabric {
 public:
  MemoryFabric(MemoryWorld& world, uint32_t node) : world_(world), node_(node) {}

  const Capabilities& capabilities() const override { return world_.capabilities_; }
  NodeAddress address() const override { return {.gid = {}, .node = node_, .lid = 0, .unused = 0}; }
  Expected<std::unique_ptr<Memory>> make_memory(size_t bytes, uint8_t rights) override {
    if (bytes == 0) return Status::error("a memory of no bytes");
    auto pages = std::make_unique<Pages>(bytes, wants_huge_pages_);
    if (pages->data() == nullptr) return Status::system_error("a memory of " + std::to_string(bytes) + " bytes", errno);
    return std::unique_ptr<Memory>(std::make_unique<MemoryRegion>(world_, node_, std::move(pages), rights));
  }
  Expected<std::unique_ptr<Queue>> make_queue(uint32_t entries) override {
    return std::unique_ptr<Queue>(std::make_unique<MemoryQueue>(entries));
  }
  Expected<std::unique_ptr<Pair>> make_pair(const PairSpec& spec) override {
    const Capabilities& can = world_.capabilities_;
    if (spec.type == PairType::kUc && !can.has_uc) return Status::error("the device has no UC");
    if (spec.type == PairType::kUd && !can.has_ud) return Status::error("the device has no UD");
    return std::unique_ptr<Pair>(std::make_unique<MemoryPair>(world_, node_, spec, counts_));
  }
  Expected<std::unique_ptr<Way>> make_way(const NodeAddress& /*peer*/) override {
    return std::unique_ptr<Way>(std::make_unique<MemoryWay>());
  }

 private:
  MemoryWorld& world_;
  uint32_t node_;
};

MemoryWorld::~MemoryWorld() = default;

std::unique_ptr<Fabric> MemoryWorld::make_fabric(uint32_t node) {
  return std::make_unique<MemoryFabric>(*this, node);
}

void MemoryWorld::kill(uint32_t node) {
  dead_.push_back(node);
  for (const auto& [number, pair] : pairs_) {
    if (pair->node() == node) pair->break_down();
  }
}

bool MemoryWorld::is_dead(uint32_t node) const {
  return std::find(dead_.begin(), dead_.end(), node) != dead_.end();
}

bool MemoryWorld::is_lost() {
  return loss_one_in_ != 0 && rng_.below(loss_one_in_) == 0;
}

MemoryPair* MemoryWorld::pair(uint32_t number) const {
  const auto found = pairs_.find(number);
  return found == pairs_.end() ? nullptr : found->second;
}

std::byte* MemoryWorld::reach(uint64_t address, uint32_t key, uint64_t bytes, uint8_t right) const {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return nullptr;
  const Span& memory = found->second;
  const auto begin = reinterpret_cast<uint64_t>(memory.data);
  if ((memory.rights & right) == 0 || address < begin || bytes > memory.size) return nullptr;
  if (address - begin > memory.size - bytes) return nullptr;
  return memory.data + (address - begin);
}

bool MemoryWorld::advance() {
  std::erase_if(busy_, [](const MemoryPair* pair) { return !pair->is_busy(); });
  // A pair that cannot go on is passed over; the draw decides who is asked first.
  const auto count = static_cast<uint32_t>(busy_.size());
  if (count == 0) return false;
  const uint32_t first = rng_.below(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (busy_[(first + i) % count]->advance()) return true;
  }
  return false;
}

// --- queues

uint32_t MemoryQueue::poll(std::span<Completion> out) {
  uint32_t found = 0;
  while (found < out.size() && !entries_waiting_.empty()) {
    const Entry& entry = entries_waiting_.front();
    out[found++] = entry.completion;
    if (entry.pair != nullptr) entry.pair->free_sends(entry.frees_up_to);
    entries_waiting_.pop_front();
  }
  return found;
}

void MemoryQueue::add(const Completion& completion, MemoryPair* pair, uint64_t frees_up_to) {
  // A device breaks every pair of such a queue. Here it is a fault of the paradigm's, and ends its test.
  if (entries_waiting_.size() >= entries_) {
    std::fputs("memory fabric: a completion queue overflows\n", stderr);
    std::abort();
  }
  entries_waiting_.push_back({completion, pair, frees_up_to});
}

void MemoryQueue::forget(const MemoryPair* pair) {
  for (Entry& entry : entries_waiting_) {
    if (entry.pair == pair) entry.pair = nullptr;
  }
}

// --- pairs

MemoryPair::MemoryPair(MemoryWorld& world, uint32_t node, const PairSpec& spec, VerbCounts& counts)
    : Pair(spec.type, counts, world.capabilities_), world_(world), node_(node), spec_(spec) {
  number_ = world.next_pair_++;
  world.pairs_[number_] = this;
}

MemoryPair::~MemoryPair() {
  world_.pairs_.erase(number_);
  std::erase(world_.busy_, this);
  static_cast<MemoryQueue*>(spec_.send_queue)->forget(this);
}

Status MemoryPair::join(const NodeAddress& peer, uint32_t peer_pair) {
  const MemoryPair* const other = world_.pair(peer_pair);
  if (type() != PairType::kUd) {
    if (other == nullptr || other->type() != type()) return Status::error("no such pair to join");
    peer_ = peer_pair;
    peer_node_ = peer.node;
  }
  is_joined_ = true;
  return Status::ok();
}

void MemoryPair::break_down() {
  is_broken_ = true;
  works_.clear();
  receives_.clear();
}

bool MemoryPair::do_post(std::span<const Work> works) {
  if (!is_joined_ || is_broken_ || sequence_ + works.size() - freed_ > spec_.sends) return false;
  for (const Work& work : works) {
    if (work.is_inline && work.bytes > world_.capabilities_.inline_bytes) return false;
    if (type() != PairType::kRc && work.verb != Verb::kWrite && work.verb != Verb::kSend) return false;
    if (type() == PairType::kUd && (work.verb != Verb::kSend || work.bytes > world_.capabilities_.mtu)) return false;
  }
  for (const Work& work : works) {
    Posted posted{work, {}, ++sequence_};
    if (work.is_inline) posted.inlined.assign(work.local, work.local + work.bytes);
    if (works_.empty()) world_.busy_.push_back(this);
    works_.push_back(std::move(posted));
  }
  return true;
}

bool MemoryPair::do_post_receives(std::span<const Receive> receives) {
  if (is_broken_ || receives_.size() + receives.size() > spec_.receives) return false;
  receives_.insert(receives_.end(), receives.begin(), receives.end());
  return true;
}

const std::byte* MemoryPair::source(const Posted& posted) const {
  return posted.work.is_inline ? posted.inlined.data() : posted.work.local;
}

bool MemoryPair::advance() {
  Posted& posted = works_.front();
  switch (transfer(posted)) {
    case Step::kMore:
      return true;
    case Step::kBlocked:
      return false;
    case Step::kDone:
      complete(posted, true);
      works_.pop_front();
      return true;
    case Step::kRefused:
      complete(posted, false);
      break_down();
      return true;
  }
  return false;
}

void MemoryPair::complete(const Posted& posted, bool is_ok) {
  if (is_ok && !posted.work.is_signalled) return;
  Completion done;
  done.tag = posted.work.tag;
  done.verb = posted.work.verb;
  done.is_ok = is_ok;
  done.bytes = posted.work.bytes;
  done.pair = number_;
  static_cast<MemoryQueue*>(spec_.send_queue)->add(done, this, posted.sequence);
}

MemoryPair::Step MemoryPair::transfer(Posted& posted) {
  const Work& work = posted.work;
  const bool is_connected = type() != PairType::kUd;
  const bool is_reliable = type() == PairType::kRc;
  if (is_connected && (world_.is_dead(peer_node_) || world_.pair(peer_) == nullptr)) {
    return is_reliable ? Step::kRefused : Step::kDone;
  }
  if (!is_reliable && posted.pieces_done == 0 && world_.is_lost()) return Step::kDone;
  switch (work.verb) {
    case Verb::kSend:
      return send(posted);
    case Verb::kWrite: {
      std::byte* const to = world_.reach(work.remote_address, work.remote_key, work.bytes, kRemoteWrite);
      if (to == nullptr && work.bytes > 0) return is_reliable ? Step::kRefused : Step::kDone;
      const Step step = move_pieces(posted, to, source(posted), world_.tearing_.write_piece);
      if (step != Step::kDone || !work.has_immediate) return step;
      return deliver(*world_.pair(peer_), posted, 0) ? Step::kDone : Step::kBlocked;
    }
    case Verb::kRead: {
      const std::byte* const from = world_.reach(work.remote_address, work.remote_key, work.bytes, kRemoteRead);
      if (from == nullptr) return Step::kRefused;
      return move_pieces(posted, work.local, from, world_.tearing_.read_piece);
    }
    case Verb::kCompareSwap:
    case Verb::kFetchAdd:
      return atomic(posted);
    case Verb::kReceive:
      break;
  }
  return Step::kRefused;
}

// One piece a step: what other nodes do in between is seen half.
MemoryPair::Step MemoryPair::move_pieces(Posted& posted, std::byte* to, const std::byte* from, uint32_t piece) {
  const uint32_t bytes = posted.work.bytes;
  if (bytes == 0) return Step::kDone;
  if (piece == 0) piece = bytes;
  const uint32_t pieces = (bytes + piece - 1) / piece;
  if (posted.pieces_done >= pieces) return Step::kDone;
  uint32_t which = posted.pieces_done;
  if (world_.tearing_.order == TearOrder::kDown) which = pieces - 1 - which;
  if (world_.tearing_.order == TearOrder::kEnds && pieces > 1 && which > 0) {
    which = which == 1 ? pieces - 1 : which - 1;  // 0, last, 1, 2, …
  }
  const uint32_t at = which * piece;
  std::memcpy(to + at, from + at, std::min(piece, bytes - at));
  return ++posted.pieces_done == pieces ? Step::kDone : Step::kMore;
}

MemoryPair::Step MemoryPair::atomic(Posted& posted) {
  const Work& work = posted.work;
  std::byte* const word = world_.reach(work.remote_address, work.remote_key, 8, kRemoteAtomic);
  if (word == nullptr || work.remote_address % 8 != 0 || !world_.capabilities_.has_atomics) return Step::kRefused;
  uint64_t old = 0;
  std::memcpy(&old, word, sizeof old);
  uint64_t now = old + work.compare_or_add;
  if (work.verb == Verb::kFetchAdd && world_.forgets_add()) now = old;
  if (work.verb == Verb::kCompareSwap) {
    if (world_.has_blind_swaps_) old = work.compare_or_add;
    now = old == work.compare_or_add ? work.swap : old;
  }
  std::memcpy(word, &now, sizeof now);
  std::memcpy(work.local, &old, sizeof old);
  turn_answer(world_.capabilities_, work.local);  // as such a device does: the other order
  return Step::kDone;
}

MemoryPair::Step MemoryPair::send(Posted& posted) {
  const bool is_datagram = type() == PairType::kUd;
  MemoryPair* const peer = world_.pair(is_datagram ? posted.work.to_pair : peer_);
  if (peer == nullptr || peer->is_broken_) return is_datagram ? Step::kDone : Step::kRefused;
  const bool delivered = deliver(*peer, posted, is_datagram ? kGrhBytes : 0);
  if (delivered || type() != PairType::kRc) return Step::kDone;  // UC, UD: dropped where no RECV is
  return peer->is_broken_ ? Step::kRefused : Step::kBlocked;
}

// Into the peer's next RECV. False: there is none, or it is too small.
bool MemoryPair::deliver(MemoryPair& peer, const Posted& posted, uint32_t grh) {
  if (peer.receives_.empty()) return false;
  const Receive place = peer.receives_.front();
  const bool carries = posted.work.verb == Verb::kSend;
  const uint32_t bytes = carries ? posted.work.bytes : 0;
  if (carries && place.bytes < bytes + grh) {
    if (type() == PairType::kRc) peer.break_down();
    return false;
  }
  peer.receives_.pop_front();
  if (bytes > 0) std::memcpy(place.local + grh, source(posted), bytes);
  Completion done;
  done.tag = place.tag;
  done.verb = Verb::kReceive;
  done.is_ok = true;
  done.has_immediate = posted.work.has_immediate;
  done.immediate = posted.work.immediate;
  done.bytes = carries ? bytes + grh : posted.work.bytes;
  done.pair = peer.number_;
  done.from_pair = number_;
  static_cast<MemoryQueue*>(peer.spec_.receive_queue)->add(done, nullptr, 0);
  return true;
}

}  // namespace egret::bench_paradigms
