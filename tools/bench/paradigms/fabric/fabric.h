// The verbs as the laboratory sees them: registered memory, completion queues, queue pairs of type RC, UC and UD. The one
// seam below which a paradigm does not look. Two sides implement it: libibverbs (verbs_fabric.h), and a fabric inside the
// process (memory_fabric.h), which is deterministic, can tear, lose and delay, and needs no device.
//
//   Fabric ── make_memory, make_queue, make_pair ─▶ told to the peers (node.h) ─▶ Pair::join ─▶ post, poll
//
// A Fabric is one node's (one thread's) for one paradigm: a protection domain of its own, and counters of what was posted.
// What it has made must go before it does. Everything belongs to that thread. Errors of set-up are one sentence.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace egret::bench_paradigms {

enum class PairType : uint8_t { kRc, kUc, kUd };
enum class Verb : uint8_t { kWrite, kRead, kSend, kCompareSwap, kFetchAdd, kReceive };
inline constexpr size_t kPairTypes = 3;
inline constexpr size_t kVerbs = 6;
// Tags of Works and Receives are less than 2^61: fabrics need the other bits.
inline constexpr unsigned kTagBits = 61;
inline constexpr uint64_t kMostTag = (uint64_t{1} << kTagBits) - 1;

// What the other side may do with a memory. Or-ed together.
enum Rights : uint8_t { kNoRights = 0, kRemoteRead = 1, kRemoteWrite = 2, kRemoteAtomic = 4 };

// Where a peer's memory is. Travels as it is.
struct RemoteMemory {
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint32_t key = 0;
  uint32_t unused = 0;
};

// Registered, page-aligned, zeroed.
class Memory {
 public:
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  uint32_t local_key() const { return local_key_; }
  RemoteMemory remote() const { return {reinterpret_cast<uint64_t>(data_), size_, remote_key_, 0}; }

 protected:
  Memory() = default;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint32_t local_key_ = 0;
  uint32_t remote_key_ = 0;
};

// The way to a UD peer: an address handle. Owned by who asked for it, used by Works.
class Way {
 public:
  virtual ~Way() = default;
};

// How a node is reached: what its pairs tell, the same for all of a node's pairs. Travels as it is.
struct NodeAddress {
  std::array<uint8_t, 16> gid{};
  uint32_t node = 0;  // number of the node in this run
  uint16_t lid = 0;
  uint16_t unused = 0;
};

// A work request for sending. `local` lies in `memory`, or (if is_inline) anywhere until post returns.
struct Work {
  Verb verb = Verb::kWrite;
  bool is_signalled = false;
  bool is_inline = false;
  bool is_fenced = false;  // begins when all earlier READs and atomics of the pair have completed
  bool has_immediate = false;
  uint32_t bytes = 0;  // 8 for atomics
  std::byte* local = nullptr;
  const Memory* memory = nullptr;
  uint64_t remote_address = 0;  // WRITE, READ, atomics
  uint32_t remote_key = 0;
  uint32_t immediate = 0;
  uint64_t compare_or_add =
      0;  // kCompareSwap: the value expected; kFetchAdd: what is added. The old value comes to `local`.
  uint64_t swap = 0;
  const Way* way = nullptr;  // UD
  uint32_t to_pair = 0;      // UD: the peer's pair
  uint64_t tag = 0;          // comes back with the completion; at most kMostTag
};

// A place for what a SEND brings (or for a WRITE's immediate data: 0 bytes). On UD the first kGrhBytes of it are the device's.
struct Receive {
  std::byte* local = nullptr;
  uint32_t bytes = 0;
  const Memory* memory = nullptr;
  uint64_t tag = 0;
};
inline constexpr uint32_t kGrhBytes = 40;

struct Completion {
  uint64_t tag = 0;
  Verb verb = Verb::kWrite;  // kReceive: of a Receive
  bool is_ok = false;        // false: the pair is of no use any more
  bool has_immediate = false;
  uint32_t bytes = 0;  // kReceive: that came (UD: with the GRH)
  uint32_t immediate = 0;
  uint32_t pair = 0;       // own pair's number
  uint32_t from_pair = 0;  // kReceive on UD: the sender's
};

// Verbs of about one size: those whose payload has the same number of binary digits.
struct SizeClass {
  uint64_t count = 0;
  uint64_t bytes = 0;
};
inline constexpr size_t kSizeClasses = 22;  // the last: 1 MiB and more

