#include "bench_verbs/verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/mman.h>
#include <time.h>

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr int kResolveMilliseconds = 2000;
constexpr int kBacklog = 64;
constexpr int kPollMilliseconds = 100;  // how soon an interrupt is noticed while waiting for a request
constexpr uint32_t kWantedInline = 256;
constexpr uint32_t kMaxReadDepth = 128;
constexpr uint8_t kAckTimeout = 14;  // 4.096 us × 2^14 = 67 ms
constexpr uint8_t kRnrTimer = 12;    // 640 us
constexpr uint8_t kRetries = 7;
// Vendors of rdma_rxe and of siw, as the kernel has them.
constexpr uint32_t kSoftRoce = 0xffffff;
constexpr uint32_t kSoftIwarp = 0x626d74;

Status failed(const std::string& what) {
  const int error = errno;
  if (error == ENODEV) return Status::error(what + ": no RDMA device there (an address of the device's own port?)");
  return Status::system_error(what, error);
}

bool read_greeting(const rdma_cm_event* event, Greeting& greeting) {
  if (event == nullptr || event->param.conn.private_data_len < sizeof greeting) return false;
  std::memcpy(&greeting, event->param.conn.private_data, sizeof greeting);
  return greeting.magic == Greeting::kMagic && greeting.version == Greeting{}.version;
}

rdma_conn_param parameters(const Greeting& greeting, uint32_t read_depth) {
  rdma_conn_param wanted{};
  wanted.private_data = &greeting;
  wanted.private_data_len = sizeof greeting;
  wanted.initiator_depth = wanted.responder_resources = static_cast<uint8_t>(read_depth);
  wanted.retry_count = kRetries;
  wanted.rnr_retry_count = kRetries;
  return wanted;
}

using AddressInfo = std::unique_ptr<rdma_addrinfo, Freed<rdma_freeaddrinfo>>;
Expected<AddressInfo> look_up(const bench::Address& address, int flags) {
  if (!address.path.empty()) return Status::error("an address for RDMA is HOST:PORT");
  rdma_addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_port_space = RDMA_PS_TCP;
  rdma_addrinfo* found = nullptr;
  const bool any = address.host == "*" || address.host.empty();
  if (rdma_getaddrinfo(any ? nullptr : address.host.c_str(), address.port.c_str(), &hints, &found) != 0) {
    return Status::error("cannot find an RDMA address for " + address.to_string() + " (no such host?)");
  }
  return AddressInfo(found);
}

}  // namespace

Status check_device() {
  int count = 0;
  ibv_device** const list = ibv_get_device_list(&count);
  if (list != nullptr) ibv_free_device_list(list);
  if (list != nullptr && count > 0) return Status::ok();
  return Status::error("this host has no RDMA device (ibv_devices shows none)");
}

// --- Memory

Memory::~Memory() {
  if (registration_ != nullptr) ibv_dereg_mr(registration_);
  if (data_ != nullptr) munmap(data_, bytes_);
}

Status Memory::create(ibv_pd* domain, size_t bytes, int access) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return failed("cannot get " + std::to_string(bytes) + " bytes of memory");
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
  registration_ = ibv_reg_mr(domain, data_, bytes, access);
  if (registration_ == nullptr) {
    return failed("cannot register " + std::to_string(bytes) +
                  " bytes (is the limit of locked memory, ulimit -l, too low?)");
  }
  return Status::ok();
}

// --- Connection

Connection::~Connection() {
  if (id_->qp == nullptr) return;
  // Nothing is under way when it is destroyed. Destroying the id tells the other side; rdma_disconnect would wait for
  // it.
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(id_->qp, &error, IBV_QP_STATE);
  rdma_destroy_qp(id_.get());
}

Status Connection::create(const QueueSizes& sizes) {
  queue_.reset(ibv_create_cq(id_->verbs, static_cast<int>(sizes.sends + sizes.receives), nullptr, nullptr, 0));
  if (queue_ == nullptr) return failed("cannot create a completion queue");
  // Asking for more inline bytes than the device has fails: ask for less.
  for (uint32_t inline_bytes = kWantedInline;; inline_bytes /= 2) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = sizes.sends,
                  .max_recv_wr = std::max(sizes.receives, 1u),
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = inline_bytes};
    if (rdma_create_qp(id_.get(), domain_, &wanted) == 0) {
      inline_bytes_ = wanted.cap.max_inline_data;
      return Status::ok();
    }
    if (inline_bytes == 0) return failed("cannot create a queue pair");
  }
}

