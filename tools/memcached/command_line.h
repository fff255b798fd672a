// Parses memcached's command line by the table of flags.
#pragma once

#include <variant>

#include "memcached/request.h"

namespace egret::memcached {

// Parses argv by getopt_long (long names may be abbreviated, a value may be the next word). As memcached, ignores words
// that are not flags. getopt prints an unknown flag to stderr itself. Its state is global: one thread at a time.
std::variant<Request, Refusal> read_command_line(int argc, char** argv);

}  // namespace egret::memcached
