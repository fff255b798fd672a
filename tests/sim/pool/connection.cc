// A client's connection: which request comes next, how it is sent, and what becomes of it. After proxy/commands.
#include <algorithm>
#include <utility>

#include "pool/gutter/stand_in.h"
#include "pool/warm/upload_commit.h"
#include "pool_world.h"

namespace egret::sim {

using op::OpCode;
using op::Result;
using op::ResultCode;
using rpc::ClientSession;

namespace {
constexpr uint32_t kMostInline = 500;  // bytes of a value that fits every request slot
constexpr uint32_t kMostUpload = 12'000;
constexpr uint32_t kGutterTtl = 60;  // seconds

Result failure(ResultCode code) {
  Result result;
  result.code = code;
  return result;
}
}  // namespace

// A request from when it is drawn; the waiter of its ops.
struct Connection::Pending final : rpc::Waiter, rpc::LargeGetOwner, pool::FanOutOwner, pool::PullWaiter {
  Pending(Connection& of, Request& asked) : owner(of), request(asked) {}

  void on_result(const Result& result) override {
    const bool is_partial = request.kind == Kind::kGet && result.code == ResultCode::kHit && result.is_partial();
    const bool is_miss = request.kind == Kind::kGet && result.code == ResultCode::kMiss;
    if (is_miss && may_miss && !asked_again && !owner.stopped_) {
      asked_again = true;
      if (owner.worker_.pulls_.pull(key, {.session = session, .hash = op.hash}, this, false)) return;
    }
    if (!is_partial || request.answers > 0) return owner.on_answer(*this, result, asked_again);
    ++owner.worker_.world_.counters.large_gets;
    large = std::make_unique<rpc::LargeGet>(*session, op, *this);
    large->start(result);
  }
  // The same op again, by its lane.
  bool on_pulled(bool may_be_there) override {
    ++owner.worker_.world_.counters.asked_again;
    if (may_be_there && session->is_open()) return session->lanes().of(op.hash).append(op, this);
    owner.on_answer(*this, failure(may_be_there ? ResultCode::kSessionLost : ResultCode::kMiss), true);
    return true;
  }
  bool on_length(rpc::LargeGet&, uint32_t) override { return true; }
  void on_large_get(rpc::LargeGet& get) override {
    owner.worker_.world_.counters.restarted_gets += get.restarts() > 0;
    owner.on_answer(*this, get.result(), get.restarts() > 0 || asked_again);
    large.reset();
  }
  void on_fan_out(const pool::FanOut& fan_out) override {
    owner.flushing_ = false;
    owner.on_answer(*this, failure(fan_out.failure()), false);
  }

