// Certificates, keys and authorities in PEM files, as OpenSSL takes them. What is wrong with one is said in a sentence.
// Cold path; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct ssl_ctx_st;
struct ssl_st;

namespace egret::tls {

struct FreeContext {
  void operator()(ssl_ctx_st* held) const;
};
using Context = std::unique_ptr<ssl_ctx_st, FreeContext>;

// Which file is wrong, and how.
struct Fault {
  enum class Part : uint8_t { kCertificate, kKey, kAuthorities };
  Part part = Part::kCertificate;
  std::string what;
};

// The certificate, its chain behind it in the same file, and its key; `key` empty: it is in that file, too.
std::optional<Fault> use_certificate(ssl_ctx_st& context, const std::string& certificate, const std::string& key);
// Who may sign the peers' certificates.
std::optional<Fault> use_authorities(ssl_ctx_st& context, const std::string& path);

struct Description {
  std::string summary;    // the certificate's serial number and end of validity
  std::string warning{};  // a problem of a usable certificate; mostly empty
  uint64_t ends_at = 0;   // Unix time
};
Description describe_certificate(ssl_ctx_st& context);

// Why a call of OpenSSL in this thread has failed, in words: its oldest error, which causes the others. Empty: it was the
// connection, not the protocol. Forgets the errors.
std::string take_reason(ssl_st& ssl);

}  // namespace egret::tls
