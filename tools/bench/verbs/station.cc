#include "bench_verbs/station.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bench/monotonic.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr uint64_t kSendTag = ~uint64_t{0};
constexpr uint64_t kSendPatienceNs = 10 * bench::kNsPerSecond;

}  // namespace

void Message::set_text(const std::string& words) {
  length = static_cast<uint32_t>(std::min(words.size(), sizeof text));
  std::memcpy(text, words.data(), length);
}

Status Station::open(CmId id) {
  domain_.reset(ibv_alloc_pd(id->verbs));
  if (domain_ == nullptr) return Status::system_error("cannot allocate a protection domain", errno);
  messages_ = std::make_unique<Memory>();
  // The last buffer is the one to send from.
  Status done = messages_->create(domain_.get(), (kMessages + 1) * sizeof(Message), IBV_ACCESS_LOCAL_WRITE);
  if (!done) return done;
  control_ = std::make_unique<Connection>(std::move(id), domain_.get());
  done = control_->create({.sends = 4, .receives = kMessages});
  if (!done) return done;
  for (uint32_t i = 0; i < kMessages; ++i) post_receive(i);
  return Status::ok();
}

Status Station::create_memory(const Shape& shape) {
  auto connected = std::make_unique<PairSet>();
  Status done = connected->slots().create(domain_.get(), shape, has_atomics(control_->id()->verbs));
  keep(std::move(connected), Set::kConnected);
  return done;
}

Expected<Connection*> Station::add(CmId id) {
  auto connection = std::make_unique<Connection>(std::move(id), domain_.get());
  // A fetch is two verbs; and none may ever be refused for want of room.
  const uint32_t sends = 2 * slots().shape().depth + 2;
  if (Status done = connection->create({.sends = sends, .receives = 0}); !done) return done;
  set(Set::kConnected)->add(*connection);
  data_.push_back(std::move(connection));
  return data_.back().get();
}

// A receive that cannot be posted is one less; without any, the other side's message is not received and that is said.
void Station::post_receive(uint32_t index) {
  ibv_sge piece{reinterpret_cast<uint64_t>(buffer(index)), sizeof(Message), messages_->local_key()};
  ibv_recv_wr work{};
  work.wr_id = index;
  work.sg_list = &piece;
  work.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  (void)ibv_post_recv(control_->pair(), &work, &bad);
}

Status Station::send(const Message& message) {
  std::memcpy(buffer(kMessages), &message, sizeof message);
  ibv_sge piece{reinterpret_cast<uint64_t>(buffer(kMessages)), sizeof(Message), messages_->local_key()};
  ibv_send_wr work{};
  work.wr_id = kSendTag;
  work.sg_list = &piece;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  work.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(control_->pair(), &work, &bad); error != 0) {
    return Status::system_error("cannot send to the other side", error);
  }
  const uint64_t deadline = bench::monotonic_ns() + kSendPatienceNs;
  while (bench::monotonic_ns() < deadline) {
    ibv_wc wc{};
    if (ibv_poll_cq(control_->queue(), 1, &wc) != 1) {
      pause_briefly();
      continue;
    }
    if (wc.status != IBV_WC_SUCCESS) return Status::error("the other side is gone");
    if (wc.wr_id == kSendTag) return Status::ok();
    arrived_.push_back(static_cast<uint32_t>(wc.wr_id));
  }
  return Status::error("the other side does not answer");
}

// Sleeps between looks: while this side waits, its processors may be what the other side is measured with.
Expected<Message> Station::receive(double patience_s) {
  const uint64_t deadline = bench::monotonic_ns() + bench::seconds_to_ns(patience_s);
  while (arrived_.empty()) {
    ibv_wc wc{};
    if (ibv_poll_cq(control_->queue(), 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) return Status::error("the other side is gone");
      arrived_.push_back(static_cast<uint32_t>(wc.wr_id));
    } else if (control_->is_gone()) {
      return Status::error("the other side has ended");
    } else if (bench::monotonic_ns() > deadline) {
      return Status::error("the other side does not answer");
    } else {
      pause_briefly();
    }
  }
  const uint32_t index = arrived_.front();
  arrived_.erase(arrived_.begin());
  Message message;
  std::memcpy(&message, buffer(index), sizeof message);
  post_receive(index);
  if (message.length > sizeof message.text) return Status::error("the other side sends nonsense");
  return message;
}

Expected<Message> Station::receive(Message::Type type, double patience_s) {
  auto message = receive(patience_s);
  if (message && message.value().type != type) {
    return Status::error("the other side sends something else than what was asked for");
  }
  return message;
}

}  // namespace egret::bench_verbs
