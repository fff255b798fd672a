#include <algorithm>
#include <iterator>

#include "bench_verbs/advice.h"
#include "bench_verbs/report/parts.h"

namespace egret::bench_verbs {
namespace {

const char* const kNone = "n/a";

// A table that has no figures says why in its only row.
std::string not_available(const std::string& why, size_t cells) {
  return row("not available: " + why, std::vector<std::string>(cells, kNone));
}

std::string lost(const Figures& figures) {
  const uint64_t sent = std::max(figures.posted.sends, figures.received);
  if (sent == 0) return "-";
  const uint64_t gone = sent - figures.received;
  return gone == 0 ? "0 %" : text("%.3g %%", 100 * static_cast<double>(gone) / static_cast<double>(sent));
}

std::string atomics(const Results& results) {
  const Further& further = results.further;
  std::string out = text(
      "## Atomics: 8 B, by posting threads of each host\n\nEach on words of its own, 64 B apart or more; pipelined: %u "
      "under way on each queue pair, as READs.\n\n",
      results.read_pipelined);
  out += header("threads", {"out-bound FETCH_ADD", "pipelined", "in-bound FETCH_ADD", "pipelined",
                            "out-bound COMPARE_SWAP", "pipelined", "in-bound COMPARE_SWAP", "pipelined"});
  if (!further.no_atomics.empty()) return out + not_available(further.no_atomics, 8) + "\n";
  for (const AtomicsByThreads& each : further.atomics) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < std::size(kAtomics); ++i) {
      cells.push_back(rate(each.one_by_one[i].outbound));
      cells.push_back(rate(each.pipelined[i].outbound));
      cells.push_back(rate(each.one_by_one[i].inbound));
      cells.push_back(rate(each.pipelined[i].inbound));
    }
    out += row(std::to_string(each.threads), cells);
  }
  out += "\nUnpipelined, from posting to completion, µs: mean / median / 99 %.\n\n";
  out += header("threads",
                {"out-bound FETCH_ADD", "in-bound FETCH_ADD", "out-bound COMPARE_SWAP", "in-bound COMPARE_SWAP"});
  for (const AtomicsByThreads& each : further.atomics) {
    std::vector<std::string> cells;
    for (const BothWays& both : each.one_by_one) {
      cells.push_back(micros(both.outbound));
      cells.push_back(micros(both.inbound));
    }
    out += row(std::to_string(each.threads), cells);
  }
  if (further.big_endian) out += "\nAnswers come with their bytes in big-endian order; they were right so read.\n";
  return out + "\n";
}

std::string sends(const Wanted& wanted, const Results& results) {
  const Further& further = results.further;
  std::string out = text(
      "## UD SEND: %u B, by posting threads of each host\n\nOut-bound: sent by this host; in-bound: received by it. "
      "Nobody "
      "sends again what was lost, for want of a RECV or on the way.\n\n",
      kSmall);
  out += header("threads", {"out-bound", "lost", "pipelined", "lost", "in-bound", "lost", "pipelined", "lost"});
  if (!further.no_sends.empty()) return out + not_available(further.no_sends, 8) + "\n";
  for (const SendsByThreads& each : further.sends) {
    std::vector<std::string> cells;
    for (const Figures* figures :
         {&each.one_by_one.outbound, &each.pipelined.outbound, &each.one_by_one.inbound, &each.pipelined.inbound}) {
      cells.push_back(rate(*figures));
      cells.push_back(lost(*figures));
    }
    out += row(std::to_string(each.threads), cells);
  }
  if (further.sends_by_size.empty()) return out + "\n";
  out += text("\nBy payload size, %u thread(s), pipelined; a datagram has %u B at most.\n\n", wanted.threads.back(),
              further.most_send);
  out += header("bytes", {"out-bound", "lost", "in-bound", "lost"});
  for (const SendsBySize& each : further.sends_by_size) {
    out += row(std::to_string(each.size), {rate(each.pipelined.outbound), lost(each.pipelined.outbound),
                                           rate(each.pipelined.inbound), lost(each.pipelined.inbound)});
  }
  return out + "\n";
}

