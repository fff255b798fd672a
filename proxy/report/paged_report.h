// A report that may be long: it is rendered a page at a time, as its client reads (AdminCommands::begin_report), so that
// a short question costs the memory of one page and not of the whole answer.
#pragma once

#include <cstddef>
#include <string>

namespace egret::proxy {

class PagedReport {
 public:
  static constexpr size_t kPageBytes = 16 * 1024;  // about as much as next() appends

  virtual ~PagedReport() = default;
  // Appends the next lines, whole ones, and END behind the last. False: it has ended.
  virtual bool next(std::string& text) = 0;
};

}  // namespace egret::proxy
