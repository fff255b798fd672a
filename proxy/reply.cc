#include "proxy/reply.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "memcache/reply.h"
#include "memcache/translate.h"

namespace egret::proxy {

using op::Result;
using op::ResultCode;

namespace {
constexpr size_t kMaxKeptStash = 4096;    // a rendered answer's memory is kept for the next one up to this size
constexpr size_t kMaxUnread = 64 * 1024;  // bytes that wait for the client before a further large value is put together

Result without_value(Result result) {
  result.value = {};
  return result;
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
  reply->noreply = reply->is_key = reply->started_ = reply->failed_ = false;
  reply->command = 0;
  reply->hash = 0;
  reply->text = {};
  reply->value_.reset();
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
    return;
  }
  Reply* reply = make();
  reply->state_ = Reply::State::kReady;
  reply->text = text;
  reply->command = command;
  push(reply);
}

void ReplyQueue::push_failure(std::string_view line, uint32_t command) {
  Reply* reply = make();
  reply->command = command;
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
  if (reply.is_key) return on_key_result(reply, result);
  memcache::ReplyScratch scratch;
  if (reply.text.empty()) emit(reply, memcache::reply_line(reply.kind, reply.noreply, result, scratch));
  answered(reply);
}

void ReplyQueue::on_key_result(Reply& reply, const Result& result) {
  --waiting_keys_;
  if (result.code == ResultCode::kHit) {
    if (!result.is_partial()) {
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
  if (const std::string_view line = memcache::retrieval_error(result); !line.empty()) fail_command(reply, line);
  answered(reply);
}

// The line stands for all of the retrieval that has not been sent yet, END included.
void ReplyQueue::fail_command(Reply& reply, std::string_view line) {
  reply.failed_ = true;
  reply.text = line;
}

void ReplyQueue::write_value(Reply& reply, const Result& result) {
  const uint64_t* cas = (reply.get_options & op::kWantCas) ? &result.cas : nullptr;
  const size_t bound = memcache::max_value_header(reply.key.size()) + result.value.size() + memcache::kCrLf.size();
  char* begin = nullptr;
  const bool direct = &reply == head_ && bound <= OutputQueue::kBlockSize && reply.command != failed_command_;
  if (direct) {
    begin = output_.reserve(bound);
  } else {
    reply.stash_.resize(bound);
    begin = reply.stash_.data();
  }
  char* end = memcache::write_value_header(begin, reply.key, result.client_flags,
                                           static_cast<uint32_t>(result.value.size()), cas);
  std::memcpy(end, result.value.data(), result.value.size());
  end = memcache::write_text(end + result.value.size(), memcache::kCrLf);
  if (direct) {
    output_.commit(static_cast<size_t>(end - begin));
    observer_.on_output();
  } else {
    reply.stash_.resize(static_cast<size_t>(end - begin));
  }
}

void ReplyQueue::emit(Reply& reply, std::string_view bytes) {
  if (bytes.empty()) return;
  if (&reply == head_) {
    output_.append(bytes);
    observer_.on_output();
  } else {
    reply.stash_.assign(bytes);
  }
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
  if (reply.value_ != nullptr) {
    output_.append_owned(std::move(reply.value_), reply.value_length_);
    output_.append(memcache::kCrLf);
  }
  output_.append(reply.text);
  observer_.on_output();
}

void ReplyQueue::pop() {
  Reply* done = head_;
  head_ = done->next_;
  if (head_ == nullptr) tail_ = nullptr;
  --size_;
  pool_.give(done);
}

// --- large values
// --------------------------------------------------------------------------------------------------------

void ReplyQueue::begin_large(Reply& reply, std::string_view key) {
  ++large_;
  reply.state_ = Reply::State::kLarge;
  op::Op get;
  get.code = op::OpCode::kGet;
  get.options = reply.get_options;
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
  const Result result = get.result();
  --large_;
  if (get.restarts() > 0) ask_again_behind(reply, get.key());
  reply.started_ = false;
  if (result.code == ResultCode::kHit) {
    const uint64_t* cas = (reply.get_options & op::kWantCas) ? &result.cas : nullptr;
    reply.stash_.resize(memcache::max_value_header(get.key().size()));
    char* end = memcache::write_value_header(reply.stash_.data(), get.key(), result.client_flags,
                                             static_cast<uint32_t>(result.value.size()), cas);
    reply.stash_.resize(static_cast<size_t>(end - reply.stash_.data()));
    reply.value_length_ = static_cast<uint32_t>(result.value.size());
    reply.value_ = get.take_value();
  } else if (const std::string_view line = memcache::retrieval_error(result); !line.empty()) {
    fail_command(reply, line);
  }
  const uint64_t taken = std::exchange(budget_taken_, 0);
  answered(reply);  // `get` is gone afterwards
  budget_.give(taken);
}

}  // namespace egret::proxy
