// Answers in the dialect of the command.
#include <cstring>
#include <string>

#include <doctest/doctest.h>

#include "memcache/answer.h"
#include "memcache/text/text_parser.h"
#include "memcache_binary_packet.h"

namespace {

using namespace egret;
using namespace egret::memcache;
using op::ResultCode;

op::Result result_of(ResultCode code) {
  op::Result result;
  result.code = code;
  return result;
}

std::string whole_answer(const Question& question, const op::Result& result, std::string_view key = {}) {
  std::string text(max_answer(question, key.size()), '?');
  text.resize(static_cast<size_t>(write_answer(text.data(), question, key, result) - text.data()));
  return text;
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
  return whole_answer(question, result);
}

// The question that a line of a text dialect is.
Question asked(const std::string& line) {
  TextParser parser{Limits{}};
  Command command;
  const std::string bytes = line + "\r\n" + (line.starts_with("ms ") ? "hi\r\n" : "");
  parser.next(bytes, command);
  Question question;
  ask(command, command.options, question);
  return question;
}

std::string meta(const std::string& line, const op::Result& result) {
  const Question question = asked(line);
  if (!has_value(question, result) || result.code == ResultCode::kNumber) return whole_answer(question, result, "a");
  std::string text(max_head(question, 1), '?');
  const auto length = static_cast<uint32_t>(result.value.size());
  text.resize(static_cast<size_t>(write_head(text.data(), question, "a", result, length) - text.data()));
  return text + std::string(result.value) + std::string(tail(question));
}

op::Result hit() {
  op::Result result = result_of(ResultCode::kHit);
  result.client_flags = 5;
  result.value = "value";
  result.total_length = 5;
  result.cas = 99;
  result.ttl = 30;
  result.last_access = 7;
  return result;
}

Question binary_question(binary::Opcode opcode, CommandKind kind, bool quiet = false) {
  Command command;
  command.kind = kind;
  command.dialect = Dialect::kBinary;
  command.quiet = quiet;
  command.opcode = static_cast<uint8_t>(opcode);
  std::memcpy(&command.opaque, "abcd", 4);
  Question question;
  ask(command, op::kWantCas, question);
  return question;
}

// A response as it should be.
std::string response(binary::Opcode opcode, uint16_t status, const std::string& extras, const std::string& key,
                     const std::string& value, uint64_t cas = 0) {
  return "\x81" + std::string(1, static_cast<char>(opcode)) + big(static_cast<uint16_t>(key.size())) +
         static_cast<char>(extras.size()) + std::string(1, '\0') + big(status) +
         big(static_cast<uint32_t>(extras.size() + key.size() + value.size())) + "abcd" + big(cas) + extras + key +
         value;
}

}  // namespace

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

