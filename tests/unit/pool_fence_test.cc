// A fence: over when all that was sent before is answered, whatever becomes of it.
#include <algorithm>
#include <array>
#include <vector>

#include "pool/warm/fence.h"
#include "rpc_played_backend.h"

using namespace egret;
using namespace egret::pool;
using op::ResultCode;

namespace {

constexpr wire::RegionLayout kTwoLanes{.lanes = 2, .window = 2, .request_slot_size = 1024, .response_slot_size = 1024};

struct Counting final : rpc::Waiter {
  void on_result(const op::Result&) override { ++results; }
  int results = 0;
};

op::Op get() {
  op::Op op;
  op.code = op::OpCode::kGet;
  op.key = "key";
  return op;
}

op::Result ok(const op::Op& op) {
  return rpc::result_of(op.code == op::OpCode::kPing ? ResultCode::kOk : ResultCode::kMiss);
}

}  // namespace

TEST_CASE("a fence is over when each op that was appended before is answered, on every lane") {
  rpc::PlayedBackend backend(1 << 20, kTwoLanes);
  Counting waiter;
  for (size_t lane = 0; lane < 2; ++lane) REQUIRE(backend.session.lanes()[lane].append(get(), &waiter));
  Fence fence;
  CHECK(fence.is_over());
  fence.start(std::array{&backend.session});
  CHECK_FALSE(fence.is_over());
  std::vector<op::OpCode> seen;
  backend.serve([&](const op::Op& op) {
    seen.push_back(op.code);
    return ok(op);
  });
  CHECK(waiter.results == 2);
  CHECK(std::ranges::count(seen, op::OpCode::kPing) == 2);
  CHECK(fence.is_over());
  CHECK(fence.is_clean());
}

TEST_CASE("a fence waits for credit behind those who were there first") {
  rpc::PlayedBackend backend(1 << 20);
  Counting waiter;
  backend.use_up_credit(waiter);
  Fence fence;
  fence.start(std::array{&backend.session});
  backend.serve(ok);
  CHECK(waiter.results > 0);
  CHECK_FALSE(fence.is_over());  // its ping has only now found credit
  backend.serve(ok);
  CHECK(fence.is_over());
  CHECK(fence.is_clean());
}

TEST_CASE("a lost session has answered all its ops, but not cleanly") {
  Counting waiter;
  rpc::PlayedBackend backend(1 << 20, kTwoLanes);
  Fence fence;
  fence.start(std::array{&backend.session});
  SUBCASE("while the pings are under way") {}
  SUBCASE("while they wait for credit") {
    backend.use_up_credit(waiter);
    fence.start(std::array{&backend.session});
  }
  backend.lose();
  CHECK(fence.is_over());
  CHECK_FALSE(fence.is_clean());
  fence.start(std::array{&backend.session});  // not open: nothing is under way with it
  CHECK(fence.is_over());
  CHECK(fence.is_clean());
}

TEST_CASE("a fence that begins anew, or goes, leaves nothing behind that waits") {
  rpc::PlayedBackend backend(1 << 20);
  Counting waiter;
  {
    Fence fence;
    fence.start(std::array{&backend.session});
    backend.use_up_credit(waiter);
    fence.start(std::array{&backend.session});
    CHECK_FALSE(backend.session.credit().empty());
  }
  CHECK(backend.session.credit().empty());
  backend.serve(ok);
}
