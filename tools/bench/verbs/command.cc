#include "bench_verbs/command.h"

#include <algorithm>
#include <cstdio>
#include <thread>

#include <CLI/CLI.hpp>

#include "base/cpu.h"
#include "bench/client/address.h"
#include "bench_verbs/measurement.h"
#include "bench_verbs/report/nic_file.h"
#include "bench_verbs/report/report.h"
#include "bench_verbs/wake.h"

namespace egret::bench_verbs {

using base::Expected;
using base::Status;

namespace {

constexpr double kGreetingPatienceS = 10;
constexpr uint32_t kMaxThreads = 64;
constexpr uint32_t kMaxPairs = 256;  // of one client
constexpr uint32_t kMaxSize = 1 << 20;
constexpr uint32_t kMaxDepth = 256;
constexpr uint32_t kMaxClients = 64;

struct Options {
  std::string listen, connect, loop;
  std::string results = "32,64,128,256,512,1024";
  std::string nic_file;  // where the rates go for `egret-bench paradigms --nic`; empty: nowhere
  Wanted wanted;
};

void add_options(CLI::App& app, Options& options) {
  Wanted& wanted = options.wanted;
  auto* listen =
      app.add_option("--listen", options.listen, "ADDRESS:PORT of this host's RDMA device: wait, then measure");
  auto* connect = app.add_option("--connect", options.connect, "HOST:PORT of the listening one: be measured with");
  auto* loop = app.add_option("--loop", options.loop, "ADDRESS:PORT of this host: both ends here, to try it out");
  listen->excludes(connect)->excludes(loop);
  connect->excludes(loop);
  const auto measured = "What is measured (not with --connect)";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)->excludes(connect)->group(measured);
  };
  add("--clients", wanted.clients, "connecting hosts to wait for")
      ->check(CLI::Range(1u, kMaxClients))
      ->capture_default_str();
  add("--threads", wanted.threads,
      "posting threads, such as 1,2,4,8 (default: powers of 2 up to the processors, at most 8)")
      ->delimiter(',')
      ->check(CLI::Range(1u, kMaxThreads));
  add("--queue-pairs", wanted.queue_pairs, "of each thread, to each host")
      ->check(CLI::Range(1u, kMaxThreads))
      ->capture_default_str();
  add("--depth", wanted.depth, "pipelined: verbs under way on each queue pair")
      ->check(CLI::Range(2u, kMaxDepth))
      ->capture_default_str();
  add("--sizes", wanted.sizes, "payload bytes")->delimiter(',')->check(CLI::Range(1u, kMaxSize))->capture_default_str();
  add("--value-sizes", wanted.value_sizes, "Figure 8: bytes of values")
      ->delimiter(',')
      ->check(CLI::Range(1u, kMaxSize))
      ->capture_default_str();
  add("--fetch-sizes", wanted.fetch_sizes, "Figure 8: F")
      ->delimiter(',')
      ->check(CLI::Range(1u, kMaxSize))
      ->capture_default_str();
  add("--sweep", wanted.sweep,
      "queue pairs of this host, such as 1,32,512,4096 (default: 1 up to 4096; none on an emulated device); 0: none")
      ->delimiter(',')
      ->check(CLI::Range(0u, kMaxPairsOfSet));
  add("--duration", wanted.duration_s, "seconds for each cell")->check(CLI::Range(0.001, 60.0))->capture_default_str();
  add("--results", options.results, "what values your application gets: BYTES:SHARE,...; F is chosen for them")
      ->capture_default_str();
  add("--nic-file", options.nic_file, "write the rates to this file, for `egret-bench paradigms --nic FILE`");
  app.add_flag(
         "--advise", wanted.advise,
         "measure, in a minute or so, only what the options follow from, and print lines for the configuration files")
      ->excludes(connect)
      ->group(measured);
  add("--server-threads", wanted.server_threads,
      "of the backend; R is chosen for them (default: half of the processors)")
      ->check(CLI::Range(1u, 1024u));
}

