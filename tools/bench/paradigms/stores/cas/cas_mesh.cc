#include "bench_paradigms/stores/cas/cas_mesh.h"

#include <cstring>

#include "bench_paradigms/notice.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr uint32_t kLine = 64;

// Told by each node to each client; one Held behind it for every table that it holds.
struct Notice {
  uint32_t pair = 0;
  uint32_t tables = 0;
  RemoteMemory index;
  RemoteMemory removed;  // for this client to write
};
struct Held {
  uint32_t table = 0;
  uint32_t unused = 0;
  RemoteMemory memory;
};

}  // namespace

CasMesh::CasMesh(const Plan& plan, NodeId self, Fabric& fabric, const CasLayout& layout)
    : plan_(plan),
      self_(self),
      fabric_(fabric),
      layout_(layout),
      held_(plan.nodes()),
      tables_(plan.nodes()),
      peers_(plan.nodes()) {
  stride_of_entry_ = (layout.entry_bytes() + kLine - 1) / kLine * kLine;
  stride_ = kLanding + 2 * stride_of_entry_;
}

Status CasMesh::prepare() {
  if (const std::string why = layout_.why_not(); !why.empty()) return Status::error(why);
  // An op's verb; in flight also what a watermark has told before its completion; and what tells removed entries.
  const uint32_t sends = 4 * plan_.window + 2;
  auto queue = fabric_.make_queue(sends * plan_.nodes());
  if (!queue) return queue.status();
  queue_ = std::move(queue.value());
  for (NodeId to = 0; to < plan_.nodes(); ++to) {
    if (to == self_ || (plan_.is_server(to) && plan_.is_server(self_))) continue;
    auto pair = fabric_.make_pair({.send_queue = queue_.get(), .receive_queue = queue_.get(), .sends = sends});
    if (!pair) return pair.status();
    peers_[to].pair = std::move(pair.value());
  }
  if (Status made = prepare_tables(); !made.is_ok()) return made;
  if (!plan_.is_server(self_)) return prepare_client();
  auto index = fabric_.make_memory(layout_.slots_of_server() * kWordBytes, kRemoteRead | kRemoteAtomic);
  if (!index) return index.status();
  index_ = std::move(index.value());
  for (uint64_t i = 0; i < layout_.slots_of_server(); ++i) {
    const uint64_t empty = IndexWord().bits();
    std::memcpy(index_->data() + i * kWordBytes, &empty, kWordBytes);
  }
  return Status::ok();
}

Status CasMesh::prepare_tables() {
  for (NodeId table = plan_.servers; table < plan_.nodes(); ++table) {
    if (layout_.holder_of(table) != self_) continue;
    const uint8_t rights = table == self_ ? kRemoteRead : kRemoteRead | kRemoteWrite;
    auto memory = fabric_.make_memory(size_t{layout_.entries_of(table)} * layout_.entry_bytes(), rights);
    if (!memory) return memory.status();
    held_[table] = std::move(memory.value());
  }
  return Status::ok();
}

Status CasMesh::prepare_client() {
  auto scratch = fabric_.make_memory(size_t{plan_.window} * stride_, kNoRights);
  if (!scratch) return scratch.status();
  scratch_ = std::move(scratch.value());
  auto telling = fabric_.make_memory(size_t{plan_.nodes()} * kBatch * sizeof(uint32_t), kNoRights);
  if (!telling) return telling.status();
  telling_ = std::move(telling.value());
  for (NodeId other = plan_.servers; other < plan_.nodes(); ++other) {
    if (other == self_) continue;
    auto removed = fabric_.make_memory(size_t{removed_words(self_)} * sizeof(uint32_t), kRemoteWrite);
    if (!removed) return removed.status();
    peers_[other].removed_here = std::move(removed.value());
    peers_[other].untold.resize(removed_words(other));
  }
  going_.resize(plan_.window);
  done_.reserve(plan_.window);
  return Status::ok();
}

std::string CasMesh::notice(NodeId to) const {
  const Peer& peer = peers_[to];
  if (peer.pair == nullptr) return {};
  Notice head;
  head.pair = peer.pair->number();
  if (plan_.is_server(to)) return to_notice(head);
  if (index_ != nullptr) head.index = index_->remote();
  if (peer.removed_here != nullptr) head.removed = peer.removed_here->remote();
  std::string tables;
  for (NodeId table = 0; table < plan_.nodes(); ++table) {
    if (held_[table] == nullptr) continue;
    ++head.tables;
    tables += to_notice(Held{table, 0, held_[table]->remote()});
  }
  return to_notice(head) + tables;
}

Status CasMesh::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  Peer& peer = peers_[from];
  if (peer.pair == nullptr) return Status::ok();
  Notice told;
  if (!read_notice(notice.substr(0, sizeof told), told)) return Status::error(kStrangeNotice);
  if (!plan_.is_server(self_)) {
    if (Status known = join_client_side(from, notice); !known.is_ok()) return known;
  }
  return peer.pair->join(address, told.pair);
}

Status CasMesh::join_client_side(NodeId from, std::string_view notice) {
  Notice told;
  read_notice(notice.substr(0, sizeof told), told);
  const bool is_server = plan_.is_server(from);
  if (is_server && told.index.bytes != layout_.slots_of_server() * kWordBytes) return Status::error("another index");
  if (!is_server && told.removed.bytes != size_t{removed_words(from)} * sizeof(uint32_t)) {
    return Status::error("a client with another number of entries");
  }
  peers_[from].index = told.index;
  peers_[from].removed_there = told.removed;
  notice.remove_prefix(sizeof told);
  if (notice.size() != size_t{told.tables} * sizeof(Held)) return Status::error(kStrangeNotice);
  for (; !notice.empty(); notice.remove_prefix(sizeof(Held))) {
    Held held;
    read_notice(notice.substr(0, sizeof held), held);
    if (held.table < plan_.servers || held.table >= plan_.nodes() || layout_.holder_of(held.table) != from ||
        held.memory.bytes != size_t{layout_.entries_of(held.table)} * layout_.entry_bytes()) {
      return Status::error("a table that is not that node's");
    }
    tables_[held.table] = held.memory;
  }
  return Status::ok();
}

void CasMesh::load_entries() {
  std::string value(plan_.value_bytes, '\0');
  for (uint32_t key = 0; key < plan_.keys->count(); ++key) {
    std::byte* const entry = held_entry(layout_.dealt_to(key), layout_.dealt_entry(key));
    if (entry == nullptr) continue;
    bench::write_value(value.data(), value.size(), key, kLoadedVersion);
    layout_.write_entry(entry, plan_.keys->key(key), value);
    layout_.set_valid(entry);
  }
}

std::byte* CasMesh::held_entry(NodeId table, uint32_t entry) const {
  if (table >= plan_.nodes() || held_[table] == nullptr) return nullptr;
  return entry <= layout_.entries_of(table) ? held_[table]->data() + layout_.entry_offset(entry) : nullptr;
}

std::byte* CasMesh::held_word(uint64_t slot) const {
  return index_ != nullptr && layout_.server_of(slot) == self_ ? index_->data() + layout_.offset_of(slot) : nullptr;
}

}  // namespace egret::bench_paradigms
