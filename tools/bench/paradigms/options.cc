#include "bench_paradigms/options.h"

#include <cstdio>
#include <map>
#include <string_view>

#include <CLI/CLI.hpp>

#include "bench/keyspace.h"
#include "bench_nic/nic.h"
#include "bench_paradigms/harness/presets.h"
#include "bench_paradigms/paradigm.h"
#include "bench_paradigms/report/names.h"

namespace egret::bench_paradigms {

using base::Status;

namespace {

constexpr double kPercent = 100;
constexpr uint32_t kMostKeys = 100'000'000;
constexpr uint32_t kMostKeyBytes = 250;
constexpr uint32_t kMostValueBytes = 1 << 20;
constexpr uint32_t kMostThreads = 1024;
constexpr uint32_t kMostWindow = 1024;
constexpr uint32_t kMostHosts = 64;
constexpr uint32_t kMostPairs = 4096;
constexpr uint32_t kKeysInMemory = 10'000;
constexpr uint64_t kOpsInMemory = 20'000;

// What is given in other units than the setting has.
struct Given {
  std::vector<double> gets_percent;
  double erases_percent = 0;
  double locality_percent = 0;
  double reuse_delay_s = 1;
  std::vector<std::string> broken;
  std::string preset;
  std::string get_by, put_by;  // a pair of paradigms; empty: none
};

void add_sides(CLI::App& app, Options& options) {
  const auto group = "Hosts";
  auto* listen =
      app.add_option("--listen", options.listen,
                     "ADDRESS:PORT of this host's RDMA device: store, decide, measure, print; :PORT serves this "
                     "host alone")
          ->group(group);
  auto* connect =
      app.add_option("--connect", options.connect, "HOST:PORT of the listening one: be its clients")->group(group);
  auto* loop =
      app.add_option("--loop", options.loop, "ADDRESS:PORT of this host: both sides here, to try it out")->group(group);
  auto* memory = app.add_flag("--memory", options.is_in_memory,
                              "no device: all nodes in this process, over memory; verbs and answers are counted, "
                              "nothing is timed")
                     ->group(group);
  listen->excludes(connect)->excludes(loop)->excludes(memory);
  connect->excludes(loop)->excludes(memory);
  loop->excludes(memory);
  app.add_option("--token", options.token, "with --connect: what the listening side has shown")
      ->needs(connect)
      ->group(group);
  app.add_option("--hosts", options.hosts, "connecting hosts to wait for")
      ->excludes(connect)
      ->check(CLI::Range(1u, kMostHosts))
      ->capture_default_str()
      ->group(group);
}

void add_workload(CLI::App& app, Setting& setting, Given& given) {
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)
        ->group("Workload")
        ->excludes(app.get_option("--connect"))
        ->capture_default_str();
  };
  add("--only", setting.ids, "paradigms, such as pilaf,herd (default: all; they are listed below)")->delimiter(',');
  add("--get", given.get_by, "with --put: a row more, whose gets are one paradigm's and whose puts are another's")
      ->option_text("ID");
  add("--put", given.put_by, "NessieHY is --get nessie --put nessie-sd; each of both has a store of its own")
      ->option_text("ID")
      ->needs(app.get_option("--get"));
  app.get_option("--get")->needs(app.get_option("--put"));
  add("--preset", given.preset, "a paper's own setting (they are listed below); other options change it");
  add("--keys", setting.keys, "different keys")->check(CLI::Range(1u, kMostKeys));
  add("-K,--key-bytes", setting.key_bytes, "of every key")->check(CLI::Range(2u, kMostKeyBytes));
  add("-V,--value-bytes", setting.value_bytes, "of every value; a table for each, such as 32,128,512")
      ->delimiter(',')
      ->check(CLI::Range(8u, kMostValueBytes));
  add("--gets", given.gets_percent, "percent of the ops; a table for each, such as 50,95,100")
      ->delimiter(',')
      ->check(CLI::Range(0.0, kPercent));
  add("--erases", given.erases_percent, "percent of what are no gets")->check(CLI::Range(0.0, kPercent));
  add("--zipf", setting.zipf, "exponent of the keys' popularity, such as 0.99; 0: all alike")
      ->check(CLI::Range(0.0, 5.0));
  add("--writers", setting.writers, "")
      ->description(
          "one: a key is put by one client alone, and old values are told from new ones; any: by all, and they are not")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, Writers>{{"one", Writers::kOne}, {"any", Writers::kAny}}))
      ->default_str("")
      ->option_text("one|any [one]");
  add("--rate", setting.rates,
      "ops/s of all clients, on schedule, latency from when they are due; a table for each; 0: "
      "as fast as answers come")
      ->delimiter(',');
  add("--seed", setting.seed, "of all random choices");
}

