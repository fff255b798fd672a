// A daemon's HTTP server: a few paths, each with a fixed page or a handler.
//
//   accept ─▶ libmicrohttpd: parses, bounds, times out ─▶ GET or HEAD of a path ─┬─▶ page
//                                                                                └─▶ handler(HttpReply) … send()
//
// libmicrohttpd implements HTTP. This class accepts the connections, so that slow, silent or too many clients cannot
// block others: above kMaxConnections it closes the connection without a request for the longest time; each connection
// has a time limit for its whole next request; without free descriptors accepting pauses. Requests have no body;
// headers are bounded. Against DNS rebinding, the Host header is checked (host_check.h).
//
// Thread: the one that runs the event loop; nothing here blocks. Errors: HTTP statuses; only listen() returns a Status.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "admin/address.h"
#include "base/status.h"
#include "events/event.h"

namespace egret::admin {

inline constexpr std::string_view kPlainText = "text/plain; charset=utf-8";
inline constexpr std::string_view kHtml = "text/html; charset=utf-8";
inline constexpr std::string_view kNothingElse = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'";

struct Answer {
  unsigned status = 200;
  std::string body;
  std::string content_type{kPlainText};
};

// A body that lives as long as the program, with its headers.
struct Page {
  std::string_view body;
  std::string_view content_type = kHtml;
  std::string_view content_security_policy = kNothingElse;
};

// A request that waits for its answer. It may be kept, be answered after its client is gone, and outlive the server. If
// it is destroyed without an answer, the client gets 503.
class HttpReply {
 public:
  struct Exchange;  // http_server.cc
  explicit HttpReply(std::shared_ptr<Exchange> exchange);
  HttpReply(HttpReply&&) noexcept;
  HttpReply& operator=(HttpReply&&) noexcept;
  ~HttpReply();

  void send(Answer answer);

 private:
  std::shared_ptr<Exchange> exchange_;
};

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 64;     // above it the connection idle for the longest time is closed
  static constexpr size_t kMaxHeaders = 16 * 1024;  // about the bytes of a request and what libmicrohttpd keeps of it
  // Time limits of a connection: for a whole request, including reading the answer to the one before.
  struct TimeLimits {
    unsigned first_request_seconds = 5;
    unsigned next_request_seconds = 90;  // longer than the usual scrape intervals
  };

  // Throws std::system_error if the system has no descriptors left.
  explicit HttpServer(events::EventLoop& loop) : HttpServer(loop, TimeLimits()) {}
  HttpServer(events::EventLoop& loop, const TimeLimits& time_limits);
  // Answers 503 to waiting requests and closes all connections.
  ~HttpServer();

  // Listens where the option says, if it has an address. Call it once. If the default address is in use (by another
  // daemon on this host), that is a warning only. The loop need not run yet: clients that connect wait until it does.
  base::Status listen(const AdminOption& option);
  // The names by which it may be asked from now on, besides addresses and localhost (AdminOption::hosts).
  void allow_hosts(const std::vector<std::string>& names);
  // The bound addresses; empty before listen().
  std::vector<std::string> addresses() const;

  // Call it before the loop runs. A later page for the same path replaces an earlier one.
  void serve(const std::string& path, const Page& page);
  void serve(const std::string& path, std::function<void(HttpReply)> handler);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace egret::admin
