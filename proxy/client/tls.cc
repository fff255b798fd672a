#include "proxy/client/tls.h"

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

#include "base/check.h"
#include "base/log/log.h"
#include "base/text.h"
#include "proxy/client/tls_socket.h"
#include "proxy/log_events.h"

namespace egret::proxy {

namespace {

struct Freed {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(char* text) const { OPENSSL_free(text); }
};

// Refuses keys with a passphrase, since there is nobody to ask. `asked` is a bool: whether a passphrase was needed.
int no_passphrase(char*, int, int, void* asked) {
  if (asked != nullptr) *static_cast<bool*>(asked) = true;
  return 0;
}

// OpenSSL's reason for refusing a file: its oldest error, which causes the others.
std::string openssl_reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return reason != nullptr ? std::string("OpenSSL cannot use it: ") + reason : "OpenSSL cannot use it";
}

bool has_pem_block(const std::string& path, std::string_view label) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("-----BEGIN ") && line.find(label) != std::string::npos) return true;
  }
  return false;
}

std::string certificate_fault(const std::string& path) {
  const std::string reason = openssl_reason();
  if (has_pem_block(path, "CERTIFICATE-----")) return base::quoted(path) + ": " + reason;
  return base::quoted(path) + ": no certificate found in it: expected PEM, with a line -----BEGIN CERTIFICATE-----";
}

std::string key_fault(const std::string& path, const std::string& certificate, bool needs_passphrase) {
  const unsigned long error = ERR_peek_error();
  const auto is = [&](int library, int why) { return ERR_GET_LIB(error) == library && ERR_GET_REASON(error) == why; };
  const bool is_of_another = is(ERR_LIB_X509, X509_R_KEY_VALUES_MISMATCH) ||
                             is(ERR_LIB_SSL, SSL_R_NO_CERTIFICATE_ASSIGNED);  // no certificate of the key's type
  const std::string reason = openssl_reason();
  const std::string name = base::quoted(path) + ": ";
  if (needs_passphrase) {
    return name +
           "the key has a passphrase, and there is nobody to ask for it: openssl pkey -in FILE -out NEW writes it "
           "without one";
  }
  if (is_of_another)
    return name + "the key belongs to another certificate than the one in " + base::quoted(certificate);
  if (!has_pem_block(path, "PRIVATE KEY-----")) {
    return name + "no private key found in it: expected PEM, with a line -----BEGIN PRIVATE KEY-----";
  }
  return name + reason;
}

// Why the file cannot be read, by the system's error, which is clearer than OpenSSL's. Empty if it can be read.
std::string read_fault(const std::string& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.is_open() ? "" : base::quoted(path) + ": " + std::strerror(errno);
}

std::string time_text(const ASN1_TIME* time) {
  const std::unique_ptr<BIO, Freed> text(BIO_new(BIO_s_mem()));
  if (ASN1_TIME_print(text.get(), time) != 1) return "?";
  char* data = nullptr;
  const long size = BIO_get_mem_data(text.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

std::string serial_text(X509* certificate) {
  const std::unique_ptr<BIGNUM, Freed> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  const std::unique_ptr<char, Freed> text(BN_bn2hex(number.get()));
  return text.get();
}

void describe_certificate(TlsContext& loaded) {
  X509* const certificate = SSL_CTX_get0_certificate(loaded.context.get());
  const std::string end = time_text(X509_get0_notAfter(certificate));
  loaded.summary = "serial number " + serial_text(certificate) + ", valid until " + end;
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    loaded.warning = "the certificate expired on " + end;
  } else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    loaded.warning = "the certificate is not valid before " + time_text(X509_get0_notBefore(certificate));
  }
}

TlsContext fault(std::string_view option, std::string what) {
  TlsContext none;
  none.option = option;
  none.fault = std::move(what);
  return none;
}

void set_fixed_rules(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                   // Many clients close without close_notify. A command shows by itself if it is cut.
                                   SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_clear_options(context, SSL_OP_ENABLE_KTLS);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // SSL_read returns after every record, so that a client cannot keep a worker in it by records without data. The event
  // loop reports bytes that are left in the descriptor.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_read_ahead(context, 0);
  SSL_CTX_set_default_passwd_cb(context, no_passphrase);
}

void set_sessions(SSL_CTX* context, bool cache) {
  static constexpr unsigned char kName[] = "egret-proxy";  // sessions of other servers are not resumed
  SSL_CTX_set_session_id_context(context, kName, sizeof kName - 1);
  SSL_CTX_set_session_cache_mode(context, cache ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_OFF);
}

}  // namespace

int TlsOptions::verify_flags() const {
  static constexpr std::array<int, 4> kFlags = {
      SSL_VERIFY_NONE, SSL_VERIFY_PEER, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
      SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE};
  return kFlags[static_cast<size_t>(verify)];
}

