#include "proxy/process/process.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/log/log.h"
#include "proxy/client/handover.h"
#include "proxy/descriptors.h"
#include "proxy/doctor.h"
#include "proxy/log_events.h"

namespace egret::proxy {

using base::Status;

base::Expected<Inherited> sort_inherited(std::vector<base::InheritedFd> found) {
  Inherited sorted;
  sorted.clients = part_clients(found);
  auto sockets = check_inherited(std::move(found));
  if (!sockets) return sockets.status();
  sorted.sockets = std::move(sockets.value());
  return sorted;
}

Process::State::State(Config wanted, const base::Clock& the_clock) {
  fit_connections(wanted);
  base::log_problems(check_start(wanted));
  clock = &the_clock;
  start_ns = the_clock.now_ns();
  for (uint32_t number = 0; number < wanted.workers; ++number) workers.push_back(std::make_unique<WorkerStats>());
  config.set(std::move(wanted));
}

Process::Process(Config config, base::Reloader& reloader, std::vector<LoopPoller*> pollers)
    : state_(std::move(config), clock_),
      pollers_(std::move(pollers)),
      watchdog_(state_.workers.size()),
      frontend_(state_, workers_, watchdog_, reloader) {
  state_.tls = &tls_;
}

Status Process::load_tls(const ListenSockets& inherited) {
  const std::shared_ptr<const Config> config = state_.config.get();
  const bool inherits_tls =
      std::ranges::any_of(inherited, [](const ListenSocket& socket) { return socket.address.is_tls(); });
  if (!config->has_tls() && !inherits_tls) return Status::ok();
  TlsContext loaded = proxy::load_tls(config->tls);
  if (!loaded.is_ok()) return Status::error(std::string(loaded.option) + ": " + loaded.fault);
  tls_.install(config->tls, std::move(loaded));
  return Status::ok();
}

Status Process::start() {
  for (uint32_t number = 0; number < state_.workers.size(); ++number) {
    LoopPoller* const poller = pollers_.empty() ? nullptr : pollers_[number];
    workers_.push_back(std::make_unique<Worker>(number, clock_, state_, watchdog_, poller));
  }
  try {
    for (const auto& worker : workers_) worker->start();
  } catch (const std::system_error& problem) {
    return Status::error(std::string("cannot start a worker: ") + problem.what());
  }
  return Status::ok();
}

Status Process::run(std::vector<base::InheritedFd> clients) {
  frontend_.adopt(take_clients(std::move(clients)));
  return frontend_.run();
}

void Process::stop() {
  for (const auto& worker : workers_) worker->stop(state_.config.get()->drain_ns);
}

void Process::join() {
  for (const auto& worker : workers_) worker->join();
}

void Process::hand_over() {
  const size_t gone = state_.handover.send();
  if (gone > 0) base::log(kClientsHandedOver, "{} clients are handed over", base::field("clients", gone));
}

}  // namespace egret::proxy
