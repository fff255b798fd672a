// One thread of load: an epoll loop over its share of the connections. See the drawing in generator.cc.
//
// Closed loop, in rounds: each connection sends `depth` requests in one write, and the next ones when all of them are
// answered. One epoll_wait() returns all connections that have answers. The generator does little besides system calls,
// so it is faster than the server: most connections' requests wait at the server, which serves them as one batch.
//
// Closed loop, at once: the generator handles one connection at a time: it reads its answers, burns the CPU time of a
// real client, and sends a new request for each answer. It is slower than the server, as most clients are, so requests
// reach the server one or two at a time.
//
// Paced: request i of the run belongs to connection i mod C and is due at start + i/rate, whatever has been answered. A
// request that is due while its connection waits is sent with that connection's next write. Its latency counts from
// when it was due (no coordinated omission).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/unique_fd.h"
#include "bench/client/address.h"
#include "bench/client/connection.h"
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
  // Thread `thread` of spec.threads has the connections c with c mod threads == thread. Any thread may set `stop`,
  // which ends the run.
  Generator(const LoadSpec& spec, const Keyspace& keyspace, uint32_t thread, const std::atomic<bool>& stop);

  base::Status connect(const Address& address);

  // Sets this thread's share of the keys, each once.
  void preload();

  // Runs the load through the window, then waits for outstanding answers. tally() counts the whole run, measured() only
  // the window (and so does the histogram in tally()).
  void run(const LoadWindow& window);

  const Tally& tally() const { return tally_; }
  const Counters& measured() const { return measured_; }
  // The real duration of measured(): a thread that is not scheduled notices the window's ends late.
  double measured_seconds() const { return measured_seconds_; }

 private:
  enum class Phase : uint8_t {
    kPreload,  // sends sets of keys that are not loaded yet
    kClosed,   // sends new requests when answers come
    kPaced,    // sends requests that are due
    kDrain,    // sends only paced requests that are due already
  };
  struct Client {
    std::unique_ptr<Connection> connection;
    uint32_t number = 0;  // of all connections of the run
    uint64_t due = 0;     // paced: number of requests that were due
    uint64_t sent = 0;    // paced: number of those that were sent
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
