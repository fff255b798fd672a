// Values in parts, chunks of a version, and pinned versions.
#include <algorithm>

#include <doctest/doctest.h>

#include "store_harness.h"

namespace egret::store {

using op::ResultCode;
using op::StatId;

namespace {
op::Op commit_of(const Harness& h, std::string_view key, op::SetMode mode = op::SetMode::kSet) {
  op::Op commit = h.make(op::OpCode::kCommit, key);
  commit.mode = mode;
  commit.client_flags = 9;
  return commit;
}
}  // namespace

TEST_CASE("an upload is seen when it is committed, and not before") {
  Harness h;
  const std::string value = pattern(100'000);
  h.set("a", "old");
  auto parts = upload(h, "a", value);
  CHECK(h.get("a") == "old");
  CHECK(parts.commit(commit_of(h, "a")).code == ResultCode::kStored);
  CHECK(h.get("a") == value);
  CHECK(h.gets("a").client_flags == 9);
  CHECK(h.stat(StatId::kCmdSet) == 2);
  h.check();
}

TEST_CASE("a commit is judged by mode and CAS, like a set") {
  Harness h;
  CHECK(upload(h, "a", "1").commit(commit_of(h, "a", op::SetMode::kReplace)).code == ResultCode::kNotStored);
  CHECK(upload(h, "a", "1").commit(commit_of(h, "a", op::SetMode::kAdd)).code == ResultCode::kStored);
  CHECK(upload(h, "a", "2").commit(commit_of(h, "a", op::SetMode::kAdd)).code == ResultCode::kNotStored);
  CHECK(upload(h, "a", "3").commit(commit_of(h, "a", op::SetMode::kAppend)).code == ResultCode::kStored);
  CHECK(h.get("a") == "13");
  op::Op cas = commit_of(h, "a");
  cas.options = op::kCompareCas;
  cas.cas = h.gets("a").cas + 1;
  CHECK(upload(h, "a", "4").commit(cas).code == ResultCode::kExists);
  cas.cas -= 1;
  CHECK(upload(h, "a", "5").commit(cas).code == ResultCode::kStored);
  CHECK(h.get("a") == "5");
}

TEST_CASE("parts come in order, without gaps, and all of them") {
  Harness h;
  auto reserved = h.store->reserve("a", 10);
  CHECK(reserved.upload.write(1, "x") == ResultCode::kInvalid);
  CHECK(reserved.upload.write(0, "01234") == ResultCode::kOk);
  CHECK(reserved.upload.write(0, "01234") == ResultCode::kInvalid);
  CHECK(reserved.upload.write(5, "567890") == ResultCode::kInvalid);
  CHECK(!reserved.upload.is_complete());
  CHECK(reserved.upload.commit(commit_of(h, "a")).code == ResultCode::kNoUpload);
  CHECK(Store::Upload{}.commit(commit_of(h, "a")).code == ResultCode::kNoUpload);
  CHECK(upload(h, "b", "1").commit(commit_of(h, "a")).code == ResultCode::kInvalid);
  CHECK(h.store->counts().items == 0);
}

namespace {
// Fills as much of the room as there is of `bytes`; returns the capacity of the room.
uint32_t fill(const op::PartRoom& room, std::string_view bytes) {
  uint32_t capacity = 0;
  for (size_t i = 0; i < room.count; ++i) {
    const size_t filled = bytes.copy(room.pieces[i].data(), room.pieces[i].size());
    bytes.remove_prefix(filled);
    capacity += static_cast<uint32_t>(room.pieces[i].size());
  }
  return capacity;
}
}  // namespace

TEST_CASE("parts that are filled in by the caller may be of any length, and mixed with parts that are copied") {
  Harness h;
  for (const uint32_t length : {1u, 4095u, 4096u, 4097u, 61'440u, 61'441u, 65'536u, 65'537u, 100'000u, 300'000u}) {
    const std::string value = pattern(length);
    for (const uint32_t step : {1000u, 4096u, 5000u, 65'536u, 70'000u, 400'000u}) {
      auto upload = std::move(h.store->reserve("a", length).upload);
      for (bool is_copied = false; !upload.is_complete(); is_copied = !is_copied) {
        const uint32_t offset = upload.received();
        const auto next = std::string_view(value).substr(offset, step);
        if (is_copied) {
          REQUIRE(upload.write(offset, next) == ResultCode::kOk);
          continue;
        }
        op::PartRoom room;
        REQUIRE(upload.begin_part(offset, length - offset, room) == ResultCode::kOk);
        CHECK(fill(room, next) == room.length);
        CHECK(room.length <= length - offset);
        const uint32_t filled = std::min(static_cast<uint32_t>(next.size()), room.length);
        upload.end_part(filled);
        CHECK(upload.received() == offset + filled);
      }
      CHECK(upload.commit(commit_of(h, "a")).code == ResultCode::kStored);
      CHECK(h.get("a") == value);
      h.check();
    }
  }
}

TEST_CASE("a part of which nothing was filled in leaves nothing behind, and the room is charged to uploads") {
  Harness h;
  const uint64_t before = h.store->memory().used;
  {
    auto upload = std::move(h.store->reserve("a", 500'000).upload);
    for (int i = 0; i < 1000; ++i) {
      op::PartRoom room;
      REQUIRE(upload.begin_part(0, 100'000, room) == ResultCode::kOk);
      CHECK(room.length == 100'000);
      upload.end_part(0);
    }
    CHECK(upload.received() == 0);
    op::PartRoom room;
    CHECK(upload.begin_part(1, 100, room) == ResultCode::kInvalid);
    CHECK(upload.begin_part(0, 500'001, room) == ResultCode::kInvalid);
    CHECK(room.count == 0);
    std::vector<Store::Upload> others;
    while (true) {
      auto other = h.store->reserve("b", 500'000);
      if (other.code != ResultCode::kOk || other.upload.write(0, pattern(500'000)) != ResultCode::kOk) break;
      others.push_back(std::move(other.upload));
    }
    CHECK(upload.begin_part(0, 500'000, room) == ResultCode::kOutOfMemory);
    others.clear();
    CHECK(upload.begin_part(0, 500'000, room) == ResultCode::kOk);
    upload.end_part(10);
  }
  CHECK(h.store->memory().used == before);
  h.check();
}

TEST_CASE("uploads together hold an eighth of the memory, and are promised half; a dropped one gives its share back") {
  Harness h(small_store(8u << 20, 256u << 10));
  const uint64_t before = h.store->memory().used;
  const std::string whole(200'000, 'w');
  {
    std::vector<Store::Upload> open;
    while (true) {
      auto reserved = h.store->reserve("a", 200'000);
      if (reserved.code != ResultCode::kOk) {
        CHECK(reserved.code == ResultCode::kOutOfMemory);
        break;
      }
      open.push_back(std::move(reserved.upload));
    }
    CHECK(open.size() == 20);
    size_t written = 0;
    while (open[written].write(0, whole) == ResultCode::kOk) ++written;
    CHECK(written == 5);
    CHECK(open[written].write(0, whole) == ResultCode::kOutOfMemory);
    open.erase(open.begin());
    CHECK_MESSAGE(open[written - 1].write(0, whole) == ResultCode::kOk, "the same one, when there is room again");
    CHECK(h.store->reserve("a", 200'000).code == ResultCode::kOk);
    CHECK(h.store->reserve("a", 300'000).code == ResultCode::kTooLarge);
    h.check();
  }
  CHECK(h.store->memory().used == before);
}

TEST_CASE(
    "uploads hold what those who send them have a right to, if that is more, but no more than half of the memory") {
  Harness h(small_store(8u << 20, 256u << 10));
  CHECK(h.store->memory().upload_room == 1u << 20);
  h.store->set_upload_rights(3u << 20);
  CHECK(h.store->memory().upload_room == 3u << 20);
  h.store->set_upload_rights(100u << 20);
  CHECK(h.store->memory().upload_room == 4u << 20);
  const std::string whole(200'000, 'w');
  std::vector<Store::Upload> open;
  for (auto code = ResultCode::kOk; code == ResultCode::kOk; code = open.back().write(0, whole)) {
    auto reserved = h.store->reserve("a", 200'000);
    REQUIRE(reserved.code == ResultCode::kOk);
    open.push_back(std::move(reserved.upload));
  }
  CHECK(open.size() == 21);  // of 13 chunks of 16 KiB each; the last was refused
  h.store->set_upload_rights(0);
  CHECK(h.store->reserve("a", 200'000).code == ResultCode::kOutOfMemory);
  h.check();
}

TEST_CASE("a set whose value was refused still removes the old item, if it is a plain set") {
  Harness h;
  h.set("a", "old");
  CHECK(h.store->refuse_set(commit_of(h, "a", op::SetMode::kReplace), ResultCode::kTooLarge).code ==
        ResultCode::kTooLarge);
  CHECK(h.get("a") == "old");
  CHECK(h.store->refuse_set(commit_of(h, "a"), ResultCode::kOutOfMemory).code == ResultCode::kOutOfMemory);
  CHECK(h.get("a") == "-");
  CHECK(h.stat(StatId::kStoreTooLarge) == 1);
  CHECK(h.stat(StatId::kStoreNoMemory) == 1);
}

TEST_CASE("chunks are of one version; a changed, deleted, expired item shows") {
  Harness h;
  const std::string value = pattern(50'000);
  h.set("a", value, 10);
  op::Op chunk = h.make(op::OpCode::kChunk, "a");
  chunk.version = h.gets("a").version;
  chunk.offset = 49'000;
  chunk.length = 4'000;
  CHECK(bytes_of(h.run(chunk)) == std::string_view(value).substr(49'000));
  CHECK(h.run(chunk).total_length == 50'000);
  h.touch("a", 10);
  CHECK(h.run(chunk).code == ResultCode::kHit);
  chunk.offset = 50'001;
  CHECK(h.run(chunk).code == ResultCode::kInvalid);
  chunk.offset = 0;
  h.set("a", value, 10);
  CHECK(h.run(chunk).code == ResultCode::kChanged);
  chunk.version = h.gets("a").version;
  h.pass_seconds(10);
  CHECK(h.run(chunk).code == ResultCode::kChanged);
}

TEST_CASE("a get of a large value answers as much of it as a chunk may hold, however it has grown") {
  Harness h;
  std::string value = pattern(100'000);
  h.set("a", value);
  for (const char* part : {"few", "more"}) {
    CHECK(h.store_as(op::SetMode::kPrepend, "a", part) == ResultCode::kStored);
    value.insert(0, part);
    const op::Result got = h.gets("a");
    CHECK(bytes_of(got) == std::string_view(value).substr(0, Store::kMaxChunk));
    CHECK(h.whole_value("a", got) == value);
  }
}

TEST_CASE("any stretch of a value is answered in full, wherever in its pieces it begins and ends") {
  Harness h;
  std::string value = pattern(100'000);
  h.set("a", value);
  // A small piece in front of a page; pages, chunks and a tail behind.
  CHECK(h.store_as(op::SetMode::kPrepend, "a", "few") == ResultCode::kStored);
  value.insert(0, "few");
  op::Op chunk = h.make(op::OpCode::kChunk, "a");
  chunk.version = h.gets("a").version;
  for (chunk.offset = 0; chunk.offset <= value.size(); chunk.offset += 1361) {
    for (const uint32_t length : {1u, 3u, 4'096u, 16'320u, Store::kMaxChunk, 100'000u}) {
      chunk.length = length;
      CHECK(bytes_of(h.run(chunk)) == std::string_view(value).substr(chunk.offset, std::min(length, Store::kMaxChunk)));
    }
  }
}

TEST_CASE("a pinned version stays readable through overwriting, deleting and eviction") {
  Harness h(small_store());
  const std::string value = pattern(50'000);
  const uint64_t hash = op::hash_key("a", h.config.hash_seed);
  CHECK(!h.store->pin("a", hash));
  h.set("a", value, 0, 5);
  const uint64_t version = h.gets("a").version;
  Store::Pin pin = h.store->pin("a", hash);
  REQUIRE(bool{pin});
  Store::Pin again = h.store->pin("a", hash);
  CHECK(h.set("a", std::string(50'000, 'x')) == ResultCode::kStored);
  h.check();
  CHECK(h.get("a") == std::string(50'000, 'x'));
  for (int i = 0; i < 50'000; ++i) h.set(std::to_string(i), "filler");
  CHECK(Harness::pinned_value(pin) == value);
  CHECK(pin.version() == version);
  CHECK(pin.client_flags() == 5);
  CHECK(pin.chunk(49'990, 100).value == std::string_view(value).substr(49'990));
  CHECK(pin.chunk(50'001, 1).code == ResultCode::kInvalid);
  again.release();
  CHECK(Harness::pinned_value(pin) == value);
  h.check();
}

TEST_CASE("a pinned number is left alone by incr, a pinned text by append") {
  Harness h;
  h.set("n", "10");
  Store::Pin pin = h.store->pin("n", op::hash_key("n", h.config.hash_seed));
  CHECK(h.arith("n", 1).number == 11);
  CHECK(Harness::pinned_value(pin) == "10");
  Store::Pin second = h.store->pin("n", op::hash_key("n", h.config.hash_seed));
  CHECK(h.store_as(op::SetMode::kAppend, "n", "0") == ResultCode::kStored);
  CHECK(Harness::pinned_value(second) == "11");
  CHECK(h.get("n") == "110");
}

TEST_CASE("a large value that is being read can be appended and prepended to; the reader still reads the old value") {
  Harness h(small_store(64u << 20, 8u << 20));
  for (const size_t length : {20'000u, 300'000u, 1'000'000u}) {
    const std::string value = pattern(length);
    h.set("a", value);
    Store::Pin pin = h.store->pin("a", op::hash_key("a", h.config.hash_seed));
    CHECK(h.store_as(op::SetMode::kAppend, "a", "more") == ResultCode::kStored);
    CHECK(Harness::pinned_value(pin) == value);
    h.check();
    Store::Pin second = h.store->pin("a", op::hash_key("a", h.config.hash_seed));
    CHECK(upload(h, "a", value).commit(commit_of(h, "a", op::SetMode::kPrepend)).code == ResultCode::kStored);
    CHECK(Harness::pinned_value(second) == value + "more");
    CHECK(h.get("a") == value + value + "more");
    h.check();
  }
  const std::string value = pattern(3'000'000);
  CHECK(upload(h, "a", value).commit(commit_of(h, "a")).code == ResultCode::kStored);
  Store::Pin pin = h.store->pin("a", op::hash_key("a", h.config.hash_seed));
  CHECK(h.store_as(op::SetMode::kAppend, "a", "more") == ResultCode::kStored);
  CHECK(pin.chunk(0, 10).code == ResultCode::kChanged);  // too much to be copied
  h.check();
  pin.release();
  CHECK(h.get("a") == value + "more");
}

TEST_CASE(
    "a pinned short value is left alone by a set, an append and a delete of the value that would fit in its place") {
  Harness h;
  h.set("a", "value");
  Store::Pin pin = h.store->pin("a", op::hash_key("a", h.config.hash_seed));
  CHECK(h.set("a", "other") == ResultCode::kStored);
  CHECK(Harness::pinned_value(pin) == "value");
  pin = h.store->pin("a", op::hash_key("a", h.config.hash_seed));
  op::Op drop = h.make(op::OpCode::kDelete, "a");
  drop.options = op::kDropValue;
  CHECK(h.run(drop).code == ResultCode::kDeleted);
  CHECK(Harness::pinned_value(pin) == "other");
  CHECK(h.get("a").empty());
}

TEST_CASE("pins together hold an eighth of the memory, or one of the largest items") {
  Harness h(small_store());
  const std::string value(40'000, 'v');
  std::vector<Store::Pin> pins;
  for (int i = 0; i < 10; ++i) {
    const std::string key = std::to_string(i);
    h.set(key, value);
    Store::Pin pin = h.store->pin(key, op::hash_key(key, h.config.hash_seed));
    if (pin) pins.push_back(std::move(pin));
  }
  CHECK(pins.size() == 1);
  CHECK(h.set("more", value) == ResultCode::kStored);
}

}  // namespace egret::store
