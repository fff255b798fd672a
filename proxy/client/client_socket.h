// One client's socket: receives and sends without blocking. The implementation is plain or TLS (tls.h); the caller only
// waits for what a call asks for.
//
//   receive, send ─▶ kDone, or wait first: kWantRead, kWantWrite (both calls may return either), or the end
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include <sys/uio.h>

#include "base/unique_fd.h"

namespace egret::proxy {

enum class Io : uint8_t {
  kDone,
  kWantRead,   // call again when the descriptor is readable
  kWantWrite,  // call again when it is writable
  kEnd,        // the client will send no more; it may still read
  kFailed,     // the connection is broken in both directions
};

class ClientSocket {
 public:
  explicit ClientSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}
  virtual ~ClientSocket() = default;
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  int fd() const { return fd_.get(); }
  // Whether the descriptor is its only state: then another process can take it over.
  virtual bool is_plain() const { return false; }
  base::UniqueFd take_fd() { return std::move(fd_); }
  // Tells the client that we send nothing more (shutdown). The client may still be sending.
  void end_output() const;
  // Drops what the client sends after that. False: it has ended, too.
  virtual bool drop_input() const;
  // Whether closing now could lose answers for the client: they have not arrived yet, or there is unread input, which
  // turns the close into a reset.
  bool has_undelivered() const;

  struct Transfer {
    Io io;
    size_t bytes = 0;
  };
  // kDone: received `bytes`, at least 1; if less than fit the pieces, there is no more for now (but see holds_input()).
  // Any other result: no bytes.
  virtual Transfer receive(std::span<const iovec> pieces) = 0;
  Transfer receive(char* buffer, size_t capacity) {
    const iovec piece{buffer, capacity};
    return receive({&piece, 1});
  }
  // Sends from the front of `pieces`; `bytes` says how much, whatever `io` is. kDone: everything. Else the next call
  // must begin with the bytes that this one left; they may have moved, and more may follow them.
  virtual Transfer send(std::span<const iovec> pieces) = 0;
  // Whether receive() may return something although the descriptor does not become readable.
  virtual bool holds_input() const { return false; }
  // Whether the handshake, if any, is over.
  virtual bool is_ready() const { return true; }
  // Called before an orderly close, and before a close because the handshake took too long.
  virtual void say_goodbye() {}
  virtual void tell_too_late() {}

 private:
  base::UniqueFd fd_;
};

// TCP or Unix, without TLS. A client on this host that sends descriptors along is disconnected; none of them is closed by
// this thread (base/local/peer_socket.h).
class PlainSocket final : public ClientSocket {
 public:
  explicit PlainSocket(base::UniqueFd fd);
  ~PlainSocket() override;
  bool is_plain() const override { return true; }
  using ClientSocket::receive;
  Transfer receive(std::span<const iovec> pieces) override;
  Transfer send(std::span<const iovec> pieces) override;
  bool drop_input() const override;

 private:
  Transfer receive_without_descriptors(std::span<const iovec> pieces) const;

  const bool may_bring_descriptors_;
};

}  // namespace egret::proxy
