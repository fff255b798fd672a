// One client's descriptor: bytes in, bytes out, without ever waiting. What is between the descriptor and the client's
// own bytes (nothing, or TLS: tls.h) is the implementation's affair; whoever uses it only follows what it asks for.
//
//   receive, send ─▶ kDone, or what must come first: kWantRead, kWantWrite (either of them may want either), or the end
//
// Thread: whoever holds it, one at a time.
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
  kWantRead,   // go on when the descriptor is readable
  kWantWrite,  // go on when it is writable
  kEnd,        // the client will send no more; it may still read
  kFailed,     // nothing more in either direction
};

class ClientSocket {
 public:
  explicit ClientSocket(base::UniqueFd fd) : fd_(std::move(fd)) {}
  virtual ~ClientSocket() = default;
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  int fd() const { return fd_.get(); }
  // Whether the descriptor is all there is to it: then another process can go on with it.
  virtual bool is_plain() const { return false; }
  base::UniqueFd take_fd() { return std::move(fd_); }
  // The client is told that nothing more will come. It may be told so before it stops sending.
  void end_output() const;
  // What it sends after that is dropped. False: it has ended, too.
  bool drop_input() const;
  // Whether closing now could take from the client what it has been sent: it has not arrived, or more than was read
  // came.
  bool has_undelivered() const;

  struct Transfer {
    Io io;
    size_t bytes = 0;
  };
  // kDone: `bytes` of them, at least one, and there is no more for now if that is less than `capacity` (but see
  // holds_input()). Anything else: no bytes.
  virtual Transfer receive(char* buffer, size_t capacity) = 0;
  // Sends from the front of `pieces`, `bytes` in all, whatever `io` says. kDone: that was everything. If not, the next
  // call must begin with what this one left over; it may lie elsewhere and more may follow it.
  virtual Transfer send(std::span<const iovec> pieces) = 0;
  // receive() may have something to say that no event of the descriptor will tell of.
  virtual bool holds_input() const { return false; }
  // Whether the client has got through what comes before its first byte. If not, it is on probation.
  virtual bool is_ready() const { return true; }
  // Before it is closed in peace, and when it is closed because it was not ready in time.
  virtual void say_goodbye() {}
  virtual void tell_too_late() {}

 private:
  base::UniqueFd fd_;
};

// TCP or Unix, and nothing between.
class PlainSocket final : public ClientSocket {
 public:
  using ClientSocket::ClientSocket;
  bool is_plain() const override { return true; }
  Transfer receive(char* buffer, size_t capacity) override;
  Transfer send(std::span<const iovec> pieces) override;
};

}  // namespace egret::proxy
