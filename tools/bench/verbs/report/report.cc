#include "bench_verbs/report/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "bench_verbs/report/parts.h"

namespace egret::bench_verbs {

std::string text(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string number(double value) {
  return text(value < 999.5 ? "%.3g" : "%.0f", value);
}

std::string rate(const Figures& figures) {
  return figures.ops == 0 ? "-" : text("%.3g", figures.ops_per_s / 1e6);
}

std::string micros(const Figures& figures) {
  if (figures.ops == 0) return "-";
  return number(figures.mean_us) + " / " + number(figures.p50_us) + " / " + number(figures.p99_us);
}

std::string row(const std::string& head, const std::vector<std::string>& cells) {
  std::string line = "| " + head + " |";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

std::string header(const std::string& head, const std::vector<std::string>& names) {
  std::string line = row(head, names) + "| ---: |";
  for (size_t i = 0; i < names.size(); ++i) line += " ---: |";
  return line + "\n";
}

namespace {

constexpr size_t kRead = static_cast<size_t>(Direction::kInboundRead);
constexpr size_t kWriteIn = static_cast<size_t>(Direction::kInboundWrite);
constexpr size_t kWriteOut = static_cast<size_t>(Direction::kOutboundWrite);

std::string setting(const Wanted& wanted, const Results& results) {
  std::string out = "# RDMA verbs between this host and " + std::to_string(wanted.clients) +
                    (wanted.clients == 1 ? " other" : " others") + "\n\n";
  for (size_t i = 0; i < results.hosts.size(); ++i) {
    out += (i == 0 ? "- this host: " : "- client: ") + results.hosts[i] + "\n";
  }
  out += text("- %u queue pair(s) for each thread and host; pipelined: %u WRITEs or %u READs under way on each\n",
              wanted.queue_pairs, wanted.depth, results.read_pipelined);
  out += text("- READs a queue pair may have under way: %u; WRITEs up to %u B go inline; %.3g s a cell\n\n",
              results.read_depth, results.inline_bytes, wanted.duration_s);
  if (results.emulated) {
    out +=
        "**An emulated RDMA device (Soft-RoCE or Soft-iWARP): this shows that the program works. No figure below says\n"
        "anything about RDMA, and neither does what is suggested.**\n\n";
  }
  out += "In-bound: the other side posts, this host's device serves. Out-bound: this host posts. Rates in Mops/s.\n";
  if (wanted.clients == 1) {
    out +=
        "With one client, in-bound rates end where that client's device can post no more; `--clients` takes several.\n";
  }
  return out + "\n";
}

std::string table_one(const Wanted& wanted, const Results& results) {
  std::string out =
      text("## Table I: out-bound WRITE of %u B, unpipelined, by threads and hosts written to\n\n", kSmall);
  std::vector<std::string> names;
  for (uint32_t clients = 1; clients <= wanted.clients; ++clients) names.push_back(std::to_string(clients));
  out += header("threads", names);
  for (const ByThreads& each : results.by_threads) {
    std::vector<std::string> cells;
    for (const Figures& figures : each.by_clients) cells.push_back(rate(figures));
    out += row(std::to_string(each.threads), cells);
  }
  return out + "\n";
}

std::vector<std::string> six_rates(const Both (&of)[3]) {
  std::vector<std::string> cells;
  for (const size_t at : {kWriteOut, kRead, kWriteIn}) {
    cells.push_back(rate(of[at].unpipelined));
    cells.push_back(rate(of[at].pipelined));
  }
  return cells;
}

const std::vector<std::string> kSixNames = {"out-bound WRITE", "pipelined",      "in-bound READ",
                                            "pipelined",       "in-bound WRITE", "pipelined"};

std::string figure_one(const Results& results) {
  std::string out = text("## Figure 1: %u B, by posting threads of each host\n\n", kSmall);
  out += header("threads", kSixNames);
  double read = 0;
  double write = 0;
  for (const ByThreads& each : results.by_threads) {
    out += row(std::to_string(each.threads), six_rates(each.of));
    read = std::max({read, each.of[kRead].pipelined.ops_per_s, each.of[kRead].unpipelined.ops_per_s});
    write = std::max({write, each.of[kWriteOut].pipelined.ops_per_s, each.of[kWriteOut].unpipelined.ops_per_s});
  }
  if (write > 0) {
    out += "\nIn-bound READ over out-bound WRITE, each at its best: **" + number(read / write) +
           "** (the paper's ConnectX-3: 11.26 / 2.11 = 5.3, unpipelined, seven clients).\n";
  }
  return out + "\n";
}

std::string by_size(const Results& results) {
  std::string out = "## By payload size\n\n";
  out += text("With the threads that were best above: out-bound WRITE %u, in-bound READ %u, in-bound WRITE %u.\n\n",
              results.best_threads[kWriteOut], results.best_threads[kRead], results.best_threads[kWriteIn]);
  out += header("bytes", kSixNames);
  for (const BySize& each : results.by_size) out += row(std::to_string(each.size), six_rates(each.of));
  out += "\nUnpipelined, from posting to completion, µs: mean / median / 99 %.\n\n";
  out += header("bytes", {"out-bound WRITE", "in-bound READ", "in-bound WRITE"});
  for (const BySize& each : results.by_size) {
    out += row(std::to_string(each.size), {micros(each.of[kWriteOut].unpipelined), micros(each.of[kRead].unpipelined),
                                           micros(each.of[kWriteIn].unpipelined)});
  }
  return out + "\n";
}

std::string figure_eight(const Wanted& wanted, const Results& results) {
  std::string out = text(
      "## Figure 8: fetching, by F and size of the value, pipelined\n\n"
      "A WRITE of %u B, a READ of F bytes, and a READ of the rest of value + %u B if there is one; no server.\n\n",
      kRequestBytes, kResultOverhead);
  std::vector<std::string> names;
  for (const uint32_t value : wanted.value_sizes) names.push_back(std::to_string(value) + " B");
  out += header("F", names);
  for (size_t i = 0; i < results.fetches.size(); ++i) {
    std::vector<std::string> cells;
    for (const Figures& figures : results.fetches[i]) cells.push_back(rate(figures));
    out += row(std::to_string(wanted.fetch_sizes[i]), cells);
  }
  return out + "\n";
}

}  // namespace

std::string to_markdown(const Wanted& wanted, const Results& results) {
  std::string out = setting(wanted, results);
  if (!wanted.advise) {
    out += table_one(wanted, results) + figure_one(results) + by_size(results) + figure_eight(wanted, results) +
           further_tables(wanted, results);
  }
  out += suggestions(wanted, results);
  const auto count = [](uint64_t verbs) { return std::to_string(verbs); };
  const Posted& posted = results.posted;
  out += "\n" + count(results.points) + " cells, " + count(posted.writes) + " WRITEs, " + count(posted.reads) +
         " READs, " + count(posted.fetch_adds) + " FETCH_ADDs, " + count(posted.compare_swaps) + " COMPARE_SWAPs and " +
         count(posted.sends) + " UD SENDs posted, " + count(results.wrong_bytes) + " wrong bytes.\n";
  return out;
}

uint64_t empty_cells(const Results& results) {
  uint64_t empty = 0;
  const auto look = [&empty](const Figures& figures) { empty += figures.ops == 0; };
  const auto look_at_all = [&look](const Both(&of)[3]) {
    for (const Both& each : of) look(each.pipelined), look(each.unpipelined);
  };
  for (const ByThreads& each : results.by_threads) {
    look_at_all(each.of);
    for (const Figures& figures : each.by_clients) look(figures);
  }
  for (const BySize& each : results.by_size) look_at_all(each.of);
  for (const auto& fetched : results.fetches) {
    for (const Figures& figures : fetched) look(figures);
  }
  look(results.fetch_latency);
  look(results.fetch_of_thread);
  each_further(results.further, look);
  return empty;
}

}  // namespace egret::bench_verbs
