#include "transport/verbs_link.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>

#include "base/text.h"
#include "transport/verbs/work_id.h"

namespace egret::transport::verbs {

using base::Status;

namespace {

constexpr size_t kStagedReserve = 512;

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

VerbsLink::VerbsLink(std::shared_ptr<SharedQueues> queues, std::shared_ptr<Inbox> inbox)
    : queues_(std::move(queues)), inbox_(std::move(inbox)) {}

VerbsLink::~VerbsLink() {
  hold_up(false);
  if (needs_any_event_) queues_->want_any(false);
}

// --- set-up

void VerbsLink::open(const Basis& basis) {
  basis_ = basis;
  signal_interval_ = std::clamp(basis.sizes.sends / 2, 1u, kSignalInterval);
  pairs_.reserve(kMaxQueuePairs);  // a queue pair's place does not move
}

void VerbsLink::add(ibv_qp* handle, uint32_t inline_bytes) {
  Pair& pair = pairs_.emplace_back();
  pair.handle = handle;
  pair.tags.resize(basis_.sizes.sends);
  pair.staged.reserve(kStagedReserve);
  inline_bytes_ = inline_bytes;
}

uint32_t VerbsLink::set_connected(uint32_t index, uint32_t read_depth, bool peer_solicits) {
  read_depth_ = index == 0 ? std::max(read_depth, 1u) : std::min(read_depth_, std::max(read_depth, 1u));
  if (!peer_solicits && !needs_any_event_) {
    needs_any_event_ = true;
    queues_->want_any(true);
    queues_->wake();
  }
  return depth_of_all();
}

void VerbsLink::fail(const std::string& why) {
  if (failure_.empty()) failure_ = why;
}

// --- frames

Status VerbsLink::send_frame(std::span<const std::byte> frame, std::span<const std::byte> attachment) {
  const size_t whole = sizeof(FrameHead) + frame.size() + attachment.size();
  if (whole > kFrameBuffer) return Status::error("a control frame that is too large");
  std::byte* const at = basis_.frames->data() + (kFrameReceives + frames_sent_++ % kFrameSends) * kFrameBuffer;
  const FrameHead head{static_cast<uint32_t>(frame.size()), static_cast<uint32_t>(attachment.size())};
  std::memcpy(at, &head, sizeof head);
  std::ranges::copy(frame, at + sizeof head);
  std::ranges::copy(attachment, at + sizeof head + frame.size());
  Work& work = stage(pairs_[0], IBV_WR_SEND, {at, static_cast<uint32_t>(whole), basis_.frames->local_key()}, {}, 0);
  work.request.send_flags |= IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  flush();
  return failure_.empty() ? Status::ok() : Status::error(failure_);
}

// The peer's bytes: lengths are believed only as far as the buffer and the completion go.
bool VerbsLink::receive_frame(uint32_t buffer, size_t bytes) {
  if (buffer >= kFrameReceives || bytes < sizeof(FrameHead) || bytes > kFrameBuffer) return false;
  const std::byte* const at = basis_.frames->data() + buffer * kFrameBuffer;
  FrameHead head;
  std::memcpy(&head, at, sizeof head);
  if (head.frame_bytes == 0 && head.attachment_bytes != sizeof(Invitation)) return false;
  if (uint64_t{head.frame_bytes} + head.attachment_bytes != bytes - sizeof head) return false;
  if (frames_.size() >= kMaxInbox) return false;
  const std::byte* const frame = at + sizeof head;
  const std::byte* const attachment = frame + head.frame_bytes;
  frames_.push_back({{frame, attachment}, {attachment, attachment + head.attachment_bytes}});
  return true;
}

bool VerbsLink::take_frame(Frame& frame) {
  if (frames_.empty()) return false;
  frame = std::move(frames_.front());
  frames_.pop_front();
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
  return drain(inbox_->take_early());
}

VerbsLink::Drained VerbsLink::begin_data() {
  is_data_ = true;
  // Receives and READs, and what is signalled of the rest.
  const size_t most = pairs_.size() * (basis_.sizes.receives + read_depth_ + basis_.sizes.sends / signal_interval_ + 1);
  return drain(inbox_->begin_data(most));
}

VerbsLink::Drained VerbsLink::drain(std::span<const Received> early) {
  Drained drained;
  for (const Received& received : early) {
    Completion completion;
    if (take(received, completion)) drained.has_immediate |= completion.kind == Completion::Kind::kImmediate;
  }
  if (has_staged()) flush();
  drained.failed = !failure_.empty() && !std::exchange(failure_told_, true);
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
  bool is_held_up = false;
  for (uint32_t index = 0; index < pairs_.size(); ++index) {
    const Pair& pair = pairs_[index];
    if (pair.next == pair.staged.size()) continue;
    post_staged(pairs_[index], index);
    is_held_up |= pair.next < pair.staged.size();
  }
  hold_up(is_held_up);
}

void VerbsLink::hold_up(bool is_held_up) {
  if (is_held_up == is_held_up_) return;
  is_held_up_ = is_held_up;
  queues_->want_any(is_held_up);
  if (is_held_up && !is_data_) queues_->wake();  // the polling thread may be another one
}

std::string VerbsLink::facts() const {
  return base::counted(pairs_.size(), "queue pair") + ", read depth " + std::to_string(read_depth_) + ", inline " +
         std::to_string(inline_bytes_);
}

bool VerbsLink::has_staged() const {
  return std::ranges::any_of(pairs_, [](const Pair& pair) { return pair.next < pair.staged.size(); });
}

// Links as many staged work requests as there is room for, and rings the doorbell once.
void VerbsLink::post_staged(Pair& pair, uint32_t index) {
  const size_t first = pair.next;
  while (pair.next < pair.staged.size() && pair.posted - pair.retired < basis_.sizes.sends) {
    Work& work = pair.staged[pair.next];
    const bool is_read = work.request.opcode == IBV_WR_RDMA_READ;
    if (is_read && pair.reads >= read_depth_) break;
    if (is_read) {
      ++pair.reads;
      pair.tags[pair.posted % basis_.sizes.sends] = work.request.wr_id;
    }
    const uint64_t position = pair.posted++;
    work.request.wr_id = work_id(is_read ? WorkKind::kRead : WorkKind::kSend, basis_.tag, index, position);
    if (pair.posted - pair.signalled >= signal_interval_) work.request.send_flags |= IBV_SEND_SIGNALED;
    if (work.request.send_flags & IBV_SEND_SIGNALED) pair.signalled = pair.posted;
    work.request.sg_list = &work.piece;
    if (pair.next > first) pair.staged[pair.next - 1].request.next = &work.request;
    work.request.next = nullptr;
    ++pair.next;
  }
  if (pair.next == first) return;
  ibv_send_wr* bad = nullptr;
  const int error = ::ibv_post_send(pair.handle, &pair.staged[first].request, &bad);
  if (error != 0) fail(std::string("ibv_post_send: ") + std::strerror(error));
  if (pair.next < pair.staged.size() && pair.next < kStagedReserve) return;
  pair.staged.erase(pair.staged.begin(), pair.staged.begin() + static_cast<ptrdiff_t>(pair.next));
  pair.next = 0;
}

// --- completions

size_t VerbsLink::poll(std::span<Completion> out) {
  size_t found = 0;
  for (Received received; found < out.size() && inbox_->pop(received);) {
    if (take(received, out[found])) ++found;
  }
  if (has_staged()) flush();
  if (!failure_.empty() && !failure_told_ && found < out.size()) {
    failure_told_ = true;
    out[found++] = {};
  }
  return found;
}

// Whether the completion is something to tell. A failed one has no opcode: its id says what it was.
bool VerbsLink::take(const Received& received, Completion& out) {
  if (received.status != IBV_WC_SUCCESS) {
    fail(explain(received.status));
    return false;
  }
  const uint32_t index = pair_index_of(received.id);
  const WorkKind kind = kind_of(received.id);
  if (kind == WorkKind::kReceive) return take_received(received, index, out);
  // Completions of one queue pair come in order: every place up to this one is free again.
  Pair& pair = pairs_[index];
  const uint64_t position = position_of(detail_of(received.id), pair.retired);
  pair.retired = position + 1;
  if (kind != WorkKind::kRead) return false;
  --pair.reads;
  out = {.kind = Completion::Kind::kRead, .tag = pair.tags[position % basis_.sizes.sends]};
  return true;
}

bool VerbsLink::take_received(const Received& received, uint32_t index, Completion& out) {
  const auto buffer = static_cast<uint32_t>(detail_of(received.id));
  if (received.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    out = {.kind = Completion::Kind::kImmediate, .immediate = ntohl(received.immediate), .bytes = received.bytes};
  } else if (receive_frame(buffer, received.bytes)) {
    out = {.kind = Completion::Kind::kFrame};
  } else {
    fail("a malformed control frame");
    return false;  // what has failed takes nothing more in: a peer that goes on sending keeps nobody busy
  }
  const int error = post_receive(pairs_[index].handle, received.id, *basis_.frames);
  if (error != 0) fail(std::string("ibv_post_recv: ") + std::strerror(error));
  return true;
}

}  // namespace egret::transport::verbs
