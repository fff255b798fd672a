// The members as they are now, for programs that look once.
#include <chrono>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "discovery/learn.h"
#include "discovery_harness.h"
#include "discovery_name_server.h"
#include "temporary_folder.h"

using namespace egret;
using namespace std::chrono_literals;
using discovery::DirectoryOptions;
using discovery::Learned;

TEST_CASE("members that are written out and those of a file are there at once, and no copy of the file is made") {
  const TemporaryFolder folder;
  std::ofstream(folder.at("backends")) << "rdma:10.0.0.2:1\n";
  DirectoryOptions options{.entries = {"rdma:10.0.0.1:1"}};
  options.file.path = folder.at("backends");
  options.file.copy_path = folder.at("copy");
  const Learned learned = discovery::learn_members(options, 1h);
  CHECK(texts(learned.members) == Texts{"rdma:10.0.0.1:1", "rdma:10.0.0.2:1"});
  CHECK(learned.problems.empty());
  CHECK(!std::ifstream(folder.at("copy")));
}

TEST_CASE("a name server that does not answer in time is told of, and no part of a pool is taken for the whole") {
  events::EventLoop loop;  // does not run: the server has its socket, and never answers
  const dns::NameServer silent(loop);
  DirectoryOptions options{.entries = {"rdma:10.0.0.1:1", "srv+rdma:pool.example."}};
  options.names.resolver.servers = silent.address();
  const Learned learned = discovery::learn_members(options, 20ms);
  CHECK(learned.members.empty());
  CHECK(learned.problems ==
        std::vector<std::string>{"srv+rdma:pool.example.: no name server has answered within 20 ms"});
}
