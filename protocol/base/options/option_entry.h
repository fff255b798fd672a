// One option as a file gives it, before any table is asked whether there is such an option. Owns its strings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace egret::base {

// One "key: value".
struct OptionEntry {
  enum class Kind : uint8_t {
    kNothing,   // "key:" without a value
    kScalar,    // `values` has one entry
    kSequence,  // `values` has its scalars
    kMapping,   // no option takes one; its content is not read
  };
  std::string key;
  int line = 0;  // from 1; 0: not of a line
  Kind kind = Kind::kNothing;
  std::vector<std::string> values;
};

}  // namespace egret::base
