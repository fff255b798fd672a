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
  const auto of = [&row](const char* key) { return row.at(key).get<double>(); };
  return Figures{{kCpu.key, of("client_cpu_us_per_get") + of("server_cpu_us_per_get")},
                 {kThroughput.key, of("gets_per_s")},
                 {kP50.key, of("p50_us")},
                 {kP99.key, of("p99_us")}};
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
  // But for the client's last word, "quit".
  const bool by_slots_alone = served.find(" ops by slots, 1 commands over the connection") != std::string::npos &&
                              served.find(" 0 ops by slots") == std::string::npos;
  if (!server.preloader.empty() && !by_slots_alone)
    return Status::error("slots have not served libmemcached: " + served);
  return figures;
}

}  // namespace egret::bench_compare
