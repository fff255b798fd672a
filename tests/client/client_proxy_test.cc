// A pool that a proxy of this host tells: who the backends are, which way leads to each, and what becomes of ops when backends, the
// proxy or the pool change.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_process.h"
#include "proxy_process.h"
#include "session.h"

namespace {

using Over = BackendProcess::Over;

bool eventually(const std::function<bool()>& is_so, int seconds = 60) {
  for (int i = 0; i < seconds * 100; ++i) {
    if (is_so()) return true;
    ::usleep(10'000);
  }
  return false;
}

Pool pool_of(const ProxyProcess& proxy, Options more = {}) {
  more.emplace_back("proxy", proxy.address());
  more.emplace_back("reconnect_max", "50ms");
  return open_pool(more);
}

// For the proxy to read: of this user, and of no other.
struct TemporaryFile {
  explicit TemporaryFile(const std::string& what) : path("/tmp/egret-client-" + what + "-XXXXXX") {
    const int fd = ::mkstemp(path.data());
    REQUIRE(fd >= 0);
    ::close(fd);
  }
  ~TemporaryFile() {
    for (const char* const ending : {"", ".good", ".new"}) ::unlink((path + ending).c_str());
  }
  // All of it at once, as a file that is watched must be.
  void write(const std::string& text) const {
    std::ofstream(path + ".new") << text;
    REQUIRE(::chmod((path + ".new").c_str(), 0600) == 0);
    REQUIRE(std::rename((path + ".new").c_str(), path.c_str()) == 0);
  }
  std::string path;
};

// A proxy with one backend, and a client that is connected.
struct Told {
  explicit Told(Over over = Over::kHost, Options more = {}, std::vector<std::string> of_backend = {},
                std::vector<std::string> of_proxy = {})
      : backend(std::move(of_backend), over),
        proxy(with_backend(std::move(of_proxy))),
        pool(pool_of(proxy, std::move(more))) {
    client = new_client(pool);
    connect(client.get());
  }
  std::vector<std::string> with_backend(std::vector<std::string> options) const {
    options.push_back("backends=" + backend.address());
    return options;
  }
  BackendProcess backend;
  ProxyProcess proxy;
  Pool pool;
  Client client;
};

void check_all_calls(egret_client* c) {
  CHECK(set(c, "k", "hello") == EGRET_STORED);
  CHECK(get(c, "k") == "hello");
  uint64_t now = 0;
  CHECK(set(c, "n", "9") == EGRET_STORED);
  CHECK(incr(c, "n", now, 5) == EGRET_NUMBER);
  CHECK(now == 14);
  CHECK(del(c, "n") == EGRET_DELETED);
  CHECK(get(c, "n") == "(miss)");
  const std::string large = patterned(700'000);
  CHECK(set(c, "large", large) == EGRET_STORED);
  CHECK(get(c, "large") == large);
  CHECK(egret_flush_all(c, 0) == EGRET_OK);
  CHECK(get(c, "k") == "(miss)");
}

// Returns when each backend has taken an op. connect() waits for none that the proxy has ejected, as it may have at its start, before it
// had its first session there.
void connect_with_all(const Pool& pool, egret_client* c, size_t backends) {
  connect(c);
  std::vector<std::string> keys(backends);
  for (int i = 0; std::ranges::count(keys, "") > 0; ++i) {
    const std::string key = "first:" + std::to_string(i);
    keys[static_cast<size_t>(egret_pool_server_of(pool.get(), key.data(), key.size()))] = key;
  }
  for (const std::string& key : keys) {
    INFO(egret_why(c));
    REQUIRE(eventually([&] { return set(c, key, "v") == EGRET_STORED; }));
  }
}

}  // namespace

TEST_CASE("a backend on this host is reached straight") {
  const Told told;
  check_all_calls(told.client.get());
  CHECK(counter(told.client.get(), "sessions") == 1);
  CHECK(counter(told.client.get(), "relayed_sessions") == 0);
  CHECK(egret_pool_server_of(told.pool.get(), "k", 1) == 0);
}

TEST_CASE("a backend over a network is reached through the proxy, and straight on request") {
  const Told told(Over::kNetwork);
  check_all_calls(told.client.get());
  CHECK(counter(told.client.get(), "relayed_sessions") == 1);
  const Pool straight = pool_of(told.proxy, {{"straight", "all"}});
  const Client client = new_client(straight);
  connect(client.get());
  check_all_calls(client.get());
  CHECK(counter(client.get(), "relayed_sessions") == 0);
}

TEST_CASE("with straight: none everything goes through the proxy") {
  const Told told(Over::kHost, {{"straight", "none"}});
  check_all_calls(told.client.get());
  CHECK(counter(told.client.get(), "relayed_sessions") == 1);
}

TEST_CASE("who is refused by a backend is served through the proxy") {
  const Told told(Over::kHost, {}, {"max_sessions=2"});  // the proxy's two workers take both
  check_all_calls(told.client.get());
  CHECK(counter(told.client.get(), "relayed_sessions") == 1);
}

TEST_CASE("ops go where the proxy's go, whatever the way is") {
  const BackendProcess here;
  const BackendProcess there({}, Over::kNetwork);
  const ProxyProcess proxy({"backends=" + here.address() + "," + there.address()});
  const Pool pool = pool_of(proxy);
  const Client client = new_client(pool);
  connect_with_all(pool, client.get(), 2);
  const Pool straight = open_pool({{"backends", here.address()}});
  const Client only_here = new_client(straight);
  connect(only_here.get());
  std::map<int, int> owned;
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key:" + std::to_string(i);
    CHECK(set(client.get(), key, "v" + std::to_string(i)) == EGRET_STORED);
    const int owner = egret_pool_server_of(pool.get(), key.data(), key.size());
    ++owned[owner];
    CHECK(get(only_here.get(), key) == (owner == 0 ? "v" + std::to_string(i) : "(miss)"));
    CHECK(get(client.get(), key) == "v" + std::to_string(i));
  }
  CHECK(owned[0] > 20);
  CHECK(owned[1] > 20);
  CHECK(counter(client.get(), "sessions") == 2);
  CHECK(counter(client.get(), "relayed_sessions") == 1);
}

TEST_CASE("members come and go without a failure, and the client follows within moments") {
  const BackendProcess one, two;
  const TemporaryFile file("backends");
  file.write(one.address() + "\n");
  const ProxyProcess proxy({"backends_most_removed=100", "backends_file=" + file.path});
  const Pool pool = pool_of(proxy);
  const Client client = new_client(pool);
  egret_client* const c = client.get();
  connect(c);
  const auto count_of_sessions = [&](int64_t wanted) {
    return eventually([&] {
      // The client goes on working while members change, and no op may fail.
      for (int i = 0; i < 20; ++i) CHECK(set(c, "key:" + std::to_string(i), "v") == EGRET_STORED);
      return counter(c, "sessions") == wanted;
    });
  };
  REQUIRE(count_of_sessions(1));
  file.write(one.address() + "\n" + two.address() + "\n");
  proxy.signal(SIGHUP);
  CHECK(count_of_sessions(2));
  file.write(two.address() + "\n");
  proxy.signal(SIGHUP);
  CHECK(count_of_sessions(1));
  CHECK(set(c, "after", "v") == EGRET_STORED);
  CHECK(get(c, "after") == "v");
  CHECK(counter(c, "ops") > 60);  // what ended sessions have counted is not forgotten
}

TEST_CASE("a backend that is ejected is not waited for, and is used again when it returns") {
  BackendProcess one({}, Over::kNetwork), two({}, Over::kNetwork);
  const ProxyProcess proxy({"backends=" + one.address() + "," + two.address(), "eject_after=2", "eject_share=100"});
  const Pool pool = pool_of(proxy);
  const Client client = new_client(pool);
  egret_client* const c = client.get();
  connect_with_all(pool, c, 2);
  std::string of_two;
  for (int i = 0; of_two.empty(); ++i) {
    const std::string key = "key:" + std::to_string(i);
    if (egret_pool_server_of(pool.get(), key.data(), key.size()) == 1) of_two = key;
  }
  CHECK(set(c, of_two, "v") == EGRET_STORED);
  two.end(SIGKILL);
  CHECK(eventually([&] { return set(c, of_two, "v") == EGRET_E_UNAVAILABLE; }));
  for (int i = 0; i < 50; ++i) {
    const std::string key = "key:" + std::to_string(i);
    if (egret_pool_server_of(pool.get(), key.data(), key.size()) == 0) CHECK(set(c, key, "v") == EGRET_STORED);
  }
  two.start();
  CHECK(eventually([&] { return set(c, of_two, "v") == EGRET_STORED; }));
  CHECK(get(c, of_two) == "v");
}

TEST_CASE("without the proxy straight sessions go on, relayed ones fail, and both are served when it is back") {
  const BackendProcess here;
  const BackendProcess there({}, Over::kNetwork);
  ProxyProcess proxy({"backends=" + here.address() + "," + there.address()});
  const Pool pool = pool_of(proxy);
  const Client client = new_client(pool);
  egret_client* const c = client.get();
  connect_with_all(pool, c, 2);
  std::string keys[2];
  for (int i = 0; keys[0].empty() || keys[1].empty(); ++i) {
    const std::string key = "key:" + std::to_string(i);
    keys[egret_pool_server_of(pool.get(), key.data(), key.size())] = key;
  }
  for (const std::string& key : keys) CHECK(set(c, key, "v") == EGRET_STORED);
  proxy.end(SIGKILL);
  CHECK(eventually([&] { return is_no_answer(set(c, keys[1], "w")); }));
  CHECK(set(c, keys[0], "w") == EGRET_STORED);
  CHECK(get(c, keys[0]) == "w");
  proxy.start();
  CHECK(eventually([&] { return set(c, keys[1], "x") == EGRET_STORED; }));
  CHECK(get(c, keys[1]) == "x");
}

TEST_CASE("without a proxy nothing is sent, and it is said why; it is found when it starts") {
  const BackendProcess backend;
  ProxyProcess proxy({"backends=" + backend.address()}, false);
  const Pool pool = pool_of(proxy);
  const Client client = new_client(pool);
  egret_client* const c = client.get();
  CHECK(set(c, "k", "v") == EGRET_E_UNAVAILABLE);
  CHECK(std::string(egret_why(c)).find("no egret-proxy") != std::string::npos);
  CHECK(egret_pool_server_of(pool.get(), "k", 1) == EGRET_E_UNAVAILABLE);
  proxy.start();
  CHECK(eventually([&] { return set(c, "k", "v") == EGRET_STORED; }));
}

TEST_CASE("a backend that is killed is reached straight again when it has returned") {
  Told told;
  egret_client* const c = told.client.get();
  CHECK(set(c, "k", "v") == EGRET_STORED);
  told.backend.end(SIGKILL);
  CHECK(eventually([&] { return is_no_answer(set(c, "k", "w")); }));
  told.backend.start();
  CHECK(eventually([&] { return set(c, "k", "w") == EGRET_STORED; }));
  // If it went through the proxy meanwhile, it does not remain there.
  CHECK(eventually([&] {
    CHECK(get(c, "k") == "w");
    return counter(c, "relayed_sessions") == 0;
  }));
}

TEST_CASE("where the proxy has users every session is relayed, with the rights and keys of the user who has the uid") {
  const TemporaryFile file("users");
  file.write(
      "app:\n  password: \"$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/"
      "cZ/1GM/O6IND4WQhG.\"\n  rights: [read, write]\n  prefixes: [\"app:\"]\n  uids: [" +
      std::to_string(::getuid()) + "]\n");
  const Told told(Over::kHost, {{"straight", "all"}}, {}, {"users_file=" + file.path});
  CHECK(counter(told.client.get(), "relayed_sessions") == 1);
  CHECK(set(told.client.get(), "app:k", "v") == EGRET_STORED);
  CHECK(get(told.client.get(), "app:k") == "v");
  CHECK(set(told.client.get(), "other", "v") == EGRET_E_DENIED);
  CHECK(egret_flush_all(told.client.get(), 0) == EGRET_E_DENIED);
}

TEST_CASE("a child has a client of its own, and the parent's goes on") {
  const Told told(Over::kNetwork);
  CHECK(set(told.client.get(), "k", "v") == EGRET_STORED);
  const pid_t child = ::fork();
  if (child == 0) {
    egret_client* const own = egret_client_mine(told.pool.get());
    egret_result result = empty_result();
    int code = EGRET_E_UNAVAILABLE;
    for (int i = 0; i < 500 && code == EGRET_E_UNAVAILABLE; ++i) code = egret_get(own, "k", 1, &result);
    ::_exit(egret_get(told.client.get(), "k", 1, &result) == EGRET_E_FORKED && code == EGRET_HIT ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(get(told.client.get(), "k") == "v");
}
