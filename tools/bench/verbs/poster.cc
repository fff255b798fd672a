#include "bench_verbs/poster.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <sched.h>

#include "bench/histogram.h"
#include "bench/monotonic.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr int kPollBatch = 16;
constexpr uint32_t kPatientPolls = 1024;  // empty ones before the processor is given away: none on real devices
constexpr uint64_t kStuckNs = 10 * bench::kNsPerSecond;
constexpr uint32_t kGroups = 4;  // of a queue pair

// Verbs that are posted together, and then, for a fetch with a rest, those that follow them.
struct Group {
  ibv_qp* pair = nullptr;
  std::vector<ibv_sge> pieces;
  std::vector<ibv_send_wr> first, second;
  // Atomics: what each must find, and where its answer is.
  std::vector<uint64_t> words;
  std::vector<const std::byte*> answers;
  bool in_second = false;
  uint64_t posted_ns = 0;
};

// One verb of a slot: from where in it, how many bytes.
struct Part {
  ibv_wr_opcode opcode;
  uint32_t at;
  uint32_t length;
  bool is_rest = false;  // of a fetch: it follows the others
};

ibv_wr_opcode opcode_of(Kind kind) {
  switch (kind) {
    case Kind::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Kind::kFetchAdd:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
    case Kind::kCompareSwap:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Kind::kSend:
      return IBV_WR_SEND_WITH_IMM;
    default:
      return IBV_WR_RDMA_READ;
  }
}

class Poster {
 public:
  Poster(const Point& point, const std::vector<PairSet*>& sets, uint32_t thread)
      : point_(point), sets_(sets), thread_(thread), latency_(std::make_unique<bench::Histogram>()) {
    build();
  }
  void run(uint64_t begin_ns, const std::atomic<bool>& stop);
  // After run. Only slots that were posted are compared, which is all of them.
  uint64_t wrong() const;

  uint64_t ops() const { return ops_; }
  double ops_per_s() const { return static_cast<double>(ops_) * 1e9 / static_cast<double>(end_ns_ - begin_ns_); }
  const Posted& posted() const { return posted_; }
  bool is_big_endian() const { return answers_.are_big_endian(); }
  const bench::Histogram& latency() const { return *latency_; }
  const std::string& trouble() const { return trouble_; }

 private:
  template <typename Do>
  void each_slot(const Do& visit) const;
  void build();
  void build_group(PairSet& set, uint32_t pair, uint32_t from, uint32_t count);
  void add_verb(Group& group, PairSet& set, uint32_t pair, uint32_t slot, const Part& part);
  uint64_t& count_of(ibv_wr_opcode opcode);
  void compare_words(Group& group);
  void post(Group& group, uint64_t now);
  void post_list(Group& group, std::vector<ibv_send_wr>& list);
  void take(const ibv_wc& wc, uint64_t now);
  void next(size_t done, uint64_t now);
  bool is_pipelined() const { return point_.one_by_one == 0; }

  const Point& point_;
  const std::vector<PairSet*>& sets_;
  const uint32_t thread_;
  std::vector<Group> groups_;
  std::vector<ibv_cq*> queues_;
  std::unique_ptr<bench::Histogram> latency_;
  uint64_t begin_ns_ = 0, end_ns_ = 0;
  uint64_t under_way_ = 0;  // groups
  uint64_t started_ = 0;    // groups, of all time
  uint64_t ops_ = 0;
  Posted posted_;
  AtomicAnswers answers_;
  uint64_t wrong_answers_ = 0;
  bool stopping_ = false;
  std::string trouble_;
};

template <typename Do>
void Poster::each_slot(const Do& visit) const {
  for (PairSet* set : sets_) {
    for (uint32_t pair = thread_; pair < point_.queue_pairs; pair += point_.threads) {
      for (uint32_t slot = 0; slot < point_.depth; ++slot) visit(*set, pair, slot);
    }
  }
}

// Bytes and work requests, all of them before the clock starts.
void Poster::build() {
  each_slot([this](PairSet& set, uint32_t pair, uint32_t slot) {
    const Shape& shape = set.slots().shape();
    std::byte* const at = set.slots().local_slot(pair, slot);
    poison(at, shape.slot_bytes());
    const bool is_source = point_.kind == Kind::kWrite || point_.kind == Kind::kSend;
    if (is_source) fill_pattern(at + shape.lead, point_.size, point_.number, pair, slot);
    if (point_.kind == Kind::kFetch) fill_pattern(at, kRequestBytes, point_.number, pair, slot);
  });
  const uint32_t count = std::max(point_.depth / kGroups, 1u);
  for (PairSet* set : sets_) {
    for (uint32_t pair = thread_; pair < point_.queue_pairs; pair += point_.threads) {
      ibv_cq* const queue = set->pair(pair).queue;
      if (std::find(queues_.rbegin(), queues_.rend(), queue) == queues_.rend()) queues_.push_back(queue);
      for (uint32_t slot = 0; slot < point_.depth; slot += count) {
        build_group(*set, pair, slot, std::min(count, point_.depth - slot));
      }
    }
  }
}

