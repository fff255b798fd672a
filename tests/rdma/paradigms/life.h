// What the nodes of paradigms_life do in their one run: load, perhaps erase some keys, ops until there were enough of them or
// until something was met, and what became of it as JSON.
//
//   ready ─▶ holes: clients erase every Nth key ─▶ servers walk ─▶ ops ─▶ all are answered
//            clients go on to the next when they are through; servers serve in all of them
//
// A Life is all nodes' of this process. `run` is called in their threads at once.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "bench_paradigms/harness/driver.h"
#include "bench_paradigms/session/session.h"

namespace egret::bench_paradigms {

// What a run goes on for, beyond its ops.
enum class Until : uint32_t { kOps, kWrong, kRetries, kLost, kStuck };
inline constexpr size_t kUntils = 5;

// Steps that are played by all nodes instead of the ops: scenes.h.
enum class Scene : uint32_t { kNone, kMovedKey, kDiesHolding };

// Travels as it is: Order::workload.
struct Wish {
  WorkloadSpec workload;
  Load load;
  Until until = Until::kOps;  // such a thing was met in this process, too; kWrong: and no further op then
  uint32_t holes = 0;         // keys whose number is a multiple of it are erased before; 0: none
  Scene scene = Scene::kNone;
};

// The node is through with its phase; what is to be served is, until all nodes are.
void pass(Seat& seat);

class Life final : public NodeWork {
 public:
  // `progress`: path of a file of 8 bytes that holds the number of good answers so far, for the test that watches.
  // `marker`: path without its suffix; the processes of a scene create MARKER.died and MARKER.done to tell each other how far
  // they are. Empty: no such file.
  Life(std::string progress, std::string marker);

  std::string run(Seat& seat) override;
  // What the nodes of this process have returned, as JSON.
  std::string nodes();
  // For Plan::pause: servers wait so long after some of a change's steps, but not while they load.
  void pause(uint32_t microseconds);

 private:
  // Of all clients of this process together.
  struct Met {
    std::array<std::atomic<uint64_t>, kUntils> sums{};
    std::atomic<uint64_t>& operator[](Until kind) { return sums[static_cast<size_t>(kind)]; }
  };
  class Look;
  Knowledge& knowledge_of(const Wish& wish, uint32_t keys);
  std::string serve(Seat& seat, const Wish& wish);
  std::string drive(Seat& seat, const Wish& wish);
  void erase_holes(Seat& seat, const Wish& wish, Knowledge& knowledge) const;

  const std::string marker_;
  uint64_t* progress_ = nullptr;
  std::atomic<bool> has_loaded_{false};
  std::atomic<uint64_t> steps_{0};  // of changes
  Met met_;
  std::mutex mutex_;  // for the next two
  std::unique_ptr<Knowledge> knowledge_;
  std::string nodes_;
};

std::string to_json(const VerbCounts& counts);

}  // namespace egret::bench_paradigms
