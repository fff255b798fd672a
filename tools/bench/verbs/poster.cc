#include "bench_verbs/poster.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <thread>

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
  bool in_second = false;
  uint64_t posted_ns = 0;
};

class Poster {
 public:
  Poster(const Point& point, const std::vector<Station*>& stations, uint32_t thread)
      : point_(point), stations_(stations), thread_(thread), latency_(std::make_unique<bench::Histogram>()) {
    build();
  }
  void run(uint64_t begin_ns, uint64_t end_ns, const std::atomic<bool>& stop);
  // After run. Only slots that were posted are compared, which is all of them.
  uint64_t wrong() const;

  uint64_t ops() const { return ops_; }
  double ops_per_s() const { return static_cast<double>(ops_) * 1e9 / static_cast<double>(end_ns_ - begin_ns_); }
  uint64_t reads() const { return reads_; }
  uint64_t writes() const { return writes_; }
  const bench::Histogram& latency() const { return *latency_; }
  const std::string& trouble() const { return trouble_; }

 private:
  template <typename Do>
  void each_slot(const Do& visit) const;
  void build();
  void build_group(Station& station, uint32_t pair, uint32_t from, uint32_t count);
  ibv_send_wr make_work(ibv_wr_opcode opcode, ibv_sge* piece, uint64_t remote, uint32_t key, uint32_t inline_bytes);
  void post(Group& group, uint64_t now);
  void post_list(Group& group, std::vector<ibv_send_wr>& list);
  void take(const ibv_wc& wc, uint64_t now);
  void next(size_t done, uint64_t now);
  bool is_pipelined() const { return point_.depth > 1; }

  const Point& point_;
  const std::vector<Station*>& stations_;
  const uint32_t thread_;
  std::vector<Group> groups_;
  std::vector<ibv_cq*> queues_;
  std::unique_ptr<bench::Histogram> latency_;
  uint64_t begin_ns_ = 0, end_ns_ = 0;
  uint64_t under_way_ = 0;  // groups
  uint64_t started_ = 0;    // groups, of all time
  uint64_t ops_ = 0;
  uint64_t reads_ = 0, writes_ = 0;
  bool stopping_ = false;
  std::string trouble_;
};

template <typename Do>
void Poster::each_slot(const Do& visit) const {
  for (Station* station : stations_) {
    for (uint32_t i = 0; i < point_.queue_pairs; ++i) {
      const uint32_t pair = thread_ * point_.queue_pairs + i;
      for (uint32_t slot = 0; slot < point_.depth; ++slot) visit(*station, pair, slot);
    }
  }
}

// Bytes and work requests, all of them before the clock starts.
void Poster::build() {
  each_slot([this](Station& station, uint32_t pair, uint32_t slot) {
    std::byte* const at = station.local_slot(pair, slot);
    poison(at, station.shape().slot_bytes());
    if (point_.kind == Kind::kWrite) fill_pattern(at + kRequestBytes, point_.size, point_.number, pair, slot);
    if (point_.kind == Kind::kFetch) fill_pattern(at, kRequestBytes, point_.number, pair, slot);
  });
  const uint32_t count = std::max(point_.depth / kGroups, 1u);
  for (Station* station : stations_) {
    for (uint32_t i = 0; i < point_.queue_pairs; ++i) {
      const uint32_t pair = thread_ * point_.queue_pairs + i;
      queues_.push_back(station->pair(pair).queue());
      for (uint32_t slot = 0; slot < point_.depth; slot += count) {
        build_group(*station, pair, slot, std::min(count, point_.depth - slot));
      }
    }
  }
}

ibv_send_wr Poster::make_work(ibv_wr_opcode opcode, ibv_sge* piece, uint64_t remote, uint32_t key,
                              uint32_t inline_bytes) {
  ibv_send_wr work{};
  work.wr_id = groups_.size() - 1;
  work.sg_list = piece;
  work.num_sge = 1;
  work.opcode = opcode;
  if (opcode == IBV_WR_RDMA_WRITE && piece->length <= inline_bytes) work.send_flags = IBV_SEND_INLINE;
  work.wr.rdma.remote_addr = remote;
  work.wr.rdma.rkey = key;
  return work;
}

void link(std::vector<ibv_send_wr>& list) {
  if (list.empty()) return;
  for (size_t i = 0; i + 1 < list.size(); ++i) list[i].next = &list[i + 1];
  list.back().send_flags |= IBV_SEND_SIGNALED;
}

