// egret.h with real backends: calls, queues, event loops; and what becomes of ops when processes fork, stop or die.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_process.h"
#include "children.h"
#include "session.h"

namespace {

constexpr int kForEver = -1;

// One backend, and a client that is connected with it.
struct Served {
  explicit Served(Options more = {}, std::vector<std::string> of_backend = {}) : backend(std::move(of_backend)) {
    more.emplace_back("backends", backend.address());
    more.emplace_back("reconnect_max", "50ms");
    pool = open_pool(more);
    client = new_client(pool);
    connect(client.get());
  }
  BackendProcess backend;
  Pool pool;
  Client client;
};

egret_result execute(egret_client* client, const egret_op& op) {
  egret_result result = empty_result();
  egret_execute(client, &op, 1, &result);
  return result;
}

}  // namespace

TEST_CASE("every call does what memcached's command of its name does") {
  Served served;
  egret_client* const c = served.client.get();
  CHECK(get(c, "k") == "(miss)");
  CHECK(set(c, "k", "hello") == EGRET_STORED);
  CHECK(get(c, "k") == "hello");
  CHECK(egret_store(c, EGRET_MODE_ADD, "k", 1, "x", 1, 0, 0, 0, nullptr) == EGRET_NOT_STORED);
  CHECK(egret_store(c, EGRET_MODE_APPEND, "k", 1, "!", 1, 0, 0, 0, nullptr) == EGRET_STORED);
  CHECK(egret_store(c, EGRET_MODE_PREPEND, "k", 1, ">", 1, 0, 0, 0, nullptr) == EGRET_STORED);
  CHECK(get(c, "k") == ">hello!");
  char room[4] = {};
  size_t length = 0;
  CHECK(egret_get_into(c, "k", 1, room, sizeof room, &length) == EGRET_HIT);
  CHECK(length == 7);
  CHECK(std::string(room, 4) == ">hel");
  egret_result stored = empty_result();
  CHECK(egret_store(c, EGRET_MODE_SET, "k", 1, "v", 1, 0, 42, 0, &stored) == EGRET_STORED);
  egret_result found = empty_result();
  CHECK(egret_get(c, "k", 1, &found) == EGRET_HIT);
  CHECK(found.client_flags == 42);
  CHECK(found.cas == stored.cas);
  CHECK(egret_release(&found) == EGRET_OK);
  CHECK(found.view == nullptr);
  CHECK(egret_store(c, EGRET_MODE_SET, "k", 1, "w", 1, 0, 0, stored.cas + 1, nullptr) == EGRET_EXISTS);
  CHECK(egret_store(c, EGRET_MODE_SET, "k", 1, "w", 1, 0, 0, stored.cas, nullptr) == EGRET_STORED);
  CHECK(egret_touch(c, "k", 1, 100) == EGRET_HIT);
  CHECK(egret_touch(c, "none", 4, 100) == EGRET_MISS);
  CHECK(egret_gat(c, "k", 1, -1, &found) == EGRET_HIT);
  CHECK(value_of(found) == "w");
  egret_release(&found);
  CHECK(get(c, "k") == "(miss)");
  uint64_t now = 0;
  CHECK(incr(c, "n", now) == EGRET_MISS);
  CHECK(set(c, "n", "9") == EGRET_STORED);
  CHECK(incr(c, "n", now, 5) == EGRET_NUMBER);
  CHECK(now == 14);
  CHECK(egret_decr(c, "n", 1, 20, &now) == EGRET_NUMBER);
  CHECK(now == 0);
  CHECK(set(c, "n", "nine") == EGRET_STORED);
  CHECK(incr(c, "n", now) == EGRET_NON_NUMERIC);
  CHECK(egret_delete(c, "n", 1, 1) == EGRET_EXISTS);
  CHECK(del(c, "n") == EGRET_DELETED);
  CHECK(del(c, "n") == EGRET_MISS);
  CHECK(set(c, "k", "") == EGRET_STORED);
  CHECK(get(c, "k").empty());
  CHECK(egret_flush_all(c, 0) == EGRET_OK);
  CHECK(get(c, "k") == "(miss)");
}

TEST_CASE("meta: recache, stale items, what an item tells of itself") {
  Served served;
  egret_client* const c = served.client.get();
  egret_op vivify = op_of(EGRET_GET, "k");
  vivify.flags = EGRET_F_VIVIFY | EGRET_F_WANT_META;
  vivify.vivify_exptime = 30;
  const egret_result first = execute(c, vivify);
  CHECK(first.code == EGRET_HIT);
  CHECK((first.marks & EGRET_MARK_CREATED) != 0);
  CHECK((first.marks & EGRET_MARK_WON) != 0);
  CHECK((execute(c, vivify).marks & EGRET_MARK_TOKEN_SENT) != 0);
  CHECK(set(c, "k", "v", 100) == EGRET_STORED);
  egret_op stale = op_of(EGRET_DELETE, "k");
  stale.flags = EGRET_F_INVALIDATE | EGRET_F_TOUCH;
  stale.exptime = 30;
  CHECK(execute(c, stale).code == EGRET_DELETED);
  egret_op look = op_of(EGRET_GET, "k");
  look.flags = EGRET_F_WANT_META;
  egret_result found = execute(c, look);
  CHECK(found.code == EGRET_HIT);
  CHECK((found.marks & EGRET_MARK_STALE) != 0);
  CHECK((found.marks & EGRET_MARK_WON) != 0);
  CHECK(found.ttl <= 30);
  CHECK(value_of(found) == "v");
  egret_release(&found);
  egret_op ping = op_of(EGRET_PING, {});
  CHECK(execute(c, ping).code == EGRET_OK);
}

