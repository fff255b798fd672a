#include "tls/mutual.h"

#include <utility>

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/check.h"

namespace egret::tls {

namespace {

bool is_numeric(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 || ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// The certificate that the peer shows must be for this.
void expect(SSL* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl);
  const int done = is_numeric(name) ? X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str())
                                    : X509_VERIFY_PARAM_add1_host(rules, name.c_str(), name.size());
  EGRET_CHECK(done == 1);
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
  SSL_CTX_set_verify(its, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (auto fault = use_certificate(*its, options.certificate, options.key)) return std::move(*fault);
  if (auto fault = use_authorities(*its, options.authorities)) return std::move(*fault);
  return std::shared_ptr<const Mutual>(new Mutual(std::move(context), options.names));
}

Mutual::Mutual(Context context, std::vector<std::string> names)
    : context_(std::move(context)), names_(std::move(names)), certificate_(describe_certificate(*context_)) {}

std::unique_ptr<Stream> Mutual::accept() const {
  SSL* const ssl = SSL_new(context_.get());
  EGRET_CHECK(ssl != nullptr);
  SSL_set_accept_state(ssl);
  for (const std::string& name : names_) expect(ssl, name);
  return std::make_unique<Stream>(ssl);
}

std::unique_ptr<Stream> Mutual::connect(const std::string& host) const {
  SSL* const ssl = SSL_new(context_.get());
  EGRET_CHECK(ssl != nullptr);
  SSL_set_connect_state(ssl);
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (!is_numeric(host)) {
    // The macro for this casts in the old style.
    SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str()));
  }
  for (const std::string& name : names_) expect(ssl, name);
  if (names_.empty()) expect(ssl, host);
  return std::make_unique<Stream>(ssl);
}

}  // namespace egret::tls
