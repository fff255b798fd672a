// A Connection against a scripted server: the other end of a socket pair.
#include "bench/client/connection.h"

#include <array>
#include <string>

#include <doctest/doctest.h>
#include <sys/socket.h>

using namespace egret::bench;

namespace {

constexpr uint32_t kValueSize = 100;

struct Fixture {
  Keyspace keys{100, 8};
  Tally tally;
  egret::base::UniqueFd server;
  std::unique_ptr<Connection> connection;

  explicit Fixture(uint32_t value_size = kValueSize) {
    std::array<int, 2> fds{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
    server.reset(fds[0]);
    connection =
        make_connection(Protocol::kText, egret::base::UniqueFd(fds[1]), keys, BatchLimits{4, 3, value_size}, tally);
    tally.set_window(0, ~0ULL, false);
  }

  void get(std::initializer_list<uint32_t> numbers) { connection->add_get({numbers.begin(), numbers.size()}, 1); }

  void answer(const std::string& text) {
    REQUIRE(::send(server.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    (void)connection->receive();
  }

  std::string sent() {
    std::array<char, 4096> buffer{};
    const ssize_t got = ::recv(server.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return got > 0 ? std::string(buffer.data(), static_cast<size_t>(got)) : "";
  }

  std::string value(uint32_t key, uint64_t version = 1, uint32_t content_of = ~0U) const {
    std::string content(kValueSize, '?');
    write_value(content.data(), content.size(), content_of == ~0U ? key : content_of, version);
    return "VALUE " + std::string(keys.key(key)) + " 0 100\r\n" + content + "\r\n";
  }
};

}  // namespace

TEST_CASE("a batch is one write of well-formed requests") {
  Fixture f(3);
  f.connection->begin_batch();
  f.get({1, 2});
  f.connection->add_set(3, 1, 1);
  CHECK(f.connection->flush() == Connection::Outcome::kDone);
  CHECK(f.sent() == std::string("get k0000001 k0000002\r\nset k0000003 0 0 3\r\n\3\0\0\r\n", 48));
  CHECK_FALSE(f.connection->is_idle());
}

TEST_CASE("right answers are counted as such, wherever the stream is cut") {
  Fixture script;
  const std::string answers = script.value(1) + script.value(3) + "END\r\nSTORED\r\nEND\r\n";
  for (size_t cut = 1; cut < answers.size(); ++cut) {
    Fixture f;
    f.connection->begin_batch();
    f.get({1, 2, 3});
    f.connection->add_set(4, 1, 1);
    f.get({5});
    f.answer(answers.substr(0, cut));
    CHECK_FALSE(f.connection->is_idle());
    f.answer(answers.substr(cut));
    CHECK(f.connection->is_idle());
    CHECK(f.tally.counters.hits == 2);
    CHECK(f.tally.counters.misses == 2);
    CHECK(f.tally.counters.stored == 1);
    CHECK(f.tally.counters.errors == 0);
    CHECK(f.tally.counters.requests == 3);
    CHECK(f.tally.latency.count() == 3);
  }
}

TEST_CASE("every kind of wrong answer is an error, and the stream stays in step") {
  const Fixture script;
  std::string torn = script.value(1);
  const std::string newer = script.value(1, 2);
  torn.replace(torn.size() - 40, 38, newer, newer.size() - 40, 38);
  const std::array<std::string, 7> wrong{
      script.value(1, 1, 2) + "END\r\n",                            // another key's content under the right key
      torn + "END\r\n",                                             // half of another version
      script.value(2) + "END\r\n",                                  // a key that was not asked for
      script.value(1) + script.value(1) + "END\r\n",                // twice
      "VALUE k0000001 0 5\r\nabcde\r\nEND\r\n",                     // wrong length
      "VALUE k0000001 7" + script.value(1).substr(16) + "END\r\n",  // wrong flags
      "SERVER_ERROR no backend\r\n",
  };
  for (const std::string& each : wrong) {
    CAPTURE(each);
    Fixture f;
    f.connection->begin_batch();
    f.get({1});
    f.get({9});
    f.answer(each + f.value(9) + "END\r\n");
    CHECK(f.tally.counters.errors == 1);
    CHECK_FALSE(f.tally.first_error.empty());
    CHECK(f.connection->is_idle());
    CHECK_FALSE(f.connection->is_lost());
    CHECK(f.tally.counters.requests == 2);
  }
}

TEST_CASE("an answer that cannot be understood, or to nothing, loses the connection and counts what was in flight") {
  for (const std::string& each : {std::string("HELLO\r\n"), std::string("VALUE k0000001 0 x\r\n"),
                                  std::string(3000, 'x'), std::string("VALUE k0000001 0 99999999\r\n")}) {
    Fixture f;
    f.connection->begin_batch();
    f.get({1});
    f.get({2});
    f.answer(each);
    CHECK(f.connection->is_lost());
    CHECK(f.connection->is_idle());
    CHECK(f.tally.counters.errors == 2);
  }
  Fixture idle;
  idle.connection->begin_batch();
  idle.answer("STORED\r\n");
  CHECK(idle.connection->is_lost());
  CHECK(idle.tally.counters.errors == 1);
}

TEST_CASE("a closed connection is an error") {
  Fixture f;
  f.connection->begin_batch();
  f.get({1});
  f.server.reset();
  CHECK(f.connection->receive() == Connection::Outcome::kLost);
  CHECK(f.tally.counters.errors == 1);
}
