// A client that has failed inside, as egret.h says of EGRET_E_BROKEN: it does nothing any more, and all others go on. The test makes
// it fail by a lack of memory: this program's operator new, which libegret.so finds before that of libstdc++, refuses one allocation.
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "backend_process.h"
#include "session.h"

namespace {

// How many allocations of this thread are made before one is refused; negative: none is.
thread_local int64_t left_until_refusal = -1;

void* allocate(size_t size) {
  if (left_until_refusal >= 0 && left_until_refusal-- == 0) throw std::bad_alloc();
  if (void* const made = std::malloc(size > 0 ? size : 1); made != nullptr) return made;
  throw std::bad_alloc();
}

// Does the work; one allocation is refused, after so many that are not. False: it asked for fewer.
template <typename Work>
bool is_refused(int64_t after, Work work) {
  left_until_refusal = after;
  work();
  const bool was_refused = left_until_refusal < 0;
  left_until_refusal = -1;
  return was_refused;
}

}  // namespace

void* operator new(size_t size) {
  return allocate(size);
}
void* operator new[](size_t size) {
  return allocate(size);
}
void operator delete(void* made) noexcept {
  std::free(made);
}
void operator delete[](void* made) noexcept {
  std::free(made);
}
void operator delete(void* made, size_t) noexcept {
  std::free(made);
}
void operator delete[](void* made, size_t) noexcept {
  std::free(made);
}

// What a broken client had is left alone for ever, which AddressSanitizer would call a leak.
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0";
}

namespace {

// What libegret says in its log meanwhile.
struct Log {
  Log() {
    egret_log(
        [](void* user, int level, const char* line) {
          const int64_t left = std::exchange(left_until_refusal, -1);  // from here on the test itself allocates
          static_cast<Log*>(user)->text += std::to_string(level) + " " + line + "\n";
          left_until_refusal = left;
        },
        this);
  }
  ~Log() { egret_log(nullptr, nullptr); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  std::string text;
};

std::vector<int> codes_of_all_calls(egret_client* c) {
  egret_result result = empty_result();
  const egret_op op = op_of(EGRET_GET, "k");
  const char* const key = "k";
  const size_t length = 1;
  char bytes[8];
  return {egret_client_connect(c, 0),
          egret_get(c, key, length, &result),
          egret_get_into(c, key, length, bytes, sizeof bytes, nullptr),
          egret_gat(c, key, length, 0, &result),
          egret_set(c, key, length, "v", 1, 0, 0),
          egret_store(c, EGRET_MODE_ADD, key, length, "v", 1, 0, 0, 0, &result),
          egret_delete(c, key, length, 0),
          egret_incr(c, key, length, 1, nullptr),
          egret_decr(c, key, length, 1, nullptr),
          egret_touch(c, key, length, 0),
          egret_mget(c, &key, &length, 1, &result),
          egret_execute(c, &op, 1, &result),
          egret_flush_all(c, 0),
          egret_submit(c, &op, 1),
          egret_flush(c),
          egret_reap(c, &result, 1),
          egret_wait(c, &result, 1, 1, -1),
          egret_forget(c, 0),
          egret_fd(c),
          egret_arm(c),
          egret_progress(c),
          egret_on_result(c, nullptr, nullptr),
          egret_counters(c, nullptr, nullptr, 0)};
}

void check_broken(egret_client* c, const Log& log) {
  for (const int code : codes_of_all_calls(c)) CHECK(code == EGRET_E_BROKEN);
  CHECK(egret_pending(c) == 0);
  CHECK(std::string(egret_why(c)) == "no memory");
  CHECK(log.text.find("3 a client is broken: no memory\n") != std::string::npos);
}

// A large value goes and comes, and ops are under way. The first code of a failure, else EGRET_OK.
int work_with(egret_client* c, const std::string& large) {
  if (const int code = egret_set(c, "large", 5, large.data(), large.size(), 0, 0); code < 0) return code;
  egret_result result = empty_result();
  const int got = egret_get(c, "large", 5, &result);
  egret_release(&result);
  if (got < 0) return got;
  const egret_op op = op_of(EGRET_GET, "k");
  for (int i = 0; i < 8; ++i) {
    if (const int taken = egret_submit(c, &op, 1); taken < 0) return taken;
  }
  const int reaped = egret_wait(c, &result, 1, 8, -1);  // seven wait for room
  if (reaped > 0) egret_release(&result);
  return reaped < 0 ? reaped : EGRET_OK;
}

}  // namespace

TEST_CASE("a client that has failed inside: every call says so, results from before are whole, and others go on") {
  BackendProcess backend;
  const Pool pool = open_pool({{"backends", backend.address()}});
  const Client other = new_client(pool);
  connect(other.get());
  const std::string value = patterned(3000), large = patterned(700'000);
  REQUIRE(set(other.get(), "k", value) == EGRET_STORED);
  int broken = 0;
  for (int64_t after = 0;; ++after) {
    CAPTURE(after);
    const Log log;
    const Client client = new_client(pool);
    connect(client.get());
    egret_result before = empty_result();
    REQUIRE(egret_get(client.get(), "k", 1, &before) == EGRET_HIT);
    int code = EGRET_OK;
    const bool was_refused = is_refused(after, [&] { code = work_with(client.get(), large); });
    if (code == EGRET_E_BROKEN) {
      ++broken;
      check_broken(client.get(), log);
    } else {
      CHECK(get(client.get(), "k") == value);
    }
    CHECK(value_of(before) == value);
    CHECK(egret_release(&before) == EGRET_OK);
    CHECK(get(other.get(), "k") == value);
    if (!was_refused) break;
  }
  CHECK(broken > 0);
}

TEST_CASE("a client that fails inside while it makes its sessions is broken, and the next one of its thread is not") {
  BackendProcess backend;
  const Pool pool = open_pool({{"backends", backend.address()}});
  connect(new_client(pool).get());
  int broken = 0;
  for (int64_t after = 0;; ++after) {
    CAPTURE(after);
    const Log log;
    const Client client = new_client(pool);
    int code = EGRET_OK;
    const bool was_refused = is_refused(after, [&] { code = egret_client_connect(client.get(), -1); });
    if (code == EGRET_E_BROKEN) {
      ++broken;
      check_broken(client.get(), log);
    } else {
      CHECK(set(client.get(), "k", "v") == EGRET_STORED);
    }
    if (!was_refused) break;
  }
  CHECK(broken > 0);
}

TEST_CASE("a thread's own client that is broken is made anew") {
  BackendProcess backend;
  const Pool pool = open_pool({{"backends", backend.address()}});
  connect(new_client(pool).get());
  egret_client* const first = egret_client_mine(pool.get());
  int code = EGRET_OK;
  CHECK(is_refused(0, [&] { code = egret_client_connect(first, -1); }));
  CHECK(code == EGRET_E_BROKEN);
  egret_client* const second = egret_client_mine(pool.get());
  CHECK(set(second, "k", "v") == EGRET_STORED);
  CHECK(egret_client_mine(pool.get()) == second);
}

TEST_CASE("a client for which there is no memory is not made") {
  const Pool pool = open_pool({{"backends", "shm:/nonexistent/egret-backend"}});
  egret_client* client = nullptr;
  int code = EGRET_OK;
  int64_t after = 0;
  for (; is_refused(after, [&] { code = egret_client_new(pool.get(), &client); }); ++after) {
    CAPTURE(after);
    CHECK(code == EGRET_E_MEMORY);
    CHECK(client == nullptr);
  }
  CHECK(after > 0);
  CHECK(code == EGRET_OK);
  egret_client_free(client);
}
