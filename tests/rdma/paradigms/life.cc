// paradigms_life: one paradigm over real verbs, every answer compared; prints what was answered and what was posted, as JSON.
//
//   paradigms_life (--loop|--listen|--connect) ADDRESS [--token T] [--hosts N] [--only ID] [--ops N] [--gets PERCENT]
//                  [--servers N] [--clients N] [--window N] [--keys N] [--value-bytes N] [--pause MS] [--as-paper]
//   paradigms_life --ids
//
// Every client begins ops up to its window; puts are of its own keys (number mod clients), gets of all. `--pause`: every client waits
// between two ops, so that the run lasts while a test interferes. The listening side decides; a connecting one prints its own nodes.
// `besides`: what control connections and probes have posted: with the nodes' it is all that this process has.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "bench/monotonic.h"
#include "bench/sampler.h"
#include "bench_paradigms/fabric/besides.h"
#include "bench_paradigms/session/session.h"

using namespace egret::bench_paradigms;  // NOLINT(google-build-using-namespace)
using egret::base::Expected;
using egret::base::Status;

namespace {

constexpr uint64_t kStillBeginsNs = egret::bench::kNsPerSecond / 4;  // ops, when the other host has gone
constexpr uint64_t kLastPatienceNs = 15 * egret::bench::kNsPerSecond;

std::atomic<bool> g_stop{false};

struct Wish {
  uint64_t ops = 2000;  // of each client
  double gets = 0.5;
  uint32_t pause_ms = 0;
};

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

uint64_t version_of(std::string_view value) {
  uint64_t version = 0;
  if (value.size() >= 16) std::memcpy(&version, value.data() + 8, sizeof version);
  return version;
}

// One client's ops, from the first to the last answer.
class Client {
 public:
  Client(Seat& seat, const Wish& wish)
      : seat_(seat), wish_(wish), rng_(seat.plan.seed * 7919 + seat.self), value_(seat.plan.value_bytes, '\0') {}

  void run() {
    uint64_t next_ns = 0, broken_ns = 0;
    while (answered_ < wish_.ops) {
      const uint64_t now = egret::bench::monotonic_ns();
      if (seat_.gate.is_broken()) {
        // What is begun must come to an end, as its transport has it.
        if (broken_ns == 0) broken_ns = now;
        if ((going_.empty() && now > broken_ns + kStillBeginsNs) || now > broken_ns + kLastPatienceNs) break;
      }
      const bool still_begins = broken_ns == 0 || now < broken_ns + kStillBeginsNs;
      const bool may_begin = begun_ < wish_.ops && now >= next_ns && still_begins;
      const bool has_begun = may_begin && begin();
      if (has_begun) next_ns = now + uint64_t{wish_.pause_ms} * 1'000'000;
      if (!take() && !has_begun) seat_.rest();
    }
  }

  std::string to_json() const {
    const Trouble trouble = seat_.client->trouble();
    std::ostringstream out;
    out << "\"ops\": " << answered_ << ", \"wrong\": " << wrong_ << ", \"first_wrong\": \"" << first_wrong_ << '"';
    out << ", \"unanswered\": " << going_.size();
    for (const auto& [name, count] : outcomes_) out << ", \"" << name << "\": " << count;
    out << ", \"gets\": " << gets_ << ", \"puts\": " << puts_ << ", \"longest_ms\": " << longest_ns_ / 1'000'000
        << ", \"retries\": " << trouble.retries << ", \"vain\": " << trouble.vain << ", \"stuck\": " << trouble.stuck
        << ", \"reads\": " << trouble.reads << ", \"numbers\": [";
    for (size_t i = 0; i < numbers_.size(); ++i) out << (i == 0 ? "" : ",") << numbers_[i];
    out << "]";
    return out.str();
  }

 private:
  struct Going {
    OpKind kind;
    uint32_t key;
    uint64_t version;  // of a put; of a get: older ones are wrong
    uint64_t begun_ns;
  };
  struct Own {
    uint64_t acknowledged = kLoadedVersion;
    bool is_written = false;  // a put is under way
  };

