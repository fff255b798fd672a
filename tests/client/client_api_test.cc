// egret.h without any backend: who may call, what is refused, and what is said about it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "session.h"

namespace {

const char* const kNobody = "shm:/nonexistent/egret-backend";

Pool pool_of_nobody() {
  return open_pool({{"backends", kNobody}});
}

std::string error_of(const char* name, const char* value) {
  egret_options* const options = egret_options_new();
  const int code = egret_options_set(options, name, value);
  std::string text = code == EGRET_OK ? "" : egret_options_error(options);
  CHECK((code == EGRET_OK || code == EGRET_E_ARGUMENT));
  egret_options_free(options);
  return text;
}

}  // namespace

TEST_CASE("the version is that of the header") {
  const std::string version = egret_version();
  CHECK(version.starts_with(std::to_string(EGRET_VERSION_MAJOR) + "." + std::to_string(EGRET_VERSION_MINOR) + "."));
}

TEST_CASE("every code has words of its own") {
  for (int code = EGRET_E_BROKEN; code <= EGRET_OUT_OF_MEMORY; ++code) {
    CHECK(std::strcmp(egret_text(code), egret_text(1000)) != 0);
  }
}

TEST_CASE("options are checked when they are set, and an error says which and why") {
  CHECK(error_of("op_timeout", "100ms").empty());
  CHECK(error_of("op_timeout", "soon").find("op_timeout") != std::string::npos);
  CHECK(error_of("nothing", "1").find("nothing") != std::string::npos);
  CHECK(error_of("window", "1000000").find("window") != std::string::npos);
  CHECK(error_of("placement", "random").find("placement") != std::string::npos);
}

TEST_CASE("without backends a proxy is asked, whose address must be one of this host") {
  for (const char* const wrong :
       {"", "11211", "tcp:127.0.0.1", "tcp:127.0.0.1:http", "tcp:cache.example:11211", "unix:", "smtp:x"}) {
    CAPTURE(wrong);
    egret_options* const options = egret_options_new();
    CHECK(egret_options_set(options, "proxy", wrong) == EGRET_OK);
    egret_pool* pool = nullptr;
    CHECK(egret_pool_open(options, &pool) == EGRET_E_ARGUMENT);
    CHECK(pool == nullptr);
    CHECK(std::string(egret_options_error(options)).find("proxy") != std::string::npos);
    egret_options_free(options);
  }
  for (const char* const good : {"tcp:127.0.0.1:1", "tcp:localhost:1", "tcp:[::1]:1", "unix:/nowhere/m.sock",
                                 "shm:/nowhere/slots", "shm:@nobody"}) {
    CAPTURE(good);
    const Pool pool = open_pool({{"proxy", good}});
    CHECK(egret_pool_server_of(pool.get(), "k", 1) == EGRET_E_UNAVAILABLE);
    const Client client = new_client(pool);
    CHECK(set(client.get(), "k", "v") == EGRET_E_UNAVAILABLE);
    CHECK(std::string(egret_why(client.get())).find("no egret-proxy") != std::string::npos);
  }
}

TEST_CASE("a file of options says the same as calls, and its errors name file and line") {
  char name[] = "/tmp/egret-client-options-XXXXXX";
  const int fd = ::mkstemp(name);
  REQUIRE(fd >= 0);
  ::close(fd);
  const auto load = [&](const std::string& text) {
    std::ofstream(name) << text;
    egret_options* const options = egret_options_new();
    const int code = egret_options_load(options, name);
    std::string said = code == EGRET_OK ? "" : egret_options_error(options);
    egret_options_free(options);
    return said;
  };
  CHECK(load("# a comment\nbackends: [\"shm:/a\", shm:/b]\nop_timeout: 1s\n").empty());
  CHECK(load("backends:\n  - shm:/a weight=2\n  - shm:/b\n").empty());
  CHECK(load("op_timeout: 1s\nwindow 4\n").find(":2: ") != std::string::npos);
  CHECK(load("op_timeout: soon\n").find("op_timeout") != std::string::npos);
  CHECK(load("nothing: 1\n").find("nothing") != std::string::npos);
  ::setenv("EGRET_CONFIG", name, 1);
  std::ofstream(name) << "backends: [shm:/a, shm:/b]\n";
  egret_pool* pool = nullptr;
  CHECK(egret_pool_open(nullptr, &pool) == EGRET_OK);
  egret_pool_close(pool);
  ::unsetenv("EGRET_CONFIG");
  ::unlink(name);
}

