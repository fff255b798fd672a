#include "bench_paradigms/paradigm.h"

#include <algorithm>
#include <array>

#include "bench_paradigms/bundle.h"
#include "bench_paradigms/pairing.h"
#include "bench_paradigms/stores/chained_table.h"
#include "bench_paradigms/systems/systems.h"

namespace egret::bench_paradigms {

namespace {

constexpr uint8_t bit(PairType type) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(type));
}
constexpr uint8_t bit(OpKind kind) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(kind));
}
constexpr uint8_t kRc = bit(PairType::kRc);
constexpr uint8_t kUc = bit(PairType::kUc);
constexpr uint8_t kUd = bit(PairType::kUd);
constexpr uint8_t kUcUd = bit(PairType::kUc) | bit(PairType::kUd);
constexpr uint8_t kReads = bit(OpKind::kGet);
constexpr uint8_t kKeyOps = bit(OpKind::kGet) | bit(OpKind::kPut) | bit(OpKind::kErase);
constexpr uint8_t kNumbers = bit(OpKind::kNext);

// A row for each id.
constexpr std::array kParadigms = {
    Paradigm{.id = "raw-read",
             .title = "one READ of a place that the client knows",
             .source = "paper 003, section 3.2, figures 1 and 2; paper 002, section 4.3.1",
             .pairs = kRc,
             .kinds = kReads,
             .make_server = make_raw_read_server,
             .make_client = make_raw_read_client},
    Paradigm{.id = "reply",
             .title = "ServerReply: WRITE in, WRITE back",
             .source = "paper 004, section V-A; paper 003, section 3.2 (WR/WR)",
             .pairs = kRc,
             .marks = kMarkWrite,
             .marks_as_paper = kMarkWrite,
             .kinds = kKeyOps,
             .make_server = make_reply_server,
             .make_client = make_reply_client},
    Paradigm{.id = "rfp",
             .title = "Jakiro: results stay in the server's memory, clients READ them",
             .source = "paper 004, section IV, figure 3",
             .pairs = kRc,
             .marks = kMarkWrite | kMarkRead,
             .marks_as_paper = kMarkWrite | kMarkRead,
             .kinds = kKeyOps,
             .make_server = make_rfp_server,
             .make_client = make_rfp_client},
    Paradigm{.id = "rfp-hybrid",
             .title = "remote fetching, replies where the server is slow",
             .source = "RFP, EuroSys 2017, section 3",
             .pairs = kRc,
             .marks = kMarkWrite | kMarkRead,
             .marks_as_paper = kMarkWrite | kMarkRead,
             .kinds = kKeyOps,
             .make_server = make_rfp_hybrid_server,
             .make_client = make_rfp_hybrid_client},
    Paradigm{.id = "memc",
             .title = "RDMA-Memcached: SENDs, large values by the server's WRITE and READ",
             .source = "paper 004, section V; paper 000, section 6",
             .pairs = kRc,
             .marks = kNoMark,
             .marks_as_paper = kNoMark,
             .kinds = kKeyOps,
             .make_server = make_memc_server,
             .make_client = make_memc_client},
    Paradigm{.id = "pilaf-vo",
             .title = "Pilaf by verb messages only",
             .source = "paper 000, section 5, figure 7",
             .pairs = kRc,
             .marks = kNoMark,
             .marks_as_paper = kNoMark,
             .kinds = kKeyOps,
             .make_server = make_pilaf_vo_server,
             .make_client = make_pilaf_vo_client},
    Paradigm{.id = "herd",
             .title = "HERD: UC WRITE in, UD SEND back",
             .source = "paper 001, section 4.2, figure 8; paper 002, section 4.1",
             .pairs = kUcUd,
             .marks = kMarkWrite | kMarkLoss,
             .marks_as_paper = kMarkWrite | kMarkLoss,
             .kinds = kKeyOps,
             .make_server = make_herd_server,
             .make_client = make_herd_client},
    Paradigm{.id = "nessie",
             .title = "clients do everything: index words by CAS, entries that do not change",
             .source = "paper 003, section 4, figures 3 to 6",
             .pairs = kRc,
             .needs_atomics = true,
             .marks = kMarkTime | kMarkHca,
             .marks_as_paper = kMarkTime | kMarkHca | kMarkRead,
             .kinds = kKeyOps,
             .puts_read = PutsRead::kAlways,
             .make_server = make_nessie_server,
             .make_client = make_nessie_client},
    Paradigm{.id = "nessie-sd",
             .title = "NessieSD: the same table, server-driven: WRITE in, WRITE back, nothing inline",
             .source = "paper 003, section 5, figures 7 and 11",
             .pairs = kRc,
             .marks = kMarkWrite,
             .marks_as_paper = kMarkWrite,
             .kinds = kKeyOps,
             .make_server = make_nessie_sd_server,
             .make_client = make_nessie_sd_client},
    Paradigm{.id = "seq-rpc",
             .title = "a sequencer by HERD's calls",
             .source = "paper 002, section 4.2",
             .pairs = kUcUd,
             .marks = kMarkWrite | kMarkLoss,
             .marks_as_paper = kMarkWrite | kMarkLoss,
             .kinds = kNumbers,
             .make_server = make_seq_rpc_server,
             .make_client = make_seq_rpc_client},
    Paradigm{.id = "pilaf",
             .title = "Pilaf: READs of a self-verifying cuckoo table",
             .source = "paper 000, sections 3 and 4",
             .pairs = kRc,
             .kinds = kKeyOps,
             .make_server = make_pilaf_server,
             .make_client = make_pilaf_client},
    Paradigm{.id = "pilaf-em",
             .title = "Pilaf-em-OPT: tags, puts over UD",
             .source = "paper 001, section 5.1.1",
             .pairs = kRc | kUd,
             .marks = kMarkLoss,
             .marks_as_paper = kMarkLoss,
             .kinds = kKeyOps,
             .make_server = make_pilaf_em_server,
             .make_client = make_pilaf_em_client},
    Paradigm{.id = "farm-em",
             .title = "FaRM-em: a READ of H slots",
             .source = "paper 001, section 5.1.2",
             .pairs = kRc | kUc,
             .marks = kMarkWrite,
             .marks_as_paper = kMarkRead | kMarkWrite,
             .kinds = kKeyOps,
             .make_server = make_farm_em_server,
             .make_client = make_farm_em_client},
    Paradigm{.id = "farm-em-var",
             .title = "FaRM-em-VAR: a READ of H slots, a READ of the value",
             .source = "paper 001, section 5.1.2",
             .pairs = kRc | kUc,
             .marks = kMarkWrite,
             .marks_as_paper = kMarkRead | kMarkWrite,
             .kinds = kKeyOps,
             .make_server = make_farm_em_var_server,
             .make_client = make_farm_em_client},
    Paradigm{.id = "drtm-em",
             .title = "DrTM-KV emulated: a READ; two atomics",
             .source = "paper 002, section 4.3.2, figure 10",
             .pairs = kRc,
             .needs_atomics = true,
             .marks = kMarkLine | kMarkHca,
             .marks_as_paper = kMarkLine | kMarkHca,
             .kinds = kReads | bit(OpKind::kPut),
             .stores_puts = false,
             .make_server = make_drtm_em_server,
             .make_client = make_drtm_em_client},
    Paradigm{.id = "drtm",
             .title = "DrTM-KV: lock, WRITE, unlock by clients",
             .source = "paper 002, section 4.3.2; DrTM's public code",
             .pairs = kRc,
             .needs_atomics = true,
             .marks = kMarkLine | kMarkHca,
             .marks_as_paper = kMarkLine | kMarkHca,
             .one_line_value = ChainedShape::kOneLineValue,
             .marks_of_lines = kMarkRead | kMarkHca,
             .marks_of_lines_as_paper = kMarkRead | kMarkLine | kMarkHca,
             .kinds = kKeyOps,
             .puts_read = PutsRead::kWherePlacesAreNotCached,
             .make_server = make_drtm_server,
             .make_client = make_drtm_client},
    Paradigm{.id = "egret",
             .title = "this project's lanes: remote fetching of messages that hold many ops, with checksums",
             .source = "protocol/rpc; paper 004, section IV; RFP, EuroSys 2017, section 3",
             .pairs = kRc,
             .kinds = kKeyOps,
             .make_server = make_egret_server,
             .make_client = make_egret_client},
    Paradigm{.id = "seq-s0",
             .title = "Spec-S0: a sequencer with header-only SENDs",
             .source = "paper 002, section 4.2.1",
             .pairs = kUd,
             .marks = kMarkLoss,
             .marks_as_paper = kMarkLoss,
             .kinds = kNumbers,
             .make_server = make_seq_s0_server,
             .make_client = make_seq_s0_client},
    Paradigm{.id = "seq-faa",
             .title = "a sequencer by FETCH_ADD",
             .source = "paper 002, section 4.2.3, table 3",
             .pairs = kRc,
             .needs_atomics = true,
             .kinds = kNumbers,
             .make_server = make_seq_faa_server,
             .make_client = make_seq_faa_client},
};

}  // namespace

