// Pending replies: answers are sent in the order of the commands, whatever the order of the results.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "memcache/reply.h"
#include "pool_played_pool.h"
#include "proxy/replies/reply_queue.h"
#include "rpc_played_backend.h"

using namespace egret::proxy;
using egret::memcache::CommandKind;
using egret::op::Result;
using egret::op::ResultCode;

namespace {

// A connection's queue without its connection. Clients of one worker share its memory.
struct Client final : ReplyObserver {
  Client() : Client(nullptr) {}
  explicit Client(WorkerMemory* shared)
      : blocks(OutputQueue::kBlockSize), memory(shared != nullptr ? *shared : worker), output(blocks, memory) {
    reopen();
  }
  void on_output() override { ++outputs; }
  void on_progress() override { ++progress; }
  void on_observed(const Observed& observed, const Result& result) override {
    observed_results.push_back(observed.key + " " + to_string(result.code));
  }
  void reopen() { queue = std::make_unique<ReplyQueue>(replies, output, memory, *this); }

  Reply* command(CommandKind kind) {
    Reply* reply = queue->make();
    reply->question.kind = kind;
    queue->push(reply);
    return reply;
  }
  Reply* key(std::string_view name, uint32_t number, uint64_t hash = 0, uint16_t options = 0, uint32_t expected = 0) {
    Reply* reply = queue->make();
    reply->expected = expected;
    reply->question.kind = CommandKind::kGet;
    reply->is_key = true;
    reply->key = name;
    reply->command = number;
    reply->hash = hash;
    reply->question.options = options;
    queue->push(reply);
    return reply;
  }
  // All that would be sent.
  std::string sent() {
    int fds[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
    PlainSocket in{egret::base::UniqueFd(fds[0])};
    const egret::base::UniqueFd out(fds[1]);
    std::string all;
    char buffer[4096];
    for (Io state = Io::kWantWrite; state == Io::kWantWrite;) {
      state = output.send(in);
      for (ssize_t got = 0; (got = ::read(out.get(), buffer, sizeof buffer)) > 0;)
        all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }

  uint64_t now_ns = 1'000'000'000;
  RequestFigures figures;
  ReplyPool replies{now_ns, figures};
  BlockPool blocks;
  MemoryCounters counters;
  WorkerMemory worker{counters};
  ConnectionMemory memory;
  OutputQueue output;
  std::unique_ptr<ReplyQueue> queue;
  std::vector<std::string> observed_results;
  int outputs = 0;
  int progress = 0;
};

Result make(ResultCode code, std::string_view value = {}) {
  Result result;
  result.code = code;
  result.value = value;
  result.total_length = static_cast<uint32_t>(value.size());
  return result;
}

}  // namespace

TEST_CASE("a result for the head is answered at once, others when it is their turn") {
  Client client;
  Reply* first = client.command(CommandKind::kSet);
  Reply* second = client.command(CommandKind::kDelete);
  Reply* third = client.command(CommandKind::kIncr);
  CHECK(client.queue->size() == 3);
  Result number = make(ResultCode::kNumber);
  number.number = 42;
  third->on_result(number);
  second->on_result(make(ResultCode::kMiss));
  CHECK(client.sent() == "");
  first->on_result(make(ResultCode::kStored));
  CHECK(client.sent() == "STORED\r\nNOT_FOUND\r\n42\r\n");
  CHECK(client.queue->empty());
  CHECK(client.progress == 3);
  CHECK(client.replies.in_use() == 0);
}

TEST_CASE("a request takes from when it was read to when it is its turn; keys of a retrieval are none") {
  Client client;
  Reply* first = client.command(CommandKind::kSet);
  client.now_ns += 1'000'000;
  Reply* second = client.command(CommandKind::kSet);
  Reply* key = client.key("key", 1);
  key->asked_ns = 0;
  client.queue->push_end(1);
  second->on_result(make(ResultCode::kStored));
  key->on_result(make(ResultCode::kMiss));
  CHECK(client.figures.duration.sum_ns() == 0);
  client.now_ns += 1'000'000;
  first->on_result(make(ResultCode::kStored));
  using egret::base::Histogram;
  CHECK(client.figures.duration.count(Histogram::bucket_of(2'000'000)) == 1);  // the first
  CHECK(client.figures.duration.count(Histogram::bucket_of(1'000'000)) == 2);  // the second, and the retrieval
  CHECK(client.figures.duration.sum_ns() == 4'000'000);
}

TEST_CASE("keys that are found and not, and answers that are errors, are counted") {
  Client client;
  Reply* hit = client.key("hit", 1);
  Reply* miss = client.key("miss", 1);
  for (Reply* read : {hit, miss}) read->is_read = true;
  Reply* deleted = client.command(CommandKind::kDelete);
  Reply* lost = client.command(CommandKind::kSet);
  hit->on_result(make(ResultCode::kHit, "x"));
  miss->on_result(make(ResultCode::kMiss));
  deleted->on_result(make(ResultCode::kMiss));
  lost->on_result(make(ResultCode::kSessionLost));
  client.queue->push_failure("SERVER_ERROR\r\n", 2);
  CHECK(client.figures.get_hits.get() == 1);
  CHECK(client.figures.get_misses.get() == 1);
  CHECK(client.figures.errors.get() == 2);
}

TEST_CASE("any order of results gives the same answers") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    Client client;
    std::vector<std::pair<Reply*, Result>> results;
    std::vector<std::string> values;
    values.reserve(20);
    std::vector<std::string> keys;
    keys.reserve(20);
    std::string expected;
    for (uint32_t i = 0; i < 20; ++i) {
      switch (random() % 4) {
        case 0:
          results.emplace_back(client.command(CommandKind::kSet), make(ResultCode::kStored));
          expected += "STORED\r\n";
          break;
        case 1:
          client.queue->push_text("TEXT\r\n");
          expected += "TEXT\r\n";
          break;
        case 2:
          keys.push_back("key" + std::to_string(i));
          results.emplace_back(client.key(keys.back(), i + 1), make(ResultCode::kMiss));
          client.queue->push_end(i + 1);
          expected += "END\r\n";
          break;
        default:
          keys.push_back("key" + std::to_string(i));
          values.push_back(std::string(random() % 5000, static_cast<char>('a' + i)));
          results.emplace_back(client.key(keys.back(), i + 1), make(ResultCode::kHit, values.back()));
          client.queue->push_end(i + 1);
          expected += "VALUE " + keys.back() + " 0 " + std::to_string(values.back().size()) + "\r\n" + values.back() +
                      "\r\nEND\r\n";
      }
    }
    std::ranges::shuffle(results, random);
    for (auto& [reply, result] : results) reply->on_result(result);
    CHECK((client.sent() == expected));
    CHECK(client.replies.in_use() == 0);
  }
}

