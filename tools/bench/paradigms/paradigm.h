// The table of paradigms: a row for each id, with what it is, what it relies on and how its nodes are made. A system is a
// file in systems/, and a row here.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "bench_paradigms/node.h"

namespace egret::bench_paradigms {

// What a design relies on that the verbs do not promise. Or-ed together. A device that breaks one of a row's marks takes
// the row out of the verdict.
enum Mark : uint8_t {
  kNoMark = 0,
  kMarkWrite = 1,  // W: a WRITE is placed in rising order
  kMarkRead = 2,   // R: a READ samples in rising order
  kMarkLine = 4,   // line: a cache line is read and written whole
  kMarkLoss = 8,   // loss: nothing is lost
  kMarkTime = 16,  // time: nothing is late by more than a bound
  kMarkHca = 32,   // HCA: atomics are atomic against this device's verbs only
};

// Whether puts and erases READ, too. Then the READs of a run tell nothing of its gets, unless all ops are gets.
enum class PutsRead : uint8_t { kNever, kWherePlacesAreNotCached, kAlways };

struct Paradigm {
  std::string_view id;
  std::string_view title;   // "Jakiro: remote fetching"
  std::string_view source;  // "paper 004, section III, figure 5"
  uint8_t pairs = 0;        // bits 1 << PairType
  bool needs_atomics = false;
  uint8_t marks = kNoMark;
  uint8_t marks_as_paper = kNoMark;
  // Values above it take several lines: then these are its marks. 0: marks do not depend on the value.
  uint32_t one_line_value = 0;
  uint8_t marks_of_lines = kNoMark;
  uint8_t marks_of_lines_as_paper = kNoMark;
  uint8_t kinds = 0;  // bits 1 << OpKind
  PutsRead puts_read = PutsRead::kNever;
  bool stores_puts = true;  // false: an emulation whose puts cost what the paper's cost and change no value
  std::unique_ptr<ServerNode> (*make_server)(const Plan& plan, NodeId self, Fabric& fabric) = nullptr;
  std::unique_ptr<ClientNode> (*make_client)(const Plan& plan, NodeId self, Fabric& fabric) = nullptr;

  // Of two paradigms: gets by the one, puts by the other (pairing.h), and no makers of its own.
  const Paradigm* gets_by = nullptr;
  const Paradigm* puts_by = nullptr;

  uint8_t marks_of(const Plan& plan) const;
  bool has_puts_that_read(const Plan& plan) const;
  bool has(OpKind kind) const { return (kinds >> static_cast<unsigned>(kind) & 1) != 0; }
};

// In the order of the report.
std::span<const Paradigm> paradigms();
// Also "get+put" (pairing.h).
const Paradigm* find_paradigm(std::string_view id);
// The nodes of a row, or of two (pairing.h); Tuning::queue_pairs: several of each client (bundle.h). The plan outlives them.
std::unique_ptr<ServerNode> make_server(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric);
std::unique_ptr<ClientNode> make_client(const Paradigm& paradigm, const Plan& plan, NodeId self, Fabric& fabric);
// Why it cannot run with these devices; empty if it can.
std::string why_not(const Paradigm& paradigm, const Capabilities& capabilities, const Plan& plan);

}  // namespace egret::bench_paradigms
