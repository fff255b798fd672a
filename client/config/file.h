// The syntax of the library's configuration file: a part of YAML, so that every such file is one of YAML, too.
//
//   # a comment, on a line of its own or behind a value and a blank
//   NAME: VALUE
//   NAME: "VALUE"          or '...': as it is between the quotes; no escapes
//   NAME: [VALUE, VALUE]   a list in one line
//   NAME:                  a list, a value a line
//     - VALUE
//
// A name begins its line. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options/option_entry.h"
#include "base/status.h"

namespace egret::client {

// Appends the entries of `text` in order. The error begins with "FILE:LINE: ".
base::Status parse_file(std::string_view text, const std::string& file_name, std::vector<base::OptionEntry>& entries);

}  // namespace egret::client
