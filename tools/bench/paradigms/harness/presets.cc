#include "bench_paradigms/harness/presets.h"

#include <algorithm>
#include <array>

namespace egret::bench_paradigms {

namespace {

// What the rows below share: who runs, with how many threads, on which values and mixes. Always as the paper.
struct Shape {
  uint32_t server_cores;
  uint32_t clients;
  uint32_t key_bytes;
};

void set(Setting& setting, std::vector<std::string> ids, const Shape& shape, std::vector<uint32_t> value_bytes,
         std::vector<double> gets) {
  setting.ids = std::move(ids);
  setting.server_cores = shape.server_cores;
  setting.clients = shape.clients;
  setting.key_bytes = shape.key_bytes;
  setting.value_bytes = std::move(value_bytes);
  setting.gets = std::move(gets);
  setting.writers = Writers::kAny;  // in the papers every client puts every key
  setting.tuning.as_paper = true;
}

constexpr Shape kPilaf{1, 40, 23};
constexpr Shape kHerd{6, 51, 16};
constexpr Shape kHerdConnectIb{14, 128, 16};
constexpr Shape kSequencer{14, 70, 16};
constexpr Shape kJakiro{4, 35, 16};
constexpr Shape kReply{6, 28, 16};
constexpr Shape kMemcached{16, 21, 16};

void nessie(Setting& setting, double zipf) {
  set(setting, {"nessie", "nessie-sd"}, {3, 9, 128}, {879}, {0.5, 0.9, 0.99, 0.999, 1});
  setting.zipf = zipf;
  setting.tuning.load = 0.2;
}

void drtm(Setting& setting, uint32_t stride) {
  set(setting, {"drtm-em", "drtm"}, {1, 32, 16}, {32}, {0, 0.5, 0.9, 1});
  setting.tuning.atomic_stride = stride;
}

constexpr std::array kPresets = {
    Preset{"pilaf-fig7", "paper 000, figure 7: small gets 1.28 M/s, puts .663, server-driven gets .662; ConnectX-2",
           [](Setting& setting) {
             set(setting, {"pilaf", "pilaf-vo"}, kPilaf, {16}, {1, 0});
             setting.tuning.load = 0.05;  // the rate needs 1.9 READs a get
           }},
    Preset{"pilaf-fig8", "paper 000, figure 8: latency by value size, 10 clients",
           [](Setting& setting) {
             set(setting, {"pilaf", "pilaf-vo"}, {1, 10, 23}, {16, 64, 256, 1024, 4096}, {1, 0});
             setting.window = 1;
           }},
    Preset{"pilaf-fig10", "paper 000, figure 10: 1.3 M/s with 90 and with 50 % gets; ConnectX-2",
           [](Setting& setting) {
             set(setting, {"pilaf", "pilaf-vo"}, kPilaf, {64, 256}, {0.9, 0.5});
           }},
    Preset{"pilaf-4k", "paper 000, section 5.2: gets of 4 KiB, .357 M/s; ConnectX-2",
           [](Setting& setting) { set(setting, {"pilaf"}, kPilaf, {4096}, {1}); }},
    Preset{"herd-fig9",
           "paper 001, figure 9: gets of pilaf-em 9.9, farm-em 17.2, farm-em-var 11.4, herd 26 M/s; ConnectX-3",
           [](Setting& setting) {
             set(setting, {"pilaf-em", "farm-em", "farm-em-var", "herd"}, kHerd, {32}, {1, 0.95, 0.5});
             setting.window = 4;
           }},
    Preset{"herd-fig10", "paper 001, figure 10: rate by value size, 95 % gets; ConnectX-3",
           [](Setting& setting) {
             set(setting, {"pilaf-em", "farm-em", "farm-em-var", "herd"}, kHerd, {16, 32, 60, 128, 256, 512, 1000},
                 {0.95});
             setting.window = 4;
           }},
    Preset{"herd-plain", "paper 002, figure 9: herd without batches, 72.8 M/s; Connect-IB",
           [](Setting& setting) { set(setting, {"herd"}, kHerdConnectIb, {32}, {0.95}); }},
    Preset{"herd-batched", "paper 002, figure 9: herd with batches, 98.3 M/s; Connect-IB",
           [](Setting& setting) {
             set(setting, {"herd"}, kHerdConnectIb, {32}, {0.95});
             setting.tuning.doorbell = 16;
             setting.tuning.prefetches = true;
           }},
    Preset{"sequencers-t3", "paper 002, table 3: seq-rpc 97.2, seq-s0 122, seq-faa 2.24 M/s; Connect-IB",
           [](Setting& setting) {
             set(setting, {"seq-rpc", "seq-s0", "seq-faa"}, kSequencer, {32}, {1});
             setting.tuning.doorbell = 16;
             setting.tuning.ud_pairs = 3;
             setting.tuning.batch_add = 16;
             setting.tuning.is_header_only = true;
           }},
    Preset{"drtm-fig10",
           "paper 002, figure 10: 10 and 100 % puts are .69 and .12 of gets; Connect-IB, locks 64 B apart",
           [](Setting& setting) { drtm(setting, 64); }},
    Preset{"drtm-fig10-spread", "the same, with locks that share no slot of the device (72 B apart)",
           [](Setting& setting) { drtm(setting, 72); }},
    Preset{"jakiro-fig4", "paper 004, figure 4: 5.5 M/s with 35 clients; ConnectX-3 40 G",
           [](Setting& setting) { set(setting, {"rfp"}, kJakiro, {32}, {0.95}); }},
    Preset{"reply-fig4", "paper 004, figure 4: 2.1 M/s with 28 clients; ConnectX-3 40 G",
           [](Setting& setting) { set(setting, {"reply"}, kReply, {32}, {0.95}); }},
    Preset{"memc-fig4", "paper 004, figure 4: 16 server threads, 21 clients; ConnectX-3 40 G",
           [](Setting& setting) { set(setting, {"memc"}, kMemcached, {32}, {0.95}); }},
    Preset{"jakiro-fig6", "paper 004, figure 6: 5.5 M/s whatever the share of gets",
           [](Setting& setting) {
             set(setting, {"rfp", "reply", "memc", "egret"}, kJakiro, {32}, {0.95, 0.5, 0.05});
           }},
    Preset{"jakiro-fig7", "paper 004, figure 7: the first READ takes 36 B: 3.74 M/s with 64 to 512 B, 3.1 with 1 KiB",
           [](Setting& setting) {
             set(setting, {"rfp", "reply", "memc", "egret"}, kJakiro, {32, 64, 128, 256, 512, 1024}, {0.95});
             setting.tuning.fetch_bytes = 36;
           }},
    Preset{"jakiro-fig9", "paper 004, figure 9: Zipf .99: 5.5 and 2.1 M/s",
           [](Setting& setting) {
             set(setting, {"rfp", "reply", "memc", "egret"}, kJakiro, {32}, {0.95, 0.5, 0.05});
             setting.zipf = 0.99;
           }},
    Preset{"nessie-fig7", "paper 003, figure 7: uniform; nessie is 1.33 of nessie-sd when the CPUs are busy",
           [](Setting& setting) {
             nessie(setting, 0);
             setting.busy = 12;
           }},
    Preset{"nessie-zipf7", "paper 003: Zipf .7, without a cache", [](Setting& setting) { nessie(setting, 0.7); }},
    Preset{"nessie-zipf9", "paper 003: Zipf .9, with a cache: 3 times nessie-sd at 99.9 % gets",
           [](Setting& setting) {
             nessie(setting, 0.9);
             setting.tuning.cache_entries = 10'000;
           }},
    Preset{"nessie-locality", "paper 003: 80 % of the gets for keys of one's own: 1.8 times nessie-sd",
           [](Setting& setting) {
             nessie(setting, 0);
             setting.tuning.locality = 0.8;
           }},
};

}  // namespace

std::span<const Preset> presets() {
  return kPresets;
}

base::Status apply_preset(std::string_view name, Setting& setting) {
  const auto* const found =
      std::find_if(kPresets.begin(), kPresets.end(), [name](const Preset& each) { return each.name == name; });
  if (found == kPresets.end()) {
    return base::Status::error("--preset: there is none called " + std::string(name) + "; --help lists them");
  }
  found->apply(setting);
  setting.preset = name;
  return base::Status::ok();
}

}  // namespace egret::bench_paradigms
