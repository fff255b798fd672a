// What holds of libegret over a device alone; runs in a guest (tests/rdma/library), where EGRET_TEST_NETWORK is rdma:HOST. All else that
// client_backend_test, client_proxy_test and client_disturbed_test say holds over it, too.
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include <sys/wait.h>
#include <unistd.h>

#include "backend_process.h"
#include "children.h"
#include "proxy_process.h"
#include "session.h"

namespace {

using Over = BackendProcess::Over;

// One backend over the network, and a client that has a session with it.
struct Served {
  Served() : backend({}, Over::kNetwork) {
    pool = open_pool({{"backends", backend.address()}, {"reconnect_max", "50ms"}});
    client = new_client(pool);
    connect(client.get());
  }
  BackendProcess backend;
  Pool pool;
  Client client;
};

// Descriptors and mappings of devices that this process has.
int held_of_devices() {
  int count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += line.find("/dev/infiniband/") != std::string::npos ? 1 : 0;
  for (int fd = 3; fd < 256; ++fd) {
    char path[64], target[256] = {};
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (::readlink(path, target, sizeof target - 1) <= 0) continue;
    const std::string_view is(target);
    count += is.starts_with("/dev/infiniband/") || is.starts_with("anon_inode:[infiniband") ? 1 : 0;
  }
  return count;
}

}  // namespace

// --- first: this process has not used a device yet, so its children may

TEST_CASE("children of a process that has not used its pool have sessions of their own") {
  const BackendProcess backend({}, Over::kNetwork);
  const Pool pool = open_pool({{"backends", backend.address()}, {"reconnect_max", "50ms"}});
  pid_t children[4];
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    egret_client* const mine = egret_client_mine(pool.get());
    connect(mine);
    uint64_t now = 0;
    const std::string key = "n" + std::to_string(::getpid());
    if (set(mine, key, "0") != EGRET_STORED) ::_exit(1);
    for (int i = 0; i < 20; ++i) {
      if (incr(mine, key, now) != EGRET_NUMBER) ::_exit(2);
    }
    ::_exit(now == 20 ? 0 : 3);
  }
  for (const pid_t child : children) CHECK(exit_code_of(child) == 0);
}

TEST_CASE("a parent's death is seen by the backend although its child lives") {
  // One session at a time: the next one is let in when the dead parent's has ended.
  const BackendProcess backend({"max_sessions=1"}, Over::kNetwork);
  for (int round = 0; round < 3; ++round) {
    int to_child[2];
    REQUIRE(::pipe(to_child) == 0);
    const pid_t parent = ::fork();
    if (parent == 0) {
      const Pool pool = open_pool({{"backends", backend.address()}, {"reconnect_max", "50ms"}});
      const Client client = new_client(pool);
      connect(client.get());
      leave_child_behind(to_child);
      ::_exit(set(client.get(), "k", "v") == EGRET_STORED ? 0 : 1);
    }
    CHECK(exit_code_of(parent) == 0);
    const pid_t next = ::fork();
    if (next == 0) {
      const Pool pool = open_pool({{"backends", backend.address()}, {"reconnect_max", "50ms"}});
      const Client client = new_client(pool);
      connect(client.get());
      ::_exit(get(client.get(), "k") == "v" ? 0 : 1);
    }
    CHECK(exit_code_of(next) == 0);
    ::close(to_child[0]);
    ::close(to_child[1]);
  }
}

// --- from here on it has

TEST_CASE("a device is used: values of any length, and the libraries are there") {
  const Served served;
  CHECK(held_of_devices() > 4);  // two files, events, completions, the queues' pages
  const std::string large = patterned(700'000);
  CHECK(set(served.client.get(), "large", large) == EGRET_STORED);
  CHECK(get(served.client.get(), "large") == large);
}

TEST_CASE(
    "a child of a process with sessions holds nothing of the device, is told why it cannot connect, and ends without "
    "harm") {
  const Served served;
  egret_client* const c = served.client.get();
  CHECK(set(c, "k", "v") == EGRET_STORED);
  std::fflush(stdout);  // else the child's exit() writes it, too
  const pid_t child = ::fork();
  if (child == 0) {
    if (held_of_devices() != 0) ::_exit(1);
    egret_client* const mine = egret_client_mine(served.pool.get());
    if (egret_client_connect(mine, 200'000'000) == EGRET_OK) ::_exit(2);
    if (get(mine, "k") != "(" + std::string(egret_text(EGRET_E_UNAVAILABLE)) + ")") ::_exit(3);
    const bool is_told = std::string_view(egret_why(mine)).find("forked") != std::string_view::npos;
    std::exit(is_told ? 0 : 4);  // runs what the libraries have for a process's end
  }
  CHECK(exit_code_of(child) == 0);
  CHECK(get(c, "k") == "v");
}

// librdmacm keeps the device open without them: a child would hold what its parent makes on it later.
TEST_CASE("a child that is forked while there are no sessions holds nothing of the device either") {
  { const Served served; }
  CHECK(held_of_devices() > 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(held_of_devices());
  CHECK(exit_code_of(child) == 0);
}

TEST_CASE("a child keeps its parent's other files, whatever number they have") {
  const Served served;
  int own[2];
  REQUIRE(::pipe(own) == 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::write(own[1], "x", 1) == 1 ? 0 : 1);
  char byte = 0;
  CHECK(::read(own[0], &byte, 1) == 1);
  CHECK(exit_code_of(child) == 0);
  ::close(own[0]);
  ::close(own[1]);
}

TEST_CASE("where a proxy tells of the backend, such a child goes through the proxy") {
  const BackendProcess backend({}, Over::kNetwork);
  const ProxyProcess proxy({"backends=" + backend.address()});
  const Pool pool = open_pool({{"proxy", proxy.address()}, {"straight", "all"}, {"reconnect_max", "50ms"}});
  const Client client = new_client(pool);
  connect(client.get());
  CHECK(counter(client.get(), "relayed_sessions") == 0);
  CHECK(set(client.get(), "k", "v") == EGRET_STORED);
  const pid_t child = ::fork();
  if (child == 0) {
    egret_client* const mine = egret_client_mine(pool.get());
    connect(mine);
    const bool is_served = get(mine, "k") == "v" && counter(mine, "relayed_sessions") == 1;
    ::_exit(is_served ? 0 : 1);
  }
  CHECK(exit_code_of(child) == 0);
  CHECK(get(client.get(), "k") == "v");
}
