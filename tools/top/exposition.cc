#include "top/exposition.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace egret::top {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
}

// The rest of a line.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  bool at_end() const { return at_ == line_.size(); }
  size_t position() const { return at_; }
  std::string_view rest() const { return line_.substr(at_); }
  bool skip(char c) {
    if (at_end() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  void skip_spaces() {
    while (skip(' ') || skip('\t')) {
    }
  }
  std::string_view name() {
    const size_t begin = at_;
    while (!at_end() && (is_name_start(line_[at_]) || (at_ > begin && is_digit(line_[at_])))) ++at_;
    return line_.substr(begin, at_ - begin);
  }
  // Reads a quoted text and unescapes it; false: the closing quote is missing.
  bool quoted(std::string& text) {
    if (!skip('"')) return false;
    while (!at_end()) {
      const char c = line_[at_++];
      if (c == '"') return true;
      if (c != '\\') {
        text += c;
        continue;
      }
      if (at_end()) return false;
      const char escaped = line_[at_++];
      if (escaped != 'n' && escaped != '"' && escaped != '\\') text += '\\';
      text += escaped == 'n' ? '\n' : escaped;
    }
    return false;
  }

 private:
  std::string_view line_;
  size_t at_ = 0;
};

// Parses the labels after '{', including the '}'.
bool parse_labels(Cursor& cursor, Sample& sample) {
  for (;;) {
    cursor.skip_spaces();
    if (cursor.skip('}')) return true;
    const std::string_view name = cursor.name();
    cursor.skip_spaces();
    if (name.empty() || sample.labels.size() == kMaxLabels || !cursor.skip('=')) return false;
    cursor.skip_spaces();
    std::string value;
    if (!cursor.quoted(value)) return false;
    sample.labels.emplace_back(name, std::move(value));
    cursor.skip_spaces();
    cursor.skip(',');
  }
}

std::optional<double> finite_number(std::string_view text) {
  text = text.substr(0, text.find_first_of(" \t\r"));  // ignore a timestamp after the value
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

}  // namespace

const std::string* Sample::label(std::string_view label_name) const {
  for (const auto& [label_of, text] : labels) {
    if (label_of == label_name) return &text;
  }
  return nullptr;
}

std::optional<Sample> parse_sample(std::string_view line) {
  Cursor cursor(line);
  Sample sample;
  sample.name = cursor.name();
  if (sample.name.empty()) return std::nullopt;
  if (cursor.skip('{') && !parse_labels(cursor, sample)) return std::nullopt;
  sample.written = line.substr(0, cursor.position());
  cursor.skip_spaces();
  const auto value = finite_number(cursor.rest());
  if (!value) return std::nullopt;
  sample.value = *value;
  return sample;
}

bool Match::takes(const Sample& sample) const {
  if (label.empty()) return true;
  const std::string* found = sample.label(label);
  return found != nullptr && *found == value;
}

bool NaturalOrder::operator()(std::string_view left, std::string_view right) const {
  size_t l = 0, r = 0;
  const auto number = [](std::string_view text, size_t& at) {
    while (at < text.size() && text[at] == '0') ++at;
    const size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return text.substr(begin, at - begin);
  };
  while (l < left.size() && r < right.size()) {
    if (is_digit(left[l]) && is_digit(right[r])) {
      const std::string_view a = number(left, l), b = number(right, r);
      if (a.size() != b.size()) return a.size() < b.size();
      if (a != b) return a < b;
    } else {
      if (left[l] != right[r]) return left[l] < right[r];
      ++l, ++r;
    }
  }
  if (left.size() - l != right.size() - r) return left.size() - l < right.size() - r;
  return left < right;  // "01" and "1" are different names
}

void SampleSet::add(const Sample& sample) {
  metrics_[sample.name].insert_or_assign(sample.written, &sample);
}

const SampleSet::Series& SampleSet::series(std::string_view metric) const {
  static const Series none;
  const auto found = metrics_.find(metric);
  return found == metrics_.end() ? none : found->second;
}

std::optional<double> SampleSet::sum(std::string_view metric, Match match) const {
  std::optional<double> sum;
  for (const auto& [written, sample] : series(metric)) {
    if (match.takes(*sample)) sum = sum.value_or(0) + sample->value;
  }
  return sum;
}

std::optional<double> SampleSet::largest(std::string_view metric, Match match) const {
  std::optional<double> largest;
  for (const auto& [written, sample] : series(metric)) {
    if (match.takes(*sample)) largest = std::max(largest.value_or(sample->value), sample->value);
  }
  return largest;
}

double SampleSet::count(std::string_view metric, Match match) const {
  const Series& all = series(metric);
  return static_cast<double>(std::ranges::count_if(all, [&](const auto& entry) { return match.takes(*entry.second); }));
}

std::map<std::string_view, SampleSet, NaturalOrder> SampleSet::by_label(std::string_view label) const {
  std::map<std::string_view, SampleSet, NaturalOrder> sets;
  for (const auto& [metric, all] : metrics_) {
    for (const auto& [written, sample] : all) {
      if (const std::string* value = sample->label(label)) sets[*value].add(*sample);
    }
  }
  return sets;
}

std::shared_ptr<const Scrape> parse_exposition(std::string_view text) {
  auto scrape = std::make_shared<Scrape>();
  text = text.substr(0, kMaxScrapeBytes);
  while (!text.empty() && scrape->owned_.size() < kMaxSamples) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto sample = parse_sample(text.substr(0, end))) {
      scrape->owned_.push_back(std::move(*sample));
      scrape->set_.add(scrape->owned_.back());
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return scrape;
}

}  // namespace egret::top
