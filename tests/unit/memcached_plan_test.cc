// The effects of memcached's flags: options of both daemons, notes for the log, refusals with memcached's statuses.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "memcached/command_line.h"
#include "memcached/flags.h"
#include "memcached/plan.h"
#include "store/store.h"

using namespace egret::memcached;

namespace {

std::variant<Request, Refusal> read(std::vector<std::string> words) {
  words.insert(words.begin(), "egret-memcached");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return read_command_line(static_cast<int>(words.size()), argv.data());
}

std::variant<Plan, Refusal> planned(const std::vector<std::string>& words, const std::string& sasl_file = "") {
  auto request = read(words);
  if (const auto* refusal = std::get_if<Refusal>(&request)) return *refusal;
  return make_plan(std::get<Request>(request), sasl_file);
}

Plan plan_of(const std::vector<std::string>& words, const std::string& sasl_file = "") {
  auto plan = planned(words, sasl_file);
  REQUIRE_MESSAGE(std::holds_alternative<Plan>(plan), std::get<Refusal>(plan).message);
  return std::get<Plan>(plan);
}

// 0: it is not refused.
int refused(const std::vector<std::string>& words) {
  auto plan = planned(words);
  return std::holds_alternative<Plan>(plan) ? 0 : std::get<Refusal>(plan).status;
}

std::string listen_of(const std::vector<std::string>& words) {
  return plan_of(words).proxy.at("listen");
}

std::string notes_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& note : plan_of(words).notes) text += note + "\n";
  return text;
}

}  // namespace

TEST_CASE("one process unless two are asked for; other programs' sessions only where they are let in") {
  const auto request_of = [](const std::vector<std::string>& words) { return std::get<Request>(read(words)); };
  CHECK_FALSE(request_of({"-t", "2"}).two_processes);
  CHECK(request_of({"--two-processes"}).two_processes);
  CHECK(request_of({}).listen.empty());
  CHECK(request_of({"-o", "egret_listen=shm:/run/a", "-o", "egret_listen=tcp:127.0.0.1:7"}).listen ==
        std::vector<std::string>{"shm:/run/a", "tcp:127.0.0.1:7"});
  CHECK(refused({"-o", "egret_listen="}) != 0);
}

TEST_CASE("without flags it is memcached's defaults") {
  const Plan plan = plan_of({});
  CHECK(plan.proxy.at("listen") == "tcp:*:11211");
  CHECK(plan.proxy.at("max_connections") == "1024");
  CHECK(plan.backend.at("memory") == std::to_string(64 << 20));
  CHECK(plan.backend.at("item_size_max") == std::to_string(1 << 20));
  CHECK(plan.backend.at("populate") == "false");
  CHECK_FALSE(plan.backend.contains("evict"));
  CHECK_FALSE(plan.proxy.contains("workers"));
  CHECK(plan.notes.empty());
}

TEST_CASE("the table is one that getopt can be made of") {
  std::set<std::string> names;
  std::set<char> letters;
  for (const Flag& flag : flag_table()) {
    CAPTURE(shown(flag));
    CHECK(names.insert((flag.is_extended ? "-o " : "--") + std::string(flag.name.empty() ? "D" : flag.name)).second);
    if (flag.letter != '\0') CHECK(letters.insert(flag.letter).second);
    CHECK((flag.fate == Fate::kApplied) == (flag.apply != nullptr));
    CHECK((flag.fate != Fate::kOption || !flag.option.empty()));
    CHECK((!flag.help.empty() || flag.is_hidden));
    CHECK(help_markdown().find("`" + shown(flag) + "`") != std::string::npos);
    CHECK((flag.is_hidden ||
           help_text().find(flag.is_extended ? "- " + std::string(flag.name) : shown(flag)) != std::string::npos));
  }
  // All of memcached 1.6.18's.
  for (const char letter : std::string("aAZpsUmMckhiVrvdluPfntDLRCbBISFXWYeN")) CHECK(letters.contains(letter));
}

