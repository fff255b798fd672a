#include "bench_paradigms/pairing.h"

#include <map>
#include <mutex>
#include <string>

#include "bench_paradigms/notice.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

// Of two nodes: what both tell, the first one's behind its length.
template <typename Base>
class Both : public Base {
 public:
  Both(std::unique_ptr<Base> gets, std::unique_ptr<Base> puts) : gets_(std::move(gets)), puts_(std::move(puts)) {}

  Status prepare() override {
    Status done = gets_->prepare();
    return done ? puts_->prepare() : done;
  }
  std::string notice(NodeId to) override {
    const std::string of_gets = gets_->notice(to);
    return to_notice(static_cast<uint32_t>(of_gets.size())) + of_gets + puts_->notice(to);
  }
  Status join(NodeId from, const NodeAddress& address, std::string_view notice) override {
    uint32_t size = 0;
    const bool is_read = read_notice(notice.substr(0, sizeof size), size);
    if (!is_read || size > notice.size() - sizeof size) return Status::error(kStrangeNotice);
    notice.remove_prefix(sizeof size);
    Status done = gets_->join(from, address, notice.substr(0, size));
    return done ? puts_->join(from, address, notice.substr(size)) : done;
  }
  Status load() override {
    Status done = gets_->load();
    return done ? puts_->load() : done;
  }

 protected:
  std::unique_ptr<Base> gets_, puts_;
};

class PairedServer final : public Both<ServerNode> {
 public:
  using Both::Both;
  bool serve() override {
    const bool has_served = gets_->serve();
    return puts_->serve() || has_served;
  }
  uint32_t walk(std::string_view key) const override { return gets_->walk(key); }
  uint32_t walk_of(NodeId client, std::string_view key) const override { return gets_->walk_of(client, key); }
  Trouble trouble() const override {
    Trouble sum = gets_->trouble();
    return sum += puts_->trouble();
  }
};

class PairedClient final : public Both<ClientNode> {
 public:
  using Both::Both;
  bool begin(const Op& op) override { return (op.kind == OpKind::kGet ? gets_ : puts_)->begin(op); }
  uint32_t poll(std::span<Result> out) override {
    const uint32_t found = gets_->poll(out);
    return found + puts_->poll(out.subspan(found));
  }
  Trouble trouble() const override {
    Trouble sum = gets_->trouble();
    return sum += puts_->trouble();
  }
};

struct Pairing {
  std::string id, title, source;
  Paradigm row;
};

void fill(Pairing& pairing, const Paradigm& gets, const Paradigm& puts) {
  pairing.id = std::string(gets.id) + "+" + std::string(puts.id);
  pairing.title = "gets by " + std::string(gets.id) + ", puts by " + std::string(puts.id);
  pairing.source = std::string(gets.source) + "; " + std::string(puts.source);
  const auto erases = static_cast<uint8_t>(puts.kinds & ~(1u << static_cast<unsigned>(OpKind::kGet)));
  pairing.row = {.id = pairing.id,
                 .title = pairing.title,
                 .source = pairing.source,
                 .pairs = static_cast<uint8_t>(gets.pairs | puts.pairs),
                 .needs_atomics = gets.needs_atomics || puts.needs_atomics,
                 .kinds = static_cast<uint8_t>(erases | 1u << static_cast<unsigned>(OpKind::kGet)),
                 .stores_puts = false,
                 .gets_by = &gets,
                 .puts_by = &puts};
}

}  // namespace

const Paradigm* paired(std::string_view id) {
  static std::mutex mutex;
  static std::map<std::string, Pairing, std::less<>> all;
  const size_t plus = id.find('+');
  if (plus == std::string_view::npos) return nullptr;
  const Paradigm* const gets = find_paradigm(id.substr(0, plus));
  const Paradigm* const puts = find_paradigm(id.substr(plus + 1));
  if (gets == nullptr || puts == nullptr || gets->gets_by != nullptr || puts->gets_by != nullptr) return nullptr;
  if (!gets->has(OpKind::kGet) || !puts->has(OpKind::kPut)) return nullptr;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = all.try_emplace(std::string(id));
  if (is_new) fill(at->second, *gets, *puts);
  return &at->second.row;
}

std::unique_ptr<ServerNode> make_paired_server(const Paradigm& paradigm, const Plan& plan, NodeId self,
                                               Fabric& fabric) {
  return std::make_unique<PairedServer>(paradigm.gets_by->make_server(plan, self, fabric),
                                        paradigm.puts_by->make_server(plan, self, fabric));
}

std::unique_ptr<ClientNode> make_paired_client(const Paradigm& paradigm, const Plan& plan, NodeId self,
                                               Fabric& fabric) {
  return std::make_unique<PairedClient>(paradigm.gets_by->make_client(plan, self, fabric),
                                        paradigm.puts_by->make_client(plan, self, fabric));
}

}  // namespace egret::bench_paradigms
