// A program that links libegret, as an actor of a World: client::Engine beside the proxies' workers.
//
//   Model::draw_op ─▶ Engine::submit ─▶ sessions ─▶ Network, backend ─▶ Engine::poll ─▶ on_answer ─▶ Model::check_answer
//   It is asleep when Engine::arm() has returned true and Network has no event for its sessions.
//
// Its loop is that of a program with an event loop. The engine's epoll needs descriptors of the kernel, and the network's are
// plain numbers: RealDescriptors gives each endpoint eventfds that show what the network has. Single-threaded.
#pragma once

#include <memory>
#include <string>

#include "client/engine/engine.h"
#include "world.h"

namespace egret::sim {

struct LibraryOptions {
  std::string server = "sim:";  // its address is server@l<number>
  uint64_t relayed_to = 0;      // where `server` is a relay: the member's tag
  bool sleeps_always = false;   // arms after every turn; else after half of them, as the seed says
};

class SimLibrary final : public Actor, private client::AnswerSink {
 public:
  SimLibrary(World& world, uint32_t number, const LibraryOptions& options);
  ~SimLibrary();

  // One turn of the program's event loop.
  void step() override;
  bool is_asleep() const override;
  bool is_finished() const override { return submitted_ == world_.scenario.ops_per_client; }
  void end() override { engine_.reset(); }
  std::string describe() override;
  // A frozen program does nothing, as if its process were stopped.
  void freeze(bool frozen) { frozen_ = frozen; }

  rpc::ClientSession& session() { return *engine_->router().sessions().front(); }
  uint64_t sleeps() const { return sleeps_; }

 private:
  void act();
  bool is_woken() const;
  void submit();
  bool submit_one();
  void on_answer(const client::Call& call, const op::Result& result) override;

  World& world_;
  const LibraryOptions options_;
  const std::string address_;
  const client::Settings settings_;
  std::unique_ptr<client::Engine> engine_;
  std::unique_ptr<Model::Draft> draft_;
  uint32_t submitted_ = 0;
  bool waits_ = false;  // draft_ was refused: for credit, or until there is a session
  bool blocked_ = false;
  bool frozen_ = false;
  uint64_t sleeps_ = 0;
};

}  // namespace egret::sim
