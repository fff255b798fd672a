#include "transport/verbs_link.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>

#include "base/text.h"

namespace egret::transport::verbs {

using base::Status;

namespace {

constexpr uint32_t kWantedInline = 256;
constexpr uint8_t kRnrTimer = 12;  // 640 us; rdma_cm leaves it at 0, which means 655 ms
constexpr int kPollBatch = 32;
constexpr size_t kStagedReserve = 512;
constexpr uint32_t kNoBuffer = 0xffff;
constexpr int kDoesNotFit = -1;

// A work request's id: what it is, on which queue pair, and its position (a send) or buffer (a receive).
enum class WorkKind : uint8_t { kSend, kRead, kReceive };
uint64_t work_id(WorkKind kind, uint32_t pair, uint64_t detail) {
  return uint64_t{static_cast<uint8_t>(kind)} << 56 | uint64_t{pair} << 48 | (detail & 0xffff'ffff'ffff);
}
WorkKind kind_of(uint64_t id) {
  return static_cast<WorkKind>(id >> 56);
}
uint32_t pair_of_id(uint64_t id) {
  return static_cast<uint32_t>(id >> 48) & 0xff;
}
uint64_t detail_of(uint64_t id) {
  return id & 0xffff'ffff'ffff;
}

// Interrupts of a device go to as many processors as it has vectors: completion queues take them in turn.
int next_vector(const ibv_context* device) {
  static std::atomic<uint32_t> next{0};
  return static_cast<int>(next.fetch_add(1, std::memory_order_relaxed) %
                          static_cast<uint32_t>(std::max(device->num_comp_vectors, 1)));
}

// What failed, for an operator.
std::string explain(ibv_wc_status status) {
  std::string name = ::ibv_wc_status_str(status);
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer's host does not answer (" + name + ")";
    case IBV_WC_WR_FLUSH_ERR:
      return "the connection was ended";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer's device refused a request (" + name + ")";
    default:
      return name;
  }
}

}  // namespace

VerbsLink::~VerbsLink() {
  shut();
}

// --- set-up

Status VerbsLink::open(ibv_context* device, uint32_t queue_pairs, const LinkSizes& sizes) {
  make_fork_safe();
  ibv_device_attr limits{};
  if (const int error = ::ibv_query_device(device, &limits); error != 0) return verbs_error("ibv_query_device", error);
  if (queue_ != nullptr) return enlarge(queue_pairs, limits);
  const auto most = static_cast<uint32_t>(std::min(limits.max_qp_wr, limits.max_cqe / 2));
  sizes_ = {.sends = std::min(sizes.sends, most), .receives = std::min(sizes.receives, most)};
  signal_interval_ = std::clamp(sizes_.sends / 2, 1u, kSignalInterval);
  domain_.reset(::ibv_alloc_pd(device));
  if (domain_ == nullptr) return verbs_error("cannot allocate a protection domain", errno);
  make_thread_domain(device);
  channel_.reset(::ibv_create_comp_channel(device));
  if (channel_ == nullptr) return verbs_error("cannot create a completion channel", errno);
  if (Status done = unblock(channel_->fd); !done) return done;
  const int entries = entries_for(queue_pairs, limits);
  if (entries == kDoesNotFit) {
    return Status::error("the device's completion queues have " + std::to_string(limits.max_cqe) +
                         " entries, too few for " + base::counted(queue_pairs, "queue pair"));
  }
  queue_.reset(::ibv_create_cq(device, entries, nullptr, channel_.get(), next_vector(device)));
  if (queue_ == nullptr) return verbs_error("cannot create a completion queue", errno);
  if (Status done = alarm_.begin(device, queue_.get()); !done) return done;
  pairs_.reserve(queue_pairs);  // a queue pair's place does not move
  return frames_.create(domain_.get(), (kFrameReceives + kFrameSends) * kFrameBuffer, IBV_ACCESS_LOCAL_WRITE);
}