  bool begin() {
    const Plan& plan = seat_.plan;
    Op op;
    op.key_number = rng_.below(plan.keys->count());
    if (!seat_.paradigm.has(OpKind::kGet)) {
      op.kind = OpKind::kNext;
    } else if (seat_.paradigm.has(OpKind::kPut) && rng_.unit() >= wish_.gets) {
      op.kind = OpKind::kPut;
      const uint32_t own = seat_.self - plan.servers;
      op.key_number = op.key_number / plan.clients * plan.clients + own;
      if (op.key_number >= plan.keys->count() || own_[op.key_number].is_written) return false;
    }
    op.key = plan.keys->key(op.key_number);
    op.ticket = begun_ + 1;
    const bool is_own = own_.contains(op.key_number);
    const bool knows = is_own && seat_.paradigm.stores_puts;
    Going going{op.kind, op.key_number, knows ? own_[op.key_number].acknowledged : kLoadedVersion,
                egret::bench::monotonic_ns()};
    if (op.kind == OpKind::kPut) {
      going.version = ++version_;
      egret::bench::write_value(value_.data(), value_.size(), op.key_number, going.version);
      op.value = value_;
    }
    if (!seat_.client->begin(op)) return false;
    if (op.kind == OpKind::kPut) own_[op.key_number].is_written = true;
    if (op.kind == OpKind::kGet) ++gets_;
    if (op.kind == OpKind::kPut) ++puts_;
    ++begun_;
    going_[op.ticket] = going;
    return true;
  }

  bool take() {
    std::array<Result, 16> results;
    const uint32_t found = seat_.client->poll(results);
    for (uint32_t i = 0; i < found; ++i) judge(results[i]);
    return found > 0;
  }

  void wrong(const std::string& what) {
    if (++wrong_ == 1) first_wrong_ = what;
  }

  void judge(const Result& result) {
    const auto at = going_.find(result.ticket);
    if (at == going_.end()) return wrong("an answer that nobody waits for");
    const Going op = at->second;
    going_.erase(at);
    ++answered_;
    longest_ns_ = std::max(longest_ns_, egret::bench::monotonic_ns() - op.begun_ns);
    static constexpr std::array kNames = {"hits", "misses", "done", "full", "lost", "failed"};
    ++outcomes_[kNames[static_cast<size_t>(result.outcome)]];
    const std::string key(seat_.plan.keys->key(op.key));
    if (op.kind == OpKind::kPut) own_[op.key].is_written = false;
    if (op.kind == OpKind::kPut && result.outcome == Outcome::kDone) own_[op.key].acknowledged = op.version;
    if (result.outcome == Outcome::kMiss) wrong("a miss of " + key);
    if (result.outcome != Outcome::kHit) return;
    if (op.kind == OpKind::kNext) {
      uint64_t number = 0;
      if (result.value.size() == sizeof number) std::memcpy(&number, result.value.data(), sizeof number);
      numbers_.push_back(number);
      return;
    }
    if (result.value.size() != seat_.plan.value_bytes) return wrong("a value of another size for " + key);
    const auto verdict = egret::bench::judge_value(result.value.data(), result.value.size(), op.key);
    if (verdict != egret::bench::ValueVerdict::kGood) return wrong("a torn or another key's value for " + key);
    if (result.value.size() >= 16 && version_of(result.value) < op.version) wrong("an old value for " + key);
  }

  Seat& seat_;
  const Wish wish_;
  egret::bench::Rng rng_;
  std::string value_;
  std::map<uint64_t, Going> going_;  // by ticket
  std::map<uint32_t, Own> own_;      // keys that this client has put
  std::map<std::string, uint64_t> outcomes_;
  std::vector<uint64_t> numbers_;
  uint64_t begun_ = 0, answered_ = 0, gets_ = 0, puts_ = 0, wrong_ = 0, version_ = 1000, longest_ns_ = 0;
  std::string first_wrong_;
};

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

// Two phases: all are ready; all clients have all their answers. Servers serve in both.
class Life final : public NodeWork {
 public:
  std::string run(Seat& seat) override {
    Wish wish;
    if (seat.order.workload.size() == sizeof wish) std::memcpy(&wish, seat.order.workload.data(), sizeof wish);
    const VerbCounts before = seat.fabric.counts();
    seat.gate.arrive();
    wait(seat);
    const uint64_t registered = registrations();
    std::string answers;
    if (seat.client != nullptr) {
      Client client(seat, wish);
      client.run();
      answers = client.to_json() + ", ";
    }
    seat.gate.arrive();
    wait(seat);
    const std::string text = "{\"node\": " + std::to_string(seat.self) + ", " + answers +
                             "\"of_ops\": " + to_json(seat.fabric.counts() - before) +
                             ", \"registered\": " + std::to_string(registrations() - registered) +
                             ", \"of_life\": " + to_json(seat.fabric.counts()) +
                             ", \"broken\": " + (seat.gate.is_broken() ? "true" : "false") + "}";
    const std::unique_lock held(mutex_);
    nodes_ += (nodes_.empty() ? "" : ",\n ") + text;
    return text;
  }
  std::string nodes() {
    const std::unique_lock held(mutex_);
    return nodes_;
  }

