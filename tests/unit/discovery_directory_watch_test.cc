// Changes of a file's entry in its directory: which are told, and that the directory itself may come and go.
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "discovery/directory_watch.h"
#include "discovery_harness.h"
#include "temporary_folder.h"

using namespace egret;
namespace fs = std::filesystem;

namespace {

struct Bench {
  explicit Bench(const std::string& name) : path(folder.at(name)) {}
  void write(const std::string& name) const { std::ofstream(folder.at(name)) << "x"; }
  // Whether it was told of something since the last time. inotify queues what has happened before a call returns.
  bool is_told() {
    for (int i = 0; i < 5; ++i) loop.run_once(false);
    return std::exchange(told, 0) > 0;
  }

  TemporaryFolder folder;
  const std::string path;
  events::EventLoop loop;
  int told = 0;
  discovery::DirectoryWatch watch{loop, path, [this] { ++told; }};
};

}  // namespace

TEST_CASE("a file that comes, is written, is replaced or goes is told, and its neighbours are not") {
  Bench bench("list");
  CHECK_FALSE(bench.is_told());
  bench.write("other");
  bench.write("list.good");
  CHECK_FALSE(bench.is_told());
  bench.write("list");
  CHECK(bench.is_told());
  bench.write("list");
  CHECK(bench.is_told());
  fs::rename(bench.folder.at("other"), bench.path);
  CHECK(bench.is_told());
  fs::permissions(bench.path, fs::perms(0600));
  CHECK(bench.is_told());
  fs::remove(bench.path);
  CHECK(bench.is_told());
}

TEST_CASE("many changes are told at once") {
  Bench bench("list");
  for (int i = 0; i < 20; ++i) bench.write("list");
  bench.loop.run_once(false);
  CHECK(bench.told == 1);
}

TEST_CASE("an entry whose name begins with two dots is told: Kubernetes replaces volumes by such a link") {
  Bench bench("list");
  fs::create_symlink("..2026", bench.folder.at("..data"));
  CHECK(bench.is_told());
}

TEST_CASE("a directory that comes later, or another of its name, is watched from the next renew()") {
  Bench bench("later/list");
  bench.watch.renew();
  fs::create_directory(bench.folder.at("later"));
  bench.watch.renew();
  bench.write("later/list");
  CHECK(bench.is_told());
  fs::rename(bench.folder.at("later"), bench.folder.at("gone"));
  fs::create_directory(bench.folder.at("later"));
  bench.watch.renew();
  bench.is_told();
  bench.write("gone/list");
  CHECK_FALSE(bench.is_told());
  bench.write("later/list");
  CHECK(bench.is_told());
  fs::remove_all(bench.folder.at("later"));
  CHECK(bench.is_told());
  fs::create_directory(bench.folder.at("later"));
  bench.watch.renew();
  bench.is_told();
  bench.write("later/list");
  CHECK(bench.is_told());
}
