// Owners that this process never lost are purged of what others have changed in the gutter: read, purge, mark. The test
// plays all backends.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "pool/gutter/looks.h"
#include "pool_played_gutter.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;
using Names = std::set<std::string>;
using Marks = std::vector<std::pair<uint32_t, uint64_t>>;

namespace {

struct Looking final : LooksObserver {
  Looking() {
    stores_played = &stores;
    rpc::SessionOptions session;
    session.connect_timeout_ns = session.op_timeout_ns = 20'000'000;
    looks.set_options(session);
    looks.set_membership(membership);
  }
  // What one of the gutter, m3 or m4, says of the owner's changes in one partition: those from `purged` on are not purged.
  void list(int gutter, uint32_t partition, uint64_t purged, uint64_t end, uint64_t epoch = 1) {
    Listed listed{.gutter = membership->gutter()[static_cast<size_t>(gutter - 3)].stats,
                  .epoch = epoch,
                  .partition = partition,
                  .partitions = kLayout.lanes};
    listed.owner = {.tag = tag_of(owner), .end = PlayedStore::kFirst + end, .purged = PlayedStore::kFirst + purged};
    listing.push_back(listed);
  }
  void look() {
    looks.on_listing(listing, [this](const MemberStats& member) { return &member == absent; });
    listing.clear();
  }
  void run_until(const std::function<bool()>& is_done) {
    while (!is_done()) loop.run_once(true);
  }
  // Whatever may be under way has had its turns.
  void settle() {
    for (int i = 0; i < 50; ++i) loop.run_once(false);
  }
  bool has_asked() const {
    return std::ranges::any_of(stores, [](const PlayedStore& store) { return !store.member.got.empty(); });
  }
  void on_looked(const Membership::Entry& its, uint64_t keys, bool is_flush) override {
    told += its.member.name + (is_flush ? "all" : std::to_string(keys));
  }

  PlayedStores stores;
  const base::SystemClock clock;
  events::EventLoop loop;
  std::shared_ptr<const Membership> membership = pool_with_gutter({0, 1, 2}, {3, 4});
  Looks looks{loop, clock, *this, connect_to_gutter};
  Listing listing;
  std::string owner = "m1";
  const MemberStats* absent = nullptr;
  std::string told;
};

}  // namespace

TEST_CASE("keys that others have changed are deleted on their owner, and the gutter is told up to where") {
  Looking pool;
  pool.stores[3].logs = {std::vector<std::string>{"a", "b"}, {}, {"c", "d"}};
  pool.list(3, 0, 1, 2);  // a is purged
  pool.list(3, 2, 0, 2);
  pool.look();
  pool.run_until([&] { return pool.stores[3].marks.size() == kLayout.lanes; });
  CHECK(pool.stores[1].deleted == Names{"b", "c", "d"});
  CHECK(pool.told == "m13");
  CHECK((pool.stores[3].marks == Marks{{0, 102}, {1, 100}, {2, 102}}));
  CHECK(pool.stores[3].tags == std::set<uint64_t>{tag_of("m1")});
  CHECK(pool.stores[0].member.got.empty());
  CHECK(pool.stores[4].member.got.empty());
}

TEST_CASE("each of the gutter is looked at by itself") {
  Looking pool;
  pool.stores[3].logs[0] = {"a"};
  pool.stores[4].logs[0] = {"b"};
  pool.list(3, 0, 0, 1);
  pool.list(4, 0, 0, 1);
  pool.look();
  pool.run_until([&] { return !pool.stores[3].marks.empty() && !pool.stores[4].marks.empty(); });
  CHECK(pool.stores[1].deleted == Names{"a", "b"});
}

TEST_CASE("if not all changes are known the owner is flushed") {
  Looking pool;
  pool.stores[3].logs[0] = {"a"};
  SUBCASE("the log has overflowed") {
    pool.stores[3].has_forgotten = true;
    pool.list(3, 0, 0, 1);
  }
  SUBCASE("it was another process that listed it") {
    pool.list(3, 0, 0, 1, 7);
  }
  pool.look();
  pool.run_until([&] { return pool.stores[3].marks.size() == kLayout.lanes; });
  CHECK(pool.told == "m1all");
  CHECK(pool.stores[1].flushes == kLayout.lanes);
  CHECK(pool.stores[1].deleted.empty());
}

TEST_CASE("nobody is asked for what is purged, for owners that are absent here, or for those of other pools") {
  Looking pool;
  pool.stores[3].logs[0] = {"a"};
  SUBCASE("everything is purged") {
    pool.list(3, 0, 1, 1);
  }
  SUBCASE("the owner is absent here") {
    pool.absent = pool.membership->members()[1].stats.get();
    pool.list(3, 0, 0, 1);
  }
  SUBCASE("an owner of another pool") {
    pool.owner = "elsewhere";
    pool.list(3, 0, 0, 1);
  }
  SUBCASE("one of the gutter that has left") {
    pool.list(3, 0, 0, 1);
    pool.looks.set_membership(pool_with_gutter({0, 1, 2}, {4}, *pool.membership));
  }
  pool.look();
  pool.settle();
  CHECK_FALSE(pool.has_asked());
}

TEST_CASE("what is under way is not begun again") {
  Looking pool;
  pool.stores[3].logs[0] = {"a"};
  pool.stores[3].member.behaviour = Behaviour::kSaysNothing;
  pool.list(3, 0, 0, 1);
  pool.look();
  pool.stores[3].member.behaviour = Behaviour::kAnswers;
  for (int i = 0; i < 3; ++i) {
    pool.list(3, 0, 0, 1);
    pool.look();
  }
  pool.settle();
  CHECK_FALSE(pool.has_asked());
}

TEST_CASE("what fails is not marked as purged, and is done when it is listed again") {
  Looking pool;
  pool.stores[3].logs[0] = {"a"};
  PlayedStore* asked = &pool.stores[1];
  SUBCASE("the owner refuses") {
    pool.stores[1].refusal = ResultCode::kForbidden;
  }
  SUBCASE("the gutter refuses") {
    asked = &pool.stores[3];
    pool.stores[3].refusal = ResultCode::kForbidden;
  }
  pool.list(3, 0, 0, 1);
  pool.look();
  pool.run_until([&] { return !asked->member.got.empty(); });
  pool.settle();
  CHECK(pool.stores[3].marks.empty());
  pool.stores[1].refusal = pool.stores[3].refusal = ResultCode::kOk;
  pool.run_until([&] {
    pool.list(3, 0, 0, 1);
    pool.look();
    return !pool.stores[3].marks.empty();
  });
  CHECK(pool.stores[1].deleted == Names{"a"});
}

TEST_CASE("a look ends when its owner or its gutter leaves") {
  Looking pool;
  pool.stores[3].logs[0] = {"a"};
  pool.list(3, 0, 0, 1);
  pool.look();
  SUBCASE("the owner") {
    pool.looks.set_membership(pool_with_gutter({0, 2}, {3, 4}, *pool.membership));
  }
  SUBCASE("the gutter") {
    pool.looks.set_membership(pool_with_gutter({0, 1, 2}, {4}, *pool.membership));
  }
  pool.settle();
  CHECK(pool.told.empty());
  CHECK_FALSE(pool.has_asked());
}
