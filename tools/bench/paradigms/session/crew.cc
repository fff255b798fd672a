#include "bench_paradigms/session/crew.h"

#include <algorithm>

#include <sched.h>

namespace egret::bench_paradigms {

using base::Status;

namespace {

class NodeGate final : public Gate {
 public:
  NodeGate(Phases& phases, size_t index) : phases_(phases), index_(index) {}
  void arrive() override {
    ++phase_;
    phases_.arrive(index_);
  }
  bool is_open() const override { return phases_.is_open(phase_); }
  bool is_broken() const override { return phases_.is_broken(); }

 private:
  Phases& phases_;
  const size_t index_;
  uint64_t phase_ = 0;
};

}  // namespace

void Seat::rest() const {
  if (fabric.capabilities().is_emulated) sched_yield();
}

uint64_t Phases::arrived() const {
  uint64_t least = kLeft;
  for (const auto& each : arrived_) least = std::min(least, each.load(std::memory_order_acquire));
  return least;
}

Crew::Crew(const Making& making, const std::vector<NodeId>& nodes)
    : making_(making), phases_(nodes.size()), members_(nodes.size()) {
  for (size_t i = 0; i < nodes.size(); ++i) members_[i].id = nodes[i];
  for (size_t i = 0; i < nodes.size(); ++i) members_[i].thread = std::thread([this, i] { run(i); });
}

Crew::~Crew() {
  phases_.break_up();
  {
    const std::unique_lock held(mutex_);
    is_ending_ = true;
    changed_.notify_all();
  }
  for (Member& member : members_) member.thread.join();
}

void Crew::begin(Step step, std::vector<Brought> told) {
  const std::unique_lock held(mutex_);
  step_ = step;
  told_ = std::move(told);
  under_way_.store(members_.size(), std::memory_order_release);
  ++steps_;
  changed_.notify_all();
}

std::vector<Brought> Crew::take() {
  std::vector<Brought> all;
  for (Member& member : members_) {
    all.push_back(std::move(member.brought));
    member.brought = {};
  }
  return all;
}

void Crew::run(size_t index) {
  Member& member = members_[index];
  bool has_failed = false;
  for (uint64_t taken = 0;; ++taken) {
    Step step{};
    {
      std::unique_lock held(mutex_);
      changed_.wait(held, [&] { return steps_ > taken || is_ending_; });
      if (steps_ == taken) break;
      step = step_;
    }
    member.brought.node = member.id;
    if (!has_failed || step == Step::kEnd) {
      const Status done = within_memory([&] { return take_step(index, step); });
      member.brought.error = done.message();
      has_failed = !done;
    }
    under_way_.fetch_sub(1, std::memory_order_acq_rel);
  }
  (void)take_step(index, Step::kEnd);
}

Status Crew::take_step(size_t index, Step step) {
  Member& member = members_[index];
  switch (step) {
    case Step::kPrepare:
      return prepare(member);
    case Step::kJoin:
      return join(member);
    case Step::kLoad:
      return member.node().load();
    case Step::kWork:
      work(index);
      return Status::ok();
    case Step::kEnd:
      member.server.reset();
      member.client.reset();
      member.fabric.reset();
      break;
  }
  return Status::ok();
}

Status Crew::prepare(Member& member) {
  auto fabric = making_.make_fabric(member.id, making_.capabilities);
  if (!fabric) return fabric.status();
  member.fabric = std::move(fabric.value());
  const Plan& plan = making_.plan;
  member.fabric->want_huge_pages(plan.tuning.has_huge_pages);
  if (plan.is_server(member.id)) {
    member.server = make_server(making_.paradigm, plan, member.id, *member.fabric);
  } else {
    member.client = make_client(making_.paradigm, plan, member.id, *member.fabric);
  }
  if (Status done = member.node().prepare(); !done) return done;
  member.brought.address = member.fabric->address();
  for (NodeId to = 0; to < plan.nodes(); ++to) {
    member.brought.notices.push_back(to == member.id ? std::string() : member.node().notice(to));
  }
  return Status::ok();
}

// What comes from other hosts is all there, in the nodes' order: check_prepared has seen to it.
Status Crew::join(Member& member) {
  for (NodeId from = 0; from < making_.plan.nodes(); ++from) {
    if (from == member.id) continue;
    const Brought& other = told_[from];
    if (Status done = member.node().join(from, other.address, other.notices[member.id]); !done) return done;
  }
  return Status::ok();
}

void Crew::work(size_t index) {
  Member& member = members_[index];
  NodeGate gate(phases_, index);
  Seat seat{.self = member.id,
            .paradigm = making_.paradigm,
            .order = making_.order,
            .plan = making_.plan,
            .fabric = *member.fabric,
            .server = member.server.get(),
            .client = member.client.get(),
            .gate = gate};
  member.brought.figures = making_.work.run(seat);
  phases_.leave(index);
}

}  // namespace egret::bench_paradigms
