// The first program in C++20: handles that free themselves, a multiget, what failed and why.
//
//   c++ -std=c++20 first.cc $(pkg-config --cflags --libs egret) && EGRET_CONFIG=client.yaml ./a.out
#include <cstdio>
#include <egret.hpp>
#include <string_view>
#include <vector>

int main() try {
  const egret::Pool pool;  // any thread
  egret::Client client(pool);  // this thread's

  const int code = client.set("a", "first");
  if (code < 0) {
    std::fprintf(stderr, "%s\n", client.why());
    return 1;
  }
  client.set("b", "second");

  const std::vector<std::string_view> keys{"a", "b", "none"};
  for (const egret::Result& result : client.get(keys)) {
    if (result.is_hit()) {
      std::printf("%.*s\n", static_cast<int>(result.value().size()), result.value().data());
    } else {
      std::printf("%s\n", result.text());
    }
  }

  // Read, change, store if nobody else has meanwhile.
  const egret::Result old = client.get("a");
  const egret::Result stored = client.store(EGRET_MODE_SET, "a", "changed", 0, 0, old.cas());
  std::printf("%s\n", stored.text());
  return 0;
} catch (const egret::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
