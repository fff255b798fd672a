// Ops and results as bytes. Encoding trusts its caller (sizes are asked for first); decoding trusts nobody: every
// length and enum is checked here, once, and what comes out is safe to execute. Views that decoding yields point into
// the input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "op/op.h"
#include "wire/slot.h"

namespace egret::wire {

// --- ops -------------------------------------------------------------------------------------------------------------

// Bytes that encode_op() will write.
size_t encoded_op_size(const op::Op& op);
// Writes `op` at `to` (room for encoded_op_size) and returns the end.
std::byte* encode_op(std::byte* to, const op::Op& op);

// What is wrong with a request.
enum class DecodeError : uint8_t {
  kNone,
  kTorn,       // the checksum does not match; while a message is being written that is normal
  kTruncated,  // an op runs past the end of the message
  kTrailing,   // there are bytes after the last op
  kBadCount,   // no ops, or more than kMaxOpsPerMessage
  kBadKey,     // an op without a key has one, or one with a key has none or too long a one
  kBadEnum,    // a mode, option or group that does not exist in this version
  kBadLength,  // a length that contradicts another
  kReserved,   // a field that must be 0 in this version is not
  kNoRoom,     // the results could not fit the response slot even at their smallest
};
// In words, for a log line.
const char* to_string(DecodeError error);

// Decodes exactly ops.size() ops out of `length` bytes. An unknown op code is no error (it decodes to an Op with that
// code, key and value, and is answered kUnsupported): a newer client may send one.
DecodeError decode_ops(const std::byte* from, size_t length, std::span<op::Op> ops);

// --- what fits a slot ------------------------------------------------------------------------------------------------

// Whether `op` fits a request slot of its own.
bool fits_slot(const RegionLayout& layout, const op::Op& op);
// Value bytes of an upload part (with a key of that length), and of a chunk, that fills a slot.
uint32_t max_upload_part(const RegionLayout& layout, size_t key_length);
uint32_t max_chunk(const RegionLayout& layout);

// --- results ---------------------------------------------------------------------------------------------------------

// The most that the result of `op` takes beyond value bytes; the client reserves it before sending, the server keeps it
// free for every op still to come.
size_t min_result_size(const op::Op& op);

// Writes the result of `op` at `to`, its value (with the further pieces behind it) cut to what fits in `room` (>=
// min_result_size(op)). Returns the end.
std::byte* encode_result(std::byte* to, size_t room, const op::Op& op, const op::Result& result);

// Decodes results one by one, in place.
class ResultReader {
 public:
  ResultReader(const std::byte* body, size_t length) : at_(body), left_(length) {}
  // False when the bytes are not a result (the session is then broken); `result.value` points into the body.
  bool next(op::Result& result);
  bool at_end() const { return left_ == 0; }

 private:
  const std::byte* at_;
  size_t left_;
};

}  // namespace egret::wire
