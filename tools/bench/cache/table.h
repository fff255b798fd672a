// A report: tables of named columns, printed as Markdown for people and as JSON for machines from the same cells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace egret::bench_cache {

struct Cell {
  std::string text;
  bool is_number = false;  // JSON: no quotes; Markdown: to the right

  Cell(std::string_view words) : text(words) {}                           // NOLINT(google-explicit-constructor)
  Cell(const char* words) : text(words) {}                                // NOLINT(google-explicit-constructor)
  Cell(const std::string& words) : text(words) {}                         // NOLINT(google-explicit-constructor)
  Cell(uint64_t count) : text(std::to_string(count)), is_number(true) {}  // NOLINT(google-explicit-constructor)
  // Not a number or infinite (a ratio to nothing): "-", in JSON null.
  static Cell number(double value, int decimals);
};

struct Column {
  std::string title;
  std::string key;  // in JSON
};

struct Table {
  std::string title;
  std::string key;  // in JSON
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // as many cells as columns
};

std::string to_markdown(const std::vector<Table>& tables);

// {"<table's key>": [{"<column's key>": cell, ...}, ...], ..., "errors": n}
std::string to_json(const std::vector<Table>& tables, uint64_t errors);

}  // namespace egret::bench_cache