TEST_CASE("without options and without a file there is no pool, and the log says why") {
  ::setenv("EGRET_CONFIG", "/nonexistent/client.yaml", 1);
  std::string logged;
  egret_log(
      [](void* user, int level, const char* line) { *static_cast<std::string*>(user) += std::to_string(level) + line; },
      &logged);
  egret_pool* pool = nullptr;
  CHECK(egret_pool_open(nullptr, &pool) == EGRET_E_ARGUMENT);
  CHECK(logged.find("3") == 0);
  CHECK(logged.find("/nonexistent/client.yaml") != std::string::npos);
  egret_log(nullptr, nullptr);
  ::unsetenv("EGRET_CONFIG");
}

TEST_CASE("null handles are refused, and freeing nothing is allowed") {
  egret_result result = empty_result();
  CHECK(egret_get(nullptr, "k", 1, &result) == EGRET_E_ARGUMENT);
  CHECK(egret_pool_open(nullptr, nullptr) == EGRET_E_ARGUMENT);
  CHECK(egret_client_new(nullptr, nullptr) == EGRET_E_ARGUMENT);
  CHECK(egret_client_mine(nullptr) == nullptr);
  CHECK(egret_fd(nullptr) == EGRET_E_ARGUMENT);
  CHECK(egret_pending(nullptr) == 0);
  CHECK(egret_release(nullptr) == EGRET_E_ARGUMENT);
  CHECK(std::string(egret_why(nullptr)).empty());
  egret_client_free(nullptr);
  egret_pool_close(nullptr);
  egret_options_free(nullptr);
}

TEST_CASE("keys, ops and results that cannot be are refused, with words") {
  const Pool pool = pool_of_nobody();
  const Client client = new_client(pool);
  egret_client* const c = client.get();
  const std::string long_key(251, 'k');
  egret_result result = empty_result();
  CHECK(egret_get(c, "", 0, &result) == EGRET_E_ARGUMENT);
  CHECK(egret_get(c, nullptr, 3, &result) == EGRET_E_ARGUMENT);
  CHECK(egret_get(c, long_key.data(), long_key.size(), &result) == EGRET_E_ARGUMENT);
  CHECK(std::string(egret_why(c)).find("250") != std::string::npos);
  result.size = 8;
  CHECK(egret_get(c, "k", 1, &result) == EGRET_E_ARGUMENT);
  egret_op op = op_of(EGRET_GET, "k");
  op.size = 0;
  CHECK(egret_submit(c, &op, 1) == EGRET_E_ARGUMENT);
  op = op_of(99, "k");
  CHECK(egret_submit(c, &op, 1) == EGRET_E_ARGUMENT);
  op = op_of(EGRET_GET, "k");
  op.flags = 1u << 30;
  CHECK(egret_submit(c, &op, 1) == EGRET_E_ARGUMENT);
  op = op_of(EGRET_SET, "k");
  op.mode = 77;
  CHECK(egret_submit(c, &op, 1) == EGRET_E_ARGUMENT);
  op = op_of(EGRET_SET, "k");
  op.value_length = 5;
  CHECK(egret_submit(c, &op, 1) == EGRET_E_ARGUMENT);
  CHECK(egret_store(c, 9, "k", 1, "v", 1, 0, 0, 0, nullptr) == EGRET_E_ARGUMENT);
  CHECK(egret_mget(c, nullptr, nullptr, 1, nullptr) == EGRET_E_ARGUMENT);
  CHECK(egret_pending(c) == 0);
}

