// Values in parts: who has room at the backend, and what becomes of an upload that is given up.
#include <algorithm>
#include <string>
#include <vector>

#include "rpc/large/large_set.h"
#include "rpc_played_backend.h"

using namespace egret;
using namespace egret::rpc;
using op::OpCode;

namespace {

constexpr uint32_t kItemSizeMax = 4000;
constexpr uint64_t kSecond = 1'000'000'000;

op::Op set_of(std::string_view key) {
  op::Op op;
  op.code = OpCode::kSet;
  op.key = key;
  return op;
}

// The backend, and what came to it.
struct Fixture {
  LargeSet* upload(std::string_view key, uint32_t total) {
    return new LargeSet(backend.session, set_of(key), total, ++uploads);
  }
  void serve() {
    backend.serve([&](const op::Op& op) {
      if (op.code == OpCode::kAbort) aborted.push_back(op.upload_id);
      if (op.code == OpCode::kUpload) received += op.value;
      return result_of(op.code == OpCode::kGet ? op::ResultCode::kMiss : op::ResultCode::kOk);
    });
  }

  PlayedBackend backend{kItemSizeMax};
  Listener others;
  std::vector<uint32_t> aborted;
  std::string received;  // of all uploads
  uint32_t uploads = 0;
};

struct Uploads {
  LargeSet* slow;
  LargeSet* next;
};

// A slow upload loses its room to the next one, while there is no credit for the slow one's abort.
Uploads lose_room(Fixture& f) {
  LargeSet* slow = f.upload("slow", 3000);
  REQUIRE(slow->enter());
  CHECK(slow->send(std::string(500, 's')) == 500);
  f.serve();
  LargeSet* next = f.upload("next", 3000);
  REQUIRE(!next->enter());
  next->wait_for_room();
  f.backend.use_up_credit(f.others);
  f.backend.pass_time(2 * kSecond);
  return {slow, next};
}

}  // namespace

TEST_CASE("an upload that loses its room, and is abandoned while its abort waits for credit, is aborted once") {
  Fixture f;
  const auto [slow, next] = lose_room(f);
  CHECK(slow->failure() == op::ResultCode::kOutOfMemory);
  slow->abandon();
  for (int i = 0; i < 3; ++i) f.serve();
  CHECK(f.aborted == std::vector<uint32_t>{1});
  CHECK(next->enter());
  next->abandon();
  f.serve();
  CHECK(f.aborted == std::vector<uint32_t>{1});
}

TEST_CASE("who has lost its room keeps it until its abort is on its way: no part of another overtakes it") {
  Fixture f;
  const auto [slow, next] = lose_room(f);
  CHECK(!next->enter());
  f.serve();
  f.serve();
  CHECK(next->enter());
  for (LargeSet* set : {slow, next}) set->abandon();
  f.serve();
}

