// Sockets that listen at a path: an existing socket is removed only if nobody listens on it.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/service/listening.h"

using namespace egret::base;

namespace {

struct Path {
  Path() { std::filesystem::remove(name); }
  ~Path() { std::filesystem::remove(name); }
  std::string name = std::filesystem::temp_directory_path() / ("egret-listening-" + std::to_string(::getpid()));
};

UniqueFd bound(const std::string& path, int type) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.c_str(), path.size());
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
  return socket;
}

}  // namespace

TEST_CASE("a socket that nobody listens on any more is replaced") {
  const Path path;
  bound(path.name, SOCK_STREAM).reset();
  CHECK(listen_at_path(path.name, 0700, 1, "here"));
}

TEST_CASE("one that somebody listens on does not, whatever it carries") {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const Path path;
    const UniqueFd other = bound(path.name, type);
    REQUIRE(::listen(other.get(), 1) == 0);
    const auto refused = listen_at_path(path.name, 0700, 1, "here");
    REQUIRE_FALSE(refused);
    CHECK(refused.message() == "here: in use by another process");
    CHECK(std::filesystem::is_socket(path.name));
  }
}

TEST_CASE("another kind of file stays") {
  const Path path;
  std::ofstream(path.name) << "mine";
  CHECK_FALSE(listen_at_path(path.name, 0700, 1, "here"));
  CHECK(std::filesystem::file_size(path.name) == 4);
}
