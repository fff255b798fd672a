// Texts about options for people: expectations, --help, Markdown.
#include <algorithm>

#include "base/options/options.h"
#include "base/text.h"

namespace egret::base {

namespace {

std::string limit_text(const OptionRow& row, int64_t limit) {
  if (row.type == OptionType::kSize) return size_text(static_cast<uint64_t>(limit));
  if (row.type == OptionType::kDuration) return duration_text(static_cast<uint64_t>(limit));
  return std::to_string(limit);
}

std::string range_text(const OptionRow& row) {
  if (row.max != kNoLimit) return " from " + limit_text(row, row.min) + " to " + limit_text(row, row.max);
  return row.min != 0 ? " of at least " + limit_text(row, row.min) : "";
}

std::string joined_choices(const OptionRow& row, std::string_view separator) {
  std::string out;
  for (const char c : row.choices) c == '|' ? out.append(separator) : out.append(1, c);
  return out;
}

const char* type_name(OptionType type) {
  switch (type) {
    case OptionType::kFlag:
      return "true or false";
    case OptionType::kInteger:
      return "integer";
    case OptionType::kSize:
      return "size";
    case OptionType::kDuration:
      return "duration";
    case OptionType::kText:
      return "text";
    case OptionType::kChoice:
      return "choice";
    case OptionType::kList:
      return "list";
  }
  return "";
}

// The type as a table shows it: "integer, 0 to 64", "auto, on, off".
std::string type_text(const OptionRow& row) {
  if (row.type == OptionType::kChoice) return joined_choices(row, ", ");
  const bool has_range =
      row.type == OptionType::kInteger || row.type == OptionType::kSize || row.type == OptionType::kDuration;
  std::string out = type_name(row.type);
  if (!has_range) return out;
  if (row.has_auto) out.insert(0, "auto, or ");
  if (row.max != kNoLimit) return out + ", " + limit_text(row, row.min) + " to " + limit_text(row, row.max);
  return row.min != 0 ? out + ", at least " + limit_text(row, row.min) : out;
}

// Breaks `text` at spaces into lines of at most `width` columns, each indented by `indent`.
std::string wrapped(std::string_view text, size_t width, const std::string& indent) {
  std::string out;
  std::string line = indent;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (line.size() > indent.size() && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line = indent;
    }
    if (line.size() > indent.size() && !word.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + line + "\n";
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

// The default as YAML.
std::string yaml_value(const OptionRow& row) {
  if (row.type == OptionType::kList) {
    std::string out;
    for (const std::string& each : split(row.default_value, ','))
      out += (out.empty() ? "" : ", ") + base::quoted(each, kMaxTextBytes);
    return "[" + out + "]";
  }
  return row.type == OptionType::kText ? base::quoted(row.default_value, kMaxTextBytes)
                                       : std::string(row.default_value);
}

// The group's name as a heading of --help, and as a word in a table.
struct GroupText {
  std::string_view heading;
  std::string_view word;
};

GroupText group_text(OptionGroup group) {
  switch (group) {
    case OptionGroup::kListening:
      return {"Listening", "listening"};
    case OptionGroup::kBackends:
      return {"Backends", "backends"};
    case OptionGroup::kMemory:
      return {"Memory", "memory"};
    case OptionGroup::kLimits:
      return {"Limits", "limits"};
    case OptionGroup::kTls:
      return {"TLS", "TLS"};
    case OptionGroup::kRdma:
      return {"RDMA", "RDMA"};
    case OptionGroup::kObservability:
      return {"Observability", "observability"};
    case OptionGroup::kExpert:
      return {"Expert: change one only with a measurement before and after", "expert"};
  }
  return {};
}

// Calls heading(group) before the first row of each group, and row(row) for each row.
template <typename Heading, typename Row>
void for_each_by_group(std::span<const OptionRow> table, const Heading& heading, const Row& row) {
  for (size_t index = 0; index < table.size(); ++index) {
    if (index == 0 || table[index].group != table[index - 1].group) heading(table[index].group);
    row(table[index]);
  }
}

std::string whole_help(const OptionRow& row) {
  std::string help(row.help);
  if (!row.measured_by.empty()) help += " Measured by: " + std::string(row.measured_by) + ".";
  return help;
}

const char* applied_by_text(const OptionRow& row) {
  return row.applied_by == AppliedBy::kReload ? "reload" : "restart";
}

}  // namespace

std::string expectation(const OptionRow& row) {
  const std::string or_auto = row.has_auto ? "auto or " : "";
  switch (row.type) {
    case OptionType::kFlag:
      return "true or false";
    case OptionType::kInteger:
      return or_auto + "an integer" + range_text(row);
    case OptionType::kSize:
      return or_auto + "a size (as 64MiB)" + range_text(row);
    case OptionType::kDuration:
      return "a duration (as 100us)" + range_text(row);
    case OptionType::kChoice:
      return "one of " + joined_choices(row, ", ");
    case OptionType::kList: {
      if (row.max != kNoLimit)
        return "a list of " + std::to_string(row.min) + " to " + std::to_string(row.max) + " values";
      return row.min != 0 ? "a list of at least " + std::to_string(row.min) : "a list";
    }
    case OptionType::kText: {
      if (row.max != kNoLimit)
        return "a text of " + std::to_string(row.min) + " to " + std::to_string(row.max) + " bytes";
      return row.min != 0 ? "a text of at least " + std::to_string(row.min) + " bytes" : "a text";
    }
  }
  return "";
}

std::string help_text(std::span<const OptionRow> table, size_t width) {
  std::string out;
  const auto heading = [&](OptionGroup group) {
    out += (out.empty() ? "" : "\n") + std::string(group_text(group).heading) + "\n\n";
  };
  for_each_by_group(table, heading, [&](const OptionRow& row) {
    out += "  " + std::string(row.name) + (row.is_usual ? "*" : "") + " (" + type_text(row) + "; default " +
           (row.default_value.empty() ? "empty" : std::string(row.default_value)) + "; applied by a " +
           applied_by_text(row) + ")\n";
    out += wrapped(whole_help(row), width, "      ");
  });
  return out;
}

std::string help_markdown(std::span<const OptionRow> table) {
  std::string out =
      "| option | group | type | default | applied by | what it does |\n| --- | --- | --- | --- | --- | --- |\n";
  for (const OptionRow& row : table) {
    out += "| `" + std::string(row.name) + "` | " + std::string(group_text(row.group).word) +
           (row.is_usual ? ", **usual**" : "") + " | " + markdown_cell(type_text(row)) + " | " +
           (row.default_value.empty() ? "" : "`" + markdown_cell(row.default_value) + "`") + " | " +
           applied_by_text(row) + " | " + markdown_cell(whole_help(row)) + " |\n";
  }
  return out;
}

std::string help_yaml(std::string_view program, std::span<const OptionRow> table) {
  const std::string name(program);
  std::string out = "# The options of " + name + ", each at its default: uncomment a line to change it.\n" +
                    "# Most operators set only those marked (usual).\n" + "# `systemctl reload " + name +
                    "` (SIGHUP) applies those that say so, the others need a restart.\n" +
                    "# To check a file: " + name +
                    " --check-config --config FILE. On the command line: --set KEY=VALUE.\n" + "# " +
                    std::string(kUnitsOfValues) + "\n" + "# This file is the output of " + name + " --help-yaml.\n";
  const auto heading = [&](OptionGroup group) { out += "\n# --- " + std::string(group_text(group).heading) + "\n"; };
  for_each_by_group(table, heading, [&](const OptionRow& row) {
    const std::string help = (row.is_usual ? "(usual) " : "") + whole_help(row) + " (" + type_text(row) +
                             "; applied by a " + applied_by_text(row) + ")";
    out += "\n" + wrapped(help, 120, "# ") + "#" + std::string(row.name) + ": " + yaml_value(row) + "\n";
  });
  return out;
}

}  // namespace egret::base
