// Ketama against the installed libmemcached: the same placement for thousands of pools and keys. KETAMA_SEED=n chooses
// other pools.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <doctest/doctest.h>

#include "pool/ketama.h"

using namespace egret::pool;

namespace {

// libmemcached's interface, as far as it is needed here; the numbers are its enum's.
struct Libmemcached {
  static constexpr int kBehaviorKetamaWeighted = 16;

  Libmemcached() {
    void* library = ::dlopen("libmemcached.so.11", RTLD_NOW);
    REQUIRE_MESSAGE(library != nullptr, "needs Debian's libmemcached11: ", ::dlerror());
    const auto find = [library](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      REQUIRE_MESSAGE((function != nullptr), name);
    };
    find(create, "memcached_create");
    find(free, "memcached_free");
    find(set_behavior, "memcached_behavior_set");
    find(add_server, "memcached_server_add_with_weight");
    find(add_socket, "memcached_server_add_unix_socket_with_weight");
    find(place, "memcached_generate_hash");
  }

  void* (*create)(void*) = nullptr;
  void (*free)(void*) = nullptr;
  int (*set_behavior)(void*, int, uint64_t) = nullptr;
  int (*add_server)(void*, const char* host, uint16_t port, uint32_t weight) = nullptr;
  int (*add_socket)(void*, const char* path, uint32_t weight) = nullptr;
  uint32_t (*place)(const void*, const char* key, size_t length) = nullptr;
};

const Libmemcached& library() {
  static const Libmemcached loaded;
  return loaded;
}

struct Host {
  std::string host;
  uint16_t port = 0;  // 0: host is a socket's path
  uint32_t weight = 1;
};

std::string random_text(std::mt19937& random, size_t length) {
  std::string text(length, ' ');
  for (char& c : text) c = static_cast<char>('!' + random() % 94);
  return text;
}

std::vector<std::string> random_keys(std::mt19937& random, size_t count) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < count; ++i) {
    keys.push_back(i % 3 == 0 ? "user:" + std::to_string(random()) : random_text(random, 1 + random() % 250));
  }
  return keys;
}

// How many keys of this pool libmemcached would look for elsewhere.
int differences(const std::vector<Host>& hosts, const std::vector<std::string>& keys) {
  const Libmemcached& theirs = library();
  const std::unique_ptr<void, void (*)(void*)> client(theirs.create(nullptr), theirs.free);
  std::vector<KetamaServer> servers;
  for (const Host& host : hosts) {
    const int added = host.port == 0 ? theirs.add_socket(client.get(), host.host.c_str(), host.weight)
                                     : theirs.add_server(client.get(), host.host.c_str(), host.port, host.weight);
    REQUIRE(added == 0);
    servers.push_back({host.host + ":" + std::to_string(host.port), host.weight});
  }
  // Last: from then on it builds its ring anew with every server.
  REQUIRE(theirs.set_behavior(client.get(), Libmemcached::kBehaviorKetamaWeighted, 1) == 0);
  const KetamaRing ring(servers);
  int different = 0;
  for (const std::string& key : keys) {
    different += ring.server_of(key) != theirs.place(client.get(), key.data(), key.size());
  }
  return different;
}

Host random_host(std::mt19937& random, std::set<std::string>& names) {
  while (true) {
    Host host{"10." + std::to_string(random() % 256) + ".0." + std::to_string(random() % 256), 11211, 1};
    if (random() % 3 == 0) host.host = "cache-" + std::to_string(random() % 1000) + ".example.org";
    if (random() % 8 == 0) host.host = "fd00::" + std::to_string(random() % 1000);
    if (random() % 2 == 0) host.port = static_cast<uint16_t>(1 + random() % 65535);
    if (random() % 16 == 0) host = {"/run/cache" + std::to_string(random() % 1000) + ".sock", 0, 1};
    if (names.insert(host.host + ":" + std::to_string(host.port)).second) return host;
  }
}

}  // namespace

TEST_CASE("every number of servers of equal weight") {
  std::mt19937 random(1);
  const std::vector<std::string> keys = random_keys(random, 5000);
  for (const uint16_t port : {uint16_t{11211}, uint16_t{11212}}) {
    std::vector<Host> hosts;
    for (int count = 1; count <= 64; ++count) {
      hosts.push_back({"10.0.0." + std::to_string(count), port, 1});
      CAPTURE(count);
      CHECK(differences(hosts, keys) == 0);
    }
  }
}

TEST_CASE("random pools of names and weights") {
  const char* given = std::getenv("KETAMA_SEED");
  const unsigned seed = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int pool = 0; pool < 300; ++pool) {
    std::set<std::string> names;
    std::vector<Host> hosts;
    const unsigned long heaviest = pool % 3 == 0 ? 1000 : 1 + random() % 10;
    for (size_t count = 1 + random() % 64; count > 0; --count) {
      hosts.push_back(random_host(random, names));
      hosts.back().weight = static_cast<uint32_t>(1 + random() % heaviest);
    }
    CAPTURE(pool);
    CHECK(differences(hosts, random_keys(random, 2000)) == 0);
  }
}
