#include "proxy/client/tls.h"

#include <array>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/check.h"
#include "base/log/log.h"
#include "base/text.h"
#include "proxy/client/tls_socket.h"
#include "proxy/log_events.h"

namespace egret::proxy {

namespace {

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
  if (const auto bad = tls::use_certificate(*context, options.certificate, options.key)) {
    return fault(bad->part == tls::Fault::Part::kKey ? "tls_key" : "tls_certificate", bad->what);
  }
  if (!options.ca_certificate.empty()) {
    if (const auto bad = tls::use_authorities(*context, options.ca_certificate)) {
      return fault("tls_ca_certificate", bad->what);
    }
  } else if (options.verify != TlsVerify::kNone) {
    return fault("tls_verify", "needs a tls_ca_certificate to verify against");
  }
  tls::Description said = tls::describe_certificate(*context);
  loaded.summary = std::move(said.summary);
  loaded.warning = std::move(said.warning);
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
