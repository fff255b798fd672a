// What is answered, in the dialect of the question: an op's result (or what the proxy says in its place) as bytes.
//
//   Command ──ask()──▶ Question (kept until the result is there) + op::Result ──▶ head [value tail]  or  a whole answer
//
// All writers write into the caller's memory, need the room their bound says, and return the end of what they wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "memcache/binary.h"
#include "memcache/command.h"
#include "op/op.h"

namespace egret::memcache {

// What an answer has to know of its command. One is used again and again, so that `echo` keeps its memory.
struct Question {
  CommandKind kind = CommandKind::kQuit;
  Dialect dialect = Dialect::kClassic;
  bool noreply = false;
  bool quiet = false;
  uint8_t opcode = 0;         // binary
  uint16_t options = 0;       // of the op
  uint32_t opaque = 0;        // binary
  uint32_t value_length = 0;  // ms
  uint64_t cas = 0;           // of the op
  std::string echo;           // meta: key and flags as they were written

  bool is_classic() const { return dialect == Dialect::kClassic; }
};

// `options`: of the op that the command became.
void ask(const Command& command, uint16_t options, Question& question);

// Whether the answer to a read holds the value. Else write_answer() says all there is to say.
bool has_value(const Question& question, const op::Result& result);

// What comes before the value of a hit, whose length is `length`, and what comes after it.
size_t max_head(const Question& question, size_t key_length);
char* write_head(char* out, const Question& question, std::string_view key, const op::Result& result, uint32_t length);
std::string_view tail(const Question& question);

// An answer without a value: to a change, to a read that missed, failed or did not want the value. Nothing for a
// miss of a classic retrieval, and where noreply or quiet say so.
size_t max_answer(const Question& question, size_t key_length);
char* write_answer(char* out, const Question& question, std::string_view key, const op::Result& result);

// A classic retrieval answers anything but hit and miss by one line in the place of everything, END included. Empty for
// a hit and for a miss.
std::string_view retrieval_error(const op::Result& result);

// --- Packets that are no op's result.
// A body without key and extras.
size_t max_packet(std::string_view body);
char* write_packet(char* out, const Question& question, binary::Status status, std::string_view body);
// A report of `stats` ("STAT name value" lines and END) as packets, ended by an empty one.
std::string stat_packets(const Question& question, std::string_view report);

}  // namespace egret::memcache
