#include "wire/codec.h"

#include <algorithm>
#include <array>
#include <bit>

#include "op/records.h"
#include "op/stats.h"
#include "wire/bytes.h"
#include "wire/plain.h"

namespace egret::wire {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {

constexpr size_t kMinStatsValue = 256;
constexpr size_t kMinRecordsValue = 320;  // bytes: enough for any one record
static_assert(kMinRecordsValue >= op::kMaxRecord);

constexpr size_t kOpHead = sizeof(OpHead);
constexpr size_t kResultHead = sizeof(ResultHead);

// Bytes that an op's result takes beyond its value: always, with kWantCas in addition, with kWantMeta in addition.
struct LeastResult {
  uint16_t always = kResultHead;
  uint8_t with_cas = 0;
  uint8_t with_meta = 0;
};

// What follows the head of an op, by its code.
struct alignas(16) OpShape {
  bool known = false;
  bool has_value = false;
  uint8_t extra = 0;             // bytes of fixed fields
  uint16_t allowed_options = 0;  // any other bit is an error
  LeastResult least{};
  bool may_be_tagged = false;  // may have an owner tag
};

// Indexed by code. A code beyond the table is from a newer version.
constexpr std::array<OpShape, 14> kShapes = [] {
  using namespace op;
  std::array<OpShape, 14> shapes{};
  const auto set = [&](OpCode code, OpShape shape) { shapes[static_cast<size_t>(code)] = shape; };
  constexpr LeastResult kHead{};
  constexpr LeastResult kOfValue{kLeastOfGet, kCasSize, kMetaSize};
  constexpr LeastResult kOfChange{kResultHead, 8, 8};
  set(OpCode::kGet, {true, false, 0,
                     kCompareCas | kTouch | kNoValue | kWantCas | kPin | kExplicitCas | kVivify | kRecache | kWantMeta |
                         kPeek | kNewTtl | kNoBump | kTouchFirst,
                     kOfValue});
  constexpr uint16_t kStoring = kCompareCas | kWantCas | kExplicitCas | kVivify | kInvalidate | kWantMeta | kAsClassic;
  set(OpCode::kSet, {true, true, 16, kStoring, kOfChange});
  set(OpCode::kDelete,
      {true, false, 0, kCompareCas | kTouch | kExplicitCas | kInvalidate | kDropValue | kWantMeta, kOfChange});
  set(OpCode::kArith, {true,
                       false,
                       8,
                       kCompareCas | kTouch | kWantCas | kDecrement | kCreate | kExplicitCas | kWantMeta | kNewTtl,
                       {kResultHead + 8, 8, kMetaSize}});
  set(OpCode::kChunk, {true, false, 16, kPin, {kOfValue.always, 0, 0}});
  set(OpCode::kUpload, {true, true, 12, 0, kHead});
  set(OpCode::kCommit, {true, false, 20, kStoring, kOfChange});
  set(OpCode::kAbort, {true, false, 4, 0, kHead});
  set(OpCode::kFlush, {true, false, 8, 0, kHead});
  set(OpCode::kStats, {true, false, 12, 0, {kResultHead + 12 + kMinStatsValue, 0, 0}});
  set(OpCode::kIterate, {true, false, 16, 0, {kResultHead + 12 + 8 + kMinRecordsValue, 0, 0}});
  set(OpCode::kAdmin, {true, true, 4, 0, kHead});
  set(OpCode::kPing, {true, false, 0, 0, kHead});
  for (const OpCode code : {OpCode::kGet, OpCode::kSet, OpCode::kDelete, OpCode::kArith, OpCode::kCommit,
                            OpCode::kFlush, OpCode::kIterate}) {
    shapes[static_cast<size_t>(code)].may_be_tagged = true;
  }
  return shapes;
}();
constexpr OpShape kUnknownShape{};

const OpShape& shape_of(OpCode code) {
  const auto index = static_cast<size_t>(code);
  return index < kShapes.size() ? kShapes[index] : kUnknownShape;
}

// Added to the code of an op that has an owner tag.
constexpr uint8_t kTagged = 0x80;

bool is_tagged(const Op& op) {
  return op.owner != 0 && shape_of(op.code).may_be_tagged;
}

// Those options of an op. An unknown op has none, only key and value.
uint16_t options_with_fields(const Op& op) {
  return op.options & shape_of(op.code).allowed_options & kOptionsWithFields;
}

size_t option_fields_size(const Op& op) {
  const uint16_t options = options_with_fields(op);
  if (options == 0) return 0;
  return 8 * (static_cast<size_t>(std::popcount(options)) + ((options & op::kCreate) ? 1 : 0));
}

void put_option_fields(FieldWriter& out, const Op& op) {
  const uint16_t options = options_with_fields(op);
  if (options == 0) return;
  if (options & op::kCompareCas) out.put(op.cas);
  if (options & op::kTouch) out.put(op.exptime);
  if (options & op::kCreate) {
    out.put(op.initial);
    out.put(op.vivify_exptime);
  }
  if (options & op::kExplicitCas) out.put(op.new_cas);
  if (options & op::kVivify) out.put(op.vivify_exptime);  // no op has both kVivify and kCreate
  if (options & op::kRecache) out.put(op.recache_below);
}

void get_option_fields(FieldReader& in, Op& op) {
  const uint16_t options = options_with_fields(op);
  if (options == 0) return;
  if (options & op::kCompareCas) op.cas = in.get<uint64_t>();
  if (options & op::kTouch) op.exptime = in.get<int64_t>();
  if (options & op::kCreate) {
    op.initial = in.get<uint64_t>();
    op.vivify_exptime = in.get<int64_t>();
  }
  if (options & op::kExplicitCas) op.new_cas = in.get<uint64_t>();
  if (options & op::kVivify) op.vivify_exptime = in.get<int64_t>();
  if (options & op::kRecache) op.recache_below = in.get<int64_t>();
}

void put_fields(FieldWriter& out, const Op& op) {
  switch (op.code) {
    case OpCode::kSet:
      out.put(op.client_flags);
      out.put(static_cast<uint32_t>(op.mode));
      out.put(op.exptime);
      break;
    case OpCode::kArith:
      out.put(op.delta);
      break;
    case OpCode::kChunk:
      out.put(op.version);
      out.put(op.offset);
      out.put(op.length);
      break;
    case OpCode::kUpload:
      out.put(op.upload_id);
      out.put(op.offset);
      out.put(op.length);
      break;
    case OpCode::kCommit:
      out.put(op.upload_id);
      out.put(op.client_flags);
      out.put(static_cast<uint32_t>(op.mode));
      out.put(op.exptime);
      break;
    case OpCode::kAbort:
      out.put(op.upload_id);
      break;
    case OpCode::kFlush:
      out.put(op.exptime);
      break;
    case OpCode::kStats:
      out.put(uint32_t{op.group});
      out.put(op.version);
      break;
    case OpCode::kAdmin:
      out.put(uint32_t{op.group});
      break;
    case OpCode::kIterate:
      out.put(uint32_t{op.group});
      out.put(uint32_t{op.size_class});
      out.put(op.version);
      break;
    case OpCode::kGet:
    case OpCode::kDelete:
    case OpCode::kPing:
      break;
  }
  put_option_fields(out, op);
}

// Of any op. Not inlined, so that a bare get pays for none of it.
[[gnu::noinline]] size_t size_with_fields(const Op& op) {
  return kOpHead + shape_of(op.code).extra + option_fields_size(op) + (is_tagged(op) ? sizeof op.owner : 0) +
         op.key.size() + op.value.size();
}

[[gnu::noinline]] std::byte* encode_with_fields(std::byte* to, const Op& op) {
  FieldWriter out(to);
  const bool has_tag = is_tagged(op);
  out.put(OpHead{static_cast<uint8_t>(static_cast<uint8_t>(op.code) | (has_tag ? kTagged : 0)),
                 static_cast<uint8_t>(op.key.size()), op.options, static_cast<uint32_t>(op.value.size())});
  put_fields(out, op);
  if (has_tag) out.put(op.owner);
  out.put_bytes(op.key);
  // The value was received where it belongs in the slot (rpc::value_room): there is nothing to copy.
  if (reinterpret_cast<const std::byte*>(op.value.data()) == out.at()) return out.at() + op.value.size();
  out.put_bytes(op.value);
  return out.at();
}

// Reads the fields that put_fields() wrote. Refuses an enum that is out of range.
DecodeError get_fields(FieldReader& in, Op& op) {
  uint32_t mode = 0;
  uint32_t group = 0;
  uint32_t size_class = op::kAnySizeClass;
  switch (op.code) {
    case OpCode::kSet:
      op.client_flags = in.get<uint32_t>();
      mode = in.get<uint32_t>();
      op.exptime = in.get<int64_t>();
      break;
    case OpCode::kArith:
      op.delta = in.get<uint64_t>();
      break;
    case OpCode::kChunk:
      op.version = in.get<uint64_t>();
      op.offset = in.get<uint32_t>();
      op.length = in.get<uint32_t>();
      break;
    case OpCode::kUpload:
      op.upload_id = in.get<uint32_t>();
      op.offset = in.get<uint32_t>();
      op.length = in.get<uint32_t>();
      break;
    case OpCode::kCommit:
      op.upload_id = in.get<uint32_t>();
      op.client_flags = in.get<uint32_t>();
      mode = in.get<uint32_t>();
      op.exptime = in.get<int64_t>();
      break;
    case OpCode::kAbort:
      op.upload_id = in.get<uint32_t>();
      break;
    case OpCode::kFlush:
      op.exptime = in.get<int64_t>();
      break;
    case OpCode::kStats:
      group = in.get<uint32_t>();
      op.version = in.get<uint64_t>();
      break;
    case OpCode::kAdmin:
      group = in.get<uint32_t>();
      break;
    case OpCode::kIterate:
      group = in.get<uint32_t>();
      size_class = in.get<uint32_t>();
      op.version = in.get<uint64_t>();
      break;
    case OpCode::kGet:
    case OpCode::kDelete:
    case OpCode::kPing:
      break;
  }
  get_option_fields(in, op);
  if (mode >= op::kSetModes || group > 255 || size_class > 255) return DecodeError::kBadEnum;
  op.mode = static_cast<op::SetMode>(mode);
  op.group = static_cast<uint8_t>(group);
  op.size_class = static_cast<uint8_t>(size_class);
  return in.ok() ? DecodeError::kNone : DecodeError::kTruncated;
}

DecodeError check_lengths(const Op& op) {
  if (op.code == OpCode::kUpload) {
    if (op.length > op::kMaxValueLength || op.offset > op.length) return DecodeError::kBadLength;
    if (op.value.size() > op.length - op.offset) return DecodeError::kBadLength;
  }
  return DecodeError::kNone;
}

DecodeError check_head(const OpHead& head, const OpShape& shape, OpCode code) {
  if (head.options & ~shape.allowed_options) return DecodeError::kBadEnum;
  if (op::has_key(code) != (head.key_length > 0) || head.key_length > op::kMaxKeyLength) return DecodeError::kBadKey;
  if (!shape.has_value && head.value_length > 0) return DecodeError::kBadLength;
  return DecodeError::kNone;
}

DecodeError get_owner(FieldReader& in, Op& op) {
  op.owner = in.get<uint64_t>();
  if (op.owner != 0) return DecodeError::kNone;
  return in.ok() ? DecodeError::kBadEnum : DecodeError::kTruncated;
}

// The fields between the head and the key. Not inlined, and with a reader of its own: the caller's stays in registers for
// gets without such fields, which most ops are.
[[gnu::noinline]] DecodeError get_all_fields(FieldReader in, Op& op, bool is_tagged, size_t& left) {
  DecodeError error = shape_of(op.code).known ? get_fields(in, op) : DecodeError::kNone;
  if (error == DecodeError::kNone && is_tagged) error = get_owner(in, op);
  left = in.left();
  return error;
}

DecodeError decode_op(FieldReader& in, Op& op) {
  const auto head = in.get<OpHead>();
  if (!in.ok()) return DecodeError::kTruncated;
  op = Op{};
  const bool is_tagged = head.code >= kTagged && shape_of(static_cast<OpCode>(head.code - kTagged)).may_be_tagged;
  op.code = static_cast<OpCode>(is_tagged ? head.code - kTagged : head.code);
  op.options = head.options;
  const OpShape& shape = shape_of(op.code);
  if (shape.known) {
    if (const DecodeError error = check_head(head, shape, op.code); error != DecodeError::kNone) return error;
  }
  if (shape.extra > 0 || (op.options & kOptionsWithFields) != 0 || is_tagged) {
    size_t left = 0;
    if (const DecodeError error = get_all_fields(in, op, is_tagged, left); error != DecodeError::kNone) return error;
    in.skip(in.left() - left);
  }
  op.key = in.get_bytes(head.key_length);
  op.value = in.get_bytes(head.value_length);
  if (!in.ok()) return DecodeError::kTruncated;
  return check_lengths(op);
}

// The codes on the wire of results that say that no answer came, from kFirstNoAnswer on; elsewhere from kSessionLost on.
constexpr uint8_t kFirstNoAnswer = 17;
constexpr uint8_t kLastNoAnswer = 19;
static_assert(kFirstNoAnswer == static_cast<uint8_t>(ResultCode::kForbidden) + 1);
static_assert(kLastNoAnswer - kFirstNoAnswer ==
              static_cast<uint8_t>(ResultCode::kNotSent) - static_cast<uint8_t>(ResultCode::kSessionLost));
constexpr uint8_t kToNoAnswer = static_cast<uint8_t>(ResultCode::kSessionLost) - kFirstNoAnswer;

uint8_t wire_code(ResultCode code) {
  const auto value = static_cast<uint8_t>(code);
  return op::has_no_answer(code) ? static_cast<uint8_t>(value - kToNoAnswer) : value;
}

}  // namespace

size_t encoded_op_size(const Op& op) {
  return is_bare_get(op) ? bare_get_size(op) : size_with_fields(op);
}

std::byte* encode_op(std::byte* to, const Op& op) {
  return is_bare_get(op) ? encode_bare_get(to, op) : encode_with_fields(to, op);
}

const char* to_string(DecodeError error) {
  switch (error) {
    case DecodeError::kNone:
      return "none";
    case DecodeError::kTorn:
      return "its checksum stayed wrong";
    case DecodeError::kTruncated:
      return "an op runs past its end";
    case DecodeError::kTrailing:
      return "there are bytes after its last op";
    case DecodeError::kBadCount:
      return "an impossible number of ops";
    case DecodeError::kBadKey:
      return "a missing, superfluous or too long key";
    case DecodeError::kBadEnum:
      return "an unknown mode, option or group";
    case DecodeError::kBadLength:
      return "a length contradicts another";
    case DecodeError::kReserved:
      return "a reserved field is not 0";
    case DecodeError::kNoRoom:
      return "its results could not fit the response slot";
    case DecodeError::kTooMany:
      return "more messages than the lane has slots";
  }
  return "unknown";
}

DecodeError decode_ops(const std::byte* from, size_t length, std::span<Op> ops) {
  FieldReader in(from, length);
  for (Op& op : ops) {
    if (const DecodeError error = decode_op(in, op); error != DecodeError::kNone) return error;
  }
  return in.left() == 0 ? DecodeError::kNone : DecodeError::kTrailing;
}

size_t min_result_size(const Op& op) {
  const LeastResult& least = shape_of(op.code).least;
  const size_t cas = (op.options & op::kWantCas) ? least.with_cas : 0;
  const size_t meta = (op.options & op::kWantMeta) ? least.with_meta : 0;
  return least.always + cas + meta;
}

// --- what fits a slot ------------------------------------------------------------------------------------------------

bool fits_slot(const RegionLayout& layout, const Op& op) {
  return sizeof(RequestHeader) + encoded_op_size(op) <= layout.request_slot_size;
}

uint32_t max_ops(const RegionLayout& layout) {
  const size_t fit = (layout.request_slot_size - sizeof(RequestHeader)) / kOpHead;
  return static_cast<uint32_t>(std::min<size_t>(fit, kMaxOpsPerMessage));
}

uint32_t max_upload_part(const RegionLayout& layout, size_t key_length) {
  Op part;
  part.code = OpCode::kUpload;
  return layout.request_slot_size - static_cast<uint32_t>(sizeof(RequestHeader) + encoded_op_size(part) + key_length);
}

uint32_t max_chunk(const RegionLayout& layout) {
  Op chunk;
  chunk.code = OpCode::kChunk;
  return layout.response_slot_size - static_cast<uint32_t>(sizeof(ResponseHeader) + min_result_size(chunk));
}

namespace {
// How much of a result's value fits: of an item any number of bytes, else whole rows or whole records.
struct Cut {
  size_t size;          // bytes of the value and its further pieces, from the front
  uint64_t version;     // the version or cursor with which the client asks for the rest
  uint64_t whole_size;  // the length that the client is told
};
Cut cut_value(const Op& op, const Result& result, size_t room) {
  if (op.code == OpCode::kIterate) {
    const op::RecordPage page = op::cut_records(result.value, result.version, room);
    return {page.records.size(), page.cursor, page.records.size()};
  }
  if (op.code == OpCode::kStats) room -= room % sizeof(op::StatRow);
  size_t size = result.value.size();
  for (const std::string_view piece : result.further) size += piece.size();
  return {std::min(size, room), result.version, result.total_length};
}

// Writes the first `size` bytes of the value and its further pieces.
void put_pieces(FieldWriter& out, const Result& result, size_t size) {
  const auto put = [&](std::string_view piece) {
    piece = piece.substr(0, size);
    out.put_bytes(piece);
    size -= piece.size();
  };
  put(result.value);
  for (const std::string_view piece : result.further) put(piece);
}

// The bytes that min_result_size() reserved for the value.
size_t reserved_for_value(OpCode code) {
  return code == OpCode::kStats ? kMinStatsValue : code == OpCode::kIterate ? kMinRecordsValue : 0;
}

// The optional fields to write: only those for which min_result_size() reserved room.
uint8_t fields_of(const Op& op, const Result& result, const Cut& cut) {
  const bool hit = result.code == ResultCode::kHit && (op.code == OpCode::kGet || op.code == OpCode::kChunk);
  const bool stats = op.code == OpCode::kStats;
  const bool page = op.code == OpCode::kIterate && result.code == ResultCode::kOk;
  const bool number = result.code == ResultCode::kNumber && op.code == OpCode::kArith;
  const bool stored = result.code == ResultCode::kStored && (op.code == OpCode::kSet || op.code == OpCode::kCommit);
  const uint16_t wants = op.options & shape_of(op.code).allowed_options;
  uint8_t fields = 0;
  if (hit && result.client_flags != 0) fields |= kHasFlags;
  if ((wants & op::kWantCas) && (hit || number || stored)) fields |= kHasCas;
  if (page || ((hit || stats) && cut.size < cut.whole_size)) fields |= kHasVersion;
  const bool counted = stored || (result.code == ResultCode::kDeleted && op.code == OpCode::kDelete);
  if (number || page || (counted && (wants & op::kWantMeta))) fields |= kHasNumber;
  if ((wants & op::kWantMeta) && (hit || number)) fields |= kHasMeta;
  return fields;
}
}  // namespace

std::byte* encode_result(std::byte* to, size_t room, const Op& op, const Result& result) {
  if (is_plain_hit(room, op, result)) return encode_plain_hit(to, op, result);
  size_t value_size = 0;
  FieldWriter out(encode_result_head(to, room, op, result, value_size));
  put_pieces(out, result, value_size);
  return out.at();
}

std::byte* encode_result_head(std::byte* to, size_t room, const Op& op, const Result& result, size_t& value_size) {
  const Cut cut = cut_value(op, result, room - min_result_size(op) + reserved_for_value(op.code));
  const uint8_t fields = fields_of(op, result, cut);
  const bool hit = result.code == ResultCode::kHit && (op.code == OpCode::kGet || op.code == OpCode::kChunk);
  const bool number = result.code == ResultCode::kNumber && op.code == OpCode::kArith;
  FieldWriter out(to);
  out.put(wire_code(result.code));
  out.put(fields);
  const bool counted = result.code == ResultCode::kStored && (fields & kHasNumber) != 0;
  out.put(static_cast<uint8_t>(result.marks & (hit || number ? kAllMarks : counted ? op::kCreated : 0)));
  out.put(uint8_t{0});
  out.put(static_cast<uint32_t>(cut.size));
  if (fields & kHasFlags) out.put(result.client_flags);
  if (fields & kHasCas) out.put(result.cas);
  if (fields & kHasVersion) {
    out.put(cut.version);
    out.put(static_cast<uint32_t>(cut.whole_size));
  }
  if (fields & kHasNumber) out.put(result.number);
  if (fields & kHasMeta) {
    out.put(result.ttl);
    out.put(result.last_access);
  }
  value_size = cut.size;
  return out.at();
}

std::byte* encode_lent_result(std::byte* to, size_t room, const Op& op, const Result& result,
                              const op::LoanName& name) {
  Result lent = result;
  lent.value = {reinterpret_cast<const char*>(&name), sizeof name};
  lent.further = {};
  std::byte* const end = encode_result(to, room, op, lent);
  to[offsetof(ResultHead, fields)] |= std::byte{kIsLent};
  return end;
}

namespace {
void get_result_fields(FieldReader& in, uint8_t fields, Result& result) {
  if (fields & kHasFlags) result.client_flags = in.get<uint32_t>();
  if (fields & kHasCas) result.cas = in.get<uint64_t>();
  if (fields & kHasVersion) {
    result.version = in.get<uint64_t>();
    result.total_length = in.get<uint32_t>();
  }
  if (fields & kHasNumber) result.number = in.get<uint64_t>();
  if (fields & kHasMeta) {
    result.ttl = in.get<int64_t>();
    result.last_access = in.get<uint32_t>();
  }
}
}  // namespace

void ResultReader::read_loan(uint8_t fields, Result& result) {
  loan_ = {};
  if ((fields & kIsLent) == 0 || result.value.size() != sizeof loan_) return;
  std::memcpy(&loan_, result.value.data(), sizeof loan_);
  result.value = {};
}

// Of a result that is not plain the head is read twice, and a peer may change it in between: next_of_any() checks all anew.
bool ResultReader::next(Result& result) {
  result = Result{};
  return next_plain(result) || next_of_any(result);
}

// A result with no field but a CAS. False: it is none of these, or malformed; nothing was taken.
bool ResultReader::next_plain(Result& result) {
  ResultHead head;
  if (left_ < sizeof head) return false;
  std::memcpy(&head, at_, sizeof head);
  const bool has_cas = (head.fields & kHasCas) != 0;
  const size_t size = sizeof head + (has_cas ? kCasSize : 0u) + head.value_length;
  const bool is_plain = (head.fields & ~kHasCas) == 0 && head.reserved == 0 && (head.marks & ~kAllMarks) == 0;
  if (!is_plain || head.code >= kFirstNoAnswer || head.value_length > op::kMaxValueLength || size > left_) return false;
  const std::byte* value = at_ + sizeof head;
  if (has_cas) {
    std::memcpy(&result.cas, value, sizeof result.cas);
    value += sizeof result.cas;
  }
  result.code = static_cast<ResultCode>(head.code);
  result.marks = head.marks;
  result.value = {reinterpret_cast<const char*>(value), head.value_length};
  result.total_length = head.value_length;
  if (rules_.takes_loans) loan_ = {};
  at_ += size;
  left_ -= size;
  return true;
}

bool ResultReader::next_of_any(Result& result) {
  FieldReader in(at_, left_);
  const auto head = in.get<ResultHead>();
  result.code = static_cast<ResultCode>(head.code);
  result.marks = head.marks;
  if (head.fields != 0) get_result_fields(in, head.fields, result);
  const size_t length = head.value_length;
  result.value = in.get_bytes(length);
  if (rules_.takes_loans) read_loan(head.fields, result);
  // An unknown field would be read as part of the value.
  const uint8_t known = loan() != nullptr ? kAllFields | kIsLent : kAllFields;
  if (!in.ok() || head.reserved != 0 || (head.fields & ~known) || (head.marks & ~kAllMarks)) return false;
  if (head.code >= kFirstNoAnswer) [[unlikely]] {
    if (!rules_.is_relayed || head.code > kLastNoAnswer) return false;
    result.code = static_cast<ResultCode>(head.code + kToNoAnswer);
  }
  if (!(head.fields & kHasVersion)) result.total_length = static_cast<uint32_t>(length);
  if (result.total_length < length || result.total_length > op::kMaxValueLength) return false;
  at_ += left_ - in.left();
  left_ = in.left();
  return true;
}

}  // namespace egret::wire