TEST_CASE("flags become options, short and long, alone and together") {
  CHECK(plan_of({"-c", "77"}).proxy.at("max_connections") == "77");
  CHECK(plan_of({"--conn-limit=77"}).proxy.at("max_connections") == "77");
  CHECK(plan_of({"--conn-limit", "77"}).proxy.at("max_connections") == "77");
  CHECK(plan_of({"-Mp12", "-t3"}).backend.at("evict") == "false");
  CHECK(plan_of({"-t3"}).proxy.at("workers") == "3");
  CHECK(plan_of({"-b", "9"}).proxy.at("backlog") == "9");
  CHECK(plan_of({"-L"}).backend.at("populate") == "true");
  CHECK(plan_of({"-k"}).backend.at("lock_memory") == "true");
  CHECK(plan_of({"-e", "/dev/shm/x"}).backend.at("warm_restart") == "/dev/shm/x");
  CHECK(plan_of({"-AF"}).proxy.at("allow_shutdown") == "on");
  CHECK(plan_of({"-AF"}).proxy.at("allow_flush") == "off");
  CHECK(plan_of({"-X"}).proxy.at("allow_dump") == "off");
  CHECK(plan_of({"-W"}).proxy.at("allow_watch") == "off");
  CHECK(plan_of({"-vv"}).proxy.at("log_level") == "debug");
  CHECK(plan_of({"-v"}).backend.at("log_level") == "info");
  CHECK(plan_of({}).backend.at("log_level") == "warning");
  CHECK(plan_of({"-o", "idle_timeout=7,no_maxconns_fast"}).proxy.at("idle_timeout") == "7s");
  CHECK(plan_of({"-o", "idle_timeout=7,no_maxconns_fast"}).proxy.at("maxconns_fast") == "off");
  CHECK(plan_of({}).proxy.at("admin").empty());
  CHECK(plan_of({}).backend.at("admin").empty());
  CHECK(plan_of({"-o", "egret_admin=127.0.0.1:11280"}).proxy.at("admin") == "127.0.0.1:11280");
  CHECK(plan_of({"-o", "egret_backend_admin=unix:/run/a"}).backend.at("admin") == "unix:/run/a");
  CHECK(plan_of({"-o", "egret_admin_hosts=one:two.example"}).proxy.at("admin_hosts") == "one,two.example");
  CHECK(plan_of({"-o", "egret_admin_hosts=one:two.example"}).backend.at("admin_hosts") == "one,two.example");
  CHECK(plan_of({"--extended=maxconns_fast"}).proxy.at("maxconns_fast") == "on");
  CHECK(plan_of({"-a", "777", "-s", "/x"}).proxy.at("unix_mode") == "777");
}

TEST_CASE("addresses") {
  CHECK(listen_of({"-p", "1234"}) == "tcp:*:1234");
  CHECK(listen_of({"-p", "-1"}) == "tcp:*:0");
  CHECK(listen_of({"-l", "127.0.0.1,10.0.0.1:99", "-l", "localhost"}) ==
        "tcp:127.0.0.1:11211,tcp:10.0.0.1:99,tcp:localhost:11211");
  CHECK(listen_of({"-l", "127.0.0.1;127.0.0.1"}) == "tcp:127.0.0.1:11211");
  CHECK(listen_of({"-l", "::1", "-p", "7"}) == "tcp:[::1]:7");
  CHECK(listen_of({"-l", "[::1]:8,[::2]"}) == "tcp:[::1]:8,tcp:[::2]:11211");
  CHECK(listen_of({"-l", "*:8"}) == "tcp:*:8");
  CHECK(listen_of({"-s", "/tmp/x", "-p", "9"}) == "unix:/tmp/x");
  CHECK(listen_of({"-s", "/tmp/x", "-p", "0"}) == "unix:/tmp/x");
  CHECK(listen_of({"-l", "tag[abc]:127.0.0.1"}) == "tcp:127.0.0.1:11211");
  CHECK_FALSE(plan_of({"-s", "/tmp/x"}).has_tcp);
  CHECK(refused({"-p", "65536"}) == kUsage);
  CHECK(refused({"-p", "0"}) == kFailure);
  CHECK(refused({"-p", "abc"}) == kFailure);
  CHECK(refused({"-l", "notls:127.0.0.1"}) == kSystem);
  CHECK(refused({"-l", "127.0.0.1:abc"}) == kSystem);
  CHECK(refused({"-l", "[::1"}) == kSystem);
  CHECK(refused({"-l", "proto[ascii]:127.0.0.1"}) == kFailure);
}

