#include "bench_paradigms/model/paper_figures.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace egret::bench_paradigms {

namespace {

constexpr Tuning kAsPaper{.as_paper = true};
constexpr Tuning kNearlyEmpty{.as_paper = true, .load = .02};
constexpr Tuning kBatched{.as_paper = true, .doorbell = 16};
constexpr Tuning kSequencer{.as_paper = true, .doorbell = 16, .ud_pairs = 3, .batch_add = 16};

constexpr Tuning fetching(uint32_t bytes) {
  return {.as_paper = true, .fetch_bytes = bytes};
}
constexpr Plan plan_of(uint32_t key_bytes, uint32_t value_bytes, const Tuning& tuning = kAsPaper) {
  return {.clients = 4, .window = 4, .key_bytes = key_bytes, .value_bytes = value_bytes, .tuning = tuning};
}
constexpr PaperRun pilaf(uint32_t value_bytes, double gets) {
  return {"pilaf", plan_of(23, value_bytes, kNearlyEmpty), gets};
}
constexpr PaperRun rfp(uint32_t value_bytes, uint32_t fetch_bytes, double gets = .95) {
  return {"rfp", plan_of(16, value_bytes, fetching(fetch_bytes)), gets};
}
constexpr PaperRun small(std::string_view id, double gets) {
  return {id, plan_of(16, 32), gets};
}
// Where so many clients want something that requests gather between two looks of a core.
constexpr PaperRun saturated(std::string_view id, const Tuning& tuning, uint32_t keys) {
  Plan plan = plan_of(16, 32, tuning);
  plan.clients = 16;
  plan.window = 8;
  return {id, plan, .95, keys, 8000, 64};
}
constexpr PaperRun kHerdBatched = saturated("herd", kBatched, 300);
constexpr PaperRun kSeqRpc = saturated("seq-rpc", kSequencer, 1);
constexpr PaperRun kSeqS0 = saturated("seq-s0", kSequencer, 1);

constexpr Machines kPilafHosts{.nic = "cx2", .clients = 40, .client_hosts = 9};
constexpr Machines kApt{.nic = "cx3-56", .clients = 51, .client_hosts = 17, .posting_cores = 6};
constexpr Machines kHerdOnCib{.nic = "cib", .clients = 128, .client_hosts = 8, .posting_cores = 14};
constexpr Machines kSequencerHosts{.nic = "cib", .clients = 70, .client_hosts = 5, .posting_cores = 6};
constexpr Machines kDrtmOnCx3{.nic = "cx3-56"};
constexpr Machines kDrtmOnCib{.nic = "cib"};
constexpr Machines kJakiro{.nic = "cx3-40", .clients = 35, .client_hosts = 7, .posting_cores = 4};
constexpr Machines kServerReply{.nic = "cx3-40", .clients = 28, .client_hosts = 7, .posting_cores = 4};
constexpr Machines kMemcached{.nic = "cx3-40", .clients = 21, .client_hosts = 7, .posting_cores = 16};

// Of one core: not a limit of the card, so the hosts do not matter.
constexpr Machines kOneCoreOfCib{.nic = "cib", .posting_cores = 1};

constexpr std::string_view kSixThreads =
    "The paper's server has six threads, and is limited by the card's best out-bound rate, which is that of four: "
    "threads "
    "that also serve do not all post at a time.";
constexpr std::string_view kNearlyEmptyTable =
    "1.28 M/s are 1.9 of the card's 2.449 M/s READs: the table must have been almost empty, so ours is.";
constexpr std::string_view kColdAtomics =
    "Atomics on more words than the card's cache holds: 1.8 M/s, from outside the papers. With paper 002's 2.7 M/s the "
    "model "
    "would be a quarter and more off.";
constexpr std::string_view kFittedCore = "A core's time for an op is this figure's.";

constexpr PaperFigure kFigures[] = {
    {.what = "pilaf, gets",
     .source = "000, figure 7",
     .setting = "16 B, 40 clients",
     .machines = kPilafHosts,
     .paper = 1.28,
     .run = pilaf(16, 1),
     .note = kNearlyEmptyTable},
    {.what = "pilaf, puts",
     .source = "000, figure 7",
     .setting = "16 B, 40 clients",
     .machines = kPilafHosts,
     .paper = .663,
     .run = pilaf(16, 0)},
    {.what = "pilaf-vo, gets",
     .source = "000, figure 7",
     .setting = "16 B, 40 clients",
     .machines = kPilafHosts,
     .paper = .662,
     .run = {"pilaf-vo", plan_of(23, 16)}},
    {.what = "pilaf, 90 % gets",
     .source = "000, figure 10",
     .setting = "64 B",
     .machines = kPilafHosts,
     .paper = 1.3,
     .run = pilaf(64, .9)},
    {.what = "pilaf, 50 % gets",
     .source = "000, figure 10",
     .setting = "256 B",
     .machines = kPilafHosts,
     .paper = 1.3,
     .run = pilaf(256, .5)},
    {.what = "pilaf, 90 % gets",
     .source = "000, section 5.4",
     .setting = "256 B",
     .machines = kPilafHosts,
     .paper = 1.0,
     .run = pilaf(256, .9),
     .note = "The paper: 80 % of the card's READs beside puts. The model's pools are independent, so it says more."},
    {.what = "pilaf, gets",
     .source = "000, section 5.2",
     .setting = "4 KiB: 11.7 Gb/s",
     .machines = kPilafHosts,
     .paper = .357,
     .run = pilaf(4096, 1)},
    {.what = "pilaf-em, gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients",
     .machines = kApt,
     .paper = 9.9,
     .run = {.id = "pilaf-em", .plan = plan_of(16, 32), .keys = 3000}},
    {.what = "farm-em, gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients",
     .machines = kApt,
     .paper = 17.2,
     .run = small("farm-em", 1)},
    {.what = "farm-em-var, gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients",
     .machines = kApt,
     .paper = 11.4,
     .run = small("farm-em-var", 1)},
    {.what = "herd, 95 % gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients, 6 cores",
     .machines = kApt,
     .paper = 26,
     .run = small("herd", .95)},
    {.what = "herd, 50 % gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients, 6 cores",
     .machines = kApt,
     .paper = 26,
     .run = small("herd", .5)},
    {.what = "herd, one response a doorbell",
     .source = "002, figure 9",
     .setting = "95 % gets, 128 clients, 14 cores",
     .machines = kHerdOnCib,
     .paper = 72.8,
     .run = small("herd", .95)},
    {.what = "herd, batched",
     .source = "002, figure 9",
     .setting = "95 % gets, 128 clients, 14 cores",
     .machines = kHerdOnCib,
     .paper = 98.3,
     .run = kHerdBatched},
    {.what = "seq-rpc",
     .source = "002, table 3",
     .setting = "70 clients, 6 cores, batched, 3 QPs",
     .machines = kSequencerHosts,
     .paper = 97.2,
     .run = kSeqRpc},
    {.what = "seq-s0",
     .source = "002, table 3",
     .setting = "70 clients, batched, headers only",
     .machines = kSequencerHosts,
     .paper = 122,
     .run = kSeqS0},
    {.what = "drtm-em, 10 % puts to gets",
     .source = "002, figure 10",
     .setting = "ConnectX-3, 16 M items",
     .machines = kDrtmOnCx3,
     .measure = Measure::kRatio,
     .paper = .28,
     .run = small("drtm-em", .9),
     .over = small("drtm-em", 1),
     .words_are_cold = true,
     .note = kColdAtomics},
    {.what = "drtm-em, puts to gets",
     .source = "002, figure 10",
     .setting = "ConnectX-3, 16 M items",
     .machines = kDrtmOnCx3,
     .measure = Measure::kRatio,
     .paper = .04,
     .run = small("drtm-em", 0),
     .over = small("drtm-em", 1),
     .words_are_cold = true,
     .note = kColdAtomics},
    {.what = "drtm-em, 10 % puts to gets",
     .source = "002, figure 10",
     .setting = "Connect-IB, locks 64 B apart",
     .machines = kDrtmOnCib,
     .measure = Measure::kRatio,
     .paper = .69,
     .run = small("drtm-em", .9),
     .over = small("drtm-em", 1)},
    {.what = "drtm-em, puts to gets",
     .source = "002, figure 10",
     .setting = "Connect-IB, locks 64 B apart",
     .machines = kDrtmOnCib,
     .measure = Measure::kRatio,
     .paper = .12,
     .run = small("drtm-em", 0),
     .over = small("drtm-em", 1)},
    {.what = "rfp (Jakiro), 95 % gets",
     .source = "004, figure 4",
     .setting = "32 B, 35 clients",
     .machines = kJakiro,
     .paper = 5.5,
     .run = rfp(32, 36)},
    {.what = "rfp, 5 % gets",
     .source = "004, figure 6",
     .setting = "32 B, 35 clients",
     .machines = kJakiro,
     .paper = 5.5,
     .run = rfp(32, 36, .05)},
    {.what = "rfp, 112 clients",
     .source = "004, section V-B",
     .setting = "32 B, 16 clients a host",
     .machines = {.nic = "cx3-40", .clients = 112, .client_hosts = 7, .posting_cores = 4},
     .paper = 3.1,
     .run = rfp(32, 36),
     .note = "With 16 threads a client's card posts slower: its out-bound rate is extrapolated from that of 4 and 8."},
    {.what = "reply (ServerReply), 95 % gets",
     .source = "004, figure 4",
     .setting = "32 B, 28 clients, 6 threads",
     .machines = kServerReply,
     .paper = 2.1,
     .run = small("reply", .95),
     .note = kSixThreads},
    {.what = "rfp, fetches of 36 B",
     .source = "004, figure 7",
     .setting = "64 B",
     .machines = kJakiro,
     .paper = 3.74,
     .run = rfp(64, 36)},
    {.what = "rfp, fetches of 36 B",
     .source = "004, figure 7",
     .setting = "512 B",
     .machines = kJakiro,
     .paper = 3.74,
     .run = rfp(512, 36)},
    {.what = "rfp, fetches of 36 B",
     .source = "004, figure 7",
     .setting = "1 KiB",
     .machines = kJakiro,
     .paper = 3.1,
     .run = rfp(1024, 36)},
    {.what = "rfp, fetches of 132 B",
     .source = "004, figure 8",
     .setting = "128 B",
     .machines = kJakiro,
     .paper = 5.5,
     .run = rfp(128, 132)},
    {.what = "rfp, fetches of 512 B",
     .source = "004, figure 10",
     .setting = "Weibo's values, 43 B on average",
     .machines = kJakiro,
     .paper = 5.4,
     .run = rfp(508, 512),
     .note = "Of gets, the fetch's size is what the card serves, whatever the value's; ours are of one size, which "
             "fills it."},
    {.what = "rfp, mean latency in µs",
     .source = "004, section V-C",
     .setting = "35 clients",
     .machines = kJakiro,
     .measure = Measure::kLatency,
     .paper = 5.78,
     .run = rfp(32, 36)},
    {.what = "reply, mean latency in µs",
     .source = "004, section V-C",
     .setting = "28 clients, 6 threads",
     .machines = kServerReply,
     .measure = Measure::kLatency,
     .paper = 12.06,
     .run = small("reply", .95),
     .note = kSixThreads},
    {.what = "reply, mean latency in µs",
     .source = "004, section V-C",
     .setting = "28 clients, 6 threads, all posting",
     .machines = {.nic = "cx3-40", .clients = 28, .client_hosts = 7, .posting_cores = 6},
     .measure = Measure::kLatency,
     .paper = 12.06,
     .run = small("reply", .95),
     .standing = Standing::kNotMet,
     .note = "As if all six threads posted at a time, at a rate between those of four and of eight. The paper measures "
             "2.1 M/s "
             "with these six, which is the card's best and not this rate: the row shows what the reading is worth."},
    {.what = "memc, mean latency in µs",
     .source = "004, section V-C",
     .setting = "21 clients, 16 cores of 12.3 µs an op",
     .machines = kMemcached,
     .measure = Measure::kLatency,
     .paper = 14.76,
     .run = small("memc", .95),
     .server_ns = 12'300,
     .standing = Standing::kFitted,
     .note = "A core's time for an op is that of 1.3 M/s by 16 cores, the same paper's."},
    {.what = "nessie to nessie-sd, all processors busy",
     .source = "003, figures 7 and 8",
     .setting = "nodes of 12 cores, 3 of them for the server",
     .machines = {.posting_cores = 3},
     .measure = Measure::kClientCores,
     .paper = 1.33,
     .run = {"nessie", plan_of(128, 879)},
     .over = {"nessie-sd", plan_of(128, 879)},
     .node_cores = 12,
     .note = "Of verbs, only whether the server posts any is used: its cores are then not the clients'."},

    // What is put in, and what was fitted to a figure.
    {.what = "seq-faa",
     .source = "002, table 3",
     .setting = "one word",
     .machines = kDrtmOnCib,
     .paper = 2.24,
     .run = {.id = "seq-faa", .plan = plan_of(16, 32), .keys = 1},
     .standing = Standing::kInput,
     .note = "The card's rate of atomics on one word is this figure."},
    {.what = "herd, 260 clients",
     .source = "001, figure 12",
     .setting = "16 + 32 B, 6 cores",
     .machines = {.nic = "cx3-56", .clients = 260, .client_hosts = 186, .posting_cores = 6},
     .paper = 26,
     .run = small("herd", .95),
     .standing = Standing::kInput,
     .note = "So many UC pairs are taken to be in the card's cache because of this figure."},
    {.what = "herd on a core",
     .source = "002, section 4.3.1",
     .setting = "one response a doorbell",
     .machines = kOneCoreOfCib,
     .paper = 6.7,
     .run = small("herd", .95),
     .server_ns = 149,
     .standing = Standing::kFitted,
     .note = kFittedCore},
    {.what = "herd on a core, batched",
     .source = "002, section 4.3.1",
     .setting = "16 responses a doorbell",
     .machines = kOneCoreOfCib,
     .paper = 12.3,
     .run = kHerdBatched,
     .server_ns = 81,
     .standing = Standing::kFitted,
     .note = kFittedCore},
    {.what = "seq-rpc on a core",
     .source = "002, section 4.2",
     .setting = "one response a doorbell",
     .machines = kOneCoreOfCib,
     .paper = 7.0,
     .run = {.id = "seq-rpc", .plan = plan_of(16, 32), .keys = 1},
     .server_ns = 143,
     .standing = Standing::kFitted,
     .note = kFittedCore},
    {.what = "seq-rpc on a core, batched",
     .source = "002, section 4.2",
     .setting = "1 QP a port",
     .machines = kOneCoreOfCib,
     .paper = 16.6,
     .run = saturated("seq-rpc", kBatched, 1),
     .server_ns = 60,
     .standing = Standing::kFitted,
     .note = kFittedCore},
    {.what = "seq-rpc on a core, batched",
     .source = "002, section 4.2",
     .setting = "3 QPs a port",
     .machines = kOneCoreOfCib,
     .paper = 27.4,
     .run = kSeqRpc,
     .server_ns = 36,
     .standing = Standing::kFitted,
     .note = kFittedCore},
    {.what = "memc, 95 % gets",
     .source = "004, figure 4",
     .setting = "21 clients, 16 cores",
     .machines = kMemcached,
     .paper = 1.3,
     .run = small("memc", .95),
     .server_ns = 12'300,
     .standing = Standing::kFitted,
     .note = kFittedCore},
};

constexpr std::array<std::string_view, kPairTypes> kPairNames{"RC", "UC", "UD"};
constexpr std::array<std::string_view, kVerbs> kVerbNames{"WRITE", "READ", "SEND", "CAS", "FAA", "RECV"};
constexpr std::array<std::string_view, 4> kStandings{"yes", "input", "fitted", "not met"};
constexpr std::array<std::string_view, 4> kUnits{" M/s", "", " µs", ""};  // by Measure

Counted complete(Counted counted, const PaperFigure& figure) {
  const Machines& machines = figure.machines;
  counted.server_cores = machines.posting_cores;
  counted.server_ns = figure.server_ns;
  counted.client_pairs = machines.clients;
  counted.client_hosts = machines.client_hosts;
  if (machines.client_hosts > 0) counted.client_threads = machines.clients / machines.client_hosts;
  counted.words_are_cold = figure.words_are_cold;
  return counted;
}

// A node's cores that its clients have: a server that posts needs its own.
double client_cores(const Counted& counted, const PaperFigure& figure) {
  return figure.node_cores - (counted.servers.doorbells > 0 ? figure.machines.posting_cores : 0);
}

// "1 UC WRITE of 20 B, 2 RC READ of 36 B"
std::string verbs_of(const VerbCounts& counts, double ops) {
  std::string out;
  for (size_t type = 0; type < kPairTypes; ++type) {
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      for (const SizeClass& size : counts.by_size[type][verb]) {
        if (size.count == 0) continue;
        const auto count = static_cast<double>(size.count);
        out += fmt::format("{}{:.3g} {} {} of {:.4g} B", out.empty() ? "" : ", ", count / ops, kPairNames[type],
                           kVerbNames[verb], static_cast<double>(size.bytes) / count);
      }
    }
  }
  return out.empty() ? "0" : out;
}

}  // namespace

