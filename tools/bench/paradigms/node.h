// A node: one thread's part in one paradigm, on a server core or on a client thread. The same class of node runs over
// libibverbs between hosts, in guests under the interposer, and over the memory fabric in tests.
//
//   make (paradigm.h) ─▶ prepare ─▶ notice(to) of every node to every node ─▶ join(from, notice) ─▶ load ─▶ rounds
//   server:  serve() again and again
//   client:  begin(op) up to the window ─▶ poll() ─▶ results, in any order
//
// Nodes 0 … servers-1 are server cores, the others client threads. Partitions are the servers': `partition_of` a key.
// After join a node allocates nothing and calls nothing of the system. Everything of a node belongs to its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "bench/keyspace.h"
#include "bench_paradigms/fabric/fabric.h"

namespace egret::bench_paradigms {

using NodeId = uint32_t;

// What 002's ablations and the papers' settings change. The values here are what runs by default.
struct Tuning {
  bool as_paper = false;        // leave out what we have added to the paper's design
  bool is_synchronous = false;  // --posting sync: wait for the completion of what was posted, before the next
  uint32_t doorbell = 1;        // Works that a server collects in a pass for one doorbell; it never waits for them
  uint32_t ud_pairs = 1;        // UD pairs a server core answers with, in turn
  uint32_t signal_every = 64;   // one signalled of so many, where nothing else needs a completion
  bool is_inline = true;        // small payloads are given with the work request
  bool is_header_only = false;  // sequencers: the number goes as immediate data
  uint32_t pad = 0;             // bytes added to each response
  bool has_huge_pages = false;  // slots and stores
  uint32_t queue_pairs = 1;     // connections of a client thread to each server core, in turn (bundle.h)
  bool prefetches = false;      // a server looks at all requests of a pass before it executes the first
  uint32_t batch_add = 1;       // sequencers: one fetch-and-add on the server's counter for so many requests of a pass
  uint32_t atomic_stride = 64;  // bytes between two lock words
  uint32_t fetch_bytes = 0;     // rfp: RFS; 0: value_bytes + 4 rounded as the paper does
  uint32_t hybrid_vain = 5;     // rfp-hybrid, egret: fetches in vain, twice in a row, before it asks for replies
  uint32_t ways = 2;            // nessie: index tables
  uint32_t hops = 6;            // farm: slots of a neighbourhood (H)
  double load = 0.75;           // share of an exposed table's entries that hold a key
  double index_load = 0.2;      // nessie: share of index words that refer to a loaded key
  uint32_t filter_bits = 7;     // nessie: of a key's hash in its index word; fewer where nodes need the bits
  uint32_t spare_entries = 16'384;  // nessie: a client's entries for puts; each is out of use for T after its time
  bool places_at_server = false;    // nessie: entries live in the servers' memory, by WRITE
  uint32_t cache_entries = 0;       // nessie: of a client's cache; 0: none
  double locality = 0;              // nessie: share of gets for keys that this node has put
  uint64_t reuse_delay_ns = 1'000'000'000;  // nessie: T
  bool has_own_node = false;                // nessie-sd: core s and each client i with i mod cores = s are one node
  bool polls_watermark = false;             // nessie, as the paper: a READ has come when its last byte has
  bool checks = true;                       // farm: checksum of a slot; pilaf: its CRCs are looked at
  bool caches_places = true;                // drtm: clients know the places of all keys, but those they find erased
  uint32_t raw_reads = 1;  // raw-read: READs of a get; 2: of a word that says where the value is, before
};

struct Plan {
  uint32_t servers = 1;
  uint32_t clients = 1;
  uint32_t window = 1;  // ops a client has under way at most
  uint32_t key_bytes = 16;
  uint32_t value_bytes = 32;  // of every value
  uint64_t seed = 1;
  Tuning tuning = {};
  const bench::Keyspace* keys = nullptr;  // all of them, with their texts; the same on every host
  const base::Clock* clock = nullptr;     // for what waits for time; null: the host's
  // Called by a server between the steps of a change that READs may overtake (stores/step_writer.h): tests let READs come
  // in there. Null: nothing.
  const std::function<void()>* pause = nullptr;

