// What the proxy of this host says of its pool: who the members are, how each may be reached, which of them serve.
//
//   begin() ─ ask ─▶ egret-proxy ─ pool, its members, states ─▶ hear() … kPool: pool() is another one │ kState: a member's
//      ▲                                                                                              └ kEnd: end(), and again
//      └──────────────── after a pause, doubled with each attempt ────────────────────────────────────┘
//
// Every frame is checked; what is wrong ends the connection. The pool that was told last stays in force meanwhile.
// Source: protocol/wire/slots-of-a-proxy.md. Thread: the client's. Owned by an engine, which watches fd().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "rpc/client_session.h"
#include "rpc/session_options.h"
#include "transport/transport.h"
#include "wire/pool_frames.h"

namespace egret::client {

class ProxyNews {
 public:
  enum class Heard : uint8_t { kNothing, kPool, kState, kEnd };
  struct Pool {
    wire::PoolHead head;
    std::vector<wire::MemberFrame> members;  // in the order of placement
  };

  // `addresses`: where the proxy may listen, in the order in which they are tried.
  ProxyNews(std::vector<std::string> addresses, const rpc::SessionOptions& options, const base::Clock& clock,
            rpc::ClientSession::Connect connect);

  // Asks, if nobody does and it is time to. True: fd() is a new one.
  bool begin();
  // -1: there is no connection.
  int fd() const { return endpoint_ != nullptr ? endpoint_->control_fd() : -1; }
  // To be called until kNothing or kEnd.
  Heard hear();
  // Drops the connection; no longer watch fd() when it is called. `is_ours` false: the program has closed the descriptor, whose number
  // may be another file's by now, so it is not closed again.
  void end(bool is_ours);

  // An answer is awaited, and nothing was told yet.
  bool is_asking() const { return endpoint_ != nullptr && pool_.head.version == 0 && clock_.now_ns() < deadline_ns_; }
  // Version 0: nothing was told yet.
  const Pool& pool() const { return pool_; }
  uint32_t changed_member() const { return changed_member_; }  // after kState
  // Where the pool was told, for sessions that go through the proxy.
  const std::string& address() const { return address_; }
  // Why there is no connection.
  const std::string& why() const { return why_; }

 private:
  Heard take(std::span<const std::byte> frame);
  Heard take_head(const wire::PoolHead& head);
  Heard take_member(wire::MemberFrame member);
  Heard take_state(const wire::MemberStateFrame& state);
  Heard fail(std::string why);
  Heard adopt();

  const std::vector<std::string> addresses_;
  const rpc::SessionOptions options_;
  const base::Clock& clock_;
  const rpc::ClientSession::Connect connect_;
  std::unique_ptr<transport::ClientEndpoint> endpoint_;
  Pool pool_;
  Pool coming_;  // its head has come, and some of its members
  bool is_coming_ = false;
  bool has_spoken_ = false;  // on this connection
  uint32_t changed_member_ = 0;
  uint64_t deadline_ns_ = 0;  // of the answer
  uint64_t again_ns_ = 0;     // when the next attempt may be
  uint64_t pause_ns_ = 0;
  std::string address_, why_;
};

}  // namespace egret::client
