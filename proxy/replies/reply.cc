#include "proxy/replies/reply.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "memcache/reply.h"

namespace egret::proxy {

using op::Result;
using op::ResultCode;

namespace {
// What the first answer has settled already when a large value has to be asked for again.
constexpr uint16_t kOnlyOnce = op::kVivify | op::kRecache | op::kExplicitCas | op::kCompareCas;

constexpr size_t kMaxKeptStash = 4096;  // a rendered answer's memory is kept for the next one up to this size
// Bytes of a value that is copied into a block of output, with what stands before and behind it. A larger one is sent
// from where it is.
constexpr size_t kMostCopied = OutputQueue::kBlockSize - 1024;
constexpr size_t kMaxUnread = 64 * 1024;  // bytes that wait for the client before a further large value is put together

Result without_value(Result result) {
  result.value = {};
  result.further = {};
  return result;
}

// What an item says of itself before an access is what it said first, however often its value had to be asked for.
void keep_first_impression(const Result& first, Result& result) {
  result.marks = first.marks;
  result.last_access = first.last_access;
  result.ttl = first.ttl;
}
}  // namespace

// --- pool and budget
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
  reply->is_key = reply->is_read = reply->started_ = reply->failed_ = false;
  reply->command = 0;
  reply->hash = 0;
  reply->key = {};
  reply->text = {};
  reply->observed.reset();
  reply->large_.reset();
  reply->stash_.clear();
  if (reply->stash_.capacity() > kMaxKeptStash) reply->stash_.shrink_to_fit();
  free_.push_back(reply);
}

bool LargeValueBudget::take(uint64_t bytes) {
  if (used_ > 0 && used_ + bytes > limit_) return false;
  used_ += bytes;
  return true;
}

void LargeValueBudget::give(uint64_t bytes) {
  used_ -= bytes;
  // Those that still find no room queue up again.
  std::vector<ReplyQueue*> waiting;
  waiting.swap(waiting_);
  for (ReplyQueue* queue : waiting) queue->on_budget();
}

void LargeValueBudget::wait(ReplyQueue* queue) {
  waiting_.push_back(queue);
}

void LargeValueBudget::stop_waiting(const ReplyQueue* queue) {
  std::erase(waiting_, queue);
}

// --- one place
// -----------------------------------------------------------------------------------------------------------

void Reply::on_result(const Result& result) {
  if (queue_ != nullptr) return queue_->on_result(*this, result);
  pool_->give(this);
}

void Reply::on_large_get(rpc::LargeGet& get) {
  if (queue_ != nullptr) return queue_->on_large_done(*this, get);
  pool_->give(this);
}

// --- the queue
// -----------------------------------------------------------------------------------------------------------

