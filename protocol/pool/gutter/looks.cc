#include "pool/gutter/looks.h"

#include <algorithm>
#include <optional>

#include "pool/errand.h"
#include "pool/gutter/stand_in.h"

namespace egret::pool {

using base::Status;

// Reading, purging and marking, one after the other.
class Looks::Look final : public ErrandOwner {
 public:
  Look(Looks& looks, Pair pair, uint64_t tag, Places from) : looks_(looks), pair_(pair), tag_(tag) {
    begin(pair.second, std::make_unique<Reading>(tag, std::move(from)));
  }

 private:
  enum class Step : uint8_t { kRead, kPurge, kMark };

  void begin(const MemberStats* with, std::unique_ptr<Dialogue> dialogue) {
    dialogue_ = std::move(dialogue);
    rpc::SessionOptions options = Errand::options(looks_.session_, looks_.entry_of(with)->member.address);
    options.response_slot_size = Reading::kSlot;
    errand_.emplace(looks_.loop_, looks_.clock_, options, *this, looks_.connect_);
    errand_->start();
  }
  static Dialogue::Send sender(Errand& errand) {
    return [&errand](const op::Op& op, uint32_t partition, uint64_t tag) { errand.send(op, partition, tag); };
  }
  void on_errand_open(Errand& errand, uint32_t partitions) override {
    dialogue_->begin(errand.grant().epoch, partitions, sender(errand));
  }
  void on_errand_result(Errand& errand, uint64_t tag, const op::Result& result) override {
    dialogue_->on_answer(tag, result, sender(errand));
  }
  // What has failed is listed again.
  void on_errand_over(Errand&, const Status& status) override {
    const bool is_done = status && dialogue_->fault().empty();
    errand_.reset();
    if (!is_done || step_ == Step::kMark) return end();
    if (step_ == Step::kRead) {
      auto& reading = static_cast<Reading&>(*dialogue_);
      places_ = reading.places();
      is_flush_ = !reading.is_complete();
      auto keys = reading.take_keys();
      if (is_flush_) keys.clear();
      count_ = keys.size();
      step_ = Step::kPurge;
      if (is_flush_ || count_ > 0) return begin(pair_.first, std::make_unique<Purging>(std::move(keys), is_flush_));
    }
    step_ = Step::kMark;
    if (is_flush_ || count_ > 0) looks_.observer_.on_looked(*looks_.entry_of(pair_.first), count_, is_flush_);
    begin(pair_.second, std::make_unique<Marking>(tag_, places_));
  }
  void end() { looks_.looks_.erase(pair_); }  // `this` is destroyed

  Looks& looks_;
  const Pair pair_;
  const uint64_t tag_;
  Step step_ = Step::kRead;
  Places places_;
  bool is_flush_ = false;
  uint64_t count_ = 0;
  std::unique_ptr<Dialogue> dialogue_;
  std::optional<Errand> errand_;
};

Looks::Looks(events::EventLoop& loop, const base::Clock& clock, LooksObserver& observer,
             rpc::ClientSession::Connect connect)
    : loop_(loop), clock_(clock), observer_(observer), connect_(connect) {}

Looks::~Looks() = default;

void Looks::set_membership(std::shared_ptr<const Membership> membership) {
  const std::shared_ptr<const Membership> before = std::exchange(membership_, std::move(membership));
  by_tag_.clear();
  for (const Membership::Entry& entry : membership_->members()) by_tag_[tag_of(entry.member.name)] = entry.stats.get();
  std::erase_if(looks_, [this](const auto& look) {
    return entry_of(look.first.first) == nullptr || entry_of(look.first.second) == nullptr;
  });
}

const Membership::Entry* Looks::entry_of(const MemberStats* member) const {
  const auto members = membership_->all();
  const auto at = std::ranges::find(members, member, [](const Membership::Entry& entry) { return entry.stats.get(); });
  return at != members.end() ? &*at : nullptr;
}

void Looks::on_listing(const Listing& listing, const std::function<bool(const MemberStats&)>& is_absent) {
  struct Due {
    uint64_t tag = 0;
    Places from;
    bool is_due = false;
  };
  std::map<Pair, Due> dues;
  for (const Listed& listed : listing) {
    const auto owner = by_tag_.find(listed.owner.tag);
    if (owner == by_tag_.end() || entry_of(listed.gutter.get()) == nullptr || is_absent(*owner->second)) continue;
    Due& due = dues[{owner->second, listed.gutter.get()}];
    due.tag = listed.owner.tag;
    due.from.epoch = listed.epoch;
    // Of a partition that says nothing of the owner there is nothing to read.
    due.from.cursors.resize(listed.partitions, op::kOldestChange);
    due.from.cursors[listed.partition] = listed.owner.purged;
    due.is_due |= listed.owner.purged < listed.owner.end;
  }
  for (auto& [pair, due] : dues) {
    if (!due.is_due || looks_.contains(pair)) continue;
    looks_[pair] = std::make_unique<Look>(*this, pair, due.tag, std::move(due.from));
  }
}

}  // namespace egret::pool
