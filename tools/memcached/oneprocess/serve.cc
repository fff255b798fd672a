#include "oneprocess/serve.h"

#include <algorithm>
#include <csignal>
#include <latch>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include "backend/config.h"
#include "backend/doctor.h"
#include "backend/open_stores.h"
#include "backend/option_table.h"
#include "backend/process/process.h"
#include "base/log/log.h"
#include "base/options/options.h"
#include "base/options/reload.h"
#include "base/service/inherited.h"
#include "oneprocess/driven_partitions.h"
#include "proxy/config.h"
#include "proxy/doctor.h"
#include "proxy/option_table.h"
#include "proxy/process/process.h"
#include "store/config.h"
#include "wire/slot.h"

namespace egret::oneprocess {

using base::Expected;
using base::Status;

namespace {

constexpr const char* kStore = "local:store";  // where the workers find the store

// The options of one half of the process, and what they amount to.
template <class Config>
struct Half {
  base::OptionSources sources;
  base::Options options;
  Config config;
  std::function<Status(const base::Options&)> check;
};

template <class Config>
Expected<Half<Config>> load(std::span<const base::OptionRow> table, std::vector<std::string> arguments,
                            Expected<Config> (*resolve)(const base::Options&)) {
  auto options = base::Options::load(table, std::nullopt, arguments);
  if (!options) return options.status();
  auto config = resolve(options.value());
  if (!config) return config.status();
  return Half<Config>{.sources = {.config_file = std::nullopt, .set_arguments = std::move(arguments)},
                      .options = std::move(options.value()),
                      .config = std::move(config.value()),
                      .check = [resolve](const base::Options& checked) { return resolve(checked).status(); }};
}

Expected<backend::Config> resolve_backend(const base::Options& options) {
  return backend::resolve_config(options);
}

// How many partitions there were when items were kept in these files; 0: there are none.
uint32_t kept_partitions(const std::string& path) {
  if (path.empty()) return 0;
  uint32_t count = 0;
  while (count < wire::kMaxLanes && ::access(backend::warm_file(path, count).c_str(), F_OK) == 0) ++count;
  return count;
}

// One for each worker, if the memory is enough for so many; or as many as those of the items that were kept.
uint32_t partitions_for(uint32_t workers, const backend::Config& config) {
  const auto roomy = static_cast<uint32_t>(
      std::clamp<uint64_t>(config.memory / store::least_memory(config.item_size_max), 1, wire::kMaxLanes));
  const uint32_t kept = kept_partitions(config.warm_restart);
  return std::min(kept > 0 ? kept : workers, roomy);
}

// `arguments` say everything but the number of partitions, unless they say that, too.
Expected<Half<backend::Config>> load_backend(std::vector<std::string> arguments, uint32_t workers) {
  auto half = load(backend::option_table(), arguments, resolve_backend);
  if (!half || half.value().options.is_given("partitions")) return half;
  arguments.push_back("partitions=" + std::to_string(partitions_for(workers, half.value().config)));
  return load(backend::option_table(), std::move(arguments), resolve_backend);
}

struct Halves {
  Half<backend::Config> store;
  Half<proxy::Config> front;
};

std::string listen_addresses(const Settings& settings) {
  std::string joined = kStore;
  for (const std::string& address : settings.listen) joined.append(",").append(address);
  return joined;
}

Expected<Halves> load_halves(const Settings& settings) {
  std::vector<std::string> arguments = settings.proxy_arguments;
  arguments.push_back(std::string("backends=") + kStore);
  auto front = load(proxy::option_table(), std::move(arguments), proxy::resolve_config);
  if (!front) return front.status();
  arguments = settings.backend_arguments;
  arguments.push_back("listen=" + listen_addresses(settings));
  auto store = load_backend(std::move(arguments), front.value().config.workers);
  if (!store) return store.status();
  return Halves{.store = std::move(store.value()), .front = std::move(front.value())};
}

// SIGUSR1 stops memcached, too.
void stop_on(int signal) {
  struct sigaction action {};
  action.sa_handler = [](int) { ::kill(::getpid(), SIGTERM); };
  ::sigaction(signal, &action, nullptr);
}

class Both {
 public:
  Both(const Settings& settings, const Half<backend::Config>& store, Half<proxy::Config> front)
      : workers_(front.config.workers),
        backend_reloader_(store.sources, store.options, store.check),
        proxy_reloader_(front.sources, front.options, front.check),
        without_clients_(workers_),
        backend_(store.config, backend_reloader_, backend::Control::Process::kMore),
        front_(std::move(front.config)),
        on_ready_(settings.on_ready) {}