  Connection& owner;
  Request& request;
  std::string key, value;
  op::Op op;
  ClientSession* session = nullptr;
  bool may_miss = false;  // a get while values are brought: asked again when it misses
  bool asked_again = false;
  bool holds_key = false;  // ops on its key wait for its answer
  std::unique_ptr<rpc::LargeGet> large;
};

Connection::Connection(SimWorker& worker, uint32_t number) : worker_(worker), number_(number) {}

Connection::~Connection() = default;

// --- which request -------------------------------------------------------------------------------------------------

namespace {
Kind draw_kind(Rng& rng, uint32_t key, bool uploads) {
  const uint32_t what = rng.below(100);
  if (what < 2) return Kind::kFlush;
  if (is_number(key)) return what < 70 ? Kind::kArith : what < 92 ? Kind::kGet : Kind::kDelete;
  if (what < 45) return Kind::kGet;
  if (what < 72) return Kind::kSet;
  if (what < 80) return Kind::kAdd;
  if (what < 89) return uploads ? Kind::kUpload : Kind::kSet;
  return Kind::kDelete;
}
}  // namespace

std::unique_ptr<Connection::Pending> Connection::draw() {
  PoolWorld& world = worker_.world_;
  const uint32_t key = world.rng.below(world.scenario.keys);
  auto pending =
      std::make_unique<Pending>(*this, world.history.make(draw_kind(world.rng, key, world.scenario.uploads), key));
  Request& request = pending->request;
  request.proxy = worker_.proxy_number();
  op::Op& op = pending->op;
  pending->key = key_text(key);
  op.key = pending->key;
  op.client_flags = flags_of(request);
  switch (request.kind) {
    case Kind::kSet:
    case Kind::kAdd:
      op.code = OpCode::kSet;
      op.mode = request.kind == Kind::kAdd ? op::SetMode::kAdd : op::SetMode::kSet;
      request.value_length = world.rng.below(kMostInline);
      pending->value = value_of(request);
      op.value = pending->value;
      break;
    case Kind::kUpload:
      op.code = OpCode::kSet;
      request.moves = world.scenario.steps_to_change > 0 || world.scenario.gutter > 0;
      request.value_length = world.rng.between(kMostInline, kMostUpload);
      pending->value = value_of(request);
      break;
    case Kind::kDelete:
      op.code = OpCode::kDelete;
      break;
    case Kind::kArith:
      op.code = OpCode::kArith;
      op.options = op::kCreate;
      op.delta = 1;
      op.initial = initial_of(request);
      break;
    case Kind::kFlush:
      op.code = OpCode::kFlush;
      op.key = {};
      break;
    case Kind::kGet:
      op.code = OpCode::kGet;
      op.options = op::kWantCas;
      break;
  }
  --left_;
  --here_;
  return pending;
}

// --- when ----------------------------------------------------------------------------------------------------------

// A get may turn out large and be read in pieces: what is on its key comes after it. So does what is on the key of an
// upload to a backend that is not the key's owner any more.
bool Connection::must_wait(const Request& request) const {
  if (request.kind == Kind::kFlush) return unanswered_ > 0;
  return std::any_of(pending_.begin() + static_cast<ptrdiff_t>(first_unanswered_), pending_.end(),
                     [&](const auto& each) {
                       const bool holds = each->request.kind == Kind::kGet || each->holds_key;
                       return each->request.answers == 0 && holds && each->request.key == request.key;
                     });
}

bool Connection::can_go_on() const {
  if (stopped_ || waits_for_credit_ || waits_for_pull_ || flushing_) return false;
  if (upload_ != nullptr) return upload_came_ < upload_value_.size();
  if (draft_ != nullptr) return !must_wait(draft_->request) && unanswered_ < worker_.world_.scenario.depth;
  return left_ > 0 && unanswered_ < worker_.world_.scenario.depth;
}

void Connection::on_readable() {
  if (upload_ != nullptr && upload_came_ < upload_value_.size()) {
    const auto rest = static_cast<uint32_t>(upload_value_.size() - upload_came_);
    upload_came_ += worker_.world_.rng.percent(40) ? rest : worker_.world_.rng.between(1, rest);
  }
  if (here_ == 0) here_ = std::min(left_, worker_.world_.rng.between(1, worker_.world_.scenario.depth));
  go_on();
}

void Connection::resume() {
  go_on();
}

void Connection::on_credit() {
  waits_for_credit_ = false;
  go_on();
}

void Connection::go_on() {
  EGRET_CHECK(!going_on_);
  if (stopped_) return;
  going_on_ = true;
  while (!waits_for_credit_ && !waits_for_pull_ && !flushing_) {
    if (upload_ != nullptr) {
      if (!go_on_upload()) break;
      continue;
    }
    if (unanswered_ >= worker_.world_.scenario.depth) break;
    if (draft_ == nullptr) {
      if (here_ == 0) break;
      draft_ = draw();
    }
    if (must_wait(draft_->request) || !start()) break;
  }
  going_on_ = false;
}

bool Connection::waits_for(const ClientSession& session) const {
  return std::ranges::any_of(pending_, [&](const auto& each) {
    const Request& request = each->request;  // an upload whose key has moved may wait for another one
    return request.answers == 0 && request.kind != Kind::kFlush && !request.moves && each->session == &session;
  });
}

void Connection::stop() {
  stopped_ = true;
  if (upload_ != nullptr) std::exchange(upload_, nullptr)->abandon();
}

// --- how -----------------------------------------------------------------------------------------------------------

bool Connection::wait_for_credit(ClientSession& session) {
  return wait_for_credit(session.credit());
}

bool Connection::wait_for_credit(rpc::CreditQueue& queue) {
  waits_for_credit_ = true;
  queue.wait(this);
  return false;
}

// What depends on the item that is there waits for its value.
bool Connection::waits_for_pull(const pool::Route& route) {
  const Kind kind = draft_->request.kind;
  const bool needs_item = kind == Kind::kAdd || kind == Kind::kDelete || kind == Kind::kArith;
  if (!needs_item || is_pulled_ || route.tag != 0) return false;
  waits_for_pull_ = worker_.pulls_.pull(draft_->key, route, this, true);
  return waits_for_pull_;
}

bool Connection::on_pulled(bool) {
  waits_for_pull_ = false;
  is_pulled_ = true;
  list_for_resume();
  return true;
}

void Connection::list_for_resume() {
  if (std::ranges::find(worker_.resumable_, this) == worker_.resumable_.end()) worker_.resumable_.push_back(this);
}

Connection::Pending& Connection::take_draft() {
  is_pulled_ = false;
  ++unanswered_;
  pending_.push_back(std::move(draft_));
  return *pending_.back();
}

// It was never sent: no backend can be reached.
void Connection::fail_unsent(Pending& pending) {
  on_answer(pending, failure(ResultCode::kSessionLost), false);
}

bool Connection::start() {
  if (draft_->request.kind == Kind::kFlush) return start_flush();
  const pool::Route route = worker_.route(draft_->key);
  if (route.waits) {
    ++worker_.world_.counters.waited;
    return wait_for_credit(worker_.pool_.returns());
  }
  if (route.session == nullptr) {
    fail_unsent(take_draft());
    return true;
  }
  draft_->op.owner = 0;
  draft_->op.exptime = 0;
  if (route.tag != 0) {
    ++worker_.world_.counters.stood_in;
    pool::stand_in(draft_->op, route.tag, kGutterTtl);
  }
  draft_->op.hash = route.hash;
  draft_->session = route.session;
  if (draft_->request.kind == Kind::kUpload) {
    begin_upload(*route.session, route.hash);
    return true;
  }
  if (waits_for_pull(route)) return false;
  draft_->may_miss = worker_.pulls_.is_open() && route.tag == 0;
  if (!route.session->lanes().of(route.hash).append(draft_->op, draft_.get())) return wait_for_credit(*route.session);
  Pending& pending = take_draft();
  SimWorker::Known& known = worker_.known_.at(route.session);
  const uint64_t session = SimWorker::session_id(known, route.session->lanes().generation());
  worker_.world_.history.begin(pending.request, known.backend, session, ++known.places);
  return true;
}

bool Connection::start_flush() {
  if (worker_.pool_.is_anybody_returning()) return wait_for_credit(worker_.pool_.returns());
  Pending& pending = take_draft();
  flushing_ = true;
  std::vector<uint32_t> backends;
  for (const auto& session : worker_.pool_.serving()) {
    if (session->is_open()) backends.push_back(worker_.known_.at(session.get()).backend);
  }
  worker_.world_.history.begin_flush(pending.request, std::move(backends));
  ++worker_.world_.counters.flushes;
  (new pool::FanOut(worker_.pool_, pending.op, pending))->start();
  return true;
}

void Connection::begin_upload(ClientSession& session, uint64_t hash) {
  draft_->op.hash = hash;
  upload_value_ = draft_->value;
  upload_came_ = upload_sent_ = 0;
  upload_entered_ = upload_collected_ = false;
  upload_ = new rpc::LargeSet(session, draft_->op, static_cast<uint32_t>(upload_value_.size()), worker_.next_upload_++);
  ++worker_.world_.counters.uploads;
}

bool Connection::go_on_upload() {
  PoolWorld& world = worker_.world_;
  ClientSession& session = upload_->session();
  if (!upload_entered_ && !upload_->enter()) {
    if (world.rng.percent(50)) {
      upload_->wait_for_room();
      return wait_for_credit(session);
    }
    upload_collected_ = true;
    upload_->stop_waiting_for_room();
    ++world.counters.collected;
  }
  upload_entered_ = true;
  const std::string_view here = std::string_view(upload_value_).substr(upload_sent_, upload_came_ - upload_sent_);
  if (upload_collected_) {
    if (upload_came_ < upload_value_.size()) return false;
    if (!upload_->enter_whole()) return wait_for_credit(session);
  }
  upload_sent_ += upload_->send(here);
  if (upload_sent_ < upload_came_) return wait_for_credit(session);
  return upload_came_ == upload_value_.size() && commit();
}

bool Connection::commit() {
  ClientSession& session = upload_->session();
  if (upload_->failure() == ResultCode::kSessionLost) {
    std::exchange(upload_, nullptr)->abandon();
    fail_unsent(take_draft());
    return true;
  }
  const pool::Route now = worker_.route(draft_->key);
  draft_->holds_key = now.session != nullptr && now.session != &session;
  worker_.world_.counters.uploads_moved += draft_->holds_key;
  if (!pool::UploadCommit::send(worker_.pool_, *upload_, draft_.get())) return wait_for_credit(session);
  Pending& pending = take_draft();
  SimWorker::Known& known = worker_.known_.at(&session);
  const uint64_t id = SimWorker::session_id(known, session.lanes().generation());
  worker_.world_.history.begin(pending.request, known.backend, id, ++known.places);
  std::exchange(upload_, nullptr)->release();
  return true;
}

// --- what becomes of it --------------------------------------------------------------------------------------------

void Connection::on_answer(Pending& pending, const Result& result, bool restarted) {
  if (stopped_) return;
  PoolWorld& world = worker_.world_;
  const Request& request = pending.request;
  for (size_t i = first_unanswered_; i < pending_.size() && pending_[i].get() != &pending; ++i) {
    const Request& earlier = pending_[i]->request;
    const bool same_lane = earlier.key == request.key && earlier.session == request.session && earlier.began > 0;
    if (earlier.answers > 0 || request.answers > 0 || !same_lane || request.began == 0 || earlier.moves) continue;
    world.history.fail(std::string(to_string(request.kind)) + " " + std::to_string(request.id) +
                       " was answered before number " + std::to_string(earlier.id) + " of the same key");
  }
  const bool is_first = request.answers == 0;
  world.history.answer(pending.request, result, restarted);
  if (world.is_tracing()) {
    world.trace(worker_.name_ + "." + std::to_string(number_) + " " + to_string(request.kind) + " " +
                std::to_string(request.id) + " of " + pending.key + " at b" + std::to_string(request.backend) + ": " +
                op::to_string(result.code) + " " + std::string(result.value.substr(0, 12)));
  }
  if (!is_first) return;
  --unanswered_;
  while (first_unanswered_ < pending_.size() && pending_[first_unanswered_]->request.answers > 0) ++first_unanswered_;
  list_for_resume();
}

std::string Connection::describe() const {
  std::string text = std::to_string(number_) + ": left " + std::to_string(left_) + ", unanswered";
  for (size_t i = first_unanswered_; i < pending_.size(); ++i) {
    const Request& request = pending_[i]->request;
    if (request.answers == 0) text += " " + std::to_string(request.id) + " " + to_string(request.kind);
  }
  if (upload_ != nullptr) text += ", upload of " + std::to_string(draft_->request.id);
  return text + (waits_for_credit_ ? ", waits for credit" : "") + (waits_for_pull_ ? ", waits for a pull" : "") +
         (flushing_ ? ", flushing" : "");
}

}  // namespace egret::sim
