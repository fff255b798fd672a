// pool::Errand in virtual time: a short session of a proxy's control thread with one backend. Its owner gives it ops and
// takes the answers; nothing is tried again.
//
//   constructed ─▶ on_errand_open: send() … ─▶ on_errand_result (may send() more) … ─ all answered ─▶ on_errand_over
//                └ no session, or no answer to an op in time ─────────────────────────────────────▶ on_errand_over
//
// Single-threaded. Whoever owns it calls step(); its calls to the owner come from there. Destroying it ends it, without
// a further call; not within a call of its owner.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <string>

#include "rpc/client_session.h"

namespace egret::sim {

class PoolWorld;
class SimErrand;

class SimErrandOwner {
 public:
  virtual void on_errand_open(SimErrand& errand, uint32_t partitions) = 0;
  virtual void on_errand_result(SimErrand& errand, uint64_t tag, const op::Result& result) = 0;
  // Last call.
  virtual void on_errand_over(SimErrand& errand, bool is_ok) = 0;

 protected:
  ~SimErrandOwner() = default;
};

class SimErrand final : private rpc::SessionObserver {
 public:
  // The partition that the op's key belongs to.
  static constexpr uint32_t kOfKey = UINT32_MAX;

  // `path`: BACKEND@PROXY.
  SimErrand(PoolWorld& world, const std::string& path, SimErrandOwner& owner);
  ~SimErrand();

  // Within on_errand_open() or on_errand_result(). Key and value are copied.
  void send(const op::Op& op, uint32_t partition, uint64_t tag = 0);
  const wire::Grant& grant() const { return session_.grant(); }

  void step();
  // The owner has had its last call.
  bool is_over() const { return is_told_; }
  // Nothing happens unless time passes, or something comes in.
  bool is_asleep() const;
  // When it wants a step at the latest.
  uint64_t next_tick_ns() const { return next_tick_ns_; }

 private:
  struct Queued {
    op::Op op;  // its views are not used
    std::string key, value;
    uint32_t partition = 0;
    uint64_t tag = 0;
  };
  struct Asked final : rpc::Waiter {
    SimErrand* errand = nullptr;
    uint64_t tag = 0;
    std::list<Asked>::iterator self;
    void on_result(const op::Result& result) override;
  };

  base::Status on_session_connecting(rpc::ClientSession&) override { return base::Status::ok(); }
  base::Status on_session_open(rpc::ClientSession& session) override;
  void on_session_lost(rpc::ClientSession&, const std::string&, bool) override { finish(false); }

  void pass();
  bool send_first();
  void finish(bool is_ok);

  PoolWorld& world_;
  SimErrandOwner& owner_;
  const std::string address_;
  std::deque<Queued> queued_;
  std::list<Asked> asked_;
  uint64_t next_tick_ns_ = 0;
  bool is_open_ = false, is_over_ = false, is_ok_ = false, is_told_ = false, is_quiet_ = false;
  rpc::ClientSession session_;
};

}  // namespace egret::sim
