#include "client/config/file.h"

#include <utility>

#include "base/text.h"

namespace egret::client {

using base::OptionEntry;
using base::Status;

namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Where a comment begins in `text`: at a # behind a blank, or first of all, and outside of quotes.
std::string_view without_comment(std::string_view text) {
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_behind_blank = i == 0 || kBlanks.find(text[i - 1]) != std::string_view::npos;
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if ((c == '"' || c == '\'') && (is_behind_blank || text[i - 1] == '[' || text[i - 1] == ',')) {
      quote = c;
    } else if (c == '#' && is_behind_blank) {
      return text.substr(0, i);
    }
  }
  return text;
}

// One value as it is written. False: quotes that do not end, or something that YAML takes for more than a text.
bool read_value(std::string_view text, std::string& value) {
  text = stripped(text);
  if (text.empty()) return false;
  const char first = text.front();
  if (first == '"' || first == '\'') {
    if (text.size() < 2 || text.back() != first) return false;
    const std::string_view inner = text.substr(1, text.size() - 2);
    if (inner.find(first) != std::string_view::npos || inner.find('\\') != std::string_view::npos) return false;
    value = inner;
    return true;
  }
  if (std::string_view("[]{}&*!|>%@`").find(first) != std::string_view::npos) return false;
  if (text.find(": ") != std::string_view::npos) return false;
  value = text;
  return true;
}

// "[a, b]"; a comma within quotes does not separate.
bool read_list(std::string_view text, std::vector<std::string>& values) {
  text = text.substr(1, text.size() - 2);
  if (stripped(text).empty()) return true;
  char quote = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    if (i < text.size() && quote != 0) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '"' || c == '\'') quote = c;
    if (c != ',') continue;
    std::string value;
    if (!read_value(text.substr(begin, i - begin), value)) return false;
    values.push_back(std::move(value));
    begin = i + 1;
  }
  return quote == 0;
}

class Reader {
 public:
  Reader(const std::string& file_name, std::vector<OptionEntry>& entries) : file_name_(file_name), entries_(entries) {}

  Status read_line(std::string_view whole) {
    ++line_;
    if (whole.find('\0') != std::string_view::npos) return wrong("a zero byte");
    const std::string_view text = without_comment(whole);
    const std::string_view content = stripped(text);
    if (content.empty() || content == "---") return Status::ok();
    if (content.starts_with("- ") || content == "-") return read_element(content.substr(1));
    if (kBlanks.find(text.front()) != std::string_view::npos) return wrong("a name that does not begin its line");
    const size_t colon = content.find(':');
    if (colon == std::string_view::npos || colon == 0) return wrong("expected NAME: VALUE");
    return read_entry(stripped(content.substr(0, colon)), content.substr(colon + 1));
  }

 private:
  Status wrong(const std::string& what) const {
    return Status::error(file_name_ + ":" + std::to_string(line_) + ": " + what);
  }

  Status read_entry(std::string_view name, std::string_view rest) {
    OptionEntry entry{.key = std::string(name), .line = line_, .kind = OptionEntry::Kind::kNothing, .values = {}};
    const std::string_view value = stripped(rest);
    is_list_open_ = value.empty();
    if (value.empty()) {
      entries_.push_back(std::move(entry));
      return Status::ok();
    }
    if (kBlanks.find(rest.front()) == std::string_view::npos) return wrong("expected a blank behind the colon");
    if (value.front() == '[' && value.back() == ']') {
      entry.kind = OptionEntry::Kind::kSequence;
      if (!read_list(value, entry.values)) return wrong("a list that is not written as [VALUE, VALUE]");
    } else {
      entry.kind = OptionEntry::Kind::kScalar;
      entry.values.emplace_back();
      if (!read_value(value, entry.values.back())) return wrong("a value that needs quotes, or other quotes");
    }
    entries_.push_back(std::move(entry));
    return Status::ok();
  }

  Status read_element(std::string_view rest) {
    if (!is_list_open_) return wrong("a list's value without a name before it");
    OptionEntry& entry = entries_.back();
    entry.kind = OptionEntry::Kind::kSequence;
    entry.values.emplace_back();
    return read_value(rest, entry.values.back()) ? Status::ok() : wrong("a value that needs quotes, or other quotes");
  }

  const std::string& file_name_;
  std::vector<OptionEntry>& entries_;
  int line_ = 0;
  bool is_list_open_ = false;
};

}  // namespace

Status parse_file(std::string_view text, const std::string& file_name, std::vector<OptionEntry>& entries) {
  Reader reader(file_name, entries);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (Status read = reader.read_line(text.substr(at, end - at)); !read) return read;
    at = end + 1;
  }
  return Status::ok();
}

}  // namespace egret::client
