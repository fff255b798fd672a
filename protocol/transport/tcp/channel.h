// The bytes of one connection: a socket, and TLS over it where that is asked for. Frames go through it either way.
//
//   plain   read, send: one system call each
//   TLS     read: one system call for ciphertext, all of which is decrypted at once; send: what a flush gathers is
//           encrypted together and sent by one system call
//
// Thread: one at a time. Errors are told as the system tells them: by errno, or by failure() if TLS has one.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <sys/types.h>
#include <sys/uio.h>

#include "base/file_id.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "tls/stream.h"

namespace egret::transport::tcp {

class Channel {
 public:
  static constexpr size_t kMostAtOnce = 64 << 10;  // bytes of ciphertext that one system call reads

  void open(base::UniqueFd socket) {
    socket_ = std::move(socket);
    file_ = base::FileId::of(socket_.get());
  }
  // False: its number has become another file's, since somebody in this process has closed it.
  bool owns_socket() const { return file_ == base::FileId::of(socket_.get()); }
  void speak_tls(std::unique_ptr<tls::Stream> stream) { stream_ = std::move(stream); }
  void speak_plainly() { stream_.reset(); }
  int fd() const { return socket_.get(); }
  bool is_open() const { return socket_.is_open(); }
  bool is_plain() const { return stream_ == nullptr; }

  // Goes on with the TLS handshake. True: bytes may flow. An error: they never will.
  base::Expected<bool> greet();

  // As recv(): at least one byte, 0 at the end, or -1 and errno. Once the handshake is over.
  ssize_t receive(std::span<std::byte> into);
  // TLS only: reads what one system call gives, and hands all of it to decrypted() until that returns nothing. Whether
  // there may be more, or the end has come, is told as receive() tells it: > 0, 0, -1.
  ssize_t fill();
  std::span<const std::byte> decrypted();

  // Plain only: as readv() and writev() of a socket. A file that has its number now is left as it is.
  ssize_t receive(std::span<iovec> pieces) const;
  ssize_t send(std::span<const iovec> pieces) const;
  // TLS only: encrypts these bytes, when nothing is unsent. send_rest() sends them.
  void encrypt(std::span<const std::byte> plain) { stream_->write(plain); }
  bool has_rest() const { return stream_ != nullptr && !stream_->unsent().empty(); }
  // Whether all is sent; false: -1 of errno tells why not.
  bool send_rest();

  // Why TLS has failed; empty: it has not.
  std::string failure() const { return stream_ != nullptr ? stream_->failure() : ""; }
  std::string facts() const { return stream_ != nullptr ? ", " + stream_->facts() : ""; }

 private:
  base::UniqueFd socket_;
  base::FileId file_;                    // of socket_
  std::unique_ptr<tls::Stream> stream_;  // null: plain
};

}  // namespace egret::transport::tcp
