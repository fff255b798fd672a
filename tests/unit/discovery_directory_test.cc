// All members of a pool: entries and sources merged in order, names unique, changes told once a pass.
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "discovery/directory.h"
#include "discovery_harness.h"
#include "discovery_name_server.h"
#include "temporary_folder.h"

using namespace egret;
using namespace std::chrono_literals;
using discovery::Directory;
using discovery::Source;
using discovery::SourceObserver;

namespace {

struct Observer final : discovery::DirectoryObserver {
  void on_members(Directory&) override { ++members; }
  void on_problems(Directory&) override { ++problems; }
  int members = 0;
  int problems = 0;
};

// A source that a test sets by hand.
class HandSource final : public Source {
 public:
  HandSource(SourceObserver& observer, std::string name) : observer_(observer), name_(std::move(name)) {}
  void set(const std::vector<std::string>& members) {
    members_.clear();
    for (const std::string& text : members) members_.push_back(pool::parse_member(text).value());
    observer_.on_members(*this);
  }
  void set_problem(const std::string& problem) {
    problem_ = problem;
    observer_.on_problem(*this);
  }
  std::span<const pool::Member> members() const override { return members_; }
  std::string name() const override { return name_; }
  const std::string& problem() const override { return problem_; }

 private:
  SourceObserver& observer_;
  const std::string name_;
  std::vector<pool::Member> members_;
  std::string problem_;
};

struct Bench {
  events::EventLoop loop;
  Patience patience{loop};
  Observer observer;
  discovery::DirectoryOptions options;
  std::unique_ptr<Directory> directory;

