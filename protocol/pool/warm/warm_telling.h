// Tells members that a change of the pool is warm: from then on each remembers which keys are changed and takes fills
// (op::AdminVerb::kWarm). Before any key goes to them by the next membership.
//
//   start ─▶ an Errand for each member, kMostAtOnce at a time ─ all answered, or kMostNs are over ─▶ on_warm_told
//
// Who cannot be told takes no fills, which is safe: its keys are missed. Thread: that of the event loop.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "events/event.h"
#include "pool/errand.h"
#include "pool/health.h"
#include "pool/membership.h"

namespace egret::pool {

class WarmTellingOwner {
 public:
  // So many members were told, of so many.
  virtual void on_warm_told(size_t told, size_t members) = 0;

 protected:
  ~WarmTellingOwner() = default;
};

class WarmTelling {
 public:
  static constexpr size_t kMostAtOnce = 16;
  static constexpr uint64_t kMostNs = 1'000'000'000;

  WarmTelling(events::EventLoop& loop, const base::Clock& clock, WarmTellingOwner& owner,
              rpc::ClientSession::Connect connect = transport::connect);
  ~WarmTelling();

  // Tells all members but those that are ejected. `session`: as workers' sessions. An earlier telling is forgotten.
  void start(const Membership& membership, const Health& health, const rpc::SessionOptions& session, uint64_t seconds);
  bool is_under_way() const { return over_.pending(); }

 private:
  class Talk;

  void start_some();
  void on_over(const Talk& talk, bool is_told);
  void finish();

  events::EventLoop& loop_;
  const base::Clock& clock_;
  WarmTellingOwner& owner_;
  const rpc::ClientSession::Connect connect_;
  events::Event over_;  // pending while it is under way
  rpc::SessionOptions session_;
  uint64_t seconds_ = 0;
  std::deque<std::string> waiting_;  // addresses
  std::vector<std::unique_ptr<Talk>> talks_;
  size_t told_ = 0, members_ = 0;
};

}  // namespace egret::pool
