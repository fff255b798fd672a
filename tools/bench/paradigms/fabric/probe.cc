// What a device can do, found out by doing it: a pair of each type to itself, and one FETCH_ADD over it.
#include <algorithm>
#include <array>
#include <cstring>

#include "bench/monotonic.h"
#include "bench_paradigms/fabric/besides.h"
#include "bench_paradigms/fabric/verbs_pair.h"
#include "bench_paradigms/fabric/wire.h"
#include "bench_verbs/pairs/by_hand.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

constexpr uint32_t kWantedInline = 256;
constexpr uint64_t kPatienceNs = 5 * bench::kNsPerSecond;
constexpr uint64_t kWord = 0x0102030405060708;  // another one read backwards

// Two pairs of a type, joined to each other. Fails as the device does.
struct Two {
  std::unique_ptr<Queue> queue;
  std::array<std::unique_ptr<Pair>, 2> pairs;

  Status make(Fabric& fabric, PairType type) {
    auto made = fabric.make_queue(8);
    if (!made) return made.status();
    queue = std::move(made.value());
    for (auto& pair : pairs) {
      auto one = fabric.make_pair(
          {.type = type, .send_queue = queue.get(), .receive_queue = queue.get(), .sends = 2, .receives = 1});
      if (!one) return one.status();
      pair = std::move(one.value());
    }
    for (size_t i = 0; i < 2; ++i) {
      if (Status done = pairs[i]->join(fabric.address(), pairs[1 - i]->number()); !done) return done;
    }
    return Status::ok();
  }
};

Status try_pairs(const Route& route, const Capabilities& with, PairType type) {
  auto fabric = make_verbs_fabric(route, 0, with);
  if (!fabric) return fabric.status();
  Two two;
  return two.make(*fabric.value(), type);
}

// The most inline bytes that pairs of this type have, if they can be made at all. Asking for too many fails.
Status try_inline(const Route& route, Capabilities& with, PairType type) {
  for (;; with.inline_bytes /= 2) {
    Status done = try_pairs(route, with, type);
    if (done || with.inline_bytes == 0) return done;
  }
}

enum class Answer : uint8_t { kNone, kRight, kBackwards };

Answer wait_for_answer(Queue& queue, const Memory& memory) {
  const uint64_t deadline = bench::monotonic_ns() + kPatienceNs;
  Completion done;
  while (queue.poll(std::span(&done, 1)) == 0) {
    if (bench::monotonic_ns() > deadline) return Answer::kNone;
    bench_verbs::pause_briefly();
  }
  uint64_t words[2];
  std::memcpy(words, memory.data(), sizeof words);
  if (!done.is_ok || words[0] != kWord + 1) return Answer::kNone;
  if (words[1] == kWord) return Answer::kRight;
  return words[1] == __builtin_bswap64(kWord) ? Answer::kBackwards : Answer::kNone;
}

// The word at 0 grows by one; what it was comes to 8.
Answer try_atomic(const Route& route, const Capabilities& with) {
  auto fabric = make_verbs_fabric(route, 0, with);
  if (!fabric) return Answer::kNone;
  auto memory = fabric.value()->make_memory(16, kRemoteAtomic);
  if (!memory) return Answer::kNone;
  Two two;
  if (!two.make(*fabric.value(), PairType::kRc)) return Answer::kNone;
  const Memory& words = *memory.value();
  std::memcpy(words.data(), &kWord, sizeof kWord);
  Work add;
  add.verb = Verb::kFetchAdd;
  add.is_signalled = true;
  add.bytes = 8;
  add.local = words.data() + 8;
  add.memory = &words;
  add.remote_address = words.remote().address;
  add.remote_key = words.remote().key;
  add.compare_or_add = 1;
  if (!two.pairs[0]->post(add)) return Answer::kNone;
  add_besides(fabric.value()->counts());
  return wait_for_answer(*two.queue, words);
}

uint32_t packet_head_of(const Route& route) {
  if (!route.is_infiniband) return kRocePacketHead;
  return kInfinibandPacketHead + (route.way.ah_attr.is_global != 0 ? kGlobalHead : 0);
}

// Whether WRITEs that come in on pairs of this type are placed in rising order.
bool is_in_order(const Route& route, const Capabilities& with, PairType type) {
#ifdef EGRET_HAS_DATA_IN_ORDER
  auto fabric = make_verbs_fabric(route, 0, with);
  Two two;
  if (!fabric || !two.make(*fabric.value(), type)) return false;
  ibv_qp* const pair = static_cast<VerbsPair*>(two.pairs[0].get())->handle();
  return ibv_query_qp_data_in_order(pair, IBV_WR_RDMA_WRITE, 0) != 0;
#else
  (void)route;
  (void)with;
  (void)type;
  return false;
#endif
}

}  // namespace

Expected<Capabilities> probe(const Route& route) {
  Capabilities can;
  can.device = ibv_get_device_name(route.device->device);
  can.is_emulated = bench_verbs::is_emulated(route.device);
  can.mtu = 128u << static_cast<unsigned>(route.way.path_mtu);
  can.packet_head = packet_head_of(route);
  can.read_depth = bench_verbs::most_reads(route.device);
  can.inline_bytes = kWantedInline;
  can.has_atomics = bench_verbs::has_atomics(route.device);
  if (Status done = try_inline(route, can, PairType::kRc); !done) return done;
  // A type that the device lacks takes no inline bytes from the others.
  for (const auto& [type, has] :
       {std::pair(PairType::kUc, &Capabilities::has_uc), std::pair(PairType::kUd, &Capabilities::has_ud)}) {
    Capabilities with = can;
    if (!try_inline(route, with, type)) continue;
    with.*has = true;
    can = with;
  }
  if (can.has_atomics) {
    const Answer answer = try_atomic(route, can);
    can.has_atomics = answer != Answer::kNone;
    can.has_backward_answers = answer == Answer::kBackwards;
  }
  can.is_in_order = is_in_order(route, can, PairType::kRc) && (!can.has_uc || is_in_order(route, can, PairType::kUc));
  return can;
}

}  // namespace egret::bench_paradigms
