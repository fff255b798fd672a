#include "bench_store/table.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace egret::bench_store {
namespace {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') out += '\\';
    out += each;
  }
  return out + '"';
}

}  // namespace

Cell::Cell(double figure, int decimals) {
  if (!std::isfinite(figure)) {
    text_ = "–";
    return;
  }
  std::array<char, 64> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), "%.*f", decimals, figure);
  text_.assign(buffer.data(), static_cast<size_t>(length));
  is_figure_ = true;
}

Cell::Cell(uint64_t count) : text_(std::to_string(count)), is_figure_(true) {}

std::string to_markdown(const Table& table) {
  std::string out;
  for (const std::string& note : table.notes) out += note + "\n\n";
  std::string rule;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    out += "| " + table.columns[i] + ' ';
    rule += i == 0 ? "| --- " : "| ---: ";
  }
  out += "|\n" + rule + "|\n";
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) out += "| " + cell.text() + ' ';
    out += "|\n";
  }
  return out + "\n";
}

std::string to_json(const Table& table) {
  std::string out = "{\"name\": " + json_text(table.name) + ", \"notes\": [";
  for (size_t i = 0; i < table.notes.size(); ++i) out += (i == 0 ? "" : ", ") + json_text(table.notes[i]);
  out += "], \"rows\": [";
  for (size_t r = 0; r < table.rows.size(); ++r) {
    out += r == 0 ? "\n  {" : ",\n  {";
    for (size_t i = 0; i < table.columns.size() && i < table.rows[r].size(); ++i) {
      const Cell& cell = table.rows[r][i];
      out += (i == 0 ? "" : ", ") + json_text(table.columns[i]) + ": ";
      out += cell.is_figure() ? cell.text() : json_text(cell.text());
    }
    out += '}';
  }
  return out + "]}";
}

std::string to_json(const std::vector<Table>& tables) {
  std::string out = "[";
  for (size_t i = 0; i < tables.size(); ++i) out += (i == 0 ? "" : ",\n") + to_json(tables[i]);
  return out + "]\n";
}

}  // namespace egret::bench_store
