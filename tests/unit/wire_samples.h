// One well-formed op of every kind and option, and what its bytes are made of: for the tests of the codec.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "op/op.h"
#include "wire/codec.h"

namespace egret::wire {

struct OpSample {
  std::string name;
  op::Op op;
  size_t fixed = 0;         // bytes between the head and the key
  size_t least_result = 0;  // min_result_size(), written out
};

inline op::Op make_op(op::OpCode code, std::string_view key, const std::function<void(op::Op&)>& fill = {}) {
  op::Op made;
  made.code = code;
  made.key = key;
  if (fill) fill(made);
  return made;
}

// Values that differ in every byte, so that a swapped field shows.
inline std::vector<OpSample> op_samples() {
  using namespace op;
  constexpr uint64_t kCas = 0x1112'1314'1516'1718;
  constexpr uint64_t kNewCas = 0x8182'8384'8586'8788;
  constexpr int64_t kExptime = -0x2122'2324'2526'2728;
  constexpr int64_t kVivifyExptime = -0x5a5b'5c5d'5e5f'6061;
  constexpr int64_t kRecacheBelow = 0x6a6b'6c6d'6e6f'7071;
  static const std::string longest_key(kMaxKeyLength, 'k');
  static const std::string binary_value("\0\r\n\xff value", 10);
  return {
      {"get", make_op(OpCode::kGet, "k"), 0, 24},
      {"get of the longest key", make_op(OpCode::kGet, longest_key), 0, 24},
      {"get with CAS", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kWantCas; }), 0, 32},
      {"get without value", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kNoValue; }), 0, 24},
      {"get and touch",
       make_op(OpCode::kGet, "key", [](Op& o) { o.options = kTouch | kWantCas, o.exptime = kExptime; }), 8, 32},
      {"get unless CAS", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kCompareCas | kNoValue, o.cas = kCas; }),
       8, 24},
      {"get with what is said of the item", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kWantMeta | kPeek; }),
       0, 36},
      {"get of everything",
       make_op(OpCode::kGet, "key",
               [](Op& o) {
                 o.options = kCompareCas | kTouch | kWantCas | kExplicitCas | kVivify | kRecache | kWantMeta | kNewTtl |
                             kNoBump | kTouchFirst;
                 o.cas = kCas, o.exptime = kExptime, o.new_cas = kNewCas, o.vivify_exptime = kVivifyExptime;
                 o.recache_below = kRecacheBelow;
               }),
       40, 44},
      {"get, vivify", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kVivify, o.vivify_exptime = kExptime; }), 8,
       24},
      {"get, recache", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kRecache, o.recache_below = 30; }), 8, 24},
      {"get and pin", make_op(OpCode::kGet, "key", [](Op& o) { o.options = kPin; }), 0, 24},
      {"set",
       make_op(OpCode::kSet, "key",
               [](Op& o) { o.client_flags = 0x3132'3334, o.exptime = kExptime, o.value = binary_value; }),
       16, 8},
      {"set of nothing", make_op(OpCode::kSet, "key"), 16, 8},
      {"set that asks for the length", make_op(OpCode::kSet, "key", [](Op& o) { o.options = kWantMeta; }), 16, 16},
      {"set that is watched", make_op(OpCode::kSet, "key", [](Op& o) { o.options = kWantMeta | kAsClassic; }), 16, 16},
      {"prepend", make_op(OpCode::kSet, "key", [](Op& o) { o.mode = SetMode::kPrepend, o.value = "v"; }), 16, 8},
      {"fill",
       make_op(OpCode::kSet, "key",
               [](Op& o) { o.mode = SetMode::kFill, o.exptime = kExptime, o.value = binary_value; }),
       16, 8},
      {"cas",
       make_op(OpCode::kSet, "key",
               [](Op& o) { o.options = kCompareCas | kWantCas, o.cas = kCas, o.value = binary_value; }),
       24, 16},
      {"set as stale",
       make_op(OpCode::kSet, "key",
               [](Op& o) {
                 o.options = kCompareCas | kInvalidate | kExplicitCas, o.cas = kCas, o.new_cas = kNewCas;
                 o.exptime = kExptime, o.value = binary_value;
               }),
       32, 8},
      {"append, creating",
       make_op(OpCode::kSet, "key",
               [](Op& o) {
                 o.mode = SetMode::kAppend, o.options = kVivify, o.exptime = kExptime;
                 o.vivify_exptime = kVivifyExptime, o.value = binary_value;
               }),
       24, 8},
      {"delete", make_op(OpCode::kDelete, "key"), 0, 8},
      {"delete with CAS", make_op(OpCode::kDelete, "key", [](Op& o) { o.options = kCompareCas, o.cas = kCas; }), 8, 8},
      {"delete that asks for the length", make_op(OpCode::kDelete, "key", [](Op& o) { o.options = kWantMeta; }), 0, 16},
      {"delete of the value",
       make_op(OpCode::kDelete, "key", [](Op& o) { o.options = kDropValue | kExplicitCas, o.new_cas = kNewCas; }), 8,
       8},
      {"invalidate",
       make_op(OpCode::kDelete, "key",
               [](Op& o) {
                 o.options = kInvalidate | kTouch | kExplicitCas | kCompareCas;
                 o.cas = kCas, o.exptime = kExptime, o.new_cas = kNewCas;
               }),
       24, 8},
      {"incr", make_op(OpCode::kArith, "key", [](Op& o) { o.delta = 0x4142'4344'4546'4748; }), 8, 16},
      {"decr, creating, with CAS",
       make_op(OpCode::kArith, "key",
               [](Op& o) {
                 o.options = kDecrement | kCreate | kWantCas | kCompareCas;
                 o.delta = 7, o.cas = kCas, o.initial = 0x5152'5354'5556'5758, o.vivify_exptime = kVivifyExptime;
               }),
       32, 24},
      {"incr of everything",
       make_op(OpCode::kArith, "key",
               [](Op& o) {
                 o.options = kTouch | kCreate | kWantCas | kCompareCas | kExplicitCas | kWantMeta | kNewTtl;
                 o.delta = 7, o.cas = kCas, o.initial = 0x5152'5354'5556'5758, o.vivify_exptime = kVivifyExptime;
                 o.exptime = kExptime, o.new_cas = kNewCas;
               }),
       48, 36},
      {"chunk",
       make_op(OpCode::kChunk, "key", [](Op& o) { o.version = kCas, o.offset = 0x6162'6364, o.length = 0x7172'7374; }),
       16, 24},
      {"pinned chunk", make_op(OpCode::kChunk, "key", [](Op& o) { o.options = kPin, o.version = 1; }), 16, 24},
      {"upload",
       make_op(OpCode::kUpload, "key",
               [](Op& o) { o.upload_id = 0x0102'0304, o.offset = 100, o.length = 110, o.value = binary_value; }),
       12, 8},
      {"commit",
       make_op(OpCode::kCommit, "key",
               [](Op& o) {
                 o.upload_id = 0x0102'0304, o.client_flags = 0x3132'3334, o.mode = SetMode::kAppend,
                 o.exptime = kExptime;
               }),
       20, 8},
      {"commit of a fill", make_op(OpCode::kCommit, "key", [](Op& o) { o.mode = SetMode::kFill; }), 20, 8},
      {"commit that is watched", make_op(OpCode::kCommit, "key", [](Op& o) { o.options = kWantMeta | kAsClassic; }), 20,
       16},
      {"commit that asks for the length", make_op(OpCode::kCommit, "key", [](Op& o) { o.options = kWantMeta; }), 20,
       16},
      {"commit with CAS",
       make_op(OpCode::kCommit, "key", [](Op& o) { o.options = kCompareCas | kWantCas, o.cas = kCas; }), 28, 16},
      {"commit as stale, creating",
       make_op(OpCode::kCommit, "key",
               [](Op& o) {
                 o.options = kCompareCas | kInvalidate | kExplicitCas | kVivify;
                 o.cas = kCas, o.new_cas = kNewCas, o.vivify_exptime = kVivifyExptime;
               }),
       44, 8},
      {"abort", make_op(OpCode::kAbort, "key", [](Op& o) { o.upload_id = 0x0102'0304; }), 4, 8},
      {"flush", make_op(OpCode::kFlush, "", [](Op& o) { o.exptime = kExptime; }), 8, 8},
      {"stats", make_op(OpCode::kStats, "", [](Op& o) { o.group = 255, o.version = kCas; }), 12, 276},
      {"iterate", make_op(OpCode::kIterate, "", [](Op& o) { o.group = 254, o.size_class = 253, o.version = kCas; }), 16,
       348},
      {"admin", make_op(OpCode::kAdmin, "", [](Op& o) { o.group = 1; }), 4, 8},
      {"admin with what it needs", make_op(OpCode::kAdmin, "", [](Op& o) { o.group = 3, o.value = binary_value; }), 4,
       8},
      {"warm",
       make_op(OpCode::kAdmin, "",
               [](Op& o) { o.group = static_cast<uint8_t>(AdminVerb::kWarm), o.value = std::string_view("12345678"); }),
       4, 8},
      {"member, with a part",
       make_op(OpCode::kAdmin, "",
               [](Op& o) { o.group = static_cast<uint8_t>(AdminVerb::kMember), o.value = longest_key; }),
       4, 8},
      {"get for another owner", make_op(OpCode::kGet, "key", [](Op& o) { o.owner = kNewCas; }), 8, 24},
      {"get and touch for another owner",
       make_op(OpCode::kGet, "key", [](Op& o) { o.options = kTouch, o.exptime = kExptime, o.owner = kNewCas; }), 16,
       24},
      {"set for another owner", make_op(OpCode::kSet, "key", [](Op& o) { o.value = binary_value, o.owner = kNewCas; }),
       24, 8},
      {"delete for another owner", make_op(OpCode::kDelete, "key", [](Op& o) { o.owner = kNewCas; }), 8, 8},
      {"incr for another owner", make_op(OpCode::kArith, "key", [](Op& o) { o.delta = 5, o.owner = kNewCas; }), 16, 16},
      {"commit for another owner", make_op(OpCode::kCommit, "key", [](Op& o) { o.owner = kNewCas; }), 28, 8},
      {"flush for another owner", make_op(OpCode::kFlush, "", [](Op& o) { o.owner = kNewCas; }), 16, 8},
      {"changes for another owner",
       make_op(OpCode::kIterate, "", [](Op& o) { o.group = 2, o.version = kCas, o.owner = kNewCas; }), 24, 348},
      {"ping", make_op(OpCode::kPing, ""), 0, 8},
  };
}

// All that is on the wire; the hash is not.
inline bool same(const op::Op& a, const op::Op& b) {
  return a.code == b.code && a.mode == b.mode && a.options == b.options && a.group == b.group &&
         a.size_class == b.size_class && a.client_flags == b.client_flags && a.exptime == b.exptime &&
         a.vivify_exptime == b.vivify_exptime && a.recache_below == b.recache_below && a.new_cas == b.new_cas &&
         a.cas == b.cas && a.delta == b.delta && a.initial == b.initial && a.version == b.version &&
         a.owner == b.owner && a.upload_id == b.upload_id && a.offset == b.offset && a.length == b.length &&
         a.key == b.key && a.value == b.value;
}

inline bool same(const op::Result& a, const op::Result& b) {
  return a.code == b.code && a.client_flags == b.client_flags && a.cas == b.cas && a.version == b.version &&
         a.number == b.number && a.value == b.value && a.total_length == b.total_length && a.marks == b.marks &&
         a.ttl == b.ttl && a.last_access == b.last_access;
}

// A vector of exactly the encoding's size, so that a sanitizer sees a byte too many.
inline std::vector<std::byte> encoded(const op::Op& op) {
  std::vector<std::byte> bytes(encoded_op_size(op));
  const std::byte* end = encode_op(bytes.data(), op);
  return end == bytes.data() + bytes.size() ? bytes : std::vector<std::byte>{};
}

}  // namespace egret::wire
