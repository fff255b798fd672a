// Bytes on their way to a client: all of them, in order, however the socket takes them.
#include <csignal>
#include <cstring>
#include <memory>
#include <random>
#include <string>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "proxy/client/output_queue.h"

using namespace egret::proxy;
using egret::base::UniqueFd;

namespace {

struct Sockets {
  Sockets() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    server = std::make_unique<PlainSocket>(UniqueFd(fds[0]));
    client.reset(fds[1]);
  }
  std::string received() const {
    std::string all;
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(client.get(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<size_t>(got));
    return all;
  }
  std::unique_ptr<PlainSocket> server;
  UniqueFd client;
};

std::string counted(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 7 % 26);
  return text;
}

}  // namespace

TEST_CASE("small answers and lent bytes leave in the order they came in") {
  BlockPool pool(OutputQueue::kBlockSize);
  OutputQueue queue(pool);
  const Sockets sockets;
  CHECK(queue.empty());
  CHECK(queue.send(*sockets.server) == Io::kDone);
  queue.append("one ");
  char* room = queue.reserve(100);
  std::memcpy(room, "two ", 4);
  queue.commit(4);
  queue.lend("three ");
  queue.append("four");
  CHECK(queue.size() == 18);
  CHECK(queue.send(*sockets.server) == Io::kDone);
  CHECK(queue.empty());
  CHECK(sockets.received() == "one two three four");
}

TEST_CASE("lent bytes are sent from where they are, and kept where they were not sent") {
  BlockPool pool(OutputQueue::kBlockSize);
  OutputQueue queue(pool);
  const Sockets sockets;
  const std::string text = counted(1'000'000);
  std::string lent = text;
  queue.append("head ");
  queue.lend(lent);
  queue.append(" tail");
  lent.front() = 'A';  // still the lender's
  CHECK(queue.send(*sockets.server) == Io::kWantWrite);
  std::string received = sockets.received();
  CHECK(received.size() > 5);
  CHECK(received.size() < lent.size());
  CHECK(received.starts_with("head A"));
  queue.keep_lent();
  lent.assign(lent.size(), '!');
  while (queue.send(*sockets.server) == Io::kWantWrite) received += sockets.received();
  received += sockets.received();
  CHECK(received == "head A" + text.substr(1) + " tail");
}

TEST_CASE("what is reserved but not committed is not sent") {
  BlockPool pool(OutputQueue::kBlockSize);
  OutputQueue queue(pool);
  const Sockets sockets;
  queue.reserve(OutputQueue::kBlockSize);
  queue.commit(0);
  CHECK(queue.empty());
  CHECK(queue.send(*sockets.server) == Io::kDone);
  queue.append("x");
  queue.reserve(OutputQueue::kBlockSize);  // does not fit behind: a new block
  queue.commit(0);
  queue.append("y");
  CHECK(queue.send(*sockets.server) == Io::kDone);
  CHECK(sockets.received() == "xy");
}

TEST_CASE("an answer longer than a block is spread over blocks") {
  BlockPool pool(OutputQueue::kBlockSize);
  OutputQueue queue(pool);
  const Sockets sockets;
  const std::string text = counted(3 * OutputQueue::kBlockSize + 5);
  queue.append(text);
  CHECK(queue.size() == text.size());
  std::string received;
  while (queue.send(*sockets.server) == Io::kWantWrite) received += sockets.received();
  CHECK(received + sockets.received() == text);
}

TEST_CASE("a client that reads late gets everything, in whatever pieces the socket takes it") {
  BlockPool pool(OutputQueue::kBlockSize);
  OutputQueue queue(pool);
  const Sockets sockets;
  std::mt19937 random(4);
  std::string expected;
  std::string received;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = counted(random() % (i % 50 == 0 ? 100'000 : 300));
    if (i % 7 == 0 && !text.empty()) {
      queue.lend(text);
    } else {
      queue.append(text);
    }
    expected += text;
    if (random() % 3 == 0) CHECK(queue.send(*sockets.server) != Io::kFailed);
    queue.keep_lent();  // `text` goes
    if (random() % 10 == 0) received += sockets.received();
    CHECK(queue.size() <= expected.size() - received.size());
  }
  while (queue.send(*sockets.server) == Io::kWantWrite) received += sockets.received();
  received += sockets.received();
  CHECK(queue.empty());
  CHECK((received == expected));
}

TEST_CASE("a client that is gone makes sending fail, once nothing can be sent any more") {
  BlockPool pool(OutputQueue::kBlockSize);
  OutputQueue queue(pool);
  Sockets sockets;
  ::signal(SIGPIPE, SIG_IGN);
  sockets.client.reset();
  queue.append("text");
  CHECK(queue.send(*sockets.server) == Io::kFailed);
  CHECK(queue.size() == 4);
}

TEST_CASE("blocks go back to the pool, which keeps a limited number") {
  BlockPool pool(128);
  CHECK(pool.block_size() == 128);
  auto block = pool.take();
  char* const address = block.get();
  pool.give(std::move(block));
  CHECK(pool.take().get() == address);
  BlockPool shared(OutputQueue::kBlockSize);
  const Sockets sockets;
  {
    OutputQueue abandoned(shared);
    abandoned.append(counted(100'000));
  }
  OutputQueue queue(shared);
  queue.append("x");
  CHECK(queue.send(*sockets.server) == Io::kDone);
  CHECK(sockets.received() == "x");
}
