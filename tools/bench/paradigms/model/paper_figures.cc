#include "bench_paradigms/model/paper_figures.h"

#include <cmath>
#include <cstdio>

namespace egret::bench_paradigms {

namespace {

// Sizes of the papers. A plan of tests' size: counts by op do not depend on how many keys or clients there are.
constexpr Plan plan_of(uint32_t key_bytes, uint32_t value_bytes, const Tuning& tuning = {}) {
  return {.clients = 4, .window = 4, .key_bytes = key_bytes, .value_bytes = value_bytes, .tuning = tuning};
}
constexpr Plan busy(Plan plan) {
  plan.clients = 16;
  plan.window = 8;
  return plan;
}
constexpr Tuning kAsPaper{.as_paper = true};
constexpr Tuning kNearlyEmpty{.as_paper = true, .load = .02};
constexpr Tuning kBatched{.as_paper = true, .doorbell = 16};
constexpr Tuning kFetch36{.as_paper = true, .fetch_bytes = 36};

constexpr PaperFigure kFigures[] = {
    {.what = "pilaf, gets",
     .source = "000, figure 7",
     .setting = "small values, 40 clients, an almost empty table",
     .nic = "cx2",
     .paper = 1.28,
     .run = {"pilaf", plan_of(23, 16, kNearlyEmpty)}},
    {.what = "pilaf, puts",
     .source = "000, figure 7",
     .setting = "small values, 40 clients",
     .nic = "cx2",
     .paper = .663,
     .run = {.id = "pilaf", .plan = plan_of(23, 16, kNearlyEmpty), .gets = 0}},
    {.what = "pilaf-vo, gets",
     .source = "000, figure 7",
     .setting = "small values, 40 clients",
     .nic = "cx2",
     .paper = .662,
     .run = {"pilaf-vo", plan_of(23, 16, kAsPaper)}},
    {.what = "pilaf, 90 % gets",
     .source = "000, figure 10",
     .setting = "64 B",
     .nic = "cx2",
     .paper = 1.3,
     .run = {.id = "pilaf", .plan = plan_of(23, 64, kNearlyEmpty), .gets = .9}},
    {.what = "pilaf, 50 % gets",
     .source = "000, figure 10",
     .setting = "256 B",
     .nic = "cx2",
     .paper = 1.3,
     .run = {.id = "pilaf", .plan = plan_of(23, 256, kNearlyEmpty), .gets = .5}},
    {.what = "pilaf, gets",
     .source = "000, section 5.2",
     .setting = "4 KiB",
     .nic = "cx2",
     .paper = .357,
     .run = {"pilaf", plan_of(23, 4096, kNearlyEmpty)}},
    {.what = "pilaf-em, gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients",
     .nic = "cx3-56",
     .paper = 9.9,
     .run = {"pilaf-em", plan_of(16, 32, kAsPaper)}},
    {.what = "farm-em, gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients",
     .nic = "cx3-56",
     .paper = 17.2,
     .run = {"farm-em", plan_of(16, 32, kAsPaper)}},
    {.what = "farm-em-var, gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients",
     .nic = "cx3-56",
     .paper = 11.4,
     .run = {"farm-em-var", plan_of(16, 32, kAsPaper)}},
    {.what = "herd, 95 % gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients, 6 cores",
     .nic = "cx3-56",
     .paper = 26,
     .run = {.id = "herd", .plan = plan_of(16, 32, kAsPaper), .gets = .95}},
    {.what = "herd, 50 % gets",
     .source = "001, figure 9",
     .setting = "16 + 32 B, 51 clients, 6 cores",
     .nic = "cx3-56",
     .paper = 26,
     .run = {.id = "herd", .plan = plan_of(16, 32, kAsPaper), .gets = .5}},
    {.what = "herd, one response a doorbell",
     .source = "002, figure 9",
     .setting = "95 % gets, 128 clients, 14 cores",
     .nic = "cib",
     .paper = 72.8,
     .run = {.id = "herd", .plan = plan_of(16, 32, kAsPaper), .gets = .95}},
    {.what = "herd, batched",
     .source = "002, figure 9",
     .setting = "95 % gets, 128 clients, 14 cores",
     .nic = "cib",
     .paper = 98.3,
     .run = {.id = "herd", .plan = busy(plan_of(16, 32, kBatched)), .gets = .95}},
    {.what = "seq-rpc",
     .source = "002, table 3",
     .setting = "70 clients, batched",
     .nic = "cib",
     .paper = 97.2,
     .run = {.id = "seq-rpc", .plan = busy(plan_of(16, 32, kBatched)), .keys = 1}},
    {.what = "seq-s0",
     .source = "002, table 3",
     .setting = "70 clients, headers only",
     .nic = "cib",
     .paper = 122,
     .run = {.id = "seq-s0", .plan = busy(plan_of(16, 32, kBatched)), .keys = 1}},
    {.what = "drtm-em, 10 % puts to gets",
     .source = "002, figure 10",
     .setting = "ConnectX-3, more keys than the card's cache holds",
     .nic = "cx3-56",
     .measure = Measure::kRatio,
     .paper = .28,
     .run = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper), .gets = .9},
     .over = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper)},
     .words_are_cold = true},
    {.what = "drtm-em, puts to gets",
     .source = "002, figure 10",
     .setting = "ConnectX-3, more keys than the card's cache holds",
     .nic = "cx3-56",
     .measure = Measure::kRatio,
     .paper = .04,
     .run = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper), .gets = 0},
     .over = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper)},
     .words_are_cold = true},
    {.what = "drtm-em, 10 % puts to gets",
     .source = "002, figure 10",
     .setting = "Connect-IB, locks on 64 words",
     .nic = "cib",
     .measure = Measure::kRatio,
     .paper = .69,
     .run = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper), .gets = .9},
     .over = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper)},
     .words = 64},
    {.what = "drtm-em, puts to gets",
     .source = "002, figure 10",
     .setting = "Connect-IB, locks on 64 words",
     .nic = "cib",
     .measure = Measure::kRatio,
     .paper = .12,
     .run = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper), .gets = 0},
     .over = {.id = "drtm-em", .plan = plan_of(16, 32, kAsPaper)},
     .words = 64},
    {.what = "rfp (Jakiro), 95 % gets",
     .source = "004, figure 4",
     .setting = "32 B, 35 clients",
     .nic = "cx3-40",
     .paper = 5.5,
     .run = {.id = "rfp", .plan = plan_of(16, 32, kAsPaper), .gets = .95}},
    {.what = "reply (ServerReply), 95 % gets",
     .source = "004, figure 4",
     .setting = "32 B, 28 clients, 4 cores",
     .nic = "cx3-40",
     .paper = 2.1,
     .run = {.id = "reply", .plan = plan_of(16, 32, kAsPaper), .gets = .95},
     .server_cores = 4},
    {.what = "rfp, fetches of 36 B",
     .source = "004, figure 7",
     .setting = "256 B",
     .nic = "cx3-40",
     .paper = 3.74,
     .run = {"rfp", plan_of(16, 256, kFetch36)}},
    {.what = "rfp, fetches of 36 B",
     .source = "004, figure 7",
     .setting = "1 KiB",
     .nic = "cx3-40",
     .paper = 3.1,
     .run = {"rfp", plan_of(16, 1024, kFetch36)}},
    {.what = "rfp, mean latency in µs",
     .source = "004, section V-C",
     .setting = "35 clients",
     .nic = "cx3-40",
     .measure = Measure::kLatency,
     .paper = 5.78,
     .run = {.id = "rfp", .plan = plan_of(16, 32, kAsPaper), .gets = .95},
     .clients = 35},
    {.what = "reply, mean latency in µs",
     .source = "004, section V-C",
     .setting = "28 clients, 4 cores",
     .nic = "cx3-40",
     .measure = Measure::kLatency,
     .paper = 12.06,
     .run = {.id = "reply", .plan = plan_of(16, 32, kAsPaper), .gets = .95},
     .server_cores = 4,
     .clients = 28},
    {.what = "memc, mean latency in µs",
     .source = "004, section V-C",
     .setting = "21 clients, 16 cores of 12.3 µs an op, fitted",
     .nic = "cx3-40",
     .measure = Measure::kLatency,
     .paper = 14.76,
     .run = {.id = "memc", .plan = plan_of(16, 32, kAsPaper), .gets = .95},
     .server_cores = 16,
     .server_ns = 12'300,
     .clients = 21,
     .is_fitted = true},
    {.what = "nessie to nessie-sd, all processors busy",
     .source = "003, figures 7 and 8",
     .setting = "nodes of 12 cores, 3 of them for the server",
     .nic = "cx3-40",
     .measure = Measure::kClientCores,
     .paper = 1.33,
     .run = {"nessie", plan_of(128, 879, kAsPaper)},
     .over = {"nessie-sd", plan_of(128, 879, kAsPaper)},
     .server_cores = 3,
     .node_cores = 12},
};

