// drtm, drtm-em: clients READ items whose places they have cached, and put by atomics: lock, WRITE, unlock. The server's
// core only inserts and erases (paper 002, section 4.3.2 and figure 10; layouts as in DrTM's public code, see
// stores/chained_table.h).
//
//   client                                         server's memory
//     get: place not cached: READ its bucket(s) ─▶ │ next │ 8 hashes │ 8 indexes │
//          READ item ────────────────────────────▶ │ key │ version, incarnation │ state │ value │
//          another key or incarnation: bucket again; locked: item again; value above 32 bytes: READ state again
//     put: CAS state: 0 -> me ───────────────────▶
//          WRITE version, state, value ──────────▶
//          CAS state: me -> 0 ───────────────────▶     (one doorbell with the WRITE)
//     insert, erase: SEND ───────────────────────▶ the server changes bucket and item
//
//   drtm-em: every place is known, nothing is checked, and a put is its two atomics: nothing is stored (paper 002).
//
// Relies on lines that are read whole (line: an item with a value of 32 is one), and on atomics that are atomic for the
// server's CPU, too, where it erases (HCA). A READ of more than a line is compared with the version behind the value
// and with a second READ of the state: ours, not with as_paper. It relies on a READ that samples in rising order (R,
// instead of line): if a READ and a WRITE both proceed from the end, the READ may pass the WRITE and bring half of
// each value, with versions and states that agree.
// Who dies with a lock leaves it for ever (`stuck`). Every client can change all items.
#include <cstring>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/stores/chained_table.h"
#include "bench_paradigms/stores/exposed_server.h"
#include "bench_paradigms/stores/probing_client.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

struct Layout {
  RemoteMemory buckets;
  RemoteMemory items;
  ChainedShape shape;
};

class Server final : public ExposedServer {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric, bool is_emulated, const std::optional<RpcShape>& changes)
      : ExposedServer(plan, self, fabric, changes), is_emulated_(is_emulated) {}

  uint32_t walk(std::string_view key) const override {
    if (is_emulated_) return 1;
    const uint32_t of_item = shape_.has_tail() && !plan().tuning.as_paper ? 2 : 1;
    return of_item + (plan().tuning.caches_places ? 0 : table_->walk(key));
  }

 private:
  Status make_store() override {
    shape_ = ChainedShape::of(plan(), keys());
    auto buckets = make_memory(shape_.buckets_bytes(), kRemoteRead);
    if (!buckets) return buckets.status();
    buckets_ = std::move(buckets.value());
    auto items = make_memory(shape_.items_bytes(), kRemoteRead | kRemoteWrite | kRemoteAtomic);
    if (!items) return items.status();
    items_ = std::move(items.value());
    table_.emplace(shape_, std::span(buckets_->data(), buckets_->size()), std::span(items_->data(), items_->size()),
                   plan().pause);
    return Status::ok();
  }
  std::string layout() const override { return to_notice(Layout{buckets_->remote(), items_->remote(), shape_}); }
  Outcome change(OpKind kind, std::string_view key, std::string_view value) override {
    return kind == OpKind::kPut ? table_->insert(key, value) : table_->erase(key);
  }

  bool is_emulated_;
  ChainedShape shape_;
  std::unique_ptr<Memory> buckets_, items_;
  std::optional<ChainedTable> table_;
};

// Of an op: `word` is the index word of its item, `rank` the bucket that is READ. Its landing: see the k…At.
class Rule final : public ProbeRule {
 public:
  Rule(const Plan& plan, NodeId self, bool is_emulated)
      : plan_(plan), owner_(self + 2), is_emulated_(is_emulated), layouts_(plan.servers), places_(plan.keys->count()) {
    ChainedShape shape;
    shape.key_bytes = plan.key_bytes;
    shape.value_bytes = plan.value_bytes;
    item_bytes_ = (shape.item_bytes() + 7) / 8 * 8;
    if (!is_emulated && !plan.tuning.caches_places) return;
    // Servers load their keys in this order: the places of all are known before the first op.
    std::vector<uint32_t> loaded(plan.servers);
    for (uint32_t number = 0; number < plan.keys->count(); ++number) {
      const NodeId server = partition_of(plan, plan.keys->key(number));
      places_[number] = ItemPlace{loaded[server]++, 0}.index();
    }
  }

