// What stands on a page of metrics, for the tests of both daemons' pages.
#pragma once

#include <set>
#include <sstream>
#include <string>

namespace egret {

// The names that a TYPE line introduces.
inline std::set<std::string> told_of(const std::string& text) {
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) names.insert(line.substr(7, line.find(' ', 7) - 7));
  }
  return names;
}

}  // namespace egret
