// Values in parts, fetched from a backend that the test plays.
#include <optional>
#include <string>

#include "rpc/large/large_get.h"
#include "rpc_played_backend.h"

using namespace egret;
using namespace egret::rpc;
using op::OpCode;

namespace {

constexpr uint32_t kItemSizeMax = 4000;
const std::string kValue(3000, 'v');

struct Fixture final : Waiter, LargeGetOwner {
  Fixture() {
    op::Op get;
    get.code = OpCode::kGet;
    get.key = "key";
    get.hash = backend.session.lanes().hash(get.key);
    REQUIRE(backend.session.lanes()[0].append(get, this));
  }
  void on_result(const op::Result& result) override {
    op::Op get;
    get.code = OpCode::kGet;
    get.key = "key";
    get.hash = backend.session.lanes().hash(get.key);
    large.emplace(backend.session, get, *this);
    large->start(result);
  }
  bool on_length(LargeGet&, uint32_t) override { return true; }
  void on_large_get(LargeGet& get) override {
    code = get.result().code;
    value = get.result().value;
    for (const std::string_view piece : get.result().further) value += piece;
  }
  // The whole value is said to be there; of each chunk, what chunk_of() gives.
  void serve(const std::function<std::string_view(const op::Op&)>& chunk_of) {
    serve_with([&](const op::Op& op) {
      if (op.code != OpCode::kChunk) return beginning();
      op::Result result = hit(chunk_of(op));
      result.total_length = static_cast<uint32_t>(kValue.size());
      return result;
    });
  }
  void serve_with(const std::function<op::Result(const op::Op&)>& answer) {
    backend.serve([&](const op::Op& op) {
      ++asked;
      return answer(op);
    });
  }
  static op::Result beginning() {
    op::Result result = hit(std::string_view(kValue).substr(0, 100));
    result.total_length = static_cast<uint32_t>(kValue.size());
    return result;
  }

  PlayedBackend backend{kItemSizeMax};
  std::optional<LargeGet> large;
  std::optional<op::ResultCode> code;
  std::string value;
  int asked = 0;
};

}  // namespace

TEST_CASE("chunks may be short, and empty, as long as the value comes") {
  Fixture f;
  while (!f.code) {
    f.serve([&](const op::Op& op) {
      return std::string_view(kValue).substr(op.offset, f.asked % 3 == 0 ? 0 : op.length / 2 + 1);
    });
  }
  CHECK(*f.code == op::ResultCode::kHit);
  CHECK(f.value == kValue);
}

TEST_CASE("a backend that says it has more, and never gives a byte of it, is not asked for ever") {
  constexpr int kMostAsked = 10'000;
  Fixture f;
  while (!f.code && f.asked < kMostAsked) f.serve([](const op::Op&) { return std::string_view(); });
  REQUIRE(f.code);
  CHECK(*f.code == op::ResultCode::kInvalid);
}

TEST_CASE("a value that changes again and again is not asked for longer than ten seconds") {
  Fixture f;
  constexpr uint64_t kStep = 10'000'000;  // ns
  uint64_t passed = 0;
  bool is_pinned = false;
  while (!f.code && passed < 3 * LargeGet::kMostChangingNs) {
    f.serve_with([&](const op::Op& op) {
      is_pinned |= (op.options & op::kPin) != 0;
      return op.code == OpCode::kChunk ? result_of(op::ResultCode::kChanged) : Fixture::beginning();
    });
    f.backend.pass_time(kStep);
    passed += kStep;
  }
  REQUIRE(f.code);
  CHECK(*f.code == op::ResultCode::kTimedOut);
  CHECK(passed >= LargeGet::kMostChangingNs);
  CHECK(is_pinned);
}

TEST_CASE("a value that changes for a while is given when it stays, however long its parts take to come") {
  Fixture f;
  uint64_t pause_ns = 0;
  int changes = 100;
  SUBCASE("many changes") {}
  SUBCASE("two, and long pauses") {
    changes = 2;
    pause_ns = LargeGet::kMostChangingNs + 1;
  }
  while (!f.code) {
    f.backend.pass_time(pause_ns);
    f.serve_with([&](const op::Op& op) {
      if (op.code == OpCode::kChunk && changes-- > 0) return result_of(op::ResultCode::kChanged);
      if (op.code != OpCode::kChunk) return Fixture::beginning();
      op::Result rest = hit(std::string_view(kValue).substr(op.offset, op.length));
      rest.total_length = static_cast<uint32_t>(kValue.size());
      return rest;
    });
  }
  CHECK(*f.code == op::ResultCode::kHit);
  CHECK(f.value == kValue);
}