  uint32_t nodes() const { return servers + clients; }
  bool is_server(NodeId node) const { return node < servers; }
};

// 64 bits of a key, the same on all nodes (XXH3). Stores draw their places from it.
uint64_t hash_of(std::string_view key);
// The server core whose key it is.
NodeId partition_of(const Plan& plan, std::string_view key);
// The version that loaded values carry (bench::write_value); versions of puts are larger.
inline constexpr uint64_t kLoadedVersion = 1;

enum class OpKind : uint8_t { kGet, kPut, kErase, kNext };  // kNext: a sequencer's next number
struct Op {
  OpKind kind = OpKind::kGet;
  uint32_t key_number = 0;  // of plan.keys
  std::string_view key;
  std::string_view value;  // kPut: plan.value_bytes; valid until begin returns
  uint64_t ticket = 0;     // comes back with the result
};

enum class Outcome : uint8_t {
  kHit,     // get: `value` is it; next: `value` is the number, 8 bytes, little-endian
  kMiss,    // get, erase: there is no such key
  kDone,    // put, erase
  kFull,    // put: no room, nothing changed
  kLost,    // nothing came in time on a transport that may lose; whether it was done is not known
  kFailed,  // the session is broken
};
struct Result {
  uint64_t ticket = 0;
  Outcome outcome = Outcome::kFailed;
  std::string_view value;  // valid until the node's next call
};

// What a client met on the way. Sums.
struct Trouble {
  uint64_t retries = 0;   // reads or requests done again since something was torn, changed or lost
  uint64_t vain = 0;      // rfp, egret: fetches that came before their result
  uint64_t stuck = 0;     // items found locked or invalid for longer than any op takes
  uint64_t reads = 0;     // rfp-hybrid: ops answered by READ; the others were answered by WRITE. egret: messages
  uint64_t messages = 0;  // egret: sent; a message holds ops of a pass
  uint64_t wants = 0;     // egret: WRITEs that ask for a reply

  Trouble& operator+=(const Trouble& other);
};

class Node {
 public:
  virtual ~Node() = default;
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Makes memory and pairs. Fails with the reason for the row "not available: why".
  virtual base::Status prepare() = 0;
  // What node `to` must know of this one: keys of the memory that it may use, numbers of its pairs. May be empty.
  virtual std::string notice(NodeId to) = 0;
  // What node `from` has told this one. Checked: from another host. Called for every other node, in their order.
  virtual base::Status join(NodeId from, const NodeAddress& address, std::string_view notice) = 0;
  // Puts what belongs to this node of every key of plan.keys in place, kLoadedVersion; all nodes have joined.
  virtual base::Status load() { return base::Status::ok(); }
};

// A step of preparing or loading whose stores may ask for more memory than the host has: that is a reason like any other.
base::Status within_memory(const std::function<base::Status()>& step);

class ServerNode : public Node {
 public:
  // One look at everything that clients may want. Whether there was anything to do.
  virtual bool serve() = 0;
  // READs (or other counted steps) of a get of this key, as the loaded store is now: what section "counts" of the report
  // compares with the counted ones. 0 where the number does not depend on the key.
  virtual uint32_t walk(std::string_view key) const { return key.empty() ? 0 : 0; }
  // The same, where it depends on the client.
  virtual uint32_t walk_of(NodeId /*client*/, std::string_view key) const { return walk(key); }
  // What it has met: requests that it looked at before they were whole, where it can tell.
  virtual Trouble trouble() const { return {}; }
};

class ClientNode : public Node {
 public:
  // False: the window is full (or this design has no such op: see Paradigm::kinds). The key and value may go after it.
  virtual bool begin(const Op& op) = 0;
  virtual uint32_t poll(std::span<Result> out) = 0;
  virtual Trouble trouble() const = 0;
};

}  // namespace egret::bench_paradigms
