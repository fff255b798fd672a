#include "scenes.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include <unistd.h>

#include "bench/monotonic.h"
#include "moved_key.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint32_t kHeldKey = 4, kOtherKey = 5;
constexpr uint64_t kNewVersion = 1000;
constexpr uint64_t kPatienceNs = 30 * bench::kNsPerSecond;
constexpr auto kVerbTime = std::chrono::milliseconds(300);  // a verb that was posted has been done by then

std::string_view name_of(Outcome outcome) {
  constexpr std::array<std::string_view, 6> kNames = {"hit", "miss", "done", "full", "lost", "failed"};
  return kNames[static_cast<size_t>(outcome)];
}

bool begin(Seat& seat, OpKind kind, uint32_t key) {
  std::string value(seat.plan.value_bytes, '\0');
  bench::write_value(value.data(), value.size(), key, kNewVersion);
  Op op;
  op.kind = kind;
  op.key_number = key;
  op.key = seat.plan.keys->key(key);
  op.value = value;
  return seat.client->begin(op);
}

// The op that is begun, to its end.
Outcome await(Seat& seat) {
  std::array<Result, 1> result;
  const uint64_t end_ns = bench::monotonic_ns() + kPatienceNs;
  while (bench::monotonic_ns() < end_ns) {
    if (seat.client->poll(result) == 1) return result[0].outcome;
    seat.rest();
  }
  return Outcome::kFailed;
}

Outcome do_op(Seat& seat, OpKind kind, uint32_t key) {
  return begin(seat, kind, key) ? await(seat) : Outcome::kFailed;
}

std::string member(std::string_view name, Outcome outcome) {
  return "\"" + std::string(name) + "\": \"" + std::string(name_of(outcome)) + "\"";
}

// --- kMovedKey

std::string move_key(Seat& seat) {
  const auto found = find_moved_key(seat.plan.keys->count(), seat.plan.key_bytes, seat.plan.tuning.load);
  if (!found) return "\"scene\": \"no such table\"";
  const bool moves = seat.client != nullptr && seat.self == seat.plan.servers + 1;
  const bool reads = seat.client != nullptr && !moves;
  std::string said = "\"scene\": \"a key is moved\"";
  bool is_done = true;
  if (moves) {
    for (const auto& [kind, key] : found->before) is_done = is_done && do_op(seat, kind, key) == Outcome::kDone;
  }
  pass(seat);
  if (reads) {
    is_done = begin(seat, OpKind::kGet, found->moved);
    std::this_thread::sleep_for(kVerbTime);
  }
  pass(seat);
  if (moves) said += ", " + member("moving", is_done ? do_op(seat, OpKind::kPut, found->inserted) : Outcome::kFailed);
  pass(seat);
  if (reads) said += ", " + member("get", is_done ? await(seat) : Outcome::kFailed);
  return said;
}

// --- kDiesHolding

void mark(const std::string& name) {
  std::ofstream(name) << "done\n";
}

void await_mark(const std::string& name, Seat& seat) {
  const uint64_t end_ns = bench::monotonic_ns() + kPatienceNs;
  while (access(name.c_str(), F_OK) != 0 && bench::monotonic_ns() < end_ns) {
    if (seat.server == nullptr || !seat.server->serve()) seat.rest();
  }
}

[[noreturn]] void die_holding(Seat& seat, const std::string& marker) {
  const auto atomics = [&] { return seat.fabric.counts().of(Verb::kCompareSwap); };
  const uint64_t before = atomics();
  begin(seat, OpKind::kPut, kHeldKey);
  std::array<Result, 1> result;
  while (atomics() == before && seat.client->poll(result) == 0) seat.rest();
  std::this_thread::sleep_for(kVerbTime);
  mark(marker + ".died");
  raise(SIGKILL);
  std::abort();
}

std::string hold_key(Seat& seat, const std::string& marker) {
  const std::string done = marker + ".done";
  std::string said = "\"scene\": \"a client dies\"";
  if (seat.server != nullptr) {
    await_mark(done, seat);
  } else if (seat.self == seat.plan.servers + 1) {
    die_holding(seat, marker);
  } else {
    await_mark(marker + ".died", seat);
    said += ", " + member("get", do_op(seat, OpKind::kGet, kHeldKey));
    said += ", \"stuck_get\": " + std::to_string(seat.client->trouble().stuck);
    said += ", " + member("put", do_op(seat, OpKind::kPut, kHeldKey));
    said += ", \"stuck\": " + std::to_string(seat.client->trouble().stuck);
    said += ", " + member("get_again", do_op(seat, OpKind::kGet, kHeldKey));
    said += ", " + member("put_other", do_op(seat, OpKind::kPut, kOtherKey));
    said += ", " + member("get_other", do_op(seat, OpKind::kGet, kOtherKey));
    mark(done);
  }
  return said;
}

}  // namespace

std::string play(Scene scene, Seat& seat, const std::string& marker) {
  return scene == Scene::kMovedKey ? move_key(seat) : hold_key(seat, marker);
}

}  // namespace egret::bench_paradigms
