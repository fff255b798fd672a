// farm-em, farm-em-var: clients READ a whole neighbourhood of a hopscotch table; puts go by WRITE (paper 001, section
// 5.1.2: what it emulates of FaRM-KV).
//
//   client                                        server's memory
//     get: READ H slots from the key's home ────▶ │ … │ S │ S │ S │ S │ S │ S │ … │     farm-em: the value is in the slot
//          farm-em-var: READ the value ─────────▶ │ value │ value │ …                   where the slot points to
//          a check is wrong: all again; no such key: the slots once more, unchanged is a miss
//     put: WRITE key, value into a ring (UC) ───▶ the server polls the ring, moves keys out of the way by copies,
//     ◀──────────────────────── WRITE back (UC)   writes value, then slot
//
// Relies on WRITEs in rising order, for puts and their answers (W). The paper's own slots have no check and its miss no
// second READ (as_paper): it relies on a READ that sees a slot whole, too (R). Ours is a check of 8 bytes a slot, and
// for a miss, which a READ that came out of order may show while a key is moved, another READ. Every client can READ
// all items.
#include <cstring>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/stores/exposed_server.h"
#include "bench_paradigms/stores/hopscotch_table.h"
#include "bench_paradigms/stores/probing_client.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

struct Layout {
  RemoteMemory slots;
  RemoteMemory values;  // farm-em: none
  HopscotchShape shape;
};

class Server final : public ExposedServer {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric, bool is_inline, const RpcShape& puts)
      : ExposedServer(plan, self, fabric, puts), is_inline_(is_inline) {}

  uint32_t walk(std::string_view /*key*/) const override { return is_inline_ ? 1 : 2; }

 private:
  Status make_store() override {
    shape_ = HopscotchShape::of(plan(), self(), is_inline_);
    auto slots = make_memory(shape_.slots_bytes(), kRemoteRead);
    if (!slots) return slots.status();
    slots_ = std::move(slots.value());
    std::span<std::byte> values;
    if (!is_inline_) {
      auto made = make_memory(shape_.values_bytes(), kRemoteRead);
      if (!made) return made.status();
      values_ = std::move(made.value());
      values = {values_->data(), values_->size()};
    }
    table_.emplace(shape_, std::span(slots_->data(), slots_->size()), values, plan().pause);
    return Status::ok();
  }
  std::string layout() const override {
    return to_notice(Layout{slots_->remote(), values_ ? values_->remote() : RemoteMemory{}, shape_});
  }
  Outcome change(OpKind kind, std::string_view key, std::string_view value) override {
    return kind == OpKind::kPut ? table_->put(key, value) : table_->erase(key);
  }

  bool is_inline_;
  HopscotchShape shape_;
  std::unique_ptr<Memory> slots_, values_;
  std::optional<HopscotchTable> table_;
};

// A get's stages. Its landing: the neighbourhood, the same again for the last look, a value.
class Rule final : public ProbeRule {
 public:
  explicit Rule(const Plan& plan) : plan_(plan), layouts_(plan.servers) {}

  bool has(OpKind kind) const override { return kind != OpKind::kNext; }
  NodeId server_of(const Op& op) const override { return partition_of(plan_, op.key); }
  uint32_t landing_bytes() const override {
    return 2 * plan_.tuning.hops * (plan_.key_bytes + plan_.value_bytes + 16) + plan_.value_bytes;
  }
  Status told(NodeId server, std::string_view layout) override {
    Layout& told = layouts_[server];
    const bool is_read = read_notice(layout, told);
    const HopscotchShape& shape = told.shape;
    const bool is_ours = is_read && shape.key_bytes == plan_.key_bytes && shape.value_bytes == plan_.value_bytes &&
                         shape.hops == plan_.tuning.hops && shape.homes > 0 && shape.slots_bytes() == told.slots.bytes;
    return is_ours ? Status::ok() : Status::error(kStrangeNotice);
  }

  Next follow(Probe& probe, ProbeWorks& works) override {
    switch (probe.stage) {
      case kBegin:
        if (probe.kind != OpKind::kGet) return Next::kCall;
        return read_slots(probe, kSlots, 0, works);
      case kSlots:
        return slots_came(probe, works);
      case kValue:
        return judge(probe, value_at(probe), works);
      default:
        return last_look_came(probe, works);
    }
  }

 private:
  enum Stage : uint32_t { kBegin, kSlots, kValue, kLastLook };

  const HopscotchShape& shape(const Probe& probe) const { return layouts_[probe.server].shape; }
  Next read_slots(Probe& probe, Stage stage, uint32_t to, ProbeWorks& works) {
    const HopscotchShape& at = shape(probe);
    probe.stage = stage;
    works.read(layouts_[probe.server].slots, uint64_t{at.home(probe.hash)} * at.slot_bytes(), at.neighbourhood_bytes(),
               probe.landing + to);
    return Next::kPost;
  }
  std::span<const std::byte> slot_of(const Probe& probe) const {
    const HopscotchShape& at = shape(probe);
    return {probe.landing + size_t{probe.rank} * at.slot_bytes(), at.slot_bytes()};
  }
  std::span<std::byte> value_at(const Probe& probe) const {
    return {probe.landing + size_t{2} * shape(probe).neighbourhood_bytes(), plan_.value_bytes};
  }
  Next slots_came(Probe& probe, ProbeWorks& works) {
    const HopscotchShape& at = shape(probe);
    probe.rank = at.find({probe.landing, at.neighbourhood_bytes()}, probe.key);
    if (probe.rank == at.hops) {
      if (plan_.tuning.as_paper) return Next::kMiss;
      return read_slots(probe, kLastLook, at.neighbourhood_bytes(), works);
    }
    if (at.is_inline()) return judge(probe, slot_of(probe).subspan(at.key_bytes, at.value_bytes), works);
    probe.stage = kValue;
    const uint64_t offset = at.offset_in(slot_of(probe));
    const bool is_read = works.read(layouts_[probe.server].values, offset, at.value_bytes, value_at(probe).data());
    return is_read ? Next::kPost : again(probe, works);
  }
  Next judge(Probe& probe, std::span<const std::byte> value, ProbeWorks& works) {
    if (!shape(probe).is_sound(slot_of(probe), value)) return again(probe, works);
    probe.found = {reinterpret_cast<const char*>(value.data()), value.size()};
    return Next::kHit;
  }
  Next again(Probe& probe, ProbeWorks& works) {
    return may_retry(probe) ? read_slots(probe, kSlots, 0, works) : Next::kLost;
  }
  Next last_look_came(Probe& probe, ProbeWorks& works) {
    const uint32_t bytes = shape(probe).neighbourhood_bytes();
    return std::memcmp(probe.landing, probe.landing + bytes, bytes) == 0 ? Next::kMiss : again(probe, works);
  }

  const Plan& plan_;
  std::vector<Layout> layouts_;  // by server
};

RpcShape puts_of(const Plan& plan) {
  return calls_of(plan, RequestHalf::kWriteRing, ResponseHalf::kWrite, PairType::kUc);
}

}  // namespace

std::unique_ptr<ServerNode> make_farm_em_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric, true, puts_of(plan));
}
std::unique_ptr<ServerNode> make_farm_em_var_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric, false, puts_of(plan));
}
std::unique_ptr<ClientNode> make_farm_em_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(plan), puts_of(plan));
}

}  // namespace egret::bench_paradigms
