// Addresses, and what may be in the place of a socket.
#include <fstream>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "transport_pair.h"

using namespace egret::transport;
using egret::base::UniqueFd;

namespace {

std::string listen_error(const std::string& address) {
  auto listening = listen(address, {});
  return listening ? "" : listening.message();
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A socket file of any type, bound by somebody else; listening or not.
UniqueFd foreign_socket(const std::string& path, int type, bool listens) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path.c_str());
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  if (listens) REQUIRE(::listen(socket.get(), 1) == 0);
  return socket;
}

bool is_socket(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

}  // namespace

TEST_CASE("an address says which transport it means") {
  CHECK(check_address("shm:/run/x").is_ok());
  CHECK(check_address("shm:@x").is_ok());
  for (const std::string scheme : {"rdma:", "tcp:", "rdma+tcp:"}) {
    for (const char* place : {"10.9.0.1:11311", "[fe80::1]:1", "cache-1.example:65535", "*:11311"}) {
      CAPTURE(scheme + place);
      CHECK(check_address(scheme + place).is_ok());
    }
    for (const char* place :
         {"", "host", ":1", "host:", "host:0", "host:65536", "host:12x", "fe80::1:11311", "[]:1", "[::1:5"}) {
      const std::string address = scheme + place;
      CAPTURE(address);
      CHECK_FALSE(check_address(address).is_ok());
      CHECK(contains(check_address(address).message(), "expected " + scheme + "HOST:PORT"));
      CHECK(contains(listen_error(address), "HOST:PORT"));
      CHECK_FALSE(connect(address).is_ok());
    }
  }
  for (const char* address : {"", "shm", "shm:", "/run/x", "udp:1.2.3.4:5", "verbs:1.2.3.4:5", "SHM:/run/x"}) {
    CAPTURE(address);
    CHECK_FALSE(check_address(address).is_ok());
    CHECK(contains(listen_error(address),
                   std::string_view(address) == "shm:"
                       ? "1 to"
                       : "expected rdma:HOST:PORT, tcp:HOST:PORT, rdma+tcp:HOST:PORT, shm:PATH or shm:@NAME"));
    CHECK_FALSE(connect(address).is_ok());
  }
}

TEST_CASE("a listener's file appears, is its user's alone, and goes with it") {
  const Folder folder;
  const std::string path = folder.path + "/socket";
  {
    auto listening = listen("shm:" + path, {});
    REQUIRE(listening.is_ok());
    struct stat info {};
    REQUIRE(::lstat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0600);
    CHECK(connect("shm:" + path).is_ok());
  }
  CHECK_FALSE(std::filesystem::exists(path));
  auto nobody = connect("shm:" + path);
  REQUIRE_FALSE(nobody.is_ok());
  CHECK(contains(nobody.message(), "cannot connect to shm:" + path));
}

TEST_CASE("an abstract name needs no file, and is free again when its listener goes") {
  const std::string address = "shm:" + fresh_name();
  {
    auto listening = listen(address, {});
    REQUIRE(listening.is_ok());
    CHECK(connect(address).is_ok());
    CHECK(contains(listen_error(address), "in use"));
    CHECK_MESSAGE(connect(address).is_ok(), "the attempt did the one that listens no harm");
  }
  CHECK_FALSE(connect(address).is_ok());
  CHECK(listen_error(address) == "");
}

TEST_CASE("a socket that its owner left behind is replaced") {
  const Folder folder;
  const std::string path = folder.path + "/socket";
  foreign_socket(path, SOCK_SEQPACKET, true).reset();
  REQUIRE(is_socket(path));
  CHECK(listen_error("shm:" + path) == "");
}

TEST_CASE("a socket in use is not replaced, of whatever type it is") {
  for (const int type : {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM}) {
    CAPTURE(type);
    const Folder folder;
    const std::string path = folder.path + "/socket";
    const UniqueFd owner = foreign_socket(path, type, type != SOCK_DGRAM);
    CHECK(contains(listen_error("shm:" + path), "in use"));
    CHECK(is_socket(path));
  }
}

TEST_CASE("a listener whose backlog is full is in use all the same") {
  const Folder folder;
  const std::string path = folder.path + "/socket";
  const UniqueFd owner = foreign_socket(path, SOCK_SEQPACKET, true);
  std::vector<std::unique_ptr<ClientEndpoint>> waiting;
  for (int i = 0; i < 10; ++i) {
    auto connected = connect("shm:" + path);
    if (!connected) break;
    waiting.push_back(std::move(connected.value()));
  }
  CHECK(waiting.size() < 10);
  CHECK(contains(listen_error("shm:" + path), "in use"));
  CHECK(is_socket(path));
}

TEST_CASE("what is no socket is never removed") {
  const Folder folder;
  const std::string file = folder.path + "/file";
  std::ofstream(file) << "precious";
  CHECK(contains(listen_error("shm:" + file), "not a socket"));
  CHECK(std::filesystem::file_size(file) == 8);
  const std::string sub = folder.path + "/folder";
  std::filesystem::create_directory(sub);
  CHECK(contains(listen_error("shm:" + sub), "not a socket"));
  CHECK(std::filesystem::is_directory(sub));
  const std::string link = folder.path + "/link";
  foreign_socket(folder.path + "/stale", SOCK_SEQPACKET, true).reset();
  std::filesystem::create_symlink(folder.path + "/stale", link);
  CHECK(contains(listen_error("shm:" + link), "not a socket"));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(is_socket(folder.path + "/stale"));
}

TEST_CASE("a path that does not fit, or whose folder is missing, is one clear error") {
  const std::string longest = "/tmp/" + std::string(102, 'x');
  CHECK(listen_error("shm:" + longest) == "");
  CHECK(contains(listen_error("shm:" + longest + "x"), "a socket path has 1 to 107 characters"));
  CHECK(contains(listen_error("shm:@" + std::string(107, 'x')), "a socket path has 1 to 107 characters"));
  auto connected = connect("shm:" + longest + "x");
  REQUIRE_FALSE(connected.is_ok());
  CHECK(contains(connected.message(), "a socket path has 1 to 107 characters"));
  CHECK(contains(listen_error("shm:/nonexistent/socket"), "No such file or directory"));
}
