// The control thread's part in slots: listens where slot clients look for the proxy, hears what each wants, and gives it
// news of the pool, or its session to a worker.
//
//   accepted ─┬─ ask ───▶ PoolNews
//             └─ hello ─▶ rules, quotas ─▶ Worker::give_slots() … grant, serve, end ─▶ SlotMail ─▶ its place is free
//
// A client is known by its uid, the kernel's word. Connections that say nothing are few and short-lived; sessions are
// limited by number and memory, all and each user's. Thread: the control thread's.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "access/handshake_rate.h"
#include "access/ledger.h"
#include "base/log/log.h"
#include "base/status.h"
#include "events/event.h"
#include "proxy/proxy_state.h"
#include "proxy/slots/pool_news.h"
#include "proxy/slots/slot_session.h"

namespace egret::proxy {

class SlotDoor final : private transport::Doorkeeper {
 public:
  // Who serves a session.
  using Give = std::function<void(NewSlotSession session)>;

  SlotDoor(events::EventLoop& loop, ProxyState& proxy, Give give);
  ~SlotDoor();

  // Listens at the addresses that the configuration names, and at the twins of memcached's (slot_addresses.h). An error: a
  // named one cannot be had. Of a twin that is only logged: another user may have taken its name.
  base::Status listen(const Config& config, const std::vector<std::string>& twins);
  // Clients are let in from now on.
  void begin();
  void stop();
  // Another configuration is in force.
  void reload();
  // Another membership, or health, is in force.
  void on_pool() { news_.publish(proxy_.membership.get(), proxy_.health.get(), *proxy_.config.get()); }

 private:
  struct Place {  // where we listen
    SlotDoor* door;
    std::string address;
    std::unique_ptr<transport::Listener> listener;
    events::Event acceptable{};
    events::Event again{};  // after a pause

    void on_acceptable() { door->on_acceptable(*this); }
    void on_again() { door->begin_accepting(*this); }
  };
  struct Newcomer {
    SlotDoor* door = nullptr;
    uint64_t number = 0;
    std::unique_ptr<transport::ServerEndpoint> endpoint;
    events::Event readable{};
    bool survived_sweep = false;
    bool is_refused = false;  // until its client has had time to read why

    void on_readable() { door->on_readable(*this); }
  };

  base::Expected<std::unique_ptr<Place>> open_place(const std::string& address, const Config& config);
  void begin_accepting(Place& place);
  void on_acceptable(Place& place);
  bool accept_one(Place& place);
  void limit_newcomers();
  void sweep();
  void on_readable(Newcomer& newcomer);
  void on_frame(Newcomer& newcomer, std::span<const std::byte> frame);
  void on_hello(Newcomer& newcomer, std::span<const std::byte> frame);
  base::Expected<NewSlotSession> admit(Newcomer& newcomer, const wire::Hello& hello);
  std::string excess(const Newcomer& newcomer, const NewSlotSession& session, uint64_t bytes) const;
  void refuse(Newcomer& newcomer, const std::string& why);
  void forget(uint64_t number);
  void on_mail();
  bool lets_in(const std::string& peer_group) override;
  void charge(const std::string& peer_group) override;
  bool asks_for_proof() const override { return false; }

  events::EventLoop& loop_;
  ProxyState& proxy_;
  const Give give_;
  PoolNews news_;
  std::vector<std::unique_ptr<Place>> places_;
  std::map<uint64_t, std::unique_ptr<Newcomer>> newcomers_;
  access::Ledger ledger_;
  access::HandshakeRate rate_;
  uint64_t next_ = 1;
  events::Event mail_;
  events::Event sweep_;
};

}  // namespace egret::proxy
