// What is known of RDMA devices, a row for each driver of the kernel. The doctor says it of those it sees, the table in
// docs/operate/rdma.md is made of it, and devices that cannot serve are refused by it. Cold path; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace egret::transport::device {

enum class Serves : uint8_t { kYes, kExpected, kNo };
// How a row was checked.
enum class Checked : uint8_t { kGuest, kSources, kNot };

struct Card {
  std::string_view driver;  // of the kernel, and libibverbs' provider
  std::string_view cards;
  Serves serves = Serves::kNo;
  Checked checked = Checked::kNot;
  std::string_view known;  // of kNo: why not
};
std::span<const Card> known_cards();

// The row of a device, by what the kernel says of it below `sys` (/sys); null: an unknown one.
const Card* card_of(const std::string& sys, const std::string& device);

// Whether the kernel calls it an iWARP device: its GIDs are not RoCE's, whatever their type says.
bool is_iwarp(const std::string& sys, const std::string& device);

// "mlx5_core, 0x15b3:0x1017": its driver, vendor and device id, as far as the kernel says them.
std::string identity_of(const std::string& sys, const std::string& device);

// Why a device cannot serve; nothing if it can, as far as is known. `is_iwarp`: what libibverbs says of its transport.
std::optional<std::string> refusal(const std::string& sys, const std::string& device, bool is_iwarp);

// The table as GitHub's Markdown.
std::string cards_markdown();

}  // namespace egret::transport::device
