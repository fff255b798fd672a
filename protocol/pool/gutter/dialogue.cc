#include "pool/gutter/dialogue.h"

#include <algorithm>
#include <string_view>

#include "op/records.h"

namespace egret::pool {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {

Op changes_op(uint64_t tag, uint64_t cursor) {
  Op op;
  op.code = OpCode::kIterate;
  op.group = static_cast<uint8_t>(op::RecordSource::kChanged);
  op.owner = tag;
  op.version = cursor;
  return op;
}

}  // namespace

void Dialogue::expect(const Result& result, ResultCode code, const char* what) {
  if (result.code != code && fault_.empty()) fault_ = std::string(what) + ": " + op::to_string(result.code);
}

// --- Entering

void Entering::begin(uint64_t epoch, uint32_t partitions, const Send& send) {
  places_ = {.epoch = epoch, .cursors = std::vector<uint64_t>(partitions)};
  for (uint32_t i = 0; i < partitions; ++i) send(changes_op(tag_, op::kEnterFailover), i, i);
}

void Entering::on_answer(uint64_t tag, const Result& result, const Send&) {
  expect(result, ResultCode::kOk, "it cannot stand in");
  places_.cursors[tag] = result.version;
}

// --- Reading

void Reading::begin(uint64_t epoch, uint32_t partitions, const Send& send) {
  if (places_.epoch != epoch ||
      places_.cursors.size() != partitions) {  // what was changed before is not known any more
    is_complete_ = false;
    places_ = {.epoch = epoch, .cursors = std::vector<uint64_t>(partitions, op::kChangesFromNow)};
  }
  for (uint32_t i = 0; i < partitions; ++i) ask(i, send);
}

void Reading::ask(uint32_t partition, const Send& send) const {
  send(changes_op(tag_, places_.cursors[partition]), partition, partition);
}

void Reading::on_answer(uint64_t tag, const Result& result, const Send& send) {
  expect(result, ResultCode::kOk, "it does not tell what was changed");
  if (result.code != ResultCode::kOk) return;
  if (result.number != 0) is_complete_ = false;
  std::string_view records = result.value;
  op::Record record;
  while (op::take_record(records, record) && keys_.size() < kMostKeys) keys_.emplace_back(record.key);
  if (keys_.size() >= kMostKeys) is_complete_ = false;
  uint64_t& place = places_.cursors[tag];
  const bool is_at_end = result.version == place || result.value.empty();
  place = result.version;
  if (!is_at_end) ask(static_cast<uint32_t>(tag), send);
}

// --- Marking

void Marking::begin(uint64_t epoch, uint32_t partitions, const Send& send) {
  if (places_.epoch != epoch || places_.cursors.size() != partitions) return;  // another process: nothing to say
  for (uint32_t i = 0; i < partitions; ++i) {
    Op op = changes_op(tag_, places_.cursors[i]);
    op.size_class = op::kPurgedBefore;
    send(op, i, i);
  }
}

void Marking::on_answer(uint64_t, const Result& result, const Send&) {
  expect(result, ResultCode::kOk, "it does not take note");
}

// --- Purging

void Purging::begin(uint64_t, uint32_t partitions, const Send& send) {
  if (is_flush_) {
    Op flush;
    flush.code = OpCode::kFlush;
    for (uint32_t i = 0; i < partitions; ++i) send(flush, i, i);
    return;
  }
  while (sent_ < std::min(keys_.size(), kAtOnce)) send_next(send);
}

void Purging::send_next(const Send& send) {
  Op remove;
  remove.code = OpCode::kDelete;
  remove.key = keys_[sent_++];
  send(remove, kOfKey, 0);
}

void Purging::on_answer(uint64_t, const Result& result, const Send& send) {
  if (is_flush_) return expect(result, ResultCode::kOk, "it cannot be flushed");
  if (result.code != ResultCode::kMiss) expect(result, ResultCode::kDeleted, "its keys cannot be deleted");
  if (sent_ < keys_.size() && fault().empty()) send_next(send);
}

}  // namespace egret::pool