void add_run(CLI::App& app, Options& options) {
  Setting& setting = options.setting;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)
        ->group("Threads and rounds")
        ->excludes(app.get_option("--connect"))
        ->capture_default_str();
  };
  add("--server-cores", setting.server_cores, "threads of the storing host, each with its part of the keys")
      ->check(CLI::Range(1u, kMostThreads));
  add("--clients", setting.clients, "client threads, of all hosts together")->check(CLI::Range(1u, kMostThreads));
  add("--window", setting.window, "ops of a client that are under way")->check(CLI::Range(1u, kMostWindow));
  add("--busy", setting.busy, "processes that spin on the storing host meanwhile")->check(CLI::Range(0u, kMostThreads));
  add("--rounds", setting.rounds, "of each paradigm, all in turn")->check(CLI::Range(1u, 1000u));
  add("--duration", setting.round_s, "seconds of a round")->check(CLI::Range(0.001, 3600.0));
  add("--warmup", setting.warm_up_s, "seconds before each")->check(CLI::Range(0.0, 3600.0));
  add("--ops", setting.ops, "so many in each round, and no warm-up, instead of times; 0: by time");
}

// The papers' ablations.
void add_tuning(CLI::App& app, Tuning& tuning, Given& given) {
  const auto group = "Variants";
  const auto add = [&](const char* name, auto& value, const char* help) {
    return app.add_option(name, value, help)
        ->group(group)
        ->excludes(app.get_option("--connect"))
        ->capture_default_str();
  };
  const auto flag = [&](const char* name, bool& value, const char* help) {
    app.add_flag(name, value, help)->group(group)->excludes(app.get_option("--connect"));
  };
  flag("--as-paper", tuning.as_paper, "without what we have added to the papers' designs to make them safe");
  add("--posting", tuning.is_synchronous, "")
      ->description("sync: wait for the completion of what was posted, before the next")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"sync", true}, {"pipelined", false}}))
      ->default_str("")
      ->option_text("sync|pipelined [pipelined]");
  add("--doorbell", tuning.doorbell,
      "answers of a pass that a server posts by one doorbell, at most; it waits for none")
      ->check(CLI::Range(1u, 256u));
  add("--ud-qps", tuning.ud_pairs, "UD pairs that a server core answers with, in turn")->check(CLI::Range(1u, 4u));
  add("--signal-every", tuning.signal_every, "posts, where nothing else needs a completion")
      ->check(CLI::Range(1u, 4096u));
  flag("--inline,!--no-inline", tuning.is_inline, "small payloads go with the work request (default)");
  flag("--header-only", tuning.is_header_only, "sequencers: the number goes as immediate data");
  add("--pad", tuning.pad, "bytes added to each response")->check(CLI::Range(0u, 4096u));
  flag("--huge", tuning.has_huge_pages,
       "slots and stores in huge pages, as far as the kernel has some (vm.nr_hugepages)");
  add("--queue-pairs", tuning.queue_pairs,
      "connections of each client thread to each server core, used in turn: where does a card's memory of them end?")
      ->check(CLI::Range(1u, kMostThreads));
  flag("--prefetch", tuning.prefetches, "a server looks at all requests of a pass before it executes the first");
  add("--batch-add", tuning.batch_add, "sequencers: one addition for so many requests of a pass")
      ->check(CLI::Range(1u, 256u));
  add("--atomic-stride", tuning.atomic_stride, "bytes between two lock words")->check(CLI::Range(8u, 1u << 20));
  add("--fetch-bytes", tuning.fetch_bytes, "rfp: of the first READ (RFS); 0: as the paper does")
      ->check(CLI::Range(0u, 1u << 20));
  add("--hybrid-vain", tuning.hybrid_vain, "rfp-hybrid, egret: fetches in vain before it asks for replies")
      ->check(CLI::Range(1u, 1000u));
  add("--ways", tuning.ways, "nessie: index tables")->check(CLI::Range(2u, 8u));
  add("--raw-reads", tuning.raw_reads, "raw-read: READs of a get; 2: of a word that says where the value is, before")
      ->check(CLI::Range(1u, 2u));
  flag("--cached-places,!--no-cached-places", tuning.caches_places, "drtm: clients know where the keys are (default)");
  add("--hops", tuning.hops, "farm: slots of a neighbourhood (H)")->check(CLI::Range(1u, 32u));
  flag("--checks,!--no-checks", tuning.checks, "farm: a checksum in each slot (default)");
  add("--load", tuning.load, "share of an exposed table's entries that hold a key")->check(CLI::Range(0.001, 0.95));
  add("--cache", tuning.cache_entries, "nessie: entries of a client's cache; 0: none");
  add("--locality", given.locality_percent, "nessie: percent of the gets for keys that the client itself puts")
      ->check(CLI::Range(0.0, kPercent));
  add("--place", tuning.places_at_server, "")
      ->description(
          "nessie: where an entry lies: own: in the memory of the client that puts it; server: in the servers', by "
          "WRITE")
      ->transform(CLI::CheckedTransformer(std::map<std::string, bool>{{"own", false}, {"server", true}}))
      ->default_str("")
      ->option_text("own|server [own]");
  add("--reuse-delay", given.reuse_delay_s, "nessie: seconds before an entry is used again (T)")
      ->check(CLI::Range(0.0, 3600.0));
  add("--index-load", tuning.index_load, "nessie: share of index words that refer to a key")
      ->check(CLI::Range(0.001, 0.95));
  add("--filter-bits", tuning.filter_bits, "nessie: of a key's hash in its index word")->check(CLI::Range(0u, 15u));
  add("--spare-entries", tuning.spare_entries, "nessie: a client's entries for puts")->check(CLI::Range(1u, 1u << 24));
  flag("--own-node", tuning.has_own_node,
       "nessie-sd: a server core and each client whose number is its modulo the cores are one node, and need no verbs "
       "where both are in one process");
  flag("--watermark", tuning.polls_watermark, "nessie: a READ has come when its last byte has");
}

