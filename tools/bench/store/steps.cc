// A pass is what the backend does between two polls: begin_pass, prepare and locate, execute of each op, and at most
// one step of a large value. Every call is timed separately. Disturbances of the machine are separated: steps with a
// context switch are counted apart, and a control of about 1 µs without the store shows the rest.
#include "bench_store/steps.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <sys/resource.h>

#include "base/clock.h"
#include "bench/histogram.h"
#include "bench/monotonic.h"
#include "bench/sampler.h"
#include "bench_store/subject.h"
#include "bench_store/trace.h"

namespace egret::bench_store {
namespace {

using op::OpCode;
using op::ResultCode;
using op::StatId;

constexpr uint32_t kOpsPerPass = 16;
constexpr uint32_t kPart = 4096;
constexpr uint32_t kLargeValue = 1u << 20;
constexpr uint32_t kItemSizeMax = 2u << 20;
constexpr uint64_t kSuspicious = 10'000;  // ns: after a longer step, check for context switches
constexpr uint64_t kControlNs = 1000;
constexpr uint64_t kPassNs = 2'000'000;  // by which a pass moves the store's clock: 1 s in 500 passes
constexpr uint64_t kPassesPerFlush = 250'000;
constexpr uint64_t kBytesPerKey = 100;  // of memory: about four times as many keys as fit
constexpr uint32_t kSlices = 21;        // of the time, each with a longest step of its own
constexpr uint32_t kLargeKeys = 4096;

enum StepKind : uint8_t {
  kBeginPass,
  kPrepare,
  kGet,
  kSet,
  kDelete,
  kArith,
  kAppend,
  kTouch,
  kChunk,
  kReserve,
  kPartStep,
  kCommit,
  kFlush,
  kAllSteps,
  kControl,
  kStepKinds,
};
constexpr std::array<const char*, kStepKinds> kStepNames{"begin_pass",
                                                         "prepare and locate",
                                                         "get",
                                                         "set",
                                                         "delete",
                                                         "incr",
                                                         "append",
                                                         "touch",
                                                         "chunk of 4 KiB",
                                                         "reserve 1 MiB",
                                                         "part of 4 KiB",
                                                         "commit 1 MiB",
                                                         "flush_all",
                                                         "all of them",
                                                         "control: no store, 1 µs"};

// The shares of ops in a pass, in percent.
struct Share {
  StepKind kind;
  uint32_t percent;
};
constexpr std::array<Share, 6> kShares{{{kGet, 50}, {kSet, 28}, {kDelete, 6}, {kArith, 5}, {kAppend, 5}, {kTouch, 6}}};

using Maxima = std::array<uint64_t, kSlices>;
uint64_t median(Maxima maxima) {
  std::nth_element(maxima.begin(), maxima.begin() + kSlices / 2, maxima.end());
  return maxima[kSlices / 2];
}

char pattern_at(uint32_t large_key, uint64_t offset) {
  return static_cast<char>('a' + (large_key + offset / kPart) % 26);
}

class Steps {
 public:
  explicit Steps(const StepsOptions& options)
      : rng_(options.seed),
        keys_(static_cast<uint32_t>((options.memory_mib << 20) / kBytesPerKey)),
        zipf_(keys_, 0.99),
        store_(make_store(options.memory_mib << 20, kItemSizeMax, clock_)),
        values_(Trace::kMaxValue, 'v') {}

  void run_until_full() {
    while (Stats(*store_)[StatId::kEvictions] == 0) {
      for (int i = 0; i < 64; ++i) pass();
    }
    for (bench::Histogram& each : times_) each.clear();
    max_.fill(0);
    disturbed_.fill(0);
  }

  void run(double seconds) {
    for (uint32_t slice = 0; slice < kSlices; ++slice) {
      const uint64_t end = bench::monotonic_ns() + bench::seconds_to_ns(seconds / kSlices);
      while (bench::monotonic_ns() < end) {
        for (int i = 0; i < 64; ++i) pass();
      }
      for (uint32_t kind = 0; kind < kStepKinds; ++kind) maxima_[kind][slice] = std::exchange(max_[kind], 0);
    }
    upload_.release();
    std::string why;
    if (!check_invariants(*store_, &why)) {
      std::fprintf(stderr, "store-bench: the store is not sound: %s\n", why.c_str());
      ++wrong_;
    }
  }