 private:
  static void wait(Seat& seat) {
    while (!seat.gate.is_open() && !seat.gate.is_broken()) {
      if (seat.server == nullptr || !seat.server->serve()) seat.rest();
    }
  }
  std::mutex mutex_;
  std::string nodes_;
};

struct Arguments {
  Sides sides;
  Order order;
  Wish wish;
};

bool read(int argc, char** argv, Arguments& all) {
  Plan& plan = all.order.plan;
  all.order.paradigm = "raw-read";
  all.order.keys = 1000;
  const std::map<std::string, std::function<void(const char*)>> known = {
      {"--loop", [&](const char* text) { all.sides.loop = text; }},
      {"--listen", [&](const char* text) { all.sides.listen = text; }},
      {"--connect", [&](const char* text) { all.sides.connect = text; }},
      {"--token", [&](const char* text) { all.sides.token = text; }},
      {"--hosts", [&](const char* text) { all.sides.hosts = static_cast<uint32_t>(std::atoi(text)); }},
      {"--only", [&](const char* text) { all.order.paradigm = text; }},
      {"--ops", [&](const char* text) { all.wish.ops = static_cast<uint64_t>(std::atoll(text)); }},
      {"--gets", [&](const char* text) { all.wish.gets = std::atof(text) / 100; }},
      {"--pause", [&](const char* text) { all.wish.pause_ms = static_cast<uint32_t>(std::atoi(text)); }},
      {"--servers", [&](const char* text) { plan.servers = static_cast<uint32_t>(std::atoi(text)); }},
      {"--clients", [&](const char* text) { plan.clients = static_cast<uint32_t>(std::atoi(text)); }},
      {"--window", [&](const char* text) { plan.window = static_cast<uint32_t>(std::atoi(text)); }},
      {"--keys", [&](const char* text) { all.order.keys = static_cast<uint32_t>(std::atoi(text)); }},
      {"--value-bytes", [&](const char* text) { plan.value_bytes = static_cast<uint32_t>(std::atoi(text)); }}};
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--ids") == 0) {
      for (const Paradigm& each : paradigms()) std::puts(std::string(each.id).c_str());
      std::exit(0);
    }
    if (std::strcmp(argv[i], "--as-paper") == 0) {
      plan.tuning.as_paper = true;
      continue;
    }
    const auto found = known.find(argv[i]);
    if (found == known.end() || i + 1 == argc) {
      std::fprintf(stderr, "paradigms_life: what is %s?\n", argv[i]);
      return false;
    }
    found->second(argv[++i]);
  }
  all.order.workload.assign(reinterpret_cast<const char*>(&all.wish), sizeof all.wish);
  return true;
}

Expected<std::string> lead(Session& session, const Order& order, NodeWork& work) {
  auto result = session.run(order, work);
  if (!result) return result.status();
  const Capabilities& can = session.capabilities();
  std::ostringstream out;
  out << "\"not_available\": \"" << result.value().not_available << "\", \"uc\": " << can.has_uc
      << ", \"ud\": " << can.has_ud << ", \"atomics\": " << can.has_atomics << ", \"inline\": " << can.inline_bytes
      << ", \"mtu\": " << can.mtu << ", \"read_depth\": " << can.read_depth << ", \"device\": \"" << can.device << '"';
  return out.str();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments all;
  if (!read(argc, argv, all)) return 2;
  std::signal(SIGTERM, [](int) { g_stop.store(true); });
  Life life;
  const auto say = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  auto report = run_sides(
      all.sides, life, [&](Session& session) { return lead(session, all.order, life); }, say, g_stop);
  const std::string ended = report ? report.value() : "\"error\": \"" + report.message() + '"';
  std::printf("{%s,\n \"besides\": %s,\n \"nodes\": [%s]}\n", ended.c_str(), to_json(besides()).c_str(),
              life.nodes().c_str());
  if (report) return 0;
  std::fprintf(stderr, "paradigms_life: %s\n", report.message().c_str());
  return 1;
}
