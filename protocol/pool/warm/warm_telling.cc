#include "pool/warm/warm_telling.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "wire/handshake.h"

namespace egret::pool {

using base::Status;
using op::ResultCode;

// With one member.
class WarmTelling::Talk final : private ErrandOwner {
 public:
  Talk(WarmTelling& telling, const std::string& address)
      : telling_(telling),
        errand_(telling.loop_, telling.clock_, Errand::options(telling.session_, address), *this, telling.connect_) {
    errand_.start();
  }

 private:
  void on_errand_open(Errand& errand, uint32_t partitions) override {
    if ((errand.grant().features & wire::kWarm) == 0) return;
    is_told_ = true;
    std::array<char, sizeof(uint64_t)> seconds{};
    std::memcpy(seconds.data(), &telling_.seconds_, sizeof(uint64_t));
    op::Op warm;
    warm.code = op::OpCode::kAdmin;
    warm.group = static_cast<uint8_t>(op::AdminVerb::kWarm);
    warm.value = {seconds.data(), seconds.size()};
    for (uint32_t partition = 0; partition < partitions; ++partition) errand.send(warm, partition);
  }
  void on_errand_result(Errand&, uint64_t, const op::Result& result) override {
    is_told_ &= result.code == ResultCode::kOk;
  }
  void on_errand_over(Errand&, const Status& status) override {
    telling_.on_over(*this, status.is_ok() && is_told_);  // `this` is gone
  }

  WarmTelling& telling_;
  bool is_told_ = false;
  Errand errand_;
};

WarmTelling::WarmTelling(events::EventLoop& loop, const base::Clock& clock, WarmTellingOwner& owner,
                         rpc::ClientSession::Connect connect)
    : loop_(loop),
      clock_(clock),
      owner_(owner),
      connect_(connect),
      over_(events::Event::timer<&WarmTelling::finish>(loop, *this)) {}

WarmTelling::~WarmTelling() = default;

void WarmTelling::start(const Membership& membership, const Health& health, const rpc::SessionOptions& session,
                        uint64_t seconds) {
  session_ = session;
  seconds_ = seconds;
  talks_.clear();
  waiting_.clear();
  told_ = 0;
  members_ = membership.members().size();
  for (const Membership::Entry& entry : membership.members()) {
    if (!health.is_ejected(*entry.stats)) waiting_.push_back(entry.member.address);
  }
  over_.add(std::chrono::microseconds(kMostNs / 1000));
  start_some();
}

void WarmTelling::start_some() {
  while (!waiting_.empty() && talks_.size() < kMostAtOnce) {
    talks_.push_back(std::make_unique<Talk>(*this, waiting_.front()));
    waiting_.pop_front();
  }
  if (talks_.empty()) over_.activate();  // the owner is told from the loop
}

void WarmTelling::on_over(const Talk& talk, bool is_told) {
  told_ += is_told ? 1 : 0;
  std::erase_if(talks_, [&](const auto& each) { return each.get() == &talk; });
  start_some();
}

void WarmTelling::finish() {
  over_.del();
  talks_.clear();
  waiting_.clear();
  owner_.on_warm_told(told_, members_);
}

}  // namespace egret::pool
