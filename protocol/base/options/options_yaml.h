// The YAML syntax of base/options/options.h: turns a file's text into a flat sequence of entries, without knowing any option.
// Private to base; only options_yaml.cc includes yaml-cpp's headers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::base {

// One "key: value" of the file. Owns its strings.
struct YamlEntry {
  enum class Kind : uint8_t {
    kNothing,   // "key:" without a value
    kScalar,    // `values` has one entry
    kSequence,  // `values` has its scalars
    kMapping,   // no option takes one; its content is not read
  };
  std::string key;
  int line = 0;  // from 1
  Kind kind = Kind::kNothing;
  std::vector<std::string> values;
};

// Appends the file's entries in order, duplicates included. An empty file has none. Anything but a flat mapping of
// scalars and lists of scalars is an error: bad syntax, a second document, an anchor, an alias, a tag, deeper nesting.
Status parse_flat_yaml(std::string_view yaml, const std::string& file_name, std::vector<YamlEntry>& entries);

}  // namespace egret::base
