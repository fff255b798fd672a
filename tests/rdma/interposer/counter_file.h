// The counters of one process, in a file that anybody may read at any moment: nothing has to be triggered, and what a
// killed process has counted stays. read_counts.py is the reader; it knows the layout and no counter's name.
//
//   0    header   magic "EGRETVC1", u32 counters, u32 registrations, u32 pid, u32 registrations made; 64 bytes
//   64   counter  char name[48], u64 value, u32 kind (0 sum, 1 the largest so far), u32 0; 64 bytes each
//   ...  registration  u64 address, u64 length, u32 access, u32 state, u32 rkey, 36 bytes 0; 64 bytes each
//
// Little-endian, as the machine is. Values are only ever changed by relaxed atomics: a reader sees each whole, and the
// difference of two readings is what happened between them. Thread-safe throughout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <infiniband/verbs.h>

namespace egret::interposer {

// What is counted. The names are in counter_file.cc; read_counts.py prints them.
enum class Counter : uint32_t {
  // Work requests posted for sending, by opcode.
  kWrite,
  kWriteWithImm,
  kRead,
  kSend,
  kSendWithImm,
  kCompareSwap,
  kFetchAdd,
  kOther,
  // The same once more, by what they are like.
  kInline,
  kSignalled,
  kEmptyWrite,   // WRITEs of no byte: keep-alives
  kOffPageRead,  // READs that do not begin at a multiple of 4 KiB: the rest of something
  kWriteBytes,   // of WRITE and WRITE_WITH_IMM
  kReadBytes,
  kDoorbells,          // calls of ibv_post_send
  kRecv,               // work requests posted for receiving
  kRecvDoorbells,      // calls of ibv_post_recv
  kReadsUnderWay,      // the most READs and atomics that one queue pair had posted and not completed
  kSendCompletions,    // successful
  kRecvCompletions,    // successful
  kFailedCompletions,  // of either kind
  kPolls,
  kEmptyPolls,  // of these without a completion
  kArms,
  kSolicitedArms,      // of these for solicited events only
  kCompletionEvents,   // that were taken from completion channels
  kEventReads,         // system calls for that
  kSleeps,             // calls of epoll_wait() that may wait
  kCompletionVector,   // the largest so far that a completion queue was made for
  kCompletionEntries,  // of completion queues, as asked for when they were made and each time they were resized
  kCompletionChannels,
  kCompletionChannelsDestroyed,
  kCompletionQueues,
  kCompletionQueuesDestroyed,
  kQueuePairs,
  kQueuePairsDestroyed,
  kRegistrations,
  kRegisteredBytes,
  kRemoteWritable,   // registrations with that right
  kRemoteReadable,   // registrations with that right
  kRelaxedOrdering,  // registrations with that licence
  kDeregistrations,
  kUncounted,  // extended queue pairs and completion queues, registrations anew: what this library does not see
  kFailedOnPurpose,
  kSlowBegun,  // calls that were made slow on purpose
  kSlowEnded,
  kRefusedByLimits,   // queue pairs that asked for more than EGRET_VERBS_LIMIT allows, options that are hidden
  kThreadDomains,     // that were made for EGRET_VERBS_HAVE=thread_domains
  kThreadPairs,       // queue pairs in them
  kOptionTos,         // the largest so far that rdma_cm was told
  kOptionAckTimeout,  // the largest so far that rdma_cm was told
  // What a plan made of some of the verbs above (tear_plan.h).
  kTorn,
  kPieces,  // that they were torn into
  kSwallowed,
  // How the program is told of completions (completion_plan.h).
  kWithheld,
  kSpuriousEvents,
  // From here on: of each type of queue pair (RC, UC, UD), the counters from kWrite to kFetchAdd, then kRecv.
  kByPairType,
};
inline constexpr uint32_t kOpcodes = static_cast<uint32_t>(Counter::kOther);  // that have a counter
inline constexpr uint32_t kOfPairType = kOpcodes + 1;                         // and RECV
inline constexpr uint32_t kPairTypes = 3;
inline constexpr uint32_t kCounters = static_cast<uint32_t>(Counter::kByPairType) + kPairTypes * kOfPairType;
inline constexpr uint32_t kMaxRegistrations = 4096;  // later ones are counted, and not listed

void count(Counter counter, uint64_t by = 1);
// The same, and that of the queue pair's type. `counter`: kWrite to kFetchAdd, or kRecv.
void count_of(ibv_qp_type type, Counter counter, uint64_t by = 1);
void count_most(Counter counter, uint64_t seen);

enum class RegistrationState : uint32_t { kRegistered = 1, kDeregistered = 2, kFailed = 3 };

// Lists a registration; the answer names it for `note_deregistered`.
uint32_t note_registered(uint64_t address, uint64_t length, uint32_t access, uint32_t rkey, RegistrationState state);
void note_deregistered(uint32_t index);

}  // namespace egret::interposer
