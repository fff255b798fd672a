#include "client.h"

#include <cstring>

#include <arpa/inet.h>
#include <poll.h>

namespace egret::handshakes {
namespace {

constexpr uint64_t kReadTag = 2;            // any tag that is neither a RECV's nor a plain send's
constexpr uint64_t kFabricUs = 20'000'000;  // a READ that takes longer means a broken fabric, not a lost wake-up
constexpr uint64_t kRecoverUs = 20'000'000;
constexpr uint64_t kRingAgainUs = 50'000;
constexpr uint32_t kHeadFirst = 8;  // one request in so many is written in two parts
constexpr uint32_t kMostPolls = 3;  // fetches before the client thinks of sleeping

}  // namespace

Client::Client(const Scenario& scenario, Session& session, std::function<std::string()> partitions_blocked,
               std::atomic<uint32_t>& total_failures)
    : scenario_(scenario),
      session_(session),
      partitions_blocked_(std::move(partitions_blocked)),
      total_failures_(total_failures),
      pauses_(scenario, 200 + session.id),
      lanes_(scenario.partitions) {
  for (ClientLane& lane : lanes_) lane.taken.resize(scenario.window);
}

void Client::run() {
  while ((counters_.sent < scenario_.messages || outstanding()) && !enough_failed()) {
    send_some();
    for (uint32_t polls = pauses_.random().below(kMostPolls + 1); polls > 0; --polls) fetch_once(false);
    const bool may_sleep =
        scenario_.mode == ClientMode::kSleep || (scenario_.mode == ClientMode::kMix && pauses_.random().one_in(2));
    if (may_sleep && outstanding()) {
      sleep_until_delivered();
    } else {
      sched_yield();
    }
    if (overdue()) {
      report_lost("no fetch shows it");
      recover();
    }
  }
}

// --- Requests

void Client::send_some() {
  Random& random = pauses_.random();
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (random.one_in(2)) continue;
    for (uint32_t burst = 1 + random.below(scenario_.window); burst > 0; --burst) {
      const bool credit = lanes_[lane].next - lanes_[lane].oldest < scenario_.window;
      if (credit && counters_.sent < scenario_.messages) send_one(lane);
    }
  }
}

void Client::send_one(uint32_t lane) {
  ClientLane& mine = lanes_[lane];
  if (!mine.outstanding()) mine.since_us = now_us();
  const uint64_t seq = mine.next++;
  const uint32_t slot = session_.layout.slot(lane, seq);
  // The image of a request stays as it is until its response has been taken: the device may send it again.
  std::byte* image = session_.client.image.at(session_.layout.request_offset(slot));
  make_request(session_.nonce, lane, seq, request_);
  std::memcpy(image, &request_.header, sizeof(Header));
  std::memcpy(image + sizeof(Header), request_.body, request_.header.length);
  pauses_.here();
  // Some times in two WRITEs, the head first: what a partition may see of one WRITE that is placed in any order.
  const size_t length = sizeof(Header) + request_.header.length;
  const size_t first = pauses_.random().one_in(kHeadFirst) ? sizeof(Header) : length;
  Endpoint& endpoint = session_.client.endpoint;
  Remote to = session_.request_at(slot);
  endpoint.write(image, session_.client.image_mr, first, to);
  if (first < length) {
    pauses_.here();
    to.address += first;
    endpoint.write(image + first, session_.client.image_mr, length - first, to);
  }
  ++counters_.sent;
}

// --- Fetching

// READs the oldest outstanding slot of each lane. The oldest is enough: a lane that has not published it will look for
// the requests behind it afterwards, and they are there already.
Client::Found Client::fetch_once(bool last) {
  Found found;
  std::vector<std::pair<uint32_t, uint64_t>> reads;  // lane, seq
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!lanes_[lane].outstanding()) continue;
    pauses_.here();
    const uint64_t seq = lanes_[lane].oldest;
    session_.client.endpoint.read(kReadTag, session_.client.fetched.at(lane * kSlotBytes), session_.client.fetched_mr,
                                  kSlotBytes, session_.response_at(session_.layout.slot(lane, seq)));
    ++reads_in_flight_;
    ++counters_.fetches;
    reads.emplace_back(lane, seq);
  }
  const uint64_t deadline = now_us() + kFabricUs;
  while (reads_in_flight_ > 0) {
    if (!poll()) sched_yield();
    if (now_us() > deadline)
      die("a READ has not completed in %lu s", static_cast<unsigned long>(kFabricUs / 1'000'000));
  }
  for (const auto& [lane, seq] : reads) judge_fetched(lane, seq, last, found);
  return found;
}