TEST_CASE("what a result views may go as soon as it was handed over") {
  Client client;
  Reply* first = client.key("a", 1);
  Reply* second = client.key("b", 1);
  {
    const std::string gone(3000, 'x');
    second->on_result(make(ResultCode::kHit, gone));
  }
  first->on_result(make(ResultCode::kMiss));
  CHECK(client.sent() == "VALUE b 0 3000\r\n" + std::string(3000, 'x') + "\r\n");
}

TEST_CASE("a value larger than a block is sent in its turn, with all ready replies behind it") {
  Client client;
  const std::string large(40'000, 'l');
  Reply* first = client.key("first", 1);
  Reply* second = client.key("second", 1);
  client.queue->push_end(1);
  second->on_result(make(ResultCode::kHit, "x"));
  {
    std::string slot = large;
    first->on_result(make(ResultCode::kHit, slot));
    slot.assign(slot.size(), '-');  // nobody holds it
  }
  CHECK(client.sent() == "VALUE first 0 40000\r\n" + large + "\r\nVALUE second 0 1\r\nx\r\nEND\r\n");
  CHECK(client.queue->empty());
  CHECK(client.replies.in_use() == 0);
  CHECK(client.memory.used() == 0);
}

TEST_CASE("places and rendered answers are charged until they are sent") {
  Client client;
  Reply* first = client.key("first", 1);
  Reply* second = client.key("second", 1);
  const size_t places = client.memory.used();
  CHECK(places > 2 * sizeof(Reply));
  second->on_result(make(ResultCode::kHit, std::string(3000, 'x')));
  CHECK(client.memory.used() > places + 3000);
  first->on_result(make(ResultCode::kMiss));
  client.sent();
  CHECK(client.memory.used() == 0);
  client.key("gone", 2)->on_result(make(ResultCode::kMiss));
  Reply* awaited = client.key("waits", 2);
  client.queue.reset();
  CHECK(client.memory.used() == 0);
  awaited->on_result(make(ResultCode::kMiss));
  CHECK(client.replies.in_use() == 0);
  client.reopen();
}

TEST_CASE("what an answer will probably take is charged meanwhile, so no more is asked for than there is room for") {
  Client client;
  client.worker.connection_limit = 100'000;
  Reply* first = client.key("first", 1, 0, 0, 60'000);
  CHECK(client.memory.may_take_command());
  Reply* second = client.key("second", 1, 0, 0, 60'000);
  CHECK_FALSE(client.memory.may_take_command());
  // It was counted on, so it is kept until its turn, although there is no room for more.
  const std::string value(60'000, 'v');
  second->on_result(make(ResultCode::kHit, value));
  first->on_result(make(ResultCode::kMiss));
  CHECK(client.sent() == "VALUE second 0 60000\r\n" + value + "\r\n");
  CHECK(client.memory.used() == 0);
}

TEST_CASE("a value that came whole before its turn is kept, however large, and not asked for again") {
  Client client;
  const std::string large(40'000, 'l');
  Reply* first = client.key("first", 1);
  Reply* second = client.key("second", 1);
  client.queue->push_end(1);
  {
    std::string slot = large;
    second->on_result(make(ResultCode::kHit, slot));
    slot.assign(slot.size(), '-');
  }
  first->on_result(make(ResultCode::kMiss));
  CHECK(client.sent() == "VALUE second 0 40000\r\n" + large + "\r\nEND\r\n");
}

TEST_CASE("gets answers flags and CAS, get does not answer CAS") {
  Client client;
  Result hit = make(ResultCode::kHit, "v");
  hit.client_flags = 7;
  hit.cas = 99;
  client.key("a", 1, 0, egret::op::kWantCas)->on_result(hit);
  client.key("a", 2)->on_result(hit);
  CHECK(client.sent() == "VALUE a 7 1 99\r\nv\r\nVALUE a 7 1\r\nv\r\n");
}

TEST_CASE("text is written at once when nothing is before it") {
  Client client;
  client.queue->push_text("VERSION 1\r\n");
  CHECK(client.queue->empty());
  CHECK(client.sent() == "VERSION 1\r\n");
}

TEST_CASE("noreply is silent, and keeps its place all the same") {
  Client client;
  Reply* silent = client.queue->make();
  silent->question.kind = CommandKind::kSet;
  silent->question.noreply = true;
  client.queue->push(silent);
  Reply* next = client.command(CommandKind::kSet);
  next->on_result(make(ResultCode::kStored));
  CHECK(client.sent() == "");
  silent->on_result(make(ResultCode::kStored));
  CHECK(client.sent() == "STORED\r\n");
}

TEST_CASE("a retrieval of which one key fails ends with the error line; the next command is its own") {
  Client client;
  Reply* a = client.key("a", 1);
  Reply* b = client.key("b", 1);
  Reply* c = client.key("c", 1);
  client.queue->push_end(1);
  Reply* d = client.key("d", 2);
  client.queue->push_end(2);
  d->on_result(make(ResultCode::kHit, "4"));
  c->on_result(make(ResultCode::kHit, "3"));
  b->on_result(make(ResultCode::kSessionLost));
  a->on_result(make(ResultCode::kHit, "1"));
  CHECK(client.sent() ==
        "VALUE a 0 1\r\n1\r\n" + std::string(egret::memcache::kBackendUnavailable) + "VALUE d 0 1\r\n4\r\nEND\r\n");
  CHECK(client.replies.in_use() == 0);
}

TEST_CASE("a key that cannot be asked for stands for what is left of its retrieval") {
  Client client;
  Reply* a = client.key("a", 1);
  client.queue->push_failure("SERVER_ERROR x\r\n", 1);
  Reply* c = client.key("c", 1);
  client.queue->push_end(1);
  c->on_result(make(ResultCode::kHit, "3"));
  a->on_result(make(ResultCode::kMiss));
  CHECK(client.sent() == "SERVER_ERROR x\r\n");
  client.queue->push_failure("SERVER_ERROR y\r\n", 2);
  client.queue->push_end(2);
  CHECK(client.sent() == "SERVER_ERROR y\r\n");
  client.queue->push_end(3);
  CHECK(client.sent() == "END\r\n");
}

TEST_CASE("a change of a key waits for unanswered gets of it, a get does not") {
  Client client;
  Reply* get = client.key("a", 1, 77);
  CHECK(client.queue->must_wait(77, true));
  CHECK_FALSE(client.queue->must_wait(77, false));
  CHECK_FALSE(client.queue->must_wait(78, true));
  Reply* other = client.key("b", 2, 78);
  get->on_result(make(ResultCode::kMiss));
  CHECK_FALSE(client.queue->must_wait(77, true));
  CHECK(client.queue->must_wait(78, true));
  other->on_result(make(ResultCode::kHit, "v"));
  CHECK_FALSE(client.queue->must_wait(78, true));
}

namespace {

// A client of a pool whose member "new" owns a key that "old" has had.
struct MovedKey final : egret::pool::PullMemory {
  MovedKey() {
    const auto before = std::make_shared<const egret::pool::Membership>(pool.router.membership());
    pool.apply({"old", "new"});
    pulls.keep(before);
    serve();
    pulls.open();
    client.replies.set_pulls(pulls);
    key = egret::pool::key_that_moves(pool, "new");
  }
  ~MovedKey() {
    for (const auto& session : pool.router.sessions()) session->close(egret::rpc::ClientSession::State::kClosed);
  }
  bool take(uint64_t) override { return true; }
  void give(uint64_t) override {}
  // As get_key() sends it.
  Reply* get(uint32_t number) {
    const egret::pool::Route route = pool.router.route(key);
    egret::op::Op get;
    get.code = egret::op::OpCode::kGet;
    get.key = key;
    get.hash = route.hash;
    Reply* reply = client.key(key, number, route.hash);
    reply->session = egret::rpc::SessionRef(*route.session);
    reply->is_read = true;
    reply->may_miss = std::make_unique<egret::op::Op>(get);
    REQUIRE(route.session->lanes().of(route.hash).append(get, reply));
    return reply;
  }
  void serve() {
    pool.serve([&](const std::string& name, const egret::op::Op& op) {
      if (op.code == egret::op::OpCode::kPing) return make(ResultCode::kOk);
      std::string& value = name == "old" ? old_value : new_value;
      if (op.code == egret::op::OpCode::kSet) {
        value = filled = op.value;
        return make(ResultCode::kStored);
      }
      Result result = make(value.empty() ? ResultCode::kMiss : ResultCode::kHit, value);
      result.ttl = -1;
      if (name == "new") ++gets;
      return result;
    });
  }

  egret::pool::PlayedPool pool{{"old"}};
  egret::pool::PullCounters counters;
  uint32_t next_upload = 1;
  Client client;
  egret::pool::Pulls pulls{pool.router, pool.clock, counters, *this, next_upload};
  std::string key, old_value = "value", new_value, filled;
  int gets = 0;
};

}  // namespace

TEST_CASE("a get that misses a key which has moved is asked again when its value is there") {
  MovedKey moved;
  const uint64_t hash = moved.pool.router.route(moved.key).hash;
  moved.get(1);
  moved.client.queue->push_end(1);
  moved.pool.silent = {"old"};
  moved.serve();
  CHECK(moved.client.sent() == "");
  CHECK(moved.client.queue->must_wait(hash, false));  // also gets, of this key alone
  CHECK_FALSE(moved.client.queue->must_wait(hash + 1, true));
  SUBCASE("and it is") {
    moved.pool.silent = {};
    moved.serve();
    CHECK(moved.filled == "value");
    CHECK(moved.client.sent() == "VALUE " + moved.key + " 0 5\r\nvalue\r\nEND\r\n");
    CHECK(moved.client.figures.get_hits.get() == 1);
    CHECK(moved.client.figures.get_misses.get() == 0);
  }
  SUBCASE("but the backend before has it no more") {
    moved.old_value.clear();
    moved.pool.silent = {};
    moved.serve();
    CHECK(moved.client.sent() == "END\r\n");
    CHECK(moved.gets == 1);
    CHECK(moved.client.figures.get_misses.get() == 1);
  }
  SUBCASE("but its client goes") {
    moved.client.queue.reset();
    moved.pool.silent = {};
    moved.serve();
    moved.client.reopen();
  }
  CHECK_FALSE(moved.client.queue->must_wait(hash, false));
  CHECK(moved.client.replies.in_use() == 0);
}

TEST_CASE("gets behind one that was asked again never answer an older value") {
  MovedKey moved;
  moved.get(1);
  moved.client.queue->push_end(1);
  moved.pool.silent = {"old"};
  moved.serve();
  // Somebody stores a value, which the second get finds, and then another one, which the first finds.
  moved.new_value = "first";
  moved.get(2);
  moved.client.queue->push_end(2);
  moved.serve();
  moved.new_value = "second";
  moved.pool.silent = {"new"};
  moved.serve();
  moved.pool.silent = {};
  moved.filled = "";
  moved.pool.serve([&](const std::string& name, const egret::op::Op& op) {
    if (op.code == egret::op::OpCode::kSet) return make(ResultCode::kNotStored);
    CHECK(name == "new");
    Result result = make(ResultCode::kHit, moved.new_value);
    result.ttl = -1;
    return result;
  });
  const std::string line = "VALUE " + moved.key + " 0 6\r\nsecond\r\nEND\r\n";
  CHECK(moved.client.sent() == line + line);
}

TEST_CASE("everything on a key waits for a reply that holds it") {
  Client client;
  Reply* commit = client.queue->make();
  commit->question.kind = CommandKind::kSet;
  commit->hash = 77;
  commit->holds_key = true;
  client.queue->push(commit);
  CHECK(client.queue->must_wait(77, true));
  CHECK(client.queue->must_wait(77, false));
  CHECK_FALSE(client.queue->must_wait(78, true));
  commit->on_result(make(ResultCode::kStored));
  CHECK_FALSE(client.queue->must_wait(77, true));
  CHECK_FALSE(client.queue->must_wait(77, false));
}

TEST_CASE("pending replies outlive their connection until their results have come") {
  Client client;
  Reply* waiting = client.command(CommandKind::kSet);
  Reply* ready = client.key("a", 1);
  ready->on_result(make(ResultCode::kHit, "v"));
  CHECK(client.replies.in_use() == 2);
  client.queue.reset();
  CHECK(client.replies.in_use() == 1);
  client.reopen();
  Reply* of_the_next = client.command(CommandKind::kSet);
  CHECK(of_the_next != waiting);
  waiting->on_result(make(ResultCode::kStored));
  of_the_next->on_result(make(ResultCode::kNotStored));
  CHECK(client.sent() == "NOT_STORED\r\n");
  CHECK(client.replies.in_use() == 0);
}

TEST_CASE("a place given back is as good as new") {
  Client client;
  client.key("a", 1, 5, egret::op::kWantCas)->on_result(make(ResultCode::kTimedOut));
  client.sent();
  Reply* again = client.command(CommandKind::kSet);
  again->on_result(make(ResultCode::kStored));
  CHECK(client.sent() == "STORED\r\n");
  client.queue->discard(client.queue->make());
  CHECK(client.replies.in_use() == 0);
}

TEST_CASE("the budget lets one value through however large, and no second that does not fit") {
  LargeValueBudget budget(100);
  CHECK(budget.take(1000));
  CHECK_FALSE(budget.take(1));
  budget.give(1000);
  CHECK(budget.take(60));
  CHECK(budget.take(40));
  CHECK_FALSE(budget.take(1));
  budget.give(40);
  CHECK(budget.take(1));
}

TEST_CASE("a result is reported once if somebody watches, and not at all otherwise") {
  Client client;
  const auto noted = [](std::string_view key) {
    egret::memcache::Command command;
    command.kind = CommandKind::kGet;
    command.key = key;
    return note(command);
  };
  Reply* first = client.key("first", 1);
  Reply* second = client.key("second", 1);
  Reply* unseen = client.key("unseen", 1);
  first->observed = noted("first");
  second->observed = noted("second");
  second->on_result(make(ResultCode::kHit));
  unseen->on_result(make(ResultCode::kHit));
  CHECK(client.observed_results == std::vector<std::string>{"second hit"});
  first->on_result(make(ResultCode::kMiss));
  CHECK(client.observed_results == std::vector<std::string>{"second hit", "first miss"});
}

// --- large values, of a backend that the test plays

namespace {

using egret::op::Op;
using egret::op::OpCode;
using egret::rpc::PlayedBackend;

// What the backend has, by key; a get is answered by the first 100 bytes, chunks by what they ask for.
struct Values {
  Result operator()(const Op& op) {
    ++asked[std::string(op.key)];
    const auto at = values.find(std::string(op.key));
    if (at == values.end()) return make(ResultCode::kMiss);
    if (op.code == OpCode::kChunk && op.version != version) return make(ResultCode::kChanged);
    Result result = make(ResultCode::kHit);
    result.version = version;
    result.total_length = static_cast<uint32_t>(at->second.size());
    result.value = std::string_view(at->second);
    result.value = op.code == OpCode::kChunk ? result.value.substr(op.offset, op.length) : result.value.substr(0, 100);
    return result;
  }
  std::map<std::string, std::string> values;
  std::map<std::string, int> asked = {};
  uint64_t version = 1;
};

// A key of a retrieval, asked of the backend.
Reply* ask(Client& client, PlayedBackend& backend, std::string_view key, uint32_t command) {
  Reply* reply = client.queue->make();
  reply->question.kind = CommandKind::kGet;
  reply->is_key = true;
  reply->command = command;
  reply->session = egret::rpc::SessionRef(backend.session);
  reply->hash = backend.session.lanes().hash(key);
  Op get;
  get.code = OpCode::kGet;
  get.key = key;
  get.hash = reply->hash;
  while (!backend.session.lanes().of(reply->hash).append(get, reply)) FAIL("no credit");
  reply->keep_key(key);
  client.queue->push(reply);
  return reply;
}

std::string answer(std::string_view key, const std::string& value) {
  return "VALUE " + std::string(key) + " 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

}  // namespace

TEST_CASE("the key of an answer is the client's, whatever becomes of the request's slot") {
  Values values{.values = {{"key", "value"}}};
  PlayedBackend backend{1 << 20};
  Client client;
  ask(client, backend, "key", 1);
  client.queue->push_end(1);
  backend.serve([&](const Op& op) {
    const Result result = values(op);
    std::fill_n(backend.endpoint->request_image(), backend.layout.request_bytes(), std::byte{0});
    return result;
  });
  CHECK(client.sent() == answer("key", "value") + "END\r\n");
}

TEST_CASE("large values that are left out, since their retrieval failed before, hold up nobody behind them") {
  Values values{.values = {{"b", std::string(5000, 'b')}, {"c", std::string(6000, 'c')}, {"d", "small"}}};
  PlayedBackend backend{1 << 20};
  Client client;
  Reply* a = client.key("a", 1);
  ask(client, backend, "b", 1);
  ask(client, backend, "c", 1);
  client.queue->push_end(1);
  ask(client, backend, "d", 2);
  client.queue->push_end(2);
  backend.serve(std::ref(values));
  CHECK(client.sent() == "");
  a->on_result(make(ResultCode::kTimedOut));
  CHECK(client.sent() == egret::memcache::kBackendTimedOut);
  client.queue->on_sent();
  for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));  // nothing of it is sent that could let others go on
  CHECK(client.sent() == "VALUE d 0 5\r\nsmall\r\nEND\r\n");
  CHECK(client.queue->empty());
  CHECK(client.memory.used() == 0);
  CHECK(client.replies.in_use() == 0);
}

// A pin, or a relay that keeps what it has not passed on, serves an old version for a while.
TEST_CASE(
    "a large value behind one that changed while it was read is asked for again, though its old version is still "
    "there") {
  Values values{.values = {{"key", std::string(5000, 'o')}, {"other", std::string(5000, 'x')}}};
  const Values old = values;
  PlayedBackend backend{1 << 20};
  Client client;
  for (const char* key : {"key", "key", "other", "key"}) ask(client, backend, key, 1);
  client.queue->push_end(1);
  backend.serve(std::ref(values));
  values.version = 2;
  values.values["key"] = std::string(5000, 'n');
  values.asked.clear();
  bool was_told = false;  // that the version is gone
  Values kept = old;
  const auto serve = [&](const Op& op) {
    if (op.key == "other") return kept(op);
    if (op.code != OpCode::kChunk || op.version == 2) return values(op);
    return std::exchange(was_told, true) ? kept(op) : make(ResultCode::kChanged);
  };
  std::string sent;
  for (int i = 0; i < 60; ++i) {
    backend.serve(serve);
    sent += client.sent();
    client.queue->on_sent();
  }
  const std::string value = answer("key", values.values["key"]);
  CHECK(sent == value + value + answer("other", values.values["other"]) + value + "END\r\n");
  CHECK(client.memory.used() == 0);
}

TEST_CASE(
    "a get that is to leave out the value its client has is asked again behind a changed one only if it found "
    "another") {
  Values values{.values = {{"key", std::string(5000, 'o')}}};
  PlayedBackend backend{1 << 20};
  Client client;
  bool has_other = false;
  SUBCASE("it found another") {
    has_other = true;
  }
  SUBCASE("it found that one") {
    has_other = false;
  }
  ask(client, backend, "key", 1);
  client.queue->push_end(1);
  egret::memcache::Question& question = ask(client, backend, "key", 0)->question;
  question.dialect = egret::memcache::Dialect::kMeta;
  question.kind = CommandKind::kMetaGet;
  question.options = egret::op::kCompareCas;
  question.cas = has_other ? 9 : 0;  // results of this backend have none
  question.echo = "v";
  int asked = 0;
  const auto serve = [&](const Op& op) {
    if (++asked != 2) return values(op);
    return make(ResultCode::kHit, has_other ? "second" : "");
  };
  backend.serve(serve);
  values.version = 3;
  values.values["key"] = "third";
  std::string sent;
  for (int i = 0; i < 10; ++i) {
    backend.serve(serve);
    sent += client.sent();
    client.queue->on_sent();
  }
  CHECK(sent == answer("key", "third") + "END\r\n" + (has_other ? "VA 5\r\nthird\r\n" : "HD\r\n"));
}

TEST_CASE("a value that has become larger while it was read takes more of the budget, or waits for it") {
  Values values{.values = {{"small", std::string(3000, 's')}, {"grows", std::string(3000, 'g')}}};
  PlayedBackend backend{1 << 20};
  Client first;
  Client second(&first.worker);
  first.worker.large.set_limit(6000);
  ask(first, backend, "small", 1);
  ask(second, backend, "grows", 1);
  backend.serve(std::ref(values));  // both are begun, and the budget is taken
  values.version = 2;
  values.values["grows"] = std::string(5000, 'G');
  values.asked.clear();
  for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));
  CHECK(first.sent() == answer("small", values.values["small"]));
  CHECK_MESSAGE(second.sent() == "", "it has to wait until the other value is sent");
  CHECK(first.worker.large.is_anybody_waiting());
  first.queue->on_sent();
  for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));
  CHECK(second.sent() == answer("grows", values.values["grows"]));
  second.queue->on_sent();
  CHECK(first.worker.large.take(6000));
  CHECK_FALSE(first.worker.large.take(1));
}

