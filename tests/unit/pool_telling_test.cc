// What a member is told of a change, the dialogue with a partition, and what is owed to members that were not told.
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "pool/change/debts.h"
#include "pool/membership_code.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;
using Next = PartitionTelling::Next;

namespace {

std::shared_ptr<const Membership> members(const std::set<int>& numbers) {
  std::vector<Member> members;
  for (const int number : numbers) members.push_back({"rdma:h" + std::to_string(number), "m" + std::to_string(number)});
  return std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                            std::initializer_list<const Membership*>{});
}
Member member(int number) {
  return {"rdma:h" + std::to_string(number), "m" + std::to_string(number)};
}

struct Said : op::MemberChangeHead {
  std::string part;
};
Said said(const PartitionTelling& telling) {
  const std::string value = telling.value();
  Said said{};
  REQUIRE(value.size() >= sizeof(op::MemberChangeHead));
  std::memcpy(static_cast<op::MemberChangeHead*>(&said), value.data(), sizeof(op::MemberChangeHead));
  said.part = value.substr(sizeof(op::MemberChangeHead));
  return said;
}

}  // namespace

TEST_CASE(
    "a member that is reached by another transport of its host and port is the same one; elsewhere it is another") {
  const auto with = [](const std::string& address) {
    const std::vector<Member> members{{"rdma:h0", "m0"}, {address, "m1"}};
    return std::make_shared<const Membership>(PlacementRule::kKetama, members, 1,
                                              std::initializer_list<const Membership*>{});
  };
  for (const char* before : {"rdma:h:1", "tcp:h:1", "rdma+tcp:h:1"}) {
    for (const char* after : {"rdma:h:1", "tcp:h:1", "rdma+tcp:h:1"}) {
      const MemberNews news = news_for({after, "m1"}, with(before).get(), *with(after));
      CHECK_FALSE(news.before.empty());
      CHECK(news.from == news.to);
      CHECK(index_of(*with(after), {before, "m1"}) == 1);
    }
  }
  CHECK(news_for({"tcp:h:2", "m1"}, with("tcp:h:1").get(), *with("tcp:h:2")).before.empty());
  CHECK(news_for({"tcp:h:1", "m1"}, with("shm:h:1").get(), *with("tcp:h:1")).before.empty());
  CHECK(index_of(*with("tcp:h:1"), {"tcp:h:1", "other"}) == kNoMember);
}

TEST_CASE("a member is told who belonged to the pool before, as it saw it") {
  const auto three = members({0, 1, 2});
  const auto four = members({0, 1, 2, 3});
  const MemberNews stays = news_for(member(1), three.get(), *four);
  const auto seen = decode_membership(stays.before);
  REQUIRE(seen);
  CHECK(seen.value().mine == 1);
  CHECK(stays.from == number_of_membership(stays.before));
  const MemberNews joins = news_for(member(3), three.get(), *four);
  CHECK(joins.before.empty());
  CHECK(joins.from != 0);
  const MemberNews leaves = news_for(member(3), four.get(), *three);
  CHECK(decode_membership(leaves.before).value().mine == 3);
  CHECK(leaves.from == joins.to);
  CHECK(leaves.to == joins.from);
  const MemberNews starts = news_for(member(1), nullptr, *four);
  CHECK(starts.from == 0);
  CHECK(starts.to == stays.to);
  CHECK(starts.before.empty());
}

TEST_CASE("another address is another member, which joins") {
  const auto three = members({0, 1, 2});
  const Member moved{"rdma:elsewhere", "m1"};
  CHECK(index_of(*three, member(1)) == 1);
  CHECK(index_of(*three, moved) == kNoMember);
  const Membership next(PlacementRule::kKetama, std::vector<Member>{member(0), moved}, 1, {});
  CHECK(news_for(moved, three.get(), next).before.empty());
}

TEST_CASE("a partition is asked, sent all parts, and asked with pauses until it is done") {
  const std::vector<MemberNews> news{news_for(member(0), members({0, 1, 2}).get(), *members({0, 1}))};
  PartitionTelling telling(news, 10);
  CHECK(said(telling).part.empty());
  CHECK(said(telling).length == news[0].before.size());
  std::string collected;
  CHECK(telling.on_answer(ResultCode::kNoUpload) == Next::kSend);
  while (collected.size() < news[0].before.size()) {
    const Said part = said(telling);
    CHECK(part.from == news[0].from);
    CHECK(part.to == news[0].to);
    CHECK(part.offset == collected.size());
    collected += part.part;
    if (collected.size() < news[0].before.size()) CHECK(telling.on_answer(ResultCode::kStored) == Next::kSend);
  }
  CHECK(collected == news[0].before);
  for (int i = 0; i < 3; ++i) {
    CHECK(telling.on_answer(ResultCode::kNotStored) == Next::kSendLater);
    CHECK(said(telling).part.empty());
  }
  CHECK(telling.on_answer(ResultCode::kOk) == Next::kOver);
  CHECK(telling.is_over());
  CHECK_FALSE(telling.belongs_to_others());
}

