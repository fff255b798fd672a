// ItemClient against a scripted peer: it must detect every wrong answer.
#include "bench_cache/item_client.h"

#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "bench/keyspace.h"

using namespace egret;
using namespace egret::bench_cache;

namespace {

// Takes one connection, reads `asked_bytes`, answers with `answer`, by pieces of `piece` bytes, and hangs up.
class Peer {
 public:
  Peer(size_t asked_bytes, std::string answer, size_t piece)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    socklen_t size = sizeof any;
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size) == 0);
    address = bench::Address{"127.0.0.1", std::to_string(ntohs(any.sin_port)), ""};
    thread_ =
        std::thread([this, asked_bytes, answer = std::move(answer), piece] { serve(asked_bytes, answer, piece); });
  }
  ~Peer() { thread_.join(); }

  bench::Address address;
  std::string asked;  // once the client has its answers

 private:
  void serve(size_t asked_bytes, const std::string& answer, size_t piece) {
    const base::UniqueFd fd(::accept(listener_.get(), nullptr, nullptr));
    char buffer[65536];
    while (asked.size() < asked_bytes) {
      const ssize_t got = ::recv(fd.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return;
      asked.append(buffer, static_cast<size_t>(got));
    }
    for (size_t at = 0; at < answer.size(); at += piece) {
      if (::send(fd.get(), answer.data() + at, std::min(piece, answer.size() - at), MSG_NOSIGNAL) < 0) return;
    }
  }

  base::UniqueFd listener_;
  std::thread thread_;
};

std::string key_of(uint32_t number) {
  std::string key(kKeySize, '?');
  write_key(key.data(), number);
  return key;
}

std::string content(const Item& item) {
  std::string value(item.size, '?');
  bench::write_value(value.data(), value.size(), item.key, item.version);
  return value;
}

std::string value(const Item& item) {
  return "VALUE " + key_of(item.key) + " 0 " + std::to_string(item.size) + "\r\n" + content(item) + "\r\n";
}

const Item kFirst{.key = 1, .size = 32, .version = 3};
const Item kSecond{.key = 2, .size = 300, .version = 4};
const Item kThird{.key = 0xabcdef, .size = 17, .version = 5};

const std::string kAsked = "set k000000000000002 0 60 300\r\n" + content(kSecond) +
                           "\r\nget k000000000000001 k000000000000002 k000000000abcdef\r\n";

struct Exchange {
  base::Status status = base::Status::ok();
  Answers answers;
  std::string asked;
};

// A set of the second and a get of all three, answered with `answer`.
Exchange exchange(const std::string& answer, size_t piece = 1 << 20) {
  Exchange done;
  Peer peer(kAsked.size(), answer, piece);
  auto client = ItemClient::connect(peer.address);
  REQUIRE(client.is_ok());
  client.value().add_set(kSecond, 60);
  for (const Item& item : {kFirst, kSecond, kThird}) client.value().add_get(item);
  done.status = client.value().send();
  if (done.status) done.status = client.value().receive(done.answers);
  done.asked = peer.asked;
  return done;
}

bool fails_with(const Exchange& done, const char* what) {
  return !done.status && done.status.message().find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("sets are sent before the one get of all keys") {
  CHECK(exchange("STORED\r\nEND\r\n").asked == kAsked);
}

TEST_CASE("whole answers are counted, however they are cut") {
  const std::string answer = "STORED\r\n" + value(kFirst) + value(kSecond) + value(kThird) + "END\r\n";
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}, answer.size()}) {
    const Exchange done = exchange(answer, piece);
    CHECK(done.status.is_ok());
    CHECK(done.answers.stored == 1);
    CHECK(done.answers.hits == 3);
    CHECK(done.answers.wrong == 0);
    CHECK(done.answers.missed.empty());
  }
}

TEST_CASE("keys without a value are missed, wherever they stand") {
  CHECK(exchange("STORED\r\nEND\r\n").answers.missed == std::vector<uint32_t>{0, 1, 2});
  CHECK(exchange("STORED\r\n" + value(kSecond) + "END\r\n").answers.missed == std::vector<uint32_t>{0, 2});
  CHECK(exchange("STORED\r\n" + value(kFirst) + value(kThird) + "END\r\n").answers.missed == std::vector<uint32_t>{1});
}

TEST_CASE("a set that finds no memory is refused, and no error") {
  const Exchange done = exchange("SERVER_ERROR out of memory storing object\r\nEND\r\n");
  CHECK(done.status.is_ok());
  CHECK(done.answers.refused == 1);
  CHECK(done.answers.stored == 0);
}

TEST_CASE("another version, another key's value and any changed byte are wrong") {
  for (size_t at = 0; at < kFirst.size; ++at) {
    std::string changed = value(kFirst);
    changed[changed.size() - 3 - at] ^= 1;
    const Exchange done = exchange("STORED\r\n" + changed + value(kSecond) + "END\r\n");
    CHECK(done.status.is_ok());
    CHECK(done.answers.wrong == 1);
    CHECK_FALSE(done.answers.first_wrong.empty());
  }
  Item older = kSecond;
  --older.version;
  CHECK(exchange("STORED\r\n" + value(older) + "END\r\n").answers.wrong == 1);
}

TEST_CASE("what is out of step ends the connection") {
  CHECK(fails_with(exchange("STORED\r\n" + value(kSecond) + value(kFirst) + "END\r\n"), "not asked for"));
  CHECK(fails_with(exchange("STORED\r\n" + value({.key = 9, .size = 32, .version = 3}) + "END\r\n"), "not asked for"));
  CHECK(fails_with(exchange("STORED\r\n" + value({.key = 1, .size = 33, .version = 3}) + "END\r\n"), "of 32 bytes"));
  CHECK(fails_with(exchange("STORED\r\nEND\r\nEND\r\n"), "nobody asked for"));
  CHECK(fails_with(exchange("SERVER_ERROR backend unavailable\r\nEND\r\n"), "backend unavailable"));
  CHECK(fails_with(exchange("STORED\r\nSERVER_ERROR backend unavailable\r\n"), "backend unavailable"));
  CHECK(fails_with(exchange("STORED\r\n" + value(kFirst)), "closed the connection"));
  std::string no_end = value(kFirst);
  no_end[no_end.size() - 1] = '?';
  CHECK(fails_with(exchange("STORED\r\n" + no_end + "END\r\n"), "not followed by CRLF"));
}
