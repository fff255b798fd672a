#include "sim_proxy.h"

#include <algorithm>

#include "pool_world.h"

namespace egret::sim {

SimProxy::SimProxy(PoolWorld& world, uint32_t number, const std::vector<pool::Member>& members,
                   const std::vector<pool::Member>& gutter)
    : name_("p" + std::to_string(number)), control_(world, state_, name_, workers_) {
  control_.begin(members, gutter);
  for (uint32_t i = 0; i < world.scenario.workers; ++i) {
    workers_.push_back(std::make_unique<SimWorker>(world, state_, name_, number, i));
  }
}

void SimProxy::ask_more(uint32_t requests) {
  for (const auto& worker : workers_) {
    for (const auto& each : worker->connections) each->ask_more(requests);
  }
}

bool SimProxy::is_finished() const {
  return std::ranges::all_of(workers_, [](const auto& worker) {
    return std::ranges::all_of(worker->connections, [](const auto& each) { return each->is_finished(); });
  });
}

bool SimProxy::is_settled() const {
  return !control_.is_changing() &&
         std::ranges::all_of(workers_, [](const auto& worker) { return worker->is_settled(); });
}

bool SimProxy::is_asleep() const {
  return std::ranges::all_of(workers_, [](const auto& worker) { return worker->is_asleep(); }) && control_.is_asleep();
}

uint64_t SimProxy::next_tick_ns() const {
  uint64_t next = control_.next_tick_ns();
  for (const auto& worker : workers_) next = std::min(next, worker->next_tick_ns());
  return next;
}

void SimProxy::set_op_timeout(uint64_t ns) {
  for (const auto& worker : workers_) worker->set_op_timeout(ns);
}

void SimProxy::stop() {
  for (const auto& worker : workers_) worker->stop();
}

std::string SimProxy::describe() const {
  std::string text = name_ + (control_.is_changing() ? ", members change" : "");
  for (const auto& worker : workers_) text += "\n  " + worker->describe();
  return text;
}

}  // namespace egret::sim
