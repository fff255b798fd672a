#include "bench_rpc/driver.h"

#include <algorithm>

#include "base/cpu.h"
#include "wire/slot.h"

namespace egret::bench_rpc {
namespace {

using base::Status;
using rpc::ClientSession;

constexpr uint32_t kOpsBetweenPasses = 256;  // sent at most before answers are looked for
constexpr uint64_t kLongestPassNs = 5000;    // a longer pass without work was interrupted by another process

}  // namespace

DriverCounts& DriverCounts::operator+=(const DriverCounts& other) {
  ops += other.ops;
  cut += other.cut;
  wrong += other.wrong;
  messages += other.messages;
  waited_ns += other.waited_ns;
  return *this;
}

DriverCounts DriverCounts::operator-(const DriverCounts& before) const {
  return {ops - before.ops, cut - before.cut, wrong - before.wrong, messages - before.messages,
          waited_ns - before.waited_ns};
}

// The ops of a lane that have not been answered yet, oldest first: a lane answers in order.
struct Driver::Judge final : rpc::Waiter {
  static constexpr size_t kMost = size_t{wire::kMaxWindow} * wire::kMaxOpsPerMessage;  // a power of two

  Judge(const Items& known_items, DriverCounts& all_counts) : items(known_items), counts(all_counts), sent(kMost) {}
  void expect(const Sent& op) { sent[last++ % kMost] = op; }
  void on_result(const op::Result& result) override {
    ++(result.code == op::ResultCode::kHit && result.is_partial() ? counts.cut : counts.ops);
    if (!items.is_right(sent[next++ % kMost], result)) ++counts.wrong;
  }

  const Items& items;
  DriverCounts& counts;
  std::vector<Sent> sent;
  size_t next = 0;
  size_t last = 0;
  uint32_t in_open_message = 0;
};

Driver::Driver(Items& items, uint32_t ops_per_message, const base::Clock& clock)
    : items_(items), ops_per_message_(ops_per_message), clock_(clock) {}

Driver::~Driver() = default;

void Driver::begin(ClientSession& session) {
  while (judges_.size() < session.lanes().count()) judges_.push_back(std::make_unique<Judge>(items_, counts_));
}

Status Driver::run(ClientSession& session, uint64_t until_ns, const std::atomic<bool>& stop) {
  return pump(session, stop, [&](uint64_t now_ns) {
    if (now_ns >= until_ns) return false;
    for (uint32_t i = 0; i < kOpsBetweenPasses && send_drawn(session); ++i) {
    }
    return true;
  });
}

Status Driver::fill(ClientSession& session, const std::atomic<bool>& stop) {
  return pump(session, stop, [&](uint64_t) {
    for (uint32_t i = 0; i < kOpsBetweenPasses && filled_ < items_.count() && send_fill(session); ++i) {
    }
    return filled_ < items_.count();
  });
}

// Runs passes until more() has nothing left to send and everything is answered. more() sends while there is credit.
template <typename More>
Status Driver::pump(ClientSession& session, const std::atomic<bool>& stop, More more) {
  begin(session);
  const uint64_t messages_before = session.counters().sum().messages.get();
  const uint64_t wrong_before = counts_.wrong;
  uint64_t before_ns = clock_.now_ns();
  uint64_t ticked_ns = before_ns;
  bool was_vain = false;
  for (bool sends = true; session.is_open() && (sends || session.lanes().outstanding() > 0);) {
    const uint64_t now_ns = clock_.now_ns();
    if (was_vain) counts_.waited_ns += std::min(now_ns - before_ns, kLongestPassNs);
    before_ns = now_ns;
    session.begin_pass();
    const uint64_t answered = counts_.ops + counts_.cut;
    sends = sends && !stop.load(std::memory_order_relaxed) && more(now_ns);
    if (!sends) session.flush();  // the last messages, full or not
    session.fetch();
    was_vain = counts_.ops + counts_.cut == answered;
    if (was_vain) base::cpu_relax();
    if (now_ns - ticked_ns >= ClientSession::kTickNs) {
      session.tick();
      ticked_ns = now_ns;
    }
  }
  if (!session.is_open()) return Status::error("the session was lost");
  counts_.messages += session.counters().sum().messages.get() - messages_before;
  if (counts_.wrong != wrong_before) return Status::error("wrong answers");
  return Status::ok();
}

// False: no credit.
bool Driver::send_drawn(ClientSession& session) {
  op::Op op;
  items_.peek(op);
  Judge* const judge = append(session, op);
  if (judge != nullptr) judge->expect(items_.take());
  return judge != nullptr;
}

bool Driver::send_fill(ClientSession& session) {
  op::Op op;
  items_.peek_fill(filled_, op);
  Judge* const judge = append(session, op);
  if (judge != nullptr) judge->expect(Sent(filled_++, false, true));
  return judge != nullptr;
}

// Returns the Judge of its answer; null: no credit.
Driver::Judge* Driver::append(ClientSession& session, const op::Op& op) {
  rpc::ClientLane& lane =
      session.lanes().count() == 1 ? session.lanes()[0] : session.lanes().of(session.lanes().hash(op.key));
  Judge* const judge = judges_[lane.number()].get();
  if (!lane.append(op, judge)) return nullptr;
  if (ops_per_message_ != 0 && ++judge->in_open_message >= ops_per_message_) {
    lane.seal();
    judge->in_open_message = 0;
  }
  return judge;
}

}  // namespace egret::bench_rpc