  bool has(OpKind kind) const override {
    return kind == OpKind::kGet || kind == OpKind::kPut || (kind == OpKind::kErase && !is_emulated_);
  }
  NodeId server_of(const Op& op) const override { return partition_of(plan_, op.key); }
  uint32_t landing_bytes() const override { return kItemAt + 2 * item_bytes_; }
  Status told(NodeId server, std::string_view layout) override {
    Layout& told = layouts_[server];
    const bool is_read = read_notice(layout, told);
    const bool is_ours = is_read && told.shape.key_bytes == plan_.key_bytes && told.shape.buckets > 0 &&
                         told.shape.value_bytes == plan_.value_bytes && told.items.bytes == told.shape.items_bytes();
    return is_ours ? Status::ok() : Status::error(kStrangeNotice);
  }

  Next follow(Probe& probe, ProbeWorks& works) override {
    switch (probe.stage) {
      case kBegin:
        return begin(probe, works);
      case kBucket:
        return bucket_came(probe, works);
      case kItem:
        return item_came(probe, works);
      case kState:
        return state_came(probe, works);
      case kLock:
        return lock_came(probe, works);
      default:
        return Next::kDone;
    }
  }
  Next answered(Probe& probe, Outcome outcome, ProbeWorks& works) override {
    if (outcome == Outcome::kDone || outcome == Outcome::kMiss) places_[probe.key_number] = 0;
    if (outcome == Outcome::kHit) return look_up(probe, works);  // another client has inserted it
    if (outcome != Outcome::kFull || probe.kind != OpKind::kErase) return end_of(outcome);
    return may_retry(probe) ? Next::kCall : Next::kLost;  // it is locked
  }

 private:
  enum Stage : uint32_t { kBegin, kBucket, kItem, kState, kLock, kUnlock };
  static constexpr uint32_t kOldAt = 0;  // of atomics: what was there
  static constexpr uint32_t kBucketAt = 16;
  static constexpr uint32_t kStateAt = kBucketAt + sizeof(ChainedBucket);
  static constexpr uint32_t kItemAt = kStateAt + 16;  // that was READ; behind it the one that is put
  static constexpr uint32_t kStateBytes = 16;         // version, incarnation, state

  const Layout& layout(const Probe& probe) const { return layouts_[probe.server]; }
  std::byte* own_item(const Probe& probe) const { return probe.landing + kItemAt + item_bytes_; }
  static ItemPlace place(const Probe& probe) { return ItemPlace::from_index(probe.word); }
  uint64_t item_at(const Probe& probe) const { return uint64_t{place(probe).number} * layout(probe).shape.stride; }

  Next begin(Probe& probe, ProbeWorks& works) {
    if (probe.kind == OpKind::kErase) return Next::kCall;
    if (probe.kind == OpKind::kPut) {
      std::byte* const value =
          own_item(probe) + kStateBytes;  // until the item's state is known: then it is filled again
      std::memcpy(value, probe.value.data(), probe.value.size());
      probe.value = {reinterpret_cast<const char*>(value), probe.value.size()};
    }
    probe.word = places_[probe.key_number];
    if (probe.word == 0) return look_up(probe, works);
    return probe.kind == OpKind::kPut ? lock(probe, works) : read_item(probe, works);
  }
  Next look_up(Probe& probe, ProbeWorks& works) {
    places_[probe.key_number] = 0;
    probe.rank = layout(probe).shape.bucket(probe.hash);
    return read_bucket(probe, works);
  }
  Next read_bucket(Probe& probe, ProbeWorks& works) {
    probe.stage = kBucket;
    const bool is_read = works.read(layout(probe).buckets, uint64_t{probe.rank} * sizeof(ChainedBucket),
                                    sizeof(ChainedBucket), probe.landing + kBucketAt);
    return is_read ? Next::kPost : look_up_again(probe, works);
  }
  Next bucket_came(Probe& probe, ProbeWorks& works) {
    ChainedBucket bucket;
    std::memcpy(&bucket, probe.landing + kBucketAt, sizeof bucket);
    for (uint32_t at = 0; at < kBucketPlaces; ++at) {
      if (bucket.keys[at] != probe.hash || bucket.indexes[at] == 0) continue;
      probe.word = bucket.indexes[at];
      return read_item(probe, works);
    }
    if (bucket.next == 0) return probe.kind == OpKind::kPut ? Next::kCall : Next::kMiss;
    probe.rank = static_cast<uint32_t>(bucket.next - 1);
    return read_bucket(probe, works);
  }
  Next look_up_again(Probe& probe, ProbeWorks& works) { return may_retry(probe) ? look_up(probe, works) : Next::kLost; }

