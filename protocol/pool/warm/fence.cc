#include "pool/warm/fence.h"

#include <cstdint>
#include <deque>
#include <utility>

#include "rpc/session_ref.h"

namespace egret::pool {

using op::ResultCode;
using rpc::ClientSession;

// The waiter of all its pings.
class Fence::Round final : public rpc::Waiter {
 public:
  explicit Round(Fence& fence) : fence_(&fence) {}

  void add(ClientSession& session) {
    if (!session.is_open()) return;
    shares_.emplace_back(*this, session);
    unanswered_ += session.lanes().count();
  }
  void start() {
    ++unanswered_;  // so that it does not end within this loop
    for (Share& share : shares_) share.send();
    answered(1);
  }
  // The fence does not wait for it any more: nothing more is asked.
  void orphan() {
    fence_ = nullptr;
    uint32_t unsent = 0;
    for (Share& share : shares_) unsent += share.give_up();
    answered(unsent);
  }

 private:
  // The pings of one session.
  class Share final : public rpc::CreditWaiter {
   public:
    Share(Round& round, ClientSession& session)
        : round_(round),
          session_(session),
          generation_(session.lanes().generation()),
          lanes_(session.lanes().count()) {}

    void send() {
      while (next_ < lanes_) {
        if (!session_->is_open() || session_->lanes().generation() != generation_) {
          round_.is_clean_ = false;
          return round_.answered(give_up());
        }
        if (!session_->lanes()[next_].append(op::Op{}, &round_)) {
          is_waiting_ = true;
          return session_->credit().wait(this);
        }
        ++next_;
      }
    }
    // Returns how many pings were not sent, and never will be.
    uint32_t give_up() {
      if (std::exchange(is_waiting_, false)) session_->credit().stop_waiting(this);
      return lanes_ - std::exchange(next_, lanes_);
    }

   private:
    void on_credit() override {
      is_waiting_ = false;
      send();  // the round may be gone after it
    }

    Round& round_;
    const rpc::SessionRef session_;
    const uint64_t generation_;
    const uint32_t lanes_;
    uint32_t next_ = 0;  // the lane that is asked next
    bool is_waiting_ = false;
  };

  ~Round() = default;
  void on_result(const op::Result& result) override {
    is_clean_ &= result.code == ResultCode::kOk;
    answered(1);
  }
  void answered(uint32_t pings) {
    unanswered_ -= pings;
    if (unanswered_ > 0) return;
    if (fence_ != nullptr) {
      fence_->is_clean_ = is_clean_;
      fence_->round_ = nullptr;
    }
    delete this;
  }

  Fence* fence_;
  std::deque<Share> shares_;
  uint32_t unanswered_ = 0;
  bool is_clean_ = true;
};

Fence::~Fence() {
  forget();
}

void Fence::forget() {
  if (round_ != nullptr) std::exchange(round_, nullptr)->orphan();
}

void Fence::start(std::span<ClientSession* const> sessions) {
  forget();
  round_ = new Round(*this);
  for (ClientSession* session : sessions) round_->add(*session);
  round_->start();
}

}  // namespace egret::pool
