// How a server core's end is made, and told of its clients.
#include <algorithm>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/rpc/server.h"

namespace egret::bench_paradigms {

using base::Status;

RpcServer::RpcServer(const Plan& plan, NodeId /*self*/, Fabric& fabric, const RpcShape& shape)
    : plan_(plan),
      fabric_(fabric),
      shape_(shape),
      layout_(shape, plan.tuning.pad),
      answers_again_(shape.may_lose() && !plan.tuning.as_paper),
      clock_(plan.clock != nullptr ? *plan.clock : host_clock_),
      peers_(plan.clients) {}

Sender::Limits RpcServer::limits(bool is_datagram) const {
  const Tuning& tuning = plan_.tuning;
  Sender::Limits limits;
  limits.doorbell = std::max(tuning.doorbell, 1u);
  limits.signal_every = tuning.is_synchronous ? 1 : std::max(tuning.signal_every, 1u);
  limits.inline_bytes = tuning.is_inline && shape_.allows_inline ? fabric_.capabilities().inline_bytes : 0;
  const uint32_t calls = is_datagram ? plan_.clients * shape_.slots : shape_.slots;
  limits.most = 4 * calls;
  limits.sends = 2 * limits.signal_every + std::min(4 * calls, 512u);
  return limits;
}

uint32_t RpcServer::receives() const {
  return 2 * plan_.clients * shape_.slots;
}

Status RpcServer::make_queues() {
  uint32_t sends = 2;
  uint32_t least = 2;
  for (const bool is_datagram : {false, true}) {
    const uint32_t pairs = is_datagram ? plan_.tuning.ud_pairs : plan_.clients;
    sends += pairs * limits(is_datagram).sends;
    least += pairs * Sender::completions(limits(is_datagram));
  }
  auto queue = fabric_.make_queue(std::max(std::min(sends, 16'384u), least));
  if (!queue) return queue.status();
  send_queue_ = std::move(queue.value());
  queue = fabric_.make_queue(receives() + 1);
  if (!queue) return queue.status();
  receive_queue_ = std::move(queue.value());
  return Status::ok();
}

Status RpcServer::make_datagrams() {
  const Sender::Limits most = limits(true);
  const bool receives_requests = shape_.request == RequestHalf::kDatagram;
  const uint32_t count = std::max(plan_.tuning.ud_pairs, 1u);
  datagram_senders_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    auto pair = fabric_.make_pair({.type = PairType::kUd,
                                   .send_queue = send_queue_.get(),
                                   .receive_queue = receive_queue_.get(),
                                   .sends = most.sends,
                                   .receives = receives_requests && i == 0 ? receives() : 1});
    if (!pair) return pair.status();
    datagrams_.push_back(std::move(pair.value()));
    datagram_senders_[i].start(*datagrams_.back(), plan_.clients + i, most);
  }
  if (!receives_requests) return Status::ok();
  auto region = fabric_.make_memory(size_t{receives()} * (kGrhBytes + layout_.request_stride), kNoRights);
  if (!region) return region.status();
  region_ = std::move(region.value());
  return Status::ok();
}

Status RpcServer::make_peer(NodeId client) {
  Peer& made = peer(client);
  made.slots.resize(shape_.slots);
  const uint8_t readable = shape_.is_fetched() ? kRemoteRead : kNoRights;
  auto responses = fabric_.make_memory(size_t{layout_.responses} * layout_.response_stride, readable);
  if (!responses) return responses.status();
  made.responses = std::move(responses.value());
  if (!shape_.has_connected()) return Status::ok();
  const Sender::Limits most = limits(false);
  auto pair = fabric_.make_pair({.type = shape_.request_pairs,
                                 .send_queue = send_queue_.get(),
                                 .receive_queue = receive_queue_.get(),
                                 .sends = most.sends,
                                 .receives = shape_.slots});
  if (!pair) return pair.status();
  made.pair = std::move(pair.value());
  made.sender.start(*made.pair, client - plan_.servers, most);
  if (shape_.request == RequestHalf::kDatagram) return Status::ok();
  const size_t slots = size_t{shape_.slots} * layout_.request_stride;
  if (region_ != nullptr) {
    made.request_base = region_->data() + (client - plan_.servers) * slots;
    return Status::ok();
  }
  const uint8_t writable = shape_.request == RequestHalf::kSend ? kNoRights : kRemoteWrite;
  auto requests = fabric_.make_memory(shape_.request == RequestHalf::kWriteRing ? layout_.ring_bytes : slots, writable);
  if (!requests) return requests.status();
  made.requests = std::move(requests.value());
  made.request_base = made.requests->data();
  return Status::ok();
}

Status RpcServer::prepare() {
  if (shape_.slots == 0 || shape_.slots > kMostSlots) return Status::error("slots: 1 to 4096");
  if (std::max(shape_.request_bytes, shape_.response_bytes) > kMostBody)
    return Status::error("bodies: 16,000 bytes at most");
  if (shape_.is_right_aligned() && shape_.request_bytes > kRightAlignedBody)
    return Status::error("a value of more than 1,006 bytes does not fit into a slot of 1,024");
  if (shape_.is_fetched() && shape_.request_pairs != PairType::kRc) return Status::error("READ needs RC");
  arrived_.reserve(2 * size_t{plan_.clients} * shape_.slots);
  if (Status queues = make_queues(); !queues) return queues;
  if (shape_.has_datagrams()) {
    if (Status made = make_datagrams(); !made) return made;
  }
  // Paper 001, section 4.2: slots of all clients in one region, s * W * Nc + c * W + r mod W, one key for it. Here a core
  // (s) has a region of its own.
  if (shape_.is_right_aligned() && plan_.tuning.as_paper) {
    auto region = fabric_.make_memory(size_t{plan_.clients} * shape_.slots * kRightAlignedSlot, kRemoteWrite);
    if (!region) return region.status();
    region_ = std::move(region.value());
  }
  for (NodeId client = plan_.servers; client < plan_.nodes(); ++client) {
    if (Status made = make_peer(client); !made) return made;
  }
  return Status::ok();
}

std::string RpcServer::notice(NodeId to) {
  if (plan_.is_server(to)) return {};
  const Peer& client = peer(to);
  RpcNotice notice;
  const bool is_written = shape_.request == RequestHalf::kWriteSlot || shape_.request == RequestHalf::kWriteRing;
  if (is_written && client.requests != nullptr) notice.writable = client.requests->remote();
  if (is_written && client.requests == nullptr) {
    notice.writable = region_->remote();
    notice.writable.address = reinterpret_cast<uint64_t>(client.request_base);
    notice.writable.bytes = uint64_t{shape_.slots} * layout_.request_stride;
  }
  if (shape_.is_fetched()) notice.readable = client.responses->remote();
  if (client.pair != nullptr) notice.pair = client.pair->number();
  if (!datagrams_.empty()) notice.datagram_pair = datagrams_.front()->number();
  notice.request_bytes = shape_.request_bytes;
  notice.response_bytes = shape_.response_bytes;
  notice.slots = shape_.slots;
  return to_notice(notice);
}

Status RpcServer::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  if (plan_.is_server(from)) return Status::ok();
  RpcNotice told;
  if (!read_notice(notice, told)) return Status::error(kStrangeNotice);
  if (told.request_bytes != shape_.request_bytes || told.response_bytes != shape_.response_bytes ||
      told.slots != shape_.slots)
    return Status::error("the client has another shape of calls");
  Peer& client = peer(from);
  if (shape_.is_written_back()) {
    client.replies = told.writable;
    if (told.writable.bytes < uint64_t{shape_.slots} * layout_.response_stride)
      return Status::error("the client's replies have too little room");
  }
  if (shape_.has_connected()) {
    if (Status joined = client.pair->join(address, told.pair); !joined) return joined;
  }
  if (shape_.has_datagrams()) {
    const bool is_first = by_pair_.empty();
    for (auto& pair : datagrams_) {
      if (!is_first) break;
      if (Status joined = pair->join(address, told.datagram_pair); !joined) return joined;
    }
    auto way = fabric_.make_way(address);
    if (!way) return way.status();
    client.way = std::move(way.value());
    client.datagram_pair = told.datagram_pair;
    by_pair_.emplace_back(told.datagram_pair, from);
    std::sort(by_pair_.begin(), by_pair_.end());
    if (is_first && shape_.request == RequestHalf::kDatagram) {
      for (uint32_t i = 0; i < receives(); ++i) {
        if (!post_receive(0, region_->data() + size_t{i} * (kGrhBytes + layout_.request_stride)))
          return Status::error("no room for RECVs");
      }
    }
  }
  if (shape_.request != RequestHalf::kSend) return Status::ok();
  for (uint32_t i = 0; i < shape_.slots; ++i) {
    if (!post_receive(from, client.request_base + size_t{i} * layout_.request_stride))
      return Status::error("no room for RECVs");
  }
  return Status::ok();
}

}  // namespace egret::bench_paradigms
