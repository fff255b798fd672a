// A folder with keys and their certificates, made for a test of TLS.
#pragma once

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "proxy/client/tls.h"
#include "temporary_folder.h"

struct FreeCrypto {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(FILE* file) const { std::fclose(file); }
};

// A folder with a key and its certificate: one.key, one.pem; and so on for other names.
struct TlsFiles : egret::TemporaryFolder {
  void make(const std::string& name, long valid_from = -60, long valid_to = 3600, const char* passphrase = nullptr) {
    const std::unique_ptr<EVP_PKEY, FreeCrypto> key(EVP_EC_gen("P-256"));
    const std::unique_ptr<X509, FreeCrypto> certificate(X509_new());
    X509* const x509 = certificate.get();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(x509), valid_from);
    X509_gmtime_adj(X509_getm_notAfter(x509), valid_to);
    X509_NAME* const subject = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("egret"), -1, -1, 0);
    X509_set_issuer_name(x509, subject);
    X509_set_pubkey(x509, key.get());
    REQUIRE(X509_sign(x509, key.get(), EVP_sha256()) > 0);
    const std::unique_ptr<FILE, FreeCrypto> pem(std::fopen(at(name + ".pem").c_str(), "w"));
    REQUIRE(PEM_write_X509(pem.get(), x509) == 1);
    const std::unique_ptr<FILE, FreeCrypto> secret(std::fopen(at(name + ".key").c_str(), "w"));
    REQUIRE(PEM_write_PrivateKey(secret.get(), key.get(), passphrase != nullptr ? EVP_aes_128_cbc() : nullptr, nullptr,
                                 0, nullptr, const_cast<char*>(passphrase)) == 1);
  }
  void make_rsa_key(const std::string& name) const {
    const std::unique_ptr<EVP_PKEY, FreeCrypto> key(EVP_RSA_gen(2048));
    const std::unique_ptr<FILE, FreeCrypto> file(std::fopen(at(name).c_str(), "w"));
    REQUIRE(PEM_write_PrivateKey(file.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
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
