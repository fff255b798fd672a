// Writes answers in the dialect of the command: an op's result, or the proxy's own answer, as bytes.
//
//   Command ──ask()──▶ Question (kept until the result is there) + op::Result ──▶ head [value tail]  or  a whole answer
//
// All writers write into the caller's memory, need the room that their bound states, and return the end of the output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "memcache/binary/binary.h"
#include "memcache/command.h"
#include "op/op.h"

namespace egret::memcache {

// What an answer needs of its command. Objects are reused, so that `echo` keeps its memory.
struct Question {
  CommandKind kind = CommandKind::kQuit;
  Dialect dialect = Dialect::kClassic;
  bool noreply = false;
  bool quiet = false;
  uint8_t opcode = 0;         // binary
  uint16_t options = 0;       // the op's
  uint32_t opaque = 0;        // binary
  uint32_t value_length = 0;  // ms
  uint64_t cas = 0;           // the op's
  std::string echo;           // meta: key and flags as the client wrote them

  bool is_classic() const { return dialect == Dialect::kClassic; }
};

// Fills in `question`. `options` are those of the command's op.
void ask(const Command& command, uint16_t options, Question& question);

// Whether the answer to a read contains the value. Else write_answer() writes the whole answer.
bool has_value(const Question& question, const op::Result& result);

// The bytes before the value of a hit, whose length is `length`, and those after it.
size_t max_head(const Question& question, size_t key_length);
char* write_head(char* out, const Question& question, std::string_view key, const op::Result& result, uint32_t length);
std::string_view tail(const Question& question);

// An answer without a value: to a change, or to a read that missed, failed or did not want the value. Empty for a miss
// of a classic retrieval, and if noreply or quiet suppress it.
size_t max_answer(const Question& question, size_t key_length);
char* write_answer(char* out, const Question& question, std::string_view key, const op::Result& result);

// The line that replaces a whole classic retrieval's answer, END included, if a result is neither hit nor miss. Empty
// for a hit and for a miss.
std::string_view retrieval_error(const op::Result& result);

// --- Packets that answer no op.
// A packet whose body has no key and no extras.
size_t max_packet(std::string_view body);
char* write_packet(char* out, const Question& question, binary::Status status, std::string_view body);
// Lines of a report of `stats` ("STAT name value") as packets; the line that ends it (END or another) as an empty one.
std::string stat_packets(const Question& question, std::string_view report);

}  // namespace egret::memcache
