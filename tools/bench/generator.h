// One thread of load: an epoll loop over its share of the connections. See the drawing in generator.cc.
//
// Closed loop, in rounds: each connection sends `depth` requests in one write, and the next ones when all of them are
// answered. One wait returns every connection that has an answer. The generator does next to nothing but its system
// calls, so it is faster than the server: the requests of most connections wait at the server, which serves them as one
// batch, and their answers come back as one batch.
//
// Closed loop, at once: the generator looks at one connection at a time: it reads that connection's answers, does the
// work of a client, and sends a new request for each one answered, before it looks at the next connection. It is
// slower than the server, as most clients are, so requests reach the server in ones and twos.
//
// Paced: request i of the whole run belongs to connection i mod C and is due at start + i/rate, whatever has been
// answered; what is due while its connection still waits goes with that connection's next write, and its latency counts
// from when it was due (no coordinated omission).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "bench/address.h"
#include "bench/connection.h"
#include "bench/keyspace.h"
#include "bench/load_spec.h"
#include "bench/request_mix.h"
#include "bench/tally.h"

namespace egret::bench {

// When the load runs, and which part of it is measured. Monotonic nanoseconds.
struct LoadWindow {
  uint64_t start_ns = 0;
  uint64_t measure_from_ns = 0;
  uint64_t measure_until_ns = 0;
};

class Generator {
 public:
  // `thread` of spec.threads takes the connections c with c mod threads == thread. `stop`, set by anybody, ends the
  // run.
  Generator(const LoadSpec& spec, const Keyspace& keyspace, uint32_t thread, const std::atomic<bool>& stop);

  base::Status connect(const Address& address);

  // Sets this thread's share of the keys, each once.
  void preload();

  // Runs the load through the window, then waits for what is still unanswered. tally() has all of it, measured()
  // the counts of the window alone (the histogram in tally() is of the window alone too).
  void run(const LoadWindow& window);

  const Tally& tally() const { return tally_; }
  const Counters& measured() const { return measured_; }
  // How long measured() was counted in truth: a thread that is kept from the CPU notices the window's ends late.
  double measured_seconds() const { return measured_seconds_; }

 private:
  enum class Phase : uint8_t {
    kPreload,  // sets of keys not yet loaded
    kClosed,   // new requests when answers have come
    kPaced,    // what is due
    kDrain,    // nothing new, but paced requests that are due and unsent
  };
  struct Client {
    std::unique_ptr<Connection> connection;
    uint32_t number = 0;  // of all connections of the run
    uint64_t due = 0;     // paced: requests whose time has come
    uint64_t sent = 0;    // paced: of those, sent
    bool waits_to_write = false;
  };

  bool start_batch(Client& client, uint64_t now_ns);
  void add_request(Client& client, uint64_t intended_ns);
  bool add_preload(Connection& connection, uint64_t now_ns);
  void flush(Client& client);
  void start_all(uint64_t now_ns);
  void start_due(uint64_t now_ns);
  uint64_t due_ns(uint32_t client_number, uint64_t sequence) const;
  uint64_t next_due_ns() const;
  void wait_and_serve(uint64_t until_ns);
  void serve(Client& client, uint32_t events);
  void read_answers(Client& client);
  bool goes_at_once() const { return phase_ == Phase::kClosed && spec_.sending == Sending::kAtOnce; }
  void settle(uint64_t patience_ns);
  bool has_unfinished() const;
  void watch(Client& client, int operation, bool to_write);

  const LoadSpec spec_;
  const Keyspace& keyspace_;
  const uint32_t thread_;
  const std::atomic<bool>& stop_;
  base::UniqueFd epoll_;
  RequestMix mix_;
  Tally tally_;
  Counters measured_;
  double measured_seconds_ = 0;
  std::vector<Client> clients_;
  std::vector<uint32_t> keys_;  // of the get that is being composed
  uint32_t live_ = 0;           // clients whose connection is not lost
  Phase phase_ = Phase::kDrain;
  uint32_t preload_next_ = 0;
  uint32_t preload_batch_ = 1;
  uint64_t start_ns_ = 0;
  double ns_per_request_ = 0;  // paced, over all connections
  uint64_t scheduled_ = 0;     // paced: how many requests of this thread have become due
};

}  // namespace egret::bench
