// Attacks with a valid session: rings, wants, invalid reply slots, requests with wrong lengths or that change while
// they are read.
#include <algorithm>
#include <cstring>

#include "attacks.h"
#include "wire/codec.h"

namespace egret::hostile {

namespace {

constexpr double kFloodSeconds = 0.4;
constexpr uint32_t kBatch = 16;

// --- rings

void absurd_rings(const sockaddr_in& target) {
  for (const uint32_t past : {0u, 1u, 0x100u, 0x7fff'ff00u, 0xffff'ff00u}) {
    Session session(target);
    session.ring(session.layout().lanes + past);
    (void)session.connection().finish();
    expect_ended(session.connection(), "a ring for lane number " + std::to_string(session.layout().lanes + past));
  }
}

void rings_before_the_session(const sockaddr_in& target) {
  for (const bool with_hello : {false, true}) {
    const auto connection = connect(target);
    const size_t at = connection->put(framed(encode(new_hello())));
    for (uint32_t i = 0; i < kBatch; ++i) connection->post({.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .immediate = 0});
    if (with_hello) connection->post({.opcode = IBV_WR_SEND, .at = at, .length = 44});
    expect_ended(*connection, "a ring before the session");
  }
}

// Two sessions, so of two homes; rings for every lane, as fast as the device takes them.
void endless_rings(const sockaddr_in& target) {
  Session sessions[] = {Session(target), Session(target)};
  uint32_t lane = 0;
  for (const double end = now_seconds() + kFloodSeconds; now_seconds() < end;) {
    for (Session& session : sessions) {
      for (uint32_t i = 0; i < kBatch; ++i) session.ring(lane++ % session.layout().lanes);
      for (uint32_t i = 0; i < kBatch; ++i) require(session.connection().finish() == IBV_WC_SUCCESS, "a ring failed");
    }
  }
  for (Session& session : sessions) expect_served(session, "ringer");
}

void endless_absurd_rings(const sockaddr_in& target) {
  Session session(target);
  for (const double end = now_seconds() + kFloodSeconds; now_seconds() < end && !session.connection().has_failed();) {
    for (uint32_t i = 0; i < kBatch; ++i) session.ring(session.layout().lanes);
  }
  expect_ended(session.connection(), "endless rings for a lane that is not there");
}

// --- wants

// All lanes have answered up to that seq. They may sleep before an earlier one, so they are rung whatever the slot
// says.
void wait_for_answers(Session& session, uint64_t seq) {
  for (uint32_t lane = 0; lane < session.layout().lanes; ++lane) {
    session.ring(lane);
    (void)session.connection().finish();
    for (const double end = now_seconds() + kEndPatience; !session.is_answered(lane, seq);) {
      require(now_seconds() < end, "wanted messages are no longer answered");
    }
  }
}

// Message after message on every lane, all wanted, none waited for until a lane would be overrun; the partitions and
// the home have everything to do.
void flood_with_wanted(Session& session, double seconds) {
  op::Op ping;
  ping.code = op::OpCode::kPing;
  const uint32_t lanes = session.layout().lanes;
  for (uint32_t lane = 0; lane < lanes; ++lane) session.want(lane, UINT64_MAX);
  uint64_t seq = 0;
  for (const double end = now_seconds() + seconds; now_seconds() < end;) {
    for (uint32_t i = 0; i < session.layout().window; ++i) {
      ++seq;
      for (uint32_t lane = 0; lane < lanes; ++lane) session.write(lane, seq, session.message(seq, ping), lane * 256);
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        require(session.connection().finish() == IBV_WC_SUCCESS, "a request is refused");
      }
    }
    wait_for_answers(session, seq);
  }
  for (uint32_t lane = 0; lane < lanes; ++lane) session.skip_to(lane, seq + 1);
}

// Results are pushed to who takes none: no RECV is posted, or it was never said where to.
void wants_that_nobody_takes(const sockaddr_in& target) {
  Session deaf(target, {}, 1);  // its one RECV took the grant
  require(deaf.connection().receive(0) == std::nullopt, "something came");
  flood_with_wanted(deaf, kFloodSeconds);
  Session secretive(target, RemoteMemory{});
  flood_with_wanted(secretive, kFloodSeconds);
  expect_served(secretive, "secretive");
}

// The backend's own push is refused, by our device: this session's end, and nobody else's.
void reply_slots_that_are_none(const sockaddr_in& target) {
  const RemoteMemory good = Session(target).replies();
  RemoteMemory nowhere = good, wrong_key = good, elsewhere = good;
  nowhere.address = 0xdead'0000;
  wrong_key.key = 0x1234'5678;
  elsewhere.address = ~uint64_t{0} - 4095;
  for (const RemoteMemory& replies : {nowhere, wrong_key, elsewhere}) {
    Session session(target, replies);
    session.want(0, UINT64_MAX);
    op::Op ping;
    ping.code = op::OpCode::kPing;
    session.write(0, 1, session.message(1, ping));
    session.ring(0);
    (void)session.connection().finish();
    expect_ended(session.connection(), "a push to nowhere");
  }
  RemoteMemory wrong_size = good;
  wrong_size.bytes += 64;
  Session session(target, wrong_size);
  expect_ended(session.connection(), "reply slots of another size than agreed");
}

// --- requests

// Two versions of one message, each with its checksum, WRITTEN in turns while the partition takes it.
void rewritten_requests(const sockaddr_in& target) {
  const std::string a(1000, 'a'), b(3000, 'b');
  Session honest(target);
  auto vandal = std::make_unique<Session>(target);
  uint64_t seq = 1, taken = 0, seen = 0;
  const uint32_t lane = honest.lane_of("flip");
  for (const double end = now_seconds() + 2 * kFloodSeconds; now_seconds() < end;) {
    const std::vector<std::byte> versions[] = {vandal->message(seq, set("flip", a)),
                                               vandal->message(seq, set("flip", b))};
    for (uint32_t i = 0; i < kBatch; ++i) vandal->write(lane, seq, versions[i % 2], i % 2 * 8192);
    if (honest.call(get("flip")) == op::ResultCode::kHit) {
      require(honest.value() == a || honest.value() == b, "a value that nobody stored");
      ++seen;
    }
    for (uint32_t i = 0; i < kBatch; ++i) (void)vandal->connection().finish();
    if (vandal->connection().has_failed()) {  // torn for a second: the backend hung up
      vandal = std::make_unique<Session>(target);
      seq = 1;
    } else if (vandal->is_answered(lane, seq)) {
      ++taken;
      ++seq;
    }
  }
  require(taken > 0 && seen > 0, "no version was ever taken, or none was seen");
  expect_served(honest, "honest");
}

void expect_malformed(const sockaddr_in& target, const std::string& what, const std::vector<std::byte>& body,
                      uint16_t ops) {
  Session session(target);
  session.write(1, 1, session.message(1, body, ops));
  session.ring(1);
  (void)session.connection().finish();
  expect_ended(session.connection(), what);
}

// Right checksums over lengths that contradict each other.
void lying_lengths(const sockaddr_in& target) {
  const op::Op lookup = get("key"), store = set("key", "value");
  std::vector<std::byte> got(wire::encoded_op_size(lookup)), stored(wire::encoded_op_size(store));
  wire::encode_op(got.data(), lookup);
  wire::encode_op(stored.data(), store);
  expect_malformed(target, "more ops than there are", got, 2);
  expect_malformed(target, "no ops", got, 0);
  expect_malformed(target, "more ops than may be", got, 0xffff);
  auto lying = got;
  lying[1] = std::byte{250};  // the key's length
  expect_malformed(target, "a key that runs out of the message", lying, 1);
  lying = stored;
  lying[4] = lying[5] = lying[6] = std::byte{0xff};  // the value's
  expect_malformed(target, "a value that runs out of the message", lying, 1);
  lying[7] = std::byte{0xff};
  expect_malformed(target, "a value of 4 GB", lying, 1);
  lying = got;
  lying.resize(lying.size() + 1);
  expect_malformed(target, "bytes after the last op", lying, 1);
  lying = got;
  lying.pop_back();
  expect_malformed(target, "an op that is cut", lying, 1);
}

// The header's length points out of the slot: such a message is never whole, and is not waited for without end.
void endless_tear(const sockaddr_in& target) {
  for (const uint32_t length : {4073u, 0xffff'ffffu}) {
    Session session(target);
    session.write(0, 1, session.message(1, {}, 1, length));
    session.ring(0);
    (void)session.connection().finish();
    expect_ended(session.connection(), "a length that points out of the slot");
  }
}

constexpr Attack kAttacks[] = {
    {"absurd-rings", absurd_rings},
    {"rings-before-the-session", rings_before_the_session},
    {"endless-rings", endless_rings},
    {"endless-absurd-rings", endless_absurd_rings},
    {"wants-that-nobody-takes", wants_that_nobody_takes},
    {"reply-slots-that-are-none", reply_slots_that_are_none},
    {"rewritten-requests", rewritten_requests},
    {"lying-lengths", lying_lengths},
    {"endless-tear", endless_tear},
};

}  // namespace

std::span<const Attack> attacks_on_slots() {
  return kAttacks;
}

}  // namespace egret::hostile
