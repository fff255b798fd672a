#include "proxy/client/watch.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "memcache/uri.h"
#include "op/records.h"
#include "op/stats.h"
#include "proxy/worker_context.h"

namespace egret::proxy {

namespace {

std::string eviction_text(const op::Record& record) {
  const op::RecordHead& head = record.head;
  std::string text = "type=eviction key=";
  memcache::append_uri_encoded(text, record.key);
  text.append((head.marks & op::kFetched) != 0 ? " fetch=yes" : " fetch=no");
  const int64_t ttl = head.exptime == 0 ? -1 : int64_t{head.exptime} - head.seen;
  text.append(" ttl=").append(std::to_string(ttl));
  text.append(" la=").append(std::to_string(head.seen - std::min(head.seen, head.last_access)));
  text.append(" clsid=").append(std::to_string(op::shown_class(head.size_class)));
  return text.append(" size=").append(std::to_string(head.value_length));
}

}  // namespace

std::unique_ptr<Watch> Watch::begin(WorkerContext& worker, WatchHub& hub, uint16_t streams, ReplyQueue& replies,
                                    const OutputQueue& output) {
  std::unique_ptr<Watch> watch(new Watch(worker, hub, streams, replies, output));
  if (!watch->wait_for_lines() || !hub.add(watch->watcher_)) return nullptr;
  if ((streams & memcache::kEvictions) != 0) {
    watch->timer_ = events::Event::timer<&Watch::on_timer>(worker.events, *watch, events::kPersist);
    watch->timer_.add(std::chrono::milliseconds(kPollMs));
    watch->poll_backends();
  }
  return watch;
}

Watch::Watch(WorkerContext& worker, WatchHub& hub, uint16_t streams, ReplyQueue& replies, const OutputQueue& output)
    : worker_(worker), hub_(hub), replies_(replies), output_(output), watcher_(streams) {}

bool Watch::wait_for_lines() {
  if (watcher_.wake_fd() < 0) return false;
  woken_ = events::Event::on_fd<&Watch::on_woken>(worker_.events, watcher_.wake_fd(),
                                                  events::kRead | events::kPersist | events::kEdge, *this);
  return woken_.add().is_ok();
}

Watch::~Watch() {
  hub_.remove(watcher_);
  for (EvictionPoll* const poll : polls_) {
    poll->watch = nullptr;
    if (!poll->is_asked) delete poll;
  }
}

void Watch::on_woken() {
  worker_.begin_pass();
  go_on();
}

void Watch::on_timer() {
  worker_.begin_pass();
  poll_backends();
}

void Watch::go_on() {
  std::string text;
  while (output_.may_run_ahead()) {
    text.clear();
    const bool more = watcher_.take(text, OutputQueue::kMaxAhead / 2);
    if (!text.empty()) replies_.push_bytes(text);
    if (!more) return;
  }
}

// --- Evictions

// Polls every lane that has no poll outstanding, including lanes of new sessions.
void Watch::poll_backends() {
  std::erase_if(polls_, [this](EvictionPoll* poll) {
    const bool is_over = !poll->session->is_open() || poll->session->lanes().generation() != poll->generation ||
                         worker_.pool.is_leaving(*poll->session);
    if (is_over) {
      poll->watch = nullptr;
      if (!poll->is_asked) delete poll;
    }
    return is_over;
  });
  for (const auto& session : worker_.pool.serving()) {
    if (!session->is_open()) continue;
    const auto is_of_it = [&](const EvictionPoll* poll) { return poll->session.get() == session.get(); };
    if (std::ranges::any_of(polls_, is_of_it)) continue;
    for (uint32_t lane = 0; lane < session->lanes().count(); ++lane) {
      auto* const poll = new EvictionPoll;
      poll->watch = this;
      poll->session = rpc::SessionRef(*session);
      poll->generation = session->lanes().generation();
      poll->lane = lane;
      polls_.push_back(poll);
    }
  }
  for (EvictionPoll* const poll : polls_) poll->ask();
}

// Without credit it does nothing until the next timer.
void Watch::EvictionPoll::ask() {
  if (is_asked || is_refused) return;
  op::Op op;
  op.code = op::OpCode::kIterate;
  op.group = static_cast<uint8_t>(op::RecordSource::kEvicted);
  op.version = cursor;
  is_asked = session->lanes()[lane].append(op, this);
}

void Watch::EvictionPoll::on_result(const op::Result& result) {
  is_asked = false;
  if (watch == nullptr) {
    delete this;
    return;
  }
  if (result.code == op::ResultCode::kForbidden) return watch->on_refused(*this);
  if (result.code != op::ResultCode::kOk) return;
  watch->on_evicted(result.value, result.number);
  const bool may_be_more = !result.value.empty() && result.version > cursor;
  cursor = result.version;
  if (may_be_more) ask();
}

void Watch::on_evicted(std::string_view records, uint64_t lost) {
  if (lost > 0) watcher_.skip(lost);
  for (op::Record record; op::take_record(records, record);) watcher_.offer(hub_.line_of(eviction_text(record)));
}

// A session's rights stay as they are, and are the same for each of its lanes.
void Watch::on_refused(const EvictionPoll& refused) {
  bool is_told = false;
  for (EvictionPoll* const poll : polls_) {
    if (poll->session.get() != refused.session.get()) continue;
    is_told |= std::exchange(poll->is_refused, true);
  }
  if (is_told) return;
  std::string text = "type=evictions_forbidden backend=";
  memcache::append_uri_encoded(text, worker_.pool.member_of(*refused.session.get()).member.address);
  watcher_.offer(hub_.line_of(text));
}

}  // namespace egret::proxy