TEST_CASE("TLS") {
  const Plan plan = plan_of({"-Z", "-o", "ssl_chain_cert=/c,ssl_key=/k,ssl_verify_mode=2,ssl_min_version=3", "-o",
                             "ssl_ca_cert=/a,ssl_ciphers=A:B", "-l", "notls:127.0.0.1:1,127.0.0.1"});
  CHECK(plan.proxy.at("listen") == "tcp:127.0.0.1:1,tls:127.0.0.1:11211");
  CHECK(plan.proxy.at("tls_certificate") == "/c");
  CHECK(plan.proxy.at("tls_key") == "/k");
  CHECK(plan.proxy.at("tls_ca_certificate") == "/a");
  CHECK(plan.proxy.at("tls_verify") == "require");
  CHECK(plan.proxy.at("tls_min_version") == "1.3");
  CHECK(plan.proxy.at("tls_ciphers") == "A:B");
  CHECK(plan_of({"-o", "ssl_session_cache"}).proxy.at("tls_session_cache") == "true");
  CHECK(refused({"-Z"}) == kUsage);
  CHECK(refused({"-Z", "-p", "0", "-s", "/x"}) == kUsage);
  CHECK(refused({"-o", "ssl_verify_mode=4"}) == kFailure);
  CHECK(refused({"-o", "ssl_keyformat=2"}) == kFailure);
}

TEST_CASE("who is let in, and in which dialect") {
  CHECK_FALSE(plan_of({"-B", "auto"}).proxy.contains("protocol"));
  CHECK(plan_of({"-B", "binary"}).proxy.at("protocol") == "binary");
  CHECK(plan_of({"-Y", "/f"}).proxy.at("protocol") == "ascii");
  CHECK(plan_of({"-Y", "/f"}).proxy.at("auth_file") == "/f");
  CHECK(plan_of({"-S"}, "/pw").proxy.at("auth_file") == "/pw");
  CHECK(plan_of({"-S"}, "/pw").proxy.at("protocol") == "binary");
  CHECK_FALSE(plan_of({"-S", "-Y", "/f"}, "/pw").proxy.contains("protocol"));
  CHECK(plan_of({"-S", "-Y", "/f"}, "/pw").proxy.at("auth_file") == "/f");
  CHECK(refused({"-S"}) == kFailure);
  CHECK(refused({"-S", "-B", "ascii"}) == kUsage);
  CHECK(refused({"-S", "-B", "auto"}) == kUsage);
  CHECK(refused({"-Y", "/f", "-B", "binary"}) == kUsage);
  CHECK(refused({"-B", "http"}) == kUsage);
}

