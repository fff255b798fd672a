#include "bench_paradigms/model/predict.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <string_view>

namespace egret::bench_paradigms {

namespace {

constexpr double kVerbHead = 30;       // bytes of a verb on the link beside its payload
constexpr double kLineBytes = 64;      // of a work request that a processor writes, or the card fetches, at once
constexpr double kRcRequestHead = 36;  // bytes of a work request before its inline payload
constexpr double kUdRequestHead = 68;
constexpr double kSmallBatch = 2;  // Works for a doorbell, from which on a card fetches them in one go
constexpr std::array<std::string_view, kVerbs> kVerbNames{"WRITE", "READ", "SEND", "CAS", "FAA", "RECV"};

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

bool is_batched(const VerbCounts& counts) {
  return works_of(counts) >= kSmallBatch * static_cast<double>(counts.doorbells);
}

// µs of a card's time for one verb that another has posted to it; 0: not known.
double time_to_serve(const Nic& nic, const Each& each, bool words_are_cold) {
  if (each.verb == Verb::kRead) return nic.read_in.microseconds(each.bytes);
  if (each.verb == Verb::kWrite) return nic.write_in.microseconds(each.bytes);
  if (each.verb == Verb::kSend) return time_of(each.bytes > 0 ? nic.receive : nic.receive_empty);
  return time_of(words_are_cold && nic.atomic_cold > 0 ? nic.atomic_cold : nic.atomic);
}

// The same of one that it posts for that many threads.
double time_to_post(const Nic& nic, const Each& each, double threads, bool is_batch) {
  if (each.verb != Verb::kSend) return nic.write_out.microseconds(threads);
  if (each.bytes == 0) return time_of(nic.send_empty);
  return time_of(is_batch ? nic.send_batched : nic.send_single);
}

// How much longer a verb takes with so many connected pairs than with few.
double pair_factor(const Nic& nic, PairType type, double pairs) {
  const double cached = type == PairType::kUc && nic.uc_pairs_cached > 0 ? nic.uc_pairs_cached : nic.pairs_cached;
  if (type == PairType::kUd || cached <= 0 || pairs <= cached || nic.pair_hit_ns <= 0) return 1;
  return (nic.pair_hit_ns + nic.pair_miss_ns * (1 - cached / pairs)) / nic.pair_hit_ns;
}

// µs of a card's time for all that others post to it for an op.
double inbound(const Nic& nic, const VerbCounts& verbs, const Counted& counted, double pairs) {
  double sum = 0;
  for_each(verbs, counted.ops, [&](const Each& each) {
    sum += each.count * time_to_serve(nic, each, counted.words_are_cold) * pair_factor(nic, each.type, pairs);
  });
  return sum;
}

double outbound(const Nic& nic, const VerbCounts& verbs, const Counted& counted, double threads, double pairs) {
  double sum = 0;
  for_each(verbs, counted.ops, [&](const Each& each) {
    sum += each.count * time_to_post(nic, each, threads, is_batched(verbs)) * pair_factor(nic, each.type, pairs);
  });
  return sum;
}

std::vector<std::string> unknown_verbs(const Nic& nic, const Counted& counted) {
  std::vector<std::string> out;
  const auto note = [&out](const char* way, const Each& each, double time) {
    const std::string name = way + std::string(kVerbNames[static_cast<size_t>(each.verb)]);
    if (time <= 0 && std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  };
  for_each(counted.clients, counted.ops,
           [&](const Each& each) { note("in-bound ", each, time_to_serve(nic, each, counted.words_are_cold)); });
  for_each(counted.servers, counted.ops, [&](const Each& each) {
    note("out-bound ", each, time_to_post(nic, each, counted.server_cores, is_batched(counted.servers)));
  });
  return out;
}

// µs of the server's link for an op, in the busier direction.
double link(const Nic& nic, const Counted& counted) {
  if (nic.link_gbps <= 0) return 0;
  double to_clients = 0;
  double to_server = 0;
  for_each(counted.clients, counted.ops, [&](const Each& each) {
    (each.verb == Verb::kRead ? to_clients : to_server) += each.count * (each.bytes + kVerbHead);
  });
  for_each(counted.servers, counted.ops, [&](const Each& each) {
    (each.verb == Verb::kRead ? to_server : to_clients) += each.count * (each.bytes + kVerbHead);
  });
  const double bytes_per_us = nic.link_share * nic.link_gbps * 1000 / 8;
  return std::max(to_clients, to_server) / bytes_per_us;
}

bool is_inlined(const VerbCounts& verbs) {
  return static_cast<double>(verbs.inlined) * 2 > works_of(verbs);
}

// Of a work request: head and inline payload. That of a SEND without payload fits one (paper 002, section 4.2.1).
double lines_of(const Each& each, bool is_inline) {
  if (each.bytes == 0) return 1;
  const double head = each.type == PairType::kUd ? kUdRequestHead : kRcRequestHead;
  return std::ceil((head + (is_inline ? each.bytes : 0)) / kLineBytes);
}

// µs of PCIe for the bytes that the server's card fetches, or stores, for an op: the more of these.
double dma(const Nic& nic, const Counted& counted) {
  if (nic.dma_mbps <= 0) return 0;
  double fetched = 0;
  double stored = 0;
  for_each(counted.clients, counted.ops,
           [&](const Each& each) { (each.verb == Verb::kRead ? fetched : stored) += each.count * each.bytes; });
  const bool is_inline = is_inlined(counted.servers);
  for_each(counted.servers, counted.ops, [&](const Each& each) {
    if (is_batched(counted.servers)) fetched += each.count * lines_of(each, is_inline) * kLineBytes;
    if (each.verb == Verb::kRead) {
      stored += each.count * each.bytes;
    } else if (!is_inline) {
      fetched += each.count * each.bytes;
    }
  });
  return std::max(fetched, stored) / nic.dma_mbps;
}

// The same for the lines by which the server's processors hand work requests to it: each, or one for a batch.
double mmio(const Nic& nic, const Counted& counted) {
  if (nic.mmio_lines <= 0) return 0;
  if (is_batched(counted.servers)) {
    return static_cast<double>(counted.servers.doorbells) / counted.ops / nic.mmio_lines;
  }
  double lines = 0;
  const bool is_inline = is_inlined(counted.servers);
  for_each(counted.servers, counted.ops, [&](const Each& each) { lines += each.count * lines_of(each, is_inline); });
  return lines / nic.mmio_lines;
}

// µs of atomics that wait for each other, one after the other.
double contention(const Nic& nic, const Counted& counted) {
  const double words = counted.clients.places_of_atomics();
  if (nic.atomic_contended <= 0 || words <= 0) return 0;
  double atomics = 0;
  for_each(counted.clients, counted.ops, [&](const Each& each) { atomics += is_atomic(each.verb) ? each.count : 0; });
  const double rate = nic.atomic_contended * std::min(words, std::sqrt(std::numbers::pi / 2 * words));
  return atomics / (nic.atomic > 0 ? std::min(rate, nic.atomic) : rate);
}

// µs that an op waits for its verbs, one after the other; those of a message for many ops are waited for by each.
double waiting(const Nic& nic, const Counted& counted) {
  return nic.round_trip_us * std::max(1.0, works_of(counted.clients) / counted.ops);
}

}  // namespace

Prediction predict(const Nic& nic, const Counted& counted) {
  Prediction out;
  if (counted.ops <= 0) return out;
  const auto add = [&out](const char* what, double microseconds) {
    if (microseconds > 0) out.terms.push_back({what, 1 / microseconds});
  };
  add("the server's card, in-bound verbs", inbound(nic, counted.clients, counted, counted.client_pairs));
  add("the server's card, out-bound verbs",
      outbound(nic, counted.servers, counted, counted.server_cores, counted.client_pairs));
  if (counted.client_hosts > 0) {
    add("the clients' cards, in-bound verbs", inbound(nic, counted.servers, counted, 0) / counted.client_hosts);
    add("the clients' cards, out-bound verbs",
        outbound(nic, counted.clients, counted, counted.client_threads, 0) / counted.client_hosts);
  }
  add("the link", link(nic, counted));
  add("PCIe, bytes that the card moves", dma(nic, counted));
  add("PCIe, lines that the server's processors write", mmio(nic, counted));
  add("atomics on the same words", contention(nic, counted));
  if (counted.server_cores > 0) add("the server's processors", counted.server_ns / 1000 / counted.server_cores);
  if (counted.under_way > 0) add("ops under way", waiting(nic, counted) / counted.under_way);
  std::sort(out.terms.begin(), out.terms.end(), [](const Term& a, const Term& b) { return a.rate < b.rate; });
  if (!out.terms.empty()) out.rate = out.terms.front().rate;
  out.unknown = unknown_verbs(nic, counted);
  return out;
}

}  // namespace egret::bench_paradigms
