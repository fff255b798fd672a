// Which op each command becomes, and which statistics a `stats` line asks for.
#include <doctest/doctest.h>

#include "memcache/translate.h"

namespace {

using namespace egret;
using namespace egret::memcache;

Command command(CommandKind kind) {
  Command c;
  c.kind = kind;
  c.client_flags = 7;
  c.exptime = -5;
  c.cas = 99;
  c.delta = 3;
  c.key = "key";
  c.value = "value";
  c.value_length = 5;
  return c;
}

op::Op op_of(CommandKind kind) {
  return to_op(command(kind));
}

StatsRequest stats(std::initializer_list<std::string_view> words) {
  Command c;
  c.kind = CommandKind::kStats;
  c.argument_count = static_cast<uint8_t>(words.size());
  size_t i = 0;
  for (const std::string_view word : words) {
    if (i < Command::kMaxArguments) c.arguments[i++] = word;
  }
  return stats_request(c);
}

}  // namespace

TEST_CASE("retrievals and touch are gets with options") {
  struct Row {
    CommandKind kind;
    uint16_t options;
    int64_t exptime;
  };
  for (const Row& row : {Row{CommandKind::kGet, 0, 0}, Row{CommandKind::kGets, op::kWantCas, 0},
                         Row{CommandKind::kGat, op::kTouch, -5}, Row{CommandKind::kGats, op::kTouch | op::kWantCas, -5},
                         Row{CommandKind::kTouch, op::kTouch | op::kNoValue, -5}}) {
    const op::Op op = op_of(row.kind);
    CHECK(op.code == op::OpCode::kGet);
    CHECK(op.options == row.options);
    CHECK(op.exptime == row.exptime);
    CHECK(op.key == "key");
    CHECK(op.value.empty());
  }
}

TEST_CASE("storage commands are sets with a mode") {
  struct Row {
    CommandKind kind;
    op::SetMode mode;
  };
  for (const Row& row :
       {Row{CommandKind::kSet, op::SetMode::kSet}, Row{CommandKind::kAdd, op::SetMode::kAdd},
        Row{CommandKind::kReplace, op::SetMode::kReplace}, Row{CommandKind::kAppend, op::SetMode::kAppend},
        Row{CommandKind::kPrepend, op::SetMode::kPrepend}, Row{CommandKind::kCas, op::SetMode::kSet}}) {
    const op::Op op = op_of(row.kind);
    CHECK(op.code == op::OpCode::kSet);
    CHECK(op.mode == row.mode);
    CHECK(op.client_flags == 7);
    CHECK(op.exptime == -5);
    CHECK(op.key == "key");
    CHECK(op.value == "value");
    CHECK(op.options == (row.kind == CommandKind::kCas ? op::kCompareCas : 0));
    CHECK(op.cas == (row.kind == CommandKind::kCas ? 99 : 0));
  }
}

TEST_CASE("the others have ops of their own") {
  CHECK(op_of(CommandKind::kIncr).code == op::OpCode::kArith);
  CHECK(op_of(CommandKind::kIncr).options == 0);
  CHECK(op_of(CommandKind::kIncr).delta == 3);
  CHECK(op_of(CommandKind::kDecr).code == op::OpCode::kArith);
  CHECK(op_of(CommandKind::kDecr).options == op::kDecrement);
  CHECK(op_of(CommandKind::kDelete).code == op::OpCode::kDelete);
  CHECK(op_of(CommandKind::kFlushAll).code == op::OpCode::kFlush);
  CHECK(op_of(CommandKind::kFlushAll).exptime == -5);
}

TEST_CASE("what the proxy answers alone needs no store") {
  CHECK(needs_store(CommandKind::kGet));
  CHECK(needs_store(CommandKind::kFlushAll));
  for (const auto kind : {CommandKind::kVersion, CommandKind::kVerbosity, CommandKind::kStats, CommandKind::kQuit}) {
    CHECK_FALSE(needs_store(kind));
  }
}

TEST_CASE("stats sub-commands are memcached's, and one of our own") {
  CHECK(stats({}).topic == StatsTopic::kGeneral);
  CHECK(stats({"reset"}).topic == StatsTopic::kReset);
  CHECK(stats({"r"}).topic == StatsTopic::kReset);
  CHECK(stats({"con"}).topic == StatsTopic::kConns);
  CHECK(stats({"e"}).topic == StatsTopic::kExtstore);
  CHECK(stats({"item"}).topic == StatsTopic::kUnknown);
  CHECK(stats({"settings", "ignored"}).topic == StatsTopic::kSettings);
  CHECK(stats({"egret"}).topic == StatsTopic::kEgret);
  CHECK(stats({"egret", "else"}).topic == StatsTopic::kEgret);
  CHECK(stats({"egret", "check"}).topic == StatsTopic::kCheck);
  CHECK(stats({"items"}).topic == StatsTopic::kItems);
  CHECK(stats({"slabs"}).topic == StatsTopic::kSlabs);
  CHECK(stats({"sizes"}).topic == StatsTopic::kSizes);
  CHECK(stats({"conns"}).topic == StatsTopic::kConns);
  CHECK(stats({"detail", "on"}).topic == StatsTopic::kDetail);
  CHECK(stats({"cachedump", "1", "2"}).topic == StatsTopic::kCachedump);
  CHECK(stats({"nonsense"}).error == "ERROR\r\n");
  CHECK(stats({"detail"}).error == "CLIENT_ERROR usage: stats detail on|off|dump\r\n");
  CHECK(stats({"detail", "up"}).error == "CLIENT_ERROR usage: stats detail on|off|dump\r\n");
  CHECK(stats({"cachedump", "1"}).error == "CLIENT_ERROR bad command line\r\n");
}
