// A watcher gets the lines of its streams, and the number of lost lines.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>
#include <poll.h>

#include "proxy/client/watch_hub.h"

using namespace egret::proxy;
using namespace egret::memcache;

namespace {
constexpr size_t kAll = 1u << 30;

bool is_woken(const Watcher& watcher) {
  pollfd asked{watcher.wake_fd(), POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}
std::string take_all(Watcher& watcher) {
  std::string text;
  CHECK_FALSE(watcher.take(text, kAll));
  return text;
}
// Without time and number.
std::string texts(const std::string& lines) {
  std::string out;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    REQUIRE(end != lines.npos);
    const std::string line = lines.substr(at, end - at);
    CHECK(line.starts_with("ts="));
    CHECK(line.find(" gid=") != line.npos);
    out += line.substr(line.find(' ', line.find(" gid=") + 1) + 1) + "\n";
    at = end + 1;
  }
  return out;
}
}  // namespace

TEST_CASE("a watcher gets what it asked for, in order, and is woken once") {
  WatchHub hub;
  CHECK(hub.wanted() == 0);
  Watcher fetches(kFetchers);
  Watcher both(kFetchers | kMutations);
  REQUIRE(hub.add(fetches));
  REQUIRE(hub.add(both));
  CHECK(hub.wanted() == (kFetchers | kMutations));
  hub.log(kFetchers, "one");
  hub.log(kMutations, "two");
  hub.log(kEvictions, "nobody's");
  CHECK(is_woken(fetches));
  CHECK(is_woken(both));
  CHECK(texts(take_all(fetches)) == "one\n");
  CHECK(texts(take_all(both)) == "one\ntwo\n");
  CHECK_FALSE(is_woken(both));
  hub.remove(both);
  CHECK(hub.wanted() == kFetchers);
  hub.log(kMutations, "three");
  CHECK(take_all(both).empty());
  hub.remove(fetches);
  CHECK(hub.wanted() == 0);
}

TEST_CASE("a slow watcher loses lines, and gets their number before its next line") {
  WatchHub hub;
  Watcher slow(kFetchers);
  REQUIRE(hub.add(slow));
  const std::string text(1'000, 't');
  uint64_t lines = 0;
  while (lines < 1'000) hub.log(kFetchers, text), ++lines;
  std::string got;
  while (slow.take(got, 10'000)) {
  }
  CHECK(got.size() <= Watcher::kBuffer);
  const auto kept = static_cast<uint64_t>(std::count(got.begin(), got.end(), '\n'));
  CHECK(kept > 200);
  CHECK(kept < lines);
  CHECK(got.find("skipped") == got.npos);
  hub.log(kFetchers, "after");
  got = take_all(slow);
  CHECK(got.starts_with("skipped=" + std::to_string(lines - kept) + "\n"));
  CHECK(texts(got.substr(got.find('\n') + 1)) == "after\n");
  hub.remove(slow);
}

TEST_CASE("lines are taken whole, a part of them at a time") {
  WatchHub hub;
  Watcher watcher(kFetchers);
  REQUIRE(hub.add(watcher));
  for (int i = 0; i < 100; ++i) hub.log(kFetchers, "text " + std::to_string(i));
  std::string all;
  bool more = true;
  for (int turns = 0; more; ++turns) {
    REQUIRE(turns < 200);
    std::string part;
    more = watcher.take(part, 100);
    CHECK(part.size() <= 200);
    CHECK((part.empty() || part.back() == '\n'));
    all += part;
  }
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += "text " + std::to_string(i) + "\n";
  CHECK(texts(all) == expected);
  hub.remove(watcher);
}

TEST_CASE("there is an end to watchers") {
  WatchHub hub;
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (size_t i = 0; i < WatchHub::kMostWatchers; ++i) {
    watchers.push_back(std::make_unique<Watcher>(kFetchers));
    CHECK(hub.add(*watchers.back()));
  }
  Watcher late(kMutations);
  CHECK_FALSE(hub.add(late));
  CHECK(hub.wanted() == kFetchers);
  hub.remove(*watchers.front());
  CHECK(hub.add(late));
  hub.remove(late);
}

TEST_CASE("many workers say what happens, and no line is torn") {
  WatchHub hub;
  Watcher watcher(kFetchers);
  REQUIRE(hub.add(watcher));
  std::vector<std::thread> workers;
  for (int number = 0; number < 4; ++number) {
    workers.emplace_back([&hub, number] {
      const std::string text(20, static_cast<char>('a' + number));
      for (int i = 0; i < 500; ++i) hub.log(kFetchers, text);
    });
  }
  for (std::thread& worker : workers) worker.join();
  const std::string got = texts(take_all(watcher));
  CHECK(got.size() == 4 * 500 * 21);
  for (size_t at = 0; at < got.size(); at += 21) CHECK(got.substr(at, 20) == std::string(20, got[at]));
  hub.remove(watcher);
}
