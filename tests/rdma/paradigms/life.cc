#include "life.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/monotonic.h"
#include "bench_paradigms/harness/walk.h"
#include "bench_paradigms/notice.h"
#include "scenes.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint64_t kLookNs = 5'000'000;
constexpr uint64_t kStepsPerPause = 7;  // more pauses, and calls that wait for the server are given up
constexpr uint64_t kStillBeginsNs = bench::kNsPerSecond / 4;      // ops, when the other host has gone
constexpr uint64_t kBrokenPatienceNs = 15 * bench::kNsPerSecond;  // what is begun then comes to its end
constexpr uint64_t kUntilPatienceNs = 20 * bench::kNsPerSecond;   // nothing of that kind was met
constexpr uint64_t kDrainPatienceNs = 2 * bench::kNsPerSecond;    // answers that a fault has kept back

// A mapped file, so that it can be read while this process stands still. Null: there is none.
uint64_t* map_progress(const std::string& path) {
  if (path.empty()) return nullptr;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);  // NOLINT(hicpp-signed-bitwise)
  if (file < 0 || ftruncate(file, sizeof(uint64_t)) != 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<uint64_t*>(mapped);
}

// Registrations of this process so far, as the interposer has counted them; 0 without it. Its file is counter_file.h's.
uint64_t registrations() {
  const char* const path = std::getenv("EGRET_COUNT_VERBS_FILE");
  std::ifstream file(path == nullptr ? "" : path, std::ios::binary);
  char line[64];  // the head, then a counter each
  for (file.read(line, sizeof line); file.read(line, sizeof line);) {
    uint64_t value = 0;
    std::memcpy(&value, line + 48, sizeof value);
    if (std::string_view(line) == "registrations") return value;
  }
  return 0;
}

std::string to_json(const Tally& tally, const Trouble& trouble) {
  std::ostringstream out;
  out << "\"ops\": " << tally.ops << ", \"hits\": " << tally.hits << ", \"misses\": " << tally.misses
      << ", \"done\": " << tally.done << ", \"full\": " << tally.full << ", \"lost\": " << tally.lost
      << ", \"failed\": " << tally.failed << ", \"gets\": " << tally.gets << ", \"others\": " << tally.ops - tally.gets
      << ", \"unanswered\": " << tally.unanswered << ", \"wrong\": " << tally.wrong() << ", \"first_wrong\": \"";
  if (tally.wrong() > 0) out << name_of(tally.first_wrong) << ", key " << tally.first_wrong_key;
  out << "\", \"retries\": " << trouble.retries << ", \"vain\": " << trouble.vain << ", \"stuck\": " << trouble.stuck
      << ", \"reads\": " << trouble.reads << ", \"messages\": " << trouble.messages << ", \"wants\": " << trouble.wants;
  return out.str();
}

}  // namespace

std::string to_json(const VerbCounts& counts) {
  static constexpr std::array kTypes = {"rc", "uc", "ud"};
  static constexpr std::array kNames = {"write", "read", "send", "cas", "faa", "recv"};
  std::ostringstream out;
  out << "{";
  for (size_t type = 0; type < kPairTypes; ++type) {
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      out << '"' << kTypes[type] << '_' << kNames[verb] << "\": " << counts.posted[type][verb] << ", ";
    }
  }
  out << "\"doorbells\": " << counts.doorbells << ", \"recv_doorbells\": " << counts.receive_doorbells
      << ", \"signalled\": " << counts.signalled << ", \"inlined\": " << counts.inlined
      << ", \"payload_bytes\": " << counts.payload_bytes << "}";
  return out.str();
}

void pass(Seat& seat) {
  seat.gate.arrive();
  while (!seat.gate.is_open() && !seat.gate.is_broken()) {
    if (seat.server == nullptr || !seat.server->serve()) seat.rest();
  }
}

// What one client adds to what all have met, now and then.
class Life::Look {
 public:
  Look(Life& life, Driver& driver, const ClientNode& node) : life_(life), driver_(driver), node_(node) {}

  void take() {
    const Tally tally = driver_.tally();
    const Trouble trouble = node_.trouble();
    add(Until::kWrong, tally.wrong());
    add(Until::kRetries, trouble.retries);
    add(Until::kLost, tally.lost);
    add(Until::kStuck, trouble.stuck);
    const uint64_t good = tally.hits + tally.misses + tally.done;
    if (life_.progress_ != nullptr) std::atomic_ref(*life_.progress_).fetch_add(good - good_);
    good_ = good;
  }

 private:
  void add(Until kind, uint64_t now) {
    uint64_t& told = told_[static_cast<size_t>(kind)];
    life_.met_[kind].fetch_add(now - told);
    told = now;
  }
  Life& life_;
  Driver& driver_;
  const ClientNode& node_;
  std::array<uint64_t, kUntils> told_{};
  uint64_t good_ = 0;
};

Life::Life(std::string progress, std::string marker) : marker_(std::move(marker)), progress_(map_progress(progress)) {}

void Life::pause(uint32_t microseconds) {
  if (has_loaded_.load(std::memory_order_relaxed) && ++steps_ % kStepsPerPause == 0) usleep(microseconds);
}

