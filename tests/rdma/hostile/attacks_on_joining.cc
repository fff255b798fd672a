// Further queue pairs of a session: before a peer has proved who it is, with a token that is not its own, twice, out of
// turn, too many, too late, or never. With a secret (known_secret()) or without.
#include <algorithm>
#include <cstring>
#include <string>

#include <arpa/inet.h>

#include "attacks.h"
#include "base/random.h"

namespace egret::hostile {

namespace {

constexpr uint8_t kJoinsLate = 1;
constexpr uint8_t kMost = 16;
constexpr double kJoinPatience = 30;                // the backend waits for 5 to 10 s
constexpr const char* kOtherAddress = "10.9.0.66";  // of this host, too (prove.sh)
constexpr const char* kOtherSecret = "one that is wrong, but long enough";

using Pair = std::unique_ptr<Connection>;

Pair first_of(const sockaddr_in& target, uint8_t queue_pairs, uint8_t flags = kJoinsLate) {
  Pair first = connect(target, {.queue_pairs = queue_pairs, .flags = flags});
  require(first->is_open(), "the first queue pair is rejected");
  return first;
}

Pair join(const sockaddr_in& target, uint8_t index, uint64_t token, const sockaddr_in* source = nullptr) {
  return connect(target, {.index = index, .queue_pairs = kMost, .flags = kJoinsLate, .token = token},
                 Connection::kReceives, source);
}

void expect_no_way_in(const sockaddr_in& target, uint8_t index, uint64_t token, const std::string& what,
                      const sockaddr_in* source = nullptr) {
  require(!join(target, index, token, source)->is_open(), what + " joins");
}

void expect_nobody_joins(const sockaddr_in& target, const std::string& when) {
  expect_no_way_in(target, 1, 0, "no token, " + when);
  expect_no_way_in(target, 1, egret::base::random_u64(), "a guessed token, " + when);
}

// A first queue pair whose peer is known to the backend, and the invitation to add the others.
struct Invited {
  Pair first;
  InvitationWords words;
};
Invited invited(const sockaddr_in& target, uint8_t queue_pairs) {
  Invited made{first_of(target, queue_pairs), {}};
  introduce(*made.first);
  const Message message = hear(*made.first);
  require(message.frame.empty() && message.attachment.size() == sizeof made.words, "no invitation");
  std::memcpy(&made.words, message.attachment.data(), sizeof made.words);
  require(made.words.queue_pairs == std::min(queue_pairs, kMost), "an invitation for another number");
  return made;
}

// 16 queue pairs are promised, and nothing is proved: one is all there is. Eight connections, and no session.
void before_proof(const sockaddr_in& target) {
  std::vector<Pair> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(first_of(target, i == 0 ? 255 : kMost));
    const AcceptWords words = accept_words(*all.back());
    require((words.flags & kJoinsLate) != 0 && words.token == 0, "a token is told before anything is proved");
  }
  expect_nobody_joins(target, "before a hello");
  if (!known_secret().is_set()) return;
  wire::Hello hello = new_hello();
  hello.features = wire::kAuthenticate;
  hello.nonce = wire::fresh_nonce();
  for (const Pair& each : all) {
    require(say(*each, framed(encode(hello))) == IBV_WC_SUCCESS, "the hello is not taken");
    require(hear(*each).type() == wire::FrameType::kChallenge, "no challenge");
  }
  expect_nobody_joins(target, "before a proof");
  const Pair impostor = first_of(target, kMost);
  introduce(*impostor, base::Secret(kOtherSecret));
  require(hear(*impostor).type() == wire::FrameType::kRefusal, "a wrong proof is not refused");
  expect_nobody_joins(target, "after a wrong proof");
  expect_ended(*impostor, "a wrong proof");
  // As 0.1.0 does: all of them at once.
  const Pair old = first_of(target, kMost, 0);
  require(accept_words(*old).token == 0, "a client of 0.1.0 is told a token");
  wire::Refusal refusal;
  require(decode(hear(*old).frame, refusal) && refusal.reason.find("qps_per_session to 1") != std::string::npos,
          "a client of 0.1.0 is not told why");
  expect_ended(*old, "a client of 0.1.0 with many queue pairs");
}

void in_turn(const sockaddr_in& target) {
  const Invited session = invited(target, 3);
  const uint64_t token = session.words.token;
  expect_no_way_in(target, 2, token, "the third before the second");
  expect_no_way_in(target, 1, token + 1, "a token that is almost right");
  const Pair second = join(target, 1, token);
  require(second->is_open(), "the second is rejected");
  expect_no_way_in(target, 1, token, "the second twice");
  require(!session.first->receive(0.2).has_value(), "something is told before all have joined");
  const Pair third = join(target, 2, token);
  require(third->is_open(), "the third is rejected");
  expect_no_way_in(target, 3, token, "a fourth of three");
  (void)hear_grant(*session.first);
  expect_no_way_in(target, 2, token, "a queue pair of an open session");
  expect_no_way_in(target, 3, token, "one more of an open session");
  third->disconnect();
  expect_ended(*second, "a queue pair of a session that lost one");
}

void as_many_as_there_may_be(const sockaddr_in& target) {
  const Invited session = invited(target, 255);
  std::vector<Pair> others;
  for (uint8_t index = 1; index < kMost; ++index) {
    others.push_back(join(target, index, session.words.token));
    require(others.back()->is_open(), "a queue pair that was promised is rejected");
  }
  expect_no_way_in(target, kMost, session.words.token, "the 17th");
  (void)hear_grant(*session.first);
}

// The token is good from the address of the first queue pair only, and for its session only.
void of_another_peer(const sockaddr_in& target) {
  sockaddr_in other{};
  other.sin_family = AF_INET;
  require(::inet_pton(AF_INET, kOtherAddress, &other.sin_addr) == 1, "an address");
  const Invited one = invited(target, 2);
  const Invited two = invited(target, 2);
  require(one.words.token != two.words.token, "two sessions with one token");
  expect_no_way_in(target, 1, one.words.token, "a queue pair of another address", &other);
  const Pair joined = join(target, 1, one.words.token);
  require(joined->is_open(), "the right one is rejected");
  (void)hear_grant(*one.first);
  require(!two.first->receive(0.2).has_value(), "a queue pair has joined two sessions");
  const Pair late = join(target, 1, two.words.token);
  require(late->is_open(), "the right one is rejected");
  (void)hear_grant(*two.first);
}

// Instead of joining: frames, a ring, hanging up. Each ends the session, and its token.
void instead_of_joining(const sockaddr_in& target) {
  const auto expect_over = [&](const Invited& session, const std::string& what) {
    expect_ended(*session.first, what);
    expect_no_way_in(target, 2, session.words.token, "after " + what + ", a queue pair");
  };
  const std::vector<std::byte> messages[] = {framed(encode(new_hello())),
                                             framed(encode(wire::Ready{}), std::vector<std::byte>(24)),
                                             framed({}, bytes_of(InvitationWords{.token = 1, .queue_pairs = 3}))};
  for (const auto& message : messages) {
    const Invited session = invited(target, 3);
    const Pair second = join(target, 1, session.words.token);
    (void)say(*session.first, message);
    expect_over(session, "a frame");
  }
  {
    const Invited session = invited(target, 3);
    const Pair second = join(target, 1, session.words.token);
    second->post({.opcode = IBV_WR_RDMA_WRITE_WITH_IMM});
    expect_over(session, "a ring");
  }
  const Invited session = invited(target, 3);
  join(target, 1, session.words.token)->disconnect();
  expect_over(session, "hanging up");
}

// Whoever does not come is not waited for.
void never(const sockaddr_in& target) {
  const Invited none = invited(target, 2);
  const Invited some = invited(target, 4);
  const Pair second = join(target, 1, some.words.token);
  require(second->is_open(), "the second is rejected");
  require(none.first->is_ended(kJoinPatience), "a session that nobody joins goes on");
  require(some.first->is_ended(kJoinPatience), "a session that not all join goes on");
  expect_ended(*second, "a queue pair of a session that not all joined");
  expect_no_way_in(target, 1, none.words.token, "too late, a second queue pair");
  expect_no_way_in(target, 2, some.words.token, "too late, a third queue pair");
}

constexpr Attack kAttacks[] = {
    {"before-proof", before_proof},       {"in-turn", in_turn},
    {"sixteen", as_many_as_there_may_be}, {"of-another-peer", of_another_peer},
    {"instead", instead_of_joining},      {"never", never},
};

}  // namespace

std::span<const Attack> attacks_on_joining() {
  return kAttacks;
}

}  // namespace egret::hostile
