// Which verbs reach the device otherwise than they were posted: for tests of what a program makes of transfers that are
// not whole, and of verbs that vanish. The program is told nothing: it has posted one verb, and sees one completion.
//
//   EGRET_VERBS_TEAR=VERB:BYTES:ORDER:PAUSE_US[:later][:every N][,…]
//     VERB      read, or write (with immediate data, too)
//     BYTES     of a piece: 8 to 4096, in eights. A verb that is no longer stays whole. One of more than 32 pieces takes
//               place in 32 or fewer, each as many times longer.
//     ORDER     up, down, ends: the first, the last, then those between; or shuffled: the first, then the others in
//               one of sixteen orders, which the verbs of a queue pair take in turn
//     PAUSE_US  the posting thread sleeps so long between two pieces
//     later     read only: the posting thread posts the first piece and goes on; another one posts the others. Whoever posts
//               to the same queue pair meanwhile waits. So a program can look at what has come of a READ that is under way.
//     every N   only the Nth, 2Nth … of those that could be torn; otherwise all
//   EGRET_VERBS_SWALLOW=[rc_|uc_|ud_]VERB:N[+|-M],…  or  …VERB:every N
//     VERB      write, write_with_imm, send, send_with_imm. The Nth of them (as in fail_plan.h), or one in N, is accepted
//               and never posted. If it is signalled, a stand-in that brings nothing gives its completion: an empty
//               WRITE, on UD a SEND whose key the receiver's device refuses in silence.
//
// A piece is a work request of its own on the same queue pair; the verb's signal, solicitation and immediate data go with
// the last one posted, fences and inline data with each. Its completion has the verb's wr_id and length (the one that
// immediate data makes at the receiver has the last piece's length). If a piece fails, that is the verb's failure. Queues are made larger
// than they are asked for, which the program does not see. Counted are the program's verbs; and `torn`, `pieces`,
// `swallowed`. A plan that cannot be read ends the process. Thread-safe.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

namespace egret::interposer {

inline constexpr uint32_t kMostPieces = 32;

enum class TearOrder : uint8_t { kUp, kDown, kEnds, kShuffled };
struct Tear {
  uint32_t bytes = 0;
  TearOrder order = TearOrder::kUp;
  uint32_t pause_us = 0;
  bool is_later = false;
};

// Whether any of this is planned: otherwise lists are posted as they are.
bool is_posting_planned();
// Null: it stays whole. To be asked exactly once for each verb, as is the next.
const Tear* tear_of(ibv_wr_opcode opcode, uint64_t bytes);
bool must_swallow(ibv_qp_type type, ibv_wr_opcode opcode);
// Work requests that one verb may become.
uint32_t works_of_a_verb();

}  // namespace egret::interposer