  void fill(Table& table) const {
    for (uint32_t kind = 0; kind < kStepKinds; ++kind) {
      const bench::Histogram& times = times_[kind];
      if (times.count() == 0) continue;
      const auto us = [](uint64_t ns) { return Cell(static_cast<double>(ns) / 1e3, 2); };
      table.rows.push_back({kStepNames[kind], times.count(), us(times.quantile(.5)), us(times.quantile(.99)),
                            us(times.quantile(.999)), us(times.quantile(.9999)), us(median(maxima_[kind])),
                            us(times.max()), disturbed_[kind]});
    }
    const Stats stats(*store_);
    table.notes.push_back(std::to_string(store_->counts().items) + " items at the end, " +
                          std::to_string(stats[StatId::kEvictions]) + " evictions, " +
                          std::to_string(stats[StatId::kReclaimed]) + " reclaimed, " +
                          std::to_string(stats[StatId::kCmdFlush]) + " flushes.");
    table.notes.push_back(
        "Steps by counted work, as the store tells: under 1 µs " + std::to_string(stats[StatId::kStepsUnder1us]) +
        ", 4 µs " + std::to_string(stats[StatId::kStepsUnder4us]) + ", 16 µs " +
        std::to_string(stats[StatId::kStepsUnder16us]) + ", 64 µs " + std::to_string(stats[StatId::kStepsUnder64us]) +
        ", over " + std::to_string(stats[StatId::kStepsOver64us]) + ".");
  }

  uint64_t wrong() const { return wrong_; }

 private:
  template <typename Call>
  void time(StepKind kind, Call&& call) {
    const uint64_t start = bench::monotonic_ns();
    call();
    const uint64_t taken = bench::monotonic_ns() - start;
    if (taken > kSuspicious && note_switches()) {
      ++disturbed_[kind];
      return;
    }
    record(kind, taken);
    if (kind < kAllSteps) record(kAllSteps, taken);
  }

  void record(StepKind kind, uint64_t ns) {
    times_[kind].record(ns);
    max_[kind] = std::max(max_[kind], ns);
  }

  // Whether there was a context switch since the last call.
  bool note_switches() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const int64_t switches = usage.ru_nivcsw + usage.ru_nvcsw;
    return std::exchange(switches_, switches) != switches;
  }

  void pass() {
    (void)note_switches();
    clock_.advance_ns(kPassNs);
    time(kBeginPass, [this] { store_->begin_pass(); });
    for (uint32_t i = 0; i < kOpsPerPass; ++i) make_small_op(i);
    time(kPrepare, [this] {
      store_->prepare(ops_);
      store_->locate();
    });
    for (uint32_t i = 0; i < kOpsPerPass; ++i) execute(i);
    large_step();
    if (++passes_ % kPassesPerFlush == 0) flush();
    time(kControl, [] {
      const uint64_t end = bench::monotonic_ns() + kControlNs;
      while (bench::monotonic_ns() < end) {
      }
    });
  }

  void make_small_op(uint32_t index) {
    const uint32_t key = zipf_.sample(rng_);
    uint32_t dice = rng_.below(100);
    size_t row = 0;
    while (dice >= kShares[row].percent) dice -= kShares[row++].percent;
    const StepKind kind = kShares[row].kind;
    static constexpr std::array<OpCode, 6> kCodes{OpCode::kGet,   OpCode::kSet, OpCode::kDelete,
                                                  OpCode::kArith, OpCode::kSet, OpCode::kGet};
    kinds_[index] = kind;
    texts_[index] = key_text(key + (kind == kArith ? uint64_t{1} << 40 : 0));
    op::Op& op = ops_[index] = make_op(kCodes[row], view(texts_[index]));
    if (kind == kSet) {
      op.value = std::string_view(values_).substr(0, sizes_.value_size(rng_.below(1u << 30)));
      if (rng_.below(4) == 0) op.exptime = 1 + rng_.below(60);
    } else if (kind == kAppend) {
      op.mode = op::SetMode::kAppend;
      op.value = std::string_view(values_).substr(0, 16);
    } else if (kind == kArith) {
      op.options = op::kCreate;
      op.delta = 1;
    } else if (kind == kTouch) {
      op.options = op::kTouch;
      op.exptime = 1 + rng_.below(600);
    }
  }

  void execute(uint32_t index) {
    op::Result result;
    time(kinds_[index], [&] { result = store_->execute(index); });
    const auto is = [&result](std::initializer_list<ResultCode> codes) {
      return std::find(codes.begin(), codes.end(), result.code) != codes.end();
    };
    bool is_right = false;
    switch (kinds_[index]) {
      case kSet:
        is_right = is({ResultCode::kStored});
        break;
      case kDelete:
        is_right = is({ResultCode::kDeleted, ResultCode::kMiss});
        break;
      case kAppend:
        is_right = is({ResultCode::kStored, ResultCode::kNotStored});
        break;
      case kArith:
        is_right = is({ResultCode::kNumber, ResultCode::kMiss});
        break;
      default:
        is_right = is({ResultCode::kHit, ResultCode::kMiss});
    }
    if (!is_right) ++wrong_;
  }

