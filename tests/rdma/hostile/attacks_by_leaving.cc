// Disconnecting at every stage, in order or not; many silent connections; dying with requests outstanding.
#include <csignal>

#include <unistd.h>

#include "attacks.h"

namespace egret::hostile {

namespace {

constexpr size_t kSilent = 70;  // the backend keeps 32 of one peer
constexpr size_t kKeptSilent = 32;
constexpr uint32_t kOutstanding = 32;
constexpr int kLeaveBehindHello = 60;

op::Op ping() {
  op::Op made;
  made.code = op::OpCode::kPing;
  return made;
}

// Requests, fetches, rings and a want, none of them waited for.
void leave_outstanding(Session& session) {
  session.want(0, UINT64_MAX);
  for (uint32_t i = 0; i < kOutstanding; ++i) {
    const uint32_t lane = i % session.layout().lanes;
    const uint64_t seq = 1 + i / session.layout().lanes;
    session.write(lane, seq, session.message(seq, ping()), i * 256);
    session.ring(lane);
    session.connection().post({.opcode = IBV_WR_RDMA_READ,
                               .at = Connection::kIn,
                               .length = 4096,
                               .remote = session.responses(),
                               .offset = session.layout().response_offset(lane, seq)});
  }
}

// Each way to go: hanging up, or destroying the queue pair and being gone.
void leave_at_every_stage(const sockaddr_in& target) {
  for (const bool polite : {true, false}) {
    const auto leave = [&](Connection& connection) {
      if (polite) connection.disconnect();
    };
    const auto alone = connect(target);
    require(alone->is_open(), "rejected");
    leave(*alone);
    const auto said_hello = connect(target);
    (void)say(*said_hello, framed(encode(new_hello())));
    leave(*said_hello);
    const auto granted = connect(target);
    (void)say(*granted, framed(encode(new_hello())));
    (void)hear_grant(*granted);
    leave(*granted);
    Session ready(target);
    leave(ready.connection());
    Session busy(target);
    leave_outstanding(busy);
    leave(busy.connection());
    const auto joining = connect(target, {.queue_pairs = 4});
    leave(*joining);
  }
}

// Hangs up right behind its hello: the backend hears of both at once, now and then. The session, if there is one, has ended.
void leave_behind_hello(const sockaddr_in& target) {
  for (int i = 0; i < kLeaveBehindHello; ++i) {
    const auto said_hello = connect(target);
    require(said_hello->is_open(), "rejected");
    (void)say(*said_hello, framed(encode(new_hello())));
    said_hello->disconnect();
  }
}

// A worker that comes back again and again before its old session is gone: one of them is left.
void come_back_again(const sockaddr_in& target) {
  const wire::Hello hello = new_hello();
  std::vector<std::unique_ptr<Connection>> all;
  for (int i = 0; i < 12; ++i) {
    all.push_back(connect(target));
    require(all.back()->is_open(), "rejected");
    require(say(*all.back(), framed(encode(hello))) == IBV_WC_SUCCESS, "the hello is not taken");
  }
  (void)hear_grant(*all.back());
  for (size_t i = 0; i + 1 < all.size(); ++i) expect_ended(*all[i], "a session whose worker has a newer one");
}

void silence(const sockaddr_in& target) {
  std::vector<std::unique_ptr<Connection>> all;
  for (size_t i = 0; i < kSilent; ++i) all.push_back(connect(target));
  size_t ended = 0;
  for (const double end = now_seconds() + kEndPatience; ended < kSilent - kKeptSilent && now_seconds() < end;) {
    ended = 0;
    for (const auto& each : all) ended += each->is_ended(0) ? 1 : 0;
    ::usleep(10'000);
  }
  require(ended >= kSilent - kKeptSilent, "only " + std::to_string(ended) + " silent connections were ended");
  Session newcomer(target);
  expect_served(newcomer, "newcomer");
}

// Ends the process: nothing is put away by anybody but the kernel.
void killed(const sockaddr_in& target) {
  Session first(target), second(target);
  const auto alone = connect(target, {.queue_pairs = 4});
  const auto said_hello = connect(target);
  const size_t at = said_hello->put(framed(encode(new_hello())));
  said_hello->post({.opcode = IBV_WR_SEND, .at = at, .length = 44});
  leave_outstanding(first);
  leave_outstanding(second);
  ::raise(SIGKILL);
}

constexpr Attack kAttacks[] = {
    {"leave-at-every-stage", leave_at_every_stage},
    {"leave-behind-hello", leave_behind_hello},
    {"come-back-again", come_back_again},
    {"silence", silence},
    {"killed", killed},  // the last of all
};

}  // namespace

std::span<const Attack> attacks_by_leaving() {
  return kAttacks;
}

}  // namespace egret::hostile
