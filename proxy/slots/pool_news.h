// What slot clients are told of the pool: its members when they ask, and every change as long as they stay connected.
//
//   ask ─▶ add() ─ pool, members ─▶ client … publish(): states that changed, or another pool ─▶ clients
//
// What a client's socket does not take now is sent when it does; a client that reads late is told of the latest only.
// Thread: the control thread's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/counter.h"
#include "events/event.h"
#include "pool/health.h"
#include "pool/membership.h"
#include "proxy/config.h"
#include "rpc/relay/rules.h"
#include "transport/transport.h"
#include "wire/pool_frames.h"

namespace egret::proxy {

class PoolNews {
 public:
  static constexpr size_t kMostClients = 4096;
  static constexpr size_t kMostOfOneUser = 1024;

  // `count`: how many clients there are, for people.
  PoolNews(events::EventLoop& loop, base::Gauge& count) : loop_(loop), count_(count) {}

  // A client has asked; it is told, and again whenever something changes. Empty, or why it is refused.
  std::string add(std::unique_ptr<transport::ServerEndpoint>& endpoint, op::Rights rights);
  // What is in force now. Tells the clients of what is new in it.
  void publish(std::shared_ptr<const pool::Membership> membership, std::shared_ptr<const pool::Health> health,
               const Config& config);
  void disconnect_all() {
    clients_.clear();
    count_.set(0);
  }

 private:
  struct Client {
    PoolNews* news = nullptr;
    uint64_t number = 0;
    std::unique_ptr<transport::ServerEndpoint> endpoint;
    op::Rights rights = 0;
    uint64_t told = 0;                             // the version whose head it has; 0: none
    uint64_t edition = 0;                          // likewise: edition_
    std::vector<wire::MemberState> told_states{};  // of that version's members, as far as it has them
    events::Event readable{};                      // its end
    events::Event writable{};                      // pending while its socket is full

    void on_readable() { news->on_readable(*this); }
    void on_writable() { news->tell(*this); }
  };

  void on_readable(Client& client);
  wire::MemberState state_of(const pool::Membership::Entry& member) const;
  uint8_t ways_to(const pool::Member& member) const;
  void tell(Client& client);
  bool send_all(Client& client) const;
  wire::MemberFrame frame_of(uint32_t index) const;

  events::EventLoop& loop_;
  base::Gauge& count_;
  std::map<uint64_t, std::unique_ptr<Client>> clients_;
  uint64_t next_ = 1;
  std::shared_ptr<const pool::Membership> membership_ = std::make_shared<const pool::Membership>();
  std::shared_ptr<const pool::Health> health_ = std::make_shared<const pool::Health>();
  std::vector<wire::MemberState> states_;
  uint64_t edition_ = 0;  // grows when something else of the same membership is to be told
  bool is_restricted_ = false;
  uint32_t op_timeout_ms_ = 0;
};

}  // namespace egret::proxy
