// watch_pieces [BYTES [beyond]]: in which order the 64-byte lines of one READ and of one WRITE are seen, and what completes. For the
// interposer's plans: without one, whatever the device does.
//
//   READ   a thread writes the time into all lines, again and again; the lines that a READ brings, by their times
//   WRITE  a thread looks at all lines, again and again; the lines, by when each was seen changed
//
// A time is a round over all lines: two that follow each other may be seen the wrong way round. Prints `read 0 1 2 …` and
// `write 0 1 2 …`: of so many tries the first order that comes a second time, all lines with times that are further apart
// (once may be chance: a piece that a slow device sends again comes late), else that of the last, with `=` before a line that is
// as old as the one before. Ends with 1 where a verb has not exactly one completion,
// its own wr_id and length, or brings wrong bytes. `beyond`: only a READ whose second half is not the other side's memory,
// which must fail.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "../handshakes/scenario.h"
#include "../handshakes/slots.h"
#include "../handshakes/verbs.h"

namespace egret::handshakes {
namespace {

constexpr uint64_t kTag = 77;
constexpr uint32_t kTries = 200;
constexpr uint64_t kPatienceUs = 60'000'000;

struct Sides {
  explicit Sides(size_t bytes) : lines(bytes / kLineBytes), near_memory(bytes), far_memory(bytes) {
    near_mr = near_end.add_memory(near_memory, IBV_ACCESS_LOCAL_WRITE);
    far_mr = far_end.add_memory(far_memory, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    near_end.connect(far_end);
    far_end.connect(near_end);
  }
  Remote target() const { return {reinterpret_cast<uint64_t>(far_memory.at(0)), far_mr->rkey}; }

  Device device;
  size_t lines;
  Buffer near_memory, far_memory;
  Endpoint near_end{device}, far_end{device};
  ibv_mr* near_mr = nullptr;
  ibv_mr* far_mr = nullptr;
};

std::vector<size_t> order_of(const std::vector<uint64_t>& times) {
  std::vector<size_t> order(times.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return times[a] < times[b]; });
  return order;
}

void print(const char* verb, const std::vector<uint64_t>& times) {
  const std::vector<size_t> order = order_of(times);
  std::printf("%s", verb);
  for (size_t i = 0; i < order.size(); ++i) {
    std::printf(" %s%zu", i > 0 && times[order[i]] == times[order[i - 1]] ? "=" : "", order[i]);
  }
  std::printf("\n");
}

bool all_differ(std::vector<uint64_t> times) {
  std::sort(times.begin(), times.end());
  return std::adjacent_find(times.begin(), times.end(), [](uint64_t a, uint64_t b) { return b - a < 2; }) ==
         times.end();
}

// The times of the first try whose order has come before, else of the last.
std::vector<uint64_t> repeated(const std::function<std::vector<uint64_t>(uint32_t)>& watch) {
  std::set<std::vector<size_t>> seen;
  std::vector<uint64_t> times;
  for (uint32_t i = 0; i < kTries; ++i) {
    times = watch(i);
    if (all_differ(times) && !seen.insert(order_of(times)).second) break;
  }
  return times;
}

// Waits for one completion, and sees that there is no other.
void take_one(Sides& sides, ibv_wc_opcode opcode, size_t bytes) {
  std::array<ibv_wc, 8> found;
  const uint64_t deadline = now_us() + kPatienceUs;
  size_t count = 0;
  while (count == 0) {
    if (now_us() > deadline) die("no completion");
    count = sides.near_end.poll(found);
    sched_yield();
  }
  if (count != 1 || found[0].opcode != opcode) die("%zu completions, the first of opcode %d", count, found[0].opcode);
  if (opcode == IBV_WC_RDMA_READ && found[0].wr_id != kTag) die("wr_id %lu", found[0].wr_id);
  if (opcode == IBV_WC_RDMA_READ && found[0].byte_len != bytes) die("a READ of %u bytes", found[0].byte_len);
  usleep(1000);
  if (sides.near_end.poll(found) != 0) die("one completion too many");
}

// With nobody writing, all bytes must come over.
void prove_bytes(Sides& sides) {
  const size_t bytes = sides.lines * kLineBytes;
  for (size_t i = 0; i < bytes; ++i) *sides.far_memory.at(i) = static_cast<std::byte>(i * 7 + 1);
  sides.near_end.read(kTag, sides.near_memory.at(0), sides.near_mr, bytes, sides.target());
  take_one(sides, IBV_WC_RDMA_READ, bytes);
  if (std::memcmp(sides.near_memory.at(0), sides.far_memory.at(0), bytes) != 0) die("a READ brings other bytes");
}

std::vector<uint64_t> watch_read(Sides& sides) {
  const size_t bytes = sides.lines * kLineBytes;
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (uint64_t time = 1; !is_over; ++time) {
      for (size_t line = 0; line < sides.lines; ++line) publish_word(sides.far_memory.at(line * kLineBytes), time);
      if (time % 64 == 0) sched_yield();
    }
  });
  usleep(1000);
  sides.near_end.read(kTag, sides.near_memory.at(0), sides.near_mr, bytes, sides.target());
  take_one(sides, IBV_WC_RDMA_READ, bytes);
  is_over = true;
  writer.join();
  std::vector<uint64_t> times;
  for (size_t line = 0; line < sides.lines; ++line) {
    times.push_back(observe_word(sides.near_memory.at(line * kLineBytes)));
  }
  return times;
}

