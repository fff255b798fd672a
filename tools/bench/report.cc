#include "bench/report.h"

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace egret::bench {
namespace {

struct MetricInfo {
  const char* name;  // in JSON
  Metric metric;
};
constexpr std::array<MetricInfo, 14> kMetrics{{
    {"ops_per_s", &LoadResult::ops_per_s},
    {"requests_per_s", &LoadResult::requests_per_s},
    {"p50_us", &LoadResult::p50_us},
    {"p99_us", &LoadResult::p99_us},
    {"p999_us", &LoadResult::p999_us},
    {"max_us", &LoadResult::max_us},
    {"cpu_us_per_op", &LoadResult::cpu_us_per_op},
    {"user_us_per_op", &LoadResult::user_us_per_op},
    {"system_us_per_op", &LoadResult::system_us_per_op},
    {"cpu_stat_share", &LoadResult::cpu_stat_share},
    {"voluntary_per_op", &LoadResult::voluntary_per_op},
    {"involuntary_per_op", &LoadResult::involuntary_per_op},
    {"generator_us_per_op", &LoadResult::generator_us_per_op},
    {"foreign_cpu", &LoadResult::foreign_cpu},
}};

struct CounterInfo {
  const char* name;
  uint64_t Counters::*counter;
};
constexpr std::array<CounterInfo, 7> kCounters{{
    {"requests", &Counters::requests},
    {"hits", &Counters::hits},
    {"misses", &Counters::misses},
    {"stored", &Counters::stored},
    {"errors", &Counters::errors},
    {"asked_keys", &Counters::asked_keys},
    {"asked_sets", &Counters::asked_sets},
}};

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  std::array<char, 512> buffer{};
  va_list arguments;
  va_start(arguments, pattern);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line above initialises it
  std::vsnprintf(buffer.data(), buffer.size(), pattern, arguments);
  va_end(arguments);
  return buffer.data();
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (each == '"' || each == '\\') {
      out += '\\';
      out += each;
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += format("\\u%04x", byte);
    } else {
      out += each;
    }
  }
  return out + '"';
}

// About three significant digits.
std::string figure(double value) {
  if (value >= 100) return format("%.0f", value);
  return value >= 10 ? format("%.1f", value) : format("%.2f", value);
}

std::string ratio_cell(const Ratio& ratio) {
  if (ratio.median == 0) return "–";
  return format("%.2f (%.2f–%.2f)", ratio.median, ratio.min, ratio.max);
}

std::string figures_row(const std::string& case_name, const std::string& server,
                        const std::vector<LoadResult>& rounds) {
  const auto cell = [&rounds](Metric metric) { return figure(median_of(rounds, metric)); };
  return "| " + case_name + " | " + server + " | " + cell(&LoadResult::ops_per_s) + " | " + cell(&LoadResult::p50_us) +
         " | " + cell(&LoadResult::p99_us) + " | " + cell(&LoadResult::p999_us) + " | " +
         cell(&LoadResult::cpu_us_per_op) + " |\n";
}

std::string ratio_row(const CaseResult& result) {
  std::string row = "| " + result.name + " | **ratio** (min–max)";
  for (const Metric metric : {&LoadResult::ops_per_s, &LoadResult::p50_us, &LoadResult::p99_us, &LoadResult::p999_us,
                              &LoadResult::cpu_us_per_op}) {
    row += " | " + ratio_cell(ratio_of(result, metric));
  }
  return row + " |\n";
}

std::string details_row(const std::string& case_name, const std::string& server,
                        const std::vector<LoadResult>& rounds) {
  const auto cell = [&rounds](Metric metric) { return figure(median_of(rounds, metric)); };
  uint64_t misses = 0;
  uint64_t errors = 0;
  for (const LoadResult& each : rounds) {
    misses += each.total.misses;
    errors += each.total.errors;
  }
  return "| " + case_name + " | " + server + " | " + cell(&LoadResult::user_us_per_op) + " | " +
         cell(&LoadResult::system_us_per_op) + " | " +
         format("%.4f", median_of(rounds, &LoadResult::voluntary_per_op)) + " | " +
         format("%.4f", median_of(rounds, &LoadResult::involuntary_per_op)) + " | " +
         cell(&LoadResult::generator_us_per_op) + " | " + cell(&LoadResult::foreign_cpu) + " | " +
         std::to_string(misses) + " | " + std::to_string(errors) + " |\n";
}

