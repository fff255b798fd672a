// Keys and their certificates in a folder, made for a test of TLS.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "temporary_folder.h"

struct FreeCrypto {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
  void operator()(FILE* file) const { std::fclose(file); }
};

using FreshKey = std::unique_ptr<EVP_PKEY, FreeCrypto>;
using FreshCertificate = std::unique_ptr<X509, FreeCrypto>;

// How long a certificate is good for, in seconds from now.
struct Validity {
  long from = -60;
  long to = 3600;
};

// Signed by itself, for now.
inline FreshCertificate blank_certificate(EVP_PKEY& key, const std::string& subject, long serial, Validity validity) {
  FreshCertificate certificate(X509_new());
  X509* const x509 = certificate.get();
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), serial);
  X509_gmtime_adj(X509_getm_notBefore(x509), validity.from);
  X509_gmtime_adj(X509_getm_notAfter(x509), validity.to);
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1,
                             0);
  X509_set_issuer_name(x509, name);
  X509_set_pubkey(x509, &key);
  return certificate;
}

inline void write_certificate(const std::string& path, X509& certificate) {
  const std::unique_ptr<FILE, FreeCrypto> pem(std::fopen(path.c_str(), "w"));
  REQUIRE(PEM_write_X509(pem.get(), &certificate) == 1);
}

inline void write_key(const std::string& path, EVP_PKEY& key, const char* passphrase = nullptr) {
  const std::unique_ptr<FILE, FreeCrypto> file(std::fopen(path.c_str(), "w"));
  REQUIRE(PEM_write_PrivateKey(file.get(), &key, passphrase != nullptr ? EVP_aes_128_cbc() : nullptr, nullptr, 0,
                               nullptr, const_cast<char*>(passphrase)) == 1);
}

// Signs certificates. Its own is ca.pem.
struct Authority : egret::TemporaryFolder {
  explicit Authority(const std::string& called = "authority") : name(called), key(EVP_EC_gen("P-256")) {
    own = blank_certificate(*key, name, ++serial, {});
    add(*own, NID_basic_constraints, "critical,CA:TRUE");
    REQUIRE(X509_sign(own.get(), key.get(), EVP_sha256()) > 0);
    write_certificate(at("ca.pem"), *own);
  }
  // Makes NAME.pem and NAME.key. `for_whom`: "DNS:a,IP:127.0.0.1".
  void issue(const std::string& subject, const std::string& for_whom, Validity validity = {}) {
    const FreshKey fresh(EVP_EC_gen("P-256"));
    const FreshCertificate certificate = blank_certificate(*fresh, subject, ++serial, validity);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(own.get()));
    add(*certificate, NID_subject_alt_name, for_whom);
    REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
    write_certificate(at(subject + ".pem"), *certificate);
    write_key(at(subject + ".key"), *fresh);
  }
  static void add(X509& to, int nid, const std::string& value) {
    const std::unique_ptr<X509_EXTENSION, FreeCrypto> extension(
        X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str()));
    REQUIRE(X509_add_ext(&to, extension.get(), -1) == 1);
  }

  std::string name;
  FreshKey key;
  FreshCertificate own;
  long serial = 0x100;
};
