// Ops and results as bytes. Encoding trusts its caller, who asks for the size first. Decoding trusts nobody: it checks
// every length and enum, once, and its output is safe to execute. Decoded views point into the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "op/loan.h"
#include "op/op.h"
#include "wire/slot.h"

namespace egret::wire {

// --- ops -------------------------------------------------------------------------------------------------------------

// Bytes that encode_op() will write.
size_t encoded_op_size(const op::Op& op);
// Writes `op` at `to` (room for encoded_op_size) and returns the end.
std::byte* encode_op(std::byte* to, const op::Op& op);

// Why a request is refused.
enum class DecodeError : uint8_t {
  kNone,
  kTorn,       // the checksum does not match: normal while the client is still writing the message
  kTruncated,  // an op runs past the end of the message
  kTrailing,   // there are bytes after the last op
  kBadCount,   // no ops, or more than kMaxOpsPerMessage
  kBadKey,     // an op that takes no key has one, or a key is missing or too long
  kBadEnum,    // a mode, option or group that does not exist in this version
  kBadLength,  // a length that contradicts another
  kReserved,   // a field that must be 0 in this version is not
  kNoRoom,     // the smallest possible results do not fit the response slot
  kTooMany,    // a message for a slot whose last one is not answered
};
// A phrase for a log line.
const char* to_string(DecodeError error);

// Decodes exactly ops.size() ops from `length` bytes. An unknown op code is no error, since a newer client may send
// one: it decodes to an Op with that code, key and value, which is answered kUnsupported.
DecodeError decode_ops(const std::byte* from, size_t length, std::span<op::Op> ops);

// --- what fits a slot ------------------------------------------------------------------------------------------------

// Whether `op` fits a request slot of its own.
bool fits_slot(const RegionLayout& layout, const op::Op& op);
// The most ops that a message can have: as many of the smallest as fit a request slot.
uint32_t max_ops(const RegionLayout& layout);
// Value bytes of an upload part (with a key of that length), and of a chunk, that fills a slot.
uint32_t max_upload_part(const RegionLayout& layout, size_t key_length);
uint32_t max_chunk(const RegionLayout& layout);

// --- results ---------------------------------------------------------------------------------------------------------

// The most bytes that the result of `op` takes beyond its value. The client reserves them before it sends; the server
// keeps them free for every op that it has not answered yet.
size_t min_result_size(const op::Op& op);

// Writes the result of `op` at `to`. The value (and its further pieces) is cut to fit into `room`, which is at least
// min_result_size(op). Returns the end.
std::byte* encode_result(std::byte* to, size_t room, const op::Op& op, const op::Result& result);
// The same without the value's bytes: returns where they belong, and how many they are in `value_size`.
std::byte* encode_result_head(std::byte* to, size_t room, const op::Op& op, const op::Result& result,
                              size_t& value_size);

// The same of a value that is lent (op/loan.h): its name takes the place of its bytes, for which there must be room. Within
// one process only.
std::byte* encode_lent_result(std::byte* to, size_t room, const op::Op& op, const op::Result& result,
                              const op::LoanName& name);

// What else than by default a client may find in results.
struct ResultRules {
  bool is_relayed = false;   // kRelayed was agreed: they may say that no answer came
  bool takes_loans = false;  // both ends are one process: they may lend values
};

// Decodes results one by one, in place.
class ResultReader {
 public:
  ResultReader(const std::byte* body, size_t length, const ResultRules& rules = {})
      : at_(body), left_(length), rules_(rules) {}
  // Reads the next result; `result.value` points into the body. False: the bytes are not a result, and the session must
  // end.
  bool next(op::Result& result);
  bool at_end() const { return left_ == 0; }
  // What the last one lends; its `value` is empty then. Null: nothing.
  const op::LoanName* loan() const { return loan_.loan != nullptr ? &loan_ : nullptr; }

 private:
  bool next_plain(op::Result& result);
  bool next_of_any(op::Result& result);
  void read_loan(uint8_t fields, op::Result& result);

  const std::byte* at_;
  size_t left_;

  const ResultRules rules_;
  op::LoanName loan_;
};

}  // namespace egret::wire
