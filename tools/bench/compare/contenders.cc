#include "bench_compare/contenders.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <regex>
#include <sstream>

#include "bench_compare/rows.h"

namespace egret::bench_compare {
namespace {

using base::Expected;
using base::Status;
using bench::Server;
using bench::SocketKind;

constexpr int kVersionPolls = 200;
constexpr timespec kVersionPoll{0, 10'000'000};

// The first thing that looks like a version in what a program prints.
std::string printed_version(const std::string& program, const std::string& option) {
  auto folder = bench::TemporaryFolder::make();
  if (!folder) return "?";
  const std::string log = folder.value().path() + "/version";
  auto child = bench::ChildProcess::start({program, option}, log);
  for (int i = 0; child && !child.value().has_ended() && i < kVersionPolls; ++i) ::nanosleep(&kVersionPoll, nullptr);
  std::ostringstream text;
  text << std::ifstream(log).rdbuf();
  const std::string printed = text.str();
  std::smatch found;
  return std::regex_search(printed, found, std::regex(R"(\d+\.\d+[\w.]*)")) ? found.str() : "?";
}

std::string program_of(const std::string& command) {
  return command.substr(0, command.find(' '));
}

// Without its folder: documents name what was run, not where it was.
std::string shown(const std::string& command) {
  const size_t blank = std::min(command.find(' '), command.size());
  const size_t slash = command.rfind('/', blank);
  return slash == std::string::npos || slash > blank ? command : command.substr(slash + 1);
}

std::string not_installed(std::string_view name, const std::string& command) {
  return std::string(name) + " is left out: " + program_of(command) + " is not installed";
}

Status add_memcached(const ContenderOptions& options, uint64_t memory_mib, Contenders& contenders) {
  if (!bench::is_installed(options.memcached)) {
    contenders.left_out.push_back(not_installed(kMemcached, options.memcached));
    return Status::ok();
  }
  const auto start = [command = options.memcached, memory_mib, far = options.far](SocketKind socket_kind) {
    return bench::start_memcached(command, memory_mib, socket_kind, far);
  };
  auto server = start(SocketKind::kTcp);
  if (!server) return server.status();
  contenders.present.push_back(
      {std::string(kMemcached), server.value().version(), shown(options.memcached), /*speaks_binary=*/true, start});
  return Status::ok();
}

void add_twemproxy(const ContenderOptions& options, uint64_t memory_mib, Contenders& contenders) {
  for (const std::string* command : {&options.twemproxy, &options.memcached}) {
    if (bench::is_installed(*command)) continue;
    contenders.left_out.push_back(not_installed(kTwemproxy, *command));
    return;
  }
  contenders.present.push_back(
      {std::string(kTwemproxy), printed_version(program_of(options.twemproxy), "--version"), shown(options.twemproxy),
       /*speaks_binary=*/false, [options, memory_mib](SocketKind socket_kind) {
         return bench::start_twemproxy(options.twemproxy, options.memcached, memory_mib, socket_kind, options.far);
       }});
}

std::string egret_version(const std::string& binaries) {
  return printed_version(binaries + "/egret-proxy", "--version");
}

// With as many workers as memcached has threads.
std::string one_process_of(const std::string& binaries) {
  return binaries + "/egret-memcached -t 1";
}

void add_one_process(std::string_view name, const std::string& command, const std::string& version, uint64_t memory_mib,
                     Contenders& contenders) {
  contenders.present.push_back({std::string(name), version, shown(command), /*speaks_binary=*/true,
                                [command, memory_mib](SocketKind socket_kind) {
                                  return bench::start_memcached(command, memory_mib, socket_kind);
                                }});
}

void add_base(const ContenderOptions& options, uint64_t memory_mib, Contenders& contenders) {
  if (options.base.empty()) return;
  bench::EgretFiles files = options.egret;
  files.far = options.far;
  files.binaries = options.base;
  files.conf = options.base + "/../conf";
  std::string version = egret_version(options.base);
  if (!options.base_name.empty()) version += ", " + options.base_name;
  contenders.present.push_back({std::string(kBase), version, "", /*speaks_binary=*/true,
                                [files](SocketKind socket_kind) { return bench::start_egret(files, socket_kind); }});
  if (!options.one_process) return;
  const std::string command = one_process_of(options.base);
  if (!bench::is_installed(command)) {  // an older commit has none
    contenders.left_out.push_back(not_installed(kBaseOneProcess, command));
    return;
  }
  add_one_process(kBaseOneProcess, command, version, memory_mib, contenders);
}

}  // namespace

Expected<Contenders> find_contenders(const ContenderOptions& options) {
  Contenders contenders;
  bench::EgretFiles files = options.egret;
  files.far = options.far;
  const auto start = [files](SocketKind socket_kind) { return bench::start_egret(files, socket_kind); };
  auto server = start(SocketKind::kTcp);
  if (!server) return server.status();
  const uint64_t memory_mib = server.value().memory_limit_bytes() >> 20;
  const std::string version = egret_version(options.egret.binaries);
  contenders.present.push_back({std::string(kEgret), version, "", /*speaks_binary=*/true, start});
  if (options.one_process) {
    const std::string command = one_process_of(options.egret.binaries);
    if (!bench::is_installed(command)) return Status::error(program_of(command) + " is not there");
    add_one_process(kOneProcess, command, version, memory_mib, contenders);
  }
  add_base(options, memory_mib, contenders);
  if (Status status = add_memcached(options, memory_mib, contenders); !status) return status;
  add_twemproxy(options, memory_mib, contenders);
  return contenders;
}

}  // namespace egret::bench_compare