  void make(const std::vector<std::string>& entries) {
    options.entries = entries;
    auto made = Directory::create(loop, options, observer);
    REQUIRE(made);
    directory = std::move(made.value());
  }
  HandSource& add(const std::string& name) {
    auto source = std::make_unique<HandSource>(*directory, name);
    HandSource& kept = *source;
    directory->add(std::move(source));
    return kept;
  }
  void reload(const std::vector<std::string>& entries) {
    options.entries = entries;
    REQUIRE(directory->reload(options));
  }
  // A name server whose answers count for a few milliseconds.
  void use(const dns::NameServer& server) {
    options.names.resolver.servers = server.address();
    options.names.least = 2ms;
    options.names.most = 4ms;
  }
  void settle() {
    patience.until([&] { return directory->is_settled(); });
  }
  Texts members() const { return texts(directory->members()); }
  void pass() { loop.run_once(false); }
  std::string error_of(const std::vector<std::string>& entries) {
    const base::Status checked = Directory::check_entries(entries);
    options.entries = entries;
    const auto made = Directory::create(loop, options, observer);
    REQUIRE(checked.is_ok() == made.is_ok());
    return checked.message();
  }
};

using Problems = std::vector<std::string>;

std::vector<std::string> many_members(int count) {
  std::vector<std::string> many;
  for (int i = 0; i < count; ++i)
    many.push_back("rdma:10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":1");
  return many;
}

}  // namespace

TEST_CASE("plain entries are the members, in their order, at once") {
  Bench bench;
  bench.make({"rdma:10.0.0.2:1 weight=2", "rdma:10.0.0.1:1", "shm:/run/x name=c:1"});
  const Texts all{"rdma:10.0.0.2:1*2", "rdma:10.0.0.1:1", "c:1=shm:/run/x"};
  bench.directory->start();
  CHECK(texts(bench.directory->members()) == all);
  CHECK(bench.directory->is_settled());
  bench.pass();
  CHECK(texts(bench.directory->members()) == all);
  CHECK(bench.directory->problems().empty());
  CHECK(bench.observer.members + bench.observer.problems == 0);
}

TEST_CASE("what is wrong with entries is said before anything is resolved") {
  Bench bench;
  CHECK(bench.error_of({"rdma:10.0.0.1:1", "srv+rdma:pool", "dns+rdma:pool:1"}).empty());
  CHECK(bench.error_of({}).empty());
  CHECK(bench.error_of({"rdma:10.0.0.1"}).starts_with("expected rdma:HOST:PORT"));
  CHECK(bench.error_of({"rdma:10.0.0.1:1", "dns+rdma:pool"}).starts_with("expected dns+rdma:NAME:PORT"));
  CHECK(bench.error_of({"rdma:10.0.0.1:1", "srv+rdma:pool", "rdma:10.0.0.2:1 name=10.0.0.1:1"})
            .starts_with("two of them are named"));
  CHECK(bench.error_of({"srv+rdma:pool", "srv+rdma:pool weight=2"}) == "\"srv+rdma:pool\" is there twice");
}

TEST_CASE("sources are merged in the order in which they were added, after the entries") {
  Bench bench;
  bench.make({"rdma:10.0.0.9:1"});
  HandSource& first = bench.add("file /etc/first");
  HandSource& second = bench.add("file /etc/second");
  bench.directory->start();
  CHECK(!bench.directory->is_settled());
  second.set({"rdma:10.0.0.2:1"});
  first.set({"rdma:10.0.0.3:1", "rdma:10.0.0.1:1"});
  bench.pass();
  CHECK(texts(bench.directory->members()) ==
        Texts{"rdma:10.0.0.9:1", "rdma:10.0.0.3:1", "rdma:10.0.0.1:1", "rdma:10.0.0.2:1"});
  CHECK(bench.directory->is_settled());
}

TEST_CASE("what a source has before the start is there at the start, and nobody is told") {
  Bench bench;
  bench.make({});
  HandSource& source = bench.add("file /etc/members");
  source.set({"rdma:10.0.0.1:1"});
  source.set_problem("line 2 is no member");
  bench.directory->start();
  CHECK(texts(bench.directory->members()) == Texts{"rdma:10.0.0.1:1"});
  CHECK(bench.directory->problems() == Problems{"file /etc/members: line 2 is no member"});
  bench.pass();
  CHECK(bench.observer.members + bench.observer.problems == 0);
}

TEST_CASE("several changes of one pass are told once, and none if nothing is different") {
  Bench bench;
  bench.make({});
  HandSource& first = bench.add("first");
  HandSource& second = bench.add("second");
  bench.directory->start();
  first.set({"rdma:10.0.0.1:1"});
  second.set({"rdma:10.0.0.2:1"});
  first.set({"rdma:10.0.0.3:1"});
  CHECK(bench.observer.members == 0);
  CHECK(!bench.directory->is_settled());  // members() does not have it yet
  bench.pass();
  CHECK(bench.observer.members == 1);
  CHECK(bench.directory->is_settled());
  first.set({});
  first.set({"rdma:10.0.0.3:1"});
  bench.pass();
  CHECK(bench.observer.members == 1);
  CHECK(bench.observer.problems == 0);
}

TEST_CASE("a source has settled when it has members or a problem") {
  Bench bench;
  bench.make({"rdma:10.0.0.9:1"});
  HandSource& source = bench.add("file /etc/members");
  bench.directory->start();
  CHECK(!bench.directory->is_settled());
  source.set_problem("there is no such file");
  bench.pass();
  CHECK(bench.directory->is_settled());
  CHECK(bench.directory->problems() == Problems{"file /etc/members: there is no such file"});
  CHECK(bench.observer.problems == 1);
  source.set_problem("");
  bench.pass();
  CHECK(bench.directory->problems().empty());
  CHECK(bench.observer.problems == 2);
  CHECK(bench.members() == Texts{"rdma:10.0.0.9:1"});
}

TEST_CASE("of two members with one name the first stays, and a problem names both") {
  Bench bench;
  bench.make({"rdma:10.0.0.1:11211"});
  HandSource& first = bench.add("first");
  HandSource& second = bench.add("second");
  bench.directory->start();
  first.set({"rdma:10.0.0.7:1 name=10.0.0.1", "rdma:10.0.0.2:1"});
  second.set({"rdma:10.0.0.2:1", "rdma:10.0.0.3:1"});
  bench.pass();
  CHECK(texts(bench.directory->members()) == Texts{"rdma:10.0.0.1:11211", "rdma:10.0.0.2:1", "rdma:10.0.0.3:1"});
  CHECK(bench.directory->problems() ==
        Problems{"10.0.0.1 (rdma:10.0.0.7:1) of first is left out: rdma:10.0.0.1:11211 has the same name, 10.0.0.1",
                 "rdma:10.0.0.2:1 of second is left out: rdma:10.0.0.2:1 of first has the same name, 10.0.0.2:1"});
  first.set({});
  bench.pass();
  CHECK(texts(bench.directory->members()) == Texts{"rdma:10.0.0.1:11211", "rdma:10.0.0.2:1", "rdma:10.0.0.3:1"});
  CHECK(bench.directory->problems().empty());
  CHECK(bench.observer.members == 1);
}

TEST_CASE("many twins make few lines") {
  Bench bench;
  bench.make({});
  HandSource& first = bench.add("first");
  HandSource& second = bench.add("second");
  bench.directory->start();
  first.set(many_members(20));
  second.set(many_members(21));
  bench.pass();
  CHECK(bench.directory->members().size() == 21);
  REQUIRE(bench.directory->problems().size() == 9);
  CHECK(bench.directory->problems()[8] == "12 more are left out, as their names are taken");
}

TEST_CASE("more than 1,024 members are refused, and the last good ones stay") {
  Bench bench;
  bench.make({});
  HandSource& first = bench.add("first");
  HandSource& second = bench.add("second");
  bench.directory->start();
  first.set(many_members(1023));
  second.set({"rdma:10.9.0.1:1"});
  bench.pass();
  CHECK(bench.directory->members().size() == 1024);
  second.set({"rdma:10.9.0.1:1", "rdma:10.9.0.2:1"});
  bench.pass();
  CHECK(bench.directory->members().size() == 1024);
  CHECK(bench.directory->problems() == Problems{"the sources have 1025 members in all, and a pool has at most 1024: "
                                                "the pool keeps the 1024 members it has"});
  CHECK(bench.observer.members == 1);
  second.set({"rdma:10.9.0.2:1"});
  bench.pass();
  CHECK(texts(bench.directory->members()).all.back() == "rdma:10.9.0.2:1");
  CHECK(bench.directory->problems().empty());
}

TEST_CASE("names are resolved from the start on, each at its place in the list, which is there when all are") {
  Bench bench;
  dns::NameServer server(bench.loop);
  bench.use(server);
  server.set("pool.example", dns::kSrv, {dns::srv("a.example", 7)}, {dns::a("10.0.0.2", 60, "a.example")});
  bench.make({"rdma:10.0.0.1:1", "srv+rdma:pool.example.", "rdma:10.0.0.3:1", "dns+rdma:gone.example.:1"});
  bench.pass();
  CHECK(server.asked("pool.example", dns::kSrv) == 0);
  bench.directory->start();
  CHECK(bench.members() == Texts{});
  bench.settle();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1", "a.example:7=rdma:10.0.0.2:7", "rdma:10.0.0.3:1"});
  CHECK(bench.observer.members == 1);
  REQUIRE(bench.directory->problems().size() == 1);
  CHECK(bench.directory->problems()[0].starts_with("dns+rdma:gone.example.:1: there is no such name (since "));

  server.set("gone.example", dns::kA, {dns::a("10.0.0.4")});
  bench.patience.until([&] { return bench.directory->problems().empty(); });
  CHECK(bench.members() ==
        Texts{"rdma:10.0.0.1:1", "a.example:7=rdma:10.0.0.2:7", "rdma:10.0.0.3:1", "rdma:10.0.0.4:1"});
}

TEST_CASE("status says of each source what it gives, since when, and what is wrong") {
  Bench bench;
  dns::NameServer server(bench.loop);
  bench.use(server);
  server.set("pool.example", dns::kA, {dns::a("10.0.0.1"), dns::a("10.0.0.2")});
  bench.make({"rdma:10.0.0.9:1", "dns+rdma:gone.example.:1", "dns+rdma:pool.example.:1"});
  bench.add("file /etc/members").set({"rdma:10.0.0.8:1"});
  bench.directory->start();
  CHECK(!bench.directory->status().at(1).learned_at);
  bench.settle();
  const std::vector<discovery::SourceStatus> status = bench.directory->status();
  REQUIRE(status.size() == 3);
  CHECK(status[0].name == "dns+rdma:gone.example.:1");
  CHECK(status[0].members == 0);
  CHECK(status[0].problem.starts_with("there is no such name (since "));
  CHECK(!status[0].learned_at);
  CHECK(status[1].name == "dns+rdma:pool.example.:1");
  CHECK(status[1].members == 2);
  CHECK(status[1].problem.empty());
  CHECK(status[1].learned_at);
  CHECK(status[2].name == "file /etc/members");
  CHECK(status[2].members == 1);
}

TEST_CASE("the file's members come after the entries', and it may change, go and come") {
  Bench bench;
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) { std::ofstream(folder.at(name)) << text; };
  write("one", "rdma:10.0.0.3:1\nrdma:10.0.0.2:1\n");
  write("two", "rdma:10.0.0.4:1\n");
  bench.options.file.path = folder.at("one");
  bench.make({"rdma:10.0.0.1:1"});
  bench.directory->start();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1", "rdma:10.0.0.3:1", "rdma:10.0.0.2:1"});
  REQUIRE(bench.directory->status().size() == 1);
  CHECK(bench.directory->status()[0].name == "file " + folder.at("one"));
  CHECK(bench.directory->status()[0].learned_at);

