#include "tls/stream.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/check.h"
#include "tls/files.h"

namespace egret::tls {

namespace {

// What one write() makes of what a flush gathers: records, with their heads and tags.
constexpr size_t kCiphertext = 72 << 10;
thread_local std::vector<std::byte> t_ciphertext;

// A subjectAltName: a DNS name or, if it is one, an address. The subject's common name counts for nothing.
bool is_for(X509* certificate, const std::string& name) {
  constexpr unsigned kRules = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  return X509_check_ip_asc(certificate, name.c_str(), 0) == 1 ||
         X509_check_host(certificate, name.c_str(), name.size(), kRules, nullptr) == 1;
}

class SslStream final : public Stream {
 public:
  SslStream(ssl_st* ssl, std::vector<std::string> names, uint64_t records_per_key);

  void put(std::span<const std::byte> ciphertext) override { incoming_ = ciphertext; }
  void keep() override;
  bool shake_hands() override;
  bool is_open() const override { return is_open_; }
  size_t read(std::span<std::byte> plain) override;
  bool is_closed() const override { return is_closed_; }
  const std::string& failure() const override { return failure_; }
  void write(std::span<const std::byte> plain) override;
  std::span<const std::byte> unsent() const override;
  void sent(size_t bytes) override;
  std::string facts() const override;

 private:
  friend struct StreamBio;

  size_t take(std::byte* into, size_t room);
  static int judge(int is_good, X509_STORE_CTX* judged);
  bool outcome(int result);

