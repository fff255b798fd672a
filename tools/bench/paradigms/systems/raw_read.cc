// raw-read: what READs cost and nothing else. The client knows where every value is (paper 003, section 3.2: READ of
// figure 1, CD of figure 2); with two small READs a get (--raw-reads 2) it is paper 002's bound for designs that READ
// (section 4.3.1 and figure 9, from the rates of section 5.3.1).
//
//   client                          server's memory
//    (READ word n  ───────────────▶ where value 0, 1, … is)
//     READ value n ───────────────▶ value 0, value 1, …
//
// Relies on nothing: nothing is ever written.
#include <cstring>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/stores/exposed_server.h"
#include "bench_paradigms/stores/probing_client.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

struct Layout {
  RemoteMemory words;
  RemoteMemory values;
};

class Server final : public ExposedServer {
 public:
  Server(const Plan& plan, NodeId self, Fabric& fabric) : ExposedServer(plan, self, fabric, std::nullopt) {}

  Status load() override {
    for (uint32_t number = 0; number < plan().keys->count(); ++number) {
      const uint64_t at = uint64_t{number} * plan().value_bytes;
      std::memcpy(words_->data() + size_t{number} * sizeof at, &at, sizeof at);
      bench::write_value(reinterpret_cast<char*>(values_->data()) + at, plan().value_bytes, number, kLoadedVersion);
    }
    return Status::ok();
  }
  uint32_t walk(std::string_view /*key*/) const override { return plan().tuning.raw_reads; }

 private:
  Status make_store() override {
    const size_t count = plan().keys->count();
    auto words = make_memory(count * sizeof(uint64_t), kRemoteRead);
    if (!words) return words.status();
    words_ = std::move(words.value());
    auto values = make_memory(count * plan().value_bytes, kRemoteRead);
    if (!values) return values.status();
    values_ = std::move(values.value());
    return Status::ok();
  }
  std::string layout() const override { return to_notice(Layout{words_->remote(), values_->remote()}); }
  Outcome change(OpKind /*kind*/, std::string_view /*key*/, std::string_view /*value*/) override {
    return Outcome::kFull;
  }

  std::unique_ptr<Memory> words_, values_;
};

class Rule final : public ProbeRule {
 public:
  explicit Rule(const Plan& plan) : plan_(plan), layouts_(plan.servers) {}

  bool has(OpKind kind) const override { return kind == OpKind::kGet; }
  NodeId server_of(const Op& op) const override { return partition_of(plan_, op.key); }
  uint32_t landing_bytes() const override { return sizeof(uint64_t) + plan_.value_bytes; }
  Status told(NodeId server, std::string_view layout) override {
    const bool is_ours = read_notice(layout, layouts_[server]) &&
                         layouts_[server].values.bytes == size_t{plan_.keys->count()} * plan_.value_bytes;
    return is_ours ? Status::ok() : Status::error(kStrangeNotice);
  }
  Next follow(Probe& probe, ProbeWorks& works) override {
    switch (probe.stage) {
      case kBegin:
        if (plan_.tuning.raw_reads > 1) return read_word(probe, works);
        return read_value(probe, uint64_t{probe.key_number} * plan_.value_bytes, works);
      case kWord:
        std::memcpy(&probe.word, probe.landing, sizeof probe.word);
        return read_value(probe, probe.word, works);
      default:
        probe.found = {reinterpret_cast<const char*>(probe.landing) + sizeof(uint64_t), plan_.value_bytes};
        return Next::kHit;
    }
  }

 private:
  enum Stage : uint32_t { kBegin, kWord, kValue };

  Next read_word(Probe& probe, ProbeWorks& works) {
    probe.stage = kWord;
    const uint64_t at = uint64_t{probe.key_number} * sizeof(uint64_t);
    return works.read(layouts_[probe.server].words, at, sizeof(uint64_t), probe.landing) ? Next::kPost : Next::kLost;
  }
  Next read_value(Probe& probe, uint64_t at, ProbeWorks& works) {
    probe.stage = kValue;
    std::byte* const value = probe.landing + sizeof(uint64_t);
    return works.read(layouts_[probe.server].values, at, plan_.value_bytes, value) ? Next::kPost : Next::kLost;
  }

  const Plan& plan_;
  std::vector<Layout> layouts_;  // by server
};

}  // namespace

std::unique_ptr<ServerNode> make_raw_read_server(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<Server>(plan, self, fabric);
}
std::unique_ptr<ClientNode> make_raw_read_client(const Plan& plan, NodeId self, Fabric& fabric) {
  return std::make_unique<ProbingClient>(plan, self, fabric, std::make_unique<Rule>(plan), std::nullopt);
}

}  // namespace egret::bench_paradigms