TEST_CASE("memory and items") {
  CHECK(plan_of({"-I", "2m"}).backend.at("item_size_max") == std::to_string(2 << 20));
  CHECK(plan_of({"-I", "512K"}).backend.at("item_size_max") == std::to_string(512 << 10));
  CHECK(plan_of({"-I", "4096"}).backend.at("item_size_max") == "4096");
  CHECK(plan_of({"-m", "2"}).backend.at("memory") == std::to_string(2 << 20));
  CHECK(refused({"-m", "1"}) == kUsage);  // less than two items
  CHECK(refused({"-m", "0"}) == kUsage);
  CHECK(refused({"-I", "1000"}) == kUsage);
  CHECK(refused({"-I", "33m"}) == kUsage);
  CHECK(refused({"-m", "4096", "-I", "1025m"}) == kUsage);
  CHECK(refused({"-m", "4096", "-I", "1024m"}) == kFailure);
  CHECK(refused({"-m", "4096", "-I", "128m"}) == 0);
  CHECK(refused({"-I", "large"}) == kFailure);
  // Whatever is let through, the store can be made of.
  for (const uint64_t mib : {1u, 2u, 3u, 64u, 256u}) {
    const uint64_t largest = mib << 19;
    CHECK(refused({"-m", std::to_string(mib), "-I", std::to_string(largest + 1)}) == kUsage);
    for (const uint64_t size : {uint64_t{1024}, largest / 2, largest}) {
      CHECK(refused({"-m", std::to_string(mib), "-I", std::to_string(size)}) == 0);
      CHECK(egret::store::least_memory(static_cast<uint32_t>(size)) <= mib << 20);
    }
  }
}

TEST_CASE("what has no meaning here is named, once for all; what would be missed is refused") {
  CHECK(notes_of({"-C", "-R", "5", "-o", "modern,hashpower=20", "-f", "1.1"}) ==
        "without a meaning here: -C, -R, -o modern, -o hashpower, -f\n");
  CHECK(plan_of({"-C", "-R", "5", "-o", "hashpower=20"}).proxy.at("told_settings") ==
        "cas_enabled=no,hashpower_init=20,reqs_per_event=5");
  CHECK(plan_of({"-o", "watcher_logbuf_size=8"}).proxy.at("told_settings") == "watcher_logbuf_size=8192");
  CHECK_FALSE(plan_of({}).proxy.contains("told_settings"));
  CHECK(notes_of({"-t", "100"}).find("-t above 64") != std::string::npos);
  CHECK(plan_of({"-t", "100"}).proxy.at("workers") == "64");
  CHECK(notes_of({"-U", "0", "-o", "maxconns_fast"}).empty());
  for (const char* option : {"slab_reassign", "slab_automove", "slab_automove=2", "track_sizes", "no_inline_ascii_resp",
                             "tail_repair_time=10", "temporary_ttl=-5", "resp_obj_mem_limit", "relaxed_privileges"}) {
    CHECK_MESSAGE(refused({"-o", option}) == 0, option);
  }
  for (const char* option : {"ext_path=/x:1g", "proxy_config=x", "drop_privileges", "no_such_thing", "hashpower",
                             "hashpower=11", "hashpower=33", "idle_timeout", "slab_automove_window=2", "hot_lru_pct=80",
                             "hot_max_factor=0", "ssl_ciphers", "idle_timeout=1,nonsense"}) {
    CHECK_MESSAGE(refused({"-o", option}) == kFailure, option);
  }
  CHECK(refused({"-U", "11211"}) == kFailure);
  CHECK(refused({"-c", "0"}) == kFailure);
  CHECK(refused({"-t", "0"}) == kFailure);
  CHECK(refused({"-R", "0"}) == kFailure);
  CHECK(refused({"-f", "1"}) == kFailure);
  CHECK(refused({"-n", "0"}) == kFailure);
}

TEST_CASE("paths are those of the directory it was started in") {
  CHECK(plan_of({"-s", "x.sock"}).proxy.at("listen").starts_with("unix:/"));
  CHECK(plan_of({"-Y", "auth"}).proxy.at("auth_file").starts_with("/"));
  CHECK(std::get<Request>(read({"-P", "pid"})).pid_file.starts_with("/"));
}

TEST_CASE("the first of -h, -V and -i ends the reading") {
  CHECK(std::get<Request>(read({"-V", "-c", "0"})).action == Action::kVersion);
  CHECK(std::get<Request>(read({"--help"})).action == Action::kHelp);
  CHECK(std::get<Request>(read({"-i"})).action == Action::kLicense);
}
