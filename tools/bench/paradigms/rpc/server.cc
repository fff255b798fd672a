#include "bench_paradigms/rpc/server.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace egret::bench_paradigms {

bool RpcServer::serve(RpcHandler& handler) {
  reap(handler);
  arrived_.clear();
  look();
  if (!arrived_.empty()) {
    handler.begin_pass(static_cast<uint32_t>(arrived_.size()));
    if (plan_.tuning.prefetches) {
      for (const Arrived& each : arrived_) handler.prefetch(each.request.body);
    }
    for (const Arrived& each : arrived_) execute(each, handler);
  }
  flush();
  return !arrived_.empty();
}

// --- what was posted

void RpcServer::reap(RpcHandler& handler) {
  std::array<Completion, 16> done;
  uint32_t found = 0;
  do {
    found = send_queue_->poll(done);
    for (const Completion& each : std::span(done).first(found)) {
      const uint32_t index = Sender::index_of(each);
      const bool is_peer = index < peers_.size();
      Sender& sender = is_peer ? peers_[index].sender : datagram_senders_[index - peers_.size()];
      const uint16_t user = sender.completed(each);
      if (!each.is_ok && is_peer) peers_[index].is_broken = true;
      if (user != 0) handler.posted(user, each.is_ok);
    }
  } while (found == done.size());
}

void RpcServer::flush() {
  for (Peer& each : peers_) {
    if (each.sender.has_collected() && !each.is_broken) each.is_broken = !each.sender.flush();
  }
  for (Sender& each : datagram_senders_) {
    if (!each.has_collected()) continue;
    each.flush();
    turn_ = (turn_ + 1) % static_cast<uint32_t>(datagram_senders_.size());
  }
}

// --- requests

bool RpcServer::is_ready(const Peer& peer) const {
  return !peer.is_broken && (!plan_.tuning.is_synchronous || peer.sender.is_idle());
}

// Everything that was posted has completed.
bool RpcServer::is_idle() const {
  const auto is_sent = [](const Sender& sender) { return sender.is_idle(); };
  return std::all_of(datagram_senders_.begin(), datagram_senders_.end(), is_sent) &&
         std::all_of(peers_.begin(), peers_.end(),
                     [&](const Peer& peer) { return peer.is_broken || is_sent(peer.sender); });
}

void RpcServer::look() {
  const bool is_received = shape_.request == RequestHalf::kSend || shape_.request == RequestHalf::kDatagram;
  const bool is_by_one = plan_.tuning.is_synchronous && (is_received || shape_.response == ResponseHalf::kDatagram);
  if (is_by_one && !is_idle()) return;
  if (is_received) return receive();
  for (NodeId client = plan_.servers; client < plan_.nodes(); ++client) {
    look_at(client);
    if (is_by_one && !arrived_.empty()) break;
  }
}

// The client's next slot, and no other.
void RpcServer::look_at(NodeId client) {
  Peer& from = peer(client);
  if (!is_ready(from)) return;
  if (shape_.response == ResponseHalf::kAdaptive) {
    from.looked_before = from.looked_at;
    from.looked_at = clock_.now_ns();
  }
  const Label next = label_of(from.calls, shape_.slots);
  Slot& slot = from.slots[next.slot];
  if (slot.request != nullptr) return;  // is answered later
  const bool is_ring = shape_.request == RequestHalf::kWriteRing;
  std::byte* const place = from.request_base + (is_ring ? from.ring_at : size_t{next.slot} * layout_.request_stride);
  std::optional<Request> request;
  if (is_ring) {
    request = look_in_ring(place, shape_.request_bytes, next);
  } else if (shape_.is_right_aligned()) {
    request = look_right_aligned(place, next.slot);
  } else {
    request = look_flagged(place, shape_.request_bytes);
    if (request) request->label = next;
  }
  if (!request) return;
  arrived_.push_back({client, *request, place});
  if (answers_again_ && slot.lap == request->label.lap) return;  // the one before: its next one is still to come here
  ++from.calls;
  if (!is_ring) return;
  from.ring_at += (request->bytes + 7) / 8 * 8;
  if (from.ring_at + layout_.request_stride > layout_.ring_bytes) from.ring_at = 0;
}

void RpcServer::receive() {
  std::array<Completion, 16> came;
  const bool is_datagram = shape_.request == RequestHalf::kDatagram;
  const uint32_t grh = is_datagram ? kGrhBytes : 0;
  const uint32_t most = plan_.tuning.is_synchronous ? 1 : came.size();
  uint32_t found = 0;
  do {
    found = receive_queue_->poll(std::span(came).first(most));
    for (const Completion& each : std::span(came).first(found)) {
      const auto client = is_datagram ? client_of(each.from_pair) : static_cast<NodeId>(each.tag >> 32);
      if (!each.is_ok && !is_datagram) peer(client).is_broken = true;
      if (!each.is_ok) continue;
      std::byte* const place = receive_place(client, static_cast<uint32_t>(each.tag));
      const bool has_head = client != 0 && each.bytes >= grh + kSentHead;
      const Label label = has_head ? read_label(place + grh) : Label{kMostSlots, 0};
      if (label.slot >= shape_.slots || peer(client).slots[label.slot].request != nullptr) {
        post_receive(client, place);
        continue;
      }
      const Bytes body{place + grh + kSentHead, each.bytes - grh - kSentHead};
      arrived_.push_back({client, {body, label, false, each.bytes}, place});
    }
  } while (found == most && most > 1);
}

