// The op and result codec: what is written is read back, and what nobody should have written is refused.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "op/records.h"
#include "op/stats.h"
#include "wire/bytes.h"
#include "wire/codec.h"
#include "wire_samples.h"

using namespace egret::wire;
using namespace egret::op;

namespace {

constexpr size_t kHead = 8;

// Decodes from an allocation of exactly that size, so that a sanitizer sees a read past the end.
DecodeError decode_exactly(std::span<const std::byte> bytes, std::span<Op> ops) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[bytes.size()]);
  std::ranges::copy(bytes, exact.get());
  return decode_ops(exact.get(), bytes.size(), ops);
}

DecodeError decode_one(std::span<const std::byte> bytes) {
  Op op;
  return decode_exactly(bytes, {&op, 1});
}

template <typename T>
void poke(std::vector<std::byte>& bytes, size_t offset, T value) {
  REQUIRE(offset + sizeof value <= bytes.size());
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

std::vector<std::byte> encoded_result(const Op& op, const Result& result, size_t room) {
  std::vector<std::byte> bytes(room);
  const std::byte* end = encode_result(bytes.data(), room, op, result);
  REQUIRE(end <= bytes.data() + room);
  bytes.resize(static_cast<size_t>(end - bytes.data()));
  return bytes;
}

bool read_result(const std::vector<std::byte>& bytes, Result& result) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[bytes.size()]);
  std::ranges::copy(bytes, exact.get());
  static std::string kept;
  ResultReader reader(exact.get(), bytes.size());
  if (!reader.next(result)) return false;
  CHECK(reader.at_end());
  kept = result.value;
  result.value = kept;
  return true;
}

Result make_result(ResultCode code, std::string_view value = {}) {
  Result result;
  result.code = code;
  result.value = value;
  result.total_length = static_cast<uint32_t>(value.size());
  return result;
}

const Op kPlainGet = make_op(OpCode::kGet, "k");

}  // namespace

