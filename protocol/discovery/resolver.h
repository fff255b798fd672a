// Asks name servers without blocking: c-ares, with its sockets and its timer on the event loop.
//
//   ask(name, type, tag) ─▶ c-ares ─▶ UDP, then TCP if the answer is truncated ─▶ dns_answer.h ─▶ Asker::on_reply(tag)
//
// open() makes a new c-ares channel, so resolv.conf is read again, and close() frees it with all its sockets.
// Thread: the event loop's. Errors: a reply without an answer, with the reason; a socket that cannot be watched is a
// question that times out.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"
#include "discovery/dns_answer.h"
#include "events/event.h"

struct ares_channeldata;

namespace egret::discovery {

enum class RecordType : uint16_t { kA = 1, kAaaa = 28, kSrv = 33 };

struct ResolverOptions {
  std::string servers;                      // "10.0.0.10, [::1]:5353"; empty: those of /etc/resolv.conf
  std::chrono::milliseconds timeout{1000};  // of a server's first try; c-ares doubles it with each further one
  int tries = 3;                            // of each server
};

// What became of a question.
struct Reply {
  std::string failure;        // empty: `answer` has records
  bool says_no_data = false;  // of a failure: the server says that there are no such records
  DnsAnswer answer;
};

class Resolver {
 public:
  class Asker {
   public:
    // May ask(), open() and close(), but not destroy the resolver.
    virtual void on_reply(uint64_t tag, const Reply& reply) = 0;

   protected:
    ~Asker() = default;
  };

  Resolver(events::EventLoop& loop, Asker& asker);
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // Forgets what was asked before. After an error nothing can be asked.
  base::Status open(const ResolverOptions& options);
  void close();
  // A name without a dot at its end is also looked for in the domains of resolv.conf's `search`.
  void ask(const std::string& name, RecordType type, uint64_t tag);

 private:
  struct Question;
  struct Watch;
  struct Deleter {
    void operator()(ares_channeldata* channel) const;
  };

  static void on_answer(void* question, int status, int timeouts, unsigned char* message, int size);
  static void on_socket_state(void* resolver, int fd, int readable, int writable);

  void process(int readable_fd, int writable_fd);
  void on_timeout();
  void set_timer();
  void deliver();

  events::EventLoop& loop_;
  Asker& asker_;
  std::map<int, std::unique_ptr<Watch>> watches_;   // by descriptor
  std::deque<std::pair<uint64_t, Reply>> replies_;  // not yet delivered: never from within c-ares
  events::Event timer_;
  events::Event delivery_;
  std::unique_ptr<ares_channeldata, Deleter> channel_;
};

// Whether `servers` can be ResolverOptions::servers.
base::Status check_servers(const std::string& servers);

}  // namespace egret::discovery