// 0: nobody's. Node 0 is no client.
NodeId RpcServer::client_of(uint32_t datagram_pair) const {
  const auto at = std::lower_bound(by_pair_.begin(), by_pair_.end(), std::pair{datagram_pair, NodeId{0}});
  return at != by_pair_.end() && at->first == datagram_pair ? at->second : 0;
}

// --- execution

void RpcServer::execute(const Arrived& arrived, RpcHandler& handler) {
  const CallId call{arrived.from, arrived.request.label, arrived.request.wants_reply};
  Peer& from = peer(call.from);
  Slot& slot = from.slots[call.label.slot];
  if (answers_again_ && slot.lap == call.label.lap) {
    if (slot.request == nullptr) release(call.from, arrived.place, arrived.request.bytes);
    if (slot.is_answered) respond(call, from, slot.response_bytes);
    return;
  }
  slot.lap = call.label.lap;
  slot.is_answered = false;
  slot.request = arrived.place;
  slot.request_bytes = arrived.request.bytes;
  current_ = call;
  const uint32_t bytes = handler.handle(call.from, arrived.request.body, response(call));
  if (bytes != kLater) answer(call, bytes);
}

std::span<std::byte> RpcServer::response(const CallId& call) const {
  const size_t at = size_t{layout_.response_of(call.label, shape_.slots)} * layout_.response_stride;
  return {peer(call.from).responses->data() + at + layout_.response_head, shape_.response_bytes};
}

void RpcServer::answer(const CallId& call, uint32_t bytes) {
  Peer& to = peer(call.from);
  Slot& slot = to.slots[call.label.slot];
  release(call.from, slot.request, slot.request_bytes);
  slot.request = nullptr;
  slot.response_bytes = bytes;
  slot.is_answered = true;
  respond(call, to, bytes);
}

// The client may use the place again once it has its response.
void RpcServer::release(NodeId client, std::byte* place, uint32_t bytes) {
  switch (shape_.request) {
    case RequestHalf::kWriteSlot:
      return shape_.is_right_aligned() ? clear_right_aligned(place) : clear_flagged(place, bytes);
    case RequestHalf::kWriteRing:
      return clear_flagged(place, bytes);
    case RequestHalf::kSend:
    case RequestHalf::kDatagram:
      if (!post_receive(client, place)) peer(client).is_broken = true;
  }
}

std::byte* RpcServer::receive_place(NodeId client, uint32_t index) const {
  if (shape_.request == RequestHalf::kSend) return peer(client).request_base + size_t{index} * layout_.request_stride;
  return region_->data() + size_t{index} * (kGrhBytes + layout_.request_stride);
}

bool RpcServer::post_receive(NodeId client, std::byte* place) {
  const bool is_datagram = shape_.request == RequestHalf::kDatagram;
  Receive receive;
  receive.local = place;
  receive.bytes = layout_.request_stride + (is_datagram ? kGrhBytes : 0);
  receive.memory = is_datagram ? region_.get() : peer(client).requests.get();
  receive.tag = static_cast<uint64_t>(place - receive.memory->data()) / receive.bytes;
  if (!is_datagram) receive.tag |= uint64_t{client} << 32;
  return (is_datagram ? datagrams_.front() : peer(client).pair)->post_receives({&receive, 1});
}

// --- responses

void RpcServer::respond(const CallId& call, Peer& peer, uint32_t bytes) {
  std::byte* const body = response(call).data();
  std::byte* const begin = body - layout_.response_head;
  const uint32_t pad = plan_.tuning.pad;
  Work work;
  work.local = begin;
  work.memory = peer.responses.get();
  if (shape_.is_received()) {
    write_label(begin, call.label);
    work.verb = Verb::kSend;
    work.bytes = kSentHead + bytes + pad;
    if (shape_.response == ResponseHalf::kDatagram) {
      if (plan_.tuning.is_header_only && bytes == 2) {
        work.has_immediate = true;
        work.immediate = to_immediate(call.label, {body, 2});
        work.bytes = 0;
      }
      return send_datagram(peer, work);
    }
  } else {
    if (shape_.is_fetched()) {
      const uint32_t ahead = layout_.response_of(call.label, shape_.slots) + shape_.slots;
      clear_response(peer.responses->data() + size_t{ahead % layout_.responses} * layout_.response_stride);
    }
    Response response{bytes, 0};
    if (shape_.response == ResponseHalf::kAdaptive)
      response.time =
          static_cast<uint16_t>(std::min((clock_.now_ns() - peer.looked_before) / kTimeUnitNs, uint64_t{65'535}));
    work.bytes = seal_response(begin, layout_.response_head, response, call.label.lap) + pad;
    if (shape_.is_fetched() && !call.wants_reply) return;
    work.verb = Verb::kWrite;
    work.remote_address = peer.replies.address + uint64_t{call.label.slot} * layout_.response_stride;
    work.remote_key = peer.replies.key;
  }
  if (!peer.is_broken && !peer.sender.add(work)) peer.is_broken = true;
}

// Several UD pairs: the next one after each doorbell. A response for which there is no place is lost, as UD may.
void RpcServer::send_datagram(const Peer& peer, Work work) {
  work.way = peer.way.get();
  work.to_pair = peer.datagram_pair;
  Sender& sender = datagram_senders_[turn_];
  sender.add(work);
  if (!sender.has_collected()) turn_ = (turn_ + 1) % static_cast<uint32_t>(datagram_senders_.size());
}

bool RpcServer::post(NodeId to, const Work& work, uint16_t user) {
  Peer& client = peer(to);
  if (client.is_broken || client.sender.room() < 2) return false;
  return client.sender.add(work, user) && client.sender.flush();
}

}  // namespace egret::bench_paradigms
