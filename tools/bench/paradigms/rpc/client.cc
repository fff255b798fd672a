#include "bench_paradigms/rpc/client.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace egret::bench_paradigms {

namespace {

constexpr uint16_t kProbe = 0xffff;  // user numbers of Works; a READ's is its slot + 1
constexpr uint32_t kPollsPerLookAtClock = 64;

}  // namespace

// --- calls

bool RpcClient::call(NodeId server, Bytes request, uint64_t ticket) {
  take_back();
  Lane& lane = lanes_[server];
  if (lane.is_broken) {
    if (refused_.size() == refused_.capacity()) return false;
    refused_.push_back(ticket);
    return true;
  }
  if (request.size() > shape_.request_bytes) return false;
  Call& call = lane.calls[lane.next % shape_.slots];
  if (lane.next - lane.oldest >= shape_.slots || call.state != State::kFree) return false;
  Sender& sender = shape_.request == RequestHalf::kDatagram ? lane.datagram_sender : lane.sender;
  if (plan_.tuning.is_synchronous ? !sender.is_idle() : sender.room() < 2) {
    reap();
    if (plan_.tuning.is_synchronous ? !sender.is_idle() : sender.room() < 2) return false;
  }
  const auto waiting = static_cast<uint32_t>(lane.next - lane.oldest);
  if (shape_.is_received() && !top_up(lane, waiting + 1)) return false;
  call = Call{};
  call.state = State::kWaiting;
  call.label = label_of(lane.next, shape_.slots);
  call.ticket = ticket;
  call.is_by_write = shape_.response == ResponseHalf::kWrite || lane.wants_replies;
  stage(lane, call, request);
  ++lane.next;
  if (!send(lane, call)) fail(lane);
  return true;
}

void RpcClient::stage(Lane& lane, Call& call, Bytes request) {
  const uint32_t at = call.label.slot * layout_.request_stride;
  std::byte* const to = lane.staging->data() + at;
  const bool wants_reply = shape_.response == ResponseHalf::kAdaptive && call.is_by_write;
  uint32_t remote = at;
  switch (shape_.request) {
    case RequestHalf::kWriteSlot:
      call.staged = shape_.is_right_aligned() ? write_right_aligned(to, request, call.label)
                                              : write_flagged(to, request, wants_reply);
      break;
    case RequestHalf::kWriteRing:
      call.staged = write_in_ring(to, request, call.label, wants_reply);
      remote = lane.ring_at;
      lane.ring_at += (call.staged.bytes + 7) / 8 * 8;
      if (lane.ring_at + layout_.request_stride > layout_.ring_bytes) lane.ring_at = 0;
      break;
    case RequestHalf::kSend:
    case RequestHalf::kDatagram:
      write_label(to, call.label);
      std::memcpy(to + kSentHead, request.data(), request.size());
      call.staged = {0, kSentHead + static_cast<uint32_t>(request.size())};
  }
  call.remote = lane.requests.address + remote + call.staged.offset;
  call.staged.offset += at;
}

bool RpcClient::send(Lane& lane, const Call& call) {
  Work work;
  work.bytes = call.staged.bytes;
  work.local = lane.staging->data() + call.staged.offset;
  work.memory = lane.staging.get();
  if (shape_.request == RequestHalf::kDatagram) {
    work.verb = Verb::kSend;
    work.way = lane.way.get();
    work.to_pair = lane.server_datagram;
    return lane.datagram_sender.add(work);
  }
  work.verb = shape_.request == RequestHalf::kSend ? Verb::kSend : Verb::kWrite;
  work.remote_address = call.remote;
  work.remote_key = lane.requests.key;
  return lane.sender.add(work);
}

// RECVs for so many calls.
bool RpcClient::top_up(Lane& lane, uint32_t calls) {
  const bool is_datagram = shape_.response == ResponseHalf::kDatagram;
  while (lane.receives < calls) {
    if (lane.free_receives.empty()) return false;
    const uint32_t buffer = lane.free_receives.back();
    Receive receive;
    receive.local = lane.landing->data() + size_t{buffer} * landing_stride();
    receive.bytes = landing_stride();
    receive.memory = lane.landing.get();
    receive.tag = static_cast<uint64_t>(&lane - lanes_.data()) << 32 | buffer;
    if (!(is_datagram ? lane.datagram : lane.pair)->post_receives({&receive, 1})) return false;
    lane.free_receives.pop_back();
    ++lane.receives;
  }
  return true;
}

// --- responses

uint32_t RpcClient::poll(std::span<Reply> out) {
  take_back();
  reap();
  if (shape_.is_received()) receive();
  for (Lane& lane : lanes_) {
    if (lane.next != lane.oldest && !lane.is_broken) look(lane);
  }
  if (++polls_ % kPollsPerLookAtClock == 0) watch();
  return give(out);
}

