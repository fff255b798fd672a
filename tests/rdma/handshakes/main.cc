// handshakes [--seed N] [--messages N] [--mode fetch|sleep|mix] [--omit STEP] ...
//
// Proves on a real verbs stack that no wake-up is lost between a client and the partitions of a server, all of which
// sleep at every opportunity; or, with --omit, that the same run notices when one step of the protocol is missing.
// ../README.md tells the protocol and what was measured. One process: a thread per partition and per session's client.
//
// Exit status: 0 all results came and were right; 3 a result was lost; 4 a result was wrong; 2 usage; 1 no verbs, or
// the fabric failed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/prctl.h>

#include "client.h"
#include "partition.h"
#include "scenario.h"
#include "session.h"

namespace egret::handshakes {
namespace {

constexpr int kExitUsage = 2;
constexpr int kExitLost = 3;
constexpr int kExitWrong = 4;

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr Named<Omit> kOmits[] = {
    {"nothing", Omit::kNothing},
    {"recheck", Omit::kRecheck},
    {"asleep-fence", Omit::kAsleepFence},
    {"rearm-poll", Omit::kRearmPoll},
    {"rearm-slots-only", Omit::kRearmSlotsOnly},
    {"drain-first", Omit::kDrainFirst},
    {"want-fetch", Omit::kWantFetch},
    {"want-order", Omit::kWantOrder},
    {"want-fence", Omit::kWantFence},
    {"client-rearm", Omit::kClientRearm},
    {"reply-slots", Omit::kReplySlots},
    {"checksum", Omit::kChecksum},
};
constexpr Named<ClientMode> kModes[] = {
    {"fetch", ClientMode::kFetch}, {"sleep", ClientMode::kSleep}, {"mix", ClientMode::kMix}};
constexpr Named<uint32_t Scenario::*> kNumbers[] = {
    {"--messages", &Scenario::messages},        {"--sessions", &Scenario::sessions},
    {"--partitions", &Scenario::partitions},    {"--window", &Scenario::window},
    {"--wait-ms", &Scenario::wait_ms},          {"--stop-after", &Scenario::stop_after},
    {"--max-pause-us", &Scenario::max_pause_us}};
constexpr uint32_t kMostSlots = kRecvs / 4;  // of a session; keeps pushes and rings below the RECVs posted

[[noreturn]] void usage(const char* what, std::string_view which) {
  std::fprintf(stderr, "handshakes: %s %.*s\noptions: --seed N --mode fetch|sleep|mix --omit STEP", what,
               static_cast<int>(which.size()), which.data());
  for (const auto& number : kNumbers) std::fprintf(stderr, " %s N", number.name.data());
  std::fprintf(stderr, "\nsteps:");
  for (const auto& omit : kOmits) std::fprintf(stderr, " %s", omit.name.data());
  std::fputc('\n', stderr);
  std::exit(kExitUsage);
}

template <typename Value, size_t size>
Value by_name(const Named<Value> (&table)[size], std::string_view name) {
  for (const auto& row : table) {
    if (row.name == name) return row.value;
  }
  usage("unknown", name);
}

std::string_view name_of(Omit omit) {
  for (const auto& row : kOmits) {
    if (row.value == omit) return row.name;
  }
  return "?";
}

Scenario read_options(int argc, char** argv) {
  Scenario scenario;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) usage("no value for", option);
    const char* value = argv[i + 1];
    if (option == "--omit") {
      scenario.omit = by_name(kOmits, value);
    } else if (option == "--mode") {
      scenario.mode = by_name(kModes, value);
    } else if (option == "--seed") {
      scenario.seed = std::strtoull(value, nullptr, 10);
    } else {
      scenario.*by_name(kNumbers, option) = static_cast<uint32_t>(std::strtoul(value, nullptr, 10));
    }
  }
  if (scenario.partitions == 0 || scenario.sessions == 0 || scenario.window == 0 ||
      scenario.partitions * scenario.window > kMostSlots || scenario.partitions > kReadDepth) {
    usage("too many or too few", "sessions, partitions or slots");
  }
  return scenario;
}

