#include "queue_pairs.h"

#include <map>
#include <shared_mutex>
#include <utility>

#include "counter_file.h"

namespace egret::interposer {
namespace {

constexpr uint64_t kPage = 4096;

Counter counter_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return Counter::kWrite;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return Counter::kWriteWithImm;
    case IBV_WR_RDMA_READ:
      return Counter::kRead;
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_INV:
      return Counter::kSend;
    case IBV_WR_SEND_WITH_IMM:
      return Counter::kSendWithImm;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return Counter::kCompareSwap;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return Counter::kFetchAdd;
    default:
      return Counter::kOther;
  }
}

// What no program has in its wr_id, we hope; whether it is one of ours is looked up.
constexpr uint64_t kMarks = 0xe62e7b1ull << 36;
constexpr uint64_t kMarkBits = ~uint64_t{0} << 36;

ibv_wc_opcode completed_as(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    default:
      return IBV_WC_SEND;
  }
}

// By number for completions, which name a queue pair no other way.
struct Table {
  std::shared_mutex mutex;
  std::map<const ibv_qp*, std::shared_ptr<QueuePair>> by_handle;
  std::map<std::pair<const ibv_context*, uint32_t>, std::shared_ptr<QueuePair>> by_number;
};

// Never destroyed: verbs may be called until the process is gone.
Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

}  // namespace

uint64_t bytes_of(const ibv_send_wr& work) {
  uint64_t bytes = 0;
  for (int i = 0; i < work.num_sge; ++i) bytes += work.sg_list[i].length;
  return bytes;
}

bool QueuePair::is_signalled(const ibv_send_wr& work) const {
  return signals_all_ || (work.send_flags & IBV_SEND_SIGNALED) != 0;
}

void QueuePair::count_one(const ibv_send_wr& work, uint64_t mark) {
  count_of(qp_->qp_type, counter_of(work.opcode));
  if (work.send_flags & IBV_SEND_INLINE) count(Counter::kInline);
  const bool signalled = is_signalled(work);
  if (signalled) count(Counter::kSignalled);
  const bool is_read = work.opcode == IBV_WR_RDMA_READ;
  const bool is_write = work.opcode == IBV_WR_RDMA_WRITE || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  const bool is_atomic = work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  const bool takes_read_depth = is_read || is_atomic;
  const uint64_t bytes = bytes_of(work);
  if (takes_read_depth && !broken_) count_most(Counter::kReadsUnderWay, ++reads_);
  if (is_read) {
    count(Counter::kReadBytes, bytes);
    if (work.wr.rdma.remote_addr % kPage != 0) count(Counter::kOffPageRead);
  } else if (is_write) {
    count(Counter::kWriteBytes, bytes);
    if (bytes == 0 && work.opcode == IBV_WR_RDMA_WRITE) count(Counter::kEmptyWrite);
  }
  if (!broken_) pending_.push_back({takes_read_depth, signalled, mark});
}

void QueuePair::posted(const ibv_send_wr* first, const ibv_send_wr* end, uint64_t mark) {
  for (const ibv_send_wr* work = first; work != end; work = work->next) count_one(*work, mark);
}

void QueuePair::completed() {
  const auto held = lock();
  bool reached = false;
  while (!reached && !pending_.empty()) {
    reached = pending_.front().is_signalled;
    if (pending_.front().takes_read_depth) --reads_;
    if (pending_.front().mark != 0) hidden_.erase(pending_.front().mark);
    pending_.pop_front();
  }
}

// Every work request comes back now, unsignalled ones included, and a failed completion does not say what it was.
void QueuePair::failed() {
  const auto held = lock();
  broken_ = true;
  pending_.clear();
  reads_ = 0;
}

uint64_t QueuePair::hide(const ibv_send_wr& verb) {
  const auto held = lock();
  const uint64_t mark = kMarks | (++hidden_so_far_ << 1 & ~kMarkBits);
  hidden_[mark] = {verb.wr_id, static_cast<uint32_t>(bytes_of(verb)), completed_as(verb.opcode), false};
  return mark;
}

bool QueuePair::show(ibv_wc& completion) {
  if ((completion.wr_id & kMarkBits) != kMarks) return true;
  const auto held = lock();
  const auto found = hidden_.find(completion.wr_id & ~kLastPiece);
  if (found == hidden_.end()) return true;
  Hidden& verb = found->second;
  const bool is_last = (completion.wr_id & kLastPiece) != 0;
  const bool has_failed = completion.status != IBV_WC_SUCCESS;
  if (verb.is_told || (!is_last && !has_failed)) return false;
  verb.is_told = has_failed;
  completion.wr_id = verb.wr_id;
  if (has_failed) return true;
  completion.opcode = verb.opcode;
  completion.byte_len = verb.bytes;
  return true;
}

void add_queue_pair(ibv_qp* qp, bool signals_all) {
  auto entry = std::make_shared<QueuePair>(qp, signals_all);
  const std::unique_lock held(table().mutex);
  table().by_handle[qp] = entry;
  table().by_number[{qp->context, qp->qp_num}] = std::move(entry);
  count(Counter::kQueuePairs);
}

void remove_queue_pair(const ibv_qp* qp) {
  const std::unique_lock held(table().mutex);
  table().by_handle.erase(qp);
  table().by_number.erase({qp->context, qp->qp_num});
  count(Counter::kQueuePairsDestroyed);
}

std::shared_ptr<QueuePair> queue_pair(ibv_qp* qp) {
  {
    const std::shared_lock held(table().mutex);
    const auto found = table().by_handle.find(qp);
    if (found != table().by_handle.end()) return found->second;
  }
  add_queue_pair(qp, false);
  return queue_pair(qp);
}

std::shared_ptr<QueuePair> queue_pair_by_number(const ibv_context* context, uint32_t number) {
  const std::shared_lock held(table().mutex);
  const auto found = table().by_number.find({context, number});
  return found == table().by_number.end() ? nullptr : found->second;
}

}  // namespace egret::interposer
