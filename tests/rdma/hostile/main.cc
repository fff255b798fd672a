// hostile ADDRESS:PORT NAME... | --list: runs attacks against a live egret-backend, one after the other. A name is an
// attack's or a group's; --list prints them all.
//
// Ends with 0 if the device and the backend answered each as they should, 1 if not (stderr says which), 2 if called
// wrongly. The attack `killed` ends the process by SIGKILL.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <arpa/inet.h>

#include "attacks.h"

namespace egret::hostile {

void expect_ended(Connection& connection, const std::string& what) {
  require(connection.is_ended(kEndPatience), what + ": the session goes on");
}

void expect_refused(Session& session, const Work& work, const std::string& what) {
  const ibv_wc_status status = session.connection().run(work);
  // Devices tell the second for an operation that the memory does not allow at all.
  require(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR,
          what + ": " + ::ibv_wc_status_str(status));
  expect_ended(session.connection(), what);
}

void expect_served(Session& session, const std::string& tag) {
  for (int i = 0; i < 12; ++i) {
    const std::string key = tag + std::to_string(i);
    require(session.call(set(key, key + key)) == op::ResultCode::kStored, "a set is not stored");
    require(session.call(get(key)) == op::ResultCode::kHit && session.value() == key + key, "a get is not answered");
  }
}

namespace {

struct Group {
  const char* name;
  std::span<const Attack> attacks;
};

std::vector<Group> all_groups() {
  return {{"memory", attacks_on_memory()},
          {"handshake", attacks_on_handshake()},
          {"queue-pairs", attacks_on_joining()},
          {"slots", attacks_on_slots()},
          {"leaving", attacks_by_leaving()}};
}

// The attacks of that name, or of the group of that name.
std::vector<Attack> named(const char* name) {
  std::vector<Attack> found;
  for (const Group& group : all_groups()) {
    for (const Attack& attack : group.attacks) {
      if (std::strcmp(name, group.name) == 0 || std::strcmp(name, attack.name) == 0) found.push_back(attack);
    }
  }
  return found;
}

bool parse(const std::string& text, sockaddr_in& target) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  target.sin_family = AF_INET;
  target.sin_port = htons(static_cast<uint16_t>(std::atoi(text.c_str() + colon + 1)));
  return ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &target.sin_addr) == 1 && target.sin_port != 0;
}

int run(const sockaddr_in& target, const Attack& attack) {
  try {
    const double start = now_seconds();
    attack.run(target);
    std::printf("%s: as it should, after %.1f s\n", attack.name, now_seconds() - start);
    std::fflush(stdout);  // the next may be the last
    return 0;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", attack.name, failure.what());
    return 1;
  }
}

}  // namespace
}  // namespace egret::hostile

int main(int argc, char** argv) {
  using namespace egret::hostile;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const Group& group : all_groups()) {
      std::printf("%s:", group.name);
      for (const Attack& attack : group.attacks) std::printf(" %s", attack.name);
      std::printf("\n");
    }
    return 0;
  }
  sockaddr_in target{};
  if (argc < 3 || !parse(argv[1], target)) {
    std::fprintf(stderr, "usage: hostile ADDRESS:PORT NAME... | hostile --list\n");
    return 2;
  }
  int status = 0;
  for (int i = 2; i < argc; ++i) {
    const std::vector<Attack> attacks = named(argv[i]);
    if (attacks.empty()) {
      std::fprintf(stderr, "no attack is named %s\n", argv[i]);
      return 2;
    }
    for (const Attack& attack : attacks) status |= run(target, attack);
  }
  return status;
}
