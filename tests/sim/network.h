// The simulated transport: endpoints whose bytes travel when step() says so, in an order drawn from the seed.
//
//   client endpoint ─ staged ─ flush ─▶ verbs of the link ─ step() by step(), a cache line at a time ─▶ region
//                 ◀─ events ◀───────── reads complete, deliveries land ◀──────────────────────────────┘
//
// kVerbs has a queue pair's restrictions. A WRITE becomes visible in 64-byte lines in any order, its bytes taken from
// the request image as late as that. A READ starts when every WRITE staged before it is placed, samples its lines in
// any order over several steps, and lands in the response image when it is whole and all earlier READs have landed;
// until then its range of the image holds junk. Later WRITEs may overtake READs. A ring comes after the WRITEs before
// it, and after the bytes that it carries. Pushed bytes are in their reply slot, and change under the reader's eyes when
// that slot is pushed again. At most `read_depth` READs at once: more abort. Only the home may deliver: others abort.
//
// kShm has both images in the region itself. The first word of a write waits in a store buffer until flush() (the
// fence) or a later step; everything else is visible at once. Deliver is a wake-up and nothing else. Where
// each lane has a ring, a ring wakes the lane's partition; another partition that polls that lane aborts.
//
// kLocal is kShm within one process, whose workers serve partitions themselves (`workers`): what a client writes to a lane
// of its own thread is executed within its flush(), and nobody is woken for it. A ring is not under way: it calls the home
// if that is of the client's own thread, and wakes it otherwise.
//
// kTcp is a stream each way: what was staged first arrives first, a request's first word behind the rest of it, and a
// request rings its lane. The server delivers every response into the response image, in order; reads abort. Both ends'
// data descriptors tell of what has come, armed or not, and the client looks only after ready().
//
// An address that begins "rdma:" or "tcp:" is reached by kVerbs or kTcp, whatever the network's flavour is.
//
// A client's address is BACKEND@CLIENT, or BACKEND@CLIENT#N where a client has several connections: a path is all of it
// before the '#', a server's address what comes before the '@'. A path can be cut in either direction: what is under way
// in that direction waits, and so does what tells of the peer's end; new connections hang. Only kVerbs has cut paths.
//
// Every virtual call is a place where the other side may be let in: see Network::set_preempt().
// Single-threaded. The network outlives its endpoints.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "rng.h"
#include "transport/address.h"
#include "transport/transport.h"

namespace egret::sim {

enum class Flavour : uint8_t { kVerbs, kShm, kTcp, kLocal };  // an address that begins with shm: is of kShm in any case

struct NetworkOptions {
  Flavour flavour = Flavour::kVerbs;
  uint32_t read_depth = 16;
  uint32_t stall_percent = 2;      // chance that a verb, when its turn comes, first waits
  uint64_t stall_max_ns = 20'000;  // this long at most
  bool overtake = true;            // WRITEs may pass earlier READs, and WRITEs elsewhere in memory
  bool lane_rings = false;         // kShm: clients offer a ring for each lane
  uint32_t workers = 0;  // kLocal: client n is the thread of worker n, which serves each partition p, p % workers = n
};

// What the network did: shows that a test met what it is about.
struct NetworkCounters {
  uint64_t writes = 0;
  uint64_t reads = 0;
  uint64_t rings = 0;
  uint64_t ringing_writes = 0;  // those of the rings that were WRITEs, too
  uint64_t deliveries = 0;
  uint32_t most_reads = 0;  // on one link at once
};

struct Link;

class Network {
 public:
  Network(const NetworkOptions& options, const base::Clock& clock, Rng& rng);
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // What rpc::ClientSession is given: connects to the network that was made last.
  static base::Expected<std::unique_ptr<transport::ClientEndpoint>> connect(const std::string& address,
                                                                            const transport::ConnectOptions& options);
  // The server's end of the next connection to a server's address ("": to any); null when none waits.
  std::unique_ptr<transport::ServerEndpoint> accept(const std::string& server = {});
  bool is_anybody_connecting(const std::string& server) const;

  // One line of one verb, or one landing. False when nothing is under way.
  bool step();
  // Nothing is under way on any link.
  bool is_idle() const;
  // What an event loop would be told of a client's descriptor, which is no number of the system's, and of a server's
  // end: its data descriptor became readable (taking clears that, as an edge-triggered wait does); its control channel has
  // a frame or the peer's end.
  static constexpr int kFirstFd = 1 << 20;
  bool take_ready(int fd);
  bool is_ready(int fd) const;
  // `lane`: whose ring it is, where each has one.
  static bool take_wake(transport::ServerEndpoint& endpoint, uint32_t lane = 0);
  static bool has_wake(transport::ServerEndpoint& endpoint, uint32_t lane = 0);
  static bool is_control_ready(transport::ServerEndpoint& endpoint);

  // Who may use an endpoint, and who is about to: any other that delivers or polls aborts (kVerbs).
  static void set_home(transport::ServerEndpoint& endpoint, uint32_t home);
  uint32_t acting_partition = 0;

  // Connections are refused while this is set.
  void refuse_connections(bool refuse) { refuse_ = refuse; }
  // The same for one server's address: nobody listens there.
  void refuse_connections(const std::string& server, bool refuse);

  struct Cut {
    bool to_server = false;
    bool to_client = false;
  };
  void cut(const std::string& path, Cut cut);
  // The queue pairs of the path's clients give up: each client finds its connection closed. The server does not know.
  void break_clients(const std::string& path);
  // Called wherever an endpoint is called, before it acts: may step the network or run the other side.
  void set_preempt(std::function<void()> preempt) { preempt_ = std::move(preempt); }
  void preempt() const {
    if (preempt_) preempt_();
  }

  const NetworkOptions& options() const { return options_; }
  const NetworkCounters& counters() const { return counters_; }
  // Request memory, for tests that write into it as a hostile client would.
  static std::byte* request_memory(transport::ServerEndpoint& endpoint);

 private:
  friend class ClientEnd;
  friend class ServerEnd;

  Cut cut_of(const std::string& address) const;
  static bool is_control_ready(const Link& link);
  static bool can_move(const Link& link);
  bool step_link(Link& link);
  bool step_verb(Link& link, size_t index);
  bool is_eligible(const Link& link, size_t index) const;
  bool step_delivery(Link& link);
  void tell_of_ring(Link& link, uint32_t lane);
  void land_reads(Link& link);
  Flavour flavour_of(const std::string& address) const;
  std::vector<uint32_t> shuffled_lines(size_t offset, size_t length);
  // The first one comes last.
  static std::vector<uint32_t> lines_of_stream(size_t offset, size_t length);

  const NetworkOptions options_;
  const base::Clock& clock_;
  Rng& rng_;
  std::function<void()> preempt_;
  std::vector<std::shared_ptr<Link>> links_;
  std::map<int, Link*> by_fd_;  // by the control descriptor of the client's end; the data descriptor is the next number
  int next_fd_ = kFirstFd;
  std::deque<std::shared_ptr<Link>> connecting_;
  NetworkCounters counters_;
  bool refuse_ = false;
  std::set<std::string> refusing_;  // servers' addresses
  std::map<std::string, Cut> cuts_;
};

}  // namespace egret::sim