void link(std::vector<ibv_send_wr>& list) {
  if (list.empty()) return;
  for (size_t i = 0; i + 1 < list.size(); ++i) list[i].next = &list[i + 1];
  list.back().send_flags |= IBV_SEND_SIGNALED;
}

void Poster::add_verb(Group& group, PairSet& set, uint32_t pair, uint32_t slot, const Part& part) {
  const Pair& via = set.pair(pair);
  const std::byte* const local = set.slots().local_slot(pair, slot) + part.at;
  group.pieces.push_back({reinterpret_cast<uint64_t>(local), part.length, set.slots().local().local_key()});
  ibv_send_wr work{};
  work.wr_id = groups_.size() - 1;
  work.sg_list = &group.pieces.back();
  work.num_sge = 1;
  work.opcode = part.opcode;
  const bool takes_bytes = part.opcode == IBV_WR_RDMA_WRITE || part.opcode == IBV_WR_SEND_WITH_IMM;
  if (takes_bytes && part.length <= via.inline_bytes) work.send_flags = IBV_SEND_INLINE;
  const uint64_t remote = set.slots().peer_address(pair, slot) + part.at;
  if (is_atomic(point_.kind)) {
    work.wr.atomic = {.remote_addr = remote, .compare_add = 1, .swap = 0, .rkey = set.slots().peer_key()};
    group.words.push_back(first_word(point_.number, pair, slot));
    group.answers.push_back(local);
  } else if (point_.kind == Kind::kSend) {
    const SendLabel label{point_.number, pair, slot};
    work.imm_data = htonl(label.packed());
    work.wr.ud = {.ah = set.way(), .remote_qpn = via.peer, .remote_qkey = kDatagramKey};
  } else {
    work.wr.rdma = {.remote_addr = remote, .rkey = set.slots().peer_key()};
  }
  (part.is_rest ? group.second : group.first).push_back(work);
}

void Poster::build_group(PairSet& set, uint32_t pair, uint32_t from, uint32_t count) {
  Group& group = groups_.emplace_back();
  group.pair = set.pair(pair).handle;
  group.pieces.reserve(size_t{3} * count);  // work requests point into it
  const uint32_t lead = set.slots().shape().lead;
  const uint32_t first = point_.kind == Kind::kFetch ? std::min(point_.fetch, point_.size) : point_.size;
  for (uint32_t slot = from; slot < from + count; ++slot) {
    if (point_.kind == Kind::kFetch) add_verb(group, set, pair, slot, {IBV_WR_RDMA_WRITE, 0, kRequestBytes});
    add_verb(group, set, pair, slot, {opcode_of(point_.kind), lead, first});
    if (first == point_.size) continue;
    add_verb(group, set, pair, slot, {IBV_WR_RDMA_READ, lead + first, point_.size - first, true});
  }
  link(group.first);
  link(group.second);
}

void Poster::post_list(Group& group, std::vector<ibv_send_wr>& list) {
  if (point_.kind == Kind::kCompareSwap) {
    for (size_t i = 0; i < list.size(); ++i) {
      list[i].wr.atomic.compare_add = group.words[i];
      list[i].wr.atomic.swap = group.words[i] + 1;
    }
  }
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(group.pair, list.data(), &bad);
  if (error != 0) trouble_ = Status::system_error("ibv_post_send", error).message();
  // A list is all of one opcode, or, for a fetch's first half, WRITEs and READs in equal number.
  const bool both = point_.kind == Kind::kFetch && &list == &group.first;
  count_of(list.back().opcode) += both ? list.size() / 2 : list.size();
  if (both) posted_.writes += list.size() / 2;
}

uint64_t& Poster::count_of(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
      return posted_.writes;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return posted_.fetch_adds;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return posted_.compare_swaps;
    case IBV_WR_SEND_WITH_IMM:
      return posted_.sends;
    default:
      return posted_.reads;
  }
}

// Each slot's word is known: it has grown by one with every verb on it. A COMPARE_SWAP that found it has grown it, too.
void Poster::compare_words(Group& group) {
  for (size_t i = 0; i < group.words.size(); ++i) {
    if (!answers_.take(load_word(group.answers[i]), group.words[i])) wrong_answers_ += kAtomicBytes;
    ++group.words[i];
  }
}

void Poster::post(Group& group, uint64_t now) {
  group.in_second = false;
  group.posted_ns = now;
  ++under_way_;
  ++started_;
  post_list(group, group.first);
}