  write("one", "rdma:10.0.0.5:1\n");  // removes all that were: only because the operator asks for it
  bench.reload({"rdma:10.0.0.1:1"});
  bench.pass();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1", "rdma:10.0.0.5:1"});

  bench.options.file.path = folder.at("two");
  bench.reload({});
  bench.pass();
  CHECK(bench.members() == Texts{"rdma:10.0.0.4:1"});

  bench.options.file.path = folder.at("none");
  bench.reload({});
  bench.pass();
  CHECK(bench.members() == Texts{"rdma:10.0.0.4:1"});
  REQUIRE(bench.directory->problems().size() == 2);
  CHECK(bench.directory->problems()[1] == "no source has any members: the pool keeps the 1 member it has");

  bench.options.file.path = "";
  bench.reload({"rdma:10.0.0.1:1"});
  bench.pass();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1"});
  CHECK(bench.directory->problems().empty());
}

TEST_CASE("a reload with other plain entries changes the members, and one with the same entries nothing") {
  Bench bench;
  bench.make({"rdma:10.0.0.1:1", "rdma:10.0.0.2:1"});
  bench.directory->start();
  bench.reload({"rdma:10.0.0.1:1", "rdma:10.0.0.2:1"});
  bench.pass();
  CHECK(bench.observer.members == 0);
  bench.reload({"rdma:10.0.0.2:1 weight=2", "rdma:10.0.0.3:1"});
  CHECK(bench.observer.members == 0);  // not from within the call
  bench.pass();
  CHECK(bench.observer.members == 1);
  CHECK(bench.members() == Texts{"rdma:10.0.0.2:1*2", "rdma:10.0.0.3:1"});

  bench.options.entries = {"rdma:nonsense"};
  CHECK(!bench.directory->reload(bench.options));
  bench.pass();
  CHECK(bench.members() == Texts{"rdma:10.0.0.2:1*2", "rdma:10.0.0.3:1"});
  CHECK(bench.observer.problems == 0);
}