  // One large value after the other is sent part by part; in between, chunks of those that are there are read.
  void large_step() {
    if (!upload_) {
      large_key_ = rng_.below(kLargeKeys);
      large_text_ = key_text(large_key_ + (uint64_t{1} << 41));
      time(kReserve, [&] {
        auto reserved = store_->reserve(view(large_text_), kLargeValue);
        if (reserved.code == ResultCode::kOk) upload_ = std::move(reserved.upload);
      });
    } else if (!upload_.is_complete()) {
      const uint32_t offset = upload_.received();
      part_.fill(pattern_at(large_key_, offset));
      bool taken = false;
      time(kPartStep, [&] { taken = upload_.write(offset, {part_.data(), part_.size()}) == ResultCode::kOk; });
      if (!taken) ++wrong_;
      if (offset / kPart % 4 == 0) read_chunk();
    } else {
      const op::Op commit = make_op(OpCode::kCommit, view(large_text_));
      op::Result result;
      time(kCommit, [&] { result = upload_.commit(commit); });
      upload_.release();
      if (result.code == ResultCode::kStored)
        newest_large_ = large_key_;
      else
        ++wrong_;
    }
  }

  void read_chunk() {
    if (!newest_large_) return;
    const KeyText text = key_text(*newest_large_ + (uint64_t{1} << 41));
    op::Op op = make_op(OpCode::kGet, view(text));
    op.options = op::kNoValue;
    const op::Result found = execute_one(*store_, op);
    if (found.code != ResultCode::kHit) return;
    op.code = OpCode::kChunk;
    op.options = 0;
    op.version = found.version;
    op.offset = rng_.below(kLargeValue / kPart) * kPart;
    op.length = kPart;
    op::Result chunk;
    time(kChunk, [&] { chunk = execute_one(*store_, op); });
    const char expected = pattern_at(*newest_large_, op.offset);
    const bool is_whole = chunk.code == ResultCode::kHit && !chunk.value.empty() &&
                          chunk.value.find_first_not_of(expected) == std::string_view::npos;
    if (!is_whole) ++wrong_;
  }

  void flush() {
    op::Op op;
    op.code = OpCode::kFlush;
    op::Result result;
    time(kFlush, [&] { result = execute_one(*store_, op); });
    if (result.code != ResultCode::kOk) ++wrong_;
  }

  bench::Rng rng_;
  const uint32_t keys_;
  const bench::ZipfSampler zipf_;
  const Trace sizes_{{.sizes = ValueSizes::kLognormal}};
  base::ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  const std::string values_;
  std::array<op::Op, kOpsPerPass> ops_;
  std::array<KeyText, kOpsPerPass> texts_{};
  std::array<StepKind, kOpsPerPass> kinds_{};
  store::Store::Upload upload_;
  uint32_t large_key_ = 0;
  KeyText large_text_{};
  std::optional<uint32_t> newest_large_;
  std::array<char, kPart> part_{};
  uint64_t passes_ = 0;
  int64_t switches_ = 0;
  std::array<bench::Histogram, kStepKinds> times_;
  std::array<uint64_t, kStepKinds> max_{};  // of this slice
  std::array<Maxima, kStepKinds> maxima_{};
  std::array<uint64_t, kStepKinds> disturbed_{};
  uint64_t wrong_ = 0;
};

}  // namespace

Table run_steps(const StepsOptions& options, uint64_t& wrong) {
  Table table;
  table.name = "steps";
  table.notes = {"Wall time of single calls, in µs: a full store of " + std::to_string(options.memory_mib) +
                 " MiB, Zipf 0.99, lognormal values, a quarter of them expiring, and 1 MiB values in parts. " +
                 "Usual max: the median of the longest steps of " + std::to_string(kSlices) +
                 " slices of the time; a long step of the store shows there, a rare one of the machine does not. "
                 "Disturbed: not in the figures, since the scheduler switched meanwhile."};
  table.columns = {"step", "count", "p50", "p99", "p99.9", "p99.99", "usual max", "max", "disturbed"};
  const auto steps = std::make_unique<Steps>(options);
  steps->run_until_full();
  steps->run(options.seconds);
  steps->fill(table);
  wrong += steps->wrong();
  return table;
}

}  // namespace egret::bench_store