// Why a verb's columns have no figures; empty if they have.
std::string why_not_swept(const Further& further, Kind kind) {
  if (is_atomic(kind)) return further.no_atomics;
  return kind == Kind::kSend ? further.no_sweep_sends : std::string();
}

// "READ: out-bound nowhere, in-bound from 512 on (0.5 of its best)", for each verb.
std::string where_they_fall(const Further& further) {
  std::string out;
  for (size_t i = 0; i < std::size(kSwept); ++i) {
    if (!why_not_swept(further, kSwept[i]).empty()) continue;
    for (const bool outbound : {true, false}) {
      std::vector<RateByPairs> rates;
      for (const ByPairs& each : further.sweep) {
        rates.push_back({each.pairs, (outbound ? each.of[i].outbound : each.of[i].inbound).ops_per_s});
      }
      const Fall fall = falls_from(rates);
      if (fall.pairs == 0) continue;
      if (!out.empty()) out += "; ";
      out += text("%s %s from %u queue pairs on (%.0f %% of its %.3g at %u)", outbound ? "out-bound" : "in-bound",
                  name_of(kSwept[i]), fall.pairs, 100 * fall.share, fall.best / 1e6, fall.best_pairs);
    }
  }
  return "**Below 80 % of its best**, beyond the number of queue pairs where that is: " +
         (out.empty() ? "no rate" : out) + ".\n";
}

std::string queue_pairs(const Results& results) {
  const Further& further = results.further;
  std::string out = text("## Queue pairs: rates by how many are in use, %u B (atomics 8 B)\n\n", kSmall);
  std::vector<std::string> names;
  for (const Kind kind : kSwept) {
    names.push_back(std::string("out-bound ") + name_of(kind));
    names.push_back(std::string("in-bound ") + name_of(kind));
  }
  if (!further.no_sweep.empty()) {
    return out + header("queue pairs", names) + not_available(further.no_sweep, names.size()) + "\n";
  }
  out += text(
      "%u verbs under way on each, %u posting thread(s) (fewer with fewer queue pairs), of each host; threads share "
      "nothing, "
      "the pairs of a thread one completion queue. SENDs go from as many UD pairs to as many.\n\n",
      kSweepDepth, further.sweep_threads);
  out += header("queue pairs", names);
  for (const ByPairs& each : further.sweep) {
    std::vector<std::string> cells;
    for (size_t i = 0; i < std::size(kSwept); ++i) {
      const bool has = why_not_swept(further, kSwept[i]).empty();
      cells.push_back(has ? rate(each.of[i].outbound) : kNone);
      cells.push_back(has ? rate(each.of[i].inbound) : kNone);
    }
    out += row(std::to_string(each.pairs), cells);
  }
  out += "\n" + where_they_fall(further);
  if (!further.no_atomics.empty()) out += "Atomics not available: " + further.no_atomics + ".\n";
  if (!further.no_sweep_sends.empty()) out += "UD SEND not available: " + further.no_sweep_sends + ".\n";
  if (!further.sweep_ends.empty()) out += "No more queue pairs: " + further.sweep_ends + ".\n";
  return out + "\n";
}

}  // namespace

std::string further_tables(const Wanted& wanted, const Results& results) {
  return atomics(results) + sends(wanted, results) + queue_pairs(results);
}

void each_further(const Further& further, const std::function<void(const Figures&)>& look) {
  const auto both = [&look](const BothWays& ways) {
    look(ways.outbound);
    look(ways.inbound);
  };
  for (const AtomicsByThreads& each : further.atomics) {
    for (size_t i = 0; i < std::size(kAtomics); ++i) both(each.one_by_one[i]), both(each.pipelined[i]);
  }
  for (const SendsByThreads& each : further.sends) both(each.one_by_one), both(each.pipelined);
  for (const SendsBySize& each : further.sends_by_size) both(each.pipelined);
  for (const ByPairs& each : further.sweep) {
    for (size_t i = 0; i < std::size(kSwept); ++i) {
      if (why_not_swept(further, kSwept[i]).empty()) both(each.of[i]);
    }
  }
}

}  // namespace egret::bench_verbs
