// The post office: no letter is lost, reordered or blocked on, and nobody sleeps on mail.
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include "backend/mail.h"

using namespace egret::backend;

namespace {

Letter numbered(uint64_t number) {
  Letter letter{.kind = Letter::Kind::kRing, .lane = {}};
  letter.lane.session_id = number;
  return letter;
}

bool is_awakened(const PostOffice& mail, uint32_t node, int timeout_ms = 0) {
  pollfd wanted{mail.wake_fd(node), POLLIN, 0};
  if (::poll(&wanted, 1, timeout_ms) != 1) return false;
  uint64_t count = 0;
  return ::read(mail.wake_fd(node), &count, sizeof count) == sizeof count;
}

}  // namespace

TEST_CASE("letters between two threads arrive in order, with what they carry") {
  PostOffice mail(3);
  CHECK(mail.nodes() == 3);
  Letter letter;
  CHECK_FALSE(mail.receive(1, letter));
  Letter sent = numbered(7);
  sent.kind = Letter::Kind::kDeliver;
  sent.lane.lane = 2;
  sent.offset = 4096;
  mail.send(0, 1, sent);
  mail.send(0, 1, numbered(8));
  REQUIRE(mail.receive(1, letter));
  CHECK(letter.kind == Letter::Kind::kDeliver);
  CHECK(letter.lane.session_id == 7);
  CHECK(letter.lane.lane == 2);
  CHECK(letter.offset == 4096);
  REQUIRE(mail.receive(1, letter));
  CHECK(letter.lane.session_id == 8);
  CHECK_FALSE(mail.receive(1, letter));
  CHECK_FALSE(mail.receive(0, letter));
  CHECK_FALSE(mail.receive(2, letter));
}

TEST_CASE("one may write to oneself") {
  PostOffice mail(1);
  mail.send(0, 0, numbered(1));
  Letter letter;
  REQUIRE(mail.receive(0, letter));
  CHECK(letter.lane.session_id == 1);
}

TEST_CASE("what the control thread says comes before what partitions say") {
  PostOffice mail(3);
  for (uint64_t i = 0; i < 300; ++i) mail.send(0, 1, numbered(i));
  Letter stop;
  mail.send(2, 1, stop);
  Letter letter;
  REQUIRE(mail.receive(1, letter));
  CHECK(letter.kind == Letter::Kind::kStop);
}

TEST_CASE("a partition that has much to say keeps nobody else's letters waiting") {
  PostOffice mail(4);
  for (uint64_t i = 0; i < 200; ++i) {
    mail.send(0, 1, numbered(i));
    mail.send(2, 1, numbered(i));
  }
  mail.send(1, 1, numbered(1000));
  bool arrived = false;
  Letter letter;
  for (uint32_t i = 0; i < mail.nodes() && !arrived; ++i) {
    REQUIRE(mail.receive(1, letter));
    arrived = letter.lane.session_id == 1000;
  }
  CHECK(arrived);
}

TEST_CASE("what does not fit waits in the sender's outbox and keeps its place") {
  PostOffice mail(2);
  uint64_t sent = 0;
  while (sent < 1000) mail.send(0, 1, numbered(sent++));
  CHECK(mail.has_outbox(0, 1));
  CHECK_FALSE(mail.has_outbox(1, 0));
  Letter letter;
  uint64_t next = 0;
  while (next < sent) {
    while (mail.receive(1, letter)) {
      REQUIRE(letter.lane.session_id == next);
      ++next;
      if (next % 100 == 0 && sent < 1010) mail.send(0, 1, numbered(sent++));  // goes behind those that wait
    }
    if (next < sent) CHECK(mail.has_outbox(0, 1));
    mail.resend(0);
  }
  CHECK_FALSE(mail.resend(0));
  CHECK_FALSE(mail.has_outbox(0, 1));
}

TEST_CASE("only a sleeper is woken, and nobody sleeps while there is mail") {
  PostOffice mail(2);
  mail.send(0, 1, numbered(1));
  CHECK_FALSE(is_awakened(mail, 1));
  CHECK_FALSE(mail.prepare_sleep(1));
  Letter letter;
  REQUIRE(mail.receive(1, letter));
  REQUIRE(mail.prepare_sleep(1));
  mail.send(0, 1, numbered(2));
  CHECK(is_awakened(mail, 1));
  mail.awake(1);
  mail.send(0, 1, numbered(3));
  CHECK_FALSE(is_awakened(mail, 1));
  mail.wake(1);
  CHECK(is_awakened(mail, 1));
}

TEST_CASE("three threads that write to one which sleeps whenever it can: all arrives, in each one's order") {
  constexpr uint32_t kSenders = 3;
  constexpr uint64_t kLetters = 20'000;
  PostOffice mail(kSenders + 1);
  std::vector<std::thread> senders;
  for (uint32_t from = 0; from < kSenders; ++from) {
    senders.emplace_back([&mail, from] {
      for (uint64_t i = 0; i < kLetters; ++i) {
        mail.send(from, kSenders, numbered(from * kLetters + i));
        if (i % 64 == 0) std::this_thread::yield();
      }
      while (mail.resend(from)) std::this_thread::yield();
    });
  }
  std::vector<uint64_t> next(kSenders);
  uint64_t received = 0;
  bool lost_wake_up = false;
  while (received < kSenders * kLetters && !lost_wake_up) {
    Letter letter;
    while (mail.receive(kSenders, letter)) {
      const uint64_t from = letter.lane.session_id / kLetters;
      CHECK(letter.lane.session_id % kLetters == next[from]);
      ++next[from];
      ++received;
    }
    if (received == kSenders * kLetters || !mail.prepare_sleep(kSenders)) continue;
    lost_wake_up = !is_awakened(mail, kSenders, 5000);
    mail.awake(kSenders);
  }
  CHECK_FALSE(lost_wake_up);
  for (std::thread& sender : senders) sender.join();
}
