// What a daemon says of itself over HTTP: a few paths, each a fixed page or a handler's answer.
//
//   accept ─▶ libmicrohttpd: parses, bounds, times out ─▶ GET or HEAD of a path ─┬─▶ page
//                                                                                └─▶ handler(HttpReply) … send()
//
// libmicrohttpd speaks HTTP; this class accepts for it, so that whoever is slow, silent or many takes nobody's place:
// of too many connections the one that has been without a request for longest goes, each has a time for the whole of
// its next request, and without descriptors accepting rests. No request has a body; headers are bounded. A page of
// another site cannot read ours through a name of its own (DNS rebinding): on a loopback address the Host header has to
// be an address or localhost.
//
// Thread: the one that runs the event loop; nothing here blocks. Errors: as HTTP statuses; listen() alone returns one.
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

// A body that lives as long as the program, and what a browser may do with it.
struct Page {
  std::string_view body;
  std::string_view content_type = kHtml;
  std::string_view content_security_policy = kNothingElse;
};

// A request that waits for its answer. It may be kept, be answered after its client has gone, and outlive the server;
// dropped without an answer it is answered 503.
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
  static constexpr size_t kMaxConnections = 64;     // above it the one that has been idle for longest goes
  static constexpr size_t kMaxHeaders = 16 * 1024;  // bytes of a request, and what is kept of it, about
  // What a connection has for the whole of a request, and for reading the answer to the one before.
  struct Patience {
    unsigned first_request_seconds = 5;
    unsigned next_request_seconds = 90;  // longer than the usual scrape intervals
  };

  explicit HttpServer(events::EventLoop& loop) : HttpServer(loop, Patience()) {}
  HttpServer(events::EventLoop& loop, const Patience& patience);
  // Whoever still waits is told 503; open connections are closed.
  ~HttpServer();

  // Listens where the option says, if anywhere; once. An address that nobody asked for and that cannot be had (another
  // daemon of this host has it) is a warning. The loop need not run yet: whoever connects meanwhile waits.
  base::Status listen(const AdminOption& option);
  // As bound; empty before listen().
  std::vector<std::string> addresses() const;

  // Before the loop runs. A later one of the same path replaces it.
  void serve(const std::string& path, const Page& page);
  void serve(const std::string& path, std::function<void(HttpReply)> handler);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace egret::admin
