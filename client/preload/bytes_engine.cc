#include "client/preload/bytes_engine.h"

#include <algorithm>
#include <utility>

#include "memcache/reply.h"
#include "memcache/translate.h"

namespace egret::preload {

using client::Taken;
using memcache::Command;
using memcache::CommandKind;
using memcache::Event;

namespace {

// For credit, which comes within microseconds from a backend that works: a program that has sent what needs no answer may not come
// back for long.
constexpr uint64_t kMomentNs = 1'000'000;
constexpr size_t kMostCollected = 1 << 30;  // bytes of a value: more than any item has
constexpr size_t kRoomToKeep = 1 << 20;     // of output that has been taken
constexpr size_t kTakenToDrop = 16 << 10;   // bytes that have been taken, before others

}  // namespace

void BytesEngine::put(std::string_view bytes) {
  patience_ns_ = is_holding() ? 0 : kMomentNs;
  input_.append(bytes);
  feed();
}

void BytesEngine::poll() {
  engine_.poll();
  collect();
}

void BytesEngine::collect() {
  settle();
  if (!is_holding()) [[likely]]
    return;
  patience_ns_ = 0;
  feed();
}

void BytesEngine::take(size_t bytes) {
  taken_ += bytes;
  if (taken_ < output_.size()) {
    // A program may never take all: what is moved is less than what was taken since it was moved last.
    if (taken_ < kTakenToDrop || taken_ < output_.size() / 2) return;
    output_.erase(0, std::exchange(taken_, 0));
    return;
  }
  taken_ = 0;
  output_.clear();
  if (output_.capacity() > kRoomToKeep) output_.shrink_to_fit();
}

void BytesEngine::resume() {
  aside_.clear();
  feed();
}

std::string BytesEngine::leave() {
  std::string rest = std::move(aside_) + input_.substr(used_);
  input_.clear();
  aside_.clear();
  used_ = 0;
  return rest;
}

// --- from bytes to ops

// Stops at a command that goes aside: what follows it is parsed when it is answered.
void BytesEngine::feed() {
  while (aside_.empty() && !is_over_ && submit_held()) {
    const memcache::Step step = parser_.next(std::string_view(input_).substr(used_), command_);
    begin_ = used_ + step.skipped;
    used_ += step.consumed;
    if (step.event == Event::kNeedMore) break;
    act(step.event);
  }
  input_.erase(0, used_);
  used_ = 0;
  engine_.poll();  // wakes a backend that sleeps: after noreply commands the program need not come back for an answer
  settle();
}

void BytesEngine::act(Event event) {
  switch (event) {
    case Event::kKey:
      return add_request({});
    case Event::kEndOfKeys:
      places_.push_back({.bytes = std::string(memcache::kEnd), .ends_retrieval = true});
      return;
    case Event::kCommand:
      return on_command();
    case Event::kValueBegin:
      collected_.clear();
      key_ = command_.key;  // copies: both are views of input_, which moves while the value comes
      echo_ = command_.echo;
      return;
    case Event::kValuePart:
      if (collected_.size() < kMostCollected) collected_.append(command_.value);
      return;
    case Event::kValueEnd:
      return on_value_end();
    case Event::kError:
    case Event::kClose:
      is_over_ = event == Event::kClose;
      places_.push_back({.bytes = std::string(command_.error), .voids_retrieval = true});
      return;
    case Event::kNeedMore:
      return;
  }
}

void BytesEngine::on_value_end() {
  if (!command_.terminator_ok) {
    if (!command_.noreply) answer_now(memcache::kBadDataChunk);
    return;
  }
  command_.key = key_;
  command_.echo = echo_;
  add_request(collected_);
  collected_ = {};
}

void BytesEngine::on_command() {
  const CommandKind kind = command_.kind;
  const bool is_binary = parser_.is_binary();
  if (memcache::needs_store(kind) && kind != CommandKind::kFlushAll) {
    return add_request(memcache::is_storage(kind) ? command_.value : std::string_view());
  }
  switch (kind) {
    case CommandKind::kNoop:
      return is_binary ? answer_ok() : answer_now(memcache::kMetaNoop);
    case CommandKind::kVersion:
    case CommandKind::kVerbosity:
    case CommandKind::kFlushAll: {
      const bool is_silent = command_.noreply || command_.quiet;
      return set_aside(is_silent ? AsideEnd::kNoAnswer : is_binary ? AsideEnd::kPacket : AsideEnd::kOneLine);
    }
    case CommandKind::kStats:
      return set_aside(is_binary ? AsideEnd::kPackets : AsideEnd::kReport);
    default:
      return set_aside(AsideEnd::kNever);
  }
}

void BytesEngine::set_aside(AsideEnd end) {
  aside_ = input_.substr(begin_, used_ - begin_);
  aside_end_ = end;
}

void BytesEngine::answer_ok() {
  memcache::Question question;
  memcache::ask(command_, 0, question);
  op::Result result;
  result.code = op::ResultCode::kOk;
  std::string bytes(memcache::max_answer(question, 0), '\0');
  bytes.resize(static_cast<size_t>(memcache::write_answer(bytes.data(), question, {}, result) - bytes.data()));
  places_.push_back({.bytes = std::move(bytes)});
}

void BytesEngine::add_request(std::string_view value) {
  op::Op op = memcache::to_op(command_);
  op.value = value;
  Place& place = places_.emplace_back();
  place.is_done = false;
  memcache::ask(command_, op.options, place.question);
  place.key = op.key;
  place.is_read = op.code == op::OpCode::kGet;
  place.is_retrieval = memcache::is_retrieval(command_.kind) && place.question.is_classic();
  ++ops_;
  const Taken taken = engine_.submit(op, *this, &place, kTag, false);
  if (!client::is_for_later(taken)) [[likely]]
    return on_taken(place, taken);
  held_ = {&place, op, std::string(value), engine_.clock().now_ns() + engine_.op_timeout_ns()};
  held_.op.key = place.key;
  held_.op.value = held_.value;
}

// False: there is no credit for it yet.
bool BytesEngine::submit_held() {
  if (!is_holding()) [[likely]]
    return true;
  const uint64_t begun_ns = engine_.clock().now_ns();
  const uint64_t wait_until_ns = begun_ns + std::min(patience_ns_, held_.until_ns - std::min(begun_ns, held_.until_ns));
  Taken taken{};
  do {
    taken = engine_.submit(held_.op, *this, held_.place, kTag, false);
  } while (client::is_for_later(taken) && engine_.wait_for_room(wait_until_ns));
  const uint64_t now_ns = engine_.clock().now_ns();
  patience_ns_ -= std::min(patience_ns_, now_ns - begun_ns);
  if (client::is_for_later(taken) && now_ns < held_.until_ns) return false;
  held_.value = {};
  on_taken(*std::exchange(held_.place, nullptr), taken);
  return true;
}

void BytesEngine::on_taken(Place& place, Taken taken) {
  if (taken == Taken::kYes) return;
  op::Result result;
  result.code = taken == Taken::kTooLarge ? op::ResultCode::kOutOfMemory : op::ResultCode::kNotSent;
  has_failed_ |= taken != Taken::kTooLarge;
  write(place, result);
}

// --- from results to bytes

void BytesEngine::on_answer(const client::Call& call, const op::Result& result) {
  has_failed_ |= op::has_no_answer(result.code);
  write(*static_cast<Place*>(call.context), result);
}

// The answer to the first place, as most are, goes straight to where it is received from.
void BytesEngine::write(Place& place, const op::Result& result) {
  place.is_done = true;
  if (place.is_retrieval) {
    if (const std::string_view line = memcache::retrieval_error(result); !line.empty()) {
      place.failed_retrieval = true;
      place.bytes = line;
      return;
    }
  }
  if (&place != &places_.front()) return write(place.bytes, place, result);
  const bool is_left_out = place.is_retrieval && retrieval_failed_;
  if (!is_left_out) write(place.is_retrieval ? retrieval_ : output_, place, result);
  settle();
}

void BytesEngine::write(std::string& bytes, const Place& place, const op::Result& result) const {
  const memcache::Question& question = place.question;
  const bool has_value = place.is_read && memcache::has_value(question, result);
  const size_t before = bytes.size();
  bytes.resize(before + (has_value ? memcache::max_head(question, place.key.size())
                                   : memcache::max_answer(question, place.key.size())));
  char* const at = bytes.data() + before;
  char* const end = has_value ? memcache::write_head(at, question, place.key, result, result.total_length)
                              : memcache::write_answer(at, question, place.key, result);
  bytes.resize(before + static_cast<size_t>(end - at));
  if (!has_value) return;
  bytes.append(result.value);
  for (const std::string_view piece : result.further) bytes.append(piece);
  bytes.append(memcache::tail(question));
}

// Answers that have come, in their order.
void BytesEngine::settle() {
  while (!places_.empty()) {
    const Place& place = places_.front();
    if (!place.is_done) return;
    if (place.voids_retrieval) {
      retrieval_.clear();
      retrieval_failed_ = false;
    }
    if (place.ends_retrieval) {
      output_.append(retrieval_);
      retrieval_.clear();
      if (retrieval_.capacity() > kRoomToKeep) retrieval_.shrink_to_fit();
      if (!std::exchange(retrieval_failed_, false)) output_.append(place.bytes);
    } else if (!place.is_retrieval) {
      output_.append(place.bytes);
    } else if (place.failed_retrieval) {
      if (!std::exchange(retrieval_failed_, true)) retrieval_ = place.bytes;
    } else if (!retrieval_failed_) {
      retrieval_.append(place.bytes);
    }
    places_.pop_front();
  }
}

}  // namespace egret::preload
