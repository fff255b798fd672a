// The heads of ops and results, and a short way to encode and decode the most frequent ones: gets that have only a key, and
// hits that fit. It is inline, since clients and partitions run it for almost every op. It writes the same bytes as
// codec.cc, which encodes all ops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/op.h"
#include "wire/bytes.h"

namespace egret::wire {

// The head of every op.
struct OpHead {
  uint8_t code;
  uint8_t key_length;
  uint16_t options;
  uint32_t value_length;
};
static_assert(sizeof(OpHead) == 8 && offsetof(OpHead, options) == 2 && offsetof(OpHead, value_length) == 4);

// The head of every result.
struct ResultHead {
  uint8_t code;
  uint8_t fields;  // ResultFields
  uint8_t marks;   // op::ResultMarks
  uint8_t reserved;
  uint32_t value_length;
};
static_assert(sizeof(ResultHead) == 8 && offsetof(ResultHead, marks) == 2 && offsetof(ResultHead, value_length) == 4);

// Bits of ResultHead::fields: the optional fields that follow the head, in this order.
enum ResultFields : uint8_t {
  kHasFlags = 1,
  kHasCas = 2,
  kHasVersion = 4,
  kHasNumber = 8,
  kHasMeta = 16,
  kAllFields = 31,
  kIsLent = 32,  // within one process: the value is a LoanName
};

inline constexpr uint8_t kAllMarks = op::kFetched | op::kStale | op::kWon | op::kTokenSent | op::kCreated;

// The options that add fields after the fixed ones, in the order of the fields.
inline constexpr uint16_t kOptionsWithFields =
    op::kCompareCas | op::kTouch | op::kCreate | op::kExplicitCas | op::kVivify | op::kRecache;

// Bytes that the result of a get takes beyond its value.
inline constexpr uint16_t kLeastOfGet =
    sizeof(ResultHead) + 4 + 12;          // client flags; version and length of a value that is cut
inline constexpr uint8_t kCasSize = 8;    // more if the get has kWantCas
inline constexpr uint8_t kMetaSize = 12;  // more if it has kWantMeta: ttl, last access

// Nothing follows the head of the op but its key.
inline bool is_bare_get(const op::Op& op) {
  return op.code == op::OpCode::kGet && (op.options & kOptionsWithFields) == 0 && op.owner == 0;
}

inline size_t bare_get_size(const op::Op& op) {
  return sizeof(OpHead) + op.key.size();
}

inline size_t min_result_size_of_get(uint16_t options) {
  return kLeastOfGet + ((options & op::kWantCas) != 0 ? kCasSize : 0u) +
         ((options & op::kWantMeta) != 0 ? kMetaSize : 0u);
}

inline std::byte* encode_bare_get(std::byte* to, const op::Op& op) {
  FieldWriter out(to);
  out.put(OpHead{static_cast<uint8_t>(op::OpCode::kGet), static_cast<uint8_t>(op.key.size()), op.options, 0});
  out.put_bytes(op.key);
  return out.at();
}

// Whether encode_plain_hit() can write the result: a value that fits, in one piece, of a get that asks for nothing but value, client
// flags and CAS.
inline bool is_plain_hit(size_t room, const op::Op& op, const op::Result& result) {
  return op.code == op::OpCode::kGet && (op.options & ~op::kWantCas) == 0 && result.code == op::ResultCode::kHit &&
         !result.is_partial() && result.value.size() <= room - min_result_size_of_get(op.options);
}

inline std::byte* encode_plain_hit(std::byte* to, const op::Op& op, const op::Result& result) {
  const bool has_flags = result.client_flags != 0;
  const bool has_cas = op.options != 0;
  const auto marks = static_cast<uint8_t>(result.marks & kAllMarks);
  FieldWriter out(to);
  out.put(ResultHead{static_cast<uint8_t>(op::ResultCode::kHit),
                     static_cast<uint8_t>((has_flags ? kHasFlags : 0) | (has_cas ? kHasCas : 0)), marks, 0,
                     static_cast<uint32_t>(result.value.size())});
  if (has_flags) out.put(result.client_flags);
  if (has_cas) out.put(result.cas);
  out.put_bytes(result.value);
  return out.at();
}

}  // namespace egret::wire
