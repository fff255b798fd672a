// A folder with keys and their certificates, made for a test of TLS.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "certificates.h"
#include "proxy/client/tls.h"

// A folder with a key and its certificate: one.key, one.pem; and so on for other names.
struct TlsFiles : egret::TemporaryFolder {
  void make(const std::string& name, long valid_from = -60, long valid_to = 3600, const char* passphrase = nullptr) {
    const FreshKey key(EVP_EC_gen("P-256"));
    const FreshCertificate certificate = blank_certificate(*key, "egret", ++serial, {valid_from, valid_to});
    REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
    write_certificate(at(name + ".pem"), *certificate);
    write_key(at(name + ".key"), *key, passphrase);
  }
  void make_rsa_key(const std::string& name) const {
    const FreshKey key(EVP_RSA_gen(2048));
    write_key(at(name), *key);
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(at(name)) << text;
    return at(name);
  }
  egret::proxy::TlsOptions options(const std::string& name) const {
    egret::proxy::TlsOptions options;
    options.certificate = at(name + ".pem");
    options.key = at(name + ".key");
    return options;
  }

  long serial = 0x41;
};
