// The listening host: one step after another, the same for the nodes of all hosts.
#include <algorithm>

#include "bench_paradigms/session/hosts.h"

namespace egret::bench_paradigms {

using base::Expected;
using base::Status;

namespace {

constexpr double kGoodbyePatienceS = 10;

const Brought* first_failed(const std::vector<Brought>& brought) {
  const auto found =
      std::find_if(brought.begin(), brought.end(), [](const Brought& each) { return !each.error.empty(); });
  return found == brought.end() ? nullptr : &*found;
}

}  // namespace

struct Leader::Stepping {
  Step step;
  const Plan& plan;
  std::vector<Brought> brought;   // by node
  std::vector<bool> has_done;     // by other host
  std::vector<uint64_t> arrived;  // by other host: phases
};

Leader::Leader(std::vector<Neighbour> others, std::vector<HostInfo> hosts, const Capabilities& capabilities,
               Surroundings surroundings)
    : others_(std::move(others)),
      hosts_(std::move(hosts)),
      capabilities_(capabilities),
      surroundings_(std::move(surroundings)) {}

Expected<std::unique_ptr<Leader>> Leader::make(std::vector<Neighbour> others, std::vector<HostInfo> hosts,
                                               const Capabilities& capabilities, Surroundings surroundings) {
  std::unique_ptr<Leader> leader(
      new Leader(std::move(others), std::move(hosts), capabilities, std::move(surroundings)));
  for (uint32_t i = 0; i < leader->others_.size(); ++i) {
    const Welcome welcome{i + 1, leader->hosts_, capabilities};
    if (Status sent = leader->others_[i].send(FrameType::kWelcome, to_body(welcome)); !sent) return sent;
  }
  return leader;
}

Status Leader::tell_all(FrameType type, std::string_view body) {
  for (Neighbour& other : others_) {
    if (Status sent = other.send(type, body); !sent) return sent;
  }
  return Status::ok();
}

Expected<RunResult> Leader::run(const Order& order, NodeWork& work) {
  if (Status good = check_order(order); !good) return good;
  const auto connecting = static_cast<uint32_t>(others_.size());
  if (order.plan.clients < connecting) return Status::error("there are fewer clients than hosts for them");
  const Paradigm* const paradigm = surroundings_.find(order.paradigm);
  if (paradigm == nullptr) return Status::error("there is no paradigm '" + order.paradigm + "'");
  if (const std::string why = why_not(*paradigm, capabilities_, order.plan); !why.empty()) return RunResult{why, {}};
  const bench::Keyspace keys(order.keys, order.plan.key_bytes);
  Plan plan = order.plan;
  plan.keys = &keys;
  // All hosts are interrupted at once, as by Ctrl-C: others may be gone before this one looks.
  const auto failed = [this](const Status& why) {
    return surroundings_.stop->load() ? Status::error("interrupted") : why;
  };
  if (Status told = tell_all(FrameType::kOrder, to_body(order)); !told) return failed(told);
  Crew crew({*paradigm, order, plan, capabilities_, surroundings_.make_fabric, work}, nodes_of(plan, 0, connecting));
  auto result = take_steps(crew, plan);
  if (!result) return failed(result.status());
  return result;
}

// What one node cannot do none does: the run is over for all, and is not available.
Expected<RunResult> Leader::take_steps(Crew& crew, const Plan& plan) {
  RunResult result;
  std::vector<Brought> brought;
  for (const Step each : {Step::kPrepare, Step::kJoin, Step::kLoad, Step::kWork}) {
    StepOrder order{each, {}};
    if (each == Step::kJoin) order.nodes = std::move(brought);
    auto done = step(crew, plan, std::move(order));
    if (!done) return done.status();
    brought = std::move(done.value());
    if (const Brought* failed = first_failed(brought); failed != nullptr) {
      result.not_available = failed->error;
      break;
    }
    if (each != Step::kPrepare) continue;
    if (Status good = check_prepared(brought, plan); !good) return good;
  }
  if (result.not_available.empty()) {
    for (Brought& node : brought) result.figures.push_back(std::move(node.figures));
  }
  auto ended = step(crew, plan, {Step::kEnd, {}});
  if (!ended) return ended.status();
  return result;
}

Expected<std::vector<Brought>> Leader::step(Crew& crew, const Plan& plan, StepOrder order) {
  if (Status told = tell_all(FrameType::kStep, to_body(order)); !told) return told;
  Stepping stepping{order.step, plan, std::vector<Brought>(plan.nodes()), std::vector<bool>(others_.size()),
                    std::vector<uint64_t>(others_.size())};
  crew.begin(order.step, std::move(order.nodes));
  const auto is_missing = [&] {
    return !crew.is_done() ||
           std::find(stepping.has_done.begin(), stepping.has_done.end(), false) != stepping.has_done.end();
  };
  while (is_missing()) {
    for (size_t other = 0; other < others_.size(); ++other) {
      if (Status heard = listen_to(other, stepping); !heard) return heard;
    }
    if (order.step == Step::kWork) {
      if (Status opened = open_phases(crew, stepping); !opened) return opened;
    }
    if (surroundings_.stop->load()) return Status::error("interrupted");
    bench_verbs::pause_briefly();
  }
  for (Brought& own : crew.take()) stepping.brought[own.node] = std::move(own);
  return std::move(stepping.brought);
}

Status Leader::listen_to(size_t other, Stepping& stepping) {
  auto frame = others_[other].poll();
  if (!frame) return frame.status();
  if (!frame.value()) return Status::ok();
  const Frame& found = *frame.value();
  if (found.type == FrameType::kArrived) {
    FieldReader fields(found.body);
    stepping.arrived[other] = fields.get<uint64_t>();
    return fields.is_done() ? Status::ok() : Status::error("the other side sends nonsense");
  }
  if (found.type != FrameType::kDone) return Status::error("the other side sends something else than was asked for");
  auto done = read_done(found.body);
  if (!done) return done.status();
  const auto host = static_cast<uint32_t>(other + 1);
  const std::vector<NodeId> nodes = nodes_of(stepping.plan, host, static_cast<uint32_t>(others_.size()));
  std::vector<Brought>& brought = done.value().nodes;
  bool is_right = done.value().step == stepping.step && !stepping.has_done[other] && brought.size() == nodes.size();
  for (size_t i = 0; is_right && i < nodes.size(); ++i) is_right = brought[i].node == nodes[i];
  if (!is_right) return Status::error("the other side has done something else than was asked for");
  for (Brought& each : brought) stepping.brought[each.node] = std::move(each);
  stepping.has_done[other] = true;
  return Status::ok();
}

Status Leader::open_phases(Crew& crew, Stepping& stepping) {
  uint64_t arrived = crew.phases().arrived();
  for (const uint64_t each : stepping.arrived) arrived = std::min(arrived, each);
  if (arrived == Phases::kLeft || arrived <= crew.phases().opened()) return Status::ok();
  crew.phases().open(arrived);
  return tell_all(FrameType::kOpen, FieldWriter().put(arrived).take());
}

Status Leader::end(const std::string& report) {
  if (Status told = tell_all(FrameType::kReport, report); !told) return told;
  for (Neighbour& other : others_) {
    // What was sent has been read, and the connection may end.
    auto goodbye = wait_for(other, FrameType::kGoodbye, kGoodbyePatienceS, surroundings_.stop);
    if (!goodbye) return goodbye.status();
  }
  return Status::ok();
}

}  // namespace egret::bench_paradigms
