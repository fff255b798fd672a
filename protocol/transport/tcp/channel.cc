#include "transport/tcp/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/socket.h>

namespace egret::transport::tcp {

using base::Expected;
using base::Status;

namespace {

// One read of ciphertext, and one record of plaintext. Empty again when the calls that use them return, or kept by the
// stream, so all connections of a thread share them.
thread_local std::array<std::byte, Channel::kMostAtOnce> t_ciphertext;
thread_local std::array<std::byte, tls::Stream::kMostPerRecord> t_record;

constexpr int kMostReads = 16;  // of a handshake that comes without a pause; it has two or three flights

}  // namespace

Expected<bool> Channel::greet() {
  if (stream_ == nullptr || stream_->is_open()) return true;
  for (int reads = 0; reads < kMostReads; ++reads) {
    const bool goes_well = stream_->shake_hands();
    stream_->keep();
    // What a handshake sends fits any socket's buffer, unless the peer does not take it.
    const bool is_sent = send_rest();
    if (!goes_well) {
      const std::string& why = stream_->failure();
      return Status::error("TLS: " + (why.empty() ? "the peer closed the connection" : why));
    }
    if (!is_sent) return Status::system_error("TLS: cannot send the handshake", errno);
    if (stream_->is_open()) return true;
    const ssize_t got = ::recv(socket_.get(), t_ciphertext.data(), t_ciphertext.size(), MSG_DONTWAIT);
    if (got == 0) return Status::error("TLS: the peer closed the connection");
    if (got < 0) {
      if (errno == EAGAIN || errno == EINTR) return false;
      return Status::system_error("TLS: the connection broke", errno);
    }
    stream_->put(std::span(t_ciphertext).first(static_cast<size_t>(got)));
  }
  return Status::error("TLS: the handshake is too long");
}

ssize_t Channel::receive(std::span<std::byte> into) {
  if (stream_ == nullptr) return ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  for (;;) {
    const size_t had = stream_->read(into);
    stream_->keep();
    if (had > 0) return static_cast<ssize_t>(had);
    if (stream_->is_closed()) return 0;
    if (!stream_->failure().empty()) {
      errno = EPROTO;
      return -1;
    }
    const ssize_t got = ::recv(socket_.get(), t_ciphertext.data(), t_ciphertext.size(), MSG_DONTWAIT);
    if (got <= 0) return got;
    stream_->put(std::span(t_ciphertext).first(static_cast<size_t>(got)));
  }
}

ssize_t Channel::fill() {
  const ssize_t got = ::recv(socket_.get(), t_ciphertext.data(), t_ciphertext.size(), MSG_DONTWAIT);
  if (got > 0) stream_->put(std::span(t_ciphertext).first(static_cast<size_t>(got)));
  return got;
}

std::span<const std::byte> Channel::decrypted() {
  return std::span(t_record).first(stream_->read(t_record));
}

ssize_t Channel::receive(std::span<iovec> pieces) const {
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = pieces.size();
  return ::recvmsg(socket_.get(), &message, MSG_DONTWAIT);
}

ssize_t Channel::send(std::span<const iovec> pieces) const {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(pieces.data());
  message.msg_iovlen = pieces.size();
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Channel::send_rest() {
  while (has_rest()) {
    const auto rest = stream_->unsent();
    const ssize_t sent = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    stream_->sent(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    if (sent < 0) return false;
  }
  return true;
}

}  // namespace egret::transport::tcp
