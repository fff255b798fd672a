// Verifies passwords on a separate thread: their hashes are slow by design, and a worker serves thousands of clients.
//
//   worker: submit() ─▶ queue of the client's address ─ the addresses in turn ─▶ thread: Credentials::verify()
//   worker: on_verified() ◀─ VerifiedInbox, an eventfd ◀──────────────────────────┘
//
// A guesser fills only the queue of its own address, which is bounded; others wait for one of its guesses at most.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "proxy/users/credentials.h"

namespace egret::proxy {

class VerificationWaiter {
 public:
  virtual void on_verified() = 0;

 protected:
  ~VerificationWaiter() = default;
};

class VerifiedInbox;

// A guess that is being verified.
struct Verification {
  ~Verification();

  std::shared_ptr<const Credentials> users;
  std::string user;
  std::string password;
  std::string address;  // of the client
  std::shared_ptr<VerifiedInbox> inbox;
  // Used by the submitting thread alone. Null: the client is gone.
  VerificationWaiter* waiter = nullptr;
  // Set by the submitting thread when the client is gone: skip it.
  std::atomic<bool> is_abandoned{false};
  Judgement judgement;  // the thread's until it comes back
};

// The results for one worker, which waits for fd() to be readable.
class VerifiedInbox {
 public:
  VerifiedInbox();
  int fd() const { return fd_.get(); }
  // Any thread.
  void put(std::shared_ptr<Verification> verification);
  // Called by the worker: gives each result to its client.
  void deliver();

 private:
  base::UniqueFd fd_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Verification>> returned_;
};

// One for the proxy. The thread starts with the first verification.
class PasswordVerifier {
 public:
  static constexpr size_t kMaxOfAddress = 32;  // that wait, of one address
  static constexpr size_t kMax = 4096;         // of all

  PasswordVerifier() = default;
  ~PasswordVerifier();

  // Any thread. False: too many wait already; ask again later.
  bool submit(const std::shared_ptr<Verification>& verification);

 private:
  void run();
  std::shared_ptr<Verification> next();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::deque<std::shared_ptr<Verification>>, std::less<>> waiting_;  // by address; none is empty
  std::string last_;                                                                       // address that had its turn
  size_t count_ = 0;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace egret::proxy
