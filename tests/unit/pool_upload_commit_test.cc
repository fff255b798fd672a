// The commit of a value in parts, while the key's owner may change.
#include <string>
#include <utility>
#include <vector>

#include "pool/warm/upload_commit.h"
#include "pool_played_pool.h"

using namespace egret;
using namespace egret::pool;
using op::OpCode;
using op::ResultCode;

namespace {

struct Told final : rpc::Waiter {
  void on_result(const op::Result& result) override {
    ++results;
    code = result.code;
  }
  int results = 0;
  ResultCode code = ResultCode::kInvalid;
};

// A pool of "old", to which an upload of a key goes that belongs to "new" once that is a member, too.
struct Upload {
  Upload() {
    PlayedPool both({"old", "new"});
    key = key_that_moves(both, "new");
  }
  void begin(PlayedPool& pool) {
    const Route route = pool.router.route(key);
    op::Op store;
    store.code = OpCode::kSet;
    store.key = key;
    store.hash = route.hash;
    set = new rpc::LargeSet(*route.session, store, 3, 1);
    REQUIRE(set->enter());
    REQUIRE(set->send("abc") == 3);
  }
  void commit(PlayedPool& pool) {
    REQUIRE(UploadCommit::send(pool.router, *set, &told));
    set->release();
  }
  std::string key;
  rpc::LargeSet* set = nullptr;
  Told told;
};

using Seen = std::vector<std::pair<std::string, OpCode>>;

// Answers as a backend; keeps what it was asked.
PlayedPool::Answer note(Seen& seen, ResultCode to_commit = ResultCode::kStored,
                        ResultCode to_delete = ResultCode::kDeleted) {
  return [&seen, to_commit, to_delete](const std::string& name, const op::Op& op) {
    seen.emplace_back(name, op.code);
    return rpc::result_of(op.code == OpCode::kCommit   ? to_commit
                          : op.code == OpCode::kDelete ? to_delete
                                                       : ResultCode::kOk);
  };
}

const Seen kBothAsked{
    {"old", OpCode::kUpload}, {"old", OpCode::kCommit}, {"old", OpCode::kDelete}, {"new", OpCode::kDelete}};

}  // namespace

TEST_CASE("a commit whose key stays is one op") {
  Upload upload;
  PlayedPool pool({"old"});
  Seen seen;
  upload.begin(pool);
  upload.commit(pool);
  pool.serve(note(seen));
  CHECK(upload.told.results == 1);
  CHECK(upload.told.code == ResultCode::kStored);
  CHECK(seen == Seen{{"old", OpCode::kUpload}, {"old", OpCode::kCommit}});
}

TEST_CASE("if the key has moved, it is removed at both owners before the upload is said to be stored") {
  Upload upload;
  PlayedPool pool({"old"});
  Seen seen;
  upload.begin(pool);
  SUBCASE("before the commit was sent") {
    pool.apply({"old", "new"});
    upload.commit(pool);
  }
  SUBCASE("while the commit was under way") {
    upload.commit(pool);
    pool.apply({"old", "new"});
  }
  pool.silent = {"new"};
  pool.serve(note(seen));
  CHECK(upload.told.results == 0);
  pool.silent = {};
  pool.serve(note(seen));
  CHECK(upload.told.results == 1);
  CHECK(upload.told.code == ResultCode::kStored);
  CHECK(seen == kBothAsked);
}

TEST_CASE("an upload whose key cannot be removed at its present owner fails") {
  Upload upload;
  PlayedPool pool({"old"});
  Seen seen;
  upload.begin(pool);
  pool.apply({"old", "new"});
  upload.commit(pool);
  ResultCode why = ResultCode::kSessionLost;
  SUBCASE("there is no session with it") {
    pool.lose("new");
    pool.serve(note(seen));
  }
  SUBCASE("it is lost meanwhile") {
    pool.silent = {"new"};
    pool.serve(note(seen));
    pool.lose("new");
  }
  SUBCASE("it is lost while there is no credit") {
    Told filler;
    pool.use_up_credit("new", filler);
    pool.silent = {"new"};
    pool.serve(note(seen));
    CHECK(upload.told.results == 0);
    pool.lose("new");
  }
  SUBCASE("it refuses") {
    why = ResultCode::kForbidden;
    pool.serve(note(seen, ResultCode::kStored, why));
  }
  CHECK(upload.told.results == 1);
  CHECK(upload.told.code == why);
}

TEST_CASE("a commit that stored nothing removes nothing") {
  Upload upload;
  PlayedPool pool({"old"});
  Seen seen;
  upload.begin(pool);
  pool.apply({"old", "new"});
  upload.commit(pool);
  pool.serve(note(seen, ResultCode::kNotStored));
  CHECK(upload.told.results == 1);
  CHECK(upload.told.code == ResultCode::kNotStored);
  CHECK(seen == Seen{{"old", OpCode::kUpload}, {"old", OpCode::kCommit}});
}

TEST_CASE("the key moves on while it is removed: it is removed at the next owner, too") {
  Upload upload;
  PlayedPool pool({"old"});
  Seen seen;
  upload.begin(pool);
  pool.apply({"old", "new"});
  upload.commit(pool);
  pool.silent = {"new"};
  pool.serve(note(seen));
  pool.apply({"third"});
  pool.silent = {};
  pool.serve(note(seen));
  CHECK(upload.told.results == 1);
  CHECK(upload.told.code == ResultCode::kStored);
  CHECK(std::ranges::count(seen, std::pair<std::string, OpCode>("third", OpCode::kDelete)) == 1);
}
