#include "transport/verbs/parts.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/verbs/work_id.h"

namespace egret::transport::verbs {

using base::Status;

namespace {
constexpr uint32_t kWantedInline = 256;
constexpr uint8_t kRnrTimer = 12;  // 640 us; rdma_cm leaves it at 0, which means 655 ms
}  // namespace

SessionParts::SessionParts(std::shared_ptr<SharedQueues> queues, std::shared_ptr<Inbox> inbox,
                           std::shared_ptr<const device::Notifier> told)
    : queues_(std::move(queues)), inbox_(std::move(inbox)), told_(std::move(told)) {}

Status SessionParts::open(const rdma_cm_id& id, const LinkSizes& wanted, Poster poster) {
  make_fork_safe();
  auto device = device::Device::of(id);
  if (!device) return device.status();
  device_ = std::move(device.value());
  alarm_.begin(device_, told_);
  const ibv_device_attr& limits = device_->limits();
  const auto most = static_cast<uint32_t>(std::min(limits.max_qp_wr, limits.max_cqe / 2));
  sizes_ = {.sends = std::min(wanted.sends, most), .receives = std::min(wanted.receives, most)};
  domain_.reset(::ibv_alloc_pd(device_->context()));
  if (domain_ == nullptr) return verbs_error("cannot allocate a protection domain", errno);
  join_thread_domain(poster);
  auto tag = queues_->enter(inbox_);
  if (!tag) return tag.status();
  tag_ = tag.value();
  has_tag_ = true;
  return make(frames_, (kFrameReceives + kFrameSends) * kFrameBuffer, IBV_ACCESS_LOCAL_WRITE);
}

// A device that has no such domains, or no more of them, gives plain queue pairs.
void SessionParts::join_thread_domain(Poster poster) {
  if (poster == Poster::kPollingThread) {
    if (auto domain = queues_->thread_domain(device_)) thread_domain_ = std::move(domain.value());
  } else {
    ibv_td_init_attr plain{};
    ibv_td* const domain = ::ibv_alloc_td(device_->context(), &plain);
    if (domain != nullptr) thread_domain_ = std::shared_ptr<ibv_td>(domain, ThreadDomainFreed());
  }
  if (thread_domain_ == nullptr) return;
  ibv_parent_domain_init_attr wanted{};
  wanted.pd = domain_.get();
  wanted.td = thread_domain_.get();
  pairs_domain_.reset(::ibv_alloc_parent_domain(device_->context(), &wanted));
  if (pairs_domain_ == nullptr) thread_domain_.reset();
}

Status SessionParts::add(CmId id, bool all) {
  rdma_cm_id* const added = id.get();
  ids_.push_back(std::move(id));  // whatever comes of it: it may not be destroyed in its own event
  auto room = SharedQueues::room(queues_, device_, sizes_.sends + sizes_.receives, tag_);
  if (!room) return room.status();
  if (Status made = create(*added, room.value().queue()); !made) return made;
  rooms_.push_back(std::move(room.value()));
  alarm_.watch(added->qp);
  const uint32_t index = count() - 1;
  return post_receives(index, 0, all ? sizes_.receives : std::min(kFrameReceives, sizes_.receives));
}

// Asking for more inline bytes than the device has fails: ask for less.
Status SessionParts::create(rdma_cm_id& id, ibv_cq* queue) {
  int error = EINVAL;
  for (uint32_t inline_bytes = kWantedInline; error != 0; inline_bytes = inline_bytes >= 32 ? inline_bytes / 2 : 0) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = sizes_.sends,
                  .max_recv_wr = sizes_.receives,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = inline_bytes};
    error =
        ::rdma_create_qp(&id, pairs_domain_ != nullptr ? pairs_domain_.get() : domain_.get(), &wanted) == 0 ? 0 : errno;
    if (error == 0) inline_bytes_ = wanted.cap.max_inline_data;
    if (error != 0 && inline_bytes == 0) return verbs_error("cannot create a queue pair", error);
  }
  return Status::ok();
}

Status SessionParts::post_all() {
  return post_receives(0, std::min(kFrameReceives, sizes_.receives), sizes_.receives);
}

Status SessionParts::post_receives(uint32_t pair, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; ++i) {
    const uint32_t buffer = pair == 0 && i < kFrameReceives ? i : kNoBuffer;
    const int error = post_receive(ids_[pair]->qp, work_id(WorkKind::kReceive, tag_, pair, buffer), frames_);
    if (error != 0) return Status::system_error("ibv_post_recv", error);
  }
  return Status::ok();
}

// A device that cannot change it goes on with what it has: slower if ever a receive is missing, not wrong.
void SessionParts::connected(uint32_t pair) {
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = kRnrTimer;
  (void)::ibv_modify_qp(ids_[pair]->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
}

Status SessionParts::make(PinnedMemory& memory, size_t bytes, int access) const {
  return memory.create(domain_.get(), bytes, access);
}

void SessionParts::disconnect() {
  for (const CmId& id : ids_) ::rdma_disconnect(id.get());
}

void SessionParts::shut() {
  inbox_->close();
  alarm_.end();
  for (const CmId& id : ids_) {
    if (id->qp != nullptr) ::rdma_destroy_qp(id.get());
  }
  rooms_.clear();
  if (std::exchange(has_tag_, false)) queues_->leave(tag_);
}

int post_receive(ibv_qp* pair, uint64_t id, const PinnedMemory& frames) {
  ibv_sge piece{};
  ibv_recv_wr request{};
  request.wr_id = id;
  if (const auto buffer = static_cast<uint32_t>(detail_of(id)); buffer != kNoBuffer) {
    piece = {reinterpret_cast<uint64_t>(frames.data() + buffer * kFrameBuffer), kFrameBuffer, frames.local_key()};
    request.sg_list = &piece;
    request.num_sge = 1;
  }
  ibv_recv_wr* bad = nullptr;
  return ::ibv_post_recv(pair, &request, &bad);
}

}  // namespace egret::transport::verbs
