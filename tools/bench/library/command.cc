#include "bench_library/command.h"

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench_library/measure.h"
#include "bench_library/side.h"

namespace egret::bench_library {

namespace {

double per_get(uint64_t ns, const Row& row) {
  return row.gets == 0 ? 0 : static_cast<double>(ns) / static_cast<double>(row.gets) / 1000;
}

double gets_per_s(const Row& row) {
  return row.wall_ns == 0 ? 0 : static_cast<double>(row.gets) * 1e9 / static_cast<double>(row.wall_ns);
}

// In us; "-": calls were not timed.
std::string quantile(const Row& row, double share) {
  if (row.kind == Kind::kProcesses) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", static_cast<double>(row.calls.quantile(share)) / 1000);
  return text.data();
}

void print(const std::vector<std::unique_ptr<Row>>& rows, bool has_pids) {
  std::printf(
      "| what | by | gets/s | p50 of a call, us | p99, us | CPU of the client a get, us | of the servers, us |\n");
  std::printf("| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
  for (const auto& row : rows) {
    const std::string servers = has_pids ? std::to_string(per_get(row->server_cpu_ns, *row)).substr(0, 5) : "-";
    std::printf("| %s | %s | %.0f | %s | %s | %.2f | %s |\n", name_of(row->kind).text, row->side->name().c_str(),
                gets_per_s(*row), quantile(*row, 0.5).c_str(), quantile(*row, 0.99).c_str(),
                per_get(row->own_cpu_ns, *row), servers.c_str());
  }
}

// What the table has, for programs. Calls of processes are not timed.
std::string to_json(const std::vector<std::unique_ptr<Row>>& rows) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json each{{"kind", name_of(row->kind).word},
                                {"by", row->side->name()},
                                {"gets_per_s", gets_per_s(*row)},
                                {"client_cpu_us_per_get", per_get(row->own_cpu_ns, *row)},
                                {"server_cpu_us_per_get", per_get(row->server_cpu_ns, *row)}};
    if (row->kind != Kind::kProcesses) {
      each["p50_us"] = static_cast<double>(row->calls.quantile(0.5)) / 1000;
      each["p99_us"] = static_cast<double>(row->calls.quantile(0.99)) / 1000;
    }
    out.push_back(std::move(each));
  }
  return out.dump(1) + "\n";
}

int fail(const std::string& why) {
  std::fprintf(stderr, "egret-bench client: %s\n", why.c_str());
  return 1;
}

struct Given {
  MeasureOptions measured;
  std::string backends, proxy, json_file;
  std::vector<std::string> sockets, libmemcached;
};

bool parse(int argc, char** argv, Given& given, int& exit_status) {
  CLI::App app(
      "The same gets by libegret, straight to the backends' slots, by memcached's protocol over sockets, and by "
      "libmemcached, in turn;\n"
      "every answer is checked. It sets keys that begin with \"client:\".",
      "egret-bench client");
  app.add_option("--backends", given.backends,
                 "backends as libegret's option: shm:PATH, rdma:HOST:PORT, tcp:HOST:PORT");
  app.add_option(
      "--proxy", given.proxy,
      "a proxy of this host, tcp:HOST:PORT or unix:PATH: by libegret as it is told there, and relayed by the proxy");
  app.add_option("--socket", given.sockets, "a server that speaks memcached's protocol: HOST:PORT or unix:PATH");
  app.add_option("--libmemcached", given.libmemcached,
                 "the same by libmemcached, if it is installed. Under egret-run slots serve it, if Egret is there");
  app.add_option("--pids", given.measured.pids, "processes whose CPU is the servers'");
  MeasureOptions& measured = given.measured;
  std::map<std::string, Kind> kinds;
  for (const KindName& each : kKindNames) kinds[each.word] = each.kind;
  app.add_option("--kind", measured.kinds, "only rows of these kinds")->transform(CLI::CheckedTransformer(kinds));
  app.add_option("--seconds", measured.seconds, "of a turn")->capture_default_str()->check(CLI::Range(0.01, 3600.0));
  app.add_option("--rounds", measured.rounds, "of turns")->capture_default_str()->check(CLI::Range(1, 1000));
  app.add_option("--keys", measured.keys, "")->capture_default_str()->check(CLI::Range(100, 10'000'000));
  app.add_option("--value", measured.value_bytes, "bytes")->capture_default_str()->check(CLI::Range(16, 4096));
  app.add_option("--json", given.json_file, "write the rows to this file, too");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  return true;
}

base::Expected<std::vector<std::unique_ptr<Side>>> sides_of(const Given& given) {
  std::vector<std::unique_ptr<Side>> sides;
  base::Status status = base::Status::ok();
  const auto add = [&](const std::string& what, base::Expected<std::unique_ptr<Side>> side) {
    if (side) return sides.push_back(std::move(side.value()));
    if (status) status = base::Status::error(what + side.message());
  };
  if (!given.backends.empty()) add("", library_side("libegret", {{"backends", given.backends}}));
  if (!given.proxy.empty()) {
    add("", library_side("libegret, told by the proxy", {{"proxy", given.proxy}}));
    add("", library_side("libegret, relayed", {{"proxy", given.proxy}, {"straight", "none"}}));
  }
  for (const std::string& address : given.sockets) add(address + ": ", socket_side(address));
  for (const std::string& address : given.libmemcached) add(address + ": ", libmemcached_side(address));
  if (!status) return status;
  return sides;
}

}  // namespace

int run(int argc, char** argv, const std::atomic<bool>& stop) {
  Given given;
  int exit_status = 0;
  if (!parse(argc, argv, given, exit_status)) return exit_status;
  const auto sides = sides_of(given);
  if (!sides) return fail(sides.message());
  if (sides.value().empty()) return fail("give --backends, --proxy, --socket, --libmemcached, or several of them");
  const auto rows = measure(sides.value(), given.measured, stop);
  if (!rows) return fail(rows.message());
  print(rows.value(), !given.measured.pids.empty());
  if (stop.load()) return fail("interrupted");
  if (given.json_file.empty()) return 0;
  std::ofstream file(given.json_file);
  file << to_json(rows.value()) << std::flush;
  return file ? 0 : fail("cannot write " + given.json_file);
}

}  // namespace egret::bench_library