void Client::judge_fetched(uint32_t lane, uint64_t seq, bool last, Found& found) {
  if (lanes_[lane].oldest != seq) {  // delivered while the READ was under way
    found.whole = true;
    return;
  }
  const std::byte* slot = session_.client.fetched.at(lane * kSlotBytes);
  switch (look(slot, seq, session_.nonce, scenario_.omit != Omit::kChecksum, message_)) {
    case Seen::kWhole:
      found.whole = true;
      ++(last ? counters_.taken_by_last_fetch : counters_.taken_by_fetch);
      take(lane, message_);
      return;
    case Seen::kTorn:
      found.torn = true;
      ++counters_.refetches_torn;
      return;
    case Seen::kNotYet:
      ++counters_.refetches_not_ready;
      if (observe_word(slot + offsetof(Header, asleep)) == seq) ring(lane, seq);
      return;
  }
}

// Once per seq. The request was WRITTEN before on this queue pair, so the lane that the ring wakes finds it.
void Client::ring(uint32_t lane, uint64_t seq) {
  if (lanes_[lane].rung_for == seq) return;
  lanes_[lane].rung_for = seq;
  pauses_.here();
  session_.client.endpoint.write_with_imm(nullptr, nullptr, 0, session_.request_at(0), lane, false);
  ++counters_.rings;
}

// Takes completions: READs that are done, and delivers.
bool Client::poll() {
  ibv_wc completions[16];
  const size_t count = session_.client.endpoint.poll(completions);
  for (const ibv_wc& wc : std::span(completions, count)) {
    if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      take_delivered(ntohl(wc.imm_data));
    } else if (wc.opcode == IBV_WC_RDMA_READ) {
      --reads_in_flight_;
    }
  }
  return count > 0;
}

// --- Sleeping

void Client::write_wants() {
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    ClientLane& mine = lanes_[lane];
    if (!mine.outstanding() || mine.want == mine.next - 1) continue;
    mine.want = mine.next - 1;
    pauses_.here();
    session_.client.endpoint.write_inline(&mine.want, sizeof(mine.want), session_.want_at(lane));
    ++counters_.wants;
  }
}

// WRITE want → READ once more (same queue pair) → arm → poll once more → block. (Rule b, the client's half.)
// Half of the time it goes on sleeping until every result it wanted has come, without looking at a slot again.
void Client::sleep_until_delivered() {
  Found found;
  if (scenario_.omit == Omit::kWantOrder) found = fetch_once(true);
  write_wants();
  pauses_.here();
  if (scenario_.omit != Omit::kWantOrder && scenario_.omit != Omit::kWantFetch) found = fetch_once(true);
  if (found.whole || found.torn) return;  // a torn response may have been published before the server read want

  const bool until_all = pauses_.random().one_in(2);
  delivered_ = false;
  while (outstanding()) {
    pauses_.in_window();
    session_.client.endpoint.arm();
    pauses_.here();
    if (scenario_.omit == Omit::kClientRearm || !poll()) {
      if (!block()) {
        report_lost("the client wanted it and sleeps");
        recover();
        return;
      }
      pauses_.here();
    }
    while (poll()) {
    }
    if (delivered_ && !until_all) return;
  }
}

// Sleeps on the completion channel. False: a result is overdue.
bool Client::block() {
  ++counters_.client_sleeps;
  uint64_t oldest = UINT64_MAX;
  for (const ClientLane& lane : lanes_) {
    if (lane.outstanding() && lane.since_us < oldest) oldest = lane.since_us;
  }
  const uint64_t deadline = oldest + scenario_.wait_ms * 1000ull;
  const uint64_t now = now_us();
  const int timeout_ms = deadline > now ? static_cast<int>((deadline - now) / 1000 + 1) : 1;
  pollfd channel{.fd = session_.client.endpoint.channel_fd(), .events = POLLIN, .revents = 0};
  const bool woken = ::poll(&channel, 1, timeout_ms) > 0;
  session_.client.endpoint.take_events();
  return woken;
}

