#include "bench_paradigms/session/channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench/monotonic.h"
#include "bench_paradigms/fabric/besides.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

constexpr uint64_t kSendTag = ~uint64_t{0};
constexpr uint64_t kSendPatienceNs = 60 * bench::kNsPerSecond;
constexpr const char* kGone = "the other side is gone";

// One more posted, by one doorbell.
void note(Verb verb) {
  VerbCounts one;
  one.posted[static_cast<size_t>(PairType::kRc)][static_cast<size_t>(verb)] = 1;
  (verb == Verb::kReceive ? one.receive_doorbells : one.doorbells) = 1;
  add_besides(one);
}

}  // namespace

Expected<std::unique_ptr<VerbsChannel>> VerbsChannel::open(bench_verbs::CmId id) {
  std::unique_ptr<VerbsChannel> channel(new VerbsChannel);
  channel->domain_.reset(ibv_alloc_pd(id->verbs));
  if (channel->domain_ == nullptr) return Status::system_error("cannot allocate a protection domain", errno);
  const size_t bytes = size_t{kReceives + 1} * kPartBytes;
  if (Status done = channel->parts_.create(channel->domain_.get(), bytes, IBV_ACCESS_LOCAL_WRITE); !done) return done;
  channel->connection_ = std::make_unique<bench_verbs::Connection>(std::move(id), channel->domain_.get());
  if (Status done = channel->connection_->create({.sends = 2, .receives = kReceives}); !done) return done;
  for (uint32_t i = 0; i < kReceives; ++i) {
    if (Status done = channel->post_receive(i); !done) return done;
  }
  return channel;
}

Status VerbsChannel::post_receive(uint32_t index) {
  ibv_sge piece{reinterpret_cast<uint64_t>(part(index)), kPartBytes, parts_.local_key()};
  ibv_recv_wr work{};
  work.wr_id = index;
  work.sg_list = &piece;
  work.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(connection_->pair(), &work, &bad); error != 0) {
    return Status::system_error("cannot post a RECV", error);
  }
  note(Verb::kReceive);
  return Status::ok();
}

Status VerbsChannel::send(FrameType type, std::string_view body) {
  const std::string bytes = to_bytes(type, body);
  for (size_t at = 0; at < bytes.size(); at += kPartBytes) {
    if (Status sent = send_part(std::string_view(bytes).substr(at, kPartBytes)); !sent) return sent;
  }
  return Status::ok();
}

Status VerbsChannel::send_part(std::string_view bytes) {
  std::memcpy(part(kReceives), bytes.data(), bytes.size());
  ibv_sge piece{reinterpret_cast<uint64_t>(part(kReceives)), static_cast<uint32_t>(bytes.size()), parts_.local_key()};
  ibv_send_wr work{};
  work.wr_id = kSendTag;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(connection_->pair(), &work, &bad); error != 0) {
    return Status::system_error("cannot send to the other side", error);
  }
  note(Verb::kSend);
  const uint64_t deadline = bench::monotonic_ns() + kSendPatienceNs;
  for (bool is_sent = false; !is_sent;) {
    const bool was_gone = connection_->is_gone();
    auto taken = take_completion(is_sent);
    if (!taken) return taken.status();
    if (taken.value()) continue;
    if (was_gone) return Status::error(kGone);  // a SEND to nobody does not always end: Soft-RoCE tries for ever
    if (bench::monotonic_ns() > deadline) return Status::error("the other side does not answer");
    bench_verbs::pause_briefly();
  }
  return Status::ok();
}

Expected<bool> VerbsChannel::take_completion(bool& is_sent) {
  ibv_wc wc{};
  const int found = ibv_poll_cq(connection_->queue(), 1, &wc);
  if (found == 0) return false;
  if (found < 0 || wc.status != IBV_WC_SUCCESS) return Status::error(kGone);
  if (wc.wr_id == kSendTag) {
    is_sent = true;
    return true;
  }
  const auto index = static_cast<uint32_t>(wc.wr_id);
  Status good = reader_.add({reinterpret_cast<const char*>(part(index)), wc.byte_len});
  if (good) good = post_receive(index);
  if (!good) return good;
  return true;
}

// What has come before the other host went is still given.
Expected<std::optional<Frame>> VerbsChannel::poll() {
  bool is_sent = false;
  while (!reader_.has_next()) {
    const bool was_gone = connection_->is_gone();
    auto taken = take_completion(is_sent);
    if (!taken) return taken.status();
    if (taken.value()) continue;
    if (was_gone) return Status::error(kGone);
    return std::optional<Frame>();
  }
  return std::optional<Frame>(reader_.take());
}

}  // namespace egret::bench_paradigms
