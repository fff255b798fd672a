// A connecting host: waits for what the listening one says, and for what its own nodes have come to.
#include "bench_paradigms/session/hosts.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

constexpr double kWelcomePatienceS = 3600;  // until all other hosts are there
constexpr const char* kNonsense = "the listening side asks for the impossible";

}  // namespace

struct Follower::Run {
  Order order;
  bench::Keyspace keys;
  Plan plan;
  std::unique_ptr<Crew> crew;
  std::optional<Step> under_way;
  Step next = Step::kPrepare;
  uint64_t announced = 0;  // phases

  explicit Run(const Order& ordered) : order(ordered), keys(ordered.keys, ordered.plan.key_bytes), plan(ordered.plan) {
    plan.keys = &keys;
  }
};

Follower::Follower(Neighbour leader, Surroundings surroundings, NodeWork& work)
    : leader_(std::move(leader)), surroundings_(std::move(surroundings)), work_(work) {}

Follower::~Follower() = default;

Expected<std::string> Follower::run() {
  auto frame = wait_for(leader_, FrameType::kWelcome, kWelcomePatienceS, surroundings_.stop);
  if (!frame) return frame.status();
  auto welcome = read_welcome(frame.value().body);
  if (!welcome) return welcome.status();
  welcome_ = std::move(welcome.value());
  leader_.trust();
  for (;;) {
    auto next = leader_.poll();
    if (!next) return next.status();
    if (next.value()) {
      if (next.value()->type == FrameType::kReport) {
        (void)leader_.send(FrameType::kGoodbye, {});  // the report has been read, whatever becomes of this
        return std::move(next.value()->body);
      }
      if (Status taken = take(*next.value()); !taken) return taken;
      continue;
    }
    if (Status told = report(); !told) return told;
    if (surroundings_.stop->load()) return Status::error("interrupted");
    bench_verbs::pause_briefly();
  }
}

Status Follower::take(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kOrder:
      return begin(frame);
    case FrameType::kStep:
      return begin_step(frame);
    case FrameType::kOpen: {
      FieldReader fields(frame.body);
      const auto phases = fields.get<uint64_t>();
      if (!fields.is_done() || run_ == nullptr) return Status::error(kNonsense);
      run_->crew->phases().open(phases);
      return Status::ok();
    }
    case FrameType::kRefused:
      return Status::error(frame.body);
    default:
      return Status::error(kNonsense);
  }
}

Status Follower::begin(const Frame& frame) {
  auto order = read_order(frame.body);
  if (!order) return order.status();
  const auto connecting = static_cast<uint32_t>(welcome_.hosts.size() - 1);
  const Paradigm* const paradigm = surroundings_.find(order.value().paradigm);
  if (paradigm == nullptr || run_ != nullptr || order.value().plan.clients < connecting)
    return Status::error(kNonsense);
  run_ = std::make_unique<Run>(order.value());
  const Making making{*paradigm, run_->order, run_->plan, welcome_.capabilities, surroundings_.make_fabric, work_};
  run_->crew = std::make_unique<Crew>(making, nodes_of(run_->plan, welcome_.host, connecting));
  return Status::ok();
}

Status Follower::begin_step(const Frame& frame) {
  auto step = read_step(frame.body);
  if (!step) return step.status();
  if (run_ == nullptr || run_->under_way) return Status::error(kNonsense);
  const Step wanted = step.value().step;
  if (wanted != run_->next && wanted != Step::kEnd) return Status::error(kNonsense);
  run_->next = static_cast<Step>(static_cast<uint8_t>(wanted) + 1);
  if (wanted == Step::kJoin) {
    if (Status good = check_prepared(step.value().nodes, run_->plan); !good) return good;
  }
  run_->under_way = wanted;
  run_->crew->begin(wanted, std::move(step.value().nodes));
  return Status::ok();
}

Status Follower::report() {
  if (run_ == nullptr || !run_->under_way) return Status::ok();
  const Step step = *run_->under_way;
  const bool is_done = run_->crew->is_done();
  const uint64_t arrived = run_->crew->phases().arrived();
  if (step == Step::kWork && arrived != run_->announced) {
    run_->announced = arrived;
    if (Status sent = leader_.send(FrameType::kArrived, FieldWriter().put(arrived).take()); !sent) return sent;
  }
  if (!is_done) return Status::ok();
  run_->under_way.reset();
  const std::string body = to_body(StepDone{step, run_->crew->take()});
  if (step == Step::kEnd) run_.reset();
  return leader_.send(FrameType::kDone, body);
}

}  // namespace egret::bench_paradigms