// What suggestions follow from, unless the command line says otherwise.
void limit_to_advice(const CLI::App& app, Wanted& wanted) {
  if (!wanted.advise) return;
  const auto choose = [&app](const char* name, std::vector<uint32_t>& list, std::vector<uint32_t> few) {
    if (app.count(name) == 0) list = std::move(few);
  };
  choose("--sizes", wanted.sizes, {32, 256, 512, 1024, 2048, 4096, 16384});
  choose("--value-sizes", wanted.value_sizes, {32});
  choose("--fetch-sizes", wanted.fetch_sizes, {256});
  wanted.no_atomics = wanted.no_sends = "--advise";
}

void sort_unique(std::vector<uint32_t>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

// What is left open, and what cannot be.
Status complete(Options& options) {
  Wanted& wanted = options.wanted;
  if (options.listen.empty() && options.connect.empty() && options.loop.empty()) {
    return Status::error(
        "give --listen ADDRESS:PORT on one host and --connect HOST:PORT on the other, or --loop ADDRESS:PORT");
  }
  const auto cpus = static_cast<uint32_t>(base::allowed_cpus().size());
  if (wanted.threads.empty()) {
    for (uint32_t threads = 1; threads <= std::min(cpus, 8u); threads *= 2) wanted.threads.push_back(threads);
  }
  wanted.threads.push_back(1);  // latencies are those of one
  for (auto* list : {&wanted.threads, &wanted.sizes, &wanted.value_sizes, &wanted.fetch_sizes, &wanted.sweep}) {
    sort_unique(*list);
  }
  if (wanted.server_threads == 0) wanted.server_threads = std::max(cpus / 2, 1u);
  std::string complaint;
  wanted.results = parse_results(options.results, complaint);
  if (!complaint.empty()) return Status::error("--results: " + complaint);
  if (wanted.threads.back() * wanted.queue_pairs > kMaxPairs) {
    return Status::error("--threads × --queue-pairs is more than " + std::to_string(kMaxPairs));
  }
  return Status::ok();
}

Shape shape_of(const Wanted& wanted) {
  return {.queue_pairs = wanted.threads.back() * wanted.queue_pairs,
          .max_size = std::max(
              {wanted.sizes.back(), wanted.value_sizes.back() + kResultOverhead, wanted.fetch_sizes.back(), kSmall}),
          .depth = wanted.depth};
}

// --- the listening side

using Stations = std::vector<std::unique_ptr<Station>>;

Status welcome(Station& station, Request request, uint32_t client, const Shape& shape) {
  if (Status done = station.open(std::move(request.id)); !done) return done;
  if (Status done = station.create_memory(shape); !done) return done;
  if (Status done = station.control().accept(Greeting{}, 1); !done) return done;
  Message message;
  message.type = Message::Type::kWelcome;
  message.client = client;
  message.shape = shape;
  message.target_address = reinterpret_cast<uint64_t>(station.slots().target().data());
  message.target_key = station.slots().target().remote_key();
  return station.send(message);
}

// Takes requests as they come, for control and for data, until each client has all its queue pairs.
Status gather(const bench::Address& address, const Wanted& wanted, Stations& stations, const std::atomic<bool>& stop) {
  auto listener = listen(address);
  if (!listener) return listener.status();
  const Shape shape = shape_of(wanted);
  const auto missing = [&] {
    return stations.size() < wanted.clients ||
           std::any_of(stations.begin(), stations.end(), [&](auto& each) { return each->pairs() < shape.queue_pairs; });
  };
  while (missing()) {
    auto request = next_request(listener.value().get(), stop);
    if (!request) return request.status();
    const Greeting greeting = request.value().greeting;
    if (greeting.role == Greeting::Role::kControl) {
      if (stations.size() == wanted.clients) {
        rdma_reject(request.value().id.get(), nullptr, 0);
        continue;
      }
      stations.push_back(std::make_unique<Station>());
      const auto client = static_cast<uint32_t>(stations.size() - 1);
      if (Status done = welcome(*stations.back(), std::move(request.value()), client, shape); !done) return done;
      continue;
    }
    if (greeting.client >= stations.size() || stations[greeting.client]->pairs() >= shape.queue_pairs) {
      rdma_reject(request.value().id.get(), nullptr, 0);
      continue;
    }
    auto added = stations[greeting.client]->add(std::move(request.value().id));
    if (!added) return added.status();
    Greeting answer;
    answer.role = Greeting::Role::kData;
    if (Status done = added.value()->accept(answer, greeting.read_depth); !done) return done;
  }
  return Status::ok();
}

Status send_report(Station& station, const std::string& report) {
  Message message;
  for (size_t at = 0; at < report.size(); at += sizeof message.text) {
    message.type = Message::Type::kText;
    message.set_text(report.substr(at, sizeof message.text));
    if (Status sent = station.send(message); !sent) return sent;
  }
  message = {};
  message.type = Message::Type::kEnd;
  return station.send(message);
}

// What the devices say of themselves decides what is measured, where the command line leaves it open.
void settle(Wanted& wanted, bool emulated, const std::string& without_atomics) {
  if (wanted.no_atomics.empty() && !without_atomics.empty()) wanted.no_atomics = without_atomics + " has no atomics";
  if (wanted.sweep == std::vector<uint32_t>{0}) {
    wanted.no_sweep = "--sweep 0";
    wanted.sweep.clear();
  } else if (wanted.sweep.empty() && emulated) {
    wanted.no_sweep =
        "an emulated device, which has no cache of queue pairs; --sweep 1,32,512 measures it all the same";
  } else if (wanted.sweep.empty()) {
    wanted.sweep = {1, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  }
  std::erase(wanted.sweep, 0u);
}

Expected<Results> measure_with(Wanted& wanted, Stations& stations, const std::atomic<bool>& stop) {
  std::vector<Station*> all;
  std::vector<std::string> hosts = {describe(stations.front()->control().id())};
  bool emulated = is_emulated(stations.front()->control().id()->verbs);
  double wake_us = 0;
  std::string without_atomics = has_atomics(stations.front()->control().id()->verbs) ? "" : "this host's device";
  for (auto& station : stations) {
    auto hello = station->receive(Message::Type::kHello, kGreetingPatienceS);
    if (!hello) return hello.status();
    station->slots().set_peer(hello.value().target_address, hello.value().target_key);
    hosts.push_back(hello.value().words() + ", " + std::to_string(hello.value().cpus) + " processors");
    emulated = emulated || hello.value().emulated != 0;
    wake_us = std::max(wake_us, hello.value().wake_us);
    if (hello.value().atomics == 0) without_atomics = "the client's device";
    all.push_back(station.get());
  }
  hosts[0] += ", " + std::to_string(base::allowed_cpus().size()) + " processors";
  settle(wanted, emulated, without_atomics);
  std::fprintf(stderr, "egret-bench verbs: %u cells of %.3g s\n", points_of(wanted), wanted.duration_s);
  auto results = measure(
      wanted, all, [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }, stop);
  if (results) {
    results.value().hosts = hosts;
    results.value().emulated = emulated;
    results.value().wake_us = wake_us;
  }
  return results;
}

Status run_listener(const bench::Address& address, const Options& options, const std::atomic<bool>& stop) {
  Wanted wanted = options.wanted;
  Stations stations;
  if (Status done = gather(address, wanted, stations, stop); !done) return done;
  auto results = measure_with(wanted, stations, stop);
  if (!results) return results.status();
  const std::string report = to_markdown(wanted, results.value());
  std::fputs(report.c_str(), stdout);
  for (auto& station : stations) {
    if (Status sent = send_report(*station, report); !sent) return sent;
  }
  // Their goodbye: what was sent has been read, and the connection may end.
  for (auto& station : stations) (void)station->receive(kGreetingPatienceS);
  if (results.value().wrong_bytes > 0) {
    return Status::error(std::to_string(results.value().wrong_bytes) + " wrong bytes");
  }
  const uint64_t empty = empty_cells(results.value());
  if (empty > 0) return Status::error(std::to_string(empty) + " empty cells (a longer --duration?)");
  return options.nic_file.empty() ? Status::ok() : write_nic_file(options.nic_file, results.value());
}

// --- the connecting side

Status run_client(const bench::Address& address, const std::atomic<bool>& stop, bool prints) {
  Station station;
  auto control = resolve(address);
  if (!control) return control.status();
  if (Status done = station.open(std::move(control.value())); !done) return done;
  if (Status done = station.control().connect(Greeting{}); !done) return done;
  auto welcome = station.receive(Message::Type::kWelcome, kGreetingPatienceS);
  if (!welcome) return welcome.status();
  if (Status done = station.create_memory(welcome.value().shape); !done) return done;
  station.slots().set_peer(welcome.value().target_address, welcome.value().target_key);
  for (uint32_t i = 0; i < welcome.value().shape.queue_pairs; ++i) {
    auto id = resolve(address);
    if (!id) return id.status();
    auto added = station.add(std::move(id.value()));
    if (!added) return added.status();
    Greeting greeting;
    greeting.role = Greeting::Role::kData;
    greeting.client = welcome.value().client;
    greeting.index = i;
    if (Status done = added.value()->connect(greeting); !done) return done;
  }
  Message hello;
  hello.type = Message::Type::kHello;
  hello.target_address = reinterpret_cast<uint64_t>(station.slots().target().data());
  hello.target_key = station.slots().target().remote_key();
  hello.cpus = static_cast<uint32_t>(base::allowed_cpus().size());
  hello.emulated = is_emulated(station.control().id()->verbs) ? 1 : 0;
  hello.atomics = has_atomics(station.control().id()->verbs) ? 1 : 0;
  hello.wake_us = measure_wake_us();
  hello.set_text(describe(station.control().id()));
  if (Status done = station.send(hello); !done) return done;
  auto report = serve_points(station, stop);
  if (!report) return report.status();
  if (prints) std::fputs(report.value().c_str(), stdout);
  (void)station.send(Message{});  // goodbye; the report has been read, whatever becomes of this
  return Status::ok();
}

Status run_loop(const bench::Address& address, const Options& options, const std::atomic<bool>& stop) {
  const Wanted& wanted = options.wanted;
  Status listened = Status::ok();
  std::atomic<bool> ended{false};
  std::thread listener([&] {
    listened = run_listener(address, options, stop);
    ended.store(true);
  });
  std::vector<std::thread> clients;
  std::vector<Status> connected(wanted.clients, Status::ok());
  for (uint32_t i = 0; i < wanted.clients; ++i) {
    clients.emplace_back([&, i] {
      // The listener may not listen yet.
      for (int tries = 0; tries < 50 && !ended.load() && !stop.load(); ++tries) {
        connected[i] = run_client(address, stop, false);
        if (connected[i]) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    });
  }
  for (auto& client : clients) client.join();
  listener.join();
  if (!listened) return listened;
  for (Status& each : connected) {
    if (!each) return each;
  }
  return Status::ok();
}

Status run_side(const Options& options, const std::atomic<bool>& stop) {
  if (Status done = check_device(); !done) return done;
  auto address = bench::parse_address(options.listen + options.connect + options.loop);
  if (!address) return address.status();
  if (!options.listen.empty()) return run_listener(address.value(), options, stop);
  if (!options.connect.empty()) return run_client(address.value(), stop, true);
  return run_loop(address.value(), options, stop);
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  Options options;
  options.wanted.sizes = {8, 16, 32, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384};
  options.wanted.value_sizes = {32, 64, 128, 256, 512, 1024};
  options.wanted.fetch_sizes = {256, 512, 768, 1024};
  CLI::App app(
      "Measures the rates of READ, WRITE, atomics and UD SEND of two hosts, in-bound and out-bound, by threads, sizes "
      "and\n"
      "numbers of queue pairs; checks every byte, and says which options they suggest. Exit status: 0, or 1 if "
      "anything went wrong.",
      "egret-bench verbs");
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  limit_to_advice(app, options.wanted);
  Status done = complete(options);
  if (done) done = run_side(options, stop);
  if (done) return 0;
  std::fprintf(stderr, "egret-bench verbs: %s\n", done.message().c_str());
  return 1;
}

}  // namespace egret::bench_verbs
