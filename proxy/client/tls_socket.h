// A client socket with TLS. receive() runs the handshake as far as the received bytes allow.
// Thread: its worker's.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "proxy/client/client_socket.h"
#include "proxy/report/proxy_stats.h"

struct ssl_st;

namespace egret::proxy {

class TlsSocket final : public ClientSocket {
 public:
  // Takes over `ssl`, which has no descriptor yet. `peer` is the client's name in the log.
  TlsSocket(base::UniqueFd fd, ssl_st* ssl, std::string peer, TlsCounters& counters);

  using ClientSocket::receive;
  Transfer receive(std::span<const iovec> pieces) override;
  Transfer send(std::span<const iovec> pieces) override;
  bool holds_input() const override { return holds_input_; }
  bool is_ready() const override { return is_ready_; }
  void say_goodbye() override;
  void tell_too_late() override;

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  Io shake_hands();
  Io outcome(int result);
  Io fail();
  void turn_away(std::string_view why);

  std::unique_ptr<ssl_st, Free> ssl_;
  const std::string peer_;
  TlsCounters& counters_;
  bool is_ready_ = false;  // the handshake is over
  bool has_failed_ = false;
  bool holds_input_ = false;
};

}  // namespace egret::proxy