Status Connection::connect(Greeting greeting) {
  greeting.read_depth = static_cast<uint8_t>(most_reads(id_->verbs));
  uint8_t timeout = kAckTimeout;
  (void)rdma_set_option(id_.get(), RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
  rdma_conn_param wanted = parameters(greeting, greeting.read_depth);
  if (rdma_connect(id_.get(), &wanted) != 0) {
    if (errno == ECONNREFUSED) return Status::error("nobody listens there, or the listener has all its clients");
    return failed("cannot connect");
  }
  if (!read_greeting(id_->event, answer_)) return Status::error("what listens there is no egret-bench of this version");
  read_depth_ = std::max<uint32_t>(answer_.read_depth, 1);
  return Status::ok();
}

Status Connection::accept(Greeting greeting, uint32_t peer_can_read) {
  read_depth_ = std::clamp(peer_can_read, 1u, most_reads(id_->verbs));
  greeting.read_depth = static_cast<uint8_t>(read_depth_);
  rdma_conn_param granted = parameters(greeting, read_depth_);
  if (rdma_accept(id_.get(), &granted) != 0) return failed("cannot accept a connection");
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = kRnrTimer;
  (void)ibv_modify_qp(id_->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
  return Status::ok();
}

// Whatever event comes to a connection that stands is its end.
bool Connection::is_gone() const {
  pollfd events{.fd = id_->channel->fd, .events = POLLIN, .revents = 0};
  return poll(&events, 1, 0) > 0;
}

// --- connecting

Expected<CmId> resolve(const bench::Address& address) {
  auto found = look_up(address, 0);
  if (!found) return found.status();
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, RDMA_PS_TCP) != 0) return failed("cannot use rdma_cm");
  CmId id(made);
  if (rdma_resolve_addr(id.get(), nullptr, found.value()->ai_dst_addr, kResolveMilliseconds) != 0) {
    return failed("no RDMA device leads to " + address.to_string());
  }
  if (rdma_resolve_route(id.get(), kResolveMilliseconds) != 0) return failed("no route to " + address.to_string());
  return id;
}

Expected<CmId> listen(const bench::Address& address) {
  auto found = look_up(address, RAI_PASSIVE);
  if (!found) return found.status();
  rdma_cm_id* made = nullptr;
  if (rdma_create_id(nullptr, &made, nullptr, RDMA_PS_TCP) != 0) return failed("cannot use rdma_cm");
  CmId id(made);
  if (rdma_bind_addr(id.get(), found.value()->ai_src_addr) != 0 || rdma_listen(id.get(), kBacklog) != 0) {
    return failed("cannot listen on " + address.to_string());
  }
  return id;
}

Expected<Request> next_request(rdma_cm_id* listener, const std::atomic<bool>& stop) {
  for (;;) {
    if (stop.load()) return Status::error("interrupted");
    pollfd events{.fd = listener->channel->fd, .events = POLLIN, .revents = 0};
    if (poll(&events, 1, kPollMilliseconds) <= 0) continue;
    rdma_cm_id* made = nullptr;
    if (rdma_get_request(listener, &made) != 0) return failed("no connection request");
    Request request{.id = CmId(made), .greeting = {}};
    if (read_greeting(request.id->event, request.greeting)) return request;
    rdma_reject(request.id.get(), nullptr, 0);  // somebody else's; wait for ours
  }
}

std::string describe(const rdma_cm_id* id) {
  ibv_port_attr port{};
  std::string text = ibv_get_device_name(id->verbs->device);
  text += " port " + std::to_string(id->port_num);
  if (ibv_query_port(id->verbs, id->port_num, &port) == 0) {
    text += ", mtu " + std::to_string(128u << static_cast<unsigned>(port.active_mtu));
  }
  return text;
}

bool is_emulated(ibv_context* device) {
  ibv_device_attr attributes{};
  if (ibv_query_device(device, &attributes) != 0) return false;
  return attributes.vendor_id == kSoftRoce || attributes.vendor_id == kSoftIwarp;
}

uint32_t most_reads(ibv_context* device) {
  ibv_device_attr limits{};
  if (ibv_query_device(device, &limits) != 0) return 1;
  return static_cast<uint32_t>(
      std::clamp(std::min(limits.max_qp_rd_atom, limits.max_qp_init_rd_atom), 1, static_cast<int>(kMaxReadDepth)));
}

bool has_atomics(ibv_context* device) {
  ibv_device_attr attributes{};
  return ibv_query_device(device, &attributes) == 0 && attributes.atomic_cap != IBV_ATOMIC_NONE;
}

void pause_briefly() {
  const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
  nanosleep(&pause, nullptr);
}

}  // namespace egret::bench_verbs
