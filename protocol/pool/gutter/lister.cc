#include "pool/gutter/lister.h"

#include <cstring>
#include <deque>
#include <utility>

namespace egret::pool {

using op::Result;
using op::ResultCode;

class Lister::Round final {
 public:
  explicit Round(Lister& lister) : lister_(&lister) {}
  void start(const Pool& pool) {
    ++unanswered_;  // this call
    for (const auto& session : pool.gutter()) {
      if (!session->is_open()) continue;
      for (uint32_t lane = 0; lane < session->lanes().count(); ++lane) {
        Part& part = parts_.emplace_back();
        part.round = this;
        part.session = session.get();
        part.listed = {.gutter = pool.member_of(*session).stats,
                       .epoch = session->grant().epoch,
                       .partition = lane,
                       .partitions = session->lanes().count()};
        ++unanswered_;
        ask(part, 0);
      }
    }
    answered();
  }
  void orphan() { lister_ = nullptr; }

 private:
  struct Part final : rpc::Waiter {
    void on_result(const Result& result) override { round->on_page(*this, result); }
    Round* round = nullptr;
    rpc::ClientSession* session = nullptr;
    Listed listed;
  };

  // Without credit the next round asks again.
  void ask(Part& part, uint64_t cursor) {
    op::Op list;
    list.code = op::OpCode::kIterate;
    list.group = static_cast<uint8_t>(op::RecordSource::kChanged);
    list.version = cursor;
    if (!part.session->lanes()[part.listed.partition].append(list, &part)) answered();
  }
  void on_page(Part& part, const Result& result) {
    std::string_view records = result.value;
    op::Record record;
    bool any = false;
    while (result.code == ResultCode::kOk && op::take_record(records, record)) {
      if (record.key.size() != sizeof part.listed.owner) break;
      std::memcpy(&part.listed.owner, record.key.data(), sizeof part.listed.owner);
      listing_.push_back(part.listed);
      any = true;
    }
    if (!any) return answered();
    ask(part, result.version);
  }
  void answered() {
    if (--unanswered_ > 0) return;
    if (lister_ != nullptr) {
      lister_->listing_ = std::move(listing_);
      lister_->round_ = nullptr;
    }
    delete this;
  }

  Lister* lister_;
  std::deque<Part> parts_;
  size_t unanswered_ = 0;
  Listing listing_;
};

Lister::~Lister() {
  forget();
}

void Lister::forget() {
  if (round_ != nullptr) std::exchange(round_, nullptr)->orphan();
}

void Lister::start(const Pool& pool) {
  forget();
  round_ = new Round(*this);
  round_->start(pool);
}

}  // namespace egret::pool
