#include "connection.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace egret::hostile {

namespace {
constexpr double kPatience = 10;  // an emulated processor; only a hang takes so long
constexpr int kResolveMilliseconds = 2000;
constexpr uint8_t kAckTimeout = 14;  // 67 ms: who has been hung up on notices within half a second
constexpr unsigned kNap = 100;       // microseconds; the processors are the backend's, too
}  // namespace

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Connection::Connection(const sockaddr_in& target, std::span<const std::byte> private_data, size_t receives,
                       const sockaddr_in* source)
    : channel_(::rdma_create_event_channel()), memory_(kBytes), receives_again_(receives == kReceives) {
  require(channel_ != nullptr, "rdma_create_event_channel");
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  connect(target, private_data, receives, source);
}

Connection::~Connection() {
  if (is_open_ && !ended_) ::rdma_disconnect(id_.get());
  if (id_->qp != nullptr) ::rdma_destroy_qp(id_.get());
}

void Connection::connect(const sockaddr_in& target, std::span<const std::byte> private_data, size_t receives,
                         const sockaddr_in* source) {
  rdma_cm_id* id = nullptr;
  require(::rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  id_.reset(id);
  uint8_t timeout = kAckTimeout;
  ::rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
  sockaddr_in address = target;
  sockaddr_in own = source != nullptr ? *source : sockaddr_in{};
  sockaddr* const from = source != nullptr ? reinterpret_cast<sockaddr*>(&own) : nullptr;
  require(::rdma_resolve_addr(id, from, reinterpret_cast<sockaddr*>(&address), kResolveMilliseconds) == 0 &&
              next_event(kPatience) == RDMA_CM_EVENT_ADDR_RESOLVED,
          "the address is not resolved");
  require(::rdma_resolve_route(id, kResolveMilliseconds) == 0 && next_event(kPatience) == RDMA_CM_EVENT_ROUTE_RESOLVED,
          "the route is not resolved");
  make_queue_pair();
  for (size_t i = 0; i < receives; ++i) post_receive(i);
  rdma_conn_param parameters{};
  parameters.private_data = private_data.data();
  parameters.private_data_len = static_cast<uint8_t>(private_data.size());
  parameters.initiator_depth = parameters.responder_resources = 4;
  parameters.retry_count = 7;
  parameters.rnr_retry_count = 7;
  require(::rdma_connect(id, &parameters) == 0, "rdma_connect");
  const rdma_cm_event_type answer = next_event(kPatience);
  is_open_ = answer == RDMA_CM_EVENT_ESTABLISHED;
  require(is_open_ || answer == RDMA_CM_EVENT_REJECTED,
          std::string("neither accepted nor rejected: ") + ::rdma_event_str(answer));
}

void Connection::make_queue_pair() {
  domain_.reset(::ibv_alloc_pd(id_->verbs));
  sent_.reset(::ibv_create_cq(id_->verbs, kSends, nullptr, nullptr, 0));
  received_.reset(::ibv_create_cq(id_->verbs, kReceives, nullptr, nullptr, 0));
  require(domain_ != nullptr && sent_ != nullptr && received_ != nullptr, "no domain or completion queue");
  registration_.reset(
      ::ibv_reg_mr(domain_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
  require(registration_ != nullptr, "no memory region");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = sent_.get();
  wanted.recv_cq = received_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap = {
      .max_send_wr = kSends, .max_recv_wr = kReceives, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  require(::rdma_create_qp(id_.get(), domain_.get(), &wanted) == 0, "rdma_create_qp");
}

void Connection::post_receive(size_t buffer) {
  ibv_sge piece{reinterpret_cast<uint64_t>(memory_.data() + buffer * kReceiveBytes), kReceiveBytes,
                registration_->lkey};
  ibv_recv_wr request{};
  request.wr_id = buffer;
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  require(::ibv_post_recv(id_->qp, &request, &bad) == 0, "ibv_post_recv");
}

// The next event of rdma_cm's; its private data is kept if it accepts. TIMEWAIT_EXIT: none in time.
rdma_cm_event_type Connection::next_event(double seconds) {
  pollfd readable{channel_->fd, POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(seconds * 1000)) != 1) return RDMA_CM_EVENT_TIMEWAIT_EXIT;
  rdma_cm_event* event = nullptr;
  if (::rdma_get_cm_event(channel_.get(), &event) != 0) return RDMA_CM_EVENT_TIMEWAIT_EXIT;
  const rdma_cm_event_type type = event->event;
  if (type == RDMA_CM_EVENT_ESTABLISHED) {
    const auto* data = static_cast<const std::byte*>(event->param.conn.private_data);
    accept_data_.assign(data, data + event->param.conn.private_data_len);
  }
  ::rdma_ack_cm_event(event);
  return type;
}

// A backend that hangs up before it has heard that its acceptance arrived rejects instead.
bool Connection::is_ended(double seconds) {
  for (const double end = now_seconds() + seconds; !ended_;) {
    const double left = std::max(0.0, end - now_seconds());
    const rdma_cm_event_type event = next_event(left);
    ended_ = event == RDMA_CM_EVENT_DISCONNECTED || event == RDMA_CM_EVENT_REJECTED;
    if (left == 0) break;
  }
  return ended_;
}

void Connection::disconnect() {
  ::rdma_disconnect(id_.get());
  ended_ = true;
}

size_t Connection::put(std::span<const std::byte> bytes, size_t offset) {
  require(offset + bytes.size() <= kOutBytes, "too much to send");
  std::ranges::copy(bytes, memory_.begin() + static_cast<ptrdiff_t>(kOut + offset));
  return kOut + offset;
}

void Connection::post(const Work& work) {
  while (under_way_ == kSends) finish();
  ibv_sge piece{reinterpret_cast<uint64_t>(memory_.data() + work.at), work.length, registration_->lkey};
  ibv_send_wr request{};
  request.opcode = work.opcode;
  request.sg_list = &piece;
  request.num_sge = work.length > 0 ? 1 : 0;
  request.imm_data = work.opcode == IBV_WR_SEND_WITH_INV ? work.immediate : htonl(work.immediate);
  const bool atomic = work.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || work.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  if (atomic) {
    request.wr.atomic = {.remote_addr = work.remote.address + work.offset,
                         .compare_add = 1,
                         .swap = UINT64_MAX,
                         .rkey = work.remote.key};
  } else {
    request.wr.rdma.remote_addr = work.remote.address + work.offset;
    request.wr.rdma.rkey = work.remote.key;
  }
  ibv_send_wr* bad = nullptr;
  const int error = ::ibv_post_send(id_->qp, &request, &bad);
  require(error == 0, std::string("ibv_post_send: ") + std::strerror(error));
  ++under_way_;
}

std::optional<ibv_wc_status> Connection::take() {
  ibv_wc completion{};
  if (::ibv_poll_cq(sent_.get(), 1, &completion) != 1) return {};
  --under_way_;
  failed_ |= completion.status != IBV_WC_SUCCESS;
  return completion.status;
}

ibv_wc_status Connection::finish() {
  for (const double end = now_seconds() + kPatience; now_seconds() < end; ::usleep(kNap)) {
    if (const auto status = take(); status) return *status;
    // Nobody will answer any more: the queue pair gives back what was posted.
    if (is_ended(0)) ::rdma_disconnect(id_.get());
  }
  throw Failure("a verb that neither succeeds nor fails");
}

std::optional<std::vector<std::byte>> Connection::receive(double seconds) {
  for (const double end = now_seconds() + seconds; now_seconds() < end; ::usleep(kNap)) {
    ibv_wc completion{};
    if (::ibv_poll_cq(received_.get(), 1, &completion) != 1) continue;
    if (completion.status != IBV_WC_SUCCESS) return {};
    const std::byte* const at = memory_.data() + completion.wr_id * kReceiveBytes;
    // Where the backend pushed, the bytes lie in a reply slot.
    const size_t bytes = completion.opcode == IBV_WC_RECV ? completion.byte_len : 0;
    std::vector<std::byte> message(at, at + bytes);
    if (receives_again_) post_receive(completion.wr_id);
    return message;
  }
  return {};
}

}  // namespace egret::hostile