TEST_CASE("a value that has become larger is let through where it is alone, one that has become smaller gives back") {
  Values values{.values = {{"grows", std::string(3000, 'g')}, {"shrinks", std::string(5000, 's')}}};
  PlayedBackend backend{1 << 20};
  Client client;
  client.worker.large.set_limit(6000);
  for (const auto& [key, size] : std::map<std::string, size_t>{{"grows", 9000}, {"shrinks", 2000}}) {
    ask(client, backend, key, 1);
    backend.serve(std::ref(values));
    ++values.version;
    values.values[key] = std::string(size, 'x');
    for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));
    CHECK(client.worker.large.take(4000) == (key == "shrinks"));
    CHECK(client.sent() == answer(key, values.values[key]));
    client.queue->on_sent();
  }
}

TEST_CASE("a client that goes leaves nothing behind of a value that is being read, and gives back its memory") {
  Values values{.values = {{"large", std::string(50'000, 'l')}}};
  PlayedBackend backend{1 << 20};
  Client client;
  client.worker.large.set_limit(60'000);
  ask(client, backend, "large", 1);
  backend.serve(std::ref(values));
  backend.serve(std::ref(values));
  client.queue.reset();
  const int asked = values.asked["large"];
  for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));
  CHECK_MESSAGE(values.asked["large"] <= asked + 8, "nothing more is asked for than was under way");
  CHECK(client.replies.in_use() == 0);
  CHECK(client.worker.large.take(60'000));
  client.reopen();
}

TEST_CASE("a large value that waits for its turn costs its place and its key") {
  Values values;
  const std::string key(250, 'k');
  values.values[key] = std::string(5000, 'v');
  PlayedBackend backend{1 << 20, {.lanes = 1, .window = 2, .request_slot_size = 65536, .response_slot_size = 65536}};
  Client client;
  Reply* first = client.key("first", 1);
  constexpr size_t kPlaces = 1000;
  const size_t before = ::mallinfo2().uordblks;
  for (size_t i = 0; i < kPlaces; ++i) {
    ask(client, backend, key, 2);
    backend.serve(std::ref(values));
  }
  const size_t grown = ::mallinfo2().uordblks - before;
  CHECK(grown <= client.memory.used() + kPlaces * 64);
  CHECK(client.memory.used() < kPlaces * (sizeof(Reply) + 2 * key.size() + 128));
  first->on_result(make(ResultCode::kMiss));
  client.queue.reset();
  backend.serve(std::ref(values));
  CHECK(client.replies.in_use() == 0);
  client.reopen();
}

TEST_CASE("thousands of large values of a session that is lost are answered one after the other") {
  Values values{.values = {{"large", std::string(5000, 'l')}}};
  PlayedBackend backend{1 << 20};
  Client client;
  Reply* first = client.key("first", 1);
  constexpr uint32_t kPlaces = 20'000;  // each a call within a call would take more than the stack
  for (uint32_t i = 0; i < kPlaces; ++i) {
    ask(client, backend, "large", 2);
    backend.serve(std::ref(values));
  }
  first->on_result(make(ResultCode::kMiss));
  backend.lose();
  CHECK(client.queue->empty());
  CHECK(client.sent() == egret::memcache::kBackendUnavailable);
  CHECK(client.memory.used() == 0);
}

TEST_CASE("thousands of clients that wait for the budget when their session is lost are told one after the other") {
  Values values{.values = {{"large", std::string(5000, 'l')}}};
  PlayedBackend backend{1 << 20};
  MemoryCounters counters;
  WorkerMemory worker{counters};
  worker.large.set_limit(5000);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 5000; ++i) {
    clients.push_back(std::make_unique<Client>(&worker));
    ask(*clients.back(), backend, "large", 1);
    for (int more = 0; more < (i == 0 ? 30 : 1); ++more) backend.serve(std::ref(values));
    clients.back()->output.keep_lent();
  }
  REQUIRE(worker.large.is_anybody_waiting());
  backend.lose();
  clients.front()->queue.reset();
  CHECK(!worker.large.is_anybody_waiting());
  clients.front()->reopen();
  for (size_t i = 1; i < clients.size(); ++i) REQUIRE(clients[i]->queue->empty());
}

TEST_CASE("a higher limit wakes those who wait for the budget") {
  Values values{.values = {{"one", std::string(5000, '1')}, {"two", std::string(5000, '2')}}};
  PlayedBackend backend{1 << 20};
  Client first;
  Client second(&first.worker);
  first.worker.large.set_limit(6000);
  ask(first, backend, "one", 1);
  ask(second, backend, "two", 1);
  for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));
  first.output.keep_lent();
  CHECK(second.sent() == "");
  first.worker.large.set_limit(10'000);
  for (int i = 0; i < 30; ++i) backend.serve(std::ref(values));
  CHECK((second.sent() == answer("two", values.values["two"])));
}

TEST_CASE("input counts as memory, and does not keep the rest of a command from being read") {
  Client client;
  client.worker.limit = 200'000;
  client.worker.connection_limit = 100'000;
  client.memory.charge_input(65'536);
  CHECK(client.memory.used() == 65'536);
  CHECK(client.memory.may_take_command());
  client.memory.charge_input(65'536);
  CHECK_MESSAGE(client.memory.may_take_command(), "it holds nothing but input");
  CHECK(client.worker.is_input_high());
  Reply* reply = client.command(CommandKind::kSet);
  CHECK_FALSE(client.memory.may_take_command());
  reply->on_result(make(ResultCode::kStored));
  client.sent();
  client.memory.refund_input(131'072);
  CHECK(client.memory.used() == 0);
  CHECK_FALSE(client.worker.is_input_high());
}
