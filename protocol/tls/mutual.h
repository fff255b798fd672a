// Mutual TLS between daemons: each side shows a certificate that the other's authorities have signed. TLS 1.3 only.
//
//   Files, names ─▶ Mutual::load ─▶ accept(), connect(): a Stream for each connection
//
// A Mutual never changes: what was read anew is another one, for new connections. Any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "tls/files.h"
#include "tls/stream.h"

namespace egret::tls {

struct MutualOptions {
  std::string certificate;  // PEM: this side's, then its chain
  std::string key;          // PEM; empty: it is in `certificate`
  std::string authorities;  // PEM: who may sign the other side's certificates
  // DNS names and IP addresses, one of which the other side's certificate must be for. Empty: for servers, the host that
  // was connected to; for clients, any.
  std::vector<std::string> names;
  // Of AES-GCM some 24 million records may have the same key.
  uint64_t records_per_key = uint64_t{1} << 22;
};

class Mutual {
 public:
  static std::variant<std::shared_ptr<const Mutual>, Fault> load(const MutualOptions& options);

  // The handshake begins with the first bytes that come.
  std::unique_ptr<Stream> accept() const;
  // Its first bytes are to be sent at once. `host`: a name or a numeric address.
  std::unique_ptr<Stream> connect(const std::string& host) const;
  // Of our own certificate.
  const Description& certificate() const { return certificate_; }

 private:
  Mutual(Context context, const MutualOptions& options);

  const Context context_;
  const std::vector<std::string> names_;
  const uint64_t records_per_key_;
  const Description certificate_;
};

}  // namespace egret::tls
