#include "bench/server.h"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <unistd.h>

#include "bench/monotonic.h"
#include "bench/text_client.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr uint64_t kStartTimeoutNs = 60 * kNsPerSecond;  // a backend populates all its memory before it serves
constexpr timespec kStartPoll{0, 20'000'000};

// The end of a daemon's log, which says why it did not start.
std::string log_tail(const std::string& path) {
  const std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  constexpr size_t kTail = 2000;
  return all.size() <= kTail ? all : all.substr(all.size() - kTail);
}

std::string why_not(Server& server, const Status& status) {
  std::string message = server.name + " does not serve: " + status.message();
  for (ChildProcess& child : server.children) {
    message += child.has_ended() ? "\n  ended; its log: " : "\n  runs; its log: ";
    message += log_tail(child.log_path());
  }
  return message;
}

// Until it answers; not for longer than kStartTimeoutNs, nor when one of its processes has ended.
Status wait_for(Server& server) {
  const uint64_t give_up_ns = monotonic_ns() + kStartTimeoutNs;
  while (true) {
    Status status = check_serving(server.address);
    if (status) return status;
    bool has_ended = false;
    for (ChildProcess& child : server.children) has_ended |= child.has_ended();
    if (has_ended || monotonic_ns() >= give_up_ns) return Status::error(why_not(server, status));
    ::nanosleep(&kStartPoll, nullptr);
  }
}

Status add_child(Server& server, const std::vector<std::string>& arguments, const std::string& log) {
  auto child = ChildProcess::start(arguments, log);
  if (!child) return child.status();
  server.pids.push_back(child.value().pid());
  server.children.push_back(std::move(child.value()));
  return Status::ok();
}

// A Server with a temporary folder and a free TCP address.
Expected<Server> prepare(std::string name) {
  Server server;
  server.name = std::move(name);
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.status();
  const auto port = free_loopback_port();
  if (!port) return port.status();
  server.folders.push_back(std::move(folder.value()));
  server.address = Address{"127.0.0.1", std::to_string(port.value()), ""};
  return server;
}

std::string find_conf(const EgretFiles& files) {
  if (!files.conf.empty()) return files.conf;
  const std::filesystem::path binaries(files.binaries);
  for (const auto& candidate :
       {std::filesystem::path("conf"), binaries / "../../conf", std::filesystem::path("/etc/egret")}) {
    if (std::filesystem::exists(candidate / "egret-backend.yaml")) return candidate.string();
  }
  return "conf";
}

std::vector<std::string> with_settings(std::vector<std::string> arguments, const std::vector<std::string>& settings) {
  for (const std::string& each : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(each);
  }
  return arguments;
}

}  // namespace

uint64_t Server::memory_limit_bytes() const {
  return read_stat(address, "limit_maxbytes");
}

Expected<Server> start_memcached(const std::string& command, uint64_t memory_mib) {
  std::istringstream words(command);
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  if (arguments.empty()) return Status::error("no command for memcached");
  auto server = prepare(std::filesystem::path(arguments[0]).filename().string());
  if (!server) return server;
  arguments.insert(arguments.end(), {"-l", "127.0.0.1", "-p", server.value().address.port, "-U", "0"});
  if (::geteuid() == 0) arguments.insert(arguments.end(), {"-u", "nobody"});
  if (memory_mib != 0) arguments.insert(arguments.end(), {"-m", std::to_string(memory_mib)});
  if (Status status = add_child(server.value(), arguments, server.value().folders[0].path() + "/log"); !status)
    return status;
  if (Status status = wait_for(server.value()); !status) return status;
  return server;
}

Expected<Server> start_egret(const EgretFiles& files) {
  auto prepared = prepare("Egret");
  if (!prepared) return prepared;
  Server& server = prepared.value();
  const std::string folder = server.folders[0].path();
  const std::string conf = find_conf(files);
  const std::string meeting = "shm:" + folder + "/backend.sock";
  const auto backend = with_settings(
      {files.binaries + "/egret-backend", "--config", conf + "/egret-backend.yaml", "--set", "listen=" + meeting},
      files.backend_set);
  const auto proxy = with_settings({files.binaries + "/egret-proxy", "--config", conf + "/egret-proxy.yaml", "--set",
                                    "listen=tcp:" + server.address.to_string(), "--set", "backends=" + meeting},
                                   files.proxy_set);
  if (Status status = add_child(server, backend, folder + "/backend.log"); !status) return status;
  if (Status status = add_child(server, proxy, folder + "/proxy.log"); !status) return status;
  if (Status status = wait_for(server); !status) return status;
  return prepared;
}

}  // namespace egret::bench