// One thread at a time uses a link, so its queue pairs need no locks, and a doorbell register of their own is written
// without waiting for others' writes. A device that has no such domains, or no more of them, gives plain queue pairs.
void VerbsLink::make_thread_domain(ibv_context* device) {
  ibv_td_init_attr plain{};
  thread_domain_.reset(::ibv_alloc_td(device, &plain));
  if (thread_domain_ == nullptr) return;
  ibv_parent_domain_init_attr wanted{};
  wanted.pd = domain_.get();
  wanted.td = thread_domain_.get();
  thread_pairs_domain_.reset(::ibv_alloc_parent_domain(device, &wanted));
  if (thread_pairs_domain_ == nullptr) thread_domain_.reset();
}

int VerbsLink::entries_for(uint32_t queue_pairs, const ibv_device_attr& limits) const {
  const auto entries = static_cast<int>(queue_pairs * (sizes_.sends + sizes_.receives));
  return entries <= limits.max_cqe ? entries : kDoesNotFit;
}

Status VerbsLink::enlarge(uint32_t queue_pairs, const ibv_device_attr& limits) {
  const int entries = entries_for(queue_pairs, limits);
  if (const int error = entries == kDoesNotFit ? EINVAL : ::ibv_resize_cq(queue_.get(), entries); error != 0) {
    return verbs_error("cannot enlarge a completion queue", error);
  }
  pairs_.reserve(queue_pairs);
  armed_ = Armed::kNot;  // no device says that this stays
  arm(true);
  return Status::ok();
}

Status VerbsLink::add_queue_pair(rdma_cm_id* id) {
  // Asking for more inline bytes than the device has fails: ask for less.
  int error = EINVAL;
  for (uint32_t inline_bytes = kWantedInline; error != 0; inline_bytes = inline_bytes >= 32 ? inline_bytes / 2 : 0) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = queue_.get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = sizes_.sends,
                  .max_recv_wr = sizes_.receives,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = inline_bytes};
    ibv_pd* const domain = thread_pairs_domain_ != nullptr ? thread_pairs_domain_.get() : domain_.get();
    error = ::rdma_create_qp(id, domain, &wanted) == 0 ? 0 : errno;
    if (error == 0) inline_bytes_ = wanted.cap.max_inline_data;
    if (error != 0 && inline_bytes == 0) return verbs_error("cannot create a queue pair", error);
  }
  const auto index = static_cast<uint32_t>(pairs_.size());
  Pair& pair = pairs_.emplace_back();
  pair.id = id;
  pair.tags.resize(sizes_.sends);
  pair.staged.reserve(kStagedReserve);
  // Before the queue pair can receive anything: none is ever missing. The first ones take the frames of the handshake.
  for (uint32_t i = 0; i < sizes_.receives; ++i) {
    post_receive(index, index == 0 && i < kFrameReceives ? i : kNoBuffer);
  }
  return failure_.empty() ? Status::ok() : Status::error(failure_);
}

uint32_t VerbsLink::set_connected(uint32_t index, uint32_t read_depth, bool peer_solicits) {
  peer_solicits_ = peer_solicits;
  read_depth_ = index == 0 ? std::max(read_depth, 1u) : std::min(read_depth_, std::max(read_depth, 1u));
  ibv_qp_attr attributes{};
  attributes.min_rnr_timer = kRnrTimer;
  // A device that cannot change it goes on with what it has: slower if ever a receive is missing, not wrong.
  (void)::ibv_modify_qp(pairs_[index].id->qp, &attributes, IBV_QP_MIN_RNR_TIMER);
  return depth_of_all();
}

void VerbsLink::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

// --- receives and frames

void VerbsLink::post_receive(uint32_t index, uint32_t buffer) {
  Pair& pair = pairs_[index];
  ibv_sge piece{};
  ibv_recv_wr request{};
  request.wr_id = work_id(WorkKind::kReceive, index, buffer);
  // Without memory where only immediates come: their bytes go where the WRITE says.
  if (buffer != kNoBuffer) {
    piece = {reinterpret_cast<uint64_t>(frames_.data() + buffer * kFrameBuffer), kFrameBuffer, frames_.local_key()};
    request.sg_list = &piece;
    request.num_sge = 1;
  }
  ibv_recv_wr* bad = nullptr;
  if (const int error = ::ibv_post_recv(pair.id->qp, &request, &bad); error != 0) {
    return fail(std::string("ibv_post_recv: ") + std::strerror(error));
  }
}

