// The state of a client that is handed over, as the name of its descriptor.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/client/handover.h"

using namespace egret::proxy;
using egret::base::InheritedFd;
using egret::base::UniqueFd;
using egret::memcache::Language;
using egret::memcache::ResumeState;

namespace {

HandedClient client(Language language, bool has_authenticated, uint64_t last_active_ns) {
  HandedClient made;
  made.resume_state = {language, has_authenticated};
  made.last_active_ns = last_active_ns;
  return made;
}

}  // namespace

TEST_CASE("the name has the client's protocol, whether it has authenticated, and its last activity") {
  CHECK(handover_name(client(Language::kText, true, 12'345'678'901'234)) == "client/ty/12345");
  CHECK(handover_name(client(Language::kBinary, false, 0)) == "client/bn/0");
  for (const Language language : {Language::kUnknown, Language::kText, Language::kBinary}) {
    for (const bool has_authenticated : {false, true}) {
      const auto back = parse_handover_name(handover_name(client(language, has_authenticated, 7'000'000'000)));
      REQUIRE(back.has_value());
      CHECK(back->resume_state.language == language);
      CHECK(back->resume_state.has_authenticated == has_authenticated);
      CHECK(back->last_active_ns == 7'000'000'000);
    }
  }
}

TEST_CASE("other names are not a client's") {
  for (const char* name :
       {"", "client", "client/", "client/t", "client/ty", "client/ty/", "client/xy/1", "client/tz/1", "client/ty/1x",
        "client/ty/-1", "client/ty/ 1", "client/ty1", "client/ty/99999999999999999999", "client/ty/18446744074",
        "clients", "egret-proxy.socket"}) {
    CHECK_FALSE(parse_handover_name(name).has_value());
  }
}

TEST_CASE("clients' descriptors are parted from the others by name, known or not") {
  std::vector<InheritedFd> inherited;
  for (const char* name : {"client/ty/1", "clients", "client/of/another/version", "tls"}) {
    inherited.push_back({UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), name});
  }
  const std::vector<InheritedFd> clients = part_clients(inherited);
  REQUIRE(clients.size() == 2);
  CHECK(clients[0].name == "client/ty/1");
  CHECK(clients[1].name == "client/of/another/version");
  REQUIRE(inherited.size() == 2);
  CHECK(inherited[0].name == "clients");
  CHECK(inherited[1].name == "tls");
}

TEST_CASE("the store has as many places as the environment says, if there is a service manager") {
  ::setenv("FDSTORE", "2", 1);
  ::unsetenv("NOTIFY_SOCKET");
  CHECK(places_in_store() == 0);
  ::setenv("NOTIFY_SOCKET", "/nobody", 1);
  CHECK(places_in_store() == 2);
  for (const char* odd : {"", "x", "-1", "2 ", "99999999999"}) {
    ::setenv("FDSTORE", odd, 1);
    CHECK(places_in_store() == 0);
  }
  ::unsetenv("FDSTORE");
  CHECK(places_in_store() == 0);
  ::unsetenv("NOTIFY_SOCKET");
}

TEST_CASE("a place is taken once") {
  Handover handover(2);
  CHECK(handover.take_place());
  CHECK(handover.is_possible());
  CHECK(handover.take_place());
  CHECK_FALSE(handover.take_place());
  CHECK_FALSE(handover.is_possible());
  CHECK(handover.send() == 0);
}

TEST_CASE(
    "clients that the service manager cannot be asked to forget are not served: another process may get them, too") {
  int ends[2] = {-1, -1};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const UniqueFd peer(ends[1]);
  std::vector<InheritedFd> inherited;
  inherited.push_back({UniqueFd(ends[0]), "client/ty/1"});
  ::setenv("NOTIFY_SOCKET", "/nobody/listens/here", 1);
  CHECK(take_clients(std::move(inherited)).empty());
  ::unsetenv("NOTIFY_SOCKET");
  char byte = 0;
  CHECK(::recv(peer.get(), &byte, 1, MSG_DONTWAIT) == 0);  // closed
}