  Next read_item(Probe& probe, ProbeWorks& works) {
    probe.stage = kItem;
    const ChainedShape& shape = layout(probe).shape;
    const bool is_read = works.read(layout(probe).items, item_at(probe), shape.item_bytes(), probe.landing + kItemAt);
    return is_read ? Next::kPost : look_up_again(probe, works);
  }
  Next item_came(Probe& probe, ProbeWorks& works) {
    const ChainedShape& shape = layout(probe).shape;
    const std::byte* const item = probe.landing + kItemAt;
    probe.found = {reinterpret_cast<const char*>(item) + shape.value_at(), shape.value_bytes};
    if (is_emulated_) return Next::kHit;
    const std::byte* const head = item + shape.head_bytes();
    uint32_t version_and_incarnation[2];
    uint64_t state = 0;
    std::memcpy(version_and_incarnation, head, sizeof version_and_incarnation);
    std::memcpy(&state, item + shape.state_at(), sizeof state);
    const uint32_t incarnation = place(probe).incarnation;
    if (std::memcmp(item, probe.key.data(), probe.key.size()) != 0 || version_and_incarnation[1] != incarnation ||
        state >> 32 != incarnation) {
      return look_up_again(probe, works);
    }
    if (probe.kind == OpKind::kPut) return lock(probe, works);
    if (state != place(probe).state(0)) return read_item_again(probe, works);
    if (!shape.has_tail() || plan_.tuning.as_paper) return hit(probe);
    if (std::memcmp(head, item + shape.tail_at(), sizeof(uint32_t)) != 0) return read_item_again(probe, works);
    probe.stage = kState;
    works.read(layout(probe).items, item_at(probe) + shape.head_bytes(), kStateBytes, probe.landing + kStateAt);
    return Next::kPost;
  }
  Next read_item_again(Probe& probe, ProbeWorks& works) {
    return may_retry(probe) ? read_item(probe, works) : Next::kLost;
  }
  Next state_came(Probe& probe, ProbeWorks& works) {
    const std::byte* const before = probe.landing + kItemAt + layout(probe).shape.head_bytes();
    return std::memcmp(before, probe.landing + kStateAt, kStateBytes) == 0 ? hit(probe) : read_item_again(probe, works);
  }
  Next hit(Probe& probe) {
    if (plan_.tuning.caches_places) places_[probe.key_number] = probe.word;
    return Next::kHit;
  }

  Next lock(Probe& probe, ProbeWorks& works) {
    probe.stage = kLock;
    works.compare_swap(layout(probe).items, item_at(probe) + layout(probe).shape.state_at(), place(probe).state(0),
                       place(probe).state(owner_), probe.landing + kOldAt);
    return Next::kPost;
  }
  Next lock_came(Probe& probe, ProbeWorks& works) {
    uint64_t old = 0;
    std::memcpy(&old, probe.landing + kOldAt, sizeof old);
    if (old >> 32 != place(probe).incarnation) return look_up_again(probe, works);
    if (old != place(probe).state(0)) return may_retry(probe) ? lock(probe, works) : Next::kLost;
    const ChainedShape& shape = layout(probe).shape;
    const RemoteMemory& items = layout(probe).items;
    if (!is_emulated_) {
      if (plan_.tuning.caches_places) places_[probe.key_number] = probe.word;
      version_ += plan_.nodes();  // no other client has one of ours
      shape.fill(own_item(probe), version_, place(probe).state(owner_), probe.value);
      works.write(items, item_at(probe) + shape.head_bytes(), shape.item_bytes() - shape.head_bytes(), own_item(probe));
    }
    probe.stage = kUnlock;
    works.compare_swap(items, item_at(probe) + shape.state_at(), place(probe).state(owner_), place(probe).state(0),
                       probe.landing + kOldAt);
    return Next::kPost;
  }

  const Plan& plan_;
  uint32_t owner_;  // 0 is nobody, 1 the server
  bool is_emulated_;
  uint32_t item_bytes_ = 0;
  uint32_t version_ = owner_;
  std::vector<Layout> layouts_;   // by server
  std::vector<uint64_t> places_;  // by key: its item's index word; 0: not known
};

RpcShape changes_of(const Plan& plan) {
  return calls_of(plan, RequestHalf::kSend, ResponseHalf::kSend, PairType::kRc);
}

}  // namespace

std::unique_ptr<ServerNode> make_drtm_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric, false, changes_of(plan));
}
std::unique_ptr<ClientNode> make_drtm_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(plan, self, false),
                                         changes_of(plan));
}
std::unique_ptr<ServerNode> make_drtm_em_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric, true, std::nullopt);
}
std::unique_ptr<ClientNode> make_drtm_em_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(plan, self, true), std::nullopt);
}

}  // namespace egret::bench_paradigms
