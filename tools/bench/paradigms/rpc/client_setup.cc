// How a client's end is made, and told of its servers.
#include <algorithm>

#include "bench_paradigms/notice.h"
#include "bench_paradigms/rpc/client.h"

namespace egret::bench_paradigms {

using base::Status;

RpcClient::RpcClient(const Plan& plan, NodeId /*self*/, Fabric& fabric, const RpcShape& shape)
    : plan_(plan),
      fabric_(fabric),
      shape_(shape),
      layout_(shape, plan.tuning.pad),
      drains_(shape.may_lose() && !plan.tuning.as_paper),
      clock_(plan.clock != nullptr ? *plan.clock : host_clock_),
      lanes_(plan.servers) {}

Sender::Limits RpcClient::limits() const {
  const Tuning& tuning = plan_.tuning;
  Sender::Limits limits;
  limits.signal_every = tuning.is_synchronous ? 1 : std::max(tuning.signal_every, 1u);
  limits.inline_bytes = tuning.is_inline && shape_.allows_inline ? fabric_.capabilities().inline_bytes : 0;
  limits.most = 4 * shape_.slots;
  limits.sends = 2 * limits.signal_every + 4 * shape_.slots;
  return limits;
}

// Of what is READ, or received. Received ones have the GRH before them.
uint32_t RpcClient::landing_stride() const {
  return (kGrhBytes + layout_.response_stride + 63) / 64 * 64;
}

Status RpcClient::make_queues() {
  const uint32_t pairs = plan_.servers * (shape_.has_datagrams() ? 2 : 1);
  const uint32_t least = pairs * (Sender::completions(limits()) + 2 * shape_.slots);
  auto queue = fabric_.make_queue(std::max(std::min(pairs * limits().sends + 2, 16'384u), least));
  if (!queue) return queue.status();
  send_queue_ = std::move(queue.value());
  queue = fabric_.make_queue(2 * plan_.servers * shape_.slots + 1);
  if (!queue) return queue.status();
  receive_queue_ = std::move(queue.value());
  return Status::ok();
}

Status RpcClient::make_lane(uint32_t server) {
  Lane& lane = lanes_[server];
  lane.calls.resize(shape_.slots);
  for (uint32_t i = 0; i < 2 * shape_.slots; ++i) lane.free_receives.push_back(i);
  auto memory = fabric_.make_memory(size_t{shape_.slots} * layout_.request_stride, kNoRights);
  if (!memory) return memory.status();
  lane.staging = std::move(memory.value());
  memory = fabric_.make_memory(size_t{2} * shape_.slots * landing_stride(), kNoRights);
  if (!memory) return memory.status();
  lane.landing = std::move(memory.value());
  if (shape_.is_written_back()) {
    memory = fabric_.make_memory(size_t{shape_.slots} * layout_.response_stride, kRemoteWrite);
    if (!memory) return memory.status();
    lane.replies = std::move(memory.value());
  }
  PairSpec spec;
  spec.send_queue = send_queue_.get();
  spec.receive_queue = receive_queue_.get();
  spec.sends = limits().sends;
  spec.receives = 2 * shape_.slots;
  if (shape_.has_connected()) {
    spec.type = shape_.request_pairs;
    auto pair = fabric_.make_pair(spec);
    if (!pair) return pair.status();
    lane.pair = std::move(pair.value());
    lane.sender.start(*lane.pair, server, limits());
  }
  if (shape_.has_datagrams()) {
    spec.type = PairType::kUd;
    auto pair = fabric_.make_pair(spec);
    if (!pair) return pair.status();
    lane.datagram = std::move(pair.value());
    lane.datagram_sender.start(*lane.datagram, plan_.servers + server, limits());
  }
  return Status::ok();
}

Status RpcClient::prepare() {
  if (shape_.slots == 0 || shape_.slots > kMostSlots) return Status::error("slots: 1 to 4096");
  if (shape_.response == ResponseHalf::kDatagram &&
      kSentHead + shape_.response_bytes + plan_.tuning.pad > fabric_.capabilities().mtu)
    return Status::error("a response does not fit into a datagram");
  if (shape_.request == RequestHalf::kDatagram && kSentHead + shape_.request_bytes > fabric_.capabilities().mtu)
    return Status::error("a request does not fit into a datagram");
  if (shape_.is_fetched() &&
      (shape_.fetch_bytes < layout_.response_head || shape_.fetch_bytes > layout_.response_stride))
    return Status::error("fetch_bytes: a response's head at least, a response at most");
  given_.reserve(size_t{plan_.servers} * shape_.slots);
  refused_.reserve(size_t{plan_.servers} * shape_.slots);
  if (Status queues = make_queues(); !queues) return queues;
  for (uint32_t server = 0; server < plan_.servers; ++server) {
    if (Status made = make_lane(server); !made) return made;
  }
  return Status::ok();
}

std::string RpcClient::notice(NodeId to) {
  if (!plan_.is_server(to)) return {};
  const Lane& lane = lanes_[to];
  RpcNotice notice;
  if (lane.replies != nullptr) notice.writable = lane.replies->remote();
  if (lane.pair != nullptr) notice.pair = lane.pair->number();
  if (lane.datagram != nullptr) notice.datagram_pair = lane.datagram->number();
  notice.request_bytes = shape_.request_bytes;
  notice.response_bytes = shape_.response_bytes;
  notice.slots = shape_.slots;
  return to_notice(notice);
}

Status RpcClient::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  if (!plan_.is_server(from)) return Status::ok();
  RpcNotice told;
  if (!read_notice(notice, told)) return Status::error(kStrangeNotice);
  if (told.request_bytes != shape_.request_bytes || told.response_bytes != shape_.response_bytes ||
      told.slots != shape_.slots)
    return Status::error("the server has another shape of calls");
  const bool is_ring = shape_.request == RequestHalf::kWriteRing;
  const uint64_t requests = is_ring ? layout_.ring_bytes : uint64_t{shape_.slots} * layout_.request_stride;
  if ((is_ring || shape_.request == RequestHalf::kWriteSlot) && told.writable.bytes < requests)
    return Status::error("the server's slots have too little room");
  if (shape_.is_fetched() && told.readable.bytes < uint64_t{layout_.responses} * layout_.response_stride)
    return Status::error("the server's responses have too little room");
  Lane& lane = lanes_[from];
  lane.requests = told.writable;
  lane.responses = told.readable;
  lane.server_datagram = told.datagram_pair;
  if (shape_.has_connected()) {
    if (Status joined = lane.pair->join(address, told.pair); !joined) return joined;
  }
  if (!shape_.has_datagrams()) return Status::ok();
  auto way = fabric_.make_way(address);
  if (!way) return way.status();
  lane.way = std::move(way.value());
  return lane.datagram->join(address, told.datagram_pair);
}

}  // namespace egret::bench_paradigms
