// Members are told that a change is warm, before keys go to them. The test plays each of them, one after the other.
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "pool/warm/phase.h"
#include "pool/warm/warm_telling.h"
#include "pool_played_member.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;

namespace {

Membership members(const std::vector<std::string>& names, const Membership& before = {}) {
  std::vector<Member> list;
  for (const std::string& name : names) list.push_back({"shm:" + name, name});
  return {PlacementRule::kKetama, list, 1, {&before}};
}

struct Told final : WarmTellingOwner {
  Told() { played = &member; }
  void run(const Membership& membership, const Health& health = {}) {
    rpc::SessionOptions session;
    session.op_timeout_ns = session.connect_timeout_ns = 50'000'000;
    telling.start(membership, health, session, 70);
    CHECK(telling.is_under_way());
    while (calls == 0) loop.run_once(true);
    CHECK_FALSE(telling.is_under_way());
  }
  void on_warm_told(size_t its_told, size_t its_members) override {
    ++calls;
    told = its_told;
    of = its_members;
  }

  PlayedMember member;
  const base::SystemClock clock;
  events::EventLoop loop;
  WarmTelling telling{loop, clock, *this, connect_to_played};
  int calls = 0;
  size_t told = 0, of = 0;
};

}  // namespace

TEST_CASE("each partition of a member is told how long the phase lasts") {
  Told owner;
  std::vector<uint64_t> seconds;
  owner.member.answer = [&](const op::Op& op) {
    CHECK(op.code == op::OpCode::kAdmin);
    CHECK(op.group == static_cast<uint8_t>(op::AdminVerb::kWarm));
    REQUIRE(op.value.size() == sizeof(uint64_t));
    std::memcpy(&seconds.emplace_back(), op.value.data(), sizeof(uint64_t));
    return rpc::result_of(ResultCode::kOk);
  };
  owner.run(members({"one"}));
  CHECK(owner.told == 1);
  CHECK(owner.of == 1);
  CHECK(seconds == std::vector<uint64_t>(kLayout.lanes, 70));
}

TEST_CASE("who cannot be told is not waited for for long") {
  Told owner;
  SUBCASE("it refuses") {
    owner.member.answer = [](const op::Op&) { return rpc::result_of(ResultCode::kForbidden); };
  }
  SUBCASE("it is of an earlier version") {
    owner.member.features = 0;
  }
  SUBCASE("it cannot be reached") {
    owner.member.behaviour = Behaviour::kRefusesConnection;
  }
  SUBCASE("it says nothing") {
    owner.member.behaviour = Behaviour::kSaysNothing;
  }
  SUBCASE("it executes nothing") {
    owner.member.behaviour = Behaviour::kExecutesNothing;
  }
  owner.run(members({"one"}));
  CHECK(owner.told == 0);
  CHECK(owner.of == 1);
}

TEST_CASE("an ejected member is not asked, and a pool without others is told at once") {
  Told owner;
  const Membership one = members({"one"});
  owner.run(one, Health(1, std::array<const MemberStats*, 1>{one.members()[0].stats.get()}));
  CHECK(owner.told == 0);
  CHECK(owner.of == 1);
  CHECK(owner.member.endpoint == nullptr);
}

TEST_CASE("only a pool of which a member stays is the same pool") {
  const Membership before = members({"one", "two"});
  CHECK(WarmPhase::is_of_one_pool(before, members({"two", "three"}, before)));
  CHECK_FALSE(WarmPhase::is_of_one_pool(before, members({"three"}, before)));
  CHECK_FALSE(WarmPhase::is_of_one_pool({}, before));
}