Counted complete(Counted counted, const PaperFigure& figure) {
  counted.server_cores = figure.server_cores;
  counted.server_ns = figure.server_ns;
  counted.words = figure.words;
  counted.words_are_cold = figure.words_are_cold;
  return counted;
}

// A node's cores that its clients have: a server that posts needs its own.
double client_cores(const Counted& counted, const PaperFigure& figure) {
  return figure.node_cores - (counted.servers.doorbells > 0 ? figure.server_cores : 0);
}

}  // namespace

std::span<const PaperFigure> paper_figures() {
  return kFigures;
}

ModelledFigure model_figure(const PaperFigure& figure, const CountRun& count) {
  ModelledFigure out{&figure, 0, ""};
  const auto nic = bench_nic::read_nic(std::string(figure.nic));
  if (!nic) return out;
  const Counted run = complete(count(figure.run), figure);
  const Prediction predicted = predict(nic.value(), run);
  if (!predicted.terms.empty()) out.tightest = predicted.terms.front().what;
  switch (figure.measure) {
    case Measure::kRate:
      out.model = predicted.rate;
      break;
    case Measure::kRatio:
      out.model = predicted.rate / predict(nic.value(), complete(count(figure.over), figure)).rate;
      break;
    case Measure::kLatency:
      out.model = figure.clients / predicted.rate;
      break;
    case Measure::kClientCores:
      out.model = client_cores(run, figure) / client_cores(complete(count(figure.over), figure), figure);
      out.tightest = "the clients' processors";
      break;
  }
  return out;
}

std::string to_markdown(std::span<const ModelledFigure> figures) {
  std::string out =
      "| what | paper | setting | card | paper says | model says | | tightest |\n"
      "| --- | --- | --- | --- | ---: | ---: | ---: | --- |\n";
  for (const ModelledFigure& each : figures) {
    const PaperFigure& figure = *each.figure;
    char numbers[96];
    std::snprintf(numbers, sizeof numbers, "%.3g | %.3g | %+.0f %%%s", figure.paper, each.model,
                  100 * (each.model / figure.paper - 1), figure.is_fitted ? ", fitted" : "");
    out += "| " + std::string(figure.what) + " | " + std::string(figure.source) + " | " + std::string(figure.setting) +
           " | " + std::string(figure.nic) + " | " + numbers + " | " + each.tightest + " |\n";
  }
  return out;
}

}  // namespace egret::bench_paradigms
