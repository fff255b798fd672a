// The files that tell others of this process: its pid, its ports. Each appears under its name when it is complete.
#pragma once

#include <string>
#include <vector>

namespace egret::memcached {

// As memcached's MEMCACHED_PORT_FILENAME: a line "TCP INET: 11211" (or INET6) for each of `listening`, which are as
// "tcp:127.0.0.1:11211", "tcp6:[::1]:11211"; others are left out. What fails is said on stderr.
void write_port_file(const std::string& path, const std::vector<std::string>& listening);

// As memcached's -P. Removed with this object, unless another process has written itself into it meanwhile.
class PidFile {
 public:
  PidFile() = default;
  ~PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

  // What fails is said on stderr.
  void write(const std::string& path);

 private:
  std::string path_;  // empty: none was written
};

}  // namespace egret::memcached
