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

uint64_t bytes_of(const ibv_send_wr& work) {
  uint64_t bytes = 0;
  for (int i = 0; i < work.num_sge; ++i) bytes += work.sg_list[i].length;
  return bytes;
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

void QueuePair::count_one(const ibv_send_wr& work) {
  count_of(qp_->qp_type, counter_of(work.opcode));
  if (work.send_flags & IBV_SEND_INLINE) count(Counter::kInline);
  const bool is_signalled = signals_all_ || (work.send_flags & IBV_SEND_SIGNALED) != 0;
  if (is_signalled) count(Counter::kSignalled);
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
  if (!broken_) pending_.push_back({takes_read_depth, is_signalled});
}

void QueuePair::posted(const ibv_send_wr* first, const ibv_send_wr* end) {
  for (const ibv_send_wr* work = first; work != end; work = work->next) count_one(*work);
}

void QueuePair::completed() {
  const auto held = lock();
  bool reached = false;
  while (!reached && !pending_.empty()) {
    reached = pending_.front().is_signalled;
    if (pending_.front().takes_read_depth) --reads_;
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
