// A store that is kept in a file: what it was it is again, and what is no store's, or was not left in order, is not
// taken up.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {

constexpr uint64_t kMemory = 8u << 20;

// A file name of its own on a tmpfs; the file goes with it.
struct WarmFile {
  WarmFile() : path("/dev/shm/egret-warm-test." + std::to_string(::getpid()) + "." + std::to_string(++made)) {
    remove();
  }
  ~WarmFile() { remove(); }
  void remove() const { std::remove(path.c_str()); }
  void write_at(uint64_t offset, std::string_view bytes) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    REQUIRE(file.good());
  }
  static inline int made = 0;
  const std::string path;
};

StoreConfig config_in(const WarmFile& file, uint64_t memory = kMemory) {
  StoreConfig config = small_store(memory, 1u << 20);
  config.warm_path = file.path;
  return config;
}

// A store in that file, stopped and started as often as a test likes. Its clock goes on.
struct WarmHarness : Harness {
  explicit WarmHarness(const StoreConfig& wanted) : Harness(wanted) {}
  void stop() {
    check();
    store.reset();
  }
  void start() {
    auto made = Store::create(config);
    REQUIRE_MESSAGE(made.is_ok(), made.message());
    store = std::move(made.value());
    check();
    store->begin_pass();
    check();
  }
  void restart(uint64_t seconds = 0) {
    stop();
    clock.advance_seconds(seconds);
    start();
  }
  ~WarmHarness() {
    if (store == nullptr) start();  // ~Harness looks at it
  }
};

// All that a client can see of an item.
std::string seen(WarmHarness& h, const std::string& key) {
  op::Op op = h.make(op::OpCode::kGet, key);
  op.options = op::kWantCas | op::kWantMeta | op::kPeek;
  const op::Result result = h.run(op);
  if (result.code != ResultCode::kHit) return "-";
  std::string all = std::to_string(result.cas) + " " + std::to_string(result.client_flags) + " " +
                    std::to_string(result.ttl) + " " + std::to_string(result.last_access) + " " +
                    std::to_string(result.marks) + " ";
  return all + h.whole_value(key, result);
}

// Why the file was not taken up; the store is stopped again.
std::string reason(const StoreConfig& config) {
  WarmHarness h(config);
  CHECK(h.store->counts().items == 0);
  std::string why = h.store->opening().empty_because;
  // It is as good as any other.
  for (uint64_t i = 0; i < 3'000; ++i) REQUIRE(h.set(key_of(i), std::string(5'000, 'n')) == ResultCode::kStored);
  CHECK(h.get(key_of(2'999)) == std::string(5'000, 'n'));
  h.check();
  return why;
}

// Leaves a store with an item in it, cleanly stopped.
void leave_store(const StoreConfig& config) {
  WarmHarness h(config);
  REQUIRE(h.set("key", "value") == ResultCode::kStored);
  h.stop();
  h.start();
  REQUIRE(h.store->counts().items == 1);
}

}  // namespace

