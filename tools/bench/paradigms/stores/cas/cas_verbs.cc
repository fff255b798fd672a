// The verbs of cas_mesh.h: what an op posts, what comes back, what is told of removed entries.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "bench_paradigms/stores/cas/cas_mesh.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kFlagAt = 16;         // in an op's memory: the byte that makes an entry valid
constexpr uint64_t kTelling = 1u << 16;  // tags of ops are below

}  // namespace

// --- verbs

bool CasMesh::post(uint32_t op, NodeId to, Work& work) {
  Going& going = going_[op];
  work.is_signalled = true;
  work.memory = scratch_.get();
  work.tag = ++going.sequence * (2 * kTelling) + op;
  going.watermark = nullptr;
  going.is_swap = work.verb == Verb::kCompareSwap;
  if (plan_.tuning.polls_watermark && work.verb == Verb::kRead) {
    going.watermark = work.local + work.bytes - 1;
    *going.watermark = std::byte{0};
  }
  going.waits_for = to;
  if (!peers_[to].is_broken && peers_[to].pair->post(work)) return true;
  going.waits_for = kNobody;
  return false;
}

bool CasMesh::read_word(uint32_t op, uint64_t slot) {
  const NodeId server = layout_.server_of(slot);
  Work work;
  work.verb = Verb::kRead;
  work.bytes = kWordBytes;
  work.local = scratch(op);
  work.remote_address = peers_[server].index.address + layout_.offset_of(slot);
  work.remote_key = peers_[server].index.key;
  return post(op, server, work);
}

bool CasMesh::swap_word(uint32_t op, uint64_t slot, IndexWord expected, IndexWord wanted) {
  const NodeId server = layout_.server_of(slot);
  Work work;
  work.verb = Verb::kCompareSwap;
  work.bytes = kWordBytes;
  work.local = scratch(op);
  work.remote_address = peers_[server].index.address + layout_.offset_of(slot);
  work.remote_key = peers_[server].index.key;
  work.compare_or_add = expected.bits();
  work.swap = wanted.bits();
  return post(op, server, work);
}

Work CasMesh::work_on_entry(uint32_t op, Verb verb, NodeId table, uint32_t entry) const {
  Work work;
  work.verb = verb;
  work.bytes = layout_.entry_bytes();
  work.local = scratch(op) + kLanding;
  work.remote_address = tables_[table].address + layout_.entry_offset(entry);
  work.remote_key = tables_[table].key;
  return work;
}

bool CasMesh::read_entry(uint32_t op, NodeId table, uint32_t entry) {
  // What a word says comes from another host.
  if (table < plan_.servers || table >= plan_.nodes() || entry > layout_.entries_of(table)) return false;
  Work work = work_on_entry(op, Verb::kRead, table, entry);
  return post(op, layout_.holder_of(table), work);
}

bool CasMesh::write_entry(uint32_t op, NodeId table, uint32_t entry) {
  Work work = work_on_entry(op, Verb::kWrite, table, entry);
  work.local = image(op);
  return post(op, layout_.holder_of(table), work);
}

bool CasMesh::write_valid(uint32_t op, NodeId table, uint32_t entry) {
  Work work = work_on_entry(op, Verb::kWrite, table, entry);
  work.remote_address += layout_.entry_bytes() - 1;
  work.bytes = 1;
  work.local = scratch(op) + kFlagAt;
  *work.local = std::byte{kEntryWatermark | kEntryValid};
  return post(op, layout_.holder_of(table), work);
}

IndexWord CasMesh::word(uint32_t op) const {
  uint64_t bits = 0;
  std::memcpy(&bits, scratch(op), sizeof bits);
  return IndexWord(bits);
}

// --- completions

std::span<const CasMesh::Done> CasMesh::poll() {
  done_.clear();
  std::array<Completion, 16> found;
  for (uint32_t count = 1; count > 0;) {
    count = queue_->poll(found);
    for (uint32_t i = 0; i < count; ++i) take(found[i]);
  }
  if (plan_.tuning.polls_watermark) look_at_watermarks();
  return done_;
}

void CasMesh::take(const Completion& done) {
  if ((done.tag & kTelling) != 0) {
    Peer& peer = peers_[done.tag & (kTelling - 1)];
    peer.is_telling = false;
    peer.is_broken = peer.is_broken || !done.is_ok;
    return;
  }
  const auto op = static_cast<uint32_t>(done.tag & (kTelling - 1));
  Going& going = going_[op];
  if (going.sequence != done.tag / (2 * kTelling) || going.waits_for == kNobody) return;  // a watermark has told
  if (!done.is_ok) return give_up(going.waits_for);
  going.waits_for = kNobody;
  if (going.is_swap) turn_answer(fabric_.capabilities(), scratch(op));
  done_.push_back({op, true});
}

// What else was posted there comes to nothing.
void CasMesh::give_up(NodeId node) {
  peers_[node].is_broken = true;
  for (uint32_t op = 0; op < going_.size(); ++op) {
    if (going_[op].waits_for != node) continue;
    going_[op].waits_for = kNobody;
    done_.push_back({op, false});
  }
}

void CasMesh::look_at_watermarks() {
  for (uint32_t op = 0; op < going_.size(); ++op) {
    Going& going = going_[op];
    if (going.waits_for == kNobody || going.watermark == nullptr) continue;
    const auto last = std::atomic_ref(*reinterpret_cast<uint8_t*>(going.watermark)).load(std::memory_order_acquire);
    if ((last & kEntryWatermark) == 0) continue;
    going.waits_for = kNobody;
    done_.push_back({op, true});
  }
}

// --- removed entries

void CasMesh::tell_removed(NodeId owner, uint32_t entry) {
  Peer& peer = peers_[owner];
  peer.untold[peer.to_tell++ % peer.untold.size()] = entry;
  tell(owner);
}

void CasMesh::tell(NodeId owner) {
  Peer& peer = peers_[owner];
  if (peer.is_telling || peer.is_broken || peer.to_tell - peer.told < kBatch) return;
  auto* const batch = telling_->data() + size_t{owner} * kBatch * sizeof(uint32_t);
  const uint64_t at = peer.told % peer.untold.size();
  std::memcpy(batch, &peer.untold[at], kBatch * sizeof(uint32_t));
  Work work;
  work.verb = Verb::kWrite;
  work.is_signalled = true;
  work.bytes = kBatch * sizeof(uint32_t);
  work.local = batch;
  work.memory = telling_.get();
  work.remote_address = peer.removed_there.address + at * sizeof(uint32_t);
  work.remote_key = peer.removed_there.key;
  work.tag = kTelling + owner;
  if (!peer.pair->post(work)) return;
  peer.is_telling = true;
  peer.told += kBatch;
}

uint32_t CasMesh::take_removed() {
  for (uint32_t i = 0; i < plan_.clients; ++i) {
    Peer& peer = peers_[plan_.servers + (next_removed_ + i) % plan_.clients];
    if (peer.removed_here == nullptr) continue;
    auto* const words = reinterpret_cast<uint32_t*>(peer.removed_here->data());
    std::atomic_ref<uint32_t> word(words[peer.taken % removed_words(self_)]);
    const uint32_t entry = word.load(std::memory_order_acquire);
    if (entry == 0 || entry > layout_.entries_of(self_)) continue;
    word.store(0, std::memory_order_relaxed);
    ++peer.taken;
    next_removed_ = (next_removed_ + i + 1) % plan_.clients;
    return entry;
  }
  return 0;
}

}  // namespace egret::bench_paradigms