Status VerbsLink::send_frame(std::span<const std::byte> frame, std::span<const std::byte> attachment) {
  const size_t whole = sizeof(FrameHead) + frame.size() + attachment.size();
  if (whole > kFrameBuffer) return Status::error("a control frame that is too large");
  std::byte* const at = frames_.data() + (kFrameReceives + frames_sent_++ % kFrameSends) * kFrameBuffer;
  const FrameHead head{static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(attachment.size())};
  std::memcpy(at, &head, sizeof head);
  std::ranges::copy(frame, at + sizeof head);
  std::ranges::copy(attachment, at + sizeof head + frame.size());
  Work& work = stage(pairs_[0], IBV_WR_SEND, {at, static_cast<uint32_t>(whole), frames_.local_key()}, {}, 0);
  work.request.send_flags |= IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  flush();
  return failure_.empty() ? Status::ok() : Status::error(failure_);
}

// The peer's bytes: lengths are believed only as far as the buffer and the completion go.
bool VerbsLink::receive_frame(uint32_t buffer, size_t bytes) {
  if (buffer >= kFrameReceives || bytes < sizeof(FrameHead) || bytes > kFrameBuffer) return false;
  const std::byte* const at = frames_.data() + buffer * kFrameBuffer;
  FrameHead head;
  std::memcpy(&head, at, sizeof head);
  if (head.frame_bytes == 0 && head.attachment_bytes != sizeof(Invitation)) return false;
  if (uint64_t{head.frame_bytes} + head.attachment_bytes != bytes - sizeof head) return false;
  if (inbox_.size() >= kMaxInbox) return false;
  const std::byte* const frame = at + sizeof head;
  const std::byte* const attachment = frame + head.frame_bytes;
  inbox_.push_back({{frame, attachment}, {attachment, attachment + head.attachment_bytes}});
  return true;
}

bool VerbsLink::take_frame(Frame& frame) {
  if (inbox_.empty()) return false;
  frame = std::move(inbox_.front());
  inbox_.pop_front();
  return true;
}

Status copy_frame(const Frame& frame, std::span<std::byte> to, size_t& length) {
  if (frame.bytes.empty()) return Status::error("an unexpected control frame");
  if (frame.bytes.size() > to.size()) return Status::error("a control frame that is too large");
  std::ranges::copy(frame.bytes, to.begin());
  length = frame.bytes.size();
  return Status::ok();
}

VerbsLink::Drained VerbsLink::drain() {
  arm(true);
  Drained drained;
  std::array<Completion, 16> completions;
  for (size_t count = completions.size(); count == completions.size();) {
    count = poll(completions);
    for (const Completion& completion : std::span(completions).first(count)) {
      drained.failed |= completion.kind == Completion::Kind::kFailed;
      drained.has_immediate |= completion.kind == Completion::Kind::kImmediate;
    }
  }
  return drained;
}

// --- sending

VerbsLink::Work& VerbsLink::stage(Pair& pair, ibv_wr_opcode opcode, const LocalBytes& local, const RemoteMemory& remote,
                                  size_t offset) {
  Work& work = pair.staged.emplace_back();
  work.piece = {reinterpret_cast<uint64_t>(local.at), local.length, local.key};
  work.request = {};
  work.request.num_sge = local.length > 0 ? 1 : 0;
  work.request.opcode = opcode;
  work.request.wr.rdma.remote_addr = remote.address + offset;
  work.request.wr.rdma.rkey = remote.key;
  if (opcode != IBV_WR_RDMA_READ && local.length > 0 && local.length <= inline_bytes_) {
    work.request.send_flags = IBV_SEND_INLINE;
  }
  return work;
}

void VerbsLink::stage_write(uint32_t lane, const LocalBytes& from, const RemoteMemory& to, size_t offset) {
  stage(pair_of(lane), IBV_WR_RDMA_WRITE, from, to, offset);
}