TEST_CASE("a retrieval that cannot be answered gets one error line") {
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

TEST_CASE("mg: the flags come back in the order in which they were asked for") {
  CHECK(meta("mg a", hit()) == "HD\r\n");
  CHECK(meta("mg a v", hit()) == "VA 5\r\nvalue\r\n");
  CHECK(meta("mg a s v t Oabc f k c l h", hit()) == "VA 5 s5 t30 Oabc f5 ka c99 l7 h0\r\nvalue\r\n");
  CHECK(meta("mg a t f q", hit()) == "HD t30 f5\r\n");
  op::Result made = hit();
  made.marks = op::kCreated;
  CHECK(meta("mg a t N30", made) == "HD t-1\r\n");  // the flags are obeyed from left to right
  CHECK(meta("mg a N30 t", made) == "HD t30\r\n");
  CHECK(meta("mg a T9 t N30", made) == "HD t9\r\n");
  CHECK(meta("mg a T0 t N30", made) == "HD t-1\r\n");
  op::Result immortal = hit();
  immortal.ttl = -1;
  immortal.marks = op::kFetched;
  CHECK(meta("mg a t h", immortal) == "HD t-1 h1\r\n");
}

TEST_CASE("mg: won, stale and token sent follow the flags") {
  op::Result stale = hit();
  stale.marks = op::kStale | op::kWon;
  CHECK(meta("mg a s", stale) == "HD s5 X W\r\n");
  stale.marks = op::kStale | op::kTokenSent;
  CHECK(meta("mg a", stale) == "HD Z X\r\n");
}

TEST_CASE("mg: a miss says so, with opaque and key; quietly it says nothing") {
  CHECK(meta("mg a v", result_of(ResultCode::kMiss)) == "EN\r\n");
  CHECK(meta("mg a s v Oabc t k", result_of(ResultCode::kMiss)) == "EN Oabc ka\r\n");
  CHECK(meta("mg a v q Oabc", result_of(ResultCode::kMiss)).empty());
  CHECK(meta("mg a v q", result_of(ResultCode::kSessionLost)) == "SERVER_ERROR backend unavailable\r\n");
}

TEST_CASE("mg: a value that the client has already is left out") {
  CHECK(meta("mg a v s C99", hit()) == "HD s5\r\n");
  CHECK(meta("mg a v s C98", hit()) == "VA 5 s5\r\nvalue\r\n");
}

TEST_CASE("a key that came as base64 is returned as base64") {
  CHECK(meta("mg YQ== v k b", hit()) == "VA 5 kYQ== b\r\nvalue\r\n");
  CHECK(meta("md YQ== b k", result_of(ResultCode::kDeleted)) == "HD kYQ== b\r\n");
}

TEST_CASE("ms: what became of it, its CAS and its size") {
  op::Result stored = result_of(ResultCode::kStored);
  stored.cas = 77;
  stored.number = 12;
  CHECK(meta("ms a 2", stored) == "HD\r\n");
  CHECK(meta("ms a 2 c k s Oq", stored) == "HD c77 ka s12 Oq\r\n");
  CHECK(meta("ms a 2 q k", stored).empty());
  CHECK(meta("ms a 2 q k c s", result_of(ResultCode::kNotStored)) == "NS ka c0 s2\r\n");
  CHECK(meta("ms a 2 q", result_of(ResultCode::kExists)) == "EX\r\n");
  CHECK(meta("ms a 2 q", result_of(ResultCode::kMiss)) == "NF\r\n");
  CHECK(meta("ms a 2 q", result_of(ResultCode::kTooLarge)) == "SERVER_ERROR object too large for cache\r\n");
}

TEST_CASE("md: quiet hides that it was done, not that it was not") {
  CHECK(meta("md a O1", result_of(ResultCode::kDeleted)) == "HD O1\r\n");
  CHECK(meta("md a q", result_of(ResultCode::kDeleted)).empty());
  CHECK(meta("md a q", result_of(ResultCode::kMiss)) == "NF\r\n");
  CHECK(meta("md a q", result_of(ResultCode::kExists)) == "EX\r\n");
}

TEST_CASE("ma: the number, if it is wanted") {
  op::Result number = result_of(ResultCode::kNumber);
  number.number = 1234;
  number.cas = 9;
  number.ttl = -1;
  CHECK(meta("ma a", number) == "HD\r\n");
  CHECK(meta("ma a v", number) == "VA 4\r\n1234\r\n");
  CHECK(meta("ma a t c v k", number) == "VA 4 t-1 c9 ka\r\n1234\r\n");
  CHECK(meta("ma a v q", number).empty());
  CHECK(meta("ma a v k", result_of(ResultCode::kMiss)) == "NF ka\r\n");
  CHECK(meta("ma a q", result_of(ResultCode::kNonNumeric)) ==
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
}

TEST_CASE("me: everything known of the item") {
  CHECK(meta("me a", hit()) == "ME a exp=30 la=7 cas=99 fetch=no cls=4 size=69\r\n");
  CHECK(meta("me a", result_of(ResultCode::kMiss)) == "EN\r\n");
}

TEST_CASE("no answer is longer than its bound") {
  const std::string key(250, 'k');
  op::Result result = hit();
  result.ttl = result.last_access = UINT32_MAX;
  result.cas = UINT64_MAX;
  result.client_flags = UINT32_MAX;
  result.marks = op::kStale | op::kWon | op::kTokenSent | op::kFetched;
  const std::string opaque(31, 'o');
  for (const std::string& flags : {" s t f h l c k b O" + opaque, " v s t f h l c k b O" + opaque}) {
    const Question question = asked("mg " + key.substr(0, 248) + "== " + flags);
    CHECK(whole_answer(question, result, key).size() <= max_answer(question, key.size()));
    std::string head(max_head(question, key.size()), '?');
    CHECK(write_head(head.data(), question, key, result, UINT32_MAX) <= head.data() + head.size());
  }
}

TEST_CASE("binary: hits hold the flags, and the key where it was asked for") {
  using binary::Opcode;
  const auto head = [](Opcode opcode) {
    const Question question = binary_question(opcode, CommandKind::kGet);
    CHECK(has_value(question, hit()));
    std::string text(max_head(question, 1), '?');
    text.resize(static_cast<size_t>(write_head(text.data(), question, "a", hit(), 5) - text.data()));
    return text + "value" + std::string(tail(question));
  };
  const std::string flags = big(uint32_t{5});
  CHECK(head(Opcode::kGet) == response(Opcode::kGet, 0, flags, "", "value", 99));
  CHECK(head(Opcode::kGetKQ) == response(Opcode::kGetKQ, 0, flags, "a", "value", 99));
  const Question touch = binary_question(Opcode::kTouch, CommandKind::kTouch);
  CHECK_FALSE(has_value(touch, hit()));
  CHECK(whole_answer(touch, hit(), "a") == response(Opcode::kTouch, 0, flags, "", "", 99));
}

TEST_CASE("binary: each result has its status") {
  using binary::Opcode;
  const auto is = [](CommandKind kind, ResultCode code, uint16_t status, const std::string& text) {
    const Question question = binary_question(Opcode::kSet, kind);
    CHECK(whole_answer(question, result_of(code)) == response(Opcode::kSet, status, "", "", text));
  };
  is(CommandKind::kSet, ResultCode::kStored, 0, "");
  is(CommandKind::kSet, ResultCode::kMiss, 1, "Not found");
  is(CommandKind::kSet, ResultCode::kExists, 2, "Data exists for key.");
  is(CommandKind::kSet, ResultCode::kTooLarge, 3, "Too large.");
  is(CommandKind::kAdd, ResultCode::kNotStored, 2, "Data exists for key.");
  is(CommandKind::kReplace, ResultCode::kNotStored, 1, "Not found");
  is(CommandKind::kAppend, ResultCode::kNotStored, 5, "Not stored.");
  is(CommandKind::kIncr, ResultCode::kNonNumeric, 6, "Non-numeric server-side value for incr or decr");
  is(CommandKind::kSet, ResultCode::kOutOfMemory, 0x82, "Out of memory");
  is(CommandKind::kSet, ResultCode::kInvalid, 0x84, "Backend refused the request");
  is(CommandKind::kSet, ResultCode::kSessionLost, 0x86, "Backend unavailable");
}

TEST_CASE("binary: numbers, misses with their key, and what quiet hides") {
  using binary::Opcode;
  op::Result number = result_of(ResultCode::kNumber);
  number.number = 0x0102030405060708;
  number.cas = 3;
  CHECK(whole_answer(binary_question(Opcode::kIncrement, CommandKind::kIncr), number) ==
        response(Opcode::kIncrement, 0, "", "", big(number.number), 3));
  const op::Result miss = result_of(ResultCode::kMiss);
  CHECK(whole_answer(binary_question(Opcode::kGetK, CommandKind::kGet), miss, "a") ==
        response(Opcode::kGetK, 1, "", "a", ""));
  CHECK(whole_answer(binary_question(Opcode::kGet, CommandKind::kGet), miss, "a") ==
        response(Opcode::kGet, 1, "", "", "Not found"));
  CHECK(whole_answer(binary_question(Opcode::kGetQ, CommandKind::kGet, true), miss, "a").empty());
  CHECK(whole_answer(binary_question(Opcode::kIncrementQ, CommandKind::kIncr, true), number).empty());
  CHECK(whole_answer(binary_question(Opcode::kDeleteQ, CommandKind::kDelete, true), miss) ==
        response(Opcode::kDeleteQ, 1, "", "", "Not found"));
}

TEST_CASE("binary: a report of statistics is a packet a row, and an empty one") {
  const Question question = binary_question(binary::Opcode::kStat, CommandKind::kStats);
  CHECK(stat_packets(question, "STAT pid 12\r\nSTAT libevent 2.1 stable\r\nEND\r\n") ==
        response(binary::Opcode::kStat, 0, "", "pid", "12") +
            response(binary::Opcode::kStat, 0, "", "libevent", "2.1 stable") +
            response(binary::Opcode::kStat, 0, "", "", ""));
}
