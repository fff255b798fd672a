#include <algorithm>

#include "bench_verbs/advice.h"
#include "bench_verbs/report/parts.h"

namespace egret::bench_verbs {
namespace {

std::string suggest_fetch(const Wanted& wanted, const Advice& advice) {
  std::string out = "**F** = sum over results of (READ rate at F if value + " + std::to_string(kResultOverhead) +
                    " ≤ F, else half of it), largest of these. Results:";
  for (const ResultShare& each : wanted.results) out += text(" %u B %.3g %%;", each.value_bytes, each.share * 100);
  out.back() = '.';
  out += "\n\n" + header("F", {"in-bound READ", "fit", "sum"});
  for (const FetchCandidate& each : advice.candidates) {
    const char* const mark = each.fetch == advice.fetch ? "**" : "";
    out +=
        row(text("%s%u%s", mark, each.fetch, mark),
            {text("%.3g", each.read_rate / 1e6), text("%.3g %%", each.covered * 100), text("%.3g", each.score / 1e6)});
  }
  out += text("\nF = **%u**. Egret learns each lane's; this is what it should come to with these results.\n",
              advice.fetch);
  if (advice.converge_at > 0) {
    out += text("From %u B on, in-bound READ is less than 10 %% above out-bound WRITE: larger results gain nothing.\n",
                advice.converge_at);
  }
  return out;
}

std::string suggest_refetches(const Measured& measured, const Advice& advice) {
  const std::string out_rate = number(measured.peak_outbound_write / 1e6);
  const std::string threads = std::to_string(measured.server_threads);
  const std::string budget = number(advice.refetch_budget_us);
  const std::string read = number(measured.read_us);
  return "\n**R** (`max_refetches`): out-bound WRITE at its best " + out_rate + " Mops/s, so " + threads +
         " server threads that take longer than " + threads + " / " + out_rate + " = " + budget +
         " µs an op are bound by their processors either way. An unpipelined READ takes " + read + " µs: " + budget +
         " / " + read + " → **" + std::to_string(advice.refetches) + "**.\n";
}

std::string suggest_window(const Measured& measured, const Advice& advice) {
  const std::string rate_of_thread = number(measured.fetch_rate_of_thread / 1e6);
  const std::string fetch = number(measured.fetch_us);
  std::string out = "\n**window**: one thread, pipelined, fetches " + rate_of_thread +
                    " M results/s, and one fetch takes " + fetch + " µs: " + rate_of_thread + " × " + fetch + " = " +
                    number(advice.under_way) + " under way, ";
  out += text("at least %u, at most %u → **%u**. With %u READs under way on a queue pair: `qps_per_session` **%u**.\n",
              kMinWindow, kMaxWindow, advice.window, measured.read_depth, advice.queue_pairs);
  if (advice.depth_was_the_limit) {
    out += "That is about all the " + std::to_string(measured.measured_depth) +
           " that were under way, so a larger window may do better: see `--depth`, `--queue-pairs`.\n";
  }
  return out;
}

std::string suggest_pushing(const Measured& measured, const Advice& advice) {
  if (measured.by_pairs.empty()) return "\n**Q*** (`push_above_sessions`): no sweep of queue pairs was measured.\n";
  if (!advice.has_crossing) {
    return text(
        "\n**Q*** (`push_above_sessions`): up to %u queue pairs in-bound READ does not stay below out-bound WRITE → "
        "**0**, "
        "never.\n",
        measured.by_pairs.back().pairs);
  }
  const bool always = measured.by_pairs.front().pairs == advice.pairs_most &&
                      measured.by_pairs.front().inbound_read < measured.by_pairs.front().outbound_write;
  return text("\n**Q*** (`push_above_sessions`): in-bound READ is below out-bound WRITE %s %u queue pairs, ",
              always ? "from the fewest on," : "beyond", advice.pairs_most) +
         text(
             "%u to a session → **%u** sessions. A push costs the backend's CPU a post, a fetch nothing: 0 where CPU "
             "is "
             "scarcer than the card.\n",
             advice.queue_pairs, advice.sessions_most);
}

std::string suggest_spin(const Measured& measured, const Advice& advice) {
  if (advice.spin_us == 0) return "\n**spin**: not measured.\n";
  return "\n**spin**: 99 % of fetches take up to " + number(measured.fetch_p99_us) +
         " µs, and waking a thread of the clients' hosts takes " + number(measured.wake_us) + " µs: together → **" +
         std::to_string(advice.spin_us) + "us**, if the proxy's CPUs are enough for its workers.\n";
}

std::string option(const char* name, const std::string& value) {
  return "    " + std::string(name) + ": " + value + "\n";
}

std::string config_lines(const Measured& measured, const Advice& advice) {
  std::string out = "\n### Lines for the configuration files\n\negret-proxy.yaml:\n\n";
  out += option("fetch_max", std::to_string(advice.fetch));
  if (advice.refetches > 0) out += option("max_refetches", std::to_string(advice.refetches));
  if (advice.spin_us > 0) out += option("spin", std::to_string(advice.spin_us) + "us");
  out += option("window", std::to_string(advice.window));
  out += option("qps_per_session", std::to_string(advice.queue_pairs));
  if (measured.by_pairs.empty()) return out;
  return out + "\negret-backend.yaml:\n\n" +
         option("push_above_sessions", std::to_string(advice.has_crossing ? advice.sessions_most : 0));
}

}  // namespace

std::string suggestions(const Wanted& wanted, const Results& results) {
  const Measured measured = measured_of(wanted, results);
  const Advice advice = advise(measured, wanted.results);
  return "## What they suggest\n\n" + suggest_fetch(wanted, advice) + suggest_refetches(measured, advice) +
         suggest_pushing(measured, advice) + suggest_spin(measured, advice) + suggest_window(measured, advice) +
         config_lines(measured, advice);
}

}  // namespace egret::bench_verbs