void print_counters(const Scenario& scenario, const Counters& c, uint64_t elapsed_us) {
  std::printf("seed %lu, omit %s: %lu messages, %lu lost, %lu wrong, %.1f s\n", scenario.seed,
              name_of(scenario.omit).data(), c.sent, c.lost, c.wrong, static_cast<double>(elapsed_us) / 1e6);
  std::printf("  taken: %lu by fetch, %lu by the last fetch before sleeping, %lu by deliver\n", c.taken_by_fetch,
              c.taken_by_last_fetch, c.taken_by_deliver);
  std::printf("  fetches %lu: %lu not ready, %lu torn; torn requests %lu\n", c.fetches, c.refetches_not_ready,
              c.refetches_torn, c.torn_requests);
  std::printf("  rings %lu, passed on by the home %lu, found between arming and blocking %lu\n", c.rings,
              c.rings_passed_on, c.rings_in_rearm_window);
  std::printf("  lanes put to sleep %lu times, not after the second look %lu; partitions slept %lu times\n",
              c.lanes_parked, c.parks_undone, c.partition_sleeps);
  std::printf("  wants %lu, delivers %lu (for other partitions %lu, merged %lu, late %lu); clients slept %lu times\n",
              c.wants, c.delivers, c.delivers_for_others, c.delivers_merged, c.late_delivers, c.client_sleeps);
}

// The whole of one run: sessions, then threads, then the reckoning.
Counters run(const Scenario& scenario) {
  const Device device;
  const Layout layout{.lanes = scenario.partitions, .window = scenario.window};
  Random nonces(scenario.seed);
  std::vector<std::unique_ptr<Session>> sessions;
  for (uint32_t id = 0; id < scenario.sessions; ++id) {
    sessions.push_back(std::make_unique<Session>(device, id, id % scenario.partitions, nonces.next(), layout));
  }
  std::vector<std::unique_ptr<Partition>> partitions;
  for (uint32_t id = 0; id < scenario.partitions; ++id) {
    partitions.push_back(std::make_unique<Partition>(scenario, id, sessions));
  }
  for (auto& partition : partitions) partition->meet(partitions);
  const auto who_is_blocked = [&partitions] {
    std::string text = "blocked partitions:";
    for (size_t id = 0; id < partitions.size(); ++id) {
      if (partitions[id]->is_blocked()) text += " " + std::to_string(id);
    }
    return text;
  };

  std::atomic<uint32_t> total_failures{0};
  std::vector<std::unique_ptr<Client>> clients;
  clients.reserve(sessions.size());
  std::vector<std::thread> client_threads, partition_threads;
  for (auto& partition : partitions) partition_threads.emplace_back([&partition] { partition->run(); });
  for (auto& session : sessions) {
    clients.push_back(std::make_unique<Client>(scenario, *session, who_is_blocked, total_failures));
  }
  for (auto& client : clients) client_threads.emplace_back([&client] { client->run(); });
  for (auto& thread : client_threads) thread.join();
  for (auto& partition : partitions) partition->stop();
  for (auto& thread : partition_threads) thread.join();

  Counters total;
  for (auto& client : clients) total.add(client->counters());
  for (auto& partition : partitions) total.add(partition->counters());
  const uint64_t taken = total.taken_by_fetch + total.taken_by_last_fetch + total.taken_by_deliver;
  const bool complete = total.lost == 0 && total.wrong == 0;  // else the run ended early
  if (complete && taken != total.sent) die("%lu messages sent, %lu results taken", total.sent, taken);
  if (complete && total.executed != total.sent) die("%lu messages sent, %lu executed", total.sent, total.executed);
  return total;
}

}  // namespace
}  // namespace egret::handshakes

int main(int argc, char** argv) {
  using namespace egret::handshakes;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  prctl(PR_SET_TIMERSLACK, 1);  // short pauses stay short
  const Scenario scenario = read_options(argc, argv);
  const uint64_t start = now_us();
  const Counters total = run(scenario);
  print_counters(scenario, total, now_us() - start);
  if (total.wrong > 0) return kExitWrong;
  return total.lost > 0 ? kExitLost : 0;
}
