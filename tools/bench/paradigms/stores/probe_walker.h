// READ, verify, follow: the ops of a client's window that go by one-sided verbs, each at its own step.
//
//   begin(op) ─▶ rule.follow(probe, works) ─▶ works posted by one doorbell, the last one signalled
//                   ▲            └ or an end: hit, miss, …, or "the server must do it" (kCall)
//   poll() ─ completion ─┘
//
// A ProbeRule is what a system has of its own: which bytes are READ first, whether what came is sound, what follows from
// it. The walker has the pairs (RC, one to each server), the memory in which READs land, and the window. It keeps to the
// READ depth: a step that would exceed it waits. A pair that breaks ends all probes at its server.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

// An op under way.
struct Probe {
  uint64_t ticket = 0;
  OpKind kind = OpKind::kGet;
  NodeId server = 0;
  uint32_t key_number = 0;
  std::string_view key;    // plan.keys'
  std::string_view value;  // kPut: the caller's, valid while the op begins; a rule that needs it later copies it
  uint64_t hash = 0;
  std::byte* landing = nullptr;  // rule.landing_bytes(), registered

  // The rule's; all 0 when the op begins.
  uint32_t stage = 0;
  uint32_t rank = 0;
  uint32_t attempts = 0;  // that were in vain
  uint64_t word = 0;
  std::string_view found;  // the value, before kHit
};

// What a step posts, in order, to the probe's server.
class ProbeWorks {
 public:
  static constexpr uint32_t kMost = 4;

  ProbeWorks(const Memory& landing, bool is_inline, uint32_t inline_bytes)
      : landing_(&landing), inline_bytes_(is_inline ? inline_bytes : 0) {}
  // `to` and `from` lie in the probe's landing. False: that is outside the server's memory, and nothing was added.
  bool read(const RemoteMemory& memory, uint64_t offset, uint32_t bytes, std::byte* to);
  bool write(const RemoteMemory& memory, uint64_t offset, uint32_t bytes, std::byte* from);
  bool compare_swap(const RemoteMemory& memory, uint64_t offset, uint64_t expected, uint64_t swap,
                    std::byte* old_value);
  bool fetch_add(const RemoteMemory& memory, uint64_t offset, uint64_t add, std::byte* old_value);

  void clear() { count_ = depth_ = 0; }
  std::span<Work> works() { return std::span(works_).first(count_); }
  uint32_t depth() const { return depth_; }  // READs and atomics of them

 private:
  Work* add(Verb verb, const RemoteMemory& memory, uint64_t offset, uint32_t bytes, std::byte* local);
  const Memory* landing_;
  uint32_t inline_bytes_;
  std::array<Work, kMost> works_{};
  uint32_t count_ = 0;
  uint32_t depth_ = 0;
};

enum class Next : uint8_t {
  kPost,  // the works; follow comes again when the last one has completed
  kCall,  // the server has to do it
  kHit,   // probe.found
  kMiss,
  kDone,
  kFull,
  kLost,  // an item stays locked: ProbeRule::kMostAttempts
};

class ProbeRule {
 public:
  // So many steps in vain are more than any op takes.
  static constexpr uint32_t kMostAttempts = 20'000;

  virtual ~ProbeRule() = default;
  virtual bool has(OpKind kind) const = 0;
  virtual NodeId server_of(const Op& op) const = 0;
  virtual uint32_t landing_bytes() const = 0;
  // What a server has told of its store.
  virtual base::Status told(NodeId server, std::string_view layout) = 0;
  // stage 0: the op begins. Else what the last step READ has landed.
  virtual Next follow(Probe& probe, ProbeWorks& works) = 0;
  // The server's answer after kCall.
  virtual Next answered(Probe& /*probe*/, Outcome outcome, ProbeWorks& /*works*/) { return end_of(outcome); }

  Trouble trouble() const { return trouble_; }
  static Next end_of(Outcome outcome);

 protected:
  // A step was in vain. False: it is one too many.
  bool may_retry(Probe& probe) {
    ++trouble_.retries;
    if (++probe.attempts < kMostAttempts) return true;
    ++trouble_.stuck;
    return false;
  }

 private:
  Trouble trouble_;
};

class ProbeWalker {
 public:
  ProbeWalker(const Plan& plan, Fabric& fabric, ProbeRule& rule);

  base::Status prepare();
  uint32_t pair_to(NodeId server) const { return peers_[server].pair->number(); }
  base::Status join(NodeId server, const NodeAddress& address, uint32_t pair);

  // Its slot in the window; kNone: the window is full.
  static constexpr uint32_t kNone = ~uint32_t{0};
  uint32_t begin(const Op& op, NodeId server);
  // Slots whose probe needs the server. Whoever takes one calls the server; then the server's outcome goes to the rule
  // (answered), or ends the op (end). Or it is put back.
  bool take_call(uint32_t& slot);
  void put_back(uint32_t slot) { calls_.push_back(slot); }
  void answered(uint32_t slot, Outcome outcome);
  void end(uint32_t slot, Outcome outcome);
  // The window's slot is free again, as if the op had not begun. Only of the call that was taken last.
  void forget(uint32_t slot);
  const Probe& probe(uint32_t slot) const { return slots_[slot].probe; }

  uint32_t poll(std::span<Result> out);

 private:
  enum class State : uint8_t { kFree, kBegun, kPosted, kWaiting, kCalling, kEnded };  // kWaiting: for READ depth
  struct Slot {
    Probe probe;
    State state = State::kFree;
    Outcome outcome = Outcome::kFailed;
    uint32_t life = 0;   // tells late completions from those of the slot's present op
    uint32_t depth = 0;  // of what is posted
    ProbeWorks works;
  };
  struct Peer {
    std::unique_ptr<Pair> pair;
    uint32_t depth = 0;  // READs and atomics under way
    bool is_broken = false;
  };
  void go(uint32_t slot, Next next);
  void post(uint32_t slot);
  void completed(const Completion& completion);
  void break_down(NodeId server);
  void take_back();

  const Plan& plan_;
  Fabric& fabric_;
  ProbeRule& rule_;
  uint32_t window_;
  uint32_t most_depth_ = 1;
  std::unique_ptr<Memory> landing_;
  std::unique_ptr<Queue> queue_;
  std::vector<Peer> peers_;  // by server; their pairs go before their queue
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_, ended_, given_, waiting_, calls_;  // slots
};

}  // namespace egret::bench_paradigms
