#include "model.h"

#include <charconv>

#include "op/hash.h"
#include "rpc/relay/remainders.h"
#include "wire/codec.h"

namespace egret::sim {

using op::Op;
using op::OpCode;
using op::Result;
using op::ResultCode;

namespace {
constexpr OpCode kCodes[] = {OpCode::kGet, OpCode::kGet, OpCode::kSet, OpCode::kArith, OpCode::kDelete};
constexpr uint32_t kLarge = 100'000;
constexpr uint32_t kLongestSet = 20'000;  // bytes of a value that is sent in parts

uint64_t id_of(std::string_view key) {
  uint64_t id = 0;
  if (key.size() > 1) std::from_chars(key.data() + 1, key.data() + key.size(), id);
  return id;
}
}  // namespace

std::string pattern(uint64_t id, size_t length) {
  std::string bytes(length, '\0');
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(id * 31 + i * 7 + (i >> 8));
  return bytes;
}

void OpRecord::on_result(const Result& result) {
  model->check_answer(*this, result);
}

// --- the client's side ---------------------------------------------------------------------------------------------

std::unique_ptr<Model::Draft> Model::draw_op(bool sends_parts) {
  OpRecord& record = records_.emplace_back();
  auto draft = std::make_unique<Draft>();
  draft->id = record.id = records_.size();
  draft->key = "k" + std::to_string(record.id) + ".";
  if (rng_.percent(20))
    draft->key.resize(rng_.between(static_cast<uint32_t>(draft->key.size()), op::kMaxKeyLength), 'x');
  record.model = this;
  record.code = kCodes[rng_.below(std::size(kCodes))];
  Op& op = draft->op;
  op.code = record.code;
  op.key = draft->key;
  switch (op.code) {
    case OpCode::kSet:
      record.is_long = sends_parts && rng_.percent(options_.long_percent);
      draft->value = pattern(record.id, record.is_long ? rng_.between(kLongestSet / 4, kLongestSet)
                                                       : rng_.below(rng_.percent(50) ? 64 : options_.value_max));
      op.value = draft->value;
      op.options = op::kWantCas;
      op.exptime = static_cast<int64_t>(record.id);
      record.value_length = static_cast<uint32_t>(op.value.size());
      break;
    case OpCode::kArith:
      op.delta = record.id;
      break;
    case OpCode::kGet:
      op.options = op::kWantCas;
      record.value_length = rng_.percent(options_.large_percent) ? kLarge : rng_.below(options_.value_max);
      break;
    default:
      break;
  }
  return draft;
}

bool Model::append(const Draft& draft, rpc::ClientLane& lane, uint64_t session_id) {
  OpRecord& record = record_of(draft);
  is_sent(record, session_id, lane.number());
  if (rng_.percent(20) && !kept_.read_one(rng_)) fail("a value that was lent has changed before it was given back");
  Result result;
  op::LoanRef loan;
  if (rpc::execute(lane, draft.op, result, loan)) {
    record.on_result(result);
    return true;
  }
  if (rng_.percent(75) && rpc::gather(lane, draft.op, &record) > 0) {
    if (rng_.percent(50)) rpc::answer_gathered(lane);
    return true;
  }
  if (lane.append(draft.op, &record)) return true;
  is_not_sent(record);
  return false;
}

void Model::is_sent(OpRecord& record, uint64_t session_id, uint32_t lane) {
  record.session_id = session_id;
  record.lane = lane;
  if (!record.is_long) record.place = appended_on_[{session_id, lane}]++;
  ++appended_;
}

void Model::is_not_sent(const OpRecord& record) {
  if (!record.is_long) --appended_on_[{record.session_id, record.lane}];
  --appended_;
}

void Model::is_said_unsent(OpRecord& record) {
  record.said_unsent = true;
  if (record.executions > 0)
    fail("op " + std::to_string(record.id) + " was executed, and is said not to have been sent");
}

void Model::goes_in_parts(OpRecord& record, uint64_t session_id, uint32_t lane) {
  record.session_id = session_id;
  record.lane = lane;
}

void Model::check_answer(OpRecord& record, const Result& result) {
  record.answer = result.code;
  if (++record.answers != 1) return fail("op " + std::to_string(record.id) + " was answered twice");
  ++answered_;
  if (result.code == ResultCode::kNotSent) is_said_unsent(record);
  if (result.code == ResultCode::kSessionLost || result.code == ResultCode::kNotSent) {
    ++lost_;
    if (!options_.may_be_lost) fail("op " + std::to_string(record.id) + " was lost with its session");
  } else if (result.code == ResultCode::kTimedOut) {
    ++timed_out_;
    if (!options_.may_time_out) fail("op " + std::to_string(record.id) + " timed out");
  } else if (options_.check_results) {
    if (record.executions != 1) fail("op " + std::to_string(record.id) + " was answered without having been executed");
    check_value(record, result);
  }
  if (on_answer) on_answer(record);
}

// Of a get: all of its value, read now, or later.
void Model::check_loan(const OpRecord& record, const Result& result) {
  std::string expected = pattern(record.id, record.value_length);
  if (result.value != (*result.loan)->pieces().front() || result.version != record.id ||
      KeptLoans::read(*result.loan->operator->()) != expected)
    fail("op " + std::to_string(record.id) + " was lent another value");
  if (rng_.percent(50)) kept_.keep(std::move(*result.loan), std::move(expected));
}

void Model::give_back_loans() {
  if (!kept_.read_all(rng_)) fail("a value that was lent has changed before it was given back");
}

void Model::check_value(const OpRecord& record, const Result& result) {
  const auto mismatch = [&](const char* what) {
    fail("op " + std::to_string(record.id) + " (" + op::to_string(record.code) + ") got another's " + what + ": " +
         op::to_string(result.code) + " cas " + std::to_string(result.cas) + " number " +
         std::to_string(result.number) + " length " + std::to_string(result.total_length));
  };
  switch (record.code) {
    case OpCode::kSet:
      if (result.code != ResultCode::kStored || result.cas != record.id) mismatch("set");
      break;
    case OpCode::kArith:
      if (result.code != ResultCode::kNumber || result.number != record.id) mismatch("number");
      break;
    case OpCode::kDelete:
      if (result.code != ResultCode::kDeleted) mismatch("deletion");
      break;
    default:
      // A relay has cut it, and keeps it under a version of its own.
      const bool is_kept = options_.is_relayed && (result.version & rpc::relay::Remainders::kOurs) != 0;
      if (result.code != ResultCode::kHit || result.cas != record.id || result.client_flags != record.id % 3 ||
          result.total_length != record.value_length || result.value != pattern(record.id, result.value.size()) ||
          (result.is_partial() && result.version != record.id && !is_kept)) {
        mismatch("value");
      }
      if (result.loan != nullptr) check_loan(record, result);
  }
}

// --- the handler's side --------------------------------------------------------------------------------------------

Result Model::execute(const Op& op, uint64_t session_id, uint32_t lane) {
  Result result;
  if (hostile_.contains(session_id)) return result;
  const uint64_t id = id_of(op.key);
  if (id == 0 || id > records_.size()) {
    fail("an op that nobody sent was executed");
    return result;
  }
  OpRecord& record = records_[id - 1];
  if (op.code == OpCode::kChunk) return answer_chunk(record, op);
  if (record.is_long) return answer_part(record, op, session_id, lane);
  const std::string name = "op " + std::to_string(id);
  check_order(record, op, session_id, lane);
  if (on_execute) on_execute(record);
  switch (op.code) {
    case OpCode::kSet:
      if (op.value != pattern(id, record.value_length) || op.exptime != static_cast<int64_t>(id)) {
        fail(name + " arrived with another value");
      }
      result.code = ResultCode::kStored;
      break;
    case OpCode::kArith:
      if (op.delta != id) fail(name + " arrived with another delta");
      result.code = ResultCode::kNumber;
      result.number = id;
      break;
    case OpCode::kDelete:
      result.code = ResultCode::kDeleted;
      break;
    default:
      answer_value_ = pattern(id, record.value_length);
      result.code = ResultCode::kHit;
      result.value = answer_value_;
      result.total_length = record.value_length;
      result.version = id;
      result.client_flags = static_cast<uint32_t>(id % 3);
  }
  result.cas = id;
  return result;
}

op::LoanName Model::lend(ModelLoans& loans, const Result& result, rpc::LaneId borrower) {
  if (result.code != ResultCode::kHit || result.value.empty() || result.is_partial() || rng_.percent(30)) return {};
  ++lent_;
  return loans.lend(result.value, borrower, rng_);
}

// An op of one message: once, where it was sent to, behind those that were sent there before.
void Model::check_order(OpRecord& record, const Op& op, uint64_t session_id, uint32_t lane) {
  const std::string name = "op " + std::to_string(record.id);
  if (++record.executions != 1) fail(name + " was executed twice");
  if (record.said_unsent) is_said_unsent(record);
  const bool is_astray = record.session_id != session_id && !options_.is_relayed;
  if (is_astray || record.lane != lane || record.code != op.code) fail(name + " went astray");
  uint64_t& next_place = executed_on_[{record.session_id, lane}];
  if (options_.is_relayed ? record.place < next_place : record.place != next_place) {
    fail(name + " is number " + std::to_string(record.place) + " of its lane and was executed as number " +
         std::to_string(next_place));
  }
  next_place = record.place + 1;
}

// A part of a set's value, or its end, which executes the set.
Result Model::answer_part(OpRecord& record, const Op& op, uint64_t session_id, uint32_t lane) {
  const std::string name = "op " + std::to_string(record.id);
  const std::string whole = pattern(record.id, record.value_length);
  Result result;
  result.code = ResultCode::kOk;
  std::string wrong;
  if (record.lane != lane || (record.session_id != session_id && !options_.is_relayed)) wrong = "went astray";
  if (record.executions != 0) wrong = "goes on after its commit";
  if (op.code == OpCode::kUpload) {
    if (wrong.empty()) wrong = uploads_.take_part(op, session_id, lane, whole);
  } else if (op.code == OpCode::kCommit) {
    if (wrong.empty()) wrong = uploads_.take_commit(op, session_id, lane, whole);
    if (op.exptime != static_cast<int64_t>(record.id)) wrong = "is committed with another exptime";
    ++record.executions;
    if (record.said_unsent) is_said_unsent(record);
    if (on_execute) on_execute(record);
    result.code = ResultCode::kStored;
    result.cas = record.id;
  } else if (op.code == OpCode::kAbort) {
    uploads_.abort(op, session_id, lane);
  } else {
    wrong = "came in one message, and is too long for one";
  }
  if (!wrong.empty()) fail(name + " " + wrong);
  return result;
}

// The rest of a value that did not fit the answer of its get.
Result Model::answer_chunk(const OpRecord& record, const Op& op) {
  Result result;
  if (record.code != OpCode::kGet || record.executions != 1 || op.version != record.id ||
      op.offset >= record.value_length) {
    fail("op " + std::to_string(record.id) + " is asked for bytes that it does not have");
    return result;
  }
  answer_value_ = pattern(record.id, record.value_length).substr(op.offset, op.length);
  result.code = ResultCode::kHit;
  result.value = answer_value_;
  result.total_length = record.value_length;
  result.version = result.cas = record.id;
  return result;
}

void Model::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
}

std::string Model::unanswered() const {
  std::string list;
  uint32_t named = 0;
  for (const OpRecord& record : records_) {
    if (record.answers > 0 || record.session_id == 0) continue;
    if (++named > 4) return list + " ...";
    list += " op " + std::to_string(record.id) + " (session " + std::to_string(record.session_id) + " lane " +
            std::to_string(record.lane) + " place " + std::to_string(record.place) + ", executed " +
            std::to_string(record.executions) + " times)";
  }
  return list;
}

// --- ModelHandler --------------------------------------------------------------------------------------------------

void ModelHandler::prepare(std::span<Op> ops, std::span<const rpc::LaneId> lanes) {
  if (ops.size() > kMaxBatch || ops.size() != lanes.size() || ops.empty()) model_.fail("a batch of a wrong size");
  ops_ = ops;
  lanes_ = lanes;
  next_ = 0;
  pause();
}

void ModelHandler::locate() {
  pause();
}

Result ModelHandler::execute(size_t index) {
  if (index < next_ || index >= ops_.size()) {  // those of a lane that has used its turn are left out
    model_.fail("a batch was not executed in order");
    return {};
  }
  next_ = index + 1;
  pause();
  return answer(ops_[index], lanes_[index]);
}

}  // namespace egret::sim
