// What the simulation's ops are and what must become of them. Every op carries a number of its own in its key; from
// that number follow its value, its result, and so what the handler must see and the waiter must be told.
//
//   Model::append ─▶ ClientLane ─ … ─▶ ModelHandler::execute (once, in lane order, untouched) ─ … ─▶
//   OpRecord::on_result (once, its own)
//
// The first thing that is not as specified becomes failure(); nothing throws, so that a broken run can be torn down.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "model_loans.h"
#include "model_uploads.h"
#include "rng.h"
#include "rpc/client_lane.h"
#include "rpc/slot_poller.h"

namespace egret::sim {

class Model;

// One op from its append on. Lives as long as the model.
struct OpRecord final : rpc::Waiter {
  Model* model = nullptr;
  uint64_t id = 0;
  op::OpCode code = op::OpCode::kGet;
  uint32_t value_length = 0;
  uint64_t session_id = 0;
  uint32_t lane = 0;
  uint64_t place = 0;        // in its lane of its session
  bool is_long = false;      // it goes in parts, and has no place
  bool said_unsent = false;  // Model::is_said_unsent()
  uint32_t executions = 0;
  uint32_t answers = 0;
  op::ResultCode answer = op::ResultCode::kOk;

  void on_result(const op::Result& result) override;
};

struct ModelOptions {
  uint32_t value_max = 700;    // of sets, and of gets that fit
  uint32_t large_percent = 3;  // gets whose value is larger than any slot
  uint32_t long_percent = 0;   // sets whose value is, of those who can send it in parts
  bool may_time_out = false;
  bool may_be_lost = false;
  bool check_results = true;  // off where the server lies
  // Ops come to the server by another session than they were appended to, and some of a lane may be lost.
  bool is_relayed = false;
};

class Model {
 public:
  Model(const ModelOptions& options, Rng& rng) : options_(options), rng_(rng) {}

  // An op that is not sent yet; append() it until it is taken, to a lane that its key belongs to.
  struct Draft {
    uint64_t id = 0;
    std::string key, value;
    op::Op op;
  };
  // `sends_parts`: sets may be too long for one message.
  std::unique_ptr<Draft> draw_op(bool sends_parts = false);
  // False: no credit.
  bool append(const Draft& draft, rpc::ClientLane& lane, uint64_t session_id);
  // For programs that link libegret, where the library appends. record_of(): the record of the draft's op. is_sent(): the
  // library has taken the op. goes_in_parts(): to be called before the first part is sent, since a part may arrive before
  // is_sent(); other ops may come between the parts.
  OpRecord& record_of(const Draft& draft) { return records_[draft.id - 1]; }
  void is_sent(OpRecord& record, uint64_t session_id, uint32_t lane);
  void goes_in_parts(OpRecord& record, uint64_t session_id, uint32_t lane);
  // Its client was told that it has not been executed, and never will be.
  void is_said_unsent(OpRecord& record);

  // The handler's side: checks an op that arrived on a lane and answers it. The answer is valid until the next call.
  op::Result execute(const op::Op& op, uint64_t session_id, uint32_t lane);
  void check_answer(OpRecord& record, const op::Result& result);
  // A session whose ops are anything at all: they are answered, not checked.
  void expect_nothing_of(uint64_t session_id) { hostile_.insert(session_id); }

  uint64_t appended() const { return appended_; }
  uint64_t answered() const { return answered_; }
  uint64_t timed_out() const { return timed_out_; }
  uint64_t lost() const { return lost_; }
  const ModelUploads& uploads() const { return uploads_; }
  // The handler's side: lends the value of some results, to a client that takes loans.
  op::LoanName lend(ModelLoans& loans, const op::Result& result, rpc::LaneId borrower);
  // The client's side: those that it has kept are read and given back.
  void give_back_loans();
  uint64_t lent() const { return lent_; }
  void lane_dropped(uint64_t session_id, uint32_t lane) { uploads_.drop_lane(session_id, lane); }
  bool is_settled() const { return answered_ == appended_; }
  // Called within on_result, after the check: a test's own follow-up.
  std::function<void(OpRecord&)> on_answer;
  // Called within execute().
  std::function<void(const OpRecord&)> on_execute;

  void fail(const std::string& what);
  const std::string& failure() const { return failure_; }
  bool has_failed() const { return !failure_.empty(); }
  // The first few unanswered ops, for the report of a failure.
  std::string unanswered() const;

 private:
  void is_not_sent(const OpRecord& record);
  void check_value(const OpRecord& record, const op::Result& result);
  void check_loan(const OpRecord& record, const op::Result& result);
  void check_order(OpRecord& record, const op::Op& op, uint64_t session_id, uint32_t lane);
  op::Result answer_part(OpRecord& record, const op::Op& op, uint64_t session_id, uint32_t lane);
  op::Result answer_chunk(const OpRecord& record, const op::Op& op);

  const ModelOptions options_;
  Rng& rng_;
  std::deque<OpRecord> records_;                                                 // by id - 1
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> appended_on_, executed_on_;  // by session and lane
  uint64_t appended_ = 0, answered_ = 0, timed_out_ = 0, lost_ = 0;
  std::set<uint64_t> hostile_;
  ModelUploads uploads_;
  KeptLoans kept_;
  uint64_t lent_ = 0;
  std::string failure_;
  std::string answer_value_;
};

// Executes a partition's ops by the model. Counts how often its calls come out of order.
class ModelHandler : public rpc::OpHandler {
 public:
  // `pause` is called between the steps of a batch: time may pass there, and others be let in.
  ModelHandler(Model& model, uint32_t partition, std::function<void()> pause)
      : model_(model), partition_(partition), pause_(std::move(pause)) {}

  void begin_round() override {
    loans_.take_back();
    pause_();
  }
  void foresee(std::span<op::Op>) override { pause_(); }
  void prepare(std::span<op::Op> ops, std::span<const rpc::LaneId> lanes) override;
  void locate() override;
  op::Result execute(size_t index) override;
  op::LoanName lend(size_t index, const op::Result& result) override {
    return model_.lend(loans_, result, lanes_[index]);
  }
  void lane_attached(rpc::LaneId lane, const rpc::LaneBinding& binding) override {
    sessions_[lane] = binding.session_id;
  }
  void lane_dropped(rpc::LaneId lane) override {
    model_.lane_dropped(sessions_.at(lane), partition_);
    sessions_.erase(lane);
    loans_.revoke(lane);
  }
  // How many values are lent now: those that the client has given back are taken back first.
  size_t lent() {
    loans_.take_back();
    return loans_.count();
  }

 protected:
  virtual op::Result answer(const op::Op& op, rpc::LaneId lane) {
    return model_.execute(op, sessions_.at(lane), partition_);
  }
  void pause() const { pause_(); }

  Model& model_;
  const uint32_t partition_;

 private:
  const std::function<void()> pause_;
  std::map<rpc::LaneId, uint64_t> sessions_;
  ModelLoans loans_;
  std::span<op::Op> ops_;
  std::span<const rpc::LaneId> lanes_;
  size_t next_ = 0;
};

// The bytes that number `id` stands for.
std::string pattern(uint64_t id, size_t length);

}  // namespace egret::sim
