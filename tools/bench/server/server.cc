#include "bench/server/server.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/client/text_client.h"
#include "bench/monotonic.h"

namespace egret::bench {
namespace {

using base::Expected;
using base::Status;

constexpr uint64_t kStartTimeoutNs = 60 * kNsPerSecond;  // a backend populates all its memory before it serves
constexpr double kVersionTimeoutS = 2;
constexpr rlim_t kMemcachedConnections = 16384;
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
  return server.name + " does not serve: " + status.message() + logs_of(server);
}

// Waits until it answers, for at most kStartTimeoutNs; an error if one of its processes ends.
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

// A Server with a temporary folder and a free address.
Expected<Server> prepare(std::string name, SocketKind socket_kind) {
  Server server;
  server.name = std::move(name);
  auto folder = TemporaryFolder::make();
  if (!folder) return folder.status();
  server.folders.push_back(std::move(folder.value()));
  const std::string& path = server.folders.back().path();
  if (socket_kind == SocketKind::kUnix) {
    ::chmod(path.c_str(), 0777);  // a memcached that was started by root makes its socket as nobody
    server.address = Address{"", "", path + "/socket"};
    return server;
  }
  auto port = ReservedPort::reserve();
  if (!port) return port.status();
  server.address = Address{"127.0.0.1", std::to_string(port.value().number()), ""};
  server.ports.push_back(std::move(port.value()));
  return server;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string program_name(const std::vector<std::string>& words) {
  return std::filesystem::path(words[0]).filename().string();
}

// As an ordinary user, memcached does not start if -c exceeds the limit of open files.
std::string memcached_connections() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return std::to_string(known ? std::min(limit.rlim_max, kMemcachedConnections) : kMemcachedConnections);
}

// twemproxy's form of an address, for listening and for its servers.
std::string twemproxy_address(const Address& address) {
  return address.path.empty() ? address.to_string() : address.path;
}

// Connects to the server at the start and keeps the connection; requests have no timeout.
std::string twemproxy_conf(const Address& listen, const Address& server) {
  const std::string mode = listen.path.empty() ? "" : " 0777";
  return "bench:\n  listen: " + twemproxy_address(listen) + mode +
         "\n  hash: fnv1a_64\n  distribution: ketama\n  auto_eject_hosts: false\n  preconnect: true\n"
         "  backlog: 1024\n  servers:\n   - " +
         twemproxy_address(server) + ":1 behind\n";
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

std::string logs_of(Server& server) {
  std::string logs;
  for (ChildProcess& child : server.children) {
    logs += child.has_ended() ? "\n  ended; its log: " : "\n  runs; its log: ";
    logs += log_tail(child.log_path());
  }
  return logs;
}

uint64_t Server::memory_limit_bytes() const {
  return read_stat(address, "limit_maxbytes");
}

std::string Server::version() const {
  const auto answer = exchange(address, "version\r\n", "\r\n", kVersionTimeoutS);
  constexpr std::string_view kWord = "VERSION ";
  if (!answer || !answer.value().starts_with(kWord)) return "";
  return answer.value().substr(kWord.size(), answer.value().size() - kWord.size() - 2);
}

bool is_installed(const std::string& command) {
  const auto words = words_of(command);
  if (words.empty()) return false;
  if (words[0].find('/') != std::string::npos) return ::access(words[0].c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((std::filesystem::path(folder) / words[0]).c_str(), X_OK) == 0) return true;
  }
  return false;
}

Expected<Server> start_memcached(const std::string& command, uint64_t memory_mib, SocketKind socket_kind,
                                 const FarHost* far) {
  std::vector<std::string> arguments = words_of(command);
  if (arguments.empty()) return Status::error("no command for memcached");
  auto server = prepare(program_name(arguments), socket_kind);
  if (!server) return server;
  server.value().keeps_nothing = true;
  Address& address = server.value().address;
  if (far != nullptr) address.host = far->address();
  if (socket_kind == SocketKind::kUnix) {
    arguments.insert(arguments.end(), {"-s", address.path, "-a", "0777"});
  } else {
    arguments.insert(arguments.end(), {"-l", address.host, "-p", address.port, "-U", "0"});
  }
  arguments.insert(arguments.end(), {"-c", memcached_connections()});
  if (::geteuid() == 0) arguments.insert(arguments.end(), {"-u", "nobody"});
  if (memory_mib != 0) arguments.insert(arguments.end(), {"-m", std::to_string(memory_mib)});
  if (far != nullptr) arguments = far->on_far(std::move(arguments));
  if (Status status = add_child(server.value(), arguments, server.value().folders[0].path() + "/log"); !status)
    return status;
  if (Status status = wait_for(server.value()); !status) return status;
  return server;
}

Expected<Server> start_twemproxy(const std::string& command, const std::string& memcached, uint64_t memory_mib,
                                 SocketKind socket_kind, const FarHost* far) {
  std::vector<std::string> arguments = words_of(command);
  if (arguments.empty()) return Status::error("no command for twemproxy");
  auto started = start_memcached(memcached, memory_mib, socket_kind, far);
  auto prepared = prepare(program_name(arguments), socket_kind);
  auto stats_port = ReservedPort::reserve();
  if (!started) return started;
  if (!prepared) return prepared;
  if (!stats_port) return stats_port.status();
  Server server = std::move(started.value());
  const std::string conf = twemproxy_conf(prepared.value().address, server.address);
  server.name = prepared.value().name;
  server.address = prepared.value().address;
  server.folders.push_back(std::move(prepared.value().folders[0]));
  for (ReservedPort& port : prepared.value().ports) server.ports.push_back(std::move(port));
  server.ports.push_back(std::move(stats_port.value()));
  const std::string& folder = server.folders.back().path();
  std::ofstream(folder + "/conf.yml") << conf;
  arguments.insert(arguments.end(),
                   {"-c", folder + "/conf.yml", "-v", "0", "-o", folder + "/log", "-p", folder + "/pid", "-a",
                    "127.0.0.1", "-s", std::to_string(stats_port.value().number())});
  if (Status status = add_child(server, arguments, folder + "/output"); !status) return status;
  if (Status status = wait_for(server); !status) return status;
  return server;
}

namespace {
Status add_backend(Server& server, const EgretFiles& files, const std::string& meeting) {
  auto backend = with_settings({files.binaries + "/egret-backend", "--config", find_conf(files) + "/egret-backend.yaml",
                                "--set", "listen=" + meeting},
                               files.backend_set);
  if (files.far != nullptr) backend = files.far->on_far(std::move(backend));
  return add_child(server, backend, server.folders[0].path() + "/backend.log");
}
}  // namespace

Expected<Server> start_backend(const EgretFiles& files, std::string& meeting) {
  auto prepared = prepare("Egret", SocketKind::kTcp);
  if (!prepared) return prepared;
  Server& server = prepared.value();
  if (files.far != nullptr) meeting = "tcp:" + files.far->address() + ":" + server.address.port;
  if (meeting == "tcp") meeting = "tcp:" + server.address.to_string();
  if (meeting.empty() || meeting == "shm") meeting = "shm:" + server.folders[0].path() + "/backend.sock";
  if (Status status = add_backend(server, files, meeting); !status) return status;
  return prepared;
}

Status restart_backend(Server& backend, const EgretFiles& files, const std::string& meeting) {
  backend.children[0].signal(SIGKILL);
  backend.children.clear();
  backend.pids.clear();
  return add_backend(backend, files, meeting);
}

Expected<Server> start_egret(const EgretFiles& files, SocketKind socket_kind) {
  std::string meeting;
  auto prepared = start_backend(files, meeting);
  if (!prepared) return prepared;
  Server& server = prepared.value();
  const std::string& folder = server.folders[0].path();
  const std::string tcp = "tcp:" + server.address.to_string();
  const Address socket{"", "", folder + "/proxy.sock"};
  if (socket_kind == SocketKind::kUnix) server.address = socket;
  const auto proxy =
      with_settings({files.binaries + "/egret-proxy", "--config", find_conf(files) + "/egret-proxy.yaml", "--set",
                     "listen=" + tcp + "," + socket.to_string(), "--set", "backends=" + meeting},
                    files.proxy_set);
  server.preloader = files.binaries + "/egret-run";
  if (Status status = add_child(server, proxy, folder + "/proxy.log"); !status) return status;
  if (Status status = wait_for(server); !status) return status;
  return prepared;
}

}  // namespace egret::bench
