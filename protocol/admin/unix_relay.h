// Stands between a client at a Unix socket and libmicrohttpd, where the kernel lets descriptors through
// (base/local/peer_socket.h): libmicrohttpd reads as from any socket, and then this thread would close what a client has
// sent along, for as long as that client likes.
//
//   client ── receive_from_peer() ─▶ requests ── send() ─▶ [socket pair] ─▶ libmicrohttpd
//          ◀── send() ─────────────── answers ◀── recv() ──              ◀──
//
// A client that sends descriptors is disconnected. The end of libmicrohttpd's side, and what goes wrong, end both.
// Thread: the event loop's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include <sys/types.h>

#include "base/unique_fd.h"
#include "events/event.h"

namespace egret::admin {

class UnixRelay {
 public:
  // `ended` is called by the loop when there is nothing more to carry, and may destroy the relay. Null: the system has
  // no descriptors left; the client is disconnected.
  static std::unique_ptr<UnixRelay> begin(events::EventLoop& loop, base::UniqueFd client,
                                          std::function<void(UnixRelay&)> ended);
  ~UnixRelay();

  // libmicrohttpd's end, once.
  base::UniqueFd take_server_end() { return std::move(servers_); }
  // libmicrohttpd has closed its end: delivers what it has answered, as far as the client takes it without waiting.
  void deliver() { move(answers_); }

 private:
  enum class Moved : uint8_t { kWaits, kOver, kFailed };
  // One direction.
  struct Half {
    UnixRelay* relay = nullptr;
    int from = -1, to = -1;
    bool is_over = false;  // nothing more comes
    size_t begin = 0, end = 0;
    events::Event readable, writable;
    std::array<std::byte, 16 * 1024> bytes;

    void on_ready() { relay->go_on(*this); }
  };

  UnixRelay(base::UniqueFd client, std::function<void(UnixRelay&)> ended);
  bool open(events::EventLoop& loop);
  void go_on(Half& half);
  Moved move(Half& half);
  ssize_t receive(Half& half);

  base::UniqueFd client_, ours_, servers_;
  const std::function<void(UnixRelay&)> ended_;
  Half requests_, answers_;
};

}  // namespace egret::admin