TEST_CASE("values that fit no slot are whole, and those that no item may be are refused") {
  Served served;
  egret_client* const c = served.client.get();
  for (const size_t length : {1u, 1500u, 4000u, 5000u, 17'000u, 100'000u, 1'000'000u}) {
    const std::string value = patterned(length);
    CHECK(set(c, "large", value) == EGRET_STORED);
    CHECK((get(c, "large") == value));
    std::string into(length, '\0');
    size_t told = 0;
    CHECK(egret_get_into(c, "large", 5, into.data(), into.size(), &told) == EGRET_HIT);
    CHECK(told == length);
    CHECK((into == value));
  }
  CHECK(set(c, "large", std::string(2 << 20, 'x')) == EGRET_TOO_LARGE);
  CHECK(get(c, "large") == "(miss)");
  // Pipelined, on one key: the order of submission is the order of execution.
  const std::string one = patterned(200'000), two = std::string(150'000, '2');
  egret_op ops[] = {set_of("o", one, 1),      op_of(EGRET_GET, "o", 2),    set_of("o", two, 3),
                    op_of(EGRET_GET, "o", 4), op_of(EGRET_DELETE, "o", 5), op_of(EGRET_GET, "o", 6)};
  for (int repeated = 0; repeated < 30; ++repeated) {
    egret_result results[6];
    for (egret_result& result : results) result = empty_result();
    CHECK(egret_execute(c, ops, 6, results) == EGRET_OK);
    CHECK((value_of(results[1]) == one));
    CHECK((value_of(results[3]) == two));
    CHECK(results[5].code == EGRET_MISS);
    for (egret_result& result : results) egret_release(&result);
  }
}