namespace {
// A store in the client's thread, which takes everything.
struct Taker final : op::DirectStore {
  bool execute(const op::Op&, op::Result&, op::LoanName&) override { return false; }
  bool has_share() const override { return false; }
  void execute_all(std::span<const op::Op>, op::ResultTaker&) override {}
  bool begin_part(const op::Op& part, uint32_t most, op::PartRoom& room) override {
    if (!takes) return false;
    memory.resize(std::min(most, part.length - part.offset));
    room.add(memory);
    return true;
  }
  void end_part(const op::Op&, uint32_t length) override { taken += length; }
  bool takes = true;
  std::string memory;
  uint32_t taken = 0;
};

uint32_t receive(LargeSet& set, uint32_t bytes) {
  op::PartRoom room;
  if (!set.begin_part(100'000, room)) return 0;
  set.end_part(room, std::min(bytes, room.length));
  return std::min(bytes, room.length);
}
}  // namespace

TEST_CASE("where another thread has the store, bytes are received in the request slots that they go by") {
  Fixture f;
  LargeSet* const set = f.upload("key", 3000);
  REQUIRE(set->enter());
  std::string value;
  while (set->left() > 0) {
    // A get of another client is before it in the same message, now and then.
    if (value.size() % 2 == 0) f.backend.session.lanes().of(0).append(get_of("other"), &f.others);
    op::PartRoom room;
    REQUIRE(set->begin_part(1000, room));
    CHECK(room.count > 0);
    CHECK(room.length >= room.least);
    CHECK(room.length <= 1000);
    for (size_t i = 0; i < room.count; ++i) {
      for (char& byte : room.pieces[i]) value += byte = static_cast<char>('a' + value.size() % 26);
    }
    set->end_part(room, room.length);
    f.serve();
  }
  CHECK(f.received == value);
  CHECK(value.size() == 3000);
  set->abandon();
  f.serve();
}

TEST_CASE("room in slots that is not filled, or in part, is nothing sent; where there is no credit there is none") {
  Fixture f;
  LargeSet* const set = f.upload("key", 3000);
  REQUIRE(set->enter());
  op::PartRoom room;
  REQUIRE(set->begin_part(3000, room));
  std::ranges::fill(room.pieces[0], 'x');
  set->end_part(room, 0);
  f.serve();
  CHECK(f.received.empty());
  CHECK(set->left() == 3000);
  REQUIRE(set->begin_part(3000, room = {}));
  std::ranges::fill(room.pieces[0], 'y');
  set->end_part(room, 5);
  f.serve();
  CHECK(f.received == "yyyyy");
  CHECK(set->left() == 2995);
  f.backend.use_up_credit(f.others);
  CHECK(!set->begin_part(3000, room = {}));
  set->abandon();
  f.serve();
  f.serve();
}

TEST_CASE("a client that sends a byte now and then is slow, whether parts go by slots or not") {
  Fixture f;
  Taker store;
  f.backend.endpoint->direct = &store;
  LargeSet* slow = f.upload("slow", 3000);
  REQUIRE(slow->enter());
  CHECK(receive(*slow, 100) == 100);
  LargeSet* next = f.upload("next", 3000);
  REQUIRE(!next->enter());
  next->wait_for_room();
  for (int i = 0; i < 4; ++i) {
    f.backend.pass_time(kSecond / 2);
    if (slow->failure() == op::ResultCode::kOk) CHECK(receive(*slow, 1) == 1);
  }
  CHECK(slow->failure() == op::ResultCode::kOutOfMemory);
  CHECK(next->enter());
  f.serve();  // the abort
  CHECK(next->send(std::string(3000, 'n')) == 3000);
  CHECK(store.taken >= 3100);
  slow->abandon();
  next->abandon();
  f.serve();
}

TEST_CASE("while parts are in slots, those of other uploads are not written before them, and take no room of theirs") {
  Fixture f;
  Taker store;
  f.backend.endpoint->direct = &store;
  LargeSet* first = f.upload("first", 1000);
  LargeSet* second = f.upload("second", 1000);
  REQUIRE((first->enter() && second->enter()));
  store.takes = false;
  CHECK(first->send(std::string(500, 'f')) == 500);
  store.takes = true;
  CHECK(receive(*second, 100) == 0);
  CHECK(second->send(std::string(500, 's')) == 500);
  CHECK(store.taken == 0);
  f.serve();
  CHECK(receive(*second, 100) == 100);
  CHECK(receive(*first, 100) == 100);
  for (LargeSet* set : {first, second}) set->abandon();
  f.serve();
  f.serve();
}

TEST_CASE("a client that stops after the backend was slow is slow itself, once its bytes are taken directly again") {
  Fixture f;
  Taker store;
  f.backend.endpoint->direct = &store;
  LargeSet* slow = f.upload("slow", 3900);
  REQUIRE(slow->enter());
  store.takes = false;
  CHECK(slow->send(std::string(3800, 's')) < 3800);  // no credit for more
  f.serve();
  f.backend.pass_time(kSecond / 100);
  store.takes = true;
  CHECK(receive(*slow, 1) == 1);
  LargeSet* next = f.upload("next", 3000);
  REQUIRE(!next->enter());
  next->wait_for_room();
  f.backend.pass_time(2 * kSecond);
  CHECK(slow->failure() == op::ResultCode::kOutOfMemory);
  slow->abandon();
  next->abandon();
  f.serve();
}

TEST_CASE("an upload that begins after an idle hour has its room for as long as any other") {
  Fixture f;
  f.backend.clock.advance_ns(3600 * kSecond);
  LargeSet* begun = f.upload("begun", 3000);
  REQUIRE(begun->enter());
  SUBCASE("before its first byte") {}
  SUBCASE("after a part of it") {
    CHECK(begun->send(std::string(500, 'b')) == 500);
  }
  LargeSet* next = f.upload("next", 3000);
  REQUIRE(!next->enter());
  next->wait_for_room();
  f.backend.pass_time(kSecond / 2);
  CHECK(begun->failure() == op::ResultCode::kOk);
  f.backend.pass_time(kSecond / 2);
  CHECK(begun->failure() == op::ResultCode::kOutOfMemory);
  for (LargeSet* set : {begun, next}) set->abandon();
  f.serve();
}

TEST_CASE("an upload that waited for room and is collected instead holds up nobody who comes later") {
  Fixture f;
  LargeSet* open = f.upload("open", 3000);
  REQUIRE(open->enter());
  LargeSet* collected = f.upload("collected", 2000);
  REQUIRE(!collected->enter());
  collected->wait_for_room();
  collected->stop_waiting_for_room();
  collected->abandon();
  LargeSet* later = f.upload("later", 900);
  CHECK(later->enter());
  for (LargeSet* set : {open, later}) set->abandon();
  f.serve();
}

TEST_CASE("a session that is lost fails its uploads, and leaves nothing behind of those that are given up") {
  Fixture f;
  LargeSet* sending = f.upload("sending", 3000);
  REQUIRE(sending->enter());
  CHECK(sending->send(std::string(500, 's')) == 500);
  LargeSet* waiting = f.upload("waiting", 3000);
  REQUIRE(!waiting->enter());
  waiting->wait_for_room();
  f.backend.lose();
  for (LargeSet* set : {sending, waiting}) {
    CHECK(set->enter());
    CHECK(set->failure() == op::ResultCode::kSessionLost);
    set->abandon();
  }
}