void TlsContext::Free::operator()(ssl_ctx_st* held) const {
  SSL_CTX_free(held);
}

TlsContext load_tls(const TlsOptions& options) {
  ERR_clear_error();
  TlsContext loaded;
  loaded.context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* const context = loaded.context.get();
  EGRET_CHECK(context != nullptr);
  set_fixed_rules(context);
  set_sessions(context, options.session_cache);
  EGRET_CHECK(SSL_CTX_set_min_proto_version(context, TLS1_VERSION + options.min_version) == 1);
  SSL_CTX_set_verify(context, options.verify_flags(), nullptr);
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(context, options.ciphers.c_str()) != 1) {
    ERR_clear_error();
    return fault("tls_ciphers", "OpenSSL knows no cipher in " + base::quoted(options.ciphers));
  }
  if (options.certificate.empty()) return fault("tls_certificate", "a tls: address in `listen` needs one");
  if (std::string bad = read_fault(options.certificate); !bad.empty()) return fault("tls_certificate", bad);
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate.c_str()) != 1) {
    return fault("tls_certificate", certificate_fault(options.certificate));
  }
  const std::string& key = options.key.empty() ? options.certificate : options.key;
  if (std::string bad = read_fault(key); !bad.empty()) return fault("tls_key", bad);
  bool needs_passphrase = false;
  SSL_CTX_set_default_passwd_cb_userdata(context, &needs_passphrase);
  const bool has_key = SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  // Check again: OpenSSL loads a key of another type than the certificate's without an error.
  if (!has_key || SSL_CTX_check_private_key(context) != 1)
    return fault("tls_key", key_fault(key, options.certificate, needs_passphrase));
  if (options.ca_certificate.empty()) {
    if (options.verify != TlsVerify::kNone) return fault("tls_verify", "needs a tls_ca_certificate to verify against");
  } else {
    const std::string& path = options.ca_certificate;
    if (std::string bad = read_fault(path); !bad.empty()) return fault("tls_ca_certificate", bad);
    if (SSL_CTX_load_verify_file(context, path.c_str()) != 1)
      return fault("tls_ca_certificate", certificate_fault(path));
    SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(path.c_str()));
  }
  describe_certificate(loaded);
  return loaded;
}

void log_anew(const TlsContext& loaded) {
  static base::LogLimit limit;  // clients can ask for it, too
  if (loaded.warning.empty()) {
    base::log_limited(limit, kCertificatesRead, "tls: certificates read anew: {}",
                      base::field("certificate", loaded.summary));
  } else {
    base::log_limited(limit, kCertificatesDoubtful, "tls: certificates read anew: {}: {}",
                      base::field("certificate", loaded.summary), base::field("why", loaded.warning));
  }
}

TlsServer::TlsServer(const base::Clock& clock) : clock_(clock), refreshed_ns_(clock.now_ns()) {}

TlsServer::TlsServer(const TlsOptions& options, TlsContext context, const base::Clock& clock) : TlsServer(clock) {
  install(options, std::move(context));
}

void TlsServer::install(const TlsOptions& options, TlsContext context) {
  EGRET_CHECK(context.is_ok());
  const std::lock_guard lock(mutex_);
  ++generation_;
  options_ = options;
  std::swap(context_, context);
  refreshed_ns_ = clock_.now_ns();
  is_on_ = true;
}

std::unique_ptr<ClientSocket> TlsServer::accept(base::UniqueFd fd, std::string peer, TlsCounters& counters) {
  SSL* ssl = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ssl = SSL_new(context_.context.get());  // takes a reference to the context
  }
  EGRET_CHECK(ssl != nullptr);
  return std::make_unique<TlsSocket>(std::move(fd), ssl, std::move(peer), counters);
}

base::Status TlsServer::refresh() {
  TlsOptions options;
  uint64_t generation = 0;
  {
    const std::lock_guard lock(mutex_);
    options = options_;
    generation = generation_;
  }
  TlsContext anew = load_tls(options);
  if (!anew.is_ok()) {
    const std::string what = std::string(anew.option) + ": " + anew.fault;
    static base::LogLimit limit;  // clients can ask for it, too
    base::log_limited(limit, kCertificatesRefused, "tls: {}; the certificates from before stay in use",
                      base::field("why", what));
    return base::Status::error(what);
  }
  {
    const std::lock_guard lock(mutex_);
    if (generation != generation_) return base::Status::ok();  // a reload has installed newer files meanwhile
    std::swap(context_, anew);
    refreshed_ns_ = clock_.now_ns();
    log_anew(context_);
  }
  return base::Status::ok();
}

uint64_t TlsServer::seconds_since_refresh() const {
  return (clock_.now_ns() - refreshed_ns_) / 1'000'000'000;
}

}  // namespace egret::proxy