TEST_CASE("a partition that has forgotten the parts gets all of them again") {
  const std::vector<MemberNews> news{news_for(member(0), members({0, 1, 2}).get(), *members({0, 1}))};
  PartitionTelling telling(news, 10);
  telling.on_answer(ResultCode::kNoUpload);
  telling.on_answer(ResultCode::kStored);
  CHECK(said(telling).offset == 10);
  CHECK(telling.on_answer(ResultCode::kNoUpload) == Next::kSend);
  CHECK(said(telling).offset == 0);
  CHECK(said(telling).part == news[0].before.substr(0, 10));
}

TEST_CASE("several changes are told one after the other; one of other members is noted, a refusal ends it") {
  const std::vector<MemberNews> news{news_for(member(0), members({0, 1, 2}).get(), *members({0, 1})),
                                     news_for(member(0), members({0, 1}).get(), *members({0, 2}))};
  PartitionTelling telling(news);
  CHECK(telling.on_answer(ResultCode::kExists) == Next::kSend);
  CHECK(said(telling).from == news[1].from);
  CHECK(telling.belongs_to_others());
  CHECK(telling.on_answer(ResultCode::kOk) == Next::kOver);
  CHECK(telling.refusal() == ResultCode::kOk);
  PartitionTelling refused(news);
  CHECK(refused.on_answer(ResultCode::kForbidden) == Next::kOver);
  CHECK(refused.refusal() == ResultCode::kForbidden);
}

TEST_CASE("a partition that was told of several changes, and whose answer was lost, belongs to the last members") {
  const std::vector<MemberNews> changes{{.from = 5, .to = 6, .before = "a"}, {.from = 6, .to = 7, .before = "b"}};
  PartitionTelling again(changes);
  CHECK(again.on_answer(ResultCode::kExists) == Next::kSend);
  CHECK(again.belongs_to_others());
  CHECK(again.on_answer(ResultCode::kOk) == Next::kOver);
  CHECK(!again.belongs_to_others());
}

TEST_CASE("changes that a member was not told of are owed in their order; what comes meanwhile stays owed") {
  const auto two = members({0, 1});
  const auto three = members({0, 1, 2});
  Debt debt;
  CHECK(debt.is_paid());
  debt.add(nullptr, two, 7);
  CHECK_FALSE(debt.holds_back());
  debt.add(two, three, 8);
  CHECK(debt.holds_back());
  const std::vector<MemberNews> news = debt.news(member(0));
  REQUIRE(news.size() == 2);
  CHECK(news[0].from == 0);
  CHECK(news[0].to == news[1].from);
  debt.add(three, two, 9);
  debt.pay();
  CHECK_FALSE(debt.is_paid());
  REQUIRE(debt.news(member(0)).size() == 1);
  CHECK(debt.news(member(0))[0].from == news[1].to);
  debt.pay();
  CHECK(debt.is_paid());
  CHECK_FALSE(debt.holds_back());
}

TEST_CASE("who is owed too much is to remove everything, whatever it was told before") {
  const auto two = members({0, 1});
  const auto three = members({0, 1, 2});
  Debt debt;
  for (size_t i = 0; i < Debt::kMostSteps; ++i) debt.add(i % 2 == 0 ? two : three, i % 2 == 0 ? three : two, 90 + i);
  CHECK(debt.news(member(0)).size() == Debt::kMostSteps);
  debt.add(two, three, 99);
  debt.pay();
  CHECK_MESSAGE(debt.holds_back(), "what was told before does not pay for it");
  const std::vector<MemberNews> news = debt.news(member(0));
  REQUIRE(news.size() == 2);
  CHECK(news[0].from != 0);
  CHECK(news[0].before.empty());
  CHECK(news[0].to == 99);
  CHECK(news[1].from == 99);
  CHECK(news[1].before.empty());
  CHECK(news[1].to == news_for(member(0), nullptr, *three).to);
}