// What was posted. Plain sums; read between rounds.
struct VerbCounts {
  std::array<std::array<uint64_t, kVerbs>, kPairTypes> posted{};  // by type of pair and verb
  std::array<std::array<std::array<SizeClass, kSizeClasses>, kVerbs>, kPairTypes> by_size{};  // the same; no RECVs
  uint64_t doorbells = 0;                                                                     // calls that posted Works
  uint64_t receive_doorbells = 0;
  uint64_t signalled = 0;
  uint64_t inlined = 0;
  uint64_t payload_bytes = 0;  // of Works: sent, or read; atomics 8
  uint64_t wire_bytes = 0;     // of Works, with the packets' heads (wire.h)
  // Words that atomics have fallen on since the fabric was made, as a card tells them apart that looks at twelve bits of
  // an address (paper 002, section 5.4): a bit for each.
  std::array<uint64_t, 8> atomic_places{};

  uint64_t of(Verb verb) const;  // over all types
  uint32_t places_of_atomics() const;
  VerbCounts operator-(const VerbCounts& earlier) const;
  VerbCounts& operator+=(const VerbCounts& other);
};

// A completion queue.
class Queue {
 public:
  virtual ~Queue() = default;
  // How many of `out` were filled. Never waits.
  virtual uint32_t poll(std::span<Completion> out) = 0;
};

// What the devices of all nodes of a run can do.
struct Capabilities {
  bool has_atomics = false;
  bool has_backward_answers = false;  // this host's own device: what an atomic answers is big-endian (turn_answer)
  bool has_uc = false;
  bool has_ud = false;
  bool is_emulated = false;
  bool is_in_order = false;  // ibv_query_qp_data_in_order: a WRITE on RC or UC is placed in rising order
  uint32_t inline_bytes = 0;
  uint32_t mtu = 1024;
  uint32_t packet_head = 62;  // bytes of a packet beside its payload (wire.h)
  uint32_t read_depth = 1;
  std::string device;
};

// What an atomic that has completed has brought, 8 bytes, into this host's order of bytes.
void turn_answer(const Capabilities& can, std::byte* answer);

struct PairSpec {
  PairType type = PairType::kRc;
  Queue* send_queue = nullptr;
  Queue* receive_queue = nullptr;  // may be the same
  uint32_t sends = 16;  // Works that may be under way; a completion frees its own and all unsignalled ones before
  uint32_t receives = 1;
  uint32_t read_depth = 16;  // READs and atomics of them, at most; the device may give less
};

class Pair {
 public:
  virtual ~Pair() = default;
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  uint32_t number() const { return number_; }  // told to the peer
  PairType type() const { return type_; }

  // RC, UC: with the peer's pair of that number. UD: ready to send and receive; the peer is named by each Work.
  virtual base::Status join(const NodeAddress& peer, uint32_t peer_pair) = 0;

  // In order, by one doorbell. False: the device took not all of them (no room, or the pair is broken), or a tag is too large;
  // none is counted.
  bool post(std::span<const Work> works);
  bool post(const Work& work) { return post(std::span(&work, 1)); }
  bool post_receives(std::span<const Receive> receives);

 protected:
  Pair(PairType type, VerbCounts& counts, const Capabilities& all)
      : type_(type), counts_(counts), mtu_(all.mtu), packet_head_(all.packet_head) {}
  virtual bool do_post(std::span<const Work> works) = 0;
  virtual bool do_post_receives(std::span<const Receive> receives) = 0;
  uint32_t number_ = 0;

 private:
  PairType type_;
  VerbCounts& counts_;
  uint32_t mtu_;
  uint32_t packet_head_;
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  virtual const Capabilities& capabilities() const = 0;
  // Of memory that is made from now on.
  void want_huge_pages(bool wants_huge) { wants_huge_pages_ = wants_huge; }
  virtual NodeAddress address() const = 0;
  virtual base::Expected<std::unique_ptr<Memory>> make_memory(size_t bytes, uint8_t rights) = 0;
  virtual base::Expected<std::unique_ptr<Queue>> make_queue(uint32_t entries) = 0;
  virtual base::Expected<std::unique_ptr<Pair>> make_pair(const PairSpec& spec) = 0;
  virtual base::Expected<std::unique_ptr<Way>> make_way(const NodeAddress& peer) = 0;  // UD

  const VerbCounts& counts() const { return counts_; }

 protected:
  VerbCounts counts_;
  bool wants_huge_pages_ = false;
};

}  // namespace egret::bench_paradigms
