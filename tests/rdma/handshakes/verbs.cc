#include "verbs.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "scenario.h"

namespace egret::handshakes {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint8_t kAckTimeout = 14;  // 4.096 us × 2^14 = 67 ms
constexpr uint8_t kRnrTimer = 12;    // 640 us
constexpr uint8_t kRetries = 7;      // for RNR, 7 means for ever
constexpr uint32_t kStartPsn = 1;
constexpr uint64_t kRecvTag = 0;
constexpr uint64_t kSendTag = 1;  // READs carry the tag they are given, which is not kRecvTag
constexpr uint64_t kDrainUs = 2'000'000;

// RoCE v2 over IPv4: an address of the form ::ffff:a.b.c.d.
bool is_ipv4(const ibv_gid& gid) {
  static constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof(kPrefix)) == 0;
}

}  // namespace

Device::Device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count == 0) die("no RDMA device");
  context_ = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (context_ == nullptr) die("cannot open the RDMA device: %s", std::strerror(errno));
  for (uint8_t index = 0; index < 16; ++index) {
    if (ibv_query_gid(context_, kPort, index, &gid_) == 0 && is_ipv4(gid_)) {
      gid_index_ = index;
      return;
    }
  }
  die("the RDMA device has no IPv4 address");
}

Device::~Device() {
  ibv_close_device(context_);
}

Buffer::Buffer(size_t size) : size_((size + 4095) & ~size_t{4095}) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) die("no memory");
  data_ = static_cast<std::byte*>(memory);
}

Buffer::~Buffer() {
  munmap(data_, size_);
}

Endpoint::Endpoint(const Device& device) : device_(device) {
  pd_ = ibv_alloc_pd(device.context());
  channel_ = ibv_create_comp_channel(device.context());
  if (pd_ == nullptr || channel_ == nullptr) die("no protection domain or channel: %s", std::strerror(errno));
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  cq_ = ibv_create_cq(device.context(), kRecvs + kSendDepth, nullptr, channel_, 0);
  if (cq_ == nullptr) die("no completion queue: %s", std::strerror(errno));
  ibv_qp_init_attr attributes{};
  attributes.send_cq = cq_;
  attributes.recv_cq = cq_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {.max_send_wr = kSendDepth,
                    .max_recv_wr = kRecvs,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = kInlineBytes};
  qp_ = ibv_create_qp(pd_, &attributes);
  if (qp_ == nullptr) die("no queue pair: %s", std::strerror(errno));
}

ibv_mr* Endpoint::add_memory(const Buffer& buffer, int access) {
  ibv_mr* mr = ibv_reg_mr(pd_, buffer.at(0), buffer.size(), access);
  if (mr == nullptr) die("cannot register %zu bytes: %s", buffer.size(), std::strerror(errno));
  memory_.push_back(mr);
  return mr;
}