void VerbsLink::stage_read(uint32_t lane, const LocalBytes& into, const RemoteMemory& from, size_t offset,
                           uint64_t tag) {
  Work& work = stage(pair_of(lane), IBV_WR_RDMA_READ, into, from, offset);
  work.request.send_flags = IBV_SEND_SIGNALED;
  work.request.wr_id = tag;  // until it is posted
}

void VerbsLink::stage_write_with_immediate(uint32_t lane, const LocalBytes& from, const RemoteMemory& to, size_t offset,
                                           uint32_t immediate) {
  Work& work = stage(pair_of(lane), IBV_WR_RDMA_WRITE_WITH_IMM, from, to, offset);
  work.request.imm_data = htonl(immediate);
  work.request.send_flags |= IBV_SEND_SOLICITED;
}

void VerbsLink::stage_probes() {
  for (Pair& pair : pairs_) {
    const bool is_silent = pair.signalled <= pair.retired && pair.next == pair.staged.size();
    if (is_silent && pair.posted == pair.posted_at_probe) stage(pair, IBV_WR_RDMA_WRITE, {}, {}, 0);
    pair.posted_at_probe = pair.posted + (pair.staged.size() - pair.next);
  }
}

void VerbsLink::flush() {
  is_held_up_ = false;
  for (uint32_t index = 0; index < pairs_.size(); ++index) {
    const Pair& pair = pairs_[index];
    if (pair.next == pair.staged.size()) continue;
    post_staged(pairs_[index], index);
    is_held_up_ |= pair.next < pair.staged.size();
  }
  if (is_held_up_ && armed_ == Armed::kForSolicited) ask_for_events(true);
}

std::string VerbsLink::facts() const {
  return base::counted(pairs_.size(), "queue pair") + ", read depth " + std::to_string(read_depth_) + ", inline " +
         std::to_string(inline_bytes_) + (thread_domain_ != nullptr ? ", thread domain" : "");
}

bool VerbsLink::has_staged() const {
  return std::ranges::any_of(pairs_, [](const Pair& pair) { return pair.next < pair.staged.size(); });
}

// Links as many staged work requests as there is room for, and rings the doorbell once.
void VerbsLink::post_staged(Pair& pair, uint32_t index) {
  const size_t first = pair.next;
  while (pair.next < pair.staged.size() && pair.posted - pair.retired < sizes_.sends) {
    Work& work = pair.staged[pair.next];
    const bool is_read = work.request.opcode == IBV_WR_RDMA_READ;
    if (is_read && pair.reads >= read_depth_) break;
    if (is_read) {
      ++pair.reads;
      pair.tags[pair.posted % sizes_.sends] = work.request.wr_id;
    }
    const uint64_t position = pair.posted++;
    work.request.wr_id = work_id(is_read ? WorkKind::kRead : WorkKind::kSend, index, position);
    if (pair.posted - pair.signalled >= signal_interval_) work.request.send_flags |= IBV_SEND_SIGNALED;
    if (work.request.send_flags & IBV_SEND_SIGNALED) pair.signalled = pair.posted;
    work.request.sg_list = &work.piece;
    if (pair.next > first) pair.staged[pair.next - 1].request.next = &work.request;
    work.request.next = nullptr;
    ++pair.next;
  }
  if (pair.next == first) return;
  ibv_send_wr* bad = nullptr;
  const int error = ::ibv_post_send(pair.id->qp, &pair.staged[first].request, &bad);
  if (error != 0) fail(std::string("ibv_post_send: ") + std::strerror(error));
  if (pair.next < pair.staged.size() && pair.next < kStagedReserve) return;
  pair.staged.erase(pair.staged.begin(), pair.staged.begin() + static_cast<ptrdiff_t>(pair.next));
  pair.next = 0;
}

// --- completions

