// pilaf, pilaf-em: clients READ a self-verifying cuckoo table; puts are SENT to the server (paper 000, sections 3 and 4,
// figures 3 to 5). pilaf-em is paper 001's emulation of it with that paper's optimisations (section 5.1.1, Pilaf-em-OPT).
//
//   client                                     server's memory
//     get: READ entry of place 1  ───────────▶ │ E │ E │ … │        entry's CRC wrong: READ it again
//          in use: READ its extent ──────────▶ │ key │ value │ …    extent's CRC wrong: READ the entry again
//          another key: place 2, 3; after 3, READ all three entries again: unchanged is a miss
//     put: SEND key, value ──────────────────▶ the server plans the path, moves its last key first, writes the extent, then
//     ◀────────────────────────── SEND done    the entry
//
//   pilaf      RC, an extent for every entry in use
//   pilaf-em   an entry's tag says whether its extent can be the key's; puts over UD, inline, unsignalled
//
// Relies on two CRC64 for whatever was READ half. Ours is the last look before a miss: a key that was moved from a place
// not yet READ to one already READ is missed without it (as_paper). Entries carry no version: a path that is moved and
// moved back between the looks is not seen. A get that hits returns what the key had at some moment since it began:
// never what was replaced before. pilaf-em relies on nothing being lost. Every client can READ all items.
#include <algorithm>
#include <cstring>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/stores/crc64.h"
#include "bench_paradigms/stores/cuckoo_table.h"
#include "bench_paradigms/stores/exposed_server.h"
#include "bench_paradigms/stores/probing_client.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

struct Layout {
  RemoteMemory entries;
  RemoteMemory extents;
};

class Server final : public ExposedServer {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric, bool has_tags, const RpcShape& puts)
      : ExposedServer(plan, self, fabric, puts), has_tags_(has_tags) {}

  uint32_t walk(std::string_view key) const override {
    const CuckooTable::Walk walk = table_->walk(key, has_tags_);
    return walk.entries + walk.extents;
  }

 private:
  Status make_store() override {
    const uint32_t items = keys();
    const uint32_t item_bytes = plan().key_bytes + plan().value_bytes;
    auto entries =
        make_memory(size_t{CuckooTable::entries_for(items, plan().tuning.load)} * sizeof(CuckooEntry), kRemoteRead);
    if (!entries) return entries.status();
    entries_ = std::move(entries.value());
    auto extents = make_memory(CuckooTable::extent_bytes_for(items, item_bytes), kRemoteRead);
    if (!extents) return extents.status();
    extents_ = std::move(extents.value());
    table_.emplace(std::span(entries_->data(), entries_->size()), std::span(extents_->data(), extents_->size()),
                   plan().pause);
    return Status::ok();
  }
  std::string layout() const override { return to_notice(Layout{entries_->remote(), extents_->remote()}); }
  Outcome change(OpKind kind, std::string_view key, std::string_view value) override {
    return kind == OpKind::kPut ? table_->put(key, value) : table_->erase(key);
  }

  bool has_tags_;
  std::unique_ptr<Memory> entries_, extents_;
  std::optional<CuckooTable> table_;
};

// A get's stages. Its landing: three entries, the same again for the last look, an extent.
class Rule final : public ProbeRule {
 public:
  Rule(const Plan& plan, bool has_tags) : plan_(plan), has_tags_(has_tags), layouts_(plan.servers) {}

  bool has(OpKind kind) const override { return kind != OpKind::kNext; }
  NodeId server_of(const Op& op) const override { return partition_of(plan_, op.key); }
  uint32_t landing_bytes() const override { return kExtentAt + item_bytes(); }
  Status told(NodeId server, std::string_view layout) override {
    if (!read_notice(layout, layouts_[server])) return Status::error(kStrangeNotice);
    return Status::ok();
  }

  Next follow(Probe& probe, ProbeWorks& works) override {
    switch (probe.stage) {
      case kBegin:
        if (probe.kind != OpKind::kGet) return Next::kCall;
        return read_entry(probe, works);
      case kEntry:
        return entry_came(probe, works);
      case kExtent:
        return extent_came(probe, works);
      default:
        return last_look_came(probe, works);
    }
  }

