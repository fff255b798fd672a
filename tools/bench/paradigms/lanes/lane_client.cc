#include "bench_paradigms/lanes/lane_client.h"

#include <algorithm>

#include "bench_paradigms/lanes/lane_server.h"
#include "bench_paradigms/notice.h"

namespace egret::bench_paradigms {

using base::Status;
using op::ResultCode;
using rpc::ClientSession;

namespace {

// What the session that connects next is given: sessions connect by a plain function.
thread_local std::unique_ptr<FabricClientEnd> g_joined;

base::Expected<std::unique_ptr<transport::ClientEndpoint>> take_joined(const std::string& /*address*/,
                                                                       const transport::ConnectOptions& /*options*/) {
  if (g_joined == nullptr) return Status::error("the server is gone");
  return std::unique_ptr<transport::ClientEndpoint>(std::move(g_joined));
}

op::OpCode code_of(OpKind kind) {
  if (kind == OpKind::kGet) return op::OpCode::kGet;
  return kind == OpKind::kPut ? op::OpCode::kSet : op::OpCode::kDelete;
}

Outcome outcome_of(ResultCode code) {
  switch (code) {
    case ResultCode::kHit:
      return Outcome::kHit;
    case ResultCode::kMiss:
      return Outcome::kMiss;
    case ResultCode::kStored:
    case ResultCode::kDeleted:
      return Outcome::kDone;
    case ResultCode::kOutOfMemory:
      return Outcome::kFull;
    case ResultCode::kTimedOut:
      return Outcome::kLost;
    default:
      return Outcome::kFailed;
  }
}

}  // namespace

LaneClient::LaneClient(const Plan& plan, NodeId self, Fabric& fabric, const LaneShape& shape)
    : plan_(plan),
      self_(self),
      fabric_(fabric),
      clock_(clock_of(plan)),
      shape_(shape),
      places_(plan.tuning.is_synchronous ? 1 : plan.window) {
  for (Place& each : places_) {
    each.client = this;
    each.value.reserve(plan.value_bytes);
    free_.push_back(&each);
  }
  ready_.reserve(places_.size());
  again_.reserve(places_.size());
}

Status LaneClient::prepare() {
  if (Status good = shape_.check(); !good) return good;
  rpc::SessionObserver& observer = *this;
  for (NodeId server = 0; server < plan_.servers; ++server) {
    ends_.push_back(std::make_unique<FabricClientEnd>(fabric_, shape_.end()));
    if (Status made = ends_.back()->make_ready(); !made) return made;
    rpc::SessionOptions options;
    options.worker_id = self_;
    options.window = shape_.layout.window;
    options.fetch.max_refetches = plan_.tuning.hybrid_vain;
    sessions_.push_back(std::make_unique<ClientSession>(options, clock_, observer, take_joined));
  }
  return Status::ok();
}

std::string LaneClient::notice(NodeId to) {
  return plan_.is_server(to) ? to_notice(ends_[to]->told()) : std::string();
}

// `notice`: the keys of the server's memories and its grant. The session is opened here: it waits for no further message,
// since the end has the grant to give it.
Status LaneClient::join(NodeId from, const NodeAddress& address, std::string_view notice) {
  if (!plan_.is_server(from)) return Status::ok();
  ServerTold told;
  const std::string_view grant = notice.substr(std::min(notice.size(), sizeof told));
  if (!read_notice(notice.substr(0, notice.size() - grant.size()), told)) return Status::error(kStrangeNotice);
  if (Status joined = ends_[from]->join(address, told, grant); !joined) return joined;
  g_joined = std::move(ends_[from]);
  ClientSession& session = *sessions_[from];
  session.start();
  if (session.state() == ClientSession::State::kHandshaking) session.on_control_ready();
  return session.is_open() ? Status::ok() : Status::error("no session: " + why_lost_);
}

bool LaneClient::append(Place& place, OpKind kind, std::string_view value) {
  op::Op op;
  op.code = code_of(kind);
  op.key = plan_.keys->key(place.key_number);
  op.value = value;
  return sessions_[place.server]->lanes()[0].append(op, &place);
}

bool LaneClient::begin(const Op& op) {
  if (op.kind == OpKind::kNext || free_.empty()) return false;
  Place& place = *free_.back();
  place.server = partition_of(plan_, op.key);
  place.ticket = op.ticket;
  place.key_number = op.key_number;
  if (!sessions_[place.server]->is_open()) {
    place.outcome = Outcome::kFailed;
    ready_.push_back(&place);
  } else if (!append(place, op.kind, op.value)) {
    return false;
  }
  free_.pop_back();
  return true;
}

uint32_t LaneClient::poll(std::span<Result> out) {
  out_ = out;
  given_ = 0;
  give_ready();
  ask_again();
  const uint64_t now = clock_.now_ns();
  const bool is_tick = now - ticked_ns_ >= ClientSession::kTickNs;
  const bool is_alive = now - alive_ns_ >= transport::kKeepAliveNs;
  if (is_tick) ticked_ns_ = now;
  if (is_alive) alive_ns_ = now;
  for (const auto& each : sessions_) pass(*each, is_tick, is_alive);
  out_ = {};
  return given_;
}

// A worker's pass. A session without ops is left alone.
void LaneClient::pass(ClientSession& session, bool is_tick, bool is_alive) {
  if (session.lanes().outstanding() == 0 && !session.lanes().has_open()) return;
  session.begin_pass();
  session.flush();
  session.fetch();
  if (is_tick) session.tick();
  if (is_alive) session.keep_alive();
  if (!session.is_open()) session.close(ClientSession::State::kClosed);  // there is no server to connect to again
}

void LaneClient::take(Place& place, const op::Result& result) {
  if (result.code == ResultCode::kHit && result.is_partial()) {
    ++asked_again_;
    again_.push_back(&place);
    return;
  }
  if (given_ < out_.size()) return give(place, outcome_of(result.code), result.value);
  place.outcome = outcome_of(result.code);
  place.value = result.value;  // the next pass may write over its slot
  ready_.push_back(&place);
}

void LaneClient::give(Place& place, Outcome outcome, std::string_view value) {
  out_[given_++] = {place.ticket, outcome, value};
  free_.push_back(&place);
}

void LaneClient::give_ready() {
  for (; given_ < out_.size() && !ready_.empty(); ready_.pop_back())
    give(*ready_.back(), ready_.back()->outcome, ready_.back()->value);
}

void LaneClient::ask_again() {
  std::erase_if(again_, [this](Place* place) {
    if (sessions_[place->server]->is_open()) return append(*place, OpKind::kGet, {});
    place->outcome = Outcome::kFailed;
    ready_.push_back(place);
    return true;
  });
}

Trouble LaneClient::trouble() const {
  Trouble sum{.retries = asked_again_};
  for (const auto& session : sessions_) {
    const rpc::LaneCounters counted = session->counters().sum();
    sum.retries += counted.torn.get();
    sum.vain += counted.refetches.get();
    sum.reads += counted.messages.get() - counted.replies.get();
    sum.messages += counted.messages.get();
    sum.wants += counted.wants.get();
  }
  return sum;
}

}  // namespace egret::bench_paradigms