ReplyQueue::~ReplyQueue() {
  if (waits_for_budget_) budget_.stop_waiting(this);
  for (Reply* reply = head_; reply != nullptr;) {
    Reply* next = reply->next_;
    reply->queue_ = nullptr;
    // A result that is still to come finds the place without a queue; others go back now.
    const bool awaited = reply->state_ == Reply::State::kWaiting || reply->started_;
    if (!awaited) pool_.give(reply);
    reply = next;
  }
  if (budget_taken_ > 0) budget_.give(budget_taken_);
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
  if (reply->is_key && reply->state_ == Reply::State::kWaiting) ++waiting_keys_;
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

void ReplyQueue::push_bytes(std::string_view bytes) {
  if (head_ == nullptr) {
    output_.append(bytes);
    observer_.on_output();
    return;
  }
  Reply* reply = make();
  reply->asked_ns = 0;  // it may be a piece of many
  reply->state_ = Reply::State::kReady;
  reply->stash_.assign(bytes);
  push(reply);
}

void ReplyQueue::push_answered(Reply* reply, const Result& result) {
  reply->is_key = false;
  push(reply);
  on_result(*reply, result);
}

void ReplyQueue::push_failure(std::string_view line, uint32_t command) {
  Reply* reply = make();
  reply->command = command;
  reply->asked_ns = 0;
  pool_.figures_.errors.add();
  fail_command(*reply, line);
  push(reply);
  answered(*reply);
}

bool ReplyQueue::must_wait(uint64_t hash, bool is_change) const {
  if (large_ == 0 && (!is_change || waiting_keys_ == 0)) return false;
  for (const Reply* reply = head_; reply != nullptr; reply = reply->next_) {
    if (!reply->is_key || reply->hash != hash) continue;
    if (reply->state_ == Reply::State::kLarge || (is_change && reply->state_ == Reply::State::kWaiting)) return true;
  }
  return false;
}

void ReplyQueue::on_result(Reply& reply, const Result& result) {
  if (reply.observed != nullptr) [[unlikely]]
    observer_.on_observed(*std::exchange(reply.observed, nullptr), result);
  count(reply, result.code);
  if (reply.is_key) return on_key_result(reply, result);
  if (reply.text.empty()) write_line(reply, result);
  answered(reply);
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
  if (memcache::has_value(reply.question, result)) {
    if (!result.is_partial()) {
      if (&reply == head_ && result.value.size() > kMostCopied) return send_value(reply, reply.key, result);
      write_value(reply, result);
      return answered(reply);
    }
    begin_large(reply, reply.key);
    reply.partial_ = result;
    if (&reply == head_)
      start_large(reply);
    else
      reply.partial_.value = {};  // it is read again when it is this one's turn
    return;
  }
  write_no_value(reply, result);
  answered(reply);
}

// A read that found no value, or failed.
void ReplyQueue::write_no_value(Reply& reply, const Result& result) {
  if (!reply.question.is_classic()) return write_line(reply, result);
  if (const std::string_view line = memcache::retrieval_error(result); !line.empty()) fail_command(reply, line);
}

// The line stands for all of the retrieval that has not been sent yet, END included.
void ReplyQueue::fail_command(Reply& reply, std::string_view line) {
  reply.failed_ = true;
  reply.text = line;
}

// Memory for an answer: the output's if it is this one's turn, else the reply's own. written() says how much it was.
char* ReplyQueue::room_for(Reply& reply, size_t bound) {
  const bool is_left_out = reply.command != 0 && reply.command == failed_command_;
  in_output_ = &reply == head_ && bound <= OutputQueue::kBlockSize && !is_left_out;
  if (in_output_) return room_ = output_.reserve(bound);
  reply.stash_.resize(bound);
  return room_ = reply.stash_.data();
}

void ReplyQueue::written(Reply& reply, const char* end) {
  const auto length = static_cast<size_t>(end - room_);
  if (!in_output_) return reply.stash_.resize(length);
  output_.commit(length);
  if (length > 0) observer_.on_output();
}

void ReplyQueue::write_value(Reply& reply, const Result& result) {
  const std::string_view tail = memcache::tail(reply.question);
  const size_t head = memcache::max_head(reply.question, reply.key.size());
  char* end = room_for(reply, head + result.value.size() + tail.size());
  end = memcache::write_head(end, reply.question, reply.key, result, static_cast<uint32_t>(result.value.size()));
  written(reply, memcache::write_text(memcache::write_text(end, result.value), tail));
}

// Answers the head from where the value is, which must stay there during this call. What is ready behind it goes with
// it.
void ReplyQueue::send_value(Reply& reply, std::string_view key, const Result& result) {
  char* const out = room_for(reply, memcache::max_head(reply.question, key.size()));
  written(reply, memcache::write_head(out, reply.question, key, result, result.total_length));
  if (!in_output_) return answered(reply);  // left out
  output_.lend(result.value);
  for (const std::string_view piece : result.further) output_.lend(piece);
  output_.append(memcache::tail(reply.question));
  answered(reply);
  observer_.on_lent();
  go_on();  // there may have been too much that was not sent
}

void ReplyQueue::write_line(Reply& reply, const Result& result) {
  char* const out = room_for(reply, memcache::max_answer(reply.question, reply.key.size()));
  written(reply, memcache::write_answer(out, reply.question, reply.key, result));
}

void ReplyQueue::answered(Reply& reply) {
  reply.state_ = Reply::State::kReady;
  if (&reply == head_) advance();
  observer_.on_progress();
}

// Sends everything at the head that is ready, and lets a large value at the head begin.
void ReplyQueue::advance() {
  while (head_ != nullptr && head_->state_ == Reply::State::kReady) {
    write_ready(*head_);
    pop();
  }
  go_on();
}

void ReplyQueue::write_ready(Reply& reply) {
  if (reply.command != 0 && reply.command == failed_command_) return;
  if (reply.failed_) failed_command_ = reply.command;
  output_.append(reply.stash_);
  output_.append(reply.text);
  observer_.on_output();
}

void ReplyQueue::pop() {
  Reply* done = head_;
  head_ = done->next_;
  if (head_ == nullptr) tail_ = nullptr;
  --size_;
  if (done->asked_ns != 0) pool_.figures_.duration.record(pool_.now_ns_ - done->asked_ns);
  pool_.give(done);
}

// --- large values
// --------------------------------------------------------------------------------------------------------

void ReplyQueue::begin_large(Reply& reply, std::string_view key) {
  ++large_;
  reply.state_ = Reply::State::kLarge;
  op::Op get;
  get.code = op::OpCode::kGet;
  get.options = reply.question.options & ~kOnlyOnce;
  get.exptime = reply.get_exptime;
  get.key = key;
  get.hash = reply.hash;
  reply.large_ = std::make_unique<rpc::LargeGet>(*reply.session, get, reply);
  reply.partial_ = {};
}

// A value that changed while it was put together is newer than what later gets of the same key may have been given
// already. They are asked again, so that a connection never sees a key go back in time.
void ReplyQueue::ask_again_behind(const Reply& reply, std::string_view key) {
  for (Reply* later = reply.next_; later != nullptr; later = later->next_) {
    if (!later->is_key || later->hash != reply.hash || later->state_ != Reply::State::kReady || later->failed_)
      continue;
    later->stash_.clear();
    begin_large(*later, key);
  }
}

// Only the head is put together, and only for a client that reads: so a connection holds little more than one large
// value.
void ReplyQueue::start_large(Reply& reply) {
  const Result partial = std::exchange(reply.partial_, without_value(reply.partial_));
  if (output_.size() > kMaxUnread) return;  // on_drained() goes on
  if (!budget_.take(partial.total_length)) {
    if (!waits_for_budget_) budget_.wait(this);
    waits_for_budget_ = true;
    return;
  }
  budget_taken_ = partial.total_length;
  reply.started_ = true;
  if (partial.total_length > 0) {
    reply.large_->start(partial);
  } else {
    reply.large_->start_over();
  }
}

void ReplyQueue::on_budget() {
  waits_for_budget_ = false;
  go_on();
}

void ReplyQueue::go_on() {
  if (head_ != nullptr && head_->state_ == Reply::State::kLarge && !head_->started_) start_large(*head_);
}

void ReplyQueue::on_large_done(Reply& reply, rpc::LargeGet& get) {
  Result result = get.result();
  --large_;
  if (get.restarts() > 0) ask_again_behind(reply, get.key());
  reply.started_ = false;
  const auto kept = std::move(reply.large_);  // its bytes are sent after its place has gone
  const uint64_t taken = std::exchange(budget_taken_, 0);
  if (result.code == ResultCode::kHit) {
    if (reply.partial_.code == ResultCode::kHit) keep_first_impression(reply.partial_, result);
    send_value(reply, get.key(), result);
  } else {
    reply.key = get.key();
    if (result.code >= ResultCode::kTooLarge) pool_.figures_.errors.add();
    write_no_value(reply, result);
    answered(reply);
  }
  budget_.give(taken);
}

}  // namespace egret::proxy