size_t VerbsLink::poll(std::span<Completion> out) {
  size_t found = 0;
  std::array<ibv_wc, kPollBatch> batch;
  while (found < out.size()) {
    const int room = static_cast<int>(std::min<size_t>(batch.size(), out.size() - found));
    const int count = ::ibv_poll_cq(queue_.get(), room, batch.data());
    if (count < 0) fail("ibv_poll_cq failed");
    if (count <= 0) break;
    may_have_fired_ |= armed_ == Armed::kForAny;
    for (const ibv_wc& wc : std::span(batch).first(static_cast<size_t>(count))) {
      if (take(wc, out[found])) ++found;
    }
  }
  if (has_staged()) flush();
  if (!failure_.empty() && !failure_told_ && found < out.size()) {
    failure_told_ = true;
    out[found++] = {};
  }
  return found;
}

// Whether the completion is something to tell. A failed one has no opcode: its id says what it was.
bool VerbsLink::take(const ibv_wc& wc, Completion& out) {
  const uint32_t index = pair_of_id(wc.wr_id);
  Pair& pair = pairs_[index];
  const WorkKind kind = kind_of(wc.wr_id);
  may_have_fired_ |= kind == WorkKind::kReceive || wc.status != IBV_WC_SUCCESS;
  if (wc.status != IBV_WC_SUCCESS) {
    fail(explain(wc.status));
    return false;
  }
  if (kind == WorkKind::kReceive) return take_received(wc, index, out);
  // Completions of one queue pair come in order: every place up to this one is free again.
  const uint64_t position = detail_of(wc.wr_id);
  pair.retired = position + 1;
  if (kind != WorkKind::kRead) return false;
  --pair.reads;
  out = {.kind = Completion::Kind::kRead, .tag = pair.tags[position % sizes_.sends]};
  return true;
}

bool VerbsLink::take_received(const ibv_wc& wc, uint32_t index, Completion& out) {
  const auto buffer = static_cast<uint32_t>(detail_of(wc.wr_id));
  bool told = true;
  if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    out = {.kind = Completion::Kind::kImmediate, .immediate = ntohl(wc.imm_data), .bytes = wc.byte_len};
  } else if (receive_frame(buffer, wc.byte_len)) {
    out = {.kind = Completion::Kind::kFrame};
  } else {
    fail("a malformed control frame");
    told = false;
  }
  // What has failed takes nothing more in: a peer that goes on sending keeps nobody busy.
  if (told) post_receive(index, buffer);
  return told;
}

void VerbsLink::take_events() {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  unsigned taken = 0;
  while (::ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ++taken;
  if (taken == 0) return;
  // Each must be acknowledged, or destroying the queue waits for ever; it takes a mutex, so all at once.
  ::ibv_ack_cq_events(queue_.get(), taken);
  armed_ = Armed::kNot;
}

// An event may come a little later than the completion that caused it: until it is taken the channel is looked at.
void VerbsLink::arm(bool was_readable) {
  may_have_fired_ |= was_readable;
  const bool any = !peer_solicits_ || is_held_up_;
  const Armed wanted = any ? Armed::kForAny : Armed::kForSolicited;
  if (armed_ >= wanted && !may_have_fired_) return;
  take_events();
  if (armed_ < wanted) ask_for_events(any);
}

// A device that does not know solicited events tells of all.
void VerbsLink::ask_for_events(bool any) {
  if (!any && ::ibv_req_notify_cq(queue_.get(), 1) != 0) {
    peer_solicits_ = false;
    any = true;
  }
  if (any && ::ibv_req_notify_cq(queue_.get(), 0) != 0) fail("ibv_req_notify_cq failed");
  armed_ = any ? Armed::kForAny : Armed::kForSolicited;
  may_have_fired_ = false;
}

// --- end

// A queue pair that is destroyed has let go of all memory (ibv_destroy_qp; the kernel waits for the device). Waiting for
// its work requests to be flushed first would only hold up the thread, and on a device that has been taken away they are
// never flushed.
void VerbsLink::shut() {
  if (pairs_.empty()) return;
  for (Pair& pair : pairs_) ::rdma_destroy_qp(pair.id);
  pairs_.clear();
  take_events();
}

}  // namespace egret::transport::verbs
