#include "tls/files.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509err.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace egret::tls {

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

std::string file_reason() {
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
  const std::string reason = file_reason();
  if (has_pem_block(path, "CERTIFICATE-----")) return base::quoted(path) + ": " + reason;
  return base::quoted(path) + ": no certificate found in it: expected PEM, with a line -----BEGIN CERTIFICATE-----";
}

std::string key_fault(const std::string& path, const std::string& certificate, bool needs_passphrase) {
  const unsigned long error = ERR_peek_error();
  const auto is = [&](int library, int why) { return ERR_GET_LIB(error) == library && ERR_GET_REASON(error) == why; };
  const bool is_of_another = is(ERR_LIB_X509, X509_R_KEY_VALUES_MISMATCH) ||
                             is(ERR_LIB_SSL, SSL_R_NO_CERTIFICATE_ASSIGNED);  // no certificate of the key's type
  const std::string reason = file_reason();
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

// 0: before 1970.
uint64_t unix_time(const ASN1_TIME* time) {
  tm broken_down{};
  if (ASN1_TIME_to_tm(time, &broken_down) != 1) return 0;
  const time_t seconds = ::timegm(&broken_down);
  return seconds < 0 ? 0 : static_cast<uint64_t>(seconds);
}

std::string serial_text(X509* certificate) {
  const std::unique_ptr<BIGNUM, Freed> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr));
  const std::unique_ptr<char, Freed> text(BN_bn2hex(number.get()));
  return text.get();
}

}  // namespace

void FreeContext::operator()(ssl_ctx_st* held) const {
  SSL_CTX_free(held);
}

std::optional<Fault> use_certificate(ssl_ctx_st& context, const std::string& certificate, const std::string& key) {
  using Part = Fault::Part;
  ERR_clear_error();
  if (std::string bad = read_fault(certificate); !bad.empty()) return Fault{Part::kCertificate, bad};
  if (SSL_CTX_use_certificate_chain_file(&context, certificate.c_str()) != 1) {
    return Fault{Part::kCertificate, certificate_fault(certificate)};
  }
  const std::string& path = key.empty() ? certificate : key;
  if (std::string bad = read_fault(path); !bad.empty()) return Fault{Part::kKey, bad};
  bool needs_passphrase = false;
  SSL_CTX_set_default_passwd_cb(&context, no_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(&context, &needs_passphrase);
  const bool has_key = SSL_CTX_use_PrivateKey_file(&context, path.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(&context, nullptr);
  // Check again: OpenSSL loads a key of another type than the certificate's without an error.
  if (has_key && SSL_CTX_check_private_key(&context) == 1) return std::nullopt;
  return Fault{Part::kKey, key_fault(path, certificate, needs_passphrase)};
}

std::optional<Fault> use_authorities(ssl_ctx_st& context, const std::string& path) {
  using Part = Fault::Part;
  ERR_clear_error();
  if (std::string bad = read_fault(path); !bad.empty()) return Fault{Part::kAuthorities, bad};
  if (SSL_CTX_load_verify_file(&context, path.c_str()) != 1) return Fault{Part::kAuthorities, certificate_fault(path)};
  SSL_CTX_set_client_CA_list(&context, SSL_load_client_CA_file(path.c_str()));
  return std::nullopt;
}

Description describe_certificate(ssl_ctx_st& context) {
  X509* const certificate = SSL_CTX_get0_certificate(&context);
  const std::string end = time_text(X509_get0_notAfter(certificate));
  Description said{.summary = "serial number " + serial_text(certificate) + ", valid until " + end,
                   .ends_at = unix_time(X509_get0_notAfter(certificate))};
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    said.warning = "the certificate expired on " + end;
  } else if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    said.warning = "the certificate is not valid before " + time_text(X509_get0_notBefore(certificate));
  }
  return said;
}

std::string take_reason(ssl_st& ssl) {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (error == 0) return {};
  if (ERR_GET_LIB(error) == ERR_LIB_SSL) {
    switch (ERR_GET_REASON(error)) {
      case SSL_R_CERTIFICATE_VERIFY_FAILED:
        return std::string("its certificate is refused: ") + X509_verify_cert_error_string(SSL_get_verify_result(&ssl));
      case SSL_R_HTTP_REQUEST:
      case SSL_R_HTTPS_PROXY_REQUEST:
      case SSL_R_WRONG_VERSION_NUMBER:
        if (SSL_is_init_finished(&ssl) == 0) return "it does not speak TLS";
        break;
      default:
        break;
    }
  }
  const char* const text = ERR_reason_error_string(error);
  return text != nullptr ? text : "unknown error";
}

}  // namespace egret::tls
