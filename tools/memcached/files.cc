#include "memcached/files.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

#include <unistd.h>

namespace egret::memcached {

namespace {

bool write_whole(const std::string& path, const std::string& temporary, const std::string& text) {
  std::ofstream file(temporary, std::ios::trunc);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  std::fprintf(stderr, "Could not write %s: %s\n", path.c_str(), std::strerror(errno));
  return false;
}

pid_t pid_in(const std::string& path) {
  pid_t pid = 0;
  std::ifstream(path) >> pid;
  return pid;
}

}  // namespace

void write_port_file(const std::string& path, const std::vector<std::string>& listening) {
  std::string text;
  for (const std::string& address : listening) {
    const std::string kind = address.substr(0, address.find(':'));
    if (kind != "tcp" && kind != "tcp6") continue;
    text.append("TCP ")
        .append(kind == "tcp" ? "INET" : "INET6")
        .append(": ")
        .append(address.substr(address.rfind(':') + 1))
        .append("\n");
  }
  write_whole(path, path + ".lck", text);
}

void PidFile::write(const std::string& path) {
  if (const pid_t other = pid_in(path); other > 0 && other != ::getpid() && ::kill(other, 0) == 0) {
    std::fprintf(stderr, "WARNING: The pid file contained the following (running) pid: %d\n", other);
  }
  if (write_whole(path, path + ".tmp", std::to_string(::getpid()) + "\n")) path_ = path;
}

PidFile::~PidFile() {
  if (!path_.empty() && pid_in(path_) == ::getpid()) ::unlink(path_.c_str());
}

}  // namespace egret::memcached
