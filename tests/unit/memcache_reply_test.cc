// What goes back to the client: the lines that are written, and what each result of an op is called.
#include <cstdint>
#include <limits>
#include <string>

#include <doctest/doctest.h>

#include "memcache/answer.h"
#include "memcache/reply.h"

namespace {

using namespace egret;
using namespace egret::memcache;

constexpr uint64_t kMax64 = std::numeric_limits<uint64_t>::max();
constexpr uint32_t kMax32 = std::numeric_limits<uint32_t>::max();

std::string value_header(std::string_view key, uint32_t flags, uint32_t length, const uint64_t* cas) {
  std::string out(max_value_header(key.size()), '?');
  out.resize(static_cast<size_t>(write_value_header(out.data(), key, flags, length, cas) - out.data()));
  return out;
}

std::string number(uint64_t value) {
  char out[kMaxNumberLine];
  return std::string(out, write_number(out, value));
}

std::string answer(CommandKind kind, op::ResultCode code, bool noreply = false) {
  op::Result result;
  result.code = code;
  result.number = 42;
  Command command;
  command.kind = kind;
  command.noreply = noreply;
  Question question;
  ask(command, 0, question);
  std::string text(max_answer(question, 0), '?');
  text.resize(static_cast<size_t>(write_answer(text.data(), question, {}, result) - text.data()));
  return text;
}

}  // namespace

TEST_CASE("a VALUE line carries key, flags, length and, if wanted, the CAS") {
  const uint64_t cas = kMax64;
  CHECK(value_header("a", 0, 0, nullptr) == "VALUE a 0 0\r\n");
  CHECK(value_header("a", 7, 1024, nullptr) == "VALUE a 7 1024\r\n");
  CHECK(value_header("a", 7, 10, &cas) == "VALUE a 7 10 18446744073709551615\r\n");
}

TEST_CASE("the bounds are reached and never passed") {
  const std::string key(250, 'k');
  CHECK(value_header(key, kMax32, kMax32, &kMax64).size() == max_value_header(250));
  CHECK(number(kMax64).size() == kMaxNumberLine);
  std::string stat(max_stat(4), '?');
  CHECK(write_stat(stat.data(), "name", kMax64) == stat.data() + stat.size());
  CHECK(stat == "STAT name 18446744073709551615\r\n");
}

TEST_CASE("numbers, rows and the version") {
  CHECK(number(0) == "0\r\n");
  CHECK(number(9) == "9\r\n");
  CHECK(number(10) == "10\r\n");
  char out[64];
  CHECK(std::string(out, write_stat(out, "pid", uint64_t{12})) == "STAT pid 12\r\n");
  CHECK(std::string(out, write_stat(out, "version", std::string_view("1.6.18"))) == "STAT version 1.6.18\r\n");
  CHECK(std::string(out, write_stat(out, "empty", std::string_view())) == "STAT empty \r\n");
  CHECK(std::string(out, write_version(out, "1.6.18")) == "VERSION 1.6.18\r\n");
}

TEST_CASE("every result has its line") {
  using enum op::ResultCode;
  CHECK(answer(CommandKind::kSet, op::ResultCode::kStored) == "STORED\r\n");
  CHECK(answer(CommandKind::kAdd, op::ResultCode::kNotStored) == "NOT_STORED\r\n");
  CHECK(answer(CommandKind::kCas, op::ResultCode::kExists) == "EXISTS\r\n");
  CHECK(answer(CommandKind::kCas, kMiss) == "NOT_FOUND\r\n");
  CHECK(answer(CommandKind::kSet, op::ResultCode::kTooLarge) == "SERVER_ERROR object too large for cache\r\n");
  CHECK(answer(CommandKind::kSet, op::ResultCode::kOutOfMemory) == "SERVER_ERROR out of memory storing object\r\n");
  CHECK(answer(CommandKind::kIncr, kNumber) == "42\r\n");
  CHECK(answer(CommandKind::kDecr, kMiss) == "NOT_FOUND\r\n");
  CHECK(answer(CommandKind::kIncr, op::ResultCode::kNonNumeric) ==
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
  CHECK(answer(CommandKind::kIncr, op::ResultCode::kOutOfMemory) == "SERVER_ERROR out of memory\r\n");
  CHECK(answer(CommandKind::kDelete, op::ResultCode::kDeleted) == "DELETED\r\n");
  CHECK(answer(CommandKind::kDelete, kMiss) == "NOT_FOUND\r\n");
  CHECK(answer(CommandKind::kTouch, kHit) == "TOUCHED\r\n");
  CHECK(answer(CommandKind::kTouch, kMiss) == "NOT_FOUND\r\n");
  CHECK(answer(CommandKind::kFlushAll, op::ResultCode::kOk) == "OK\r\n");
  CHECK(answer(CommandKind::kSet, kSessionLost) == "SERVER_ERROR backend unavailable\r\n");
  CHECK(answer(CommandKind::kSet, kTimedOut) == "SERVER_ERROR backend timed out\r\n");
  CHECK(answer(CommandKind::kSet, kUnsupported) == "SERVER_ERROR backend refused the request\r\n");
}

TEST_CASE("noreply hides success, failure and error alike") {
  for (const auto code :
       {op::ResultCode::kStored, op::ResultCode::kMiss, op::ResultCode::kTooLarge, op::ResultCode::kSessionLost}) {
    CHECK(answer(CommandKind::kSet, code, true).empty());
  }
}

TEST_CASE("a retrieval that cannot be answered says so in one line") {
  op::Result result;
  const auto line = [&](op::ResultCode code) {
    result.code = code;
    return retrieval_error(result);
  };
  CHECK(line(op::ResultCode::kHit).empty());
  CHECK(line(op::ResultCode::kMiss).empty());
  CHECK(line(op::ResultCode::kSessionLost) == "SERVER_ERROR backend unavailable\r\n");
  CHECK(line(op::ResultCode::kTimedOut) == "SERVER_ERROR backend timed out\r\n");
  CHECK(line(op::ResultCode::kOutOfMemory) == "SERVER_ERROR out of memory writing get response\r\n");
}