 private:
  enum Stage : uint32_t { kBegin, kEntry, kExtent, kLastLook };
  static constexpr uint32_t kEntryBytes = sizeof(CuckooEntry);
  static constexpr uint32_t kAgainAt = kCuckooWays * kEntryBytes;
  static constexpr uint32_t kExtentAt = 2 * kAgainAt;

  uint32_t item_bytes() const { return plan_.key_bytes + plan_.value_bytes; }
  static CuckooEntry entry_at(const Probe& probe, uint32_t at) {
    CuckooEntry entry;
    std::memcpy(&entry, probe.landing + at, sizeof entry);
    return entry;
  }
  bool read_place(Probe& probe, uint32_t rank, uint32_t to, ProbeWorks& works) const {
    const RemoteMemory& entries = layouts_[probe.server].entries;
    const CuckooPlaces places = cuckoo_places(probe.hash, static_cast<uint32_t>(entries.bytes / sizeof(CuckooEntry)));
    return works.read(entries, uint64_t{places[rank]} * sizeof(CuckooEntry), sizeof(CuckooEntry), probe.landing + to);
  }
  Next read_entry(Probe& probe, ProbeWorks& works) {
    probe.stage = kEntry;
    read_place(probe, probe.rank, probe.rank * kEntryBytes, works);
    return Next::kPost;
  }
  Next entry_came(Probe& probe, ProbeWorks& works) {
    const CuckooEntry entry = entry_at(probe, probe.rank * kEntryBytes);
    if (plan_.tuning.checks && !entry.is_sound()) return again(probe, works);
    if (entry.is_used == 0 || (has_tags_ && entry.tag != cuckoo_tag(probe.hash))) return next_place(probe, works);
    probe.stage = kExtent;
    const bool is_read =
        entry.size == item_bytes() && entry.key_size == plan_.key_bytes &&
        works.read(layouts_[probe.server].extents, entry.offset, entry.size, probe.landing + kExtentAt);
    return is_read ? Next::kPost : again(probe, works);
  }
  Next extent_came(Probe& probe, ProbeWorks& works) {
    const CuckooEntry entry = entry_at(probe, probe.rank * kEntryBytes);
    const std::byte* const extent = probe.landing + kExtentAt;
    if (plan_.tuning.checks && crc64({extent, entry.size}) != entry.extent_crc) return again(probe, works);
    if (std::memcmp(extent, probe.key.data(), plan_.key_bytes) != 0) return next_place(probe, works);
    probe.found = {reinterpret_cast<const char*>(extent) + plan_.key_bytes, plan_.value_bytes};
    return Next::kHit;
  }
  Next again(Probe& probe, ProbeWorks& works) {
    works.clear();
    return may_retry(probe) ? read_entry(probe, works) : Next::kLost;
  }
  Next next_place(Probe& probe, ProbeWorks& works) {
    if (++probe.rank < kCuckooWays) return read_entry(probe, works);
    if (plan_.tuning.as_paper) return Next::kMiss;
    probe.stage = kLastLook;
    for (uint32_t rank = kCuckooWays; rank > 0; --rank) {
      read_place(probe, rank - 1, kAgainAt + (rank - 1) * kEntryBytes, works);
    }
    return Next::kPost;
  }
  Next last_look_came(Probe& probe, ProbeWorks& works) {
    if (std::memcmp(probe.landing, probe.landing + kAgainAt, kAgainAt) == 0) return Next::kMiss;
    probe.rank = 0;
    return again(probe, works);
  }

  const Plan& plan_;
  bool has_tags_;
  std::vector<Layout> layouts_;  // by server
};

RpcShape puts_of(const Plan& plan, bool is_emulated) {
  return is_emulated ? calls_of(plan, RequestHalf::kDatagram, ResponseHalf::kDatagram, PairType::kRc)
                     : calls_of(plan, RequestHalf::kSend, ResponseHalf::kSend, PairType::kRc);
}

}  // namespace

std::unique_ptr<ServerNode> make_pilaf_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric, false, puts_of(plan, false));
}
std::unique_ptr<ClientNode> make_pilaf_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(plan, false), puts_of(plan, false));
}
std::unique_ptr<ServerNode> make_pilaf_em_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric, true, puts_of(plan, true));
}
std::unique_ptr<ClientNode> make_pilaf_em_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(plan, true), puts_of(plan, true));
}

}  // namespace egret::bench_paradigms