void RpcClient::look(Lane& lane) {
  for (uint64_t n = lane.oldest; n != lane.next; ++n) {
    Call& call = lane.calls[n % shape_.slots];
    if (call.state == State::kWaiting) look_at(lane, call);
  }
  if (!lane.is_broken && lane.sender.has_collected() && !lane.sender.flush()) fail(lane);
}

void RpcClient::look_at(Lane& lane, Call& call) {
  if (call.is_by_write) {
    const std::byte* const slot = lane.replies->data() + size_t{call.label.slot} * layout_.response_stride;
    const auto response = look_response(slot, layout_.response_head);
    if (!response || response->size > shape_.response_bytes) return;
    if (!has_tail(slot, layout_.response_head, response->size, call.label.lap)) return;
    if (shape_.response == ResponseHalf::kAdaptive) change_mode(lane, call, response->time);
    return answered(call, {slot + layout_.response_head, response->size});
  }
  if (shape_.is_fetched() && !call.is_reading && lane.sender.room() >= 2 &&
      (!plan_.tuning.is_synchronous || lane.sender.is_idle()))
    read(lane, call, 0, shape_.fetch_bytes);
}

void RpcClient::read(Lane& lane, Call& call, uint32_t from, uint32_t bytes) {
  const uint32_t response = layout_.response_of(call.label, shape_.slots);
  Work work;
  work.verb = Verb::kRead;
  work.bytes = bytes;
  work.local = lane.landing->data() + size_t{call.label.slot} * landing_stride() + from;
  work.memory = lane.landing.get();
  work.remote_address = lane.responses.address + uint64_t{response} * layout_.response_stride + from;
  work.remote_key = lane.responses.key;
  call.is_reading = true;
  call.fetched = from + bytes;
  if (!lane.sender.add(work, static_cast<uint16_t>(call.label.slot + 1))) fail(lane);
}

// 2 bytes of head and as much of the body as a READ brings. What is longer takes one more.
void RpcClient::was_read(Lane& lane, Call& call) {
  call.is_reading = false;
  if (call.state != State::kWaiting) return;
  const std::byte* const begin = lane.landing->data() + size_t{call.label.slot} * landing_stride();
  const auto response = look_response(begin, layout_.response_head);
  if (!response || response->size > shape_.response_bytes) {
    ++call.vain;
    ++trouble_.vain;
    return;
  }
  const uint32_t bytes = layout_.response_head + response->size;
  if (bytes > call.fetched) return read(lane, call, call.fetched, bytes - call.fetched);
  ++trouble_.reads;
  if (shape_.response == ResponseHalf::kAdaptive) change_mode(lane, call, response->time);
  answered(call, {begin + layout_.response_head, response->size});
}

// Two calls in a row that took more than R fetches in vain each: replies, from the next call on. Back when the server is
// at least twice as fast as it was then.
void RpcClient::change_mode(Lane& lane, const Call& call, uint16_t time) {
  if (call.is_by_write) {
    if (lane.wants_replies && time <= lane.slow_time / 2) lane.wants_replies = false;
    lane.vain_calls = 0;
    return;
  }
  lane.vain_calls = call.vain > plan_.tuning.hybrid_vain ? lane.vain_calls + 1 : 0;
  if (lane.vain_calls < 2) return;
  lane.wants_replies = true;
  lane.slow_time = time;
}

void RpcClient::answered(Call& call, Bytes response) {
  call.state = State::kAnswered;
  call.response = response;
}

void RpcClient::reap() {
  std::array<Completion, 16> done;
  uint32_t found = 0;
  do {
    found = send_queue_->poll(done);
    for (const Completion& each : std::span(done).first(found)) {
      const uint32_t index = Sender::index_of(each);
      Lane& lane = lanes_[index % plan_.servers];
      const uint16_t user = (index < plan_.servers ? lane.sender : lane.datagram_sender).completed(each);
      if (!each.is_ok) {
        fail(lane);
      } else if (user != 0 && user != kProbe) {
        was_read(lane, lane.calls[user - 1]);
      }
    }
  } while (found == done.size());
}

void RpcClient::receive() {
  std::array<Completion, 16> came;
  uint32_t found = 0;
  do {
    found = receive_queue_->poll(came);
    for (const Completion& each : std::span(came).first(found))
      received(static_cast<uint32_t>(each.tag >> 32), static_cast<uint32_t>(each.tag), each);
  } while (found == came.size());
}

