// The YAML syntax of base/options/options.h: turns a file's text into a flat sequence of entries, without knowing any option.
// Private to base; only options_yaml.cc includes yaml-cpp's headers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options/option_entry.h"
#include "base/status.h"

namespace egret::base {

// Appends the file's entries in order, duplicates included. An empty file has none. Anything but a flat mapping of
// scalars and lists of scalars is an error: bad syntax, a second document, an anchor, an alias, a tag, deeper nesting.
Status parse_flat_yaml(std::string_view yaml, const std::string& file_name, std::vector<OptionEntry>& entries);

}  // namespace egret::base