void Poster::build_group(Station& station, uint32_t pair, uint32_t from, uint32_t count) {
  Group& group = groups_.emplace_back();
  group.pair = station.pair(pair).pair();
  group.pieces.reserve(size_t{3} * count);  // work requests point into it
  const uint32_t inline_bytes = station.pair(pair).inline_bytes();
  const uint32_t first = point_.kind == Kind::kFetch ? std::min(point_.fetch, point_.size) : point_.size;
  for (uint32_t slot = from; slot < from + count; ++slot) {
    const auto local = reinterpret_cast<uint64_t>(station.local_slot(pair, slot));
    const uint64_t remote = station.peer_address(pair, slot);
    const auto add = [&](std::vector<ibv_send_wr>& list, ibv_wr_opcode opcode, uint64_t at, uint32_t length) {
      group.pieces.push_back({local + at, length, station.local().local_key()});
      list.push_back(make_work(opcode, &group.pieces.back(), remote + at, station.peer_key(), inline_bytes));
    };
    if (point_.kind == Kind::kFetch) add(group.first, IBV_WR_RDMA_WRITE, 0, kRequestBytes);
    add(group.first, point_.kind == Kind::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, kRequestBytes, first);
    if (first < point_.size) add(group.second, IBV_WR_RDMA_READ, kRequestBytes + first, point_.size - first);
  }
  link(group.first);
  link(group.second);
}

void Poster::post_list(Group& group, std::vector<ibv_send_wr>& list) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(group.pair, list.data(), &bad);
  if (error != 0) trouble_ = Status::system_error("ibv_post_send", error).message();
  // A list is all WRITEs, all READs, or, for a fetch's first half, both in equal number.
  const bool both = point_.kind == Kind::kFetch && &list == &group.first;
  writes_ += point_.kind == Kind::kWrite ? list.size() : both ? list.size() / 2 : 0;
  reads_ += point_.kind == Kind::kWrite ? 0 : both ? list.size() / 2 : list.size();
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
  // The first counts however late it is, and lengthens the time that is measured: no cell is empty.
  if (now >= begin_ns_ && (now < end_ns_ || ops_ == 0)) {
    end_ns_ = std::max(end_ns_, now);
    ops_ += point_.kind == Kind::kFetch ? group.first.size() / 2 : group.first.size();
    if (!is_pipelined()) latency_->record(now - group.posted_ns);
  }
  next(wc.wr_id, now);
}

void Poster::run(uint64_t begin_ns, uint64_t end_ns, const std::atomic<bool>& stop) {
  begin_ns_ = begin_ns;
  end_ns_ = end_ns;
  const size_t at_once = is_pipelined() ? groups_.size() : 1;
  for (size_t i = 0; i < at_once; ++i) post(groups_[i], bench::monotonic_ns());
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
  uint64_t wrong = 0;
  if (point_.kind == Kind::kWrite) return wrong;  // the other side compares
  each_slot([&](Station& station, uint32_t pair, uint32_t slot) {
    const std::byte* const payload = station.local_slot(pair, slot) + kRequestBytes;
    wrong += wrong_bytes(payload, point_.size, point_.number, pair, slot);
    wrong += unpoisoned_bytes(payload + point_.size, Shape::kGuard);
  });
  return wrong;
}

}  // namespace

Expected<Figures> run_point(const Point& point, const std::vector<Station*>& stations, const std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<Poster>> posters;
  for (uint32_t i = 0; i < point.threads; ++i) posters.push_back(std::make_unique<Poster>(point, stations, i));
  const uint64_t begin = bench::monotonic_ns() + point.warmup_ns;
  const uint64_t end = begin + point.duration_ns;
  std::vector<std::thread> threads;
  threads.reserve(posters.size());
  for (auto& poster : posters) threads.emplace_back([&] { poster->run(begin, end, stop); });
  for (auto& thread : threads) thread.join();

  Figures figures;
  auto latency = std::make_unique<bench::Histogram>();
  for (auto& poster : posters) {
    if (!poster->trouble().empty()) return Status::error(poster->trouble());
    figures.ops += poster->ops();
    figures.ops_per_s += poster->ops_per_s();
    figures.reads += poster->reads();
    figures.writes += poster->writes();
    figures.wrong_bytes += poster->wrong();
    latency->merge(poster->latency());
  }
  if (point.depth == 1) {
    figures.mean_us = latency->mean() / 1e3;
    figures.p50_us = static_cast<double>(latency->quantile(0.5)) / 1e3;
    figures.p99_us = static_cast<double>(latency->quantile(0.99)) / 1e3;
  }
  return figures;
}

}  // namespace egret::bench_verbs
