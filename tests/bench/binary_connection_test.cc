// A binary Connection against a scripted server: the other end of a socket pair.
#include "bench/client/binary_connection.h"

#include <array>
#include <string>

#include <doctest/doctest.h>
#include <sys/socket.h>

using namespace egret::bench;
using namespace std::string_literals;

namespace {

constexpr uint32_t kValueSize = 40;
constexpr uint8_t kGet = 0;
constexpr uint8_t kSet = 1;
constexpr uint8_t kNoop = 0x0a;
constexpr uint8_t kGetKq = 0x0d;

struct Message {
  uint8_t opcode = kGet;
  uint32_t opaque = 1;
  std::string extras = {};
  std::string key = {};
  std::string value = {};
  uint16_t status = 0;
  uint8_t magic = 0x81;

  std::string bytes() const {
    const auto number = [](uint64_t count, int size) {
      std::string out;
      for (int i = size - 1; i >= 0; --i) out += static_cast<char>(count >> (8 * i));
      return out;
    };
    return number(magic, 1) + number(opcode, 1) + number(key.size(), 2) + number(extras.size(), 1) + number(0, 1) +
           number(status, 2) + number(extras.size() + key.size() + value.size(), 4) + number(opaque, 4) + number(0, 8) +
           extras + key + value;
  }
};

struct Fixture {
  Keyspace keys{100, 8};
  Tally tally;
  egret::base::UniqueFd server;
  std::unique_ptr<Connection> connection;

  Fixture() {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
    server.reset(fds[0]);
    connection =
        make_connection(Protocol::kBinary, egret::base::UniqueFd(fds[1]), keys, BatchLimits{4, 3, kValueSize}, tally);
    tally.set_window(0, ~0ULL, false);
    connection->begin_batch();
  }

  void get(std::initializer_list<uint32_t> numbers) { connection->add_get({numbers.begin(), numbers.size()}, 1); }

  void answer(const std::string& bytes) {
    REQUIRE(::send(server.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    (void)connection->receive();
  }

  std::string sent() {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::recv(server.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return got > 0 ? std::string(buffer.data(), static_cast<size_t>(got)) : "";
  }

  static std::string content(uint32_t key) {
    std::string text(kValueSize, '?');
    write_value(text.data(), text.size(), key, 7);
    return text;
  }
};

Message hit(uint32_t key, uint32_t opaque) {
  return {kGet, opaque, "\0\0\0\0"s, "", Fixture::content(key)};
}
Message quiet_hit(uint32_t key, uint32_t opaque) {
  return {kGetKq, opaque, "\0\0\0\0"s, std::string(Keyspace(100, 8).key(key)), Fixture::content(key)};
}

}  // namespace

TEST_CASE("a batch is one write of well-formed requests, each with an opaque of its own") {
  Fixture f;
  f.get({1});
  f.get({2, 3});
  f.connection->add_set(4, 7, 1);
  CHECK(f.connection->flush() == Connection::Outcome::kDone);
  const auto request = [](Message message) {
    message.magic = 0x80;
    return message.bytes();
  };
  CHECK(f.sent() == request({kGet, 1, "", "k0000001"}) + request({kGetKq, 2, "", "k0000002"}) +
                        request({kGetKq, 3, "", "k0000003"}) + request({kNoop, 4}) +
                        request({kSet, 5, "\0\0\0\0\0\0\0\0"s, "k0000004", Fixture::content(4)}));
}

TEST_CASE("right answers are counted as such, wherever the stream is cut") {
  const std::string answers = hit(1, 1).bytes() + quiet_hit(3, 3).bytes() + Message{kNoop, 5}.bytes() +
                              Message{kSet, 6}.bytes() + Message{kGet, 7, "", "", "Not found", 1}.bytes();
  for (size_t cut = 1; cut < answers.size(); ++cut) {
    Fixture f;
    f.get({1});
    f.get({2, 3, 4});
    f.connection->add_set(5, 7, 1);
    f.get({6});
    f.answer(answers.substr(0, cut));
    CHECK_FALSE(f.connection->is_idle());
    f.answer(answers.substr(cut));
    CHECK(f.connection->is_idle());
    CHECK(f.tally.counters.hits == 2);
    CHECK(f.tally.counters.misses == 3);
    CHECK(f.tally.counters.stored == 1);
    CHECK(f.tally.counters.errors == 0);
    CHECK(f.tally.counters.requests == 4);
  }
}

TEST_CASE("opaques go on from batch to batch: an answer to the last one is not taken for this one's") {
  Fixture f;
  f.get({1});
  f.answer(hit(1, 1).bytes());
  f.connection->begin_batch();
  f.get({1});
  f.answer(hit(1, 1).bytes());
  CHECK(f.connection->is_lost());
  CHECK(f.tally.counters.errors == 1);
}

TEST_CASE("a wrong content is an error, and the stream stays in step") {
  Message flags = hit(1, 1);
  flags.extras = "\0\0\0\1"s;
  Message cut = hit(1, 1);
  cut.value.pop_back();
  Message key = hit(1, 1);
  key.key = "k0000001";  // GET's answer has none
  for (const Message& each : {hit(2, 1), flags, cut, key, Message{kGet, 1, "", "", "Out of memory", 0x82}}) {
    CAPTURE(each.bytes());
    Fixture f;
    f.get({1});
    f.get({9});
    f.answer(each.bytes() + hit(9, 2).bytes());
    CHECK(f.tally.counters.errors == 1);
    CHECK_FALSE(f.tally.first_error.empty());
    CHECK(f.connection->is_idle());
    CHECK_FALSE(f.connection->is_lost());
    CHECK(f.tally.counters.requests == 2);
  }
}

TEST_CASE("a quiet get's answer that names another key is an error") {
  Fixture f;
  f.get({1, 2});
  f.answer(quiet_hit(2, 1).bytes() + Message{kNoop, 3}.bytes());
  CHECK(f.tally.counters.errors == 1);
  CHECK(f.connection->is_idle());
}

TEST_CASE("an answer that is not the one that is due loses the connection and counts what was in flight") {
  Message huge = hit(1, 1);
  huge.value.resize(100'000);
  for (const std::string& each :
       {hit(1, 2).bytes(), Message{kSet, 1}.bytes(), Message{kNoop, 1}.bytes(), quiet_hit(1, 1).bytes(),
        huge.bytes().substr(0, 24), Message{kGet, 1, "", "", "", 0, 0x80}.bytes(), "END\r\n"s}) {
    CAPTURE(each);
    Fixture f;
    f.get({1});
    f.get({2});
    f.answer(each);
    CHECK(f.connection->is_lost());
    CHECK(f.connection->is_idle());
    CHECK(f.tally.counters.errors == 2);
  }
}

TEST_CASE("quiet hits out of order or twice lose the connection") {
  for (const std::string& each :
       {quiet_hit(2, 2).bytes() + quiet_hit(1, 1).bytes(), quiet_hit(1, 1).bytes() + quiet_hit(1, 1).bytes()}) {
    Fixture f;
    f.get({1, 2, 3});
    f.answer(each);
    CHECK(f.connection->is_lost());
    CHECK(f.tally.counters.hits == 1);
  }
}
