// What a mode has measured, as one table: Markdown for people, JSON for machines. The modes know only this of printing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace egret::bench_store {

// A word, or a figure with so many decimals.
class Cell {
 public:
  Cell(std::string_view text) : text_(text) {}        // NOLINT(google-explicit-constructor): rows are lists of these
  Cell(const char* text) : text_(text) {}             // NOLINT(google-explicit-constructor)
  Cell(std::string text) : text_(std::move(text)) {}  // NOLINT(google-explicit-constructor)
  Cell(double figure, int decimals);
  Cell(uint64_t count);  // NOLINT(google-explicit-constructor)
  // A figure that does not exist, such as one of another table.
  static Cell none() { return Cell("–"); }

  const std::string& text() const { return text_; }
  bool is_figure() const { return is_figure_; }

 private:
  std::string text_;
  bool is_figure_ = false;
};

struct Table {
  std::string name;                  // in JSON
  std::vector<std::string> notes;    // lines above it
  std::vector<std::string> columns;  // the first names the row
  std::vector<std::vector<Cell>> rows;
};

std::string to_markdown(const Table& table);
// {"name": ..., "notes": [...], "rows": [{column: cell, ...}, ...]}
std::string to_json(const Table& table);
// An array of the above.
std::string to_json(const std::vector<Table>& tables);

}  // namespace egret::bench_store
