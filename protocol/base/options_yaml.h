// The YAML side of base/options.h, apart from what the options mean: a file's text to a flat sequence of entries.
// Private to base; keeps yaml-cpp's headers out of everything else.
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
    kNothing,   // "key:" and no more
    kScalar,    // values holds it
    kSequence,  // values holds its scalars
    kMapping,   // refused by every option; its content is not read
  };
  std::string key;
  int line = 0;  // from 1
  Kind kind = Kind::kNothing;
  std::vector<std::string> values;
};

// Appends the file's entries in order, duplicates included. Stops at the first thing that is not a flat mapping of
// scalars and lists of scalars: bad syntax, a second document, an anchor, an alias, a tag, deeper nesting. An empty
// file has none.
Status parse_flat_yaml(std::string_view yaml, const std::string& file_name, std::vector<YamlEntry>& entries);

}  // namespace egret::base
