#include "pieces.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <unistd.h>

#include "counter_file.h"
#include "tear_plan.h"

namespace egret::interposer {
namespace {

constexpr unsigned kAtTheEnd = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;  // flags that only the last piece has

// Which part of a verb's memory a piece is.
std::vector<ibv_sge> part_of(const ibv_send_wr& work, uint64_t begin, uint64_t bytes) {
  std::vector<ibv_sge> part;
  for (int i = 0; i < work.num_sge && bytes > 0; ++i) {
    const ibv_sge& whole = work.sg_list[i];
    if (begin >= whole.length) {
      begin -= whole.length;
      continue;
    }
    const uint64_t here = std::min<uint64_t>(bytes, whole.length - begin);
    part.push_back({whole.addr + begin, static_cast<uint32_t>(here), whole.lkey});
    begin = 0;
    bytes -= here;
  }
  return part;
}

// Which pieces come one after the other. `mark`: of this verb.
std::vector<uint64_t> in_order(TearOrder order, uint64_t pieces, uint64_t mark) {
  std::vector<uint64_t> numbers(pieces);
  std::iota(numbers.begin(), numbers.end(), 0);
  if (order == TearOrder::kDown) std::reverse(numbers.begin(), numbers.end());
  if (order == TearOrder::kEnds) std::rotate(numbers.begin() + 1, numbers.end() - 1, numbers.end());
  if (order == TearOrder::kShuffled) std::shuffle(numbers.begin() + 1, numbers.end(), std::mt19937_64(mark / 2 % 16));
  return numbers;
}

// Posts one work request. `verb`: what the program has posted, if this is all or the last of it.
int post_one(QueuePair& pair, PostSend provider, ibv_send_wr work, const ibv_send_wr* verb, uint64_t mark = 0) {
  work.next = nullptr;
  ibv_send_wr* bad = nullptr;
  const auto held = pair.lock();
  const int error = provider(pair.handle(), &work, &bad);
  if (error == 0 && verb != nullptr) pair.posted(verb, verb->next, mark);
  return error;
}

// A verb that is posted in pieces.
struct Torn {
  ibv_send_wr verb;
  std::vector<ibv_sge> memory;  // the verb's
  Tear tear;
  uint64_t bytes, piece, mark;
  std::vector<uint64_t> order;  // of the pieces
};

Torn torn_of(QueuePair& pair, const ibv_send_wr& verb, const Tear& tear) {
  Torn torn{verb, {verb.sg_list, verb.sg_list + verb.num_sge}, tear, bytes_of(verb), 0, pair.hide(verb), {}};
  torn.verb.next = nullptr;
  const uint64_t least = (torn.bytes + tear.bytes - 1) / tear.bytes;
  torn.piece = tear.bytes * ((least + kMostPieces - 1) / kMostPieces);
  torn.order = in_order(tear.order, (torn.bytes + torn.piece - 1) / torn.piece, torn.mark);
  return torn;
}

int post_piece(QueuePair& pair, PostSend provider, Torn& torn, uint64_t n) {
  torn.verb.sg_list = torn.memory.data();
  const bool is_last = n + 1 == torn.order.size();
  const uint64_t begin = torn.order[n] * torn.piece;
  std::vector<ibv_sge> memory = part_of(torn.verb, begin, std::min(torn.piece, torn.bytes - begin));
  ibv_send_wr work = torn.verb;
  work.sg_list = memory.data();
  work.num_sge = static_cast<int>(memory.size());
  work.wr.rdma.remote_addr += begin;
  work.wr_id = is_last ? torn.mark | kLastPiece : torn.mark;
  if (!is_last) {
    work.send_flags &= ~kAtTheEnd;
    if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) work.opcode = IBV_WR_RDMA_WRITE;
  }
  if (n > 0 && torn.tear.pause_us > 0) usleep(torn.tear.pause_us);
  return post_one(pair, provider, work, is_last ? &torn.verb : nullptr, torn.mark);
}

int post_pieces(QueuePair& pair, PostSend provider, const ibv_send_wr& verb, const Tear& tear) {
  Torn torn = torn_of(pair, verb, tear);
  count(Counter::kTorn);
  count(Counter::kPieces, torn.order.size());
  const uint64_t at_once = tear.is_later ? 1 : torn.order.size();
  for (uint64_t n = 0; n < at_once; ++n) {
    if (const int error = post_piece(pair, provider, torn, n); error != 0) return error;
  }
  if (!tear.is_later) return 0;
  pair.begin_later(std::thread([&pair, provider, torn]() mutable {
    // A queue pair that has broken meanwhile says so by what was posted before.
    for (uint64_t n = 1; n < torn.order.size(); ++n) (void)post_piece(pair, provider, torn, n);
  }));
  return 0;
}

int swallow(QueuePair& pair, PostSend provider, const ibv_send_wr& verb) {
  count(Counter::kSwallowed);
  if (!pair.is_signalled(verb)) {
    const auto held = pair.lock();
    pair.posted(&verb, verb.next);
    return 0;
  }
  ibv_send_wr stand_in = verb;
  const uint64_t mark = pair.hide(verb);
  stand_in.wr_id = mark | kLastPiece;
  if (pair.handle()->qp_type == IBV_QPT_UD) {
    stand_in.wr.ud.remote_qkey ^= 1;
  } else {
    stand_in.opcode = IBV_WR_RDMA_WRITE;
    stand_in.num_sge = 0;
    stand_in.wr.rdma = {};
  }
  return post_one(pair, provider, stand_in, &verb, mark);
}

int post_verb(QueuePair& pair, PostSend provider, const ibv_send_wr& verb) {
  if (must_swallow(pair.handle()->qp_type, verb.opcode)) return swallow(pair, provider, verb);
  const Tear* const tear = tear_of(verb.opcode, bytes_of(verb));
  return tear == nullptr ? post_one(pair, provider, verb, &verb) : post_pieces(pair, provider, verb, *tear);
}

}  // namespace

int post_by_plan(QueuePair& pair, PostSend provider, ibv_send_wr* list, ibv_send_wr** bad) {
  pair.end_later();
  for (ibv_send_wr* verb = list; verb != nullptr; verb = verb->next) {
    if (verb != list) pair.end_later();
    if (const int error = post_verb(pair, provider, *verb); error != 0) {
      *bad = verb;
      return error;
    }
  }
  return 0;
}

}  // namespace egret::interposer