std::string counters_json(const Counters& counters) {
  std::string out = format("{\"ops\": %llu", static_cast<unsigned long long>(counters.ops()));
  for (const CounterInfo& each : kCounters) {
    out += format(", \"%s\": %llu", each.name, static_cast<unsigned long long>(counters.*each.counter));
  }
  return out + "}";
}

std::string round_json(const LoadResult& result) {
  std::string out = "{";
  for (const MetricInfo& each : kMetrics) {
    out += format("\"%s\": %.6g, ", each.name, result.*each.metric);
  }
  return out + "\"measured\": " + counters_json(result.measured) + ", \"total\": " + counters_json(result.total) +
         ", \"first_error\": " + json_quoted(result.first_error) + "}";
}

std::string side_json(const std::string& name, const std::vector<LoadResult>& rounds) {
  std::string out = "{\"name\": " + json_quoted(name) + ", \"rounds\": [";
  for (size_t i = 0; i < rounds.size(); ++i) out += (i == 0 ? "" : ", ") + round_json(rounds[i]);
  return out + "]}";
}

std::string spec_json(const LoadSpec& spec) {
  return format(
             "{\"protocol\": \"%s\", \"connections\": %u, \"idle_connections\": %u, \"depth\": %u, \"multiget\": %u, "
             "\"value_size\": %u, \"keys\": %u, \"key_size\": "
             "%u, ",
             spec.protocol == Protocol::kText ? "text" : "binary", spec.connections, spec.idle_connections, spec.depth,
             spec.multiget, spec.value_size, spec.keys, spec.key_size) +
         format("\"zipf\": %g, \"read_share\": %g, \"rate\": %g, \"duration_s\": %g, \"warmup_s\": %g, ", spec.zipf,
                spec.read_share, spec.rate, spec.duration_s, spec.warmup_s) +
         format("\"threads\": %u, \"seed\": %llu}", spec.threads, static_cast<unsigned long long>(spec.seed));
}

std::string ratios_json(const CaseResult& result) {
  std::string out = "{";
  for (const MetricInfo& each : kMetrics) {
    const Ratio ratio = ratio_of(result, each.metric);
    if (ratio.median == 0) continue;
    out += out.size() == 1 ? "" : ", ";
    out += format("\"%s\": {\"median\": %.4g, \"min\": %.4g, \"max\": %.4g}", each.name, ratio.median, ratio.min,
                  ratio.max);
  }
  return out + "}";
}

}  // namespace

std::string to_markdown(const std::vector<CaseResult>& results) {
  std::string out =
      "| case | server | ops/s | p50 µs | p99 µs | p99.9 µs | CPU µs/op |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n";
  for (const CaseResult& each : results) {
    if (!each.subject.empty()) out += figures_row(each.name, each.subject_name, each.subject);
    if (!each.peer.empty()) out += figures_row(each.name, each.peer_name, each.peer);
    if (!each.subject.empty() && !each.peer.empty()) out += ratio_row(each);
  }
  out +=
      "\n| case | server | user µs/op | system µs/op | voluntary switches/op | involuntary | generator µs/op "
      "| other CPUs busy | misses | errors |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  for (const CaseResult& each : results) {
    if (!each.subject.empty()) out += details_row(each.name, each.subject_name, each.subject);
    if (!each.peer.empty()) out += details_row(each.name, each.peer_name, each.peer);
  }
  return out;
}

std::string to_json(const std::vector<CaseResult>& results) {
  uint64_t errors = 0;
  std::string out = "{\"cases\": [";
  for (const CaseResult& each : results) {
    errors += each.errors();
    out += &each == results.data() ? "\n" : ",\n";
    out += "{\"name\": " + json_quoted(each.name) + ", \"spec\": " + spec_json(each.spec);
    out += format(", \"discarded\": %u", each.discarded);
    if (!each.subject.empty()) out += ",\n \"subject\": " + side_json(each.subject_name, each.subject);
    if (!each.peer.empty()) out += ",\n \"peer\": " + side_json(each.peer_name, each.peer);
    if (!each.subject.empty() && !each.peer.empty()) out += ",\n \"ratios\": " + ratios_json(each);
    out += "}";
  }
  return out + format("],\n\"errors\": %llu}\n", static_cast<unsigned long long>(errors));
}

}  // namespace egret::bench
