#include "transport/shm_regions.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace egret::transport::shm {

using base::Status;
using base::UniqueFd;

namespace {

// Of one peer: more than the sessions of a proxy that has just been killed, less than would hurt this host.
constexpr size_t kPage = 4096;
constexpr size_t kMostKept = 16;
constexpr size_t kMostKeptBytes = size_t{64} << 20;

// The same file, opened once more.
UniqueFd opened_again(int fd, int flags) {
  return UniqueFd(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags | O_CLOEXEC));
}

}  // namespace

Status SharedMemory::make(const char* name, size_t bytes, bool for_reading) {
  UniqueFd file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.is_open()) return Status::system_error("memfd_create", errno);
  // Allocated now: a page that cannot be had later would be a SIGBUS on the data path.
  if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); error != 0) {
    return Status::system_error("cannot allocate a region of " + std::to_string(bytes) + " bytes", error);
  }
  const int protection = for_reading ? PROT_READ | PROT_WRITE : PROT_READ;
  if (Status mapped = mapping_.map(file.get(), bytes, protection); !mapped) return mapped;
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | (for_reading ? F_SEAL_FUTURE_WRITE : 0);
  if (::fcntl(file.get(), F_ADD_SEALS, seals) < 0) return Status::system_error("cannot seal a region", errno);
  bytes_ = bytes;
  // The first descriptor of a memory file is not counted among those who have it open; these are.
  for_peer_ = opened_again(file.get(), for_reading ? O_RDONLY : O_RDWR);
  if (for_reading) witness_ = opened_again(file.get(), O_RDONLY);
  if (!for_peer_.is_open()) for_peer_.reset(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));  // there is no /proc
  if (!for_peer_.is_open()) return Status::system_error("a region's descriptor", errno);
  return Status::ok();
}

// By the mapping, which must allow writing for that: there is no descriptor any more.
void SharedMemory::punch() {
  if (data() == nullptr) return;
  const size_t whole_pages = (bytes_ + kPage - 1) / kPage * kPage;
  ::mprotect(data(), whole_pages, PROT_READ | PROT_WRITE);
  ::madvise(data(), whole_pages, MADV_REMOVE);
}

// A lease for writing is to be had only while nobody else has the file open; a mapping keeps it open.
bool SharedMemory::is_ours_alone(const UniqueFd& witness) {
  if (::fcntl(witness.get(), F_SETLEASE, F_WRLCK) != 0) return errno != EAGAIN;  // other errors: it cannot be known
  ::fcntl(witness.get(), F_SETLEASE, F_UNLCK);
  return true;
}

UniqueFd SharedMemory::let_go() {
  mapping_.reset();
  for_peer_.reset();
  return std::move(witness_);
}

void KeptRegions::keep(const std::string& peer_group, SharedMemory& memory) {
  const size_t bytes = memory.bytes();
  UniqueFd witness = memory.let_go();
  if (!witness.is_open() || SharedMemory::is_ours_alone(witness)) return;
  const std::lock_guard lock(mutex_);
  by_peer_[peer_group].push_back({std::move(witness), bytes});
}

Status KeptRegions::has_room(const std::string& peer_group) {
  const std::lock_guard lock(mutex_);
  forget_released();
  const auto at = by_peer_.find(peer_group);
  if (at == by_peer_.end()) return Status::ok();
  size_t bytes = 0;
  for (const Kept& kept : at->second) bytes += kept.bytes;
  if (at->second.size() < kMostKept && bytes < kMostKeptBytes) return Status::ok();
  return Status::error(peer_group + " still has the memory of " + std::to_string(at->second.size()) +
                       " closed sessions open, " + std::to_string(bytes) + " bytes: no more until it lets go");
}

size_t KeptRegions::bytes() {
  const std::lock_guard lock(mutex_);
  forget_released();
  size_t bytes = 0;
  for (const auto& [peer, regions] : by_peer_) {
    for (const Kept& kept : regions) bytes += kept.bytes;
  }
  return bytes;
}

void KeptRegions::forget_released() {
  for (auto& [peer, regions] : by_peer_) {
    std::erase_if(regions, [](const Kept& kept) { return SharedMemory::is_ours_alone(kept.witness); });
  }
  std::erase_if(by_peer_, [](const auto& entry) { return entry.second.empty(); });
}

}  // namespace egret::transport::shm
