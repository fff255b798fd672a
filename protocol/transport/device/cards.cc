#include "transport/device/cards.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/core.h>

namespace egret::transport::device {

namespace {

namespace fs = std::filesystem;

constexpr std::array kCards = {
    Card{"mlx5", "NVIDIA ConnectX-4 to -8, BlueField; Azure, OCI and others as VF", Serves::kExpected,
         Checked::kSources,
         "RoCE and InfiniBand. Solicited events, thread domains. Lossless classes are chosen by tos"},
    Card{"mlx4", "Mellanox ConnectX-3", Serves::kExpected, Checked::kSources,
         "RoCE and InfiniBand. RoCE v2 from ConnectX-3 Pro on. No thread domains"},
    Card{
        "irdma", "Intel E810, E823, X722; GCP's IDPF", Serves::kExpected, Checked::kSources,
        "in RoCE v2 mode only, which is not every card's default (module irdma, roce_ena=1; devlink): in iWARP mode it "
        "has no WRITE with immediate. 101 bytes inline, 48 on X722; X722 has iWARP only"},
    Card{"bnxt_re", "Broadcom NetXtreme-E, -C: BCM574xx, 575xx, 576xx", Serves::kExpected, Checked::kSources,
         "RoCE v2. 96 bytes inline on most"},
    Card{"erdma", "Alibaba Cloud eRDMA", Serves::kExpected, Checked::kSources,
         "it calls itself iWARP, but has WRITE with immediate. 96 bytes inline"},
    Card{"mana", "Microsoft Azure Network Adapter", Serves::kExpected, Checked::kSources,
         "reliable connections need a recent kernel and rdma-core. No solicited events: every completion of an armed "
         "queue wakes"},
    Card{"qedr", "Marvell FastLinQ 41000, 45000", Serves::kExpected, Checked::kSources,
         "in RoCE mode only. 256 bytes inline"},
    Card{"hns", "Huawei Kunpeng (HNS RoCE)", Serves::kExpected, Checked::kSources, "RoCE v2. Thread domains"},
    Card{"rxe", "Soft-RoCE, of the kernel", Serves::kYes, Checked::kGuest,
         "for trying things out, not for speed. All of the tests run on it"},
    Card{"siw", "Soft-iWARP, of the kernel", Serves::kNo, Checked::kSources,
         "iWARP has no WRITE with immediate, which wake-ups and pushed results need; Soft-RoCE works in its place"},
    Card{"cxgb4", "Chelsio T4 to T6", Serves::kNo, Checked::kNot,
         "iWARP has no WRITE with immediate, which wake-ups and pushed results need"},
    Card{"efa", "AWS Elastic Fabric Adapter", Serves::kNo, Checked::kSources,
         "no reliable-connected queue pairs, no rdma_cm, no order. It would take a transport of its own: SRD queue "
         "pairs, WRITE with immediate both ways, set-up over TCP"},
};

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The driver of the function that a device belongs to. That of an emulated one is its network interface's.
std::string driver_of(const fs::path& device) {
  std::error_code error;
  const fs::path link = fs::read_symlink(device / "device" / "driver", error);
  return error ? "" : link.filename().string();
}

// The kernel's name of a driver, as the PCI function shows it → the row. Some are network drivers with an RDMA part.
struct Named {
  std::string_view kernel, row;
};
constexpr std::array kNamed = {
    Named{"mlx5_core", "mlx5"}, Named{"mlx4_core", "mlx4"},  Named{"ice", "irdma"},   Named{"i40e", "irdma"},
    Named{"idpf", "irdma"},     Named{"bnxt_en", "bnxt_re"}, Named{"erdma", "erdma"}, Named{"mana", "mana"},
    Named{"qede", "qedr"},      Named{"hns3", "hns"},        Named{"cxgb4", "cxgb4"}, Named{"efa", "efa"},
};

const Card* row_of(std::string_view driver) {
  const auto* const row = std::ranges::find(kCards, driver, &Card::driver);
  return row == kCards.end() ? nullptr : row;
}

bool is_iwarp_node(const fs::path& device) {
  return first_line(device / "node_type").find("RNIC") != std::string::npos;
}

const char* text_of(Checked checked) {
  switch (checked) {
    case Checked::kGuest:
      return "in guests";
    case Checked::kSources:
      return "in the sources of rdma-core and the kernel, not run";
    case Checked::kNot:
      return "not at all";
  }
  return "";
}

const char* text_of(Serves serves) {
  return serves == Serves::kYes ? "yes" : serves == Serves::kExpected ? "should" : "no";
}

}  // namespace

std::span<const Card> known_cards() {
  return kCards;
}

// rxe and siw belong to a network interface, whose driver says nothing of them.
const Card* card_of(const std::string& sys, const std::string& device) {
  const fs::path folder = fs::path(sys) / "class/infiniband" / device;
  if (fs::exists(folder / "parent")) return row_of("rxe");
  const std::string driver = driver_of(folder);
  const auto* const named = std::ranges::find(kNamed, driver, &Named::kernel);
  const Card* const row = named == kNamed.end() ? nullptr : row_of(named->row);
  const bool may_be_iwarp = row != nullptr && (row->driver == "irdma" || row->driver == "erdma" ||
                                               row->driver == "cxgb4" || row->driver == "qedr");
  if (is_iwarp_node(folder) && !may_be_iwarp) return row_of("siw");
  return row;
}

bool is_iwarp(const std::string& sys, const std::string& device) {
  return is_iwarp_node(fs::path(sys) / "class/infiniband" / device);
}

std::string identity_of(const std::string& sys, const std::string& device) {
  const fs::path folder = fs::path(sys) / "class/infiniband" / device;
  const Card* const card = card_of(sys, device);
  const std::string driver = driver_of(folder);
  std::string text = card != nullptr ? std::string(card->driver) : driver.empty() ? "unknown driver" : driver;
  const std::string vendor = first_line(folder / "device/vendor");
  const bool is_emulated = card != nullptr && (card->driver == "rxe" || card->driver == "siw");
  if (!vendor.empty() && !is_emulated) text += ", " + vendor + ":" + first_line(folder / "device/device");
  return text;
}

std::optional<std::string> refusal(const std::string& sys, const std::string& device, bool is_iwarp) {
  const Card* const card = card_of(sys, device);
  const auto because = [&](std::string_view why) {
    return fmt::format("{} ({}) cannot serve: {}", device, identity_of(sys, device), why);
  };
  if (card != nullptr && card->serves == Serves::kNo) return because(card->known);
  const bool has_immediates = card != nullptr && card->driver == "erdma";
  if (!has_immediates && (is_iwarp || device::is_iwarp(sys, device))) {
    return because(
        "it is in iWARP mode, and iWARP has no WRITE with immediate, which wake-ups and pushed results need");
  }
  return {};
}

std::string cards_markdown() {
  std::string table = "| driver | cards | works? | checked | what is known |\n| --- | --- | --- | --- | --- |\n";
  for (const Card& card : kCards) {
    table += fmt::format("| {} | {} | {} | {} | {} |\n", card.driver, card.cards, text_of(card.serves),
                         text_of(card.checked), card.known);
  }
  return table;
}

}  // namespace egret::transport::device
