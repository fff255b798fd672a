// TLS on listeners, by OpenSSL: the certificate files, which are checked as a whole before use; and client sockets.
//
//   TlsOptions ─▶ TlsServer ─ accept ─▶ ClientSocket: handshake (in its worker, as bytes arrive), then data
//                     ▲ refresh(): reads the files again, for new connections; open ones keep their certificates
//
// Nothing here blocks. Renegotiation is refused, compression and early data are off, sessions are resumed by tickets,
// and an idle connection holds no buffers.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "proxy/client/client_socket.h"
#include "proxy/report/proxy_stats.h"
#include "tls/files.h"

namespace egret::proxy {

// Whether clients must present a certificate: memcached's ssl_verify_mode, with its numbers.
enum class TlsVerify : uint8_t { kNone = 0, kRequest = 1, kRequire = 2, kOnce = 3 };

struct TlsOptions {
  std::string certificate;     // PEM: the server's certificate, then its chain
  std::string key;             // PEM; empty: it is in `certificate`
  std::string ca_certificate;  // PEM: authorities that may sign clients' certificates
  TlsVerify verify = TlsVerify::kNone;
  std::string ciphers;         // for TLS 1.2 and before, in OpenSSL's syntax; empty: OpenSSL's default
  uint8_t min_version = 2;     // x of the lowest TLS 1.x
  bool session_cache = false;  // also keep sessions in the server, for clients without tickets

  // OpenSSL's flags for `verify`; `stats settings` shows them.
  int verify_flags() const;
};

// The loaded files of TlsOptions, or which of them is wrong.
struct TlsContext {
  tls::Context context;     // null: `fault` says why
  std::string_view option;  // the option whose value is wrong
  std::string fault;
  std::string summary;  // the server certificate's serial number and end of validity
  std::string warning;  // a problem of a usable certificate; mostly empty
  bool is_ok() const { return context != nullptr; }
};
TlsContext load_tls(const TlsOptions& options);
// Logs that files were read again.
void log_anew(const TlsContext& loaded);

class TlsServer {
 public:
  // TLS is off until install().
  explicit TlsServer(const base::Clock& clock);
  TlsServer(const TlsOptions& options, TlsContext context, const base::Clock& clock);

  // Serves new connections with `context`, which load_tls() made from the options. Any thread.
  void install(const TlsOptions& options, TlsContext context);
  // Whether there are TLS addresses. Any thread.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  void turn_off() { is_on_.store(false, std::memory_order_relaxed); }

  // The socket of a newly connected client, for the worker that owns `counters`.
  std::unique_ptr<ClientSocket> accept(base::UniqueFd fd, std::string peer, TlsCounters& counters);
  // Reads the files again. If they are valid, serves new connections with them; else returns why, and changes nothing.
  // Logs one line in both cases. Any thread.
  base::Status refresh();
  uint64_t seconds_since_refresh() const;

 private:
  const base::Clock& clock_;
  std::atomic<bool> is_on_{false};
  std::mutex mutex_;
  uint64_t generation_ = 0;  // counts calls of install()
  TlsOptions options_;
  TlsContext context_;
  std::atomic<uint64_t> refreshed_ns_;
};

}  // namespace egret::proxy