// Every group is posted at least once, however short the point: else there would be nothing to compare in its slots.
void Poster::next(size_t done, uint64_t now) {
  stopping_ = stopping_ || (now >= end_ns_ && ops_ > 0);
  if (stopping_ && started_ >= groups_.size()) return;
  post(groups_[is_pipelined() ? done : (done + 1) % groups_.size()], now);
}

void Poster::take(const ibv_wc& wc, uint64_t now) {
  if (wc.status != IBV_WC_SUCCESS) {
    if (trouble_.empty()) trouble_ = std::string("a verb failed: ") + ibv_wc_status_str(wc.status);
    return;
  }
  Group& group = groups_[wc.wr_id];
  if (!group.in_second && !group.second.empty()) {
    group.in_second = true;
    return post_list(group, group.second);
  }
  --under_way_;
  compare_words(group);
  // The first counts however late it is, and lengthens the time that is measured: no cell is empty.
  if (now >= begin_ns_ && (now < end_ns_ || ops_ == 0)) {
    end_ns_ = std::max(end_ns_, now);
    ops_ += point_.kind == Kind::kFetch ? group.first.size() / 2 : group.first.size();
    if (!is_pipelined()) latency_->record(now - group.posted_ns);
  }
  next(wc.wr_id, now);
}

void Poster::run(uint64_t begin_ns, const std::atomic<bool>& stop) {
  const size_t at_once = is_pipelined() ? groups_.size() : 1;
  for (size_t i = 0; i < at_once; ++i) post(groups_[i], bench::monotonic_ns());
  // The first posts on thousands of queue pairs take time, too: some of the warm-up comes after them.
  begin_ns_ = std::max(begin_ns, bench::monotonic_ns() + point_.warmup_ns / 2);
  end_ns_ = begin_ns_ + point_.duration_ns;
  std::array<ibv_wc, kPollBatch> completions{};
  uint32_t empty = 0;
  while (under_way_ > 0 && trouble_.empty()) {
    bool any = false;
    for (ibv_cq* queue : queues_) {
      const int found = ibv_poll_cq(queue, kPollBatch, completions.data());
      if (found <= 0) continue;
      any = true;
      const uint64_t now = bench::monotonic_ns();
      for (int i = 0; i < found && trouble_.empty(); ++i) take(completions[static_cast<size_t>(i)], now);
    }
    empty = any ? 0 : empty + 1;
    if (empty < kPatientPolls) continue;
    empty = 0;
    stopping_ = stopping_ || stop.load();
    if (bench::monotonic_ns() > end_ns_ + kStuckNs) trouble_ = "a verb does not complete";
    sched_yield();
  }
}

uint64_t Poster::wrong() const {
  uint64_t wrong = wrong_answers_;
  const bool has_bytes = point_.kind == Kind::kRead || point_.kind == Kind::kFetch;
  each_slot([&](PairSet& set, uint32_t pair, uint32_t slot) {
    const Shape& shape = set.slots().shape();
    const std::byte* const payload = set.slots().local_slot(pair, slot) + shape.lead;
    if (has_bytes) wrong += wrong_bytes(payload, point_.size, point_.number, pair, slot);
    wrong += unpoisoned_bytes(payload + point_.size, shape.guard);
  });
  return wrong;
}

}  // namespace

Expected<Figures> run_point(const Point& point, const std::vector<PairSet*>& sets, const std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<Poster>> posters;
  for (uint32_t i = 0; i < point.threads; ++i) posters.push_back(std::make_unique<Poster>(point, sets, i));
  const uint64_t begin = bench::monotonic_ns() + point.warmup_ns;
  std::vector<std::thread> threads;
  threads.reserve(posters.size());
  for (auto& poster : posters) threads.emplace_back([&] { poster->run(begin, stop); });
  for (auto& thread : threads) thread.join();

  Figures figures;
  auto latency = std::make_unique<bench::Histogram>();
  for (auto& poster : posters) {
    if (!poster->trouble().empty()) return Status::error(poster->trouble());
    figures.ops += poster->ops();
    figures.ops_per_s += poster->ops_per_s();
    figures.posted.add(poster->posted());
    if (poster->is_big_endian()) figures.big_endian = 1;
    figures.wrong_bytes += poster->wrong();
    latency->merge(poster->latency());
  }
  if (point.one_by_one != 0) {
    figures.mean_us = latency->mean() / 1e3;
    figures.p50_us = static_cast<double>(latency->quantile(0.5)) / 1e3;
    figures.p99_us = static_cast<double>(latency->quantile(0.99)) / 1e3;
  }
  return figures;
}

}  // namespace egret::bench_verbs
