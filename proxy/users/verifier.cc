#include "proxy/users/verifier.h"

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <openssl/crypto.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace egret::proxy {

Verification::~Verification() {
  OPENSSL_cleanse(password.data(), password.size());
}

// --- the way back

VerifiedInbox::VerifiedInbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!fd_.is_open()) throw std::system_error(errno, std::system_category(), "eventfd");
}

void VerifiedInbox::put(std::shared_ptr<Verification> verification) {
  {
    const std::lock_guard lock(mutex_);
    returned_.push_back(std::move(verification));
  }
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd_.get(), &one, sizeof one);
}

void VerifiedInbox::deliver() {
  uint64_t ignored = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &ignored, sizeof ignored);
  std::vector<std::shared_ptr<Verification>> returned;
  {
    const std::lock_guard lock(mutex_);
    returned.swap(returned_);
  }
  for (const auto& each : returned) {
    if (each->waiter != nullptr) std::exchange(each->waiter, nullptr)->on_verified();
  }
}

// --- the thread

PasswordVerifier::~PasswordVerifier() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool PasswordVerifier::submit(const std::shared_ptr<Verification>& verification) {
  const std::lock_guard lock(mutex_);
  const auto of_address = waiting_.find(verification->address);
  if (count_ >= kMax || (of_address != waiting_.end() && of_address->second.size() >= kMaxOfAddress)) return false;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {  // no more threads for now
      return false;
    }
  }
  waiting_[verification->address].push_back(verification);
  ++count_;
  changed_.notify_one();
  return true;
}

void PasswordVerifier::run() {
  pthread_setname_np(pthread_self(), "passwords");
  while (const std::shared_ptr<Verification> job = next()) {
    if (job->is_abandoned.load(std::memory_order_relaxed)) continue;
    job->judgement = job->users->verify({job->user, job->password});
    job->inbox->put(job);
  }
}

// The first of the address that comes after the last one. Null: it is over.
std::shared_ptr<Verification> PasswordVerifier::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return is_ending_ || count_ > 0; });
  if (is_ending_) return nullptr;
  auto turn = waiting_.upper_bound(last_);
  if (turn == waiting_.end()) turn = waiting_.begin();
  last_ = turn->first;
  std::shared_ptr<Verification> job = std::move(turn->second.front());
  turn->second.pop_front();
  if (turn->second.empty()) waiting_.erase(turn);
  --count_;
  return job;
}

}  // namespace egret::proxy
