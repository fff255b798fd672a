// TLS on listeners, by OpenSSL: the certificate files, checked as a whole before they are used; and the sockets of
// clients that speak it.
//
//   TlsOptions ─▶ TlsServer ─ accept ─▶ ClientSocket: handshake (in its worker, as bytes come), then the client's bytes
//                     ▲ refresh(): files read anew, for connections from now on; those there are keep what they have
//
// Nothing here waits. Renegotiation is refused, compression and early data are off, sessions are resumed by tickets,
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

struct ssl_ctx_st;

namespace egret::proxy {

// What clients must show; memcached's ssl_verify_mode, by its numbers.
enum class TlsVerify : uint8_t { kNone = 0, kRequest = 1, kRequire = 2, kOnce = 3 };

struct TlsOptions {
  std::string certificate;     // PEM: the server's, then those that it was signed by
  std::string key;             // PEM; empty: it is in `certificate`
  std::string ca_certificate;  // PEM: who may sign clients' certificates
  TlsVerify verify = TlsVerify::kNone;
  std::string ciphers;         // of TLS 1.2 and before, as OpenSSL writes them; empty: OpenSSL's choice
  uint8_t min_version = 2;     // the least TLS 1.x
  bool session_cache = false;  // sessions are kept here as well, for clients without tickets

  // OpenSSL's flags for `verify`, which `stats settings` shows.
  int verify_flags() const;
};

// What the files of TlsOptions amount to, or which of them is at fault.
struct TlsContext {
  struct Free {
    void operator()(ssl_ctx_st* held) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context;  // null: `fault` says why
  std::string_view option;                    // the option that is to blame
  std::string fault;
  std::string summary;  // of the server's certificate: serial number, until when it is valid
  std::string warning;  // what is not well with it all the same; mostly empty
  bool is_ok() const { return context != nullptr; }
};
TlsContext load_tls(const TlsOptions& options);
// The line in the log about files that have been read again.
void log_anew(const TlsContext& loaded);

class TlsServer {
 public:
  // Nobody speaks it.
  explicit TlsServer(const base::Clock& clock);
  TlsServer(const TlsOptions& options, TlsContext context, const base::Clock& clock);

  // Connections from now on are served with `context`, which is that of the options, as load_tls() made it. Any thread.
  void install(const TlsOptions& options, TlsContext context);
  // Whether there are addresses at which it is spoken. Any thread.
  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  void turn_off() { is_on_.store(false, std::memory_order_relaxed); }

  // For a client that connected just now. The socket is for one worker, whose counters those are.
  std::unique_ptr<ClientSocket> accept(base::UniqueFd fd, std::string peer, TlsCounters& counters);
  // Reads the files anew and, if they are good, serves connections from now on with them; if they are not, says why,
  // and nothing changes. One line in the log either way. Any thread.
  base::Status refresh();
  uint64_t seconds_since_refresh() const;

 private:
  const base::Clock& clock_;
  std::atomic<bool> is_on_{false};
  std::mutex mutex_;
  uint64_t generation_ = 0;  // of what install() was given
  TlsOptions options_;
  TlsContext context_;
  std::atomic<uint64_t> refreshed_ns_;
};

}  // namespace egret::proxy
