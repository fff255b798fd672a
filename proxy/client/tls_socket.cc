#include "proxy/client/tls_socket.h"

#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "base/log/log.h"
#include "proxy/log_events.h"
#include "tls/files.h"

namespace egret::proxy {

namespace {
// A read ends where a record or a piece of memory does: more than fill a worker's buffer, or the pieces of a large value.
constexpr int kReadsPerReceive = 32;
}  // namespace

// OpenSSL stores errors in a queue per thread, and takes leftover errors for new ones: every path that fails must clear
// the queue.

void TlsSocket::Free::operator()(ssl_st* ssl) const {
  SSL_free(ssl);
}

TlsSocket::TlsSocket(base::UniqueFd fd, ssl_st* ssl, std::string peer, TlsCounters& counters)
    : ClientSocket(std::move(fd)), ssl_(ssl), peer_(std::move(peer)), counters_(counters) {
  EGRET_CHECK(SSL_set_fd(ssl, this->fd()) == 1);
  SSL_set_accept_state(ssl);
}

Io TlsSocket::shake_hands() {
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) return outcome(result);
  is_ready_ = true;
  if (!SSL_session_reused(ssl_.get())) counters_.new_sessions.add(1);
  return Io::kDone;
}

// Reads record after record until the pieces are full, the descriptor is empty, or kReadsPerReceive were done.
ClientSocket::Transfer TlsSocket::receive(std::span<const iovec> pieces) {
  holds_input_ = false;
  size_t total = 0;
  size_t filled = 0;  // of pieces.front()
  Io io = is_ready_ ? Io::kDone : shake_hands();
  for (int reads = 0; reads < kReadsPerReceive && !pieces.empty() && io == Io::kDone; ++reads) {
    const iovec& piece = pieces.front();
    size_t got = 0;
    const int result =
        SSL_read_ex(ssl_.get(), static_cast<char*>(piece.iov_base) + filled, piece.iov_len - filled, &got);
    if (result != 1) {
      io = outcome(result);
      break;
    }
    total += got;
    filled += got;
    if (filled < piece.iov_len) continue;
    pieces = pieces.subspan(1);
    filled = 0;
  }
  if (total == 0) return {io};
  // There may be the rest of a record, more records, or an end or error for the next call.
  holds_input_ = io == Io::kDone ? !pieces.empty() || SSL_has_pending(ssl_.get()) == 1 : io != Io::kWantRead;
  return {Io::kDone, total};
}

ClientSocket::Transfer TlsSocket::send(std::span<const iovec> pieces) {
  size_t total = 0;
  for (const iovec& piece : pieces) {
    size_t done = 0;
    while (done < piece.iov_len) {
      size_t sent = 0;
      const int result =
          SSL_write_ex(ssl_.get(), static_cast<const char*>(piece.iov_base) + done, piece.iov_len - done, &sent);
      if (result != 1) {
        const Io io = outcome(result);
        return {io == Io::kEnd ? Io::kFailed : io, total};
      }
      done += sent;
      total += sent;
    }
  }
  return {Io::kDone, total};
}

Io TlsSocket::outcome(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Io::kWantRead;
    case SSL_ERROR_WANT_WRITE:
      return Io::kWantWrite;
    case SSL_ERROR_ZERO_RETURN:
      return is_ready_ ? Io::kEnd : fail();
    default:
      return fail();
  }
}

// A broken connection is not logged; it is counted if it was in the handshake. Other failures are logged.
Io TlsSocket::fail() {
  const std::string why = tls::take_reason(*ssl_);
  if (std::exchange(has_failed_, true)) return Io::kFailed;
  if (!why.empty()) {
    turn_away(why);
  } else if (!is_ready_ && BIO_number_read(SSL_get_rbio(ssl_.get())) > 0) {
    counters_.handshake_errors.add(1);
  }
  return Io::kFailed;
}

void TlsSocket::turn_away(std::string_view why) {
  static base::LogLimit handshake_limit;
  static base::LogLimit connection_limit;  // separate, so that failed handshakes of strangers do not suppress these
  (is_ready_ ? counters_.protocol_errors : counters_.handshake_errors).add(1);
  base::log_limited(is_ready_ ? connection_limit : handshake_limit,
                    is_ready_ ? kTlsConnectionFailed : kTlsHandshakeFailed, "tls: {} with client {} failed: {}",
                    is_ready_ ? "connection" : "handshake", base::field("client", peer_), base::field("why", why));
}

void TlsSocket::say_goodbye() {
  if (!is_ready_ || has_failed_) return;
  SSL_shutdown(ssl_.get());  // sends close_notify if there is room; does not wait for the client's
  ERR_clear_error();
}

void TlsSocket::tell_too_late() {
  turn_away("it took too long");
  has_failed_ = true;
}

}  // namespace egret::proxy