  struct Free {
    void operator()(ssl_st* ssl) const { SSL_free(ssl); }
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

// OpenSSL's view of a Stream. OpenSSL takes a record piece by piece and keeps it until it is whole.
struct StreamBio {
  static int read(BIO* bio, char* into, int room) {
    BIO_clear_retry_flags(bio);
    SslStream& stream = *static_cast<SslStream*>(BIO_get_data(bio));
    const size_t got = stream.take(reinterpret_cast<std::byte*>(into), static_cast<size_t>(std::max(room, 0)));
    if (got > 0) return static_cast<int>(got);
    BIO_set_retry_read(bio);
    return -1;
  }
  static int write(BIO* bio, const char* from, int length) {
    BIO_clear_retry_flags(bio);
    const auto* const bytes = reinterpret_cast<const std::byte*>(from);
    t_ciphertext.insert(t_ciphertext.end(), bytes, bytes + length);
    return length;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static BIO_METHOD* method() {
    static BIO_METHOD* const made = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "egret stream");
      EGRET_CHECK(fresh != nullptr);
      BIO_meth_set_read(fresh, &StreamBio::read);
      BIO_meth_set_write(fresh, &StreamBio::write);
      BIO_meth_set_ctrl(fresh, &StreamBio::control);
      return fresh;
    }();
    return made;
  }
};

SslStream::SslStream(ssl_st* ssl, std::vector<std::string> names, uint64_t records_per_key)
    : names_(std::move(names)), records_per_key_(records_per_key), ssl_(ssl) {
  BIO* const bio = BIO_new(StreamBio::method());
  EGRET_CHECK(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_ex_data(ssl, 0, this);
  SSL_set_verify(ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, &SslStream::judge);
}

// OpenSSL's word on a certificate of the chain stands; the peer's own must be for one of the names, too. (OpenSSL's own
// check wants every kind of name that it was given, and knows one address.)
int SslStream::judge(int is_good, X509_STORE_CTX* judged) {
  if (is_good != 1 || X509_STORE_CTX_get_error_depth(judged) != 0) return is_good;
  const auto* const ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(judged, SSL_get_ex_data_X509_STORE_CTX_idx()));
  const SslStream& stream = *static_cast<const SslStream*>(SSL_get_ex_data(ssl, 0));
  X509* const certificate = X509_STORE_CTX_get_current_cert(judged);
  const auto fits = [&](const std::string& name) { return is_for(certificate, name); };
  if (stream.names_.empty() || std::ranges::any_of(stream.names_, fits)) return 1;
  X509_STORE_CTX_set_error(judged, X509_V_ERR_HOSTNAME_MISMATCH);
  return 0;
}

size_t SslStream::take(std::byte* into, size_t room) {
  if (kept_at_ < kept_.size()) {
    const size_t bytes = std::min(room, kept_.size() - kept_at_);
    std::memcpy(into, kept_.data() + kept_at_, bytes);
    kept_at_ += bytes;
    if (kept_at_ == kept_.size()) {
      kept_.clear();
      kept_at_ = 0;
    }
    return bytes;
  }
  const size_t bytes = std::min(room, incoming_.size());
  if (bytes > 0) std::memcpy(into, incoming_.data(), bytes);
  incoming_ = incoming_.subspan(bytes);
  return bytes;
}

void SslStream::keep() {
  kept_.insert(kept_.end(), incoming_.begin(), incoming_.end());
  incoming_ = {};
}

// Whether the connection may go on after a call that did not succeed.
bool SslStream::outcome(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return true;
    case SSL_ERROR_ZERO_RETURN:
      is_closed_ = true;
      return true;
    default: {
      std::string why = take_reason(*ssl_);
      failure_ = why.empty() ? "TLS failed" : std::move(why);
      return false;
    }
  }
}

bool SslStream::shake_hands() {
  if (!failure_.empty()) return false;
  t_ciphertext.clear();
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  left_.insert(left_.end(), t_ciphertext.begin(), t_ciphertext.end());  // an alert, too
  if (result != 1) return outcome(result) && !is_closed_;
  is_open_ = true;
  return true;
}

size_t SslStream::read(std::span<std::byte> plain) {
  if (!failure_.empty() || is_closed_) return 0;
  t_ciphertext.clear();
  ERR_clear_error();
  size_t got = 0;
  const int result = SSL_read_ex(ssl_.get(), plain.data(), plain.size(), &got);
  if (!t_ciphertext.empty()) left_.insert(left_.end(), t_ciphertext.begin(), t_ciphertext.end());
  if (result == 1) return got;
  outcome(result);
  return 0;
}

void SslStream::write(std::span<const std::byte> plain) {
  EGRET_DCHECK(unsent().empty());
  if (!failure_.empty()) return;
  if (t_ciphertext.capacity() == 0) t_ciphertext.reserve(kCiphertext);
  t_ciphertext.clear();
  ERR_clear_error();
  while (!plain.empty()) {
    if (++records_ % records_per_key_ == 0) SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
    size_t done = 0;
    const int result = SSL_write_ex(ssl_.get(), plain.data(), std::min(plain.size(), kMostPerRecord), &done);
    if (result != 1) {
      outcome(result);
      break;
    }
    plain = plain.subspan(done);
  }
  fresh_ = t_ciphertext;
}

std::span<const std::byte> SslStream::unsent() const {
  return left_.empty() ? fresh_ : std::span(left_).subspan(left_at_);
}

void SslStream::sent(size_t bytes) {
  if (!left_.empty()) {
    left_at_ += bytes;
    if (left_at_ < left_.size()) return;
    left_ = {};
    left_at_ = 0;
    return;
  }
  const auto rest = fresh_.subspan(bytes);
  left_.assign(rest.begin(), rest.end());
  fresh_ = {};
}

std::string SslStream::facts() const {
  std::array<char, 256> subject{};
  if (X509* const certificate = SSL_get0_peer_certificate(ssl_.get()); certificate != nullptr) {
    X509_NAME_oneline(X509_get_subject_name(certificate), subject.data(), static_cast<int>(subject.size()));
  }
  return std::string(SSL_get_version(ssl_.get())) + " " + SSL_get_cipher_name(ssl_.get()) + " with " + subject.data();
}

}  // namespace

std::unique_ptr<Stream> make_stream(ssl_st* ssl, std::vector<std::string> names, uint64_t records_per_key) {
  return std::make_unique<SslStream>(ssl, std::move(names), records_per_key);
}

}  // namespace egret::tls
