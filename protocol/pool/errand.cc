#include "pool/errand.h"

#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "wire/slot.h"

namespace egret::pool {

using base::Status;
using events::Event;
using rpc::ClientSession;

namespace {
constexpr std::chrono::microseconds kTick{ClientSession::kTickNs / 1000};
constexpr std::chrono::microseconds kAgain{50};  // a fetch over a network is under way
}  // namespace

rpc::SessionOptions Errand::options(const rpc::SessionOptions& usual, const std::string& address) {
  rpc::SessionOptions options = usual;
  options.address = address;
  options.worker_id = base::random_u64();
  options.connect.queue_pairs = 1;
  options.window = wire::kMinWindow;
  options.request_slot_size = options.response_slot_size = wire::kMinSlotSize;
  options.spin_ns = 0;
  options.fetch.mode = rpc::FetchMode::kReply;  // this thread sleeps until an answer comes
  return options;
}

Errand::Errand(events::EventLoop& loop, const base::Clock& clock, const rpc::SessionOptions& options,
               ErrandOwner& owner, ClientSession::Connect connect)
    : loop_(loop),
      owner_(owner),
      tick_(Event::timer<&Errand::on_tick>(loop, *this, events::kPersist)),
      again_(Event::timer<&Errand::pass>(loop, *this)),
      over_(Event::timer<&Errand::tell>(loop, *this)),
      session_(options, clock, *this, connect) {}

Errand::~Errand() {
  state_ = State::kOver;
  session_.close();
}

void Errand::start() {
  tick_.add(kTick);
  session_.start();
}

void Errand::send(const op::Op& op, uint32_t partition, uint64_t tag) {
  queued_.push_back({op, std::string(op.key), std::string(op.value), partition, tag});
  if (is_kept_ && state_ == State::kRunning) again_.activate();
}

void Errand::keep_open(bool is_kept) {
  is_kept_ = is_kept;
  if (state_ == State::kRunning) again_.activate();
}

// --- the session

Status Errand::on_session_connecting(ClientSession& session) {
  control_ = Event::on_fd<&Errand::on_control>(loop_, session.endpoint().control_fd(), events::kRead | events::kPersist,
                                               *this);
  return control_.add();
}

Status Errand::on_session_open(ClientSession& session) {
  if (Status watched = watch_data(session); !watched) return watched;
  state_ = State::kRunning;
  owner_.on_errand_open(*this, session.lanes().count());
  again_.activate();
  return Status::ok();
}

// The session goes by the first of its addresses again, with other descriptors. For the owner nothing has changed.
Status Errand::on_session_resized(ClientSession& session) {
  if (Status watched = on_session_connecting(session); !watched) return watched;
  again_.activate();
  return watch_data(session);
}

Status Errand::watch_data(ClientSession& session) {
  data_ = Event::on_fd<&Errand::on_data>(loop_, session.endpoint().data_fd(),
                                         events::kRead | events::kPersist | events::kEdge, *this);
  return data_.add();
}

void Errand::on_session_lost(ClientSession&, const std::string& why, bool) {
  control_.reset();
  data_.reset();
  finish(Status::error(why));
}

// The next tick tries the second of its addresses.
void Errand::on_session_falls_back(ClientSession&, const std::string&) {
  control_.reset();
  data_.reset();
}

void Errand::on_control() {
  session_.on_control_ready();
}

void Errand::on_data() {
  if (session_.is_open()) session_.on_data_ready();
  pass();
}

void Errand::on_tick() {
  if (state_ == State::kOver) return;
  session_.tick();
  if (state_ == State::kRunning) pass();
}

// --- ops and results

// Moves ops and results until nothing more can be done without waiting.
void Errand::pass() {
  if (state_ != State::kRunning) return;
  session_.begin_pass();
  bool goes_on = true;
  while (goes_on && state_ == State::kRunning) {
    goes_on = send_queued();
    session_.flush();
    goes_on |= session_.fetch();
  }
  if (state_ != State::kRunning) return;
  if (queued_.empty() && asked_.empty() && !is_kept_) return finish(Status::ok());
  if (!session_.prepare_sleep()) again_.add(kAgain);
}

// Returns whether any was sent. What finds no room waits for an answer.
bool Errand::send_queued() {
  bool any = false;
  while (!queued_.empty() && send_first()) any = true;
  return any;
}

bool Errand::send_first() {
  Queued& first = queued_.front();
  op::Op op = first.op;
  op.key = first.key;
  op.value = first.value;
  op.hash = op.key.empty() ? 0 : session_.lanes().hash(op.key);
  if (first.partition != kOfKey && first.partition >= session_.lanes().count()) {
    finish(Status::error("it has no partition " + std::to_string(first.partition)));
    return false;
  }
  rpc::ClientLane& lane = first.partition == kOfKey ? session_.lanes().of(op.hash) : session_.lanes()[first.partition];
  asked_.emplace_back();
  Asked& asked = asked_.back();
  asked.errand = this;
  asked.tag = first.tag;
  asked.self = std::prev(asked_.end());
  if (!lane.append(op, &asked)) {
    asked_.pop_back();
    return false;
  }
  queued_.pop_front();
  return true;
}

void Errand::Asked::on_result(const op::Result& result) {
  Errand& its = *errand;
  const uint64_t number = tag;
  its.asked_.erase(self);  // this object is gone
  if (its.state_ != State::kRunning) return;
  if (op::has_no_answer(result.code)) {
    return its.finish(Status::error("the backend does not answer"));
  }
  its.owner_.on_errand_result(its, number, result);
}

void Errand::finish(Status status) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  status_ = std::move(status);
  tick_.del();
  again_.del();
  over_.activate();
}

void Errand::tell() {
  session_.close();
  owner_.on_errand_over(*this, status_);  // `this` may be destroyed
}

}  // namespace egret::pool
