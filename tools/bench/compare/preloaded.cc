#include "bench_compare/preloaded.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/server/child_process.h"

namespace egret::bench_compare {
namespace {

using base::Expected;
using base::Status;

constexpr timespec kPoll{0, 10'000'000};

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<std::string> command_of(const bench::Server& server, const Row& row, const std::string& folder) {
  std::vector<std::string> words{"env", "EGRET_PRELOAD_LOG=" + folder + "/served"};
  if (!server.preloader.empty()) words.push_back(server.preloader);
  words.insert(words.end(),
               {std::filesystem::read_symlink("/proc/self/exe"), "client", "--libmemcached", server.address.to_string(),
                "--kind", bench_library::name_of(row.library_kind).word, "--rounds", "1", "--seconds",
                std::to_string(row.load.duration_s), "--json", folder + "/figures"});
  for (const pid_t pid : server.pids) words.insert(words.end(), {"--pids", std::to_string(pid)});
  return words;
}

Expected<Figures> read_figures(const std::string& path) {
  const auto rows = nlohmann::json::parse(text_of(path), nullptr, /*allow_exceptions=*/false);
  if (!rows.is_array() || rows.empty()) return Status::error("no figures");
  const auto& row = rows[0];
  const double cpu = row.value("client_cpu_us_per_get", 0.0) + row.value("server_cpu_us_per_get", 0.0);
  return Figures{{kCpu.key, cpu},
                 {kThroughput.key, row.value("gets_per_s", 0.0)},
                 {kP50.key, row.value("p50_us", 0.0)},
                 {kP99.key, row.value("p99_us", 0.0)}};
}

}  // namespace

Expected<Figures> measure_preloaded(const bench::Server& server, const Row& row, const std::atomic<bool>& stop) {
  const auto folder = bench::TemporaryFolder::make();
  if (!folder) return folder.status();
  const std::string& path = folder.value().path();
  auto client = bench::ChildProcess::start(command_of(server, row, path), path + "/log");
  if (!client) return client.status();
  while (!client.value().has_ended() && !stop.load()) ::nanosleep(&kPoll, nullptr);
  auto figures = read_figures(path + "/figures");
  if (!figures) return Status::error("egret-bench client has failed: " + text_of(path + "/log"));
  const std::string served = text_of(path + "/served");
  const bool by_slots =
      served.find(" ops by slots") != std::string::npos && served.find(" 0 ops by slots") == std::string::npos;
  if (!server.preloader.empty() && !by_slots) return Status::error("slots have not served libmemcached: " + served);
  return figures;
}

}  // namespace egret::bench_compare