// The number of a slot came with a deliver. What lies in it is judged like anything fetched: the slot may hold a later
// result by now, or one that a READ has brought already.
void Client::take_delivered(uint32_t slot) {
  if (slot >= session_.layout.slots()) die("a deliver into slot %u", slot);
  const uint32_t lane = slot / session_.layout.window;
  const std::byte* reply = session_.client.replies.at(session_.layout.response_offset(slot));
  const uint64_t seq = observe_word(reply);
  const ClientLane& mine = lanes_[lane];
  const bool awaited = seq >= mine.oldest && seq < mine.next && mine.taken[seq % scenario_.window] != seq;
  if (!awaited || look(reply, seq, session_.nonce, scenario_.omit != Omit::kChecksum, message_) != Seen::kWhole) {
    ++counters_.late_delivers;
    return;
  }
  delivered_ = true;
  ++counters_.taken_by_deliver;
  take(lane, message_);
}

// --- Results

void Client::take(uint32_t lane, const Message& response) {
  ClientLane& mine = lanes_[lane];
  const uint64_t seq = response.header.seq;
  make_request(session_.nonce, lane, seq, request_);
  make_response(session_.nonce, lane, request_, expected_);
  const bool right = response.header.length == expected_.header.length &&
                     std::memcmp(response.body, expected_.body, expected_.header.length) == 0;
  if (!right) {
    ++counters_.wrong;
    ++total_failures_;
    std::printf("WRONG: session %u lane %u seq %lu: not the bytes of its response\n", session_.id, lane, seq);
  }
  if (mine.taken[seq % scenario_.window] == seq) die("lane %u seq %lu was taken twice", lane, seq);
  mine.taken[seq % scenario_.window] = seq;
  advance(mine);
}

void Client::advance(ClientLane& lane) {
  while (lane.outstanding() && lane.taken[lane.oldest % scenario_.window] == lane.oldest) {
    ++lane.oldest;
    lane.since_us = now_us();
  }
}

bool Client::outstanding() const {
  for (const ClientLane& lane : lanes_) {
    if (lane.outstanding()) return true;
  }
  return false;
}

// --- Losses

bool Client::overdue() const {
  for (const ClientLane& lane : lanes_) {
    if (lane.outstanding() && now_us() - lane.since_us > scenario_.wait_ms * 1000ull) return true;
  }
  return false;
}

// Says what is known about each overdue result: what stands in its slot, and who is blocked. Changes nothing.
void Client::report_lost(const char* how) {
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const ClientLane& mine = lanes_[lane];
    if (!mine.outstanding() || now_us() - mine.since_us <= scenario_.wait_ms * 1000ull) continue;
    ++counters_.lost;
    ++total_failures_;
    // Straight from the server's memory, which this process can see, so that looking disturbs nothing.
    const std::byte* slot =
        session_.server.responses.at(session_.layout.response_offset(session_.layout.slot(lane, mine.oldest)));
    const bool published = observe_word(slot) == mine.oldest;
    const bool asleep = observe_word(slot + offsetof(Header, asleep)) == mine.oldest;
    std::printf(
        "LOST: session %u lane %u seq %lu after %lu messages (seed %lu): %s; response %s, lane %s, rung for %lu, "
        "want %lu; %s\n",
        session_.id, lane, mine.oldest, counters_.sent, scenario_.seed, how,
        published ? "is published" : "is not published", asleep ? "says asleep" : "does not say asleep", mine.rung_for,
        mine.want, partitions_blocked_().c_str());
  }
}

// What no client may rely on: rings again until everything is there, so that a run can count more than one loss.
void Client::recover() {
  const uint64_t start = now_us();
  uint64_t rung_at = 0;
  while (outstanding()) {
    if (now_us() - rung_at > kRingAgainUs) {
      for (ClientLane& lane : lanes_) lane.rung_for = 0;
      rung_at = now_us();
    }
    fetch_once(false);
    if (now_us() - start > kRecoverUs) die("session %u did not recover from a loss", session_.id);
    usleep(1000);
  }
}

}  // namespace egret::handshakes