void add_report(CLI::App& app, Options& options, Given& given) {
  const auto group = "Report";
  app.add_flag("--json", options.json, "print JSON instead of Markdown")->group(group);
  app.add_option("--svg", options.svg_folder, "write pictures into this folder: verbs of an op, rates, latencies")
      ->group(group);
  app.add_option("--nic", options.nic,
                 "say what the counted verbs would do on a card: one of the papers' (listed below), a file that "
                 "`egret-bench verbs --nic-file` has written, or measured: the file egret-nic.json")
      ->group(group);
  app.add_option("--breaks", given.broken,
                 "what this device is known to break, such as W,loss: who relies on it is left out of the verdict")
      ->delimiter(',')
      ->group(group);
}

// As docs/benchmarks/paradigms.md numbers them.
constexpr std::string_view kPapers =
    "  000: Pilaf, USENIX ATC 2013\n"
    "  001: HERD, SIGCOMM 2014\n"
    "  002: Design Guidelines for High Performance RDMA Systems, USENIX ATC 2016\n"
    "  003: Nessie, University of Waterloo CS-2015-09, 2015\n"
    "  004: RFP and Jakiro, arXiv:1512.07805, the first version, 2015\n";

std::string footer() {
  std::string out = "Paradigms:\n";
  for (const Paradigm& each : paradigms()) {
    out += "  " + std::string(each.id) + ": " + std::string(each.title) + " (" + std::string(each.source) + ")\n";
  }
  out += "Papers:\n" + std::string(kPapers);
  out += "Presets:\n";
  for (const Preset& each : presets()) out += "  " + std::string(each.name) + ": " + std::string(each.about) + "\n";
  out += "Cards:\n";
  for (const bench_nic::Nic& each : bench_nic::known_nics()) out += "  " + each.name + ": " + each.source + "\n";
  return out;
}

// Options change what a preset says: so it is applied before they are read.
Status apply_named_preset(int argc, char** argv, Setting& setting) {
  constexpr std::string_view kName = "--preset";
  for (int i = 1; i < argc; ++i) {
    const std::string_view each = argv[i];
    if (!each.starts_with(kName)) continue;
    std::string_view name = i + 1 < argc ? argv[i + 1] : "";
    if (each.size() > kName.size()) name = each.substr(kName.size() + 1);
    return apply_preset(name, setting);
  }
  return Status::ok();
}

