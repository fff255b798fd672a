#include "bench_paradigms/model/predict.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

namespace egret::bench_paradigms {

namespace {

constexpr double kVerbHead = 30;       // bytes of a verb on the link beside its payload
constexpr double kLineBytes = 64;      // that a processor writes to a card at once
constexpr double kRcRequestHead = 36;  // bytes of a work request before its inline payload
constexpr double kUdRequestHead = 68;
constexpr double kSmallBatch = 2;  // Works for a doorbell, from which on a card fetches them in one go

struct Each {
  PairType type;
  Verb verb;
  double count;  // an op
  double bytes;  // of one
};
using ForEach = std::function<void(const Each&)>;

void for_each(const VerbCounts& counts, double ops, const ForEach& look) {
  for (size_t type = 0; type < kPairTypes; ++type) {
    for (size_t verb = 0; verb < kVerbs; ++verb) {
      for (const SizeClass& size : counts.by_size[type][verb]) {
        if (size.count == 0) continue;
        const auto count = static_cast<double>(size.count);
        look({static_cast<PairType>(type), static_cast<Verb>(verb), count / ops,
              static_cast<double>(size.bytes) / count});
      }
    }
  }
}

double time_of(double rate) {
  return rate > 0 ? 1 / rate : 0;
}

bool is_atomic(Verb verb) {
  return verb == Verb::kCompareSwap || verb == Verb::kFetchAdd;
}

double works_of(const VerbCounts& counts) {
  double sum = 0;
  for (size_t verb = 0; verb < kVerbs; ++verb) {
    if (static_cast<Verb>(verb) != Verb::kReceive) sum += static_cast<double>(counts.of(static_cast<Verb>(verb)));
  }
  return sum;
}

double atomic_rate(const Nic& nic, const Counted& counted) {
  return counted.words_are_cold && nic.atomic_cold > 0 ? nic.atomic_cold : nic.atomic;
}

// How much longer a verb takes with so many connected pairs than with few.
double pair_factor(const Nic& nic, double pairs) {
  if (nic.pairs_cached <= 0 || pairs <= nic.pairs_cached || nic.pair_hit_ns <= 0) return 1;
  return (nic.pair_hit_ns + nic.pair_miss_ns * (1 - nic.pairs_cached / pairs)) / nic.pair_hit_ns;
}

// The server's card's time for what clients post for an op, in µs.
double inbound(const Nic& nic, const Counted& counted) {
  double sum = 0;
  const double factor = pair_factor(nic, counted.client_pairs);
  for_each(counted.clients, counted.ops, [&](const Each& each) {
    double time = 0;
    if (each.verb == Verb::kRead) time = nic.read_in.microseconds(each.bytes);
    if (each.verb == Verb::kWrite) time = nic.write_in.microseconds(each.bytes);
    if (each.verb == Verb::kSend) time = time_of(each.bytes > 0 ? nic.receive : nic.receive_empty);
    if (is_atomic(each.verb)) time = time_of(atomic_rate(nic, counted));
    sum += each.count * time * (each.type == PairType::kUd ? 1 : factor);
  });
  return sum;
}

// The same for what the server posts.
double outbound(const Nic& nic, const Counted& counted) {
  const double works = works_of(counted.servers);
  const bool is_batched = works >= kSmallBatch * static_cast<double>(counted.servers.doorbells);
  double sum = 0;
  const double factor = pair_factor(nic, counted.client_pairs);
  for_each(counted.servers, counted.ops, [&](const Each& each) {
    double time = nic.write_out.microseconds(counted.server_cores);
    if (each.verb == Verb::kSend) {
      time = time_of(each.bytes == 0 ? nic.send_empty : is_batched ? nic.send_batched : nic.send_single);
    }
    sum += each.count * time * (each.type == PairType::kUd ? 1 : factor);
  });
  return sum;
}

// µs of the link for an op, in the busier direction.
double link(const Nic& nic, const Counted& counted) {
  if (nic.link_gbps <= 0) return 0;
  double to_clients = 0;
  double to_server = 0;
  for_each(counted.clients, counted.ops, [&](const Each& each) {
    const double bytes = each.count * (each.bytes + kVerbHead);
    if (each.verb == Verb::kRead)
      to_clients += bytes;
    else
      to_server += bytes;
  });
  for_each(counted.servers, counted.ops, [&](const Each& each) {
    const double bytes = each.count * (each.bytes + kVerbHead);
    if (each.verb == Verb::kRead)
      to_server += bytes;
    else
      to_clients += bytes;
  });
  const double bytes_per_us = nic.link_share * nic.link_gbps * 1000 / 8;
  return std::max(to_clients, to_server) / bytes_per_us;
}

// µs of PCIe for an op: bytes that the card moves; and lines by which the server's processors post one by one.
double dma(const Nic& nic, const Counted& counted) {
  if (nic.dma_mbps <= 0) return 0;
  double bytes = 0;
  const auto add = [&](const Each& each) { bytes += each.count * each.bytes; };
  for_each(counted.clients, counted.ops, add);
  for_each(counted.servers, counted.ops, add);
  return bytes / nic.dma_mbps;
}

double mmio(const Nic& nic, const Counted& counted) {
  const double works = works_of(counted.servers);
  if (nic.mmio_lines <= 0 || works == 0) return 0;
  if (works >= kSmallBatch * static_cast<double>(counted.servers.doorbells)) {
    return static_cast<double>(counted.servers.doorbells) / counted.ops / nic.mmio_lines;
  }
  const bool is_inlined = static_cast<double>(counted.servers.inlined) * 2 > works;
  double lines = 0;
  for_each(counted.servers, counted.ops, [&](const Each& each) {
    const double head = each.type == PairType::kUd ? kUdRequestHead : kRcRequestHead;
    lines += each.count * std::ceil((head + (is_inlined ? each.bytes : 0)) / kLineBytes);
  });
  return lines / nic.mmio_lines;
}

// µs of the one after the other of atomics on few words.
double contention(const Nic& nic, const Counted& counted) {
  if (nic.atomic_contended <= 0 || counted.words <= 0) return 0;
  double atomics = 0;
  for_each(counted.clients, counted.ops, [&](const Each& each) { atomics += is_atomic(each.verb) ? each.count : 0; });
  const double rate = nic.atomic_contended * std::sqrt(std::numbers::pi / 2 * counted.words);
  return atomics / std::min(rate, nic.atomic);
}

}  // namespace

Prediction predict(const Nic& nic, const Counted& counted) {
  Prediction out;
  if (counted.ops <= 0) return out;
  const auto add = [&out](const char* what, double microseconds) {
    if (microseconds > 0) out.terms.push_back({what, 1 / microseconds});
  };
  add("the server's card, in-bound verbs", inbound(nic, counted));
  add("the server's card, out-bound verbs", outbound(nic, counted));
  add("the link", link(nic, counted));
  add("PCIe, bytes that the card moves", dma(nic, counted));
  add("PCIe, lines that the server's processors write", mmio(nic, counted));
  add("atomics on the same words", contention(nic, counted));
  if (counted.server_cores > 0) add("the server's processors", counted.server_ns / 1000 / counted.server_cores);
  if (counted.under_way > 0) add("ops under way", counted.round_trips * counted.round_trip_us / counted.under_way);
  std::sort(out.terms.begin(), out.terms.end(), [](const Term& a, const Term& b) { return a.rate < b.rate; });
  if (!out.terms.empty()) out.rate = out.terms.front().rate;
  return out;
}

}  // namespace egret::bench_paradigms
