// A watched file of members: when it is looked at, what is taken, what is refused, and the copy for the next start.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "discovery/members_file.h"
#include "discovery_harness.h"
#include "temporary_folder.h"

using namespace egret;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

const std::string kOne = "rdma:10.0.0.1:1\n";
const std::string kTwo = "rdma:10.0.0.1:1\nrdma:10.0.0.2:1\n";
const std::string kFour = kTwo + "rdma:10.0.0.3:1\nrdma:10.0.0.4:1\n";
const Texts kOneMember{"rdma:10.0.0.1:1"};
const Texts kTwoMembers{"rdma:10.0.0.1:1", "rdma:10.0.0.2:1"};
const Texts kFourMembers{"rdma:10.0.0.1:1", "rdma:10.0.0.2:1", "rdma:10.0.0.3:1", "rdma:10.0.0.4:1"};

// What the source under test gets as random numbers, and how often it asked.
uint64_t random_now = 0;
int random_calls = 0;
uint64_t counted_random() {
  ++random_calls;
  return random_now;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A folder with the file, a loop, and the source, which waits as little as possible: between two looks 1 ms, before a
// look nothing, and without a change for ever.
struct Bench {
  Bench() {
    ::umask(022);  // files that a group may write are refused as copies
    random_now = 0;
    random_calls = 0;
    options = {.path = folder.at("backends"), .settle = 1ms, .look_every = 1h, .random = &counted_random};
  }

  void write(const std::string& content) const { std::ofstream(options.path, std::ios::binary) << content; }
  // As a tool should: beside it, and then renamed.
  void replace(const std::string& content) const {
    std::ofstream(folder.at("new"), std::ios::binary) << content;
    fs::rename(folder.at("new"), options.path);
  }
  void start() {
    file = std::make_unique<discovery::MembersFile>(loop, options, observer);
    file->start();
  }
  void start_with(const std::string& content) {
    write(content);
    start();
    REQUIRE(file->problem().empty());
  }
  Texts members() const { return texts(file->members()); }
  void until(const Texts& wanted) {
    patience.until([&] { return members() == wanted; });
  }
  void until_problem(const std::string& part) {
    patience.until([&] { return has(file->problem(), part); });
  }

  TemporaryFolder folder;
  discovery::MembersFileOptions options;
  events::EventLoop loop;
  Patience patience{loop};
  CountingObserver observer;
  std::unique_ptr<discovery::MembersFile> file;
};

}  // namespace

TEST_CASE("at the start its members are there, in the file's order, and nobody is told") {
  Bench bench;
  bench.write("rdma:10.0.0.2:1 name=b\nrdma:10.0.0.1:1 weight=2\n");
  bench.start();
  CHECK(bench.members() == Texts{"b=rdma:10.0.0.2:1", "rdma:10.0.0.1:1*2"});
  CHECK(bench.file->name() == "file " + bench.options.path);
  CHECK(bench.file->problem().empty());
  CHECK(bench.observer.members + bench.observer.problems == 0);
}

TEST_CASE("a file that is renamed to its place, written in place, or removed and made again is read") {
  Bench bench;
  bench.start_with(kOne);
  bench.replace(kTwo);
  bench.until(kTwoMembers);
  bench.write(kFour);
  bench.until(kFourMembers);
  fs::remove(bench.options.path);
  bench.until_problem("No such file or directory; the members before it are kept");
  CHECK(bench.members() == kFourMembers);
  bench.replace(kTwo);
  bench.until(kTwoMembers);
  CHECK(bench.file->problem().empty());
  CHECK(bench.observer.members == 3);
  CHECK(bench.observer.problems == 2);
}

TEST_CASE("a volume of Kubernetes, whose files change by a link's rename, is followed") {
  Bench bench;
  const auto volume = [&](const std::string& name, const std::string& content) {
    fs::create_directory(bench.folder.at(name));
    std::ofstream(bench.folder.at(name + "/backends")) << content;
    fs::create_symlink(name, bench.folder.at("..data_tmp"));
    fs::rename(bench.folder.at("..data_tmp"), bench.folder.at("..data"));
  };
  volume("..2026_1", kTwo);
  fs::create_symlink("..data/backends", bench.options.path);
  bench.start();
  CHECK(bench.members() == kTwoMembers);
  volume("..2026_2", kFour);
  bench.until(kFourMembers);
}

TEST_CASE("what the directory does not show is found by looking now and then") {
  Bench bench;
  bench.options.look_every = 2ms;
  fs::create_directory(bench.folder.at("elsewhere"));
  const std::string target = bench.folder.at("elsewhere/list");
  std::ofstream(target) << kTwo;
  fs::create_symlink(target, bench.options.path);
  bench.start();
  CHECK(bench.members() == kTwoMembers);
  std::ofstream(target) << kFour;
  bench.until(kFourMembers);
}