Knowledge& Life::knowledge_of(const Wish& wish, uint32_t keys) {
  const std::unique_lock held(mutex_);
  if (knowledge_ == nullptr) {
    const Writers writers = wish.workload.stores_puts ? wish.workload.writers : Writers::kAny;
    knowledge_ = std::make_unique<Knowledge>(keys, writers, wish.workload.erases > 0 || wish.holes > 0);
  }
  return *knowledge_;
}

// Every client its own ones. An erase that is not done is a wrong answer to whoever finds the key.
void Life::erase_holes(Seat& seat, const Wish& wish, Knowledge& knowledge) const {
  Judge judge(knowledge, seat.plan.value_bytes);
  const uint32_t self = seat.self - seat.plan.servers;
  std::array<Result, 1> result;
  for (uint32_t key = self; key < seat.plan.keys->count(); key += seat.plan.clients) {
    if (key % wish.holes != 0) continue;
    Expectation expectation;
    judge.begin(OpKind::kErase, key, kLoadedVersion, expectation);
    Op op;
    op.kind = OpKind::kErase;
    op.key_number = key;
    op.key = seat.plan.keys->key(key);
    while (!seat.client->begin(op) && !seat.gate.is_broken()) seat.rest();
    while (seat.client->poll(result) == 0 && !seat.gate.is_broken()) seat.rest();
    judge.judge(expectation, result[0].outcome, {});
  }
}

std::string Life::serve(Seat& seat, const Wish& wish) {
  const Walked walked = walk_of(*seat.server, seat.self, seat.plan, wish.workload, wish.load.ops);
  return "\"walked_gets\": " + std::to_string(walked.gets) + ", \"walked_steps\": " + std::to_string(walked.steps);
}

std::string Life::drive(Seat& seat, const Wish& wish) {
  Knowledge& knowledge = knowledge_of(wish, seat.plan.keys->count());
  const uint32_t client = seat.self - seat.plan.servers;
  Pace pace = pace_of(seat.plan, wish.load, client, bench::monotonic_ns());
  const uint64_t ops = pace.ops;
  if (wish.until != Until::kOps) pace.ops = UINT64_MAX;
  Driver driver({seat.plan, *seat.client, knowledge, wish.workload, bench::monotonic_ns}, client, pace);
  Look look(*this, driver, *seat.client);
  uint64_t look_ns = 0, broken_ns = 0, end_ns = 0;
  const uint64_t begun_ns = bench::monotonic_ns();
  while (!driver.is_finished()) {
    if (const uint64_t now = bench::monotonic_ns(); now >= look_ns) {
      look_ns = now + kLookNs;
      look.take();
      if (end_ns == 0 && seat.gate.is_broken()) {
        if (broken_ns == 0) broken_ns = now;
        if (now > broken_ns + kStillBeginsNs) end_ns = now + kBrokenPatienceNs;
      } else if (end_ns == 0 && wish.until != Until::kOps) {
        const bool has_all = wish.until == Until::kWrong || driver.answered() >= ops;
        const bool has_met = has_all && met_[wish.until].load() > 0;
        if (has_met || now > begun_ns + kUntilPatienceNs) end_ns = now + kDrainPatienceNs;
      }
      if (end_ns != 0) driver.drain();
      if (end_ns != 0 && now > end_ns) break;
    }
    if (!driver.step()) seat.rest();
  }
  look.take();
  return to_json(driver.tally(), seat.client->trouble());
}

std::string Life::run(Seat& seat) {
  Wish wish;
  if (!read_notice(seat.order.workload, wish)) return {};
  const VerbCounts loaded = seat.fabric.counts();
  pass(seat);
  has_loaded_.store(true);
  if (seat.client != nullptr && wish.holes > 0) erase_holes(seat, wish, knowledge_of(wish, seat.plan.keys->count()));
  pass(seat);
  std::string said = seat.server != nullptr ? serve(seat, wish) : std::string();
  pass(seat);
  const VerbCounts before = seat.fabric.counts();
  const uint64_t registered = registrations();
  if (wish.scene != Scene::kNone) {
    said += (said.empty() ? "" : ", ") + play(wish.scene, seat, marker_);
  } else if (seat.client != nullptr) {
    said += drive(seat, wish);
  }
  pass(seat);
  if (seat.server != nullptr) said += ", \"torn_requests\": " + std::to_string(seat.server->trouble().retries);
  const std::string text = "{\"node\": " + std::to_string(seat.self) + ", " + said + (said.empty() ? "" : ", ") +
                           "\"of_holes\": " + to_json(before - loaded) +
                           ", \"of_ops\": " + to_json(seat.fabric.counts() - before) +
                           ", \"registered\": " + std::to_string(registrations() - registered) +
                           ", \"of_life\": " + to_json(seat.fabric.counts()) +
                           ", \"broken\": " + (seat.gate.is_broken() ? "true" : "false") + "}";
  const std::unique_lock held(mutex_);
  nodes_ += (nodes_.empty() ? "" : ",\n ") + text;
  return text;
}

std::string Life::nodes() {
  const std::unique_lock held(mutex_);
  return nodes_;
}

}  // namespace egret::bench_paradigms