std::vector<uint64_t> watch_write(Sides& sides, uint64_t word) {
  const size_t bytes = sides.lines * kLineBytes;
  std::vector<uint64_t> times(sides.lines);
  std::atomic<bool> is_watching = false;
  std::thread watcher([&] {
    const uint64_t deadline = now_us() + kPatienceUs;
    size_t seen = 0;
    for (uint64_t time = 1; seen < sides.lines; ++time) {
      for (size_t line = 0; line < sides.lines; ++line) {
        if (times[line] != 0 || observe_word(sides.far_memory.at(line * kLineBytes)) != word) continue;
        times[line] = time;
        ++seen;
      }
      is_watching = true;
      if (now_us() > deadline) die("a WRITE did not arrive");
      if (time % 64 == 0) sched_yield();
    }
  });
  while (!is_watching) sched_yield();
  for (size_t i = 0; i < bytes; i += sizeof word) publish_word(sides.near_memory.at(i), word);
  // A signalled READ behind it tells that it has been placed.
  sides.near_end.write(sides.near_memory.at(0), sides.near_mr, bytes, sides.target());
  sides.near_end.read(kTag, sides.near_memory.at(0), sides.near_mr, bytes, sides.target());
  take_one(sides, IBV_WC_RDMA_READ, bytes);
  watcher.join();
  for (size_t i = 0; i < bytes; i += sizeof word) {
    if (observe_word(sides.near_memory.at(i)) != word) die("a WRITE brings other bytes");
  }
  return times;
}

void read_beyond(size_t bytes) {
  Sides sides(bytes);
  Remote from = sides.target();
  from.address += sides.far_memory.size() - bytes / 2;
  sides.near_end.read(kTag, sides.near_memory.at(0), sides.near_mr, bytes, from);
  take_one(sides, IBV_WC_RDMA_READ, bytes);
}

void run(size_t bytes) {
  Sides sides(bytes);
  prove_bytes(sides);
  print("read", repeated([&](uint32_t) { return watch_read(sides); }));
  print("write", repeated([&](uint32_t i) { return watch_write(sides, 1000 + i); }));
}

}  // namespace
}  // namespace egret::handshakes

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 512;
  if (bytes < 128 || bytes > 2048 || bytes % 64 != 0) return 2;
  if (argc > 2) {
    egret::handshakes::read_beyond(bytes);
  } else {
    egret::handshakes::run(bytes);
  }
  return 0;
}