  Outcome serve(proxy::Inherited inherited) {
    Outcome outcome;
    if (outcome.status = backend_.open(); !outcome.status) return outcome;
    deal_partitions();
    std::vector<proxy::LoopPoller*> pollers;
    for (const auto& driven : driven_) pollers.push_back(driven.get());
    proxy_.emplace(std::move(front_), proxy_reloader_, pollers);
    proxy_->set_on_ready(on_ready_);
    if (outcome.status = proxy_->load_tls(inherited.sockets); !outcome.status) return outcome;
    outcome.status = proxy_->listen(std::move(inherited.sockets));
    outcome.cannot_listen = !outcome.status;
    if (outcome.status) outcome.status = run(std::move(inherited.clients));
    return outcome;
  }

 private:
  // Worker i owns the partitions i, i + workers, ...
  void deal_partitions() {
    const auto& partitions = backend_.partitions();
    for (uint32_t worker = 0; worker < workers_; ++worker) {
      std::vector<backend::Partition*> own;
      for (size_t number = worker; number < partitions.size(); number += workers_)
        own.push_back(partitions[number].get());
      driven_.push_back(std::make_unique<DrivenPartitions>(std::move(own), static_cast<int>(worker), without_clients_));
    }
  }

  // Workers first end with their clients; then the store's sessions end; then the partitions, in the workers' threads.
  Status run(std::vector<base::InheritedFd> clients) {
    Status stored = Status::ok();
    std::thread control([&] {
      pthread_setname_np(pthread_self(), "control");
      stored = backend_.run();
      if (!stored) ::kill(::getpid(), SIGTERM);  // it could not begin: nobody can be served
    });
    Status served = proxy_->start();
    if (served) served = proxy_->run(std::move(clients));
    proxy_->stop();
    std::vector<std::thread> ends;
    for (const auto& driven : driven_) {
      if (!served && !driven->has_begun()) ends.emplace_back([&] { driven->end(); });
    }
    without_clients_.wait();
    backend_.ask_to_stop();
    control.join();
    for (std::thread& end : ends) end.join();
    proxy_->join();
    proxy_->hand_over();
    return served ? stored : served;
  }

  const uint32_t workers_;
  base::Reloader backend_reloader_, proxy_reloader_;
  std::latch without_clients_;
  backend::Process backend_;
  std::vector<std::unique_ptr<DrivenPartitions>> driven_;
  proxy::Config front_;  // until the proxy has it
  const std::function<void(const std::string&)> on_ready_;
  std::optional<proxy::Process> proxy_;
};

}  // namespace

Expected<base::Findings> examine(const Settings& settings) {
  auto halves = load_halves(settings);
  if (!halves) return halves.status();
  auto& [store, front] = halves.value();
  std::erase(store.config.listen, kStore);  // of this process
  base::Findings findings = backend::examine(store.config);
  const base::Findings of_front = proxy::examine(front.config);
  for (const base::Finding& finding : of_front.all()) findings.add(finding);
  return findings;
}

Outcome serve(const Settings& settings) {
  const auto failed = [](Status why, bool cannot_listen = false) {
    return Outcome{.status = std::move(why), .cannot_listen = cannot_listen};
  };
  auto found = base::take_inherited();
  if (!found) return failed(found.status(), true);
  auto inherited = proxy::sort_inherited(std::move(found.value()));
  if (!inherited) return failed(inherited.status(), true);
  auto halves = load_halves(settings);
  if (!halves) return failed(halves.status());
  auto& [store, front] = halves.value();
  const proxy::Config& config = front.config;
  base::setup_logging(settings.name, base::log_level_of(config.log_level), base::log_format_of(config.log_format));
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);  // until the proxy's control thread waits for it
  stop_on(SIGUSR1);
  try {
    Both both(settings, store, std::move(front));
    return both.serve(std::move(inherited.value()));
  } catch (const std::system_error& problem) {
    return failed(Status::error(std::string("cannot start: ") + problem.what()));
  }
}

}  // namespace egret::oneprocess
