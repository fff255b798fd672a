#include "proxy/replies/reply_queue.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/check.h"
#include "memcache/reply.h"

namespace egret::proxy {

using op::Result;
using op::ResultCode;

namespace {
constexpr size_t kMaxKeptStash = 4096;  // the memory of a stash up to this size is reused
// What a waiting reply is charged for its key and the line that may answer it; a longer answer is charged when it is kept.
constexpr size_t kAnswerRoom = 256;
constexpr size_t kMaxUnread = 64 * 1024;  // with more unsent bytes no further large value is fetched

Result without_value(Result result) {
  result.value = {};
  result.further = {};
  result.loan = nullptr;
  return result;
}

// Marks, last access and TTL are those before the client's access: take them from the first result, not from that of
// the repeated get.
void keep_first_metadata(const Result& first, Result& result) {
  result.marks = first.marks;
  result.last_access = first.last_access;
  result.ttl = first.ttl;
}
}  // namespace

// --- pool
// -----------------------------------------------------------------------------------------------------

ReplyPool::~ReplyPool() {
  for (Reply* reply : free_) delete reply;
}

Reply* ReplyPool::take() {
  ++in_use_;
  if (free_.empty()) {
    auto* made = new Reply;
    made->pool_ = this;
    return made;
  }
  Reply* reply = free_.back();
  free_.pop_back();
  return reply;
}

void ReplyPool::give(Reply* reply) {
  --in_use_;
  reply->queue_ = nullptr;
  reply->next_ = nullptr;
  reply->state_ = Reply::State::kWaiting;
  reply->is_key = reply->is_read = reply->holds_key = reply->ends_retrieval = reply->started_ = reply->failed_ =
      reply->rereads_ = false;
  reply->asked_again_ = reply->has_value_ = false;
  reply->expected = reply->command = 0;
  reply->hash = 0;
  reply->key = {};
  reply->text = {};
  reply->observed.reset();
  reply->may_miss.reset();
  reply->session.reset();
  reply->large_.reset();
  reply->loan_.reset();
  reply->charged_ = 0;
  reply->stash_.clear();
  if (reply->stash_.capacity() > kMaxKeptStash) reply->stash_.shrink_to_fit();
  free_.push_back(reply);
}

// --- one reply
// -----------------------------------------------------------------------------------------------------------

void Reply::on_result(const Result& result) {
  if (queue_ != nullptr) return queue_->on_result(*this, result);
  pool_->give(this);
}

// The same op again, by its lane; what it finds now is the answer.
bool Reply::on_pulled(bool may_be_there) {
  if (queue_ == nullptr) {
    pool_->give(this);
    return true;
  }
  may_miss->key = key;
  if (may_be_there && session->is_open()) {
    return session->lanes().of(session->lanes().hash(key)).append(*may_miss, this);
  }
  Result result;
  result.code = may_be_there ? ResultCode::kSessionLost : ResultCode::kMiss;
  queue_->on_result(*this, result);
  return true;
}

// Not without a queue: the get was stopped when that went.
bool Reply::on_length(rpc::LargeGet& get, uint32_t length) {
  return queue_->on_large_length(*this, get, length);
}

void Reply::on_large_get(rpc::LargeGet& get) {
  if (queue_ != nullptr) return queue_->on_large_done(*this, get);
  pool_->give(this);
}

// --- the queue
// -----------------------------------------------------------------------------------------------------------

ReplyQueue::~ReplyQueue() {
  if (waits_for_budget_) memory_.large().stop_waiting(this);
  for (Reply* reply = head_; reply != nullptr;) {
    Reply* next = reply->next_;
    reply->queue_ = nullptr;
    memory_.refund(std::exchange(reply->charged_, 0));
    // A Reply whose result is outstanding stays alive without a queue; others go back to the pool now.
    if (reply->started_) {
      reply->large_->stop();
    } else if (reply->state_ != Reply::State::kWaiting) {
      pool_.give(reply);
    }
    reply = next;
  }
  give_large();
}

Reply* ReplyQueue::make() {
  Reply* reply = pool_.take();
  reply->queue_ = this;
  reply->asked_ns = pool_.now_ns_;
  return reply;
}

void ReplyQueue::push(Reply* reply) {
  (tail_ != nullptr ? tail_->next_ : head_) = reply;
  tail_ = reply;
  ++size_;
  charge(*reply, sizeof(Reply) + kAnswerRoom + reply->expected);
  if (reply->is_key && reply->state_ == Reply::State::kWaiting) ++waiting_keys_;
  if (reply->holds_key) ++holding_;
}

void ReplyQueue::charge(Reply& reply, size_t bytes) {
  memory_.charge(bytes);
  reply.charged_ += bytes;
}

void ReplyQueue::push_text(std::string_view text, uint32_t command) {
  if (head_ == nullptr) {
    if (command == 0 || command != failed_command_) {
      output_.append(text);
      observer_.on_output();
    }
    pool_.figures_.duration.record(0);
    return;
  }
  Reply* reply = make();
  reply->state_ = Reply::State::kReady;
  reply->text = text;
  reply->command = command;
  push(reply);
}

void ReplyQueue::push_end(uint32_t command) {
  if (tail_ == nullptr || tail_->command != command) return push_text(memcache::kEnd, command);
  tail_->ends_retrieval = true;
  tail_->asked_ns = pool_.now_ns_;
}

void ReplyQueue::push_bytes(std::string_view bytes) {
  if (head_ == nullptr) {
    output_.append(bytes);
    observer_.on_output();
    return;
  }
  Reply* reply = make();
  reply->asked_ns = 0;  // it may be one of several pieces
  reply->state_ = Reply::State::kReady;
  reply->stash_.assign(bytes);
  push(reply);
  charge(*reply, bytes.size());
}

void ReplyQueue::push_error(std::string_view bytes, uint32_t command) {
  if (head_ == nullptr && command == failed_command_) return;  // the retrieval has its end
  const bool is_retrieval = tail_ != nullptr && tail_->command == command;
  push_bytes(bytes);
  if (is_retrieval) tail_->command = command;
}

void ReplyQueue::push_answered(Reply* reply, const Result& result) {
  reply->is_key = false;
  push(reply);
  on_result(*reply, result);
}

void ReplyQueue::push_failure(std::string_view line, uint32_t command) {
  pool_.figures_.errors.add();
  push_refusal(line, command);
}

void ReplyQueue::push_refusal(std::string_view line, uint32_t command) {
  Reply* reply = make();
  reply->command = command;
  reply->asked_ns = 0;
  fail_command(*reply, line);
  push(reply);
  answered(*reply);
}

bool ReplyQueue::must_wait(uint64_t hash, bool is_change) const {
  if (holding_ == 0 && (!is_change || waiting_keys_ == 0)) return false;
  for (const Reply* reply = head_; reply != nullptr; reply = reply->next_) {
    if (!(reply->is_key || reply->holds_key) || reply->hash != hash) continue;
    if (reply->state_ == Reply::State::kLarge || reply->holds_key ||
        (is_change && reply->state_ == Reply::State::kWaiting))
      return true;
  }
  return false;
}

// A get that found nothing, of a key that another backend had before: false if there is nothing to wait for. Nothing else
// is done with the key meanwhile.
bool ReplyQueue::waits_for_pull(Reply& reply) {
  if (std::exchange(reply.asked_again_, true)) return false;
  if (!pool_.pulls_->pull(reply.key, {reply.session.get(), reply.hash}, &reply, false)) return false;
  reply.holds_key = true;
  ++holding_;
  return true;
}

void ReplyQueue::on_result(Reply& reply, const Result& result) {
  if (reply.may_miss != nullptr) [[unlikely]] {
    if (result.code == ResultCode::kMiss && waits_for_pull(reply)) return;
    // Gets behind it may have found an older value meanwhile.
    if (reply.holds_key) ask_again_behind(reply, reply.key);
  }
  if (reply.observed != nullptr) [[unlikely]]
    observer_.on_observed(*std::exchange(reply.observed, nullptr), result);
  count(reply, result.code);
  if (reply.holds_key) [[unlikely]]
    let_key_go(reply);
  if (reply.is_key) return on_key_result(reply, result);
  if (reply.text.empty()) write_line(reply, result);
  answered(reply);
}

void ReplyQueue::let_key_go(Reply& reply) {
  reply.holds_key = false;
  --holding_;
}

void ReplyQueue::count(const Reply& reply, ResultCode code) {
  RequestFigures& figures = pool_.figures_;
  if (code >= ResultCode::kTooLarge) {
    figures.errors.add();
  } else if (reply.is_read) {
    (code == ResultCode::kHit ? figures.get_hits : figures.get_misses).add();
  }
}

void ReplyQueue::on_key_result(Reply& reply, const Result& result) {
  --waiting_keys_;
  const uint32_t expected = std::exchange(reply.expected, 0);
  memory_.refund(expected);
  reply.charged_ -= expected;
  if (!memcache::has_value(reply.question, result)) {
    write_no_value(reply, result);
    return answered(reply);
  }
  const bool is_head = &reply == head_;
  if (result.loan != nullptr) return send_loan(reply, result);
  if (result.is_partial()) {
    begin_large(reply, reply.key);
    reply.partial_ = result;
    if (is_head) return start_large(reply);
    reply.partial_.value = {};  // fetched again when this reply is the head
    return;
  }
  const bool was_expected = result.value.size() <= expected;
  if (!was_expected && !memory_.may_keep(result.value.size()) && !may_keep_at_limit(reply)) [[unlikely]]
    return read_again_later(reply, result);
  if (is_head && result.value.size() > OutputQueue::kMaxCopied && send_from_slot(reply, result)) return;
  write_value(reply, result);
  answered(reply);
}

// Answers the head by a value that stays in its response slot. False: it cannot stay there.
bool ReplyQueue::send_from_slot(Reply& reply, const Result& result) {
  Lender lender;
  if (!reply.session || !lender.hold.add(*reply.session, reply.hash, result)) return false;
  send_value(reply, reply.key, result, std::move(lender));
  return true;
}

// Answers by a value that its store lends. A connection that has borrowed much asks again when the reply is the head.
void ReplyQueue::send_loan(Reply& reply, const Result& result) {
  if (!output_.may_borrow(result.total_length, borrowed_)) return read_again_later(reply, result);
  send_value(reply, reply.key, result, {.loan = std::move(*result.loan)});
}

void ReplyQueue::keep_loan(Reply& reply, op::LoanRef loan) {
  borrowed_ += loan->length();
  reply.loan_ = std::move(loan);
}

void ReplyQueue::drop_loan(Reply& reply) {
  if (!reply.loan_) return;
  borrowed_ -= reply.loan_->length();
  reply.loan_.reset();
}

// Its head has been written.
void ReplyQueue::lend(const Reply& reply, op::LoanRef loan) {
  const auto pieces = loan->pieces();
  output_.lend(pieces, {.loan = std::move(loan)});
  output_.append(memcache::tail(reply.question));
}

// The head's value is written even at a limit if the client reads, since others may hold all the memory. A value that
// its own get made expire must be kept: it cannot be read again.
bool ReplyQueue::may_keep_at_limit(const Reply& reply) const {
  if (is_left_out(reply) || !reply.session) return true;
  return (&reply == head_ && output_.size() <= kMaxUnread) || reply.get_exptime < 0;
}

// Drops the value; it is fetched again, as a large one is, when its reply is the head and there is room.
void ReplyQueue::read_again_later(Reply& reply, const Result& result) {
  begin_large(reply, reply.key);
  reply.partial_ = without_value(result);
  reply.rereads_ = true;
  if (&reply == head_) start_large(reply);
}

// Answers a read that found no value, or failed.
void ReplyQueue::write_no_value(Reply& reply, const Result& result) {
  if (!reply.question.is_classic()) return write_line(reply, result);
  if (const std::string_view line = memcache::retrieval_error(result); !line.empty()) fail_command(reply, line);
}

// The line replaces the unsent rest of the retrieval's answer, END included.
void ReplyQueue::fail_command(Reply& reply, std::string_view line) {
  reply.failed_ = true;
  reply.text = line;
}

// Memory in the output if the reply is the head, else the reply's own. Then call written() with the length.
ReplyQueue::Room ReplyQueue::room_for(Reply& reply, size_t bound) {
  if (&reply == head_ && bound <= OutputQueue::kBlockSize && !is_left_out(reply)) return {output_.reserve(bound), true};
  reply.stash_.resize(bound);
  return {reply.stash_.data(), false};
}

void ReplyQueue::written(Reply& reply, Room room, const char* end) {
  const auto length = static_cast<size_t>(end - room.at);
  if (!room.is_output) {
    reply.stash_.resize(length);
    return charge(reply, length);
  }
  output_.commit(length);
}

void ReplyQueue::write_value(Reply& reply, const Result& result) {
  reply.has_value_ = true;
  std::string_view tail = memcache::tail(reply.question);
  const size_t head = memcache::max_head(reply.question, reply.key.size());
  const Room room = room_for(reply, head + result.value.size() + memcache::kCrLfEnd.size());
  if (reply.ends_retrieval && room.is_output) {  // what is kept may be asked for again
    tail = memcache::kCrLfEnd;
    reply.ends_retrieval = false;
  }
  char* end =
      memcache::write_head(room.at, reply.question, reply.key, result, static_cast<uint32_t>(result.value.size()));
  written(reply, room, memcache::write_text(memcache::write_text(end, result.value), tail));
}

// Answers without copying the value, which `lender` keeps in place: the head, or any reply by a loan, which waits for its
// turn.
void ReplyQueue::send_value(Reply& reply, std::string_view key, const Result& result, Lender lender) {
  reply.has_value_ = true;
  const Room room = room_for(reply, memcache::max_head(reply.question, key.size()));
  written(reply, room, memcache::write_head(room.at, reply.question, key, result, result.total_length));
  if (room.is_output && lender.loan) {
    lend(reply, std::move(lender.loan));
  } else if (lender.loan) {
    keep_loan(reply, std::move(lender.loan));
  } else if (room.is_output) {
    std::array<std::string_view, 1 + rpc::SlotHold::kMaxSlots> pieces{result.value};
    std::ranges::copy(result.further, pieces.begin() + 1);
    output_.lend(std::span(pieces).first(1 + result.further.size()), std::move(lender));
    output_.append(memcache::tail(reply.question));
  }
  answered(reply);
}

void ReplyQueue::write_line(Reply& reply, const Result& result) {
  const Room room = room_for(reply, memcache::max_answer(reply.question, reply.key.size()));
  written(reply, room, memcache::write_answer(room.at, reply.question, reply.key, result));
}

void ReplyQueue::answered(Reply& reply) {
  reply.state_ = Reply::State::kReady;
  if (&reply == head_) advance();
  observer_.on_progress();
}

// Writes all ready replies at the head to the output, and starts to fetch a large value at the head. If that ends at once
// (its session is lost), answered() calls this again: the loop below goes on, so that calls do not nest.
void ReplyQueue::advance() {
  has_advanced_ = true;
  if (std::exchange(is_advancing_, true)) return;
  while (std::exchange(has_advanced_, false)) {
    while (head_ != nullptr && head_->state_ == Reply::State::kReady) {
      write_ready(*head_);
      pop();
    }
    if (head_ != nullptr && head_->state_ == Reply::State::kLarge && !head_->started_) start_large(*head_);
  }
  is_advancing_ = false;
}

void ReplyQueue::write_ready(Reply& reply) {
  op::LoanRef loan = std::move(reply.loan_);
  if (loan) borrowed_ -= loan->length();
  if (is_left_out(reply)) return;
  if (reply.failed_) failed_command_ = reply.command;
  if (!reply.stash_.empty()) output_.append(reply.stash_);
  if (loan) lend(reply, std::move(loan));
  if (!reply.text.empty()) output_.append(reply.text);
  if (reply.ends_retrieval && !reply.failed_) output_.append(memcache::kEnd);
  observer_.on_output();
}

void ReplyQueue::pop() {
  Reply* done = head_;
  head_ = done->next_;
  if (head_ == nullptr) tail_ = nullptr;
  --size_;
  memory_.refund(std::exchange(done->charged_, 0));
  if (done->asked_ns != 0) pool_.figures_.duration.record(pool_.now_ns_ - done->asked_ns);
  pool_.give(done);
}

// --- large values
// --------------------------------------------------------------------------------------------------------

void ReplyQueue::begin_large(Reply& reply, std::string_view key) {
  ++holding_;
  reply.state_ = Reply::State::kLarge;
  reply.stash_.assign(key);
  reply.key = reply.stash_;
  charge(reply, key.size());
  reply.partial_ = {};
}

void ReplyQueue::make_large_get(Reply& reply) {
  op::Op get;
  get.code = op::OpCode::kGet;
  get.options = reply.question.options & ~op::kFirstGetOptions;
  get.exptime = reply.get_exptime;
  get.key = reply.key;
  get.hash = reply.hash;
  get.owner = reply.owner;
  reply.large_ = std::make_unique<rpc::LargeGet>(*reply.session, get, reply);
  charge(reply, sizeof(rpc::LargeGet));
}

// A value that changed while it was fetched may be newer than what later gets of the same key have got already. Fetch
// those again, so that a connection never sees an older value after a newer one. Also large ones that are still to be
// fetched: a pin, or a relay that keeps the rest of a value, may serve the version they began with.
void ReplyQueue::ask_again_behind(const Reply& reply, std::string_view key) {
  for (Reply* later = reply.next_; later != nullptr; later = later->next_) {
    if (!later->is_key || later->hash != reply.hash || later->failed_) continue;
    if (later->state_ == Reply::State::kLarge) later->partial_.total_length = 0;  // start_large() asks from the start
    if (later->state_ != Reply::State::kReady) continue;
    if ((later->question.options & op::kNoValue) != 0) continue;
    if ((later->question.options & op::kCompareCas) != 0 && !later->has_value_) continue;  // the client has that value
    memory_.refund(later->stash_.size());
    later->charged_ -= later->stash_.size();
    later->stash_.clear();
    drop_loan(*later);
    begin_large(*later, key);
  }
}

// Fetches a large value only for the head, and only if the client has read its last large value and most of its other
// output: so a connection holds at most one large value.
void ReplyQueue::start_large(Reply& reply) {
  const Result partial = std::exchange(reply.partial_, without_value(reply.partial_));
  if (output_.has_large() || large_taken_ > 0) return;  // on_sent() continues
  // Likewise. What replies behind it keep does not count: they wait for this one.
  if (reply.rereads_ && !output_.may_borrow(partial.total_length)) return;
  // There was no memory for the value when it came; a reload may have raised the limit since.
  const bool has_memory_now = reply.rereads_ && memory_.may_keep(partial.total_length);
  if (output_.size() > kMaxUnread && !has_memory_now) return;
  if (!memory_.large().take(partial.total_length)) {
    if (!waits_for_budget_) memory_.large().wait(this);
    waits_for_budget_ = true;
    return;
  }
  large_taken_ = partial.total_length;
  reply.started_ = true;
  if (reply.large_ == nullptr) make_large_get(reply);
  if (partial.total_length == 0 || reply.rereads_) {
    reply.large_->start_over();
  } else {
    reply.large_->start(partial);
  }
}

void ReplyQueue::on_budget() {
  waits_for_budget_ = false;
  advance();
}

void ReplyQueue::on_limits() {
  advance();
}

void ReplyQueue::on_sent() {
  if (!output_.has_large() && (head_ == nullptr || !head_->started_)) give_large();
  advance();
}

// Other connections may then start to fetch large values.
void ReplyQueue::give_large() {
  if (large_taken_ > 0) memory_.large().give(std::exchange(large_taken_, 0));
}

// The value has another length than memory was taken for. Without room for it, it waits its turn as a new one does.
bool ReplyQueue::on_large_length(Reply& reply, rpc::LargeGet& get, uint32_t length) {
  if (memory_.large().resize(large_taken_, length)) {
    large_taken_ = length;
    return true;
  }
  get.rest();
  reply.started_ = false;
  reply.rereads_ = true;
  reply.partial_.total_length = length;
  give_large();
  advance();
  return false;
}

void ReplyQueue::on_large_done(Reply& reply, rpc::LargeGet& get) {
  Result result = get.result();
  --holding_;
  if (get.restarts() > 0 || reply.rereads_) ask_again_behind(reply, get.key());
  reply.started_ = false;
  reply.stash_.clear();
  const auto kept = std::move(reply.large_);  // keeps the key valid after the reply is gone
  if (result.code == ResultCode::kHit) {
    if (reply.partial_.code == ResultCode::kHit) keep_first_metadata(reply.partial_, result);
    Lender lender{.hold = kept->take_hold(), .memory = kept->take_copied(), .loan = kept->take_loan()};
    lender.is_large = !lender.loan;
    send_value(reply, kept->key(), result, std::move(lender));
    if (!output_.has_large()) {  // dropped or empty: nothing will be sent, so on_sent() will not start the next one
      give_large();
      advance();
    }
  } else {
    reply.key = kept->key();
    if (result.code >= ResultCode::kTooLarge) pool_.figures_.errors.add();
    write_no_value(reply, result);
    give_large();
    answered(reply);
  }
}

}  // namespace egret::proxy