std::span<const PaperFigure> paper_figures() {
  return kFigures;
}

ModelledFigure model_figure(const PaperFigure& figure, const CountRun& count) {
  ModelledFigure out;
  out.figure = &figure;
  const Counted run = complete(count(figure.run), figure);
  out.counted = verbs_of(run.clients, run.ops) + " / " + verbs_of(run.servers, run.ops);
  if (figure.measure == Measure::kClientCores) {
    out.model = client_cores(run, figure) / client_cores(complete(count(figure.over), figure), figure);
    out.tightest = "the clients' processors";
    return out;
  }
  const auto nic = bench_nic::read_nic(std::string(figure.machines.nic));
  if (!nic) return out;
  const Prediction predicted = predict(nic.value(), run);
  if (!predicted.terms.empty()) out.tightest = predicted.terms.front().what;
  out.is_known = predicted.is_known();
  out.model = predicted.rate;
  if (figure.measure == Measure::kLatency) out.model = figure.machines.clients / predicted.rate;
  if (figure.measure == Measure::kRatio) {
    out.model = predicted.rate / predict(nic.value(), complete(count(figure.over), figure)).rate;
  }
  return out;
}

std::string to_markdown(std::span<const ModelledFigure> figures) {
  std::string out =
      "| what | paper | setting | card | paper says | model says | | counts | counted, client / server, of an op | "
      "tightest |\n"
      "| --- | --- | --- | --- | ---: | ---: | ---: | --- | --- | --- |\n";
  std::string notes;
  for (const ModelledFigure& each : figures) {
    const PaperFigure& figure = *each.figure;
    const auto unit = kUnits[static_cast<size_t>(figure.measure)];
    out += fmt::format("| {} | {} | {} | {} | {:.3g}{} | {:.3g}{} | {:+.0f} % | {} | {} | {} |\n", figure.what,
                       figure.source, figure.setting, figure.machines.nic.empty() ? "–" : figure.machines.nic,
                       figure.paper, unit, each.model, unit, std::round(100 * each.difference()) + 0.0,
                       kStandings[static_cast<size_t>(figure.standing)], each.counted, each.tightest);
    if (!figure.note.empty()) {
      notes += fmt::format("- {} ({}; {}): {}\n", figure.what, figure.source, figure.setting, figure.note);
    }
  }
  return out + "\n" + notes;
}

}  // namespace egret::bench_paradigms
