#include "bench_verbs/station.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <time.h>

#include "bench/monotonic.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr uint64_t kSendTag = ~uint64_t{0};
constexpr uint64_t kSendPatienceNs = 10 * bench::kNsPerSecond;
constexpr uint64_t kVisiblePatienceNs = bench::kNsPerSecond;
constexpr std::byte kPoison{0xee};

void pause_briefly() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
  nanosleep(&pause, nullptr);
}

// splitmix64, so that neighbouring points, queue pairs and slots have nothing in common.
uint64_t mixed(uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
uint64_t seed_of(uint32_t point, uint32_t pair, uint32_t slot) {
  return mixed(mixed(mixed(point) ^ pair) ^ slot);
}
std::byte pattern_byte(uint64_t seed, size_t i) {
  return static_cast<std::byte>(mixed(seed + i / 8) >> (i % 8 * 8));
}

}  // namespace

void fill_pattern(std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot) {
  const uint64_t seed = seed_of(point, pair, slot);
  for (size_t i = 0; i < bytes; ++i) at[i] = pattern_byte(seed, i);
}

uint64_t wrong_bytes(const std::byte* at, size_t bytes, uint32_t point, uint32_t pair, uint32_t slot) {
  const uint64_t seed = seed_of(point, pair, slot);
  uint64_t wrong = 0;
  for (size_t i = 0; i < bytes; ++i) wrong += at[i] != pattern_byte(seed, i);
  return wrong;
}

void poison(std::byte* at, size_t bytes) {
  std::fill_n(at, bytes, kPoison);
}

uint64_t unpoisoned_bytes(const std::byte* at, size_t bytes) {
  return bytes - static_cast<uint64_t>(std::count(at, at + bytes, kPoison));
}

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
  shape_ = shape;
  local_ = std::make_unique<Memory>();
  target_ = std::make_unique<Memory>();
  if (Status done = local_->create(domain_.get(), shape.bytes(), IBV_ACCESS_LOCAL_WRITE); !done) return done;
  return target_->create(domain_.get(), shape.bytes(),
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

Expected<Connection*> Station::add(CmId id) {
  auto connection = std::make_unique<Connection>(std::move(id), domain_.get());
  // A fetch is two verbs; and none may ever be refused for want of room.
  if (Status done = connection->create({.sends = 2 * shape_.depth + 2, .receives = 0}); !done) return done;
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

void Station::prepare(const Point& point) {
  for (uint32_t pair = 0; pair < shape_.queue_pairs; ++pair) {
    for (uint32_t slot = 0; slot < shape_.depth; ++slot) {
      std::byte* const at = target_->data() + shape_.slot(pair, slot);
      poison(at, shape_.slot_bytes());
      if (point.kind != Kind::kWrite) fill_pattern(at + kRequestBytes, point.size, point.number, pair, slot);
    }
  }
}

// What a WRITE has placed is visible at once, or so it should be; a moment of grace, since verbs promise no more than
// that the WRITE has arrived.
uint64_t Station::check(const Point& point) const {
  const uint64_t deadline = bench::monotonic_ns() + kVisiblePatienceNs;
  for (;;) {
    uint64_t wrong = 0;
    for (uint32_t pair = 0; pair < point.threads * point.queue_pairs; ++pair) {
      for (uint32_t slot = 0; slot < point.depth; ++slot) {
        const std::byte* const at = target_->data() + shape_.slot(pair, slot);
        const std::byte* const payload = at + kRequestBytes;
        if (point.kind == Kind::kFetch) {
          wrong += wrong_bytes(at, kRequestBytes, point.number, pair, slot);
        } else if (point.kind == Kind::kWrite) {
          wrong += unpoisoned_bytes(at, kRequestBytes);
          wrong += wrong_bytes(payload, point.size, point.number, pair, slot);
          wrong += unpoisoned_bytes(payload + point.size, Shape::kGuard);
        }
      }
    }
    if (wrong == 0 || bench::monotonic_ns() > deadline) return wrong;
    pause_briefly();
  }
}

}  // namespace egret::bench_verbs
