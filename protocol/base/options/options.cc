// Values: how each option type is read, checked and written. options_yaml.cc reads the YAML syntax, and options_load.cc
// files of it; options_help.cc writes the tables for people.
#include "base/options/options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/options/option_entry.h"
#include "base/text.h"

namespace egret::base {

namespace {

constexpr size_t kMaxShownEntries = 32;  // entries of a list in a log line
constexpr std::string_view kAuto = "auto";
constexpr int64_t kAutoNumber = -1;

using Unit = std::pair<std::string_view, int64_t>;

constexpr std::array<Unit, 14> kSizeUnits{{{"", 1},
                                           {"b", 1},
                                           {"k", 1 << 10},
                                           {"kb", 1 << 10},
                                           {"kib", 1 << 10},
                                           {"m", 1 << 20},
                                           {"mb", 1 << 20},
                                           {"mib", 1 << 20},
                                           {"g", 1 << 30},
                                           {"gb", 1 << 30},
                                           {"gib", 1 << 30},
                                           {"t", 1ll << 40},
                                           {"tb", 1ll << 40},
                                           {"tib", 1ll << 40}}};

constexpr std::array<Unit, 7> kDurationUnits{{{"ns", 1},
                                              {"us", 1'000},
                                              {"ms", 1'000'000},
                                              {"s", 1'000'000'000},
                                              {"m", 60'000'000'000},
                                              {"min", 60'000'000'000},
                                              {"h", 3'600'000'000'000}}};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// "<digits><unit>" with one of `units`; nothing if it is written otherwise or out of range.
std::optional<int64_t> parse_with_unit(std::string_view text, std::span<const Unit> units) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = parse_integer(text.substr(0, digits));
  if (!number) return std::nullopt;
  const std::string unit = lower(trimmed(text.substr(digits)));
  for (const auto& [name, factor] : units) {
    int64_t product = 0;
    if (unit == name) {
      return __builtin_mul_overflow(*number, factor, &product) ? std::nullopt : std::optional(product);
    }
  }
  return std::nullopt;
}

std::optional<int64_t> parse_flag(std::string_view text) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on") return 1;
  if (word == "false" || word == "no" || word == "off") return 0;
  return std::nullopt;
}

std::optional<int64_t> parse_number(const OptionRow& row, std::string_view text) {
  switch (row.type) {
    case OptionType::kFlag:
      return parse_flag(text);
    case OptionType::kInteger:
      return parse_integer(text);
    case OptionType::kSize:
      return parse_with_unit(text, kSizeUnits);
    case OptionType::kDuration:
      return text == "0" ? std::optional<int64_t>(0) : parse_with_unit(text, kDurationUnits);
    default:
      return std::nullopt;
  }
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// "[a, b]" without its brackets: --set takes lists as the YAML file writes them. "tcp:[::1]:1" is returned unchanged.
std::string_view without_brackets(std::string_view text) {
  const std::string_view list = trimmed(text);
  return list.starts_with('[') && list.ends_with(']') ? list.substr(1, list.size() - 2) : text;
}

bool is_choice(const OptionRow& row, std::string_view text) {
  const auto choices = split(row.choices, '|');
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

bool is_within(const OptionRow& row, int64_t figure) {
  return figure >= row.min && figure <= row.max;
}

}  // namespace

// Fills one Options; the steps of of_entries() in order.
class OptionsLoader {
 public:
  explicit OptionsLoader(std::span<const OptionRow> table) {
    options_.table_ = table;
    options_.values_.resize(table.size());
    for (const OptionRow& row : table) {
      const Status status = assign(row, std::string(row.default_value), "");
      if (!status) {
        check_failed(__FILE__, __LINE__, ("the default of an option is wrong: " + status.message()).c_str());
      }
    }
  }

  Status read(std::span<OptionEntry> entries, const std::string& file_name) {
    for (OptionEntry& entry : entries) {
      const std::string place = file_name + (entry.line != 0 ? ":" + std::to_string(entry.line) : "") + ": ";
      const OptionRow* row = find(entry.key);
      if (row == nullptr) return unknown(entry.key, place);
      if (!value(*row).place.empty()) return Status::error(place + entry.key + ": given twice");
      if (Status status = assign_entry(*row, entry, place); !status) return status;
    }
    return Status::ok();
  }

  Status read_argument(const std::string& argument) {
    const std::string place = "--set " + quoted_if_odd(argument) + ": ";
    const size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) return Status::error(place + "expected KEY=VALUE");
    const std::string key = argument.substr(0, equals);
    const OptionRow* row = find(key);
    if (row == nullptr) return unknown(key, place);
    return assign(*row, argument.substr(equals + 1), place);
  }

  Options take() { return std::move(options_); }

 private:
  const OptionRow* find(std::string_view key) const {
    for (const OptionRow& row : options_.table_) {
      if (row.name == key) return &row;
    }
    return nullptr;
  }

  Options::Value& value(const OptionRow& row) {
    return options_.values_[static_cast<size_t>(&row - options_.table_.data())];
  }

  Status unknown(const std::string& key, const std::string& place) const {
    std::vector<std::string_view> names;
    for (const OptionRow& row : options_.table_) names.push_back(row.name);
    const std::string_view meant = likely_meant(key, names);
    const std::string hint = meant.empty() ? "" : "; did you mean " + std::string(meant) + "?";
    return Status::error(place + quoted_if_odd(key) + ": unknown option" + hint);
  }

  static Status refused(const OptionRow& row, const std::string& got, const std::string& place) {
    return Status::error(place + std::string(row.name) + ": expected " + expectation(row) + ", got " + got);
  }

  Status assign_entry(const OptionRow& row, OptionEntry& entry, const std::string& place) {
    switch (entry.kind) {
      case OptionEntry::Kind::kScalar:
        return assign(row, std::move(entry.values.front()), place);
      case OptionEntry::Kind::kNothing:
        return refused(row, "nothing", place);
      case OptionEntry::Kind::kMapping:
        return refused(row, "a mapping", place);
      case OptionEntry::Kind::kSequence:
        break;
    }
    if (row.type != OptionType::kList) return refused(row, "a list", place);
    return assign_list(row, std::move(entry.values), place);
  }

  Status assign(const OptionRow& row, std::string text, const std::string& place) {
    if (row.type == OptionType::kList) return assign_list(row, split(without_brackets(text), ','), place);
    Options::Value fresh;
    const bool is_number = row.type != OptionType::kText && row.type != OptionType::kChoice;
    if (row.has_auto && text == kAuto) {
      fresh.number = kAutoNumber;
    } else if (is_number) {
      const auto number = parse_number(row, text);
      if (!number || (row.type != OptionType::kFlag && !is_within(row, *number))) {
        return refused(row, base::quoted(text), place);
      }
      fresh.number = *number;
    } else if (has_control_character(text) || text.size() > kMaxTextBytes ||
               (row.type == OptionType::kChoice ? !is_choice(row, text)
                                                : !is_within(row, static_cast<int64_t>(text.size())))) {
      return refused(row, base::quoted(text), place);
    }
    fresh.text = std::move(text);
    fresh.place = place;
    value(row) = std::move(fresh);
    return Status::ok();
  }

  Status assign_list(const OptionRow& row, std::vector<std::string> list, const std::string& place) {
    for (const std::string& each : list) {
      if (each.empty() || each.size() > kMaxTextBytes || has_control_character(each)) {
        return refused(row, base::quoted(each) + " in it", place);
      }
    }
    if (list.size() > kMaxListValues || !is_within(row, static_cast<int64_t>(list.size()))) {
      return refused(row, std::to_string(list.size()), place);
    }
    Options::Value fresh;
    for (const std::string& each : list) fresh.text += (fresh.text.empty() ? "" : ",") + each;
    fresh.list = std::move(list);
    fresh.place = place;
    value(row) = std::move(fresh);
    return Status::ok();
  }

  Options options_;
};

Expected<Options> Options::of_entries(std::span<const OptionRow> table, std::span<OptionEntry> entries,
                                      const std::string& file_name, std::span<const std::string> set_arguments) {
  OptionsLoader loader(table);
  if (Status status = loader.read(entries, file_name); !status) return status;
  for (const std::string& argument : set_arguments) {
    if (Status status = loader.read_argument(argument); !status) return status;
  }
  return loader.take();
}

size_t Options::index_of(std::string_view name) const {
  size_t index = 0;
  while (index < table_.size() && table_[index].name != name) ++index;
  if (index == table_.size()) check_failed(__FILE__, __LINE__, ("no such option: " + std::string(name)).c_str());
  return index;
}

const Options::Value& Options::value(std::string_view name, std::initializer_list<OptionType> types) const {
  const size_t index = index_of(name);
  if (std::find(types.begin(), types.end(), table_[index].type) == types.end()) {
    check_failed(__FILE__, __LINE__, ("an option of another type: " + std::string(name)).c_str());
  }
  return values_[index];
}

bool Options::flag(std::string_view name) const {
  return value(name, {OptionType::kFlag}).number != 0;
}

int64_t Options::integer(std::string_view name) const {
  return value(name, {OptionType::kInteger}).number;
}

bool Options::is_auto(std::string_view name) const {
  return value(name, {OptionType::kInteger, OptionType::kSize}).text == kAuto;
}

uint64_t Options::size(std::string_view name) const {
  return static_cast<uint64_t>(value(name, {OptionType::kSize}).number);
}

uint64_t Options::duration_ns(std::string_view name) const {
  return static_cast<uint64_t>(value(name, {OptionType::kDuration}).number);
}

const std::string& Options::text(std::string_view name) const {
  return value(name, {OptionType::kText, OptionType::kChoice}).text;
}

const std::vector<std::string>& Options::list(std::string_view name) const {
  return value(name, {OptionType::kList}).list;
}

Status Options::user_ids(std::string_view name, std::vector<uint32_t>& uids) const {
  for (const std::string& text : list(name)) {
    uint32_t uid = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), uid);
    if (failed != std::errc{} || end != text.data() + text.size()) {
      return error(name, "expected numeric user ids, got \"" + text + "\"");
    }
    uids.push_back(uid);
  }
  return Status::ok();
}

std::string Options::written(std::string_view name) const {
  return values_[index_of(name)].text;
}

std::string Options::written_beside(const Options& other, std::string_view name) const {
  const size_t index = index_of(name);
  if (table_[index].type != OptionType::kList) return base::quoted(values_[index].text, kMaxTextBytes);
  const std::vector<std::string>& own = values_[index].list;
  const std::vector<std::string>& others = other.values_[index].list;
  const auto is_in = [](const std::vector<std::string>& list, const std::string& entry) {
    return std::ranges::find(list, entry) != list.end();
  };
  const bool has_other_entries = !std::ranges::all_of(own, [&](const auto& entry) { return is_in(others, entry); }) ||
                                 !std::ranges::all_of(others, [&](const auto& entry) { return is_in(own, entry); });
  std::vector<std::string> shown;
  for (const std::string& entry : own) {
    const bool is_left_out = (has_other_entries && is_in(others, entry)) || shown.size() == kMaxShownEntries;
    if (!is_left_out) shown.push_back(base::quoted(entry, kMaxTextBytes));
    if (is_left_out && (shown.empty() || shown.back() != "...")) shown.emplace_back("...");
  }
  std::string text;
  for (const std::string& entry : shown) text.append(text.empty() ? "" : ", ").append(entry);
  return "[" + text + "]";
}

bool Options::is_given(std::string_view name) const {
  return !values_[index_of(name)].place.empty();
}

bool Options::Value::means_the_same(const Value& other, OptionType type) const {
  if (type == OptionType::kList) return list == other.list;
  if (type == OptionType::kText || type == OptionType::kChoice) return text == other.text;
  return number == other.number;
}

Options Options::renewed_by(const Options& next, std::vector<std::string_view>& kept) const {
  Options renewed = next;
  for (size_t index = 0; index < table_.size(); ++index) {
    if (table_[index].applied_by == AppliedBy::kReload) continue;
    if (!values_[index].means_the_same(next.values_[index], table_[index].type)) kept.push_back(table_[index].name);
    renewed.values_[index] = values_[index];
  }
  return renewed;
}

std::vector<std::string_view> Options::differing_from(const Options& other) const {
  std::vector<std::string_view> names;
  for (size_t index = 0; index < table_.size(); ++index) {
    if (!values_[index].means_the_same(other.values_[index], table_[index].type)) names.push_back(table_[index].name);
  }
  return names;
}

std::vector<std::string> Options::notes() const {
  std::vector<std::string> notes;
  for (size_t index = 0; index < table_.size(); ++index) {
    const Value& value = values_[index];
    const std::string unit =
        lower(value.text.substr(std::min(value.text.find_first_not_of("0123456789 "), value.text.size())));
    const bool may_be_decimal = table_[index].type == OptionType::kSize && !unit.empty() && unit != kAuto &&
                                unit != "b" && unit.find('i') == std::string::npos;
    if (!may_be_decimal || value.place.empty()) continue;
    notes.push_back(value.place + std::string(table_[index].name) + ": " + value.text + " is read as " +
                    size_text(static_cast<uint64_t>(value.number)) + ": units of sizes are powers of 1024");
  }
  return notes;
}

Status Options::error(std::string_view name, std::string_view what) const {
  return Status::error(values_[index_of(name)].place + std::string(name) + ": " + std::string(what));
}

}  // namespace egret::base
