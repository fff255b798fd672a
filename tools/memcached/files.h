// The files with this process's pid and ports. Each is written to a temporary file and then renamed.
#pragma once

#include <string>
#include <vector>

namespace egret::memcached {

// As memcached's MEMCACHED_PORT_FILENAME: a line "TCP INET: 11211" (or INET6) for each of `listening` of the form
// "tcp:127.0.0.1:11211" or "tcp6:[::1]:11211"; others are left out. Prints errors to stderr.
void write_port_file(const std::string& path, const std::vector<std::string>& listening);

// As memcached's -P. The destructor removes the file, unless it has another process's pid by then.
class PidFile {
 public:
  PidFile() = default;
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

  // Prints errors to stderr.
  void write(const std::string& path);

 private:
  std::string path_;  // empty: none was written
};

}  // namespace egret::memcached
