// Purges owners that this process never lost of what others, which had lost them, have changed in the gutter: so what is
// read there is not old for long. One process purges for all: it tells the gutter up to where.
//
//   Listing (lister.h) ─▶ on_listing(): owners whose changes nobody has purged ─▶ read ─▶ purge the owner ─▶ mark
//
// An owner that is absent here is left to its Failover. Pure logic is in dialogue.h; this drives it by errands.
//
// Thread: the control thread's, on its event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "events/event.h"
#include "pool/gutter/dialogue.h"
#include "pool/gutter/lister.h"

namespace egret::pool {

class LooksObserver {
 public:
  // The owner was purged of so many keys, or of everything.
  virtual void on_looked(const Membership::Entry& owner, uint64_t keys, bool is_flush) = 0;

 protected:
  ~LooksObserver() = default;
};

class Looks {
 public:
  Looks(events::EventLoop& loop, const base::Clock& clock, LooksObserver& observer,
        rpc::ClientSession::Connect connect = transport::connect);
  ~Looks();

  void set_options(const rpc::SessionOptions& session) { session_ = session; }
  void set_membership(std::shared_ptr<const Membership> membership);
  // `is_absent`: whether an owner is left out. What is under way is not begun again.
  void on_listing(const Listing& listing, const std::function<bool(const MemberStats&)>& is_absent);

 private:
  class Look;
  using Pair = std::pair<const MemberStats*, const MemberStats*>;  // owner, gutter

  const Membership::Entry* entry_of(const MemberStats* member) const;

  events::EventLoop& loop_;
  const base::Clock& clock_;
  LooksObserver& observer_;
  const rpc::ClientSession::Connect connect_;
  rpc::SessionOptions session_;
  std::shared_ptr<const Membership> membership_ = std::make_shared<const Membership>();
  std::map<uint64_t, const MemberStats*> by_tag_;
  std::map<Pair, std::unique_ptr<Look>> looks_;  // under way
};

}  // namespace egret::pool
