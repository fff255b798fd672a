#include "sim_errand.h"

#include <iterator>

#include "pool_world.h"

namespace egret::sim {

using rpc::ClientSession;

namespace {
rpc::SessionOptions options_of(PoolWorld& world, const std::string& address, uint64_t serial) {
  rpc::SessionOptions options = world.scenario.session;
  options.address = address;
  options.worker_id = serial;
  options.window = world.scenario.layout.window;
  options.spin_ns = 0;
  return options;
}
}  // namespace

SimErrand::SimErrand(PoolWorld& world, const std::string& path, SimErrandOwner& owner)
    : world_(world),
      owner_(owner),
      address_(path + "#" + std::to_string(++world.sessions_made)),
      next_tick_ns_(world.clock.manual.now_ns() + world.scenario.tick_ns),
      session_(options_of(world, address_, world.sessions_made), world.clock, *this, Network::connect) {
  session_.start();
}

SimErrand::~SimErrand() {
  is_over_ = true;
  session_.close(ClientSession::State::kClosed);
}

void SimErrand::send(const op::Op& op, uint32_t partition, uint64_t tag) {
  queued_.push_back({op, std::string(op.key), std::string(op.value), partition, tag});
}

base::Status SimErrand::on_session_open(ClientSession& session) {
  is_open_ = true;
  owner_.on_errand_open(*this, session.lanes().count());
  return base::Status::ok();
}

bool SimErrand::is_asleep() const {
  if (is_told_) return true;
  if (is_over_ || world_.clock.manual.now_ns() >= next_tick_ns_) return false;
  if (world_.network.has_client_wake(address_) || world_.network.is_client_control_ready(address_)) return false;
  return !is_open_ || is_quiet_;
}

void SimErrand::step() {
  if (is_told_ || is_asleep()) return;
  if (!is_over_) session_.begin_pass();
  if (world_.network.take_client_wake(address_) && session_.is_open()) session_.on_data_ready();
  if (!is_over_ && world_.network.is_client_control_ready(address_)) session_.on_control_ready();
  if (!is_over_ && world_.clock.manual.now_ns() >= next_tick_ns_) {
    next_tick_ns_ = world_.clock.manual.now_ns() + world_.scenario.tick_ns;
    session_.tick();
  }
  if (!is_over_ && session_.is_open()) pass();
  if (!is_over_) return;
  session_.close(ClientSession::State::kClosed);
  is_told_ = true;
  owner_.on_errand_over(*this, is_ok_);
}

void SimErrand::pass() {
  bool goes_on = true;
  while (goes_on && !is_over_) {
    goes_on = false;
    while (!queued_.empty() && send_first()) goes_on = true;
    session_.flush();
    goes_on |= session_.fetch();
  }
  if (is_over_) return;
  if (queued_.empty() && asked_.empty()) return finish(true);
  is_quiet_ = session_.prepare_sleep();
}

bool SimErrand::send_first() {
  Queued& first = queued_.front();
  op::Op op = first.op;
  op.key = first.key;
  op.value = first.value;
  op.hash = op.key.empty() ? 0 : session_.lanes().hash(op.key);
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

void SimErrand::Asked::on_result(const op::Result& result) {
  SimErrand& its = *errand;
  const uint64_t number = tag;
  its.asked_.erase(self);  // this object is gone
  if (its.is_over_) return;
  if (result.code == op::ResultCode::kTimedOut || result.code == op::ResultCode::kSessionLost) return its.finish(false);
  its.owner_.on_errand_result(its, number, result);
}

void SimErrand::finish(bool is_ok) {
  if (is_over_) return;
  is_over_ = true;
  is_ok_ = is_ok;
}

}  // namespace egret::sim
