// The output of a client: all bytes are sent, in order, however many the socket takes at a time.
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

// An output queue with its connection's memory.
struct Output {
  explicit Output(BlockPool& pool) : queue(pool, memory) {}
  MemoryCounters counters;
  WorkerMemory worker{counters};
  ConnectionMemory memory{worker};
  OutputQueue queue;
};

void lend(OutputQueue& queue, std::string_view text) {
  queue.lend({&text, 1}, {});
}

std::string counted(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 7 % 26);
  return text;
}

}  // namespace

TEST_CASE("small answers and lent bytes leave in the order they came in") {
  BlockPool pool(OutputQueue::kBlockSize);
  Output output(pool);
  OutputQueue& queue = output.queue;
  const Sockets sockets;
  CHECK(queue.empty());
  CHECK(queue.send(*sockets.server) == Io::kDone);
  queue.append("one ");
  char* room = queue.reserve(100);
  std::memcpy(room, "two ", 4);
  queue.commit(4);
  lend(queue, "three ");
  queue.append("four");
  CHECK(queue.size() == 18);
  CHECK(queue.send(*sockets.server) == Io::kDone);
  CHECK(queue.empty());
  CHECK(sockets.received() == "one two three four");
}

TEST_CASE("lent bytes are sent from where they are, and kept where they were not sent") {
  BlockPool pool(OutputQueue::kBlockSize);
  Output output(pool);
  OutputQueue& queue = output.queue;
  const Sockets sockets;
  const std::string text = counted(1'000'000);
  std::string lent = text;
  queue.append("head ");
  lend(queue, lent);
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
  Output output(pool);
  OutputQueue& queue = output.queue;
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
  Output output(pool);
  OutputQueue& queue = output.queue;
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
  Output output(pool);
  OutputQueue& queue = output.queue;
  const Sockets sockets;
  std::mt19937 random(4);
  std::string expected;
  std::string received;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = counted(random() % (i % 50 == 0 ? 100'000 : 300));
    if (i % 7 == 0 && !text.empty()) {
      lend(queue, text);
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
  Output output(pool);
  OutputQueue& queue = output.queue;
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
    Output abandoned(shared);
    abandoned.queue.append(counted(100'000));
  }
  Output output(shared);
  OutputQueue& queue = output.queue;
  queue.append("x");
  CHECK(queue.send(*sockets.server) == Io::kDone);
  CHECK(sockets.received() == "x");
}

TEST_CASE("what waits to be sent is charged to the connection, and nothing when it was sent") {
  BlockPool pool(OutputQueue::kBlockSize);
  Output output(pool);
  OutputQueue& queue = output.queue;
  const Sockets sockets;
  CHECK(output.memory.used() == 0);
  queue.append("x");
  CHECK(output.memory.used() == OutputQueue::kBlockSize);
  CHECK(queue.send(*sockets.server) == Io::kDone);
  CHECK(output.memory.used() == 0);
  CHECK(sockets.received() == "x");
  const std::string text = counted(1'000'000);
  lend(queue, text);
  CHECK(output.memory.used() == text.size());
  CHECK(queue.send(*sockets.server) == Io::kWantWrite);
  queue.keep_lent();
  CHECK(output.memory.used() == text.size());
  CHECK(output.worker.used == text.size());
  output.worker.show();
  CHECK(output.counters.used.get() == text.size());
  std::string received;
  while (queue.send(*sockets.server) == Io::kWantWrite) received += sockets.received();
  CHECK((received + sockets.received() == text));
  CHECK(output.memory.used() == 0);
  CHECK(output.worker.used == 0);
}

TEST_CASE("a large value is its connection's one until the last of it is sent, and is charged elsewhere") {
  BlockPool pool(OutputQueue::kBlockSize);
  Output output(pool);
  OutputQueue& queue = output.queue;
  const Sockets sockets;
  const std::string text = counted(1'000'000);
  auto memory = std::make_unique_for_overwrite<char[]>(text.size());
  std::memcpy(memory.get(), text.data(), text.size());
  const std::string_view value(memory.get(), text.size());
  queue.lend({&value, 1}, {.memory = std::move(memory), .is_large = true});
  CHECK(queue.has_large());
  std::string received;
  while (queue.send(*sockets.server) == Io::kWantWrite) {
    queue.keep_lent();
    CHECK(queue.has_large());
    received += sockets.received();
  }
  CHECK_FALSE(queue.has_large());
  CHECK(output.memory.used() == 0);
  CHECK((received + sockets.received() == text));
}

TEST_CASE("a connection at its limit reads no command; one that holds nothing always may") {
  MemoryCounters counters;
  WorkerMemory worker{counters};
  worker.connection_limit = 100;
  worker.limit = 150;
  ConnectionMemory first(worker);
  ConnectionMemory second(worker);
  first.charge(99);
  CHECK(first.may_take_command());
  CHECK(first.may_keep(1));
  CHECK_FALSE(first.may_keep(2));
  first.charge(1);
  CHECK_FALSE(first.may_take_command());
  CHECK(counters.connection_waits.get() == 1);
  second.charge(50);
  CHECK_FALSE(second.may_take_command());  // all of them together
  CHECK(counters.client_waits.get() == 1);
  second.refund(50);
  first.charge(1000);
  CHECK(second.may_take_command());
  first.refund(1100);
  CHECK(worker.used == 0);
}
