#include "bench_verbs/pairs/pair_set.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace egret::bench_verbs {

using base::Status;

namespace {

constexpr uint32_t kWantedInline = 64;

// What the peer may do with a pair's memories, if these allow it.
unsigned access_of(ibv_context* device) {
  const unsigned always = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  return has_atomics(device) ? always | IBV_ACCESS_REMOTE_ATOMIC : always;
}

}  // namespace

void PairSet::add(const Connection& connection) {
  pairs_.push_back({connection.pair(), connection.queue(), connection.inline_bytes()});
}

Status PairSet::make_queues(ibv_context* device) {
  const uint32_t of_thread = (making_.shape.queue_pairs + making_.threads - 1) / making_.threads;
  const auto add_queue = [&](std::vector<Queue>& queues, uint32_t entries) {
    queues.emplace_back(ibv_create_cq(device, static_cast<int>(entries), nullptr, nullptr, 0));
    if (queues.back() != nullptr) return Status::ok();
    return Status::system_error("cannot create a completion queue of " + std::to_string(entries) + " entries", errno);
  };
  for (uint32_t i = 0; i < making_.threads; ++i) {
    if (Status done = add_queue(queues_, of_thread * making_.depth + 1); !done) return done;
    if (!making_.is_datagrams()) continue;
    if (Status done = add_queue(arrivals_, of_thread * making_.shape.depth + 1); !done) return done;
  }
  return Status::ok();
}

Status PairSet::make_pair(const rdma_cm_id* control, ibv_pd* domain, uint32_t index, uint32_t inline_bytes) {
  const bool is_datagram = making_.is_datagrams();
  const uint32_t thread = index % making_.threads;
  ibv_qp_init_attr wanted{};
  wanted.send_cq = queues_[thread].get();
  wanted.recv_cq = is_datagram ? arrivals_[thread].get() : queues_[thread].get();
  wanted.qp_type = is_datagram ? IBV_QPT_UD : IBV_QPT_RC;
  wanted.cap = {.max_send_wr = making_.depth + 1,
                .max_recv_wr = is_datagram ? making_.shape.depth : 1,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes};
  Handle made(ibv_create_qp(domain, &wanted));
  const std::string what = is_datagram ? "cannot create UD queue pair " : "cannot create queue pair ";
  if (made == nullptr) return Status::system_error(what + std::to_string(index + 1), errno);
  const auto way = query_way(control);
  if (!way) return way.status();
  if (const int error = ready_pair(made.get(), way.value(), access_of(control->verbs)); error != 0) {
    return Status::system_error("cannot ready queue pair " + std::to_string(index + 1), error);
  }
  pairs_.push_back({made.get(), queues_[thread].get(), wanted.cap.max_inline_data});
  handles_.push_back(std::move(made));
  if (!is_datagram) return Status::ok();
  for (uint32_t slot = 0; slot < making_.shape.depth; ++slot) {
    if (!post_receive(index * making_.shape.depth + slot)) return Status::error("cannot post a RECV");
  }
  return Status::ok();
}

// Asking for more inline bytes than the device has fails: ask for less.
Status PairSet::make_first(const rdma_cm_id* control, ibv_pd* domain) {
  for (uint32_t inline_bytes = kWantedInline;; inline_bytes /= 2) {
    Status done = make_pair(control, domain, 0, inline_bytes);
    if (done || inline_bytes == 0) return done;
  }
}

Status PairSet::make(const rdma_cm_id* control, ibv_pd* domain, const Making& making) {
  making_ = making;
  if (const std::string why = why_not_by_hand(control); !why.empty()) return Status::error(why);
  if (Status done = slots_.create(domain, making.shape, has_atomics(control->verbs)); !done) return done;
  if (Status done = make_queues(control->verbs); !done) return done;
  if (Status done = make_first(control, domain); !done) return done;
  for (uint32_t index = 1; index < making.shape.queue_pairs; ++index) {
    Status done = make_pair(control, domain, index, pairs_.front().inline_bytes);
    if (done) continue;
    shortfall_ = done.message();
    pairs_.resize(index);  // one without its RECVs is of no use
    break;
  }
  return Status::ok();
}

Status PairSet::join(const rdma_cm_id* control, const std::vector<uint32_t>& numbers, uint32_t read_depth) {
  auto known = query_way(control);
  if (!known) return known.status();
  ibv_qp_attr& way = known.value();
  making_.read_depth = read_depth;
  pairs_.resize(std::min(pairs_.size(), numbers.size()));
  if (making_.is_datagrams()) {
    way_.reset(ibv_create_ah(pairs_.front().handle->pd, &way.ah_attr));
    if (way_ == nullptr) return Status::system_error("cannot create an address handle", errno);
  }
  for (uint32_t i = 0; i < size(); ++i) {
    pairs_[i].peer = numbers[i];
    ibv_qp* const pair = pairs_[i].handle;
    const int error =
        making_.is_datagrams() ? start_datagrams(pair) : connect_pair(pair, way, numbers[i], read_depth, read_depth);
    if (error != 0) return Status::system_error("cannot connect queue pair " + std::to_string(i + 1), error);
  }
  return Status::ok();
}

// The device puts the GRH right before the payload's place.
bool PairSet::post_receive(uint32_t buffer) {
  const Shape& shape = making_.shape;
  const uint32_t pair = buffer / shape.depth;
  std::byte* const slot = slots_.target_slot(pair, buffer % shape.depth);
  ibv_sge piece{reinterpret_cast<uint64_t>(slot + shape.lead - kGrhBytes), kGrhBytes + shape.max_size,
                slots_.target().local_key()};
  ibv_recv_wr work{};
  work.wr_id = buffer;
  work.sg_list = &piece;
  work.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(handles_[pair].get(), &work, &bad) == 0;
}

}  // namespace egret::bench_verbs
