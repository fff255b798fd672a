// Mailboxes: no message is lost or reordered, no sender blocks, and no thread sleeps while it has messages.
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>
#include <unistd.h>

#include "backend/mailbox.h"

using namespace egret::backend;

namespace {

Message numbered(uint64_t number) {
  Message message{.kind = Message::Kind::kRing, .lane = {}};
  message.lane.session_id = number;
  return message;
}

bool is_awakened(const Mailboxes& mailboxes, uint32_t node, int timeout_ms = 0) {
  pollfd wanted{mailboxes.wake_fd(node), POLLIN, 0};
  if (::poll(&wanted, 1, timeout_ms) != 1) return false;
  uint64_t count = 0;
  return ::read(mailboxes.wake_fd(node), &count, sizeof count) == sizeof count;
}

}  // namespace

TEST_CASE("messages between two threads arrive in order, with what they carry") {
  Mailboxes mailboxes(3);
  CHECK(mailboxes.nodes() == 3);
  Message message;
  CHECK_FALSE(mailboxes.receive(1, message));
  Message sent = numbered(7);
  sent.kind = Message::Kind::kDeliver;
  sent.lane.lane = 2;
  sent.offset = 4096;
  mailboxes.send(0, 1, sent);
  mailboxes.send(0, 1, numbered(8));
  REQUIRE(mailboxes.receive(1, message));
  CHECK(message.kind == Message::Kind::kDeliver);
  CHECK(message.lane.session_id == 7);
  CHECK(message.lane.lane == 2);
  CHECK(message.offset == 4096);
  REQUIRE(mailboxes.receive(1, message));
  CHECK(message.lane.session_id == 8);
  CHECK_FALSE(mailboxes.receive(1, message));
  CHECK_FALSE(mailboxes.receive(0, message));
  CHECK_FALSE(mailboxes.receive(2, message));
}

TEST_CASE("one may write to oneself") {
  Mailboxes mailboxes(1);
  mailboxes.send(0, 0, numbered(1));
  Message message;
  REQUIRE(mailboxes.receive(0, message));
  CHECK(message.lane.session_id == 1);
}

TEST_CASE("messages of the control thread come before those of partitions") {
  Mailboxes mailboxes(3);
  for (uint64_t i = 0; i < 300; ++i) mailboxes.send(0, 1, numbered(i));
  Message stop;
  mailboxes.send(2, 1, stop);
  Message message;
  REQUIRE(mailboxes.receive(1, message));
  CHECK(message.kind == Message::Kind::kStop);
}

TEST_CASE("a partition that sends many messages does not delay those of others") {
  Mailboxes mailboxes(4);
  for (uint64_t i = 0; i < 200; ++i) {
    mailboxes.send(0, 1, numbered(i));
    mailboxes.send(2, 1, numbered(i));
  }
  mailboxes.send(1, 1, numbered(1000));
  bool arrived = false;
  Message message;
  for (uint32_t i = 0; i < mailboxes.nodes() && !arrived; ++i) {
    REQUIRE(mailboxes.receive(1, message));
    arrived = message.lane.session_id == 1000;
  }
  CHECK(arrived);
}

TEST_CASE("what does not fit waits in the sender's outbox and keeps its place") {
  Mailboxes mailboxes(2);
  uint64_t sent = 0;
  while (sent < 1000) mailboxes.send(0, 1, numbered(sent++));
  CHECK(mailboxes.has_outbox(0, 1));
  CHECK_FALSE(mailboxes.has_outbox(1, 0));
  Message message;
  uint64_t next = 0;
  while (next < sent) {
    while (mailboxes.receive(1, message)) {
      REQUIRE(message.lane.session_id == next);
      ++next;
      if (next % 100 == 0 && sent < 1010) mailboxes.send(0, 1, numbered(sent++));  // goes behind those that wait
    }
    if (next < sent) CHECK(mailboxes.has_outbox(0, 1));
    mailboxes.resend(0);
  }
  CHECK_FALSE(mailboxes.resend(0));
  CHECK_FALSE(mailboxes.has_outbox(0, 1));
}

TEST_CASE("only a sleeping thread is woken, and no thread sleeps while it has messages") {
  Mailboxes mailboxes(2);
  mailboxes.send(0, 1, numbered(1));
  CHECK_FALSE(is_awakened(mailboxes, 1));
  CHECK_FALSE(mailboxes.prepare_sleep(1));
  Message message;
  REQUIRE(mailboxes.receive(1, message));
  REQUIRE(mailboxes.prepare_sleep(1));
  mailboxes.send(0, 1, numbered(2));
  CHECK(is_awakened(mailboxes, 1));
  mailboxes.awake(1);
  mailboxes.send(0, 1, numbered(3));
  CHECK_FALSE(is_awakened(mailboxes, 1));
  mailboxes.wake(1);
  CHECK(is_awakened(mailboxes, 1));
}

TEST_CASE("three threads that write to one which sleeps whenever it can: all arrives, in each one's order") {
  constexpr uint32_t kSenders = 3;
  constexpr uint64_t kMessages = 20'000;
  Mailboxes mailboxes(kSenders + 1);
  std::vector<std::thread> senders;
  for (uint32_t from = 0; from < kSenders; ++from) {
    senders.emplace_back([&mailboxes, from] {
      for (uint64_t i = 0; i < kMessages; ++i) {
        mailboxes.send(from, kSenders, numbered(from * kMessages + i));
        if (i % 64 == 0) std::this_thread::yield();
      }
      while (mailboxes.resend(from)) std::this_thread::yield();
    });
  }
  std::vector<uint64_t> next(kSenders);
  uint64_t received = 0;
  bool lost_wake_up = false;
  while (received < kSenders * kMessages && !lost_wake_up) {
    Message message;
    while (mailboxes.receive(kSenders, message)) {
      const uint64_t from = message.lane.session_id / kMessages;
      CHECK(message.lane.session_id % kMessages == next[from]);
      ++next[from];
      ++received;
    }
    if (received == kSenders * kMessages || !mailboxes.prepare_sleep(kSenders)) continue;
    lost_wake_up = !is_awakened(mailboxes, kSenders, 5000);
    mailboxes.awake(kSenders);
  }
  CHECK_FALSE(lost_wake_up);
  for (std::thread& sender : senders) sender.join();
}
