#include "bench_nic/nic.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace egret::bench_nic {

using base::Expected;
using base::Status;
using Json = nlohmann::ordered_json;

double RateCurve::microseconds(double bytes) const {
  if (points.empty()) return 0;
  const auto time_at = [this](size_t i) { return 1 / points[i].rate; };
  if (bytes <= points.front().bytes || points.size() == 1) return time_at(0);
  size_t next = 1;
  while (next + 1 < points.size() && points[next].bytes < bytes) ++next;
  const double width = points[next].bytes - points[next - 1].bytes;
  const double slope = (time_at(next) - time_at(next - 1)) / width;
  return std::max(time_at(next - 1) + slope * (bytes - points[next - 1].bytes), 1e-6);
}

namespace {

Nic connect_ib() {
  Nic cib;
  cib.name = "cib";
  cib.source = "Connect-IB, 2 x 56 Gb/s: paper 002, tables 4 and 5; atomics on several words follow from those on one";
  cib.read_in = {{{64, 121.6}, {128, 76.2}}};
  cib.write_in = {{{32, 122}}};
  cib.write_out = {{{1, 80}}};
  cib.receive = 82;
  cib.receive_empty = 122;
  cib.send_batched = 101.6;
  cib.send_single = 80;
  cib.send_empty = 157;
  cib.atomic = 52;
  cib.atomic_contended = 2.24;
  cib.link_gbps = 109;
  cib.dma_mbps = 13443;
  cib.mmio_lines = 175;
  cib.pairs_cached = 366;
  cib.pair_hit_ns = 20;
  cib.pair_miss_ns = 17.5;
  return cib;
}

}  // namespace

std::span<const Nic> known_nics() {
  static const std::vector<Nic> nics = [] {
    Nic cx2;
    cx2.name = "cx2";
    cx2.source = "ConnectX-2: paper 000, table 1 and section 2.1";
    cx2.read_in = {{{16, 2.449}, {1024, 1.496}, {4096, .472}}};
    cx2.receive = cx2.receive_empty = 1.5;
    cx2.send_batched = cx2.send_single = cx2.send_empty = .7;
    cx2.link_gbps = 16;

    Nic cx3_40;
    cx3_40.name = "cx3-40";
    cx3_40.source = "ConnectX-3, 40 Gb/s: paper 004, figure 1, tables 1 and 2";
    cx3_40.read_in = {{{32, 11.26}}};
    cx3_40.write_in = {{{32, 11.3}}};
    cx3_40.write_out = {{{1, .62}, {4, 2.11}, {8, 1.46}}};
    cx3_40.link_gbps = 32;

    Nic cx3_56;
    cx3_56.name = "cx3-56";
    cx3_56.source =
        "ConnectX-3, 56 Gb/s: paper 001, figure 12 for UC pairs; paper 002, table 5 and figure 14; cold atomics and RC "
        "pairs are from outside";
    cx3_56.read_in = {{{32, 26}}};
    cx3_56.write_in = {{{32, 34}}};
    cx3_56.receive = 21.8;
    cx3_56.receive_empty = 34;
    cx3_56.send_batched = cx3_56.send_single = 26;
    cx3_56.send_empty = 32.1;
    cx3_56.atomic = 2.7;
    cx3_56.atomic_cold = 1.8;
    cx3_56.link_gbps = 54.5;
    cx3_56.pairs_cached = 130;
    cx3_56.uc_pairs_cached = 260;
    cx3_56.pair_hit_ns = 137;
    cx3_56.pair_miss_ns = 855;

    Nic cx6;
    cx6.name = "cx6";
    cx6.source = "ConnectX-6: one public measurement of two hosts, indicative only; 256 cached pairs are assumed";
    cx6.read_in = {{{32, 83}}};
    cx6.write_in = {{{32, 123}}};
    cx6.link_gbps = 100;
    cx6.pairs_cached = 256;
    cx6.pair_hit_ns = 12;
    cx6.pair_miss_ns = 38;
    return std::vector<Nic>{cx2, cx3_40, cx3_56, connect_ib(), cx6};
  }();
  return nics;
}

