// The nodes of one host for one run: each in a thread of its own, which makes it, takes its steps and lets it go. The host's
// own thread begins a step for all of them, and takes what they have brought when all have done it.
//
//   host's thread:    begin(step) ─▶ is_done? … ─▶ take() ─▶ begin(next step) …
//   a node's thread:  waits ─▶ its step ─▶ waits …            during kWork: work.run, with a Seat
//
// A node whose step fails takes no more but kEnd; the others go on until the host's thread says so.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "bench_paradigms/session/bodies.h"
#include "bench_paradigms/session/session.h"

namespace egret::bench_paradigms {

using MakeFabric = std::function<base::Expected<std::unique_ptr<Fabric>>(NodeId node, const Capabilities& all)>;

// What all nodes of a crew are made from. Outlives it.
struct Making {
  const Paradigm& paradigm;
  const Order& order;
  const Plan& plan;  // with the keys
  const Capabilities& capabilities;
  const MakeFabric& make_fabric;
  NodeWork& work;
};

// The phases of all nodes of this host: which they have come to the end of, and which all nodes of all hosts have.
class Phases {
 public:
  explicit Phases(size_t nodes) : arrived_(nodes) {}

  // A node's thread: its number of phases that it is through with. One that has left holds up nobody.
  void arrive(size_t index) { arrived_[index].fetch_add(1, std::memory_order_release); }
  void leave(size_t index) { arrived_[index].store(kLeft, std::memory_order_release); }
  bool is_open(uint64_t phase) const { return open_.load(std::memory_order_acquire) >= phase; }
  bool is_broken() const { return is_broken_.load(std::memory_order_relaxed); }

  // The host's thread: phases that all of its nodes are through with; and that all nodes everywhere are.
  uint64_t arrived() const;
  void open(uint64_t phases) { open_.store(phases, std::memory_order_release); }
  uint64_t opened() const { return open_.load(std::memory_order_relaxed); }
  void break_up() { is_broken_.store(true, std::memory_order_relaxed); }

  static constexpr uint64_t kLeft = ~uint64_t{0};

 private:
  std::vector<std::atomic<uint64_t>> arrived_;  // by own node
  std::atomic<uint64_t> open_{0};
  std::atomic<bool> is_broken_{false};
};

class Crew {
 public:
  Crew(const Making& making, const std::vector<NodeId>& nodes);
  // Breaks the work up, has the nodes go, and joins the threads.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // All have done the step before. `told`: of kJoin, what all nodes have brought by kPrepare.
  void begin(Step step, std::vector<Brought> told);
  bool is_done() const { return under_way_.load(std::memory_order_acquire) == 0; }
  std::vector<Brought> take();
  Phases& phases() { return phases_; }

 private:
  struct Member {
    NodeId id = 0;
    std::unique_ptr<Fabric> fabric;
    std::unique_ptr<ServerNode> server;
    std::unique_ptr<ClientNode> client;  // one of both; goes before its fabric
    Brought brought;
    std::thread thread;

    Node& node() {
      if (server != nullptr) return *server;
      return *client;
    }
  };
  void run(size_t index);
  base::Status take_step(size_t index, Step step);
  base::Status prepare(Member& member);
  base::Status join(Member& member);
  void work(size_t index);

  const Making making_;
  Phases phases_;
  std::vector<Member> members_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t steps_ = 0;  // begun; with the next three under the mutex
  bool is_ending_ = false;
  Step step_ = Step::kPrepare;
  std::vector<Brought> told_;
  std::atomic<size_t> under_way_{0};
};

}  // namespace egret::bench_paradigms
