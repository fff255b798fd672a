// How an endpoint is polled: in the PollGroup of a thread, or, where it was made without one, by its own queues, which it
// polls and arms itself. And the descriptor that tells whoever sets it up that there is something to look at.
// Thread: the endpoint's, one at a time.
#pragma once

#include <memory>
#include <utility>

#include "base/unique_fd.h"
#include "transport/verbs/queues.h"

namespace egret::transport::verbs {

class Polling {
 public:
  // `group`: null, it gets queues of its own.
  static base::Expected<Polling> of(PollGroup* group);

  const std::shared_ptr<SharedQueues>& queues() const { return queues_; }
  const std::shared_ptr<device::Notifier>& told() const { return told_; }
  bool is_own() const { return is_own_; }
  // Readable, level-triggered, when told() was notified or, before begin_data(), its own queues have something.
  int control_fd() const { return is_own_ ? both_.get() : told_->fd(); }
  int data_fd() const { return is_own_ ? queues_->fd() : -1; }
  // Before looking at what the set-up has brought.
  void look();
  void begin_data();
  // Of an endpoint with queues of its own: control_fd() is readable when `fd` is, too.
  base::Status also_watch(int fd) const;

  // --- data: nothing to do in a group
  void ready() {
    if (is_own_) queues_->ready();
  }
  void poll() {
    if (is_own_) queues_->poll();
  }
  void arm() {
    if (is_own_) queues_->arm();
  }

 private:
  Polling(std::shared_ptr<SharedQueues> queues, std::shared_ptr<device::Notifier> told, bool is_own)
      : queues_(std::move(queues)), told_(std::move(told)), is_own_(is_own) {}

  std::shared_ptr<SharedQueues> queues_;
  std::shared_ptr<device::Notifier> told_;
  bool is_own_ = false;
  bool is_data_ = false;
  base::UniqueFd both_;  // told_ and, before the data phase, its own queues
};

}  // namespace egret::transport::verbs
