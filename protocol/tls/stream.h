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
struct x509_store_ctx_st;

namespace egret::tls {

class Stream {
 public:
  static constexpr size_t kMostPerRecord = 16 << 10;  // bytes of plaintext

  // Takes over `ssl`, which knows which side it is. `names`: one of which the peer's certificate must be for; empty: any.
  Stream(ssl_st* ssl, std::vector<std::string> names, uint64_t records_per_key);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Ciphertext that came. It may lie anywhere until the next call of put(); what the handshake or read() has not taken by
  // keep() is kept.
  void put(std::span<const std::byte> ciphertext) { incoming_ = ciphertext; }
  void keep();

  // Goes on with the handshake. False: it has failed, or the connection has; see failure().
  bool shake_hands();
  bool is_open() const { return is_open_; }
  // Decrypts into `plain` what came; returns how many bytes. 0: more has to come, the peer has closed, or it failed.
  size_t read(std::span<std::byte> plain);
  bool is_closed() const { return is_closed_; }
  // Why it failed; empty: it has not.
  const std::string& failure() const { return failure_; }

  // Encrypts; only when nothing is unsent. What comes of it is to be sent before this thread uses another Stream.
  void write(std::span<const std::byte> plain);
  // Ciphertext to be sent, also after shake_hands() and read(). Valid until the next call of anything else.
  std::span<const std::byte> unsent() const;
  // So many of these bytes are sent; the others are kept here.
  void sent(size_t bytes);

  // Of a connection that is open, for the log: "TLS 1.3, TLS_AES_128_GCM_SHA256, certificate of CN=...".
  std::string facts() const;

 private:
  friend struct StreamBio;

  size_t take(std::byte* into, size_t room);
  static int judge(int is_good, x509_store_ctx_st* judged);
  bool outcome(int result);

  struct Free {
    void operator()(ssl_st* ssl) const;
  };
  const std::vector<std::string> names_;
  const uint64_t records_per_key_;
  std::unique_ptr<ssl_st, Free> ssl_;
  std::vector<std::byte> kept_;  // ciphertext that came before incoming_
  size_t kept_at_ = 0;
  std::span<const std::byte> incoming_;
  std::span<const std::byte> fresh_;  // to be sent, in this thread's buffer
  std::vector<std::byte> left_;       // to be sent before that
  size_t left_at_ = 0;
  uint64_t records_ = 0;  // written
  bool is_open_ = false;
  bool is_closed_ = false;
  std::string failure_;
};

}  // namespace egret::tls
