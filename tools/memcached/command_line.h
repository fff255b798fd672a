// A command line of memcached, read by its table of flags.
#pragma once

#include <variant>

#include "memcached/request.h"

namespace egret::memcached {

// Reads argv as getopt_long does (long names may be cut short, values may follow in the next word). What is not a flag
// is overlooked, as memcached does. getopt's state is global: one thread at a time. A flag that getopt does not know it
// names on stderr itself.
std::variant<Request, Refusal> read_command_line(int argc, char** argv);

}  // namespace egret::memcached