namespace {

struct NumberField {
  const char* name;
  double Nic::*value;
};
constexpr NumberField kNumbers[] = {
    {"receive", &Nic::receive},
    {"receive_empty", &Nic::receive_empty},
    {"send_batched", &Nic::send_batched},
    {"send_single", &Nic::send_single},
    {"send_empty", &Nic::send_empty},
    {"atomic", &Nic::atomic},
    {"atomic_cold", &Nic::atomic_cold},
    {"atomic_contended", &Nic::atomic_contended},
    {"link_gbps", &Nic::link_gbps},
    {"link_share", &Nic::link_share},
    {"dma_mbps", &Nic::dma_mbps},
    {"mmio_lines", &Nic::mmio_lines},
    {"pairs_cached", &Nic::pairs_cached},
    {"pair_hit_ns", &Nic::pair_hit_ns},
    {"pair_miss_ns", &Nic::pair_miss_ns},
    {"uc_pairs_cached", &Nic::uc_pairs_cached},
    {"round_trip_us", &Nic::round_trip_us},
};
struct CurveField {
  const char* name;
  RateCurve Nic::*curve;
};
constexpr CurveField kCurves[] = {
    {"read_in", &Nic::read_in}, {"write_in", &Nic::write_in}, {"write_out", &Nic::write_out}};

// Checked here, once: rates above 0, sizes that rise.
Status read_curve(const Json& from, const std::string& name, RateCurve& curve) {
  if (!from.is_array()) return Status::error(name + " is no list of [bytes, M/s]");
  for (const Json& each : from) {
    if (!each.is_array() || each.size() != 2 || !each[0].is_number() || !each[1].is_number()) {
      return Status::error(name + " is no list of [bytes, M/s]");
    }
    const RateCurve::At at{each[0].get<double>(), each[1].get<double>()};
    if (!(at.rate > 0) || !std::isfinite(at.rate) || !(at.bytes >= 0) || at.bytes > 1e9) {
      return Status::error(name + " has a size or rate that cannot be");
    }
    if (!curve.points.empty() && curve.points.back().bytes >= at.bytes) {
      return Status::error("the sizes of " + name + " do not rise");
    }
    curve.points.push_back(at);
  }
  return Status::ok();
}

Expected<Nic> parse(const std::string& text, const std::string& file) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return Status::error(file + " is no JSON object");
  Nic nic;
  nic.name = file;
  for (const auto& [name, value] : json.items()) {
    const auto* const number = std::find_if(std::begin(kNumbers), std::end(kNumbers),
                                            [&name = name](const NumberField& each) { return name == each.name; });
    const auto* const curve = std::find_if(std::begin(kCurves), std::end(kCurves),
                                           [&name = name](const CurveField& each) { return name == each.name; });
    if (number != std::end(kNumbers)) {
      const double wanted = value.is_number() ? value.get<double>() : -1;
      if (!(wanted >= 0) || wanted > 1e9)
        return Status::error(fmt::format("{}: {} is no number of 0 and more", file, name));
      nic.*number->value = wanted;
    } else if (curve != std::end(kCurves)) {
      if (Status done = read_curve(value, fmt::format("{}: {}", file, name), nic.*curve->curve); !done) return done;
    } else if ((name == "name" || name == "source") && value.is_string()) {
      (name == "name" ? nic.name : nic.source) = value.get<std::string>();
    } else {
      return Status::error(fmt::format("{}: {} is not known", file, name));
    }
  }
  return nic;
}

}  // namespace

Expected<Nic> read_nic(const std::string& name_or_file) {
  for (const Nic& nic : known_nics()) {
    if (nic.name == name_or_file) return nic;
  }
  std::ifstream file(name_or_file);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    std::string names;
    for (const Nic& nic : known_nics()) names += (names.empty() ? "" : ", ") + nic.name;
    return Status::error(name_or_file + " is neither a card that is known (" + names + ") nor a file that can be read");
  }
  return parse(text.str(), name_or_file);
}

std::string to_json(const Nic& nic) {
  Json json;
  json["name"] = nic.name;
  json["source"] = nic.source;
  for (const CurveField& each : kCurves) {
    const RateCurve& curve = nic.*each.curve;
    if (!curve.is_known()) continue;
    json[each.name] = Json::array();
    for (const auto& at : curve.points) json[each.name].push_back({at.bytes, at.rate});
  }
  for (const NumberField& each : kNumbers) {
    if (nic.*each.value != 0) json[each.name] = nic.*each.value;
  }
  return json.dump(2) + "\n";
}

}  // namespace egret::bench_nic
