#include "bench_cache/table.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace egret::bench_cache {
namespace {

// Names of servers, mixes and parts: nothing in them needs more than this.
std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') out += '\\';
    out += static_cast<unsigned char>(each) < ' ' ? ' ' : each;
  }
  return out + '"';
}

std::string json_cell(const Cell& cell) {
  if (!cell.is_number) return json_text(cell.text);
  return cell.text == "-" ? "null" : cell.text;
}

std::string json_rows(const Table& table) {
  std::string out = json_text(table.key) + ": [";
  for (size_t row = 0; row < table.rows.size(); ++row) {
    out += row == 0 ? "\n  {" : ",\n  {";
    for (size_t i = 0; i < table.columns.size(); ++i) {
      out += (i == 0 ? "" : ", ") + json_text(table.columns[i].key) + ": " + json_cell(table.rows[row][i]);
    }
    out += '}';
  }
  return out + "]";
}

bool is_right(const Table& table, size_t column) {
  return !table.rows.empty() && table.rows[0][column].is_number;
}

}  // namespace

Cell Cell::number(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  Cell cell(std::isfinite(value) ? text.data() : "-");
  cell.is_number = true;
  return cell;
}

std::string to_markdown(const std::vector<Table>& tables) {
  std::string out;
  for (const Table& table : tables) {
    out += "### " + table.title + "\n\n|";
    for (const Column& column : table.columns) out += " " + column.title + " |";
    out += "\n|";
    for (size_t i = 0; i < table.columns.size(); ++i) out += is_right(table, i) ? " ---: |" : " --- |";
    out += "\n";
    for (const auto& row : table.rows) {
      out += "|";
      for (const Cell& cell : row) out += " " + cell.text + " |";
      out += "\n";
    }
    out += "\n";
  }
  return out;
}

std::string to_json(const std::vector<Table>& tables, uint64_t errors) {
  std::string out = "{";
  for (const Table& table : tables) out += json_rows(table) + ",\n ";
  return out + "\"errors\": " + std::to_string(errors) + "}\n";
}

}  // namespace egret::bench_cache