TEST_SUITE("ops") {
  TEST_CASE("every op and option comes back as it was, in the size the format document gives") {
    for (const OpSample& sample : op_samples()) {
      CAPTURE(sample.name);
      CHECK(encoded_op_size(sample.op) == kHead + sample.fixed + sample.op.key.size() + sample.op.value.size());
      const auto bytes = encoded(sample.op);
      REQUIRE(!bytes.empty());
      Op back;
      CHECK(decode_ops(bytes.data(), bytes.size(), {&back, 1}) == DecodeError::kNone);
      CHECK(same(back, sample.op));
    }
  }

  TEST_CASE("ops follow one another without padding, and views lie in the message") {
    std::vector<std::byte> message;
    for (const OpSample& sample : op_samples()) {
      const auto bytes = encoded(sample.op);
      message.insert(message.end(), bytes.begin(), bytes.end());
    }
    std::vector<Op> ops(op_samples().size());
    REQUIRE(decode_ops(message.data(), message.size(), ops) == DecodeError::kNone);
    const auto* begin = reinterpret_cast<const char*>(message.data());
    for (size_t i = 0; i < ops.size(); ++i) {
      CHECK(same(ops[i], op_samples()[i].op));
      for (const std::string_view view : {ops[i].key, ops[i].value}) {
        if (view.empty()) continue;
        CHECK(view.data() >= begin);
        CHECK(view.data() + view.size() <= begin + message.size());
      }
    }
  }

  TEST_CASE("the bytes of a cas are those of the format document") {
    const Op cas = make_op(OpCode::kSet, "key", [](Op& o) {
      o.mode = SetMode::kReplace, o.options = kCompareCas | kWantCas, o.client_flags = 0x01020304;
      o.exptime = 0x1112131415161718, o.cas = 0x2122232425262728, o.value = "val";
    });
    const unsigned char expected[] = {
        2,    3,    0x09, 0,    3,    0,    0,    0,     // code, key length, options, value length
        0x04, 0x03, 0x02, 0x01, 2,    0,    0,    0,     // flags, mode
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // exptime
        0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,  // cas
        'k',  'e',  'y',  'v',  'a',  'l'};
    const auto bytes = encoded(cas);
    REQUIRE(bytes.size() == sizeof expected);
    CHECK(std::memcmp(bytes.data(), expected, sizeof expected) == 0);
  }

  TEST_CASE("the fields of options follow each other in the order of the format document") {
    const Op get = make_op(OpCode::kGet, "k", [](Op& o) {
      o.options = kCompareCas | kTouch | kExplicitCas | kVivify | kRecache;
      o.cas = 1, o.exptime = 2, o.new_cas = 3, o.vivify_exptime = 4, o.recache_below = 5;
    });
    const Op incr = make_op(OpCode::kArith, "k", [](Op& o) {
      o.options = kCompareCas | kTouch | kCreate | kExplicitCas;
      o.delta = 0, o.cas = 1, o.exptime = 2, o.initial = 3, o.vivify_exptime = 4, o.new_cas = 5;
    });
    for (const auto& [op, fixed] : {std::pair{get, size_t{0}}, {incr, size_t{8}}}) {
      const auto bytes = encoded(op);
      REQUIRE(bytes.size() == kHead + fixed + 5 * 8 + 1);
      for (unsigned field = 0; field < 5; ++field) {
        CHECK(bytes[kHead + fixed + field * 8] == static_cast<std::byte>(field + 1));
      }
    }
  }

  TEST_CASE("an op cut anywhere is refused") {
    for (const OpSample& sample : op_samples()) {
      CAPTURE(sample.name);
      const auto bytes = encoded(sample.op);
      for (size_t length = 0; length < bytes.size(); ++length) {
        CAPTURE(length);
        CHECK(decode_one(std::span(bytes).first(length)) == DecodeError::kTruncated);
      }
    }
  }

  TEST_CASE("bytes after the last op are refused, and so is a count that does not match") {
    auto bytes = encoded(kPlainGet);
    Op two[2];
    CHECK(decode_exactly(bytes, two) == DecodeError::kTruncated);
    CHECK(decode_exactly(bytes, {}) == DecodeError::kTrailing);
    bytes.push_back(std::byte{0});
    CHECK(decode_one(bytes) == DecodeError::kTrailing);
  }

  TEST_CASE("an option that the op does not have is refused, each by itself") {
    for (const OpSample& sample : op_samples()) {
      for (unsigned bit = 0; bit < 16; ++bit) {
        auto bytes = encoded(sample.op);
        const auto option = static_cast<uint16_t>(1u << bit);
        poke<uint16_t>(bytes, 2, static_cast<uint16_t>(sample.op.options | option));
        const DecodeError error = decode_one(bytes);
        CAPTURE(sample.name);
        CAPTURE(bit);
        // Those an op may have change its shape at most; the others are an error of their own.
        const bool exists = std::ranges::any_of(op_samples(), [&](const OpSample& other) {
          return other.op.code == sample.op.code && (other.op.options & option);
        });
        if (!exists) CHECK(error == DecodeError::kBadEnum);
      }
    }
  }

  TEST_CASE("modes and groups that do not exist are refused") {
    for (const uint32_t mode : {6u, 7u, 255u, 256u, 0x0100'0000u, 0xffff'ffffu}) {
      auto set = encoded(make_op(OpCode::kSet, "key"));
      poke<uint32_t>(set, kHead + 4, mode);
      CHECK(decode_one(set) == DecodeError::kBadEnum);
      auto commit = encoded(make_op(OpCode::kCommit, "key"));
      poke<uint32_t>(commit, kHead + 8, mode);
      CHECK(decode_one(commit) == DecodeError::kBadEnum);
    }
    for (const OpCode code : {OpCode::kStats, OpCode::kAdmin, OpCode::kIterate}) {
      auto bytes = encoded(make_op(code, ""));
      poke<uint32_t>(bytes, kHead, 256);
      CHECK(decode_one(bytes) == DecodeError::kBadEnum);
    }
    auto iterate = encoded(make_op(OpCode::kIterate, ""));
    poke<uint32_t>(iterate, kHead + 4, 256);
    CHECK(decode_one(iterate) == DecodeError::kBadEnum);
  }

  TEST_CASE("a key where none may be, none where there must be one, and one too long are refused") {
    for (const OpSample& sample : op_samples()) {
      CAPTURE(sample.name);
      auto bytes = encoded(sample.op);
      poke<uint8_t>(bytes, 1, sample.op.key.empty() ? 1 : 0);
      CHECK(decode_one(bytes) == DecodeError::kBadKey);
      if (sample.op.key.empty()) continue;
      for (const unsigned length : {251u, 255u}) {
        bytes = encoded(sample.op);
        poke<uint8_t>(bytes, 1, static_cast<uint8_t>(length));
        bytes.resize(bytes.size() + 300);
        CHECK(decode_one(bytes) == DecodeError::kBadKey);
      }
    }
  }

  TEST_CASE("value lengths lie in no way that matters") {
    for (const OpSample& sample : op_samples()) {
      CAPTURE(sample.name);
      const bool may_have =
          sample.op.code == OpCode::kSet || sample.op.code == OpCode::kUpload || sample.op.code == OpCode::kAdmin;
      for (const uint32_t length : {1u, 0x7fff'ffffu, 0xffff'ffffu}) {
        auto bytes = encoded(sample.op);
        poke<uint32_t>(bytes, 4, static_cast<uint32_t>(sample.op.value.size()) + length);
        const DecodeError error = decode_one(bytes);
        if (may_have)
          CHECK(error != DecodeError::kNone);
        else
          CHECK(error == DecodeError::kBadLength);
      }
    }
  }

  TEST_CASE("an upload's part must lie within the value it is part of") {
    const auto upload = [](uint32_t offset, uint32_t length, std::string_view value) {
      return make_op(OpCode::kUpload, "key", [&](Op& o) { o.offset = offset, o.length = length, o.value = value; });
    };
    CHECK(decode_one(encoded(upload(0, 3, "abc"))) == DecodeError::kNone);
    CHECK(decode_one(encoded(upload(3, 3, ""))) == DecodeError::kNone);
    CHECK(decode_one(encoded(upload(kMaxValueLength - 1, kMaxValueLength, "a"))) == DecodeError::kNone);
    CHECK(decode_one(encoded(upload(0, 2, "abc"))) == DecodeError::kBadLength);
    CHECK(decode_one(encoded(upload(1, 3, "abc"))) == DecodeError::kBadLength);
    CHECK(decode_one(encoded(upload(4, 3, ""))) == DecodeError::kBadLength);
    CHECK(decode_one(encoded(upload(0, kMaxValueLength + 1, "a"))) == DecodeError::kBadLength);
    CHECK(decode_one(encoded(upload(0xffff'ffff, 0xffff'ffff, "a"))) == DecodeError::kBadLength);
    CHECK(decode_one(encoded(upload(0xffff'ffff, 3, "abc"))) == DecodeError::kBadLength);
  }

  TEST_CASE("an op of a code nobody knows yet is kept: code, options, key and value") {
    for (const unsigned code : {0u, 14u, 15u, 99u, 255u}) {
      Op unknown = make_op(static_cast<OpCode>(code), "some key", [](Op& o) { o.value = "fields and value"; });
      for (const uint16_t options : {uint16_t{0}, uint16_t{kWantCas}, uint16_t{0xffff}}) {
        auto bytes = encoded(unknown);
        poke<uint16_t>(bytes, 2, options);
        Op back;
        CHECK(decode_ops(bytes.data(), bytes.size(), {&back, 1}) == DecodeError::kNone);
        CHECK(static_cast<unsigned>(back.code) == code);
        CHECK(back.options == options);
        CHECK(back.key == unknown.key);
        CHECK(back.value == unknown.value);
        CHECK(min_result_size(back) >= kHead);
        CHECK(std::string(to_string(back.code)) == "unknown");
        Op again = back;
        again.key = unknown.key;
        CHECK_MESSAGE(encoded(again) == bytes, "encoding it again yields the same bytes");
      }
    }
  }

  TEST_CASE("each error has a text of its own") {
    std::vector<std::string> texts;
    for (unsigned error = 0; error <= static_cast<unsigned>(DecodeError::kTooMany); ++error) {
      texts.emplace_back(to_string(static_cast<DecodeError>(error)));
    }
    std::ranges::sort(texts);
    CHECK(std::ranges::adjacent_find(texts) == texts.end());
    CHECK(std::string(to_string(static_cast<DecodeError>(200))) == "unknown");
  }
}

TEST_SUITE("results") {
  TEST_CASE("every code comes back, and a peer's invention or our own private codes do not") {
    for (unsigned code = 0; code < 256; ++code) {
      CAPTURE(code);
      std::vector<std::byte> bytes(8);
      bytes[0] = static_cast<std::byte>(code);
      Result back;
      CHECK(read_result(bytes, back) == (code <= 16));
    }
  }

  TEST_CASE("that no answer came is told only where it was agreed on") {
    for (const ResultCode code : {ResultCode::kSessionLost, ResultCode::kTimedOut, ResultCode::kNotSent}) {
      CAPTURE(to_string(code));
      const std::vector<std::byte> bytes = encoded_result(kPlainGet, make_result(code), 64);
      CHECK(bytes.size() == 8);
      CHECK(static_cast<int>(bytes[0]) == static_cast<int>(code) - 100 + 17);
      Result back;
      CHECK_FALSE(read_result(bytes, back));
      ResultReader relayed(bytes.data(), bytes.size(), {.is_relayed = true});
      REQUIRE(relayed.next(back));
      CHECK(back.code == code);
    }
    for (unsigned code = 0; code < 256; ++code) {
      std::vector<std::byte> bytes(8);
      bytes[0] = static_cast<std::byte>(code);
      Result back;
      CHECK(ResultReader(bytes.data(), bytes.size(), {.is_relayed = true}).next(back) == (code <= 19));
    }
  }

  TEST_CASE("a hit carries what is worth carrying") {
    Result hit = make_result(ResultCode::kHit, "value");
    Result back;
    SUBCASE("flags of 0 cost nothing") {
      const auto bytes = encoded_result(kPlainGet, hit, 100);
      CHECK(bytes.size() == 8 + 5);
      REQUIRE(read_result(bytes, back));
      CHECK(same(back, hit));
    }
    SUBCASE("flags, CAS if asked for") {
      hit.client_flags = 0x31323334;
      hit.cas = 0x1112131415161718;
      const Op gets = make_op(OpCode::kGet, "k", [](Op& o) { o.options = kWantCas; });
      const auto bytes = encoded_result(gets, hit, 100);
      CHECK(bytes.size() == 8 + 4 + 8 + 5);
      REQUIRE(read_result(bytes, back));
      CHECK(same(back, hit));
      REQUIRE(read_result(encoded_result(kPlainGet, hit, 100), back));
      CHECK(back.cas == 0);
      CHECK(back.client_flags == 0x31323334);
    }
    SUBCASE("the longest value there can be is told by its length") {
      hit.total_length = kMaxValueLength;
      hit.version = 77;
      REQUIRE(read_result(encoded_result(kPlainGet, hit, 100), back));
      CHECK(back.is_partial());
      CHECK(back.total_length == kMaxValueLength);
      CHECK(back.version == 77);
    }
  }

  TEST_CASE("a value is cut to what fits, at every size, and says so") {
    const std::string value(100, 'v');
    for (const OpSample& sample : op_samples()) {
      if (sample.op.code != OpCode::kGet && sample.op.code != OpCode::kChunk) continue;
      CAPTURE(sample.name);
      for (size_t room = sample.least_result; room < sample.least_result + 110; ++room) {
        Result hit = make_result(ResultCode::kHit, value);
        hit.client_flags = 1;
        hit.cas = 2;
        hit.version = 3;
        Result back;
        REQUIRE(read_result(encoded_result(sample.op, hit, room), back));
        CHECK(back.value.size() == std::min(room - sample.least_result, value.size()));
        CHECK(back.total_length == value.size());
        CHECK(back.version == (back.is_partial() ? 3 : 0));
        CHECK(back.client_flags == 1);
      }
    }
  }

  TEST_CASE("a value in pieces is written as if it lay together, cut wherever the room ends") {
    const std::string value = "the first piece, the second and a third";
    const std::array<std::string_view, 3> further{"the second", "", " and a third"};
    for (const OpSample& sample : op_samples()) {
      if (sample.op.code != OpCode::kGet && sample.op.code != OpCode::kChunk) continue;
      CAPTURE(sample.name);
      for (size_t room = sample.least_result; room < sample.least_result + value.size() + 5; ++room) {
        for (const uint32_t flags : {0u, 5u}) {
          Result whole = make_result(ResultCode::kHit, value);
          whole.version = 3;
          whole.client_flags = flags;
          whole.cas = 4;
          whole.marks = kFetched;
          Result pieces = whole;
          pieces.value = "the first piece, ";
          pieces.further = further;
          CHECK(encoded_result(sample.op, pieces, room) == encoded_result(sample.op, whole, room));
        }
      }
    }
  }

  TEST_CASE("without its value a result never takes more than min_result_size, whatever op and code") {
    auto samples = op_samples();
    const auto all_options = [](Op& o) { o.options = 0xffff; };
    samples.push_back({"unknown, with every option", make_op(static_cast<OpCode>(200), "key", all_options), 0, 8});
    for (const OpSample& sample : samples) {
      CAPTURE(sample.name);
      CHECK(min_result_size(sample.op) == sample.least_result);
      for (unsigned code = 0; code <= static_cast<unsigned>(ResultCode::kForbidden); ++code) {
        CAPTURE(code);
        Result result = make_result(static_cast<ResultCode>(code));
        result.total_length = 1000;
        result.client_flags = 0xffff'ffff;
        result.cas = result.version = result.number = std::numeric_limits<uint64_t>::max();
        result.marks = 0xff, result.ttl = -1, result.last_access = 0xffff'ffff;
        const auto bytes = encoded_result(sample.op, result, sample.least_result);
        CHECK(bytes.size() <= sample.least_result);
        Result back;
        CHECK(read_result(bytes, back));
      }
    }
  }

  TEST_CASE("CAS and number come back where they are asked for") {
    const Op set = make_op(OpCode::kSet, "k", [](Op& o) { o.options = kWantCas; });
    Result stored = make_result(ResultCode::kStored);
    stored.cas = 99;
    Result back;
    REQUIRE(read_result(encoded_result(set, stored, 100), back));
    CHECK(same(back, stored));
    const Op incr = make_op(OpCode::kArith, "k");
    Result number = make_result(ResultCode::kNumber);
    number.number = std::numeric_limits<uint64_t>::max();
    REQUIRE(read_result(encoded_result(incr, number, 100), back));
    CHECK(same(back, number));
  }

  TEST_CASE("what is said of an item comes back where it is asked for, marks of a hit always") {
    Result hit = make_result(ResultCode::kHit, "value");
    hit.marks = kFetched | kStale | kWon | kTokenSent;
    hit.ttl = -1;
    hit.last_access = 0x31323334;
    Result back;
    const Op asking = make_op(OpCode::kGet, "k", [](Op& o) { o.options = kWantMeta; });
    const auto bytes = encoded_result(asking, hit, 100);
    CHECK(bytes.size() == 8 + 12 + 5);
    REQUIRE(read_result(bytes, back));
    CHECK(same(back, hit));
    REQUIRE(read_result(encoded_result(kPlainGet, hit, 100), back));
    CHECK(back.marks == hit.marks);
    CHECK(back.ttl == 0);
    CHECK(back.last_access == 0);
    for (const uint8_t mark : {kFetched, kStale, kWon, kTokenSent}) {
      hit.marks = mark;
      REQUIRE(read_result(encoded_result(asking, hit, 100), back));
      CHECK(back.marks == mark);
    }
    Result number = make_result(ResultCode::kNumber);
    number.number = 5;
    number.ttl = std::numeric_limits<int64_t>::max();
    const Op incr = make_op(OpCode::kArith, "k", [](Op& o) { o.options = kWantMeta; });
    REQUIRE(read_result(encoded_result(incr, number, 100), back));
    CHECK(same(back, number));
    Result stored = make_result(ResultCode::kStored);
    stored.number = 70'000;
    const Op set = make_op(OpCode::kSet, "k", [](Op& o) { o.options = kWantMeta; });
    REQUIRE(read_result(encoded_result(set, stored, 100), back));
    CHECK(back.number == 70'000);
    REQUIRE(read_result(encoded_result(make_op(OpCode::kSet, "k"), stored, 100), back));
    CHECK(back.number == 0);
    stored.marks = 0xff;
    REQUIRE(read_result(encoded_result(set, stored, 100), back));
    CHECK(back.marks == kCreated);
    REQUIRE(read_result(encoded_result(make_op(OpCode::kSet, "k"), stored, 100), back));
    CHECK(back.marks == 0);
    Result deleted = make_result(ResultCode::kDeleted);
    deleted.number = 70'001;
    const Op erase = make_op(OpCode::kDelete, "k", [](Op& o) { o.options = kWantMeta; });
    REQUIRE(read_result(encoded_result(erase, deleted, 100), back));
    CHECK(back.number == 70'001);
    REQUIRE(read_result(encoded_result(make_op(OpCode::kDelete, "k"), deleted, 100), back));
    CHECK(back.number == 0);
    // A miss, or an op that cannot ask, says nothing.
    hit.code = ResultCode::kMiss;
    hit.value = {};
    REQUIRE(read_result(encoded_result(asking, hit, 100), back));
    CHECK(back.marks == 0);
    CHECK(back.ttl == 0);
  }

  TEST_CASE("statistics are cut between rows") {
    const Op stats = make_op(OpCode::kStats, "");
    const std::string rows(40 * sizeof(StatRow), 'r');
    for (size_t room = min_result_size(stats); room < min_result_size(stats) + 500; ++room) {
      Result back;
      REQUIRE(read_result(encoded_result(stats, make_result(ResultCode::kOk, rows), room), back));
      CHECK(back.value.size() % sizeof(StatRow) == 0);
      CHECK(back.value.size() >= 16 * sizeof(StatRow));
      CHECK(back.value.size() <= room - 8);
      CHECK(back.total_length == rows.size());
    }
  }

  TEST_CASE("records are cut between two of them, and the cursor is that of the last which is there") {
    const Op iterate = make_op(OpCode::kIterate, "");
    std::string records;
    for (uint64_t i = 0; i < 8; ++i) {
      RecordHead head{};
      head.cursor = 100 + i;
      append_record(records, head, std::string(i == 3 ? kMaxKeyLength : 20, 'k'));
    }
    Result page = make_result(ResultCode::kOk, records);
    page.version = 1'000;
    page.number = 7;
    for (size_t room = min_result_size(iterate); room < min_result_size(iterate) + records.size(); ++room) {
      Result back;
      REQUIRE(read_result(encoded_result(iterate, page, room), back));
      CHECK(back.value.size() <= room - 28);
      CHECK_FALSE(back.is_partial());
      CHECK(back.number == 7);
      uint64_t last = 0;
      std::string_view left = back.value;
      for (Record record; take_record(left, record);) last = record.head.cursor;
      CHECK(left.empty());
      CHECK(last != 0);
      CHECK(back.version == (last == 107 ? 1'000 : last));
      // Not even one more would have fitted.
      const size_t next = last == 102 ? kMaxRecord : sizeof(RecordHead) + 20;
      CHECK((last == 107 || back.value.size() + next > room - 28));
    }
  }

  TEST_CASE("the end of a walk, or one that found nothing, is told by the cursor") {
    Result page = make_result(ResultCode::kOk);
    page.version = kWalkOver;
    Result back;
    REQUIRE(read_result(encoded_result(make_op(OpCode::kIterate, ""), page, 348), back));
    CHECK(same(back, page));
  }

  TEST_CASE("bytes that are no record end the reading") {
    std::string good;
    append_record(good, {}, "key");
    Record record;
    std::string_view left = good;
    REQUIRE(take_record(left, record));
    CHECK(record.key == "key");
    CHECK(left.empty());
    for (size_t length = 0; length < good.size(); ++length) {
      const std::unique_ptr<char[]> exact(new char[length]);
      std::copy_n(good.data(), length, exact.get());
      left = {exact.get(), length};
      CHECK_FALSE(take_record(left, record));
    }
    for (const unsigned key_length : {0u, 4u, 251u, 255u}) {
      std::string bad = good;
      bad[38] = static_cast<char>(key_length);
      left = bad;
      CHECK_FALSE(take_record(left, record));
    }
    std::string bad = good;
    bad[39] = 1;
    left = bad;
    CHECK_FALSE(take_record(left, record));
  }

  TEST_CASE("a result cut anywhere is refused") {
    const Op gets = make_op(OpCode::kGet, "k", [](Op& o) { o.options = kWantCas; });
    Result hit = make_result(ResultCode::kHit, "value");
    hit.client_flags = 5;
    hit.cas = 6;
    hit.total_length = 1000;
    const auto bytes = encoded_result(gets, hit, 100);
    for (size_t length = 0; length < bytes.size(); ++length) {
      Result back;
      CHECK_FALSE(read_result({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length)}, back));
    }
  }

  TEST_CASE("lengths that contradict each other, and fields that do not exist, are refused") {
    Result hit = make_result(ResultCode::kHit, "value");
    hit.total_length = 1000;
    const auto good = encoded_result(kPlainGet, hit, 100);
    Result back;
    REQUIRE(read_result(good, back));
    auto bytes = good;
    poke<uint32_t>(bytes, 16, 4);  // whole value shorter than the part
    CHECK_FALSE(read_result(bytes, back));
    bytes = good;
    poke<uint32_t>(bytes, 16, kMaxValueLength + 1);
    CHECK_FALSE(read_result(bytes, back));
    bytes = good;
    poke<uint32_t>(bytes, 4, 6);  // value longer than the body
    CHECK_FALSE(read_result(bytes, back));
    bytes = good;
    poke<uint32_t>(bytes, 4, 0xffff'ffff);
    CHECK_FALSE(read_result(bytes, back));
    for (unsigned bit = 5; bit < 8; ++bit) {
      bytes = good;
      bytes[1] |= static_cast<std::byte>(1u << bit);
      CAPTURE(bit);
      CHECK_FALSE(read_result(bytes, back));
    }
  }

  TEST_CASE("a result whose reserved bits are not 0 is none") {
    const std::vector<std::byte> good = encoded_result(kPlainGet, make_result(ResultCode::kHit, "value"), 100);
    Result back;
    REQUIRE(read_result(good, back));
    for (const size_t at : {2u, 3u}) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::vector<std::byte> bytes = good;
        bytes[at] = static_cast<std::byte>(1u << bit);
        CHECK(read_result(bytes, back) == (at == 2 && bit < 5));  // the marks there are
      }
    }
  }

  TEST_CASE("a value that is lent goes by its name, which is taken within one process only") {
    ReturnedLoans returned;
    Loan loan(returned);
    loan.next_pieces() = {"a long", " value"};
    const LoanName name = loan.lend();
    Result hit = make_result(ResultCode::kHit, "a long");
    hit.total_length = 100'000;
    hit.version = 7;
    hit.client_flags = 3;
    std::vector<std::byte> body(200);
    std::byte* end = encode_lent_result(body.data(), 100, kPlainGet, hit, name);
    end = encode_result(end, 100, kPlainGet, make_result(ResultCode::kHit, "next"));
    body.resize(static_cast<size_t>(end - body.data()));
    ResultReader reader(body.data(), body.size(), {.takes_loans = true});
    Result back;
    REQUIRE(reader.next(back));
    REQUIRE(reader.loan() != nullptr);
    CHECK(reader.loan()->loan == &loan);
    CHECK(reader.loan()->serial == name.serial);
    CHECK(back.value.empty());
    CHECK(back.total_length == 100'000);
    CHECK(back.version == 7);
    CHECK(back.client_flags == 3);
    REQUIRE(reader.next(back));
    CHECK(reader.loan() == nullptr);
    CHECK(back.value == "next");
    CHECK_FALSE(ResultReader(body.data(), body.size()).next(back));
    poke<uint32_t>(body, 4, 15);  // no name
    CHECK_FALSE(ResultReader(body.data(), body.size(), {.takes_loans = true}).next(back));
  }

  TEST_CASE("results follow one another, and a broken one ends the reading") {
    std::vector<std::byte> body(200);
    std::byte* end = encode_result(body.data(), 100, kPlainGet, make_result(ResultCode::kHit, "one"));
    end = encode_result(end, 50, kPlainGet, make_result(ResultCode::kMiss));
    *end = std::byte{77};
    ResultReader reader(body.data(), static_cast<size_t>(end - body.data()) + 8);
    Result result;
    REQUIRE(reader.next(result));
    CHECK(result.value == "one");
    REQUIRE(reader.next(result));
    CHECK(result.code == ResultCode::kMiss);
    CHECK_FALSE(reader.next(result));
    CHECK_FALSE(reader.at_end());
  }
}

TEST_SUITE("fields") {
  TEST_CASE("a reader that has passed its end stays failed and yields zeroes") {
    const std::byte bytes[6] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}};
    FieldReader in(bytes, sizeof bytes);
    CHECK(in.get<uint32_t>() == 0x04030201);
    CHECK(in.left() == 2);
    CHECK(in.get<uint32_t>() == 0);
    CHECK_FALSE(in.ok());
    CHECK(in.get<uint8_t>() == 0);
    CHECK(in.get_bytes(1).empty());
    CHECK(in.left() == 0);
  }

  TEST_CASE("bytes of any length are checked without overflow") {
    const std::byte bytes[2] = {};
    FieldReader in(bytes, sizeof bytes);
    CHECK(in.get_bytes(2).size() == 2);
    CHECK(in.ok());
    CHECK(in.get_bytes(0).empty());
    CHECK(in.ok());
    CHECK(in.get_bytes(std::numeric_limits<size_t>::max()).empty());
    CHECK_FALSE(in.ok());
  }
}
