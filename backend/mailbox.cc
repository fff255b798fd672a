#include "backend/mailbox.h"

#include <cerrno>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/slot_copy.h"

namespace egret::backend {

Mailboxes::Mailboxes(uint32_t nodes) : nodes_(nodes), nodes_state_(nodes) {
  for (Node& node : nodes_state_) {
    node.wake.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!node.wake.is_open()) throw std::system_error(errno, std::system_category(), "eventfd");
  }
  for (size_t i = 0; i < size_t{nodes} * nodes; ++i) queues_.push_back(std::make_unique<Queue>());
}

bool Mailboxes::Queue::push(const Message& message) {
  const size_t at = tail.load(std::memory_order_relaxed);
  if (at - head.load(std::memory_order_acquire) == kCapacity) return false;
  messages[at % kCapacity] = message;
  tail.store(at + 1, std::memory_order_release);
  return true;
}

bool Mailboxes::Queue::pop(Message& message) {
  const size_t at = head.load(std::memory_order_relaxed);
  if (at == tail.load(std::memory_order_acquire)) return false;
  message = messages[at % kCapacity];
  head.store(at + 1, std::memory_order_release);
  return true;
}

void Mailboxes::send(uint32_t from, uint32_t to, const Message& message) {
  Queue& q = queue(from, to);
  if (!q.outbox.empty() || !q.push(message)) {
    q.outbox.push_back(message);
    ++nodes_state_[from].waiting;
  }
  notify(to);
}

bool Mailboxes::resend(uint32_t from) {
  if (!is_waiting(from)) return false;
  for (uint32_t to = 0; to < nodes_; ++to) {
    Queue& q = queue(from, to);
    if (q.outbox.empty()) continue;
    for (; !q.outbox.empty() && q.push(q.outbox.front()); --nodes_state_[from].waiting) q.outbox.pop_front();
    notify(to);
  }
  return is_waiting(from);
}

bool Mailboxes::receive(uint32_t node, Message& message) {
  const uint32_t others = nodes_ - 1;
  if (queue(others, node).pop(message)) return true;
  uint32_t& next = nodes_state_[node].next_sender;
  for (uint32_t asked = 0; asked < others; ++asked) {
    const uint32_t from = next;
    next = (next + 1) % others;
    if (queue(from, node).pop(message)) return true;
  }
  return false;
}

// Push → fence → sleeping? against sleeping → fence → empty?: one of the two sees the other.
void Mailboxes::notify(uint32_t to) {
  base::full_fence();
  if (nodes_state_[to].sleeping.load(std::memory_order_relaxed)) wake(to);
}

bool Mailboxes::prepare_sleep(uint32_t node) {
  nodes_state_[node].sleeping.store(true, std::memory_order_relaxed);
  base::full_fence();
  for (uint32_t from = 0; from < nodes_; ++from) {
    if (!queue(from, node).empty()) {
      awake(node);
      return false;
    }
  }
  return true;
}

void Mailboxes::signal_always(uint32_t node) {
  nodes_state_[node].sleeping.store(true, std::memory_order_relaxed);
  base::full_fence();
}

void Mailboxes::awake(uint32_t node) {
  nodes_state_[node].sleeping.store(false, std::memory_order_relaxed);
}

void Mailboxes::wake(uint32_t node) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(nodes_state_[node].wake.get(), &one, sizeof one);
}

}  // namespace egret::backend
