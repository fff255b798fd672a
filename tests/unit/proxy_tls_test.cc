// The files of TLS: which are valid, and the errors of those that are not.
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <openssl/ssl.h>

#include "proxy/client/tls.h"
#include "proxy/config.h"
#include "proxy/option_table.h"
#include "tls_files.h"

using namespace egret::proxy;
using egret::base::Options;

namespace {

// "option: what", or nothing when all is well.
std::string fault_of(const TlsOptions& options) {
  const TlsContext loaded = load_tls(options);
  return loaded.is_ok() ? "" : std::string(loaded.option) + ": " + loaded.fault;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a certificate and its key, in two files or in one") {
  TlsFiles folder;
  folder.make("one");
  const TlsContext loaded = load_tls(folder.options("one"));
  REQUIRE(loaded.is_ok());
  CHECK(has(loaded.summary, "serial number 42, valid until "));
  CHECK(loaded.warning == "");
  std::string both;
  for (const char* name : {"one.key", "one.pem"}) {
    std::ifstream file(folder.at(name));
    both.append(std::istreambuf_iterator<char>(file), {});
  }
  TlsOptions options;
  options.certificate = folder.write("both.pem", both);
  CHECK(fault_of(options) == "");
}

TEST_CASE("a certificate out of its time is used, and warned of") {
  TlsFiles folder;
  folder.make("old", -7200, -3600);
  folder.make("early", 3600, 7200);
  const TlsContext old = load_tls(folder.options("old"));
  REQUIRE(old.is_ok());
  CHECK(has(old.warning, "the certificate expired on "));
  const TlsContext early = load_tls(folder.options("early"));
  REQUIRE(early.is_ok());
  CHECK(has(early.warning, "the certificate is not valid before "));
}

TEST_CASE("what is wrong with a file is said of the option that names it") {
  TlsFiles folder;
  folder.make("one");
  folder.make("two");
  folder.make("locked", -60, 3600, "opensesame");
  TlsOptions options;
  CHECK(fault_of(options) == "tls_certificate: a tls: address in `listen` needs one");
  options = folder.options("one");
  options.certificate = "/no/such";
  CHECK(fault_of(options) == "tls_certificate: \"/no/such\": No such file or directory");
  options.certificate = folder.write("empty", "");
  CHECK(fault_of(options) ==
        "tls_certificate: \"" + options.certificate +
            "\": no certificate found in it: expected PEM, with a line -----BEGIN CERTIFICATE-----");
  options.certificate = folder.path;
  CHECK(has(fault_of(options), "tls_certificate: "));
  options = folder.options("one");
  options.key = "/no/such";
  CHECK(fault_of(options) == "tls_key: \"/no/such\": No such file or directory");
  options.key = "";  // in a file that holds none
  CHECK(has(fault_of(options),
            "one.pem\": no private key found in it: expected PEM, with a line -----BEGIN PRIVATE KEY"));
  options.key = folder.write("broken.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
  CHECK(has(fault_of(options), "broken.key\": OpenSSL cannot use it: "));
  options.key = folder.at("two.key");
  CHECK(fault_of(options) == "tls_key: \"" + options.key +
                                 "\": the key belongs to another certificate than the one in \"" + options.certificate +
                                 "\"");
  folder.make_rsa_key("rsa.key");  // the certificate is of an EC key
  options.key = folder.at("rsa.key");
  CHECK(has(fault_of(options), "rsa.key\": the key belongs to another certificate than the one in "));
  options = folder.options("locked");  // said at once: nobody is asked for the passphrase
  CHECK(has(fault_of(options),
            "locked.key\": the key has a passphrase, and there is nobody to ask for it: openssl pkey"));
  options = folder.options("one");
  options.ciphers = "NOSUCH:NEITHER";
  CHECK(fault_of(options) == "tls_ciphers: OpenSSL knows no cipher in \"NOSUCH:NEITHER\"");
  options.ciphers = "ECDHE+AESGCM";
  CHECK(fault_of(options) == "");
}

TEST_CASE("clients' certificates are verified against an authority that must be named") {
  TlsFiles folder;
  folder.make("one");
  TlsOptions options = folder.options("one");
  for (const TlsVerify verify : {TlsVerify::kRequest, TlsVerify::kRequire, TlsVerify::kOnce}) {
    options.verify = verify;
    options.ca_certificate = "";
    CHECK(fault_of(options) == "tls_verify: needs a tls_ca_certificate to verify against");
    options.ca_certificate = folder.at("one.pem");
    CHECK(fault_of(options) == "");
  }
  options.ca_certificate = "/no/such";
  CHECK(fault_of(options) == "tls_ca_certificate: \"/no/such\": No such file or directory");
  options.ca_certificate = folder.write("junk", "junk");
  CHECK(has(fault_of(options), "tls_ca_certificate: \"" + options.ca_certificate + "\": no certificate found in it"));
}

TEST_CASE("the flags that memcached shows for each way of verifying") {
  TlsOptions options;
  CHECK(options.verify_flags() == SSL_VERIFY_NONE);
  options.verify = TlsVerify::kRequest;
  CHECK(options.verify_flags() == 1);
  options.verify = TlsVerify::kRequire;
  CHECK(options.verify_flags() == 3);
  options.verify = TlsVerify::kOnce;
  CHECK(options.verify_flags() == 7);
}

TEST_CASE("files are checked with the configuration, if an address needs them") {
  TlsFiles folder;
  folder.make("one");
  const auto error_of = [](const std::vector<std::string>& settings) -> std::string {
    auto options = Options::load(option_table(), std::nullopt, settings);
    REQUIRE_MESSAGE(options.is_ok(), options.status().message());
    auto config = resolve_config(options.value());
    return config ? "" : config.message();
  };
  CHECK(error_of({"listen=tls:[::1]:1"}) == "tls_certificate: a tls: address in `listen` needs one");
  CHECK(error_of({"tls_certificate=/no/such"}) == "");
  CHECK(error_of({"listen=tcp:h:1,tls:h:2", "tls_certificate=/no/such"}) ==
        "--set tls_certificate=/no/such: tls_certificate: \"/no/such\": No such file or directory");
  CHECK(error_of({"listen=tls:h:2", "tls_certificate=" + folder.at("one.pem"), "tls_key=" + folder.at("one.key"),
                  "tls_min_version=1.3"}) == "");
}

TEST_CASE("a refresh takes new files if they are good, and leaves all as it was if they are not") {
  TlsFiles folder;
  folder.make("one");
  const TlsOptions options = folder.options("one");
  egret::base::ManualClock clock;
  TlsServer server(options, load_tls(options), clock);
  clock.advance_seconds(5);
  CHECK(server.seconds_since_refresh() == 5);
  folder.write("one.key", "junk");
  const auto failed = server.refresh();
  CHECK_FALSE(failed.is_ok());
  CHECK(has(failed.message(), "tls_key: "));
  CHECK(server.seconds_since_refresh() == 5);
  folder.make("one");
  CHECK(server.refresh().is_ok());
  CHECK(server.seconds_since_refresh() == 0);
}