TEST_CASE("over TCP the same: values of any length, ops in order, a backend that is killed and comes back") {
  BackendProcess backend({}, BackendProcess::Over::kNetwork);
  const Pool pool = open_pool({{"backends", backend.address()}, {"reconnect_max", "50ms"}});
  const Client client = new_client(pool);
  egret_client* const c = client.get();
  for (int round = 0; round < 2; ++round) {
    connect(c);
    for (const size_t length : {0u, 100u, 5000u, 300'000u}) {
      const std::string value = patterned(length);
      CHECK(set(c, "k", value) == EGRET_STORED);
      CHECK(get(c, "k") == value);
    }
    CHECK(set(c, "n", "0") == EGRET_STORED);
    std::vector<egret_op> ops(300, op_of(EGRET_ARITH, "n"));
    std::vector<egret_result> results(ops.size(), empty_result());
    for (egret_op& op : ops) op.delta = 1;
    CHECK(egret_execute(c, ops.data(), ops.size(), results.data()) == EGRET_OK);
    for (size_t i = 0; i < ops.size(); ++i) CHECK(results[i].number == i + 1);
    backend.end(SIGKILL);
    int code = set(c, "k", "v");
    for (int attempt = 0; attempt < 100 && code == EGRET_E_UNKNOWN; ++attempt) code = set(c, "k", "v");
    CHECK(code == EGRET_E_UNAVAILABLE);
    backend.start();
  }
}

TEST_CASE("a get that leaves the value out says how long it is") {
  Served served;
  egret_client* const c = served.client.get();
  for (const size_t length : {0u, 5u, 300'000u}) {
    CHECK(set(c, "k", std::string(length, 'x')) == EGRET_STORED);
    egret_op op = op_of(EGRET_GET, "k");
    op.flags = EGRET_F_NO_VALUE;
    const egret_result result = execute(c, op);
    CHECK(result.code == EGRET_HIT);
    CHECK(result.value_length == 0);
    CHECK(result.number == length);
  }
}

TEST_CASE("a large value beyond large_value_memory fails alone") {
  Served served(Options{{"large_value_memory", "1MiB"}}, {"item_size_max=4MiB"});
  egret_client* const c = served.client.get();
  CHECK(set(c, "large", std::string(2 << 20, 'x')) == EGRET_E_MEMORY);
  CHECK(set(c, "small", "v") == EGRET_STORED);
  CHECK(get(c, "small") == "v");
}

TEST_CASE("a multiget over several backends answers each key, from where placement puts it") {
  BackendProcess one, two, three;
  const Pool pool = open_pool({{"backends", one.address() + " name=a"}});
  const Pool all = [&] {
    char name[] = "/tmp/egret-client-pool-XXXXXX";
    const int fd = ::mkstemp(name);
    const std::string text =
        "backends: [" + one.address() + " name=a, " + two.address() + " name=b, " + three.address() + " name=c]\n";
    REQUIRE(::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(fd);
    egret_options* const options = egret_options_new();
    REQUIRE(egret_options_load(options, name) == EGRET_OK);
    ::unlink(name);
    egret_pool* made = nullptr;
    REQUIRE(egret_pool_open(options, &made) == EGRET_OK);
    egret_options_free(options);
    return Pool(made);
  }();
  const Client client = new_client(all);
  connect(client.get());
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back("key" + std::to_string(i));
  std::set<int> used;
  for (size_t i = 0; i < keys.size(); ++i) {
    used.insert(egret_pool_server_of(all.get(), keys[i].data(), keys[i].size()));
    if (i % 3 != 0) CHECK(set(client.get(), keys[i], "value of " + keys[i]) == EGRET_STORED);
  }
  CHECK(used == std::set<int>{0, 1, 2});
  std::vector<const char*> pointers;
  std::vector<size_t> lengths;
  std::vector<egret_result> results(keys.size(), empty_result());
  for (const std::string& key : keys) {
    pointers.push_back(key.data());
    lengths.push_back(key.size());
  }
  CHECK(egret_mget(client.get(), pointers.data(), lengths.data(), keys.size(), results.data()) == 200);
  for (size_t i = 0; i < keys.size(); ++i) {
    CHECK(results[i].code == (i % 3 != 0 ? EGRET_HIT : EGRET_MISS));
    if (i % 3 != 0) CHECK(value_of(results[i]) == "value of " + keys[i]);
    egret_release(&results[i]);
  }
  // What server_of says is where the item is.
  const Client alone = new_client(pool);
  connect(alone.get());
  for (size_t i = 1; i < 30; i += 3) {
    const bool is_first = egret_pool_server_of(all.get(), keys[i].data(), keys[i].size()) == 0;
    CHECK((get(alone.get(), keys[i]) != "(miss)") == is_first);
  }
}

TEST_CASE(
    "a backend of this host begins with a multiget before all of it is sent; over a network it is as few messages as "
    "can be") {
  const auto messages_of_fifty_keys = [](BackendProcess::Over over) {
    const BackendProcess backend({"partitions=1"}, over);
    const Pool pool = open_pool({{"backends", backend.address()}, {"idle_window", "0"}});
    const Client client = new_client(pool);
    connect(client.get());
    std::vector<std::string> keys;
    for (int i = 0; i < 50; ++i) keys.push_back("key:" + std::to_string(i));
    std::vector<const char*> at;
    std::vector<size_t> lengths;
    for (const std::string& key : keys) {
      CHECK(set(client.get(), key, "v" + key) == EGRET_STORED);
      at.push_back(key.data());
      lengths.push_back(key.size());
    }
    std::vector<egret_result> results(keys.size(), empty_result());
    const int64_t before = counter(client.get(), "messages");
    CHECK(egret_mget(client.get(), at.data(), lengths.data(), keys.size(), results.data()) == 50);
    for (size_t i = 0; i < keys.size(); ++i) {
      CHECK(value_of(results[i]) == "v" + keys[i]);
      egret_release(&results[i]);
    }
    return counter(client.get(), "messages") - before;
  };
  if (std::getenv("EGRET_TEST_HOST") == nullptr) CHECK(messages_of_fifty_keys(BackendProcess::Over::kHost) == 3);
  CHECK(messages_of_fifty_keys(BackendProcess::Over::kNetwork) == 1);
}

TEST_CASE("thousands under way: each is answered once, those of one key in their order") {
  Served served(Options{{"max_pending", "500"}});
  egret_client* const c = served.client.get();
  CHECK(set(c, "n", "0") == EGRET_STORED);
  constexpr uint64_t kOps = 20'000;
  std::vector<egret_result> results(64, empty_result());
  std::vector<bool> seen(kOps);
  uint64_t sent = 0, done = 0, last = 0;
  while (done < kOps) {
    while (sent < kOps) {
      egret_op op = op_of(EGRET_ARITH, "n", sent);
      op.delta = 1;
      const int taken = egret_submit(c, &op, 1);
      if (taken == EGRET_E_AGAIN) break;
      REQUIRE(taken == 1);
      ++sent;
    }
    const int count = egret_wait(c, results.data(), results.size(), 1, kForEver);
    REQUIRE(count > 0);
    for (int i = 0; i < count; ++i) {
      const egret_result& result = results[static_cast<size_t>(i)];
      REQUIRE(result.code == EGRET_NUMBER);
      REQUIRE(!seen.at(result.tag));
      REQUIRE(result.number == last + 1);
      REQUIRE(result.tag == last);
      seen[result.tag] = true;
      last = result.number;
      ++done;
    }
  }
  CHECK(egret_pending(c) == 0);
  CHECK(egret_reap(c, results.data(), results.size()) == 0);
}

TEST_CASE("results for which a call has no room wait for the next one, and come before later ones") {
  Served served;
  egret_client* const c = served.client.get();
  CHECK(set(c, "k", "v") == EGRET_STORED);
  std::vector<egret_op> ops;
  for (uint64_t tag = 0; tag < 40; ++tag) ops.push_back(op_of(EGRET_GET, "k", tag));
  REQUIRE(egret_submit(c, ops.data(), ops.size()) == 40);
  std::vector<egret_result> results(7, empty_result());
  uint64_t next = 0;
  const auto take = [&](int count) {
    REQUIRE(count <= 7);
    for (int i = 0; i < count; ++i) {
      egret_result& result = results[static_cast<size_t>(i)];
      CHECK(result.size == sizeof(egret_result));
      CHECK(result.tag == next++);
      CHECK(value_of(result) == "v");
      CHECK(egret_release(&result) == EGRET_OK);
    }
  };
  CHECK(egret_wait(c, nullptr, 0, 40, kForEver) == 0);
  CHECK(egret_pending(c) == 40);
  while (next < 14) take(egret_reap(c, results.data(), results.size()));
  REQUIRE(egret_submit(c, ops.data(), 3) == 3);  // behind those that wait
  while (next < 40) take(egret_wait(c, results.data(), std::min<size_t>(7, 40 - next), 7, kForEver));
  next = 0;
  while (next < 3) take(egret_wait(c, results.data(), 7, 3, kForEver));
  CHECK(egret_pending(c) == 0);
}

TEST_CASE("an array of longer results than ours: each is written whole, and the rest of it is 0") {
  Served served;
  egret_client* const c = served.client.get();
  struct Longer {
    egret_result result;
    uint64_t further[2];
  };
  std::array<Longer, 3> longer;
  // Of one key, so that results come in the order of their ops.
  const egret_op ops[] = {op_of(EGRET_GET, "k", 1), op_of(EGRET_GET, "k", 2), op_of(EGRET_GET, "k", 3)};
  const auto begin = [&] {
    CHECK(set(c, "k", "v") == EGRET_STORED);
    std::memset(longer.data(), 0xff, sizeof longer);
    longer[0].result.size = sizeof(Longer);
  };
  const auto check = [&] {
    for (size_t i = 0; i < longer.size(); ++i) {
      CHECK(longer[i].result.size == sizeof(Longer));
      CHECK(longer[i].result.tag == i + 1);
      CHECK(longer[i].result.code == EGRET_HIT);
      CHECK(longer[i].further[0] == 0);
      CHECK(longer[i].further[1] == 0);
      CHECK(egret_release(&longer[i].result) == EGRET_OK);
    }
  };
  begin();
  CHECK(egret_execute(c, ops, 3, &longer[0].result) == EGRET_OK);
  check();
  begin();
  REQUIRE(egret_submit(c, ops, 3) == 3);
  CHECK(egret_wait(c, &longer[0].result, 3, 3, kForEver) == 3);
  check();
}

TEST_CASE("a flush sends, also to a backend that sleeps") {
  Served served;
  egret_client* const c = served.client.get();
  const Client other = new_client(served.pool);
  connect(other.get());
  const egret_op op = set_of("k", "v", 1);
  REQUIRE(egret_submit(c, &op, 1) == 1);
  CHECK(egret_flush(c) == EGRET_OK);
  while (get(other.get(), "k") != "v") {
  }
  egret_result result = empty_result();
  CHECK(egret_wait(c, &result, 1, 1, kForEver) == 1);
}

TEST_CASE("of many ops the first ones are sent at once, of few none") {
  Served served;
  egret_client* const c = served.client.get();
  const Client other = new_client(served.pool);
  connect(other.get());
  std::vector<egret_op> ops;
  for (uint64_t tag = 0; tag < 32; ++tag) ops.push_back(set_of(tag == 0 ? "first" : "k", "v", tag));
  std::vector<egret_result> results(32, empty_result());
  REQUIRE(egret_submit(c, ops.data(), 8) == 8);
  CHECK(get(other.get(), "first") != "v");
  REQUIRE(egret_wait(c, results.data(), 8, 8, kForEver) == 8);
  ops[0] = set_of("first", "again");
  REQUIRE(egret_submit(c, ops.data(), 32) == 32);
  while (get(other.get(), "first") != "again") {
  }
  CHECK(egret_wait(c, results.data(), 32, 32, kForEver) == 32);
}

TEST_CASE("an event loop sleeps in poll and is woken for every result") {
  Served served;
  egret_client* const c = served.client.get();
  struct Seen {
    egret_client* client;
    int hits = 0, begun = 0;
    bool is_refused = true;
  } seen{.client = c};
  CHECK(set(c, "k", "v") == EGRET_STORED);
  egret_on_result(
      c,
      [](void* user, egret_result* result) {
        auto& its = *static_cast<Seen*>(user);
        its.hits += result->code == EGRET_HIT && value_of(*result) == "v" ? 1 : 0;
        // A callback may go on with its client.
        if (its.begun < 200) {
          ++its.begun;
          const egret_op next = op_of(EGRET_GET, "k");
          CHECK(egret_submit(its.client, &next, 1) == 1);
        }
      },
      &seen);
  const egret_op op = op_of(EGRET_GET, "k");
  seen.begun = 1;
  REQUIRE(egret_submit(c, &op, 1) == 1);
  while (seen.hits < 200) {
    egret_flush(c);
    if (egret_arm(c) == 0) {
      pollfd ready{egret_fd(c), POLLIN, 0};
      ::poll(&ready, 1, -1);
    }
    REQUIRE(egret_progress(c) >= 0);
  }
  egret_on_result(c, nullptr, nullptr);
  CHECK(egret_pending(c) == 0);
}

TEST_CASE("a forgotten op's result does not come, those of others do") {
  Served served;
  egret_client* const c = served.client.get();
  const egret_op ops[] = {set_of("a", "1", 1), set_of("b", "2", 2), set_of("c", "3", 2), set_of("d", "4", 4)};
  REQUIRE(egret_submit(c, ops, 4) == 4);
  CHECK(egret_forget(c, 2) == 2);
  CHECK(egret_pending(c) == 2);
  egret_result results[4];
  for (egret_result& result : results) result = empty_result();
  CHECK(egret_wait(c, results, 4, 4, kForEver) == 2);
  CHECK(results[0].tag != 2);
  CHECK(results[1].tag != 2);
  CHECK(get(c, "b") == "2");
}

TEST_CASE("a wait ends when its time is over, and the op's result comes later") {
  Served served;
  egret_client* const c = served.client.get();
  served.backend.halt();
  const egret_op op = op_of(EGRET_GET, "k", 5);
  REQUIRE(egret_submit(c, &op, 1) == 1);
  egret_result result = empty_result();
  CHECK(egret_wait(c, &result, 1, 1, 1'000'000) == 0);
  CHECK(egret_pending(c) == 1);
  served.backend.signal(SIGCONT);
  CHECK(egret_wait(c, &result, 1, 1, kForEver) == 1);
  CHECK(result.tag == 5);
  CHECK(result.code == EGRET_MISS);
}

TEST_CASE("bytes of results outlive their client, until they are released") {
  Served served;
  CHECK(set(served.client.get(), "k", "kept") == EGRET_STORED);
  egret_result result = empty_result();
  CHECK(egret_get(served.client.get(), "k", 1, &result) == EGRET_HIT);
  std::thread([&] { CHECK(egret_release(&result) == EGRET_E_THREAD); }).join();
  served.client.reset();
  CHECK(value_of(result) == "kept");
  CHECK(egret_release(&result) == EGRET_OK);
}

TEST_CASE("a backend that stands still: the op is unknown, and afterwards everything goes on") {
  Served served(Options{{"op_timeout", "50ms"}});
  egret_client* const c = served.client.get();
  CHECK(set(c, "n", "0") == EGRET_STORED);
  served.backend.halt();
  uint64_t now = 0;
  CHECK(incr(c, "n", now) == EGRET_E_UNKNOWN);
  served.backend.signal(SIGCONT);
  connect(c);
  std::string found;
  for (int attempt = 0; attempt < 1000 && found.size() != 1; ++attempt) {
    found = get(c, "n");
    if (found.size() != 1) ::usleep(10'000);
  }
  CHECK((found == "0" || found == "1"));  // once, or not at all
}

TEST_CASE(
    "a batch of thousands ends while its backend answers nothing, and does not wait for a session until that is given "
    "up") {
  Served served(Options{{"op_timeout", "50ms"}});
  egret_client* const c = served.client.get();
  constexpr size_t kCount = 2000;
  std::vector<std::string> keys;
  for (size_t i = 0; i < kCount; ++i) keys.push_back("key" + std::to_string(i));
  std::vector<const char*> texts;
  std::vector<size_t> lengths;
  std::vector<egret_op> ops;
  for (const std::string& key : keys) {
    texts.push_back(key.data());
    lengths.push_back(key.size());
    ops.push_back(op_of(EGRET_GET, key));
  }
  std::vector<egret_result> results(kCount, empty_result());
  CHECK(egret_mget(c, texts.data(), lengths.data(), kCount, results.data()) == 0);  // all are sent while it works
  served.backend.halt();
  CHECK(is_no_answer(egret_mget(c, texts.data(), lengths.data(), kCount, results.data())));
  while (counter(c, "sessions") > 0) get(c, "k");
  const uint64_t before = counter(c, "session_failures");
  for (int i = 0; i < 5; ++i) {
    CHECK(is_no_answer(egret_mget(c, texts.data(), lengths.data(), kCount, results.data())));
    ::usleep(20'000);  // so that some of these calls find a new session in its handshake
    CHECK(is_no_answer(egret_execute(c, ops.data(), kCount, results.data())));
  }
  CHECK(counter(c, "session_failures") == before);  // a handshake may take 5 s
  CHECK(std::ranges::all_of(results, [](const egret_result& each) { return is_no_answer(each.code); }));
  served.backend.signal(SIGCONT);
  connect(c);
  for (int attempt = 0; attempt < 1000 && get(c, "k") != "(miss)"; ++attempt) ::usleep(10'000);
  CHECK(egret_mget(c, texts.data(), lengths.data(), kCount, results.data()) == 0);
}

TEST_CASE(
    "a backend that is killed under load and comes back: no op is answered twice, none is lost, and the client returns "
    "by itself") {
  Served served(Options{{"op_timeout", "5s"}});
  egret_client* const c = served.client.get();
  for (int round = 0; round < 3; ++round) {
    std::map<uint64_t, int> under_way;
    uint64_t tag = 0;
    std::vector<egret_result> results(256, empty_result());
    const auto submit = [&] {
      for (int i = 0; i < 100; ++i) {
        const std::string key = "key" + std::to_string(tag % 50);
        const egret_op op = set_of(key, "v", tag);
        if (egret_submit(c, &op, 1) != 1) return;
        under_way[tag++] = 1;
      }
    };
    std::map<int, int> codes;
    const auto wait = [&](size_t at_least) {
      const int count = egret_wait(c, results.data(), results.size(), at_least, kForEver);
      REQUIRE(count >= 0);
      for (int i = 0; i < count; ++i) {
        REQUIRE(under_way.erase(results[static_cast<size_t>(i)].tag) == 1);
        ++codes[results[static_cast<size_t>(i)].code];
      }
    };
    for (int i = 0; i < 200; ++i) {
      if (i == 100) served.backend.signal(SIGKILL);
      submit();
      wait(1);
    }
    while (egret_pending(c) > 0) wait(1);
    CHECK(under_way.empty());
    CHECK(codes[EGRET_STORED] > 0);
    for (const auto& [code, count] : codes) CHECK((code == EGRET_STORED || is_no_answer(code)));
    served.backend.end(SIGKILL);
    // What was not sent at all is told from what may have been done.
    int code = set(c, "k", "v");
    for (int attempt = 0; attempt < 100 && code == EGRET_E_UNKNOWN; ++attempt) code = set(c, "k", "v");
    CHECK(code == EGRET_E_UNAVAILABLE);
    served.backend.start();
    connect(c);
    CHECK(set(c, "k", "again") == EGRET_STORED);
    CHECK(get(c, "k") == "again");
  }
  CHECK(counter(c, "session_failures") >= 3);
}

TEST_CASE("acknowledged increments are all there, however often the backend stands still meanwhile") {
  Served served(Options{{"op_timeout", "20ms"}});
  egret_client* const c = served.client.get();
  CHECK(set(c, "n", "0") == EGRET_STORED);
  uint64_t acknowledged = 0, unknown = 0, now = 0;
  for (int i = 0; i < 300; ++i) {
    if (i % 100 == 50) served.backend.halt();
    const int code = incr(c, "n", now);
    if (i % 100 == 50) served.backend.signal(SIGCONT);
    acknowledged += code == EGRET_NUMBER ? 1 : 0;
    unknown += code == EGRET_E_UNKNOWN ? 1 : 0;
    CHECK((code == EGRET_NUMBER || is_no_answer(code)));
    if (code == EGRET_E_UNAVAILABLE) ::usleep(2000);
  }
  connect(c);
  std::string found = get(c, "n");
  for (int attempt = 0; attempt < 1000 && found[0] == '('; ++attempt) {
    ::usleep(10'000);
    found = get(c, "n");
  }
  const uint64_t executed = std::stoull(found);
  CHECK(executed >= acknowledged);
  CHECK(executed <= acknowledged + unknown);
}

TEST_CASE("200 forked children, each with a session of its own; the parent's goes on") {
  Served served;
  egret_client* const c = served.client.get();
  CHECK(set(c, "n", "0") == EGRET_STORED);
  CHECK(egret_client_mine(served.pool.get()) != nullptr);
  constexpr int kChildren = 200, kAtATime = 20;
  int begun = 0, ended = 0;
  while (ended < kChildren) {
    if (begun < kChildren && begun - ended < kAtATime) {
      ++begun;
      if (::fork() == 0) {
        uint64_t now = 0;
        egret_client* const mine = egret_client_mine(served.pool.get());
        if (incr(c, "n", now) != EGRET_E_FORKED) ::_exit(1);
        if (egret_client_connect(mine, 20'000'000'000) != EGRET_OK) ::_exit(2);
        for (int i = 0; i < 5; ++i) {
          if (incr(mine, "n", now) != EGRET_NUMBER) ::_exit(3);
        }
        egret_client_free(c);  // of a parent: nothing but its memory goes
        ::_exit(0);
      }
      continue;
    }
    int status = 0;
    REQUIRE(::wait(&status) > 0);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    ++ended;
    CHECK(get(c, "alive") == "(miss)");
  }
  CHECK(get(c, "n") == std::to_string(kChildren * 5));
}

TEST_CASE("a forked child has neither sockets nor memory of its parent's sessions") {
  Served served;
  const auto held = [] {
    int count = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) count += line.find("memfd:egret") != std::string::npos ? 1 : 0;
    for (int fd = 3; fd < 256; ++fd) {
      char path[64], target[256] = {};
      std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
      if (::readlink(path, target, sizeof target - 1) > 0) {
        const std::string_view is(target);
        const bool is_memory = is.find("memfd:egret") != std::string_view::npos;
        count += is.starts_with("anon_inode:[eventpoll") || is.starts_with("socket:") || is_memory ? 1 : 0;
      }
    }
    return count;
  };
  CHECK(held() >= 4);  // epoll, the control socket, two regions
  const pid_t child = ::fork();
  if (child == 0) ::_exit(held());
  CHECK(exit_code_of(child) == 0);
}

TEST_CASE("a program that is executed in the place of this one inherits no descriptor of its sessions") {
  Served served;
  int said[2];
  REQUIRE(::pipe(said) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(said[1], STDOUT_FILENO);
    ::dup2(said[1], STDERR_FILENO);
    ::close_range(3, ~0u, 0);  // whatever the test was started with
    const Pool pool = open_pool({{"backends", served.backend.address()}});
    const Client client = new_client(pool);
    connect(client.get());
    if (set(client.get(), "k", "v") != EGRET_STORED) ::_exit(1);
    ::execlp("ls", "ls", "-l", "/proc/self/fd", nullptr);
    ::_exit(2);
  }
  ::close(said[1]);
  std::string listed;
  for (char some[4096]; ssize_t got = ::read(said[0], some, sizeof some);)
    listed.append(some, static_cast<size_t>(got));
  ::close(said[0]);
  CHECK(exit_code_of(child) == 0);
  CHECK(listed.find("pipe:") != std::string::npos);
  for (const char* const ours : {"socket:", "memfd:egret", "eventpoll", "eventfd"}) {
    CHECK_MESSAGE(listed.find(ours) == std::string::npos, listed);
  }
}

TEST_CASE("a parent's death is seen by the backend although its child lives") {
  BackendProcess backend;
  int to_child[2];
  REQUIRE(::pipe(to_child) == 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    const Pool pool = open_pool({{"backends", backend.address()}});
    Client client = new_client(pool);
    connect(client.get());
    leave_child_behind(to_child);  // it holds no descriptor of the session
    ::_exit(set(client.get(), "k", "v") == EGRET_STORED ? 0 : 1);
  }
  CHECK(exit_code_of(parent) == 0);
  // sessions_per_peer would count the dead parent's for ever: a session a round would be refused at last.
  for (int i = 0; i < 100; ++i) {
    const Pool pool = open_pool({{"backends", backend.address()}});
    const Client client = new_client(pool);
    connect(client.get());
    REQUIRE(get(client.get(), "k") == "v");
  }
  ::close(to_child[0]);
  ::close(to_child[1]);
}

TEST_CASE("a program that closes descriptors which are not its own loses sessions, and nothing else") {
  Served served(Options{{"op_timeout", "200ms"}});
  egret_client* const c = served.client.get();
  CHECK(set(c, "k", "v") == EGRET_STORED);
  const pid_t child = ::fork();
  if (child == 0) {
    egret_client* const mine = egret_client_mine(served.pool.get());
    connect(mine);
    for (int fd = 3; fd < 256; ++fd) ::close(fd);
    int own[2];
    if (::pipe(own) != 0) ::_exit(1);
    bool is_back = false;
    for (int attempt = 0; attempt < 500 && !is_back; ++attempt) {
      is_back = get(mine, "k") == "v";
      if (!is_back) ::usleep(10'000);
    }
    const bool is_whole = ::write(own[1], "x", 1) == 1;  // the library has not closed what is not its own
    ::_exit(is_back && is_whole ? 0 : 2);
  }
  CHECK(exit_code_of(child) == 0);
  CHECK(get(c, "k") == "v");
}

TEST_CASE("files of the program that got the library's numbers stay open, and as they are, over either transport") {
  for (const auto over : {BackendProcess::Over::kHost, BackendProcess::Over::kNetwork}) {
    BackendProcess backend({}, over);
    if (!backend.address().starts_with("shm:") && !backend.address().starts_with("tcp:")) continue;
    CAPTURE(backend.address());
    const pid_t child = ::fork();
    if (child == 0) {
      const Pool pool = open_pool({{"backends", backend.address()}});
      Client client = new_client(pool);
      connect(client.get());
      if (set(client.get(), "k", "v") != EGRET_STORED) ::_exit(1);
      for (int fd = 3; fd < 256; ++fd) ::close(fd);
      std::array<int, 60> files{};
      for (int& file : files) {
        file = ::memfd_create("of the program", MFD_CLOEXEC);
        if (file < 0 || ::write(file, "x", 1) != 1) ::_exit(2);
        ::lseek(file, 0, SEEK_SET);
      }
      bool is_back = false;
      for (int attempt = 0; attempt < 500 && !is_back; ++attempt) {
        is_back = get(client.get(), "k") == "v";
        if (!is_back) ::usleep(10'000);
      }
      client.reset();
      for (const int file : files) {
        struct stat now {};
        if (::fstat(file, &now) != 0 || now.st_size != 1 || ::lseek(file, 0, SEEK_CUR) != 0) ::_exit(3);
      }
      ::_exit(is_back ? 0 : 4);
    }
    CHECK(exit_code_of(child) == 0);
  }
}

TEST_CASE("a program that only submits and reaps gets sessions, answers, and a session anew after a restart") {
  for (const auto over : {BackendProcess::Over::kHost, BackendProcess::Over::kNetwork}) {
    BackendProcess backend({}, over);
    CAPTURE(backend.address());
    const Pool pool = open_pool({{"backends", backend.address()}});
    const Client client = new_client(pool);
    int stored = 0;
    const std::string value(100, 'v');
    const auto store_some = [&](int count) {
      for (int attempt = 0; attempt < 20'000 && stored < count; ++attempt) {
        const egret_op op = set_of("k", value);
        const int taken = egret_submit(client.get(), &op, 1);
        CHECK((taken == 1 || taken == EGRET_E_AGAIN));
        egret_result results[4]{};
        results[0].size = sizeof results[0];
        const int got = egret_reap(client.get(), results, 4);
        REQUIRE(got >= 0);
        for (int i = 0; i < got; ++i) stored += results[i].code == EGRET_STORED ? 1 : 0;
        if (got <= 0 || results[0].code != EGRET_STORED) ::usleep(500);
      }
      INFO(std::string(egret_why(client.get())));
      CHECK(stored >= count);
    };
    store_some(500);
    backend.end(SIGKILL);
    backend.start();
    stored = 0;
    store_some(500);
  }
}

TEST_CASE("a value that stays is copied when its result is forgotten, so its bytes are the program's again") {
  BackendProcess backend;
  const Pool pool = open_pool({{"backends", backend.address()}});
  const Client client = new_client(pool);
  connect(client.get());
  std::string value(900'000, 'A');
  egret_op op = set_of("stays", value, 7);
  op.flags = EGRET_F_STAYS;
  REQUIRE(egret_submit(client.get(), &op, 1) == 1);
  CHECK(egret_forget(client.get(), 7) == 1);
  const std::string expected = value;
  std::fill(value.begin(), value.end(), 'Z');
  std::string now = get(client.get(), "stays");
  for (int attempt = 0; attempt < 1000 && now == "(miss)"; ++attempt) now = get(client.get(), "stays");
  CHECK(now == expected);
}

TEST_CASE("a thread that is cancelled in a call ends behind it, and the client serves on") {
  BackendProcess backend;
  const Pool pool = open_pool({{"backends", backend.address()}, {"op_timeout", "300ms"}});
  const Client client = new_client(pool);
  connect(client.get());
  backend.halt();
  std::atomic<bool> is_behind{false};
  std::thread other([&] {
    egret_client_adopt(client.get());
    ::pthread_cancel(::pthread_self());
    (void)get(client.get(), "k");
    is_behind = true;
    ::pthread_testcancel();
    std::abort();
  });
  other.join();
  CHECK(is_behind);
  backend.signal(SIGCONT);
  REQUIRE(egret_client_adopt(client.get()) == EGRET_OK);
  std::string now;
  for (int attempt = 0; attempt < 1000 && now != "(miss)"; ++attempt) now = get(client.get(), "k");
  CHECK(now == "(miss)");
}

TEST_CASE("a client that cannot have all its descriptors keeps none") {
  BackendProcess backend;
  const pid_t child = ::fork();
  if (child == 0) {
    const Pool pool = open_pool({{"backends", backend.address()}});
    const rlimit few{.rlim_cur = 64, .rlim_max = 64};
    ::setrlimit(RLIMIT_NOFILE, &few);
    int last = -1;
    for (int fd = ::dup(0); fd >= 0; fd = ::dup(0)) last = fd;
    ::close(last);  // one is free, and a client needs two
    egret_client* client = nullptr;
    if (egret_client_new(pool.get(), &client) == EGRET_OK) ::_exit(1);
    ::_exit(::dup(0) == last ? 0 : 2);
  }
  CHECK(exit_code_of(child) == 0);
}

namespace {

// Descriptors of a program's event loop, over and over: an epoll with an eventfd in it, and two ends of a connection.
struct OfTheProgram {
  struct Part {
    int epoll, event, one, other;
  };
  // `first`: how many files come before them.
  explicit OfTheProgram(int first) {
    for (int i = 0; i < first; ++i) (void)::memfd_create("of the program", MFD_CLOEXEC);
    for (Part& part : parts) {
      part.epoll = ::epoll_create1(0);
      part.event = ::eventfd(0, EFD_NONBLOCK);
      int ends[2] = {-1, -1};
      is_made &= ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0;
      part.one = ends[0];
      part.other = ends[1];
      epoll_event event{.events = EPOLLIN, .data = {.u64 = number_of(part)}};
      is_made &= ::epoll_ctl(part.epoll, EPOLL_CTL_ADD, part.event, &event) == 0;
      is_made &= ::epoll_ctl(part.epoll, EPOLL_CTL_ADD, part.one, &event) == 0;
    }
  }
  // Whether nobody has touched them.
  bool are_whole() const {
    return std::ranges::all_of(parts, [this](const Part& part) {
      char byte = 0;
      epoll_event event{};
      if (::recv(part.one, &byte, 1, 0) != -1 || errno != EAGAIN) return false;
      if (::recv(part.other, &byte, 1, 0) != -1 || errno != EAGAIN) return false;
      if (::epoll_wait(part.epoll, &event, 1, 0) != 0) return false;
      for (int look = 0; look < 2; ++look) {  // level-triggered
        if (::send(part.other, "x", 1, MSG_NOSIGNAL) != 1) return false;
        if (::epoll_wait(part.epoll, &event, 1, 0) != 1 || event.data.u64 != number_of(part)) return false;
      }
      if (::recv(part.one, &byte, 1, 0) != 1 || ::recv(part.one, &byte, 1, 0) != 1) return false;
      if (::eventfd_write(part.event, 1) != 0) return false;
      return ::epoll_wait(part.epoll, &event, 1, 0) == 1 && event.data.u64 == number_of(part);
    });
  }

  std::array<Part, 10> parts{};
  bool is_made = true;

 private:
  uint64_t number_of(const Part& part) const { return 1000 + static_cast<uint64_t>(&part - parts.data()); }
};

}  // namespace

TEST_CASE("a program's event loop that got the library's numbers goes on as it was, over either transport") {
  for (const auto over : {BackendProcess::Over::kHost, BackendProcess::Over::kNetwork}) {
    BackendProcess backend({}, over);
    if (!backend.address().starts_with("shm:") && !backend.address().starts_with("tcp:")) continue;
    CAPTURE(backend.address());
    for (int first = 0; first < 4; ++first) {
      CAPTURE(first);
      const pid_t child = ::fork();
      if (child == 0) {
        const Pool pool = open_pool({{"backends", backend.address()}});
        Client client = new_client(pool);
        connect(client.get());
        if (set(client.get(), "k", "v") != EGRET_STORED) ::_exit(1);
        for (int fd = 3; fd < 256; ++fd) ::close(fd);
        const OfTheProgram of_the_program(first);
        if (!of_the_program.is_made) ::_exit(2);
        ::usleep(50'000);  // the library looks at its descriptors when an op comes after a while
        bool is_back = false;
        for (int attempt = 0; attempt < 500 && !is_back; ++attempt) {
          is_back = get(client.get(), "k") == "v";
          if (!is_back) ::usleep(10'000);
        }
        client.reset();
        ::_exit(!is_back ? 3 : of_the_program.are_whole() ? 0 : 4);
      }
      CHECK(exit_code_of(child) == 0);
    }
  }
}

TEST_CASE("nor is it touched when the library's numbers were those of a connection that nobody answered") {
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
  socklen_t length = sizeof at;
  REQUIRE(::bind(silent, reinterpret_cast<const sockaddr*>(&at), length) == 0);
  REQUIRE(::listen(silent, 64) == 0);
  REQUIRE(::getsockname(silent, reinterpret_cast<sockaddr*>(&at), &length) == 0);
  const std::string address = "tcp:127.0.0.1:" + std::to_string(::ntohs(at.sin_port));
  for (int first = 0; first < 4; ++first) {
    CAPTURE(first);
    const pid_t child = ::fork();
    if (child == 0) {
      const Pool pool = open_pool({{"backends", address}, {"op_timeout", "100ms"}});
      Client client = new_client(pool);
      if (egret_client_connect(client.get(), 0) == EGRET_OK) ::_exit(1);  // it has begun
      for (int fd = 3; fd < 256; ++fd) ::close(fd);
      const OfTheProgram of_the_program(first);
      if (!of_the_program.is_made) ::_exit(2);
      for (int attempt = 0; attempt < 20; ++attempt) {
        ::usleep(30'000);
        (void)egret_client_connect(client.get(), 0);  // the attempt ends, and others begin
      }
      client.reset();
      ::_exit(of_the_program.are_whole() ? 0 : 4);
    }
    CHECK(exit_code_of(child) == 0);
  }
  ::close(silent);
}

TEST_CASE("a session takes little memory: some pages before it, and slots as the options say") {
  Served served;
  CHECK(counter(served.client.get(), "slot_bytes") > 0);
  CHECK(counter(served.client.get(), "slot_bytes") <= 200 * 1024);
}