void RpcClient::received(uint32_t lane_index, uint32_t buffer, const Completion& completion) {
  Lane& lane = lanes_[lane_index];
  --lane.receives;
  if (!completion.is_ok) return fail(lane);
  std::byte* const begin = lane.landing->data() + size_t{buffer} * landing_stride() +
                           (shape_.response == ResponseHalf::kDatagram ? kGrhBytes : 0);
  const uint32_t came = completion.bytes - (shape_.response == ResponseHalf::kDatagram ? kGrhBytes : 0);
  Label label{kMostSlots, 0};
  uint32_t size = 2;
  if (completion.has_immediate && came == 0) {
    label = from_immediate(completion.immediate, begin + kSentHead);
  } else if (came >= kSentHead + plan_.tuning.pad) {
    label = read_label(begin);
    size = came - kSentHead - plan_.tuning.pad;
  }
  Call* const call = label.slot < shape_.slots ? &lane.calls[label.slot] : nullptr;
  const bool is_wanted = call != nullptr && call->label.lap == label.lap && call->state == State::kWaiting;
  if (!is_wanted) {
    lane.free_receives.push_back(buffer);
    if (call != nullptr && call->label.lap == label.lap && call->state == State::kDraining) free_slot(lane, *call);
    return;
  }
  call->receive = buffer;
  answered(*call, {begin + kSentHead, size});
}

// What the last poll has given out may be written over from now on.
void RpcClient::take_back() {
  for (const Given& each : given_) {
    Lane& lane = lanes_[each.lane];
    Call& call = lane.calls[each.slot];
    if (call.is_by_write && call.response.data() != nullptr) {
      std::byte* const slot = lane.replies->data() + size_t{call.label.slot} * layout_.response_stride;
      std::memset(slot, 0, layout_.response_head + call.response.size() + 1);
    }
    if (shape_.is_received() && call.response.data() != nullptr) lane.free_receives.push_back(call.receive);
    if (call.is_sent_again && drains_ && !lane.is_broken) {
      call.state = State::kDraining;
      call.due_ns = 0;
      if (shape_.is_received()) top_up(lane, static_cast<uint32_t>(lane.next - lane.oldest));
    } else {
      free_slot(lane, call);
    }
  }
  given_.clear();
}

void RpcClient::free_slot(Lane& lane, Call& call) {
  call.state = State::kFree;
  while (lane.oldest != lane.next && lane.calls[lane.oldest % shape_.slots].state == State::kFree) ++lane.oldest;
}

uint32_t RpcClient::give(std::span<Reply> out) {
  uint32_t given = 0;
  while (given < out.size() && !refused_.empty()) {
    out[given++] = {refused_.back(), ReplyState::kFailed, {}};
    refused_.pop_back();
  }
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[(turn_ + i) % lanes_.size()];
    for (uint64_t n = lane.oldest; n != lane.next && given < out.size(); ++n) {
      Call& call = lane.calls[n % shape_.slots];
      if (call.state != State::kAnswered) continue;
      ReplyState state = ReplyState::kAnswered;
      if (call.response.data() == nullptr) state = lane.is_broken ? ReplyState::kFailed : ReplyState::kLost;
      out[given++] = {call.ticket, state, call.response};
      call.state = State::kGiven;
      given_.push_back({(turn_ + i) % static_cast<uint32_t>(lanes_.size()), call.label.slot});
    }
  }
  if (!lanes_.empty()) turn_ = (turn_ + 1) % static_cast<uint32_t>(lanes_.size());
  return given;
}

// --- what does not come

void RpcClient::watch() {
  uint64_t now = 0;
  for (Lane& lane : lanes_) {
    if (lane.next == lane.oldest || lane.is_broken) continue;
    if (now == 0) now = clock_.now_ns();
    for (uint64_t n = lane.oldest; n != lane.next; ++n) {
      Call& call = lane.calls[n % shape_.slots];
      if (call.state != State::kWaiting && call.state != State::kDraining) continue;
      if (call.due_ns == 0) {
        call.due_ns = now + kCallPatienceNs;
      } else if (now >= call.due_ns) {
        overdue(lane, call, now);
        if (lane.is_broken) break;
      }
    }
  }
}

void RpcClient::overdue(Lane& lane, Call& call, uint64_t now) {
  call.due_ns = now + kCallPatienceNs;
  if (call.state == State::kDraining) return free_slot(lane, call);
  if (!shape_.may_lose()) {
    // RC: it will come, unless the server is gone, of which only a verb tells.
    if (now - lane.probe_ns < kCallPatienceNs || lane.sender.room() < 2) return;
    lane.probe_ns = now;
    Work probe;
    probe.remote_address = lane.requests.address;
    probe.remote_key = lane.requests.key;
    if (!lane.sender.add(probe, kProbe)) fail(lane);
    return;
  }
  if (call.is_sent_again) return answered(call, {});
  call.is_sent_again = true;
  ++trouble_.retries;
  if (!send(lane, call)) fail(lane);
}

void RpcClient::fail(Lane& lane) {
  lane.is_broken = true;
  for (uint64_t n = lane.oldest; n != lane.next; ++n) {
    Call& call = lane.calls[n % shape_.slots];
    if (call.state == State::kWaiting) answered(call, {});
    if (call.state == State::kDraining) call.state = State::kFree;
  }
}

}  // namespace egret::bench_paradigms