Status marks_of(const std::vector<std::string>& names, uint8_t& marks) {
  for (const std::string& name : names) {
    const auto* const found =
        std::find_if(kMarkNames.begin(), kMarkNames.end(), [&name](const MarkName& each) { return each.name == name; });
    if (found == kMarkNames.end())
      return Status::error("--breaks: " + name + " is none of R, W, line, loss, time, HCA");
    marks = static_cast<uint8_t>(marks | found->mark);
  }
  return Status::ok();
}

// What is in other units, what is left open, and what cannot be.
Status complete(const CLI::App& app, const Given& given, Options& options) {
  Setting& setting = options.setting;
  if (options.listen.empty() && options.connect.empty() && options.loop.empty() && !options.is_in_memory) {
    return Status::error(
        "give --listen ADDRESS:PORT on one host and --connect HOST:PORT on the others, --loop ADDRESS:PORT, or "
        "--memory");
  }
  if (!given.get_by.empty()) {
    // Beside both of its halves, unless others are named.
    if (setting.ids.empty()) setting.ids = {given.get_by, given.put_by};
    setting.ids.push_back(given.get_by + "+" + given.put_by);
    if (find_paradigm(setting.ids.back()) == nullptr)
      return Status::error("--get " + given.get_by + " --put " + given.put_by +
                           ": one has no such ops, or is not there");
  }
  if (uint64_t{setting.clients} * setting.tuning.queue_pairs > kMostPairs) {
    return Status::error("--queue-pairs times --clients: " + std::to_string(kMostPairs) + " at most");
  }
  setting.gets.clear();
  for (const double each : given.gets_percent) setting.gets.push_back(each / kPercent);
  setting.erases = given.erases_percent / kPercent;
  setting.tuning.locality = given.locality_percent / kPercent;
  setting.tuning.reuse_delay_ns = static_cast<uint64_t>(given.reuse_delay_s * 1e9);
  if (options.is_in_memory && app.count("--busy") > 0) return Status::error("--busy: --memory times nothing");
  if (options.is_in_memory) {
    if (app.count("--keys") == 0) setting.keys = kKeysInMemory;
    if (setting.ops == 0) setting.ops = kOpsInMemory;
    if (app.count("--rounds") == 0) setting.rounds = 1;  // every one is the same
  }
  if (setting.keys < setting.clients) return Status::error("--keys must be at least --clients");
  if (setting.key_bytes < bench::Keyspace::min_key_size(setting.keys)) {
    return Status::error("--key-bytes: " + std::to_string(setting.key_bytes) + " bytes do not tell so many keys apart");
  }
  return marks_of(given.broken, setting.broken_marks);
}

Given given_of(const Setting& setting) {
  Given given;
  for (const double each : setting.gets) given.gets_percent.push_back(each * kPercent);
  given.erases_percent = setting.erases * kPercent;
  given.locality_percent = setting.tuning.locality * kPercent;
  given.reuse_delay_s = static_cast<double>(setting.tuning.reuse_delay_ns) / 1e9;
  given.preset = setting.preset;
  return given;
}

}  // namespace

bool parse_options(int argc, char** argv, Options& options, int& exit_status) {
  CLI::App app(
      "Runs every system of the papers on one workload, over the same verbs, and judges every answer.\n"
      "Exit status: 0, or 1 if anything went wrong, be it one answer of a paradigm that promises none.",
      "egret-bench paradigms");
  Status done = apply_named_preset(argc, argv, options.setting);
  Given given = given_of(options.setting);
  add_sides(app, options);
  add_workload(app, options.setting, given);
  add_run(app, options);
  add_tuning(app, options.setting.tuning, given);
  add_report(app, options, given);
  app.footer(footer());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_status = app.exit(error) == 0 ? 0 : 1;
    return false;
  }
  if (done) done = complete(app, given, options);
  if (done) return true;
  std::fprintf(stderr, "egret-bench paradigms: %s\n", done.message().c_str());
  exit_status = 1;
  return false;
}

}  // namespace egret::bench_paradigms