void Endpoint::connect(const Endpoint& peer) {
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = kPort;
  init.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  int failed = ibv_modify_qp(qp_, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  for (uint32_t i = 0; i < kRecvs; ++i) post_recv();  // from INIT on: none can be missing when the first ring comes

  ibv_qp_attr receive{};
  receive.qp_state = IBV_QPS_RTR;
  receive.path_mtu = IBV_MTU_1024;
  receive.dest_qp_num = peer.qp_->qp_num;
  receive.rq_psn = kStartPsn;
  receive.max_dest_rd_atomic = kReadDepth;
  receive.min_rnr_timer = kRnrTimer;
  receive.ah_attr.is_global = 1;
  receive.ah_attr.port_num = kPort;
  receive.ah_attr.grh.dgid = peer.device_.gid();
  receive.ah_attr.grh.sgid_index = device_.gid_index();
  receive.ah_attr.grh.hop_limit = 64;
  failed |= ibv_modify_qp(qp_, &receive,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  ibv_qp_attr send{};
  send.qp_state = IBV_QPS_RTS;
  send.sq_psn = kStartPsn;
  send.timeout = kAckTimeout;
  send.retry_cnt = kRetries;
  send.rnr_retry = kRetries;
  send.max_rd_atomic = kReadDepth;
  failed |= ibv_modify_qp(
      qp_, &send,
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
  if (failed != 0) die("cannot connect the queue pair");
}

void Endpoint::post(ibv_send_wr& work) {
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp_, &work, &bad);
  if (error != 0) die("ibv_post_send: %s", std::strerror(error));
}

void Endpoint::post_recv() {
  ibv_recv_wr work{};
  work.wr_id = kRecvTag;
  // Without memory: the bytes of a WRITE_WITH_IMM go where the WRITE says.
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp_, &work, &bad);
  if (error != 0) die("ibv_post_recv: %s", std::strerror(error));
}

namespace {

ibv_send_wr make_work(ibv_wr_opcode opcode, ibv_sge& piece, Remote remote, unsigned flags) {
  ibv_send_wr work{};
  work.wr_id = kSendTag;
  work.sg_list = &piece;
  work.num_sge = piece.length > 0 ? 1 : 0;
  work.opcode = opcode;
  work.send_flags = flags;
  work.wr.rdma.remote_addr = remote.address;
  work.wr.rdma.rkey = remote.key;
  return work;
}

ibv_sge make_piece(const void* at, size_t length, const ibv_mr* mr) {
  return {reinterpret_cast<uint64_t>(at), static_cast<uint32_t>(length), mr != nullptr ? mr->lkey : 0};
}

}  // namespace

void Endpoint::read(uint64_t tag, std::byte* to, const ibv_mr* mr, size_t length, Remote from) {
  ibv_sge piece = make_piece(to, length, mr);
  ibv_send_wr work = make_work(IBV_WR_RDMA_READ, piece, from, IBV_SEND_SIGNALED);
  work.wr_id = tag;
  post(work);
}

void Endpoint::write(const std::byte* from, const ibv_mr* mr, size_t length, Remote to) {
  ibv_sge piece = make_piece(from, length, mr);
  ibv_send_wr work = make_work(IBV_WR_RDMA_WRITE, piece, to, 0);
  post(work);
}

void Endpoint::write_inline(const void* from, size_t length, Remote to) {
  ibv_sge piece = make_piece(from, length, nullptr);
  ibv_send_wr work = make_work(IBV_WR_RDMA_WRITE, piece, to, IBV_SEND_INLINE);
  post(work);
}

void Endpoint::write_with_imm(const std::byte* from, const ibv_mr* mr, size_t length, Remote to, uint32_t imm,
                              bool signalled) {
  ibv_sge piece = make_piece(from, length, mr);
  ibv_send_wr work = make_work(IBV_WR_RDMA_WRITE_WITH_IMM, piece, to, signalled ? IBV_SEND_SIGNALED : 0);
  work.imm_data = htonl(imm);
  post(work);
}

size_t Endpoint::poll(std::span<ibv_wc> completions) {
  const int found = ibv_poll_cq(cq_, static_cast<int>(completions.size()), completions.data());
  if (found < 0) die("ibv_poll_cq: %d", found);
  for (const ibv_wc& wc : completions.first(static_cast<size_t>(found))) {
    if (wc.status != IBV_WC_SUCCESS) die("completion with %s (opcode %d)", ibv_wc_status_str(wc.status), wc.opcode);
    if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) post_recv();
  }
  return static_cast<size_t>(found);
}

void Endpoint::arm() {
  const int error = ibv_req_notify_cq(cq_, 0);
  if (error != 0) die("ibv_req_notify_cq: %s", std::strerror(error));
}

void Endpoint::take_events() {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  unsigned taken = 0;
  while (ibv_get_cq_event(channel_, &cq, &context) == 0) ++taken;
  // Every event must be acknowledged, or ibv_destroy_cq waits for ever. It takes a mutex: once for all of them.
  if (taken > 0) ibv_ack_cq_events(cq_, taken);
}

// After the error state every RECV comes back flushed; only then does nobody use this endpoint's memory any more.
void Endpoint::drain() {
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  if (ibv_modify_qp(qp_, &error, IBV_QP_STATE) != 0) die("cannot put the queue pair into the error state");
  const uint64_t deadline = now_us() + kDrainUs;
  for (uint32_t flushed = 0; flushed < kRecvs;) {
    ibv_wc wc{};
    if (ibv_poll_cq(cq_, 1, &wc) == 0) {
      if (now_us() > deadline) die("drain: %u of %u RECVs came back", flushed, kRecvs);
      sched_yield();
      continue;
    }
    // Flushed or used by a deliver that nobody polled for. A flushed completion has no opcode: RECVs are known by their
    // tag.
    if (wc.wr_id == kRecvTag) ++flushed;
  }
}

Endpoint::~Endpoint() {
  drain();
  ibv_destroy_qp(qp_);
  for (ibv_mr* mr : memory_) ibv_dereg_mr(mr);
  take_events();
  ibv_destroy_cq(cq_);
  ibv_destroy_comp_channel(channel_);
  ibv_dealloc_pd(pd_);
}

}  // namespace egret::handshakes
