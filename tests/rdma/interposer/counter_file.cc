#include "counter_file.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace egret::interposer {
namespace {

constexpr char kMagic[8] = {'E', 'G', 'R', 'E', 'T', 'V', 'C', '1'};

enum class Kind : uint32_t { kSum = 0, kMost = 1 };

struct Header {
  char magic[8];
  uint32_t counters;
  uint32_t registrations;  // places
  uint32_t pid;
  std::atomic<uint32_t> registrations_made;
  char reserved[40];
};
struct Row {
  char name[48];
  std::atomic<uint64_t> value;
  Kind kind;
  uint32_t reserved;
};
struct Registration {
  uint64_t address;
  uint64_t length;
  uint32_t access;
  std::atomic<uint32_t> state;
  uint32_t rkey;
  char reserved[36];
};
struct File {
  Header header;
  Row rows[kCounters];
  Registration registrations[kMaxRegistrations];
};
static_assert(sizeof(Header) == 64 && sizeof(Row) == 64 && sizeof(Registration) == 64);

constexpr std::array<const char*, static_cast<uint32_t>(Counter::kByPairType)> kNames = {
    "write",
    "write_with_imm",
    "read",
    "send",
    "send_with_imm",
    "cas",
    "faa",
    "other",
    "inline",
    "signalled",
    "empty_write",
    "off_page_read",
    "write_bytes",
    "read_bytes",
    "doorbells",
    "recv",
    "recv_doorbells",
    "reads_under_way",
    "send_completions",
    "recv_completions",
    "failed_completions",
    "polls",
    "empty_polls",
    "arms",
    "solicited_arms",
    "completion_events",
    "event_reads",
    "sleeps",
    "completion_vector",
    "completion_entries",
    "completion_channels",
    "completion_channels_destroyed",
    "completion_queues",
    "completion_queues_destroyed",
    "queue_pairs",
    "queue_pairs_destroyed",
    "registrations",
    "registered_bytes",
    "remote_writable",
    "remote_readable",
    "relaxed_ordering",
    "deregistrations",
    "uncounted",
    "failed_on_purpose",
    "slow_begun",
    "slow_ended",
    "refused_by_limits",
    "thread_domains",
    "thread_pairs",
    "option_tos",
    "option_ack_timeout",
    "torn",
    "pieces",
    "swallowed",
    "withheld",
    "spurious_events",
};
constexpr std::array<const char*, kPairTypes> kPairTypeNames = {"rc", "uc", "ud"};

// "rc_write" and so on behind the others.
std::string name_of(uint32_t counter) {
  if (counter < kNames.size()) return kNames[counter];
  const auto beyond = counter - static_cast<uint32_t>(kNames.size());
  const uint32_t opcode = beyond % kOfPairType;
  return std::string(kPairTypeNames[beyond / kOfPairType]) + "_" + (opcode < kOpcodes ? kNames[opcode] : "recv");
}

// Of another type: kPairTypes.
uint32_t index_of(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return 0;
    case IBV_QPT_UC:
      return 1;
    case IBV_QPT_UD:
      return 2;
    default:
      return kPairTypes;
  }
}

[[noreturn]] void die(const char* what, const char* path) {
  std::fprintf(stderr, "libegret_count_verbs: %s %s: %s\n", what, path, std::strerror(errno));
  _exit(70);
}

// "%p" in the path stands for the process id, so that every process of a script has a file of its own.
std::string file_path() {
  const char* const wanted = std::getenv("EGRET_COUNT_VERBS_FILE");
  std::string path = wanted == nullptr ? "" : wanted;
  if (const size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  return path;
}

File* make_file() {
  const std::string path = file_path();
  int flags = MAP_SHARED;
  int fd = -1;
  if (path.empty()) {
    flags |= MAP_ANONYMOUS;  // counted all the same, for nobody
  } else {
    fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || ftruncate(fd, sizeof(File)) != 0) die("cannot write", path.c_str());
  }
  void* const memory = mmap(nullptr, sizeof(File), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) die("cannot map", path.c_str());
  if (fd >= 0) close(fd);
  auto* const file = static_cast<File*>(memory);  // zeroes
  for (uint32_t i = 0; i < kCounters; ++i) name_of(i).copy(file->rows[i].name, sizeof(Row::name) - 1);
  for (const Counter each : {Counter::kReadsUnderWay, Counter::kOptionTos, Counter::kOptionAckTimeout}) {
    file->rows[static_cast<uint32_t>(each)].kind = Kind::kMost;
  }
  file->header.counters = kCounters;
  file->header.registrations = kMaxRegistrations;
  file->header.pid = static_cast<uint32_t>(getpid());
  std::memcpy(file->header.magic, kMagic, sizeof kMagic);  // last: before it, a reader sees no file
  return file;
}

// Made by the first verb and not by loading: a process without verbs (the shell around the test) leaves no file.
File& file() {
  static File* const instance = make_file();
  return *instance;
}

std::atomic<uint64_t>& value_of(Counter counter) {
  return file().rows[static_cast<uint32_t>(counter)].value;
}

}  // namespace

void count(Counter counter, uint64_t by) {
  value_of(counter).fetch_add(by, std::memory_order_relaxed);
}

void count_of(ibv_qp_type type, Counter counter, uint64_t by) {
  count(counter, by);
  const uint32_t pair_type = index_of(type);
  const auto opcode = static_cast<uint32_t>(counter);
  if (pair_type == kPairTypes || (opcode >= kOpcodes && counter != Counter::kRecv)) return;
  const uint32_t base = static_cast<uint32_t>(Counter::kByPairType) + pair_type * kOfPairType;
  count(static_cast<Counter>(base + std::min(opcode, kOpcodes)), by);
}

void count_most(Counter counter, uint64_t seen) {
  std::atomic<uint64_t>& value = value_of(counter);
  uint64_t most = value.load(std::memory_order_relaxed);
  while (seen > most && !value.compare_exchange_weak(most, seen, std::memory_order_relaxed)) {
  }
}

uint32_t note_registered(uint64_t address, uint64_t length, uint32_t access, uint32_t rkey, RegistrationState state) {
  const uint32_t index = file().header.registrations_made.fetch_add(1, std::memory_order_relaxed);
  if (index >= kMaxRegistrations) return index;
  Registration& entry = file().registrations[index];
  entry.address = address;
  entry.length = length;
  entry.access = access;
  entry.rkey = rkey;
  entry.state.store(static_cast<uint32_t>(state), std::memory_order_release);  // the rest is there when this is
  return index;
}

void note_deregistered(uint32_t index) {
  if (index >= kMaxRegistrations) return;
  file().registrations[index].state.store(static_cast<uint32_t>(RegistrationState::kDeregistered),
                                          std::memory_order_relaxed);
}

}  // namespace egret::interposer