TEST_CASE("a reload keeps what names have learned, and waits for new ones") {
  Bench bench;
  dns::NameServer server(bench.loop);
  bench.use(server);
  server.set("one.example", dns::kA, {dns::a("10.0.0.1")});
  server.set("two.example", dns::kA, {dns::a("10.0.0.2")});
  bench.make({"dns+rdma:one.example.:1"});
  HandSource& file = bench.add("file /etc/members");
  file.set({"rdma:10.0.0.8:1"});
  bench.directory->start();
  bench.settle();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1", "rdma:10.0.0.8:1"});

  server.behave("one.example", dns::kA, dns::Outcome::kServerFails);
  bench.reload({"dns+rdma:two.example.:1", "dns+rdma:one.example.:1"});
  CHECK(!bench.directory->is_settled());
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1", "rdma:10.0.0.8:1"});
  bench.settle();
  CHECK(bench.members() == Texts{"rdma:10.0.0.2:1", "rdma:10.0.0.1:1", "rdma:10.0.0.8:1"});
  CHECK(bench.observer.members == 2);

  bench.reload({"dns+rdma:two.example.:1 weight=3"});
  bench.patience.until([&] { return bench.members() == Texts{"rdma:10.0.0.2:1*3", "rdma:10.0.0.8:1"}; });
}

TEST_CASE("a reload asks the name servers that it names") {
  Bench bench;
  dns::NameServer first(bench.loop);
  dns::NameServer second(bench.loop);
  bench.use(first);
  first.set("pool.example", dns::kA, {dns::a("10.0.0.1")});
  second.set("pool.example", dns::kA, {dns::a("10.0.0.2")});
  bench.make({"dns+rdma:pool.example.:1"});
  bench.directory->start();
  bench.settle();
  bench.use(second);
  bench.reload({"dns+rdma:pool.example.:1"});
  bench.patience.until([&] { return bench.members() == Texts{"rdma:10.0.0.2:1"}; });
}

TEST_CASE("a reload to entries that give no members leaves the pool its members") {
  Bench bench;
  dns::NameServer server(bench.loop);
  bench.use(server);
  bench.make({"rdma:10.0.0.1:1"});
  bench.directory->start();
  bench.reload({"dns+rdma:gone.example.:1"});
  bench.settle();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1"});
  REQUIRE(bench.directory->problems().size() == 2);
  CHECK(bench.directory->problems()[1] == "no source has any members: the pool keeps the 1 member it has");
  server.set("gone.example", dns::kA, {dns::a("10.0.0.2")});
  bench.patience.until([&] { return bench.members() == Texts{"rdma:10.0.0.2:1"}; });
  CHECK(bench.directory->problems().empty());
}

TEST_CASE("sources that have no members at the start: a problem, and members when they come") {
  Bench bench;
  bench.make({});
  HandSource& file = bench.add("file /etc/members");
  file.set_problem("there is no such file");
  bench.directory->start();
  CHECK(bench.directory->is_settled());
  CHECK(bench.members() == Texts{});
  CHECK(bench.directory->problems() ==
        Problems{"file /etc/members: there is no such file", "no source has any members"});
  file.set({"rdma:10.0.0.1:1"});
  file.set_problem("");
  bench.pass();
  CHECK(bench.members() == Texts{"rdma:10.0.0.1:1"});
  CHECK(bench.directory->problems().empty());
}
