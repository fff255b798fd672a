// Decides who the members of the pool are, and when keys go by the new ones.
//
//   addresses, names, file ─▶ Directory ─▶ change() ─▶ `joining`: workers open sessions ─ all have, or kMostWaitNs ─▶
//   tell(): members are told, and remove what is not theirs ─▶ tell_warm(): that the change is warm ─▶ finish():
//   `membership` ─ workers are fenced ─▶ values move with their keys, for warm_for (pool/warm)
//
// So no key fails because its new owner has no session yet, all workers move keys within a moment, and no backend serves
// what it still holds of keys that come back to it.
// It also has the members watched, and tells workers, log and statistics who is ejected.
//
// Thread: the control thread's; a timer of its loop is pending while workers open sessions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "discovery/directory.h"
#include "events/event.h"
#include "pool/change/teller.h"
#include "pool/gutter/gutter_watch.h"
#include "pool/health_watch.h"
#include "pool/warm/warm_telling.h"
#include "proxy/proxy_state.h"

namespace egret::proxy {

class Worker;

class PoolControl final : private discovery::DirectoryObserver,
                          private pool::HealthObserver,
                          private pool::GutterObserver,
                          private pool::WarmTellingOwner,
                          private pool::TellerObserver {
 public:
  // A new member that gives no session gets its keys after so long all the same: they are its own.
  static constexpr uint64_t kMostWaitNs = 2'000'000'000;

  // `on_pool`: called when another membership, or another health, is in force.
  PoolControl(
      events::EventLoop& loop, ProxyState& proxy, const std::vector<std::unique_ptr<Worker>>& workers,
      std::function<void()> on_pool = [] {});

  // At the start, before there are workers. Members that are written out or in a file are there at once; names are
  // resolved by the loop.
  void begin(const Config& config);
  // Whether each name was resolved, or could not be.
  bool is_settled() const { return directory_->is_settled(); }
  // Another list, file or placement; names are resolved again.
  void reload(const Config& config);

 private:
  void on_members(discovery::Directory& directory) override;
  void on_problems(discovery::Directory& directory) override;
  void on_health() override;
  void on_verdict(const pool::Membership::Entry& member, const pool::HealthJudge::Verdict& verdict) override;
  void on_failed_probe(const pool::Membership::Entry& member, const std::string& why) override;
  void on_absence() override { health_.publish(); }
  bool have_all_taken() const override;
  bool have_all_fenced() const override;
  void ask_gutter() override;
  std::shared_ptr<const pool::Listing> listing() const override { return proxy_.gutter_listing.get(); }
  void on_looked(const pool::Membership::Entry& owner, uint64_t keys, bool is_flush) override;
  void on_stood_in(const pool::Membership::Entry& owner) override;
  void on_cleared(const pool::Membership::Entry& owner, uint64_t keys, bool is_flush) override;
  void on_not_entered(const pool::Membership::Entry& gutter, const std::string& why) override;
  void on_told() override;
  void on_held_back(const pool::Member& member, const std::string& why) override;
  void on_let_in(const pool::Member& member) override;
  void on_not_told(const pool::Member& member, const std::string& why) override;

  // A change goes through these phases, one after the other.
  enum class Phase : uint8_t { kNone, kOpening, kTelling };
  void take(const Config& config);
  void on_warm_told(size_t told, size_t members) override;
  void change();
  void open();
  void look();
  void tell();
  bool tell_warm();
  void finish();
  void begin_warm_phase();
  void look_at_warm_phase();
  void set_warm_phase(pool::WarmPhase phase);

  events::EventLoop& loop_;
  ProxyState& proxy_;
  const std::vector<std::unique_ptr<Worker>>& workers_;
  const std::function<void()> on_pool_;
  std::unique_ptr<discovery::Directory> directory_;
  pool::Teller teller_;
  pool::GutterWatch failover_;
  pool::HealthWatch health_;  // calls those two until its end
  pool::PlacementRule rule_ = pool::PlacementRule::kKetama;
  std::vector<pool::Member> gutter_;   // the configuration's
  std::vector<std::string> problems_;  // that were logged
  Phase phase_ = Phase::kNone;
  std::shared_ptr<const pool::Membership> next_;  // from kTelling on
  events::Event look_;                            // pending while sessions are waited for
  uint64_t deadline_ns_ = 0;
  pool::WarmTelling warm_telling_;  // under way after the workers are ready
  uint64_t warm_told_ = 0;          // the version of the members that were told last
  events::Event look_at_warm_;      // pending while a warm phase is on
  uint64_t warm_until_ns_ = 0;
};

}  // namespace egret::proxy
