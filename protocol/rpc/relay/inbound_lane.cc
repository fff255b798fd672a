#include "rpc/relay/inbound_lane.h"

#include <algorithm>

#include "rpc/result_room.h"
#include "wire/codec.h"

namespace egret::rpc::relay {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

InboundLane::InboundLane(const LaneHost& host, LaneId id, const LaneBinding& binding,
                         std::shared_ptr<const Rules> rules, SessionCounters& outbound)
    : host_(host),
      id_(id),
      binding_(binding),
      rules_(std::move(rules)),
      outbound_(outbound),
      messages_(binding.layout.window),
      remainders_(host.kept) {}

bool InboundLane::begin(const TakenMessage& taken, std::span<const Op> ops) {
  uint32_t least = 0;
  for (const Op& op : ops) least += static_cast<uint32_t>(wire::min_result_size(op));
  Message& begun = message(taken.seq);
  if (taken.seq > begun_) {
    EGRET_DCHECK(taken.first == 0 && taken.seq == begun_ + 1 && taken.seq - oldest_ < messages_.size());
    begun_ = taken.seq;
    begun = {.seq = taken.seq, .begun_ns = taken.begun_ns, .op_count = taken.op_count};
    begun.end = sizeof(wire::ResponseHeader);
    begun.rest = least;
    return true;
  }
  // It was put off, and its client may have changed it. Results that are written have left this much to the others.
  if (begun.seq != taken.seq || begun.op_count != taken.op_count || least > begun.rest) return false;
  begun.rest = least;
  return true;
}

void InboundLane::note(const Op& op, const Note& note) {
  const auto least = static_cast<uint32_t>(wire::min_result_size(op));
  Message& newest = message(begun_);
  newest.rest -= least;
  newest.owed += least;
  notes_.push(note);
}

void InboundLane::expect(const Op& op) {
  note(op, {.kind = Note::Kind::kAwaited, .code = op.code, .options = op.options});
}

void InboundLane::answer(const Op& op, ResultCode code) {
  if (code == ResultCode::kForbidden && !binding_.knows_rights) code = ResultCode::kUnsupported;
  note(op, {.kind = Note::Kind::kCode, .code = op.code, .options = op.options, .result = code});
  answer_due();
}

void InboundLane::answer_piece(const Op& chunk) {
  const uint32_t kept = remainders_.find(chunk.version);
  if (kept == Remainders::kNone) return answer(chunk, ResultCode::kChanged);
  note(chunk, {.kind = Note::Kind::kPiece,
               .code = chunk.code,
               .options = chunk.options,
               .kept = kept,
               .offset = chunk.offset,
               .length = chunk.length});
  answer_due();
}

void InboundLane::on_result(const Result& came) {
  const Note note = notes_.front();
  EGRET_DCHECK(note.kind == Note::Kind::kAwaited);
  notes_.pop();
  if (!is_dropped_) {
    Result result = came;
    write(note, result);
  }
  answer_due();
  if (is_over()) delete this;
}

// Writes the answers that are known already and have come to the front.
void InboundLane::answer_due() {
  while (!notes_.empty() && notes_.front().kind != Note::Kind::kAwaited) {
    const Note note = notes_.front();
    notes_.pop();
    if (is_dropped_) continue;
    Result result;
    if (note.kind == Note::Kind::kPiece) {
      result = piece(note);
      const size_t written = std::min(write(note, result), result.value.size());
      remainders_.let_go(note.kept, note.offset + written >= result.total_length);
    } else {
      result.code = note.result;
      write(note, result);
    }
  }
}

Result InboundLane::piece(const Note& note) const {
  const std::string_view whole = remainders_.value(note.kept);
  Result result;
  result.code = ResultCode::kHit;
  result.version = remainders_.version(note.kept);
  result.total_length = static_cast<uint32_t>(whole.size());
  result.value = whole.substr(std::min<size_t>(note.offset, whole.size()), note.length);
  return result;
}

// Writes the next result of the oldest message. Returns how many bytes of a value had room.
size_t InboundLane::write(const Note& note, Result& result) {
  Message& oldest = message(oldest_);
  asked_.code = note.code;
  asked_.options = note.options;
  const auto least = static_cast<uint32_t>(wire::min_result_size(asked_));
  oldest.owed -= least;
  std::byte* const slot =
      binding_.endpoint->response_memory() + binding_.layout.response_offset(binding_.lane, oldest.seq);
  const size_t left = binding_.layout.response_slot_size - oldest.end;
  const size_t reserved = oldest.owed + oldest.rest;
  const size_t room = result_room(left, reserved, reserved > 0, asked_, result);
  if (note.code == OpCode::kGet && result.code == ResultCode::kHit) keep_what_is_cut(result, room - least);
  oldest.end = static_cast<uint32_t>(wire::encode_result(slot + oldest.end, room, asked_, result) - slot);
  if (++oldest.answered == oldest.op_count) {
    host_.poller.complete(id_, {oldest.seq, oldest.op_count, oldest.end, oldest.begun_ns});
    ++oldest_;
  }
  return room - least;
}

void InboundLane::keep_what_is_cut(Result& result, size_t room) {
  if (result.is_partial() && !result.value.empty()) outbound_.long_values.add();
  if (result.value.size() <= room || result.is_partial()) return;
  ++host_.counters.cut;
  result.version = remainders_.keep(result.value, host_.clock.now_ns());
}

void InboundLane::drop() {
  is_dropped_ = true;
  remainders_.clear();  // the relay may be gone before the last answer comes
  answer_due();
  if (is_over()) delete this;
}

}  // namespace egret::rpc::relay
