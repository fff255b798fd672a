// Connecting with invalid private data, joining other clients' sessions, and wrong frames of every kind at every stage:
// before the hello, instead of ready, in the data phase.
#include <cstring>
#include <random>

#include "attacks.h"
#include "base/random.h"

namespace egret::hostile {

namespace {

constexpr double kFloodSeconds = 0.2;

std::vector<std::byte> random_bytes(size_t size) {
  static std::mt19937_64 random(5);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

void expect_rejected(const Connection& connection, const std::string& what) {
  require(!connection.is_open(), what + " is accepted");
}

void wrong_words(const sockaddr_in& target) {
  ConnectWords magic{.magic = 0x43544746};
  ConnectWords version{.version = 2};
  expect_rejected(*connect(target, magic), "a wrong magic");
  expect_rejected(*connect(target, version), "a wrong version");
  expect_rejected(Connection(target, {}), "a connection without words");
  expect_rejected(Connection(target, random_bytes(56)), "noise");
  const auto good = bytes_of(ConnectWords{});
  expect_rejected(Connection(target, std::span(good).first(3)), "a part of the words");
}

// As clients of 0.1.0 do, which is served where no secret is asked for: joining is for who knows the token, in turn, up
// to what was promised, and before there is a region.
void joining(const sockaddr_in& target) {
  for (int i = 0; i < 4; ++i) {
    ConnectWords guess{.index = 1, .queue_pairs = 2};
    guess.token = egret::base::random_u64();
    expect_rejected(*connect(target, guess), "a guessed token");
  }
  expect_rejected(*connect(target, {.index = 1, .queue_pairs = 2, .token = 0}), "no token");
  const auto first = connect(target, {.queue_pairs = 2});
  const uint64_t token = accept_words(*first).token;
  expect_rejected(*connect(target, {.index = 2, .queue_pairs = 3, .token = token}), "a queue pair out of turn");
  expect_rejected(*connect(target, {.index = 1, .queue_pairs = 2, .token = token + 1}), "a token that is almost right");
  require(connect(target, {.index = 1, .queue_pairs = 2, .token = token})->is_open(), "the right token is rejected");
  // That one hung up as it went: all of its session goes.
  expect_ended(*first, "half of a session");
  Session session(target);
  const uint64_t late = accept_words(session.connection()).token;
  expect_rejected(*connect(target, {.index = 1, .queue_pairs = 2, .token = late}), "joining an open session");
  expect_served(session, "joined");
}

// 255 queue pairs are promised; 16 are the most.
void many_queue_pairs(const sockaddr_in& target) {
  std::vector<std::unique_ptr<Connection>> all;
  all.push_back(connect(target, {.queue_pairs = 255}));
  require(all[0]->is_open(), "rejected");
  const uint64_t token = accept_words(*all[0]).token;
  for (uint8_t index = 1; index < 16; ++index) {
    all.push_back(connect(target, {.index = index, .queue_pairs = 255, .token = token}));
    require(all.back()->is_open(), "a queue pair that was promised is rejected");
  }
  expect_rejected(*connect(target, {.index = 16, .queue_pairs = 255, .token = token}), "the 17th queue pair");
  require(say(*all[0], framed(encode(new_hello()))) == IBV_WC_SUCCESS, "the hello is not taken");
  (void)hear_grant(*all[0]);
  // One of the 16 misbehaves: the session ends, all of it.
  (void)say(*all[7], random_bytes(100));
  for (const auto& each : all) expect_ended(*each, "a queue pair of a session that ended");
}

// --- frames

enum class Stage : uint8_t { kBeforeHello, kInsteadOfReady, kInData };
constexpr Stage kStages[] = {Stage::kBeforeHello, Stage::kInsteadOfReady, Stage::kInData};

const char* to_string(Stage stage) {
  constexpr const char* kNames[] = {"before the hello", "instead of ready", "in the data phase"};
  return kNames[static_cast<size_t>(stage)];
}

// A connection that has come so far; the session keeps it alive.
struct Place {
  std::unique_ptr<Session> session;
  std::unique_ptr<Connection> alone;
  Connection& connection() { return session ? session->connection() : *alone; }
};
Place arrive(const sockaddr_in& target, Stage stage) {
  if (stage == Stage::kBeforeHello) return {nullptr, connect(target)};
  const std::optional<RemoteMemory> replies =
      stage == Stage::kInsteadOfReady ? std::optional(RemoteMemory{}) : std::nullopt;
  return {std::make_unique<Session>(target, replies), nullptr};
}

void at_each_stage(const sockaddr_in& target, const std::string& what, const std::vector<std::byte>& message) {
  for (const Stage stage : kStages) {
    Place place = arrive(target, stage);
    (void)say(place.connection(), message);
    expect_ended(place.connection(), what + " " + to_string(stage));
  }
}

void garbage_frames(const sockaddr_in& target) {
  at_each_stage(target, "noise", random_bytes(300));
  at_each_stage(target, "an empty message", {});
  at_each_stage(target, "half a head", random_bytes(3));
  at_each_stage(target, "a frame without bytes", framed({}));
  at_each_stage(target, "an invitation", framed({}, bytes_of(InvitationWords{.token = 1, .queue_pairs = 2})));
  std::vector<std::byte> lying = framed(encode(new_hello()));
  lying[0] = lying[3] = std::byte{0xff};
  at_each_stage(target, "a frame of 4 GB, it says", lying);
  // Lengths whose sum is right modulo 2^32.
  const uint32_t wrapping[2] = {0xffff'fff8, 16};
  lying = bytes_of(wrapping);
  lying.resize(16);
  at_each_stage(target, "lengths that wrap around", lying);
}

void oversized_frames(const sockaddr_in& target) {
  for (const size_t bytes : {size_t{600}, size_t{4096}, size_t{65536}}) {
    at_each_stage(target, std::to_string(bytes) + " bytes", framed(random_bytes(bytes - 8)));
  }
}

void frames_out_of_turn(const sockaddr_in& target) {
  const std::vector<std::byte> keys(sizeof(RemoteMemory));
  at_each_stage(target, "a refusal", framed(encode(wire::Refusal{"I refuse you"})));
  at_each_stage(target, "a grant", framed(encode(wire::Grant{.layout = {3, 8, 4096, 4096}}), keys));
  at_each_stage(target, "a proof", framed(encode(wire::ClientProof{})));
  for (const Stage stage : kStages) {
    Place place = arrive(target, stage);
    const bool first = stage == Stage::kBeforeHello;
    (void)say(place.connection(), first ? framed(encode(wire::Ready{}), keys) : framed(encode(new_hello())));
    expect_ended(place.connection(), std::string("ready or hello ") + to_string(stage));
  }
  Session session(target);
  (void)say(session.connection(), framed(encode(wire::Ready{}), bytes_of(session.replies())));
  expect_ended(session.connection(), "a second ready");
}

// Many at once, so that some arrive behind the one that ends the session; good ones first.
void endless_frames(const sockaddr_in& target) {
  const std::vector<std::byte> hello = framed(encode(new_hello()));
  const std::vector<std::byte> messages[] = {
      hello, framed(encode(wire::Ready{}), std::vector<std::byte>(24)), random_bytes(60), framed({}), {}};
  for (const Stage stage : kStages) {
    for (const auto& message : messages) {
      Place place = arrive(target, stage);
      Connection& connection = place.connection();
      const size_t at = connection.put(message);
      for (const double end = now_seconds() + kFloodSeconds; now_seconds() < end && !connection.has_failed();) {
        connection.post({.opcode = IBV_WR_SEND, .at = at, .length = static_cast<uint32_t>(message.size())});
      }
      expect_ended(connection, std::string("endless frames ") + to_string(stage));
    }
  }
}

constexpr Attack kAttacks[] = {
    {"wrong-words", wrong_words},           {"joining", joining},
    {"many-queue-pairs", many_queue_pairs}, {"garbage-frames", garbage_frames},
    {"oversized-frames", oversized_frames}, {"frames-out-of-turn", frames_out_of_turn},
    {"endless-frames", endless_frames},
};

}  // namespace

std::span<const Attack> attacks_on_handshake() {
  return kAttacks;
}

}  // namespace egret::hostile