std::span<const Paradigm> paradigms() {
  return kParadigms;
}

const Paradigm* find_paradigm(std::string_view id) {
  const auto* const found =
      std::find_if(kParadigms.begin(), kParadigms.end(), [id](const auto& each) { return each.id == id; });
  return found == kParadigms.end() ? paired(id) : &*found;
}

uint8_t Paradigm::marks_of(const Plan& plan) const {
  if (gets_by != nullptr) return static_cast<uint8_t>(gets_by->marks_of(plan) | puts_by->marks_of(plan));
  const bool is_long = one_line_value > 0 && plan.value_bytes > one_line_value;
  if (plan.tuning.as_paper) return is_long ? marks_of_lines_as_paper : marks_as_paper;
  return is_long ? marks_of_lines : marks;
}

bool Paradigm::has_puts_that_read(const Plan& plan) const {
  if (puts_by != nullptr) return puts_by->has_puts_that_read(plan);
  return puts_read == PutsRead::kAlways ||
         (puts_read == PutsRead::kWherePlacesAreNotCached && !plan.tuning.caches_places);
}

std::unique_ptr<ServerNode> make_server(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric) {
  if (plan.tuning.queue_pairs > 1) return make_bundled_server(paradigm, plan, self, fabric);
  if (paradigm.gets_by != nullptr) return make_paired_server(paradigm, plan, self, fabric);
  return paradigm.make_server(plan, self, fabric);
}

std::unique_ptr<ClientNode> make_client(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric) {
  if (plan.tuning.queue_pairs > 1) return make_bundled_client(paradigm, plan, self, fabric);
  if (paradigm.gets_by != nullptr) return make_paired_client(paradigm, plan, self, fabric);
  return paradigm.make_client(plan, self, fabric);
}

std::string why_not(const Paradigm& paradigm, const Capabilities& capabilities, const Plan& /*plan*/) {
  if (paradigm.needs_atomics && !capabilities.has_atomics) return capabilities.device + " has no atomics";
  if ((paradigm.pairs & bit(PairType::kUc)) != 0 && !capabilities.has_uc) return capabilities.device + " has no UC";
  if ((paradigm.pairs & bit(PairType::kUd)) != 0 && !capabilities.has_ud) return capabilities.device + " has no UD";
  return {};
}

}  // namespace egret::bench_paradigms
