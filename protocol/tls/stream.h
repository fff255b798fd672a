// TLS over bytes that somebody else carries: ciphertext in, plaintext out, and the other way round. It knows no socket.
//
//   put(what came) ─▶ shake_hands() … until is_open() ─▶ read() until it gives nothing
//   write(plaintext) ─▶ unsent() ─▶ sent(bytes that the socket took)
//
// Each side takes another key after so many records, since a session may last for years. What one put() brings is
// used up by the calls that follow it: nothing waits in here that no further bytes would wake. Thread: one at a time.
// Calls allocate nothing once the handshake is over, except for ciphertext that a full socket leaves here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct ssl_st;

namespace egret::tls {

// An interface, so that who carries the bytes links without OpenSSL.
class Stream {
 public:
  static constexpr size_t kMostPerRecord = 16 << 10;  // bytes of plaintext

  virtual ~Stream() = default;

  // Ciphertext that came. It may lie anywhere until the next call of put(); what the handshake or read() has not taken by
  // keep() is kept.
  virtual void put(std::span<const std::byte> ciphertext) = 0;
  virtual void keep() = 0;

  // Goes on with the handshake. False: it has failed, or the connection has; see failure().
  virtual bool shake_hands() = 0;
  virtual bool is_open() const = 0;
  // Decrypts into `plain` what came; returns how many bytes. 0: more has to come, the peer has closed, or it failed.
  virtual size_t read(std::span<std::byte> plain) = 0;
  virtual bool is_closed() const = 0;
  // Why it failed; empty: it has not.
  virtual const std::string& failure() const = 0;

  // Encrypts; only when nothing is unsent. What comes of it is to be sent before this thread uses another Stream.
  virtual void write(std::span<const std::byte> plain) = 0;
  // Ciphertext to be sent, also after shake_hands() and read(). Valid until the next call of anything else.
  virtual std::span<const std::byte> unsent() const = 0;
  // So many of these bytes are sent; the others are kept here.
  virtual void sent(size_t bytes) = 0;

  // Of a connection that is open, for the log: "TLS 1.3, TLS_AES_128_GCM_SHA256, certificate of CN=...".
  virtual std::string facts() const = 0;
};

// Takes over `ssl`, which knows which side it is. `names`: one of which the peer's certificate must be for; empty: any.
std::unique_ptr<Stream> make_stream(ssl_st* ssl, std::vector<std::string> names, uint64_t records_per_key);

}  // namespace egret::tls