TEST_CASE("a directory that comes later is watched when it is there") {
  Bench bench;
  bench.options.path = bench.folder.at("later/backends");
  bench.options.look_every = 2ms;
  bench.start();
  CHECK(has(bench.file->problem(), "No such file or directory; no copy to use: "));
  fs::create_directory(bench.folder.at("later"));
  bench.replace(kTwo);
  bench.until(kTwoMembers);
  CHECK(bench.file->problem().empty());
}

TEST_CASE("a change waits for a random part of the jitter; a reload by the operator does not") {
  Bench bench;
  bench.options.jitter = 1h;
  bench.start_with(kOne);
  const int calls = random_calls;
  random_now = UINT64_MAX / 3;  // of an hour: many minutes
  bench.replace(kTwo);
  bench.patience.until([&] { return random_calls > calls; });
  CHECK(bench.members() == kOneMember);
  bench.file->reload(50);
  CHECK(bench.members() == kTwoMembers);
  CHECK(bench.observer.members == 1);
}

TEST_CASE("a file that is being written in place is not taken before two looks have seen the same") {
  Bench bench;
  bench.options.settle = 1h;
  bench.start_with(kOne);
  const int calls = random_calls;
  bench.write(kTwo);
  bench.patience.until([&] { return random_calls > calls; });
  for (int i = 0; i < 20; ++i) bench.loop.run_once(false);
  CHECK(bench.members() == kOneMember);
}

TEST_CASE("many changes before a look are one look") {
  Bench bench;
  bench.options.jitter = 1h;
  bench.start_with(kOne);
  const int calls = random_calls;
  random_now = UINT64_MAX / 3;
  for (int i = 0; i < 200; ++i) {
    bench.replace(i % 2 == 0 ? kTwo : kFour);
    bench.loop.run_once(false);
  }
  CHECK(random_calls == calls + 1);
}

TEST_CASE("of a file that changes all the time some contents are taken, and the last one in the end") {
  Bench bench;
  bench.options.most_removed = 100;
  bench.start_with(kOne);
  int changes = 0;
  while (bench.observer.members < 3) {
    bench.replace("rdma:10.0.0.1:" + std::to_string(1 + ++changes % 60000) + "\n");
    bench.loop.run_once(false);
  }
  bench.replace(kFour);
  bench.until(kFourMembers);
  CHECK(bench.file->problem().empty());
  const int calls = random_calls;
  for (int i = 0; i < 100; ++i) bench.loop.run_once(false);
  CHECK(random_calls == calls);
}

TEST_CASE("an invalid file changes nothing, and the problem names its line until it is mended") {
  Bench bench;
  bench.start_with(kTwo);
  bench.replace("rdma:10.0.0.1:1\nrdma:10.0.0.9\n");
  bench.until_problem(bench.options.path + ":2: ");
  CHECK(has(bench.file->problem(), "; the members before it are kept"));
  CHECK(bench.members() == kTwoMembers);
  bench.replace("");
  bench.until_problem("a pool needs at least one backend");
  CHECK(bench.members() == kTwoMembers);
  bench.replace(kTwo);
  bench.patience.until([&] { return bench.file->problem().empty(); });
  CHECK(bench.observer.members == 0);
  CHECK(bench.observer.problems == 3);
}

TEST_CASE("a file that others may write, and one that is too large, are refused") {
  Bench bench;
  bench.start_with(kTwo);
  REQUIRE(::chmod(bench.options.path.c_str(), 0666) == 0);
  bench.until_problem("can be written by every user: chmod o-w it");
  bench.replace(std::string(discovery::kMaxMembersFile + 1, '#'));
  bench.until_problem("is larger than 1MiB");
  CHECK(bench.members() == kTwoMembers);
}

TEST_CASE("a change that removes more than the configured share is refused until a larger file comes") {
  Bench bench;
  bench.start_with(kFour);
  bench.replace(kOne);
  bench.until_problem(
      bench.options.path +
      " would remove 3 of 4 members, more than 50 %; a reload (SIGHUP) accepts it; the members before it "
      "are kept");
  CHECK(bench.members() == kFourMembers);
  bench.replace(kTwo);
  bench.until(kTwoMembers);
  CHECK(bench.file->problem().empty());
}

