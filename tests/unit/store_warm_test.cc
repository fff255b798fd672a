// A store in a file: what a clean stop keeps, and what any other start does. See backend/store/warm.cc.
#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
// A file's name that is nobody else's, and a store in it that can be stopped and started.
struct Warm {
  Warm() {
    h.config.warm_path = path;
    h.config.memory_limit = 4u << 20;
    h.config.item_size_max = 512u << 10;
    start();
  }
  ~Warm() {
    h.config.warm_path.clear();
    start();  // for the harness to check
    std::filesystem::remove(path);
    std::filesystem::remove(copy);
  }
  void start() {
    h.store.reset();
    auto made = Store::create(h.config);
    REQUIRE(made.is_ok());
    h.store = std::move(made.value());
  }
  void restart() {
    h.check();
    start();
    h.check();
  }
  // As if the process had been killed now.
  void kill() {
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    h.store.reset();
    std::filesystem::rename(copy, path);
    start();
  }

  const std::string path =
      (std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path().string()) +
      "/egret-store-warm-" + std::to_string(::getpid());
  const std::string copy = path + "-copy";
  Harness h{small_store()};
};

std::string value_of(uint64_t number) {
  return std::string(number * 37 % 20'000, static_cast<char>('a' + number % 26));
}
}  // namespace

TEST_CASE("a clean stop and start keep every item, its CAS, flags, time and marks") {
  Warm warm;
  Harness& h = warm.h;
  std::vector<uint64_t> cas;
  for (uint64_t i = 0; i < 200; ++i) {
    h.set(std::to_string(i), value_of(i), i % 2 == 0 ? 100 : 0, static_cast<uint32_t>(i));
    cas.push_back(h.gets(std::to_string(i)).cas);
  }
  op::Op invalidate = h.make(op::OpCode::kDelete, "1");
  invalidate.options = op::kInvalidate | op::kExplicitCas;
  invalidate.new_cas = cas[1] = 4711;
  CHECK(h.run(invalidate).code == ResultCode::kDeleted);
  warm.restart();
  CHECK(h.store->warm_note() == "200 items kept");
  for (uint64_t i = 0; i < 200; ++i) {
    CHECK(h.get(std::to_string(i)) == value_of(i));
    const op::Result got = h.gets(std::to_string(i));
    CHECK(got.cas == cas[i]);
    CHECK(got.client_flags == i);
  }
  op::Op meta = h.make(op::OpCode::kGet, "1");
  meta.options = op::kWantMeta;
  CHECK((h.run(meta).marks & op::kStale) != 0);
  CHECK(h.stat(StatId::kCurrItems) == 200);
  h.set("new", "v");
  CHECK(h.gets("new").cas > cas[199]);
  h.pass_seconds(100);
  CHECK(h.get("0") == "-");
  CHECK(h.get("3") == value_of(3));
}

TEST_CASE("the time that passes while it is stopped counts: for expiry, and for a flush that was pending") {
  Warm warm;
  Harness& h = warm.h;
  h.set("short", "v", 10);
  h.set("long", "v", 1000);
  h.store.reset();
  h.clock.advance_seconds(10);
  warm.start();
  CHECK(h.get("short") == "-");
  CHECK(h.get("long") == "v");
  h.flush_all(5);
  h.store.reset();
  h.clock.advance_seconds(20);
  warm.start();
  CHECK(h.get("long") == "-");
  h.set("new", "v");
  CHECK(h.get("new") == "v");
}

TEST_CASE("what was flushed stays so, and is swept") {
  Warm warm;
  Harness& h = warm.h;
  for (uint64_t i = 0; i < 100; ++i) h.set(std::to_string(i), "v");
  h.flush_all();
  h.set("new", "v");
  warm.restart();
  CHECK(h.get("1") == "-");
  CHECK(h.get("new") == "v");
  for (int i = 0; i < 1000; ++i) h.store->begin_pass();
  CHECK(h.store->item_count() == 1);
}

TEST_CASE("a full store goes on where it was stopped, in the midst of draining a page") {
  Warm warm;
  Harness& h = warm.h;
  uint64_t number = 0;
  for (int round = 0; round < 50; ++round) {
    for (int i = 0; i < 997; ++i, ++number)
      REQUIRE(h.set(std::to_string(number), value_of(number)) == ResultCode::kStored);
    const uint64_t items = h.store->item_count();
    warm.restart();
    CHECK(h.store->item_count() == items);
  }
}

TEST_CASE("whoever was killed starts empty, and says so") {
  Warm warm;
  Harness& h = warm.h;
  h.set("a", "v");
  warm.kill();
  CHECK(h.store->warm_note() == "started empty: the last process was not stopped, but killed");
  CHECK(h.get("a") == "-");
  CHECK(h.set("a", "w") == ResultCode::kStored);
  warm.restart();
  CHECK(h.get("a") == "w");
}

TEST_CASE("other options, another size, a damaged or a strange file: it starts empty and is sound") {
  Warm warm;
  Harness& h = warm.h;
  const auto starts_empty = [&] {
    warm.start();
    CHECK(h.store->warm_note().starts_with("started empty"));
    CHECK(h.store->item_count() == 0);
    for (uint64_t i = 0; i < 30'000; ++i) REQUIRE(h.set(std::to_string(i), "value") == ResultCode::kStored);
    for (uint64_t i = 0; i < 3'000; ++i) REQUIRE(h.set(std::to_string(i), value_of(i)) == ResultCode::kStored);
    h.check();
  };
  h.set("a", "v");
  h.config.item_size_max = 256u << 10;
  starts_empty();
  h.config.cas_stride = 2;
  starts_empty();
  h.config.memory_limit = 5u << 20;
  starts_empty();
  h.store.reset();
  std::fstream(warm.path, std::ios::in | std::ios::out).seekp(200).write("damage", 6);
  starts_empty();
  h.store.reset();
  std::ofstream(warm.path) << std::string(5u << 20, '\xa5');
  starts_empty();
}

TEST_CASE("the hash seed of a kept store can be asked for before it is started") {
  Warm warm;
  CHECK(!Store::kept_hash_seed(warm.path));  // in use
  warm.h.store.reset();
  CHECK(Store::kept_hash_seed(warm.path) == 12345);
  CHECK(!Store::kept_hash_seed(warm.path + "-not-there"));
}

TEST_CASE("two stores cannot have the same file") {
  Warm warm;
  CHECK(!Store::create(warm.h.config).is_ok());
}

}  // namespace egret::store