TEST_CASE("where no backend is, ops say at once that they were not sent") {
  const Pool pool = pool_of_nobody();
  const Client client = new_client(pool);
  egret_result result = empty_result();
  CHECK(egret_get(client.get(), "k", 1, &result) == EGRET_E_UNAVAILABLE);
  CHECK(result.code == EGRET_E_UNAVAILABLE);
  CHECK(std::string(egret_why(client.get())).find("/nonexistent/egret-backend") != std::string::npos);
  CHECK(set(client.get(), "k", "v") == EGRET_E_UNAVAILABLE);
  CHECK(egret_client_connect(client.get(), 0) == EGRET_E_UNAVAILABLE);
  egret_op op = op_of(EGRET_GET, "k", 77);
  CHECK(egret_submit(client.get(), &op, 1) == 1);
  CHECK(egret_pending(client.get()) == 1);
  CHECK(egret_wait(client.get(), &result, 1, 1, -1) == 1);
  CHECK(result.code == EGRET_E_UNAVAILABLE);
  CHECK(result.tag == 77);
}

TEST_CASE("a client is its thread's: another thread is refused until it adopts it") {
  const Pool pool = pool_of_nobody();
  Client client = new_client(pool);
  std::thread([&] {
    CHECK(set(client.get(), "k", "v") == EGRET_E_THREAD);
    CHECK(egret_progress(client.get()) == EGRET_E_THREAD);
    egret_client_free(client.get());  // refused, too: it lives
    CHECK(egret_client_adopt(client.get()) == EGRET_OK);
    CHECK(set(client.get(), "k", "v") == EGRET_E_UNAVAILABLE);
  }).join();
  CHECK(set(client.get(), "k", "v") == EGRET_E_THREAD);
  CHECK(egret_client_adopt(client.get()) == EGRET_OK);
  CHECK(set(client.get(), "k", "v") == EGRET_E_UNAVAILABLE);
}

TEST_CASE("each thread has its own client of a pool, which ends with it") {
  const Pool pool = pool_of_nobody();
  egret_client* const mine = egret_client_mine(pool.get());
  CHECK(mine != nullptr);
  CHECK(egret_client_mine(pool.get()) == mine);
  std::thread([&] {
    egret_client* const other = egret_client_mine(pool.get());
    CHECK(other != mine);
    CHECK(set(other, "k", "v") == EGRET_E_UNAVAILABLE);
  }).join();
}

TEST_CASE("after a fork the parent's client is refused, also where no handler of pthread_atfork has run") {
  const Pool pool = pool_of_nobody();
  const Client client = new_client(pool);
  REQUIRE(egret_client_mine(pool.get()) != nullptr);
  const auto in_child = [&] {
    const bool is_refused =
        set(client.get(), "k", "v") == EGRET_E_FORKED && egret_client_adopt(client.get()) == EGRET_E_FORKED;
    egret_client* const anew = egret_client_mine(pool.get());
    return is_refused && anew != nullptr && set(anew, "k", "v") == EGRET_E_UNAVAILABLE ? 0 : 1;
  };
  pid_t child = ::fork();
  if (child == 0) ::_exit(in_child());
  CHECK(exit_code_of(child) == 0);
  child = static_cast<pid_t>(::syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) ::_exit(in_child());
  CHECK(exit_code_of(child) == 0);
  CHECK(set(client.get(), "k", "v") == EGRET_E_UNAVAILABLE);
}

TEST_CASE("counters have names, and those of another thread's client are refused") {
  const Pool pool = pool_of_nobody();
  const Client client = new_client(pool);
  const int count = egret_counters(client.get(), nullptr, nullptr, 0);
  REQUIRE(count > 0);
  std::vector<const char*> names(static_cast<size_t>(count));
  std::vector<uint64_t> values(names.size(), 99);
  CHECK(egret_counters(client.get(), names.data(), values.data(), 3) == count);
  CHECK(names[2] != nullptr);
  CHECK(names[3] == nullptr);
  CHECK(values[3] == 99);
}
