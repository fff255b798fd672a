#include "bench_paradigms/lanes/lane_link.h"

#include <algorithm>

namespace egret::bench_paradigms {

using base::Status;

LaneLink::LaneLink(Fabric& fabric, uint32_t receives, bool is_inline)
    : fabric_(fabric),
      receives_(receives),
      inline_bytes_(is_inline ? std::min(fabric.capabilities().inline_bytes, kInline) : 0),
      empty_receives_(receives),
      tags_(kSends) {
  staged_.reserve(kSends);
}

Status LaneLink::prepare() {
  auto queue = fabric_.make_queue(kSends + receives_);
  if (!queue) return queue.status();
  queue_ = std::move(queue.value());
  auto pair = fabric_.make_pair({.type = PairType::kRc,
                                 .send_queue = queue_.get(),
                                 .receive_queue = queue_.get(),
                                 .sends = kSends,
                                 .receives = std::max(receives_, 1u),
                                 .read_depth = fabric_.capabilities().read_depth});
  if (!pair) return pair.status();
  pair_ = std::move(pair.value());
  return Status::ok();
}

Status LaneLink::join(const NodeAddress& peer, uint32_t pair) {
  if (Status joined = pair_->join(peer, pair); !joined) return joined;
  return post_receives(receives_) ? Status::ok() : Status::error("no room for RECVs");
}

bool LaneLink::post_receives(uint32_t count) {
  return count == 0 || pair_->post_receives(std::span(empty_receives_).first(count));
}

Work& LaneLink::stage(Verb verb, const Memory& local, const RemoteMemory& remote, size_t offset, size_t bytes) {
  Work& work = staged_.emplace_back();
  work.verb = verb;
  work.bytes = static_cast<uint32_t>(bytes);
  work.local = local.data() + offset;
  work.memory = &local;
  work.remote_address = remote.address + offset;
  work.remote_key = remote.key;
  work.is_signalled = verb == Verb::kRead;
  work.is_inline = verb == Verb::kWrite && bytes > 0 && bytes <= inline_bytes_;
  return work;
}

void LaneLink::stage_probe(const RemoteMemory& remote) {
  if (posted_ == posted_at_probe_ && staged_.empty()) {
    Work& probe = staged_.emplace_back();
    probe.remote_address = remote.address;
    probe.remote_key = remote.key;
  }
  posted_at_probe_ = posted_ + staged_.size();
}

void LaneLink::flush() {
  const size_t count = std::min<size_t>(staged_.size(), kSends - (posted_ - retired_));
  if (count == 0 || is_broken_) return;
  const auto works = std::span(staged_).first(count);
  for (Work& work : works) {
    tags_[posted_ % kSends] = work.tag;
    work.tag = posted_++;
    work.is_signalled = work.is_signalled || ++unsignalled_ >= kSignalEvery;
    if (work.is_signalled) unsignalled_ = 0;
  }
  is_broken_ = !pair_->post(works);
  staged_.erase(staged_.begin(), staged_.begin() + static_cast<ptrdiff_t>(count));
}

size_t LaneLink::poll(std::span<Completion> out) {
  const uint32_t found = queue_->poll(out);
  size_t told = 0;
  uint32_t received = 0;
  for (const Completion& each : out.first(found)) {
    Completion done = each;
    is_broken_ = is_broken_ || !done.is_ok;
    if (done.verb == Verb::kReceive) {
      ++received;
    } else {
      // Completions of one pair come in order: every place up to this one is free again.
      retired_ = done.tag + 1;
      done.tag = tags_[done.tag % kSends];
    }
    if (done.is_ok && done.verb != Verb::kWrite) out[told++] = done;
  }
  is_broken_ = is_broken_ || !post_receives(received);
  if (!staged_.empty()) flush();
  return told;
}

}  // namespace egret::bench_paradigms
