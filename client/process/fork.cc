#include "client/process/fork.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>

#include "base/file_id.h"
#include "client/process/bare.h"
#include "client/process/devices.h"

namespace egret::client {

std::atomic<uint64_t>* ForkGuard::page_ = nullptr;
uint64_t ForkGuard::plain_ = 1;

namespace {

constexpr size_t kPage = 4096;

// Never destroyed: threads may use them while the process ends.
pthread_mutex_t mutex;  // recursive
struct Owned {
  int fd;
  base::FileId file;
};
std::vector<Owned>* owned = nullptr;
uint64_t last_generation = 1;  // of this process or an ancestor
std::atomic<bool> may_use_devices{false};
std::once_flag is_installed;

void make_mutex() {
  pthread_mutexattr_t recursive;
  ::pthread_mutexattr_init(&recursive);
  ::pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
  ::pthread_mutex_init(&mutex, &recursive);
  ::pthread_mutexattr_destroy(&recursive);
}

}  // namespace

void ForkGuard::install() {
  std::call_once(is_installed, [] {
    make_mutex();
    owned = new std::vector<Owned>;
    void* const at = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED && ::madvise(at, kPage, MADV_WIPEONFORK) == 0) {
      page_ = ::new (at) std::atomic<uint64_t>(last_generation);
    }
    ::pthread_atfork(lock, unlock, [] { enter_child(); });
  });
}

void ForkGuard::lock() {
  ::pthread_mutex_lock(&mutex);
}

void ForkGuard::unlock() {
  ::pthread_mutex_unlock(&mutex);
}

void ForkGuard::own(int fd) {
  const Section section;
  owned->push_back({fd, base::FileId::of(fd)});
}

void ForkGuard::disown(int fd) {
  const Section section;
  std::erase_if(*owned, [fd](const Owned& each) { return each.fd == fd; });
}

void ForkGuard::expect_devices() {
  may_use_devices.store(true, std::memory_order_relaxed);
}

// Only this thread exists. What the parent's other threads were doing is not known: nothing of a client is touched.
void ForkGuard::enter_child() {
  for (const Owned& each : *owned) {
    if (base::FileId::of(each.fd) == each.file) bare::close(each.fd);
  }
  owned->clear();
  if (may_use_devices.load(std::memory_order_relaxed)) let_go_of_devices();
  make_mutex();  // it was locked by a thread whose id is another one now
  plain_ = ++last_generation;
  if (page_ != nullptr) page_->store(last_generation, std::memory_order_relaxed);
}

void ForkGuard::enter_child_if_new() {
  if (page_ != nullptr && page_->load(std::memory_order_relaxed) == 0) enter_child();
}

}  // namespace egret::client