TEST_CASE("a store without items, and one with a few, start as they were") {
  WarmFile file;
  WarmHarness h(config_in(file));
  CHECK(h.store->opening().empty_because == "the file is new");
  h.restart();
  CHECK(h.store->opening().empty_because.empty());
  CHECK(h.set("a", "1", 0, 77) == ResultCode::kStored);
  CHECK(h.set("b", std::string(900'000, 'b'), 100) == ResultCode::kStored);
  const std::string a = seen(h, "a");
  const std::string b = seen(h, "b");
  h.restart();
  CHECK(h.store->opening().empty_because.empty());
  CHECK(seen(h, "a") == a);
  CHECK(seen(h, "b") == b);
}

TEST_CASE("everything is kept, over several restarts in the middle of evicting and growing") {
  WarmFile file;
  WarmHarness h(config_in(file));
  std::mt19937_64 random(11);
  std::vector<std::string> values = {"", "v", std::string(100, 's'), std::string(9'000, 'm'),
                                     std::string(300'000, 'l')};
  for (int turn = 0; turn < 6; ++turn) {
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = key_of(random() % 40'000);
      const uint64_t dice = random() % 1'000;
      if (dice < 300) {
        h.get(key);
      } else if (dice < 320) {
        h.erase(key);
      } else {
        const size_t size = dice < 900 ? random() % 3 : dice < 999 ? 3 : 4;
        h.set(key, values[size] + std::to_string(i), random() % 3 == 0 ? 1'000 : 0, static_cast<uint32_t>(random()));
      }
    }
    std::map<std::string, std::string> before;
    for (uint64_t i = 0; i < 40'000; ++i) before[key_of(i)] = seen(h, key_of(i));
    const uint64_t items = h.stat(StatId::kCurrItems);
    const uint64_t bytes = h.stat(StatId::kBytes);
    const uint64_t used = h.store->memory().used;
    REQUIRE(items > 1'000);
    h.restart();
    REQUIRE(h.store->opening().empty_because.empty());
    CHECK(h.stat(StatId::kCurrItems) == items);
    CHECK(h.stat(StatId::kBytes) == bytes);
    CHECK(h.store->memory().used <= used);  // a page that was being drained may have been the last of it
    for (const auto& [key, was] : before) REQUIRE(seen(h, key) == was);
  }
}

TEST_CASE("no CAS is given out twice, whatever restarts come between") {
  WarmFile file;
  StoreConfig config = config_in(file);
  config.cas_stride = 3;
  config.cas_offset = 2;
  WarmHarness h(config);
  uint64_t last = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    h.set("key", "value");
    const uint64_t cas = h.gets("key").cas;
    CHECK(cas > last);
    CHECK(cas % 3 == 2);
    last = cas;
    if (i % 5 == 0) h.restart();
  }
  CHECK(h.cas("key", "new", last) == ResultCode::kStored);
}

TEST_CASE("the time between a stop and a start counts: for expiry, for a flush that was pending, for last access") {
  WarmFile file;
  WarmHarness h(config_in(file));
  h.set("short", "v", 10);
  h.set("long", "v", 100);
  h.set("forever", "v");
  h.restart(10);
  CHECK(h.get("short") == "-");
  CHECK(h.get("long") == "v");
  op::Op look = h.make(op::OpCode::kGet, "forever");
  look.options = op::kWantMeta | op::kPeek;
  CHECK(h.run(look).last_access == 10);

  op::Op flush = h.make(op::OpCode::kFlush, "");
  flush.exptime = 20;
  CHECK(h.run(flush).code == ResultCode::kOk);
  h.restart(5);
  CHECK(h.get("forever") == "v");
  h.restart(30);
  CHECK(h.get("forever") == "-");
  h.set("new", "v");
  h.restart();
  CHECK(h.get("new") == "v");
}

TEST_CASE("what a flush hid stays hidden, and is swept") {
  WarmFile file;
  WarmHarness h(config_in(file));
  for (uint64_t i = 0; i < 1'000; ++i) h.set(key_of(i), "v");
  CHECK(h.run(h.make(op::OpCode::kFlush, "")).code == ResultCode::kOk);
  h.set("after", "v");
  h.restart();
  CHECK(h.get(key_of(7)) == "-");
  CHECK(h.get("after") == "v");
  while (h.store->idle_step()) {
  }
  CHECK(h.store->counts().items == 1);
}

TEST_CASE("an upload or a pin that was open leaves nothing behind") {
  WarmFile file;
  WarmHarness h(config_in(file));
  h.set("pinned", std::string(500'000, 'p'));
  {
    auto pin = h.store->pin("pinned", op::hash_key("pinned", h.config.hash_seed));
    REQUIRE(bool{pin});
    h.erase("pinned");
    auto reserved = h.store->reserve("up", 500'000);
    REQUIRE(reserved.code == ResultCode::kOk);
    CHECK(reserved.upload.write(0, std::string(300'000, 'u')) == ResultCode::kOk);
  }
  h.restart();
  CHECK(h.store->counts().items == 0);
  CHECK(h.get("pinned") == "-");
  CHECK(h.get("up") == "-");
}

TEST_CASE("a store that was not stopped is not taken up") {
  WarmFile file;
  const StoreConfig config = config_in(file);
  leave_store(config);
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    base::ManualClock clock;
    StoreConfig its = config;
    its.clock = &clock;
    its.hash_seed = 12345;
    const auto made = Store::create(its);
    made.value()->begin_pass();
    std::raise(made.is_ok() && made.value()->counts().items == 1 ? SIGKILL : SIGTERM);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  CHECK(kept_hash_seed(file.path).status().message() == "the process before was killed, not stopped");
  CHECK(reason(config) == "the process before was killed, not stopped");
  CHECK(kept_hash_seed(file.path).is_ok());  // that one was stopped
}

TEST_CASE("a store that was opened and not used yet is still kept, however its process ends") {
  WarmFile file;
  const StoreConfig config = config_in(file);
  leave_store(config);
  base::ManualClock clock;
  StoreConfig its = config;
  its.clock = &clock;
  its.hash_seed = 12345;
  {
    const auto made = Store::create(its);
    REQUIRE(made.is_ok());
    CHECK(made.value()->counts().items == 1);
    CHECK(kept_hash_seed(file.path).is_ok());
    made.value()->begin_pass();
    CHECK_FALSE(kept_hash_seed(file.path).is_ok());
  }
  CHECK(kept_hash_seed(file.path).is_ok());
}

TEST_CASE("other options: the store starts empty and names the one that has changed") {
  WarmFile file;
  const StoreConfig config = config_in(file);
  const auto changed = [&](auto change) {
    file.remove();
    leave_store(config);
    StoreConfig other = config;
    change(other);
    return reason(other);
  };
  CHECK(changed([](StoreConfig& other) { other.memory_limit *= 2; }) ==
        "the file has another size: memory or partitions has changed");
  CHECK(changed([](StoreConfig& other) { other.memory_limit /= 2; }) ==
        "the file has another size: memory or partitions has changed");
  CHECK(changed([](StoreConfig& other) { other.item_size_max /= 2; }) == "item_size_max has changed");
  CHECK(changed([](StoreConfig& other) { other.cas_stride = 2; }) == "partitions has changed");
  file.remove();
  leave_store(config);
  StoreConfig other = config;
  other.evict = false;
  WarmHarness h(other);
  CHECK(h.store->opening().empty_because == "evict has changed");
  CHECK(h.store->counts().items == 0);
}

TEST_CASE("the hash seed can be read before the store is opened; with another seed it starts empty") {
  WarmFile file;
  const StoreConfig config = config_in(file);
  CHECK(kept_hash_seed(file.path).status().message() == "the file is new");
  leave_store(config);
  const auto seed = kept_hash_seed(file.path);
  REQUIRE(seed.is_ok());
  CHECK(seed.value() == 12345);
  base::ManualClock clock;
  StoreConfig other = config;
  other.clock = &clock;
  other.hash_seed = 54321;
  const auto made = Store::create(other);
  REQUIRE(made.is_ok());
  CHECK(made.value()->opening().empty_because == "the hash seed has changed");
  CHECK(made.value()->counts().items == 0);
  CHECK_FALSE(kept_hash_seed(file.path).is_ok());  // it is in use
}

TEST_CASE("any damage to what describes the store is noticed") {
  WarmFile file;
  const StoreConfig config = config_in(file);
  for (const uint64_t offset : {0u, 8u, 16u, 24u, 40u, 60u, 100u, 200u, 1'000u}) {
    file.remove();
    leave_store(config);
    REQUIRE(kept_hash_seed(file.path).is_ok());
    file.write_at(offset, std::string(3, '\x5a'));
    CAPTURE(offset);
    CHECK_FALSE(kept_hash_seed(file.path).is_ok());
    CHECK_FALSE(reason(config).empty());
  }
}

TEST_CASE("whatever a file holds that is no store's: it starts empty and works") {
  WarmFile file;
  const StoreConfig config = config_in(file);
  std::mt19937_64 random(5);
  std::string garbage(kMemory, '\0');
  for (char& byte : garbage) byte = static_cast<char>(random());
  const mode_t mask = ::umask(0077);  // a file that others may open is refused
  std::ofstream(file.path, std::ios::binary) << garbage;
  CHECK_FALSE(kept_hash_seed(file.path).is_ok());
  CHECK(reason(config) == "the file is not a store's");
  CHECK(kept_hash_seed(file.path).is_ok());
  file.remove();
  std::ofstream(file.path) << "short";
  ::umask(mask);
  CHECK(kept_hash_seed(file.path).status().message() == "the file is not a store's");
  CHECK(reason(config) == "the file has another size: memory or partitions has changed");
}

TEST_CASE("a file that cannot be had: a clear error") {
  base::ManualClock clock;
  const auto error_of = [&](const std::string& path) {
    StoreConfig config = small_store(kMemory, 1u << 20);
    config.clock = &clock;
    config.warm_path = path;
    return Store::create(config).status().message();
  };
  WarmFile file;
  CHECK(error_of("/none/store") == "warm_restart: the directory /none: No such file or directory");
  REQUIRE(::mkfifo(file.path.c_str(), 0600) == 0);
  CHECK_FALSE(kept_hash_seed(file.path).is_ok());
  CHECK(error_of(file.path) == "warm_restart: " + file.path + " is not a regular file");
  file.remove();
  WarmHarness h(config_in(file));
  h.set("key", "value");
  CHECK(error_of(file.path).find("warm_restart: another process holds " + file.path) == 0);
  CHECK(h.get("key") == "value");
}

TEST_CASE("a file that somebody else may have made, or may change, is refused, and stays as it was") {
  base::ManualClock clock;
  const auto error_at = [&](const std::string& path) {
    StoreConfig config = small_store(kMemory, 1u << 20);
    config.clock = &clock;
    config.warm_path = path;
    return Store::create(config).status().message();
  };
  WarmFile file;
  const auto make = [&] {
    file.remove();
    const int fd = ::open(file.path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd >= 0);
    REQUIRE(::write(fd, "theirs", 6) == 6);
    ::close(fd);
  };
  const auto is_untouched = [&] { return std::filesystem::file_size(file.path) == 6; };
  make();
  REQUIRE(::chmod(file.path.c_str(), 0606) == 0);
  CHECK(error_at(file.path) == "warm_restart: " + file.path + " is open to other users: its mode must be 0600");
  CHECK(is_untouched());
  make();
  const std::string other = file.path + ".link";
  REQUIRE(::link(file.path.c_str(), other.c_str()) == 0);
  CHECK(error_at(file.path).find("has another name besides") != std::string::npos);
  CHECK(is_untouched());
  ::unlink(other.c_str());
  file.remove();
  REQUIRE(::symlink("/dev/null", file.path.c_str()) == 0);
  CHECK(error_at(file.path).find("cannot open " + file.path) != std::string::npos);
  file.remove();
  const std::string folder = file.path + ".d";
  REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
  REQUIRE(::chmod(folder.c_str(), 0777) == 0);
  CHECK(error_at(folder + "/store").find("other users may replace files in " + folder) != std::string::npos);
  CHECK(std::filesystem::is_empty(folder));
  REQUIRE(::chmod(folder.c_str(), 01777) == 0);
  CHECK(error_at(folder + "/store").empty());
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file of another user is refused" * doctest::skip(::geteuid() != 0)) {
  WarmFile file;
  { WarmHarness made(config_in(file)); }
  REQUIRE(::chown(file.path.c_str(), 65534, 65534) == 0);
  CHECK(kept_hash_seed(file.path).status().message() == "the file is not ours");
  base::ManualClock clock;
  StoreConfig config = config_in(file);
  config.clock = &clock;
  const auto refused = Store::create(config);
  REQUIRE_FALSE(refused.is_ok());
  CHECK(refused.message().find("belongs to uid 65534, this process runs as uid 0") != std::string::npos);
}

TEST_CASE("a limit that was lowered lasts until the restart: items stay, and the room is there again") {
  WarmFile file;
  WarmHarness h(config_in(file));
  for (uint64_t i = 0; i < 20'000; ++i) h.set(key_of(i), std::string(500, 'v'));
  CHECK(h.store->memory().most_limit == kMemory);
  REQUIRE(h.store->set_memory_limit(4u << 20) == ResultCode::kOk);
  while (h.store->idle_step()) {
  }
  CHECK(h.store->memory().used <= 4u << 20);
  struct stat status {};
  REQUIRE(::stat(file.path.c_str(), &status) == 0);
  CHECK(status.st_blocks * 512 <= 5 << 20);  // what the file system has given it
  const uint64_t items = h.store->counts().items;
  h.restart();
  CHECK(h.store->counts().items == items);
  CHECK(h.store->memory().limit == kMemory);
  for (uint64_t i = 0; i < 20'000; ++i) h.set(key_of(i), std::string(500, 'v'));
  CHECK(h.store->counts().items > items * 3 / 2);
  CHECK(h.store->memory().used <= kMemory);
}

TEST_CASE("a store in a file can be resident from the beginning, and is kept all the same") {
  WarmFile file;
  StoreConfig config = config_in(file);
  config.populate = true;
  WarmHarness h(config);
  h.set("key", "value");
  h.restart();
  CHECK(h.get("key") == "value");
}

}  // namespace egret::store
