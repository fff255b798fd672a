// The options of a daemon: one table row each. The YAML file's keys, `--set`, `--help` and the table in docs/reference
// come from it.
//
//   table of OptionRow ─┐
//   YAML file ──────────┼─> Options::load ──> integer("workers"), size("memory"), ...
//   --set KEY=VALUE ... ┘
//
// A later source wins: default, then file, then --set in the order given. Every error is one line with place and key:
//   conf/egret-proxy.yaml:12: workers: expected an integer from 0 to 64, got "many"
//   --set workers=many: workers: expected an integer from 0 to 64, got "many"
//
// The file is one flat YAML mapping without anchors, aliases and tags. It is treated as hostile: reading it never takes
// more than kMaxConfigBytes and bounded recursion.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace egret::base {

// How a value is written, and the unit of the limits `min` and `max`.
enum class OptionType : uint8_t {
  kFlag,      // true, false (also yes/no, on/off)
  kInteger,   // decimal; limits: the value
  kSize,      // bytes: "4096", "64MiB", "1m" (units are powers of 1024, letters of either case); limits: bytes
  kDuration,  // "100us", "2ms", "1s", "5m", "1h", or "0"; limits: nanoseconds
  kText,      // limits: its length in bytes
  kChoice,    // one of `choices`
  kList,      // texts: a YAML sequence, or one scalar with commas, as in --set; limits: how many
};

// How a changed value takes effect: by a restart only, or by a reload (SIGHUP), too.
enum class AppliedBy : uint8_t { kRestart, kReload };

// --help, the documents and the YAML file show options by group, in this order. A daemon's table has the same order.
enum class OptionGroup : uint8_t {
  kListening,  // addresses, and who may connect
  kBackends,   // what it connects to
  kMemory,
  kLimits,
  kTls,
  kRdma,
  kObservability,
  kExpert,  // the default is right for nearly everybody; `measured_by` names what shows the effect of a change
};

inline constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Tables are constants that live as long as the program. Designated initialisers read best:
//   {.name = "workers", .type = OptionType::kInteger, .default_value = "0", .help = "...", .max = 64}
struct OptionRow {
  std::string_view name{};
  OptionType type = OptionType::kText;
  std::string_view default_value{};  // as written after --set name=
  std::string_view help{};           // one sentence or two, no line breaks
  int64_t min = 0;
  int64_t max = kNoLimit;
  std::string_view choices{};  // kChoice: "auto|on|off"
  bool has_auto = false;       // kInteger, kSize: "auto" is a value, too, whatever the limits: Options::is_auto()
  AppliedBy applied_by = AppliedBy::kRestart;
  OptionGroup group = OptionGroup::kExpert;
  bool is_usual = false;           // one of the few options that most operators set
  std::string_view measured_by{};  // kExpert: the command or the metrics that show the effect of a change
};

inline constexpr size_t kMaxConfigBytes = 1u << 20;  // size of a YAML file
inline constexpr size_t kMaxTextBytes = 4096;        // length of one value
inline constexpr size_t kMaxListValues = 1024;       // values in one list

// The values of all options of one table. A value class; reading it is safe from any thread.
class Options {
 public:
  // Reads the file, if there is one, and the arguments, each "key=value". Checks everything.
  static Expected<Options> load(std::span<const OptionRow> table, const std::optional<std::string>& yaml_file,
                                std::span<const std::string> set_arguments);
  // The same from memory, for tests and the fuzzer; `file_name` is for error messages only.
  static Expected<Options> parse(std::span<const OptionRow> table, std::string_view yaml, const std::string& file_name,
                                 std::span<const std::string> set_arguments);

  // Each aborts if the table has no option of that name and type: a bug of the caller.
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;          // -1 if is_auto()
  bool is_auto(std::string_view name) const;             // kInteger and kSize: what suits this host
  uint64_t size(std::string_view name) const;            // bytes
  uint64_t duration_ns(std::string_view name) const;     // nanoseconds
  const std::string& text(std::string_view name) const;  // kText and kChoice
  const std::vector<std::string>& list(std::string_view name) const;
  // Of a list of numeric user ids.
  Status user_ids(std::string_view name, std::vector<uint32_t>& uids) const;

  // The value as it would be written after "name=", for `stats settings` and logs. Any type.
  std::string written(std::string_view name) const;
  // The same for a log line that shows how two values of the option differ: quoted, not cut. A list shows only the
  // entries that `other` does not have, and "..." for the common ones: [..., "shm:/run/b"].
  std::string written_beside(const Options& other, std::string_view name) const;
  // Whether the file or an argument set it.
  bool is_given(std::string_view name) const;
  // One line for each value that was written ambiguously: "f.yaml:3: memory: 1GB is read as 1GiB".
  std::vector<std::string> notes() const;
  // For checks that the table cannot express: an error for `name` that begins with the place where it was set.
  Status error(std::string_view name, std::string_view what) const;

  std::span<const OptionRow> table() const { return table_; }

  // For a reload: returns `next` (of the same table), but with the present values of options that need a restart.
  // `kept`: those of them whose value differs in `next`.
  Options renewed_by(const Options& next, std::vector<std::string_view>& kept) const;
  // The options whose values differ.
  std::vector<std::string_view> differing_from(const Options& other) const;

 private:
  friend class OptionsLoader;
  struct Value {
    std::string text;               // as it was written
    std::vector<std::string> list;  // kList
    int64_t number = 0;             // kFlag, kInteger, kSize, kDuration
    std::string place;              // "file:12: ", "--set a=b: ", or empty for the default

    // Whether two values mean the same, even if they are written differently.
    bool means_the_same(const Value& other, OptionType type) const;
  };

  const Value& value(std::string_view name, std::initializer_list<OptionType> types) const;
  size_t index_of(std::string_view name) const;

  std::span<const OptionRow> table_;
  std::vector<Value> values_;  // same order as the table
};

// One sentence each on how sizes and durations are written.
inline constexpr std::string_view kUnitsOfValues =
    "Sizes: 64MiB, also written 64M or 64MB: units are powers of 1024. Durations: 100us, 2ms, 1s, 5m, 1h.";

// What is valid for this option, as the end of a sentence after "expected": "an integer from 0 to 64".
std::string expectation(const OptionRow& row);

// The table for `--help`, by group: name (with a * if most operators set it), type, default and wrapped help, in at
// most `width` columns.
std::string help_text(std::span<const OptionRow> table, size_t width = 100);

// The table as GitHub's Markdown, for docs/reference.
std::string help_markdown(std::span<const OptionRow> table);

// The table as a YAML file for conf/: every option with its help and its default, commented out.
std::string help_yaml(std::string_view program, std::span<const OptionRow> table);

}  // namespace egret::base