TEST_CASE("a reload by the operator accepts that any number of members go") {
  Bench bench;
  bench.start_with(kFour);
  bench.replace(kOne);
  bench.until_problem("would remove 3 of 4 members");
  bench.file->reload(50);
  CHECK(bench.members() == kOneMember);
  CHECK(bench.file->problem().empty());
  CHECK(bench.observer.members == 1);
  CHECK(bench.observer.problems == 2);
}

TEST_CASE("a member counts as removed if its name goes, not if its address or weight changes") {
  Bench bench;
  bench.start_with("rdma:10.0.0.1:1 name=a\nrdma:10.0.0.2:1 name=b\n");
  bench.replace("rdma:10.0.9.2:1 name=b weight=7\nrdma:10.0.9.1:1 name=a\n");
  bench.until({"b=rdma:10.0.9.2:1*7", "a=rdma:10.0.9.1:1"});
  bench.replace("rdma:10.0.9.1:1 name=c\nrdma:10.0.9.2:1 name=d\n");
  bench.until_problem("would remove 2 of 2 members");
}

TEST_CASE("the share that a change may remove is the operator's: none, or all") {
  Bench bench;
  bench.options.most_removed = 0;
  bench.start_with(kTwo);
  bench.replace(kOne);
  bench.until_problem("would remove 1 of 2 members, more than 0 %");
  bench.options.most_removed = 100;
  bench.replace(kTwo);
  bench.start_with(kTwo);
  bench.replace("rdma:10.0.0.9:1\n");
  bench.until({"rdma:10.0.0.9:1"});
}

TEST_CASE("a start without a usable file takes the last good copy, and says so until the file is good again") {
  Bench bench;
  bench.start_with(kTwo);
  bench.replace(kFour);
  bench.until(kFourMembers);
  const std::string copy = bench.options.path + ".good";
  fs::remove(bench.options.path);
  bench.start();
  CHECK(bench.members() == kFourMembers);
  CHECK(has(bench.file->problem(), "No such file or directory; the last good copy is used, " + copy));
  bench.replace("nonsense\n");
  bench.start();
  CHECK(bench.members() == kFourMembers);
  CHECK(has(bench.file->problem(), ":1: "));
  CHECK(has(bench.file->problem(), "the last good copy is used, " + copy));
  bench.replace(kFour);
  bench.patience.until([&] { return bench.file->problem().empty(); });
  CHECK(bench.members() == kFourMembers);
  CHECK(bench.observer.members == 1);  // 2 → 4 members
  bench.replace("nonsense\n");
  bench.until_problem("; the members before it are kept");
}

TEST_CASE("a start at which the file removes too many of the copy's members is as any other change") {
  Bench bench;
  bench.start_with(kFour);
  bench.file.reset();
  bench.replace(kOne);
  bench.start();
  CHECK(bench.members() == kFourMembers);
  CHECK(has(bench.file->problem(), "would remove 3 of 4 members"));
  CHECK(has(bench.file->problem(), "the last good copy is used"));
  bench.file->reload(50);
  CHECK(bench.members() == kOneMember);
}

TEST_CASE("without a file and a copy there are no members, and the problem says what is wrong with both") {
  Bench bench;
  bench.options.copy_path = bench.folder.at("copy");
  std::ofstream(bench.options.copy_path) << "rdma:nowhere\n";
  bench.start();
  CHECK(bench.members() == Texts{});
  CHECK(has(bench.file->problem(), "cannot read " + bench.options.path + ": "));
  CHECK(has(bench.file->problem(), "; no copy to use: " + bench.options.copy_path + ":1: "));
}

TEST_CASE("a copy that others may have written is not used") {
  Bench bench;
  bench.options.copy_path = bench.folder.at("copy");
  std::ofstream(bench.options.copy_path) << kTwo;
  REQUIRE(::chmod(bench.options.copy_path.c_str(), 0660) == 0);
  bench.start();
  CHECK(bench.members() == Texts{});
  CHECK(has(bench.file->problem(), "can be written by its group"));
}

TEST_CASE("a copy that cannot be written is a problem, and the members count all the same") {
  Bench bench;
  bench.options.copy_path = bench.folder.at("none/copy");
  bench.write(kTwo);
  bench.start();
  CHECK(bench.members() == kTwoMembers);
  CHECK(has(bench.file->problem(), "no copy of the members is kept for the next start: "));
}

TEST_CASE("the copy is not written again if it is the same") {
  Bench bench;
  bench.start_with(kTwo);
  const std::string copy = bench.options.path + ".good";
  struct stat before {};
  REQUIRE(::stat(copy.c_str(), &before) == 0);
  bench.start();
  struct stat after {};
  REQUIRE(::stat(copy.c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
}
