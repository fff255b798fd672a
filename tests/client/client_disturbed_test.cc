// Ops under way while the proxy and the backend stand still, are killed, stop and start again: each op is answered once, what is
// acknowledged is done, and nothing is done that was not asked for. Increments show it, since each of them counts.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "backend_process.h"
#include "proxy_process.h"
#include "session.h"

namespace {

using Over = BackendProcess::Over;

constexpr size_t kCounters = 8;
constexpr size_t kUnderWay = 32;
constexpr int64_t kForEver = -1;

// Where a backend keeps its items while it is replaced: in memory, as warm_restart asks.
struct MemoryFolder {
  MemoryFolder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~MemoryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path = "/dev/shm/egret-client-test-XXXXXX";
};

std::string name_of(size_t counter) {
  return "n" + std::to_string(counter);
}

// Increments, so many under way at any time; and what became of them.
class Load {
 public:
  explicit Load(egret_client* client) : client_(client) {
    for (size_t i = 0; i < kCounters; ++i) REQUIRE(set(client_, name_of(i), "0") == EGRET_STORED);
  }

  // Goes on until so many more were acknowledged.
  void until_acknowledged(uint64_t more) {
    for (const uint64_t end = acknowledged_ + more; acknowledged_ < end;) step();
  }
  // Goes on until one was not answered in time, or could not be sent.
  void until_one_fails() {
    for (const uint64_t end = unknown_ + not_sent_ + 1; unknown_ + not_sent_ < end;) step();
  }
  void drain() {
    while (!under_way_.empty()) wait();
  }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t unknown() const { return unknown_; }

 private:
  void step() {
    while (under_way_.size() < kUnderWay) {
      const std::string key = name_of(next_ % kCounters);
      egret_op op = op_of(EGRET_ARITH, key, next_);
      op.delta = 1;
      if (egret_submit(client_, &op, 1) != 1) break;
      under_way_.insert(next_++);
    }
    wait();
  }
  void wait() {
    std::vector<egret_result> results(kUnderWay, empty_result());
    const int count = egret_wait(client_, results.data(), results.size(), under_way_.empty() ? 0 : 1, kForEver);
    REQUIRE(count >= 0);
    for (const egret_result& result : std::vector(results.begin(), results.begin() + count)) {
      REQUIRE(under_way_.erase(result.tag) == 1);
      acknowledged_ += result.code == EGRET_NUMBER ? 1 : 0;
      unknown_ += result.code == EGRET_E_UNKNOWN ? 1 : 0;
      not_sent_ += result.code == EGRET_E_UNAVAILABLE ? 1 : 0;
      const bool is_expected = result.code == EGRET_NUMBER || is_no_answer(result.code);
      if (!is_expected) FAIL("an increment was answered by " << egret_text(result.code));
      if (result.code == EGRET_E_UNAVAILABLE) ::usleep(500);  // else they fail by the thousand
    }
  }

  egret_client* const client_;
  std::set<uint64_t> under_way_;  // tags
  uint64_t next_ = 0;
  uint64_t acknowledged_ = 0, unknown_ = 0, not_sent_ = 0;
};

uint64_t sum_of_counters(egret_client* client) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kCounters; ++i) {
    std::string found = get(client, name_of(i));
    for (int attempt = 0; attempt < 6000 && found[0] == '('; ++attempt) {
      ::usleep(10'000);
      found = get(client, name_of(i));
    }
    REQUIRE(found[0] != '(');
    sum += std::stoull(found);
  }
  return sum;
}

// `straight`: libegret's option.
void disturb(Over over, const char* straight) {
  const MemoryFolder folder;
  BackendProcess backend({"warm_restart=" + folder.path + "/items"}, over);
  ProxyProcess proxy({"backends=" + backend.address(), "op_timeout=200ms", "reconnect_max=50ms"});
  const Pool pool = open_pool(
      {{"proxy", proxy.address()}, {"straight", straight}, {"op_timeout", "200ms"}, {"reconnect_max", "50ms"}});
  const Client client = new_client(pool);
  connect(client.get());
  Load load(client.get());
  const bool is_relayed = std::string(straight) == "none";
  const std::vector<std::pair<const char*, std::function<void()>>> disturbances = {
      {"the backend stands still",
       [&] {
         backend.halt();
         load.until_one_fails();
         backend.signal(SIGCONT);
       }},
      {"the proxy stands still",
       [&] {
         proxy.halt();
         if (is_relayed) load.until_one_fails();
         if (!is_relayed) load.until_acknowledged(1000);
         proxy.signal(SIGCONT);
       }},
      {"the proxy is killed",
       [&] {
         proxy.end(SIGKILL);
         if (is_relayed) load.until_one_fails();
         proxy.start();
       }},
      {"the proxy is replaced",
       [&] {
         proxy.end(SIGTERM);
         proxy.start();
       }},
      {"the backend is replaced",
       [&] {
         backend.end(SIGTERM);
         backend.start();
       }},
  };
  for (int round = 0; round < 2; ++round) {
    for (const auto& disturbance : disturbances) {
      CAPTURE(disturbance.first);
      load.until_acknowledged(200);
      disturbance.second();
    }
  }
  load.until_acknowledged(200);
  load.drain();
  const uint64_t executed = sum_of_counters(client.get());
  CHECK(executed >= load.acknowledged());
  CHECK(executed <= load.acknowledged() + load.unknown());
}

}  // namespace

TEST_CASE("straight to the backend: increments that are acknowledged are done, once") {
  disturb(Over::kHost, "host");
}

TEST_CASE("through the proxy to a backend on this host: increments that are acknowledged are done, once") {
  disturb(Over::kHost, "none");
}

TEST_CASE("through the proxy to a backend over TCP: increments that are acknowledged are done, once") {
  disturb(Over::kNetwork, "none");
}
