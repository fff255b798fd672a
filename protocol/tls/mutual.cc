#include "tls/mutual.h"

#include <utility>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/check.h"

namespace egret::tls {

namespace {

bool is_numeric(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

std::variant<std::shared_ptr<const Mutual>, Fault> Mutual::load(const MutualOptions& options) {
  Context context(SSL_CTX_new(TLS_method()));
  SSL_CTX* const its = context.get();
  EGRET_CHECK(its != nullptr);
  EGRET_CHECK(SSL_CTX_set_min_proto_version(its, TLS1_3_VERSION) == 1);
  SSL_CTX_set_options(its, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  // A session lasts for as long as both daemons do: nothing is resumed.
  SSL_CTX_set_session_cache_mode(its, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(its, 0);
  SSL_CTX_set_mode(its, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (auto fault = use_certificate(*its, options.certificate, options.key)) return std::move(*fault);
  if (auto fault = use_authorities(*its, options.authorities)) return std::move(*fault);
  return std::shared_ptr<const Mutual>(new Mutual(std::move(context), options));
}

Mutual::Mutual(Context context, const MutualOptions& options)
    : context_(std::move(context)),
      names_(options.names),
      records_per_key_(options.records_per_key),
      certificate_(describe_certificate(*context_)) {}

std::unique_ptr<Stream> Mutual::accept() const {
  SSL* const ssl = SSL_new(context_.get());
  EGRET_CHECK(ssl != nullptr);
  SSL_set_accept_state(ssl);
  return std::make_unique<Stream>(ssl, names_, records_per_key_);
}

std::unique_ptr<Stream> Mutual::connect(const std::string& host) const {
  SSL* const ssl = SSL_new(context_.get());
  EGRET_CHECK(ssl != nullptr);
  SSL_set_connect_state(ssl);
  if (!is_numeric(host)) {
    // The macro for this casts in the old style.
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
  }
  return std::make_unique<Stream>(ssl, names_.empty() ? std::vector{host} : names_, records_per_key_);
}

}  // namespace egret::tls
